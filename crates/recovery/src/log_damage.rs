//! The place at which a log that recovery needs is damaged.

use std::fmt;

use log::{Damage, End, EndReason, Log};

/// The place at which a log is damaged, and the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogDamage {
    /// File ID of the log file.
    pub file_id: u16,
    /// Offset of the first unreadable block in this file, in bytes.
    pub offset: u64,
    /// The evidence of damage, as text without paths.
    pub evidence: String,
    /// Number of intact blocks of the log behind this place. They cannot be put in order without the missing blocks.
    pub later_blocks: u64,
}

impl LogDamage {
    /// Describes the place at which a walk through the log ended.
    pub(crate) fn at(log: &Log, end: &End) -> Self {
        let file_id = |file: usize| log.files().get(file).map(|file| file.file_id).unwrap_or_default();
        let name = |file| format!("file {}", file_id(file));
        let (evidence, later_blocks) = match end.reason {
            EndReason::Damaged { damage, later } => (damage.words(name), later.count),
            EndReason::UnderWay(later) => (Damage::Gap.words(name), later.count),
            EndReason::Written => ("the log ends there, before the checkpoint that the boot page names".to_owned(), 0),
        };
        Self { file_id: file_id(end.at.file), offset: end.offset, evidence, later_blocks }
    }
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of its file {}: {}", self.offset, self.file_id, self.evidence)?;
        match self.later_blocks {
            0 => Ok(()),
            1 => f.write_str("; 1 intact block follows"),
            count => write!(f, "; {count} intact blocks follow"),
        }
    }
}

/// The part of a sentence that names the place; empty if the place is unknown.
pub(crate) fn of_place(damage: Option<&LogDamage>) -> String {
    damage.map(|damage| format!(": {damage}")).unwrap_or_default()
}
