//! A stored string as a sequence of characters.

use super::code_pages::{HighHalf, high_half};
use super::{CollationId, Encoding};

/// A string with one or two bytes for each character.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    /// The number of bytes in a character: 1 or 2.
    width: usize,
    /// The characters of the bytes 0x80 to 0xFF, if each of these bytes is one character.
    high_half: Option<&'static HighHalf>,
}

impl<'a> Text<'a> {
    pub(super) fn of(bytes: &'a [u8], collation: CollationId, encoding: Encoding) -> Self {
        match encoding {
            Encoding::Ansi => Self { bytes, width: 1, high_half: high_half(collation) },
            Encoding::Unicode => Self { bytes, width: 2, high_half: None },
        }
    }

    /// The code units of nchar, or the bytes of char.
    pub(super) fn raw_units(self) -> impl DoubleEndedIterator<Item = u16> + Clone + 'a {
        self.bytes.chunks_exact(self.width).map(|unit| match unit {
            [low, high] => u16::from_le_bytes([*low, *high]),
            _ => unit.first().copied().unwrap_or_default().into(),
        })
    }

    pub(super) fn len(self) -> usize {
        self.bytes.len() / self.width
    }

    /// The UTF-16 unit of the character at this index; `Some(None)` for a byte that has no known character.
    #[inline]
    pub(super) fn get(self, at: usize) -> Option<Option<u16>> {
        if self.width == 2 {
            let pair = self.bytes.get(at.checked_mul(2)?..)?.first_chunk::<2>()?;
            return Some(Some(u16::from_le_bytes(*pair)));
        }
        Some(match *self.bytes.get(at)? {
            byte @ ..0x80 => Some(byte.into()),
            byte => self.high_half.and_then(|characters| characters.get(usize::from(byte & 0x7F)).copied().flatten()),
        })
    }

    pub(super) fn is_ascii(self) -> bool {
        self.raw_units().all(|unit| unit < 0x80)
    }

    /// The characters from `start` up to `end`, or up to the end of the string if it ends before `end`.
    pub(super) fn between(self, start: usize, end: usize) -> Self {
        let end = end.min(self.len()) * self.width;
        Self { bytes: self.bytes.get(start * self.width..end).unwrap_or_default(), ..self }
    }

    /// The string without trailing blanks, which comparisons ignore.
    pub(super) fn trimmed(self) -> Self {
        let blanks = self.raw_units().rev().take_while(|unit| *unit == 0x20).count();
        Self { bytes: self.bytes.get(..(self.len() - blanks) * self.width).unwrap_or_default(), ..self }
    }
}
