//! The `types` schema: every type with values at its limits, in heaps and in clustered indexes, each uncompressed and
//! with ROW and PAGE compression.

use std::sync::Arc;

use crate::description::{Column, Compression, DEFAULT_COLLATION, Description, Filegroup, Index, Table, Values};
use crate::page::PageVerify;
use crate::sample::Sample;
use crate::sample::xml::{Content, Element};
use crate::types::SqlType;
use crate::version::Version;

/// The number of rows in tables that may have several pages.
const ROWS: u64 = 120;
/// The number of rows in compressed tables with a clustered index. All these rows must fit on one page, because an
/// index with more pages has non-leaf rows, and the format of compressed non-leaf rows is undocumented.
const ROWS_OF_A_PAGE: u64 = 8;

/// The schema with all types that exist in the version.
pub fn types(version: Version, seed: u64) -> Description {
    let subjects = [
        ("numbers", numbers()),
        ("moments", moments(version)),
        ("strings", strings()),
        ("long_values", long_values()),
        ("special", special(version)),
    ];
    let mut tables = Vec::new();
    for (name, columns) in &subjects {
        tables.push(table(name, columns, Compression::None, true));
        tables.push(table(name, columns, Compression::None, false));
        if version > Version::V611 {
            for compression in [Compression::Row, Compression::Page] {
                tables.push(table(name, columns, compression, false));
                if !columns.iter().any(|column| column.ty.is_lob()) {
                    tables.push(table(name, columns, compression, true));
                }
            }
        }
    }
    if version > Version::V611 {
        tables.push(sparse());
    }
    Description {
        name: "types".to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables,
        least_pages: 0,
    }
}

/// Describes a table with a serial column `id` and the given columns. `subject` names the group of types to which the
/// columns belong.
fn table(subject: &str, columns: &[Column], compression: Compression, is_clustered: bool) -> Table {
    let form = match compression {
        Compression::None => "",
        Compression::Row => "_row",
        Compression::Page => "_page",
    };
    let name = format!("{subject}{form}{}", if is_clustered { "" } else { "_heap" });
    let id = Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 });
    let is_plain = compression == Compression::None;
    Table {
        clustered: is_clustered.then(|| Index::on(&format!("pk_{name}"), &[0]).primary_key()),
        columns: [id].into_iter().chain(columns.iter().cloned()).collect(),
        rows: if is_plain || !is_clustered { ROWS } else { ROWS_OF_A_PAGE },
        ghost_every: if is_clustered { 0 } else { 41 },
        moved_every: if is_plain && !is_clustered { 17 } else { 0 },
        versioned_every: if is_plain { 29 } else { 0 },
        compression,
        name,
        ..Table::default()
    }
}

/// Describes a nullable column that contains the listed values and NULL in turn.
fn listed(name: &str, ty: SqlType, samples: impl IntoIterator<Item = Sample>) -> Column {
    let samples: Arc<[Sample]> = samples.into_iter().chain([Sample::null()]).collect();
    Column::new(name, ty, Values::Listed(samples)).nullable(0)
}

fn integers(name: &str, ty: SqlType, numbers: &[i64]) -> Column {
    listed(name, ty, numbers.iter().map(|&n| Sample::integer(ty, n)))
}

fn decimals(name: &str, ty: SqlType) -> Column {
    let most = 10i128.pow(u32::from(ty.precision)) - 1;
    let third = most / 3;
    let numbers = [0, 1, -1, most, -most, third, 1000.min(most), -(7.min(most)), most / 10 + 1];
    listed(name, ty, numbers.into_iter().map(|n| Sample::decimal(ty, n)))
}

fn numbers() -> Vec<Column> {
    let wide = |n: i64| [0, 1, -1, n, -n - 1, 127, 128, -128, -129, 32_767, 32_768, n / 3];
    let moneys = |name, ty, most: i64| {
        let numbers = [0, 1, -1, most, -most - 1, 10_000, 12_345, -99_999, 5, 50];
        listed(name, ty, numbers.map(|n| Sample::money(ty, n)))
    };
    vec![
        integers("a_bit", SqlType::BIT, &[0, 1, 1]),
        integers("b_bit", SqlType::BIT, &[1, 0]),
        integers("c_bit", SqlType::BIT, &[1, 1, 0, 0]),
        integers("a_tinyint", SqlType::TINYINT, &[0, 1, 127, 128, 255]),
        integers("a_smallint", SqlType::SMALLINT, &[0, 1, -1, 127, 128, -129, 32_767, -32_768]),
        integers("an_int", SqlType::INT, &wide(i64::from(i32::MAX))),
        integers("a_bigint", SqlType::BIGINT, &wide(i64::MAX)),
        decimals("dec_1_0", SqlType::decimal(1, 0)),
        decimals("dec_9_9", SqlType::decimal(9, 9)),
        decimals("dec_18_4", SqlType::decimal(18, 4)),
        decimals("dec_28_0", SqlType::decimal(28, 0)),
        decimals("dec_38_0", SqlType::decimal(38, 0)),
        decimals("dec_38_19", SqlType::decimal(38, 19)),
        decimals("dec_38_38", SqlType::decimal(38, 38)),
        moneys("a_money", SqlType::MONEY, i64::MAX),
        moneys("a_smallmoney", SqlType::SMALLMONEY, i64::from(i32::MAX)),
        listed(
            "a_real",
            SqlType::REAL,
            [0.0, -0.0, 1.0, -1.5, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 0.1, 16_777_216.0].map(Sample::real),
        ),
        listed(
            "a_float",
            SqlType::FLOAT,
            [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 0.1, 1e22, 9_007_199_254_740_993.0]
                .map(Sample::float),
        ),
        listed(
            "a_guid",
            SqlType::UNIQUEIDENTIFIER,
            [
                Sample::guid(0, 0, 0, 0, 0),
                Sample::guid(0x6F96_19FF, 0x8B86, 0xD011, 0xB42D, 0x00C0_4FC9_64FF),
                Sample::guid(u32::MAX, u16::MAX, u16::MAX, u16::MAX, 0xFFFF_FFFF_FFFF),
            ],
        ),
        Column::new("a_rowversion", SqlType::ROWVERSION, Values::Serial { start: 2001, step: 1 }),
    ]
}

const FIRST: (i64, i64, i64) = (1, 1, 1);
const LAST: (i64, i64, i64) = (9999, 12, 31);
const LEAP: (i64, i64, i64) = (2024, 2, 29);
/// The last second of a day, in seconds since midnight.
const LATE: i64 = 86_399;

fn moments(version: Version) -> Vec<Column> {
    let mut columns = vec![
        listed(
            "a_datetime",
            SqlType::DATETIME,
            [
                Sample::datetime((1753, 1, 1), 0, 0),
                Sample::datetime(LAST, LATE, 299),
                Sample::datetime((1900, 1, 1), 0, 0),
                Sample::datetime((1899, 12, 31), LATE, 298),
                Sample::datetime(LEAP, 43_200, 1),
                Sample::datetime((2000, 2, 29), 1, 2),
                Sample::datetime((2005, 6, 7), 3_661, 150),
            ],
        ),
        listed(
            "a_smalldatetime",
            SqlType::SMALLDATETIME,
            [
                Sample::smalldatetime((1900, 1, 1), 0),
                Sample::smalldatetime((2079, 6, 6), 1439),
                Sample::smalldatetime(LEAP, 725),
            ],
        ),
    ];
    if version == Version::V611 {
        return columns;
    }
    columns.push(listed("a_date", SqlType::DATE, [FIRST, LAST, LEAP, (1900, 1, 1), (1582, 10, 15)].map(Sample::date)));
    const TIMES: [&str; 8] = ["time_0", "time_1", "time_2", "time_3", "time_4", "time_5", "time_6", "time_7"];
    for (scale, name) in TIMES.into_iter().enumerate() {
        let ty = SqlType::time(scale as u8);
        let most = 10i64.pow(scale as u32) - 1;
        let times = [(0, 0), (LATE, most), (1, most / 3), (43_200, 0), (0, most.min(1))];
        columns.push(listed(name, ty, times.map(|(seconds, fraction)| Sample::time(ty, seconds, fraction))));
    }
    for (name, scale) in [("moment_0", 0), ("moment_3", 3), ("moment_7", 7)] {
        let ty = SqlType::datetime2(scale);
        let most = 10i64.pow(u32::from(scale)) - 1;
        let moments = [(FIRST, 0, 0), (LAST, LATE, most), (LEAP, 3_661, most / 7), ((1970, 1, 1), 0, 0)];
        columns.push(listed(name, ty, moments.map(|(date, seconds, part)| Sample::datetime2(ty, date, seconds, part))));
    }
    for (name, scale) in [("offset_0", 0), ("offset_4", 4), ("offset_7", 7)] {
        let ty = SqlType::datetimeoffset(scale);
        let most = 10i64.pow(u32::from(scale)) - 1;
        let moments = [
            ((FIRST, 0, 0), 0),
            ((LAST, LATE, most), 0),
            ((LEAP, 80_000, most / 3), 840),
            ((LEAP, 100, most / 3), -840),
            (((2005, 1, 1), 0, 0), -210),
            (((2004, 12, 31), LATE, 1.min(most)), 345),
        ];
        columns.push(listed(name, ty, moments.map(|(moment, east)| Sample::datetimeoffset(ty, moment, east))));
    }
    columns
}

/// A text with every kind of character in code page 1252.
const NARROW: &str = "na\u{EF}ve \u{20AC}5 \u{2122} \u{2013} \u{160}\u{178}";
/// A text with characters that no single code page contains, and with a character that needs two UTF-16 units.
const WIDE: &str = "\u{418}\u{432}\u{430}\u{43D} \u{5317}\u{4EAC} \u{1F600}";
/// A text that script tools would interpret as commands and variables. The backslash at the end of a line would join
/// two lines of a string constant.
const COMMANDS: &str = " leading\nGO\n:r y\\\r\n$(z)";
const QUOTES: &str = "O'Brien, \"x\"\r\nline\ttab;";

fn strings() -> Vec<Column> {
    let texts = |name, ty: SqlType| {
        let wide = if ty.is_unicode() { WIDE } else { NARROW };
        listed(name, ty, ["", "a", wide, QUOTES, "trailing  ", COMMANDS, "AB"].map(|text| Sample::text(ty, text)))
    };
    let bytes = |name, ty: SqlType| {
        let values: [&[u8]; 6] = [&[], &[0], &[1, 0, 0], &[0xFF; 8], &[0, 0, 7], &[0x80, 0x0A, 0x2C, 0x22]];
        listed(name, ty, values.map(|value| Sample::bytes(ty, value)))
    };
    vec![
        texts("a_char", SqlType::char(40)),
        texts("a_varchar", SqlType::varchar(60)),
        texts("an_nchar", SqlType::nchar(40)),
        texts("an_nvarchar", SqlType::nvarchar(60)),
        bytes("a_binary", SqlType::binary(8)),
        bytes("a_varbinary", SqlType::varbinary(30)),
        Column::new("filler", SqlType::varchar(200), Values::Text { least: 0, most: 200 }).nullable(5),
    ]
}

/// Lengths of texts, in characters: an empty text, a short text, and texts that need one page, several pages, and a
/// tree of pages.
const LENGTHS: [usize; 5] = [0, 50, 3_000, 20_000, 60_000];

fn long_values() -> Vec<Column> {
    let texts = |name, ty: SqlType| {
        let piece = if ty.is_unicode() { WIDE } else { NARROW };
        listed(
            name,
            ty,
            LENGTHS.map(|length| Sample::text(ty, &piece.chars().cycle().take(length).collect::<String>())),
        )
    };
    let bytes = |name, ty: SqlType| {
        let value = |length: usize| (0..length).map(|at| ((at * 31) >> 3) as u8).collect::<Vec<u8>>();
        listed(name, ty, LENGTHS.map(|length| Sample::bytes(ty, &value(length))))
    };
    let overflow = |name, ty: SqlType| {
        let text = |length: usize| ('a'..='z').cycle().take(length).collect::<String>();
        listed(name, ty, [3_500, 0, 20, 3_900].map(|length| Sample::text(ty, &text(length))))
    };
    vec![
        texts("a_text", SqlType::TEXT),
        texts("an_ntext", SqlType::NTEXT),
        bytes("an_image", SqlType::IMAGE),
        texts("varchar_max", SqlType::VARCHAR_MAX),
        texts("nvarchar_max", SqlType::NVARCHAR_MAX),
        bytes("varbinary_max", SqlType::VARBINARY_MAX),
        overflow("wide_1", SqlType::varchar(8_000)),
        overflow("wide_2", SqlType::nvarchar(4_000)),
        listed("an_xml", SqlType::XML, documents()),
    ]
}

fn documents() -> Vec<Sample> {
    let text = |text: &str| Content::Text(text.to_owned());
    let leaf = |name, content| Element { name, attributes: Vec::new(), content };
    let order = Element {
        name: "order",
        attributes: vec![("id", "7"), ("note", "a & \"b\" <c>")],
        content: vec![
            Content::Element(leaf("line", vec![text("5 < 6 & 7 > 1")])),
            Content::Comment(" none "),
            Content::Element(leaf("line", Vec::new())),
            Content::Element(leaf("name", vec![text(WIDE)])),
        ],
    };
    let long = leaf("long", vec![Content::Text("x".repeat(9_000))]);
    [leaf("empty", Vec::new()), order, long].iter().map(Sample::xml).collect()
}

fn special(version: Version) -> Vec<Column> {
    let mut columns = vec![listed("a_variant", SqlType::SQL_VARIANT, variants(version))];
    if version == Version::V611 {
        return columns;
    }
    let paths: [&[&[i64]]; 8] = [
        &[],
        &[&[1]],
        &[&[1], &[2, 5]],
        &[&[-1], &[-9]],
        &[&[15], &[16], &[79]],
        &[&[80], &[1103]],
        &[&[1104, 0], &[-73]],
        &[&[7], &[3, 3, 3]],
    ];
    const WGS84: u32 = 4326;
    let outer = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0), (0.0, 0.0)];
    let inner = [(2.0, 2.0), (2.0, 4.0), (4.0, 4.0), (4.0, 2.0), (2.0, 2.0)];
    let steps = [(1.0, 2.0), (3.5, -4.25), (0.1, 1e9)];
    let places = [(47.5, -122.25), (47.75, -122.0), (47.5, -121.5)];
    columns.extend([
        listed("a_path", SqlType::HIERARCHYID, paths.map(Sample::hierarchyid)),
        listed(
            "a_shape",
            SqlType::GEOMETRY,
            [
                Sample::point(0, (1.5, -2.25)),
                Sample::polygon(0, &[&outer]),
                Sample::polygon(0, &[&outer, &inner]),
                Sample::line(0, &steps),
                Sample::line(0, &steps[..2]),
            ],
        ),
        listed(
            "a_place",
            SqlType::GEOGRAPHY,
            [
                Sample::point(WGS84, (47.651, -122.349)),
                Sample::line(WGS84, &places),
                Sample::polygon(WGS84, &[&[places[0], places[2], places[1], places[0]]]),
            ],
        ),
    ]);
    columns
}

fn variants(version: Version) -> Vec<Sample> {
    let variant = |ty, value| Sample::variant(ty, DEFAULT_COLLATION, value);
    let decimal = SqlType::decimal(38, 10);
    let mut samples = vec![
        variant(SqlType::INT, Sample::integer(SqlType::INT, -42)),
        variant(SqlType::BIT, Sample::integer(SqlType::BIT, 1)),
        variant(SqlType::BIGINT, Sample::integer(SqlType::BIGINT, i64::MIN)),
        variant(decimal, Sample::decimal(decimal, 10i128.pow(38) - 1)),
        variant(SqlType::MONEY, Sample::money(SqlType::MONEY, -12_345)),
        variant(SqlType::FLOAT, Sample::float(0.1)),
        variant(SqlType::DATETIME, Sample::datetime(LEAP, 1, 1)),
        variant(SqlType::UNIQUEIDENTIFIER, Sample::guid(1, 2, 3, 4, 5)),
        variant(SqlType::varchar(30), Sample::text(SqlType::varchar(30), NARROW)),
        variant(SqlType::nvarchar(30), Sample::text(SqlType::nvarchar(30), WIDE)),
        variant(SqlType::varbinary(30), Sample::bytes(SqlType::varbinary(30), &[1, 2, 0])),
    ];
    if version > Version::V611 {
        let ty = SqlType::datetimeoffset(7);
        samples.push(variant(SqlType::DATE, Sample::date(LEAP)));
        samples.push(variant(ty, Sample::datetimeoffset(ty, (LEAP, 5, 1_234_567), -90)));
    }
    samples
}

/// A table with sparse columns, which are stored only if they have a value.
fn sparse() -> Table {
    let columns = [numbers(), strings()].concat();
    let can_be = |ty: SqlType| ty.xtype != SqlType::ROWVERSION.xtype;
    let columns: Vec<Column> =
        columns.into_iter().filter(|column| can_be(column.ty)).map(|column| column.sparse(70)).collect();
    table("sparse", &columns, Compression::None, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "full tier: takes seconds"]
    fn every_version_can_be_written() {
        for version in Version::ALL {
            let folder = tempfile::tempdir().expect("a folder");
            let description = types(version, 1);
            let written = crate::write(&description, folder.path()).expect("a database");
            let truth = crate::truth::truth(&description);
            assert_eq!(written.tables.len(), truth.len());
            for ((name, rows), table) in written.tables.iter().zip(&truth) {
                assert_eq!((name, *rows), (&table.table, table.rows.len() as u64));
                assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
            }
        }
    }
}
