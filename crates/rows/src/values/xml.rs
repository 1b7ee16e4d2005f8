//! Converts binary XML ([MS-BINXML]; docs/format/other-features.md#xml) to the text that SQL Server prints for it.

use std::io::Write;

use encoding_rs::Encoding;
use format::bytes::u32_at;

use super::text;
use crate::Unreadable;

/// Tokens of the document structure.
mod token {
    pub(super) const ELEMENT: u8 = 0xF8;
    pub(super) const END_ELEMENT: u8 = 0xF7;
    pub(super) const ATTRIBUTE: u8 = 0xF6;
    pub(super) const END_ATTRIBUTES: u8 = 0xF5;
    pub(super) const INSTRUCTION: u8 = 0xF4;
    pub(super) const COMMENT: u8 = 0xF3;
    pub(super) const CDATA: u8 = 0xF2;
    pub(super) const END_CDATA: u8 = 0xF1;
    pub(super) const NAME: u8 = 0xF0;
    pub(super) const QUALIFIED_NAME: u8 = 0xEF;
    pub(super) const EXTENSION: u8 = 0xEA;
    pub(super) const FLUSH_NAMES: u8 = 0xE9;
}

/// The longest text in bytes. A short token can represent a long name, so the text can be much longer than the stored
/// bytes. A text beyond this limit is treated as an attack.
const MOST_TEXT_BYTES: usize = 64 << 20;

/// Appends the document; returns true if a character was replaced.
pub(super) fn text(bytes: &[u8], into: &mut Vec<u8>) -> Result<bool, Unreadable> {
    let rest = match bytes {
        [] => return Ok(false),
        [0xDF, 0xFF, 1 | 2, 0xB0, 0x04, rest @ ..] => rest,
        _ => return Err(Unreadable::Undocumented),
    };
    let most = into.len() + MOST_TEXT_BYTES;
    let mut document = Document {
        rest,
        into,
        most,
        names: Vec::new(),
        qualified: Vec::new(),
        open: Vec::new(),
        state: State::Content,
        after_item: false,
        altered: false,
    };
    document.all()?;
    Ok(document.altered)
}

/// The part of the document to which text is appended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Content,
    /// Inside the tag of an element, after its name.
    Tag,
    /// Inside the value of an attribute.
    Value,
}

struct Document<'b, 'o> {
    rest: &'b [u8],
    into: &'o mut Vec<u8>,
    most: usize,
    /// The declared names; they are numbered from 1.
    names: Vec<&'b [u8]>,
    /// The declared qualified names, each with prefix and local name; they are numbered from 1.
    qualified: Vec<(&'b [u8], &'b [u8])>,
    /// The qualified names of the open elements.
    open: Vec<(&'b [u8], &'b [u8])>,
    state: State,
    /// Whether the last token was a value other than text. If the next token is such a value too, both are items of one
    /// list.
    after_item: bool,
    altered: bool,
}

impl<'b> Document<'b, '_> {
    fn all(&mut self) -> Result<(), Unreadable> {
        while let Some((&token, rest)) = self.rest.split_first() {
            self.rest = rest;
            self.token(token)?;
            if self.into.len() > self.most {
                return Err(Unreadable::TooLong);
            }
        }
        if self.open.is_empty() && self.state == State::Content { Ok(()) } else { Err(Unreadable::Impossible) }
    }

    fn token(&mut self, token: u8) -> Result<(), Unreadable> {
        let is_definition =
            matches!(token, token::NAME | token::QUALIFIED_NAME | token::EXTENSION | token::FLUSH_NAMES);
        if is_definition {
            return self.definition(token);
        }
        if token >= token::END_CDATA {
            self.after_item = false;
        }
        match token {
            token::ELEMENT => {
                self.begin_content()?;
                let name = self.qualified_name()?;
                self.into.push(b'<');
                self.put_name(name);
                self.open.push(name);
                self.state = State::Tag;
            }
            token::ATTRIBUTE => {
                self.end_value();
                if self.state != State::Tag {
                    return Err(Unreadable::Impossible);
                }
                let name = self.qualified_name()?;
                self.into.push(b' ');
                self.put_name(name);
                self.into.extend_from_slice(b"=\"");
                self.state = State::Value;
            }
            token::END_ATTRIBUTES => self.end_value(),
            token::END_ELEMENT => {
                self.end_value();
                let name = self.open.pop().ok_or(Unreadable::Impossible)?;
                if self.state == State::Tag {
                    self.into.extend_from_slice(b"/>");
                } else {
                    self.into.extend_from_slice(b"</");
                    self.put_name(name);
                    self.into.push(b'>');
                }
                self.state = State::Content;
            }
            token::COMMENT => {
                self.begin_content()?;
                self.into.extend_from_slice(b"<!--");
                let units = self.units()?;
                self.put_plain(units);
                self.into.extend_from_slice(b"-->");
            }
            token::INSTRUCTION => {
                self.begin_content()?;
                let name = self.name()?;
                self.into.extend_from_slice(b"<?");
                self.put_plain(name);
                let units = self.units()?;
                if !units.is_empty() {
                    self.into.push(b' ');
                    self.put_plain(units);
                }
                self.into.extend_from_slice(b"?>");
            }
            // SQL Server prints a CDATA section as ordinary text.
            token::CDATA => {
                self.begin_content()?;
                let units = self.units()?;
                self.put_text(units);
            }
            token::END_CDATA => {}
            value => self.value(value)?,
        }
        Ok(())
    }

    /// Reads the definition of a name, or another token that writes nothing.
    fn definition(&mut self, token: u8) -> Result<(), Unreadable> {
        match token {
            token::NAME => {
                let name = self.units()?;
                self.names.push(name);
            }
            token::QUALIFIED_NAME => {
                let (_, prefix, local) = (self.name()?, self.name()?, self.name()?);
                self.qualified.push((prefix, local));
            }
            token::EXTENSION => {
                let length = self.number()?;
                self.take(length)?;
            }
            _ => {
                self.names.clear();
                self.qualified.clear();
            }
        }
        Ok(())
    }

    /// Reads a value of an attribute or of element content.
    fn value(&mut self, token: u8) -> Result<(), Unreadable> {
        if self.state == State::Tag {
            self.begin_content()?;
        }
        let is_text = matches!(token, 0x0D | 0x0E | 0x10 | 0x11 | 0x16 | 0x18);
        if !is_text && self.after_item {
            self.into.push(b' ');
        }
        self.after_item = !is_text;
        match token {
            // nchar, nvarchar, ntext.
            0x0E | 0x11 | 0x18 => {
                let units = self.units()?;
                self.put_text(units);
                Ok(())
            }
            // char, varchar, text: the code page precedes the bytes.
            0x0D | 0x10 | 0x16 => {
                let length = self.number()?;
                let bytes = self.take(length)?;
                let page = u32_at(bytes, 0).ok_or(Unreadable::Impossible)?;
                let encoding = encoding_of(page).ok_or(Unreadable::Undocumented)?;
                let mut plain = Vec::new();
                let mut decoder = encoding.new_decoder_without_bom_handling();
                self.altered |= text::decode(&mut decoder, bytes.get(4..).unwrap_or_default(), true, &mut plain);
                self.escape(&plain);
                Ok(())
            }
            0x01 => self.array::<2>().map(|bytes| self.put(i16::from_le_bytes(bytes))),
            0x02 => self.array::<4>().map(|bytes| self.put(i32::from_le_bytes(bytes))),
            0x08 => self.array::<8>().map(|bytes| self.put(i64::from_le_bytes(bytes))),
            0x89 => self.array::<2>().map(|bytes| self.put(u16::from_le_bytes(bytes))),
            0x8A => self.array::<4>().map(|bytes| self.put(u32::from_le_bytes(bytes))),
            0x8B => self.array::<8>().map(|bytes| self.put(u64::from_le_bytes(bytes))),
            0x88 => self.array::<1>().map(|bytes| self.put(i8::from_le_bytes(bytes))),
            0x06 | 0x07 => self.array::<1>().map(|[byte]| self.put(byte)),
            0x86 => self.array::<1>().map(|[byte]| self.put(if byte == 0 { "false" } else { "true" })),
            0x09 => self.array::<16>().map(|bytes| self.put(format::types::guid_text(bytes))),
            0x0A | 0x0B | 0x87 => self.decimal(token == 0x87),
            // binary, varbinary, image, base64Binary.
            0x0C | 0x0F | 0x17 | 0x85 => {
                let length = self.number()?;
                let bytes = self.take(length)?;
                self.put_base64(bytes);
                Ok(())
            }
            0x84 => {
                let length = self.number()?;
                let bytes = self.take(length)?;
                bytes.iter().for_each(|byte| self.put(format_args!("{byte:02X}")));
                Ok(())
            }
            // real, float, money, and the date and time types of typed documents: it is undocumented how SQL Server
            // prints them.
            _ => Err(Unreadable::Undocumented),
        }
    }

    /// Reads a decimal: length, precision, scale, sign (1 = plus), then words of four bytes.
    fn decimal(&mut self, is_trimmed: bool) -> Result<(), Unreadable> {
        let [length] = self.array()?;
        let bytes = self.take(length.into())?;
        let Some((&[_, scale, sign], magnitude)) = bytes.split_first_chunk::<3>() else {
            return Err(Unreadable::Impossible);
        };
        let mut whole = [0; 16];
        whole.get_mut(..magnitude.len()).ok_or(Unreadable::Impossible)?.copy_from_slice(magnitude);
        let scale = usize::from(scale);
        if scale > 38 || sign > 1 {
            return Err(Unreadable::Impossible);
        }
        let digits = format!("{:0width$}", u128::from_le_bytes(whole), width = scale + 1);
        let (units, fraction) = digits.split_at_checked(digits.len() - scale).ok_or(Unreadable::Impossible)?;
        let fraction = if is_trimmed { fraction.trim_end_matches('0') } else { fraction };
        self.put(if sign == 0 { "-" } else { "" });
        self.put(units);
        if !fraction.is_empty() {
            self.put(format_args!(".{fraction}"));
        }
        Ok(())
    }

    /// Ends the start tag that is being written.
    fn begin_content(&mut self) -> Result<(), Unreadable> {
        if self.state == State::Value {
            return Err(Unreadable::Impossible);
        }
        if self.state == State::Tag {
            self.into.push(b'>');
            self.state = State::Content;
        }
        Ok(())
    }

    fn end_value(&mut self) {
        if self.state == State::Value {
            self.into.push(b'"');
            self.state = State::Tag;
        }
        self.after_item = false;
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Unreadable> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Unreadable::Impossible)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        self.take(N)?.try_into().map_err(|_| Unreadable::Impossible)
    }

    /// Reads a number with seven bits per byte, low bits first.
    fn number(&mut self) -> Result<usize, Unreadable> {
        let mut value = 0_u64;
        for position in 0..5 {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7F) << (7 * position);
            if byte & 0x80 == 0 {
                return usize::try_from(value).map_err(|_| Unreadable::Impossible);
            }
        }
        Err(Unreadable::Impossible)
    }

    /// Reads a UTF-16 text, which is preceded by its length in characters.
    fn units(&mut self) -> Result<&'b [u8], Unreadable> {
        let length = self.number()?.checked_mul(2).ok_or(Unreadable::Impossible)?;
        self.take(length)
    }

    /// Reads the number of a name and returns the name. Number 0 is the empty name.
    fn name(&mut self) -> Result<&'b [u8], Unreadable> {
        match self.number()?.checked_sub(1) {
            None => Ok(&[]),
            Some(at) => self.names.get(at).copied().ok_or(Unreadable::Impossible),
        }
    }

    fn qualified_name(&mut self) -> Result<(&'b [u8], &'b [u8]), Unreadable> {
        let at = self.number()?.checked_sub(1).ok_or(Unreadable::Impossible)?;
        self.qualified.get(at).copied().ok_or(Unreadable::Impossible)
    }

    fn put(&mut self, value: impl std::fmt::Display) {
        // Writing to memory does not fail.
        let _ = write!(self.into, "{value}");
    }

    fn put_name(&mut self, (prefix, local): (&[u8], &[u8])) {
        if !prefix.is_empty() {
            self.put_plain(prefix);
            // A default namespace is declared as `xmlns` without a local name.
            if !local.is_empty() {
                self.into.push(b':');
            }
        }
        self.put_plain(local);
    }

    fn put_plain(&mut self, units: &[u8]) {
        self.altered |= text::utf16(units, self.into).unwrap_or_default();
    }

    fn put_text(&mut self, units: &[u8]) {
        let start = self.into.len();
        self.put_plain(units);
        let is_special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\r' | b'\n' | b'\t');
        if self.into.get(start..).unwrap_or_default().iter().any(is_special) {
            let plain = self.into.split_off(start);
            self.escape(&plain);
        }
    }

    /// Appends text, with entities for the characters that SQL Server escapes.
    fn escape(&mut self, plain: &[u8]) {
        let is_value = self.state == State::Value;
        for byte in plain {
            match byte {
                b'&' => self.into.extend_from_slice(b"&amp;"),
                b'<' => self.into.extend_from_slice(b"&lt;"),
                b'>' => self.into.extend_from_slice(b"&gt;"),
                b'\r' => self.into.extend_from_slice(b"&#xD;"),
                b'"' if is_value => self.into.extend_from_slice(b"&quot;"),
                b'\n' if is_value => self.into.extend_from_slice(b"&#xA;"),
                b'\t' if is_value => self.into.extend_from_slice(b"&#x9;"),
                other => self.into.push(*other),
            }
        }
    }

    fn put_base64(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for chunk in bytes.chunks(3) {
            let mut whole = [0; 3];
            whole.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            let bits = u32::from_be_bytes([0, whole[0], whole[1], whole[2]]);
            for position in 0..4 {
                let digit = DIGITS.get((bits >> (18 - 6 * position) & 0x3F) as usize).copied().unwrap_or(b'=');
                self.into.push(if position <= chunk.len() { digit } else { b'=' });
            }
        }
    }
}

/// The encoding of a Windows code page; `None` if the code page is not supported.
fn encoding_of(page: u32) -> Option<&'static Encoding> {
    Some(match page {
        874 => encoding_rs::WINDOWS_874,
        932 => encoding_rs::SHIFT_JIS,
        936 => encoding_rs::GBK,
        949 => encoding_rs::EUC_KR,
        950 => encoding_rs::BIG5,
        1250 => encoding_rs::WINDOWS_1250,
        1251 => encoding_rs::WINDOWS_1251,
        1252 => encoding_rs::WINDOWS_1252,
        1253 => encoding_rs::WINDOWS_1253,
        1254 => encoding_rs::WINDOWS_1254,
        1255 => encoding_rs::WINDOWS_1255,
        1256 => encoding_rs::WINDOWS_1256,
        1257 => encoding_rs::WINDOWS_1257,
        1258 => encoding_rs::WINDOWS_1258,
        65001 => encoding_rs::UTF_8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
