//! The rows of T-SQL INSERT statements.

use std::fmt::LowerExp;
use std::io;

use format::RecordId;
use rows::{LongValue, Value};
use script::Constant;

use crate::digits;
use crate::layout::{Kind, Layout};
use crate::out::{GapReason, Out};
use crate::plain;
use crate::text_file::RowText;

/// The length of the byte order and the type at the start of WKB, in bytes.
const WKB_START: usize = 5;

/// Writes rows as parenthesized lists of values.
pub(crate) struct Tsql {
    /// For each column: its position in the file, the position of its value in the row, and its kind.
    fields: Vec<(usize, usize, Kind)>,
}

impl Tsql {
    /// Creates a writer. `is_inserted` decides by column ID whether an INSERT names the column.
    pub(crate) fn new(layout: &Layout, is_inserted: &dyn Fn(u32) -> bool) -> Self {
        let fields = layout.fields.iter().enumerate();
        let fields = fields.filter(|(_, field)| field.kind != Kind::RowVersion && is_inserted(field.column_id));
        Self { fields: fields.map(|(at, field)| (at, field.source, field.kind)).collect() }
    }
}

impl RowText for Tsql {
    fn head(&self) -> Vec<u8> {
        Vec::new()
    }

    fn row(&self, place: RecordId, values: &[Value<'_>], out: &mut Out<'_>) -> io::Result<()> {
        out.begin_row(place);
        for (nth, (at, source, kind)) in self.fields.iter().enumerate() {
            out.bytes().push(if nth == 0 { b'(' } else { b',' });
            literal(*at, *kind, values.get(*source).unwrap_or(&Value::Null), out)?;
        }
        out.bytes().push(b')');
        out.relieve()
    }
}

fn literal(at: usize, kind: Kind, value: &Value<'_>, out: &mut Out<'_>) -> io::Result<()> {
    if kind == Kind::Variant {
        return variant(at, value, out);
    }
    let (before, after) = around(kind, value);
    let start = out.bytes().len();
    out.bytes().extend_from_slice(before.as_bytes());
    let is_written = match value {
        Value::Null => {
            out.bytes().extend_from_slice(b"NULL");
            true
        }
        Value::Bit(_) | Value::Integer(_) | Value::Decimal { .. } => {
            plain::write(out.bytes(), value, b'T');
            true
        }
        Value::Real(n) => float(at, n, n.is_finite(), out),
        Value::Float(n) => float(at, n, n.is_finite(), out),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::DateTimeOffset { .. } | Value::Guid(_) => {
            out.bytes().push(b'\'');
            plain::write(out.bytes(), value, b'T');
            out.bytes().push(b'\'');
            true
        }
        Value::Text(value) => {
            text(out.bytes(), value.as_bytes());
            true
        }
        Value::Bytes(bytes) => {
            digits::hex_literal(out.bytes(), bytes);
            true
        }
        Value::LongText(long) => {
            out.bytes().extend_from_slice(MAX_TEXT.as_bytes());
            let mut constant = Constant::default();
            let is_written = out.long(at, *long, &mut |to, piece| constant.add(to, piece))?;
            constant.finish(out.bytes());
            out.bytes().push(b'\'');
            is_written
        }
        Value::LongBytes(long) => {
            out.bytes().extend_from_slice(b"0x");
            out.long(at, *long, &mut |to, piece| digits::hex(to, piece))?
        }
        Value::Unreadable(why) => {
            out.gap(at, GapReason::Unreadable(*why));
            false
        }
    };
    if is_written {
        out.bytes().extend_from_slice(after.as_bytes());
    } else {
        out.bytes().truncate(start);
        out.bytes().extend_from_slice(b"NULL");
    }
    Ok(())
}

fn float(at: usize, n: &dyn LowerExp, is_finite: bool, out: &mut Out<'_>) -> bool {
    use std::io::Write;
    // Writing to memory cannot fail.
    let is_written = is_finite && write!(out.bytes(), "{n:e}").is_ok();
    if !is_written {
        out.gap(at, GapReason::NoForm);
    }
    is_written
}

/// Returns the texts to write before and after a literal so that it is converted to the type of the column, if T-SQL
/// has no literals of this type. Both texts are empty for all other types and for NULL.
fn around(kind: Kind, value: &Value<'_>) -> (&'static str, &'static str) {
    match (kind, value) {
        (_, Value::Null | Value::Unreadable(_)) => ("", ""),
        (Kind::Hierarchy, Value::Text(_) | Value::LongText(_)) => ("hierarchyid::Parse(", ")"),
        (Kind::Hierarchy, _) => ("CAST(", " AS hierarchyid)"),
        (Kind::Geometry, Value::Bytes(bytes)) if is_wkb(bytes) => ("geometry::STGeomFromWKB(", ",0)"),
        (Kind::Geography, Value::Bytes(bytes)) if is_wkb(bytes) => ("geography::STGeomFromWKB(", ",4326)"),
        (Kind::Geometry, Value::LongBytes(long)) if starts_as_wkb(*long) => ("geometry::STGeomFromWKB(", ",0)"),
        (Kind::Geography, Value::LongBytes(long)) if starts_as_wkb(*long) => ("geography::STGeomFromWKB(", ",4326)"),
        (Kind::Geometry, _) => ("CAST(", " AS geometry)"),
        (Kind::Geography, _) => ("CAST(", " AS geography)"),
        _ => ("", ""),
    }
}

/// Whether the bytes of a spatial value are WKB, not SQL Server's stored form. WKB begins with its byte order, 1, and a
/// type below 18 as a 32-bit integer, so the fifth byte is 0. The stored form begins with the SRID, a 32-bit integer,
/// and a version. So its fifth byte is the version, 1 or 2.
fn is_wkb(bytes: &[u8]) -> bool {
    matches!(bytes, [1, 1..=17, 0, 0, 0, ..])
}

fn starts_as_wkb(long: LongValue<'_>) -> bool {
    let mut start = Vec::new();
    // The error is used only to stop the reading when the start of the value is known.
    let _ = long.pieces(&mut |piece| {
        start.extend_from_slice(piece.get(..WKB_START).unwrap_or(piece));
        if start.len() < WKB_START { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    });
    is_wkb(&start)
}

/// The maximum length of an nvarchar in a sql_variant, in UTF-16 code units.
const MOST_VARIANT_CHARS: usize = 4000;

/// Writes a value of a sql_variant. If necessary, casts the literal to a base type that can hold the value. Then casts
/// the result to sql_variant, because SQL Server gives each column of a VALUES list a single type, like a column of a
/// UNION. The outer CAST to sql_variant preserves the base type of each value.
fn variant(at: usize, value: &Value<'_>, out: &mut Out<'_>) -> io::Result<()> {
    if matches!(value, Value::Null | Value::Unreadable(_)) {
        return literal(at, Kind::Text, value, out);
    }
    out.bytes().extend_from_slice(b"CAST(");
    let base = match value {
        Value::Bit(_) => Some("bit".to_owned()),
        Value::Integer(n) if i32::try_from(*n).is_err() => Some("bigint".to_owned()),
        Value::Real(_) => Some("real".to_owned()),
        Value::Date(_) => Some("date".to_owned()),
        Value::Time(time) => Some(format!("time({})", time.digits)),
        Value::DateTime(moment) if moment.time.digits == 3 => Some("datetime".to_owned()),
        Value::DateTime(moment) => Some(format!("datetime2({})", moment.time.digits)),
        Value::DateTimeOffset { utc, .. } => Some(format!("datetimeoffset({})", utc.time.digits)),
        Value::Guid(_) => Some("uniqueidentifier".to_owned()),
        // Long literals and concatenated literals have a max type, which a sql_variant does not accept.
        Value::Text(text) if text.as_str().encode_utf16().count() > MOST_VARIANT_CHARS => {
            Some("varchar(8000)".to_owned())
        }
        Value::Text(_) => Some(format!("nvarchar({MOST_VARIANT_CHARS})")),
        _ => None,
    };
    match base {
        Some(base) => cast(at, value, &base, out)?,
        None => literal(at, Kind::Text, value, out)?,
    }
    out.bytes().extend_from_slice(b" AS sql_variant)");
    Ok(())
}

fn cast(at: usize, value: &Value<'_>, base: &str, out: &mut Out<'_>) -> io::Result<()> {
    out.bytes().extend_from_slice(b"CAST(");
    literal(at, Kind::Text, value, out)?;
    out.bytes().extend_from_slice(format!(" AS {base})").as_bytes());
    Ok(())
}

/// The beginning of a literal that is concatenated from parts. Without the CAST, the result would be an nvarchar(4000)
/// and be truncated.
const MAX_TEXT: &str = "CAST(N'' AS nvarchar(max))+N'";

/// Writes a text literal.
fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.extend_from_slice(b"N'");
    if inside(out, bytes) {
        out.truncate(start);
        out.extend_from_slice(MAX_TEXT.as_bytes());
        inside(out, bytes);
    }
    out.push(b'\'');
}

/// Writes the text between the quotes. Returns whether it is split into several concatenated literals.
fn inside(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let mut constant = Constant::default();
    constant.add(out, bytes);
    constant.finish(out);
    constant.is_split()
}
