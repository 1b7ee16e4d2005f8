//! Patterns of damage. If many pages are overwritten, the report has a finding for each page, but the cause shows only in
//! all of them together: zeros in whole extents, pages whose page IDs differ by the same distance from their places, every
//! 16th page encrypted. A pattern is a fact about pages with findings, so it adds no finding.
//!
//! The sweep classifies each damaged page and stores the class in the finding (`Finding::content`), so the class goes
//! wherever the finding goes: to other threads, to temporary files and to the parts of other processes. Here, the classes
//! are put in page order, and the pages of each class are divided into runs. `evaluate` makes the patterns from these
//! runs and from nothing else, so they are the same whichever way the check took.

mod evaluate;
mod place;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use findings::registry::{self, Check};
use findings::{Content, Finding, Findings, Pattern, PatternKind};
use format::bytes::{u16_at, u64_at};
use format::{PageBytes, PageId};
use source::PageSource;
use sums::spill::{Item, Sorter, TempStore, page_to};

use crate::survey::{Allocation, Survey};

use evaluate::evaluate;

/// The maximum number of runs that are kept; with more, those of the first pages are kept, and the others are counted.
const MOST_RUNS: usize = 1 << 13;
/// The maximum number of damaged pages that are read again because their findings have no content. The survey makes such
/// findings about allocation pages, and the pass over an encrypted database makes them.
const MOST_READ: usize = 1 << 14;
/// The maximum number of pages that are not in use within one run.
const MOST_UNUSED: u32 = 512;
/// Bytes of facts in memory.
const FACT_BYTES: usize = 1 << 18;

/// Checks whose findings say that a page as a whole is not what it should be.
static OF_WHOLE_PAGES: [&Check; 7] = [
    &registry::PAGE_IO,
    &registry::PAGE_IO_NO_METADATA,
    &registry::PAGE_ID,
    &registry::PAGE_ID_NO_METADATA,
    &registry::FIXED_PAGE_INVALID,
    &registry::MAP_PAGE_INVALID,
    &registry::IAM_UNREADABLE,
];

/// What a damaged page contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Fact {
    page: PageId,
    /// Whether the finding about the page is no proof.
    is_doubtful: bool,
    content: Content,
}

impl Item for Fact {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, small, large) = self.content.numbers();
        page_to(out, self.page);
        out.extend([u8::from(self.is_doubtful), kind]);
        out.extend(small.to_le_bytes());
        out.extend(large.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (page, rest) = bytes.split_at_checked(6)?;
        let (&[is_doubtful, kind], rest) = rest.split_first_chunk()?;
        let content = Content::from_numbers((kind, u16_at(rest, 0)?, u64_at(rest, 2)?.cast_signed()))?;
        Some(Self { page: PageId::read(page, 0)?, is_doubtful: is_doubtful != 0, content })
    }
}

/// Damaged pages with the same content. Between them are only pages that are not in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    first: u32,
    last: u32,
    /// Number of damaged pages.
    pages: u32,
    /// Number of damaged pages whose findings are proofs.
    proven: u32,
    /// Number of pages of allocation units that the catalog does not have.
    unknown: u32,
}

/// The runs by file and content, and the number of pages that are in none of them.
#[derive(Default, Debug)]
struct Runs {
    runs: BTreeMap<(u16, Content), Vec<Run>>,
    count: usize,
    /// By file: the first page, the last page and the number of pages that are in no run.
    rest: BTreeMap<u16, (u32, u32, u64)>,
}

/// The database whose findings are put into patterns.
pub(crate) struct Damaged<'a> {
    pub(crate) source: &'a dyn PageSource,
    /// The allocation of pages; `None` if it is unknown.
    pub(crate) survey: Option<&'a Survey>,
    /// Classifies a page that was read again.
    pub(crate) content: &'a dyn Fn(&PageBytes, PageId) -> Option<Content>,
    pub(crate) space: &'a TempStore,
}

impl Damaged<'_> {
    /// The patterns in the pages of these findings: proofs, and findings that are no proofs. A pattern is listed if at
    /// least one in four of its pages has a proof: of pages with random bytes, the flags in the header of every fourth
    /// page say that the page has no protection, and in a database that needs its log, the wrong page ID alone is no proof.
    pub(crate) fn patterns(&self, findings: &Findings, demoted: &Findings) -> Vec<Pattern> {
        // Without a proof, no pattern can be listed.
        if findings.is_empty() {
            return Vec::new();
        }
        let (mut facts, mut left) = (Sorter::new(FACT_BYTES, self.space), MOST_READ);
        for (list, is_doubtful) in [(findings, false), (demoted, true)] {
            for finding in list {
                let content = finding.content.or_else(|| self.read(&finding, &mut left));
                if let (Some(page), Some(content)) = (finding.page, content) {
                    facts.push(Fact { page, is_doubtful, content });
                }
            }
        }
        let mut last = None;
        let facts = facts.into_sorted().filter(|fact| last.replace(fact.page) != Some(fact.page));
        let files: Vec<u16> = self.source.files().iter().map(|file| file.file_id).collect();
        evaluate(&Runs::of(facts, |page| self.is_in_use(page)), &files)
    }

    /// The content of the page of a finding that has none, if the finding is about the page as a whole.
    fn read(&self, finding: &Finding, left: &mut usize) -> Option<Content> {
        let is_of_page = finding.check.is_primitive() || OF_WHOLE_PAGES.contains(&finding.check);
        let page = finding.page.filter(|page| is_of_page && self.source.contains(*page))?;
        *left = left.checked_sub(1)?;
        (self.content)(&*self.source.read_page(page)?, page)
    }

    /// Whether a page is in use, as far as is known.
    fn is_in_use(&self, page: PageId) -> bool {
        self.survey.is_none_or(|survey| match survey.allocation(page) {
            Allocation::Free => false,
            Allocation::Used(_) => true,
            Allocation::Unknown => survey.owner(page).is_some(),
        })
    }
}

impl Runs {
    /// The runs of facts, which are in page order and have each page once.
    fn of(facts: impl Iterator<Item = Fact>, is_in_use: impl Fn(PageId) -> bool) -> Self {
        let mut this = Self::default();
        let mut before: Option<(PageId, (u16, Content))> = None;
        for Fact { page, is_doubtful, content } in facts {
            let unknown = u32::from(matches!(content, Content::OtherPlace { is_known: false, .. }));
            let content = match content {
                Content::OtherPlace { file, distance, .. } => Content::OtherPlace { file, distance, is_known: true },
                content => content,
            };
            let key = (page.file, content);
            let is_next = before.is_some_and(|(last, of)| of == key && joins(last, page, &is_in_use));
            before = Some((page, key));
            let proven = u32::from(!is_doubtful);
            let runs = this.runs.get_mut(&key);
            let last = runs.and_then(|runs| runs.last_mut()).filter(|_| is_next);
            match last {
                Some(run) => {
                    run.last = page.page;
                    run.pages += 1;
                    run.proven += proven;
                    run.unknown += unknown;
                }
                None if this.count < MOST_RUNS => {
                    this.count += 1;
                    let run = Run { first: page.page, last: page.page, pages: 1, proven, unknown };
                    this.runs.entry(key).or_default().push(run);
                }
                None => {
                    before = None;
                    let (_, last, pages) = this.rest.entry(page.file).or_insert((page.page, page.page, 0));
                    *last = page.page;
                    *pages += u64::from(proven);
                }
            }
        }
        this
    }
}

/// Whether no page between two pages of one file is in use.
fn joins(last: PageId, next: PageId, is_in_use: impl Fn(PageId) -> bool) -> bool {
    let between = last.page.saturating_add(1)..next.page;
    between.len() as u32 <= MOST_UNUSED && !between.into_iter().any(|page| is_in_use(PageId::new(last.file, page)))
}
