//! The amount of memory that a catalog uses.

use std::collections::BTreeMap;

use crate::database::{ConstraintKind, Database};

/// The allocator's overhead per allocation, in bytes. The allocator rounds the sum of the overhead and the requested
/// size up to a multiple of 16 bytes, and to at least 32 bytes.
const ALLOCATION_BYTES: usize = 8;
const LEAST_BYTES: usize = 32;

impl Database {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        let rowsets = exact(&self.rowsets, |rowset| {
            let columns =
                exact(&rowset.layout.columns, |column| column.default.as_ref().map_or(0, |value| piece(value.len())));
            let expansion = rowset.expansion.as_ref().map_or(0, |expansion| expansion.columns() * 16);
            columns + expansion + exact(&rowset.units, |_| 0)
        });
        let by_object = map(&self.objects, |object| text(&object.name) + text(&object.type_code))
            + map(&self.columns, |columns| exact(columns, |column| text(&column.name)))
            + map(&self.indexes, |index| text(&index.name))
            + map(&self.index_columns, |columns| exact(columns, |_| 0))
            + map(&self.schemas, |name| text(name))
            + self.object_ids.len() * 2 * size_of::<i32>();
        let rules = list(&self.expressions, |expression| expression.text.as_deref().map_or(0, text))
            + list(&self.constraints, |constraint| {
                let columns = match &constraint.kind {
                    ConstraintKind::ForeignKey { columns, .. } => list(columns, |_| 0),
                    ConstraintKind::Check => 0,
                };
                text(&constraint.name) + columns
            })
            + list(&self.identities, |_| 0);
        let partitions = map(&self.partition_functions, |function| {
            let value = |value: &Option<Box<[u8]>>| value.as_ref().map_or(0, |value| piece(value.len()));
            let boundaries = list(&function.candidates, |list_of| list(list_of, |boundary| value(&boundary.value)));
            text(&function.name) + boundaries
        }) + map(&self.partitioned, |_| 0);
        let units = exact(&self.units, |_| 0) + self.rowsets.len() * size_of::<u32>();
        let store = &self.columnstore;
        let columnstore =
            list(&store.segments, |_| 0) + list(&store.dictionaries, |_| 0) + list(&store.row_groups, |_| 0);
        let files = list(&self.files, |file| text(&file.logical_name) + text(&file.physical_name))
            + list(&self.filegroups, |group| text(&group.name));
        (rowsets + by_object + rules + partitions + units + columnstore + files) as u64
    }
}

fn piece(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + ALLOCATION_BYTES).next_multiple_of(16).max(LEAST_BYTES) }
}

fn text(text: &str) -> usize {
    piece(text.len())
}

/// The bytes of a list that was allocated at its exact length, including the allocations that its items hold.
fn exact<T>(items: &[T], held: impl Fn(&T) -> usize) -> usize {
    piece(size_of_val(items)) + items.iter().map(held).sum::<usize>()
}

/// The bytes of a list, including the allocations that its items hold. A list that has grown may occupy up to half as
/// much space again.
fn list<T>(items: &[T], held: impl Fn(&T) -> usize) -> usize {
    piece(size_of_val(items) * 3 / 2) + items.iter().map(held).sum::<usize>()
}

/// The bytes of a map, including the allocations that its values hold. If keys are added in ascending order, a B-tree
/// node uses six of its eleven entries. Links and node headers add some six bytes per entry.
fn map<K, V>(map: &BTreeMap<K, V>, held: impl Fn(&V) -> usize) -> usize {
    map.len() * ((size_of::<K>() + size_of::<V>()) * 11 / 6 + 6) + map.values().map(held).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::TableColumn;

    #[test]
    fn what_grows_counts() {
        let mut database = Database::default();
        let none = database.bytes();
        let column = TableColumn { id: 1, name: "a name".repeat(10), user_type: 56, status: 0 };
        database.columns.insert(7, vec![column; 1000]);
        let bytes = database.bytes() - none;
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
