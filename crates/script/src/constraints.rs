//! FOREIGN KEY and CHECK constraints, and the lists of a table's key constraints and indexes.

use catalog::{Constraint, ConstraintKind};

use crate::{Script, comment, quote};

impl Script<'_> {
    /// The PRIMARY KEY and UNIQUE constraints of a table, the clustered one first.
    pub fn keys(&self, object_id: i32) -> Vec<String> {
        self.index_ids(object_id).filter_map(|index_id| self.add_key(object_id, index_id)).collect()
    }

    /// The indexes of a table that belong to no constraint, the clustered one first.
    pub fn indexes(&self, object_id: i32) -> Vec<String> {
        let ids = self.index_ids(object_id).filter(|&index_id| !self.is_constraint(object_id, index_id));
        ids.filter_map(|index_id| self.create_index(object_id, index_id)).collect()
    }

    fn index_ids(&self, object_id: i32) -> impl Iterator<Item = i32> {
        self.database.indexes.range((object_id, 1)..=(object_id, i32::MAX)).map(|((_, index_id), _)| *index_id)
    }

    /// The CHECK constraints of a table.
    pub fn checks(&self, object_id: i32) -> Vec<String> {
        self.constraints(object_id, |constraint| constraint.kind == ConstraintKind::Check)
    }

    /// The FOREIGN KEY constraints of a table. They must be added after all tables are created.
    pub fn foreign_keys(&self, object_id: i32) -> Vec<String> {
        self.constraints(object_id, |constraint| constraint.kind != ConstraintKind::Check)
    }

    fn constraints(&self, object_id: i32, is_wanted: impl Fn(&Constraint) -> bool) -> Vec<String> {
        let of = |constraint: &&Constraint| constraint.table_id == object_id && is_wanted(constraint);
        self.database.constraints.iter().filter(of).filter_map(|constraint| self.add_constraint(constraint)).collect()
    }

    /// `ALTER TABLE ... ADD CONSTRAINT` for a CHECK or FOREIGN KEY constraint, or a comment if it cannot be written. If
    /// the constraint is disabled in the catalog, a statement that disables it follows. `None` if the table is not in
    /// the catalog.
    pub fn add_constraint(&self, constraint: &Constraint) -> Option<String> {
        let (table, name) = (self.table_name(constraint.table_id)?, quote(&constraint.name));
        let check = if constraint.is_trusted() { "CHECK" } else { "NOCHECK" };
        let replication = if constraint.is_for_replication() { "" } else { " NOT FOR REPLICATION" };
        let head = format!("ALTER TABLE {table} WITH {check} ADD CONSTRAINT {name}");
        let mut text = match &constraint.kind {
            ConstraintKind::Check => match self.expression(self.definitions.object_text(constraint.id)) {
                Some(condition) => format!("{head} CHECK{replication} {condition};\n"),
                None => {
                    return Some(unreadable(
                        constraint,
                        &table,
                        "its condition could not be read, or is not a single condition",
                    ));
                }
            },
            ConstraintKind::ForeignKey { referenced_id, columns } => {
                let Some(referenced) = self.table_name(*referenced_id) else {
                    return Some(unreadable(constraint, &table, "the table that it refers to is not in the catalog"));
                };
                let name_of = |table: i32, column: u32| self.column_name(table, column);
                let from: Option<Vec<String>> =
                    columns.iter().map(|(from, _)| name_of(constraint.table_id, *from)).collect();
                let to: Option<Vec<String>> = columns.iter().map(|(_, to)| name_of(*referenced_id, *to)).collect();
                let (Some(from), Some(to)) = (from.filter(|names| !names.is_empty()), to) else {
                    return Some(unreadable(constraint, &table, "its columns could not be read"));
                };
                let actions = actions(constraint.status);
                let (from, to) = (from.join(", "), to.join(", "));
                format!("{head} FOREIGN KEY ({from})\n    REFERENCES {referenced} ({to}){actions}{replication};\n")
            }
        };
        if !constraint.is_enabled() {
            text.push_str(&format!("ALTER TABLE {table} NOCHECK CONSTRAINT {name};\n"));
        }
        if constraint.has_unknown_status() {
            let what = format!("{} has status bits of unknown meaning: an option may be missing", constraint.name);
            text.push_str(&format!("{}\n", comment(&what)));
        }
        Some(text)
    }

    /// Statements that enable the foreign keys that refer to a table. A foreign key that was trusted is also checked.
    pub(crate) fn enable_referring_keys(&self, object_id: i32) -> String {
        let refers = |constraint: &&Constraint| match constraint.kind {
            ConstraintKind::ForeignKey { referenced_id, .. } => referenced_id == object_id && constraint.is_enabled(),
            ConstraintKind::Check => false,
        };
        let enable = |key: &Constraint| {
            let check = if key.is_trusted() { "CHECK" } else { "NOCHECK" };
            let (table, name) = (self.table_name(key.table_id)?, quote(&key.name));
            Some(format!("ALTER TABLE {table} WITH {check} CHECK CONSTRAINT {name};\n"))
        };
        self.database.constraints.iter().filter(refers).filter_map(enable).collect()
    }
}

fn unreadable(constraint: &Constraint, table: &str, why: &str) -> String {
    format!("{}\n", comment(&format!("{} constraint {} on {table}: {why}", constraint.type_name(), constraint.name)))
}

/// The actions that the status of a foreign key contains, as text: ` ON DELETE CASCADE ON UPDATE ...`
/// (docs/format/catalog.md#foreign-keys).
fn actions(status: u32) -> String {
    let action = |shift: u32| match status >> shift & 3 {
        1 => Some("CASCADE"),
        2 => Some("SET NULL"),
        3 => Some("SET DEFAULT"),
        _ => None,
    };
    let mut text = String::new();
    for (event, shift) in [("DELETE", 14), ("UPDATE", 12)] {
        if let Some(action) = action(shift) {
            text.push_str(&format!("\n    ON {event} {action}"));
        }
    }
    text
}
