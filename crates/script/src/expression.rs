//! Puts expressions of the catalog into statements in such a form that no expression can end the statement around it.

use crate::names;

/// The text of a condition, a default or a computed column, enclosed in parentheses that the text itself cannot close.
/// Returns `None` if a part of the text could become a separate statement. This is possible if a string, name, comment
/// or parenthesis in the text does not end, or if the text contains a semicolon, a NUL or an unmatched closing
/// parenthesis.
pub(crate) fn enclosed(text: &str) -> Option<String> {
    let text = text.trim();
    let bytes = text.as_bytes();
    if bytes.contains(&0) {
        return None;
    }
    let (mut at, mut depth, mut is_one) = (0, 0_usize, true);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        // `is_one` remains true only if the parenthesis that closes the first opening parenthesis is the last character
        // of the text.
        is_one &= at == 0 || depth > 0;
        at += match *rest.as_bytes() {
            [b'\'', ..] => delimited(rest, '\'')?,
            [b'"', ..] => delimited(rest, '"')?,
            [b'[', ..] => delimited(rest, ']')?,
            [b'-', b'-', ..] => line_comment(rest)?,
            [b'/', b'*', ..] => comment(rest)?,
            [b'(', ..] => {
                depth += 1;
                1
            }
            [b')', ..] => {
                depth = depth.checked_sub(1)?;
                1
            }
            [b';', ..] => return None,
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    let is_enclosed = is_one && bytes.first() == Some(&b'(');
    match depth {
        0 if text.is_empty() => None,
        0 if is_enclosed => Some(text.to_owned()),
        0 => Some(format!("({text})")),
        _ => None,
    }
}

/// The length of a delimited text in bytes, up to and including the closing character. A doubled closing character does
/// not end the text. `None` if the text does not end.
pub(crate) fn delimited(text: &str, close: char) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text.get(at..)?.find(close)? + 1;
        if !text.get(at..)?.starts_with(close) {
            return Some(at);
        }
        at += 1;
    }
}

/// The length in bytes of a `--` comment, including the line break. `None` if programs may disagree on where the line
/// ends.
pub(crate) fn line_comment(text: &str) -> Option<usize> {
    let end = text.find('\n')?;
    let line = text.get(..end)?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    (!line.contains(names::is_line_break)).then_some(end + 1)
}

/// The length in bytes of a `/* */` comment, which may contain nested comments. `None` if the comment does not end.
pub(crate) fn comment(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let rest = text.get(at..)?;
        let (open, close) = (rest.find("/*"), rest.find("*/")?);
        match open.filter(|open| *open < close) {
            Some(open) => {
                depth += 1;
                at += open + 2;
            }
            None => {
                depth -= 1;
                at += close + 2;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_the_catalog_are_as_they_were() {
        for text in [
            "((0))",
            "(getdate())",
            "([a]+[b]]);DROP])",
            "([a]=')' OR [b]='it''s (')",
            "(/* a ( /* ; */ */ [a]>(1))",
            "([a] -- )\n >(1))",
            "(\"a)\"=(1))",
        ] {
            assert_eq!(enclosed(text).as_deref(), Some(text));
        }
        assert_eq!(enclosed(" 0 ").as_deref(), Some("(0)"), "of an old server");
        assert_eq!(enclosed("(a) OR (b)").as_deref(), Some("((a) OR (b))"));
        assert_eq!(
            enclosed("(1=1) DROP TABLE [a]").as_deref(),
            Some("((1=1) DROP TABLE [a])"),
            "which no server takes"
        );
    }

    #[test]
    fn what_could_end_its_statement_is_no_expression() {
        for text in [
            "",
            "(0)) DROP TABLE a --",
            "(0",
            "'a",
            "[a",
            "(0) -- ",
            "/* a",
            "/* /* */",
            "0; DROP TABLE a",
            "(a))((b",
            "(1 -- \r) DROP TABLE a -- \n)",
            "(1 -- \u{2028}) DROP TABLE a -- \n)",
            "\"a",
        ] {
            assert_eq!(enclosed(text), None, "{text}");
        }
    }
}
