//! Reads the rows of pages as values.

use std::io;

use catalog::{Database, Rowset};
use format::compressed::{CdRecord, CompressionInfo, Expansion, Scratch};
use format::protection::{undo_torn_bits, verify};
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::{AllocUnitId, PAGE_BYTES, Page, PageBytes, PageId, PageType, RecordId};
use source::{PageBuffer, PageSource, ReadError};

use crate::counts::{RangeCounts, Why};
use crate::leaf::names;
use crate::plan::Plan;
use crate::row::RowBuilder;
use crate::scan::{RANGE_PAGES, Range, ScanOptions, in_row_unit};
use crate::{Table, Value};

/// The reason why a delivered row is doubtful.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// The page of the row is damaged, but the record is proven to be complete.
    DamagedPage,
    /// No index page or IAM page points to the page of the row any more.
    Unreached,
    /// It is unknown whether the page of the row was freed, because the PFS page that describes it cannot be read.
    UseUnknown,
    /// The row is a ghost: it was deleted but is still on its page.
    Ghost,
    /// The row was rebuilt from nonclustered indexes.
    FromIndexes,
}

/// A row with its values.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The address of the row; for a forwarded row, its new address.
    pub place: RecordId,
    /// The values of the row, parallel to [`Table::columns`].
    pub values: &'a [Value<'a>],
    /// The reason why the row is doubtful; `None` if it was read normally from a sound page.
    pub doubt: Option<Doubt>,
}

/// Reads ranges of pages. Each thread needs its own reader, because a reader reuses its buffers.
pub struct Reader<'a> {
    source: &'a dyn PageSource,
    partitions: Vec<Option<Partition<'a>>>,
    buffer: PageBuffer,
    order: SlotOrder,
    by_slot: Vec<(u16, u16)>,
    expanded: Scratch,
    builder: RowBuilder<'a>,
}

struct Partition<'a> {
    rowset: &'a Rowset,
    unit: AllocUnitId,
    plan: Plan<'a>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `table`.
    pub fn new(source: &'a dyn PageSource, database: &'a Database, table: &'a Table, _options: ScanOptions) -> Self {
        let partition = |at: &usize| {
            let rowset = database.rowsets.get(*at)?;
            let unit = in_row_unit(database, rowset)?.id;
            Some(Partition { rowset, unit, plan: Plan::of(table, rowset) })
        };
        Self {
            source,
            partitions: table.partitions.iter().map(partition).collect(),
            buffer: PageBuffer::new(RANGE_PAGES as u32),
            order: SlotOrder::default(),
            by_slot: Vec::new(),
            expanded: Scratch::default(),
            builder: RowBuilder::new(source),
        }
    }

    /// Calls `each` with the rows of the pages in a range: page by page, and in slot order on each page.
    ///
    /// # Errors
    ///
    /// Errors of `each`. Damage is not an error; it is counted.
    pub fn read(&mut self, range: &Range, each: &mut dyn FnMut(&Row<'_>) -> io::Result<()>) -> io::Result<RangeCounts> {
        let mut counts = RangeCounts::default();
        range.lost.iter().for_each(|&(page, why)| counts.leave_out(page, why));
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut rest = range.pages.as_slice();
        let mut result = Ok(());
        while let Some(&first) = rest.first() {
            let adjoins = |at: usize, page: &PageId| {
                page.file == first.file && first.page.checked_add(at as u32) == Some(page.page)
            };
            let run =
                rest.iter().enumerate().take(RANGE_PAGES).take_while(|(at, page)| adjoins(*at, page)).count().max(1);
            let bytes = buffer.bytes().get_mut(..run * PAGE_BYTES).unwrap_or_default();
            let whole = self.source.read(first, bytes).is_ok_and(|read| read == run);
            for (at, page) in rest.iter().take(run).enumerate() {
                let bytes = bytes.get_mut(at * PAGE_BYTES..).and_then(|bytes| bytes.first_chunk_mut::<PAGE_BYTES>());
                let Some(bytes) = bytes else { break };
                let read = if whole { Ok(1) } else { self.source.read(*page, bytes) };
                if !matches!(read, Ok(1)) {
                    let why = match read {
                        Err(ReadError::NotFound { .. }) => Why::NotFound,
                        _ if self.source.contains(*page) => Why::Unread,
                        _ => Why::absent(self.source, *page),
                    };
                    counts.leave_out(*page, why);
                    continue;
                }
                result = self.page(range, *page, bytes, &mut counts, each);
                if result.is_err() {
                    break;
                }
            }
            if result.is_err() {
                break;
            }
            rest = rest.get(run..).unwrap_or_default();
        }
        self.buffer = buffer;
        result.map(|()| counts)
    }

    /// Calls `each` with the rows of one page, each marked with `doubt`. The page may be damaged, but the caller must
    /// have removed all records that are not proven to be complete. If `table` describes a nonclustered index, the page
    /// may be a leaf page of this index. If `ghosts` is true, ghosts are delivered too, as [`Doubt::Ghost`].
    ///
    /// # Errors
    ///
    /// Errors of `each`.
    pub fn read_page(
        &mut self,
        partition: usize,
        (id, bytes): (PageId, &PageBytes),
        (doubt, ghosts): (Option<Doubt>, bool),
        each: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> io::Result<RangeCounts> {
        let mut counts = RangeCounts::default();
        self.rows(partition, (id, bytes), (doubt, ghosts), &mut counts, each)?;
        Ok(counts)
    }

    /// Calls `each` with the rows of a page that was just read. If the rows cannot be used, counts the page with the
    /// reason.
    fn page(
        &mut self,
        range: &Range,
        id: PageId,
        bytes: &mut PageBytes,
        counts: &mut RangeCounts,
        each: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(Some(partition)) = self.partitions.get(range.partition) else { return Ok(()) };
        match judge(id, bytes, partition.unit) {
            Ok(PageType::Index) if range.has_nodes => Ok(()),
            Ok(PageType::Data) => self.rows(range.partition, (id, bytes), (None, false), counts, each),
            Ok(other) => {
                counts.leave_out(id, Why::OtherType(other as u8));
                Ok(())
            }
            Err(why) => {
                counts.leave_out(id, why);
                Ok(())
            }
        }
    }

    fn rows(
        &mut self,
        partition: usize,
        (id, bytes): (PageId, &PageBytes),
        (doubt, ghosts): (Option<Doubt>, bool),
        counts: &mut RangeCounts,
        each: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { partitions, order, by_slot, expanded, builder, .. } = self;
        let Some(Some(partition)) = partitions.get(partition) else { return Ok(()) };
        let page = Page::new(bytes);
        let is_index = page.header().kind() == Some(PageType::Index);
        order.load(page);
        by_slot.clear();
        by_slot.extend(order.entries().iter().enumerate().map(|(position, entry)| (entry.slot, position as u16)));
        if !by_slot.is_sorted() {
            by_slot.sort_unstable();
        }
        let compression = if partition.rowset.is_row_compressed() {
            match compression_of(page, partition.rowset, order) {
                Some(compression) => Some(compression),
                None => {
                    counts.leave_out(id, Why::CompressionInfo);
                    return Ok(());
                }
            }
        } else {
            None
        };
        let doubt_of = |record: &Record<'_>| match record.kind() {
            RecordKind::Primary | RecordKind::Forwarded => Some(doubt),
            RecordKind::Index if is_index => Some(doubt),
            RecordKind::GhostData if ghosts => Some(Some(Doubt::Ghost)),
            _ => None,
        };
        let plan = &partition.plan;
        let (mut records, mut places) = (Vec::new(), Vec::new());
        for &(slot, position) in by_slot.iter() {
            let space = order.space(page, position.into());
            let place = RecordId { page: id, slot };
            let entry = order.entries().get(usize::from(position));
            let is_inside = entry.is_some_and(|entry| usize::from(entry.offset) >= format::page::HEADER_BYTES);
            let mut skip = || {
                counts.skipped_slots += 1;
                counts.first_skipped = counts.first_skipped.or(Some(place));
            };
            let Some((expansion, info)) = &compression else {
                let record = match is_index {
                    true => Record::index(space, page.header().pminlen.get()),
                    false => Record::data(space),
                };
                let Some(record) = record.ok().filter(|_| is_inside) else {
                    skip();
                    continue;
                };
                if let Some(doubt) = doubt_of(&record) {
                    records.push(record);
                    places.push((place, doubt));
                }
                continue;
            };
            let row = CdRecord::read(space, expansion.columns()).ok().filter(|_| is_inside).and_then(|record| {
                expansion.audit(&record, info.as_ref()).ok()?;
                expansion.expand(&record, info.as_ref(), expanded).ok()
            });
            let Some(row) = row else {
                skip();
                continue;
            };
            if let Some(doubt) = doubt_of(&row.record) {
                let each = &mut |values: &[Value<'_>]| each(&Row { place, values, doubt });
                builder.row(plan, &row.record, row.doubts, counts, each)?;
                counts.rows += 1;
            }
        }
        counts.rows += records.len() as u64;
        builder.rows(plan, &records, counts, &mut |at, values| match places.get(at) {
            Some(&(place, doubt)) => each(&Row { place, values, doubt }),
            None => Ok(()),
        })
    }
}

type Compression<'p> = (&'p Expansion, Option<CompressionInfo<'p>>);

fn compression_of<'p>(page: Page<'p>, rowset: &'p Rowset, order: &SlotOrder) -> Option<Compression<'p>> {
    let expansion = rowset.expansion.as_ref()?;
    // The bytes before the first record are the page's compression information.
    let first = order.entries().first().map_or(page.header().free_data.get(), |entry| entry.offset);
    let info = CompressionInfo::of(page, first.into(), expansion.columns()).ok()?;
    Some((expansion, info))
}

/// Checks whether a page is sound enough to use its rows, and returns its type. Undoes the page's torn-page protection.
fn judge(id: PageId, bytes: &mut PageBytes, unit: AllocUnitId) -> Result<PageType, Why> {
    if verify(bytes).is_err() {
        return Err(Why::Damaged);
    }
    undo_torn_bits(bytes);
    let header = Page::new(bytes).header();
    if header.page_id() != id {
        return Err(Why::OtherPage(header.page_id()));
    }
    if header.is_encrypted() {
        return Err(Why::Encrypted);
    }
    if !names(header, unit) {
        return Err(Why::OtherUnit(header.alloc_unit()));
    }
    header.kind().ok_or(Why::OtherType(header.page_type))
}
