//! Text constants and batches that every script runner passes on unchanged.
//!
//! sqlcmd, osql and SSMS cut a script into batches at `GO` lines. These programs obey lines such as `:r FILE`, `!!dir`
//! and `exit`, and sqlcmd replaces `$(name)`. Some do so even within quotes, brackets and comments. The server itself
//! joins two lines of a constant if the first line ends with a backslash. A constant that contains such a line or
//! variable is therefore concatenated from parts.

use format::bytes::plain_start;

/// The words that are commands at the start of a line.
const COMMANDS: [&[u8]; 5] = [b"go", b"reset", b"ed", b"quit", b"exit"];
/// The number of letters in the longest command.
const LONGEST: usize = 5;
/// The text that ends one part of a constant and begins the next.
const BETWEEN: &[u8] = b"'+N'";
/// The expression for a NUL character, which no script runner is known to pass on.
const NUL: &[u8] = b"'+NCHAR(0)+N'";

/// Writes the text between `N'` and `'` of a text constant, with quotes doubled. Where a script runner would change the
/// text, the constant is split into parts that `+` concatenates. The text is UTF-8 and may be added in pieces of any
/// length.
///
/// ```
/// let (mut constant, mut out) = (script::Constant::default(), b"N'".to_vec());
/// constant.add(&mut out, b"It's\nGO\nno $(command)");
/// constant.finish(&mut out);
/// assert_eq!(out, b"N'It''s\n'+N'GO\nno $'+N'(command)");
/// assert!(constant.is_split());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Constant {
    /// Whether the current line of the text contains only blanks so far.
    at_line_start: bool,
    /// The letters at the start of the current line, as long as they may be the start of a command. They are held back
    /// and not written yet.
    word: [u8; LONGEST],
    letters: usize,
    last: u8,
    is_split: bool,
    /// Whether a script runner would change a part of the text.
    has_command: bool,
}

impl Constant {
    /// Adds a piece of the text.
    pub fn add(&mut self, out: &mut Vec<u8>, text: &[u8]) {
        let mut rest = text;
        while let Some((byte, after)) = rest.split_first() {
            if self.at_line_start || self.letters > 0 {
                if self.hold(*byte) {
                    rest = after;
                    continue;
                }
                self.release(out, *byte);
            }
            self.write(out, *byte);
            rest = if self.at_line_start { after } else { self.write_plain(out, after) };
        }
    }

    /// Writes the bytes up to the first byte that may have to be changed, and returns the remaining bytes.
    fn write_plain<'t>(&mut self, out: &mut Vec<u8>, text: &'t [u8]) -> &'t [u8] {
        let (plain, after) = text.split_at_checked(plain_start(text, changes)).unwrap_or((&[], text));
        out.extend_from_slice(plain);
        self.last = plain.last().copied().unwrap_or(self.last);
        after
    }

    /// Writes the letters that were held back at the end of the text.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.letters > 0 {
            self.release(out, b'\'');
        }
    }

    /// Whether the constant is concatenated from several parts.
    pub fn is_split(&self) -> bool {
        self.is_split
    }

    /// Holds back a letter at the start of a line, because it may begin a command. Returns `false` for any other byte.
    fn hold(&mut self, byte: u8) -> bool {
        let Some(place) = self.word.get_mut(self.letters).filter(|_| byte.is_ascii_alphabetic()) else { return false };
        *place = byte;
        self.letters += 1;
        true
    }

    /// Writes the letters that were held back at the start of a line. `next` is the byte after them.
    fn release(&mut self, out: &mut Vec<u8>, next: u8) {
        let word = self.word;
        let word = word.get(..self.letters).unwrap_or_default();
        let is_blank = word.is_empty() && matches!(next, b' ' | b'\t');
        let is_command = match word {
            [] => matches!(next, b':' | b'!'),
            word => !is_word(next) && COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(word)),
        };
        if is_command {
            self.has_command = true;
            self.split(out, BETWEEN);
        }
        out.extend_from_slice(word);
        if let Some(last) = word.last() {
            self.last = *last;
        }
        self.letters = 0;
        self.at_line_start = is_blank;
    }

    fn write(&mut self, out: &mut Vec<u8>, byte: u8) {
        let is_variable = (self.last, byte) == (b'$', b'(');
        let is_continued = self.last == b'\\' && matches!(byte, b'\n' | b'\r');
        self.has_command |= is_variable || byte == 0;
        if is_variable || is_continued {
            self.split(out, BETWEEN);
        }
        match byte {
            0 => self.split(out, NUL),
            b'\'' => out.extend_from_slice(b"''"),
            byte => out.push(byte),
        }
        self.last = byte;
        self.at_line_start |= ends_line(byte);
    }

    fn split(&mut self, out: &mut Vec<u8>, between: &[u8]) {
        out.extend_from_slice(between);
        self.is_split = true;
    }
}

/// Whether a program may begin a new line after this byte of UTF-8. U+0085, U+2028 and U+2029 end with bytes that also
/// end other characters. After those other characters, the constant may be split without need, which does no harm.
fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | 0x0B | 0x0C | 0x85 | 0xA8 | 0xA9)
}

/// Whether a byte in the middle of a line may have to be changed. The result is true for every byte that ends a line.
fn changes(byte: u8) -> bool {
    let is_control = byte <= b'\r' && byte != b'\t';
    is_control | (byte == b'\'') | (byte == b'(') | (byte == 0x85) | (byte & 0xFE == 0xA8)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@' | b'#' | b'$')
}

/// Whether script runners pass the whole text on unchanged, at any place in a statement.
///
/// ```
/// assert!(script::is_plain("CREATE VIEW [a]\nAS SELECT 1 AS [going]"));
/// assert!(!script::is_plain("CREATE VIEW [a\n  go -- ]") && !script::is_plain("GO"));
/// ```
pub fn is_plain(text: &str) -> bool {
    let (mut constant, mut out) = (Constant { at_line_start: true, ..Constant::default() }, Vec::new());
    constant.add(&mut out, text.as_bytes());
    constant.finish(&mut out);
    !constant.has_command
}

/// A statement as a separate batch, with the `GO` that ends it. A statement that a script runner would change is executed
/// with `EXEC`, which does not change its effect.
///
/// ```
/// assert_eq!(script::batch("DROP VIEW [a];\n"), "DROP VIEW [a];\nGO\n");
/// assert_eq!(script::batch("DROP VIEW [$(a)];"), "EXEC (N'DROP VIEW [$'+N'(a)];');\nGO\n");
/// ```
pub fn batch(statement: &str) -> String {
    let statement = statement.trim_end();
    if is_plain(statement) {
        return format!("{statement}\nGO\n");
    }
    let mut out = EXECUTE.as_bytes().to_vec();
    let mut constant = Constant::default();
    constant.add(&mut out, statement.as_bytes());
    constant.finish(&mut out);
    out.extend_from_slice(EXECUTED.as_bytes());
    // Text is split only between characters, so the output is valid UTF-8.
    String::from_utf8_lossy(&out).into_owned()
}

/// The start of a batch that executes a statement given as a constant.
pub const EXECUTE: &str = "EXEC (N'";
/// The end of a batch that begins with [`EXECUTE`].
pub const EXECUTED: &str = "');\nGO\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(pieces: &[&str]) -> String {
        let (mut constant, mut out) = (Constant::default(), Vec::new());
        pieces.iter().for_each(|piece| constant.add(&mut out, piece.as_bytes()));
        constant.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_constant_has_no_line_that_is_a_command() {
        for (text, expected) in [
            ("GO\nGO", "GO\n'+N'GO"),
            ("a\r\n\t go 5", "a\r\n\t '+N'go 5"),
            ("a\rexit", "a\r'+N'exit"),
            ("a\u{2028}Quit\u{85}ED;", "a\u{2028}'+N'Quit\u{85}'+N'ED;"),
            ("a\n:r x\n!!dir", "a\n'+N':r x\n'+N'!!dir"),
            ("a\ngoing\ngo2\nexiting\ngo_\n\ngood", "a\ngoing\ngo2\nexiting\ngo_\n\ngood"),
            ("$$(a)$ (b)", "$$'+N'(a)$ (b)"),
            ("a\\\nb\\\r\n\\n", "a\\'+N'\nb\\'+N'\r\n\\n"),
            ("a\ngo'", "a\n'+N'go''"),
            ("a\nb'c", "a\nb''c"),
            ("a\0b", "a'+NCHAR(0)+N'b"),
            ("a\nre", "a\nre"),
        ] {
            assert_eq!(constant(&[text]), expected);
            let characters: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(constant(&characters.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        }
    }

    #[test]
    fn a_batch_is_executed_from_a_constant_where_it_would_be_cut() {
        let plain = "CREATE PROC p AS\n  PRINT 'a\\\nb'\n  -- going\n";
        assert_eq!(batch(plain), format!("{}\nGO\n", plain.trim_end()));
        let cut = "CREATE VIEW [a\nGO\n:r c] AS SELECT '$(x)' AS x";
        let expected = "EXEC (N'CREATE VIEW [a\n'+N'GO\n'+N':r c] AS SELECT ''$'+N'(x)'' AS x');\nGO\n";
        assert_eq!(batch(cut), expected);
        assert!(is_plain(&expected.replace("GO\n", "")), "it has no line of its own");
    }
}
