//! The encoding of data in a page: JSON that cannot contain the start of a tag, and bytes as base64.

use std::io::{self, Write};

/// A writer that escapes each `<` in JSON. The character occurs only in strings.
pub(crate) struct Escaped<'o>(pub(crate) &'o mut dyn Write);

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|byte| *byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Number of bytes of base64 to collect before they are written.
const BUFFER_BYTES: usize = 1 << 14;

/// A writer that encodes bytes as base64.
pub(crate) struct Base64<'o> {
    out: &'o mut dyn Write,
    /// The bytes that do not yet form a whole group of three.
    group: [u8; 3],
    length: usize,
    text: Vec<u8>,
}

impl<'o> Base64<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, group: [0; 3], length: 0, text: Vec::with_capacity(BUFFER_BYTES + 4) }
    }

    fn push(&mut self) {
        let [a, b, c] = self.group.map(u32::from);
        let bits = a << 16 | b << 8 | c;
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            let is_filled = digit as usize <= self.length;
            self.text.push(if is_filled { DIGITS.get(value as usize).copied().unwrap_or(b'=') } else { b'=' });
        }
        (self.group, self.length) = ([0; 3], 0);
    }

    /// Writes the last group, which may be unfinished, and flushes the output.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.length > 0 {
            self.push();
        }
        self.flush()
    }
}

impl Write for Base64<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if let Some(place) = self.group.get_mut(self.length) {
                *place = *byte;
            }
            self.length += 1;
            if self.length == self.group.len() {
                self.push();
            }
            if self.text.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Appends a number with seven bits per byte, lowest bits first. The high bit is set in every byte except the last.
pub(crate) fn push_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, expected) in vectors {
            let mut text = Vec::new();
            let mut encoder = Base64::new(&mut text);
            encoder.write_all(plain.as_bytes()).unwrap();
            encoder.finish().unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }

    #[test]
    fn json_begins_no_tag() {
        let mut text = Vec::new();
        serde_json::to_writer(Escaped(&mut text), &["</script><!--<", "a"]).unwrap();
        assert_eq!(String::from_utf8(text.clone()).unwrap(), r#"["\u003c/script>\u003c!--\u003c","a"]"#);
        let back: Vec<String> = serde_json::from_slice(&text).unwrap();
        assert_eq!(back, ["</script><!--<", "a"]);
    }
}
