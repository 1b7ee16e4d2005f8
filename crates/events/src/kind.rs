//! Identifies a file by its content, never by its name.

use std::io::Read;

use crate::text::Utf8;
use crate::{error_log, xel};

/// Number of bytes from the start of a file that [`identify`] reads.
pub const IDENTIFY_BYTES: usize = 1 << 16;

/// Kinds of files with events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An event file of Extended Events.
    Xel,
    /// Events as XML, with or without an enclosing element.
    Xml,
    /// An error log of SQL Server, or some lines of one.
    ErrorLog,
}

/// Identifies a file by its first bytes; `None` if it is not a file with events.
pub fn identify(start: &[u8]) -> Option<Kind> {
    if start.starts_with(&xel::MAGIC) {
        return Some(Kind::Xel);
    }
    let start = start.get(..IDENTIFY_BYTES).unwrap_or(start);
    let mut text = Vec::new();
    Utf8::new(start).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    // In an exported table, other columns may precede the events, so the tag may be anywhere in the text.
    let holds_events = ["<event ", "<events", "<RingBufferTarget"].iter().any(|tag| text.contains(tag));
    if holds_events && !text.contains('\0') {
        return Some(Kind::Xml);
    }
    text.lines().any(|line| error_log::Line::read(line).is_some()).then_some(Kind::ErrorLog)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        assert_eq!(identify(&[0x5A, 0x37, 0xAB, 0xEF, 10, 0]), Some(Kind::Xel));
        assert_eq!(identify(b"\xEF\xBB\xBF<RingBufferTarget truncated=\"0\">"), Some(Kind::Xml));
        assert_eq!(identify(b"event_data\r\n<event name=\"checkpoint_begin\">"), Some(Kind::Xml));
        assert_eq!(identify(b"2016-07-09 03:30:14.02 spid12s     Starting up database 'a'."), Some(Kind::ErrorLog));
        let wide: Vec<u8> = "<events><event >".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(identify(&[&[0xFF, 0xFE], &wide[..]].concat()), Some(Kind::Xml));
        for other in [&b""[..], b"<html>", b"2016", &[0; 100], b"\x01\x0F\x00\x00"] {
            assert_eq!(identify(other), None, "{other:?}");
        }
    }
}
