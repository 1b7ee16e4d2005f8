//! Builds B-trees from the bottom up. Rows must be added in key order. Only one page of each level is kept in memory.

use crate::disk::LabError;
use crate::ids::PageId;
use crate::layout::{Layout, Leaf};
use crate::page::{Page, page_type};
use crate::record;
use crate::row::{Extra, Kind, Row};
use crate::space::{GHOSTS, Space, Unit};

/// A B-tree under construction. Rows are added only at its right end.
pub(crate) struct Tree<'a> {
    layout: &'a Layout,
    unit: Unit,
    levels: Vec<Level>,
    /// The number of bytes on a leaf page that rows may use.
    capacity: usize,
    record: Vec<u8>,
    entry: Vec<u8>,
}

/// The current page of a level, which is its rightmost page so far.
struct Level {
    page: Page,
    id: PageId,
    prev: PageId,
    /// The entry that points to this page from the level above: a key and a child pointer.
    entry: Vec<u8>,
}

impl<'a> Tree<'a> {
    /// Creates an empty tree in `unit`. Its leaf pages are filled to `fill_factor` percent.
    pub(crate) fn new(layout: &'a Layout, unit: Unit, fill_factor: u8) -> Self {
        let percent = if fill_factor == 0 { 100 } else { usize::from(fill_factor) };
        Self {
            layout,
            unit,
            levels: Vec::new(),
            capacity: 8096 * percent / 100,
            record: Vec::with_capacity(8192),
            entry: Vec::with_capacity(1024),
        }
    }

    /// Adds the next row.
    pub(crate) fn push(&mut self, space: &mut Space, row: &Row, extra: &Extra, kind: Kind) -> Result<(), LabError> {
        let mut record = std::mem::take(&mut self.record);
        record::leaf(self.layout, row, extra, kind, &mut record);
        if record.len() > 8060 {
            return Err(LabError::Description(format!("a row of {} bytes does not fit a page", record.len())));
        }
        let needs_page = match self.levels.first() {
            None => true,
            Some(leaf) => leaf.page.room() < record.len() || leaf.page.filled() + record.len() + 2 > self.capacity,
        };
        if needs_page {
            let mut entry = std::mem::take(&mut self.entry);
            if !self.layout.compressed {
                record::inner(self.layout, row, extra, PageId::NONE, &mut entry);
            }
            self.start_page(space, 0, &entry)?;
            self.entry = entry;
        }
        if let Some(leaf) = self.levels.first_mut() {
            if kind == Kind::Ghost {
                leaf.page.push_ghost(&record)
            } else {
                leaf.page.push(&record)
            };
        }
        self.record = record;
        Ok(())
    }

    /// Writes the current page of a level, if there is one, and starts the next page of this level. `entry` is the
    /// entry for the new page on the level above: it contains the key of the new page's first row.
    fn start_page(&mut self, space: &mut Space, level: usize, entry: &[u8]) -> Result<(), LabError> {
        let id = space.page(&mut self.unit, 0)?;
        let mut entry = entry.to_vec();
        if !self.layout.compressed {
            record::set_child(self.layout, &mut entry, id);
        }
        let page = self.new_page(level);
        if level == self.levels.len() {
            self.levels.push(Level { page, id, prev: PageId::NONE, entry });
        } else {
            let done = &mut self.levels[level];
            write(space, done, id)?;
            let first_entry = (done.prev == PageId::NONE).then(|| done.entry.clone());
            *done = Level { page, id, prev: done.id, entry: entry.clone() };
            if self.layout.compressed {
                let text = "a compressed index must fit one page: the form of its non-leaf rows is undocumented";
                return Err(LabError::Description(text.to_owned()));
            }
            // The level above is created when the second page of a level is started. It then needs entries for both the
            // first and the second page.
            if let Some(first) = first_entry {
                self.add_entry(space, level + 1, &first)?;
            }
            self.add_entry(space, level + 1, &entry)?;
        }
        if level == 0 {
            self.unit.data += 1;
            if self.unit.first == PageId::NONE {
                self.unit.first = id;
            }
        }
        Ok(())
    }

    /// Adds an entry to a non-leaf level. The depth of the recursion is at most the number of levels in the tree.
    fn add_entry(&mut self, space: &mut Space, level: usize, entry: &[u8]) -> Result<(), LabError> {
        if self.levels.get(level).is_none_or(|inner| inner.page.room() < entry.len()) {
            self.start_page(space, level, entry)?;
        }
        self.levels[level].page.push(entry);
        Ok(())
    }

    fn new_page(&self, level: usize) -> Page {
        match (level, self.layout.leaf) {
            (0, Leaf::Data) => Page::new(page_type::DATA, 0, self.unit.id, self.layout.leaf_fixed),
            (0, Leaf::Index) => Page::new(page_type::INDEX, 0, self.unit.id, self.layout.leaf_fixed),
            _ => Page::new(page_type::INDEX, level as u8, self.unit.id, self.layout.inner_fixed),
        }
    }

    /// Writes the last page of each level and the IAM chain.
    pub(crate) fn finish(mut self, space: &mut Space) -> Result<Unit, LabError> {
        for level in &mut self.levels {
            write(space, level, PageId::NONE)?;
            self.unit.root = level.id;
        }
        space.close(&mut self.unit)?;
        Ok(self.unit)
    }
}

fn write(space: &mut Space, level: &mut Level, next: PageId) -> Result<(), LabError> {
    if level.page.ghosts() > 0 {
        space.mark(level.id, GHOSTS)?;
    }
    space.disk.write(&mut level.page, level.id, (level.prev, next))
}
