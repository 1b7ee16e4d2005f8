//! Names, texts and comments in T-SQL.

/// A name in brackets, as `QUOTENAME` writes it. Servers allow no NUL in a name; in a name from a damaged catalog it
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

/// Whether some programs begin a new line at this character. The line feed, at which all do, is not included.
pub(crate) fn is_line_break(char: char) -> bool {
    matches!(char, '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A comment on one line, which no name from a file can end.
///
/// ```
/// assert_eq!(script::comment("a */ DROP TABLE"), "/* a * / DROP TABLE */");
/// assert_eq!(script::comment("a\u{2028}GO"), "/* a GO */");
/// ```
pub fn comment(text: &str) -> String {
    let text: String =
        text.chars().map(|char| if char.is_control() || is_line_break(char) { ' ' } else { char }).collect();
    // sqlcmd replaces variables in comments too.
    format!("/* {} */", text.replace("*/", "* /").replace("/*", "/ *").replace("$(", "$ ("))
}
