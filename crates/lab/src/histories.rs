//! Tables with columns that were added and dropped. ALTER TABLE does not rewrite existing rows, so the rows show which
//! columns existed when they were written.
//!
//! The first third of the rows was written before columns were dropped. The second third was written between the
//! dropping of these columns and the adding of other columns. The last third was written after the other columns were
//! added. Most added columns use the bytes of a dropped column. Only dropped columns have negative values. So if a
//! reader confuses a dropped column with an added column, it finds violated CHECK constraints.

use crate::description::{
    Column, Compression, DEFAULT_COLLATION, Description, Expression, Filegroup, Filter, Index, Table, Values,
};
use crate::page::PageVerify;
use crate::types::SqlType;
use crate::version::Version;

/// The number of rows. All rows must fit on one page, because an index with more pages has non-leaf rows, and the
/// format of compressed non-leaf rows is unknown.
const ROWS: u64 = 48;
/// `DROPPED` is the first row that was written after columns were dropped. `ADDED` is the first row that was written
/// after other columns were added.
const DROPPED: u64 = 16;
const ADDED: u64 = 32;

/// What happened to the existing rows after columns were added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// The rows were not changed.
    Kept,
    /// All rows were rewritten, because a persisted computed column was added.
    Rewritten,
    /// ALTER TABLE REBUILD removed the space of dropped columns.
    Rebuilt,
}

/// How added columns use the bytes of dropped columns. These added columns begin after the last column that was not
/// dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// One added column uses the bytes of two dropped columns.
    Wide,
    /// Two added columns use the bytes of one dropped column: the first column ends within these bytes, and the second
    /// column ends beyond them.
    Narrow,
}

/// Describes the schema: heaps and clustered indexes with each kind of history, uncompressed, compressed and
/// partitioned.
pub fn histories(version: Version, seed: u64) -> Description {
    let compressions: &[Compression] = match version {
        Version::V611 => &[Compression::None],
        _ => &[Compression::None, Compression::Row, Compression::Page],
    };
    let mut tables = Vec::new();
    for &compression in compressions {
        for then in [Then::Kept, Then::Rewritten, Then::Rebuilt] {
            for is_heap in [true, false] {
                tables.push(table(version, compression, then, is_heap));
                if compression == Compression::None {
                    tables.extend([Place::Wide, Place::Narrow].map(|place| at_end(place, then, is_heap)));
                    tables.push(in_partitions(table(version, compression, then, is_heap)));
                }
            }
        }
    }
    Description {
        name: "histories".to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables,
        least_pages: 0,
    }
}

fn table(version: Version, compression: Compression, then: Then, is_heap: bool) -> Table {
    let columns = columns(version, compression, then);
    let name = format!("{} {then:?} {compression:?}", if is_heap { "heap" } else { "tree" }).to_lowercase();
    let position = |name: &str| columns.iter().position(|column| column.name == name);
    let added = ["same", "other", "longer", "text", "total"].into_iter().filter_map(position);
    let indexes = added.clone().map(|at| Index::on(&format!("ix_{}", columns[at].name), &[at]));
    let covering = position("same").into_iter().zip(position("note"));
    let covering = covering.map(|(same, note)| Index::on("ix_both", &[same, note]).including(&[note - 1]));
    let is_number = |at: &usize| columns[*at].computed.is_none() && columns[*at].name != "text";
    Table {
        clustered: (!is_heap).then(|| Index::on(&format!("pk {name}"), &[0]).primary_key()),
        indexes: indexes.chain(covering).collect(),
        rows: ROWS,
        ghost_every: 17,
        moved_every: if is_heap && compression == Compression::None { 7 } else { 0 },
        checks: added.filter(is_number).map(|at| (format!("ck {name} {at}"), Filter::AtLeast(at, 0))).collect(),
        is_rebuilt: then == Then::Rebuilt,
        name,
        compression,
        columns,
        ..Table::default()
    }
}

/// A copy of the table with three partitions. Each partition is a rowset with its own list of columns.
fn in_partitions(table: Table) -> Table {
    let name = format!("parted {}", table.name);
    let clustered = table.clustered.map(|index| Index { name: format!("pk {name}"), ..index });
    let checks = table.checks.into_iter().map(|(check, filter)| (format!("parted {check}"), filter)).collect();
    Table { name, clustered, checks, partitions: 3, ..table }
}

/// Describes a table whose last fixed-length columns were dropped. A bit column was dropped, too; its bit in the byte
/// that bit columns share is unused. Two other columns were changed to another type.
fn at_end(place: Place, then: Then, is_heap: bool) -> Table {
    let number = || Values::Uniform { low: 0, high: 500 };
    let words = || Values::Text { least: 1, most: 8 };
    let bit = |name: &str| Column::new(name, SqlType::BIT, Values::Uniform { low: 0, high: 1 });
    let mut columns = vec![
        Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
        bit("first"),
        bit("old_bit").until(DROPPED),
        bit("last").nullable(20),
        Column::new("a", SqlType::INT, number()),
        Column::new("old_float", SqlType::FLOAT, Values::Uniform { low: -500, high: -1 }).until(0),
        Column::new("old_day", SqlType::DATETIME, Values::Uniform { low: 0, high: 500 }).nullable(10).until(0),
        Column::new("kept", SqlType::varchar(60), Values::Text { least: 0, most: 60 }).nullable(10),
    ];
    let old = |name: &str, length| Column::new(name, SqlType::char(length), words()).until(DROPPED);
    columns.extend(match place {
        Place::Wide => vec![old("old_code", 8), old("old_name", 8).nullable(10)],
        Place::Narrow => vec![old("old_code", 10)],
    });
    let altered = columns.len();
    columns.push(Column::new("altered", SqlType::INT, number()).nullable(20).made_of(5));
    columns.push(Column::new("shorter", SqlType::char(5), Values::Text { least: 1, most: 5 }).made_of(6));
    let first = columns.len();
    columns.extend(match place {
        Place::Wide => vec![Column::new("wide", SqlType::char(16), words()).nullable(20).at_end()],
        Place::Narrow => vec![
            Column::new("narrow", SqlType::INT, number()).nullable(20).at_end(),
            Column::new("beyond", SqlType::BIGINT, number()).nullable(20).at_end(),
        ],
    });
    for column in &mut columns[first..] {
        column.life.since = if then == Then::Kept { ADDED } else { 0 };
    }
    if then == Then::Rewritten {
        for column in &mut columns[..altered] {
            column.life.until = column.life.until.map(|_| 0);
        }
    }
    let name = format!("{place:?} {} {then:?}", if is_heap { "heap" } else { "tree" }).to_lowercase();
    let added = altered..columns.len();
    let indexes = added.clone().map(|at| Index::on(&format!("ix_{}", columns[at].name), &[at]));
    let bits = Index::on("ix_last", &[3]).including(&[1]);
    let is_number = |at: &usize| !["wide", "shorter"].contains(&columns[*at].name.as_str());
    Table {
        clustered: (!is_heap).then(|| Index::on(&format!("pk {name}"), &[0]).primary_key()),
        indexes: indexes.chain([bits]).collect(),
        rows: ROWS,
        ghost_every: 17,
        moved_every: if is_heap { 7 } else { 0 },
        checks: added.filter(is_number).map(|at| (format!("ck {name} {at}"), Filter::AtLeast(at, 0))).collect(),
        is_rebuilt: then == Then::Rebuilt,
        name,
        columns,
        ..Table::default()
    }
}

fn columns(version: Version, compression: Compression, then: Then) -> Vec<Column> {
    let negative = || Values::Uniform { low: -500, high: -1 };
    let positive = || Values::Uniform { low: 0, high: 500 };
    let words = || Values::Text { least: 1, most: 12 };
    let old = |name: &str, ty| Column::new(name, ty, negative()).until(DROPPED);
    let mut columns = vec![
        Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
        old("old_int", SqlType::INT),
        old("old_real", SqlType::REAL).nullable(10),
        old("old_day", SqlType::DATETIME),
        Column::new("old_code", SqlType::char(12), words()).until(DROPPED),
        Column::new("old_note", SqlType::varchar(40), words()).until(DROPPED),
        Column::new("flag", SqlType::BIT, Values::Uniform { low: 0, high: 1 }),
        Column::new("a", SqlType::INT, positive()),
        Column::new("kept", SqlType::varchar(60), Values::Text { least: 0, most: 60 }).nullable(10),
    ];
    if then == Then::Rewritten {
        columns.push(Column::computed("total", Expression::Sum(0, 7), true).in_place_of(1));
    } else {
        columns.push(Column::new("same", SqlType::INT, positive()).nullable(20).in_place_of(1));
        columns.push(Column::computed("total", Expression::Sum(7, 9), false));
    }
    let longer = Column::new("longer", SqlType::BIGINT, positive()).in_place_of(3);
    let text = Column::new("text", SqlType::varchar(20), words());
    let has_defaults = version >= Version::V706;
    columns.extend([
        Column::new("other", SqlType::INT, positive()).nullable(20).in_place_of(2),
        if has_defaults { longer.default_of_older_rows(7) } else { longer.nullable(20) },
        Column::new("code", SqlType::nchar(6), words()).nullable(20).in_place_of(4),
        Column::new("note", SqlType::nvarchar(30), words()).nullable(20),
        Column::new("mark", SqlType::BIT, Values::Uniform { low: 0, high: 1 }).nullable(20),
        if has_defaults { text.default_of_older_rows(9) } else { text.nullable(20) },
    ]);
    if compression == Compression::None && version > Version::V611 {
        columns.push(Column::new("rare", SqlType::INT, positive()).sparse(60));
    }
    // Columns that existed before the ALTER TABLE keep their positions in the column order.
    let first = columns.iter().position(|column| column.life.in_place_of.is_some()).unwrap_or(columns.len());
    for column in &mut columns[first..] {
        match then {
            Then::Kept => column.life.since = ADDED,
            Then::Rewritten | Then::Rebuilt => column.life.keeps_default = false,
        }
    }
    if then == Then::Rewritten {
        for column in &mut columns[..first] {
            column.life.until = column.life.until.map(|_| 0);
        }
    }
    columns
}
