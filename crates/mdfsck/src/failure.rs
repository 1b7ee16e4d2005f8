//! Why a command failed, and the exit status that says so.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use source::ReadFaults;

use crate::progress;

/// Ends a command: one line for stderr and a status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u8,
    pub(crate) text: String,
}

impl Failure {
    /// Corruption was found.
    pub(crate) const CORRUPT: u8 = 1;
    /// It could not open, read or write something.
    pub(crate) const UNABLE: u8 = 4;
    /// It was called incorrectly.
    pub(crate) const USAGE: u8 = 8;
    /// Something that was requested was not verified.
    pub(crate) const INCOMPLETE: u8 = 16;

    /// It was called incorrectly.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { status: Self::USAGE, text: text.to_string() }
    }

    /// What it was to write is there already.
    pub(crate) fn exists(path: &Path) -> Self {
        Self::exists_as(path, "folder")
    }

    /// The file that it was to write is there already.
    pub(crate) fn file_exists(path: &Path) -> Self {
        Self::exists_as(path, "file")
    }

    fn exists_as(path: &Path, what: &str) -> Self {
        Self::usage(format!("{}: exists and will not be overwritten; name another {what}", path.display()))
    }

    /// The reader of its output is gone, so there is nothing to report.
    pub(crate) fn quiet() -> Self {
        Self { status: Self::UNABLE, text: String::new() }
    }

    /// Reports the reason on stderr, if there is one; returns the status.
    pub(crate) fn report(self) -> u8 {
        if !self.text.is_empty() {
            warn(&self.text);
        }
        self.status
    }

    /// It could not open, read or write something.
    pub(crate) fn unable(text: impl Display) -> Self {
        Self { status: Self::UNABLE, text: text.to_string() }
    }
}

impl From<source::OpenError> for Failure {
    fn from(error: source::OpenError) -> Self {
        match error {
            source::OpenError::StandardInput(_)
            | source::OpenError::Pipe { .. }
            | source::OpenError::Nothing
            | source::OpenError::EndsLater { .. }
            | source::OpenError::SeveralDatabases { .. }
            | source::OpenError::BackupTooLarge { granted: Some(_), .. } => Self::usage(error),
            _ => Self::unable(error),
        }
    }
}

impl From<log::LogError> for Failure {
    fn from(error: log::LogError) -> Self {
        match error {
            log::LogError::Nothing | log::LogError::SameFile { .. } | log::LogError::OtherDatabase { .. } => {
                Self::usage(error)
            }
            _ => Self::unable(error),
        }
    }
}

/// Reports failed reads, one line per file; returns the status for them.
pub(crate) fn report_read_faults(faults: &ReadFaults) -> u8 {
    faults.healed.iter().for_each(warn);
    faults.failed.iter().for_each(|failed| warn(&failed.text));
    if faults.failed.is_empty() { 0 } else { Failure::UNABLE }
}

/// Writes one line to stderr. A failure of that cannot be reported anywhere.
pub(crate) fn warn(text: impl Display) {
    let line: String = text.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    progress::without_bar(|| _ = writeln!(io::stderr(), "mdfsck: {line}"));
}
