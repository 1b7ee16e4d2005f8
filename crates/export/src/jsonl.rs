//! JSON lines: one object per row, with every column.

use std::io;

use format::RecordId;
use format::bytes::plain_start;
use rows::Value;

use crate::digits::{self, Base64};
use crate::layout::{Kind, Layout};
use crate::out::{GapReason, Out};
use crate::plain;
use crate::text_file::RowText;

/// Writes rows as JSON.
pub(crate) struct JsonLines {
    /// The position of the value in the row, its kind, and the text before it: `,"name":`.
    fields: Vec<(usize, Kind, Vec<u8>)>,
}

impl JsonLines {
    pub(crate) fn new(layout: &Layout) -> Self {
        let field = |(at, field): (usize, &crate::Field)| {
            let mut before = vec![if at == 0 { b'{' } else { b',' }, b'"'];
            escaped(&mut before, field.name.as_bytes());
            before.extend_from_slice(b"\":");
            (field.source, field.kind, before)
        };
        Self { fields: layout.fields.iter().enumerate().map(field).collect() }
    }
}

impl RowText for JsonLines {
    fn head(&self) -> Vec<u8> {
        Vec::new()
    }

    fn row(&self, place: RecordId, values: &[Value<'_>], out: &mut Out<'_>) -> io::Result<()> {
        out.begin_row(place);
        if self.fields.is_empty() {
            out.bytes().push(b'{');
        }
        for (at, (source, kind, before)) in self.fields.iter().enumerate() {
            out.bytes().extend_from_slice(before);
            value(at, *kind, values.get(*source).unwrap_or(&Value::Null), out)?;
        }
        out.bytes().extend_from_slice(b"}\n");
        out.relieve()
    }
}

fn value(at: usize, kind: Kind, value: &Value<'_>, out: &mut Out<'_>) -> io::Result<()> {
    match value {
        Value::Null => out.bytes().extend_from_slice(b"null"),
        Value::Bit(bit) => out.bytes().extend_from_slice(if *bit { b"true" } else { b"false" }),
        Value::Integer(n) => digits::signed(out.bytes(), *n),
        Value::Real(n) if n.is_finite() => digits::real(out.bytes(), *n),
        Value::Float(n) if n.is_finite() => digits::float(out.bytes(), *n),
        Value::Text(text) => {
            out.bytes().push(b'"');
            escaped(out.bytes(), text.as_bytes());
            out.bytes().push(b'"');
        }
        // The prefix `0x` distinguishes a binary value of a sql_variant from a text value.
        Value::Bytes(bytes) if kind == Kind::Variant => {
            out.bytes().push(b'"');
            digits::hex_literal(out.bytes(), bytes);
            out.bytes().push(b'"');
        }
        Value::Bytes(bytes) => {
            out.bytes().push(b'"');
            let mut base64 = Base64::default();
            base64.add(out.bytes(), bytes);
            base64.finish(out.bytes());
            out.bytes().push(b'"');
        }
        Value::LongText(long) => {
            let start = out.bytes().len();
            out.bytes().push(b'"');
            match out.long(at, *long, &mut |to, piece| escaped(to, piece))? {
                true => out.bytes().push(b'"'),
                false => null_from(out.bytes(), start),
            }
        }
        Value::LongBytes(long) => {
            let start = out.bytes().len();
            out.bytes().push(b'"');
            let mut base64 = Base64::default();
            let is_whole = out.long(at, *long, &mut |to, piece| base64.add(to, piece))?;
            base64.finish(out.bytes());
            match is_whole {
                true => out.bytes().push(b'"'),
                false => null_from(out.bytes(), start),
            }
        }
        Value::Unreadable(why) => {
            out.gap(at, GapReason::Unreadable(*why));
            out.bytes().extend_from_slice(b"null");
        }
        // Decimals are written as JSON strings, because most readers would round a JSON number.
        other => {
            out.bytes().push(b'"');
            plain::write(out.bytes(), other, b'T');
            out.bytes().push(b'"');
        }
    }
    Ok(())
}

fn null_from(bytes: &mut Vec<u8>, start: usize) {
    bytes.truncate(start);
    bytes.extend_from_slice(b"null");
}

/// Writes the content of a JSON string, with escapes.
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let is_special = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    let mut rest = bytes;
    loop {
        let (plain, from) = rest.split_at_checked(plain_start(rest, is_special)).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((byte, after)) = from.split_first() else { return };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                out.extend_from_slice(b"\\u00");
                digits::hex(out, &[*byte]);
            }
        }
        rest = after;
    }
}
