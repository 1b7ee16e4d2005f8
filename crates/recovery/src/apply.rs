//! Recovers the pages: first redo, then undo of the open transactions.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use format::allocation::{PFS_PAGES, PfsByte, pfs_page_of};
use format::page::{HEADER_BYTES, page_flags};
use format::protection::seal;
use format::{Lsn, Page, PageBytes, PageId, PageType};
use log::Log;
use source::{FileChange, PageSource};

use crate::analysis::{Analysis, each_block};
use crate::applied::{Applied, NotRecovered};
use crate::losers::Losers;
use crate::making::{Maker, Shelf};
use crate::misfit::Misfit;
use crate::on_disk::{lsn_on_disk, readable};
use crate::page::WorkingPage;
use crate::reached::{Reached, RedonePages};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::store::{PageStore, PageWork, RecordStore};

/// The most steps for tracking moved rows of open transactions, in total. This number of steps takes about half a
/// minute.
const MAX_STEPS: u64 = 1 << 28;
/// The maximum number of pages with an LSN after the end of the log that recovery remembers. If one of these pages is
/// allocated, the recovery is refused.
const MAX_NEWER: usize = 10_000;

/// A finished recovery.
pub struct Recovery {
    /// The analysis of the log.
    pub analysis: Analysis,
    /// The summary of the work.
    pub applied: Applied,
    pub(crate) store: PageStore,
    /// The log files that changed while they were read.
    pub(crate) log_changes: Vec<FileChange>,
    /// The point from which a later recovery can go on, if all pages that redo has made were kept.
    pub reached: Option<Reached>,
}

impl Recovery {
    /// Recovers the pages.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the log cannot be read a second time, a temporary file fails, or the memory grant is too small.
    /// Also if later changes moved the rows of open transactions too often, or if the data files are newer than the
    /// log.
    pub fn new(source: &dyn PageSource, log: &Log, analysis: Analysis, settings: &Settings) -> Result<Self, Refusal> {
        Self::keeping(source, log, analysis, settings, None)
    }

    /// Recovers the pages like [`Self::new`], and keeps what redo makes of them in `kept`. If the analysis goes on from
    /// where an earlier recovery stood, begins with the pages that this recovery has kept there.
    ///
    /// # Errors
    ///
    /// [`Refusal`] as for [`Self::new`]. If the analysis goes on from an earlier recovery, each error means only that the
    /// whole log must be read.
    pub fn keeping<'k>(
        source: &dyn PageSource,
        log: &Log,
        mut analysis: Analysis,
        settings: &Settings,
        kept: Option<&'k mut (dyn RedonePages + 'k)>,
    ) -> Result<Self, Refusal> {
        let mut applied = Applied::default();
        let shelf = Shelf { is_resumed: analysis.resumed.is_some(), is_whole: true, kept };
        // Without the table of pages, the records of all pages are sorted. The LSN of each page then shows which
        // changes the page lacks.
        let mut lacking = analysis.pages.take();
        let mut newer =
            lacking.as_mut().map(|lacking| keep_lacking(source, &shelf, lacking, analysis.end)).unwrap_or_default();
        let mut records = RecordStore::new(settings.temp_dir.clone(), settings.record_bytes());
        let mut losers = Losers::of(&analysis.losers, settings.undo_bytes());
        keep_records(
            log,
            &analysis,
            |page, lsn| match &lacking {
                Some(lacking) => lacking.get(&page).is_some_and(|on_disk| *on_disk < lsn),
                // Records for pages in files that were not given are left out. Records for the header of the log file are
                // left out too.
                None => source.file(page.file).is_some(),
            },
            &mut losers,
            &mut records,
        )?;
        if losers.needed_bytes > settings.undo_bytes() {
            return Err(Refusal::TooMuchToUndo { needed_bytes: losers.needed_bytes as u64 });
        }
        losers.plan(settings.has_version_store, &mut applied);
        let heaps = losers.heap_pages();
        let not_recovered = std::mem::take(&mut applied.not_recovered).into_iter();
        let failed: BTreeMap<PageId, Misfit> = not_recovered.map(|NotRecovered { page, why }| (page, why)).collect();
        let mut undo = RecordStore::new(settings.temp_dir.clone(), settings.record_bytes());
        losers.collect(log, &failed, &mut undo, settings.undo_bytes())?;
        drop(losers);
        let mut store = PageStore::new(settings.temp_dir.clone(), settings.page_bytes());
        shelf.put_all(&analysis, &mut store)?;
        let mut maker = Maker { source, analysis: &analysis, heaps, store, failed, filled: BTreeMap::new(), shelf };
        // Like the table of pages, this test considers only pages that the log changes after the start of redo.
        let finds_newer = lacking.is_none();
        maker.make_all(records.into_sorted()?, undo.into_sorted()?, |page, lsn| {
            if finds_newer && newer.len() < MAX_NEWER {
                newer.push((page, lsn));
            }
        })?;
        let Maker { mut store, failed, filled, shelf, .. } = maker;
        set_fullness(source, &mut store, &filled)?;
        store.finish()?;
        let is_kept = shelf.is_whole && shelf.kept.is_some() && newer.is_empty();
        // A free page that is newer than the log proves nothing, because its content may come from another database.
        let newer = newer.into_iter().find(|(page, _)| is_allocated(source, &store, *page));
        if let Some((page, lsn)) = newer.or_else(|| newer_again(source, &store, analysis.end)) {
            return Err(Refusal::FilesNewer { page, lsn, end: analysis.end });
        }
        (applied.pages, applied.records) = (store.pages().len() as u64, store.redone());
        let not_recovered = failed.into_iter().filter(|(page, _)| is_allocated(source, &store, *page));
        applied.not_recovered = not_recovered.map(|(page, why)| NotRecovered { page, why }).collect();
        let can_go_on = is_kept && analysis.is_restore && analysis.until.is_none() && !analysis.has_bulk;
        let reached = if can_go_on { analysis.reached() } else { None };
        Ok(Self { analysis, applied, store, log_changes: log.changes(), reached })
    }
}

/// Reads the log from the start of recovery, or from where an earlier recovery stood: tracks the changes of open transactions in `losers`, and keeps the records
/// of changes that `is_lacking` a page, given with the LSN of the change.
fn keep_records(
    log: &Log,
    analysis: &Analysis,
    is_lacking: impl Fn(PageId, Lsn) -> bool,
    losers: &mut Losers<'_>,
    records: &mut RecordStore,
) -> Result<(), Refusal> {
    each_block(log, analysis.undo_from(), analysis.until, |block| {
        if losers.steps > MAX_STEPS {
            return Err(Refusal::TooEntangled);
        }
        for (lsn, record) in block.records().filter(|(lsn, _)| analysis.includes(*lsn)) {
            losers.record(lsn, &record);
            let is_redone = lsn >= analysis.redo_from && !analysis.is_done(lsn);
            let Some(change) = record.on_page().filter(|_| is_redone) else { continue };
            if is_lacking(change.page, lsn) {
                records.push((change.page, lsn), record.bytes())?;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}

/// Finds a page that is free in the files, that recovery allocates again, and that is newer than the end of the log.
/// Returns the page ID and the LSN of the page. If undo allocates a page again, the old rows of the page should still
/// be on the page. But a page that is newer than the log was used for other rows later, so its old rows are lost.
fn newer_again(source: &dyn PageSource, store: &PageStore, end: Lsn) -> Option<(PageId, Lsn)> {
    let maps = store.pages().iter().map(|stored| stored.page).filter(|page| pfs_page_of(page.page) == page.page);
    for map in maps {
        let (Some(before), Some(after)) = (readable(source, map), store.get(map)) else { continue };
        let is_map = |bytes: &PageBytes| Page::new(bytes).header().kind() == Some(PageType::Pfs);
        if !is_map(&before) || !is_map(&after) {
            continue;
        }
        let bytes = before.iter().zip(after.iter()).skip(PFS_BYTES_AT).take(PFS_PAGES as usize);
        let is_again = |(before, after): (&u8, &u8)| !PfsByte(*before).is_allocated() && PfsByte(*after).is_allocated();
        let first = map.page / PFS_PAGES * PFS_PAGES;
        let again = (first..).zip(bytes).filter(|(_, bytes)| is_again(*bytes));
        for page in again.map(|(page, _)| PageId::new(map.file, page)).filter(|page| source.contains(*page)) {
            let lsn = source.read_page(page).map(|bytes| lsn_on_disk(page, &bytes)).unwrap_or_default();
            if lsn > end {
                return Some((page, lsn));
            }
        }
    }
    None
}

/// Offset on a PFS page of the first PFS byte, which describes the first page of the PFS interval.
const PFS_BYTES_AT: usize = HEADER_BYTES + 4;

/// Finds the recovered PFS page that describes `page`. Returns the ID of the PFS page, its bytes, and the offset of the
/// PFS byte for `page`.
fn pfs_byte(source: &dyn PageSource, store: &PageStore, page: PageId) -> Option<(PageId, Box<PageBytes>, usize)> {
    let map = PageId::new(page.file, pfs_page_of(page.page));
    let bytes = store.get(map).or_else(|| readable(source, map))?;
    let header = Page::new(&bytes).header();
    let is_map = header.kind() == Some(PageType::Pfs) && header.page_id() == map;
    is_map.then_some((map, bytes, PFS_BYTES_AT + (page.page % PFS_PAGES) as usize))
}

/// Sets the fullness of heap and LOB pages in the PFS pages. When SQL Server undoes a transaction, it computes the
/// fullness of these pages anew and does not log the changed fullness.
fn set_fullness(source: &dyn PageSource, store: &mut PageStore, filled: &BTreeMap<PageId, u8>) -> Result<(), Refusal> {
    const CLASS: u8 = 7;
    for (page, class) in filled {
        let Some((map, mut bytes, at)) = pfs_byte(source, store, *page) else { continue };
        let Some(byte) = bytes.get_mut(at).filter(|byte| PfsByte(**byte).is_allocated() && **byte & CLASS != *class)
        else {
            continue;
        };
        *byte = *byte & !CLASS | class;
        let has_checksum = Page::new(&bytes).header().flags.get() & page_flags::CHECKSUM != 0;
        if has_checksum {
            seal(&mut bytes);
        } else {
            // The bits that torn-page protection replaced were restored, so the page gets a checksum instead.
            bytes = WorkingPage::load(&bytes).and_then(WorkingPage::finish).unwrap_or(bytes);
        }
        store.put(map, &bytes, PageWork::default())?;
    }
    Ok(())
}

impl Recovery {
    /// Whether the log may belong to another copy of the database. This is so if the log has checkpoints or records
    /// that do not fit the boot page or the records before them. It is also so if pages contradict the log, and their
    /// number is at least a tenth of the number of recovered pages. The recovered pages then prove nothing.
    pub fn may_be_of_another_copy(&self) -> bool {
        let contradicting = self.applied.not_recovered.iter().filter(|entry| entry.why == Misfit::OtherMoment).count();
        let is_often_contradicted = contradicting > 0 && contradicting as u64 * 10 >= self.applied.pages;
        is_often_contradicted || self.analysis.contradiction().is_some()
    }

    /// The pages that recovery has made or changed, in ascending order.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.store.pages().iter().map(|stored| stored.page)
    }

    /// Number of bytes of memory that the recovered pages occupy.
    pub fn kept_bytes(&self) -> u64 {
        self.store.memory_bytes() as u64
    }

    /// Moves recovered pages to a temporary file until [`Self::kept_bytes`] is at most `bytes`. Some memory cannot be
    /// freed, so `kept_bytes` may stay above `bytes`.
    ///
    /// # Errors
    ///
    /// The error of the temporary file.
    pub fn keep_at_most(&mut self, bytes: u64) -> std::io::Result<()> {
        self.store.keep_at_most(usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Keeps in `pages` only the pages that may lack some changes of the log. The value of each of these pages becomes its
/// LSN on disk, or zero if the page is unreadable. Returns at most [`MAX_NEWER`] pages with an LSN after `end`, the end
/// of the log.
fn keep_lacking(
    source: &dyn PageSource,
    shelf: &Shelf<'_>,
    pages: &mut HashMap<PageId, Lsn, RandomState>,
    end: Lsn,
) -> Vec<(PageId, Lsn)> {
    // Drop pages in files that were not given. Also drop the header of the log file.
    pages.retain(|page, _| source.file(page.file).is_some());
    let mut order: Vec<PageId> = pages.keys().copied().collect();
    order.sort_unstable();
    let mut newer = Vec::new();
    for page in order {
        // A page that was made up to an earlier end of the log lacks all later changes.
        if shelf.has(page) {
            pages.insert(page, Lsn::default());
            continue;
        }
        let lsn = source.read_page(page).map(|bytes| lsn_on_disk(page, &bytes)).unwrap_or_default();
        if lsn > end && newer.len() < MAX_NEWER {
            newer.push((page, lsn));
        }
        if pages.get(&page).is_some_and(|last| lsn < *last) {
            pages.insert(page, lsn);
        } else {
            pages.remove(&page);
        }
    }
    newer
}

/// Whether a page is allocated after recovery, according to its PFS page. Also true if the PFS page cannot be read.
fn is_allocated(source: &dyn PageSource, store: &PageStore, page: PageId) -> bool {
    let byte = pfs_byte(source, store, page).and_then(|(_, bytes, at)| bytes.get(at).copied());
    byte.is_none_or(|byte| PfsByte(byte).is_allocated())
}
