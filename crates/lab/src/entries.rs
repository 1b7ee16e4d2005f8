//! The `entries` schema: one table. Checkers of other database systems are measured with a table that has the same
//! columns and indexes. Therefore the number of rows per second that mdfsck checks can be compared with the numbers of
//! these checkers. The table has a 64-bit key, two int columns, a date column and a string column. It has an index on
//! an int column with scattered values and an index on the string column.

use crate::description::{Column, DEFAULT_COLLATION, Description, Filegroup, Index, Table, Values};
use crate::page::PageVerify;
use crate::types::SqlType;
use crate::version::Version;

/// The file space in bytes that each table row needs, including its rows in the two nonclustered indexes.
const BYTES_PER_ROW: u64 = 124;
/// Size in bytes of the smallest database.
const LEAST_BYTES: u64 = 8 << 20;

/// The schema, with about `bytes` bytes of data.
pub fn entries(version: Version, seed: u64, bytes: u64) -> Description {
    let serial = |start| Values::Serial { start, step: 1 };
    let table = Table {
        name: "entries".to_owned(),
        columns: vec![
            Column::new("id", SqlType::BIGINT, serial(1)),
            Column::new("a", SqlType::INT, Values::Scattered { per: 1 }),
            Column::new("b", SqlType::INT, Values::Within { start: 0, per: 1000 }),
            Column::new("d", SqlType::DATETIME, serial(0)),
            Column::new("s", SqlType::char(28), Values::Scattered { per: 1 }),
        ],
        clustered: Some(Index::on("pk_entries", &[0]).primary_key()),
        indexes: vec![Index::on("ix_entries_a", &[1]), Index::on("ix_entries_s", &[4])],
        rows: (bytes.saturating_sub(LEAST_BYTES) / BYTES_PER_ROW).max(1000),
        ..Table::default()
    };
    Description {
        name: "entries".to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table],
        least_pages: (LEAST_BYTES / 8192) as u32,
    }
}
