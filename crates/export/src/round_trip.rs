//! Reads Parquet files back with the library, for many distributions of values across rows, pages and dictionaries.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::Field as Read;
use rows::Value;

use crate::layout::{Field, Kind, Layout};
use crate::table::{Destination, Form, write_rows};

/// More rows than fit on a page for most types.
const ROWS: usize = 50_000;

/// The texts from which text columns take their values.
struct Texts(Vec<String>);

/// A column: its type, and a function that returns the value of a row and the value that a reader must see.
type Column = (Kind, for<'t> fn(usize, &'t Texts) -> (Value<'t>, Read));

fn long(n: usize) -> i64 {
    (n as i64).wrapping_mul(0x5851_F42D_4C95_7F2D)
}

fn integer(n: usize) -> (Value<'static>, Read) {
    (Value::Integer(n as i64), Read::Int(n as i32))
}

fn text(n: usize, texts: &Texts) -> (Value<'_>, Read) {
    let text = texts.0[n].as_str();
    (Value::Text(text.into()), Read::Str(text.to_owned()))
}

const INT: Kind = Kind::Integer { bits: 32 };
const BIGINT: Kind = Kind::Integer { bits: 64 };

const COLUMNS: [Column; 15] = [
    // A column with the same value in every row; then columns with values in long runs, with a thousand values in no
    // order, and with a different value in every row.
    (INT, |_, _| integer(42)),
    (INT, |row, _| integer(row / 1000 % 5)),
    (INT, |row, _| integer(long(row).unsigned_abs() as usize % 1000)),
    (INT, |row, _| integer(row)),
    (INT, |row, _| if row % 20 < 9 { integer(3) } else { integer(row % 20) }),
    (BIGINT, |row, _| (Value::Integer(long(row)), Read::Long(long(row)))),
    // A column with NULL in every row; then columns with NULL in few rows, in most rows, in long runs, and in no row. The
    // runs end in the middle of a byte of the presence bits.
    (BIGINT, |_, _| (Value::Null, Read::Null)),
    (BIGINT, |row, _| {
        if row % 7 == 3 { (Value::Null, Read::Null) } else { (Value::Integer(row as i64), Read::Long(row as i64)) }
    }),
    (Kind::Text, |row, texts| if row % 5000 == 4999 { text(row, texts) } else { (Value::Null, Read::Null) }),
    (Kind::Text, |row, texts| if row / 1001 % 2 == 0 { text(row % 3, texts) } else { (Value::Null, Read::Null) }),
    (Kind::Text, text),
    (Kind::Bit, |row, _| match row % 11 {
        4 => (Value::Null, Read::Null),
        n => (Value::Bit(n % 3 == 0), Read::Bool(n % 3 == 0)),
    }),
    (Kind::Float, |row, _| (Value::Float(row as f64 - 2e4), Read::Double(row as f64 - 2e4))),
    (Kind::Real, |row, _| (Value::Real(row as f32), Read::Float(row as f32))),
    (Kind::Bytes, |row, texts| {
        let bytes = texts.0[row % 700].as_bytes();
        (Value::Bytes(bytes), Read::Bytes(bytes.to_vec().into()))
    }),
];

#[test]
fn a_reader_gets_the_values_that_were_written_however_they_are_spread() {
    let texts = Texts((0..ROWS).map(|row| "x".repeat(row % 40) + &row.to_string()).collect());
    let field =
        |(source, (kind, _)): (usize, &Column)| Field { name: format!("c{source}"), kind: *kind, source, column_id: 1 };
    let layout = Layout { fields: COLUMNS.iter().enumerate().map(field).collect(), computed: Vec::new() };
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    for rows in [1, 7, 8, 9, 1023, ROWS] {
        let to = Destination { rows: place("x.parquet"), unreadable: place("x.csv"), replaces: true };
        let row = |row: usize| COLUMNS.map(|(_, value)| value(row, &texts));
        let written = write_rows(&layout, Form::Parquet, &to, &mut |each| {
            (0..rows).try_for_each(|at| each(format::RecordId::default(), &row(at).map(|(value, _)| value)))
        });
        assert_eq!(written.unwrap(), rows as u64);
        let file = SerializedFileReader::new(std::fs::File::open(&to.rows).unwrap()).unwrap();
        let mut read = 0;
        for (at, found) in file.get_row_iter(None).unwrap().enumerate() {
            let found = found.unwrap();
            for ((name, found), (_, expected)) in found.get_column_iter().zip(row(at)) {
                assert_eq!(*found, expected, "row {at} of {rows}, column {name}");
            }
            read += 1;
        }
        assert_eq!(read, rows);
        ranges_are_true(&file, rows, &texts);
    }
}

/// Asserts that the statistics in the footer are right for each column.
fn ranges_are_true(file: &SerializedFileReader<std::fs::File>, rows: usize, texts: &Texts) {
    for (at, (_, value)) in COLUMNS.iter().enumerate() {
        let read = || (0..rows).map(|row| value(row, texts).1);
        let nulls = read().filter(|value| *value == Read::Null).count() as u64;
        let found: Vec<&Statistics> =
            file.metadata().row_groups().iter().filter_map(|group| group.column(at).statistics()).collect();
        assert_eq!(found.iter().filter_map(|found| found.null_count_opt()).sum::<u64>(), nulls, "column {at}");
        let [found] = found.as_slice() else { continue };
        match found {
            Statistics::Int64(found) => {
                let longs = || read().filter_map(|value| if let Read::Long(n) = value { Some(n) } else { None });
                assert_eq!((found.min_opt().copied(), found.max_opt().copied()), (longs().min(), longs().max()));
            }
            Statistics::ByteArray(found) => {
                let bytes = |value| match value {
                    Read::Str(text) => Some(text.into_bytes()),
                    Read::Bytes(bytes) => Some(bytes.data().to_vec()),
                    _ => None,
                };
                let all = || read().filter_map(bytes);
                let found = (found.min_opt(), found.max_opt());
                assert_eq!(
                    (found.0.map(|least| least.data()), found.1.map(|most| most.data())),
                    (all().min().as_deref(), all().max().as_deref())
                );
            }
            _ => {}
        }
    }
}
