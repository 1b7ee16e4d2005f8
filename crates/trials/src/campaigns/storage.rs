//! Storage faults in data files.

use format::page::{PAGE_BYTES, page_flags};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageHeader, PageId};
use source::PageSource;
use trials::mutate::{PROTECTED_WORD, PageRole, Random};

use crate::faults::{Fault, Others, inflict};
use crate::mutant::{Damage, Mutant};
use crate::rules;
use crate::subject::{Content, Subject};

/// The bytes of the page header that contain the LSN.
const LSN: std::ops::Range<usize> = 40..50;
/// The reason why a whole file with earlier content may go unnoticed: the other files have not changed since then.
const ALL_OLDER: &str = "The other files hold the same at both times: together they are the earlier database.";
/// The reason why a page with intact earlier content may go unnoticed.
const LOST_WRITE: &str = "A lost write whose page agrees with all others cannot be noticed without the log.";
/// The reason why changed bytes of a page without a checksum may go unnoticed.
const CONTENT: &str = "Content: only a checksum protects it.";
/// The reason why changed bytes of an unallocated page may go unnoticed.
const NOT_IN_USE: &str = "It has no owner: its content means nothing.";
/// The reason why a change to the page flag for checksums may go unnoticed.
const NO_CHECKSUM: &str = "A page may carry a checksum, torn bits or neither.";

/// A database with a storage fault in one file.
pub(crate) fn mutant(subject: &Subject, foreign: &Subject, random: &mut Random) -> Mutant {
    loop {
        let fault = Fault::DATA_FILE[random.below(Fault::DATA_FILE.len())];
        let number = random.below(subject.contents.len());
        let mut contents = subject.contents.clone();
        let needs_earlier = matches!(fault, Fault::LostWrite | Fault::LostSectors | Fault::EarlierFile);
        let earlier = if needs_earlier { subject.earlier() } else { &[] };
        let others = Others {
            foreign: foreign.contents.first().map_or(&[], |(_, bytes)| bytes),
            earlier: earlier.get(number).map_or(&[], |(_, bytes)| bytes),
        };
        // If the database has only one file, an earlier version of the whole file is a sound database.
        if fault == Fault::EarlierFile && contents.len() < 2 {
            continue;
        }
        let Some(what) = contents.get_mut(number).and_then(|file| inflict(fault, file, &others, random)) else {
            continue;
        };
        let harmless = harmless(subject, (fault, number), &contents, others.earlier);
        let kind = fault.name().to_owned();
        return Mutant { kind, what, harmless, is_older: needs_earlier, damage: Damage::Files(contents) };
    }
}

/// The reason why the damage may go unnoticed; `None` if it must be noticed.
fn harmless(
    subject: &Subject,
    (fault, number): (Fault, usize),
    contents: &[Content],
    earlier: &[u8],
) -> Option<String> {
    let (path, before) = subject.contents.get(number)?;
    let (_, after) = contents.get(number)?;
    if fault == Fault::EarlierFile && others_are_the_same(subject, number) {
        return Some(ALL_OLDER.to_owned());
    }
    if after.len() < before.len() {
        return None;
    }
    let file_id = subject.files.files().iter().find(|file| file.path == *path)?.file_id;
    let mut reason = NOT_IN_USE;
    for (number, (now, then)) in (0..).zip(after.as_chunks().0.iter().zip(before.as_chunks().0)) {
        if now == then {
            continue;
        }
        let at = number as usize * PAGE_BYTES;
        let is_earlier = earlier.get(at..at + PAGE_BYTES) == Some(now);
        let page = PageId::new(file_id, number);
        if fault == Fault::EarlierFile && says_more(subject, page, now, then) {
            return None;
        }
        reason = page_reason(subject, page, now, then, is_earlier)?;
    }
    Some(reason.to_owned())
}

/// Whether the other files of the database have the same content now as at the earlier time. LSNs are not compared.
fn others_are_the_same(subject: &Subject, number: usize) -> bool {
    let both = subject.contents.iter().zip(subject.earlier()).enumerate().filter(|(other, _)| *other != number);
    let mut same = both.map(|(_, ((path, now), (_, then)))| {
        let Some(file_id) = subject.files.files().iter().find(|file| file.path == *path).map(|file| file.file_id)
        else {
            return false;
        };
        let pages = (0..).zip(now.as_chunks().0.iter().zip(then.as_chunks().0));
        now.len() == then.len()
            && pages
                .filter(|(_, (now, then))| now != then)
                .all(|(page, (now, then))| !says_more(subject, PageId::new(file_id, page), now, then))
    });
    same.all(|same| same)
}

/// Whether the present page and its earlier version differ in content that other files repeat. A different LSN alone
/// does not count as a difference. The answer is true only for pages of user tables. Pages of the catalog do not count,
/// because counts in the catalog may be stale. Pages of off-row values do not count, because no row repeats these
/// values.
fn says_more(subject: &Subject, page: PageId, now: &PageBytes, then: &PageBytes) -> bool {
    let bare = |bytes: &PageBytes| {
        let mut bytes = *bytes;
        undo_torn_bits(&mut bytes);
        bytes[LSN].fill(0);
        bytes[PROTECTED_WORD].fill(0);
        bytes
    };
    let role = subject.role(page);
    let is_of_a_table = matches!(role, PageRole::Heap | PageRole::Clustered | PageRole::Node | PageRole::Leaf);
    let object = subject.object(Page::new(then).header().alloc_unit());
    let is_system = object.is_none_or(|object| subject.database.is_system_table(object));
    is_of_a_table && !is_system && bare(now) != bare(then)
}

/// Returns the reason why a changed page may go unnoticed; `None` if the change must be noticed. There are three
/// reasons: the page is unallocated, the new content is an earlier version of the page, or neither the page protection
/// nor a changed field has to reveal the change.
fn page_reason(
    subject: &Subject,
    page: PageId,
    now: &PageBytes,
    then: &PageBytes,
    is_earlier: bool,
) -> Option<&'static str> {
    if subject.role(page) == PageRole::Free {
        return Some(NOT_IN_USE);
    }
    let (header, before) = (Page::new(now).header(), Page::new(then).header());
    if header.page_id() != page {
        return None;
    }
    if is_earlier {
        // If the earlier version belongs to another index or another level, the neighboring pages contradict the
        // earlier version. In this case the damage must be noticed.
        let place = |header: &PageHeader| (header.kind(), header.alloc_unit(), header.level);
        return (place(header) == place(before)).then_some(LOST_WRITE);
    }
    let claims = |header: &PageHeader, flag| header.flags.get() & flag != 0;
    if claims(header, page_flags::CHECKSUM) {
        return rules::is_checksum_right(now).then_some(rules::BLIND_SPOT);
    }
    if rules::is_broken(now) {
        return None;
    }
    let mut changed: [PageBytes; 2] = [*then, *now];
    changed.iter_mut().for_each(undo_torn_bits);
    let flips = (0..PAGE_BYTES).map(|at| (at, changed[0][at] ^ changed[1][at]));
    rules::of_changes(subject, page, flips).harmless?;
    Some(if claims(before, page_flags::CHECKSUM) { NO_CHECKSUM } else { CONTENT })
}
