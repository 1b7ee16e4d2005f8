//! Facts about fragments of off-row values, read from rows and text pages.

use format::RecordId;
use format::lob::{Fragment, Node, Pointer};
use format::record::{Record, RecordKind};
use format::same_shape::Rows;
use format::sparse::{SparseValue, SparseVector};

use super::plan::{ColumnRole, RowPlan};
use crate::basis::units::UnitIndex;

/// A pointer or link to a fragment, with its requirements on the fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// The unit in which the fragment must be.
    pub(crate) unit: UnitIndex,
    /// The address of the fragment.
    pub(crate) target: RecordId,
    /// The id of the value that the fragment must be part of.
    pub(crate) id: u64,
    /// The required kind and size.
    pub(crate) expects: Expects,
}

/// The required kind and size of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expects {
    /// The root of a value, of any size.
    Root {
        /// The column ID if the column is ntext: its values must have an even number of bytes.
        ntext: Option<u32>,
    },
    /// A part of a value; a part at level 0 contains data.
    Part {
        /// Bytes of the value in the subtree of the part.
        size: u64,
        /// Number of levels above the data.
        level: u16,
    },
    /// A row-overflow value. The fragment must be data or a root.
    Overflow {
        /// Size of the value in bytes.
        size: u64,
        /// Number of levels above the data.
        level: u16,
    },
}

/// State of message 8961 for a wrong size. The next constant is the state for a wrong type.
const SIZE_DIFFERS: u8 = 2;
const TYPE_DIFFERS: u8 = 4;
const SMALLEST_PIECE: u64 = 8;

impl Expects {
    /// Returns the required size and level; `None` for a root, which may have any size.
    pub(crate) fn part(self) -> Option<(u64, u16)> {
        match self {
            Self::Root { .. } => None,
            Self::Part { size, level } | Self::Overflow { size, level } => Some((size, level)),
        }
    }

    /// Returns the state of message 8961 if the fragment does not meet the requirements; `None` if it does.
    pub(crate) fn mismatch(self, kind: Kind) -> Option<u8> {
        let (size, level, expected, expected_level) = match (self, kind) {
            (Self::Root { .. }, Kind::Root { .. }) => return None,
            (
                Self::Part { size, level } | Self::Overflow { size, level },
                Kind::Part { size: actual, level: found },
            ) => (actual, found, size, level),
            // No row-overflow value with several fragments has been seen, so it is unknown how its fragments are
            // linked.
            (Self::Overflow { size, level }, Kind::Root { size: actual }) => (actual, level, size, level),
            _ => return Some(TYPE_DIFFERS),
        };
        if level != expected_level {
            return Some(TYPE_DIFFERS);
        }
        // The smallest fragment seen has 8 bytes. It is unknown whether smaller fragments are padded.
        let may_be_padded = level == 0 && size <= SMALLEST_PIECE && expected < size;
        (size != expected && !may_be_padded).then_some(SIZE_DIFFERS)
    }
}

/// The content of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// The id of the value that the fragment is part of.
    pub(crate) id: u64,
    /// The kind and size of the fragment.
    pub(crate) kind: Kind,
}

/// The kind and size of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The root of a value, or a whole value.
    Root {
        /// Bytes of the value in the subtree of the root.
        size: u64,
    },
    /// A part of a value; a part at level 0 contains data.
    Part {
        /// Bytes of the value in the subtree of the part.
        size: u64,
        /// Number of levels above the data.
        level: u16,
    },
    /// The fields of the fragment contradict each other.
    Malformed,
    /// The fragment has a node type that does not exist (message 8962).
    Unknown,
    /// The fragment has an undocumented form, or is a ghost.
    Undescribed,
}

/// The content of a fragment.
pub(crate) fn held(fragment: &Fragment<'_>) -> Held {
    let kind = match fragment.node() {
        _ if !fragment.is_live() => Kind::Undescribed,
        Node::Root { size } => Kind::Root { size },
        Node::Tree { links, .. } => Kind::Root { size: links.size() },
        Node::Internal { level, links } => match level.checked_add(1) {
            Some(level) => Kind::Part { size: links.size(), level },
            None => Kind::Malformed,
        },
        Node::Data { size } => Kind::Part { size, level: 0 },
        Node::Malformed => Kind::Malformed,
        Node::Undescribed(_) => Kind::Undescribed,
        Node::Unknown(_) => Kind::Unknown,
    };
    Held { id: fragment.blob_id(), kind }
}

/// Calls `visit` for each child of a fragment.
pub(crate) fn links(unit: UnitIndex, fragment: &Fragment<'_>, mut visit: impl FnMut(Reference)) {
    let (Node::Tree { level, links } | Node::Internal { level, links }) = fragment.node() else { return };
    if !fragment.is_live() {
        return;
    }
    let id = fragment.blob_id();
    for link in links.iter() {
        let expects = Expects::Part { size: link.size, level };
        visit(Reference { unit, target: link.target, id, expects });
    }
}

/// The content of a complex column of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InRow {
    /// A reference to a fragment.
    Reference(Reference),
    /// The column has an undocumented form.
    Undescribed,
    /// The column cannot be complex, or its length is impossible for a pointer.
    Invalid {
        /// The column's id.
        column: u32,
    },
}

impl RowPlan {
    /// Calls `visit` with the content of each complex column of a row.
    pub(crate) fn each(&self, record: &Record<'_>, mut visit: impl FnMut(InRow)) {
        let vector = self.sparse.as_ref().and_then(|ids| Some((SparseVector::of(record)?, ids)));
        if let Some((vector, ids)) = vector {
            sparse(vector, ids, &mut visit);
        }
        // The sparse vector is also stored as a complex column, after all other columns.
        let is_vector = |bytes: &[u8]| vector.is_some_and(|(vector, _)| std::ptr::eq(vector.bytes(), bytes));
        for number in 1..=record.variable_count() {
            let Some((bytes, true)) = record.variable(number) else { continue };
            if record.kind() == RecordKind::Forwarded && bytes.len() == 10 && bytes.starts_with(&[0, 4]) {
                // Skips the back pointer of a forwarded row.
                continue;
            }
            if is_vector(bytes) {
                continue;
            }
            self.column(number, bytes, &mut visit);
        }
    }

    /// Whether all complex columns of the live rows of a page are sound sparse vectors without off-row values, so that
    /// there is nothing to visit.
    pub(crate) fn has_vectors_alone(&self, rows: Rows<'_>) -> bool {
        let (Some(ids), Some(vectors)) = (&self.sparse, rows.vectors()) else { return false };
        let Some(common) = vectors.common_form() else {
            return !vectors.each().flat_map(SparseVector::values).any(|value| is_off_row(value, ids));
        };
        common.values().all(|value| match ids.contains(&value.column.into()) {
            true => vectors
                .values(value.column)
                .is_some_and(|mut values| !values.any(|bytes| is_off_row(SparseValue { bytes, ..value }, ids))),
            false => !value.is_complex,
        })
    }

    fn column(&self, number: u16, bytes: &[u8], visit: &mut impl FnMut(InRow)) {
        let column = self.columns.get(usize::from(number) - 1).copied().unwrap_or_default();
        let may_hold = matches!(column.role, ColumnRole::Large | ColumnRole::Limited);
        let pointer = match Pointer::read(bytes) {
            _ if column.role == ColumnRole::Never => return visit(InRow::Invalid { column: column.id }),
            Pointer::Malformed if may_hold => return visit(InRow::Invalid { column: column.id }),
            pointer if may_hold => pointer,
            _ => Pointer::Undescribed,
        };
        let is_large = column.role == ColumnRole::Large;
        match (pointer, self.lob, self.overflow) {
            (Pointer::Text { id, root }, Some(unit), _) if is_large => {
                let expects = Expects::Root { ntext: column.is_ntext.then_some(column.id) };
                visit(InRow::Reference(Reference { unit, target: root, id, expects }));
            }
            (Pointer::InlineRoot { id, level, links }, Some(unit), _) if is_large => {
                for link in links.iter() {
                    let expects = Expects::Part { size: link.size, level };
                    visit(InRow::Reference(Reference { unit, target: link.target, id, expects }));
                }
            }
            // If a column was changed to a (max) type, old rows may still have row-overflow pointers, because the
            // change does not rewrite them.
            (Pointer::Overflow { id, level, links }, _, Some(unit)) => {
                for link in links.iter() {
                    let expects = Expects::Overflow { size: link.size, level };
                    visit(InRow::Reference(Reference { unit, target: link.target, id, expects }));
                }
            }
            _ => visit(InRow::Undescribed),
        }
    }
}

/// Reports a sparse vector as undescribed if it is faulty or if any of its values may be off-row, because it is
/// undocumented how a sparse vector marks off-row values.
fn sparse(vector: SparseVector<'_>, may_be_off_row: &[u32], visit: &mut impl FnMut(InRow)) {
    if vector.fault().is_some() || vector.values().any(|value| is_off_row(value, may_be_off_row)) {
        visit(InRow::Undescribed);
    }
}

fn is_off_row(value: SparseValue<'_>, may_be_off_row: &[u32]) -> bool {
    value.is_complex
        || may_be_off_row.contains(&value.column.into()) && Pointer::read(value.bytes) != Pointer::Undescribed
}
