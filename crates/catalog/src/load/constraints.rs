//! Reads CHECK and FOREIGN KEY constraints, and identity columns.

use std::collections::BTreeMap;

use super::Loader;
use crate::database::{Constraint, ConstraintKind, Database, Identity, IdentityMark};

/// Reads the constraints and identity columns of all tables.
pub(super) fn load(loader: &Loader<'_>, database: &mut Database) {
    database.identities = identities(loader, database);
    let keys = foreign_keys(loader, database);
    let mut constraints = Vec::new();
    loader.scan(database, (34, "sysschobjs"), |row| {
        let id = row.int("id");
        let kind = match row.bytes("type") {
            Some(b"C ") => ConstraintKind::Check,
            Some(b"F ") => match keys.get(&id) {
                Some(key) => key.clone().kind(),
                None => ConstraintKind::ForeignKey { referenced_id: 0, columns: Vec::new() },
            },
            _ => return,
        };
        let status = row.number("status") as u32;
        constraints.push(Constraint { id, name: row.text("name"), table_id: row.int("pid"), kind, status });
    });
    constraints.sort_by_key(|constraint| constraint.id);
    database.constraints = constraints;
}

fn identities(loader: &Loader<'_>, database: &mut Database) -> Vec<Identity> {
    const IS_IDENTITY: u64 = 0x4;
    let mut identities = Vec::new();
    loader.scan(database, (41, "syscolpars"), |row| {
        if row.number("number") == 0 && row.number("status") & IS_IDENTITY != 0 {
            let (kind, precision) = (row.number("xtype") as u8, row.number("prec") as u8);
            let mark = row.bytes("idtval").and_then(|bytes| IdentityMark::read(bytes, kind, precision));
            identities.push(Identity { table_id: row.int("id"), column_id: row.number("colid") as u32, mark });
        }
    });
    identities.sort_by_key(|identity| (identity.table_id, identity.column_id));
    identities
}

/// A foreign key in syssingleobjrefs. `from` has the referencing columns and `to` the referenced columns, each by its
/// ordinal in the key.
#[derive(Clone, Default)]
struct Key {
    referenced_id: i32,
    from: BTreeMap<i32, u32>,
    to: BTreeMap<i32, u32>,
}

impl Key {
    fn kind(self) -> ConstraintKind {
        let pairs_up = self.from.keys().eq(self.to.keys());
        let columns = if pairs_up { self.from.into_values().zip(self.to.into_values()).collect() } else { Vec::new() };
        ConstraintKind::ForeignKey { referenced_id: self.referenced_id, columns }
    }
}

fn foreign_keys(loader: &Loader<'_>, database: &mut Database) -> BTreeMap<i32, Key> {
    /// The class numbers of three kinds of rows: the row for the referenced table, the rows for the referencing
    /// columns, and the rows for the referenced columns (docs/format/catalog.md#references).
    const TO_TABLE: u64 = 27;
    const FROM_COLUMN: u64 = 28;
    const TO_COLUMN: u64 = 29;
    let mut keys: BTreeMap<i32, Key> = BTreeMap::new();
    loader.scan(database, (74, "syssingleobjrefs"), |row| {
        let class = row.number("class");
        if !(TO_TABLE..=TO_COLUMN).contains(&class) {
            return;
        }
        let key = keys.entry(row.int("depid")).or_default();
        let (ordinal, column) = (row.int("depsubid"), row.number("indepsubid") as u32);
        match class {
            FROM_COLUMN => key.from.insert(ordinal, column),
            TO_COLUMN => key.to.insert(ordinal, column),
            _ => {
                key.referenced_id = row.int("indepid");
                None
            }
        };
    });
    keys
}
