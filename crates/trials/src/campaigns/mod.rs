//! The campaigns: what is done to databases, to backups and to the program.

mod backups;
mod fields;
mod sealed;
mod storage;
mod ways;

use clap::ValueEnum;

use backups::Backups;

use crate::outcome::Outcome;
use crate::subject::Subjects;

/// So many seeds away is another database.
const ANOTHER: u64 = 50;

/// What all trials share.
#[derive(Default)]
pub(crate) struct Bench {
    /// The databases.
    pub(crate) subjects: Subjects,
    /// Their backups.
    pub(crate) backups: Backups,
}

/// A campaign.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Campaign {
    /// One field changed by a verb, the page's protection made right
    Fields,
    /// Bits and bytes changed anywhere on a page, its protection made right
    Sealed,
    /// Sectors, stripes, tails and whole files lost, moved or encrypted
    Storage,
    /// The same and changed bytes in backups of every form
    Backups,
    /// The same answer for every option and form of input
    Ways,
}

impl Campaign {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fields => "fields",
            Self::Sealed => "sealed",
            Self::Storage => "storage",
            Self::Backups => "backups",
            Self::Ways => "ways",
        }
    }

    /// Trials of the short run.
    pub(crate) fn short(self) -> u64 {
        match self {
            Self::Fields => 400,
            Self::Sealed => 400,
            Self::Storage => 300,
            Self::Backups => 100,
            Self::Ways => 60,
        }
    }

    /// Its share of the time of a long run.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Self::Fields | Self::Sealed | Self::Storage | Self::Backups | Self::Ways => 3.0,
        }
    }

    /// Trials that run at once: those that measure memory or start processes with threads of their own run alone.
    pub(crate) fn threads(self, threads: usize) -> usize {
        threads
    }

    /// The trial with this seed, which decides everything about it.
    pub(crate) fn trial(self, bench: &Bench, seed: u64) -> Outcome {
        match self {
            Self::Fields => fields::trial(bench, seed),
            Self::Sealed => sealed::trial(bench, seed),
            Self::Storage => storage::trial(bench, seed),
            Self::Backups => backups::trial(bench, seed),
            Self::Ways => ways::trial(bench, seed),
        }
    }
}
