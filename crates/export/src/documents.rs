//! Tests that each writer writes values as the table in docs/values.md shows them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use format::RecordId;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field as Read;
use parquet::schema::printer::print_schema;
use rows::{DateTime, TimeOfDay, Value};

use crate::csv::Csv;
use crate::jsonl::JsonLines;
use crate::layout::{Field, Kind, Layout};
use crate::out::{Out, Piece, Valve};
use crate::table::{Destination, Form, write_rows};
use crate::text_file::RowText;
use crate::tsql::Tsql;

const BEGIN: &str = "<!-- forms -->\n";
const END: &str = "<!-- end -->";
/// 2005-01-31 as days since 0001-01-01.
const DAY: u32 = 731_976;
/// 23:59:59.1234567 in ticks of 100 ns since midnight.
const TICKS: u64 = 863_990_000_000 + 1_234_567;
/// POINT (1 2) as WKB.
const POINT: [u8; 21] = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0x40];

fn time(digits: u8) -> TimeOfDay {
    let unit = 10_u64.pow(7 - u32::from(digits));
    TimeOfDay { ticks: TICKS / unit * unit, digits }
}

fn moment(digits: u8) -> DateTime {
    DateTime { day: DAY, time: time(digits) }
}

fn decimal(unscaled: i128, scale: u8) -> Value<'static> {
    Value::Decimal { unscaled, scale }
}

/// One entry per type: its name, its kind, and a value.
fn samples() -> Vec<(&'static str, Kind, Value<'static>)> {
    let to_the_minute = DateTime { day: DAY, time: TimeOfDay { ticks: 863_400_000_000, digits: 0 } };
    let datetime = DateTime { day: DAY, time: TimeOfDay { ticks: 863_999_970_000, digits: 3 } };
    let offset = Value::DateTimeOffset { utc: moment(3), offset_minutes: -330 };
    let guid = [0xFF, 0x19, 0x96, 0x6F, 0x86, 0x8B, 0x11, 0xD0, 0xB4, 0x2D, 0, 0xC0, 0x4F, 0xC9, 0x64, 0xFF];
    vec![
        ("NULL", Kind::Integer { bits: 32 }, Value::Null),
        ("bit", Kind::Bit, Value::Bit(true)),
        ("tinyint", Kind::Integer { bits: 8 }, Value::Integer(255)),
        ("smallint", Kind::Integer { bits: 16 }, Value::Integer(i16::MIN.into())),
        ("int", Kind::Integer { bits: 32 }, Value::Integer(i32::MIN.into())),
        ("bigint", Kind::Integer { bits: 64 }, Value::Integer(i64::MIN)),
        ("decimal(9,2)", Kind::Decimal { precision: 9, scale: 2 }, decimal(-150, 2)),
        ("decimal(18,4)", Kind::Decimal { precision: 18, scale: 4 }, decimal(1, 4)),
        ("decimal(38,10)", Kind::Decimal { precision: 38, scale: 10 }, decimal(12_345_678_901_234_567_890_123, 10)),
        ("money", Kind::Decimal { precision: 19, scale: 4 }, decimal(12_345_678, 4)),
        ("smallmoney", Kind::Decimal { precision: 10, scale: 4 }, decimal(-5, 4)),
        ("real", Kind::Real, Value::Real(0.1)),
        ("float", Kind::Float, Value::Float(1.5e300)),
        ("float, negative zero", Kind::Float, Value::Float(-0.0)),
        ("date", Kind::Date, Value::Date(DAY)),
        ("time(0)", Kind::Time { digits: 0 }, Value::Time(time(0))),
        ("time(7)", Kind::Time { digits: 7 }, Value::Time(time(7))),
        ("smalldatetime", Kind::DateTime { digits: 0 }, Value::DateTime(to_the_minute)),
        ("datetime", Kind::DateTime { digits: 3 }, Value::DateTime(datetime)),
        ("datetime2(7)", Kind::DateTime { digits: 7 }, Value::DateTime(moment(7))),
        ("datetimeoffset(3)", Kind::DateTimeOffset { digits: 3 }, offset),
        ("uniqueidentifier", Kind::Guid, Value::Guid(guid)),
        ("char, nvarchar, text, xml", Kind::Text, Value::Text("O'Brien, \"x\"".into())),
        ("empty text", Kind::Text, Value::Text("".into())),
        ("binary, image", Kind::Bytes, Value::Bytes(&[0, 0xFF, 0x0A])),
        ("empty binary", Kind::Bytes, Value::Bytes(&[])),
        ("rowversion", Kind::RowVersion, Value::Bytes(&[0, 0, 0, 0, 0, 0, 7, 0xD1])),
        ("hierarchyid", Kind::Hierarchy, Value::Text("/1/2.5/".into())),
        ("geometry", Kind::Geometry, Value::Bytes(&POINT)),
        ("geography", Kind::Geography, Value::Bytes(&POINT)),
        ("sql_variant of int", Kind::Variant, Value::Integer(7)),
        ("sql_variant of text", Kind::Variant, Value::Text("seven".into())),
        ("sql_variant of binary", Kind::Variant, Value::Bytes(&[7])),
    ]
}

/// Collects the output of a writer.
#[derive(Default)]
struct Kept(Vec<u8>);

impl Valve for Kept {
    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        assert!(piece.gaps.is_empty(), "{:?}", piece.gaps);
        self.0.extend_from_slice(&piece.bytes);
        Ok(())
    }
}

fn row(text: &dyn RowText, value: Value<'_>) -> String {
    let mut kept = Kept::default();
    let mut out = Out::new(&mut kept, Piece::default());
    text.row(RecordId::default(), &[value], &mut out).unwrap();
    out.flush().unwrap();
    String::from_utf8(kept.0).unwrap()
}

fn read(field: &Read) -> String {
    match field {
        Read::Null => "null".to_owned(),
        Read::Bytes(bytes) => {
            format!("0x{}", bytes.data().iter().map(|byte| format!("{byte:02X}")).collect::<String>())
        }
        other => other.to_string(),
    }
}

/// Writes the value to a Parquet file and reads the file with the `parquet` library. Returns name, type and value of
/// each column.
fn parquet(layout: &Layout, value: Value<'_>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let to = Destination { rows: place("x.parquet"), unreadable: place("x.unreadable.csv"), replaces: false };
    write_rows(layout, Form::Parquet, &to, &mut |each| each(RecordId::default(), &[value])).unwrap();
    assert!(!to.unreadable.exists());
    let reader = SerializedFileReader::new(File::open(&to.rows).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let columns = row.get_column_iter().zip(schema.columns()).map(|((_, field), column)| {
        let mut declared = Vec::new();
        print_schema(&mut declared, column.self_type());
        let declared = String::from_utf8(declared).unwrap();
        let declared = declared.trim().strip_prefix("OPTIONAL ").unwrap().strip_suffix(';').unwrap();
        format!("{declared} = {}", read(field))
    });
    columns.collect::<Vec<_>>().join("; ")
}

fn line((name, kind, value): (&str, Kind, Value<'_>)) -> String {
    let field = Field { name: "x".to_owned(), kind, source: 0, column_id: 1 };
    let layout = Layout { fields: vec![field], computed: Vec::new() };
    let csv = row(&Csv::new(&layout), value).trim_end_matches("\r\n").to_owned();
    let json = row(&JsonLines::new(&layout), value);
    let json = json.trim_end().strip_prefix("{\"x\":").unwrap().strip_suffix('}').unwrap().to_owned();
    let sql = row(&Tsql::new(&layout, &|_| true), value);
    let sql = sql.trim_matches('(').strip_suffix(')').unwrap().to_owned();
    let code = |text: String| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let cells = [csv, json, sql, parquet(&layout, value)].map(code).join(" | ");
    format!("| {name} | {cells} |\n")
}

#[test]
fn values_are_written_as_the_document_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/values.md");
    let document = fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let lines: String = samples().into_iter().map(line).collect();
    let table = format!("| type | csv | jsonl | sql | parquet |\n|---|---|---|---|---|\n{lines}");
    if std::env::var_os("MDFSCK_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, table, "MDFSCK_WRITE_DOCS=1 cargo test -p mdfsck-export writes it");
}
