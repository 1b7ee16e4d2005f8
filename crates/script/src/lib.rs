//! Writes T-SQL that defines the objects of a database, from its catalog.
//!
//! [`Definitions`] has the facts of the catalog that are needed only for definitions; [`Script`] writes statements from
//! these facts and the database. If the catalog lacks a fact, the script has a comment instead of a guess.

// Indexing is used only after a bounds check; a comment on each indexing line names the check.
#![warn(clippy::indexing_slicing)]

mod columns;
mod constant;
mod constraints;
mod definitions;
mod expression;
mod indexes;
mod module_kind;
mod modules;
mod names;
mod tables;
#[cfg(test)]
mod tests;
mod types;

pub use constant::{Constant, EXECUTE, EXECUTED, batch, is_plain};
pub use definitions::{ColumnFacts, Definitions, IndexFacts, ModuleText, UserType};
pub use modules::Module;
pub use names::{comment, quote, quote_text};
pub use types::Needs;

use catalog::Database;

use expression::enclosed;

/// Writes statements for the objects of a database. Each statement ends with a line break, without `GO`.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    database: &'a Database,
    definitions: &'a Definitions,
}

impl<'a> Script<'a> {
    /// A writer for `database`.
    pub fn new(database: &'a Database, definitions: &'a Definitions) -> Self {
        Self { database, definitions }
    }

    /// The quoted name of an object: `[dbo].[Orders]`; `None` for an object that is not in the catalog.
    pub fn table_name(&self, object_id: i32) -> Option<String> {
        let object = self.database.objects.get(&object_id)?;
        Some(format!("{}.{}", quote(self.database.schema_name(object)), quote(&object.name)))
    }

    /// The quoted name of a column of a table; `None` if the catalog does not have the column.
    pub fn column_name(&self, object_id: i32, column_id: u32) -> Option<String> {
        let columns = self.database.columns.get(&object_id)?;
        columns.iter().find(|column| column.id == column_id).map(|column| quote(&column.name))
    }

    /// The text of an expression or condition in parentheses. `None` if the text could not be read, or if it could end
    /// the statement that contains it.
    fn expression(&self, text: Option<&ModuleText>) -> Option<String> {
        enclosed(text?.text()?)
    }

    /// The quoted name of the filegroup with this ID; `None` if the name is unknown.
    fn filegroup(&self, id: u16) -> Option<String> {
        const PRIMARY: u16 = 1;
        let known = self.database.filegroups.iter().find(|group| group.id == id).map(|group| quote(&group.name));
        let space = || self.definitions.data_spaces.get(&i32::from(id)).map(|name| quote(name));
        known.or_else(space).or_else(|| (id == PRIMARY).then(|| "[PRIMARY]".to_owned()))
    }
}
