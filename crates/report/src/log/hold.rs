//! The reason why a log cannot be reused, in the words of `log_reuse_wait_desc`.

use catalog::Boot;
use format::Lsn;
use log::{EndReason, Transaction};

use super::LogReport;

/// The reason why a part of the log is still needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Only the VLF that is being written is needed.
    Nothing,
    /// A recovery would start its redo in this part of the log.
    Checkpoint,
    /// This part of the log has not been backed up.
    LogBackup,
    /// The oldest open transaction began in this part of the log.
    ActiveTransaction,
}

impl Hold {
    /// The name in `log_reuse_wait_desc`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "NOTHING",
            Self::Checkpoint => "CHECKPOINT",
            Self::LogBackup => "LOG_BACKUP",
            Self::ActiveTransaction => "ACTIVE_TRANSACTION",
        }
    }
}

/// The LSN from which the log is still needed, and the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// LSN of the oldest record that is needed.
    pub from: Lsn,
    /// The reason why this record is needed.
    pub by: Hold,
    /// Bytes of log from this record to the end.
    pub bytes: u64,
}

/// The LSN from which the log has not been backed up. `None` if no part of the log waits for a log backup: under the
/// simple recovery model, and before the first full backup.
fn not_backed_up_from(boot: &Boot) -> Option<Lsn> {
    let is_kept = !boot.is_simple_recovery() && boot.log_backup_chain_origin != Lsn::default();
    is_kept.then(|| boot.log_backup_lsn.max(boot.log_backup_chain_origin))
}

impl LogReport<'_> {
    /// The reason why a part of the log is still needed, as far as the log and the boot page show. `None` if no
    /// checkpoint ended in the log, or if the log is damaged: its unreadable part may have a later checkpoint. Replication and change data capture may need more of the log, but the log and the
    /// boot page do not show this.
    pub fn held(&self) -> Option<Held> {
        if matches!(self.end.reason, EndReason::Damaged { .. }) {
            return None;
        }
        let redo = self.history.last_checkpoint()?.redo?;
        let oldest = self.oldest_open().and_then(|transaction| transaction.begin);
        let backup = self.boot.and_then(not_backed_up_from);
        let candidates = [
            Some((redo, Hold::Checkpoint)),
            oldest.map(|begin| (begin, Hold::ActiveTransaction)),
            backup.map(|lsn| (lsn, Hold::LogBackup)),
        ];
        let (from, by) = candidates.into_iter().flatten().min_by_key(|(lsn, _)| *lsn)?;
        let by = if from.vlf >= self.end.at.vlf.sequence { Hold::Nothing } else { by };
        Some(Held { from, by, bytes: self.bytes_from(from) })
    }

    /// The oldest open transaction.
    pub(crate) fn oldest_open(&self) -> Option<&Transaction> {
        self.open.iter().filter(|transaction| transaction.begin.is_some()).min_by_key(|transaction| transaction.begin)
    }

    /// The bytes of log from the block with the record `lsn` to the end of the log.
    fn bytes_from(&self, lsn: Lsn) -> u64 {
        let needed = self.log.run().iter().filter(|placed| placed.vlf.sequence >= lsn.vlf);
        let bytes = needed.map(|placed| {
            let from = match placed.vlf.sequence == lsn.vlf {
                true => placed.vlf.block_offset(lsn.block).unwrap_or(placed.from),
                false => placed.from,
            };
            let is_last = placed.vlf.sequence == self.end.at.vlf.sequence;
            let to = if is_last { self.end.offset } else { placed.to };
            to.saturating_sub(from)
        });
        bytes.sum()
    }
}
