//! CSV as RFC 4180 describes it. NULL is an empty field, an empty text `""`.

use std::io;

use format::RecordId;
use format::bytes::plain_start;
use rows::Value;

use crate::digits;
use crate::layout::{Kind, Layout};
use crate::out::{GapReason, Out, Put};
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
            let value = values.get(*source).unwrap_or(&Value::Null);
            let separator = usize::from(at > 0);
            let mut is_written = true;
            out.short(|to| {
                to.put([b','], separator);
                match value {
                    Value::Null => {}
                    Value::Text(value) if (1..=PLAIN_BYTES).contains(&value.as_bytes().len()) => {
                        is_written = plain_text(to, value.as_bytes());
                        if !is_written {
                            to.truncate(separator);
                        }
                    }
                    Value::Integer(n) => digits::signed(to, *n),
                    Value::Decimal { unscaled, scale } => is_written = digits::short_decimal(to, *unscaled, *scale),
                    Value::DateTime(moment) => digits::date_time(to, *moment, b'T'),
                    Value::Date(day) => digits::date(to, *day),
                    Value::Bit(bit) => to.put([b'0' + u8::from(*bit)], 1),
                    _ => is_written = false,
                }
            });
            if !is_written {
                rare(at, *kind, value, out)?;
            }
        }
        out.short(|to| to.put(*b"\r\n", 2));
        out.relieve()
    }
}

/// Writes a value of column `at` that may be long, has to be in quotes, or is of a rare type.
#[inline(never)]
fn rare(at: usize, kind: Kind, value: &Value<'_>, out: &mut Out<'_>) -> io::Result<()> {
    match value {
        Value::Text(value) => text(out.bytes(), value.as_bytes()),
        Value::Bytes(bytes) if kind == Kind::Variant => digits::hex_literal(out.bytes(), bytes),
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
    Ok(())
}

/// A text, in quotes where it needs them.
pub(crate) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    let is_plain = match bytes.len() {
        0 => false,
        1..=PLAIN_BYTES => plain_text(out, bytes),
        _ => long(out, bytes),
    };
    if !is_plain {
        out.truncate(start);
        out.push(b'"');
        quoted(out, bytes);
        out.push(b'"');
    }
}

/// Texts up to this length are looked at and copied at once, without a call that copies.
const PLAIN_BYTES: usize = 64;

#[inline]
fn needs_quotes(byte: u8) -> bool {
    (byte == b',') | (byte == b'"') | (byte == b'\r') | (byte == b'\n')
}

/// Copies a text; false as soon as it needs quotes.
#[inline(always)]
fn plain_text(out: &mut impl Put, bytes: &[u8]) -> bool {
    let are_plain = |chunk: &[u8; 8]| !chunk.iter().fold(false, |needs, byte| needs | needs_quotes(*byte));
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk() {
        if !are_plain(chunk) {
            return false;
        }
        out.put(*chunk, 8);
        rest = after;
    }
    if rest.is_empty() {
        return true;
    }
    // The last eight bytes without those that were copied before.
    let last = match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        None => format::bytes::unsigned(rest),
    };
    out.put(last.to_le_bytes(), rest.len());
    are_plain(&last.to_le_bytes())
}

fn long(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let is_plain = plain_start(bytes, needs_quotes) == bytes.len();
    if is_plain {
        out.extend_from_slice(bytes);
    }
    is_plain
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

#[cfg(test)]
mod tests {
    use rows::{DateTime, Text, TimeOfDay};

    use super::*;
    use crate::out::{Piece, Valve};

    /// Keeps what is written.
    #[derive(Default)]
    struct Kept(Vec<u8>, Vec<usize>);

    impl Valve for Kept {
        fn write(&mut self, piece: &Piece) -> io::Result<()> {
            self.1.extend(piece.starts.iter().map(|start| self.0.len() + start));
            self.0.extend_from_slice(&piece.bytes);
            Ok(())
        }
    }

    #[test]
    fn the_longest_short_values_and_those_between_them_are_whole_wherever_the_room_of_a_line_ends() {
        let text = "n".repeat(PLAIN_BYTES);
        let moment = DateTime { day: 3_652_058, time: TimeOfDay { ticks: 863_999_999_999, digits: 7 } };
        let cells = [
            (Value::Integer(i64::MIN), "-9223372036854775808".to_owned()),
            (Value::Decimal { unscaled: i64::MIN.into(), scale: 7 }, "-922337203685.4775808".to_owned()),
            (Value::Decimal { unscaled: i64::MIN.into(), scale: 0 }, "-9223372036854775808".to_owned()),
            (Value::Decimal { unscaled: -5, scale: 38 }, format!("-0.{:0>38}", 5)),
            (Value::DateTime(moment), "9999-12-31T23:59:59.9999999".to_owned()),
            (Value::Null, String::new()),
            (Value::Date(0), "0001-01-01".to_owned()),
            (Value::Bit(true), "1".to_owned()),
            (Value::Text(Text::from(text.as_str())), text.clone()),
            (Value::Text(Text::from("plain at first, and then not")), "\"plain at first, and then not\"".to_owned()),
            (Value::Text(Text::from("")), "\"\"".to_owned()),
        ];
        // Rows of one to all of the values: their ends are at all places of a line.
        let csv = |width: usize| Csv { fields: (0..width).map(|at| (at, Kind::Text)).collect(), head: Vec::new() };
        let (mut kept, mut expected, mut starts) = (Kept::default(), String::new(), Vec::new());
        let mut out = Out::new(&mut kept, Piece::default());
        for row in 0..6000 {
            let first = row % cells.len();
            let width = 1 + row / 7 % (cells.len() - first);
            let cells = &cells[first..first + width];
            let values: Vec<Value<'_>> = cells.iter().map(|(value, _)| *value).collect();
            csv(width).row(RecordId::default(), &values, &mut out).unwrap();
            starts.push(expected.len());
            expected += &cells.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(",");
            expected += "\r\n";
        }
        out.flush().unwrap();
        assert!(kept.0 == expected.as_bytes());
        assert_eq!(kept.1, starts);
    }

    #[test]
    fn a_text_of_any_length_is_quoted_exactly_if_it_has_a_special_character_anywhere() {
        for length in 0..=PLAIN_BYTES + 20 {
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
