//! What a row of a table costs for each kind of index: `cargo bench -p mdfsck-check`.
//!
//! SQL Server 2012 took 20 times as long for an index on a computed column, and 58 times for a filtered index on a sparse
//! column; here they should take at most 1.3 times as long as an ordinary one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use catalog::{
    AllocUnit, Database, Expression, ExpressionKind, Index, IndexColumn, IndexType, Object, RowLayout, Rowset,
    RowsetColumn, TableColumn, UnitKind,
};
use format::collation::CollationId;
use format::types::{TypeInfo, xtype};
use format::{AllocUnitId, PageId};

/// As many as fit into a core's cache.
const ROWS: u32 = 4000;
const TABLE: i32 = 1_000;
/// SQL_Latin1_General_CP1_CI_AS.
const COLLATION: CollationId = CollationId(0x3400_D008);
const SPARSE: u32 = 0x100;

/// Columns of the table: name, type, length, place (a fixed offset, or the number of a variable column below zero).
const COLUMNS: [(&str, u8, u16, i16); 6] = [
    ("OrderID", xtype::INT, 4, 4),
    ("CustomerID", xtype::INT, 4, 8),
    ("OrderDate", xtype::DATETIME, 8, 12),
    ("Amount", xtype::MONEY, 8, 20),
    ("Comment", xtype::NVARCHAR, 200, -1),
    ("Flag", xtype::INT, 4, 0),
];
const FLAG: u32 = 6;
/// A computed column that the table does not store.
const COMPUTED: u32 = 7;

/// An index: its columns by id, the definition of the computed one with its type, the filter.
#[derive(Default)]
struct Kind {
    name: &'static str,
    columns: &'static [u32],
    definition: Option<(&'static str, u8, u16)>,
    filter: Option<&'static str>,
}

fn kinds() -> Vec<Kind> {
    let number = "(isnull(N'SO'+CONVERT([nvarchar](23),[OrderID],0),N'*** ERROR ***'))";
    vec![
        Kind { name: "no index", ..Kind::default() },
        Kind { name: "int", columns: &[2], ..Kind::default() },
        Kind { name: "nvarchar, included money", columns: &[5, 4], ..Kind::default() },
        Kind {
            name: "computed: OrderID % 10",
            columns: &[COMPUTED],
            definition: Some(("([OrderID]%(10))", xtype::INT, 4)),
            ..Kind::default()
        },
        Kind {
            name: "computed: CustomerID * 5 + 1",
            columns: &[COMPUTED],
            definition: Some(("([CustomerID]*(5)+(1))", xtype::INT, 4)),
            ..Kind::default()
        },
        Kind {
            name: "computed: OrderDate + 7",
            columns: &[COMPUTED],
            definition: Some(("(dateadd(day,(7),[OrderDate]))", xtype::DATETIME, 8)),
            ..Kind::default()
        },
        Kind {
            name: "computed: year(OrderDate)",
            columns: &[COMPUTED],
            definition: Some(("(datepart(year,[OrderDate]))", xtype::INT, 4)),
            ..Kind::default()
        },
        Kind {
            name: "computed: N'SO' + OrderID",
            columns: &[COMPUTED],
            definition: Some((number, xtype::NVARCHAR, 50)),
            ..Kind::default()
        },
        Kind {
            name: "filtered: Flag IS NOT NULL, sparse",
            columns: &[2],
            filter: Some("([Flag] IS NOT NULL)"),
            ..Kind::default()
        },
        Kind {
            name: "filtered: Comment IS NOT NULL",
            columns: &[2],
            filter: Some("([Comment] IS NOT NULL)"),
            ..Kind::default()
        },
        Kind {
            name: "filtered: Amount > 10 AND CustomerID <> 7",
            columns: &[2],
            filter: Some("([Amount]>(10) AND [CustomerID]<>(7))"),
            ..Kind::default()
        },
    ]
}

fn info((kind, length): (u8, u16)) -> TypeInfo {
    let (precision, scale) = match kind {
        xtype::MONEY => (19, 4),
        _ => (0, 0),
    };
    let plain = TypeInfo::from_ti(u32::from(kind) | u32::from(length) << 8);
    match kind {
        xtype::NVARCHAR => plain,
        _ => TypeInfo { precision, scale, ..TypeInfo::from_ti(kind.into()) },
    }
}

fn column(id: u32, kind: (u8, u16), offset: i16, status: u32) -> RowsetColumn {
    RowsetColumn {
        id,
        physical: id,
        info: info(kind),
        collation: COLLATION,
        status,
        key_ordinal: u16::from(id == 1),
        leaf_offset: offset,
        node_offset: 0,
        leaf_null_bit: if status & SPARSE == 0 { id as u16 } else { 0 },
        node_null_bit: 0,
        default: None,
        leaf_bit: 0,
        node_bit: 0,
    }
}

fn rowset(index_id: i32, columns: Vec<RowsetColumn>) -> Rowset {
    Rowset {
        id: 100 + index_id as u64,
        object_id: TABLE,
        index_id,
        partition: 1,
        status: 0,
        owner_type: 1,
        rows: ROWS.into(),
        compression: 0,
        max_null_bit: 0,
        min_leaf: 0,
        min_node: 0,
        units: vec![index_id as usize - 1],
        layout: RowLayout { columns },
    }
}

/// A table clustered by its first column, with one index.
fn database(kind: &Kind) -> Database {
    let mut table: Vec<RowsetColumn> = COLUMNS
        .iter()
        .zip(1..)
        .map(|(&(_, kind, length, offset), id)| column(id, (kind, length), offset, if id == FLAG { SPARSE } else { 0 }))
        .collect();
    table[0].status = 0x80;
    let mut names: Vec<TableColumn> = COLUMNS
        .iter()
        .zip(1..)
        .map(|(column, id)| TableColumn { id, name: column.0.to_owned(), status: 0, user_type: 0 })
        .collect();
    names.push(TableColumn { id: COMPUTED, name: "Computed".to_owned(), status: 0x10, user_type: 0 });
    let stored = |id: u32| match (kind.definition, COLUMNS.get(id as usize - 1)) {
        (_, Some(&(_, kind, length, _))) => (kind, length),
        (Some((_, kind, length)), None) => (kind, length),
        (None, None) => (xtype::INT, 4),
    };
    let mut index: Vec<RowsetColumn> =
        kind.columns.iter().zip(1..).map(|(&id, place)| column(place, stored(id), -(place as i16), 0)).collect();
    index.push(column(kind.columns.len() as u32 + 1, stored(1), 1, 0));
    let unit = |number: usize| AllocUnit {
        id: AllocUnitId(number as u64 + 1),
        kind: UnitKind::InRow,
        owner_id: 101 + number as u64,
        rowset: Some(number),
        filegroup: 1,
        first_page: PageId::NONE,
        root: PageId::NONE,
        first_iam: PageId::NONE,
        used_pages: 0,
        data_pages: 0,
        reserved_pages: 0,
    };
    let rowsets = match kind.columns {
        [] => vec![rowset(1, table)],
        _ => vec![rowset(1, table), rowset(2, index)],
    };
    let expression =
        |kind, sub_id, text: &str| Expression { kind, object_id: TABLE, sub_id, text: Some(text.to_owned()) };
    let definition =
        kind.definition.map(|(text, ..)| expression(ExpressionKind::ComputedColumn, COMPUTED as i32, text));
    let filter = kind.filter.map(|text| expression(ExpressionKind::Filter, 2, text));
    let object = Object { id: TABLE, name: "T".into(), schema_id: 1, type_code: "U".into(), parent_id: 0 };
    let status = 1 | if kind.filter.is_some() { 0x20000 } else { 0 };
    let index_row = |index_id, index_type| Index { object_id: TABLE, index_id, name: "I".into(), index_type, status };
    let key = kind.columns.iter().zip(1..).map(|(&column_id, position)| IndexColumn {
        position,
        column_id,
        descending: false,
        included: position > 1,
    });
    Database {
        objects: BTreeMap::from([(TABLE, object)]),
        indexes: BTreeMap::from([
            ((TABLE, 1), index_row(1, IndexType::Clustered)),
            ((TABLE, 2), index_row(2, IndexType::Nonclustered)),
        ]),
        columns: BTreeMap::from([(TABLE, names)]),
        index_columns: BTreeMap::from([((TABLE, 2), key.collect())]),
        expressions: definition.into_iter().chain(filter).collect(),
        units: (0..rowsets.len()).map(unit).collect(),
        rowsets,
        ..Database::default()
    }
}

/// Rows as the table stores them: every third without a flag, every fifth without a comment.
fn records() -> Vec<Vec<u8>> {
    (0..ROWS)
        .map(|number| {
            let mut fixed = Vec::new();
            fixed.extend((43_000 + number).to_le_bytes());
            fixed.extend((number * 7 % 997).to_le_bytes());
            fixed.extend((number * 300).to_le_bytes());
            fixed.extend((36_000 + number / 10).to_le_bytes());
            fixed.extend((i64::from(number) * 12_345).to_le_bytes());
            let comment: Vec<u8> =
                format!("order {number}, by mail").encode_utf16().flat_map(u16::to_le_bytes).collect();
            let comment = if number % 5 == 0 { Vec::new() } else { comment };
            let mut vector = vec![5, 0, 1, 0, FLAG as u8, 0, 12, 0];
            vector.extend(number.to_le_bytes());
            let vector = if number % 3 == 0 { Vec::new() } else { vector };
            let mut record = vec![0x30, 0];
            record.extend((fixed.len() as u16 + 4).to_le_bytes());
            record.extend(fixed);
            record.extend([5, 0, if comment.is_empty() { 0x10 } else { 0 }]);
            let columns = 1 + u16::from(!vector.is_empty());
            record.extend(columns.to_le_bytes());
            let end = record.len() as u16 + 2 * columns + comment.len() as u16;
            record.extend(end.to_le_bytes());
            if !vector.is_empty() {
                record.extend(((end + vector.len() as u16) | 0x8000).to_le_bytes());
            }
            record.extend(comment);
            record.extend(vector);
            record
        })
        .collect()
}

/// The shortest of many times that `look` takes for all records.
fn shortest(look: &mut dyn FnMut(&[Vec<u8>]), records: &[Vec<u8>]) -> Duration {
    let time = |look: &mut dyn FnMut(&[Vec<u8>])| {
        let start = Instant::now();
        look(records);
        start.elapsed()
    };
    (0..300).map(|_| time(look)).min().unwrap_or_default()
}

fn main() {
    let records = records();
    let mut none = Duration::ZERO;
    let mut ordinary = 0.0;
    println!("{:<44} {:>10} {:>14} {:>10}", "index", "ns a row", "of the index", "ratio");
    for kind in kinds() {
        check::bench::index_rows(&database(&kind), |look, left_out| {
            assert!(left_out.is_empty(), "{left_out:?}");
            let time = shortest(look, &records);
            let a_row = |time: Duration| time.as_secs_f64() * 1e9 / records.len() as f64;
            if kind.columns.is_empty() {
                none = time;
            }
            let own = a_row(time.saturating_sub(none));
            if kind.name == "int" {
                ordinary = own;
            }
            let ratio = if ordinary > 0.0 { format!("{:.2}", own / ordinary) } else { "-".to_owned() };
            println!("{:<44} {:>10.1} {:>14.1} {:>10}", kind.name, a_row(time), own, ratio);
        });
    }
}
