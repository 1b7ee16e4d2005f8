//! Small databases that, taken together, use all features of the lab. Damage trials use these databases, because most
//! real databases use only some of the features.

use crate::description::{
    Column, Compression, DEFAULT_COLLATION, Description, Expression, Filegroup, Filter, Index, Table, Values,
};
use crate::page::PageVerify;
use crate::types::SqlType;
use crate::version::Version;

/// Describes one database for each kind of page protection. All databases have the same tables, but a feature that the
/// database's version of SQL Server lacks is left out.
pub fn specimens() -> Vec<Description> {
    vec![
        specimen(Version::V611, PageVerify::Torn, 1),
        specimen(Version::V706, PageVerify::None, 1),
        specimen(Version::V957, PageVerify::Checksum, 1),
    ]
}

/// A database with this version and page protection. `seed` determines its values.
pub fn specimen(version: Version, verify: PageVerify, seed: u64) -> Description {
    Description {
        name: format!("lab {version:?}"),
        version,
        collation: DEFAULT_COLLATION,
        verify,
        seed,
        filegroups: vec![
            Filegroup { name: "PRIMARY".to_owned(), files: 2 },
            Filegroup { name: "ARCHIVE".to_owned(), files: 1 },
        ],
        tables: tables(version),
        least_pages: 0,
    }
}

fn tables(version: Version) -> Vec<Table> {
    let mut tables = vec![moving(), wide(), partitioned(), computed()];
    if version > Version::V611 {
        tables.extend([sparse(), compressed(Compression::Row), compressed(Compression::Page)]);
    }
    tables
}

fn id() -> Column {
    Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 })
}

fn text(least: u32, most: u32) -> Values {
    Values::Text { least, most }
}

/// A heap in two files, with forwarded rows, empty slots, ghosts, row versions, text values, and an index.
fn moving() -> Table {
    Table {
        name: "moving".to_owned(),
        columns: vec![
            id(),
            Column::new("code", SqlType::char(12), Values::Scattered { per: 1 }),
            Column::new("notes", SqlType::TEXT, text(20, 20_000)).nullable(50),
            Column::new("filler", SqlType::varchar(300), text(50, 300)),
        ],
        indexes: vec![Index::on("ix_code", &[1]).unique().including(&[0])],
        rows: 400,
        ghost_every: 31,
        moved_every: 7,
        hole_every: 11,
        versioned_every: 13,
        ..Table::default()
    }
}

/// A table with row-overflow values, and with long values that have a tree of LOB pages.
fn wide() -> Table {
    Table {
        name: "wide".to_owned(),
        columns: vec![
            id(),
            Column::new("first", SqlType::varchar(5_000), text(3_000, 5_000)),
            Column::new("second", SqlType::nvarchar(2_500), text(500, 2_500)).nullable(10),
            Column::new("body", SqlType::VARBINARY_MAX, Values::Bytes { least: 10, most: 60_000 }).nullable(20),
        ],
        clustered: Some(Index::on("pk_wide", &[0]).primary_key()),
        rows: 40,
        filegroup: 1,
        ..Table::default()
    }
}

/// A table in three partitions, with pages that are out of order, and with a nonclustered index.
fn partitioned() -> Table {
    Table {
        name: "partitioned".to_owned(),
        columns: vec![
            id(),
            Column::new("day", SqlType::DATETIME, Values::Uniform { low: 0, high: 4_000 }),
            Column::new("amount", SqlType::decimal(15, 3), Values::Uniform { low: -9_000, high: 9_000 }).nullable(5),
            Column::new("filler", SqlType::nchar(60), text(5, 60)),
        ],
        clustered: Some(Index::on("pk_partitioned", &[0]).primary_key()),
        indexes: vec![Index::on("ix_day", &[1, 2])],
        rows: 900,
        partitions: 3,
        fragmented: true,
        ghost_every: 97,
        ..Table::default()
    }
}

/// A table with several rows per clustering key, and with an index on a computed column.
fn computed() -> Table {
    Table {
        name: "computed".to_owned(),
        columns: vec![
            Column::new("run", SqlType::INT, Values::Grouped { start: 1, per: 4 }),
            Column::new("a", SqlType::INT, Values::Uniform { low: -50, high: 50 }),
            Column::new("b", SqlType::INT, Values::Uniform { low: 0, high: 9 }),
            Column::computed("product", Expression::Product(1, 2), true),
            Column::new("filler", SqlType::char(120), text(5, 120)),
        ],
        clustered: Some(Index::on("cx_computed", &[0])),
        indexes: vec![Index::on("ix_product", &[3])],
        rows: 600,
        ..Table::default()
    }
}

/// A table with sparse columns and a filtered index.
fn sparse() -> Table {
    Table {
        name: "sparse".to_owned(),
        columns: vec![
            id(),
            Column::new("one", SqlType::INT, Values::Uniform { low: 1, high: 40 }).sparse(60),
            Column::new("two", SqlType::varchar(20), text(3, 20)).sparse(80),
            Column::new("three", SqlType::BIGINT, Values::Scattered { per: 1 }).sparse(90),
        ],
        clustered: Some(Index::on("pk_sparse", &[0]).primary_key()),
        indexes: vec![Index::on("ix_one", &[1]).filtered(Filter::IsNotNull(1))],
        rows: 300,
        ..Table::default()
    }
}

/// A heap of compressed rows with an index.
fn compressed(compression: Compression) -> Table {
    Table {
        name: format!("compressed {compression:?}"),
        columns: vec![
            id(),
            Column::new("code", SqlType::char(8), Values::Grouped { start: 1, per: 9 }),
            Column::new("name", SqlType::nvarchar(40), text(4, 40)).nullable(10),
            Column::new("price", SqlType::MONEY, Values::Uniform { low: -5, high: 500_000 }),
        ],
        indexes: vec![Index::on("ix_price", &[3])],
        rows: 700,
        compression,
        ..Table::default()
    }
}
