//! SCSU, the standard compression scheme for Unicode (Unicode technical standard 6). Row compression uses it for nchar
//! and nvarchar values with an odd stored length (docs/format/compression.md#unicode).

/// A rule that an encoded text breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScsuFault {
    /// A byte that the standard reserves: 0C in single-byte mode, F2 in Unicode mode, or some window offsets.
    Reserved(u8),
    /// The text ends inside a sequence of several bytes, and at least two bytes of this sequence are present.
    Truncated,
}

/// The initial positions of the dynamic windows.
const DYNAMIC: [u32; 8] = [0x0080, 0x00C0, 0x0400, 0x0600, 0x0900, 0x3040, 0x30A0, 0xFF00];
/// The positions of the static windows.
const STATIC: [u32; 8] = [0x0000, 0x0080, 0x0100, 0x0300, 0x2000, 0x2080, 0x2100, 0x3000];
/// The window positions that the offset bytes F9 to FF select.
const NAMED: [u32; 7] = [0x00C0, 0x0250, 0x0370, 0x0530, 0x3040, 0x30A0, 0xFF60];

/// Decodes `encoded` and appends the text to `out` as UTF-16LE.
///
/// A last byte that completes no sequence is dropped, because the server appends one byte to a text of even encoded
/// length, to make the stored length odd.
///
/// ```
/// let mut out = Vec::new();
/// format::compressed::scsu::decode(&[0x12, 0x9C, 0xBE], &mut out).unwrap();
/// assert_eq!(format::bytes::utf16(&out), "Мо");
/// ```
pub fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Result<(), ScsuFault> {
    let mut decoder = Decoder { rest: encoded, windows: DYNAMIC, active: 0, unicode: false };
    while let Some(byte) = decoder.next() {
        let step = if decoder.unicode { decoder.pair(byte, out) } else { decoder.single(byte, out) };
        match step {
            // The byte just read is the last one and completes no sequence.
            Err(ScsuFault::Truncated) if decoder.rest.is_empty() => return Ok(()),
            Err(fault) => return Err(fault),
            Ok(()) => {}
        }
    }
    Ok(())
}

struct Decoder<'a> {
    rest: &'a [u8],
    windows: [u32; 8],
    active: usize,
    unicode: bool,
}

#[expect(clippy::indexing_slicing, reason = "a window is a number of three bits, a named place one of seven")]
impl Decoder<'_> {
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn operand(&mut self) -> Result<u8, ScsuFault> {
        self.next().ok_or(ScsuFault::Truncated)
    }

    fn operand_pair(&mut self) -> Result<u16, ScsuFault> {
        match self.rest.split_first_chunk::<2>() {
            Some((pair, rest)) => {
                self.rest = rest;
                Ok(u16::from_be_bytes(*pair))
            }
            None => Err(ScsuFault::Truncated),
        }
    }

    /// Decodes a byte in single-byte mode.
    fn single(&mut self, byte: u8, out: &mut Vec<u8>) -> Result<(), ScsuFault> {
        match byte {
            0x00 | 0x09 | 0x0A | 0x0D | 0x20..=0x7F => put_unit(byte.into(), out),
            0x80.. => put(self.in_window(byte), out),
            0x01..=0x08 => {
                let window = usize::from(byte - 0x01);
                let quoted = self.operand()?;
                let base = if quoted < 0x80 { STATIC[window] } else { self.windows[window] };
                put(base + u32::from(quoted & 0x7F), out);
            }
            0x0B => self.define_extended()?,
            0x0C => return Err(ScsuFault::Reserved(byte)),
            0x0E => put_unit(self.operand_pair()?, out),
            0x0F => self.unicode = true,
            0x10..=0x17 => self.active = usize::from(byte - 0x10),
            0x18..=0x1F => self.define(usize::from(byte - 0x18))?,
        }
        Ok(())
    }

    /// Decodes a byte in Unicode mode.
    fn pair(&mut self, byte: u8, out: &mut Vec<u8>) -> Result<(), ScsuFault> {
        match byte {
            0xE0..=0xE7 => {
                self.active = usize::from(byte - 0xE0);
                self.unicode = false;
            }
            0xE8..=0xEF => {
                self.define(usize::from(byte - 0xE8))?;
                self.unicode = false;
            }
            0xF0 => put_unit(self.operand_pair()?, out),
            0xF1 => {
                self.define_extended()?;
                self.unicode = false;
            }
            0xF2 => return Err(ScsuFault::Reserved(byte)),
            high => put_unit(u16::from_be_bytes([high, self.operand()?]), out),
        }
        Ok(())
    }

    fn in_window(&self, byte: u8) -> u32 {
        self.windows[self.active] + u32::from(byte - 0x80)
    }

    /// Moves a window to the position that the next byte gives, and selects it.
    fn define(&mut self, window: usize) -> Result<(), ScsuFault> {
        let offset = self.operand()?;
        self.windows[window] = match offset {
            0x01..=0x67 => u32::from(offset) * 0x80,
            0x68..=0xA7 => u32::from(offset) * 0x80 + 0xAC00,
            0xF9..=0xFF => NAMED[usize::from(offset - 0xF9)],
            _ => return Err(ScsuFault::Reserved(offset)),
        };
        self.active = window;
        Ok(())
    }

    /// Moves a window to a position above U+FFFF, and selects it.
    fn define_extended(&mut self) -> Result<(), ScsuFault> {
        let word = self.operand_pair()?;
        self.active = usize::from(word >> 13);
        self.windows[self.active] = 0x1_0000 + u32::from(word & 0x1FFF) * 0x80;
        Ok(())
    }
}

fn put_unit(unit: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&unit.to_le_bytes());
}

/// Appends a code point. No window reaches beyond 10FFFF.
fn put(point: u32, out: &mut Vec<u8>) {
    match u16::try_from(point) {
        Ok(unit) => put_unit(unit, out),
        Err(_) => {
            let offset = point - 0x1_0000;
            put_unit(0xD800 | (offset >> 10) as u16, out);
            put_unit(0xDC00 | (offset & 0x3FF) as u16, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::utf16;
    use proptest::prelude::*;

    fn decoded(encoded: &[u8]) -> Result<String, ScsuFault> {
        let mut out = Vec::new();
        decode(encoded, &mut out).map(|()| utf16(&out))
    }

    #[test]
    fn examples_of_the_standard() {
        assert_eq!(decoded(&[0xD6, 0x6C, 0x20, 0x66, 0x6C, 0x69, 0x65, 0xDF, 0x74]).unwrap(), "Öl fließt");
        assert_eq!(decoded(&[0x12, 0x9C, 0xBE, 0xC1, 0xBA, 0xB2, 0xB0]).unwrap(), "Москва");
        let all_features = [
            0x41, 0xDF, 0x12, 0x81, 0x03, 0x5F, 0x10, 0xDF, 0x1B, 0x03, 0xDF, 0x1C, 0x88, 0x80, 0x0B, 0xBF, 0xFF, 0xFF,
            0x0D, 0x0A, 0x41, 0x10, 0xDF, 0x12, 0x81, 0x03, 0x5F, 0x10, 0xDF, 0x13, 0xDF, 0x14, 0x80, 0x15, 0xFF,
        ];
        let six = "Aß\u{401}\u{15F}ß\u{1DF}\u{F000}\u{10FFFF}";
        assert_eq!(decoded(&all_features).unwrap(), format!("{six}\r\n{six}"));
        let japanese = [
            0x08, 0x00, 0x1B, 0x4C, 0xEA, 0x16, 0xCA, 0xD3, 0x94, 0x0F, 0x53, 0xEF, 0x61, 0x1B, 0xE5, 0x84, 0xC4, 0x0F,
            0x53, 0xEF, 0x61, 0x1B, 0xE5, 0x84, 0xC4, 0x16, 0xCA, 0xD3, 0x94, 0x08, 0x02, 0x0F, 0x53, 0x4A, 0x4E, 0x16,
            0x7D, 0x00, 0x30, 0x82, 0x52, 0x4D, 0x30, 0x6B, 0x6D, 0x41, 0x88, 0x4C, 0xE5, 0x97, 0x9F, 0x08, 0x0C, 0x16,
            0xCA, 0xD3, 0x94, 0x15, 0xAE, 0x0E, 0x6B, 0x4C, 0x08, 0x0D, 0x8C, 0xB4, 0xA3, 0x9F, 0xCA, 0x99, 0xCB, 0x8B,
            0xC2, 0x97, 0xCC, 0xAA, 0x84, 0x08, 0x02, 0x0E, 0x7C, 0x73, 0xE2, 0x16, 0xA3, 0xB7, 0xCB, 0x93, 0xD3, 0xB4,
            0xC5, 0xDC, 0x9F, 0x0E, 0x79, 0x3E, 0x06, 0xAE, 0xB1, 0x9D, 0x93, 0xD3, 0x08, 0x0C, 0xBE, 0xA3, 0x8F, 0x08,
            0x88, 0xBE, 0xA3, 0x8D, 0xD3, 0xA8, 0xA3, 0x97, 0xC5, 0x17, 0x89, 0x08, 0x0D, 0x15, 0xD2, 0x08, 0x01, 0x93,
            0xC8, 0xAA, 0x8F, 0x0E, 0x61, 0x1B, 0x99, 0xCB, 0x0E, 0x4E, 0xBA, 0x9F, 0xA1, 0xAE, 0x93, 0xA8, 0xA0, 0x08,
            0x02, 0x08, 0x0C, 0xE2, 0x16, 0xA3, 0xB7, 0xCB, 0x0F, 0x4F, 0xE1, 0x80, 0x05, 0xEC, 0x60, 0x8D, 0xEA, 0x06,
            0xD3, 0xE6, 0x0F, 0x8A, 0x00, 0x30, 0x44, 0x65, 0xB9, 0xE4, 0xFE, 0xE7, 0xC2, 0x06, 0xCB, 0x82,
        ];
        let text = decoded(&japanese).unwrap();
        assert_eq!(text.chars().count(), 116);
        assert!(text.starts_with("\u{3000}♪リンゴ可愛いや可愛いやリンゴ。半世紀も前に流行した"), "{text}");
        assert!(text.ends_with("なんて言い方まである。"), "{text}");
    }

    #[test]
    fn a_byte_that_fills_up_is_dropped() {
        assert_eq!(decoded(&[0x41, 0x42, 0x10]).unwrap(), "AB");
        assert_eq!(decoded(&[0x0F, 0x4E, 0x2D, 0x10]).unwrap(), "中", "in Unicode mode too");
        assert_eq!(decoded(&[]).unwrap(), "");
    }

    #[test]
    fn reserved_bytes_are_faults() {
        assert_eq!(decoded(&[0x0C]), Err(ScsuFault::Reserved(0x0C)));
        assert_eq!(decoded(&[0x18, 0x00]), Err(ScsuFault::Reserved(0x00)));
        assert_eq!(decoded(&[0x18, 0xA8]), Err(ScsuFault::Reserved(0xA8)));
        assert_eq!(decoded(&[0x0F, 0xF2]), Err(ScsuFault::Reserved(0xF2)));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused(encoded in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            if decode(&encoded, &mut out).is_ok() {
                // One byte becomes at most a surrogate pair, which has four bytes.
                prop_assert!(out.len().is_multiple_of(2) && out.len() <= 4 * encoded.len());
            }
        }

        #[test]
        fn text_in_unicode_mode_comes_back(text in "\\PC{0,40}") {
            // The simplest encoder: it stays in Unicode mode and quotes each character that would be read as a tag.
            let mut encoded = vec![0x0F];
            for unit in text.encode_utf16() {
                if (0xE0..=0xF2).contains(&(unit >> 8)) {
                    encoded.push(0xF0);
                }
                encoded.extend_from_slice(&unit.to_be_bytes());
            }
            prop_assert_eq!(decoded(&encoded).unwrap(), text);
        }
    }
}
