//! The tables on which workloads run. They differ in how rows are inserted and deleted.

use crate::description::{Column, DEFAULT_COLLATION, Description, Filegroup, Index, Table, Values};
use crate::page::PageVerify;
use crate::types::SqlType;
use crate::version::Version;

/// The minimum number of pages in the data file. It leaves space for the rows that a workload adds.
const LEAST_PAGES: u32 = 1024;

/// The database, with about `rows` rows in each table.
pub(super) fn schema(version: Version, seed: u64, verify: PageVerify, rows: u64, transactions: u64) -> Description {
    Description {
        name: "workload".to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![accounts(rows), tickets(rows), visits(rows), readings(rows), documents(20 + rows / 10), queue()],
        least_pages: LEAST_PAGES + (4 * transactions as u32).min(1 << 20),
    }
}

fn text(least: u32, most: u32) -> Values {
    Values::Text { least, most }
}

/// A table with rising keys, so that new rows are added at the end.
fn accounts(rows: u64) -> Table {
    Table {
        name: "accounts".to_owned(),
        columns: vec![
            Column::new("account_id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("owner", SqlType::INT, Values::Uniform { low: 1, high: 200 }),
            Column::new("balance", SqlType::MONEY, Values::Uniform { low: -50_000, high: 9_000_000 }),
            Column::new("name", SqlType::varchar(60), text(3, 50)),
            Column::new("note", SqlType::nvarchar(60), text(0, 50)).nullable(40),
        ],
        clustered: Some(Index::on("pk_accounts", &[0]).primary_key()),
        indexes: vec![Index::on("ix_accounts_owner", &[1]), Index::on("ix_accounts_name", &[3]).including(&[2])],
        rows,
        ..Table::default()
    }
}

/// A table with random keys, so that new rows are inserted anywhere and pages split in the middle.
fn tickets(rows: u64) -> Table {
    Table {
        name: "tickets".to_owned(),
        columns: vec![
            Column::new("ticket", SqlType::BIGINT, Values::Uniform { low: 0, high: 1 << 60 }),
            Column::new("state", SqlType::INT, Values::Uniform { low: 0, high: 5 }),
            Column::new("subject", SqlType::varchar(400), text(20, 380)),
            Column::new("seen_at", SqlType::DATETIME, Values::Uniform { low: 0, high: 900_000 }).nullable(20),
        ],
        clustered: Some(Index::on("pk_tickets", &[0]).primary_key()),
        indexes: vec![Index::on("ix_tickets_state", &[1])],
        rows,
        ..Table::default()
    }
}

/// A table in which many rows have the same key and differ only in the uniquifier.
fn visits(rows: u64) -> Table {
    Table {
        name: "visits".to_owned(),
        columns: vec![
            Column::new("visit_id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("customer", SqlType::INT, Values::Uniform { low: 1, high: 40 }),
            Column::new("page", SqlType::varchar(80), text(3, 70)),
            Column::new("seconds", SqlType::INT, Values::Uniform { low: 0, high: 600 }).nullable(15),
        ],
        clustered: Some(Index::on("cx_visits", &[1])),
        indexes: vec![Index::on("ix_visits_seconds", &[3])],
        rows,
        ..Table::default()
    }
}

/// A heap.
fn readings(rows: u64) -> Table {
    Table {
        name: "readings".to_owned(),
        columns: vec![
            Column::new("reading_id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("sensor", SqlType::INT, Values::Uniform { low: 1, high: 30 }),
            Column::new("value", SqlType::FLOAT, Values::Uniform { low: -500, high: 500 }),
            Column::new("remark", SqlType::varchar(300), text(0, 280)).nullable(30),
        ],
        indexes: vec![Index::on("ix_readings_sensor", &[1])],
        rows,
        ..Table::default()
    }
}

/// A table with values that do not fit in their rows.
fn documents(rows: u64) -> Table {
    Table {
        name: "documents".to_owned(),
        columns: vec![
            Column::new("document_id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("pages", SqlType::INT, Values::Uniform { low: 1, high: 90 }),
            Column::new("title", SqlType::varchar(40), text(3, 40)),
            Column::new("body", SqlType::VARCHAR_MAX, text(10, 48_000)).nullable(10),
        ],
        clustered: Some(Index::on("pk_documents", &[0]).primary_key()),
        indexes: vec![Index::on("ix_documents_pages", &[1])],
        rows,
        ..Table::default()
    }
}

/// A heap that has no pages at the start.
fn queue() -> Table {
    Table {
        name: "queue".to_owned(),
        columns: vec![
            Column::new("message_id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("message", SqlType::varchar(200), text(5, 180)),
        ],
        ..Table::default()
    }
}
