//! The patterns of damaged pages in words. Each pattern is one line: the pages, what they contain, and the probable cause.
//! What the pages contain is a fact; the cause is what most often leaves such pages.

use findings::{Pattern, PatternKind};
use format::PAGE_BYTES;

use crate::amounts::{counted, grouped};

/// The number of pages in 4 GB.
const WRAP_PAGES: i64 = (1 << 32) / PAGE_BYTES as i64;
/// The number of pages in 64 KB.
const EXTENT_PAGES: u32 = 8;

/// The line of a pattern.
pub(crate) fn line(pattern: &Pattern) -> String {
    let cause = cause(pattern).map_or_else(String::new, |cause| format!(" Probable cause: {cause}."));
    format!("{}.{cause}", facts(pattern))
}

/// The pages of a pattern, and what they contain, without the probable cause.
pub(crate) fn facts(pattern: &Pattern) -> String {
    format!("{}: {}", place(pattern), fact(pattern))
}

/// The ID of a kind of pattern.
pub(crate) fn id(pattern: &Pattern) -> &'static str {
    match pattern.kind {
        PatternKind::Same(0) => "pattern.zeros",
        PatternKind::Same(_) => "pattern.same-byte",
        PatternKind::Text => "pattern.text",
        PatternKind::Noise => "pattern.noise",
        PatternKind::OtherPlace { .. } => "pattern.other-place",
        PatternKind::Shifted(_) => "pattern.shifted",
        PatternKind::Headers => "pattern.headers",
        PatternKind::Changed => "pattern.changed",
        PatternKind::Foreign => "pattern.other-database",
        PatternKind::More => "pattern.more",
    }
}

/// The offsets in the file of the first and the last byte.
pub(crate) fn bytes(pattern: &Pattern) -> (u64, u64) {
    const PAGE: u64 = PAGE_BYTES as u64;
    (u64::from(pattern.first) * PAGE, (u64::from(pattern.last) + 1) * PAGE - 1)
}

/// The damaged pages: `pages (1:64) to (1:71), 8 pages, bytes 524,288 to 589,823 of the file`.
fn place(pattern: &Pattern) -> String {
    let Pattern { file_id, first, last, pages, runs, every, .. } = *pattern;
    let (first_byte, last_byte) = bytes(pattern);
    let bytes = format!("bytes {} to {} of the file", grouped(first_byte), grouped(last_byte));
    if first == last {
        return format!("page ({file_id}:{first}), {bytes}");
    }
    let from_to = format!("({file_id}:{first}) to ({file_id}:{last})");
    let span = u64::from(last - first) + 1;
    let damaged = counted(pages, "page", "pages");
    match every {
        Some((distance, 1)) => format!("every {} page from {from_to}, {damaged}, {bytes}", ordinal(distance)),
        Some((distance, block)) => format!(
            "{} of each {}, from {from_to}, {damaged}, {bytes}",
            counted(block.into(), "page", "pages"),
            grouped(distance.into())
        ),
        None if pages == span => format!("pages {from_to}, {damaged}, {bytes}"),
        None if runs == 1 => format!("pages {from_to}, {} of {} pages, {bytes}", grouped(pages), grouped(span)),
        None => format!("pages from {from_to}, {damaged} in {} places, {bytes}", grouped(runs)),
    }
}

/// What the pages contain.
fn fact(pattern: &Pattern) -> String {
    match pattern.kind {
        PatternKind::Same(0) => "zeros".to_owned(),
        PatternKind::Same(byte) => format!("each byte is 0x{byte:02X}"),
        PatternKind::Text => "text".to_owned(),
        PatternKind::Noise => "bytes without structure, as encryption and compression write them".to_owned(),
        PatternKind::OtherPlace { file, distance, has_file, is_unknown } => {
            let of = match (file == pattern.file_id, has_file) {
                (true, _) => "of this file".to_owned(),
                (false, true) => format!("of file {file} of this database"),
                (false, false) => format!("of a file {file}, which this database does not have"),
            };
            let unknown = if is_unknown { ", of objects that the catalog does not have" } else { "" };
            let page_id = if pattern.pages == 1 { "its page ID is" } else { "each page ID is" };
            let what = if pattern.pages == 1 { "a whole page of another place" } else { "whole pages of other places" };
            match distance {
                Some(0) => format!("{} {of}{unknown}", if pattern.pages == 1 { "a whole page" } else { "whole pages" }),
                Some(distance) => {
                    let (pages, by) = (distance.unsigned_abs(), if distance > 0 { "higher" } else { "lower" });
                    let bytes = grouped(pages.saturating_mul(PAGE_BYTES as u64));
                    let pages = counted(pages, "page", "pages");
                    format!("{what} {of}{unknown}; {page_id} {pages} ({bytes} bytes) {by} than that of its place")
                }
                None => format!("{what} {of}{unknown}; the distance differs from page to page"),
            }
        }
        PatternKind::Shifted(shift) => {
            let bytes = counted(shift.unsigned_abs(), "byte", "bytes");
            format!("each page begins {bytes} {} its place", if shift > 0 { "after" } else { "before" })
        }
        PatternKind::Headers => "the first bytes of each page are no page header".to_owned(),
        PatternKind::Changed => "bytes of each page are changed behind its header, or the page is torn".to_owned(),
        PatternKind::Foreign => {
            "whole pages with the right page IDs, of objects that the catalog does not have".to_owned()
        }
        PatternKind::More => "further damaged pages, which no line above counts".to_owned(),
    }
}

/// The probable cause.
pub(crate) fn cause(pattern: &Pattern) -> Option<String> {
    const RANSOMWARE: &str = "ransomware or another encryption of the file";
    let is_aligned = pattern.first.is_multiple_of(EXTENT_PAGES) && pattern.last > pattern.first;
    Some(match pattern.kind {
        PatternKind::More => return None,
        PatternKind::Headers | PatternKind::Changed if pattern.every.is_some() => {
            "a program that changes bytes at fixed distances, as ransomware does".to_owned()
        }
        PatternKind::Headers | PatternKind::Changed => return None,
        PatternKind::Noise if is_aligned || pattern.every.is_some() => RANSOMWARE.to_owned(),
        PatternKind::Noise => format!("the content of an encrypted or compressed file, or {RANSOMWARE}"),
        PatternKind::Same(0) => "the storage lost what was written, such as a thin disk that lost an allocation or a TRIM of blocks in use; or a copy that left out unreadable blocks".to_owned(),
        PatternKind::Same(0xFF) => "flash memory that was erased, or a program that overwrote the file".to_owned(),
        PatternKind::Same(_) => "a program that overwrote the file, such as one that wipes disks".to_owned(),
        PatternKind::Text => "the content of another file, which a file system or a storage that lost its order has written here".to_owned(),
        PatternKind::OtherPlace { is_unknown: true, .. } | PatternKind::OtherPlace { has_file: false, .. } => {
            "pages of another database that were written into this file".to_owned()
        }
        PatternKind::OtherPlace { file, distance, .. } => match distance {
            Some(distance) if file == pattern.file_id && distance != 0 && distance % WRAP_PAGES == 0 => {
                let times = match (distance / WRAP_PAGES).unsigned_abs() {
                    1 => String::new(),
                    times => format!("{} times ", grouped(times)),
                };
                format!("a layer of the storage that keeps 32 bits of a byte offset: the distance is {times}4 GB")
            }
            _ if file != pattern.file_id => "files that were exchanged, or a write to the wrong file".to_owned(),
            Some(_) if pattern.pages > 1 => {
                "misdirected writes: the storage wrote the pages to the wrong place, always at the same distance".to_owned()
            }
            _ => "a misdirected write: the storage wrote to the wrong place".to_owned(),
        },
        PatternKind::Shifted(shift) => {
            let how = if shift > 0 { "inserted" } else { "left out" };
            format!("a copy that {how} {} before these pages", counted(shift.unsigned_abs(), "byte", "bytes"))
        }
        PatternKind::Foreign => {
            "pages of another database that were written into this file, or of an older state of this file".to_owned()
        }
    })
}

/// A number as an ordinal: `2nd`, `16th`.
fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{}{ending}", grouped(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(kind: PatternKind, (first, last): (u32, u32)) -> Pattern {
        Pattern { file_id: 1, first, last, pages: u64::from(last - first) + 1, runs: 1, every: None, kind }
    }

    fn other_place(distance: impl Into<Option<i64>>) -> PatternKind {
        PatternKind::OtherPlace { file: 1, distance: distance.into(), has_file: true, is_unknown: false }
    }

    #[test]
    fn a_line_names_the_pages_their_bytes_their_content_and_the_probable_cause() {
        assert_eq!(
            line(&pattern(PatternKind::Noise, (0, 7))),
            "pages (1:0) to (1:7), 8 pages, bytes 0 to 65,535 of the file: bytes without structure, as encryption and \
             compression write them. Probable cause: ransomware or another encryption of the file."
        );
        assert_eq!(
            line(&pattern(other_place(1 << 19), (100, 100))),
            "page (1:100), bytes 819,200 to 827,391 of the file: a whole page of another place of this file; its page ID is \
             524,288 pages (4,294,967,296 bytes) higher than that of its place. Probable cause: a layer of the storage that \
             keeps 32 bits of a byte offset: the distance is 4 GB."
        );
        let repeated = Pattern { pages: 70, every: Some((16, 1)), ..pattern(PatternKind::Headers, (16, 1280)) };
        assert_eq!(
            line(&repeated),
            "every 16th page from (1:16) to (1:1280), 70 pages, bytes 131,072 to 10,493,951 of the file: the first bytes of \
             each page are no page header. Probable cause: a program that changes bytes at fixed distances, as ransomware \
             does."
        );
    }

    #[test]
    fn the_number_of_damaged_pages_is_that_of_the_findings() {
        let zeros = |pages, runs, every| Pattern { pages, runs, every, ..pattern(PatternKind::Same(0), (0, 4095)) };
        let place = |pattern: Pattern| line(&pattern).split_once(", bytes ").unwrap().0.to_owned();
        assert_eq!(place(zeros(4096, 1, None)), "pages (1:0) to (1:4095), 4,096 pages");
        assert_eq!(place(zeros(4000, 1, None)), "pages (1:0) to (1:4095), 4,000 of 4,096 pages");
        assert_eq!(place(zeros(30, 12, None)), "pages from (1:0) to (1:4095), 30 pages in 12 places");
        assert_eq!(place(zeros(30, 12, Some((2048, 8)))), "8 pages of each 2,048, from (1:0) to (1:4095), 30 pages");
    }

    #[test]
    fn each_kind_has_an_id_a_fact_and_a_cause_unless_there_is_none() {
        let foreign =
            |file, has_file| PatternKind::OtherPlace { file, distance: Some(0), has_file, is_unknown: !has_file };
        let kinds = [
            (PatternKind::Same(0), "zeros", "thin disk"),
            (PatternKind::Same(0xFF), "each byte is 0xFF", "flash"),
            (PatternKind::Same(0x0A), "each byte is 0x0A", "wipes disks"),
            (PatternKind::Text, "text", "another file"),
            (other_place(-9), "9 pages (73,728 bytes) lower", "misdirected writes"),
            (other_place(None), "the distance differs", "a misdirected write"),
            (foreign(3, true), "whole pages of file 3 of this database", "exchanged"),
            (foreign(9, false), "of a file 9, which this database does not have", "another database"),
            (PatternKind::Shifted(1), "1 byte after its place", "inserted 1 byte "),
            (PatternKind::Shifted(-3), "3 bytes before its place", "left out 3 bytes "),
            (PatternKind::Foreign, "the right page IDs", "an older state"),
            (PatternKind::Noise, "without structure", "an encrypted or compressed file"),
        ];
        for (kind, fact, cause) in kinds {
            let pattern = pattern(kind, (9, 20));
            let (before, after) =
                line(&pattern).split_once(" Probable cause: ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            assert!(before.contains(fact) && after.contains(cause), "{}", line(&pattern));
            assert!(id(&pattern).starts_with("pattern."));
        }
        for kind in [PatternKind::More, PatternKind::Headers, PatternKind::Changed] {
            assert!(!line(&pattern(kind, (9, 20))).contains("cause"));
        }
        let ordinals: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 2048].into_iter().map(ordinal).collect();
        assert_eq!(ordinals, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "2,048th"]);
    }

    #[test]
    fn patterns_come_before_findings_and_change_no_count() {
        let mut report = crate::fixture::case_16();
        let [text, json] = [crate::Format::Text, crate::Format::Json]
            .map(|format| crate::fixture::shown(format, &report, crate::View::default()));
        report.patterns = vec![pattern(PatternKind::Same(0), (392, 392))];
        let with = |format| crate::fixture::shown(format, &report, crate::View::default());
        let line = line(&report.patterns[0]);
        assert_eq!(with(crate::Format::Text), format!("Pattern: {line}\n{text}"));
        let with_json = with(crate::Format::Json);
        let of = |kind: &str| {
            with_json.lines().position(|line| line.starts_with(&format!("{{\"kind\":\"{kind}\""))).unwrap()
        };
        assert!(of("object") < of("pattern") && of("pattern") < of("finding"), "{with_json}");
        let others: Vec<&str> = with_json.lines().filter(|line| !line.contains("\"kind\":\"pattern\"")).collect();
        assert_eq!(others, json.lines().collect::<Vec<_>>());
    }
}
