//! scratch
use std::path::Path;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let size: u64 = a[3].parse().unwrap();
    let mut d = if a[2] == "random" {
        let d = lab::shapes::random(size);
        println!("{d:#?}");
        d
    } else {
        lab::orders::orders(lab::Version::from_number(a[2].parse().unwrap()).unwrap(), 1, size << 20)
    };
    if let Some(only) = a.get(4) {
        d.tables.retain(|t| only.split(',').any(|o| o == t.name));
    }
    let t = std::time::Instant::now();
    let w = lab::write(&d, Path::new(&a[1])).unwrap();
    let bytes: u64 = w.pages.iter().map(|&p| u64::from(p) * 8192).sum();
    println!(
        "{:?} {} MB in {:?}: {:.0} MB/s",
        w.tables,
        bytes >> 20,
        t.elapsed(),
        bytes as f64 / 1e6 / t.elapsed().as_secs_f64()
    );
}
