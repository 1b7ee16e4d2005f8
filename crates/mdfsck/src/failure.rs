//! Failures of commands, and the bits of the exit status.

use std::cell::RefCell;
use std::env;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use source::{CarveError, FileChange, PageSource, ReadFaults};
use tempfile::SpooledTempFile;

use crate::progress;

/// A failure that ends a command. It has a line for stderr and an exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u8,
    pub(crate) text: String,
    /// Whether the command failed because its memory grant was too small.
    pub(crate) needs_memory: bool,
}

impl Failure {
    /// The check found corruption.
    pub(crate) const CORRUPT: u8 = 1;
    /// The command could not open, read or write a file or another resource.
    pub(crate) const UNABLE: u8 = 4;
    /// The command was called incorrectly.
    pub(crate) const USAGE: u8 = 8;
    /// A part of the requested work was not done or not verified.
    pub(crate) const INCOMPLETE: u8 = 16;
    /// Further tasks must run; only `mdfsck merge` uses this bit.
    pub(crate) const MORE: u8 = 32;

    /// Creates the failure of a command that was called incorrectly.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { status: Self::USAGE, text: text.to_string(), needs_memory: false }
    }

    /// Creates the failure of a command whose memory grant is too small.
    pub(crate) fn small_grant(text: impl Display) -> Self {
        Self { needs_memory: true, ..Self::usage(text) }
    }

    /// Creates the failure of a command that did only a part of the request.
    pub(crate) fn incomplete(text: impl Display) -> Self {
        Self { status: Self::INCOMPLETE, ..Self::usage(text) }
    }

    /// Creates the failure for an output file that exists already. The text asks the user to name another folder.
    pub(crate) fn exists(path: &Path) -> Self {
        Self::exists_as(path, "folder")
    }

    /// Creates the failure for an output file that exists already. The text asks the user to name another file.
    pub(crate) fn file_exists(path: &Path) -> Self {
        Self::exists_as(path, "file")
    }

    fn exists_as(path: &Path, what: &str) -> Self {
        Self::usage(format!("{}: exists and will not be overwritten; give another {what}", path.display()))
    }

    /// Creates the failure for a pattern that matches no file.
    pub(crate) fn unmatched(path: &Path) -> Self {
        Self::unable(format!("{}: nothing matches this pattern", path.display()))
    }

    /// Creates the failure of a merge that needs further tasks. It has no text, since the command has already printed
    /// which tasks to run.
    pub(crate) fn more() -> Self {
        Self { status: Self::MORE, text: String::new(), needs_memory: false }
    }

    /// A failure without a message: the reader of the output has closed the pipe.
    pub(crate) fn quiet() -> Self {
        Self { status: Self::UNABLE, text: String::new(), needs_memory: false }
    }

    /// Writes the reason to stderr, if there is one. Returns the exit status.
    pub(crate) fn report(self) -> u8 {
        if !self.text.is_empty() {
            warn(&self.text);
        }
        self.status
    }

    /// Creates the failure of a command that could not open, read or write a file or another resource.
    pub(crate) fn unable(text: impl Display) -> Self {
        Self { status: Self::UNABLE, text: text.to_string(), needs_memory: false }
    }
}

impl From<source::OpenError> for Failure {
    fn from(error: source::OpenError) -> Self {
        match error {
            source::OpenError::SeveralDatabases { ref example, .. } => {
                let command = env::args().nth(1).unwrap_or_default().replace("page", "page F:P");
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
pub(crate) fn unreadable(path: &Path, cause: &io::Error) -> Failure {
    match is_unmatched(path, cause) {
        true => Failure::unmatched(path),
        false => Failure::unable(format!("{}: cannot be read: {cause}", path.display())),
    }
}

/// Whether a name is a pattern: it contains `*` or `?`.
pub(crate) fn is_pattern(text: &OsStr) -> bool {
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
pub(crate) fn report_faults(source: &dyn PageSource) -> u8 {
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
pub(crate) fn report_read_faults(faults: &ReadFaults) -> u8 {
    faults.healed.iter().for_each(warn);
    faults.failed.iter().for_each(|failed| warn(failed.text()));
    if faults.failed.is_empty() { 0 } else { Failure::UNABLE }
}

thread_local! {
    /// The state of this thread's stderr lines: the database that they are about, and the file that receives them
    /// instead of stderr, if there is such a file.
    static SPEAKER: RefCell<Speaker> = const { RefCell::new(Speaker { about: None, kept: None }) };
}

#[derive(Default)]
struct Speaker {
    about: Option<About>,
    kept: Option<SpooledTempFile>,
}

/// The database that stderr lines are about, if a command has several databases.
#[derive(Clone)]
pub(crate) struct About {
    /// The name of the database.
    pub(crate) name: String,
    /// The first file of the database. A line that begins with this path is not prefixed with the database's name.
    pub(crate) path: PathBuf,
}

/// Runs `work`, and prefixes its stderr lines with the name of the database.
pub(crate) fn speaking_of<T>(about: About, work: impl FnOnce() -> T) -> T {
    SPEAKER.with_borrow_mut(|speaker| speaker.about = Some(about));
    let result = work();
    SPEAKER.with_borrow_mut(|speaker| speaker.about = None);
    result
}

/// Runs `work`, and collects its stderr lines in `kept`.
pub(crate) fn keeping<T>(kept: SpooledTempFile, work: impl FnOnce() -> T) -> (T, Option<SpooledTempFile>) {
    SPEAKER.with_borrow_mut(|speaker| speaker.kept = Some(kept));
    let result = work();
    (result, SPEAKER.with_borrow_mut(|speaker| speaker.kept.take()))
}

/// Writes one line to stderr. A write error is ignored, since it could be reported only on stderr.
pub(crate) fn warn(text: impl Display) {
    let text = text.to_string();
    let line: String = text.chars().map(|c| if report::steers(c) { ' ' } else { c }).collect();
    let about = SPEAKER.with_borrow(|speaker| speaker.about.clone());
    let about = about.filter(|about| !text.starts_with(&about.path.display().to_string()));
    let about = about.map_or_else(String::new, |about| format!("{}: ", about.name));
    to_stderr(|out| writeln!(out, "mdfsck: {about}{line}"));
}

/// Writes to stderr, or to the file that collects this thread's stderr lines.
pub(crate) fn to_stderr(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let _ = SPEAKER.with_borrow_mut(|speaker| match &mut speaker.kept {
        Some(kept) => write(kept),
        None => {
            let mut written = Ok(());
            progress::without_bar(|| written = write(&mut io::stderr().lock()));
            written
        }
    });
}
