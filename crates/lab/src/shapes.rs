//! Generates random databases. The seed determines which of the lab's features a database uses.

use crate::description::{
    Column, Compression, DEFAULT_COLLATION, Description, Expression, Filegroup, Filter, Index, Table, Values,
};
use crate::page::PageVerify;
use crate::random::Random;
use crate::types::{SqlType, Storage};
use crate::version::Version;

/// The ID of the collation Latin1_General_BIN2.
const BINARY_COLLATION: u32 = 0x0808;
/// The ID of the collation Latin1_General_CI_AS.
const WINDOWS_COLLATION: u32 = 0xD008;

/// A random database with up to four tables. Each table has at most a few thousand rows.
pub fn random(seed: u64) -> Description {
    let mut dice = Random::new(seed);
    let version = pick(&mut dice, &Version::ALL);
    let filegroups = 1 + dice.below(3);
    let names = ["PRIMARY", "ARCHIVE", "HISTORY"];
    let filegroups: Vec<Filegroup> = (0..filegroups as usize)
        .map(|number| Filegroup { name: names[number].to_owned(), files: 1 + dice.below(2) as u16 })
        .collect();
    let tables = 1 + dice.below(4);
    Description {
        name: format!("random_{seed}"),
        version,
        collation: pick(&mut dice, &[DEFAULT_COLLATION, WINDOWS_COLLATION, BINARY_COLLATION]),
        verify: pick(&mut dice, &[PageVerify::Checksum, PageVerify::Checksum, PageVerify::Torn, PageVerify::None]),
        seed,
        tables: (0..tables).map(|number| table(&mut dice, version, number, filegroups.len())).collect(),
        filegroups,
        least_pages: 0,
    }
}

fn pick<T: Copy>(dice: &mut Random, from: &[T]) -> T {
    from[dice.below(from.len() as u64) as usize]
}

fn table(dice: &mut Random, version: Version, number: u64, filegroups: usize) -> Table {
    let mut columns = vec![Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 })];
    for at in 0..1 + dice.below(12) {
        columns.push(column(dice, version, at));
    }
    if dice.chance(30) {
        columns.push(Column::new("a", SqlType::INT, Values::Uniform { low: -500, high: 500 }));
        columns.push(Column::new("b", SqlType::INT, Values::Uniform { low: 0, high: 40 }).nullable(10));
        let (a, b) = (columns.len() - 2, columns.len() - 1);
        let expression = if dice.chance(50) { Expression::Product(a, b) } else { Expression::Sum(a, b) };
        columns.push(Column::computed("c", expression, dice.chance(50)));
    }
    let rows = match dice.below(6) {
        0 => 0,
        1 => 1 + dice.below(5),
        2 => 1 + dice.below(4_000),
        _ => 1 + dice.below(900),
    };
    let keys: Vec<usize> = (0..columns.len()).filter(|&at| can_be_key(&columns[at])).collect();
    let clustered = match dice.below(4) {
        0 => None,
        1 => Some(Index::on("cx", &[pick(dice, &keys)])),
        _ => Some(Index::on(&format!("pk_{number}"), &[0]).primary_key()),
    };
    let fill_factor = if dice.chance(30) { 40 + dice.below(60) as u8 } else { 0 };
    let clustered = clustered.map(|index| Index { fill_factor, ..index });
    let located: Vec<usize> = clustered.iter().flat_map(|index| index.keys.iter().map(|&(key, _)| key)).collect();
    let indexes = (0..dice.below(4)).map(|at| index(dice, version, &columns, (&keys, &located), at)).collect();
    let heap = clustered.is_none();
    let sparse = columns.iter().any(|column| column.sparse);
    let compression = match dice.below(6) {
        0 if heap && !sparse && version > Version::V611 => Compression::Row,
        1 if heap && !sparse && version > Version::V611 => Compression::Page,
        _ => Compression::None,
    };
    let can_partition = clustered.as_ref().is_none_or(|index| index.primary_key);
    let partitions = if can_partition && dice.chance(20) { 2 + dice.below(4) as u32 } else { 0 };
    let fragmented = dice.chance(30);
    let can_move = heap && compression == Compression::None;
    let mut every = |percent| if dice.chance(percent) { 2 + dice.below(60) } else { 0 };
    Table {
        name: format!("table_{number}"),
        compression,
        partitions,
        fragmented,
        versioned_every: if compression == Compression::None { every(30) } else { 0 },
        rows,
        ghost_every: every(50),
        moved_every: if can_move { every(50) } else { 0 },
        hole_every: if heap { every(50) } else { 0 },
        filegroup: dice.below(filegroups as u64) as usize,
        checks: checks(number, &columns),
        foreign_keys: Vec::new(),
        statistics: Vec::new(),
        has_reserve: false,
        is_rebuilt: false,
        columns,
        clustered,
        indexes,
    }
}

/// CHECK constraints that are true for all values that `table` generates: the first column is at least 1, and column
/// `b` is never negative.
fn checks(number: u64, columns: &[Column]) -> Vec<(String, Filter)> {
    let b = columns.iter().position(|column| column.name == "b");
    let conditions = [(0, 1)].into_iter().chain(b.map(|at| (at, 0)));
    conditions.map(|(at, least)| (format!("ck_{number}_{at}"), Filter::AtLeast(at, least))).collect()
}

fn column(dice: &mut Random, version: Version, at: u64) -> Column {
    let scale = dice.below(8) as u8;
    let short = 1 + dice.below(60) as u16;
    let mut types = vec![
        SqlType::TINYINT,
        SqlType::SMALLINT,
        SqlType::INT,
        SqlType::BIGINT,
        SqlType::BIT,
        SqlType::BIT,
        SqlType::REAL,
        SqlType::FLOAT,
        SqlType::MONEY,
        SqlType::SMALLMONEY,
        SqlType::DATETIME,
        SqlType::SMALLDATETIME,
        SqlType::UNIQUEIDENTIFIER,
        SqlType::char(short),
        SqlType::nchar(short),
        SqlType::varchar(short),
        SqlType::nvarchar(short),
        SqlType::varchar(3_000),
        SqlType::nvarchar(2_000),
        SqlType::binary(short),
        SqlType::varbinary(short),
        SqlType::decimal(1 + short as u8 % 38, 0),
        SqlType::TEXT,
        SqlType::NTEXT,
        SqlType::IMAGE,
        SqlType::XML,
        SqlType::VARCHAR_MAX,
        SqlType::NVARCHAR_MAX,
        SqlType::VARBINARY_MAX,
        SqlType::SQL_VARIANT,
    ];
    if version > Version::V611 {
        types.extend([SqlType::DATE, SqlType::time(scale), SqlType::datetime2(scale), SqlType::datetimeoffset(scale)]);
    }
    let ty = pick(dice, &types);
    let values = values(dice, ty);
    let column = Column::new(&format!("c{at}"), ty, values);
    match dice.below(6) {
        0 | 1 => column,
        2 if can_be_sparse(ty) && version > Version::V611 => column.sparse(60 + dice.below(40) as u8),
        _ => column.nullable(dice.below(60) as u8),
    }
}

fn values(dice: &mut Random, ty: SqlType) -> Values {
    let most = match ty.storage() {
        Storage::Max | Storage::Text => pick(dice, &[10, 200, 5_000, 30_000, 120_000]),
        _ => u32::from(ty.length) / if ty.is_unicode() { 2 } else { 1 },
    };
    let least = dice.below(u64::from(most) + 1) as u32;
    match ty.xtype {
        // The lengths apply to all three types, but the bytes differ. For xml (241), binary XML is generated: a header
        // of at least 17 bytes, and a text whose length depends on the chosen length. For image (34) and varbinary
        // (165), random bytes are generated.
        34 | 165 | 241 => Values::Bytes { least, most },
        _ if ty.is_string() && (ty.is_lob() || dice.chance(70)) => Values::Text { least, most },
        _ => match dice.below(4) {
            0 => Values::Scattered { per: 1 + dice.below(5) },
            1 => Values::Grouped { start: dice.below(100) as i64, per: 1 + dice.below(20) },
            2 => Values::Uniform { low: 0, high: 20 },
            _ => Values::Uniform { low: -2_000, high: 2_000 },
        },
    }
}

fn can_be_sparse(ty: SqlType) -> bool {
    !ty.is_lob() && !matches!(ty.xtype, 189 | 240) && ty.length <= 200
}

/// Whether a column can be a key column. It can if its values are short enough, and if the lab knows their sort order.
fn can_be_key(column: &Column) -> bool {
    let known = !matches!(column.ty.xtype, 98 | 104 | 189);
    known && column.computed.is_none() && !column.sparse && !column.ty.is_lob() && column.ty.length <= 200
}

/// Describes an index on some of the columns in `keys`. `located` are the columns of the clustering key, which are the
/// row locator of every nonclustered index.
fn index(
    dice: &mut Random,
    version: Version,
    columns: &[Column],
    (keys, located): (&[usize], &[usize]),
    at: u64,
) -> Index {
    let mut index = Index { name: format!("ix_{at}"), ..Index::default() };
    for _ in 0..1 + dice.below(3) {
        let key = pick(dice, keys);
        if !index.keys.iter().any(|&(own, _)| own == key) {
            index.keys.push((key, version > Version::V611 && dice.chance(30)));
        }
    }
    let computed = columns.iter().position(|column| column.computed.is_some());
    if let (Some(computed), true) = (computed, dice.chance(50)) {
        index.keys.insert(0, (computed, false));
    }
    index.unique = index.keys.iter().any(|&(key, _)| key == 0);
    for _ in 0..dice.below(3) {
        let column = dice.below(columns.len() as u64) as usize;
        let own = index.keys.iter().any(|&(key, _)| key == column)
            || index.included.contains(&column)
            || located.contains(&column);
        if !own && !columns[column].ty.is_lob() && !columns[column].sparse && columns[column].ty.length <= 200 {
            index.included.push(column);
        }
    }
    let filterable = |column: &&usize| columns[**column].nullable;
    if let (Some(&column), true) = (keys.iter().find(filterable), version > Version::V611 && dice.chance(40)) {
        index.filter = Some(Filter::IsNotNull(column));
    } else if version > Version::V611 && dice.chance(15) {
        index.filter = Some(Filter::AtLeast(0, dice.below(500) as i32));
    }
    index.fill_factor = if dice.chance(30) { 30 + dice.below(70) as u8 } else { 0 };
    index
}
