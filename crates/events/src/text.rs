//! Decodes text files of Windows and Linux to UTF-8.

use std::io::{self, Read};

/// Number of bytes per read.
const CHUNK: usize = 1 << 16;

/// Encoding of a text file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// UTF-8, possibly with some invalid bytes.
    Utf8,
    /// UTF-16, low byte first, as Windows writes it.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
}

impl Encoding {
    /// Detects the encoding from the first bytes of a file. Also returns the length of the byte order mark.
    pub fn of(start: &[u8]) -> (Self, usize) {
        match start {
            [0xFF, 0xFE, ..] => (Self::Utf16Le, 2),
            [0xFE, 0xFF, ..] => (Self::Utf16Be, 2),
            [0xEF, 0xBB, 0xBF, ..] => (Self::Utf8, 3),
            // Without a byte order mark, UTF-16 is detected by the first characters, which are ASCII in these files.
            [1..=0x7F, 0, 1..=0x7F, 0, ..] => (Self::Utf16Le, 0),
            [0, 1..=0x7F, 0, 1..=0x7F, ..] => (Self::Utf16Be, 0),
            _ => (Self::Utf8, 0),
        }
    }
}

/// Decodes a text in any [`Encoding`] to UTF-8. Invalid bytes become U+FFFD.
#[derive(Debug)]
pub(crate) struct Utf8<R> {
    input: R,
    encoding: Option<Encoding>,
    /// Bytes of the input that are not yet decoded: at most three between reads.
    raw: Vec<u8>,
    /// Decoded text. The next field is the offset of the first byte that the caller has not read yet.
    text: Vec<u8>,
    at: usize,
    is_at_end: bool,
}

impl<R: Read> Utf8<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, encoding: None, raw: Vec::new(), text: Vec::new(), at: 0, is_at_end: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        (self.at, self.is_at_end) = (0, true);
        self.text.clear();
        if (&mut self.input).take(CHUNK as u64).read_to_end(&mut self.raw)? > 0 {
            self.is_at_end = false;
        }
        let encoding = match self.encoding {
            Some(encoding) => encoding,
            None => {
                let (encoding, no_text) = Encoding::of(&self.raw);
                self.raw.drain(..no_text);
                *self.encoding.insert(encoding)
            }
        };
        let unit: fn([u8; 2]) -> u16 = match encoding {
            Encoding::Utf8 => {
                self.copy_utf8();
                return Ok(());
            }
            Encoding::Utf16Le => u16::from_le_bytes,
            Encoding::Utf16Be => u16::from_be_bytes,
        };
        let (pairs, rest) = self.raw.as_chunks::<2>();
        // The end of the chunk may split a surrogate pair. In this case, the first half of the pair is kept for the
        // next chunk.
        let is_cut = !self.is_at_end && pairs.last().is_some_and(|pair| (0xD800..0xDC00).contains(&unit(*pair)));
        let kept = rest.len() + if is_cut { 2 } else { 0 };
        let units = pairs.iter().take(pairs.len() - usize::from(is_cut)).map(|pair| unit(*pair));
        for unit in char::decode_utf16(units) {
            let letter = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.raw.drain(..self.raw.len() - kept);
        Ok(())
    }

    fn copy_utf8(&mut self) {
        let mut kept = 0;
        for chunk in self.raw.utf8_chunks() {
            self.text.extend_from_slice(chunk.valid().as_bytes());
            kept = 0;
            if !chunk.invalid().is_empty() {
                // The end of the chunk may split a character.
                let ends_here = self.raw.ends_with(chunk.invalid()) && chunk.invalid().len() < 4 && !self.is_at_end;
                match ends_here && is_start_of_character(chunk.invalid()) {
                    true => kept = chunk.invalid().len(),
                    false => self.text.extend_from_slice("\u{FFFD}".as_bytes()),
                }
            }
        }
        self.raw.drain(..self.raw.len() - kept);
    }
}

/// Whether these bytes are the start of a valid character, as opposed to invalid UTF-8.
fn is_start_of_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() && !self.is_at_end {
            self.fill()?;
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(rest) {
            *place = *byte;
        }
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        let mut text = String::new();
        Utf8::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_text_is_the_same_in_every_encoding() {
        // The text is longer than a chunk, and a surrogate pair crosses the end of each chunk.
        let text = "<é\u{1F600}>".to_owned() + &"\u{1F600}".repeat(CHUNK);
        let units = || text.encode_utf16();
        let le: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        assert!(read(&[&[0xFF, 0xFE], &le[..]].concat()) == text);
        assert!(read(&[&[0xFE, 0xFF], &be[..]].concat()) == text);
        assert!(read(text.as_bytes()) == text);
        assert!(read(&[&[0xEF, 0xBB, 0xBF], text.as_bytes()].concat()) == text);
        let ascii: Vec<u8> = "<event>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&ascii), "<event>");
    }

    #[test]
    fn halves_of_characters_do_no_harm() {
        assert_eq!(read(&[0xFF, 0xFE, b'a', 0, 0, 0xD8]), "a\u{FFFD}");
        assert_eq!(read(&[0xFF, 0xFE, b'a', 0, b'b']), "a");
        assert_eq!(read(b"a\xC3"), "a\u{FFFD}");
        assert_eq!(read(b"a\xFFb\xC3("), "a\u{FFFD}b\u{FFFD}(");
        assert_eq!(read(&[]), "");
    }
}
