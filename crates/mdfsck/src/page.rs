//! `mdfsck page`: shows one page, field by field.

use catalog::{Database, Fetched, Level, Rowset};
use format::allocation::{self, BITMAP_BYTES, EXTENT_PAGES, INTERVAL_EXTENTS, PFS_PAGES};
use format::protection::undo_torn_bits;
use format::record::Record;
use format::{PAGE_BYTES, Page, PageBytes, PageId, PageType};
use jobs::failure::{Failure, report_faults};
use jobs::logs;
use jobs::recover::{self, Outcome};
use report::columns;
use report::page_dump::{Allocation, ColumnValue, PageDump, PageOwner, RecoveredDump};
use source::PageSource;

use crate::carved;
use crate::cli::{DatabaseArguments, PageArguments};
use crate::output;
use crate::speaker::warn;

pub(crate) fn run(arguments: &PageArguments) -> Result<u8, Failure> {
    let DatabaseArguments { paths, set, recovery } = &arguments.database;
    let source = carved::stored(paths, set, recovery.room.memory, arguments.carve.carve)?;
    let source = source.as_ref();
    let at = arguments.page;
    let bytes = read(source, at)?;
    if arguments.raw {
        output::print(|out| out.write_all(PageDump::new(at, &bytes).raw().as_bytes()))?;
        return Ok(0);
    }
    let as_stored = catalog::load(source);
    let recovered = recover::recover(paths, &recovery.into(), source, &as_stored, || false)?;
    let after = recovered.pages.as_ref();
    let database = after.map(|pages| catalog::load(pages));
    match (after, &database) {
        // If recovery has changed the page, shows both versions.
        (Some(pages), Some(database)) if let Some(work) = pages.work(at) => {
            let made = read(pages, at)?;
            let made = Shown::new(pages, database, at, &made);
            let owner = made.owner();
            Shown::new(source, &as_stored, at, &bytes).with_dump(|dump| {
                made.with_dump(|made| {
                    let made = RecoveredDump { dump: *made, redone: work.redone, undone: work.undone };
                    output::print(|out| match (arguments.json, arguments.tableresults) {
                        (true, _) => dump.write_json(Some(&made), out),
                        (_, true) => made.dump.write_tableresults(owner, out),
                        _ => out.write_all(dump.text_with(&made).as_bytes()),
                    })
                })
            })?;
        }
        _ => {
            let (source, database) = recovered.view(source, as_stored);
            recover::warn_about_input(source, &database, "shown");
            let shown = Shown::new(source, &database, at, &bytes);
            let owner = shown.owner();
            shown.with_dump(|dump| {
                output::print(|out| match (arguments.json, arguments.tableresults) {
                    (true, _) => dump.write_json(None, out),
                    (_, true) => dump.write_tableresults(owner, out),
                    _ => out.write_all(dump.text().as_bytes()),
                })
            })?;
        }
    }
    Ok(report_not_recovered(&recovered, at) | report_faults(source))
}

/// Reports that recovery could not recover this page. Returns the exit-status bits.
fn report_not_recovered(recovered: &Outcome<'_>, at: PageId) -> u8 {
    let not_recovered = recovered.pages.iter().flat_map(|pages| &pages.recovery().applied.not_recovered);
    match not_recovered.into_iter().find(|entry| entry.page == at) {
        Some(entry) => {
            warn(format!("page {at} is shown as stored: {}", entry.why));
            Failure::INCOMPLETE
        }
        None => 0,
    }
}

/// A page, with all data that its description uses.
struct Shown<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
    at: PageId,
    bytes: &'a PageBytes,
}

impl<'a> Shown<'a> {
    fn new(source: &'a dyn PageSource, database: &'a Database, at: PageId, bytes: &'a PageBytes) -> Self {
        Self { source, database, at, bytes }
    }

    /// The IDs of the object, index and partition to which the page belongs.
    fn owner(&self) -> Option<PageOwner> {
        let (_, rowset) = owner_of(self.database, Page::new(self.bytes))?;
        let Rowset { object_id, index_id, id: partition_id, .. } = *rowset;
        Some(PageOwner { object_id, index_id, partition_id })
    }

    /// Passes a description of the page to `show`. The description includes the page's entries in the allocation maps
    /// and in the catalog.
    fn with_dump<T>(&self, show: impl FnOnce(&PageDump<'_>) -> T) -> T {
        let mut undone = *self.bytes;
        undo_torn_bits(&mut undone);
        let page = Page::new(&undone);
        let owner = owner_of(self.database, page);
        let rowset = owner.as_ref().map(|(_, rowset)| *rowset);
        let allocation = allocation_of(self.source, self.at, owner.map(|(words, _)| words));
        let level = level_of(page, rowset);
        let columns = |_: u16, bytes: &[u8]| columns_of(self.database, rowset, level, page, bytes);
        show(&PageDump {
            at: self.at,
            bytes: self.bytes,
            allocation: Some(&allocation),
            leaf: Some(level == Level::Leaf),
            columns: Some(&columns),
        })
    }
}

fn read(source: &dyn PageSource, at: PageId) -> Result<PageBytes, Failure> {
    let Some(file) = source.file(at.file) else {
        let database = catalog::load(source);
        let row = database.files.iter().find(|row| row.file_id == at.file);
        let name = row.map(|row| format!(" ({})", logs::base_name(row))).unwrap_or_default();
        return Err(Failure::usage(format!("page {at}: file {}{name} is not among the files given", at.file)));
    };
    if at.page >= file.pages {
        return Err(Failure::usage(format!("page {at}: file {} ends after {} pages", at.file, file.pages)));
    }
    let mut bytes = [0; PAGE_BYTES];
    source.read(at, &mut bytes).map_err(Failure::unable)?;
    Ok(bytes)
}

/// The rowset that owns the page, and a description of the rowset. The page header contains the ID of the rowset's
/// allocation unit.
fn owner_of<'a>(database: &'a Database, page: Page<'_>) -> Option<(String, &'a Rowset)> {
    let unit = page.header().alloc_unit();
    let unit = database.units.get(database.unit_index(unit)?)?;
    let rowset = database.rowset_of(unit)?;
    let index = match database.indexes.get(&(rowset.object_id, rowset.index_id)) {
        Some(index) if !index.name.is_empty() => format!("index {} ({})", index.name, rowset.index_id),
        _ => format!("index ID {}", rowset.index_id),
    };
    let words = format!(
        "{} (object ID {}), {index}, partition {}, {}",
        database.object_name(rowset.object_id),
        rowset.object_id,
        rowset.partition,
        unit.kind.message_name()
    );
    Some((words, rowset))
}

/// The entries for a page in the allocation maps. The entry of a damaged map is left out.
fn allocation_of(source: &dyn PageSource, at: PageId, owner: Option<String>) -> Allocation {
    let pfs = PageId::new(at.file, allocation::pfs_page_of(at.page));
    let pfs_byte = sound(source, pfs, PageType::Pfs)
        .and_then(|bytes| allocation::pfs_bytes(Page::new(&bytes))?.get((at.page % PFS_PAGES) as usize).copied());
    let gam = allocation::gam_page_of(at.page);
    let extent = at.page / EXTENT_PAGES % INTERVAL_EXTENTS;
    // The differential map and the minimally logged map have fixed places at the start of each interval.
    let interval = at.page / allocation::INTERVAL_PAGES * allocation::INTERVAL_PAGES;
    let map = |page: u32, kind: PageType| {
        let page = PageId::new(at.file, page);
        let bytes = sound(source, page, kind)?;
        let bitmap: &[u8; BITMAP_BYTES] = allocation::bitmap(Page::new(&bytes))?;
        Some((page, allocation::bit(bitmap, extent)))
    };
    Allocation {
        pfs: pfs_byte.map(|byte| (pfs, byte)),
        gam: map(gam, PageType::Gam),
        sgam: map(gam + 1, PageType::Sgam),
        diff: map(interval + 6, PageType::DiffMap),
        ml: map(interval + 7, PageType::MlMap),
        owner,
    }
}

/// Reads a page; `None` if the page cannot be read, is damaged, or is not of type `kind`.
fn sound(source: &dyn PageSource, page: PageId, kind: PageType) -> Option<Box<PageBytes>> {
    match catalog::fetch(source, page) {
        Fetched::Sound(bytes) if Page::new(&bytes).header().kind() == Some(kind) => Some(bytes),
        _ => None,
    }
}

/// The level of a page in its index. In a clustered index, SQL Server 2000 numbered the levels above the data pages
/// from 0 again. In such an index, only a data page is a leaf; an index page of level 0 is not.
fn level_of(page: Page<'_>, rowset: Option<&Rowset>) -> Level {
    let header = page.header();
    let is_above_data = header.kind() == Some(PageType::Index) && rowset.is_some_and(|rowset| rowset.index_id == 1);
    if header.level == 0 && !is_above_data { Level::Leaf } else { Level::Node }
}

fn columns_of(
    database: &Database,
    rowset: Option<&Rowset>,
    level: Level,
    page: Page<'_>,
    bytes: &[u8],
) -> Vec<ColumnValue> {
    let header = page.header();
    let record = match header.kind() {
        Some(PageType::Data) => Record::data(bytes),
        Some(PageType::Index) => Record::index(bytes, header.pminlen.get()),
        _ => return Vec::new(),
    };
    match (record, rowset) {
        (Ok(record), Some(rowset)) => columns::of_record(database, rowset, level, &record),
        _ => Vec::new(),
    }
}
