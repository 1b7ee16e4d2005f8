//! Measures the processor time of sweeps (the passes of a check over all pages of a database), for benches.

use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;

use check::Progress;
use findings::{Options, Report};
use lab::description::{DEFAULT_COLLATION, Description, Filegroup, Table};
use lab::{PageVerify, Version};
use rustix::time::{ClockId, clock_gettime};
use source::DataFiles;

/// The number of sweeps of each database. The result is the mean cost of these sweeps.
const RUNS: u32 = 20;

/// A database with one table.
pub(crate) fn database(table: Table) -> Description {
    Description {
        name: "bench".to_owned(),
        version: Version::V852,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed: 1,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table],
        least_pages: 1024,
    }
}

/// The cost of a sweep.
pub(crate) struct Sweep {
    /// Processor time. Other processes on the machine affect it less than elapsed time.
    pub(crate) seconds: f64,
    /// Bytes read.
    pub(crate) bytes: u64,
}

impl Sweep {
    /// Builds the databases and sweeps them in turn on one thread, so that a slowdown of the machine affects all
    /// databases equally. Returns the mean cost of a sweep for each database. The number beside each description is the
    /// minimum number of indexes that the sweep must compare with their tables. Panics if a sweep compares fewer
    /// indexes, or if it finds damage.
    pub(crate) fn means_of(databases: &[(Description, u64)]) -> Result<Vec<Self>, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let mut subjects = Vec::new();
        for (number, (description, indexes)) in databases.iter().enumerate() {
            let own = folder.path().join(number.to_string());
            std::fs::create_dir(&own)?;
            let written = lab::write(description, &own)?;
            let files = DataFiles::open(&written.files)?;
            let database = catalog::load(&files);
            subjects.push((files, database, *indexes, Self { seconds: 0.0, bytes: 0 }));
        }
        let options = Options { max_threads: 1, ..Options::default() };
        for _ in 0..RUNS {
            for (files, database, indexes, mean) in &mut subjects {
                let clock = Clock::default();
                let report = check::run(&*files, database, &options, &clock);
                let Self { seconds, bytes } = Self::of(&report, *indexes, &clock).ok_or("no sweep")?;
                *mean = Self { seconds: mean.seconds + seconds / f64::from(RUNS), bytes };
            }
        }
        Ok(subjects.into_iter().map(|(.., mean)| mean).collect())
    }

    fn of(report: &Report, indexes: u64, clock: &Clock) -> Option<Self> {
        let told = report.not_verified.iter().find(|entry| entry.what.starts_with("index rows"));
        assert!(report.findings.is_empty() && told.is_none(), "{:?} {told:?}", report.findings.first());
        assert!(report.statistics.indexes_compared >= indexes, "the index was not compared");
        let phase = report.statistics.phases.iter().find(|phase| phase.name == "sweep")?;
        Some(Self { seconds: clock.swept()?.as_secs_f64(), bytes: phase.bytes })
    }
}

/// Records the processor time at the start of each phase. The times in the report are not used, because their
/// resolution is only a hundredth of a second.
#[derive(Default)]
struct Clock(Mutex<Vec<(&'static str, Duration)>>);

impl Clock {
    /// The processor time of the sweep phase.
    fn swept(&self) -> Option<Duration> {
        let starts = self.0.lock().ok()?;
        let at = starts.iter().position(|(name, _)| *name == "sweep")?;
        let ((_, from), (_, to)) = (starts.get(at)?, starts.get(at + 1)?);
        to.checked_sub(*from)
    }
}

impl Progress for Clock {
    fn phase(&self, name: &'static str, _pages: u64) {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
        // The lock is poisoned only if a run panics. The time of this run is then missing.
        if let Ok(mut starts) = self.0.lock() {
            starts.push((name, now));
        }
    }

    fn advance(&self, _pages: u64) {}
}
