//! Reads a text file line by line, in any encoding and with bounded memory.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use crate::text::Utf8;

/// Number of bytes to read of each line; lines of error logs that mean something to a reader are much shorter.
const LINE_BYTES: usize = 4096;

/// The lines of a text. Invalid bytes are replaced, and each line is cut to its first 4,096 bytes.
#[derive(Debug)]
pub struct Lines<R> {
    text: BufReader<Utf8<R>>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Begins to read a text in UTF-8 or UTF-16.
    pub fn new(input: R) -> Self {
        Self { text: BufReader::new(Utf8::new(input)), line: Vec::new() }
    }

    /// The next line without its line feed; `None` at the end of the text.
    ///
    /// # Errors
    /// Errors of the input.
    pub fn next_line(&mut self) -> io::Result<Option<Cow<'_, str>>> {
        self.line.clear();
        let mut is_any = false;
        loop {
            let bytes = self.text.fill_buf()?;
            if bytes.is_empty() {
                return Ok(is_any.then(|| String::from_utf8_lossy(&self.line)));
            }
            is_any = true;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            self.line.extend(part.iter().take(LINE_BYTES - self.line.len()));
            let used = part.len() + usize::from(end.is_some());
            self.text.consume(used);
            if end.is_some() {
                return Ok(Some(String::from_utf8_lossy(&self.line)));
            }
        }
    }
}
