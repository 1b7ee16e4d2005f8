//! The text of a file of results, in the encoding in which sqlcmd, SSMS or PowerShell wrote it.

use std::borrow::Cow;

use events::Encoding;

/// The text in `bytes`: UTF-8 or UTF-16, with or without a byte order mark. In other encodings, each byte becomes one
/// character. Message numbers, ids and page addresses are ASCII, so they are right in every encoding of a single byte.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let (encoding, mark) = Encoding::of(bytes);
    let bytes = bytes.get(mark..).unwrap_or_default();
    match encoding {
        Encoding::Utf8 => utf8(bytes),
        Encoding::Utf16Le => utf16(bytes, u16::from_le_bytes),
        Encoding::Utf16Be => utf16(bytes, u16::from_be_bytes),
    }
}

fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let units = bytes.chunks_exact(2).filter_map(|pair| Some(unit(pair.try_into().ok()?)));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_is_read_in_every_encoding() {
        let expected = "Error,Level\r\n8939,16\r\n";
        let units = |order: fn(u16) -> [u8; 2]| expected.encode_utf16().flat_map(order).collect::<Vec<u8>>();
        let (little, big) = (units(u16::to_le_bytes), units(u16::to_be_bytes));
        for bytes in [
            expected.as_bytes().to_vec(),
            [b"\xEF\xBB\xBF", expected.as_bytes()].concat(),
            [b"\xFF\xFE", little.as_slice()].concat(),
            [b"\xFE\xFF", big.as_slice()].concat(),
            little,
            big,
        ] {
            assert_eq!(text(&bytes), expected);
        }
    }

    #[test]
    fn numbers_stay_right_in_code_pages() {
        assert_eq!(text(b"Meldung 8928, Ebene 16\x84 (1:153)"), "Meldung 8928, Ebene 16\u{84} (1:153)");
        assert_eq!(text(b""), "");
        assert_eq!(text(b"\xFF\xFE1"), "", "half a character");
    }
}
