//! The result of a restore in memory to verify a chain.

use crate::text_table::printable;

/// The result of restoring a chain in memory and checking the restored database.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verified {
    /// Number of findings in the restored database, in its backups and in the log of these backups.
    pub errors: u64,
    /// The text of the first finding.
    pub first_error: Option<String>,
    /// The first thing that could not be verified, or why the chain could not be restored.
    pub reason: Option<String>,
    /// Whether the restore produced a database.
    pub is_restored: bool,
    /// Number of allocated pages in the restored database.
    pub pages: u64,
    /// Number of log blocks in all backups of the chain. Each of these blocks was verified.
    pub log_blocks: u64,
    /// Number of pages that recovery changed.
    pub recovered_pages: u64,
    /// Number of transactions that were open at the end of the log and were rolled back.
    pub transactions_undone: u64,
}

impl Verified {
    /// The outcome as one word: `sound`, `errors`, `incomplete`, `failed`.
    pub fn state(&self) -> &'static str {
        match (self.errors, &self.reason) {
            (1.., _) => "errors",
            _ if !self.is_restored => "failed",
            (0, Some(_)) => "incomplete",
            (0, None) => "sound",
        }
    }

    /// Whether the restore of this chain succeeded and the check of the restored database found no errors.
    pub fn is_usable(&self) -> bool {
        matches!(self.state(), "sound" | "incomplete")
    }

    /// The outcome as a sentence.
    pub(super) fn text(&self) -> String {
        let reason = printable(self.reason.as_deref().unwrap_or_default()).to_string();
        match self.state() {
            "errors" => {
                let first = printable(self.first_error.as_deref().unwrap_or_default()).to_string();
                let errors = if self.errors == 1 { "1 error".to_owned() } else { format!("{} errors", self.errors) };
                format!("{errors} when restored; the first: {first}")
            }
            "failed" => format!("cannot be restored: {reason}"),
            "incomplete" => format!("restored and checked, but not all is verified: {reason}"),
            _ => format!(
                "restored and checked: {} pages, of which {} from the log; {} blocks of log; {} transactions rolled back",
                self.pages, self.recovered_pages, self.log_blocks, self.transactions_undone
            ),
        }
    }
}
