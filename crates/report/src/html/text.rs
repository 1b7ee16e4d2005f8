//! Text from a database, in the form that a page shows.

use crate::text_table::steers;

/// Maximum number of characters of a name or a message that are shown.
pub(crate) const MOST_CHARS: usize = 400;

/// `text` cut after [`MOST_CHARS`] characters. Control characters, and characters that change the direction of text,
/// are escaped.
pub(crate) fn shown(text: &str) -> String {
    shown_to(text, MOST_CHARS)
}

/// `text` escaped as [`shown`] does it, cut after `most` characters.
pub(crate) fn shown_to(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most {
            shown.push('…');
            break;
        }
        match c {
            _ if steers(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The number of bytes of database text that may still be added to a section of a page. Text is counted in its JSON
/// form. The budget prevents long names from making a page large.
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    /// The first `most` characters of `text`, as [`shown_to`] escapes them. If the escaped text exceeds the budget,
    /// returns `None` and sets the budget to zero.
    pub(crate) fn take(&mut self, text: &str, most: usize) -> Option<String> {
        let shown = shown_to(text, most);
        let left = self.left.checked_sub(bytes_in_json(&shown));
        self.left = left.unwrap_or(0);
        left.map(|_| shown)
    }

    /// Like [`Self::take`], but returns `…` if the text exceeds the budget.
    pub(crate) fn take_or_cut(&mut self, text: &str, most: usize) -> String {
        self.take(text, most).unwrap_or_else(|| "…".to_owned())
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }
}

/// The length of a shown text as a JSON string in a page, including the comma after it.
fn bytes_in_json(shown: &str) -> usize {
    let bytes = |c: char| match c {
        '<' => "\\u003c".len(),
        '"' | '\\' => 2,
        c => c.len_utf8(),
    };
    "\"\",".len() + shown.chars().map(bytes).sum::<usize>()
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

    #[test]
    fn a_budget_counts_bytes_as_they_stand_in_a_page() {
        for text in ["plain", "<\"\\>", "\u{202e}\0", "名é"] {
            let mut json = Vec::new();
            serde_json::to_writer(crate::html::Escaped(&mut json), &shown(text)).unwrap();
            let bytes = json.len() + ",".len();
            let mut budget = Budget::new(bytes);
            assert_eq!(budget.take(text, MOST_CHARS), Some(shown(text)));
            assert!(budget.is_spent(), "{text}");
            let mut budget = Budget::new(bytes - 1);
            assert_eq!(budget.take(text, MOST_CHARS), None);
            assert_eq!(budget.take_or_cut("a", MOST_CHARS), "…");
        }
    }
}
