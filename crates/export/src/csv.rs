//! CSV according to RFC 4180. NULL is an empty field, an empty text is `""`.

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

/// Writes a text, in quotes if it needs them.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    let is_plain = match bytes.len() {
        0 => false,
        1..=SHORT_BYTES => short(out, bytes),
        _ => long(out, bytes),
    };
    if !is_plain {
        out.truncate(start);
        out.push(b'"');
        quoted(out, bytes);
        out.push(b'"');
    }
}

/// Texts up to this length are searched and copied in one pass, eight bytes at a time, without a call to `memcpy`.
const SHORT_BYTES: usize = 64;

#[inline]
fn needs_quotes(byte: u8) -> bool {
    (byte == b',') | (byte == b'"') | (byte == b'\r') | (byte == b'\n')
}

/// Copies a text that needs no quotes. Returns false if the text needs quotes; a part of it may then be copied already.
#[inline]
fn short(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let are_plain = |chunk: &[u8; 8]| !chunk.iter().fold(false, |needs, byte| needs | needs_quotes(*byte));
    let end = out.len() + bytes.len();
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk() {
        if !are_plain(chunk) {
            return false;
        }
        out.extend_from_slice(chunk);
        rest = after;
    }
    if rest.is_empty() {
        return true;
    }
    // The last eight bytes of the text may overlap bytes that are already copied. In this case, the overlap is first
    // removed from the output. A text of less than eight bytes is padded to eight bytes, and the padding is removed
    // afterwards.
    let last = match bytes.last_chunk() {
        Some(last) => {
            out.truncate(end - 8);
            *last
        }
        None => format::bytes::unsigned(rest).to_le_bytes(),
    };
    out.extend_from_slice(&last);
    out.truncate(end);
    are_plain(&last)
}

fn long(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let is_plain = plain_start(bytes, needs_quotes) == bytes.len();
    if is_plain {
        out.extend_from_slice(bytes);
    }
    is_plain
}

/// Writes the content of a quoted field, with each quote doubled.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_quoted_exactly_if_it_has_a_special_character_anywhere() {
        for length in 0..=SHORT_BYTES + 20 {
            let plain: Vec<u8> = (0..length).map(|at| b'a' + (at % 26) as u8).collect();
            let written = |bytes: &[u8]| {
                let mut out = b"before,".to_vec();
                text(&mut out, bytes);
                String::from_utf8(out.split_off(7)).unwrap()
            };
            let expected = if plain.is_empty() { "\"\"".to_owned() } else { String::from_utf8(plain.clone()).unwrap() };
            assert_eq!(written(&plain), expected);
            for at in 0..length {
                for special in *b",\"\r\n" {
                    let mut bytes = plain.clone();
                    bytes[at] = special;
                    let inside = String::from_utf8(bytes.clone()).unwrap().replace('"', "\"\"");
                    assert_eq!(written(&bytes), format!("\"{inside}\""));
                }
            }
        }
    }
}
