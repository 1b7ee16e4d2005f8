//! The reasons why a log cannot recover a database.

use format::{Lsn, PageId};
use log::LogError;

use crate::log_damage::{LogDamage, of_place};
use crate::settings::{GRANT_PER_TABLE, GRANT_PER_UNDO};

/// The most transactions that are tracked at the same time.
pub(crate) const MAX_OPEN: usize = 1_000_000;

/// The reason why a log cannot recover the database.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The requested point is too early: the pages of the backup have already passed it.
    #[error("the backup ends at {pages_to}, after {until}, where the restore must stop; name an earlier full backup")]
    StopTooEarly {
        /// The LSN of the first record to leave out.
        until: Lsn,
        /// The first LSN after the backup's own log.
        pages_to: Lsn,
    },
    /// The log does not contain the requested mark.
    #[error("no transaction with the name {name} was committed in the log from {from} to {to}")]
    NoMark {
        /// Name of the mark.
        name: String,
        /// The LSN at which the log that was read starts.
        from: Lsn,
        /// The LSN at which the log that was read ends.
        to: Lsn,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The boot page cannot be read, so it is unknown where recovery starts.
    #[error("the boot page cannot be read, so the start of recovery is unknown")]
    NoBoot,
    /// The header of the log names another database.
    #[error("the log is of another database: its binding ID differs from that of the data files")]
    OtherDatabase,
    /// The log does not contain the checkpoint that the boot page names.
    #[error(
        "the log does not have the checkpoint {checkpoint} that the boot page names: the log is from another point in time, or was rebuilt"
    )]
    OtherMoment {
        /// The LSN of this checkpoint.
        checkpoint: Lsn,
    },
    /// The catalog names another log file, which was not given.
    #[error(
        "the log has another file, {name} (file ID {file_id}), which was not found; all files of the log are needed"
    )]
    MissingFile {
        /// File ID of the missing log file.
        file_id: u16,
        /// Name of the missing log file on the server, without folders.
        name: String,
    },
    /// The log does not reach back far enough.
    #[error("the log does not reach back to {lsn}, where recovery starts")]
    TooShort {
        /// The first LSN that recovery needs.
        lsn: Lsn,
    },
    /// The log is damaged in a part that recovery needs.
    #[error("the log is damaged at {lsn}, {damage}")]
    Damaged {
        /// The LSN at which the damage begins.
        lsn: Lsn,
        /// The place in the log and the evidence.
        damage: LogDamage,
    },
    /// The checkpoint that the boot page names is in a damaged part of the log.
    #[error("the log is damaged at {checkpoint}, the checkpoint that the boot page names{}", of_place(.damage.as_ref()))]
    CheckpointDamaged {
        /// The LSN of this checkpoint.
        checkpoint: Lsn,
        /// The place in the log and the evidence; `None` if the place is the start of the log.
        damage: Option<LogDamage>,
    },
    /// The end of a log file is missing.
    #[error("the log is cut off: its file ends at byte {at}, and the rest of the log is missing")]
    CutOff {
        /// Length of the file in bytes.
        at: u64,
    },
    /// The backups lack part of their log.
    #[error("the log in the backups ends at {reached}, but their labels say {ends_at}: part of a backup is damaged")]
    Incomplete {
        /// The LSN of the first block that is missing.
        reached: Lsn,
        /// The first LSN after the log, according to the backups.
        ends_at: Lsn,
    },
    /// The data files are newer than the log.
    #[error("page {page} is newer than the log: the last change of the page is {lsn}, and the log ends at {end}")]
    FilesNewer {
        /// An allocated page with an LSN after the end of the log.
        page: PageId,
        /// The LSN of this page.
        lsn: Lsn,
        /// The LSN of the last record of the log.
        end: Lsn,
    },
    /// The records of the log are encrypted.
    #[error("the log is encrypted (TDE)")]
    Encrypted,
    /// An upgrade to another version was interrupted.
    #[error("the log contains an unfinished upgrade to another version")]
    Upgrade,
    /// The memory grant is too small for the transactions that were open at the same time.
    #[error("more transactions were open at the same time than the memory grant can list")]
    TooManyOpen {
        /// Minimum number of bytes that the list of these transactions needs.
        needed_bytes: u64,
    },
    /// The memory grant is too small for the list of changes to undo.
    #[error("open transactions made more changes than the memory grant can list")]
    TooMuchToUndo {
        /// Number of bytes that this list needs.
        needed_bytes: u64,
    },
    /// Rows of open transactions were moved too often by later changes.
    #[error("open transactions changed rows that were moved too often after the change")]
    TooEntangled,
    /// More transactions were open than can be tracked.
    #[error("more than {MAX_OPEN} transactions were open at the same time")]
    TooManyTransactions,
    /// The recovery cannot go on from where an earlier one stood: the whole log must be read.
    #[error("the recovery cannot go on from where an earlier one stood")]
    NotResumed,
    /// A temporary file failed.
    #[error("a temporary file failed: {0}")]
    Temporary(#[from] std::io::Error),
}

impl Refusal {
    /// The [`grant_bytes`](crate::Settings::grant_bytes) that would be enough, as far as is known; `None` if the cause is not memory.
    pub fn least_grant_bytes(&self) -> Option<u64> {
        match self {
            Self::TooManyOpen { needed_bytes } => Some(needed_bytes.saturating_mul(GRANT_PER_TABLE)),
            Self::TooMuchToUndo { needed_bytes } => Some(needed_bytes.saturating_mul(GRANT_PER_UNDO)),
            _ => None,
        }
    }
}
