//! The heading of a message: `Msg 8976, Level 16, State 1` or `Error: 824, Severity: 24, State: 2`, in any language.

use std::ops::RangeInclusive;

/// The levels of messages that have a heading. A lower number is part of a text that only looks like a heading, such as
/// `Object ID 0, index ID 1, partition ID 0`.
pub(crate) const LEVELS: RangeInclusive<u32> = 10..=25;
/// The message about a scheduler that does not yield. Error logs have it with severity 1.
const WITH_LOW_SEVERITY: u32 = 17883;
/// The labels of English clients, and those of English error logs.
const ENGLISH: [[&str; 3]; 2] = [["Msg ", " Level ", " State "], ["Error: ", " Severity: ", " State: "]];
/// Maximum number of characters in front of a number: `Msg`, `Schweregrad`, `серьезность`.
pub(crate) const LONGEST_LABEL: usize = 24;

/// A heading: three numbers, each behind a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Heading {
    pub(crate) number: u32,
    pub(crate) level: u8,
    pub(crate) state: u8,
    /// Whether the labels are those of an English client or error log.
    pub(crate) is_english: bool,
}

impl Heading {
    /// The heading at the start of a text, and the text behind its state.
    pub(crate) fn of(text: &str) -> Option<(Self, &str)> {
        let (first, number, rest) = labelled(text.trim_start())?;
        let (second, level, rest) = labelled(separated(rest)?)?;
        let (third, state, rest) = labelled(separated(rest)?)?;
        let is_level = LEVELS.contains(&level) || number == WITH_LOW_SEVERITY;
        let heading = Self {
            number,
            level: u8::try_from(level).ok().filter(|_| is_level)?,
            state: u8::try_from(state).ok()?,
            is_english: ENGLISH.contains(&[first, second, third]),
        };
        Some((heading, rest))
    }
}

/// A number behind a label: the label, the number and the text behind the number.
fn labelled(text: &str) -> Option<(&str, u32, &str)> {
    let (at, _) = text.char_indices().take(LONGEST_LABEL + 1).find(|(_, c)| c.is_ascii_digit())?;
    let (label, rest) = text.split_at_checked(at)?;
    let is_of_label = |c: char| c.is_alphabetic() || c.is_whitespace() || matches!(c, '.' | ':' | '：' | '\'' | '’');
    let is_label = label.chars().any(char::is_alphabetic) && label.chars().all(is_of_label);
    let (number, rest) = digits(rest).filter(|_| is_label)?;
    Some((label, number, rest))
}

/// The text behind a comma, in any script.
pub(crate) fn separated(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix([',', '，', '、', ';'])
}

/// The number at the start of a text, and the text behind it. `None` if there are more digits than a message number has.
pub(crate) fn digits(text: &str) -> Option<(u32, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(length).filter(|_| (1..=9).contains(&length))?;
    Some((number.parse().ok()?, rest))
}

/// The first bytes of a text, up to the end of a character.
pub(crate) fn start(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// The first bytes of a text without the blanks around it.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    start(text.trim(), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_an_owner_are_no_heading() {
        for text in [
            "Object ID 0, index ID -1, partition ID 0, alloc unit ID 72057594052476928 (type Unknown)",
            "Object ID 0, index ID 1, partition ID 0, alloc unit ID 0 (type Unknown)",
            "Objekt-ID 0, Index-ID 1, Partitions-ID 0",
            "对象 ID 0，索引 ID 1，分区 ID 0",
            "Msg 8976, Level 9, State 1",
            "Msg 8976, Level 26, State 1",
        ] {
            assert_eq!(Heading::of(text), None, "{text}");
        }
        let low = Heading::of("Error: 17883, Severity: 1, State: 0").map(|(heading, _)| heading.number);
        assert_eq!(low, Some(17883));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("aéé", 4), "aé");
        assert_eq!(cut(" aé ", 8), "aé");
    }
}
