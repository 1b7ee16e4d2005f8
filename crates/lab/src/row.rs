//! A row of values: one cell per column, and what its record has besides. The bytes of all values are in one buffer,
//! which is reused for the next row.

use crate::ids::RowId;

/// The value of one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// NULL.
    Null,
    /// A value: the bytes `from .. to` of the row's buffer.
    Bytes(u32, u32),
    /// A pointer to an off-row value: the bytes `from .. to` of the row's buffer. The record stores it as a complex
    /// column.
    Pointer(u32, u32),
}

/// The values of one row.
#[derive(Clone, Default, Debug)]
pub(crate) struct Row {
    bytes: Vec<u8>,
    cells: Vec<Cell>,
}

impl Row {
    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
    }

    /// Adds NULL.
    pub(crate) fn push_null(&mut self) {
        self.cells.push(Cell::Null);
    }

    /// Adds a value.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.push_with(|out| out.extend_from_slice(bytes));
    }

    /// Adds the value that `write` appends.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.cells.push(Cell::Bytes(from, self.bytes.len() as u32));
    }

    /// Replaces a value with a pointer.
    pub(crate) fn replace_by_pointer(&mut self, at: usize, pointer: &[u8]) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(pointer);
        self.cells[at] = Cell::Pointer(from, self.bytes.len() as u32);
    }

    /// Makes a value NULL if `to_null` is true, otherwise empty.
    pub(crate) fn shorten(&mut self, at: usize, to_null: bool) {
        self.cells[at] = if to_null { Cell::Null } else { Cell::Bytes(0, 0) };
    }

    /// The cell of a column.
    pub(crate) fn cell(&self, at: usize) -> Cell {
        self.cells.get(at).copied().unwrap_or(Cell::Null)
    }

    /// The bytes of a value or pointer; `None` for NULL.
    pub(crate) fn value(&self, at: usize) -> Option<&[u8]> {
        match self.cell(at) {
            Cell::Null => None,
            Cell::Bytes(from, to) | Cell::Pointer(from, to) => self.bytes.get(from as usize..to as usize),
        }
    }
}

/// The kind of a leaf record, which is stored in the type bits of its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    /// A row.
    #[default]
    Primary,
    /// A forwarded row, with the address of its forwarding stub for the back pointer.
    Forwarded(RowId),
    /// A ghost: a row that was deleted but not yet removed.
    Ghost,
}

/// The parts of a record that are not column values of the row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The number of the row among the rows with the same clustering key; 0 for the first row.
    uniquifier: u32,
    uniquifier_bytes: [u8; 4],
    row_id: [u8; 8],
    /// Whether the row has a version tag.
    pub(crate) versioned: bool,
    /// The row number, which determines when the row was written.
    pub(crate) number: u64,
    /// The sparse vector; empty if all sparse columns are NULL.
    pub sparse: Vec<u8>,
}

impl Extra {
    /// Sets the number of the row among the rows with the same clustering key.
    pub(crate) fn set_uniquifier(&mut self, number: u32) {
        (self.uniquifier, self.uniquifier_bytes) = (number, number.to_le_bytes());
    }

    /// Sets the address of the heap row that an index row points to.
    pub(crate) fn set_row_id(&mut self, row: RowId) {
        self.row_id = row.bytes();
    }

    /// The address of the heap row.
    pub(crate) fn row_id(&self) -> &[u8; 8] {
        &self.row_id
    }

    /// The uniquifier as stored; empty for the first of the rows with the same clustering key.
    pub(crate) fn uniquifier(&self) -> &[u8] {
        if self.uniquifier == 0 { &[] } else { &self.uniquifier_bytes }
    }
}
