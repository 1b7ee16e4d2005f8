//! Builds heaps: pages in allocation order, forwarded rows, empty slots.

use crate::compress::{self, CompressedPage, Stored};
use crate::disk::LabError;
use crate::ids::{PAGE, PageId, RowId};
use crate::layout::Layout;
use crate::page::{self, Page, page_type};
use crate::record;
use crate::row::{Extra, Kind, Row};
use crate::space::{GHOSTS, Space, Unit, fullness};

/// A heap under construction.
pub(crate) struct Heap<'a> {
    layout: &'a Layout,
    unit: Unit,
    page: Option<(Page, PageId)>,
    /// The forwarded rows that are not written yet, each with the address of its forwarding stub, which is already
    /// written.
    moved: Vec<(RowId, Row, Extra)>,
    /// The rows that are waiting to be written on pages with PAGE compression. `pending_bytes` is the number of bytes
    /// that they need with ROW compression only.
    pending: Vec<(u8, Vec<Stored>)>,
    pending_bytes: usize,
    page_compression: bool,
    /// The addresses of the rows; `None` if the caller did not request them.
    addresses: Option<Vec<RowId>>,
    record: Vec<u8>,
}

/// The number of bytes of rows that are collected before a page is compressed. It exceeds the page size, because
/// compressed rows need less space.
const BATCH: usize = 3 * PAGE;
/// The most forwarded rows that are kept in memory before they are written.
const MOST_MOVED: usize = 1000;

impl<'a> Heap<'a> {
    /// Creates an empty heap in `unit`. With `page_compression`, full pages get a CI record.
    pub(crate) fn new(layout: &'a Layout, unit: Unit, page_compression: bool, keep_addresses: bool) -> Self {
        Self {
            layout,
            unit,
            page: None,
            moved: Vec::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            page_compression,
            addresses: keep_addresses.then(Vec::new),
            record: Vec::with_capacity(PAGE),
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, space: &mut Space, row: &Row, extra: &Extra, kind: Kind) -> Result<(), LabError> {
        let mut record = std::mem::take(&mut self.record);
        record::leaf(self.layout, row, extra, kind, &mut record);
        if self.page_compression {
            let status = compress::status(self.layout.leaf, kind);
            self.pending.push((status, compress::stored_row(self.layout, row, extra)));
            self.pending_bytes += record.len() + 2;
            self.record = record;
            return if self.pending_bytes > BATCH { self.compress(space) } else { Ok(()) };
        }
        if !self.layout.compressed {
            // A row must be at least as long as a forwarding stub, because a stub may replace it.
            record.resize(record.len().max(9), 0);
        }
        self.put(space, &record, kind == Kind::Ghost)?;
        self.record = record;
        Ok(())
    }

    /// Compresses pending rows into one page, from the first row on, until the page is full.
    fn compress(&mut self, space: &mut Space) -> Result<(), LabError> {
        self.write(space)?;
        let compressed = CompressedPage::of(&self.pending);
        let count = compressed.records.len();
        if count == 0 {
            return self.put_pending(space);
        }
        self.start_page(space)?;
        if let Some((page, _)) = &mut self.page {
            page.push_information(&compressed.information);
        }
        let statuses: Vec<u8> = self.pending.drain(..count).map(|(status, _)| status).collect();
        for (status, record) in statuses.into_iter().zip(&compressed.records) {
            self.put(space, record, compress::is_ghost(status))?;
        }
        let length = |values: &[Stored]| {
            let mut record = Vec::new();
            compress::push_record(1, values, &mut record);
            record.len() + 2
        };
        self.pending_bytes = self.pending.iter().map(|(_, values)| length(values)).sum();
        self.write(space)
    }

    /// Writes the pending rows with ROW compression only. This is done if they do not fill a page.
    fn put_pending(&mut self, space: &mut Space) -> Result<(), LabError> {
        for (status, values) in std::mem::take(&mut self.pending) {
            let mut record = Vec::new();
            compress::push_record(status, &values, &mut record);
            self.put(space, &record, compress::is_ghost(status))?;
        }
        self.pending_bytes = 0;
        Ok(())
    }

    /// Adds a forwarded row. Writes its forwarding stub now; the address of the stub is also the address of the row.
    /// The row itself is written later, on another page.
    pub(crate) fn push_moved(&mut self, space: &mut Space, row: &Row, extra: &Extra) -> Result<(), LabError> {
        let stub = self.put(space, &[4, 0, 0, 0, 0, 0, 0, 0, 0], false)?;
        self.moved.push((stub, row.clone(), extra.clone()));
        Ok(())
    }

    /// Adds an empty slot, like the slot of a deleted heap row.
    pub(crate) fn push_hole(&mut self) {
        if let Some((page, _)) = self.page.as_mut().filter(|(page, _)| page.room() > 2) {
            page.push_empty_slot();
        }
    }

    /// Whether the number of forwarded rows in memory is so high that they should be written now.
    pub(crate) fn has_many_moved(&self) -> bool {
        self.moved.len() >= MOST_MOVED
    }

    /// Writes the records of the forwarded rows, and sets their addresses in the stubs.
    pub(crate) fn settle(&mut self, space: &mut Space) -> Result<(), LabError> {
        if self.moved.is_empty() {
            return Ok(());
        }
        // Forwarded rows must not be on the page of their stubs, so they start a new page.
        self.write(space)?;
        let moved = std::mem::take(&mut self.moved);
        let mut stubs: Vec<(RowId, RowId)> = Vec::new();
        for (stub, row, extra) in &moved {
            let mut record = std::mem::take(&mut self.record);
            record::leaf(self.layout, row, extra, Kind::Forwarded(*stub), &mut record);
            let addresses = self.addresses.take();
            let at = self.put(space, &record, false)?;
            (self.record, self.addresses) = (record, addresses);
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
            self.start_page(space)?;
        }
        let Some((page, id)) = &mut self.page else { return Ok(RowId::default()) };
        let slot = if ghost { page.push_ghost(record) } else { page.push(record) };
        let at = RowId { page: *id, slot };
        if let Some(addresses) = &mut self.addresses {
            addresses.push(at);
        }
        Ok(at)
    }

    fn start_page(&mut self, space: &mut Space) -> Result<(), LabError> {
        self.write(space)?;
        let id = space.page(&mut self.unit, 0)?;
        self.unit.data += 1;
        if self.unit.first == PageId::NONE {
            self.unit.first = id;
        }
        self.page = Some((Page::new(page_type::DATA, 0, self.unit.id, self.layout.leaf_fixed), id));
        Ok(())
    }

    fn write(&mut self, space: &mut Space) -> Result<(), LabError> {
        if let Some((mut page, id)) = self.page.take() {
            let ghosts = if page.ghosts() > 0 { GHOSTS } else { 0 };
            space.mark(id, fullness(page.filled()) | ghosts)?;
            space.disk.write(&mut page, id, Default::default())?;
        }
        Ok(())
    }

    /// Writes the remaining rows and the IAM chain; returns the addresses of the rows.
    pub(crate) fn finish(mut self, space: &mut Space) -> Result<(Unit, Vec<RowId>), LabError> {
        while self.pending_bytes > PAGE {
            self.compress(space)?;
        }
        self.put_pending(space)?;
        self.settle(space)?;
        self.write(space)?;
        space.close(&mut self.unit)?;
        Ok((self.unit, self.addresses.unwrap_or_default()))
    }
}

fn patch_stub(page: &mut [u8; PAGE], slot: u16, target: RowId) {
    let at = PAGE - 2 - 2 * usize::from(slot);
    let from = usize::from(u16::from_le_bytes([page[at], page[at + 1]])) + 1;
    page[from..from + 8].copy_from_slice(&target.bytes());
}
