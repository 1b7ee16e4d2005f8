//! Converts a hierarchyid to its path.
//!
//! A. Milazzo published the encoding ("How the SQL Server hierarchyid data type works"). Each number is stored in three
//! parts: a prefix that names the range of the number, the digits with fixed bits between them, and a last bit. The
//! last bit is 1 where a level ends and 0 where a dot follows. A number before a dot is increased by one before it is
//! stored.

use std::io::Write;

use crate::Unreadable;

/// Ranges of numbers, each with its first number and its bits from high to low. `x` is a bit of the number's distance
/// from the first number, and `T` is the last bit.
const PATTERNS: [(i64, &str); 13] = [
    (0, "01xxT"),
    (4, "100xxT"),
    (8, "101xxxT"),
    (16, "110xx0x1xxxT"),
    (80, "1110xxx0xxx0x1xxxT"),
    (1104, "11110xxxxx0xxx0x1xxxT"),
    (5200, "111110xxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxxT"),
    (4_294_972_496, "111111xxxxxxxxxxxxxx0xxxxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxxT"),
    (-8, "00111xxxT"),
    (-72, "0010xx0x1xxxT"),
    (-4168, "000110xxxxx0xxx0x1xxxT"),
    (-4_294_971_464, "000101xxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxxT"),
    (-281_479_271_682_120, "000100xxxxxxxxxxxxxx0xxxxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxxT"),
];

/// The length in bytes of the longest value of the type.
const MOST_BYTES: usize = 892;

/// Appends the path: `/` for the root, or for example `/1/2.5/`.
pub(super) fn path(bytes: &[u8], into: &mut Vec<u8>) -> Result<(), Unreadable> {
    if bytes.len() > MOST_BYTES {
        return Err(Unreadable::Impossible);
    }
    into.push(b'/');
    let mut bits = Bits { bytes, at: 0 };
    let mut is_open = false;
    while !bits.is_padding() {
        let (number, ends) = number(&mut bits).ok_or(Unreadable::Impossible)?;
        let end = if ends { '/' } else { '.' };
        write!(into, "{number}{end}").map_err(|_| Unreadable::Impossible)?;
        is_open = !ends;
    }
    // A path cannot end with a dot. The padding of the last byte has at most 7 bits.
    if is_open || bits.rest() >= 8 { Err(Unreadable::Impossible) } else { Ok(()) }
}

fn number(bits: &mut Bits<'_>) -> Option<(i64, bool)> {
    PATTERNS.iter().find_map(|(first, pattern)| {
        let mut reading = Bits { ..*bits };
        let (mut digits, mut ends) = (0_i64, false);
        for expected in pattern.bytes() {
            let bit = reading.next()?;
            match expected {
                b'x' => digits = digits << 1 | i64::from(bit),
                b'T' => ends = bit,
                fixed => (bit == (fixed == b'1')).then_some(())?,
            }
        }
        *bits = reading;
        Some((first + digits - i64::from(!ends), ends))
    })
}

struct Bits<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Bits<'_> {
    fn next(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte & (0x80 >> (self.at % 8)) != 0;
        self.at += 1;
        Some(bit)
    }

    fn rest(&self) -> usize {
        self.bytes.len() * 8 - self.at
    }

    /// Whether only zero bits remain, which pad the last byte.
    fn is_padding(&self) -> bool {
        let mut rest = Bits { ..*self };
        while let Some(bit) = rest.next() {
            if bit {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, Unreadable> {
        let mut into = Vec::new();
        path(bytes, &mut into)?;
        Ok(String::from_utf8(into).unwrap())
    }

    /// The values are from Microsoft's documentation and samples.
    #[test]
    fn published_values_are_their_paths() {
        assert_eq!(text(&[]).as_deref(), Ok("/"));
        assert_eq!(text(&[0x58]).as_deref(), Ok("/1/"));
        assert_eq!(text(&[0x5A, 0xC0]).as_deref(), Ok("/1/1/"));
        assert_eq!(text(&[0x5B, 0x40]).as_deref(), Ok("/1/2/"));
        assert_eq!(text(&[0x5A, 0xD6]).as_deref(), Ok("/1/1/1/"));
        assert_eq!(text(&[0x68]).as_deref(), Ok("/2/"));
        assert_eq!(text(&[0x78]).as_deref(), Ok("/3/"));
        assert_eq!(text(&[0x84]).as_deref(), Ok("/4/"));
    }

    #[test]
    fn what_is_no_path_is_impossible() {
        assert_eq!(text(&[0x50]), Err(Unreadable::Impossible), "a dot at the end");
        assert_eq!(text(&[0x01]), Err(Unreadable::Impossible));
        assert_eq!(text(&[0x58, 0]), Err(Unreadable::Impossible), "a byte of padding");
    }
}
