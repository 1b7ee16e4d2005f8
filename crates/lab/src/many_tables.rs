//! The `many tables` schema: up to a hundred thousand tables with indexes, most of them empty, as in databases of
//! business software. With this schema, the cost of a check is determined by the number of tables, indexes and columns
//! instead of the number of rows.

use crate::description::{
    Column, DEFAULT_COLLATION, Description, Expression, Filegroup, Filter, ForeignKey, Index, Table, Values,
};
use crate::page::PageVerify;
use crate::random::{Random, mix};
use crate::types::SqlType;
use crate::version::Version;

/// One in this many tables is large: it has the full number of rows. Foreign keys of the tables that follow may
/// reference it.
const LARGE_EVERY: u64 = 64;
/// One in this many tables has a few rows, all on one page.
const SMALL_EVERY: u64 = 16;
const MOST_SMALL_ROWS: u64 = 12;
/// The number of pages in the smallest database.
const LEAST_PAGES: u32 = 1024;

const MODULES: [&str; 12] =
    ["Cust", "Ledger", "Invent", "Sales", "Purch", "Proj", "Tax", "Workflow", "HR", "Bank", "/BIC/A", "Retail"];
const SUBJECTS: [&str; 14] = [
    "Trans",
    "Table",
    "Jour",
    "Line",
    "Settlement",
    "Parm",
    "Setup",
    "Staging",
    "History",
    "Group",
    "Link",
    "Log",
    "Dimension",
    "Archive",
];
const COLUMNS: [&str; 24] = [
    "AccountNum",
    "Amount",
    "BatchId",
    "Category",
    "Closed",
    "CurrencyCode",
    "DataAreaId",
    "Description",
    "DueDate",
    "ExchRate",
    "ItemId",
    "LineNum",
    "ModifiedBy",
    "ModifiedAt",
    "Name",
    "Partition",
    "PostingDate",
    "Qty",
    "RefRecId",
    "Status",
    "TransDate",
    "UnitId",
    "VoucherSeries",
    "WarehouseId",
];

/// The schema with `tables` tables, each with `indexes` nonclustered indexes. The largest tables have `rows` rows.
pub fn many_tables(version: Version, seed: u64, tables: u32, indexes: u16, rows: u64) -> Description {
    Description {
        name: "many_tables".to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: (0..u64::from(tables)).map(|number| table(version, seed, number, indexes, rows)).collect(),
        least_pages: LEAST_PAGES,
    }
}

fn pick<T: Copy>(dice: &mut Random, from: &[T]) -> T {
    from[dice.below(from.len() as u64) as usize]
}

fn is_large(number: u64) -> bool {
    number.is_multiple_of(LARGE_EVERY)
}

fn name(number: u64) -> String {
    let of = |names: &[&'static str], n: u64| names[(n % names.len() as u64) as usize];
    format!("{}{}{number:05}", of(&MODULES, number / 7), of(&SUBJECTS, number))
}

fn table(version: Version, seed: u64, number: u64, indexes: u16, most_rows: u64) -> Table {
    let mut dice = Random::new(mix(seed ^ mix(number)));
    let rows = match number {
        _ if is_large(number) => most_rows,
        _ if number % SMALL_EVERY == 3 => dice.below(MOST_SMALL_ROWS.min(most_rows) + 1),
        _ => 0,
    };
    let name = name(number);
    let mut columns = columns(&mut dice, version, is_large(number));
    let keys: Vec<usize> = (0..columns.len()).filter(|&at| can_be_key(&columns[at])).collect();
    let clustered = match dice.below(16) {
        _ if is_large(number) => Some(Index::on(&format!("pk_{name}"), &[0]).primary_key()),
        0 | 1 => None,
        2 => Some(Index::on(&format!("cx_{name}"), &[pick(&mut dice, &keys)])),
        3..6 => Some(Index::on(&format!("pk_{name}"), &[pick(&mut dice, &keys[1..]), 0]).primary_key()),
        _ => Some(Index::on(&format!("pk_{name}"), &[0]).primary_key()),
    };
    let located: Vec<usize> = clustered.iter().flat_map(|index| index.keys.iter().map(|&(key, _)| key)).collect();
    let indexes = (0..indexes).map(|at| index(&mut dice, version, &columns, (&keys, &located), (&name, at))).collect();
    let mut checks = Vec::new();
    if dice.chance(8) {
        checks.push((format!("ck_{name}_RecId"), Filter::AtLeast(0, 1)));
    }
    // Each value of the foreign key must exist in the referenced table. The referenced table is a large table, which is
    // empty only if all tables are empty.
    let mut foreign_keys = Vec::new();
    let referred = number / LARGE_EVERY * LARGE_EVERY;
    if !is_large(number) && dice.chance(10) {
        let column = columns.len();
        let values = Values::Uniform { low: 1, high: most_rows.max(1) as i64 };
        columns.push(Column::new("ParentRecId", columns[0].ty, values).nullable(20));
        foreign_keys.push(ForeignKey {
            name: format!("fk_{name}_{referred:05}"),
            column,
            table: self::name(referred),
            key: 0,
        });
    }
    Table {
        name,
        columns,
        clustered,
        indexes,
        rows,
        // A large table has no ghosts, because a foreign key could reference the key of a ghost.
        ghost_every: if dice.chance(20) && !is_large(number) { 9 } else { 0 },
        checks,
        foreign_keys,
        ..Table::default()
    }
}

/// Six to fourteen columns. The first column has serial numbers and is usually an IDENTITY column.
fn columns(dice: &mut Random, version: Version, is_referred_to: bool) -> Vec<Column> {
    let serial = Values::Serial { start: 1, step: 1 };
    let mut columns = vec![match dice.below(4) {
        0 => Column::new("RecId", SqlType::BIGINT, serial),
        _ => Column::identity("RecId", SqlType::BIGINT),
    }];
    let first = dice.below(COLUMNS.len() as u64) as usize;
    for at in 0..5 + dice.below(7) as usize {
        let column = column(dice, version, COLUMNS[(first + at) % COLUMNS.len()]);
        columns.push(match dice.below(12) {
            0 if column.ty == SqlType::INT => column.default(0),
            1..5 => column.nullable(dice.below(40) as u8),
            _ => column,
        });
    }
    if dice.chance(6) && !is_referred_to {
        let (ty, values) = match dice.below(3) {
            0 => (SqlType::NVARCHAR_MAX, Values::Text { least: 0, most: 3_000 }),
            1 => (SqlType::VARBINARY_MAX, Values::Bytes { least: 10, most: 9_000 }),
            _ => (SqlType::IMAGE, Values::Bytes { least: 1, most: 2_000 }),
        };
        columns.push(Column::new("Memo", ty, values).nullable(50));
    }
    if dice.chance(5) {
        let at = columns.len();
        columns.push(Column::new("Price", SqlType::INT, Values::Uniform { low: 0, high: 9_000 }));
        columns.push(Column::new("Pieces", SqlType::INT, Values::Uniform { low: 1, high: 40 }).nullable(5));
        columns.push(Column::computed("Total", Expression::Product(at, at + 1), dice.chance(50)));
    }
    columns
}

fn column(dice: &mut Random, version: Version, name: &str) -> Column {
    let short = 3 + dice.below(30) as u16;
    let text = Values::Text { least: 0, most: u32::from(short) };
    let number = Values::Uniform { low: 0, high: 2_000 };
    let (ty, values) = match dice.below(14) {
        0..4 => (SqlType::nvarchar(short), text),
        4 => (SqlType::varchar(short), text),
        5 => (SqlType::nchar(4), Values::Uniform { low: 100, high: 120 }),
        6 | 7 => (SqlType::INT, number),
        8 => (SqlType::BIGINT, Values::Scattered { per: 1 }),
        9 => (SqlType::decimal(18, 4), Values::Uniform { low: -50_000, high: 90_000_000 }),
        10 => (SqlType::DATETIME, Values::Grouped { start: 0, per: 3 }),
        11 if version > Version::V611 => (SqlType::datetime2(3), number),
        12 => (SqlType::UNIQUEIDENTIFIER, Values::Scattered { per: 1 }),
        _ => (SqlType::TINYINT, Values::Uniform { low: 0, high: 5 }),
    };
    Column::new(name, ty, values)
}

fn can_be_key(column: &Column) -> bool {
    !column.ty.is_lob() && column.computed.is_none()
}

/// Describes an index with one to three key columns. `located` are the columns of the clustering key, which are the row
/// locator of every nonclustered index.
fn index(
    dice: &mut Random,
    version: Version,
    columns: &[Column],
    (keys, located): (&[usize], &[usize]),
    (table, at): (&str, u16),
) -> Index {
    let mut index = Index { name: format!("ix_{table}_{at}"), ..Index::default() };
    for _ in 0..1 + dice.below(3) {
        let key = pick(dice, keys);
        if !index.keys.iter().any(|&(own, _)| own == key) {
            index.keys.push((key, dice.chance(4)));
        }
    }
    let computed = columns.iter().position(|column| column.computed.is_some());
    if let (Some(computed), true) = (computed, dice.chance(20)) {
        index.keys.insert(0, (computed, false));
    }
    index.unique = index.keys.iter().any(|&(key, _)| key == 0);
    let included = pick(dice, keys);
    if dice.chance(20) && !index.keys.iter().any(|&(key, _)| key == included) && !located.contains(&included) {
        index.included.push(included);
    }
    let nullable = keys.iter().find(|&&at| columns[at].nullable);
    if let (Some(&column), true) = (nullable, version > Version::V611 && dice.chance(4)) {
        index.filter = Some(Filter::IsNotNull(column));
    }
    index
}
