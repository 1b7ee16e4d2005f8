//! Failures, and the bits of the exit status of a program that reports them.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::path::Path;

use source::{CarveError, FileChange, PageSource, ReadFaults};

use crate::host::{self, warn};

/// A failure that ends a command. It has a line for stderr and an exit status.
#[derive(Debug)]
pub struct Failure {
    /// The bits of the exit status.
    pub status: u8,
    /// The reason, in one line; empty if there is nothing to say.
    pub text: String,
    /// Whether the command failed because its memory grant was too small.
    pub needs_memory: bool,
}

impl Failure {
    /// The check found corruption.
    pub const CORRUPT: u8 = 1;
    /// The command could not open, read or write a file or another resource.
    pub const UNABLE: u8 = 4;
    /// The command was called incorrectly.
    pub const USAGE: u8 = 8;
    /// A part of the requested work was not done or not verified.
    pub const INCOMPLETE: u8 = 16;
    /// Further tasks must run; only `mdfsck merge` uses this bit.
    pub const MORE: u8 = 32;

    /// Creates the failure of a command that was called incorrectly.
    pub fn usage(text: impl Display) -> Self {
        Self { status: Self::USAGE, text: text.to_string(), needs_memory: false }
    }

    /// Creates the failure of a command whose memory grant is too small.
    pub fn small_grant(text: impl Display) -> Self {
        Self { needs_memory: true, ..Self::usage(text) }
    }

    /// Creates the failure of a command that did only a part of the request.
    pub fn incomplete(text: impl Display) -> Self {
        Self { status: Self::INCOMPLETE, ..Self::usage(text) }
    }

    /// Creates the failure for an output file that exists already. The text asks the user to name another folder.
    pub fn exists(path: &Path) -> Self {
        Self::exists_as(path, "folder")
    }

    /// Creates the failure for an output file that exists already. The text asks the user to name another file.
    pub fn file_exists(path: &Path) -> Self {
        Self::exists_as(path, "file")
    }

    fn exists_as(path: &Path, what: &str) -> Self {
        Self::usage(format!("{}: exists and will not be overwritten; give another {what}", path.display()))
    }

    /// Creates the failure for a pattern that matches no file.
    pub fn unmatched(path: &Path) -> Self {
        Self::unable(format!("{}: nothing matches this pattern", path.display()))
    }

    /// Creates the failure of a merge that needs further tasks. It has no text, since the command has already printed
    /// which tasks to run.
    pub fn more() -> Self {
        Self { status: Self::MORE, text: String::new(), needs_memory: false }
    }

    /// A failure without a message: the reader of the output has closed the pipe.
    pub fn quiet() -> Self {
        Self { status: Self::UNABLE, text: String::new(), needs_memory: false }
    }

    /// Writes the reason to stderr, if there is one. Returns the exit status.
    pub fn report(self) -> u8 {
        if !self.text.is_empty() {
            warn(&self.text);
        }
        self.status
    }

    /// Creates the failure of a command that could not open, read or write a file or another resource.
    pub fn unable(text: impl Display) -> Self {
        Self { status: Self::UNABLE, text: text.to_string(), needs_memory: false }
    }
}

impl From<source::OpenError> for Failure {
    fn from(error: source::OpenError) -> Self {
        match error {
            source::OpenError::SeveralDatabases { ref example, .. } => {
                let command = host::command().replace("page", "page F:P");
                let example = source::arguments(example);
                Self::usage(format!("{error}; give the files of one database, for example: mdfsck {command} {example}"))
            }
            source::OpenError::StandardInput(_)
            | source::OpenError::Pipe { .. }
            | source::OpenError::Nothing
            | source::OpenError::EndsLater { .. }
            | source::OpenError::NoSuchSet { .. }
            | source::OpenError::SnapshotIncomplete { .. }
            | source::OpenError::SameFileId { .. } => Self::usage(error),
            source::OpenError::BackupTooLarge { granted: Some(_), .. }
            | source::OpenError::Carve(CarveError::TooLarge { is_granted: true, .. }) => Self::small_grant(error),
            source::OpenError::Carve(CarveError::NotAnImage { .. } | CarveError::TooMany { .. }) => Self::usage(error),
            source::OpenError::Carve(CarveError::Io { ref path, ref cause }) if is_unmatched(path, cause) => {
                Self::unmatched(path)
            }
            source::OpenError::Io { ref path, ref cause } if is_unmatched(path, cause) => Self::unmatched(path),
            _ => Self::unable(error),
        }
    }
}

/// The failure for a file that cannot be opened or read.
pub fn unreadable(path: &Path, cause: &io::Error) -> Failure {
    match is_unmatched(path, cause) {
        true => Failure::unmatched(path),
        false => Failure::unable(format!("{}: cannot be read: {cause}", path.display())),
    }
}

/// Whether a name is a pattern: it contains `*` or `?`.
pub fn is_pattern(text: &OsStr) -> bool {
    text.to_string_lossy().contains(['*', '?'])
}

/// Whether the path is a pattern and no file has this name. Shells pass a pattern on unchanged if it matches no file.
fn is_unmatched(path: &Path, cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::NotFound && is_pattern(path.as_os_str())
}

impl From<log::LogError> for Failure {
    fn from(error: log::LogError) -> Self {
        match error {
            log::LogError::Nothing | log::LogError::SameFile { .. } | log::LogError::OtherDatabase { .. } => {
                Self::usage(error)
            }
            log::LogError::Io { ref path, ref cause, .. } if is_unmatched(path, cause) => Self::unmatched(path),
            _ => Self::unable(error),
        }
    }
}

/// Reports failed reads, and files that were written to while they were read, one line per file. Returns the exit-status
/// bits for them.
pub fn report_faults(source: &dyn PageSource) -> u8 {
    report_read_faults(&source.read_faults()) | report_changes(&source.changes())
}

/// Reports files that were written to while they were read: what was read may mix several states of a file.
fn report_changes(changes: &[FileChange]) -> u8 {
    let changes = changes.iter().filter(|change| change.is_of_content());
    changes.fold(0, |_, change| {
        warn(format!("{}: {}: the result may mix its old and its new content", change.path.display(), change.what()));
        Failure::INCOMPLETE
    })
}

/// Reports reads that failed, and reads that succeeded only on a later attempt. Returns the exit-status bits for the
/// reads that failed.
pub fn report_read_faults(faults: &ReadFaults) -> u8 {
    faults.healed.iter().for_each(warn);
    faults.failed.iter().for_each(|failed| warn(failed.text()));
    if faults.failed.is_empty() { 0 } else { Failure::UNABLE }
}
