//! scratch
fn main() {
    for path in std::env::args().skip(1) {
        let name = path.clone();
        match source::DataFiles::open(&[path.into()]) {
            Err(e) => println!("ERR {e}"),
            Ok(files) => {
                let db = catalog::load(&files);
                let t = std::time::Instant::now();
                let r = check::run(&files, &db, &check::Options::default(), &check::Silent);
                println!(
                    "{name} findings {} nv {} pages {} rows {} {:?}",
                    r.findings.len(),
                    r.not_verified.len(),
                    r.statistics.pages_read,
                    r.statistics.rows,
                    t.elapsed()
                );
                for f in r.findings.iter().take(12) {
                    println!("   {} {} {}", f.check.msg, f.state, f.text(&r.names()));
                }
                for n in &r.not_verified {
                    if n.what == "key order" || n.what == "pages" || n.what.starts_with("message") {
                        println!("   NV {n:?}");
                    }
                }
            }
        }
    }
}
