//! Writes names, texts and comments in T-SQL.

/// A name in brackets, as `QUOTENAME` writes it. Servers do not allow a NUL in a name; if a damaged catalog has one, it
/// becomes U+FFFD.
///
/// ```
/// assert_eq!(script::quote("odd]name"), "[odd]]name]");
/// ```
pub fn quote(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]").replace('\0', "\u{FFFD}"))
}

/// A Unicode text in quotes.
///
/// ```
/// assert_eq!(script::quote_text("O'Neil"), "N'O''Neil'");
/// ```
pub fn quote_text(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// Whether some program begins a new line at this character. The line feed is not included, because all programs begin
/// a new line there.
pub(crate) fn is_line_break(char: char) -> bool {
    matches!(char, '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A comment on one line. No name from a file can end it.
///
/// ```
/// assert_eq!(script::comment("a */ DROP TABLE"), "/* a * / DROP TABLE */");
/// assert_eq!(script::comment("a\u{2028}GO"), "/* a GO */");
/// ```
pub fn comment(text: &str) -> String {
    let text: String =
        text.chars().map(|char| if char.is_control() || is_line_break(char) { ' ' } else { char }).collect();
    // sqlcmd replaces variables even in comments.
    format!("/* {} */", text.replace("*/", "* /").replace("/*", "/ *").replace("$(", "$ ("))
}
