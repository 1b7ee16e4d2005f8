//! The layout of the records of a rowset: assigns a place in the records to each column, and describes the columns as
//! sysrscols does.

use crate::types::{SqlType, Storage};

/// The value that a physical column stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The column at this position in the rows of the table.
    Column(usize),
    /// The uniquifier, which distinguishes rows with the same clustering key.
    Uniquifier,
    /// The address of a heap row.
    RowId,
    /// The sparse vector, which contains all sparse values of the row. It is stored as the last variable-length column,
    /// and the catalog does not list it.
    SparseVector,
}

/// The place of a column in leaf records or in non-leaf records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    /// If positive, the offset in the record; if negative, the number of a variable-length column, counted from -1; if
    /// 0, the column is not stored.
    pub offset: i16,
    /// The number of the null bit, from 1; 0 if the column has no null bit.
    pub null_bit: u16,
    /// For a bit column, the number of its bit in the byte.
    pub bit: u8,
}

/// A column of a rowset. The columns of a rowset are in physical order.
#[derive(Clone, Debug)]
pub(crate) struct PhysicalColumn {
    /// The value that the column stores.
    pub source: Source,
    /// sysrscols.rscolid.
    pub id: u32,
    /// Type of the column.
    pub ty: SqlType,
    /// Collation ID; 0 if the type has no collation.
    pub collation: u32,
    /// Key ordinal from 1; 0 if the column is not a key column.
    pub key_ordinal: i16,
    /// Whether the column is NOT NULL.
    pub not_null: bool,
    /// Whether the key column is descending.
    pub descending: bool,
    /// Whether non-leaf records also store the column.
    pub in_inner: bool,
    /// Whether the column is sparse, so that its value is in the sparse vector.
    pub sparse: bool,
    /// Whether the column was dropped.
    pub dropped: bool,
    /// The default of the column in the metadata, which applies to rows that were written before the column was added.
    pub default: Option<i32>,
    /// The dropped column whose bytes this column uses, given as its position among the columns of the rowset.
    pub in_place_of: Option<usize>,
    /// Whether the column begins where the last column that was not dropped ends.
    pub at_end: bool,
    /// Whether the column uses not only the bytes of the dropped column but also its null bit.
    pub alters: bool,
    /// sysrscols.maxinrowlen.
    pub max_in_row: u16,
    /// Place in leaf records.
    pub leaf: Place,
    /// Place in non-leaf records.
    pub inner: Place,
}

impl PhysicalColumn {
    /// Creates a column to which no places are assigned yet.
    pub(crate) fn new(source: Source, id: u32, ty: SqlType, collation: u32, not_null: bool) -> Self {
        Self {
            source,
            id,
            ty,
            collation,
            key_ordinal: 0,
            not_null,
            descending: false,
            in_inner: false,
            sparse: false,
            dropped: false,
            default: None,
            in_place_of: None,
            at_end: false,
            alters: false,
            max_in_row: if ty.storage() == Storage::Max { 8000 } else { 0 },
            leaf: Place::default(),
            inner: Place::default(),
        }
    }
}

/// The kind of records on leaf pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaf {
    /// Data records, as in heaps and clustered indexes.
    Data,
    /// Index records, as in nonclustered indexes.
    Index,
}

/// The record layout of one rowset.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Kind of the leaf records.
    pub leaf: Leaf,
    /// The columns in physical order (hbcolid).
    pub columns: Vec<PhysicalColumn>,
    /// pminlen of leaf pages.
    pub leaf_fixed: u16,
    /// pminlen of non-leaf pages, including the child pointer.
    pub inner_fixed: u16,
    /// Whether leaf records have a null bitmap.
    pub leaf_nulls: bool,
    /// Whether non-leaf records have a null bitmap.
    pub inner_nulls: bool,
    /// Whether the records are CD records. In this case, all columns have negative offsets, like variable-length
    /// columns: the number of the column, counted from -1.
    pub compressed: bool,
    /// The layouts of rows that were written before columns were added. The number before each layout is the number of
    /// the first row that was written with a later layout.
    pub earlier: Vec<(u64, Layout)>,
}

impl Layout {
    /// Assigns places to `columns`, which must be in physical order.
    pub(crate) fn new(leaf: Leaf, mut columns: Vec<PhysicalColumn>, leaf_nulls: bool, inner_nulls: bool) -> Self {
        let start = if leaf == Leaf::Data { 4 } else { 1 };
        let mut places = Places::new(start, leaf_nulls);
        for at in 0..columns.len() {
            let taken = match columns[at].at_end {
                true => Some(Place { offset: end_of_kept(&columns[..at], start), ..Place::default() }),
                false => columns[at].in_place_of.map(|dropped| columns[dropped].leaf),
            };
            let column = &mut columns[at];
            // A uniquifier is stored like a variable-length column, because the first row with a key has no uniquifier.
            column.leaf = match (column.source, taken) {
                _ if column.sparse => continue,
                (Source::Uniquifier, _) => places.variable(),
                (Source::SparseVector, _) => places.variable_without_null_bit(),
                // An altered column keeps the place of the dropped column, including its null bit. `again` would assign
                // a new null bit.
                (_, Some(place)) if column.alters => place,
                (_, Some(place)) => places.again(column.ty, place),
                (_, None) => places.next(column.ty),
            };
        }
        let leaf_fixed = places.offset as u16;
        let mut places = Places::new(1, inner_nulls);
        let mut inner: Vec<&mut PhysicalColumn> = columns.iter_mut().filter(|column| column.in_inner).collect();
        if leaf == Leaf::Data {
            inner.sort_by_key(|column| column.key_ordinal);
        }
        for column in inner {
            column.inner = match column.source {
                // In real files, the uniquifier has no null bit in non-leaf records.
                Source::Uniquifier => places.variable_without_null_bit(),
                _ => places.next(column.ty),
            };
        }
        let inner_fixed = places.offset as u16 + 6;
        let earlier = Vec::new();
        Self { leaf, columns, leaf_fixed, inner_fixed, leaf_nulls, inner_nulls, compressed: false, earlier }
    }

    /// The layout that was current when row `row` was written.
    pub(crate) fn of_row(&self, row: u64) -> &Self {
        self.earlier.iter().find(|(next, _)| row < *next).map_or(self, |(_, layout)| layout)
    }

    /// The layout of the same columns in CD records.
    pub(crate) fn compressed(mut self) -> Self {
        self.compressed = true;
        // The fixed-length part of a CD record consists of the status byte, the column count in one byte, and half a
        // byte for each column.
        self.leaf_fixed = 2 + (self.columns.len() as u16).div_ceil(2);
        for (number, column) in self.columns.iter_mut().enumerate() {
            column.leaf = Place { offset: -(number as i16) - 1, null_bit: column.leaf.null_bit, bit: 0 };
        }
        let mut inner: Vec<&mut PhysicalColumn> = self.columns.iter_mut().filter(|column| column.in_inner).collect();
        if self.leaf == Leaf::Data {
            inner.sort_by_key(|column| column.key_ordinal);
        }
        for (number, column) in inner.into_iter().enumerate() {
            column.inner = Place { offset: -(number as i16) - 1, null_bit: column.inner.null_bit, bit: 0 };
        }
        self
    }

    /// sysrowsets.maxnullbit.
    pub(crate) fn null_bits(&self) -> u16 {
        self.columns.iter().map(|column| column.leaf.null_bit).max().unwrap_or(0)
    }

    /// sysrowsets.maxleaf: the length in bytes of the longest leaf row, if no values are moved off the row.
    pub(crate) fn longest_leaf(&self) -> u32 {
        longest(self.columns.iter(), u32::from(self.leaf_fixed), self.leaf_nulls)
    }

    /// sysrowsets.maxint: the length in bytes of the longest non-leaf row; 0 for a heap.
    pub(crate) fn longest_inner(&self) -> u32 {
        let inner: Vec<_> = self.columns.iter().filter(|column| column.in_inner).collect();
        if inner.is_empty() {
            return 0;
        }
        longest(inner.into_iter(), u32::from(self.inner_fixed), self.inner_nulls)
    }

    /// Whether a row of the rowset can be longer than the format allows. Then the rowset needs a row-overflow unit.
    pub(crate) fn can_overflow(&self) -> bool {
        self.longest_leaf() > 8060
    }
}

fn longest<'a>(columns: impl Iterator<Item = &'a PhysicalColumn>, fixed: u32, nulls: bool) -> u32 {
    let (mut count, mut variable, mut bytes) = (0, 0, 0);
    for column in columns {
        count += 1;
        let is_variable = !matches!(column.ty.storage(), Storage::Fixed(_) | Storage::Bit);
        if is_variable || column.source == Source::Uniquifier {
            variable += 1;
            bytes += column.ty.most_in_row();
        }
    }
    let bitmap = if nulls { 2 + u32::div_ceil(count, 8) } else { 0 };
    fixed + bitmap + if variable > 0 { 2 + 2 * variable + bytes } else { 0 }
}

/// The end of the last fixed-length column that was not dropped.
fn end_of_kept(columns: &[PhysicalColumn], start: i16) -> i16 {
    let kept = columns.iter().filter(|column| !column.dropped && column.leaf.offset > 0);
    kept.map(|column| column.leaf.offset + column.ty.fixed_bytes()).max().unwrap_or(start)
}

/// Assigns consecutive places in a record.
struct Places {
    offset: i16,
    variables: i16,
    null_bit: u16,
    nulls: bool,
    bits: Option<(i16, u8)>,
}

impl Places {
    fn new(offset: i16, nulls: bool) -> Self {
        Self { offset, variables: 0, null_bit: 0, nulls, bits: None }
    }

    fn null_bit(&mut self) -> u16 {
        self.null_bit += 1;
        if self.nulls { self.null_bit } else { 0 }
    }

    fn variable(&mut self) -> Place {
        self.variables -= 1;
        Place { offset: self.variables, null_bit: self.null_bit(), bit: 0 }
    }

    fn variable_without_null_bit(&mut self) -> Place {
        self.variables -= 1;
        Place { offset: self.variables, ..Place::default() }
    }

    /// Assigns the bytes at `place`, which a dropped column used before, to a new column, with a new null bit.
    fn again(&mut self, ty: SqlType, place: Place) -> Place {
        if place.offset > 0 {
            self.offset = self.offset.max(place.offset + ty.fixed_bytes());
        }
        Place { null_bit: self.null_bit(), ..place }
    }

    fn next(&mut self, ty: SqlType) -> Place {
        match ty.storage() {
            Storage::Fixed(size) => {
                let offset = self.offset;
                self.offset += size as i16;
                Place { offset, null_bit: self.null_bit(), bit: 0 }
            }
            Storage::Bit => {
                let (offset, bit) = match self.bits {
                    Some((offset, bit)) if bit < 8 => (offset, bit),
                    _ => {
                        self.offset += 1;
                        (self.offset - 1, 0)
                    }
                };
                self.bits = Some((offset, bit + 1));
                Place { offset, null_bit: self.null_bit(), bit }
            }
            _ => self.variable(),
        }
    }
}
