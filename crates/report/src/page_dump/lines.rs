//! Lines of text and hexadecimal.

use std::ops::Range;

use format::PageBytes;
use format::page::PAGE_BYTES;
use format::render::hex;

use crate::text_table::printable;

/// Bytes per line of a hex dump.
const LINE: usize = 16;

/// Appends one line, without trailing spaces.
pub(super) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Column values may contain control characters, which must not reach the terminal.
    let text = text.to_string();
    let rest = text.trim_start_matches('\n');
    out.extend(std::iter::repeat_n('\n', text.len() - rest.len()));
    out.push_str(&printable(rest));
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

/// The whole page, as a hex dump.
pub(super) fn hex_page(page: &PageBytes) -> String {
    let mut out = String::new();
    for at in (0..PAGE_BYTES).step_by(LINE) {
        hex_line(&mut out, "", at, page.get(at..at + LINE).unwrap_or_default());
    }
    out
}

/// Appends the first `most` bytes of `range` as a hex dump, [`LINE`] bytes per line. An asterisk replaces lines that
/// equal the previous line.
pub(super) fn hex_lines(out: &mut String, indent: &str, page: &PageBytes, range: Range<usize>, most: usize) {
    let bytes = page.get(range.clone()).unwrap_or_default();
    let shown = bytes.get(..most).unwrap_or(bytes);
    let mut repeated = false;
    for (number, chunk) in shown.chunks(LINE).enumerate() {
        let previous = number.checked_sub(1).and_then(|previous| shown.chunks(LINE).nth(previous));
        if previous == Some(chunk) {
            // A run of repeated lines gets only one asterisk, as in the output of `hexdump`.
            if !repeated {
                line(out, format_args!("{indent}*"));
            }
            repeated = true;
            continue;
        }
        repeated = false;
        hex_line(out, indent, range.start + number * LINE, chunk);
    }
    if shown.len() < bytes.len() {
        line(out, format_args!("{indent}.. {} more bytes (--raw shows all)", bytes.len() - shown.len()));
    }
}

fn hex_line(out: &mut String, indent: &str, at: usize, bytes: &[u8]) {
    let (left, right) = bytes.split_at_checked(LINE / 2).unwrap_or((bytes, &[]));
    let digits = format!("{}  {}", hex(left, LINE), hex(right, LINE));
    let characters: String =
        bytes.iter().map(|byte| if (0x20..0x7F).contains(byte) { char::from(*byte) } else { '.' }).collect();
    line(out, format_args!("{indent}0x{at:04X}  {digits:<48}  {characters}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_row_steers_a_terminal() {
        let mut out = String::new();
        line(&mut out, format_args!("'{}'  ", "a\u{1b}[2Jb\u{202e}c\u{2067}d"));
        assert_eq!(out, "'a\\u{1b}[2Jb\\u{202e}c\\u{2067}d'\n");
    }
}
