//! CSV as RFC 4180 describes it. NULL is an empty field, an empty text `""`.

use std::io;

use format::RecordId;
use format::bytes::plain_start;
use rows::Value;

use crate::digits;
use crate::layout::{Kind, Layout};
use crate::out::{GapReason, Out};
use crate::plain;
use crate::text_file::RowText;

/// Writes rows as CSV.
pub(crate) struct Csv {
    /// Where the value is, and what it is.
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
                Value::Bytes(bytes) if *kind == Kind::Variant => digits::hex_literal(out.bytes(), bytes),
                Value::Bytes([]) => out.bytes().extend_from_slice(b"\"\""),
                Value::Bytes(bytes) => digits::hex(out.bytes(), bytes),
                Value::LongText(value) => {
                    // What is in it is not known before it is read.
                    let start = out.bytes().len();
                    out.bytes().push(b'"');
                    match out.long(at, *value, &mut |to, piece| quoted(to, piece))? {
                        true => out.bytes().push(b'"'),
                        false => out.bytes().truncate(start),
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

/// A text, in quotes where it needs them.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let needs_quotes = |byte| (byte == b',') | (byte == b'"') | (byte == b'\r') | (byte == b'\n');
    if !bytes.is_empty() && plain_start(bytes, needs_quotes) == bytes.len() {
        return out.extend_from_slice(bytes);
    }
    out.push(b'"');
    quoted(out, bytes);
    out.push(b'"');
}

/// The inside of quotes.
fn quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let (plain, from) = rest.split_at_checked(plain_start(rest, |byte| byte == b'"')).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((_, after)) = from.split_first() else { return };
        out.extend_from_slice(b"\"\"");
        rest = after;
    }
}
