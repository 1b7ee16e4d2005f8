//! The objects that the statements of a table need: some are created before the table, others must already exist.

use std::collections::BTreeSet;

use catalog::TableColumn;
use format::types::xtype;

use crate::definitions::ColumnFacts;
use crate::expression::delimited;
use crate::{Script, quote, quote_text};

/// The highest type ID that every database has, which belongs to the alias type sysname. Lower IDs are built-in types.
const LAST_OF_SERVER: i32 = 256;
/// A bit of syscolpars.status (docs/format/catalog.md#syscolpars).
const FILESTREAM: u32 = 0x20;

/// The objects that the statements of a table need.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Needs {
    /// The statements that create missing schemas and alias types.
    pub created: String,
    /// The objects that must already exist, each with its kind: `filegroup [Archive]`.
    pub must_exist: BTreeSet<String>,
    /// The objects that the table uses but that the statements omit, each with its kind.
    pub left_out: BTreeSet<String>,
}

impl Script<'_> {
    /// The objects that CREATE TABLE and the statements for keys, indexes and checks of a table need.
    pub fn needs(&self, object_id: i32) -> Needs {
        let mut needs = Needs::default();
        let mut types = BTreeSet::new();
        let columns = self.database.columns.get(&object_id).into_iter().flatten();
        for (column, facts) in columns.filter_map(|column| Some((column, self.facts(object_id, column)?))) {
            if facts.info.xtype == xtype::XML && facts.xml_schema_id != 0 {
                needs.left_out.insert(self.xml_schema(facts.xml_schema_id));
            }
            if facts.rule_id != 0 {
                needs.left_out.insert(format!("rule {}", self.name_of(facts.rule_id)));
            }
            if let Some(default) = self.database.objects.get(&facts.default_id).filter(|object| object.parent_id == 0) {
                needs.left_out.insert(format!("default {}", self.full_name(default.schema_id, &default.name)));
            }
            if column.user_type > LAST_OF_SERVER {
                self.of_type(column, facts, &mut types, &mut needs.must_exist);
            }
        }
        let schemas: BTreeSet<&str> = columns_of_types(self, object_id).chain(self.schema_of(object_id)).collect();
        let schemas = schemas.into_iter().filter(|schema| *schema != "dbo").map(create_schema);
        needs.created = schemas.chain(types).collect();
        self.of_spaces(object_id, &mut needs.must_exist);
        self.of_expressions(object_id, &mut needs.must_exist);
        needs
    }

    /// A statement that creates the schema of an object if it is missing; empty for dbo.
    pub fn schema(&self, object_id: i32) -> String {
        self.schema_of(object_id).filter(|schema| *schema != "dbo").map_or_else(String::new, create_schema)
    }

    fn facts(&self, object_id: i32, column: &TableColumn) -> Option<&ColumnFacts> {
        self.definitions.columns.get(&(object_id, column.id))
    }

    /// Adds a statement that creates an alias type. A CLR type is added to the objects that must exist.
    fn of_type(
        &self,
        column: &TableColumn,
        facts: &ColumnFacts,
        types: &mut BTreeSet<String>,
        must_exist: &mut BTreeSet<String>,
    ) {
        let Some(found) = self.definitions.types.get(&column.user_type) else { return };
        let name = self.full_name(found.schema_id, &found.name);
        match facts.info.xtype {
            xtype::CLR => _ = must_exist.insert(format!("CLR type {name} with its assembly")),
            _ => {
                let base = self.built_in(facts);
                types.insert(format!(
                    "IF TYPE_ID({}) IS NULL CREATE TYPE {name} FROM {base} NULL;\n",
                    quote_text(&name)
                ));
            }
        }
    }

    /// Adds the filegroups and partition schemes of the table and its indexes.
    fn of_spaces(&self, object_id: i32, must_exist: &mut BTreeSet<String>) {
        for rowset in self.database.rowsets_of(object_id) {
            let partitioned = self.database.partitioned.get(&(object_id, rowset.index_id));
            if let Some(scheme) = partitioned.and_then(|found| self.definitions.data_spaces.get(&found.scheme_id)) {
                must_exist.insert(format!("partition scheme {} with its function", quote(scheme)));
                continue;
            }
            let units = rowset.units.iter().filter_map(|&unit| self.database.units.get(unit));
            let groups = units.filter_map(|unit| self.filegroup(unit.filegroup)).filter(|name| name != "[PRIMARY]");
            must_exist.extend(groups.map(|name| format!("filegroup {name}")));
        }
        let columns = self.database.columns.get(&object_id).into_iter().flatten();
        if columns.into_iter().any(|column| column.status & FILESTREAM != 0) {
            must_exist.insert("filegroup for FILESTREAM".to_owned());
        }
    }

    /// Adds the functions and sequences in defaults, computed columns, checks and filters.
    fn of_expressions(&self, object_id: i32, must_exist: &mut BTreeSet<String>) {
        let mut text = self.create_table(object_id).unwrap_or_default();
        text.extend(self.indexes(object_id).into_iter().chain(self.checks(object_id)));
        let named = names_in(&text);
        for object in self.database.objects.values() {
            let kind = match object.type_code.trim_end() {
                "FN" | "FS" | "IF" | "TF" | "FT" => "function",
                "SO" => "sequence",
                _ => continue,
            };
            let name = self.full_name(object.schema_id, &object.name);
            if named.contains(&name) {
                must_exist.insert(format!("{kind} {name}"));
            }
        }
    }

    /// The name of an XML schema collection, preceded by its kind.
    pub(crate) fn xml_schema(&self, id: i32) -> String {
        match self.definitions.xml_schemas.get(&id) {
            Some(found) => format!("XML schema collection {}", self.full_name(found.schema_id, &found.name)),
            None => format!("XML schema collection id {id}"),
        }
    }

    fn full_name(&self, schema_id: i32, name: &str) -> String {
        let schema = self.database.schemas.get(&schema_id).map_or("dbo", String::as_str);
        format!("{}.{}", quote(schema), quote(name))
    }

    fn schema_of(&self, object_id: i32) -> Option<&str> {
        self.database.objects.get(&object_id).map(|object| self.database.schema_name(object))
    }
}

/// The schemas of the alias types of a table's columns.
fn columns_of_types<'s>(script: &'s Script<'_>, object_id: i32) -> impl Iterator<Item = &'s str> {
    let columns = script.database.columns.get(&object_id).into_iter().flatten();
    let own = columns.filter(|column| column.user_type > LAST_OF_SERVER);
    let types = own.filter_map(|column| script.definitions.types.get(&column.user_type));
    types.filter_map(|found| script.database.schemas.get(&found.schema_id).map(String::as_str))
}

/// A statement that creates a schema. CREATE SCHEMA must be the first statement of its batch, so EXEC runs it in a
/// separate batch.
fn create_schema(schema: &str) -> String {
    let create = quote_text(&format!("CREATE SCHEMA {}", quote(schema)));
    format!("IF SCHEMA_ID({}) IS NULL EXEC ({create});\n", quote_text(schema))
}

/// The two-part names in a text, in the form that the server writes in expressions: `[dbo].[next]`.
fn names_in(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let name = |text: &str| text.starts_with('[').then(|| delimited(text, ']')).flatten();
        at += match rest.as_bytes() {
            [b'\'', ..] => delimited(rest, '\'').unwrap_or(1),
            [b'[', ..] => {
                let first = name(rest).unwrap_or(1);
                let second = rest.get(first..).and_then(|rest| rest.strip_prefix('.')).and_then(name);
                if let Some(both) = second.and_then(|second| rest.get(..first + 1 + second)) {
                    names.insert(both.to_owned());
                }
                first
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_parts_are_found_outside_of_texts() {
        let names = names_in("([dbo].[f]([a])+NEXT VALUE FOR [s]].x].[n]+N'[no].[no]' [x] . [y]");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["[dbo].[f]", "[s]].x].[n]"]);
    }
}
