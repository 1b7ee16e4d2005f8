//! Tables with legal forms of rows that a new table does not have: forwarded rows, empty slots, deleted rows, versions,
//! sparse values, many columns, compression, and combinations of these.

use lab::Version;
use lab::description::{
    Column, Compression, DEFAULT_COLLATION, Description, Expression, Filegroup, Filter, Index, Table, Values,
};
use lab::{PageVerify, SqlType};

const ROWS: u64 = 1_200;

/// Databases whose tables together have all forms of rows that the documentation of this module lists.
pub fn descriptions() -> Vec<Description> {
    vec![
        database("heaps", vec![moved(), holes(), all_at_once(None)]),
        database("sparse", vec![sparse(90), sparse(10), all_at_once(Some(40))]),
        database("vectors", vectors()),
        database("wide", vec![wide(false), wide(true)]),
        database("row_compressed", vec![compressed(Compression::Row, false), compressed(Compression::Row, true)]),
        database("page_compressed", vec![compressed(Compression::Page, false), compressed(Compression::Page, true)]),
        database("wide_compressed", vec![wide_compressed(Compression::Row), wide_compressed(Compression::Page)]),
    ]
}

pub(super) fn database(name: &str, tables: Vec<Table>) -> Description {
    let tables = tables.into_iter().zip(0..).map(|(table, at)| Table { name: format!("{name}_{at}"), ..table });
    Description {
        name: name.to_owned(),
        version: Version::V852,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed: 7,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: tables.collect(),
        least_pages: 0,
    }
}

fn uniform(low: i64, high: i64) -> Values {
    Values::Uniform { low, high }
}

fn payments() -> Table {
    Table {
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("customer", SqlType::INT, uniform(-900, 1_000_000)),
            Column::new("amount", SqlType::decimal(12, 2), uniform(-5_000, 5_000_000)).nullable(10),
            Column::new("paid", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }).nullable(5),
            Column::new("kind", SqlType::SMALLINT, uniform(-9, 9)),
            Column::new("note", SqlType::varchar(40), Values::Text { least: 0, most: 20 }).nullable(20),
            Column::new("text", SqlType::nvarchar(30), Values::Text { least: 0, most: 12 }).nullable(20),
            Column::new("is_open", SqlType::BIT, uniform(0, 1)).nullable(20),
            Column::computed("product", Expression::Product(0, 4), true),
        ],
        indexes: vec![
            Index::on("customers", &[1]),
            Index::on("notes", &[5, 4]).including(&[2, 7]),
            Index::on("texts", &[6]).filtered(Filter::IsNotNull(6)),
            Index::on("products", &[8]),
        ],
        rows: ROWS,
        ..Table::default()
    }
}

fn moved() -> Table {
    Table { moved_every: 20, ..payments() }
}

fn holes() -> Table {
    Table { hole_every: 9, ghost_every: 23, ..payments() }
}

/// Adds four sparse columns. The first two are NULL in `nulls` percent of the rows.
fn with_sparse(mut table: Table, nulls: u8) -> Table {
    let first = table.columns.len();
    table.columns.extend([
        Column::new("fee", SqlType::INT, uniform(1, 9)).sparse(nulls),
        Column::new("tag", SqlType::varchar(20), Values::Text { least: 0, most: 9 }).sparse(nulls),
        Column::new("moment", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }).sparse(95),
        Column::new("size", SqlType::BIGINT, uniform(-3, 3)).sparse(nulls / 2),
    ]);
    table.indexes.extend([
        Index::on("fees", &[first]).filtered(Filter::IsNotNull(first)),
        Index::on("sizes", &[first + 3, 1]),
        Index::on("kinds", &[4]).filtered(Filter::IsNotNull(first)),
    ]);
    table
}

fn sparse(nulls: u8) -> Table {
    let clustered = Some(Index::on("pk", &[0]).primary_key());
    Table { clustered, ..with_sparse(payments(), nulls) }
}

/// Tables in which all sparse vectors have values of the same columns, with the same lengths. One table also has an
/// index on a computed column, and one has off-row values.
fn vectors() -> Vec<Table> {
    let with = |columns: Vec<Column>, is_clustered: bool, ghost_every| {
        let mut table = payments();
        table.columns.truncate(5);
        let first = table.columns.len();
        let filtered = |at: usize| Index::on(&format!("values_{at}"), &[at]).filtered(Filter::IsNotNull(at));
        table.indexes = (first..first + columns.len()).map(filtered).collect();
        table.indexes.push(Index::on("all_values", &[first, 1]));
        table.indexes.push(Index::on("kinds", &[4]).filtered(Filter::IsNotNull(first)));
        table.columns.extend(columns);
        let clustered = is_clustered.then(|| Index::on("pk", &[0]).primary_key());
        Table { clustered, ghost_every, ..table }
    };
    let of_int = |nulls| Column::new("fee", SqlType::INT, uniform(1, 9)).sparse(nulls);
    let moment = Column::new("moment", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 });
    let text = Column::new("tag", SqlType::varchar(20), Values::Text { least: 5, most: 5 });
    let note = Column::new("note", SqlType::varchar(40), Values::Text { least: 1, most: 20 });
    let mut with_note = with(vec![of_int(20)], true, 0);
    with_note.columns.push(note);
    let mut with_sum = with(vec![of_int(70)], true, 13);
    with_sum.columns.push(Column::computed("sum", Expression::Sum(1, 0), false));
    with_sum.indexes.push(Index::on("sums", &[with_sum.columns.len() - 1]));
    let mut with_long_text = Table { rows: 300, ..with(vec![of_int(50)], true, 0) };
    let long = Values::Text { least: 10, most: 9_000 };
    with_long_text.columns.push(Column::new("text", SqlType::VARCHAR_MAX, long).nullable(40));
    let bit = Column::new("is_open", SqlType::BIT, uniform(0, 1));
    let small = Column::new("small", SqlType::decimal(12, 2), uniform(-5_000, 5_000_000));
    vec![
        with(vec![of_int(90)], false, 0),
        with(vec![of_int(10)], true, 0),
        with(vec![moment.clone().sparse(50)], true, 0),
        with(vec![of_int(0), moment.sparse(0), small.sparse(0)], true, 0),
        with(vec![text.sparse(30)], false, 11),
        with(vec![bit.sparse(40)], true, 0),
        with_note,
        with_sum,
        with_long_text,
    ]
}

fn all_at_once(sparse: Option<u8>) -> Table {
    let table = Table { moved_every: 31, hole_every: 40, ghost_every: 17, versioned_every: 5, ..payments() };
    match sparse {
        Some(nulls) => with_sparse(table, nulls),
        None => table,
    }
}

fn with_columns(mut table: Table, count: usize) -> Table {
    for number in 0..count {
        let column = match number % 5 {
            0 => Column::new(&format!("c{number}"), SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }),
            1 => Column::new(&format!("c{number}"), SqlType::varchar(9), Values::Text { least: 0, most: 5 }),
            2 => Column::new(&format!("c{number}"), SqlType::BIT, uniform(0, 1)),
            _ => Column::new(&format!("c{number}"), SqlType::INT, uniform(1, 9)),
        };
        table.columns.push(if number % 3 == 0 { column.nullable(10) } else { column });
    }
    table
}

/// A table with so large a number of columns that its null bitmap does not fit in one 64-bit word.
fn wide(is_clustered: bool) -> Table {
    let mut table = with_columns(payments(), 130);
    table.indexes.extend([
        Index::on("seventieth", &[70]),
        Index::on("hundredth", &[100, 1]).including(&[99]),
        Index::on("last", &[137]).filtered(Filter::IsNotNull(137)),
    ]);
    let clustered = is_clustered.then(|| Index::on("pk", &[0]).primary_key());
    Table { clustered, moved_every: if is_clustered { 0 } else { 25 }, ghost_every: 31, ..table }
}

fn compressed(compression: Compression, has_holes: bool) -> Table {
    let hole_every = if has_holes { 13 } else { 0 };
    Table { compression, hole_every, ghost_every: hole_every * 2, ..payments() }
}

/// A table whose compressed rows have more columns than one cluster.
fn wide_compressed(compression: Compression) -> Table {
    Table { compression, ..with_columns(payments(), 70) }
}
