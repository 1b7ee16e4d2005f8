//! The steps that restore data, and the damage that they are about.

use std::collections::BTreeSet;

use crate::damage::Damage;
use crate::repairs::object_name;
use crate::request::Request;
use crate::step::{LossSummary, Step};

/// The steps that restore data. If no backup is usable, the steps that replace a restore.
#[derive(Default)]
pub(crate) struct Restored {
    pub(crate) steps: Vec<Step>,
    pub(crate) losses: Vec<LossSummary>,
    /// Whether the steps also repair all other damage.
    pub(crate) covers_everything: bool,
    /// Whether backups have sound copies of the damaged pages.
    pub(crate) is_in_backup: bool,
}

/// The IDs of all findings that need a restore.
pub(crate) fn ids(damage: &Damage) -> BTreeSet<&'static str> {
    let tables = damage.tables.values().filter(|table| table.loses_data()).flat_map(|table| &table.ids);
    let fixed = damage.fixed.values().flatten();
    tables.chain(fixed).chain(&damage.catalog.ids).chain(&damage.other.ids).chain(&damage.maps.ids).copied().collect()
}

pub(crate) fn all_ids(damage: &Damage) -> BTreeSet<&'static str> {
    let counts = damage.counts.values().chain(damage.indexes.values()).flatten();
    let rows = damage.rows.values().flat_map(|rows| &rows.ids);
    let tables = damage.tables.values().flat_map(|table| &table.ids);
    let rest = counts.chain(rows).chain(tables).chain(&damage.unowned.ids).copied();
    rest.chain(ids(damage)).collect()
}

/// The name of the table that has lost data; `None` if there are several such tables or none.
pub(crate) fn only_object(request: &Request<'_>, damage: &Damage) -> Option<String> {
    let mut damaged = damage.tables.iter().filter(|(_, table)| table.loses_data());
    match (damaged.next(), damaged.next()) {
        (Some((&object_id, _)), None) => Some(object_name(request, object_id)),
        _ => None,
    }
}
