//! What CREATE TABLE needs to be there: the schema of the table, and alias types.

use std::collections::BTreeSet;

use catalog::TableColumn;
use format::types::xtype;

use crate::definitions::ColumnFacts;
use crate::{Script, comment, quote, quote_text};

/// The highest type id that is not a database's own: built-in types, and the alias type sysname.
const LAST_OF_SERVER: i32 = 256;

impl Script<'_> {
    /// Statements that create the schema of a table and the alias types of its columns where they are missing; empty if it
    /// needs neither.
    pub fn prerequisites(&self, object_id: i32) -> String {
        let mut statements = BTreeSet::new();
        let columns = self.database.columns.get(&object_id).into_iter().flatten();
        for column in columns.filter(|column| column.user_type > LAST_OF_SERVER) {
            let facts = self.definitions.columns.get(&(object_id, column.id));
            statements.extend(facts.and_then(|facts| self.create_type(column, facts)));
        }
        let schemas: BTreeSet<&str> = columns_of_types(self, object_id).chain(self.schema_of(object_id)).collect();
        let schemas = schemas.into_iter().filter(|schema| *schema != "dbo").map(create_schema);
        schemas.chain(statements).collect()
    }

    fn schema_of(&self, object_id: i32) -> Option<&str> {
        self.database.objects.get(&object_id).map(|object| self.database.schema_name(object))
    }

    /// `CREATE TYPE` of a column's alias type: its base type is what the column stores.
    fn create_type(&self, column: &TableColumn, facts: &ColumnFacts) -> Option<String> {
        let found = self.definitions.types.get(&column.user_type)?;
        let schema = self.database.schemas.get(&found.schema_id).map_or("dbo", String::as_str);
        let name = format!("{}.{}", quote(schema), quote(&found.name));
        if facts.info.xtype == xtype::CLR {
            let what = format!("{name} is a CLR type: create its assembly and the type first");
            return Some(format!("{}\n", comment(&what)));
        }
        let base = self.built_in(facts);
        Some(format!("IF TYPE_ID({}) IS NULL CREATE TYPE {name} FROM {base} NULL;\n", quote_text(&name)))
    }
}

/// The schemas of the alias types of a table's columns.
fn columns_of_types<'s>(script: &'s Script<'_>, object_id: i32) -> impl Iterator<Item = &'s str> {
    let columns = script.database.columns.get(&object_id).into_iter().flatten();
    let own = columns.filter(|column| column.user_type > LAST_OF_SERVER);
    let types = own.filter_map(|column| script.definitions.types.get(&column.user_type));
    types.filter_map(|found| script.database.schemas.get(&found.schema_id).map(String::as_str))
}

/// A batch may hold nothing before CREATE SCHEMA, so it has one of its own.
fn create_schema(schema: &str) -> String {
    let create = quote_text(&format!("CREATE SCHEMA {}", quote(schema)));
    format!("IF SCHEMA_ID({}) IS NULL EXEC ({create});\n", quote_text(schema))
}
