//! The leaf rows of a table or index in an image, found through the catalog.

use catalog::{Database, Level, RowsetColumn, Stored, UnitKind};
use format::page::PAGE_BYTES;
use format::record::{Record, RecordKind};
use format::{AllocUnitId, Page, PageBytes, PageHeader, PageId, RecordId};

use crate::image::{Image, get16, offset_of, put16, slot_at};

/// Returns whether a page belongs to a unit. A data page of a clustered index that SQL Server 2000 wrote last has index
/// ID 0, not 1, in its header.
fn owns(unit: AllocUnitId, header: &PageHeader) -> bool {
    let old = header.index_id.get() == 0 && unit == AllocUnitId::from_header(1, header.object_id.get());
    header.alloc_unit() == unit || old
}

/// The rows of a heap, clustered index or nonclustered index.
pub struct Rows {
    /// Object id.
    pub object_id: i32,
    /// Index id.
    pub index_id: i32,
    /// The names of the table and of the index, as messages print them.
    pub names: (String, String),
    columns: Vec<RowsetColumn>,
    /// Column names by column ID; empty for a nonclustered index.
    column_names: Vec<(u32, String)>,
    /// The addresses of the live rows, in page and slot order.
    pub at: Vec<RecordId>,
}

impl Rows {
    /// The rows of a table's heap or clustered index.
    pub fn of_table(image: &Image, table: &str) -> Self {
        let database = image.database();
        let wanted = |object_id: i32, index_id: i32| index_id < 2 && database.object_name(object_id) == table;
        Self::find(image, &database, wanted)
    }

    /// The rows of a nonclustered index.
    pub fn of_index(image: &Image, table: &str, index: &str) -> Self {
        let database = image.database();
        let named = |object_id: i32, index_id: i32| {
            let row = database.indexes.get(&(object_id, index_id));
            row.is_some_and(|row| row.name == index) && database.object_name(object_id) == table
        };
        Self::find(image, &database, named)
    }

    fn find(image: &Image, database: &Database, wanted: impl Fn(i32, i32) -> bool) -> Self {
        let rowset = database.rowsets.iter().find(|rowset| wanted(rowset.object_id, rowset.index_id)).expect("rowset");
        let in_row = |unit: &&usize| database.units[**unit].kind == UnitKind::InRow;
        let unit = &database.units[*rowset.units.iter().find(in_row).expect("unit")];
        let mut at = Vec::new();
        for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
            let bytes = image.page(page);
            let view = Page::new(&bytes);
            let in_use = image.page(1)[100 + page as usize] & 0x40 != 0;
            let is_leaf = view.header().level == 0 && matches!(view.header().page_type, 1 | 2);
            if !in_use || !is_leaf || !owns(unit.id, view.header()) || view.header().page_id().page != page {
                continue;
            }
            for slot in 0..view.header().slot_count.get() {
                let kind = RecordKind::of(bytes[offset_of(&bytes, slot)]);
                if matches!(kind, RecordKind::Primary | RecordKind::Index) {
                    at.push(RecordId { page: PageId::new(1, page), slot });
                }
            }
        }
        let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
        let columns = database.columns.get(&rowset.object_id);
        Self {
            object_id: rowset.object_id,
            index_id: rowset.index_id,
            names: (database.object_name(rowset.object_id), index.map(|index| index.name.clone()).unwrap_or_default()),
            columns: rowset.layout.columns.clone(),
            column_names: columns.into_iter().flatten().map(|column| (column.id, column.name.clone())).collect(),
            at,
        }
    }

    /// The column of the table with this name.
    pub fn named(&self, name: &str) -> &RowsetColumn {
        let id = self.column_names.iter().find(|(_, column)| column == name).expect("column").0;
        self.column(id)
    }

    /// The column with this ID. In a nonclustered index, the ID is the position of the column.
    pub fn column(&self, id: u32) -> &RowsetColumn {
        self.columns.iter().find(|column| column.id == id).expect("stored column")
    }

    /// The stored bytes of a column; `None` for NULL.
    pub fn value(&self, image: &Image, at: RecordId, column: &RowsetColumn) -> Option<Vec<u8>> {
        let bytes = image.page(at.page.page);
        match column.stored(Level::Leaf, &self.record(&bytes, at)) {
            Stored::Plain(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }

    /// The value of an int column.
    pub fn int(&self, image: &Image, at: RecordId, column: &RowsetColumn) -> i32 {
        i32::from_le_bytes(self.value(image, at, column).expect("value").try_into().expect("an int"))
    }

    /// The value of an nvarchar column.
    pub fn text(&self, image: &Image, at: RecordId, column: &RowsetColumn) -> String {
        let bytes = self.value(image, at, column).expect("value");
        String::from_utf16_lossy(
            &bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect::<Vec<_>>(),
        )
    }

    /// Overwrites the bytes of a value with a value of the same length.
    pub fn write(&self, image: &mut Image, at: RecordId, column: &RowsetColumn, value: &[u8]) {
        let bytes = image.page(at.page.page);
        let record = self.record(&bytes, at);
        let Stored::Plain(old) = column.stored(Level::Leaf, &record) else { panic!("not a plain value") };
        assert_eq!(old.len(), value.len());
        let place = old.as_ptr() as usize - bytes.as_ptr() as usize;
        image.edit(at.page.page, |bytes| bytes[place..][..value.len()].copy_from_slice(value));
    }

    /// Flips the null bit of a column.
    pub fn flip_null(&self, image: &mut Image, at: RecordId, column: &RowsetColumn) {
        let bytes = image.page(at.page.page);
        let bitmap = offset_of(&bytes, at.slot) + usize::from(self.record(&bytes, at).fixed_end()) + 2;
        let bit = usize::from(column.leaf_null_bit - 1);
        image.edit(at.page.page, |bytes| bytes[bitmap + bit / 8] ^= 1 << (bit % 8));
    }

    /// Makes a variable column NULL, as an UPDATE does.
    pub fn set_null(&self, image: &mut Image, at: RecordId, column: &RowsetColumn) {
        self.replace(image, at, column, &[], false);
        self.flip_null(image, at, column);
    }

    /// Gives a variable column another value, or a pointer to an off-row value. Like an UPDATE, writes the changed row
    /// at the end of the used space of the page.
    pub fn replace(&self, image: &mut Image, at: RecordId, column: &RowsetColumn, value: &[u8], is_complex: bool) {
        let bytes = image.page(at.page.page);
        let record = self.record(&bytes, at);
        let number = column.leaf_offset.unsigned_abs();
        let (count, old) = (record.variable_count(), record.variable(number).expect("value").0);
        let start = offset_of(&bytes, at.slot);
        let place = old.as_ptr() as usize - bytes.as_ptr() as usize - start;
        let offsets = usize::from(record.fixed_end()) + 4 + usize::from(record.column_count()).div_ceil(8);
        let mut row = record.bytes().to_vec();
        let length = row.len();
        row.splice(place..place + old.len(), value.iter().copied());
        for column in number - 1..count {
            let at = offsets + 2 * usize::from(column);
            let mut end = u16::from_le_bytes([row[at], row[at + 1]]) + value.len() as u16 - old.len() as u16;
            if is_complex && column == number - 1 {
                end |= 0x8000;
            }
            row[at..at + 2].copy_from_slice(&end.to_le_bytes());
        }
        image.edit(at.page.page, |bytes| {
            let (slots, free, end) = (get16(bytes, 22), get16(bytes, 28), get16(bytes, 30));
            assert!(usize::from(end) + row.len() <= slot_at(slots - 1), "no room on the page");
            bytes[usize::from(end)..][..row.len()].copy_from_slice(&row);
            put16(bytes, slot_at(at.slot), end);
            put16(bytes, 28, free + length as u16 - row.len() as u16);
            put16(bytes, 30, end + row.len() as u16);
        });
    }

    fn record<'a>(&self, bytes: &'a PageBytes, at: RecordId) -> Record<'a> {
        let space = &bytes[offset_of(bytes, at.slot)..];
        let record = if self.index_id < 2 {
            Record::data(space)
        } else {
            Record::index(space, Page::new(bytes).header().pminlen.get())
        };
        record.expect("record")
    }

    /// Removes a row from its page as the engine does: the slot is removed and the space becomes free.
    pub fn remove(&self, image: &mut Image, at: RecordId) {
        let length = self.record(&image.page(at.page.page), at).bytes().len() as u16;
        image.edit(at.page.page, |bytes| {
            let slots = get16(bytes, 22);
            for slot in at.slot..slots - 1 {
                let next = get16(bytes, slot_at(slot + 1));
                put16(bytes, slot_at(slot), next);
            }
            put16(bytes, 22, slots - 1);
            let free = get16(bytes, 28);
            put16(bytes, 28, free + length + 2);
        });
    }

    /// Whether the page of a row has space for another row of the same length.
    pub fn has_room(&self, image: &Image, at: RecordId) -> bool {
        let bytes = image.page(at.page.page);
        let length = self.record(&bytes, at).bytes().len();
        usize::from(get16(&bytes, 30)) + length <= slot_at(get16(&bytes, 22))
    }

    /// Writes a copy of a row to the same page, in a new slot after the slot of the row.
    pub fn duplicate(&self, image: &mut Image, at: RecordId) {
        let record = self.record(&image.page(at.page.page), at).bytes().to_vec();
        image.edit(at.page.page, |bytes| {
            let (slots, free, end) = (get16(bytes, 22), get16(bytes, 28), get16(bytes, 30));
            for slot in (at.slot + 1..slots).rev() {
                let offset = get16(bytes, slot_at(slot));
                put16(bytes, slot_at(slot + 1), offset);
            }
            bytes[usize::from(end)..][..record.len()].copy_from_slice(&record);
            put16(bytes, slot_at(at.slot + 1), end);
            put16(bytes, 22, slots + 1);
            put16(bytes, 28, free - record.len() as u16 - 2);
            put16(bytes, 30, end + record.len() as u16);
        });
    }
}
