//! The patterns of damaged pages in words. Each pattern is one line: the pages, what they contain, and the probable cause.
//! What the pages contain is a fact; the cause is what most often leaves such pages.

use check::{Pattern, PatternKind};
use format::PAGE_BYTES;

use crate::summary::lines::{counted, grouped};

/// The number of pages in 4 GB.
const WRAP_PAGES: i64 = (1 << 32) / PAGE_BYTES as i64;
/// The number of pages in 64 KB.
const EXTENT_PAGES: u32 = 8;

/// The line of a pattern.
pub(crate) fn line(pattern: &Pattern) -> String {
    let cause = cause(pattern).map_or_else(String::new, |cause| format!(" Probable cause: {cause}."));
    format!("{}: {}.{cause}", place(pattern), fact(pattern))
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
