//! Checks an encrypted database (TDE) without its key. Page headers are not encrypted, and the checksum is computed
//! from the page as it is stored. So page ID, protection, page type, level and links are checked, and nothing else.
//!
//! The allocation pages, which record the pages in use, are encrypted themselves. A page that is no longer in use keeps
//! its header, and a page that was never in use may contain anything. So only three cases prove damage: a header has
//! the right page ID but contradicts itself; a page fails its identity check although a sound page links to it; or a
//! page links to a page that does not link back, and the page with the link was changed long after the other page. All
//! other contradictions are reported as not verified.

use catalog::Database;
use findings::registry::{self, limits};
use findings::{Coverage, Finding, Options, Owner, Scope};
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Lsn, Page, PageBytes, PageHeader, PageId, PageType};
use source::PageSource;
use sums::spill::Shelf;

use crate::basis::ledger::FindingCollector;
use crate::basis::progress::Progress;
use crate::basis::tallies::UnreadPages;
use crate::basis::units::Units;
use crate::page::audit::{self, IdentityFault};
use crate::survey::{self, FileMap, PageSet};
use crate::sweep::memory::CHUNK_PAGES;

/// Limit on the number of suspect pages that are named. Further suspect pages are only counted. Suspect pages may be
/// unused.
const MOST_NAMED: usize = 32;

/// The greatest distance between the LSNs of one transaction, in log blocks of 512 bytes. The system transaction that
/// removes a page from its index also changes the neighbors of the page. In sound databases, 17 pages were newer than
/// their neighbor for this reason. In each of these cases, the LSNs of the page and its neighbor were in the same log
/// block.
const BLOCKS_OF_ONE_TRANSACTION: u32 = 2048;

/// The page type of unused pages that the encryption scan has formatted. In an encrypted database of SQL Server 2022,
/// 228 pages have this type, with unit 0 and no rows.
const FORMATTED_PAGE: u8 = 21;

/// The highest page type number that the engine uses.
const HIGHEST_PAGE_TYPE: u8 = 0x66;

/// The pages that the check has read or failed to read.
#[derive(Default)]
pub(crate) struct Looked {
    /// The number of pages read.
    pub(crate) pages_read: u64,
    /// Pages for which the operating system returned a read error.
    pub(crate) unread: UnreadPages,
    /// Whether allocation maps could not be read back from a temporary file.
    pub(crate) is_lost: bool,
}

/// Checks the headers of all pages in scope. With a `shelf`, the allocation maps are kept there.
pub(crate) fn check(
    (source, shelf): (&dyn PageSource, Option<Shelf>),
    database: &Database,
    options: &Options,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
    progress: &dyn Progress,
) -> Looked {
    coverage.note(&limits::CATALOG_ENCRYPTED, "database", 0);
    if options.scope == Scope::Catalog {
        return Looked::default();
    }
    let units = Units::of(database);
    let files = survey::fixed_pages(source, shelf.as_ref(), &units, findings, coverage);
    if !options.scope.reads_pages() {
        return Looked::default();
    }
    progress.phase("sweep", files.iter().map(|file| u64::from(file.pages)).sum());
    let mut pass = Pass {
        source,
        is_recovered: database.is_recovered(source),
        options,
        units: &units,
        findings,
        doubtful: PageSet::new(&files),
        linked: PageSet::new(&files),
        counts: Counts::default(),
        looked: Looked::default(),
    };
    for file in &files {
        pass.file(file, progress);
    }
    pass.doubtful_pages(coverage);
    pass.counts.note(coverage);
    Looked { is_lost: shelf.is_some_and(|shelf| shelf.is_lost()), ..pass.looked }
}

/// Numbers of pages and links that could not be checked.
#[derive(Default)]
struct Counts {
    encrypted: u64,
    plain: u64,
    zeros: u64,
    links: u64,
}

impl Counts {
    fn note(&self, coverage: &mut Coverage) {
        let notes = [
            (&limits::ENCRYPTED_PAGES, self.encrypted),
            (&limits::ENCRYPTED_PLAIN_PAGES, self.plain),
            (&limits::ENCRYPTED_ZEROS, self.zeros),
            (&limits::ENCRYPTED_LINKS, self.links),
        ];
        for (limit, count) in notes.into_iter().filter(|(_, count)| *count > 0) {
            coverage.note(limit, "database", count);
        }
    }
}

struct Pass<'a> {
    source: &'a dyn PageSource,
    /// Whether the pages contain all changes of the log.
    is_recovered: bool,
    options: &'a Options,
    units: &'a Units,
    findings: &'a mut FindingCollector,
    /// Pages that fail their identity check or have an unknown page type. This is legal for unused pages.
    doubtful: PageSet,
    /// Pages that a sound page links to.
    linked: PageSet,
    counts: Counts,
    looked: Looked,
}

impl Pass<'_> {
    fn file(&mut self, file: &FileMap, progress: &dyn Progress) {
        if let Scope::Filegroup(group) = self.options.scope
            && self.source.file(file.file_id).is_none_or(|given| given.filegroup != group)
        {
            return;
        }
        let mut buffer = vec![0; CHUNK_PAGES as usize * PAGE_BYTES];
        for first in (0..file.pages).step_by(CHUNK_PAGES as usize) {
            let pages = CHUNK_PAGES.min(file.pages - first);
            let chunk = buffer.get_mut(..pages as usize * PAGE_BYTES).unwrap_or_default();
            let at = PageId::new(file.file_id, first);
            let is_read = matches!(self.source.read(at, chunk), Ok(read) if read == pages as usize);
            for (page, bytes) in (first..).zip(chunk.chunks_exact_mut(PAGE_BYTES)) {
                let id = PageId::new(file.file_id, page);
                if !is_read && let Err(error) = self.source.read(id, bytes) {
                    self.looked.unread.add(id, || error.to_string());
                    continue;
                }
                self.looked.pages_read += 1;
                if let Some(bytes) = bytes.first_chunk_mut::<PAGE_BYTES>()
                    && !file.is_fixed(page)
                {
                    self.page(id, bytes);
                }
            }
            progress.advance(pages.into());
            progress.swept(at, pages);
        }
    }

    fn page(&mut self, id: PageId, bytes: &mut PageBytes) {
        if bytes.iter().all(|byte| *byte == 0) {
            self.counts.zeros += 1;
            return;
        }
        let fault = audit::identity(bytes, id);
        undo_torn_bits(bytes);
        let header = *Page::new(bytes).header();
        match fault {
            Some(_) if header.page_id() != id => self.doubtful.insert(id),
            Some(fault) => self.findings.push(audit::identity_finding(
                &fault,
                id,
                &header,
                audit::named_owner(&header, self.units, false),
            )),
            None => {
                match header.is_encrypted() {
                    true => self.counts.encrypted += 1,
                    false => self.counts.plain += 1,
                }
                match fault_of_header(id, &header) {
                    Some(finding) => self.findings.push(finding),
                    None if header.kind().is_none() && header.page_type != FORMATTED_PAGE => self.doubtful.insert(id),
                    None => self.links(id, &header),
                }
            }
        }
    }

    /// Checks the links between a B-tree page and its two neighbors.
    fn links(&mut self, id: PageId, header: &PageHeader) {
        if !matches!(header.kind(), Some(PageType::Data | PageType::Index)) {
            return;
        }
        for (is_next, neighbor) in [(true, header.next()), (false, header.prev())] {
            if neighbor.is_none() {
                continue;
            }
            self.linked.insert(neighbor);
            let Some(mut bytes) = self.source.read_page(neighbor) else {
                // There are three possible reasons why the neighbor is missing: its file was not given, a read of the
                // page failed, or the page was cut off when the file shrank. The first two reasons are already noted.
                self.counts.links += u64::from(!self.source.contains(neighbor));
                continue;
            };
            // A neighbor that fails its identity check is reported on its own. For a zeroed neighbor, the link is
            // counted as not verified, because the file may have shrunk and grown again.
            if audit::identity(&bytes, neighbor).is_some() {
                self.counts.links += u64::from(bytes.iter().all(|byte| *byte == 0));
                continue;
            }
            undo_torn_bits(&mut bytes);
            let other = Page::new(&bytes).header();
            let back = if is_next { other.prev() } else { other.next() };
            let is_of_level = |header: &PageHeader| (header.page_type, header.level, header.alloc_unit());
            let is_same = is_of_level(header) == is_of_level(other);
            if is_same && back == id {
                continue;
            }
            if !is_same || !self.is_recovered || !is_long_after(header.lsn(), other.lsn()) {
                self.counts.links += 1;
                continue;
            }
            let owner = Owner::unknown(header.alloc_unit());
            self.findings.push(match is_next {
                true => {
                    let finding = Finding::new(&registry::TREE_CHAIN_LINKAGE).page(neighbor).ref_page(id);
                    finding.owner(owner).page_value("found_prev", back)
                }
                false => Finding::new(&registry::TREE_PREV_UNSEEN).owner(owner).page(id).ref_page(neighbor),
            });
        }
    }

    /// Judges the pages that failed their identity check or have an unknown page type. A page that a sound page links
    /// to is in use. The new pages of an encrypted database never contain old content of the disk, so a failed identity
    /// check of a page in use is a finding.
    fn doubtful_pages(&mut self, coverage: &mut Coverage) {
        let (mut named, mut others) = (0, 0);
        for id in self.doubtful.iter() {
            let Some(mut bytes) = self.source.read_page(id) else {
                coverage.note_as("page", &limits::PAGES_UNREADABLE, format!("page {id}"), 1);
                continue;
            };
            let fault = audit::identity(&bytes, id);
            undo_torn_bits(&mut bytes);
            if let Some(fault) = fault.filter(|_| self.linked.contains(id)) {
                let header = *Page::new(&bytes).header();
                self.findings.push(audit::identity_finding(
                    &fault,
                    id,
                    &header,
                    audit::named_owner(&header, self.units, false),
                ));
                continue;
            }
            let limit = match fault {
                Some(IdentityFault::PageId) => &limits::ENCRYPTED_OTHER_PAGE,
                Some(IdentityFault::Protection(_)) => &limits::ENCRYPTED_NOT_AS_WRITTEN,
                None => &limits::ENCRYPTED_PAGE_TYPE,
            };
            if named < MOST_NAMED {
                coverage.note(limit, format!("page {id}"), 1);
                named += 1;
            } else {
                others += 1;
            }
        }
        if others > 0 {
            coverage.note(&limits::ENCRYPTED_MORE_PAGES, "database", others);
        }
    }
}

/// Returns the first contradiction within the header of a page, independent of where the page is used; `None` if there
/// is no contradiction.
fn fault_of_header(id: PageId, header: &PageHeader) -> Option<Finding> {
    let owner = Owner::unknown(header.alloc_unit());
    let test = |text: &str, value: u8, against: u8| {
        let finding = Finding::new(&registry::PAGE_HEADER).owner(owner).page(id).text_value("test", text);
        Some(finding.number("value", value).number("against", against))
    };
    if header.header_version != 1 {
        return test("m_headerVersion == HEADER_7_0", header.header_version, 1);
    }
    // Page types that are allowed only for pages at certain page numbers, such as the boot page.
    let is_of_place = |kind: PageType| {
        use PageType::{Boot, DiffMap, FileHeader, Gam, MlMap, Pfs, ServerConfig, Sgam};
        matches!(kind, Boot | DiffMap | FileHeader | Gam | MlMap | Pfs | ServerConfig | Sgam)
    };
    // Numbers in this range without a documented type may belong to undocumented types.
    let is_possible = (1..=HIGHEST_PAGE_TYPE).contains(&header.page_type);
    if !is_possible || header.kind().is_some_and(is_of_place) {
        return Some(Finding::new(&registry::PAGE_TYPE).owner(owner).page(id).number("page_type", header.page_type));
    }
    // Only index pages can be above level 0; data, text and IAM pages cannot.
    let has_levels = |kind| !matches!(kind, PageType::Data | PageType::TextMix | PageType::TextTree | PageType::Iam);
    if header.level != 0 && !header.kind().is_none_or(has_levels) {
        test("m_level == 0", header.level, 0)
    } else {
        None
    }
}

/// Whether one change came so long after another that no single transaction of the engine can have made both changes.
fn is_long_after(later: Lsn, earlier: Lsn) -> bool {
    let is_next_but_one = later.vlf > earlier.vlf.saturating_add(1);
    let is_far = later.vlf == earlier.vlf && later.block > earlier.block.saturating_add(BLOCKS_OF_ONE_TRANSACTION);
    is_next_but_one || is_far
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_leaves_its_index_is_not_long_after_its_neighbors() {
        let lsn = |vlf, block, slot| Lsn { vlf, block, slot };
        assert!(!is_long_after(lsn(48, 76, 5), lsn(48, 76, 3)));
        assert!(!is_long_after(lsn(49, 8, 1), lsn(48, 9000, 3)), "a transaction may go on in the next log file");
        assert!(is_long_after(lsn(48, 4000, 1), lsn(48, 76, 3)) && is_long_after(lsn(50, 8, 1), lsn(48, 76, 3)));
        assert!(!is_long_after(lsn(48, 76, 3), lsn(48, 4000, 1)));
    }
}
