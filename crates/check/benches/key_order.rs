//! Measures the cost per row of a table with names, for several collations: `cargo bench -p mdfsck-check --bench
//! key_order`.
//!
//! The table `names` contains only random letters of an alphabet, and has two indexes. It shows the maximum cost of
//! comparing the order of keys. The table `people` contains realistic Vietnamese names. The cost of each table is shown
//! as a multiple of its cost with a collation that has the order of ASCII.

#[expect(dead_code, reason = "the lab describes these databases")]
mod sweep;

use std::error::Error;

use lab::Description;
use lab::alphabet;
use lab::description::DEFAULT_COLLATION;
use sweep::Sweep;

const ROWS: usize = 300_000;
const VIETNAMESE: u32 = 0xD020;

fn main() -> Result<(), Box<dyn Error>> {
    let names = |collation| alphabet::names(collation, ROWS, 1);
    let people = |collation| alphabet::people(collation, ROWS, 1);
    // Each table is listed with the number of its indexes on names.
    let mut tables: Vec<(String, Description, u64)> = vec![("names, ASCII".to_owned(), names(DEFAULT_COLLATION), 2)];
    for (collation, name) in alphabet::COLLATIONS {
        tables.push((format!("names, {name}"), names(collation), 2));
    }
    tables.push(("people, ASCII".to_owned(), people(DEFAULT_COLLATION), 1));
    tables.push(("people, Vietnamese".to_owned(), people(VIETNAMESE), 1));
    let labels: Vec<String> = tables.iter().map(|(label, ..)| label.clone()).collect();
    let databases: Vec<_> = tables.into_iter().map(|(_, description, indexes)| (description, indexes)).collect();
    println!("{:<20} {:>9} {:>14} {:>9}", "table", "ns a row", "bytes a row", "x ASCII");
    let mut yardstick = f64::NAN;
    for (label, sweep) in labels.iter().zip(Sweep::means_of(&databases)?) {
        if label.ends_with("ASCII") {
            yardstick = sweep.seconds;
        }
        let [a_row, bytes] = [sweep.seconds * 1e9, sweep.bytes as f64].map(|total| total / ROWS as f64);
        println!("{label:<20} {a_row:>9.0} {bytes:>14.0} {:>9.2}", sweep.seconds / yardstick);
    }
    Ok(())
}
