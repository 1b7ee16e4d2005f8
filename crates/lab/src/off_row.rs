//! Stores values off the row: text, ntext and image values, long values of (max) types, and values for which the row
//! has no space.

use crate::description::Table;
use crate::disk::LabError;
use crate::layout::{Layout, Source};
use crate::lob::{BlobIds, LobStore};
use crate::row::{Cell, Extra, Row};
use crate::space::Space;
use crate::types::Storage;

/// The allocation units in which off-row values are stored.
pub(crate) struct OffRow {
    /// The unit for text values and for long values of (max) types.
    pub(crate) lob: Option<LobStore>,
    /// The row-overflow unit, for long values of types with a limited length.
    pub(crate) overflow: Option<LobStore>,
}

/// Length in bytes of the longest data record.
const LONGEST_RECORD: usize = 8060;

impl OffRow {
    /// Stores each text, ntext and image value off the row and puts a pointer in its place. Then moves the longest
    /// other values off the row, until the row fits on a page.
    pub(crate) fn settle(
        &mut self,
        space: &mut Space,
        blobs: &mut BlobIds,
        layout: &Layout,
        row: &mut Row,
        extra: &Extra,
    ) -> Result<(), LabError> {
        if self.lob.is_none() && self.overflow.is_none() {
            return Ok(());
        }
        for column in &layout.columns {
            let Source::Column(at) = column.source else { continue };
            if let (Storage::Text, Some(store), Some(value)) = (column.ty.storage(), &mut self.lob, row.value(at)) {
                let pointer = store.store_text(space, blobs, value)?;
                row.replace_by_pointer(at, &pointer);
            }
        }
        while let Some((at, storage)) = self.longest_to_move(layout, row, extra) {
            let value = row.value(at).unwrap_or_default();
            let pointer = match (storage, &mut self.lob, &mut self.overflow) {
                (Storage::Max, Some(store), _) => store.store_max(space, blobs, value)?,
                (_, _, Some(store)) => store.store_overflow(space, blobs, value)?,
                _ => return Ok(()),
            };
            row.replace_by_pointer(at, &pointer);
        }
        Ok(())
    }

    /// Returns the column whose value must be moved off the row next: the longest value that can be moved. `None` if no
    /// value can be moved, or if this value can stay, because the row fits on a page and the value has at most 8,000
    /// bytes.
    fn longest_to_move(&self, layout: &Layout, row: &Row, extra: &Extra) -> Option<(usize, Storage)> {
        // The initial length includes the fixed-length part, two column counts, the null bitmap, the end offset of the
        // sparse vector, a back pointer and a version tag.
        let mut length = usize::from(layout.leaf_fixed) + 4 + layout.columns.len().div_ceil(8) + 2 + 12 + 14;
        length += extra.sparse.len();
        let mut longest: Option<(usize, usize, Storage)> = None;
        for column in &layout.columns {
            let Source::Column(at) = column.source else { continue };
            let storage = column.ty.storage();
            if matches!(storage, Storage::Fixed(_) | Storage::Bit) || column.sparse {
                continue;
            }
            length += 2;
            let value = row.value(at).map_or(0, <[u8]>::len);
            length += value;
            let movable = matches!(row.cell(at), Cell::Bytes(..))
                && match storage {
                    Storage::Max => self.lob.is_some(),
                    _ => self.overflow.is_some() && value > 24 && !column.in_inner,
                };
            if movable && value > longest.map_or(0, |(length, ..)| length) {
                longest = Some((value, at, storage));
            }
        }
        longest.filter(|&(value, ..)| length > LONGEST_RECORD || value > 8000).map(|(_, at, storage)| (at, storage))
    }

    /// In a ghost, replaces each value that might be stored off the row by NULL, or by the empty value if the column is
    /// NOT NULL.
    pub(crate) fn drop_values(&self, table: &Table, layout: &Layout, row: &mut Row) {
        for column in &layout.columns {
            let Source::Column(at) = column.source else { continue };
            let long = row.value(at).is_some_and(|value| value.len() > 24);
            if column.ty.storage() == Storage::Text || long && !column.in_inner && !column.sparse {
                let nullable = table.columns.get(at).is_some_and(|column| column.nullable);
                row.shorten(at, nullable);
            }
        }
    }
}
