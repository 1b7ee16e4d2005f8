//! scratch
fn main() {
    for dir in std::env::args().skip(1) {
        match source::DataFiles::open(&[dir.clone().into()]) {
            Err(e) => println!("ERR {e}"),
            Ok(files) => {
                let db = catalog::load(&files);
                let r = check::run(&files, &db, &check::Options::default(), &check::Silent);
                println!(
                    "{dir} findings {} v{} clean {:?} gaps {} nv {}",
                    r.findings.len(),
                    r.database.version,
                    r.database.clean_shutdown,
                    db.gaps.len(),
                    r.not_verified
                        .iter()
                        .filter(|n| n.what.starts_with("message") || n.what == "pages")
                        .map(|n| format!("{}:{}", n.what, n.count))
                        .collect::<Vec<_>>()
                        .join(",")
                );
                for f in r.findings.iter().take(4) {
                    println!("   {} {} {}", f.check.msg, f.state, f.text(&r.names()));
                }
                for e in r.read_errors.iter().take(2) {
                    println!("   E {e}");
                }
            }
        }
    }
}
