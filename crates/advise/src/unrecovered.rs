//! The plan for a database that was not shut down cleanly, and whose log is missing or cannot be used. No server
//! recovers such files as they are. The steps come in the order of the harm that they can do.

use findings::registry::limits;
use findings::{NotVerified, RecoveryDoubt, RecoveryDoubtKind, Report};

use crate::backups::Search;
use crate::damage::Damage;
use crate::obstacle::Model;
use crate::request::Request;
use crate::restore::database_restore;
use crate::restored::all_ids;
use crate::step::{Action, Plan, Situation, Step, counted_pages};
use crate::without_backup::{look_for, repair_statements, without_backup};
use crate::{repairs, unverified};

/// The type of log files in the catalog.
const LOG: u8 = 1;
/// Maximum number of log files, and of objects, that a step names.
const MOST_NAMED: usize = 5;

/// Why a database was not recovered.
pub(crate) struct Cause<'r> {
    /// The reason as a clause, such as `its log orders_log.ldf was not found`.
    why: &'r str,
    /// Whether the log is missing. Otherwise it is damaged, incomplete, or of another point in time.
    is_missing: bool,
    doubt: &'r RecoveryDoubt,
}

impl Cause<'_> {
    fn id(&self) -> &'static str {
        self.doubt.kind.limit().id
    }
}

/// Why the database was not recovered. `None` if it was recovered, was shut down cleanly, or is a backup, and also if
/// only this program cannot use the log: a server may be able to use it.
pub(crate) fn cause<'r>(request: &Request<'r>) -> Option<Cause<'r>> {
    let report: &'r Report = request.report;
    let is_clean = request.database.boot.as_ref().is_none_or(|boot| boot.clean_shutdown());
    if is_clean || request.source.backup().is_some() {
        return None;
    }
    let doubts = &report.options.recovery.as_ref()?.doubts;
    doubts.iter().filter(|doubt| !report.is_allowed(doubt.kind.limit())).find_map(|doubt| match &doubt.kind {
        RecoveryDoubtKind::NotGiven(why) => Some(Cause { why, is_missing: true, doubt }),
        RecoveryDoubtKind::Log(why) => Some(Cause { why, is_missing: false, doubt }),
        _ => None,
    })
}

/// The plan for an unrecovered database.
pub(crate) fn plan(request: &Request<'_>, cause: &Cause<'_>, damage: &Damage, search: Search) -> Plan {
    let name = &request.report.database.name;
    let (inspect, again) = unverified::steps(request.report, request.paths);
    let mut steps = vec![find_log(request, cause)];
    // The log explains why messages were demoted, so its step stands for them too.
    let is_answered = |step: &Step| [cause.id(), limits::DEMOTED_LOG.id].iter().any(|id| step.rests_on.contains(id));
    steps.extend(inspect.into_iter().filter(|step| !is_answered(step)));
    steps.push(export(request, cause, damage));
    let restore = search.usable.as_ref().map(|usable| {
        let why = "the log that a page restore needs is missing or cannot be used";
        let mut step = database_restore(request, damage, (usable, Model::of(request.database)), (why, false));
        step.rests_on.insert(cause.id());
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
    let sentence = format!("{name} was not recovered: it was not shut down cleanly, and {}.{too}", cause.why);
    let rejected = search.rejected.into_iter().map(|rejected| (rejected.set, rejected.why)).collect();
    Plan { situation: Situation::NotRecovered, sentence, patterns: Vec::new(), steps, losses, rejected }
}

fn find_log(request: &Request<'_>, cause: &Cause<'_>) -> Step {
    let files = request.database.files.iter().filter(|file| file.file_type == LOG);
    let files: Vec<String> = files.map(|file| format!("{} ({})", file.physical_name, file.logical_name)).collect();
    let catalog = match files.is_empty() {
        true => "The catalog does not name the files of the log".to_owned(),
        false => format!("On the server, the log was {}", named(&files)),
    };
    let (title, server) = match cause.is_missing {
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
        "The database was not shut down cleanly, and {}. {catalog}: look on all volumes of the server, in snapshots of these \
         volumes, and in backups of the machine. Only \
         the log of the same moment helps; the check says whether a log belongs to these files. {server}. 'mdfsck extract \
         --recovered' needs this log too.",
        cause.why
    );
    step.risk = "None: nothing is changed.".to_owned();
    step.command = Some(format!("mdfsck check {} LOG", request.paths));
    step.sql = vec![format!("-- {}", cause.doubt.kind.limit().action)];
    step.rests_on.insert(cause.id());
    step
}

fn export(request: &Request<'_>, cause: &Cause<'_>, damage: &Damage) -> Step {
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
    step.rests_on.insert(cause.id());
    step
}

fn look_for_backup(request: &Request<'_>, cause: &Cause<'_>, search: &Search) -> Step {
    let mut step = look_for(
        request,
        search,
        "Look for a backup",
        "None of the given backups can be used.",
        "A restore of the newest full backup and of all later log backups gives a consistent database. It lacks only the changes \
         since the last log backup. Replicas of an availability group or a mirror may have all changes.",
    );
    step.rests_on.insert(cause.id());
    step
}

fn rebuild_log(request: &Request<'_>, cause: &Cause<'_>, damage: &Damage) -> Step {
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
    step.sql = repair_statements(name, true);
    step.rests_on = all_ids(damage);
    step.rests_on.insert(cause.id());
    step
}

/// A sentence about the objects with pages that were written after the last checkpoint.
fn newer_pages(report: &Report) -> String {
    let mut objects: Vec<&NotVerified> =
        report.notes.iter().filter(|note| note.limit.id == limits::RECOVERY_NEWER_PAGES.id).collect();
    if objects.is_empty() {
        return " No page was written after the last checkpoint.".to_owned();
    }
    objects.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.scope.cmp(&b.scope)));
    let pages: u64 = objects.iter().map(|object| object.count).sum();
    let objects: Vec<String> = objects.iter().map(|object| format!("{} ({})", object.scope, object.count)).collect();
    let were = if pages == 1 { "page was" } else { "pages were" };
    format!(" {pages} {were} written after the last checkpoint and may have such changes: {}.", named(&objects))
}

/// The names, separated by commas. After the first [`MOST_NAMED`] names, the rest is only counted.
fn named(names: &[String]) -> String {
    let mut listed: Vec<String> = names.iter().take(MOST_NAMED).cloned().collect();
    if names.len() > MOST_NAMED {
        listed.push(format!("{} more", names.len() - MOST_NAMED));
    }
    listed.join(", ")
}
