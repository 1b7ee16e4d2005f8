//! Heaps: pages in allocation order, rows that moved, slots that lost their row.

use crate::disk::LabError;
use crate::ids::{PAGE, PageId, RowId};
use crate::layout::Layout;
use crate::page::{self, Page, page_type};
use crate::record::{self, Extra, Kind};
use crate::row::Row;
use crate::space::{GHOSTS, Space, Unit, fullness};

/// A heap that grows.
pub(crate) struct Heap<'a> {
    layout: &'a Layout,
    unit: Unit,
    page: Option<(Page, PageId)>,
    /// Rows that have only a stub so far: stub and record.
    moved: Vec<(RowId, Row, Extra)>,
    record: Vec<u8>,
}

/// Rows that wait for their forwarded record at most.
const MOST_MOVED: usize = 1000;

impl<'a> Heap<'a> {
    /// An empty heap in `unit`.
    pub(crate) fn new(layout: &'a Layout, unit: Unit) -> Self {
        Self { layout, unit, page: None, moved: Vec::new(), record: Vec::with_capacity(8192) }
    }

    /// Adds a row, gives its address.
    pub(crate) fn push(&mut self, space: &mut Space, row: &Row, extra: &Extra, kind: Kind) -> Result<RowId, LabError> {
        let mut record = std::mem::take(&mut self.record);
        record::leaf(self.layout, row, extra, kind, &mut record);
        // A row is never shorter than the stub that may have to take its place.
        record.resize(record.len().max(9), 0);
        let at = self.put(space, &record, kind == Kind::Ghost);
        self.record = record;
        at
    }

    /// Adds a row that moved: its address is the stub, the row itself follows later on another page.
    pub(crate) fn push_moved(&mut self, space: &mut Space, row: &Row, extra: &Extra) -> Result<RowId, LabError> {
        let stub = self.put(space, &[4, 0, 0, 0, 0, 0, 0, 0, 0], false)?;
        self.moved.push((stub, row.clone(), extra.clone()));
        Ok(stub)
    }

    /// Adds an empty slot, as a deleted row leaves it.
    pub(crate) fn push_hole(&mut self) {
        if let Some((page, _)) = self.page.as_mut().filter(|(page, _)| page.room() > 2) {
            page.push_empty_slot();
        }
    }

    /// Whether rows that moved should find their place now.
    pub(crate) fn has_many_moved(&self) -> bool {
        self.moved.len() >= MOST_MOVED
    }

    /// Gives the rows that moved their place.
    pub(crate) fn settle(&mut self, space: &mut Space) -> Result<(), LabError> {
        if self.moved.is_empty() {
            return Ok(());
        }
        // On another page than their stubs.
        self.write(space)?;
        let moved = std::mem::take(&mut self.moved);
        let mut stubs: Vec<(RowId, RowId)> = Vec::new();
        for (stub, row, extra) in &moved {
            let mut record = std::mem::take(&mut self.record);
            record::leaf(self.layout, row, extra, Kind::Forwarded(*stub), &mut record);
            let at = self.put(space, &record, false)?;
            self.record = record;
            stubs.push((*stub, at));
        }
        self.write(space)?;
        for (stub, target) in stubs {
            let mut bytes = space.disk.read(stub.page)?;
            page::unprotect(&mut bytes);
            patch_stub(&mut bytes, stub.slot, target);
            page::protect(&mut bytes, space.disk.verify);
            space.disk.put(stub.page, &bytes)?;
        }
        Ok(())
    }

    fn put(&mut self, space: &mut Space, record: &[u8], ghost: bool) -> Result<RowId, LabError> {
        if record.len() > 8060 {
            return Err(LabError::Description(format!("a row of {} bytes does not fit a page", record.len())));
        }
        if self.page.as_ref().is_none_or(|(page, _)| page.room() < record.len()) {
            self.write(space)?;
            let id = space.page(&mut self.unit, 0)?;
            self.unit.data += 1;
            if self.unit.first == PageId::NONE {
                self.unit.first = id;
            }
            self.page = Some((Page::new(page_type::DATA, 0, self.unit.id, self.layout.leaf_fixed), id));
        }
        let Some((page, id)) = &mut self.page else { return Ok(RowId::default()) };
        let slot = if ghost { page.push_ghost(record) } else { page.push(record) };
        Ok(RowId { page: *id, slot })
    }

    fn write(&mut self, space: &mut Space) -> Result<(), LabError> {
        if let Some((mut page, id)) = self.page.take() {
            let ghosts = if page.ghosts() > 0 { GHOSTS } else { 0 };
            space.mark(id, fullness(page.filled()) | ghosts)?;
            space.disk.write(&mut page, id, Default::default())?;
        }
        Ok(())
    }

    /// Writes what is left and the IAM chain.
    pub(crate) fn finish(mut self, space: &mut Space) -> Result<Unit, LabError> {
        self.settle(space)?;
        self.write(space)?;
        space.close(&self.unit)?;
        Ok(self.unit)
    }
}

fn patch_stub(page: &mut [u8; PAGE], slot: u16, target: RowId) {
    let at = PAGE - 2 - 2 * usize::from(slot);
    let from = usize::from(u16::from_le_bytes([page[at], page[at + 1]])) + 1;
    page[from..from + 8].copy_from_slice(&target.bytes());
}
