//! The campaigns. Each damages databases or backups, or disturbs the program.

mod backups;
mod case;
mod catalogs;
mod change;
mod commands;
mod crashes;
mod fields;
mod grant;
mod hostile;
mod logs;
mod moving;
mod past;
mod resources;
pub(crate) mod salvage;
mod sealed;
mod storage;
mod stories;
mod temp_dir;
mod ways;

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::ValueEnum;

use backups::Backups;
use trials::mutate::Random;

use crate::judge::judge_mutant;
use crate::mutant::Mutant;
use crate::outcome::{Outcome, Tally, Verdict};
use crate::process::Program;
use crate::subject::{Content, Subject, Subjects, store};

/// The number to add to a seed to select a different database.
const ANOTHER: u64 = 50;

/// Data that all trials share.
#[derive(Default)]
pub(crate) struct Bench {
    /// The databases.
    pub(crate) subjects: Subjects,
    /// Backups of the databases.
    pub(crate) backups: Backups,
    /// Databases that were in use, with their logs.
    pub(crate) used: logs::Used,
    /// Real databases with the rows of their tables.
    pub(crate) reals: salvage::Reals,
    /// Real databases at rest, with their logs.
    pub(crate) pairs: past::Pairs,
    /// The folder in which the damaged files of each trial are kept for inspection; `None` to delete them.
    pub(crate) keep: Option<PathBuf>,
    /// The path of the program under test; `None` to build it.
    pub(crate) mdfsck: Option<PathBuf>,
    pub(crate) program: OnceLock<Program>,
    /// Whether to run only trials that take milliseconds.
    pub(crate) is_short: bool,
}

impl Bench {
    /// The program under test.
    pub(crate) fn program(&self) -> &Program {
        self.program.get_or_init(|| Program::find(self.mdfsck.as_deref()).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Stores the files of a trial in the folder `keep`, if this folder is set.
    pub(crate) fn keep(&self, contents: impl FnOnce() -> Vec<Content>) {
        let Some(folder) = &self.keep else { return };
        let kept = std::fs::create_dir_all(folder).and_then(|()| store(&contents(), folder));
        kept.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
}

/// A campaign.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Campaign {
    /// One field changed by a verb, with the page protection corrected
    Fields,
    /// Bits and bytes changed anywhere on a page, with the page protection corrected
    Sealed,
    /// Sectors, stripes, tails and whole files that are lost, moved or encrypted
    Storage,
    /// Storage faults and changed bytes in backups of every form
    Backups,
    /// The same answer with every option and form of input
    Ways,
    /// The program as a process, with failing reads, files, memory, threads or output
    Resources,
    /// Time and memory of catalogs of up to 100,000 tables
    Catalogs,
    /// Random bytes for the entry points that must accept any bytes
    Hostile,
    /// Databases stopped during their work, then recovered with their log
    Crashes,
    /// Recovery with logs that are cut, changed, spliced or cyclic
    Logs,
    /// Real databases taken back to earlier states along their logs, then recovered
    Past,
    /// Databases that change while they are read
    Moving,
    /// Rows of damaged tables: none may be missing, none invented
    Salvage,
    /// Databases without their beginning, or with every n-th block overwritten: their rows without a catalog
    Beginning,
    /// States of a chain of backups, each checked by change and as a whole
    Change,
    /// Backups that are copied, moved, damaged and repaired, as a watcher and its history report them
    Stories,
}

impl Campaign {
    /// The name of the campaign on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fields => "fields",
            Self::Sealed => "sealed",
            Self::Storage => "storage",
            Self::Backups => "backups",
            Self::Ways => "ways",
            Self::Resources => "resources",
            Self::Catalogs => "catalogs",
            Self::Hostile => "hostile",
            Self::Crashes => "crashes",
            Self::Logs => "logs",
            Self::Past => "past",
            Self::Moving => "moving",
            Self::Salvage => "salvage",
            Self::Beginning => "beginning",
            Self::Change => "change",
            Self::Stories => "stories",
        }
    }

    /// Whether trials of this campaign run the program as a process. If so, the program is built before the first
    /// trial, so that the build does not count as trial time.
    pub(crate) fn runs_program(self) -> bool {
        matches!(self, Self::Ways | Self::Resources | Self::Catalogs | Self::Crashes | Self::Logs | Self::Stories)
    }

    /// The number of trials in a short run.
    pub(crate) fn short(self) -> u64 {
        match self {
            Self::Fields => 400,
            Self::Sealed => 400,
            Self::Storage => 300,
            Self::Backups => 100,
            Self::Ways => 60,
            Self::Resources => 48,
            Self::Catalogs => 3,
            Self::Hostile => 40,
            Self::Crashes => 60,
            Self::Logs => 200,
            Self::Past => 300,
            Self::Moving => 200,
            Self::Salvage => 60,
            Self::Beginning => 60,
            Self::Change => 6,
            Self::Stories => 6,
        }
    }

    /// The relative share of the campaign in the time of a long run.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Self::Fields | Self::Sealed | Self::Storage | Self::Backups | Self::Ways => 3.0,
            Self::Resources
            | Self::Hostile
            | Self::Crashes
            | Self::Logs
            | Self::Past
            | Self::Moving
            | Self::Salvage
            | Self::Beginning
            | Self::Change => 2.0,
            Self::Catalogs | Self::Stories => 1.0,
        }
    }

    /// The number of trials to run at the same time, at most `threads`.
    pub(crate) fn threads(self, threads: usize) -> usize {
        match self {
            // These trials measure time, and their processes have several threads.
            Self::Catalogs => 1,
            _ => threads,
        }
    }

    /// The reason why a run of the campaign has tested too little; `None` if it has not.
    pub(crate) fn shortfall(self, tally: &Tally) -> Option<String> {
        (self == Self::Change).then(|| change::shortfall(tally)).flatten()
    }

    /// Runs the trial with this seed. The seed determines everything that the trial does.
    pub(crate) fn trial(self, bench: &Bench, seed: u64) -> Outcome {
        let has_own =
            matches!(self, Self::Catalogs | Self::Crashes | Self::Logs | Self::Past | Self::Change | Self::Stories);
        if !has_own {
            let subject = bench.subjects.of(seed);
            if let Some(flaw) = &subject.flaw {
                bench.keep(|| subject.contents.clone());
                return Outcome::new("sound database", &subject.name, Verdict::FalseAlarm(flaw.clone()));
            }
        }
        match self {
            Self::Fields => damaged(bench, seed, |subject, _, random| fields::mutant(subject, random)),
            Self::Sealed => damaged(bench, seed, |subject, _, random| sealed::mutant(subject, random)),
            Self::Storage => damaged(bench, seed, storage::mutant),
            Self::Backups => backups::trial(bench, seed),
            Self::Ways => ways::trial(bench, seed),
            Self::Resources => resources::trial(bench, seed),
            Self::Catalogs => catalogs::trial(bench, seed),
            Self::Hostile => hostile::trial(bench, seed),
            Self::Crashes => crashes::trial(bench, seed),
            Self::Logs => logs::trial(bench, seed),
            Self::Past => past::trial(bench, seed),
            Self::Moving => moving::trial(bench, seed),
            Self::Salvage => salvage::trial(bench, seed),
            Self::Beginning => salvage::beginning(bench, seed),
            Self::Change => change::trial(seed),
            Self::Stories => stories::trial(bench.program(), seed),
        }
    }
}

/// Runs a trial on a damaged database. `mutant` gets two databases: it damages the first one, and may take bytes from
/// the second one.
fn damaged(bench: &Bench, seed: u64, mutant: impl FnOnce(&Subject, &Subject, &mut Random) -> Mutant) -> Outcome {
    let subject = bench.subjects.of(seed);
    let foreign = bench.subjects.of(seed + ANOTHER);
    let mutant = mutant(&subject, &foreign, &mut Random::new(seed));
    bench.keep(|| mutant.contents(&subject));
    judge_mutant(&subject, mutant, seed)
}
