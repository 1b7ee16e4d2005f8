//! ALTER INDEX REBUILD and bulk loads: whole pages are written, each with one log record that has the page.

use crate::ids::{PageId, RowId, UnitId};
use crate::page::page_type;
use crate::row::{Kind, Row};
use crate::workload::engine::{By, Engine};
use crate::workload::first_page::{FIRST_PAGE, ROOT_PAGE};
use crate::workload::journal::Step;
use crate::workload::table::{Counts, Live};

/// The most bytes of rows and slots on a page that is written as a whole. Some bytes stay free, as with a fill factor.
const FILLED: usize = 7200;

/// Divides rows among pages.
fn pages_of(records: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let (mut pages, mut used) = (Vec::<Vec<Vec<u8>>>::new(), 0);
    for record in records {
        used += record.len() + 2;
        match pages.last_mut().filter(|_| used <= FILLED) {
            Some(page) => page.push(record),
            None => {
                used = record.len() + 2;
                pages.push(vec![record]);
            }
        }
    }
    pages
}

impl Engine<'_> {
    /// ALTER INDEX REBUILD of one index or of all indexes of a table, or ALTER TABLE REBUILD of a heap. Each rebuilt
    /// rowset gets a new ID and a new allocation unit, whose pages are written elsewhere before the old ones are freed.
    /// The rows of a heap get new addresses, so all its indexes are rebuilt too.
    pub(super) fn rebuild(&mut self) -> Step {
        let fits = |state: &super::TableState<'_>| state.lob.is_none() && !state.rows.is_empty();
        let Some(table) = self.any_table(0, fits) else { return Ok(()) };
        let all = self.rowsets_of(table);
        let chosen = self.dice.below(2 * all.len() as u64) as usize;
        let rowsets = match all.get(chosen) {
            Some(&one) if !self.rowsets[one].is_heap => vec![one],
            _ => all,
        };
        let base = self.tables[table].base;
        let number = self.begin_ddl("ALTER INDEX", table)?;
        let (by, end) = (By::Transaction(number), self.any_end(false));
        let before = self.table_rows(table);
        let old: Vec<_> = rowsets.iter().map(|&at| (at, self.rowsets[at].clone())).collect();
        rowsets.iter().for_each(|&at| self.renew_rowset(at));
        if rowsets.contains(&base) {
            self.forget_dropped_columns(table);
        }
        let after = self.table_rows(table);
        self.change_catalog(by, &before, &after)?;
        for &at in &rowsets {
            self.build(by, table, at)?;
        }
        for (at, old) in old {
            let new = std::mem::replace(&mut self.rowsets[at], old);
            self.free_all(by, at)?;
            self.rowsets[at] = new;
        }
        self.store_ids()?;
        self.end_ddl(number, end)
    }

    /// Turns a rowset into a new one without pages, which has the same rows.
    fn renew_rowset(&mut self, at: usize) {
        let Some(system) = &mut self.system else { return };
        let rowset = &mut self.rowsets[at];
        (rowset.id, rowset.unit) = (system.ids.rowset(), UnitId(system.ids.unit()));
        (rowset.root, rowset.iam) = (PageId::NONE, PageId::NONE);
        (rowset.pages, rowset.extents) = (Vec::new(), Vec::new());
        rowset.counts = Counts { rows: rowset.counts.rows, ..Counts::default() };
        self.counted[at] = rowset.counts;
    }

    /// Writes all pages of a rowset. A heap is built before its indexes, because its rows get new addresses.
    fn build(&mut self, by: By, table: usize, at: usize) -> Step {
        self.add_chain(by, at)?;
        let rows: Vec<(u64, Live)> = self.tables[table].rows.iter().map(|(&row, live)| (row, live.clone())).collect();
        if !self.rowsets[at].is_heap {
            return self.build_tree(by, at, rows.iter().map(|(_, live)| live));
        }
        let values: Vec<&Row> = rows.iter().map(|(_, live)| &live.values).collect();
        let places = self.append_pages(by, at, &values)?;
        let first = places.first().map(|place| place.page).unwrap_or_default();
        self.change_pointer(by, at, FIRST_PAGE, first)?;
        self.change_pointer(by, at, ROOT_PAGE, first)?;
        let state = &mut self.tables[table];
        for ((row, _), place) in rows.iter().zip(places) {
            for live in [state.rows.get_mut(row), state.settled.get_mut(row)].into_iter().flatten() {
                live.at = place;
            }
        }
        Ok(())
    }

    fn build_tree<'l>(&mut self, by: By, at: usize, rows: impl Iterator<Item = &'l Live>) -> Step {
        let keys = self.rowsets[at].keys.clone();
        let mut records: Vec<Vec<u8>> = rows.map(|live| self.record(at, live)).collect();
        records.sort_by_cached_key(|record| keys.sort_key(record, 0));
        for level in 0.. {
            let groups = pages_of(records);
            let mut pages = Vec::new();
            for _ in &groups {
                pages.push(self.allocate(by, at, 0)?);
            }
            for (number, group) in groups.iter().enumerate() {
                let neighbor = |number: Option<usize>| number.and_then(|at| pages.get(at).copied()).unwrap_or_default();
                let links = (neighbor(number.checked_sub(1)), neighbor(Some(number + 1)));
                self.format_with(by, at, (pages[number], level), links, group.clone())?;
            }
            if level == 0 {
                self.rowsets[at].counts.data = pages.len() as i64;
                self.change_pointer(by, at, FIRST_PAGE, pages[0])?;
            }
            if let [root] = pages[..] {
                self.rowsets[at].root = root;
                return self.change_pointer(by, at, ROOT_PAGE, root);
            }
            records = groups.iter().zip(&pages).map(|(group, &page)| keys.entry(&group[0], level, page)).collect();
        }
        Ok(())
    }

    /// Appends pages with rows to a heap; returns the addresses of the rows.
    fn append_pages(&mut self, by: By, at: usize, rows: &[&Row]) -> Step<Vec<RowId>> {
        let records = rows.iter().map(|row| self.heap_record(at, row, Kind::Primary)).collect();
        let mut places = Vec::new();
        for group in pages_of(records) {
            let page = self.allocate(by, at, 0)?;
            places.extend((0..group.len() as u16).map(|slot| RowId { page, slot }));
            self.format_with(by, at, (page, 0), Default::default(), group)?;
            self.set_fullness(page)?;
            self.rowsets[at].pages.push(page);
            self.rowsets[at].counts.data += 1;
        }
        Ok(places)
    }

    /// A bulk load: many rows in new pages of a heap, or at any place of a clustered index.
    pub(super) fn bulk_load(&mut self) -> Step {
        let fits = |state: &super::TableState<'_>| state.lob.is_none() && !state.rows.is_empty();
        let Some(table) = self.any_table(0, fits) else { return Ok(()) };
        let rows = 100 + self.dice.below(400);
        let base = self.tables[table].base;
        if !self.rowsets[base].is_heap {
            return self.insert_rows(table, rows);
        }
        let number = self.begin("BULK INSERT", false)?;
        let by = By::Transaction(number);
        let state = &mut self.tables[table];
        let first = state.next;
        state.next += rows;
        let mut all = vec![Row::default(); rows as usize];
        for (row, values) in (first..).zip(&mut all) {
            state.source.fill(row, values);
            state.gone.insert(row, 0);
        }
        let places = self.append_pages(by, base, &all.iter().collect::<Vec<_>>())?;
        self.rowsets[base].counts.rows += rows as i64;
        for ((row, values), at) in (first..).zip(all).zip(places) {
            let live = Live { values, uniquifier: 0, at, pointer: None };
            for rowset in self.tables[table].indexes.clone() {
                let record = self.record(rowset, &live);
                self.insert_row(by, rowset, &record)?;
            }
            self.tables[table].rows.insert(row, live);
            if let Some(transaction) = self.open.get_mut(&number) {
                transaction.locked.insert((table, row));
            }
        }
        self.commit(number)
    }

    /// Formats a page and fills it with rows, in one log record that has the page.
    fn format_with(
        &mut self,
        by: By,
        at: usize,
        (page, level): (PageId, u8),
        links: (PageId, PageId),
        records: Vec<Vec<u8>>,
    ) -> Step {
        let is_data = level == 0 && self.rowsets[at].is_base;
        let kind = if is_data { page_type::DATA } else { page_type::INDEX };
        let (mut entry, mut fresh) = self.new_page(at, page, (kind, level), links);
        fresh.records = records;
        entry.elements = fresh.image();
        self.mark_formatted(by, entry, fresh)
    }
}
