//! Writes the results of several databases, one after another, to one output.

use std::io::{self, Write};

use report::Format;

/// An output for the results of several databases.
pub(super) struct Blocks<'o> {
    format: Format,
    out: &'o mut dyn Write,
    /// Whether the line with the column names was written.
    has_columns: bool,
}

impl<'o> Blocks<'o> {
    pub(super) fn new(format: Format, out: &'o mut dyn Write) -> Self {
        Self { format, out, has_columns: false }
    }

    /// Writes the results of one database. In a text format, a heading precedes the results and an empty line follows
    /// them, unless the results are empty.
    ///
    /// # Errors
    /// Errors of `write` and of the output.
    pub(super) fn block<T>(
        &mut self,
        heading: String,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        let is_text = !matches!(self.format, Format::Json | Format::TableResults(_));
        let mut block = Block {
            heading: is_text.then_some(heading),
            skips_line: self.has_columns && matches!(self.format, Format::TableResults(_)),
            is_empty: true,
            out: self.out,
        };
        let written = write(&mut block);
        let is_empty = block.is_empty;
        self.has_columns |= !is_empty;
        if is_text && !is_empty {
            writeln!(self.out)?;
        }
        // Flushes, so that these results are visible even if the next check fails.
        self.out.flush()?;
        written
    }

    /// Returns the output, for text that follows the results of all databases.
    pub(super) fn end(self) -> &'o mut dyn Write {
        self.out
    }
}

struct Block<'o> {
    /// The heading. It is written before the first byte of the results, and is `None` after that.
    heading: Option<String>,
    /// Whether to skip the first line, which repeats the column names.
    skips_line: bool,
    is_empty: bool,
    out: &'o mut dyn Write,
}

impl Write for Block<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.is_empty = false;
        if let Some(heading) = self.heading.take() {
            writeln!(self.out, "{heading}")?;
        }
        let rest = match (self.skips_line, bytes.iter().position(|&byte| byte == b'\n')) {
            (true, None) => &[],
            (true, Some(end)) => {
                self.skips_line = false;
                bytes.get(end + 1..).unwrap_or_default()
            }
            (false, _) => bytes,
        };
        self.out.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, blocks: &[&[&str]]) -> String {
        let mut out = Vec::new();
        let mut all = Blocks::new(format, &mut out);
        for (number, parts) in blocks.iter().enumerate() {
            let write = |out: &mut dyn Write| parts.iter().try_for_each(|part| out.write_all(part.as_bytes()));
            all.block(format!("heading {number}"), write).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_no_results_has_no_heading() {
        let text = written(Format::Text, &[&["a\n", "b\n"], &[], &[""], &["c\n"]]);
        assert_eq!(text, "heading 0\na\nb\n\nheading 3\nc\n\n");
        assert_eq!(written(Format::Json, &[&["{}\n"], &["{}\n"]]), "{}\n{}\n");
    }

    #[test]
    fn rows_are_under_one_line_of_columns() {
        let rows = written(
            Format::TableResults(report::Columns::default()),
            &[&[], &["A,B\n1,", "2\n"], &["A", ",B\n3,4\n5,6\n"], &["A,B\n"]],
        );
        assert_eq!(rows, "A,B\n1,2\n3,4\n5,6\n");
    }
}
