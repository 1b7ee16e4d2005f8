//! The beginning and the end of a summary: what was checked, the verdict, the repair level, and the commands that show
//! more.

use std::collections::BTreeSet;
use std::io;

use findings::registry::Check;
use findings::registry::limits::Limit;
use findings::{Finding, RecoveryState, Report, Scope, TAIL_BYTES};
use format::{PageId, version};

use super::Commands;
use super::lines::{Lines, Tone};
use crate::amounts::{counted, duration, grouped};
use crate::text_table::width;
use crate::{by_change, message, patterns};

/// Maximum width of a database name, in columns. A wider name is written on a line of its own.
const MOST_NAME_COLUMNS: usize = 20;

/// Writes the name and origin of the database, the amount that was checked, and the verdict.
pub(super) fn write(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    let name = report.database.name.as_str();
    match width(name) <= MOST_NAME_COLUMNS {
        true => lines.paragraph(&format!("{name}   "), &origin(report))?,
        false => {
            lines.paragraph("", name)?;
            lines.paragraph("  ", &origin(report))?;
        }
    }
    lines.paragraph("  ", &amount(report))?;
    if let Some(scope) = scope(report) {
        lines.paragraph("  ", &scope)?;
    }
    for warning in report.warnings.iter().filter(|warning| warning.id == TAIL_BYTES) {
        lines.paragraph("  ", &warning.text)?;
    }
    for line in by_change::lines(report) {
        lines.paragraph("  ", &line)?;
    }
    lines.blank()?;
    let (tone, word, text) = verdict(report);
    lines.toned(Some(tone), &format!("{word}   "), &text)
}

/// Writes the patterns in the damaged pages.
pub(super) fn write_patterns(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    if report.patterns.is_empty() {
        return Ok(());
    }
    lines.blank()?;
    report.patterns.iter().try_for_each(|pattern| lines.paragraph("Pattern   ", &patterns::line(pattern)))
}

/// A description of the database's origin: its release, backup and recovery.
pub(crate) fn origin(report: &Report) -> String {
    let database = &report.database;
    let mut parts = Vec::new();
    parts.push(match version::product(database.version) {
        Some(product) => product.to_owned(),
        None if database.version == 0 => "version unknown".to_owned(),
        None => format!("database version {}", database.version),
    });
    if let Some(backup) = &database.backup {
        let finished = backup.finished.as_ref().map(|finished| format!(" of {finished}")).unwrap_or_default();
        let kind = match (backup.kind, database.sets.len()) {
            ("Database", _) => "full backup",
            ("Database Differential", _) => "differential backup over its full backup",
            ("Partial", ..=1) => "partial backup",
            (_, ..=1) => "file or filegroup backup",
            _ => "several file or filegroup backups, the newest",
        };
        parts.push(format!("{kind}{finished}, set {}", backup.set));
    }
    let is_recovered = report
        .options
        .recovery
        .as_ref()
        .is_some_and(|recovery| matches!(recovery.state, RecoveryState::Done | RecoveryState::Partial));
    match (is_recovered, database.clean_shutdown, &database.backup) {
        (true, ..) => parts.push("recovered in memory from its log".to_owned()),
        (false, Some(true), None) => parts.push("shut down cleanly".to_owned()),
        (false, Some(false), None) => parts.push("not shut down cleanly".to_owned()),
        (false, ..) => {}
    }
    parts.join(", ")
}

/// The number of tables, rows and pages that were checked, and the duration.
fn amount(report: &Report) -> String {
    let statistics = &report.statistics;
    let tables: BTreeSet<i32> =
        report.rowsets.iter().filter(|rowset| rowset.type_code == "U").map(|rowset| rowset.object_id).collect();
    let pages = counted(statistics.pages_read, "page", "pages");
    let time = duration(statistics.seconds);
    match report.rowsets.is_empty() {
        true => format!("{pages} in {time}"),
        false => format!(
            "{}, {}, {pages} in {time}",
            counted(tables.len() as u64, "table", "tables"),
            counted(statistics.rows, "row", "rows"),
        ),
    }
}

/// A description of the scope of the check, if options limit this scope.
pub(crate) fn scope(report: &Report) -> Option<String> {
    let options = &report.options;
    let command = (options.scope != Scope::Database).then(|| options.scope.command());
    let parts = [
        command,
        options.physical_only.then_some("PHYSICAL_ONLY: pages and allocation only"),
        (options.no_index && !options.physical_only).then_some("NOINDEX: without nonclustered indexes"),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("as requested: {}", parts.join(", ")))
}

pub(crate) fn verdict(report: &Report) -> (Tone, &'static str, String) {
    let counts = report.counts();
    let has_failed = !report.read_errors.is_empty();
    let failed = if has_failed { "; files could not be read completely" } else { "" };
    if report.findings.is_empty() {
        let not_verified = report.not_verified.iter().filter(|entry| !report.is_allowed(entry.limit)).count() as u64;
        let allowed = report.not_verified.len() as u64 - not_verified;
        return match (not_verified, allowed) {
            (0, 0) if !has_failed => {
                (Tone::Good, "SOUND", "no errors; everything that was asked for was verified".to_owned())
            }
            (0, 1..) if !has_failed => {
                let allowed = counted(allowed, "thing that", "things that");
                (Tone::Good, "SOUND", format!("no errors; not verified: {allowed} --allow accepts"))
            }
            (0, _) => {
                let text = "no errors found, but files could not be read completely";
                (Tone::Doubtful, "INCOMPLETE", text.to_owned())
            }
            (things, _) => {
                let things = counted(things, "thing", "things");
                (Tone::Doubtful, "INCOMPLETE", format!("no errors found, but {things} could not be verified{failed}"))
            }
        };
    }
    let tables = report.findings.groups().iter().filter_map(|group| group.object_id).collect::<BTreeSet<_>>().len();
    let is_of_all = report.findings.groups().iter().all(|group| group.object_id.is_some());
    let tables = match tables {
        0 => String::new(),
        tables if !is_of_all => {
            format!(" in {} and outside of objects", counted(tables as u64, "object", "objects"))
        }
        tables => format!(" in {}", counted(tables as u64, "object", "objects")),
    };
    let errors = match (counts.allocation, counts.consistency) {
        (0, 0) => counted(report.findings.len() as u64, "error", "errors"),
        (0, errors) => counted(errors, "consistency error", "consistency errors"),
        (errors, 0) => counted(errors, "allocation error", "allocation errors"),
        (allocation, consistency) => format!(
            "{} and {}",
            counted(allocation, "allocation error", "allocation errors"),
            counted(consistency, "consistency error", "consistency errors")
        ),
    };
    (Tone::Bad, "NOT SOUND", format!("{errors}{tables}{failed}"))
}

/// Writes the results of requested checks that CHECKDB does not perform.
pub(super) fn write_beyond(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    let identities = &report.beyond.identities;
    let behind: Vec<String> =
        identities.iter().filter(|result| result.is_behind()).map(message::identity_behind).collect();
    let constraints = message::constraints(report);
    if constraints.is_some() || !identities.is_empty() {
        lines.blank()?;
    }
    if let Some(constraints) = constraints {
        lines.paragraph("Constraints   ", &constraints)?;
    }
    for text in &behind {
        lines.paragraph("Identity      ", text)?;
    }
    if let (false, true) = (identities.is_empty(), behind.is_empty()) {
        let columns = counted(identities.len() as u64, "column", "columns");
        lines.paragraph("Identity      ", &format!("{columns}; no value in the rows is beyond the current value"))?;
    }
    if !report.notes.is_empty() {
        lines.blank()?;
        let notes = counted(report.notes.len() as u64, "note, which is not an error", "notes, which are not errors");
        lines.paragraph("", &format!("{notes} (--format text lists them)"))?;
    }
    Ok(())
}

/// Writes the repair level, the exit status and the commands. `example` is the finding to explain.
pub(super) fn write_end(
    report: &Report,
    commands: Commands<'_>,
    (example, limit): (Option<&Finding>, Option<&Limit>),
    lines: &mut Lines<'_>,
) -> io::Result<()> {
    let status = commands.status;
    if !report.findings.is_empty() {
        lines.blank()?;
        lines.paragraph("Minimum repair level   ", level(report))?;
    }
    if status == 0 {
        return Ok(());
    }
    if report.findings.is_empty() {
        lines.blank()?;
    }
    lines.paragraph("Exit status            ", &status_text(status))?;
    lines.blank()?;
    for (command, what_for) in next_commands(report, commands, (example, limit)) {
        lines.command(&command, what_for)?;
    }
    Ok(())
}

/// The commands to run next, each with its purpose. The terminal and the HTML page show the same commands.
pub(crate) fn next_commands(
    report: &Report,
    commands: Commands<'_>,
    (example, limit): (Option<&Finding>, Option<&Limit>),
) -> Vec<(String, &'static str)> {
    let Commands { paths, command, arguments, .. } = commands;
    let mut next = Vec::new();
    if let Some(Check { msg, .. }) = example.map(|finding| finding.check) {
        next.push((format!("mdfsck explain {msg}"), "what it means"));
    } else if let Some(limit) = limit {
        next.push((format!("mdfsck explain {}", limit.id), "what it means"));
    }
    let is_inside = |page: &PageId| {
        let files = &report.database.files;
        !page.is_none()
            && (files.is_empty() || files.iter().any(|file| file.file_id == page.file && page.page < file.pages))
    };
    let pages = example.map(|finding| [finding.page, finding.ref_page]).into_iter().flatten().flatten();
    let page = pages.into_iter().find(is_inside).filter(|_| !is_pipe(paths));
    if let Some(page) = page {
        next.push((format!("mdfsck page {}:{} {paths}", page.file, page.page), "the page"));
    }
    if !report.findings.is_empty() && !is_pipe(paths) && !is_carved(paths) {
        next.push((format!("mdfsck advise {paths}"), "what to do, in order"));
    }
    next.push((format!("mdfsck {command} --format text {arguments}"), "all of DBCC's lines"));
    next
}

/// The minimum repair level of a report with findings.
pub(crate) fn level(report: &Report) -> &'static str {
    match (report.repair().name(), &report.database.backup) {
        (_, Some(_)) => "none: a backup cannot be repaired",
        (Some(level), None) => level,
        (None, None) => "none: these errors cannot be repaired",
    }
}

/// Whether the backup came from standard input. If so, no other command can read the backup, so only the check is
/// suggested again.
fn is_pipe(paths: &str) -> bool {
    paths.split(' ').any(|path| path == "-")
}

/// Whether the paths are raw bytes. `advise` does not read them: nothing can be restored or repaired there.
fn is_carved(paths: &str) -> bool {
    paths.starts_with("--carve ")
}

/// The bits of an exit status in words.
pub(crate) fn status_text(status: u8) -> String {
    let bits = [(1, "corruption"), (4, "not all could be read or written"), (8, "usage"), (16, "not all verified")];
    let words: Vec<&str> = bits.into_iter().filter(|(bit, _)| status & bit != 0).map(|(_, word)| word).collect();
    format!("{} ({})", grouped(status.into()), words.join(", "))
}
