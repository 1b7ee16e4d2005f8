//! Text of a database as a page shows it.

/// Characters of a name or a message that are shown.
pub(super) const MOST_CHARS: usize = 400;

/// `text` with control characters and those that change the direction of text escaped, cut after some hundred characters.
pub(super) fn shown(text: &str) -> String {
    shown_to(text, MOST_CHARS)
}

/// The same, cut after `most` characters.
pub(super) fn shown_to(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most {
            shown.push('…');
            break;
        }
        match c {
            _ if c.is_control() || turns(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character changes the direction of the text around it.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_reader_is_shown_as_what_it_is() {
        assert_eq!(shown("a\0b\n\u{202e}c é 表"), "a\\u{0}b\\u{a}\\u{202e}c é 表");
        assert_eq!(shown(&"x".repeat(4000)).chars().count(), MOST_CHARS + 1);
        assert_eq!(shown_to("abc", 3), "abc");
    }
}
