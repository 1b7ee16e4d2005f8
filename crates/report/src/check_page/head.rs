//! The head of a page: the verdict, figures, the scope and options of the check, and the commands that show more.

use std::collections::BTreeSet;

use ::findings::Report;
use format::PAGE_BYTES;
use serde::Serialize;

use super::CheckPage;
use crate::amounts::{counted, duration, grouped};
use crate::html::{shown, shown_to};
use crate::summary::findings;
use crate::summary::head::{level, next_commands, origin, scope, status_text, verdict};
use crate::summary::lines::Tone;
use crate::summary::not_verified;
use crate::{by_change, message};

/// Maximum number of lines in each list of remarks, and maximum number of files that are listed.
const MOST_LINES: usize = 100;
/// Maximum number of characters of the command line.
const COMMAND_CHARS: usize = 4000;

#[derive(Serialize)]
pub(super) struct Head<'a> {
    name: String,
    origin: String,
    scope: Option<String>,
    /// The tone of the verdict: `good`, `bad` or `doubtful`.
    tone: &'static str,
    word: &'static str,
    verdict: String,
    cards: Vec<Card>,
    /// Warnings about the input, which the user must know before reading the results.
    warnings: Vec<String>,
    facts: Vec<(&'static str, String)>,
    version: &'a str,
    started: &'a str,
}

/// A figure that the head shows, with its label and a detail.
#[derive(Serialize)]
struct Card {
    what: &'static str,
    value: String,
    detail: String,
}

/// A command, and its purpose.
#[derive(Serialize)]
pub(super) struct Command {
    command: String,
    what_for: &'static str,
}

/// The cost of a phase.
#[derive(Serialize)]
pub(super) struct Phase {
    name: &'static str,
    seconds: f64,
    megabytes: f64,
    cpu_seconds: Option<f64>,
    spilled_megabytes: f64,
}

pub(super) fn head<'a>(page: &CheckPage<'a>) -> Head<'a> {
    let report = page.report;
    let (tone, word, verdict) = verdict(report);
    let warnings = report.warnings.iter().map(|warning| &warning.text);
    let change = by_change::lines(report);
    let remarks = warnings.chain(&report.read_errors).chain(&report.notices).chain(&change).take(MOST_LINES);
    Head {
        name: shown(&report.database.name),
        origin: shown(&origin(report)),
        scope: scope(report),
        tone: match tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Doubtful => "doubtful",
        },
        word,
        verdict,
        cards: cards(report),
        warnings: remarks.map(|text| shown(text)).collect(),
        facts: facts(page),
        version: page.version,
        started: page.started,
    }
}

fn cards(report: &Report) -> Vec<Card> {
    let statistics = &report.statistics;
    let mut cards = Vec::new();
    let mut card = |what, value: String, detail: String| cards.push(Card { what, value, detail });
    if !report.findings.is_empty() {
        card("Minimum repair level", level(report).to_owned(), String::new());
    }
    let pages = statistics.pages_read;
    let bytes = pages as f64 * PAGE_BYTES as f64;
    let rate = bytes / statistics.seconds.max(1e-9);
    card("Pages read", grouped(pages), size(bytes));
    if !report.rowsets.is_empty() {
        let tables: BTreeSet<i32> =
            report.rowsets.iter().filter(|rowset| rowset.type_code == "U").map(|rowset| rowset.object_id).collect();
        let tables = counted(tables.len() as u64, "table", "tables");
        card("Rows", grouped(statistics.rows), format!("in {tables}"));
    }
    card("Not verified", grouped(report.not_verified.len() as u64), "of the requested things".to_owned());
    card("Time", duration(statistics.seconds), format!("{} per second", size(rate)));
    cards
}

/// A number of bytes in a readable unit.
fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e12 => format!("{:.2} TB", bytes / 1e12),
        bytes if bytes >= 1e9 => format!("{:.2} GB", bytes / 1e9),
        bytes => format!("{:.1} MB", bytes / 1e6),
    }
}

fn facts(page: &CheckPage<'_>) -> Vec<(&'static str, String)> {
    let report = page.report;
    let statistics = &report.statistics;
    let megabytes = |bytes: u64| format!("{} MB", grouped(bytes >> 20));
    let mut facts = vec![
        ("Command", shown_to(page.command_line, COMMAND_CHARS)),
        ("Exit status", if page.commands.status == 0 { "0".to_owned() } else { status_text(page.commands.status) }),
        ("Started", format!("{} UTC", page.started)),
        ("Took", duration(statistics.seconds)),
        ("Threads", statistics.threads.to_string()),
        (
            "Memory",
            match statistics.memory_peak {
                Some(peak) => {
                    format!("{} at most, {} granted", megabytes(peak), megabytes(statistics.memory_granted))
                }
                None => format!("{} granted", megabytes(statistics.memory_granted)),
            },
        ),
        ("Temporary files", megabytes(statistics.spilled_bytes)),
    ];
    let files = &report.database.files;
    for file in files.iter().take(MOST_LINES) {
        let bytes = f64::from(file.pages) * PAGE_BYTES as f64;
        let (id, pages) = (file.file_id, grouped(file.pages.into()));
        let path = shown(&file.path.to_string_lossy());
        facts.push(("File", format!("{id}: {path}, {pages} pages, {}", size(bytes))));
    }
    if files.len() > MOST_LINES {
        facts.push(("File", format!("and {} more", files.len() - MOST_LINES)));
    }
    for set in report.database.sets.iter().take(MOST_LINES) {
        let paths: Vec<String> = set.paths.iter().map(|path| shown(&path.to_string_lossy())).collect();
        let finished = set.finished.as_ref().map_or_else(String::new, |finished| format!(", finished {finished}"));
        facts.push((
            "Backup set",
            shown_to(&format!("{} of {}{finished}", set.position, paths.join(", ")), COMMAND_CHARS),
        ));
    }
    if let Some(constraints) = message::constraints(report) {
        facts.push(("Constraints", shown(&constraints)));
    }
    for identity in report.beyond.identities.iter().filter(|result| result.is_behind()).take(MOST_LINES) {
        facts.push(("Identity", shown(&message::identity_behind(identity))));
    }
    facts.push(("mdfsck", page.version.to_owned()));
    facts
}

/// The commands to run next: the commands of the terminal's summary, then a command that explains one of the things
/// that were not verified.
pub(super) fn commands(page: &CheckPage<'_>) -> Vec<Command> {
    let report = page.report;
    let (example, limit) = (findings::example(report), not_verified::first_limit(report));
    let mut commands = match page.commands.status {
        0 => Vec::new(),
        _ => next_commands(report, page.commands, (example.as_ref(), limit)),
    };
    if let Some(limit) = limit.filter(|_| page.commands.status == 0 || example.is_some()) {
        commands.push((format!("mdfsck explain {}", limit.id), "why something was not verified"));
    }
    let shown = |(command, what_for): (String, _)| Command { command: shown_to(&command, COMMAND_CHARS), what_for };
    commands.into_iter().map(shown).collect()
}

/// The cost of each phase.
pub(super) fn phases(report: &Report) -> Vec<Phase> {
    let phase = |phase: &::findings::PhaseStatistics| Phase {
        name: ::findings::phase_words(phase.name),
        seconds: phase.seconds,
        megabytes: phase.bytes as f64 / 1e6,
        cpu_seconds: phase.cpu_user_seconds.zip(phase.cpu_system_seconds).map(|(user, system)| user + system),
        spilled_megabytes: phase.spilled_bytes as f64 / 1e6,
    };
    report.statistics.phases.iter().map(phase).collect()
}
