//! Decodes the values of fields and actions by their types.

use std::fmt::Write;

use format::bytes::{array_at, u32_at, unsigned, utf16};
use format::types::guid_text;

use super::metadata::{Field, Map, Metadata};
use super::{kind, package_of};
use crate::{Moment, Value};

/// Numbers of the value types that package 0 defines.
mod base {
    pub(super) const INT8: u32 = 1;
    pub(super) const INT16: u32 = 2;
    pub(super) const INT32: u32 = 3;
    pub(super) const INT64: u32 = 4;
    pub(super) const UINT8: u32 = 5;
    pub(super) const UINT16: u32 = 6;
    pub(super) const UINT32: u32 = 7;
    pub(super) const UINT64: u32 = 8;
    pub(super) const FLOAT32: u32 = 9;
    pub(super) const FLOAT64: u32 = 10;
    pub(super) const CPU_CYCLE: u32 = 11;
    pub(super) const FILETIME: u32 = 12;
    pub(super) const POINTER: u32 = 13;
    pub(super) const ANSI_STRING: u32 = 19;
    pub(super) const UNICODE_STRING: u32 = 20;
    pub(super) const GUID: u32 = 21;
    pub(super) const BINARY: u32 = 22;
    pub(super) const CALLSTACK: u32 = 23;
    pub(super) const ACTIVITY_ID: u32 = 24;
    pub(super) const ACTIVITY_ID_XFER: u32 = 25;
    pub(super) const BOOLEAN: u32 = 26;
    pub(super) const XML: u32 = 27;
}

/// ID of the pointer type.
const POINTER_ID: u32 = (kind::TYPE << 28) | (base::POINTER << 10);
/// Size of the descriptor of a value of variable length: its offset and its length.
const DESCRIPTOR_BYTES: usize = 8;

/// The number of a type; `None` if a package other than package 0 defines the type.
pub(super) fn base_type(type_id: u32) -> Option<u32> {
    (kind::of(type_id) == kind::TYPE && package_of(type_id) == 0).then_some((type_id >> 10) & 0x3FFFF)
}

/// The bytes of an event.
pub(super) struct Payload<'a> {
    bytes: &'a [u8],
    /// Number of bytes that further values may use. In a sound event, values do not overlap, so all values together are
    /// at most as large as the event. Without this limit, overlapping values could make a small file use much memory.
    left: usize,
}

impl<'a> Payload<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, left: bytes.len() }
    }

    fn take(&mut self, at: usize, count: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(at..at.checked_add(count)?)?;
        self.left = self.left.checked_sub(count.max(1))?;
        Some(bytes)
    }

    /// Reads the value of `field`. `next` is the offset of the next field.
    pub(super) fn field(&mut self, metadata: &Metadata, field: &Field, next: usize) -> Value {
        let known = match kind::of(field.type_id) {
            kind::MAP => metadata.maps.get(&field.type_id).and_then(|map| {
                let bytes = self.take(field.offset, map.bytes)?;
                Some(map.value(bytes))
            }),
            kind::TYPE => metadata.types.get(&field.type_id).and_then(|size| {
                let mut bytes = self.take(field.offset, if *size == 0 { DESCRIPTOR_BYTES } else { *size })?;
                if *size == 0 {
                    let (at, count) = (u32_at(bytes, 0)? as usize, u32_at(bytes, 4)? as usize);
                    bytes = if count == 0 { &[] } else { self.take(at, count)? };
                }
                Some(value(metadata, field.type_id, bytes))
            }),
            _ => None,
        };
        known.unwrap_or_else(|| {
            let end = next.min(self.bytes.len());
            let rest = end.checked_sub(field.offset).and_then(|count| self.take(field.offset, count));
            Value::Undecoded(rest.unwrap_or_default().to_vec())
        })
    }
}

/// Decodes `bytes` as a value of a type or map.
pub(super) fn value(metadata: &Metadata, type_id: u32, bytes: &[u8]) -> Value {
    if let Some(map) = metadata.maps.get(&type_id) {
        return map.value(bytes);
    }
    let pointer_bytes = metadata.types.get(&POINTER_ID).copied().unwrap_or(8);
    base_type(type_id)
        .and_then(|base| of_base(base, bytes, pointer_bytes))
        .unwrap_or_else(|| Value::Undecoded(bytes.to_vec()))
}

fn of_base(base: u32, bytes: &[u8], pointer_bytes: usize) -> Option<Value> {
    Some(match base {
        base::INT8 => Value::Int(i8::from_le_bytes(array_at(bytes, 0)?).into()),
        base::INT16 => Value::Int(i16::from_le_bytes(array_at(bytes, 0)?).into()),
        base::INT32 => Value::Int(i32::from_le_bytes(array_at(bytes, 0)?).into()),
        base::INT64 => Value::BigInt(i64::from_le_bytes(array_at(bytes, 0)?)),
        base::UINT8 => Value::Int(u8::from_le_bytes(array_at(bytes, 0)?).into()),
        base::UINT16 => Value::Int(u16::from_le_bytes(array_at(bytes, 0)?).into()),
        base::UINT32 => Value::Int(u32::from_le_bytes(array_at(bytes, 0)?).into()),
        base::UINT64 | base::CPU_CYCLE => Value::BigUint(u64::from_le_bytes(array_at(bytes, 0)?)),
        base::FLOAT32 => Value::Float(f32::from_le_bytes(array_at(bytes, 0)?).into()),
        base::FLOAT64 => Value::Float(f64::from_le_bytes(array_at(bytes, 0)?)),
        base::FILETIME => Value::Time(Moment(i64::from_le_bytes(array_at(bytes, 0)?))),
        base::POINTER => Value::Text(pointer(bytes, pointer_bytes)?),
        base::ANSI_STRING => Value::Text(ansi(bytes)),
        base::UNICODE_STRING | base::XML => Value::Text(utf16(bytes).trim_end_matches('\0').to_owned()),
        base::GUID => Value::Text(guid_text(array_at(bytes, 0)?)),
        base::BINARY => Value::Binary(bytes.to_vec()),
        base::CALLSTACK => {
            let pointers = bytes.chunks_exact(pointer_bytes.max(1)).map(|bytes| pointer(bytes, pointer_bytes));
            Value::Text(pointers.collect::<Option<Vec<String>>>()?.join("\n"))
        }
        base::ACTIVITY_ID | base::ACTIVITY_ID_XFER => {
            Value::Activity { guid: array_at(bytes, 0)?, sequence: u32_at(bytes, 16)? }
        }
        base::BOOLEAN => Value::Boolean(*bytes.first()? != 0),
        _ => return None,
    })
}

/// Formats a pointer in hexadecimal.
fn pointer(bytes: &[u8], pointer_bytes: usize) -> Option<String> {
    let bytes = bytes.get(..pointer_bytes).filter(|bytes| matches!(bytes.len(), 4 | 8))?;
    Some(format!("0x{:0digits$X}", unsigned(bytes), digits = 2 * bytes.len()))
}

/// Decodes text in the server's code page. The file does not name the code page; in practice the text is ASCII. Other
/// bytes are decoded as Latin 1.
fn ansi(bytes: &[u8]) -> String {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    text.trim_end_matches('\0').to_owned()
}

impl Map {
    /// The text of a code, or the code as a number if the map has no text for it.
    fn value(&self, bytes: &[u8]) -> Value {
        if bytes.is_empty() || bytes.len() > 8 {
            return Value::Undecoded(bytes.to_vec());
        }
        let code = unsigned(bytes);
        let known = u32::try_from(code).ok().and_then(|code| self.texts.get(&code));
        match (known, self.is_bits) {
            (Some(text), _) => Value::Text(text.to_string()),
            (None, true) if code != 0 => {
                let mut text = String::new();
                for bit in (0..64).map(|bit| 1u64 << bit).filter(|bit| code & bit != 0) {
                    let comma = if text.is_empty() { "" } else { "," };
                    let _ = match u32::try_from(bit).ok().and_then(|bit| self.texts.get(&bit)) {
                        Some(name) => write!(text, "{comma}{name}"),
                        None => write!(text, "{comma}{bit}"),
                    };
                }
                Value::Text(text)
            }
            _ => Value::Text(code.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn shown(base: u32, bytes: &[u8]) -> String {
        of_base(base, bytes, 8).unwrap().to_string()
    }

    #[test]
    fn every_base_type_has_its_text() {
        assert_eq!(shown(base::INT8, &[0xFF]), "-1");
        assert_eq!(shown(base::INT16, &[0xFE, 0xFF]), "-2");
        assert_eq!(shown(base::INT32, &[0xFD, 0xFF, 0xFF, 0xFF]), "-3");
        assert_eq!(shown(base::INT64, &(-4i64).to_le_bytes()), "-4");
        assert_eq!(shown(base::UINT8, &[0xFF]), "255");
        assert_eq!(shown(base::UINT16, &[0xFE, 0xFF]), "65534");
        assert_eq!(shown(base::UINT32, &[0xFD, 0xFF, 0xFF, 0xFF]), "4294967293");
        assert_eq!(shown(base::UINT64, &[0xFF; 8]), u64::MAX.to_string());
        assert_eq!(shown(base::CPU_CYCLE, &7u64.to_le_bytes()), "7");
        assert_eq!(shown(base::FLOAT32, &1.5f32.to_le_bytes()), "1.5");
        assert_eq!(shown(base::FLOAT64, &(-0.25f64).to_le_bytes()), "-0.25");
        assert_eq!(shown(base::FILETIME, &131_125_086_140_230_000i64.to_le_bytes()), "2016-07-09T03:30:14.023Z");
        assert_eq!(shown(base::POINTER, &0x7FF6_1234u64.to_le_bytes()), "0x000000007FF61234");
        assert_eq!(shown(base::ANSI_STRING, b"caf\xE9"), "caf\u{e9}");
        assert_eq!(shown(base::UNICODE_STRING, &[b'a', 0, 0xE9, 0, 0, 0]), "a\u{e9}");
        assert_eq!(shown(base::XML, &[b'<', 0, b'/', 0]), "</");
        assert_eq!(shown(base::GUID, &[1; 16]), "01010101-0101-0101-0101-010101010101");
        assert_eq!(shown(base::BINARY, &[0xAB, 0]), "0xAB00");
        assert_eq!(
            shown(base::CALLSTACK, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]),
            "0x0000000000000001\n0x0000000000000002"
        );
        assert_eq!(shown(base::ACTIVITY_ID, &[2; 20]), "02020202-0202-0202-0202-020202020202-33686018");
        assert_eq!(shown(base::BOOLEAN, &[1]), "true");
        assert_eq!(of_base(base::INT64, &[1, 2], 8), None);
        assert_eq!(of_base(99, &[1, 2], 8), None);
    }

    #[test]
    fn codes_of_maps_have_their_texts() {
        let texts = [(0, "none"), (1, "one"), (4, "four")].map(|(code, text)| (code, Arc::from(text)));
        let map = |is_bits| Map { bytes: 4, is_bits, texts: texts.clone().into() };
        let text = |is_bits, code: u32| map(is_bits).value(&code.to_le_bytes()).to_string();
        assert_eq!(
            [text(false, 4), text(false, 5), text(true, 5), text(true, 7), text(true, 0)],
            ["four", "5", "one,four", "one,2,four", "none"]
        );
    }

    #[test]
    fn values_that_overlap_make_no_more_than_the_event_has() {
        let mut metadata = Metadata::default();
        let type_id = (kind::TYPE << 28) | (base::BINARY << 10);
        metadata.types.insert(type_id, 0);
        let field = Field { name: Arc::from("data"), type_id, offset: 0 };
        let bytes = [8u32.to_le_bytes(), 92u32.to_le_bytes()].concat().into_iter().chain([7; 92]).collect::<Vec<u8>>();
        let mut payload = Payload::new(&bytes);
        assert_eq!(payload.field(&metadata, &field, 8), Value::Binary(vec![7; 92]));
        assert_eq!(payload.field(&metadata, &field, 8), Value::Undecoded(Vec::new()));
    }
}
