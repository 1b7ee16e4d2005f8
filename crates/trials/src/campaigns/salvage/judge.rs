//! Requirements on the rows of a damaged table.
//!
//! A page is called sealed if its protection was corrected after the page was damaged. Salvage trusts a page with
//! correct protection, so the content of a sealed page may mislead salvage. Each variant of [`Excuse`] describes one
//! way in which this may happen. An excuse applies only to the pages that its variant describes, and each use of an
//! excuse is counted.

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
use crate::sound::{Read, Row, Sound, Whole, read};

/// Memory for lost rows, in bytes.
pub(super) const MEMORY: usize = 1 << 20;
const LITTLE_MEMORY: usize = 64 << 10;
/// The maximum number of unreachable pages in memory at the same time.
const MOST_STRAYS: usize = 1000;
/// The start of the text for an off-row value with a fragment on a damaged page.
const LOST: &str = "<Lost(";
/// The text for a value of a rebuilt row that no index contains.
const NOT_IN_ANY_INDEX: &str = "<NotInAnyIndex>";

/// The reason why a result may differ from the truth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Excuse {
    /// The row is on a page that was changed and then sealed.
    Row,
    /// A sealed allocation map wrongly marks a page as free, or as in use.
    Map,
    /// An off-row value has a fragment on a sealed page.
    Value,
    /// A row was rebuilt from an index with a sealed page.
    Index,
    /// The loss was computed from data of a sealed page of the table.
    Loss,
    /// A row of a damaged page is unchanged except for its uniquifier or back pointer, which no exported column shows.
    /// Because indexes refer to the row by its old locator, the row is found twice: on the page, and as a row rebuilt
    /// from indexes.
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

/// The parts of a table to which a set of pages belongs, according to the page headers before and after the damage.
#[derive(Default)]
struct Parts {
    /// Whether some of the pages belong to the heap or clustered index, including its IAM pages.
    in_table: bool,
    /// Whether some of the pages belong to off-row values of the table.
    of_values: bool,
    /// IDs of the nonclustered indexes to which some of the pages belong.
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
    /// Object IDs of the tables that have damaged pages.
    reached: BTreeSet<i32>,
    /// For each table, the parts that have damaged pages. The next field has the parts that have sealed pages.
    damaged: BTreeMap<i32, Parts>,
    sealed: BTreeMap<i32, Parts>,
    /// Pages that a sealed allocation map describes differently than before.
    remapped: BTreeSet<PageId>,
    maps_are_damaged: bool,
}

/// The salvaged rows.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) doubtful: BTreeMap<RecordId, Row>,
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

    /// Whether a table must be judged because damage may affect it. If the damage affects no table, one table is judged
    /// nevertheless.
    pub(super) fn is_reached(&self, whole: &Whole) -> bool {
        self.maps_are_damaged || self.reached.contains(&whole.table.object_id)
    }

    /// Judges a table. Returns the excuse that was used, if any. Returns an error if the table breaks a requirement.
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

    /// Salvages the table again in another way: with little memory, and with one search for the unreachable pages of
    /// all tables. The resulting rows must equal the rows of the first salvage.
    fn another_way(&self, request: &Request<'_>, kept: &Kept, done: &Salvaged) -> Result<(), String> {
        let tables = std::slice::from_ref(request.table);
        let unreached = Unreached::find(request.source, request.database, tables, request.reached, MOST_STRAYS);
        let request = Request { unreached: Some(&unreached), memory: LITTLE_MEMORY, ..*request };
        let mut again = Kept::default();
        let redone = salvage(&request, &mut again).map_err(|error| error.to_string())?;
        // If the second salvage skips a step for lack of memory, it must report the skipped step.
        let is_whole = done.rebuilt.missing == redone.rebuilt.missing;
        let is_same = again.doubtful == kept.doubtful && (again.rebuilt == kept.rebuilt || !is_whole);
        if is_same { Ok(()) } else { Err("other rows are salvaged with little memory".to_owned()) }
    }

    fn has_remapped(&self, whole: &Whole) -> bool {
        whole.leaves.keys().any(|page| self.remapped.contains(page))
    }

    /// Checks that all rows of undamaged pages were found, and that no row exported as proven is invented.
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

    /// Checks that each row rebuilt from indexes is a lost row of the table and has the right values.
    fn rebuilt(
        &self,
        whole: &Whole,
        read: &Read,
        (kept, missing): (&Kept, &[String]),
        excuses: &mut BTreeSet<Excuse>,
    ) -> Result<(), String> {
        // A row of a damaged page may be exported as doubtful with a wrong key. Index rows with the right key do not
        // match the exported row, so the row may also be rebuilt from the indexes.
        let is_open = |place: &RecordId, before: &Row| {
            self.damage.sealed.contains(&place.page)
                || !read.rows.contains_key(place) && kept.doubtful.get(place).is_none_or(|row| row != before)
        };
        let open: Vec<&Row> =
            whole.rows.iter().filter(|(place, before)| is_open(place, before)).map(|(_, row)| row).collect();
        let mut excused = 0;
        let has_values = self.damaged.get(&whole.table.object_id).is_some_and(|damaged| damaged.of_values);
        // If a rebuilt row has values for only a few columns, several lost rows may match it.
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
        // If a page of the table was damaged and sealed, salvage may have no evidence that rows were lost. Salvage is
        // then not required to rebuild the lost rows.
        let is_noticed = !self.sealed.get(&whole.table.object_id).is_some_and(|sealed| sealed.in_table);
        if kept.rebuilt.len() < lost && missing.is_empty() && is_noticed && self.has_sound_index(whole) {
            return Err(format!("{} rows were put together, but {lost} are lost", kept.rebuilt.len()));
        }
        Ok(())
    }

    /// Whether a part of the row's locator is not stored in a column. This part is a uniquifier, or the back pointer of
    /// a forwarded row.
    fn has_hidden_locator(&self, whole: &Whole, place: RecordId) -> bool {
        let bytes = Pages::new(self.sound.files, self.sound.database).read(place.page);
        let kind = bytes.and_then(|bytes| Some(Record::data(Page::new(&bytes).slot_bytes(place.slot)?).ok()?.kind()));
        whole.has_uniquifier || kind == Some(RecordKind::Forwarded)
    }

    /// Whether some index contains all rows of a table and has no damaged page.
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

    /// Whether one of the named indexes has a sealed page, or a page that a sealed map describes differently than
    /// before.
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

/// Whether a row has the same values as `before`. If `may_be_lost`, off-row values of the row may be lost.
fn is_same(row: &Row, before: &Row, may_be_lost: bool) -> bool {
    let is_lost = |value: &Option<String>| may_be_lost && value.as_ref().is_some_and(|text| text.starts_with(LOST));
    row.len() == before.len() && row.iter().zip(before).all(|(now, then)| now == then || is_lost(now))
}

/// Whether a column of this type may have off-row values.
fn can_be_long(xtype: u8) -> bool {
    use format::types::xtype::{CLR, IMAGE, NTEXT, NVARCHAR, SQL_VARIANT, TEXT, VARBINARY, VARCHAR, XML};
    matches!(xtype, CLR | IMAGE | NTEXT | NVARCHAR | SQL_VARIANT | TEXT | VARBINARY | VARCHAR | XML)
}

/// Whether each known value of a rebuilt row equals the value of the row `before`.
fn is_part(row: &Row, before: &Row, may_be_lost: bool) -> bool {
    let is_none = |value: &Option<String>| {
        let text = value.as_deref().unwrap_or_default();
        text == NOT_IN_ANY_INDEX || may_be_lost && text.starts_with(LOST)
    };
    row.len() == before.len()
        && row.iter().zip(before).all(|(now, then)| {
            // An index stores the values of computed columns even if the table does not.
            now == then || is_none(now) || then.as_deref() == Some("<NotStored>")
        })
}
