//! Salvage of one table.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use catalog::{AllocUnit, Fetched, Rowset, fetch};
use format::protection::ProtectionFault;
use format::{AllocUnitId, Page, PageBytes, PageId, RecordId};
use source::PageSource;

use super::ghosts::ghosts_alone;
use super::mend::{Between, Mended, mend};
use super::overlay::Overlay;
use super::rebuild::{IndexTable, Rebuild, index_tables};
use super::request::{Doubtful, Request, Salvaged, Sink};
use super::strays::{Stray, each_leaf_page, strays};
use super::{ReadPage, Which};
use crate::counts::Why;
use crate::leaf::{LeafScratch, is_leaf_of};
use crate::loss::losses;
use crate::owner::{Held, Owner, owners};
use crate::scan::in_row_unit;
use crate::tree::{Beside, beside, edge_row};
use crate::value::{Unreadable, Value};

/// A function that gives the reason why the rows of a damaged page are doubtful.
type WhyDamaged = fn(ProtectionFault) -> Doubtful;

/// The most unreachable pages of a table that are kept in memory at the same time.
const MOST_STRAYS: usize = 100_000;
/// The most records with impossible values that are remembered. Beyond this limit, the keys of such records count as
/// keys of existing rows.
const MOST_IMPOSSIBLE: usize = 100_000;

/// Delivers the rows that the normal reading of a table leaves out.
///
/// Rows come in the order of their pages; rebuilt rows come last, ordered by a hash of their locators. The available
/// memory does not affect either order.
///
/// # Errors
///
/// Errors of the sink.
pub(crate) fn run(
    request: &Request<'_>,
    overlay: &Overlay<'_>,
    indexes: &[IndexTable<'_>],
    reader: &mut dyn ReadPage,
    sink: &mut dyn Sink,
) -> io::Result<Salvaged> {
    let mut pass = Pass::new(request, overlay);
    pass.damaged_pages(reader, sink)?;
    pass.stray_pages(reader, sink)?;
    if request.ghosts {
        pass.ghosts(reader, sink)?;
    }
    overlay.clear();
    let needs_rows = !request.damaged.is_empty() || pass.is_short();
    if needs_rows {
        let scratch = RefCell::new(LeafScratch::default());
        let mended = |page: PageId, partition: usize, raw: &PageBytes| {
            let rowset = request.database.rowsets.get(partition)?;
            let unit = in_row_unit(request.database, rowset)?;
            let mut scratch = scratch.borrow_mut();
            let between = limits(request.source, pass.beside.get(&page), (unit, rowset), &mut scratch);
            let mut mended = mend(raw, (page, unit.id), rowset, &between, &mut scratch)?;
            let (first, last) = (RecordId { page, slot: 0 }, RecordId { page, slot: u16::MAX });
            pass.impossible.range(first..=last).for_each(|record| mended.leave_out(record.slot));
            Some(mended.bytes)
        };
        let Request { source: pages, database, table, reached, memory, .. } = *request;
        let damaged = &pass.damaged;
        let rebuild = Rebuild { pages, database, table, indexes, reached, damaged, mended: &mended, memory };
        pass.salvaged.rebuilt = rebuild.run(reader, &mut |indexes, values| sink.rebuilt(indexes, values))?;
    }
    Ok(pass.finish())
}

/// The nonclustered indexes of the request's table.
pub(crate) fn indexes<'a>(request: &Request<'a>) -> Vec<IndexTable<'a>> {
    index_tables(request.database, request.table)
}

/// The limits of the keys of a damaged leaf.
fn limits(
    source: &dyn PageSource,
    beside: Option<&Beside>,
    (unit, rowset): (&AllocUnit, &Rowset),
    scratch: &mut LeafScratch,
) -> Between {
    let mut edge = |page: Option<PageId>, last| edge_row(source, (unit, rowset), page?, last, scratch);
    Between {
        after: edge(beside.and_then(|beside| beside.left), true),
        before: edge(beside.and_then(|beside| beside.right), false),
    }
}

struct Pass<'a> {
    request: &'a Request<'a>,
    overlay: &'a Overlay<'a>,
    scratch: LeafScratch,
    /// The neighbors of damaged leaves.
    beside: BTreeMap<PageId, Beside>,
    /// The damaged pages of the table, each with the partition to which its rows were assigned.
    damaged: BTreeMap<PageId, usize>,
    /// Records on damaged pages that look complete but have impossible values. Their keys may be wrong too.
    impossible: BTreeSet<RecordId>,
    salvaged: Salvaged,
}

impl<'a> Pass<'a> {
    fn new(request: &'a Request<'a>, overlay: &'a Overlay<'a>) -> Self {
        let (scratch, beside, damaged, impossible, salvaged) = Default::default();
        Self { request, overlay, scratch, beside, damaged, impossible, salvaged }
    }

    fn partitions(&self) -> impl Iterator<Item = (usize, &'a Rowset, &'a AllocUnit)> + use<'a> {
        let Request { database, table, .. } = *self.request;
        table.partitions.iter().filter_map(move |partition| {
            let rowset = database.rowsets.get(*partition)?;
            Some((*partition, rowset, in_row_unit(database, rowset)?))
        })
    }

    /// Delivers the rows of damaged pages and of pages that may have been freed. Each page is read as part of its own
    /// partition.
    fn damaged_pages(&mut self, reader: &mut dyn ReadPage, sink: &mut dyn Sink) -> io::Result<()> {
        let Request { source, database, table, damaged, .. } = *self.request;
        let may_have_rows =
            |(_, why): &&(PageId, Why)| matches!(why, Why::Damaged | Why::UseUnknown | Why::OtherPage(_));
        let pages: BTreeSet<PageId> = damaged.iter().filter(may_have_rows).map(|(page, _)| *page).collect();
        let is_open = |(_, why): &&(PageId, Why)| *why == Why::UseUnknown;
        let open: BTreeSet<PageId> = damaged.iter().filter(is_open).map(|(page, _)| *page).collect();
        let owners = owners(source, database, table, &pages);
        let partitions: Vec<_> = self.partitions().collect();
        for (at, &(partition, rowset, unit)) in partitions.iter().enumerate() {
            let place = table.partitions.iter().position(|own| *own == partition);
            let is_last = at + 1 == partitions.len();
            let is_own = |owner: &Owner| {
                owner.held != Held::None && (owner.partition == place || is_last && owner.partition.is_none())
            };
            let own: BTreeSet<PageId> =
                owners.iter().filter(|(_, owner)| is_own(owner)).map(|(page, _)| *page).collect();
            if rowset.index_id > 0 {
                self.beside.extend(beside(source, unit, &own));
            }
            for page in own {
                match fetch(source, page) {
                    Fetched::Sound(bytes) if open.contains(&page) && is_leaf_of(&bytes, page, unit.id) => {
                        self.doubtful_page(partition, page, Doubtful::UseUnknown, (&mut *reader, &mut *sink))?;
                    }
                    // The page may have been freed, and its content does not belong to the table, so it has no rows of
                    // the table.
                    Fetched::Sound(_) | Fetched::WrongId(_) if open.contains(&page) => {}
                    _ => {
                        let why: WhyDamaged = match open.contains(&page) {
                            true => |_| Doubtful::DamagedAndUseUnknown,
                            false => Doubtful::Damaged,
                        };
                        self.damaged_page(partition, (rowset, unit), page, why, (&mut *reader, &mut *sink))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Delivers the proven rows of a damaged page.
    fn damaged_page(
        &mut self,
        partition: usize,
        (rowset, unit): (&Rowset, &AllocUnit),
        page: PageId,
        why: WhyDamaged,
        (reader, sink): (&mut dyn ReadPage, &mut dyn Sink),
    ) -> io::Result<()> {
        let Some(raw) = self.request.source.read_page(page) else { return Ok(()) };
        let why = match fetch(self.request.source, page) {
            Fetched::Damaged(fault) => why(fault),
            // The page is sound, but it contains the content of another page. Its rows belong to that other page.
            Fetched::Sound(_) | Fetched::WrongId(_) => {
                self.salvaged.foreign += 1;
                return Ok(());
            }
            Fetched::Outside | Fetched::Unread => return Ok(()),
        };
        self.damaged.insert(page, partition);
        let between = limits(self.request.source, self.beside.get(&page), (unit, rowset), &mut self.scratch);
        let Some(Mended { bytes, refused, .. }) = mend(&raw, (page, unit.id), rowset, &between, &mut self.scratch)
        else {
            return Ok(());
        };
        self.salvaged.unproven += u64::from(refused);
        self.overlay.set(page, bytes);
        let (salvaged, impossible) = (&mut self.salvaged, &mut self.impossible);
        reader.rows(Which::Table, partition, page, &mut |place, values| {
            if has_impossible(values) {
                salvaged.unproven += 1;
                if impossible.len() < MOST_IMPOSSIBLE {
                    impossible.insert(place);
                }
                return Ok(());
            }
            salvaged.doubtful += 1;
            sink.doubtful(place, why, values)
        })
    }

    /// Delivers the rows of pages to which no index page or IAM page points.
    fn stray_pages(&mut self, reader: &mut dyn ReadPage, sink: &mut dyn Sink) -> io::Result<()> {
        let partitions: Vec<_> = self.partitions().collect();
        let is_done = |(page, why): &(PageId, Why)| (!matches!(why, Why::OtherUnit(_))).then_some(*page);
        let done: BTreeSet<PageId> = self.request.damaged.iter().filter_map(is_done).collect();
        if let Some(unreached) = self.request.unreached.filter(|unreached| !unreached.is_cut) {
            for (partition, rowset, unit) in partitions {
                self.salvaged.freed += unreached.freed.get(&partition).copied().unwrap_or_default();
                let strays = unreached.pages.get(&partition).into_iter().flatten();
                for stray in strays.filter(|stray| !done.contains(&stray.page)) {
                    self.stray_page(partition, (rowset, unit), *stray, (&mut *reader, &mut *sink))?;
                }
            }
            return Ok(());
        }
        let units: Vec<AllocUnitId> = partitions.iter().map(|(_, _, unit)| unit.id).collect();
        let mut from = None;
        loop {
            let found = strays(self.request.source, &units, self.request.reached, from, MOST_STRAYS);
            self.salvaged.freed = found.freed.iter().sum();
            for stray in found.found.iter().filter(|stray| !done.contains(&stray.page)) {
                let Some(&(partition, rowset, unit)) = partitions.get(stray.unit) else { continue };
                self.stray_page(partition, (rowset, unit), *stray, (&mut *reader, &mut *sink))?;
            }
            from = found.found.last().copied();
            if !found.is_cut {
                return Ok(());
            }
        }
    }

    fn stray_page(
        &mut self,
        partition: usize,
        place: (&Rowset, &AllocUnit),
        stray: Stray,
        (reader, sink): (&mut dyn ReadPage, &mut dyn Sink),
    ) -> io::Result<()> {
        let Fetched::Sound(bytes) = fetch(self.request.source, stray.page) else {
            let why: WhyDamaged = |_| Doubtful::DamagedAndNotReached;
            return self.damaged_page(partition, place, stray.page, why, (reader, sink));
        };
        if !is_leaf_of(&bytes, stray.page, place.1.id) {
            return Ok(());
        }
        self.salvaged.strays += 1;
        let why = Doubtful::NotReached { is_allocated: stray.is_allocated };
        self.doubtful_page(partition, stray.page, why, (reader, sink))
    }

    /// Delivers the rows of a sound page as doubtful.
    fn doubtful_page(
        &mut self,
        partition: usize,
        page: PageId,
        why: Doubtful,
        (reader, sink): (&mut dyn ReadPage, &mut dyn Sink),
    ) -> io::Result<()> {
        self.overlay.clear();
        let salvaged = &mut self.salvaged;
        reader.rows(Which::Table, partition, page, &mut |place, values| {
            salvaged.doubtful += 1;
            sink.doubtful(place, why, values)
        })
    }

    /// Delivers deleted rows that are still on sound pages.
    fn ghosts(&mut self, reader: &mut dyn ReadPage, sink: &mut dyn Sink) -> io::Result<()> {
        let partitions: Vec<_> = self.partitions().collect();
        let units: Vec<AllocUnitId> = partitions.iter().map(|(_, _, unit)| unit.id).collect();
        let (source, reached, overlay) = (self.request.source, self.request.reached, self.overlay);
        let salvaged = &mut self.salvaged;
        each_leaf_page(source, &units, &|page| reached.contains(page), &mut |unit, page, raw| {
            let Some(&(partition, rowset, _)) = partitions.get(unit) else { return Ok(()) };
            if Page::new(raw).header().ghost_count.get() == 0 {
                return Ok(());
            }
            let Fetched::Sound(bytes) = fetch(source, page) else { return Ok(()) };
            let Some(alive) = ghosts_alone(bytes, rowset) else { return Ok(()) };
            overlay.set(page, alive);
            reader.rows(Which::Table, partition, page, &mut |place, values| {
                salvaged.deleted += 1;
                sink.doubtful(place, Doubtful::Deleted, values)
            })
        })
    }

    /// Whether the catalog counts more rows than were read, salvaged and rebuilt.
    fn is_short(&self) -> bool {
        self.missing() > 0
    }

    fn missing(&self) -> u64 {
        let stored: i128 = self.partitions().map(|(_, rowset, _)| i128::from(rowset.rows.max(0))).sum();
        let read: u128 = self.request.rows_read.iter().map(|rows| u128::from(*rows)).sum();
        let have = read + u128::from(self.salvaged.doubtful) + u128::from(self.salvaged.rebuilt.rows);
        u64::try_from(stored.unsigned_abs().saturating_sub(have)).unwrap_or(u64::MAX)
    }

    fn finish(self) -> Salvaged {
        let Request { source, database, table, damaged, rows_read, .. } = *self.request;
        // Rows in a file that was not given do not count as lost.
        let is_given = |(page, _): &(PageId, Why)| source.file(page.file).is_some();
        let known_lost = if damaged.iter().all(is_given) { self.missing() } else { 0 };
        // Rows of pages that may have been freed are delivered as doubtful rows, so they do not count as read.
        let is_open = |(_, why): &(PageId, Why)| *why == Why::UseUnknown;
        let is_counted = rows_read.len() == table.partitions.len() && !damaged.iter().any(is_open);
        let lost: Vec<PageId> = damaged.iter().filter(|page| !is_open(page)).map(|(page, _)| *page).collect();
        let losses = losses(source, database, table, &lost, is_counted.then_some(rows_read));
        Salvaged { known_lost, losses, ..self.salvaged }
    }
}

fn has_impossible(values: &[Value<'_>]) -> bool {
    values.iter().any(|value| matches!(value, Value::Unreadable(Unreadable::Impossible)))
}
