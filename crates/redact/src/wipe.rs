//! Replaces the letters, digits and other characters of bytes whose order does not matter. Equal bytes get equal new
//! bytes.

use crate::key::Key;

/// The least characters of a text within other bytes.
const LEAST_TEXT: usize = 4;
/// The first bytes of a document in binary XML, before its content.
const XML_HEADER: [u8; 2] = [0xDF, 0xFF];
const XML_HEADER_BYTES: usize = 5;

/// Replaces the bytes of a whole value.
pub(crate) fn wipe(value: &mut [u8], key: Key) {
    let from = if value.starts_with(&XML_HEADER) { XML_HEADER_BYTES.min(value.len()) } else { 0 };
    let mut stream = key.stream(key.hash_bytes(0x57, value));
    for chunk in value.get_mut(from..).unwrap_or_default().chunks_mut(8) {
        chunk.iter_mut().zip(stream.next().to_le_bytes()).for_each(|(byte, random)| *byte = other(*byte, random));
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
