//! Tables with aligned columns, and texts in which control characters are escaped.

use std::borrow::Cow;
use std::io;

use unicode_width::UnicodeWidthStr;

/// `text` with control characters escaped. Names come from the checked files, and must not control the terminal or
/// break a line.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers) {
        let escape = |c: char| if steers(c) { c.escape_unicode().to_string() } else { c.to_string() };
        Cow::Owned(text.chars().map(escape).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a character controls the terminal, or changes the direction of the text after it. A changed direction could
/// make one name look like another name.
pub fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// The columns that `text` occupies on a terminal: two for a CJK character, none for a combining mark.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` padded with spaces to a width of `columns`.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(width(text));
    format!("{text}{:blanks$}", "")
}

/// Rows of cells. The last column is not padded.
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
    right_aligned: &'static [usize],
}

impl TextTable {
    /// A table in which the columns `right_aligned` hold numbers.
    pub(crate) fn new(right_aligned: &'static [usize]) -> Self {
        Self { rows: Vec::new(), right_aligned }
    }

    pub(crate) fn row<I: IntoIterator<Item: Into<String>>>(&mut self, cells: I) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell.into()).into_owned()).collect());
    }

    /// Writes the rows, each indented by `indent` spaces, with two spaces between columns.
    pub(crate) fn write(&self, indent: usize, out: &mut dyn io::Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (column, (cell, widest)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(widest.saturating_sub(width(cell)));
                match self.right_aligned.contains(&column) {
                    true => line.extend([pad.as_str(), cell]),
                    false => line.extend([cell, pad.as_str()]),
                }
                line.push_str("  ");
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes the rows in at most `most` columns. If a line would be wider, the last cell of every row, which is a name
    /// that cannot be broken, is written on a line of its own.
    pub(crate) fn write_within(&self, indent: usize, most: usize, out: &mut dyn io::Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.write(indent, &mut text)?;
        if String::from_utf8_lossy(&text).lines().all(|line| width(line) <= most) {
            return out.write_all(&text);
        }
        let split = |row: &Vec<String>| row.split_last().map(|(last, others)| (others.to_vec(), last.clone()));
        let (others, last): (Vec<_>, Vec<_>) = self.rows.iter().filter_map(split).unzip();
        let mut text = Vec::new();
        Self { rows: others, right_aligned: self.right_aligned }.write(indent, &mut text)?;
        for (line, last) in String::from_utf8_lossy(&text).lines().zip(last) {
            if !line.is_empty() {
                writeln!(out, "{line}")?;
            }
            writeln!(out, "{:indent$}  {last}", "")?;
        }
        Ok(())
    }
}

/// `text` wrapped at spaces into lines of at most `most` columns. A longer word is not broken.
pub(crate) fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("Orders"), "Orders");
        assert_eq!(printable("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\u{a}b");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b", "text that runs backwards passes for another");
    }

    #[test]
    fn columns_align() {
        let mut table = TextTable::new(&[1]);
        table.row(["name", "rows"]);
        table.row(["a", "1234567"]);
        let mut out = Vec::new();
        table.write(1, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " name     rows\n a     1234567\n");
    }

    #[test]
    fn a_name_that_does_not_fit_has_a_line_of_its_own() {
        let mut table = TextTable::new(&[]);
        table.row(["Log", "2024-03-01 13:10:00", "a_long_name.trn"]);
        table.row(["", "", "+ another.trn"]);
        let write = |most: usize| {
            let mut out = Vec::new();
            table.write_within(2, most, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            write(80),
            "  Log  2024-03-01 13:10:00  a_long_name.trn\n                            + another.trn\n"
        );
        assert_eq!(write(30), "  Log  2024-03-01 13:10:00\n    a_long_name.trn\n    + another.trn\n");
    }

    #[test]
    fn columns_align_by_what_names_take_on_a_terminal() {
        let mut table = TextTable::new(&[]);
        table.row(["name", "pages"]);
        // The first name has three characters and six columns. The second name has five characters and four columns,
        // because one character is a combining mark.
        table.row(["\u{6ce8}\u{6587}\u{8868}", "1"]);
        table.row(["Cafe\u{301}", "2"]);
        let mut out = Vec::new();
        table.write(0, &mut out).unwrap();
        let expected = "name    pages\n\u{6ce8}\u{6587}\u{8868}  1\nCafe\u{301}    2\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(padded("\u{8868}", 4), "\u{8868}  ");
    }

    #[test]
    fn text_wraps_at_blanks() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 3), ["unbreakable"]);
    }
}
