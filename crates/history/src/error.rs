//! The reasons why a history cannot be used.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;

/// The result of an operation on a history.
pub type Result<T> = std::result::Result<T, HistoryError>;

/// Why a history cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file of the history does not exist.
    #[error("{}: no such history; 'mdfsck check ... --history FILE' creates a history", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file exists but is not a history.
    #[error("{}: is not a history of mdfsck ({what}), and mdfsck does not write to it; name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What the file is instead.
        what: String,
    },
    /// A newer release of the program created the file.
    #[error("{}: has version {found} of the history, written by a newer mdfsck than this release, {}; use the newer release", path.display(), crate::VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the history in the file.
        found: i64,
    },
    /// The content of the file contradicts itself.
    #[error("{}: the history is damaged ({what}), and mdfsck does not write to it; restore a copy of the file, or name another file", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Another program is using the file.
    #[error("{}: the history is in use by {by}; try again later", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// The program that is using the file.
        by: String,
    },
    /// Another process holds the lease on the database, or on the whole history.
    #[error("{}: the history is in use by {by}; try again later", path.display())]
    Leased {
        /// The file of the history.
        path: PathBuf,
        /// The process that holds the lease.
        by: String,
    },
    /// The file cannot be written.
    #[error("{}: the history cannot be written: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why the file cannot be written.
        cause: String,
    },
    /// The file cannot be read.
    #[error("{}: the history cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why the file cannot be read.
        cause: String,
    },
    /// The request cannot be fulfilled; the text says why.
    #[error("{0}")]
    Request(String),
}

impl HistoryError {
    /// Whether the user can correct the error by naming another file, database, run or finding.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Foreign { .. } | Self::Newer { .. } | Self::Request(_))
    }
}

/// Converts an error of SQLite to an error of this crate.
pub(crate) fn of_sqlite(path: &std::path::Path, error: &rusqlite::Error) -> HistoryError {
    let path = path.to_owned();
    let cause = text(error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            HistoryError::Busy { path, by: "another process".to_owned() }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch | ErrorCode::ConstraintViolation) => {
            HistoryError::Damaged { path, what: cause }
        }
        Some(ErrorCode::NotADatabase) => HistoryError::Foreign { path, what: cause },
        Some(ErrorCode::ReadOnly | ErrorCode::DiskFull | ErrorCode::PermissionDenied) => {
            HistoryError::Unwritable { path, cause }
        }
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => {
            HistoryError::Unreadable { path, cause }
        }
        // SQLite returned a value with a type that the schema does not declare for the column.
        _ => HistoryError::Damaged { path, what: cause },
    }
}

/// SQLite's error text, on one line.
fn text(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(code, Some(text)) => format!("{text} (SQLite error {})", code.extended_code),
        other => other.to_string(),
    };
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Converts an I/O error to an error of this crate.
pub(crate) fn of_io(path: &std::path::Path, cause: &io::Error, is_writing: bool) -> HistoryError {
    let (path, cause) = (path.to_owned(), cause.to_string());
    match is_writing {
        true => HistoryError::Unwritable { path, cause },
        false => HistoryError::Unreadable { path, cause },
    }
}
