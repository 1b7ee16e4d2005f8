//! The plan: its steps and their order.

use std::collections::BTreeSet;

use format::PageId;

use crate::backups::{self, Search};
use crate::damage::{Damage, TableDamage};
use crate::obstacle::{Model, obstacle};
use crate::request::Request;
use crate::step::{Plan, Situation, counted_pages};
use crate::{of_backup, repairs, restore, unrecovered, unverified};

/// Makes a plan.
pub fn plan(request: &Request<'_>) -> Plan {
    let mut damage = Damage::of(request.report, request.database, request.source);
    prefer_copies(request, &mut damage);
    Plan { patterns: request.report.patterns.clone(), ..of_damage(request, &damage) }
}

/// Treats pages with keys in the wrong order as damaged if a page restore is possible, because a rebuild would keep a
/// wrong key.
fn prefer_copies(request: &Request<'_>, damage: &mut Damage) {
    let Some(backups) = request.backups.filter(|_| request.source.backup().is_none()) else { return };
    let keys: BTreeSet<PageId> = damage.tables.values().flat_map(|table| &table.keys).copied().collect();
    if keys.is_empty() {
        return;
    }
    let pages = damage.pages().into_iter().chain(keys).collect();
    let search = backups::search(backups, request.source, request.database, &pages, &[]);
    let model = Model::of(request.database);
    if search.usable.is_some_and(|usable| obstacle(damage, &pages, model, &usable).is_none()) {
        damage.tables.values_mut().for_each(TableDamage::restore_keys);
    }
}

/// Makes the plan that repairs this damage.
pub(crate) fn of_damage(request: &Request<'_>, damage: &Damage) -> Plan {
    if let Some(cause) = unrecovered::cause(request) {
        let search = request.backups.map_or_else(Search::default, |backups| {
            backups::search(backups, request.source, request.database, &damage.pages(), &[])
        });
        return unrecovered::plan(request, &cause, damage, search);
    }
    let (mut inspect, again) = unverified::steps(request.report, request.paths);
    let name = &request.report.database.name;
    if damage.is_empty() {
        let (situation, sentence) = match inspect.is_empty() {
            true => (Situation::Sound, format!("{name} is sound: nothing to do.")),
            false => {
                (Situation::Unverified, format!("{name}: no damage was found, but not everything could be verified."))
            }
        };
        return Plan {
            situation,
            sentence,
            patterns: Vec::new(),
            steps: inspect,
            losses: Vec::new(),
            rejected: Vec::new(),
        };
    }
    if request.source.backup().is_some() {
        return of_backup::plan(request, damage, inspect);
    }
    let pages = damage.pages();
    let search = match request.backups.filter(|_| damage.needs_restore() || !damage.maps.ids.is_empty()) {
        Some(backups) => backups::search(backups, request.source, request.database, &pages, &[]),
        None => Search::default(),
    };
    let model = Model::of(request.database);
    let restored = restore::steps(request, damage, &search, model);
    let mut steps = Vec::new();
    if unverified::is_partly_unseen(request.report) {
        steps.append(&mut inspect);
    }
    match restored.covers_everything {
        // The restore of the database repairs all other damage too.
        true => steps.extend(restored.steps),
        false => {
            let (before, after) = repairs::steps(request, damage);
            steps.extend(before);
            steps.extend(restored.steps);
            steps.extend(after);
        }
    }
    steps.extend(inspect);
    steps.extend(again);
    let situation = match (damage.needs_restore(), restored.is_in_backup) {
        (false, _) => Situation::NoLoss,
        (true, true) => Situation::InBackup,
        (true, false) => Situation::Loss,
    };
    let rejected = search.rejected.into_iter().map(|rejected| (rejected.set, rejected.why)).collect();
    let sentence = sentence(name, damage, situation, request);
    Plan { situation, sentence, patterns: Vec::new(), steps, losses: restored.losses, rejected }
}

fn sentence(name: &str, damage: &Damage, situation: Situation, request: &Request<'_>) -> String {
    let pages = damage.pages().len();
    let damaged = counted_pages(pages);
    match situation {
        Situation::NoLoss if !damage.maps.ids.is_empty() => {
            format!(
                "{name}: allocation maps are wrong; no data page is damaged, and no row is known to be lost. Stop all writes."
            )
        }
        Situation::NoLoss if damage.tables.is_empty() && damage.unowned.ids.is_empty() => match damage.indexes.len() {
            0 => format!("{name}: no page is damaged; counts or values are wrong, and no row is lost."),
            1 => format!("{name}: 1 nonclustered index is damaged, but no table is damaged: no row is lost."),
            indexes => {
                format!("{name}: {indexes} nonclustered indexes are damaged, but no table is damaged: no row is lost.")
            }
        },
        Situation::NoLoss => {
            format!(
                "{name}: allocation or links between pages are damaged; no data page is damaged, and no row is known \
                 to be lost."
            )
        }
        Situation::InBackup => {
            format!("{name}: {damaged}, and a backup has sound copies.")
        }
        _ => match request.backups {
            Some(_) => format!("{name}: {damaged}, and no given backup can replace them."),
            None => format!("{name}: {damaged}; no backups were given (--backups DIR)."),
        },
    }
}
