//! The plan for a damaged backup: which older backup is sound, and what to run on the source database.

use crate::backups::{self, Search};
use crate::damage::Damage;
use crate::request::Request;
use crate::restore::based_on;
use crate::statements::{self, BY_HAND, check_again, is_plain, stopping_on_errors};
use crate::step::{Action, Plan, Situation, Step};

/// Makes the plan for a damaged backup.
#[expect(clippy::too_many_lines, reason = "a branch for each kind of damage")]
pub(crate) fn plan(request: &Request<'_>, damage: &Damage, inspect: Vec<Step>) -> Plan {
    let name = &request.report.database.name;
    let is_container = !damage.container.is_empty();
    let pages = damage.pages();
    let mut ids: std::collections::BTreeSet<&'static str> = damage.container.iter().copied().collect();
    ids.extend(request.report.findings.iter().map(|finding| finding.check.id));
    let own: Vec<String> = request.report.database.files.iter().map(|file| file.path.display().to_string()).collect();
    let own_sets =
        request.report.database.sets.iter().flat_map(|set| &set.paths).map(|path| path.display().to_string());
    let own: Vec<String> = own.into_iter().chain(own_sets).collect();
    let search = match request.backups {
        Some(backups) => backups::search(backups, request.source, request.database, &pages, &own),
        None => Search::default(),
    };
    let mut steps = Vec::new();
    let mut source = Step::new(Action::Inspect, format!("Check the database {name} itself"));
    source.reason = match is_container {
        true => "The backup file is damaged; the database from which it was taken may be sound. If the database is \
                 sound, take a new backup; nothing else is needed."
            .to_owned(),
        false => "The pages were damaged either in the database before the backup, or later in the backup file. A \
                  check of the database shows which of these is the case."
            .to_owned(),
    };
    source.risk =
        "CHECKDB reads the whole database. mdfsck checks its files, or another copy of this backup, without a server."
            .to_owned();
    source.sql = vec![
        if is_plain(name) { check_again(name) } else { BY_HAND.to_owned() },
        "-- If the database is sound, take a new full backup:".to_owned(),
        "-- BACKUP DATABASE ... TO DISK = ... WITH CHECKSUM; then 'mdfsck check' of the new file".to_owned(),
    ];
    source.rests_on.clone_from(&ids);
    source.pages = pages.iter().copied().collect();
    steps.push(source);
    match &search.usable {
        Some(usable) => {
            let files = usable.files();
            let mut older =
                Step::new(Action::RestoreDatabase, "If the database itself is damaged or gone, restore another backup");
            let finished = usable.finished().unwrap_or("an unknown time");
            older.reason = format!(
                "The backups below end at {finished}. Of the given backups, they are the newest with complete labels{}.",
                if usable.copies == 0 { "" } else { " and sound copies of the damaged pages" }
            );
            older.risk =
                "Only the backup's copies of the damaged pages were read: check the whole backup first.".to_owned();
            based_on(usable, &mut older);
            let arguments: Vec<String> = files.iter().map(|file| crate::repairs::argument(file)).collect();
            older.command = Some(format!("mdfsck check {}", arguments.join(" ")));
            older.cannot_restore = Some(format!("Changes after {finished}."));
            let quoted = statements::database(name);
            let statements: Option<Vec<String>> = quoted.and_then(|quoted| {
                let mut sql: Vec<String> = vec![
                    "USE [master];".to_owned(),
                    "-- If a database of this name still exists, no statement runs and nothing is overwritten: back up the tail of\n\
                     -- its log first, or restore under another name, WITH MOVE for each file."
                        .to_owned(),
                    format!("IF DB_ID({}) IS NOT NULL SET NOEXEC ON;", script::quote_text(name)),
                ];
                for set in &usable.steps {
                    sql.push(statements::restore(&quoted, set)?);
                }
                sql.extend([format!("RESTORE DATABASE {quoted} WITH RECOVERY;"), check_again(name)]);
                Some(stopping_on_errors(sql))
            });
            older.sql = statements.unwrap_or(vec![BY_HAND.to_owned()]);
            older.pages = pages.iter().copied().collect();
            older.rests_on.clone_from(&ids);
            steps.push(older);
        }
        None => {
            let mut look = Step::new(Action::Inspect, "Find an older backup that is clean");
            look.reason = match (request.backups, search.has_any) {
                (None, _) => "No other backups were given (--backups DIR).".to_owned(),
                (Some(_), false) => "The given backups are of other databases, or are this backup.".to_owned(),
                (Some(_), true) => "None of the given backups has sound copies of these pages.".to_owned(),
            };
            look.risk = "None: nothing is changed.".to_owned();
            look.command = Some(format!("mdfsck advise {} --backups DIR", request.paths));
            look.rests_on.clone_from(&ids);
            steps.push(look);
        }
    }
    steps.extend(inspect);
    let sentence = match is_container && pages.is_empty() {
        true => format!("This backup of {name} is damaged; a backup cannot be repaired."),
        false => format!("This backup holds a damaged copy of {name}; a backup cannot be repaired."),
    };
    let rejected = search.rejected.into_iter().map(|rejected| (rejected.set, rejected.why)).collect();
    Plan { situation: Situation::OfBackup, sentence, patterns: Vec::new(), steps, losses: Vec::new(), rejected }
}
