//! Why a command could not do its work, and the exit status that says so.

use std::fmt::Display;
use std::io::{self, Write};

use source::ReadFaults;

/// Ends a command: one line for stderr and a status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u8,
    pub(crate) text: String,
}

impl Failure {
    /// Corruption was found.
    pub(crate) const CORRUPT: u8 = 1;
    /// It could not look.
    pub(crate) const BLIND: u8 = 4;
    /// It was called in a wrong way.
    pub(crate) const USAGE: u8 = 8;
    /// Something that was asked for was not verified.
    pub(crate) const INCOMPLETE: u8 = 16;

    /// It was called in a wrong way.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { status: Self::USAGE, text: text.to_string() }
    }

    /// It could not show what it found, and the one who would read why is gone.
    pub(crate) fn quiet() -> Self {
        Self { status: Self::BLIND, text: String::new() }
    }

    /// Says on stderr why, if there is something to say; returns the status.
    pub(crate) fn tell(self) -> u8 {
        if !self.text.is_empty() {
            complain(&self.text);
        }
        self.status
    }

    /// It could not look.
    pub(crate) fn blind(text: impl Display) -> Self {
        Self { status: Self::BLIND, text: text.to_string() }
    }
}

impl From<source::OpenError> for Failure {
    fn from(error: source::OpenError) -> Self {
        match error {
            source::OpenError::StandardInput
            | source::OpenError::Nothing
            | source::OpenError::BackupTooLarge { granted: Some(_), .. } => Self::usage(error),
            _ => Self::blind(error),
        }
    }
}

/// Reports the reads that failed, a line for each file; returns the status for that.
pub(crate) fn tell_read_faults(faults: &ReadFaults) -> u8 {
    faults.healed.iter().for_each(complain);
    faults.failed.iter().for_each(|failed| complain(&failed.text));
    if faults.failed.is_empty() { 0 } else { Failure::BLIND }
}

/// Writes one line to stderr. Nobody is left to be told when that fails.
pub(crate) fn complain(text: impl Display) {
    let line: String = text.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(io::stderr(), "mdfsck: {line}");
}
