//! Steps without a usable backup: what to save, and what a repair would delete.

use std::collections::BTreeSet;

use format::PageId;
use script::quote_text;

use crate::backups::Search;
use crate::damage::Damage;
use crate::losses;
use crate::repairs::{object_name, table_argument};
use crate::request::Request;
use crate::restored::{Restored, all_ids, ids, only_object};
use crate::statements::{self, BY_HAND, check_again};
use crate::step::{Action, Step};

/// A step that saves everything readable before any other step changes something.
pub(crate) fn export(request: &Request<'_>, damage: &Damage, why: &str) -> Step {
    let mut step = Step::new(Action::Export, "Save what can be read");
    let tables: Vec<String> = damage
        .tables
        .iter()
        .filter(|(_, table)| table.loses_data())
        .map(|(&object_id, _)| format!(" --table {}", table_argument(request, object_id)))
        .collect();
    // If damage is not limited to user tables, all tables are saved.
    let is_all = !damage.catalog.ids.is_empty() || !damage.fixed.is_empty() || !damage.other.ids.is_empty();
    let tables = if is_all { String::new() } else { tables.concat() };
    step.object = only_object(request, damage).filter(|_| !is_all);
    step.reason = why.to_owned();
    step.risk = "None: the files are only read. Rows of damaged pages are written to separate files, with the reason for doubt."
        .to_owned();
    step.command = Some(format!("mdfsck export {} -o saved --damaged{tables}", request.paths));
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = ids(damage);
    step
}

/// The steps if the given backups cannot restore pages, files or the database.
pub(crate) fn without_backup(request: &Request<'_>, damage: &Damage, search: &Search) -> Restored {
    let mut restored = Restored::default();
    for (&object_id, table) in &damage.tables {
        let of_rows = |page: &&PageId| !table.needed_maps.contains(page);
        let pages: BTreeSet<PageId> = table.pages.iter().filter(of_rows).chain(&table.values).copied().collect();
        restored.losses.extend(losses::of_table(request.source, request.database, object_id, &pages));
    }
    restored.steps.push(look_for_backup(request, damage, search));
    restored.steps.push(export(
        request,
        damage,
        "The export saves every row that can be proven sound, and the columns of lost rows that nonclustered indexes still \
        have. Run it before a repair deletes pages.",
    ));
    if damage.catalog.ids.is_empty() && damage.fixed.is_empty() && damage.other.ids.is_empty() {
        restored.steps.push(repair(request, damage));
        return restored;
    }
    restored.covers_everything = true;
    restored.steps.push(new_database(request, damage));
    restored
}

fn look_for_backup(request: &Request<'_>, damage: &Damage, search: &Search) -> Step {
    let mut step = look_for(
        request,
        search,
        "Look for a backup first",
        "None of the given backups has sound copies of the damaged pages.",
        "A restore brings rows back; a repair deletes them. Older backups with all later log backups, and the replicas of an \
         availability group or a mirror, may have intact copies of these pages: servers repair some pages from replicas \
         automatically (sys.dm_hadr_auto_page_repair).",
    );
    step.rests_on = ids(damage);
    step
}

/// A step that asks for a backup. Its reason says why no given backup helps, with `none` for backups of this database,
/// and then `why` a backup would help.
pub(crate) fn look_for(request: &Request<'_>, search: &Search, title: &str, none: &str, why: &str) -> Step {
    let looked = match (request.backups, search.has_any) {
        (None, _) => "No backups were given: --backups DIR names the folder with backups of this database.",
        (Some(_), false) => "The given backups are of other databases.",
        (Some(_), true) => none,
    };
    let mut step = Step::new(Action::Inspect, title);
    step.reason = format!("{looked} {why}");
    step.risk = "None.".to_owned();
    step.command = Some(format!("mdfsck advise {} --backups DIR", request.paths));
    step
}

fn repair(request: &Request<'_>, damage: &Damage) -> Step {
    let name = &request.report.database.name;
    let mut step = Step::new(
        Action::RepairAllowDataLoss,
        "As a last resort, and only without a backup: let the repair delete data",
    );
    let tables: Vec<String> = damage
        .tables
        .iter()
        .filter(|(_, table)| table.loses_data())
        .map(|(&object_id, table)| {
            let of_rows = |page: &&PageId| !table.needed_maps.contains(page);
            let pages: BTreeSet<&PageId> = table.pages.iter().filter(of_rows).chain(&table.values).collect();
            let pages = match (pages.len(), table.needed_maps.is_empty()) {
                (1, true) => "1 page".to_owned(),
                (count, true) => format!("{count} pages"),
                (0, false) => "all pages that damaged IAM pages no longer list".to_owned(),
                (count, false) => format!("{count} pages and all pages that damaged IAM pages no longer list"),
            };
            format!("{pages} of {}", object_name(request, object_id))
        })
        .collect();
    step.reason =
        "The repair makes the database consistent again: it removes damaged data, and all data that refers to the \
         removed data."
            .to_owned();
    step.risk = "The repair ignores foreign keys and constraints, needs the database in single-user mode, may take \
                 more than one run, and may fail. Copy the files first: deleted data cannot be brought back."
        .to_owned();
    step.cannot_restore = Some(format!(
        "As far as the findings show, the repair deletes {} with all rows on them, and the off-row values of deleted \
         rows.",
        tables.join(", ")
    ));
    step.sql = repair_statements(name, false);
    step.object = only_object(request, damage);
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = ids(damage);
    step
}

/// The statements of the repair. A database that a server could not recover must be set to EMERGENCY first.
pub(crate) fn repair_statements(name: &str, is_in_emergency: bool) -> Vec<String> {
    let Some(quoted) = statements::database(name) else { return vec![BY_HAND.to_owned()] };
    let mut sql = vec![
        "USE [master];".to_owned(),
        "-- Copy the files of the database first. REPAIR_ALLOW_DATA_LOSS deletes what it cannot read.".to_owned(),
    ];
    sql.extend(is_in_emergency.then(|| format!("ALTER DATABASE {quoted} SET EMERGENCY;")));
    sql.extend([
        format!("ALTER DATABASE {quoted} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"),
        format!("DBCC CHECKDB ({}, REPAIR_ALLOW_DATA_LOSS) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(name)),
        "-- Repeat until no error is left: one error may have hidden another.".to_owned(),
        check_again(name),
        "-- Find the rows that now violate constraints, in the database itself.".to_owned(),
        format!("USE {quoted};"),
        "DBCC CHECKCONSTRAINTS WITH ALL_CONSTRAINTS;".to_owned(),
        "USE [master];".to_owned(),
        format!("ALTER DATABASE {quoted} SET MULTI_USER;"),
    ]);
    sql
}

/// The step for the catalog, headers and allocation maps, for which no repair exists.
fn new_database(request: &Request<'_>, damage: &Damage) -> Step {
    let mut step = Step::new(Action::Export, "Build a new database from the saved data");
    step.reason = "No repair exists for the catalog, file headers, boot pages and allocation maps.".to_owned();
    step.risk = "Permissions, jobs and settings outside the tables are not exported.".to_owned();
    step.command = Some(format!("mdfsck export {} -o saved --format sql --definitions", request.paths));
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = all_ids(damage);
    step
}
