//! Writes CREATE INDEX, key constraints, and rebuilds.

use catalog::{Index, IndexType, Rowset};

use crate::definitions::class;
use crate::tables::compression;
use crate::{Script, comment, quote};

/// The bits of sysidxstats.status (docs/format/catalog.md#sysidxstats).
mod status {
    pub(super) const IGNORE_DUP_KEY: u32 = 0x4;
    pub(super) const PADDED: u32 = 0x10;
    pub(super) const UNIQUE_CONSTRAINT: u32 = 0x40;
    pub(super) const NO_ROW_LOCKS: u32 = 0x200;
    pub(super) const NO_PAGE_LOCKS: u32 = 0x400;
}

impl Script<'_> {
    /// Whether an index belongs to a PRIMARY KEY or UNIQUE constraint. ALTER TABLE creates these indexes.
    pub fn is_constraint(&self, object_id: i32, index_id: i32) -> bool {
        self.index(object_id, index_id).is_some_and(is_key)
    }

    /// Returns `CREATE INDEX` for an index that belongs to no constraint, and the result of [`Self::add_key`] for an
    /// index of a constraint. Parts that cannot be written become comments. `None` for a heap and for an index that is
    /// not in the catalog.
    pub fn create_index(&self, object_id: i32, index_id: i32) -> Option<String> {
        let index = self.index(object_id, index_id)?;
        if is_key(index) {
            return self.add_key(object_id, index_id);
        }
        let (table, name) = (self.table_name(object_id)?, quote(&index.name));
        let kind = match index.index_type {
            IndexType::Clustered => "CLUSTERED",
            IndexType::Nonclustered => "NONCLUSTERED",
            IndexType::ClusteredColumnstore => {
                let space = self.space_of(index);
                return Some(format!("CREATE CLUSTERED COLUMNSTORE INDEX {name} ON {table}{space};\n"));
            }
            IndexType::NonclusteredColumnstore => {
                let columns = self.all_columns(index).unwrap_or_else(|| comment("its columns could not be read"));
                let filter = self.filter(index);
                let space = self.space_of(index);
                return Some(format!(
                    "CREATE NONCLUSTERED COLUMNSTORE INDEX {name} ON {table} ({columns}){filter}{space};\n"
                ));
            }
            IndexType::Heap => return None,
            other => {
                let what =
                    format!("{} index {} on {table}: its options are not written here", other.name(), index.name);
                return Some(format!("{}\n", comment(&what)));
            }
        };
        let unique = if index.is_unique() { "UNIQUE " } else { "" };
        let keys = self.key_columns(index).unwrap_or_else(|| comment("its columns could not be read"));
        let mut text = format!("CREATE {unique}{kind} INDEX {name} ON {table} ({keys})");
        if let Some(included) = self.included_columns(index) {
            text.push_str(&format!("\n    INCLUDE ({included})"));
        }
        text.push_str(&self.filter(index));
        text.push_str(&self.options(index));
        text.push_str(&self.space_of(index));
        text.push_str(";\n");
        text.push_str(&self.doubts(index));
        Some(text)
    }

    /// `ALTER TABLE ... ADD CONSTRAINT ... PRIMARY KEY` or `UNIQUE`. `None` if the index belongs to neither kind of
    /// constraint.
    pub fn add_key(&self, object_id: i32, index_id: i32) -> Option<String> {
        let index = self.index(object_id, index_id).filter(|index| is_key(index))?;
        let (table, name) = (self.table_name(object_id)?, quote(&index.name));
        let kind = if index.is_primary_key() { "PRIMARY KEY" } else { "UNIQUE" };
        let clustered = if index.index_type == IndexType::Clustered { "CLUSTERED" } else { "NONCLUSTERED" };
        let keys = self.key_columns(index).unwrap_or_else(|| comment("its columns could not be read"));
        let (options, space) = (self.options(index), self.space_of(index));
        let doubts = self.doubts(index);
        Some(format!(
            "ALTER TABLE {table} ADD CONSTRAINT {name} {kind} {clustered} ({keys}){options}{space};\n{doubts}"
        ))
    }

    /// `ALTER INDEX ... DISABLE` and `REBUILD`. `None` for a heap, and for the clustered index of a table. After
    /// DISABLE, the engine rebuilds the index from the table and not from the index's own pages. Disabling a primary
    /// key or unique constraint also disables the foreign keys that refer to it, so the statements enable these foreign
    /// keys again.
    ///
    /// Disabling the clustered index of an indexed view frees its pages and disables the other indexes of the view, so
    /// the statements rebuild all indexes of the view from the tables.
    pub fn rebuild_index(&self, object_id: i32, index_id: i32) -> Option<String> {
        let index = self.index(object_id, index_id).filter(|index| index.index_id > 0)?;
        let (table, name) = (self.table_name(object_id)?, quote(&index.name));
        if index.index_id == 1 {
            return self
                .is_view(object_id)
                .then(|| format!("ALTER INDEX {name} ON {table} DISABLE;\nALTER INDEX ALL ON {table} REBUILD;\n"));
        }
        let mut text = format!("ALTER INDEX {name} ON {table} DISABLE;\nALTER INDEX {name} ON {table} REBUILD;\n");
        if is_key(index) {
            text.push_str(&self.enable_referring_keys(object_id));
        }
        Some(text)
    }

    /// Whether an object is a view.
    pub fn is_view(&self, object_id: i32) -> bool {
        self.database.objects.get(&object_id).is_some_and(|object| object.type_code == "V")
    }

    fn index(&self, object_id: i32, index_id: i32) -> Option<&Index> {
        self.database.indexes.get(&(object_id, index_id))
    }

    /// The key columns: `[a] ASC, [b] DESC`; `None` if the catalog does not have them.
    pub(crate) fn key_columns(&self, index: &Index) -> Option<String> {
        let columns = self.database.index_columns.get(&(index.object_id, index.index_id))?;
        let ordinal = |position: u32| {
            self.definitions.key_ordinals.get(&(index.object_id, index.index_id, position)).copied().unwrap_or_default()
        };
        let mut keys: Vec<_> = columns.iter().filter(|column| ordinal(column.position) > 0).collect();
        keys.sort_by_key(|column| ordinal(column.position));
        let name = |column: &&catalog::IndexColumn| {
            let name = self.column_name(index.object_id, column.column_id)?;
            Some(format!("{name} {}", if column.descending { "DESC" } else { "ASC" }))
        };
        let names: Vec<String> = keys.iter().map(name).collect::<Option<_>>()?;
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn included_columns(&self, index: &Index) -> Option<String> {
        let columns = self.database.index_columns.get(&(index.object_id, index.index_id))?;
        let included = columns.iter().filter(|column| column.included);
        let unknown = || comment("a column that could not be read");
        let name = |column: &catalog::IndexColumn| self.column_name(index.object_id, column.column_id);
        let names: Vec<String> = included.map(|column| name(column).unwrap_or_else(unknown)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn all_columns(&self, index: &Index) -> Option<String> {
        let columns = self.database.index_columns.get(&(index.object_id, index.index_id))?;
        let names: Vec<String> =
            columns.iter().map(|column| self.column_name(index.object_id, column.column_id)).collect::<Option<_>>()?;
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn filter(&self, index: &Index) -> String {
        if !index.is_filtered() {
            return String::new();
        }
        let text = self.definitions.text(class::FILTER, index.object_id, index.index_id);
        match self.expression(text) {
            Some(text) => format!("\n    WHERE {text}"),
            None => {
                format!("\n    {}", comment("WHERE: the filter's text could not be read, or is not a single condition"))
            }
        }
    }

    /// `WITH (...)` for an index; empty if all options have their defaults.
    fn options(&self, index: &Index) -> String {
        let has = |bit: u32| index.status & bit != 0;
        let mut options = Vec::new();
        let facts = self.definitions.indexes.get(&(index.object_id, index.index_id)).copied().unwrap_or_default();
        if has(status::PADDED) {
            options.push("PAD_INDEX = ON".to_owned());
        }
        if (1..=100).contains(&facts.fill_factor) {
            options.push(format!("FILLFACTOR = {}", facts.fill_factor));
        }
        if has(status::IGNORE_DUP_KEY) {
            options.push("IGNORE_DUP_KEY = ON".to_owned());
        }
        if has(status::NO_ROW_LOCKS) {
            options.push("ALLOW_ROW_LOCKS = OFF".to_owned());
        }
        if has(status::NO_PAGE_LOCKS) {
            options.push("ALLOW_PAGE_LOCKS = OFF".to_owned());
        }
        let rowsets = self.rowsets(index);
        options.extend(compression(&rowsets));
        if options.is_empty() { String::new() } else { format!("\n    WITH ({})", options.join(", ")) }
    }

    fn rowsets(&self, index: &Index) -> Vec<&Rowset> {
        self.database.rowsets_of(index.object_id).filter(|rowset| rowset.index_id == index.index_id).collect()
    }

    fn space_of(&self, index: &Index) -> String {
        self.data_space(index.object_id, index.index_id, &self.rowsets(index))
    }

    /// Comments for status bits of unknown meaning, and for a disabled index.
    fn doubts(&self, index: &Index) -> String {
        const KNOWN: u32 = 0x2_27FF;
        let unknown = index.status & !KNOWN;
        let mut text = String::new();
        if unknown != 0 {
            let what =
                format!("{} has status bits {unknown:#x} of unknown meaning: an option may be missing", index.name);
            text.push_str(&format!("{}\n", comment(&what)));
        }
        if index.is_disabled() {
            text.push_str(&format!("{}\n", comment(&format!("{} was disabled", index.name))));
        }
        text
    }
}

/// Whether the index was created by a PRIMARY KEY or UNIQUE constraint.
fn is_key(index: &Index) -> bool {
    index.is_primary_key() || index.status & status::UNIQUE_CONSTRAINT != 0
}
