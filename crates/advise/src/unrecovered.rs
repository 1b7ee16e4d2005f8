//! The plan for a database that was not shut down cleanly, and whose log is missing or cannot be used. No server
//! recovers such files as they are. The steps come in the order of the harm that they can do.

use catalog::FileRow;
use check::registry::limits::{self, Limit};
use check::{NotVerified, Report};
use script::quote_text;

use crate::backups::Search;
use crate::damage::Damage;
use crate::obstacle::Model;
use crate::plan::{Plan, Request, Situation, counted_pages};
use crate::restore::database_restore;
use crate::statements::{self, BY_HAND, check_again};
use crate::step::{Action, Step};
use crate::without_backup::without_backup;
use crate::{repairs, unverified};

/// The type of log files in the catalog.
const LOG: u8 = 1;
/// Maximum number of log files, and of objects, that a step names.
const MOST_NAMED: usize = 5;
/// The limits that report an unrecovered database.
const LIMITS: [&Limit; 2] = [&limits::RECOVERY_NONE, &limits::RECOVERY_LOG];

/// Whether the limit reports that nothing was recovered.
pub(crate) fn is_cause(limit: &Limit) -> bool {
    LIMITS.iter().any(|cause| cause.id == limit.id)
}

/// The entry of a report that says why the database was not recovered; `None` if it was recovered, needs no recovery,
/// or is a backup, which a server can restore without this log.
pub(crate) fn cause<'r>(request: &Request<'r>) -> Option<&'r NotVerified> {
    let report: &'r Report = request.report;
    let is_cause = |entry: &&NotVerified| is_cause(entry.limit) && !report.is_allowed(entry.limit);
    report.not_verified.iter().find(is_cause).filter(|_| request.source.backup().is_none())
}

/// The plan for an unrecovered database.
pub(crate) fn plan(request: &Request<'_>, cause: &NotVerified, damage: &Damage, search: Search) -> Plan {
    let name = &request.report.database.name;
    let (inspect, again) = unverified::steps(request.report, request.paths);
    let mut steps = vec![find_log(request, cause)];
    // The log explains why messages were demoted, so its step stands for them too.
    let is_answered =
        |step: &Step| [cause.limit.id, limits::DEMOTED_LOG.id].iter().any(|id| step.rests_on.contains(id));
    steps.extend(inspect.into_iter().filter(|step| !is_answered(step)));
    steps.push(export(request, cause, damage));
    let restore = search.usable.as_ref().map(|usable| {
        let why = "the log that a page restore needs is missing or cannot be used";
        let mut step = database_restore(request, damage, (usable, Model::of(request.database)), (why, false));
        step.rests_on.insert(cause.limit.id);
        step
    });
    let is_in_backup = restore.is_some();
    steps.push(restore.unwrap_or_else(|| look_for_backup(request, cause, &search)));
    steps.push(rebuild_log(request, cause, damage));
    let mut losses = Vec::new();
    if !damage.is_empty() {
        // These steps need a database that is online, so they come after the steps that bring it online.
        let (before, after) = repairs::steps(request, damage);
        steps.extend(before.into_iter().chain(after));
        if !is_in_backup {
            losses = without_backup(request, damage, &search).losses;
        }
    }
    steps.extend(again);
    let too = match damage.pages().len() {
        0 if damage.is_empty() => String::new(),
        pages => format!(" Also, {}.", counted_pages(pages)),
    };
    let sentence = format!("{name} was not recovered: {}.{too}", short(&cause.reason));
    let rejected = search.rejected.into_iter().map(|rejected| (rejected.set, rejected.why)).collect();
    Plan { situation: Situation::NotRecovered, sentence, steps, losses, rejected }
}

/// The reason without its last part, which says what the check did.
fn short(reason: &str) -> &str {
    reason.rsplit_once("; ").map_or(reason, |(short, _)| short)
}

fn is_missing(cause: &NotVerified) -> bool {
    cause.limit.id == limits::RECOVERY_NONE.id
}

fn find_log(request: &Request<'_>, cause: &NotVerified) -> Step {
    let files: Vec<&FileRow> = request.database.files.iter().filter(|file| file.file_type == LOG).collect();
    let mut named: Vec<String> =
        files.iter().take(MOST_NAMED).map(|file| format!("{} ({})", file.physical_name, file.logical_name)).collect();
    if let Some(more) = files.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    let catalog = match named.as_slice() {
        [] => "The catalog does not name the files of the log".to_owned(),
        named => format!("On the server, the log was {}", named.join(", ")),
    };
    let (title, server) = match is_missing(cause) {
        true => (
            "Look for the log",
            "Without the log, a server does not open these files: it reports message 17207 or 5120 and then 945, or 1813 when it \
             attaches them",
        ),
        false => (
            "Look for another copy of the log",
            "A server that recovers these files stops there: it reports message 9003, 9004 or 824 for the log, then 3414, and the \
             database becomes SUSPECT",
        ),
    };
    let mut step = Step::new(Action::Inspect, title);
    step.reason = format!(
        "{}. {catalog}: look on all volumes of the server, in snapshots of these volumes, and in backups of the machine. Only \
         the log of the same moment helps; the check says whether a log belongs to these files. {server}. 'mdfsck extract \
         --recovered' needs this log too.",
        capitalized(short(&cause.reason))
    );
    step.risk = "None: nothing is changed.".to_owned();
    step.command = Some(format!("mdfsck check {} LOG", request.paths));
    step.sql = vec![format!("-- {}", cause.limit.action)];
    step.rests_on.insert(cause.limit.id);
    step
}

fn export(request: &Request<'_>, cause: &NotVerified, damage: &Damage) -> Step {
    let mut step = Step::new(Action::Export, "Save the rows as they are in the files");
    let doubtful = request.report.demoted.iter().count();
    let contradictions = match doubtful {
        0 => "The check found no contradiction that the missing changes could explain.".to_owned(),
        1 => "1 contradiction between places in the files may come from the missing changes.".to_owned(),
        count => format!("{count} contradictions between places in the files may come from the missing changes."),
    };
    step.reason = format!(
        "These files may be the only copy of the latest changes, as far as they were written before the server stopped. \
         {contradictions}"
    );
    step.risk = "None: the files are only read. A saved table may have rows of transactions that were never committed, and may \
                 lack committed rows."
        .to_owned();
    let damaged = if damage.is_empty() { "" } else { " --damaged" };
    step.command = Some(format!("mdfsck export {} --no-log -o saved{damaged}", request.paths));
    step.rests_on.insert(cause.limit.id);
    step
}

fn look_for_backup(request: &Request<'_>, cause: &NotVerified, search: &Search) -> Step {
    let looked = match (request.backups, search.has_any) {
        (None, _) => "No backups were given: --backups DIR names the folder with backups of this database.",
        (Some(_), false) => "The given backups are of other databases.",
        (Some(_), true) => "None of the given backups can be used.",
    };
    let mut step = Step::new(Action::Inspect, "Look for a backup");
    step.reason = format!(
        "{looked} A restore of the newest full backup and of all later log backups gives a consistent database. It lacks only \
         the changes since the last log backup. Replicas of an availability group or a mirror may have all changes."
    );
    step.risk = "None.".to_owned();
    step.command = Some(format!("mdfsck advise {} --backups DIR", request.paths));
    step.rests_on.insert(cause.limit.id);
    step
}

fn rebuild_log(request: &Request<'_>, cause: &NotVerified, damage: &Damage) -> Step {
    let name = &request.report.database.name;
    let mut step =
        Step::new(Action::RepairAllowDataLoss, "As a last resort, on a copy: let the server build a new log");
    step.reason = "In the state EMERGENCY, DBCC CHECKDB with REPAIR_ALLOW_DATA_LOSS builds a new log if the old log cannot be used. \
                   'mdfsck check --no-log' lists the contradictions that the database has afterwards."
        .to_owned();
    step.risk = "The repair cannot be rolled back, deletes what it cannot make consistent, ignores foreign keys, and ends the chain of log \
                 backups. It may fail. Work on a copy of the files only."
        .to_owned();
    let newer = newer_pages(request.report);
    let also = if damage.is_empty() { "" } else { " The repair also deletes the rows on damaged pages." };
    step.cannot_restore = Some(format!(
        "All changes that were only in the log. Transactions that were open when the server stopped stay half done.{newer}{also}"
    ));
    step.sql = statements(name).unwrap_or(vec![BY_HAND.to_owned()]);
    step.rests_on.insert(cause.limit.id);
    step
}

/// A sentence that names the objects with pages that were written after the last checkpoint; empty if there are none.
fn newer_pages(report: &Report) -> String {
    let mut objects: Vec<&NotVerified> =
        report.notes.iter().filter(|note| note.limit.id == limits::RECOVERY_NEWER_PAGES.id).collect();
    if objects.is_empty() {
        return " No page was written after the last checkpoint.".to_owned();
    }
    objects.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.scope.cmp(&b.scope)));
    let pages: u64 = objects.iter().map(|object| object.count).sum();
    let mut named: Vec<String> =
        objects.iter().take(MOST_NAMED).map(|object| format!("{} ({})", object.scope, object.count)).collect();
    if let Some(more) = objects.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    let were = if pages == 1 { "page was" } else { "pages were" };
    format!(" {pages} {were} written after the last checkpoint and may have such changes: {}.", named.join(", "))
}

fn statements(name: &str) -> Option<Vec<String>> {
    let quoted = statements::database(name)?;
    Some(vec![
        "USE [master];".to_owned(),
        "-- Copy the files of the database first, and work on the copy.".to_owned(),
        format!("ALTER DATABASE {quoted} SET EMERGENCY;"),
        format!("ALTER DATABASE {quoted} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"),
        format!("DBCC CHECKDB ({}, REPAIR_ALLOW_DATA_LOSS) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(name)),
        check_again(name),
        "-- Find the rows that now violate constraints, in the database itself.".to_owned(),
        format!("USE {quoted};"),
        "DBCC CHECKCONSTRAINTS WITH ALL_CONSTRAINTS;".to_owned(),
        "USE [master];".to_owned(),
        format!("ALTER DATABASE {quoted} SET MULTI_USER;"),
    ])
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
