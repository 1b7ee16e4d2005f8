//! Measures the cost per row of a table with one index, for several forms of rows: `cargo bench -p mdfsck-check --bench
//! row_forms`. Arguments after `--` select which forms are measured.

mod sweep;

use std::error::Error;

use lab::SqlType;
use lab::description::{Column, Compression, Description, Index, Table, Values};
use sweep::Sweep;

const ROWS: u64 = 500_000;

/// A heap of payments, modified by `form`.
fn description(form: impl FnOnce(&mut Table)) -> Description {
    let uniform = |low, high| Values::Uniform { low, high };
    let mut table = Table {
        name: "payments".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("customer", SqlType::INT, uniform(1, 1_000_000)),
            Column::new("amount", SqlType::decimal(12, 2), uniform(1, 5_000_000)),
            Column::new("paid", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }),
            Column::new("kind", SqlType::SMALLINT, uniform(1, 9)),
            Column::new("note", SqlType::varchar(40), Values::Text { least: 5, most: 20 }),
        ],
        indexes: vec![Index::on("ix_payments_customer", &[1])],
        rows: ROWS,
        ..Table::default()
    };
    form(&mut table);
    sweep::database(table)
}

/// A form of rows: its name, and a function that changes a table so that its rows have this form.
type RowForm = (&'static str, fn(&mut Table));

fn main() -> Result<(), Box<dyn Error>> {
    let forms: [RowForm; 10] = [
        ("of one form", |_| {}),
        ("one in 20 deleted", |table| table.ghost_every = 20),
        ("one in 3 with a row version", |table| table.versioned_every = 3),
        ("one in 50 moved", |table| table.moved_every = 50),
        ("an empty slot after every 50", |table| table.hole_every = 50),
        ("a sparse column, one in 10 set", |table| {
            table.columns.push(Column::new("fee", SqlType::INT, Values::Uniform { low: 1, high: 9 }).sparse(90));
        }),
        ("80 columns", |table| {
            for number in 0..74 {
                table.columns.push(Column::new(
                    &format!("c{number}"),
                    SqlType::INT,
                    Values::Uniform { low: 1, high: 9 },
                ));
            }
        }),
        ("row compression", |table| table.compression = Compression::Row),
        ("page compression", |table| table.compression = Compression::Page),
        ("row compression of 30 columns", |table| {
            table.compression = Compression::Row;
            let values = Values::Uniform { low: 1, high: 999 };
            table
                .columns
                .extend((6..30).map(|number| Column::new(&format!("c{number}"), SqlType::INT, values.clone())));
        }),
    ];
    println!("{:<34} {:>9} {:>14} {:>8}", "rows", "ns a row", "bytes a row", "MB/s");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let forms = forms.into_iter().filter(|(name, _)| wanted.iter().all(|word| name.contains(word)));
    let (names, databases): (Vec<_>, Vec<_>) = forms.map(|(name, form)| (name, (description(form), 1))).unzip();
    for (name, sweep) in names.into_iter().zip(Sweep::means_of(&databases)?) {
        let [a_row, bytes] = [sweep.seconds * 1e9, sweep.bytes as f64].map(|total| total / ROWS as f64);
        println!("{name:<34} {a_row:>9.0} {bytes:>14.0} {:>8.0}", bytes / a_row * 1e3);
    }
    Ok(())
}
