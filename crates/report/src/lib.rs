//! Output for people and programs: formats of a [`findings::Report`], and listings of the catalog and the registry.
//!
//! Every format writes to any `io::Write` and makes no decisions about findings. The order and the wording are those of
//! DBCC; the modules `listing` and `message` define them.

// The data may be damaged, so no index read from it may be assumed to be valid.
#![warn(clippy::indexing_slicing)]

pub mod advise;
mod amounts;
pub mod audit;
pub mod backups;
pub mod by_change;
mod causes;
pub mod chains;
pub mod check_page;
pub mod checkpoints;
pub mod columns;
pub mod comparison;
pub mod config;
pub mod databases;
mod dbcc_rows;
mod dbcc_run;
pub mod dbinfo;
pub mod directory;
pub mod errorlog;
pub mod estimate;
pub mod events;
pub mod explain;
pub mod export;
mod heading;
pub mod history;
pub mod history_page;
pub mod html;
pub mod info;
pub mod json;
pub mod limits;
pub mod lint;
mod listing;
pub mod log;
pub mod log_rows;
mod log_text;
mod message;
pub mod not_verified;
pub mod page_dump;
pub mod parity;
pub mod parts;
pub mod pasted;
mod patterns;
pub mod server_messages;
mod server_text;
pub mod statistics;
pub mod summary;
pub mod table_statistics;
pub mod tableresults;
pub mod tables;
pub mod text;
mod text_alloc;
mod text_constraints;
mod text_table;
pub mod watch;
pub mod windows;

use std::borrow::Cow;
use std::io;

use findings::{Finding, Group, Report};

pub use dbcc_run::gave_up;
pub use message::identity_behind;
pub use tableresults::Columns;
pub use text_table::{printable, steers};

/// The way a report is shown. It never changes the counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Leave out informational messages, as WITH NO_INFOMSGS does.
    pub no_infomsgs: bool,
    /// Leave out the list of what was not verified, because the caller writes this list elsewhere.
    pub findings_only: bool,
    /// Show at most this many findings; `None` for no limit.
    pub max_findings: Option<usize>,
    /// The options that came from files, as they would be typed, each with its file.
    pub defaults: &'static [String],
}

/// The formats of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// DBCC's own lines.
    Text,
    /// One JSON object per line.
    Json,
    /// CSV with the columns of WITH TABLERESULTS.
    TableResults(Columns),
}

/// Writes `report` to `out`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(format: Format, report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    match format {
        Format::Text => text::write(report, view, out),
        Format::Json => json::write(report, view, out),
        Format::TableResults(columns) => tableresults::write(columns, report, view, out),
    }
}

/// Writes the list of what was not verified, and the notes, as at the end of a text report.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_not_verified(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    not_verified::write(report, view, out)
}

/// The patterns in the damaged pages, one line each, as at the start of a text report.
pub fn pattern_lines(report: &Report) -> impl Iterator<Item = String> + '_ {
    report.patterns.iter().map(|pattern| format!("Pattern: {}", patterns::line(pattern)))
}

/// Lets the first findings pass, up to the limit of a [`View`], and counts the findings that it holds back.
struct Gate {
    left: usize,
    hidden: usize,
}

impl Gate {
    fn new(view: View) -> Self {
        Self { left: view.max_findings.unwrap_or(usize::MAX), hidden: 0 }
    }

    /// The findings of the next group that are still within the limit.
    fn pass<'a>(&mut self, report: &'a Report, group: &Group) -> impl Iterator<Item = Cow<'a, Finding>> + use<'a> {
        let shown = self.left.min(group.len());
        self.left -= shown;
        self.hidden += group.len() - shown;
        report.findings.of(group).take(shown)
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
