//! Steps that restore data from backups: pages, files, or the database.

use std::collections::BTreeSet;

use format::PageId;
use script::quote_text;
use source::backup::SetKind;

use crate::backups::{Search, Usable};
use crate::damage::Damage;
use crate::obstacle::{Model, obstacle};
use crate::part::{Part, part};
use crate::repairs::argument;
use crate::request::Request;
use crate::restored::{Restored, all_ids, ids, only_object};
use crate::set_maps;
use crate::statements::{self, BY_HAND, check_again, is_plain, page_list, restore, stopping_on_errors, tail_file};
use crate::step::{Action, Step};
use crate::without_backup::{export, without_backup};

/// The steps for damage that can be repaired only by a restore or by deleting data.
pub(crate) fn steps(request: &Request<'_>, damage: &Damage, search: &Search, model: Model) -> Restored {
    let pages = damage.pages();
    let is_nowhere = [&damage.catalog.ids, &damage.other.ids, &damage.maps.ids].iter().all(|ids| ids.is_empty());
    if pages.is_empty() && is_nowhere {
        return Restored::default();
    }
    // If only maps are wrong, no row is lost yet. In this case, a restore is an option only if it loses no row.
    let loses_nothing = |usable: &&Usable| damage.needs_restore() || model.has_whole_log(usable);
    let Some(usable) = search.usable.as_ref().filter(loses_nothing) else {
        return match damage.needs_restore() {
            true => without_backup(request, damage, search),
            false => Restored { steps: set_maps::steps(request, damage), ..Restored::default() },
        };
    };
    let mut restored = Restored { is_in_backup: true, ..Restored::default() };
    let Some(why) = obstacle(damage, &pages, model, usable) else {
        restored.steps.push(page_restore(request, damage, &pages, (usable, model)));
        return restored;
    };
    let has_whole_log = model.has_whole_log(usable);
    if let Some(part) = part(request, damage, &pages).filter(|_| has_whole_log) {
        restored.steps.push(file_restore(request, damage, &pages, (&part, usable, model), &why));
        return restored;
    }
    restored.covers_everything = true;
    if !has_whole_log {
        let why =
            "No given backup has the latest changes: only these files have them, as far as the files can be read.";
        restored.steps.push(export(request, damage, why));
    }
    restored.steps.push(database_restore(request, damage, (usable, model), (&why, has_whole_log)));
    restored
}

/// Adds to a step the facts about the backups that it uses: which page copies were read from the backups, and which
/// facts only the backup labels state.
pub(crate) fn based_on(usable: &Usable, step: &mut Step) {
    step.from = usable.files();
    step.lsn = usable.reaches();
    step.proven = proof(usable);
    let mut logs = usable.of_kind(SetKind::Log).peekable();
    let order = match logs.peek() {
        Some(_) => ", that the log backups follow one another without a gap, and up to which time they reach",
        None => " and up to which time they reach",
    };
    let rest = match usable.copies {
        0 => format!("No page of these backups was read: only their labels say that they are sound{order}"),
        _ => format!(
            "Of these backups, only the pages above were read: only the labels say that all other pages are sound{order}"
        ),
    };
    step.by_labels = Some(format!("{rest}. 'mdfsck chain --verify' on the folder of the backups reads all of them."));
}

/// A sentence about the page copies that were read from the backups; `None` if no copy was read.
fn proof(usable: &Usable) -> Option<String> {
    let full = usable.of_kind(SetKind::Full).next();
    let finished = full.and_then(|full| full.set.config.finished.as_deref()).unwrap_or("an unknown time");
    let copies = match usable.copies {
        0 => return None,
        1 => "the copy of this page was read and is sound".to_owned(),
        copies => format!("{copies} copies of these pages were read and are sound"),
    };
    let over = if usable.of_kind(SetKind::Differential).next().is_some() { " and its differential backup" } else { "" };
    Some(format!("In the full backup of {finished}{over}, {copies}."))
}

/// Returns the part of a sentence that names the later log backups and the tail of the log, such as `the 3 later log
/// backups and the tail of the log bring`.
fn log_brings(usable: &Usable) -> String {
    match usable.of_kind(SetKind::Log).count() {
        0 => "the tail of the log brings".to_owned(),
        1 => "the later log backup and the tail of the log bring".to_owned(),
        logs => format!("the {logs} later log backups and the tail of the log bring"),
    }
}

/// The first statements of every restore that needs the tail of the log.
fn tail(name: &str, file: &str) -> Vec<String> {
    vec![
        "USE [master];".to_owned(),
        "-- Back up the tail of the log, with everything since the last log backup, to a file that does not exist yet. The\n\
         -- database is then offline until the last statement, WITH RECOVERY. If this backup fails, nothing below runs: the work since the\n\
         -- last log backup is only in this log. The same holds for each restore. WITH NORECOVERY, CONTINUE_AFTER_ERROR backs up the tail of a damaged database."
            .to_owned(),
        format!("BACKUP LOG {name} TO DISK = {file}\n    WITH NORECOVERY;"),
    ]
}

/// The last statements of every restore with the tail of the log.
fn recovery(quoted: &str, name: &str, tail_file: &str) -> Vec<String> {
    vec![
        format!("RESTORE LOG {quoted} FROM DISK = {tail_file}\n    WITH NORECOVERY;"),
        format!("RESTORE DATABASE {quoted} WITH RECOVERY;"),
        check_again(name),
    ]
}

fn page_restore(
    request: &Request<'_>,
    damage: &Damage,
    pages: &BTreeSet<PageId>,
    (usable, model): (&Usable, Model),
) -> Step {
    let pages: Vec<PageId> = pages.iter().copied().collect();
    let title = match pages.as_slice() {
        [page] => format!("Restore page {page}"),
        pages => format!("Restore {} pages", pages.len()),
    };
    let mut step = Step::new(Action::RestorePages, title);
    based_on(usable, &mut step);
    step.reason = format!(
        "Only the damaged pages are replaced; {} them up to date. Nothing is lost, provided that the tail of the log can be backed up.",
        log_brings(usable)
    );
    step.risk = format!(
        "These statements take the database offline, in every edition. Enterprise, Developer and Evaluation editions \
         can restore pages online, so that only the damaged pages are unavailable. For pages of system tables, the \
         database may have to be offline even then.{}",
        model.risk()
    );
    step.object = only_object(request, damage);
    step.sql = page_statements(&request.report.database.name, &pages, usable).unwrap_or(vec![BY_HAND.to_owned()]);
    step.pages = pages;
    step.rests_on = ids(damage);
    step
}

fn page_statements(name: &str, pages: &[PageId], usable: &Usable) -> Option<Vec<String>> {
    let quoted = statements::database(name)?;
    let file = tail_file(&usable.steps, name);
    let mut sql = vec![
        "-- These statements take the database offline, in every edition. For an online restore (Enterprise), leave out the\n\
         -- first BACKUP LOG. After the last RESTORE LOG, run BACKUP LOG to a new file without NORECOVERY, and restore that\n\
         -- file WITH RECOVERY."
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
    sql.extend(recovery(&quoted, name, &file));
    Some(stopping_on_errors(sql))
}

fn file_restore(
    request: &Request<'_>,
    damage: &Damage,
    pages: &BTreeSet<PageId>,
    (part, usable, model): (&Part, &Usable, Model),
    why: &str,
) -> Step {
    let mut step = Step::new(Action::RestoreFile, format!("Restore {}", part.name));
    based_on(usable, &mut step);
    step.reason = format!(
        "A page restore is not possible: {why}. All damage is in this part of the database; {} this part up to date.",
        log_brings(usable)
    );
    let online = match part.is_primary {
        true => "The part has files of the primary filegroup, which no edition restores online.",
        false => {
            "Enterprise, Developer and Evaluation editions can restore the part online, without the first BACKUP LOG."
        }
    };
    step.risk = format!("The database is offline during the restore. {online}{}", model.risk());
    step.object = only_object(request, damage);
    step.pages = pages.iter().copied().collect();
    step.rests_on = ids(damage);
    let name = &request.report.database.name;
    let sql = (|| {
        let quoted = statements::database(name)?;
        if !part.clauses.iter().all(|clause| is_plain(clause)) {
            return None;
        }
        let tail_file = tail_file(&usable.steps, name);
        let mut sql = tail(&quoted, &tail_file);
        for set in &usable.steps {
            sql.push(match set.set.kind {
                SetKind::Log => restore(&quoted, set)?,
                _ => {
                    format!("RESTORE DATABASE {quoted} {}{}", part.clauses.join(", "), statements::from(set)?)
                }
            });
        }
        sql.extend(recovery(&quoted, name, &tail_file));
        Some(stopping_on_errors(sql))
    })();
    step.sql = sql.unwrap_or(vec![BY_HAND.to_owned()]);
    step
}

pub(crate) fn database_restore(
    request: &Request<'_>,
    damage: &Damage,
    (usable, model): (&Usable, Model),
    (why, has_whole_log): (&str, bool),
) -> Step {
    let name = &request.report.database.name;
    let mut step = Step::new(Action::RestoreDatabase, format!("Restore the database {name}"));
    based_on(usable, &mut step);
    let reach = match has_whole_log {
        true => format!("{} the database up to date", log_brings(usable)),
        false => "the log after these backups is incomplete".to_owned(),
    };
    step.reason = format!("A page restore is not possible: {why}. These are the newest usable backups; {reach}.");
    step.risk = format!(
        "The database is offline during the restore. If there is space, restore under another name first (MOVE its \
        files): the damaged database may still have data that the backup lacks. Check the whole backups first.{}",
        if has_whole_log { model.risk() } else { "" }
    );
    step.command = Some(format!("mdfsck check {}", step_paths(usable)));
    step.pages = damage.pages().into_iter().collect();
    step.rests_on = all_ids(damage);
    if !has_whole_log {
        let finished = usable.finished().unwrap_or("the last backup");
        step.cannot_restore =
            Some(format!("Changes after {finished}, except the changes that the previous step saved."));
    }
    let sql = (|| {
        let quoted = statements::database(name)?;
        let tail_file = tail_file(&usable.steps, name);
        let mut sql = match has_whole_log {
            true => tail(&quoted, &tail_file),
            false => vec![
                "USE [master];".to_owned(),
                "-- REPLACE overwrites the damaged database: copy its files first, or restore under another name WITH MOVE."
                    .to_owned(),
            ],
        };
        for set in &usable.steps {
            let statement = restore(&quoted, set)?;
            // REPLACE is needed because the files exist.
            sql.push(match set.set.kind {
                SetKind::Full if !has_whole_log => statement.replace(" NORECOVERY;", " REPLACE, NORECOVERY;"),
                _ => statement,
            });
        }
        match has_whole_log {
            true => sql.extend(recovery(&quoted, name, &tail_file)),
            false => sql.extend([format!("RESTORE DATABASE {quoted} WITH RECOVERY;"), check_again(name)]),
        }
        Some(stopping_on_errors(sql))
    })();
    step.sql = sql.unwrap_or(vec![BY_HAND.to_owned()]);
    step
}

fn step_paths(usable: &Usable) -> String {
    usable.files().iter().map(|path| argument(path)).collect::<Vec<_>>().join(" ")
}
