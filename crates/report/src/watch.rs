//! The output of `mdfsck watch`: a line per backup.

use std::io;

use history::outbox::{Event, Raised};
use history::queue::Item;

use crate::json::watch::{WatchAlarm, WatchLine, WatchSummary, Watched};
use crate::json::{VERSION, line};
use crate::text_table::{padded, printable};

/// The status of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The check found no errors and verified everything.
    Sound,
    /// The check found corruption.
    Corrupt,
    /// The backup could not be fully verified, could not be read, or is still incomplete after `--patience`.
    Unknown,
    /// The backup was skipped.
    Skipped,
    /// The backup is not complete yet. It may still be completed in time.
    Waiting,
}

impl Status {
    /// The status of an item in the queue.
    pub fn of(item: &Item) -> Self {
        match (item.state.as_str(), item.verdict.as_deref()) {
            ("skipped", None) => Self::Skipped,
            ("done", Some("sound")) => Self::Sound,
            ("done", Some("corrupt")) => Self::Corrupt,
            _ => Self::Unknown,
        }
    }

    /// The status as a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Corrupt => "corrupt",
            Self::Unknown => "unknown",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
        }
    }
}

/// The format of the lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchFormat {
    /// Text in aligned columns, for people.
    Text,
    /// A JSON object per line.
    Json,
    /// CSV, with a heading.
    Csv,
}

/// The names of the CSV columns.
const COLUMNS: [&str; 10] =
    ["Server", "Database", "Backup", "Type", "Start", "End", "Status", "Findings", "NotVerified", "Message"];

/// Writes the heading before all lines.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_heading(format: WatchFormat, out: &mut dyn io::Write) -> io::Result<()> {
    if format != WatchFormat::Csv {
        return Ok(());
    }
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(COLUMNS)?;
    csv.flush()
}

/// Writes the line of a backup with this status.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(item: &Item, status: Status, format: WatchFormat, out: &mut dyn io::Write) -> io::Result<()> {
    let found = &item.found;
    match format {
        WatchFormat::Json => {
            let watched = Watched {
                v: VERSION,
                server: &found.server,
                database: &found.name,
                family: &found.family,
                paths: &found.paths,
                position: found.position,
                r#type: found.kind.name(),
                taken_at: found.taken_at.as_deref(),
                started: item.started.as_deref(),
                ended: item.ended.as_deref(),
                status: status.name(),
                state: &item.state,
                findings: item.findings,
                not_verified: item.not_verified,
                message: &item.reason,
                run: item.run,
            };
            line(&WatchLine::Watched(watched), out)
        }
        WatchFormat::Csv => {
            let mut csv = csv::Writer::from_writer(out);
            csv.write_record([
                &found.server,
                &found.name,
                &found.paths.join(";"),
                found.kind.name(),
                item.started.as_deref().unwrap_or_default(),
                item.ended.as_deref().unwrap_or_default(),
                status.name(),
                &item.findings.to_string(),
                &item.not_verified.to_string(),
                &item.reason,
            ])?;
            csv.flush()
        }
        WatchFormat::Text => {
            let status = match status {
                Status::Corrupt => "CORRUPT",
                status => status.name(),
            };
            let name = if found.name.is_empty() { "?" } else { found.name.as_str() };
            let taken_at = found.taken_at.as_deref().unwrap_or("-");
            let columns = [(status, 7), (name, 20), (found.kind.name(), 12), (taken_at, 20)];
            let columns: Vec<String> = columns.iter().map(|(text, width)| padded(&printable(text), *width)).collect();
            let mut text = format!("{}  {}", columns.join("  "), printable(&found.paths.join(", ")));
            let counted = match (item.findings, item.not_verified) {
                (0, _) => String::new(),
                (1, _) => "1 finding; ".to_owned(),
                (findings, _) => format!("{findings} findings; "),
            };
            if !item.reason.is_empty() {
                // The line already shows the path, so the path is removed from the start of the reason.
                let path = format!("{}: ", found.paths.join(", "));
                let reason = item.reason.strip_prefix(&path).unwrap_or(&item.reason);
                text.push_str(&format!(": {counted}{}", printable(reason)));
            }
            writeln!(out, "{}", text.trim_end())
        }
    }
}

/// Writes a line when an alarm begins or ends. An alarm reports that a promise about backups or checks is broken.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_alarm(event: Event, raised: &Raised, format: WatchFormat, out: &mut dyn io::Write) -> io::Result<()> {
    match format {
        WatchFormat::Json => {
            let Raised { family, name, text, .. } = raised;
            line(&WatchLine::Alarm(WatchAlarm { v: VERSION, event: event.name(), database: name, family, text }), out)
        }
        WatchFormat::Csv => {
            let mut csv = csv::Writer::from_writer(out);
            let text = format!("{}: {}", event.name(), raised.text);
            csv.write_record(["", &raised.name, "", "", "", "", "unknown", "0", "0", &text])?;
            csv.flush()
        }
        WatchFormat::Text => {
            let (name, text) = (padded(&printable(&raised.name), 20), printable(&raised.text));
            writeln!(out, "{}  {name}  {}: {text}", padded("unknown", 7), words(event))
        }
    }
}

/// The event in words.
fn words(event: Event) -> String {
    match event {
        Event::BackupMissing => "backup overdue".to_owned(),
        event => event.name().replace('-', " "),
    }
}

/// Counts of lines by status, and of the remaining backups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Backups that are sound.
    pub sound: u64,
    /// Backups with corruption.
    pub corrupt: u64,
    /// Backups with the status `unknown`.
    pub unknown: u64,
    /// Backups that were skipped.
    pub skipped: u64,
    /// Backups that are not complete yet.
    pub waiting: u64,
    /// Backups to be checked later.
    pub ready: u64,
}

impl Counts {
    /// Counts a line with this status.
    pub fn add(&mut self, status: Status) {
        match status {
            Status::Sound => self.sound += 1,
            Status::Corrupt => self.corrupt += 1,
            Status::Unknown => self.unknown += 1,
            Status::Skipped => self.skipped += 1,
            Status::Waiting => self.waiting += 1,
        }
    }
}

/// Writes the counts after all lines.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_counts(counts: Counts, exit_status: u8, format: WatchFormat, out: &mut dyn io::Write) -> io::Result<()> {
    let Counts { sound, corrupt, unknown, skipped, waiting, ready } = counts;
    match format {
        WatchFormat::Csv => Ok(()),
        WatchFormat::Json => {
            let summary = WatchSummary { v: VERSION, sound, corrupt, unknown, skipped, waiting, ready, exit_status };
            line(&WatchLine::WatchSummary(summary), out)
        }
        WatchFormat::Text => {
            let mut text = format!("{sound} sound, {corrupt} corrupt, {unknown} unknown, {skipped} skipped");
            for (count, what) in [(waiting, "not complete yet"), (ready, "to be checked later")] {
                if count > 0 {
                    text.push_str(&format!("; {count} {what}"));
                }
            }
            writeln!(out, "{text}")
        }
    }
}
