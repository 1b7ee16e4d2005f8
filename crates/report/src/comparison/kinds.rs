//! What each message of the server says about the comparison: a finding, or something that a check of files does not
//! print, with the reason.

use super::message::Message;
use crate::dbcc_run::{SNAPSHOT_FAILED, gave_up};
use crate::parity;

/// A reason why a message that only one of the two printed is no difference.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// Stable id.
    pub id: &'static str,
    /// The reason, as a sentence.
    pub why: &'static str,
}

macro_rules! reasons {
    ($($name:ident = $id:literal, $why:literal;)*) => {
        $(pub(super) static $name: Reason = Reason { id: $id, why: $why };)*
        /// All reasons.
        #[cfg(test)]
        static ALL: &[&Reason] = &[$(&$name),*];
    };
}

reasons! {
    DETAIL = "detail",
        "The message continues the message before it, and is compared as a part of that message.";
    REPAIR_LEVEL = "repair-level",
        "The minimum repair level follows from the findings, and is not compared.";
    TOTALS = "totals",
        "The numbers of errors follow from the findings, and are not compared.";
    HEADING = "heading",
        "The line only divides the output, or describes the run.";
    LISTING = "listing",
        "The line belongs to the list of CHECKALLOC, which has counts and no errors.";
    REPAIR_RUN = "repair-run",
        "The message describes a repair. mdfsck never repairs; compare the results of a run without repair.";
    SKIPPED = "skipped",
        "The server did not check this object or part, and says why.";
    GAVE_UP = "gave-up",
        "The server's run ended early, so the server did not look for everything that mdfsck looked for.";
    SNAPSHOT = "snapshot",
        "The message is about the internal snapshot on which the server's run works. mdfsck uses no snapshot.";
    SNAPSHOT_PAGE = "snapshot-page",
        "The server's internal snapshot lost pages, as its messages say, and this page may be one of them. mdfsck read the page from the file.";
    CATALOG_EDITED = "catalog-edited",
        "Message 3859 is a warning that CHECKDB does not count. mdfsck prints it without counting it too.";
    OTHER_STATEMENT = "other-statement",
        "The message is not one of CHECKDB's: another statement, or the connection, printed it.";
    NO_METADATA = "no-metadata",
        "The server prints another number when the allocation unit of the page has no metadata in its cache.";
    OBJECT_SKIPPED = "object-skipped",
        "The server did not check this object further, as one of its messages says.";
    INTERVAL_UNCHECKED = "interval-unchecked",
        "The server did not compare the allocation of this range of pages, as its message 8998 says.";
    TOO_MANY = "too-many",
        "There are more errors than are compared, so the other program may have found this one too.";
    OWN_NUMBER = "own-number",
        "mdfsck reports this damage in another message, as docs/parity.md says.";
    LIST_CUT = "list-cut",
        "The server printed only the first errors of this object, as its message 8986 says.";
    INDEX_MATCH_SKIPPED = "index-match-skipped",
        "The server found other errors in the table, and then compares none of its indexes with it.";
    BEYOND_CHECKDB = "beyond-checkdb",
        "CHECKDB does not make this check: it looks at a log, at the structure of a backup, or at a constraint.";
    NOT_PROVEN = "not-proven",
        "mdfsck found the same contradiction, and lists it as not verified, because it may be no damage.";
    DAMAGED_COUNTS = "damaged-counts",
        "Errors were found in the object, so both programs count only the rows and pages that they could read.";
}

/// What a message of the server means for the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An error that is compared.
    Finding,
    /// The counts of an object (2593).
    Counted,
    /// A number of Service Broker objects.
    Broker,
    /// The total of the errors.
    Total,
    /// A row of the message before.
    Detail,
    /// Nothing to compare.
    Explained(&'static Reason),
}

/// Messages about the disk, the files and the log of the internal snapshot. Outside a run of DBCC, they may be about any
/// file.
const ON_SNAPSHOT: [u32; 8] = [665, 1450, 3313, 3314, 3456, 5123, 5149, 5278];
/// Messages that say that an object or a part of it was not checked.
const SKIPS: [u32; 17] =
    [2518, 2519, 2522, 2527, 2530, 2546, 2594, 2595, 5231, 5232, 5237, 5245, 5296, 7951, 7966, 7994, 8975];
/// Messages of DBCC UPDATEUSAGE, and of queries that read a columnstore.
const OF_OTHERS: [u32; 10] = [2558, 5263, 5264, 5265, 5266, 5267, 5288, 5290, 7937, 7959];
/// The list of CHECKALLOC.
const OF_LISTING: [u32; 13] = [2538, 2539, 7920, 7922, 7923, 7924, 7925, 7927, 8915, 8916, 8917, 8918, 8983];
/// Service Broker counts.
const BROKER_COUNTS: [u32; 8] = [9605, 9667, 9668, 9669, 9670, 9674, 9675, 9676];

/// Whether the message says that the internal snapshot lost pages, which then read as zeros.
pub(super) fn lost_snapshot_pages(number: u32) -> bool {
    [665, 1450, 5128, 5269].contains(&number)
}

/// Whether the message says that its page reads as zeros, as a lost page of a snapshot does.
pub(super) fn is_of_zero_page(message: &Message) -> bool {
    let Some(captured) = message.captured() else { return false };
    match message.number {
        5256 | 8909 => captured.page("header_page") == Some(format::PageId { file: 0, page: 0 }),
        5233 | 8939 => {
            let is_of_header = |test: &str| test.contains("m_headerversion") || test.contains("m_type");
            captured.number("value") == Some(0) && captured.value("test").is_some_and(is_of_header)
        }
        _ => false,
    }
}

/// Whether the message only says that its page has errors, which other messages name.
pub(super) fn names_no_error(number: u32) -> bool {
    number == 8928
}

/// Whether the message says that its object was not checked further.
pub(super) fn skips_object(number: u32) -> bool {
    [5231, 5245, 5296, 7965, 8901].contains(&number)
}

/// What a message means for the comparison.
pub(super) fn role(number: u32, level: u8, text: &str) -> Role {
    let is_of_snapshot =
        ON_SNAPSHOT.contains(&number) || u16::try_from(number).is_ok_and(|number| SNAPSHOT_FAILED.contains(&number));
    match number {
        8955 | 8956 | 8988 => Role::Detail,
        2593 => Role::Counted,
        8989 | 8990 | 8954 => Role::Total,
        8997 if text.contains(" analyzed: ") || level <= 10 => Role::Broker,
        8992 if text.starts_with("Check Catalog Msg 3859") => Role::Explained(&CATALOG_EDITED),
        8958 => Role::Explained(&REPAIR_LEVEL),
        8986 => Role::Explained(&LIST_CUT),
        2528 | 2536 | 5268 | 5275..=5277 | 5281 | 8957 => Role::Explained(&HEADING),
        _ if BROKER_COUNTS.contains(&number) => Role::Broker,
        _ if OF_LISTING.contains(&number) => Role::Explained(&LISTING),
        _ if SKIPS.contains(&number) => Role::Explained(&SKIPPED),
        _ if OF_OTHERS.contains(&number) => Role::Explained(&OTHER_STATEMENT),
        // The pre-checks and the metadata messages end the run, but they are findings too.
        _ if gave_up(number) && !parity::has_check(number) => Role::Explained(&GAVE_UP),
        _ if is_of_snapshot => Role::Explained(&SNAPSHOT),
        _ if parity::is_repair(number) => Role::Explained(&REPAIR_RUN),
        _ if !parity::is_message_of_checkdb(number) => Role::Explained(&OTHER_STATEMENT),
        _ if level <= 10 && !parity::is_of_damage(number) => Role::Explained(&HEADING),
        _ => Role::Finding,
    }
}

/// Groups of messages about the same kind of damage, which mdfsck looks for. Two messages of a group about the same place
/// are related. The messages that mdfsck reports in others are in the table of parity.
const RELATED: [&[u32]; 9] = [
    // A page that is not what it should be.
    &[
        2533, 2534, 5233, 5250, 5256, 5274, 5282, 7984, 7985, 8909, 8927, 8928, 8938, 8939, 8940, 8941, 8942, 8943,
        8944, 8946, 8966,
    ],
    // Links and keys of B-trees.
    &[2511, 2512, 2531, 2574, 8925, 8926, 8931, 8933, 8934, 8935, 8936, 8937, 8976, 8977, 8978, 8979, 8980, 8981, 8982],
    // IAM chains.
    &[2575, 2576, 2577, 2579, 7965, 8928, 8946, 8947, 8959, 8968, 8969, 8996],
    // Owners of pages and extents.
    &[2533, 2534, 8903, 8904, 8905, 8906, 8910, 8913, 8914, 8948],
    // Off-row values.
    &[8925, 8929, 8960, 8961, 8962, 8963, 8964, 8965, 8974],
    // Forwarded rows.
    &[8971, 8972, 8993, 8994],
    // Rows of indexes.
    &[8907, 8908, 8951, 8952],
    // Columns of rows.
    &[2537, 2570, 5228, 5262, 8944, 8960, 8970, 8984],
    // Columnstores and the catalog.
    &[5285, 7902, 7967, 7976, 7991],
];

/// Whether a message of the server with the number `server` and one of this program with the number `own` are about the
/// same kind of damage.
pub(super) fn are_related(server: u32, own: u32) -> bool {
    RELATED.iter().any(|group| group.contains(&server) && group.contains(&own)) || parity::is_in(server, own)
}

/// The reason why two related messages have different numbers; `None` if they should have the same number.
pub(super) fn reason_of_numbers(server: u32, own: u32) -> Option<&'static Reason> {
    if is_without_metadata(server, own) {
        return Some(&NO_METADATA);
    }
    parity::is_in(server, own).then_some(&OWN_NUMBER)
}

/// Whether the server prints one of the two numbers in place of the other if it has no metadata for the allocation unit.
fn is_without_metadata(one: u32, other: u32) -> bool {
    const WITH: [u32; 7] = [8909, 8938, 8939, 8941, 8942, 8943, 8944];
    let is_without = |number: u32| number == 5233 || number == 5256;
    (is_without(one) && WITH.contains(&other)) || (is_without(other) && WITH.contains(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_checkdb_are_compared_and_lines_about_the_run_are_explained() {
        for number in [2533, 2570, 7985, 7995, 8914, 8928, 8939, 8951, 8992, 8998] {
            assert_eq!(role(number, 16, ""), Role::Finding, "{number}");
        }
        for (number, level, reason) in [
            (8958, 10, &REPAIR_LEVEL),
            (8921, 16, &GAVE_UP),
            (7928, 16, &SNAPSHOT),
            (824, 24, &OTHER_STATEMENT),
            (0, 20, &GAVE_UP),
            (2536, 10, &HEADING),
            (7920, 10, &LISTING),
            (7911, 10, &REPAIR_RUN),
            (8945, 16, &REPAIR_RUN),
            (5245, 16, &SKIPPED),
        ] {
            assert_eq!(role(number, level, ""), Role::Explained(reason), "{number}");
        }
        assert_eq!(role(8914, 10, ""), Role::Finding);
        assert_eq!(role(8997, 10, "Service Broker Msg 9675, State 1: Message Types analyzed: 14."), Role::Broker);
    }

    /// For each row of the table of parity, what a message with this number means agrees with what the table says.
    #[test]
    fn the_meaning_of_each_message_agrees_with_parity() {
        // Messages that have a wrapper have the number of the wrapper in results.
        let is_bare = |&number: &u32| Message::new(number, 16, 1, "", None).number == number;
        for number in parity::numbers().filter(is_bare) {
            let role = role(number, 16, "");
            let is_compared = matches!(role, Role::Finding | Role::Detail);
            let is_left_out = [&GAVE_UP, &SKIPPED, &OTHER_STATEMENT, &LISTING].map(Role::Explained).contains(&role);
            match (parity::has_check(number), parity::is_of_damage(number)) {
                (true, _) => assert!(is_compared, "{number} is a finding here: {role:?}"),
                (false, true) => assert!(is_compared || is_left_out, "{number} is damage: {role:?}"),
                // 5279 is damage of a database with several fragments, which no file has.
                (false, false) if role == Role::Finding => {
                    assert!(parity::is_not_built(number) || number == 5279, "{number} is no damage");
                }
                (false, false) => {}
            }
        }
        for number in [2501, 8902, 8985, 5280] {
            assert!(gave_up(number) && role(number, 16, "") == Role::Explained(&GAVE_UP), "{number}");
        }
        for number in [2558, 7937, 7959, 5288, 5290, 5264] {
            assert_eq!(role(number, 16, ""), Role::Explained(&OTHER_STATEMENT), "{number}");
        }
    }

    #[test]
    fn related_messages_are_those_that_this_program_finds() {
        for number in RELATED.into_iter().flatten().copied() {
            assert!(parity::has_check(number), "{number}");
        }
        assert!(are_related(8919, 8939) && are_related(8939, 8944));
        assert!(!are_related(8939, 8919), "mdfsck never prints 8919");
        assert!(!are_related(5289, 7902), "mdfsck reads no segments");
    }

    #[test]
    fn reasons_have_ids_of_their_own_and_end_as_sentences() {
        let ids: std::collections::BTreeSet<&str> = ALL.iter().map(|reason| reason.id).collect();
        assert_eq!(ids.len(), ALL.len());
        assert!(ALL.iter().all(|reason| reason.why.ends_with('.') && !reason.id.contains(' ')));
    }
}
