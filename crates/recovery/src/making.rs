//! Makes the recovered pages one after another: redo, then undo. What redo has made is kept before undo, if a later
//! recovery may go on from there.

use std::collections::{BTreeMap, BTreeSet};

use format::log::LogRecord;
use format::log::change::Change;
use format::{Lsn, PageBytes, PageId};
use source::PageSource;

use crate::analysis::Analysis;
use crate::layout::fullness;
use crate::misfit::Misfit;
use crate::on_disk::{lsn_on_disk, on_disk};
use crate::page::WorkingPage;
use crate::reached::RedonePages;
use crate::refusal::Refusal;
use crate::store::{PageStore, PageWork, SortedRecords};
use crate::undo::Undo;

/// The context number of bulk operations in log records.
const BULK: u8 = 29;

/// The pages that redo has made before undo, kept for the next recovery.
pub(crate) struct Shelf<'k> {
    pub(crate) is_resumed: bool,
    /// Whether all pages that redo has made could be kept.
    pub(crate) is_whole: bool,
    pub(crate) kept: Option<&'k mut (dyn RedonePages + 'k)>,
}

impl Shelf<'_> {
    /// Whether an earlier recovery, from which this one goes on, has made this page.
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.is_resumed && self.kept.as_ref().is_some_and(|kept| kept.has(page))
    }

    /// The page that an earlier recovery has made.
    fn read(&self, page: PageId, analysis: &Analysis) -> Result<Making, Refusal> {
        let kept = self.kept.as_ref().ok_or(Refusal::NotResumed)?.read(page).map_err(|_| Refusal::NotResumed)?;
        Making::of_kept(page, &kept, analysis).ok_or(Refusal::NotResumed)
    }

    /// Puts all pages of the earlier recovery into the store.
    pub(crate) fn put_all(&self, analysis: &Analysis, store: &mut PageStore) -> Result<(), Refusal> {
        let Some(kept) = self.kept.as_ref().filter(|_| self.is_resumed) else { return Ok(()) };
        for page in kept.pages() {
            let making = self.read(page, analysis)?;
            let work = making.work;
            let bytes = making.finish().map_err(|_| Refusal::NotResumed)?;
            store.put(page, &bytes, work)?;
        }
        Ok(())
    }

    /// Keeps a page that redo has made.
    fn keep(&mut self, making: &Making) {
        let Some(kept) = self.kept.as_deref_mut().filter(|_| self.is_whole) else { return };
        match making.to_kept() {
            Some(bytes) => kept.keep(making.id, &bytes),
            None => self.is_whole = false,
        }
    }
}

/// Makes the recovered pages, one after another.
pub(crate) struct Maker<'a, 'k> {
    pub(crate) source: &'a dyn PageSource,
    pub(crate) analysis: &'a Analysis,
    /// The heap and LOB pages that open transactions changed.
    pub(crate) heaps: BTreeSet<PageId>,
    pub(crate) store: PageStore,
    pub(crate) failed: BTreeMap<PageId, Misfit>,
    /// The fullness of the pages in `heaps`.
    pub(crate) filled: BTreeMap<PageId, u8>,
    pub(crate) shelf: Shelf<'k>,
}

impl Maker<'_, '_> {
    /// Makes all pages that lack changes or have changes to undo. Calls `newer` with each page that has changes to redo
    /// and is newer than the log.
    pub(crate) fn make_all(
        &mut self,
        mut redo: SortedRecords,
        mut undo: SortedRecords,
        mut newer: impl FnMut(PageId, Lsn),
    ) -> Result<(), Refusal> {
        let to_fill: Vec<PageId> = self.heaps.iter().copied().collect();
        let mut to_fill = to_fill.into_iter().peekable();
        loop {
            let to_redo = redo.next_page()?;
            let next = [to_redo, undo.next_page()?, to_fill.peek().copied()];
            let Some(page) = next.into_iter().flatten().min() else { return Ok(()) };
            to_fill.next_if_eq(&page);
            let was_kept = self.shelf.has(page);
            let mut making = match was_kept {
                true => self.shelf.read(page, self.analysis)?,
                false => Making::new(self.source, page, self.analysis),
            };
            if to_redo == Some(page) && making.stored_lsn > self.analysis.end {
                newer(page, making.stored_lsn);
            }
            let mut is_redone = false;
            while let Some((lsn, bytes)) = redo.next_of(page)? {
                is_redone |= making.redo(lsn, &LogRecord::new(bytes));
            }
            making.end_redo();
            if is_redone {
                self.shelf.keep(&making);
            }
            let mut is_changed = is_redone || was_kept;
            while let Some((_, bytes)) = undo.next_of(page)? {
                making.take_back(bytes);
                is_changed = true;
            }
            // The stored page already contains the changes of all its records.
            if is_changed || self.heaps.contains(&page) {
                self.finish(making, is_changed)?;
            }
        }
    }

    fn finish(&mut self, making: Making, is_changed: bool) -> Result<(), Refusal> {
        let (page, work) = (making.id, making.work);
        match making.finish() {
            Ok(bytes) => {
                self.store.put(page, &bytes, work)?;
                self.store.set_work(page, work);
                let class = if self.heaps.contains(&page) { fullness(&bytes) } else { None };
                self.filled.extend(class.map(|class| (page, class)));
            }
            // The page was loaded only to compute its fullness, so it is already in its recovered state.
            Err(_) if !is_changed => {}
            // The page is shown as it is stored, not as an earlier recovery has made it.
            Err(_) if self.shelf.is_resumed => return Err(Refusal::NotResumed),
            Err(why) => {
                self.shelf.is_whole = false;
                self.failed.insert(page, why);
            }
        }
        Ok(())
    }
}

/// A page during its recovery.
struct Making {
    id: PageId,
    /// The LSN of the stored page; zero if the page cannot be read.
    stored_lsn: Lsn,
    /// The current state of the page, or the reason why it cannot be used. A FORMAT_PAGE record may still create the
    /// page.
    page: Result<WorkingPage, Misfit>,
    /// The reason why the page cannot be recovered; `None` if no record has failed so far. Only the first reason is
    /// kept.
    misfit: Option<Misfit>,
    work: PageWork,
    has_bulk: bool,
    /// Whether a bulk operation may have filled the page and not logged its rows.
    is_bulk: bool,
}

impl Making {
    fn new(source: &dyn PageSource, id: PageId, analysis: &Analysis) -> Self {
        let has_bulk = analysis.has_bulk;
        let stored = if source.contains(id) { source.read_page(id) } else { None };
        // The files may have grown after the backup, so the page may be beyond the end of its file.
        let is_new = analysis.is_restore && source.file(id.file).is_some_and(|file| id.page >= file.pages);
        let stored_lsn = stored.as_ref().map(|stored| lsn_on_disk(id, stored)).unwrap_or_default();
        let (page, misfit) = match stored {
            Some(stored) => (on_disk(id, &stored), None),
            None if is_new => (Err(Misfit::PageDamaged), None),
            None => (Err(Misfit::NotThere), Some(Misfit::NotThere)),
        };
        Self { id, stored_lsn, page, misfit, work: PageWork::default(), has_bulk, is_bulk: false }
    }

    /// The page that an earlier recovery has kept; `None` if the bytes are none.
    fn of_kept(id: PageId, kept: &[u8], analysis: &Analysis) -> Option<Self> {
        let (head, page) = kept.split_first_chunk::<5>()?;
        let [is_bulk, redone @ ..] = *head;
        let page = WorkingPage::of_kept(page)?;
        Some(Self {
            id,
            stored_lsn: page.lsn(),
            page: Ok(page),
            misfit: None,
            work: PageWork { redone: u32::from_le_bytes(redone), undone: 0 },
            has_bulk: analysis.has_bulk,
            is_bulk: is_bulk != 0,
        })
    }

    /// The page after redo, for [`Self::of_kept`]; `None` if it cannot be used.
    fn to_kept(&self) -> Option<Vec<u8>> {
        let page = self.page.as_ref().ok().filter(|_| self.misfit.is_none())?;
        let mut kept = vec![self.is_bulk.into()];
        kept.extend(self.work.redone.to_le_bytes());
        kept.extend(page.to_kept());
        Some(kept)
    }

    /// Applies a record, unless the page already contains its change. Returns whether the page lacked the change.
    fn redo(&mut self, lsn: Lsn, record: &LogRecord<'_>) -> bool {
        if self.stored_lsn >= lsn || self.page.as_ref().is_ok_and(|page| page.lsn() >= lsn) {
            return false;
        }
        if self.misfit.is_none() {
            self.misfit = self.apply(lsn, record).err();
        }
        true
    }

    fn apply(&mut self, lsn: Lsn, record: &LogRecord<'_>) -> Result<(), Misfit> {
        let (Some(place), Some(change)) = (record.on_page(), record.change()) else {
            return Err(Misfit::RecordUnknown);
        };
        if let Change::Format(new) = &change {
            self.page = WorkingPage::format(self.id, (place.index_id, place.object_id), new);
            self.is_bulk = self.has_bulk || record.context() == BULK;
        } else if let Ok(page) = &mut self.page {
            if page.lsn() != place.page_lsn {
                return Err(Misfit::OtherMoment);
            }
            page.redo(place.slot, record.context(), &change)?;
        }
        if let Ok(page) = &mut self.page {
            page.set_lsn(lsn);
            self.work.redone += 1;
        }
        Ok(())
    }

    /// Ends the redo of this page. Must be called after the last redo record and before any undo.
    fn end_redo(&mut self) {
        let lacks_rows = self.is_bulk && self.page.as_ref().is_ok_and(WorkingPage::is_empty);
        if self.misfit.is_none() && lacks_rows {
            self.misfit = Some(Misfit::BulkRows);
        }
    }

    /// Undoes a change of an open transaction. Changes must be undone from the latest to the earliest.
    fn take_back(&mut self, undo: &[u8]) {
        if self.misfit.is_none()
            && let Ok(page) = &mut self.page
        {
            self.misfit = take_back(page, undo).err();
            self.work.undone += 1;
        }
    }

    /// Writes the rows and the checksum into the bytes of the page.
    fn finish(self) -> Result<Box<PageBytes>, Misfit> {
        match self.misfit {
            Some(misfit) => Err(misfit),
            None => self.page?.finish(),
        }
    }
}

fn take_back(page: &mut WorkingPage, undo: &[u8]) -> Result<(), Misfit> {
    let undo = Undo::read(undo).ok_or(Misfit::RecordUnknown)?;
    let change = undo.record.change().ok_or(Misfit::RecordUnknown)?;
    page.undo(undo.slot, undo.record.context(), &change, &undo.moved_rows(), undo.as_a_whole)
}
