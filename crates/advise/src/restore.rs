//! Steps that take data back from backups; without any, what is saved and what a repair deletes.

use std::collections::BTreeSet;

use catalog::Database;
use format::allocation::FixedPage;
use format::{Lsn, PageId};
use script::quote_text;
use source::backup::SetKind;

use crate::backups::{Search, Usable};
use crate::damage::Damage;
use crate::losses;
use crate::plan::Request;
use crate::repairs::{argument, object_name};
use crate::statements::{self, page_list, restore, tail_file};
use crate::step::{Action, LossSummary, Step};

/// The most pages that one sequence of RESTORE takes.
const MOST_PAGES: usize = 1000;

/// What the database's log is kept for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Model {
    /// Its log is given up at checkpoints, or its log backups have no start.
    Simple,
    /// Its log is kept for log backups: full or bulk-logged.
    Full {
        /// Log up to here was backed up.
        backed_up: Lsn,
    },
}

impl Model {
    /// That of a database; without a boot page nothing can be promised.
    pub(crate) fn of(database: &Database) -> Self {
        match &database.boot {
            Some(boot) if !boot.is_simple_recovery() && boot.log_backup_chain_origin != Lsn::default() => {
                Self::Full { backed_up: boot.log_backup_lsn }
            }
            _ => Self::Simple,
        }
    }
}

/// What a restore does, or what there is without one.
#[derive(Default)]
pub(crate) struct Restored {
    pub(crate) steps: Vec<Step>,
    pub(crate) losses: Vec<LossSummary>,
    /// All other findings are settled too.
    pub(crate) covers_everything: bool,
    /// Backups have what is damaged.
    pub(crate) is_in_backup: bool,
}

/// Why pages cannot be restored one by one.
fn obstacle(damage: &Damage, pages: &BTreeSet<PageId>, model: Model, usable: &Usable) -> Option<String> {
    let fixed = pages.iter().find_map(|page| Some((page, FixedPage::at(*page)?)));
    if let Some((page, fixed)) = fixed {
        return Some(format!("page {page} is a {} page, which RESTORE does not take one by one", kind_name(fixed)));
    }
    if damage.catalog.critical {
        return Some("pages of critical system tables cannot be restored one by one".to_owned());
    }
    if let Some(file) = damage.cut_files.first() {
        return Some(format!("file {file} was cut: its end is missing"));
    }
    if damage.catalog.is_logical || damage.other.is_logical {
        return Some("the catalog, or something that no page shows, is damaged as well".to_owned());
    }
    if pages.len() > MOST_PAGES {
        return Some(format!("one restore takes {MOST_PAGES} pages at most"));
    }
    match model {
        Model::Simple => {
            Some("the log of the database is not kept (simple recovery, or no full backup since it was)".to_owned())
        }
        Model::Full { backed_up } => missing_log(usable, backed_up),
    }
}

/// The log between the last backup given and the log that the database still has, if it is missing.
fn missing_log(usable: &Usable, backed_up: Lsn) -> Option<String> {
    if let Some((from, to)) = usable.gap {
        return Some(format!("log backups are missing: from LSN {} to {}", lsn(from), lsn(to)));
    }
    match usable.reaches() {
        Some(reaches) if reaches < backed_up => Some(format!(
            "log backups are missing: the database's log was backed up to LSN {}, the backups given end at {}",
            lsn(backed_up),
            lsn(reaches)
        )),
        None => Some("the backups do not say how far their log goes".to_owned()),
        Some(_) => None,
    }
}

/// An LSN as texts have it.
fn lsn(lsn: Lsn) -> String {
    format!("{:08x}:{:08x}:{:04x}", lsn.vlf, lsn.block, lsn.slot)
}

fn kind_name(fixed: FixedPage) -> &'static str {
    match fixed {
        FixedPage::FileHeader => "file header",
        FixedPage::Pfs => "PFS",
        FixedPage::Gam => "GAM",
        FixedPage::Sgam => "SGAM",
        FixedPage::DiffMap => "DIFF",
        FixedPage::MlMap => "ML",
        FixedPage::Boot => "boot",
    }
}

/// The steps that settle what only a copy, or a loss, settles.
pub(crate) fn steps(request: &Request<'_>, damage: &Damage, search: &Search, model: Model) -> Restored {
    let pages = damage.pages();
    let is_catalog = !damage.catalog.ids.is_empty() || !damage.other.ids.is_empty();
    if pages.is_empty() && !is_catalog {
        return Restored::default();
    }
    let Some(usable) = &search.usable else { return without_backup(request, damage, search) };
    let mut restored = Restored { is_in_backup: true, ..Restored::default() };
    match obstacle(damage, &pages, model, usable) {
        None => restored.steps.push(page_restore(request, damage, &pages, usable)),
        Some(why) => {
            let file = only_file(&pages, is_catalog);
            match (model, file) {
                (Model::Full { backed_up }, Some(file)) if missing_log(usable, backed_up).is_none() => {
                    restored.steps.push(file_restore(request, damage, &pages, (file, usable), &why));
                }
                _ => {
                    restored.covers_everything = true;
                    let is_log_whole =
                        matches!(model, Model::Full { backed_up } if missing_log(usable, backed_up).is_none());
                    if !is_log_whole {
                        restored.steps.push(export(
                            request,
                            damage,
                            "Changes since the backup are in no backup: what can be read of them is in these files.",
                        ));
                    }
                    restored.steps.push(database_restore(request, damage, usable, (&why, is_log_whole)));
                }
            }
        }
    }
    restored
}

/// The one file, other than the first, that all pages are in: it can be restored alone.
fn only_file(pages: &BTreeSet<PageId>, is_catalog: bool) -> Option<u16> {
    let files: BTreeSet<u16> = pages.iter().map(|page| page.file).collect();
    match (files.first(), files.len()) {
        (Some(&file), 1) if file > 1 && !is_catalog => Some(file),
        _ => None,
    }
}

/// All ids that damaged pages rest on.
fn ids(damage: &Damage) -> BTreeSet<&'static str> {
    let tables = damage.tables.values().filter(|table| table.loses_data()).flat_map(|table| &table.ids);
    let fixed = damage.fixed.values().flatten();
    tables.chain(fixed).chain(&damage.catalog.ids).chain(&damage.other.ids).copied().collect()
}

fn all_ids(damage: &Damage) -> BTreeSet<&'static str> {
    let counts = damage.counts.values().chain(damage.indexes.values()).flatten();
    let rows = damage.rows.values().flat_map(|rows| &rows.ids);
    let tables = damage.tables.values().flat_map(|table| &table.ids);
    let rest = counts.chain(rows).chain(tables).chain(&damage.unowned.ids).copied();
    rest.chain(ids(damage)).collect()
}

fn based_on(usable: &Usable, step: &mut Step) {
    step.from = usable.files();
    step.lsn = usable.reaches();
}

/// What was read, in words.
fn proof(usable: &Usable) -> String {
    let full = usable.of_kind(SetKind::Full).next();
    let finished = full.and_then(|full| full.set.config.finished.as_deref()).unwrap_or("an unknown time");
    let copies = match usable.copies {
        1 => "the copy of this page was read, and is sound".to_owned(),
        copies => format!("{copies} copies of these pages were read, and are sound"),
    };
    let over = if usable.of_kind(SetKind::Differential).next().is_some() { ", with its differential" } else { "" };
    format!("In the full backup of {finished}{over}, {copies}.")
}

/// The start of every restore: the tail of the log.
fn tail(name: &str, file: &str) -> Vec<String> {
    vec![
        "USE [master];".to_owned(),
        "-- The tail of the log: everything since the last log backup, to a file that does not exist yet. The database is\n\
         -- offline from here on."
            .to_owned(),
        format!("BACKUP LOG {name} TO DISK = {file}\n    WITH NORECOVERY;"),
    ]
}

fn page_restore(request: &Request<'_>, damage: &Damage, pages: &BTreeSet<PageId>, usable: &Usable) -> Step {
    let pages: Vec<PageId> = pages.iter().copied().collect();
    let title = match pages.as_slice() {
        [page] => format!("Restore page {page}"),
        pages => format!("Restore {} pages", pages.len()),
    };
    let mut step = Step::new(Action::RestorePages, title);
    let logs = usable.of_kind(SetKind::Log).count();
    step.reason = format!(
        "{} The {} after it and the tail of the log bring the pages to the present: nothing is lost.",
        proof(usable),
        if logs == 1 { "log backup".to_owned() } else { format!("{logs} log backups") }
    );
    if logs == 0 {
        step.reason =
            format!("{} The tail of the log brings the pages to the present: nothing is lost.", proof(usable));
    }
    step.risk = "Enterprise, Developer and Evaluation editions can do it online: only the damaged pages are out of reach meanwhile. \
                 Other editions, and any edition for pages of system tables, do it offline."
        .to_owned();
    step.object = only_object(request, damage);
    based_on(usable, &mut step);
    let name = &request.report.database.name;
    step.sql = match page_statements(name, &pages, usable) {
        Some(sql) => sql,
        None => vec!["-- A name or path is not plain text: write the statements by hand.".to_owned()],
    };
    step.pages = pages;
    step.rests_on = ids(damage);
    step
}

fn page_statements(name: &str, pages: &[PageId], usable: &Usable) -> Option<Vec<String>> {
    let quoted = statements::database(name)?;
    let file = tail_file(&usable.steps, name);
    let mut sql = vec![
        "-- Offline, in every edition. Online (Enterprise): leave out the first BACKUP LOG; after the last RESTORE LOG,\n\
         -- BACKUP LOG to a new file without NORECOVERY, and restore that one WITH RECOVERY."
            .to_owned(),
    ];
    sql.extend(tail(&quoted, &file));
    for set in &usable.steps {
        match set.set.kind {
            SetKind::Full => sql.push(format!(
                "RESTORE DATABASE {quoted} PAGE = {}{}",
                quote_text(&page_list(pages)).trim_start_matches('N'),
                statements::from(set)?
            )),
            _ => sql.push(restore(&quoted, set)?),
        }
    }
    sql.push(format!("RESTORE LOG {quoted} FROM DISK = {file}\n    WITH NORECOVERY;"));
    sql.push(format!("RESTORE DATABASE {quoted} WITH RECOVERY;"));
    sql.push(check_again(name));
    Some(sql)
}

fn check_again(name: &str) -> String {
    format!("DBCC CHECKDB ({}) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(name))
}

fn file_restore(
    request: &Request<'_>,
    damage: &Damage,
    pages: &BTreeSet<PageId>,
    (file, usable): (u16, &Usable),
    why: &str,
) -> Step {
    let logical = request.source.file(file).map(|file| file.logical_name.clone()).filter(|name| !name.is_empty());
    let row = request.database.files.iter().find(|row| row.file_id == file).map(|row| row.logical_name.clone());
    let logical = row.or(logical).unwrap_or_else(|| format!("file {file}"));
    let mut step = Step::new(Action::RestoreFile, format!("Restore the file {logical}"));
    step.reason = format!("Not page by page: {why}. {} All damaged pages are in this file.", proof(usable));
    step.risk = "The filegroup is offline meanwhile; in editions other than Enterprise, the database.".to_owned();
    based_on(usable, &mut step);
    step.pages = pages.iter().copied().collect();
    step.rests_on = ids(damage);
    let name = &request.report.database.name;
    let sql = (|| {
        let quoted = statements::database(name)?;
        let tail_file = tail_file(&usable.steps, name);
        let mut sql = tail(&quoted, &tail_file);
        for set in &usable.steps {
            match set.set.kind {
                SetKind::Log => sql.push(restore(&quoted, set)?),
                _ => sql.push(format!(
                    "RESTORE DATABASE {quoted} FILE = {}{}",
                    quote_text(&logical),
                    statements::from(set)?
                )),
            }
        }
        sql.push(format!("RESTORE LOG {quoted} FROM DISK = {tail_file}\n    WITH NORECOVERY;"));
        sql.push(format!("RESTORE DATABASE {quoted} WITH RECOVERY;"));
        sql.push(check_again(name));
        Some(sql)
    })();
    step.sql =
        sql.unwrap_or_else(|| vec!["-- A name or path is not plain text: write the statements by hand.".to_owned()]);
    step
}

fn database_restore(
    request: &Request<'_>,
    damage: &Damage,
    usable: &Usable,
    (why, is_log_whole): (&str, bool),
) -> Step {
    let name = &request.report.database.name;
    let mut step = Step::new(Action::RestoreDatabase, format!("Restore the database {name}"));
    step.reason = format!(
        "Not page by page: {why}. {}",
        match usable.copies {
            0 => "The backups below are the newest ones whose labels fit.".to_owned(),
            _ => proof(usable),
        }
    );
    step.risk = "The database is offline meanwhile. Restore under another name first if there is room: the damaged one may still \
                 have what the backup lacks. Only the damaged pages were compared: check the backup as a whole before."
        .to_owned();
    step.command = Some(format!("mdfsck check {}", step_paths(usable)));
    based_on(usable, &mut step);
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = all_ids(damage);
    if !is_log_whole {
        let finished = usable.finished().unwrap_or("the last backup");
        step.cannot_restore = Some(format!("Changes after {finished}, unless the step before saved them."));
    }
    let sql = (|| {
        let quoted = statements::database(name)?;
        let tail_file = tail_file(&usable.steps, name);
        let mut sql = match is_log_whole {
            true => tail(&quoted, &tail_file),
            false => vec!["USE [master];".to_owned()],
        };
        for set in &usable.steps {
            let statement = restore(&quoted, set)?;
            // The files are in the way, and are to be replaced.
            sql.push(match set.set.kind {
                SetKind::Full if !is_log_whole => statement.replace("NORECOVERY;", "REPLACE, NORECOVERY;"),
                _ => statement,
            });
        }
        if is_log_whole {
            sql.push(format!("RESTORE LOG {quoted} FROM DISK = {tail_file}\n    WITH NORECOVERY;"));
        }
        sql.push(format!("RESTORE DATABASE {quoted} WITH RECOVERY;"));
        sql.push(check_again(name));
        Some(sql)
    })();
    step.sql =
        sql.unwrap_or_else(|| vec!["-- A name or path is not plain text: write the statements by hand.".to_owned()]);
    step
}

fn step_paths(usable: &Usable) -> String {
    usable.files().iter().map(|path| argument(path)).collect::<Vec<_>>().join(" ")
}

fn only_object(request: &Request<'_>, damage: &Damage) -> Option<String> {
    let mut damaged = damage.tables.iter().filter(|(_, table)| table.loses_data());
    match (damaged.next(), damaged.next()) {
        (Some((&object_id, _)), None) => Some(object_name(request, object_id)),
        _ => None,
    }
}

/// What can be saved before anything is changed.
fn export(request: &Request<'_>, damage: &Damage, why: &str) -> Step {
    let mut step = Step::new(Action::Export, "Save what can be read");
    let tables: Vec<String> = damage
        .tables
        .iter()
        .filter(|(_, table)| table.loses_data())
        .map(|(&object_id, _)| format!(" --table {}", argument(&object_name(request, object_id))))
        .collect();
    // Where more than tables is damaged, all are saved.
    let is_all = !damage.catalog.ids.is_empty() || !damage.fixed.is_empty() || !damage.other.ids.is_empty();
    let tables = if is_all { String::new() } else { tables.concat() };
    step.object = only_object(request, damage).filter(|_| !is_all);
    step.reason = why.to_owned();
    step.risk =
        "None: the files are only read. Rows of damaged pages go to files of their own, with the reason for doubt."
            .to_owned();
    step.command = Some(format!("mdfsck export {} -o saved --damaged{tables}", request.paths));
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = ids(damage);
    step
}

/// Neither a page, nor a file, nor the database can be restored from what was given.
fn without_backup(request: &Request<'_>, damage: &Damage, search: &Search) -> Restored {
    let mut restored = Restored::default();
    for (&object_id, table) in &damage.tables {
        let pages: BTreeSet<PageId> = table.pages.iter().chain(&table.values).copied().collect();
        restored.losses.extend(losses::of_table(request.source, request.database, object_id, &pages));
    }
    let looked = match (request.backups, search.has_any) {
        (None, _) => "No backups were given: --backups DIR names the folder with backups of this database.",
        (Some(_), false) => "The backups that were given are of other databases.",
        (Some(_), true) => "None of the backups that were given has sound copies of the damaged pages.",
    };
    let mut look = Step::new(Action::Inspect, "Look for a backup first");
    look.reason = format!("{looked} A restore brings everything back; a repair deletes.");
    look.risk = "None.".to_owned();
    look.command = Some(format!("mdfsck advise {} --backups DIR", request.paths));
    look.rests_on = ids(damage);
    restored.steps.push(look);
    restored.steps.push(export(
        request,
        damage,
        "Everything that can be proven is exported, and what nonclustered indexes still have of the lost rows: do it before a \
         repair deletes pages.",
    ));
    if damage.catalog.ids.is_empty() && damage.fixed.is_empty() && damage.other.ids.is_empty() {
        restored.steps.push(repair(request, damage));
        return restored;
    }
    restored.covers_everything = true;
    restored.steps.push(new_database(request, damage));
    restored
}

fn repair(request: &Request<'_>, damage: &Damage) -> Step {
    let name = &request.report.database.name;
    let quoted = statements::database(name).unwrap_or_default();
    let mut step =
        Step::new(Action::RepairAllowDataLoss, "Last of all, and only without a backup: let the repair delete");
    let tables: Vec<String> = damage
        .tables
        .iter()
        .filter(|(_, table)| table.loses_data())
        .map(|(&object_id, table)| {
            let pages: BTreeSet<&PageId> = table.pages.iter().chain(&table.values).collect();
            let pages = if pages.len() == 1 { "1 page".to_owned() } else { format!("{} pages", pages.len()) };
            format!("{pages} of {}", object_name(request, object_id))
        })
        .collect();
    step.reason =
        "It makes the database consistent again: it removes what is damaged, and everything that refers to it."
            .to_owned();
    step.risk = "It ignores foreign keys and constraints, cannot be undone, and may take more than one run. Take a copy of the files \
                 first."
        .to_owned();
    step.cannot_restore = Some(format!(
        "It deletes {} with all rows on them; off-row values whose rows are gone go too.",
        tables.join(", ")
    ));
    step.sql = vec![
        "USE [master];".to_owned(),
        "-- Copy the files of the database first. REPAIR_ALLOW_DATA_LOSS deletes what it cannot read.".to_owned(),
        format!("ALTER DATABASE {quoted} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"),
        format!("DBCC CHECKDB ({}, REPAIR_ALLOW_DATA_LOSS) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(name)),
        check_again(name),
        "DBCC CHECKCONSTRAINTS WITH ALL_CONSTRAINTS;".to_owned(),
        format!("ALTER DATABASE {quoted} SET MULTI_USER;"),
    ];
    // In the database itself, not in master.
    if let Some(constraints) = step.sql.iter_mut().find(|sql| sql.starts_with("DBCC CHECKCONSTRAINTS")) {
        *constraints = format!("USE {quoted};\n{constraints}\nUSE [master];");
    }
    step.object = only_object(request, damage);
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = ids(damage);
    step
}

/// No repair exists for the catalog, headers and allocation maps.
fn new_database(request: &Request<'_>, damage: &Damage) -> Step {
    let mut step = Step::new(Action::Export, "Build a new database from what was saved");
    step.reason = "No repair exists for the catalog, file headers, boot pages and allocation maps.".to_owned();
    step.risk = "Permissions, jobs and settings outside of the tables are not exported.".to_owned();
    step.command = Some(format!("mdfsck export {} -o saved --format sql --definitions", request.paths));
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = all_ids(damage);
    step
}
