//! Replaces the letters, digits and other characters of bytes whose order does not matter. Equal bytes get equal new
//! bytes.

use crate::key::{Key, Stream};
use crate::letters::{other_letter, range_of};

/// The least characters of a text within other bytes.
const LEAST_TEXT: usize = 4;
/// The first bytes of a document in binary XML, before its content.
const XML_HEADER: [u8; 2] = [0xDF, 0xFF];
const XML_HEADER_BYTES: usize = 5;

/// Replaces the bytes of a whole value.
pub(crate) fn wipe(value: &mut [u8], key: Key) {
    let is_document = value.starts_with(&XML_HEADER);
    let from = if is_document { XML_HEADER_BYTES.min(value.len()) } else { 0 };
    let mut stream = key.stream(key.hash_bytes(0x57, value));
    let value = value.get_mut(from..).unwrap_or_default();
    wipe_wide(value, if is_document { 1 } else { 2 }, &mut stream);
    for chunk in value.chunks_mut(8) {
        chunk.iter_mut().zip(stream.next().to_le_bytes()).for_each(|(byte, random)| *byte = other(*byte, random));
    }
}

/// Replaces letters of UTF-16 whose two bytes are no letters or digits of one byte, such as Cyrillic capitals. `step` is
/// the distance of the places where a letter may begin: in binary XML, one may begin anywhere.
fn wipe_wide(value: &mut [u8], step: usize, stream: &mut Stream) {
    let mut at = 0;
    while let Some(place @ &mut [low, high]) = value.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        let unit = u16::from_le_bytes([low, high]);
        match range_of(unit) {
            Some(range) if other(low, 0) == low && other(high, 0) == high => {
                *place = other_letter(unit, range, stream.next()).to_le_bytes();
                at += 2;
            }
            _ => at += step,
        }
    }
}

/// Another byte of the same kind: a capital, a small letter, a digit, or a byte from 0x80 on. Other bytes stay: they may
/// be the high bytes of UTF-16, lengths or zeros.
fn other(byte: u8, random: u8) -> u8 {
    let (first, count) = match byte {
        b'0'..=b'9' => (b'0', 10),
        b'A'..=b'Z' => (b'A', 26),
        b'a'..=b'z' => (b'a', 26),
        0x80..=0xFF => (0x80, 0x80),
        _ => return byte,
    };
    first + ((u16::from(byte - first) + 1 + u16::from(random) % (count - 1)) % count) as u8
}

/// Replaces the letters and digits of each text within other bytes: four or more printable ASCII characters in a row,
/// of one or two bytes each.
pub(crate) fn wipe_texts(bytes: &mut [u8], key: Key) {
    let mut from = 0;
    while from < bytes.len() {
        let rest = bytes.get(from..).unwrap_or_default();
        let narrow = rest.iter().take_while(|byte| is_printable(**byte)).count();
        let wide =
            2 * rest.as_chunks::<2>().0.iter().take_while(|[low, high]| is_printable(*low) && *high == 0).count();
        let length = if wide >= 2 * LEAST_TEXT {
            wide
        } else if narrow >= LEAST_TEXT {
            narrow
        } else {
            from += 1;
            continue;
        };
        if let Some(text) = bytes.get_mut(from..from + length) {
            wipe(text, key);
        }
        from += length;
    }
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_within_other_bytes_change() {
        let key = Key::from_seed(2);
        let old = *b"\x01\x02abc\x03Anna\x00B\x00e\x00r\x00t\x00\x00\x05";
        let mut new = old;
        wipe_texts(&mut new, key);
        assert_eq!((&new[..6], &new[10..11]), (&old[..6], &old[10..11]));
        assert!((6..10).all(|at| new[at] != old[at]) && (11..19).step_by(2).all(|at| new[at] != old[at]));
        assert!((12..20).step_by(2).all(|at| new[at] == 0));
    }

    #[test]
    fn letters_of_utf_16_change_whose_bytes_are_no_letters() {
        let key = Key::from_seed(2);
        for text in ["\u{410}\u{41d}\u{41d}\u{410}", "\u{e01}\u{e02}\u{e03}", "\u{627}\u{628}", "\u{4e2d}\u{5000}"] {
            let old: Vec<u16> = text.encode_utf16().collect();
            let mut bytes: Vec<u8> = old.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            let mut document = [&[0xDF, 0xFF, 1, 0xB0, 4, 1][..], &bytes].concat();
            wipe(&mut bytes, key);
            wipe(&mut document, key);
            for bytes in [&bytes, &document[6..]] {
                let new = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
                assert!(old.iter().zip(new).all(|(old, new)| *old != new), "{text} {bytes:02x?}");
            }
        }
        let mut lengths = [1, 0, 2, 0, 0x20, 3];
        wipe(&mut lengths, key);
        assert_eq!(lengths, [1, 0, 2, 0, 0x20, 3], "bytes that are no letters");
    }

    #[test]
    fn equal_values_stay_equal_and_documents_stay_documents() {
        let key = Key::from_seed(2);
        let document = [0xDF, 0xFF, 1, 0xB0, 4, b'x', 0, 200];
        let [mut one, mut other] = [document; 2];
        wipe(&mut one, key);
        wipe(&mut other, key);
        assert_eq!(one, other);
        assert_eq!(one[..5], document[..5]);
        assert!(one[5] != document[5] && one[6] == 0 && one[7] != document[7]);
    }
}
