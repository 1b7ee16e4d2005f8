//! Converts texts to UTF-8.

use encoding_rs::{CoderResult, Decoder};

use super::code_page::CodePage;
use crate::Unreadable;

/// The replacement for anything that is not a valid character.
pub(super) const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// The encoding in which a text is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// UTF-16LE.
    Utf16,
    /// Bytes of a code page.
    Ansi(CodePage),
}

/// Appends UTF-16 as UTF-8; returns true if it replaced an unpaired surrogate. An odd number of bytes is not a valid
/// text, but it may be a text that the client encrypted.
#[inline]
pub(crate) fn utf16(bytes: &[u8], into: &mut Vec<u8>) -> Result<bool, Unreadable> {
    if !bytes.len().is_multiple_of(2) {
        let is_encrypted = format::domain::may_be_encrypted(bytes);
        return Err(if is_encrypted { Unreadable::Undocumented } else { Unreadable::Impossible });
    }
    let rest = ascii_start(bytes, into);
    if rest.is_empty() { Ok(false) } else { Ok(wide(rest, into)) }
}

/// Appends the ASCII characters at the start of the text, eight at a time, and returns the remaining bytes.
#[inline]
fn ascii_start<'b>(bytes: &'b [u8], into: &mut Vec<u8>) -> &'b [u8] {
    const OTHERS: u128 = 0xFF80_FF80_FF80_FF80_FF80_FF80_FF80_FF80;
    into.reserve(bytes.len() / 2);
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<16>() {
        if u128::from_le_bytes(*chunk) & OTHERS != 0 {
            return rest;
        }
        let [a, _, b, _, c, _, d, _, e, _, f, _, g, _, h, _] = *chunk;
        into.extend_from_slice(&[a, b, c, d, e, f, g, h]);
        rest = after;
    }
    if let Some((chunk, after)) = rest.split_first_chunk::<8>()
        && u64::from_le_bytes(*chunk) & OTHERS as u64 == 0
    {
        let [a, _, b, _, c, _, d, _] = *chunk;
        into.extend_from_slice(&[a, b, c, d]);
        rest = after;
    }
    while let Some(([low, high], after)) = rest.split_first_chunk::<2>() {
        if *high != 0 || !low.is_ascii() {
            return rest;
        }
        into.push(*low);
        rest = after;
    }
    rest
}

/// Appends UTF-16 that may contain non-ASCII characters.
fn wide(bytes: &[u8], into: &mut Vec<u8>) -> bool {
    let mut altered = false;
    let units = bytes.chunks_exact(2).map(|pair| pair.first_chunk().map_or(0, |pair| u16::from_le_bytes(*pair)));
    for unit in char::decode_utf16(units) {
        let character = unit.unwrap_or_else(|_| {
            altered = true;
            char::REPLACEMENT_CHARACTER
        });
        into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    altered
}

/// Converts a text that comes in pieces to UTF-8.
pub(crate) struct TextStream {
    state: State,
    /// The length of the stored value in bytes; `None` after the first piece.
    stored_bytes: Option<u64>,
    altered: bool,
    fault: Option<Unreadable>,
}

enum State {
    /// The bytes of an incomplete character, at most three.
    Utf16(Vec<u8>),
    Decoder(Box<Decoder>),
    /// A code page without a stateful decoder: each byte is a character.
    Single(CodePage),
}

impl TextStream {
    /// A stream for a text that is stored in `stored_bytes` bytes.
    pub(crate) fn new(form: Form, stored_bytes: u64) -> Self {
        let state = match form {
            Form::Utf16 => State::Utf16(Vec::new()),
            Form::Ansi(page) => match page.encoding() {
                Some(encoding) => State::Decoder(Box::new(encoding.new_decoder_without_bom_handling())),
                None => State::Single(page),
            },
        };
        Self { state, stored_bytes: Some(stored_bytes), altered: false, fault: None }
    }

    /// The reason why the text cannot be read, if there is one.
    pub(crate) fn fault(&self) -> Option<Unreadable> {
        self.fault
    }

    /// Appends the characters that this piece completes.
    pub(crate) fn push(&mut self, piece: &[u8], into: &mut Vec<u8>) {
        if let Some(stored_bytes) = self.stored_bytes.take_if(|_| !piece.is_empty()) {
            let is_encrypted = !piece.is_ascii() && format::domain::may_begin_encrypted(piece, stored_bytes);
            self.fault = is_encrypted.then_some(Unreadable::Undocumented);
        }
        if self.fault.is_some() {
            return;
        }
        match &mut self.state {
            State::Utf16(waiting) => {
                waiting.extend_from_slice(piece);
                let mut whole = waiting.len() & !1;
                let last = waiting.get(..whole).and_then(<[u8]>::last_chunk::<2>);
                if last.is_some_and(|last| matches!(u16::from_le_bytes(*last), 0xD800..=0xDBFF)) {
                    whole -= 2;
                }
                let rest = ascii_start(waiting.get(..whole).unwrap_or_default(), into);
                self.altered |= wide(rest, into);
                waiting.drain(..whole);
            }
            State::Decoder(decoder) => self.altered |= decode(decoder, piece, false, into),
            State::Single(page) => match page.decode(piece, into) {
                Ok(altered) => self.altered |= altered,
                Err(why) => self.fault = Some(why),
            },
        }
    }

    /// Appends the remaining characters; returns true if any character of the text was replaced.
    pub(crate) fn finish(mut self, into: &mut Vec<u8>) -> Result<bool, Unreadable> {
        match &mut self.state {
            State::Utf16(waiting) => self.altered |= utf16(waiting, into)?,
            State::Decoder(decoder) => self.altered |= decode(decoder, &[], true, into),
            State::Single(_) => {}
        }
        match self.fault {
            Some(why) => Err(why),
            None => Ok(self.altered),
        }
    }
}

/// Appends the output of a decoder; returns true if it replaced any bytes.
pub(super) fn decode(decoder: &mut Decoder, mut bytes: &[u8], last: bool, into: &mut Vec<u8>) -> bool {
    let mut altered = false;
    let mut buffer = [0; 1024];
    loop {
        let (result, read, written, replaced) = decoder.decode_to_utf8(bytes, &mut buffer, last);
        into.extend_from_slice(buffer.get(..written).unwrap_or_default());
        altered |= replaced;
        bytes = bytes.get(read..).unwrap_or_default();
        if result == CoderResult::InputEmpty {
            return altered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn utf16_is_the_same_text_whole_and_in_pieces_of_any_length() {
        for text in ["", "a", "plain ascii of some length", "Zürich 東京 😀 and ascii that goes on", "😀"] {
            let bytes = units(text);
            let mut whole = Vec::new();
            assert_eq!(utf16(&bytes, &mut whole), Ok(false));
            assert_eq!(std::str::from_utf8(&whole), Ok(text));
            for length in 1..=bytes.len().max(1) {
                let (mut stream, mut text) = (TextStream::new(Form::Utf16, bytes.len() as u64), Vec::new());
                bytes.chunks(length).for_each(|piece| stream.push(piece, &mut text));
                assert_eq!(stream.finish(&mut text), Ok(false));
                assert_eq!(text, whole);
            }
        }
    }

    #[test]
    fn what_a_client_encrypted_is_no_text_however_long() {
        let value = |bytes: usize| [&[1u8][..], &vec![0xE4; bytes - 1]].concat();
        let pages = [CodePage::Windows(encoding_rs::WINDOWS_1252), CodePage::Oem850].map(Form::Ansi);
        for form in [Form::Utf16, pages[0], pages[1]] {
            for (stored_bytes, is_encrypted) in [(65, true), (66, false), (49 + (1 << 21), true)] {
                let (mut stream, mut text) = (TextStream::new(form, stored_bytes as u64), Vec::new());
                value(stored_bytes).chunks(8000).for_each(|piece| stream.push(piece, &mut text));
                assert_eq!(stream.finish(&mut text).is_err(), is_encrypted, "{form:?} of {stored_bytes} bytes");
                assert_eq!(text.is_empty(), is_encrypted);
            }
        }
    }

    #[test]
    fn an_unpaired_surrogate_is_replaced_and_counted() {
        let mut text = Vec::new();
        assert_eq!(utf16(&[0x3D, 0xD8, b'a', 0], &mut text), Ok(true));
        assert_eq!(text, "\u{FFFD}a".as_bytes());
        assert_eq!(utf16(&[1, 2, 3], &mut text), Err(Unreadable::Impossible));
    }
}
