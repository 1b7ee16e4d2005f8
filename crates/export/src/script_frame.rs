//! The statements before and after the rows of a table in a script.

use catalog::Database;
use format::types::xtype;
use rows::{Place, Table};
use script::{Constant, Definitions, Script, batch, comment, is_plain, quote};

use crate::table::SqlFrame;

/// The bits of syscolpars.status that mark a period column of a temporal table, which the server fills
/// (docs/format/catalog.md#syscolpars).
const PERIOD: u32 = 0x3000_0000;

/// Returns the statements before the rows (`CREATE TABLE`) and after the rows (keys, indexes and checks). Foreign keys
/// are left out because they need other tables. Returns `None` if the catalog does not have the table.
pub fn frame(database: &Database, definitions: &Definitions, table: &Table) -> Option<SqlFrame> {
    let script = Script::new(database, definitions);
    let id = table.object_id;
    let name = script.table_name(id)?;
    let status = |column: u32| {
        let columns = database.columns.get(&id).into_iter().flatten();
        columns.filter(|known| known.id == column).map(|known| known.status).next().unwrap_or(0)
    };
    let is_inserted = |column: &&rows::Column| {
        matches!(column.place, Place::Stored | Place::Encrypted)
            && column.info.xtype != xtype::TIMESTAMP
            && status(column.id) & PERIOD == 0
    };
    let mut columns: Vec<u32> = table.columns.iter().filter(is_inserted).map(|column| column.id).collect();
    columns.sort_unstable();
    let names: Vec<String> = table.columns.iter().filter(is_inserted).map(|column| quote(&column.name)).collect();
    let mut before = String::from("SET NOCOUNT ON;\nSET QUOTED_IDENTIFIER ON;\nSET ANSI_NULLS ON;\nGO\n");
    let needs = script.needs(id);
    for (what, all) in [("must exist", &needs.must_exist), ("not created by this script", &needs.left_out)] {
        for one in all {
            before.push_str(&format!("{}\n", comment(&format!("{what}: {one}"))));
        }
    }
    before.push_str(&guard(&name));
    if !needs.created.is_empty() {
        before.push_str(&batch(&needs.created));
    }
    before.push_str(&batch(&script.create_table(id)?));
    let left_out: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| !is_inserted(column) && column.place == Place::Stored)
        .map(|column| column.name.as_str())
        .collect();
    if !left_out.is_empty() {
        let text = format!("not inserted, because the server generates their values: {}", left_out.join(", "));
        before.push_str(&format!("{}\n", comment(&text)));
    }
    let encrypted: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| column.place == Place::Encrypted)
        .map(|column| column.name.as_str())
        .collect();
    if !encrypted.is_empty() {
        let text = format!("encrypted by the client; inserted as the stored bytes: {}", encrypted.join(", "));
        before.push_str(&format!("{}\n", comment(&text)));
    }
    let has_identity = database.identities.iter().any(|identity| identity.table_id == id);
    let mut insert = match columns.is_empty() {
        true => format!("INSERT INTO {name} DEFAULT VALUES"),
        false => format!("INSERT INTO {name} ({}) VALUES\n", names.join(", ")),
    };
    let mut after = String::new();
    let allow = format!("SET IDENTITY_INSERT {name} ON;\n");
    match (has_identity, is_plain(&insert)) {
        (true, true) => {
            before.push_str(&batch(&allow));
            after.push_str(&batch(&format!("SET IDENTITY_INSERT {name} OFF;")));
        }
        // An INSERT in a string constant runs in an EXEC. A setting made within an EXEC ends with the EXEC, so each
        // constant must begin with its own SET IDENTITY_INSERT.
        (true, false) => insert.insert_str(0, &allow),
        (false, _) => {}
    }
    for statement in script.keys(id).into_iter().chain(script.indexes(id)).chain(script.checks(id)) {
        after.push_str(&batch(&statement));
    }
    after.push_str(GUARDED);
    Some(SqlFrame { before, insert, columns, after })
}

/// A batch that disables all following statements, up to [`GUARDED`], if an object of this name already exists. Without
/// this batch, the rows would be added to the existing object.
pub(crate) fn guard(name: &str) -> String {
    let mut constant = b"N'".to_vec();
    let mut text = Constant::default();
    text.add(&mut constant, name.as_bytes());
    text.finish(&mut constant);
    constant.push(b'\'');
    // `constant` contains only whole characters, so this conversion replaces no character.
    let constant = String::from_utf8_lossy(&constant);
    format!(
        "IF OBJECT_ID({constant}) IS NOT NULL\nBEGIN\n    RAISERROR (N'An object of this name exists already: nothing is created or \
         inserted.', 16, 1);\n    SET NOEXEC ON;\nEND;\nGO\n"
    )
}

/// Ends the effect of [`guard`].
pub(crate) const GUARDED: &str = "SET NOEXEC OFF;\nGO\n";

/// The statements that create the foreign keys of tables. Run them after all tables exist. The text is empty if the
/// tables have no foreign keys.
pub fn foreign_keys(database: &Database, definitions: &Definitions, tables: &[i32]) -> String {
    let script = Script::new(database, definitions);
    let statements = tables.iter().flat_map(|id| script.foreign_keys(*id));
    statements.map(|statement| batch(&statement)).collect()
}
