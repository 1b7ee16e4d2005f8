//! The format and the destinations of the results of a check.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use findings::registry::limits::Limit;
use history::queue::Watched;
use report::{Columns, Format};

/// The format and the destinations of the results.
#[derive(Clone, Default)]
pub struct ResultOptions {
    /// Whether the cost of each phase is reported on stderr.
    pub stats: bool,
    /// The format that was asked for.
    pub choice: FormatChoice,
    /// Whether informational messages are left out.
    pub no_infomsgs: bool,
    /// The file for the results; `None` or `-` for stdout.
    pub output: Option<PathBuf>,
    /// The file that receives message 8957; `-` for stderr.
    pub errorlog_line: Option<PathBuf>,
    /// Whether message 8957 is sent to the log of this machine.
    pub log: bool,
    /// The maximum number of findings that are shown; `None` for all, or for the default of a summary.
    pub max_findings: Option<usize>,
    /// The limits that the user accepts.
    pub allow: Vec<&'static Limit>,
    /// Whether bit 16 (incomplete) is left out of the exit status.
    pub exit_zero_on_incomplete: bool,
    /// The history in which the run is recorded.
    pub history: Option<PathBuf>,
    /// How the history identifies the database.
    pub naming: NamingOptions,
    /// The file for the HTML page.
    pub html: Option<PathBuf>,
    /// The program that receives events.
    pub listener: ListenerOptions,
    /// The backup in the queue of `mdfsck watch` that this run checks.
    pub watched: Option<Arc<dyn Watch>>,
}

/// A backup in the queue of a watcher, for the run that checks it.
pub trait Watch: Send + Sync {
    /// The claim on the backup, and what makes its verdict doubtful, as the history records them.
    fn watched(&self) -> Watched<'_>;

    /// Whether the files are unchanged since the check began. If there are findings, first waits until the files must
    /// be complete, so that no finding is caused by a file that was still being written.
    fn stands(&self, has_findings: bool) -> bool;
}

/// The format of the results that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum FormatChoice {
    /// None: a summary on a terminal, otherwise text.
    #[default]
    Default,
    /// A summary for people.
    Summary,
    /// The lines of DBCC.
    Text,
    /// JSON lines.
    Json,
    /// CSV with the columns of WITH TABLERESULTS.
    TableResults(Columns),
}

impl ResultOptions {
    /// The format of the results. A summary counts as text.
    pub fn format(&self) -> Format {
        match self.choice {
            FormatChoice::Default | FormatChoice::Summary | FormatChoice::Text => Format::Text,
            FormatChoice::Json => Format::Json,
            FormatChoice::TableResults(columns) => Format::TableResults(columns),
        }
    }

    /// Whether the results contain only findings and their counts. Scripts that parse DBCC's lines expect this: DBCC
    /// has no lines for parts that could not be verified.
    pub fn are_findings_only(&self) -> bool {
        self.no_infomsgs && self.choice == FormatChoice::Default
    }

    /// Whether to print a summary: a summary was requested, or no format was requested and stdout is a terminal.
    pub fn wants_summary(&self, is_terminal: bool) -> bool {
        match self.choice {
            FormatChoice::Summary => true,
            FormatChoice::Default => is_terminal && !self.no_infomsgs && self.output.is_none(),
            _ => false,
        }
    }
}

/// How a history identifies a database.
#[derive(Clone, Debug, Default)]
pub struct NamingOptions {
    /// The server under which data files are recorded; `None` for this machine.
    pub server: Option<String>,
    /// Whether all databases with the same family GUID are one database.
    pub replicas: bool,
}

/// The program that receives the events.
#[derive(Clone, Default)]
pub struct ListenerOptions {
    /// The program; `None` if no program receives events.
    pub on_event: Option<PathBuf>,
    /// The arguments of the program.
    pub event_argument: Vec<OsString>,
    /// The time limit of the program in seconds; `None` for the default.
    pub event_seconds: Option<u64>,
}

impl ListenerOptions {
    /// The time limit of the program.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.event_seconds.unwrap_or(60))
    }

    /// Whether there is a program.
    pub fn is_there(&self) -> bool {
        self.on_event.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_60_seconds() {
        assert_eq!(ListenerOptions::default().limit(), Duration::from_secs(60));
    }
}
