//! A row of values: one cell per column. The bytes of all values are in one buffer, which is reused for the next row.

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
