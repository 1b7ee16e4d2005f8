//! Findings in files that change during the check. Pages that were read at different times may contradict each other,
//! and a page may have been read while it was written. So only a page that contradicts itself proves anything, and only
//! if it is read again and has not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use catalog::Database;
use findings::registry::limits::{self, Limit};
use findings::registry::{Basis, Check};
use findings::{Coverage, Finding};
use format::{PageBytes, PageId};
use source::{FileChange, PageSource};

use crate::basis::in_flight::OF_CHECKSUMS;
use crate::page::audit::{IdentityFault, identity};
use crate::sweep::single_page::SinglePages;

/// The most pages that are read again. Findings about further pages are not verified if the files have changed.
const MOST_PAGES: usize = 1 << 14;

/// How often a damaged page is read again at most, if it changes each time.
const ROUNDS: usize = 5;

/// The most checks that are kept for a page that was read again.
const MOST_FAILED: usize = 64;

/// The default of [`findings::Options::settle_page`].
const SETTLE_PAGE: Duration = Duration::from_secs(2);

/// How files have changed during a run.
#[derive(Default)]
pub(crate) struct Moved {
    /// The files that have changed.
    pub(crate) files: Vec<FileChange>,
    /// The pages of findings that were no longer damaged, or no longer the same, when they were read again.
    pub(crate) pages: BTreeSet<PageId>,
}

impl Moved {
    /// The changed files after a comparison of the pages with the log. A file of which only the status has changed
    /// counts if there are contradictions.
    pub(crate) fn of_audit(changes: impl Iterator<Item = FileChange>, has_findings: bool) -> Self {
        let files = changes.filter(|change| has_findings || change.is_of_content()).collect();
        Self { files, pages: BTreeSet::new() }
    }

    /// Whether the file with this path has changed.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|change| change.path == path)
    }

    /// Notes that the changed files and pages are not verified.
    pub(crate) fn note(&self, coverage: &mut Coverage) {
        for change in &self.files {
            let name = change.path.file_name().unwrap_or_default().to_string_lossy();
            coverage.note(&limits::INPUT_CHANGED, name, 0);
        }
        if !self.pages.is_empty() {
            coverage.note_as("pages", &limits::INPUT_CHANGED, "database", self.pages.len() as u64);
        }
    }
}

/// The pages of findings that are read again after all findings have been made.
pub(crate) struct Rereads<'a> {
    source: &'a dyn PageSource,
    audit: SinglePages<'a>,
    moved: Moved,
    /// What the first of the two reads of each page found; `None` for a page that proves nothing.
    pages: BTreeMap<PageId, Option<Reread>>,
    /// When the first page was read.
    begun: Option<Instant>,
    /// How long a page has to stay the same.
    patience: Duration,
    /// Whether a change of the files may explain a finding.
    has_explained: bool,
}

/// A page that was read again and contradicts itself.
struct Reread {
    hash: u64,
    /// The first of the checks that fail on this page, with their slots.
    failed: Vec<(&'static Check, Option<u16>)>,
    /// Whether the checksum or the torn bits are wrong.
    is_torn: bool,
}

impl<'a> Rereads<'a> {
    /// Compares the files with their state when they were opened. All findings must have been made before.
    pub(crate) fn new(source: &'a dyn PageSource, database: &'a Database, patience: Option<Duration>) -> Self {
        Self {
            source,
            audit: SinglePages::new(database),
            moved: Moved { files: source.changes(), pages: BTreeSet::new() },
            pages: BTreeMap::new(),
            begun: None,
            patience: patience.unwrap_or(SETTLE_PAGE),
            has_explained: false,
        }
    }

    /// Whether a file may have changed.
    pub(crate) fn has_changes(&self) -> bool {
        !self.moved.files.is_empty()
    }

    /// Whether the pages of findings that were kept so far may have changed.
    pub(crate) fn may_have_moved(&self) -> bool {
        !self.pages.is_empty() || !self.moved.pages.is_empty()
    }

    /// The limit of a finding that a change of the files may explain. `None` if the finding stands so far; whether it
    /// is a proof is known after [`Self::settle`].
    pub(crate) fn limit(&mut self, finding: &Finding) -> Option<&'static Limit> {
        // A finding that only refers to another message is judged together with that message.
        if finding.check.policy.is_explained {
            return None;
        }
        let may_be_explained = match self.has_changes() {
            true => self.is_explained_by_change(finding),
            false => self.is_whole_now(finding),
        };
        self.has_explained |= may_be_explained;
        may_be_explained.then_some(&limits::INPUT_CHANGED)
    }

    /// Whether the page of a finding about its checksum is whole now, although no change of the files is known. The
    /// page has changed in spite of that, or the storage returned wrong bytes for the first read.
    fn is_whole_now(&mut self, finding: &Finding) -> bool {
        let is_of_files = OF_CHECKSUMS.contains(&finding.check) && self.source.backup().is_none();
        let page = finding.page.filter(|page| is_of_files && self.source.contains(*page));
        let is_whole = |page: &PageId| {
            let bytes = self.source.read_page(*page);
            bytes.is_some_and(|bytes| !matches!(identity(&bytes, *page), Some(IdentityFault::Protection(_))))
        };
        let Some(page) = page.filter(is_whole) else { return false };
        if self.moved.pages.len() < MOST_PAGES {
            self.moved.pages.insert(page);
        }
        true
    }

    fn is_explained_by_change(&mut self, finding: &Finding) -> bool {
        let Some(page) = finding.page.filter(|page| self.has_room(*page)) else { return true };
        let is_by_itself = is_by_itself(finding);
        if is_by_itself && !self.has_changed(page) {
            return false;
        }
        let stands = self.again(page).is_some_and(|reread| reread.proves(finding));
        if is_by_itself && !stands {
            self.moved.pages.insert(page);
        }
        !stands
    }

    /// Reads the damaged pages once more after they have had the time to become whole. A page that has changed gets the
    /// same time again, but not for ever. Without a change of the files, nothing has to be read again.
    pub(crate) fn settle(&mut self) {
        let Some(mut begun) = self.begun.filter(|_| self.has_changes()) else { return };
        let damaged = |(page, reread): (&PageId, &Option<Reread>)| reread.is_some().then_some(*page);
        let mut waiting: Vec<PageId> = self.pages.iter().filter_map(damaged).collect();
        for round in 0..ROUNDS {
            if waiting.is_empty() {
                return;
            }
            thread::sleep(self.patience.saturating_sub(begun.elapsed()));
            begun = Instant::now();
            waiting.retain(|page| {
                let now = self.read(*page).filter(|_| round + 1 < ROUNDS);
                let then = self.pages.insert(*page, now).flatten().map(|then| then.hash);
                let now = self.pages.get(page).and_then(Option::as_ref).map(|now| now.hash);
                now.is_some() && now != then
            });
        }
    }

    /// The limit of a finding about a page that has changed since it was judged; see [`Self::settle`].
    pub(crate) fn limit_of_moved(&mut self, finding: &Finding) -> Option<&'static Limit> {
        let page = finding.page?;
        let is_proven = match self.pages.get(&page) {
            None => !self.moved.pages.contains(&page),
            Some(reread) if finding.check.policy.is_explained => reread.is_some(),
            Some(reread) => reread.as_ref().is_some_and(|reread| reread.proves(finding)),
        };
        if is_proven {
            return None;
        }
        self.moved.pages.insert(page);
        self.has_explained = true;
        Some(&limits::INPUT_CHANGED)
    }

    /// Reports the files and pages that have changed. A file of which only the attributes have changed, not the content,
    /// is reported only if a change may explain a finding.
    pub(crate) fn end(self, coverage: &mut Coverage) -> Moved {
        let Self { mut moved, has_explained, .. } = self;
        moved.files.retain(|change| has_explained || change.is_of_content());
        moved.note(coverage);
        moved
    }

    fn has_room(&self, page: PageId) -> bool {
        self.pages.len() < MOST_PAGES || self.pages.contains_key(&page)
    }

    fn has_changed(&self, page: PageId) -> bool {
        let path = self.source.file(page.file).map(|file| &file.path);
        // The pages of a backup or an image are in files of other names.
        self.source.backup().is_some()
            || self.source.carved().is_some()
            || self.moved.files.iter().any(|change| Some(&change.path) == path)
    }

    /// What the first of the repeated reads of a page found. `None` if the page did not contradict itself then.
    fn again(&mut self, page: PageId) -> Option<&Reread> {
        if !self.pages.contains_key(&page) {
            self.begun.get_or_insert_with(Instant::now);
            let reread = self.read(page);
            self.pages.insert(page, reread);
        }
        self.pages.get(&page).and_then(Option::as_ref)
    }

    fn read(&mut self, page: PageId) -> Option<Reread> {
        let bytes = self.source.read_page(page)?;
        let is_torn = matches!(identity(&bytes, page), Some(IdentityFault::Protection(_)));
        let findings = self.audit.findings(&bytes, page).into_iter().take(MOST_FAILED);
        let failed: Vec<_> = findings.map(|found| (found.check, found.slot)).collect();
        (!failed.is_empty()).then(|| Reread { hash: hash(&bytes), failed, is_torn })
    }
}

impl Reread {
    /// Whether the bytes of the page prove a finding about it. If its checksum is wrong, they also explain findings about
    /// its relations to other pages.
    fn proves(&self, finding: &Finding) -> bool {
        let is_same = |(check, slot): &(&Check, Option<u16>)| check.id == finding.check.id && *slot == finding.slot;
        self.is_torn || is_by_itself(finding) && self.failed.iter().any(is_same)
    }
}

/// Tells whether two reads of a page returned the same bytes.
fn hash(bytes: &PageBytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Whether a finding is proven by the bytes of its page alone.
fn is_by_itself(finding: &Finding) -> bool {
    let is_of_page = finding.check.basis() == Basis::OnePage;
    is_of_page && !finding.check.policy.rests_on_log || OF_CHECKSUMS.contains(&finding.check)
}
