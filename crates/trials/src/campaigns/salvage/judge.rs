//! Requirements on the rows of a damaged table.
//!
//! A page whose protection is right is trusted: where damage was sealed, the file itself may prove something that was
//! never true. [`Excuse`] names each such case, which is limited to its pages, and is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use catalog::{Database, IndexType, UnitKind};
use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, bit, bitmap, gam_page_of};
use format::record::{Record, RecordKind};
use format::{Page, PageId, PageType, RecordId};
use rows::Table;
use rows::Value;
use rows::salvage::{Doubtful, Request, Salvaged, Sink, Unreached, salvage};
use source::MemoryFiles;
use trials::mutate::Pages;
use trials::plain::plain;

use super::damage::Damage;
use super::lost;
use super::sound::{Read, Row, Sound, Whole, read};

/// Bytes of memory for lost rows.
const MEMORY: usize = 1 << 20;
const LITTLE_MEMORY: usize = 64 << 10;
/// The most unreachable pages that are kept at once.
const MOST_STRAYS: usize = 1000;
/// A value off the row with a piece on a damaged page.
const LOST: &str = "<Lost(";
/// A value of a rebuilt row that no index has.
const NOT_IN_ANY_INDEX: &str = "<NotInAnyIndex>";

/// Why something may differ from the truth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Excuse {
    /// A row is on a page that was sealed after it was changed.
    Row,
    /// A sealed allocation map marks a page as free, or as in use.
    Map,
    /// A value off the row has a piece on a sealed page.
    Value,
    /// A row was rebuilt from an index with a sealed page.
    Index,
    /// The loss was derived from a sealed page of the table.
    Loss,
    /// A row of a damaged page is as it was, except for its uniquifier or back pointer, which no exported column shows:
    /// indexes know the row by another locator, and it is rebuilt again.
    Locator,
}

impl Excuse {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Row => "rows of a page with a right checksum differ",
            Self::Map => "an allocation map with a right checksum says that pages are free, or in use",
            Self::Value => "long values with a piece on a page with a right checksum differ",
            Self::Index => "an index page with a right checksum has rows that the table never had",
            Self::Loss => "a page with a right checksum says what is lost",
            Self::Locator => "a doubtful row has another uniquifier or back pointer, so that indexes give it again",
        }
    }
}

/// Parts of a table that some pages belong to, by their headers before and after the damage.
#[derive(Default)]
struct Parts {
    /// Pages of the heap or clustered index, IAM pages among them.
    in_table: bool,
    /// Pages of its values off the row.
    of_values: bool,
    /// Nonclustered indexes.
    indexes: BTreeSet<i32>,
}

impl Parts {
    fn add(&mut self, index_id: i32, kind: UnitKind) {
        match (index_id, kind) {
            (0 | 1, UnitKind::InRow) => self.in_table = true,
            (0 | 1, _) => self.of_values = true,
            (index, _) => _ = self.indexes.insert(index),
        }
    }
}

/// Judges the tables of a damaged database.
pub(super) struct Judge<'a> {
    sound: Sound<'a>,
    files: &'a MemoryFiles,
    database: &'a Database,
    damage: &'a Damage,
    /// Tables with damaged pages, by object ID.
    reached: BTreeSet<i32>,
    /// The parts of each table with damaged pages, and those with sealed pages.
    damaged: BTreeMap<i32, Parts>,
    sealed: BTreeMap<i32, Parts>,
    /// Pages that a sealed map describes differently.
    remapped: BTreeSet<PageId>,
    maps_are_damaged: bool,
}

/// The salvaged rows.
#[derive(Default)]
struct Kept {
    doubtful: BTreeMap<RecordId, Row>,
    rebuilt: Vec<(String, Row)>,
    twice: Option<RecordId>,
}

impl Sink for Kept {
    fn doubtful(&mut self, place: RecordId, _: Doubtful, values: &[Value<'_>]) -> io::Result<()> {
        if self.doubtful.insert(place, values.iter().map(plain).collect()).is_some() {
            self.twice = Some(place);
        }
        Ok(())
    }

    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()> {
        self.rebuilt.push((indexes.to_owned(), values.iter().map(plain).collect()));
        Ok(())
    }
}

impl<'a> Judge<'a> {
    pub(super) fn new(sound: Sound<'a>, files: &'a MemoryFiles, database: &'a Database, damage: &'a Damage) -> Self {
        let (before, after) = (Pages::new(sound.files, sound.database), Pages::new(files, sound.database));
        let mut judge = Self {
            sound,
            files,
            database,
            damage,
            reached: sound.tables.first().map(|whole| whole.table.object_id).into_iter().collect(),
            damaged: BTreeMap::new(),
            sealed: BTreeMap::new(),
            remapped: BTreeSet::new(),
            maps_are_damaged: false,
        };
        for &page in damage.changes.keys() {
            let is_sealed = damage.sealed.contains(&page);
            for pages in [before, after] {
                let Some(bytes) = pages.read(page) else { continue };
                let header = Page::new(&bytes).header();
                judge.maps_are_damaged |= matches!(header.kind(), Some(PageType::Pfs | PageType::Gam));
                let unit = sound.database.unit_index(header.alloc_unit()).and_then(|at| sound.database.units.get(at));
                let place = unit.and_then(|unit| Some((unit, sound.database.rowset_of(unit)?)));
                let Some((unit, rowset)) = place else { continue };
                judge.reached.insert(rowset.object_id);
                judge.damaged.entry(rowset.object_id).or_default().add(rowset.index_id, unit.kind);
                if is_sealed {
                    judge.sealed.entry(rowset.object_id).or_default().add(rowset.index_id, unit.kind);
                }
            }
        }
        judge.remapped = before.ids().filter(|page| is_remapped(*page, [before, after], damage)).collect();
        judge
    }

    /// Whether damage may concern a table. One table is judged even if no damage concerns it.
    pub(super) fn is_reached(&self, whole: &Whole) -> bool {
        self.maps_are_damaged || self.reached.contains(&whole.table.object_id)
    }

    /// Judges a table; returns the excuse that was used, or an error with the problem.
    pub(super) fn table(&self, whole: &Whole) -> Result<Option<String>, String> {
        let table = Table::of(self.database, whole.table.object_id).map_err(|why| why.to_string())?;
        let read = read(self.files, self.database, &table)?;
        let request = Request {
            source: self.files,
            database: self.database,
            table: &table,
            damaged: &read.left_out,
            reached: &read.reached,
            unreached: None,
            rows_read: &read.by_partition,
            ghosts: false,
            memory: MEMORY,
        };
        let mut kept = Kept::default();
        let done = salvage(&request, &mut kept).map_err(|error| error.to_string())?;
        self.another_way(&request, &kept, &done)?;
        if let Some(place) = kept.twice {
            return Err(format!("doubtful row {place} is handed out twice"));
        }
        let mut excuses = BTreeSet::new();
        self.rows(whole, &read, &kept, &done, &mut excuses)?;
        self.rebuilt(whole, &read, (&kept, &done.rebuilt.missing), &mut excuses)?;
        let losses = lost::judge(whole, self.damage, &read, &done, self.files);
        if let Err(text) = losses {
            match self.sealed.get(&whole.table.object_id).is_some_and(|sealed| sealed.in_table)
                || self.has_remapped(whole)
            {
                true => _ = excuses.insert(Excuse::Loss),
                false => return Err(text),
            }
        }
        Ok(excuses.first().map(|excuse| excuse.text().to_owned()))
    }

    /// With little memory, and in a single search for all tables, the rows must be the same.
    fn another_way(&self, request: &Request<'_>, kept: &Kept, done: &Salvaged) -> Result<(), String> {
        let tables = std::slice::from_ref(request.table);
        let unreached = Unreached::find(request.source, request.database, tables, request.reached, MOST_STRAYS);
        let request = Request { unreached: Some(&unreached), memory: LITTLE_MEMORY, ..*request };
        let mut again = Kept::default();
        let redone = salvage(&request, &mut again).map_err(|error| error.to_string())?;
        // Whatever is skipped for lack of memory must be reported.
        let is_whole = done.rebuilt.missing == redone.rebuilt.missing;
        let is_same = again.doubtful == kept.doubtful && (again.rebuilt == kept.rebuilt || !is_whole);
        if is_same { Ok(()) } else { Err("other rows are salvaged with little memory".to_owned()) }
    }

    fn has_remapped(&self, whole: &Whole) -> bool {
        whole.leaves.keys().any(|page| self.remapped.contains(page))
    }

    /// No row of an undamaged page may be missing, and no row that is exported as proven may be invented.
    fn rows(
        &self,
        whole: &Whole,
        read: &Read,
        kept: &Kept,
        done: &Salvaged,
        excuses: &mut BTreeSet<Excuse>,
    ) -> Result<(), String> {
        let object = whole.table.object_id;
        let has_values = |parts: &BTreeMap<i32, Parts>| parts.get(&object).is_some_and(|parts| parts.of_values);
        let (values_are_damaged, values_are_sealed) = (has_values(&self.damaged), has_values(&self.sealed));
        let can_be_long: Vec<bool> = whole.table.columns.iter().map(|column| can_be_long(column.info.xtype)).collect();
        for (place, row) in &read.rows {
            if kept.doubtful.contains_key(place) {
                return Err(format!("row {place} is whole and doubtful"));
            }
            let before = whole.rows.get(place);
            if before.is_some_and(|before| is_same(row, before, values_are_damaged)) {
                continue;
            }
            let is_value = |before: &Row| {
                let columns = row.iter().zip(before).zip(&can_be_long);
                row.len() == before.len() && columns.into_iter().all(|((now, then), is_long)| now == then || *is_long)
            };
            excuses.insert(match before {
                _ if self.damage.sealed.contains(&place.page) => Excuse::Row,
                None if self.remapped.contains(&place.page) => Excuse::Map,
                Some(before) if values_are_sealed && is_value(before) => Excuse::Value,
                None => return Err(format!("row {place} is invented: {row:?}")),
                Some(before) => return Err(format!("row {place} is {row:?} and was {before:?}")),
            });
        }
        let is_undamaged = |place: &RecordId| !self.damage.changes.contains_key(&place.page);
        let missing = |place: &&RecordId| {
            is_undamaged(place) && !read.rows.contains_key(place) && !kept.doubtful.contains_key(place)
        };
        for place in whole.rows.keys().filter(missing) {
            if !self.remapped.contains(&place.page) {
                return Err(format!("row {place} of an undamaged page is missing; {done:?}"));
            }
            excuses.insert(Excuse::Map);
        }
        Ok(())
    }

    /// Rebuilt rows must have been lost, and must be as they were.
    fn rebuilt(
        &self,
        whole: &Whole,
        read: &Read,
        (kept, missing): (&Kept, &[String]),
        excuses: &mut BTreeSet<Excuse>,
    ) -> Result<(), String> {
        // For the indexes, a doubtful row with a damaged key is still missing.
        let is_open = |place: &RecordId, before: &Row| {
            self.damage.sealed.contains(&place.page)
                || !read.rows.contains_key(place) && kept.doubtful.get(place).is_none_or(|row| row != before)
        };
        let open: Vec<&Row> =
            whole.rows.iter().filter(|(place, before)| is_open(place, before)).map(|(_, row)| row).collect();
        let mut excused = 0;
        let has_values = self.damaged.get(&whole.table.object_id).is_some_and(|damaged| damaged.of_values);
        // A row of few columns may match several lost rows.
        for (indexes, row) in &kept.rebuilt {
            if open.iter().any(|before| is_part(row, before, has_values)) {
                continue;
            }
            excused += 1;
            let is_doubtful = |place: &RecordId, before: &Row| {
                kept.doubtful.get(place) == Some(before) && self.has_hidden_locator(whole, *place)
            };
            if whole.rows.iter().any(|(place, before)| is_part(row, before, has_values) && is_doubtful(place, before)) {
                excuses.insert(Excuse::Locator);
            } else if self.has_sealed_index(whole, indexes) {
                excuses.insert(Excuse::Index);
            } else {
                let places = whole.rows.iter().filter(|(_, before)| is_part(row, before, has_values));
                let places: Vec<String> = places.map(|(place, _)| place.to_string()).collect();
                return Err(format!("put together from {indexes}, but not lost, as it is at {places:?}: {row:?}"));
            }
        }
        if kept.rebuilt.len() > open.len() + excused {
            return Err(format!("{} rows were put together, but {} are lost", kept.rebuilt.len(), open.len()));
        }
        let is_lost = |place: &&RecordId| !read.rows.contains_key(place) && !kept.doubtful.contains_key(place);
        let lost = whole.rows.keys().filter(is_lost).count();
        // After sealed damage there may be no evidence that rows are lost.
        let is_noticed = !self.sealed.get(&whole.table.object_id).is_some_and(|sealed| sealed.in_table);
        if kept.rebuilt.len() < lost && missing.is_empty() && is_noticed && self.has_sound_index(whole) {
            return Err(format!("{} rows were put together, but {lost} are lost", kept.rebuilt.len()));
        }
        Ok(())
    }

    /// Whether a part of a row's locator is in no column: a uniquifier, or the back pointer of a moved row.
    fn has_hidden_locator(&self, whole: &Whole, place: RecordId) -> bool {
        let bytes = Pages::new(self.sound.files, self.sound.database).read(place.page);
        let kind = bytes.and_then(|bytes| Some(Record::data(Page::new(&bytes).slot_bytes(place.slot)?).ok()?.kind()));
        whole.has_uniquifier || kind == Some(RecordKind::Forwarded)
    }

    /// Whether all rows of a table are in an index that has no damaged page.
    fn has_sound_index(&self, whole: &Whole) -> bool {
        let object = whole.table.object_id;
        let damaged = self.damaged.get(&object);
        let mut of_table = self.sound.database.indexes.range((object, 2)..=(object, i32::MAX)).map(|(_, index)| index);
        !self.maps_are_damaged
            && of_table.any(|index| {
                index.index_type == IndexType::Nonclustered
                    && !index.is_disabled()
                    && !index.is_filtered()
                    && damaged.is_none_or(|damaged| !damaged.indexes.contains(&index.index_id))
            })
    }

    /// Whether one of the indexes with these names has a sealed page, or a page that a sealed map describes
    /// differently.
    fn has_sealed_index(&self, whole: &Whole, names: &str) -> bool {
        let object = whole.table.object_id;
        let of_table = self.sound.database.indexes.range((object, 2)..=(object, i32::MAX)).map(|(_, index)| index);
        let mut named = of_table.filter(|index| names.split(", ").any(|name| name == index.name));
        let sealed = self.sealed.get(&object);
        let pages = Pages::new(self.sound.files, self.sound.database);
        let is_of = |page: &PageId, index_id: i32| {
            let unit = pages.read(*page).map(|bytes| Page::new(&bytes).header().alloc_unit());
            let rowset = unit.and_then(|unit| pages.rowset(unit));
            rowset.is_some_and(|rowset| rowset.object_id == object && rowset.index_id == index_id)
        };
        named.any(|index| {
            sealed.is_some_and(|sealed| sealed.indexes.contains(&index.index_id))
                || self.remapped.iter().any(|page| is_of(page, index.index_id))
        })
    }
}

/// Whether a sealed PFS or GAM page describes a page differently than before.
fn is_remapped(page: PageId, [before, after]: [Pages<'_>; 2], damage: &Damage) -> bool {
    let is_sealed = |map: u32| damage.sealed.contains(&PageId::new(page.file, map));
    let in_use = |pages: Pages<'_>| pages.pfs(page).map(|byte| (byte.is_allocated(), byte.is_iam()));
    let gam = gam_page_of(page.page);
    let is_free = |pages: Pages<'_>| {
        let bytes = pages.read(PageId::new(page.file, gam))?;
        Some(bit(bitmap(Page::new(&bytes))?, page.page % INTERVAL_PAGES / EXTENT_PAGES))
    };
    is_sealed(format::allocation::pfs_page_of(page.page)) && in_use(before) != in_use(after)
        || is_sealed(gam) && is_free(before) != is_free(after)
}

/// Whether a row is as it was, except for lost values off the row if `may_be_lost`.
fn is_same(row: &Row, before: &Row, may_be_lost: bool) -> bool {
    let is_lost = |value: &Option<String>| may_be_lost && value.as_ref().is_some_and(|text| text.starts_with(LOST));
    row.len() == before.len() && row.iter().zip(before).all(|(now, then)| now == then || is_lost(now))
}

/// Whether values of a column may be off their row.
fn can_be_long(xtype: u8) -> bool {
    use format::types::xtype::{CLR, IMAGE, NTEXT, NVARCHAR, SQL_VARIANT, TEXT, VARBINARY, VARCHAR, XML};
    matches!(xtype, CLR | IMAGE | NTEXT | NVARCHAR | SQL_VARIANT | TEXT | VARBINARY | VARCHAR | XML)
}

/// Whether all values of a rebuilt row are those of another row.
fn is_part(row: &Row, before: &Row, may_be_lost: bool) -> bool {
    let is_none = |value: &Option<String>| {
        let text = value.as_deref().unwrap_or_default();
        text == NOT_IN_ANY_INDEX || may_be_lost && text.starts_with(LOST)
    };
    row.len() == before.len()
        && row.iter().zip(before).all(|(now, then)| {
            // An index stores computed columns that the table does not store.
            now == then || is_none(now) || then.as_deref() == Some("<NotStored>")
        })
}
