//! CSV according to RFC 4180. NULL is an empty field, an empty text is `""`.

use std::io;

use format::RecordId;
use rows::Value;

use crate::digits;
use crate::layout::{Kind, Layout};
use crate::out::{GapReason, Out};
use crate::plain;
use crate::quotes::{quoted, text};
use crate::text_file::RowText;

/// Writes rows as CSV.
pub(crate) struct Csv {
    /// The position of the value in the row, and its kind.
    fields: Vec<(usize, Kind)>,
    head: Vec<u8>,
}

impl Csv {
    pub(crate) fn new(layout: &Layout) -> Self {
        let mut head = Vec::new();
        for (at, field) in layout.fields.iter().enumerate() {
            if at > 0 {
                head.push(b',');
            }
            text(&mut head, field.name.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        Self { fields: layout.fields.iter().map(|field| (field.source, field.kind)).collect(), head }
    }
}

impl RowText for Csv {
    fn head(&self) -> Vec<u8> {
        self.head.clone()
    }

    fn row(&self, place: RecordId, values: &[Value<'_>], out: &mut Out<'_>) -> io::Result<()> {
        out.begin_row(place);
        for (at, (source, kind)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.bytes().push(b',');
            }
            match values.get(*source).unwrap_or(&Value::Null) {
                Value::Null => {}
                Value::Text(value) => text(out.bytes(), value.as_bytes()),
                // The most common kinds of values are handled here and not by `plain::write`, so that each of these
                // values is matched only once.
                Value::Integer(n) => digits::signed(out.bytes(), *n),
                Value::Decimal { unscaled, scale } => digits::decimal(out.bytes(), *unscaled, *scale),
                Value::DateTime(moment) => digits::date_time(out.bytes(), *moment, b'T'),
                Value::Bit(bit) => out.bytes().push(b'0' + u8::from(*bit)),
                Value::Bytes(bytes) if *kind == Kind::Variant => digits::hex_literal(out.bytes(), bytes),
                Value::Bytes([]) => out.bytes().extend_from_slice(b"\"\""),
                Value::Bytes(bytes) => digits::hex(out.bytes(), bytes),
                Value::LongText(value) => {
                    // The field is always quoted, because the content of a long value is not known before it is
                    // written.
                    let start = out.bytes().len();
                    out.bytes().push(b'"');
                    if out.long(at, *value, &mut |to, piece| quoted(to, piece))? {
                        out.bytes().push(b'"');
                    } else {
                        out.bytes().truncate(start);
                    }
                }
                Value::LongBytes(value) => {
                    out.long(at, *value, &mut |to, piece| digits::hex(to, piece))?;
                }
                Value::Unreadable(why) => out.gap(at, GapReason::Unreadable(*why)),
                other => plain::write(out.bytes(), other, b'T'),
            }
        }
        out.bytes().extend_from_slice(b"\r\n");
        out.relieve()
    }
}
