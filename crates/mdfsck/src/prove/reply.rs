//! What sqlcmd printed for a statement. Scripts of the kit set the language to English, but a login fails, and the client
//! prints its own words, in any language. So errors are known by their numbers.

use report::parity;

/// Errors with which the kit cannot go on: number, meaning, remedy.
const KNOWN: &str = include_str!("errors.tsv");
/// Errors of a CHECKDB that could not make its internal snapshot.
const NO_SNAPSHOT: [u32; 5] = [1823, 5030, 5128, 7926, 7928];
/// Errors of a run that left out an object, or the catalog.
const SKIPPED: [u32; 3] = [5231, 5232, 5245];

/// How a DBCC statement ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It ran to its end.
    Complete,
    /// It did not run, since the server could not make a snapshot.
    NoSnapshot,
    /// It gave no result, for another reason: it did not run, it gave up, or it left out an object.
    Failed,
    /// The connection ended before the statement did.
    CutOff,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::NoSnapshot => "no-snapshot",
            Self::Failed => "failed",
            Self::CutOff => "cut-off",
        }
    }
}

pub(super) struct Reply<'a> {
    /// The numbers of raised errors, in order.
    errors: Vec<u32>,
    has_rows: bool,
    has_end: bool,
    /// The first line in which the server or sqlcmd says something.
    first: Option<&'a str>,
}

impl<'a> Reply<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let says = |line: &&str| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("prove:") && !line.starts_with("Changed language")
        };
        Self {
            errors: text.lines().filter_map(raised).collect(),
            has_rows: text.lines().any(is_row),
            has_end: text.lines().any(|line| line.trim_end() == "prove:done"),
            first: text.lines().find(says).map(str::trim),
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.has_end {
            false => Outcome::CutOff,
            true if self.has_rows || self.errors.iter().all(|&number| is_finding(number)) => Outcome::Complete,
            true if self.errors.iter().any(|number| NO_SNAPSHOT.contains(number)) => Outcome::NoSnapshot,
            true => Outcome::Failed,
        }
    }

    /// Why the statement failed, and what to do if that is known.
    pub(super) fn why(&self, status: i32) -> String {
        // What a command found before it gave up is not the reason.
        let cause = self.errors.iter().find(|&&number| !is_finding(number)).or_else(|| self.errors.first());
        match (self.errors.iter().find_map(|&number| known(number)), cause) {
            (Some(known), _) => known,
            (None, Some(number)) => format!("Msg {number}"),
            (None, None) => {
                let first = report::printable(self.first.unwrap_or("it printed nothing"));
                format!("sqlcmd ended with status {status}: {first}")
            }
        }
    }
}

/// Whether a DBCC command that ran raises this error about what it found, as CHECKALLOC does in its text.
fn is_finding(number: u32) -> bool {
    let is_of_check = parity::is_message_of_checkdb(number) && !parity::is_repair(number);
    let is_of_end = report::gave_up(number) || NO_SNAPSHOT.contains(&number) || SKIPPED.contains(&number);
    is_of_check && !is_of_end
}

fn known(number: u32) -> Option<String> {
    KNOWN.lines().find_map(|line| {
        let (first, rest) = line.split_once('\t')?;
        let (meaning, remedy) = rest.split_once('\t')?;
        (first.parse() == Ok(number)).then(|| format!("Msg {number}: {meaning}; {remedy}"))
    })
}

/// The number in the heading of an error: `Msg 18456, Level 14, State 1, Server ...` with the words of any language, and
/// the punctuation of any script.
fn raised(line: &str) -> Option<u32> {
    let (word, rest) = line.split_once(' ')?;
    if word.is_empty() || word.contains(|c: char| c.is_ascii_digit()) || word.contains('\t') {
        return None;
    }
    let (number, rest) = digits(rest)?;
    let level = rest.find(|c: char| c.is_ascii_digit())?;
    let (between, rest) = rest.split_at_checked(level)?;
    let is_pause = |c: char| matches!(c, ',' | '\u{ff0c}' | '\u{3001}');
    let (level, rest) = digits(rest)?;
    (between.starts_with(is_pause) && rest.starts_with(is_pause) && level <= 25).then_some(number)
}

fn digits(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

/// Whether the line is a row of TABLERESULTS: number, level, state.
fn is_row(line: &str) -> bool {
    let mut columns = line.split('\t');
    let mut number = || columns.next().is_some_and(|column| column.trim().parse::<u32>().is_ok());
    number() && number() && number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_errors_are_recognised_in_any_language() {
        for line in [
            "Msg 5120, Level 16, State 101, Server db\\x, Line 1",
            "Meldung 5120, Ebene 16, Status 101, Server db, Zeile 1",
            "Msg 5120, Niveau 16, \u{c9}tat 101",
            "\u{6d88}\u{606f} 5120\u{ff0c}\u{7ea7}\u{522b} 16\u{ff0c}\u{72b6}\u{6001} 101",
            "\u{30e1}\u{30c3}\u{30bb}\u{30fc}\u{30b8} 5120\u{3001}\u{30ec}\u{30d9}\u{30eb} 16\u{3001}\u{72b6}\u{614b} 101",
        ] {
            assert_eq!(raised(line), Some(5120), "{line}");
        }
        for line in [
            "8939\t16\t98\tTable error: Object ID 1, index ID 1",
            "Object ID 5, index ID 1, partition ID 2: Page (1:3) could not be processed.",
            "File 1. The number of extents = 204, used pages = 1615",
            "Processed 141 entries in system catalog for database ID 5.",
            "DBCC execution completed.",
            "",
        ] {
            assert_eq!(raised(line), None, "{line}");
        }
    }

    #[test]
    fn a_reply_without_its_end_was_cut_off_even_if_it_has_rows() {
        let outcome = |text: &str| Reply::of(text).outcome();
        assert_eq!(outcome("8939\t16\t98\tTable error\n"), Outcome::CutOff);
        assert_eq!(outcome("8939\t16\t98\tTable error\nprove:done\n"), Outcome::Complete);
        assert_eq!(outcome("Changed language setting to us_english.\nprove:done\n"), Outcome::Complete);
        assert_eq!(outcome("Msg 7928, Level 16, State 1\nprove:done\n"), Outcome::NoSnapshot);
        assert_eq!(outcome("Msg 926, Level 14, State 1\nprove:done\n"), Outcome::Failed);
        // CHECKALLOC has no rows, but what it finds are errors.
        assert_eq!(outcome("Msg 8905, Level 16, State 1\nFile 1.\nprove:done\n"), Outcome::Complete);
        assert_eq!(outcome("Msg 8905, Level 16, State 1\nMsg 8921, Level 16, State 1\nprove:done\n"), Outcome::Failed);
        // So many findings of one object that not all are printed.
        assert_eq!(
            outcome("Msg 8905, Level 16, State 1\nMsg 8986, Level 16, State 1\nprove:done\n"),
            Outcome::Complete
        );
        // Errors beside rows are for the comparison.
        assert_eq!(outcome("8939\t16\t98\tx\nMsg 824, Level 24, State 2\nprove:done\n"), Outcome::Complete);
    }

    #[test]
    fn a_command_that_was_refused_gave_up_or_left_something_out_has_no_result() {
        let refused = [2501, 2520, 2521, 2526, 2532, 2557, 2560, 2571, 2573, 5230, 5253];
        let gave_up = [7929, 7983, 7995, 8902, 8921, 8930, 8967, 8999];
        let of_repair = [7919, 8920];
        for number in [&refused[..], &gave_up, &of_repair, &SKIPPED].concat() {
            let text = format!("Msg 8905, Level 16, State 1\nMsg {number}, Level 16, State 1\nprove:done\n");
            let reply = Reply::of(&text);
            assert_eq!((reply.outcome(), reply.why(1)), (Outcome::Failed, format!("Msg {number}")));
        }
        for number in [2508, 2527, 2575, 7965, 8905, 8928, 8992, 8998] {
            assert!(is_finding(number), "{number}");
        }
    }

    #[test]
    fn the_reason_is_the_first_known_error_or_else_what_sqlcmd_says() {
        let why = |text: &str| Reply::of(text).why(1);
        assert!(why("Msg 3013, Level 16, State 1\n").starts_with("Msg 3013: "));
        assert!(why("Msg 9999, Level 16, State 1\nx\nMsg 3257, Level 16, State 1\n").starts_with("Msg 3257: "));
        assert_eq!(why("Msg 9999, Level 16, State 1\n"), "Msg 9999");
        assert_eq!(why("Msg 8905, Level 16, State 1\nMsg 8906, Level 16, State 1\n"), "Msg 8905");
        assert_eq!(why("prove:x=1\nSqlcmd: Error: timeout.\n"), "sqlcmd ended with status 1: Sqlcmd: Error: timeout.");
        assert_eq!(why("\u{1b}[2Jx\u{202e}\n"), "sqlcmd ended with status 1: \\u{1b}[2Jx\\u{202e}");
        assert_eq!(why(""), "sqlcmd ended with status 1: it printed nothing");
    }

    #[test]
    fn the_table_of_errors_has_a_meaning_and_a_remedy_in_each_row() {
        let mut last = 0;
        for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let number: u32 = cells[0].parse().unwrap();
            assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()) && number > last, "{line}");
            last = number;
        }
        assert!(last > 30_000);
    }
}
