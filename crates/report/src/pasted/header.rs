//! Finds message numbers in a line of text: by the form of the line, which is the same in every language, and by the
//! words of messages that error logs print without a number.

use std::borrow::Cow;

use findings::registry::{self, Check};

use super::Explained;
use crate::heading::{Heading, LEVELS, LONGEST_LABEL, digits};

/// Maximum number of columns in front of the message, in exports of an error log.
const MOST_COLUMNS: usize = 8;
/// What replaces a comma in an export of SQL Server Management Studio.
const COMMA: &str = "<c/>";
/// Maximum number of message numbers in one line, as in the history of a job.
const MOST_IN_LINE: usize = 32;

/// The line that begins a message: `Msg 8976, Level 16, State 1` or `Error: 824, Severity: 24, State: 2.`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) number: u32,
    pub(super) state: Option<u8>,
}

/// The header in a line. In exports, columns may precede it, and `<c/>` replaces commas.
pub(super) fn header(text: &str) -> Option<Header> {
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let text: &str = &match text.contains(COMMA) {
        true => Cow::Owned(text.replace(COMMA, ",")),
        false => Cow::Borrowed(text),
    };
    let is_end = |c: char| matches!(c, ',' | ';' | '\t' | '"' | '|');
    let behind = text.match_indices(is_end).take(MOST_COLUMNS).map(|(at, end)| at + end.len());
    let known = |header: &Header| Explained::find(header.number, None).is_some();
    labelled_header(text)
        .or_else(|| row(text))
        .or_else(|| behind.filter_map(|at| labelled_header(text.get(at..)?)).find(known))
}

/// Three labels with numbers: message, severity, state.
fn labelled_header(text: &str) -> Option<Header> {
    let (heading, _) = Heading::of(text)?;
    Some(Header { number: heading.number, state: Some(heading.state) })
}

/// A row of TABLERESULTS: number, level and state are the first columns, or follow quotes.
fn row(text: &str) -> Option<Header> {
    let is_between = |c: char| matches!(c, '\t' | ',' | ';' | '|' | ' ' | '"');
    let (number, rest) = digits(text.trim_start_matches(is_between))?;
    let (level, rest) = digits(rest.strip_prefix(is_between)?.trim_start_matches(is_between))?;
    let (state, rest) = digits(rest.strip_prefix(is_between)?.trim_start_matches(is_between))?;
    let is_row = (rest.is_empty() || rest.starts_with(is_between)) && LEVELS.contains(&level);
    let state = u8::try_from(state).ok()?;
    (is_row && Explained::find(number, None).is_some()).then_some(Header { number, state: Some(state) })
}

/// The numbers inside a line: `(Error 3266)` in the history of a job, `(Microsoft SQL Server, Error: 926)` in a window,
/// `Event ID: 824` in an event log.
pub(super) fn inside(text: &str) -> Vec<u32> {
    const MARKS: [&str; 5] = ["(Error ", "SQL Server, ", "Event ID", "EventID", "Msg "];
    let behind =
        |mark: &'static str| text.match_indices(mark).filter_map(move |(at, mark)| text.get(at + mark.len()..));
    let number = |rest: &str| {
        let is_between = |c: char| c.is_alphabetic() || matches!(c, ' ' | ':' | '=' | '.');
        let (at, _) = rest.char_indices().take(LONGEST_LABEL).find(|(_, c)| !is_between(*c))?;
        let (number, _) = digits(rest.get(at..)?)?;
        Explained::find(number, None).map(|_| number)
    };
    MARKS.into_iter().flat_map(behind).filter_map(number).take(MOST_IN_LINE).collect()
}

/// Messages that logs and DBCC print without their number: parts of the text, in order, and the number.
const WITHOUT_NUMBER: [(&[&str], u16); 15] = [
    (&["DBCC ", " found ", " errors and repaired "], 8957),
    (&["DBCC ", " terminated abnormally due to error state "], 5235),
    (&["CHECKDB for database ", " finished without errors on "], 17573),
    (&[" found ", " allocation errors and ", " consistency errors in database "], 8989),
    (&[" found ", " allocation errors and ", " consistency errors in table "], 8990),
    (&[" found ", " allocation errors and ", " consistency errors not associated with "], 8954),
    (&[" is the minimum repair level for the errors found by "], 8958),
    (&[" is the minimal repair level for errors found by "], 8958),
    (&["I/O requests taking longer than "], 833),
    (&[" appears to be non-yielding on Scheduler "], 17883),
    (&["waiting for buffer latch", "Not continuing to wait"], 846),
    (&["waiting for buffer latch", "ontinuing to wait"], 844),
    (&["Timeout occurred while waiting for latch: "], 847),
    (&["DBCC encountered a page with an LSN greater than the current end of log"], 5278),
    (&["Write to sparse file ", " failed due to lack of disk space"], 5128),
];

/// The number of a message that is printed without it.
pub(super) fn by_words(text: &str) -> Option<u16> {
    let has = |parts: &[&str]| parts.iter().try_fold(text, |rest, part| Some(rest.split_once(part)?.1)).is_some();
    WITHOUT_NUMBER.iter().find(|(parts, _)| has(parts)).map(|(_, number)| *number)
}

/// The beginnings of messages about findings.
const STARTS: [&str; 9] = [
    "Table error: ",
    "Object ID ",
    "Extent (",
    "Page (",
    "Page errors on ",
    "The Index Allocation Map ",
    "Index Allocation Map ",
    "Chain sequence numbers ",
    "Database error: ",
];
/// Minimum number of letters that a text has in common with the message of a check.
const LEAST_IN_COMMON: usize = 30;

/// Whether a line may begin a message about a finding that was copied without its number.
pub(super) fn may_start_finding(text: &str) -> bool {
    STARTS.iter().any(|start| text.starts_with(start))
}

/// The check whose message a text is, without its number: the check whose fixed words occur in the text in order. If
/// there are several, the check with the most words.
pub(super) fn by_template(text: &str) -> Option<Header> {
    let in_common = |check: &Check| {
        let mut parts = check.template.split('{');
        let first = parts.next().into_iter();
        let words = first.chain(parts.filter_map(|part| Some(part.split_once('}')?.1)));
        let length = words.clone().map(str::len).sum::<usize>();
        let rest = words.into_iter().try_fold(text, |rest, part| Some(rest.split_once(part)?.1));
        rest.map(|_| length).filter(|length| *length >= LEAST_IN_COMMON)
    };
    let found = registry::ALL.iter().filter_map(|check| Some((in_common(check)?, check)));
    let (_, check) = found.max_by_key(|(length, _)| *length)?;
    Some(Header { number: u32::from(check.msg), state: Some(check.state) })
}

/// The operating system error in a text: a number directly in front of its text in parentheses, as in
/// `5(Access is denied.)`. The form is the same in every language.
pub(super) fn os_error(text: &str) -> Option<u32> {
    text.match_indices('(').find_map(|(at, _)| {
        let (before, behind) = text.split_at_checked(at)?;
        let before = before.trim_end_matches(' ');
        let start = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_text = behind.chars().nth(1).is_some_and(char::is_alphabetic);
        let is_word = start.ends_with(|c: char| c.is_whitespace() || matches!(c, ':' | '"' | '\''));
        let number = before.get(start.len()..).filter(|number| (1..=5).contains(&number.len()))?;
        number.parse().ok().filter(|_| is_text && is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_same_form_in_every_language() {
        for text in [
            "Msg 8976, Level 16, State 1, Line 1",
            "Msg 8976, Level 16, State 1, Server SHOP, Line 1",
            "Meldung 8976, Ebene 16, Status 1, Zeile 1",
            "Mens. 8976, Nivel 16, Estado 1, Línea 1",
            "Error: 8976, Severity: 16, State: 1.",
            "Fehler: 8976, Schweregrad: 16, Status: 1.",
            "Erreur : 8976, Gravité : 16, État : 1.",
            "Ошибка: 8976, серьезность: 16, состояние: 1.",
            "エラー: 8976、重大度: 16、状態: 1。",
            "消息 8976，级别 16，状态 1，第 1 行",
            "메시지 8976, 수준 16, 상태 1, 줄 1",
            "03/01/2024 02:10:11,spid51,Unknown,Error: 8976<c/> Severity: 16<c/> State: 1.",
            "8976\t16\t1\tTable error: Object ID 5",
            "8976 16 1",
            "8976,16,1,\"Table error: Object ID 5\"",
        ] {
            assert_eq!(header(text), Some(Header { number: 8976, state: Some(1) }), "{text}");
        }
    }

    #[test]
    fn what_only_resembles_a_header_is_none() {
        for text in [
            "",
            "Msg 8976",
            "Msg 8976, Level 99, State 1",
            "Msg 8976, Level 9, State 1",
            "Object ID 824, index ID 1, partition ID 0, alloc unit ID 0 (type Unknown)",
            "Msg 8976, Level 16, State 900",
            "Table error: Object ID 5, index ID 1, partition ID 72057594043760640, alloc unit ID 2",
            "There are 5 rows in 1 pages for object \"dbo.orders\".",
            "1, 2, 3, 4",
            "Msg 99999999999999, Level 16, State 1",
        ] {
            assert_eq!(header(text), None, "{text}");
        }
    }

    #[test]
    fn a_finding_is_known_by_its_words() {
        let text = "Table error: Object ID 5, index ID 1, partition ID 9, alloc unit ID 9 (type LOB data). The off-row data node at \
                    page (1:12), slot 0, text ID 7 does not match its reference from page (1:9), slot 1.";
        assert!(may_start_finding(text));
        assert_eq!(by_template(text).map(|header| header.number), Some(8961));
        for text in ["", "Table error: ", "Object ID 5 is a table", "Extent (1:8) is there"] {
            assert_eq!(by_template(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_inside_a_line_are_found() {
        assert_eq!(inside("x. [SQLSTATE 42000] (Error 3266)  y [SQLSTATE 42000] (Error 3013)."), [3266, 3013]);
        assert_eq!(inside("(Microsoft SQL Server, Fehler: 926)"), [926]);
        assert_eq!(inside("Event ID: 824"), [824]);
        assert_eq!(inside("SQL Server, 64 bit"), [0; 0]);
    }

    #[test]
    fn an_operating_system_error_stands_before_its_text() {
        assert_eq!(os_error("x.mdf:MSSQL_DBCC11: Operating system error 112(There is not enough space)"), Some(112));
        assert_eq!(os_error("The operating system returned error 1450 (Insufficient system resources"), Some(1450));
        assert_eq!(os_error("Betriebssystemfehler: 5(Zugriff verweigert)"), Some(5));
        assert_eq!(os_error("Page (1:5) and f(x) and 7(1:5)"), None);
    }
}
