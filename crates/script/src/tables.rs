//! Writes CREATE TABLE.

use catalog::{Rowset, UnitKind};

use crate::{Script, comment, quote};

impl Script<'_> {
    /// `CREATE TABLE` with columns and defaults. Keys, checks and indexes are separate statements. `None` for an object
    /// without columns in the catalog.
    pub fn create_table(&self, object_id: i32) -> Option<String> {
        let name = self.table_name(object_id)?;
        let columns = self.database.columns.get(&object_id)?;
        let mut text = String::new();
        let incomplete = &self.definitions.incomplete;
        if !incomplete.is_empty() {
            text.push_str(&format!(
                "-- Not all of the catalog could be read ({}): parts may be missing.\n",
                incomplete.join(", ")
            ));
        }
        if self.database.memory_optimized_tables().contains(&object_id) {
            text.push_str("-- Memory-optimized: its options and hash indexes are not written here.\n");
        }
        text.push_str(&format!("CREATE TABLE {name} (\n"));
        let mut lines: Vec<String> = columns.iter().map(|column| self.column(object_id, column)).collect();
        lines.extend(self.period(object_id));
        text.push_str(&format!("    {}\n)", lines.join(",\n    ")));
        text.push_str(&self.table_space(object_id));
        text.push_str(";\n");
        Some(text)
    }

    /// `PERIOD FOR SYSTEM_TIME (start, end)` of a temporal table; `None` for other tables.
    fn period(&self, object_id: i32) -> Option<String> {
        const START: u32 = 0x1000_0000;
        const END: u32 = 0x2000_0000;
        let columns = self.database.columns.get(&object_id)?;
        let with = |bit: u32| columns.iter().find(|column| column.status & bit != 0).map(|column| quote(&column.name));
        Some(format!("PERIOD FOR SYSTEM_TIME ({}, {})", with(START)?, with(END)?))
    }

    /// The storage clause of a table: ` ON [PRIMARY] TEXTIMAGE_ON [PRIMARY] WITH (DATA_COMPRESSION = PAGE)`.
    fn table_space(&self, object_id: i32) -> String {
        let rowsets: Vec<&Rowset> = self.database.table_rowsets(object_id).collect();
        let mut text = self.data_space(object_id, rowsets.first().map_or(0, |rowset| rowset.index_id), &rowsets);
        let units = rowsets.first().into_iter().flat_map(|rowset| &rowset.units);
        let mut units = units.filter_map(|&unit| self.database.units.get(unit));
        if let Some(lob) = units.find(|unit| unit.kind == UnitKind::Lob)
            && let Some(filegroup) = self.filegroup(lob.filegroup)
            && rowsets.len() == 1
        {
            text.push_str(&format!(" TEXTIMAGE_ON {filegroup}"));
        }
        // If the table has a clustered index, the statement that creates this index contains the compression option.
        if rowsets.iter().all(|rowset| rowset.index_id == 0)
            && let Some(compression) = compression(&rowsets)
        {
            text.push_str(&format!(" WITH ({compression})"));
        }
        text
    }

    /// The place of a table or index: ` ON [PRIMARY]`, or ` ON [scheme]([column])` if it is partitioned.
    pub(crate) fn data_space(&self, object_id: i32, index_id: i32, rowsets: &[&Rowset]) -> String {
        if let Some(partitioned) = self.database.partitioned.get(&(object_id, index_id)) {
            let scheme = self.definitions.data_spaces.get(&partitioned.scheme_id).map(|name| quote(name));
            if let (Some(scheme), Some(column)) = (scheme, self.column_name(object_id, partitioned.column_id)) {
                return format!(" ON {scheme}({column})");
            }
        }
        if rowsets.len() > 1 {
            return format!(" {}", comment("partitioned; the catalog does not say for certain by which scheme"));
        }
        let unit = rowsets.first().and_then(|rowset| rowset.units.first());
        let unit = unit.and_then(|&unit| self.database.units.get(unit));
        match unit.map(|unit| (unit.filegroup, self.filegroup(unit.filegroup))) {
            Some((_, Some(name))) => format!(" ON {name}"),
            Some((id, None)) => {
                format!(" {}", comment(&format!("on filegroup {id}, whose name is not in the catalog")))
            }
            None => String::new(),
        }
    }
}

/// `DATA_COMPRESSION = PAGE`, repeated for each partition if the partitions differ; `None` if no partition is
/// compressed.
pub(crate) fn compression(rowsets: &[&Rowset]) -> Option<String> {
    let name = |rowset: &&Rowset| match rowset.compression {
        0 => Some("NONE"),
        1 => Some("ROW"),
        2 => Some("PAGE"),
        _ => None,
    };
    let names: Vec<&str> = rowsets.iter().filter_map(name).collect();
    let first = names.first().copied()?;
    if names.len() != rowsets.len() || names.iter().all(|name| *name == "NONE") {
        return None;
    }
    if names.iter().all(|name| *name == first) {
        return Some(format!("DATA_COMPRESSION = {first}"));
    }
    let of =
        |(rowset, name): (&&Rowset, &&str)| format!("DATA_COMPRESSION = {name} ON PARTITIONS ({})", rowset.partition);
    Some(rowsets.iter().zip(&names).map(of).collect::<Vec<_>>().join(", "))
}
