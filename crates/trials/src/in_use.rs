//! Databases that were in use. A lab workload is stopped, and recovery makes a consistent database from its files.

#![expect(clippy::panic, reason = "the lab can write its databases, and they can be opened")]

#[path = "../../recovery/tests/suite/common.rs"]
mod common;
#[allow(clippy::unwrap_used, reason = "databases of the lab have all of their pages")]
mod truth;

use std::path::PathBuf;

use findings::LogAudit;
use lab::workload::{Crashed, Spec, Workload};
use lab::{PageVerify, Version};
use log::Log;
use recovery::{Analysis, Applied, RecoveredPages, Recovery, Settings};
use source::{MemoryFiles, PageSource};
pub use truth::{differences, is_allocated, live_rows};

use crate::mutate::Random;

/// The versions in which the lab can write workloads.
const VERSIONS: [Version; 4] = [Version::V706, Version::V852, Version::V904, Version::V957];

/// A random workload with at most this many transactions.
pub fn spec(random: &mut Random, transactions: usize) -> Spec {
    let verify = [PageVerify::Checksum, PageVerify::Checksum, PageVerify::Torn, PageVerify::None];
    let vlf_bytes = [0x14000, 0x20000, 0x3E000, 0x80000];
    Spec {
        version: random.pick(&VERSIONS).copied().unwrap_or(Version::V904),
        verify: random.pick(&verify).copied().unwrap_or(PageVerify::Checksum),
        seed: random.number(),
        rows: 10 + random.below(500) as u64,
        transactions: 1 + random.below(transactions) as u64,
        vlfs: 2 + random.below(6) as u32,
        vlf_bytes: random.pick(&vlf_bytes).copied().unwrap_or(0x3E000),
        ..Spec::default()
    }
}

/// The workload of `spec`.
///
/// # Panics
/// If the lab cannot write it.
pub fn workload(spec: Spec) -> Workload {
    Workload::new(spec).unwrap_or_else(|error| panic!("{spec:?}: {error}"))
}

/// The data files and the log, as bytes.
pub fn contents(crashed: &Crashed) -> Vec<(PathBuf, Vec<u8>)> {
    crashed.files.iter().chain([&crashed.log]).map(|(name, bytes)| (name.into(), bytes.clone())).collect()
}

/// Opens data files in memory.
///
/// # Panics
/// If the files are not a database.
pub fn in_memory(files: &[(String, Vec<u8>)]) -> MemoryFiles {
    let files = files.iter().map(|(name, bytes)| (PathBuf::from(name), bytes.clone())).collect();
    MemoryFiles::open(files).unwrap_or_else(|error| panic!("{error}"))
}

/// A recovered database.
pub struct Recovered<'s> {
    /// The recovered pages.
    pub pages: RecoveredPages<'s>,
    /// The changes that recovery made to the pages, and the changes that it could not make.
    pub applied: Applied,
    /// The LSN of the last record of the log.
    pub end: format::Lsn,
    /// The number of blocks that the file contains after the end of the log.
    pub later_blocks: u64,
    /// The reason to doubt that the log and the data files belong together; `None` if there is no such reason.
    pub contradiction: Option<&'static str>,
    /// The comparison of the unrecovered pages with the log.
    pub audit: LogAudit,
}

impl Recovered<'_> {
    /// The reason why the recovered pages may be wrong or incomplete; `None` if nothing is in doubt.
    pub fn doubt(&self) -> Option<String> {
        let applied = &self.applied;
        if let Some(first) = applied.not_recovered.first() {
            return Some(format!("{} pages, first {}: {}", applied.not_recovered.len(), first.page, first.why));
        }
        if let Some(why) = self.contradiction {
            return Some(why.to_owned());
        }
        match (applied.transactions_not_undone, applied.in_doubt, self.later_blocks) {
            (0, 0, 0) => None,
            (0, 0, later) => Some(format!("{later} blocks after the end")),
            (not_undone, in_doubt, _) => Some(format!("{not_undone} transactions not taken back, {in_doubt} in doubt")),
        }
    }
}

/// Compares the pages of `source` with the log at `log`, then recovers them within a memory grant, as the program does.
///
/// # Errors
/// The reason why recovery was refused.
pub fn recover<'s>(
    source: &'s dyn PageSource,
    log: &std::path::Path,
    grant_bytes: u64,
) -> Result<Recovered<'s>, String> {
    let log = Log::open(&[log.to_owned()]).map_err(|error| error.to_string())?;
    let settings = Settings { grant_bytes, ..Settings::default() };
    let audit =
        audit::audit(source, &catalog::load(source), &log, grant_bytes).map_err(|refusal| refusal.to_string())?;
    if audit.has_newer_pages() {
        return Err("pages are newer than the end of the log".to_owned());
    }
    let analysis = Analysis::new(source, &log, &settings).map_err(|refusal| refusal.to_string())?;
    let recovery = Recovery::new(source, &log, analysis, &settings).map_err(|refusal| refusal.to_string())?;
    let (applied, end) = (recovery.applied.clone(), recovery.analysis.end);
    let later_blocks = recovery.analysis.blocks_after_the_end;
    let contradiction = recovery.analysis.contradiction();
    let pages = RecoveredPages::new(source, recovery);
    Ok(Recovered { pages, applied, end, later_blocks, contradiction, audit })
}
