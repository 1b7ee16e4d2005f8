//! Measures the cost of a nonclustered index per row of its table, including the cost of reading the index pages:
//! `cargo bench -p mdfsck-check --bench index_rows`.
//!
//! SQL Server 2012 takes 20 times as long to check an index on a computed column as to check an ordinary index. For a
//! filtered index on a sparse column, it takes 58 times as long. In mdfsck, a check with an index of either kind should
//! take at most 1.3 times as long as a check with an ordinary index. The output shows the ratio of the checks, and also
//! the ratio of the costs that each index adds to a check of the table alone.

mod sweep;

use std::error::Error;

use lab::SqlType;
use lab::description::{Column, Description, Expression, Filter, Index, Table, Values};
use sweep::Sweep;

const ROWS: u64 = 1_000_000;

/// A table of orders, with at most one nonclustered index.
fn description(index: Option<Index>) -> Description {
    let uniform = |low, high| Values::Uniform { low, high };
    let table = Table {
        name: "orders".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("customer", SqlType::INT, uniform(1, 1_000_000)),
            Column::new("price", SqlType::INT, uniform(1, 5_000)),
            Column::new("quantity", SqlType::INT, uniform(1, 200)),
            Column::new("placed", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }),
            Column::new("comment", SqlType::nvarchar(60), Values::Text { least: 5, most: 30 }),
            Column::new("discount", SqlType::INT, uniform(1, 1_000_000)).sparse(10),
            Column::computed("total", Expression::Product(2, 3), false),
            Column::computed("stored_total", Expression::Sum(2, 3), true),
        ],
        clustered: Some(Index::on("pk_orders", &[0]).primary_key()),
        indexes: index.into_iter().collect(),
        rows: ROWS,
        ..Table::default()
    };
    sweep::database(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    let kinds = [
        ("no index", None),
        ("int", Some(Index::on("i", &[1]))),
        ("int, included nvarchar", Some(Index::on("i", &[1]).including(&[5]))),
        ("computed: price * quantity", Some(Index::on("i", &[7]))),
        ("filtered: discount IS NOT NULL, sparse", Some(Index::on("i", &[6]).filtered(Filter::IsNotNull(6)))),
        ("filtered: customer >= 100000", Some(Index::on("i", &[1]).filtered(Filter::AtLeast(1, 100_000)))),
    ];
    println!(
        "{:<42} {:>10} {:>14} {:>16} {:>14}",
        "index", "ns a row", "of the index", "ratio of checks", "of the index"
    );
    let databases = kinds.clone().map(|(_, index)| {
        let indexes = u64::from(index.is_some());
        (description(index), indexes)
    });
    let (mut without, mut ordinary) = (None, None);
    for ((name, index), sweep) in kinds.into_iter().zip(Sweep::means_of(&databases)?) {
        let a_row = sweep.seconds * 1e9 / ROWS as f64;
        let own = a_row - *without.get_or_insert(a_row);
        if index.is_some() {
            ordinary.get_or_insert((a_row, own));
        }
        let [of_checks, of_indexes] = ordinary.map_or_else(Default::default, |(check, index)| {
            [a_row / check, own / index].map(|ratio| format!("{ratio:.2}"))
        });
        println!("{name:<42} {a_row:>10.0} {own:>14.0} {of_checks:>16} {of_indexes:>14}");
    }
    Ok(())
}
