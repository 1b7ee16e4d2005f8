//! Real backups: a full backup brought forward by log backups is what SQL Server has in a later backup.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::logical;
use format::{Page, PageBytes, PageId};
use log::Log;
use recovery::{Analysis, RecoveredPages, Recovery, RestoreStart, Settings};
use source::backup::{self, BackupMedia, ChainSet, Restore, SetKind, Until};
use source::{BackupPages, PageSource};

/// All backups of the corpus; none without it.
fn media() -> Vec<BackupMedia> {
    fn search(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => search(&path, found),
                false if source::is_backup(&path) => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut found);
    found.sort();
    let media = found.iter().filter_map(|path| backup::media(path).ok());
    // Which set is meant is clear where there is one.
    media.filter(|media| media.sets.len() == 1).collect()
}

fn is_allocated(source: &dyn PageSource, page: PageId) -> bool {
    let pfs = PageId::new(page.file, (page.page / 8088 * 8088).max(1));
    source.read_page(pfs).is_some_and(|pfs| pfs[100 + page.page as usize % 8088] & 0x40 != 0)
}

/// What came of the comparisons.
#[derive(Default, Debug)]
struct Compared {
    restores: u32,
    log_backups: usize,
    comparisons: u32,
    /// Pages that log backups changed, equal in a later backup.
    changed: u32,
    /// Others.
    same: u32,
    /// Pages that were changed again since.
    newer: u32,
}

/// What must be equal: not the counts of rows, pages and changes in the catalog, which checkpoints write outside of the log
/// of a page.
fn without_counts(bytes: &PageBytes) -> (Vec<u64>, Vec<Option<Vec<u8>>>) {
    let counts = match Page::new(bytes).header().object_id.get() {
        3 => 20..28, // sysrscols: rcmodified
        5 => 31..39, // sysrowsets: rcrows
        7 => 45..69, // sysallocunits: pcused, pcdata, pcreserved
        _ => 0..0,
    };
    let (fields, mut rows) = logical(bytes, true);
    for row in rows.iter_mut().flatten() {
        if let Some(counts) = row.get_mut(counts.clone()) {
            counts.fill(0);
        }
    }
    (fields, rows)
}

impl Compared {
    /// Restores these backups in memory; a check has nothing to say.
    fn restore(&mut self, name: &str, paths: &[PathBuf], then: impl FnOnce(&RecoveredPages<'_>, &mut Self)) {
        let restore = Restore::open(paths, &[], None, None, Until::End).unwrap_or_else(|error| panic!("{error}"));
        let start = RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to };
        self.restores += 1;
        self.log_backups += restore.log_backups;
        let log = Log::of_backups(restore.log).unwrap();
        assert_eq!(log.gaps(), [], "{name}");
        let settings = Settings { grant_bytes: 64 << 20, ..Settings::default() };
        let analysis = Analysis::of_restore(start, &log, None, &settings);
        let recovery = analysis.and_then(|analysis| Recovery::new(&restore.pages, &log, analysis, &settings));
        let recovery = recovery.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let applied = &recovery.applied;
        assert!(applied.not_recovered.is_empty() && applied.transactions_not_undone == 0, "{name}: {applied:?}");
        let restored = RecoveredPages::new(&restore.pages, recovery);
        let report = check::run(&restored, &catalog::load(&restored), &check::Options::default(), &check::Silent);
        let names = report.names();
        let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&names)).collect();
        assert_eq!((found, report.demoted.len()), (Vec::new(), 0), "{name}");
        then(&restored, self);
    }

    /// Compares the pages of a later backup with those that were restored up to its end or beyond.
    fn compare(&mut self, name: &str, later: &dyn PageSource, restored: &RecoveredPages<'_>) {
        self.comparisons += 1;
        for file in later.files() {
            for page in (0..file.pages).map(|number| PageId::new(file.file_id, number)) {
                let Some(expected) = later.read_page(page).filter(|_| later.contains(page)) else { continue };
                if page == PageId::BOOT || page.page == 0 || !is_allocated(later, page) {
                    continue;
                }
                let Some(found) = restored.read_page(page) else { panic!("{name}: {page} is not there") };
                let lsn = |bytes| Page::new(bytes).header().lsn();
                assert!(lsn(&found) >= lsn(&expected), "{name}: {page} is older: {} {}", lsn(&found), lsn(&expected));
                if lsn(&found) > lsn(&expected) {
                    self.newer += 1;
                    continue;
                }
                let is_changed = restored.work(page).is_some();
                assert!(without_counts(&found) == without_counts(&expected), "{name}: {page}");
                *(if is_changed { &mut self.changed } else { &mut self.same }) += 1;
            }
        }
    }
}

#[test]
fn pages_of_real_backups_brought_forward_are_those_of_later_backups() {
    let media = media();
    let mut compared = Compared::default();
    for database in backup::chains(&media) {
        let sets = &database.sets;
        for chain in &database.chains {
            let full = &sets[chain.full];
            // The shortest way to the end: over the last differential.
            let shortest: Vec<PathBuf> = chain.steps.iter().flat_map(|step| sets[*step].paths.clone()).collect();
            let is_of_it =
                |set: &&ChainSet| set.set.config.recovery_fork_id == full.set.config.recovery_fork_id && set.is_whole();
            let logs: Vec<&ChainSet> =
                sets.iter().filter(is_of_it).filter(|set| set.set.kind == SetKind::Log).collect();
            if logs.is_empty() {
                continue;
            }
            // Up to the end of each later backup, by log alone.
            let is_later = |set: &&ChainSet| set.set.config.first_lsn > full.set.config.first_lsn;
            for set in sets.iter().filter(is_of_it).filter(is_later).filter(|set| set.set.kind != SetKind::Log) {
                let paths = match set.set.kind {
                    SetKind::Full => set.paths.clone(),
                    _ => [full.paths.clone(), set.paths.clone()].concat(),
                };
                let Ok(later) = BackupPages::open(&paths, &[]) else { continue };
                let name = format!("{} {:?}", database.database, set.paths);
                let needed = logs.iter().filter(|log| log.set.config.first_lsn < set.set.config.last_lsn);
                let paths: Vec<PathBuf> = full.paths.iter().chain(needed.flat_map(|log| &log.paths)).cloned().collect();
                compared.restore(&name, &paths, |restored, compared| {
                    if Some(restored.recovery().analysis.end) >= set.set.config.last_lsn {
                        compared.compare(&name, &later, restored);
                    }
                });
            }
            // Both ways to the end lead to the same pages.
            let name = format!("{} {:?}", database.database, full.paths);
            let all: Vec<PathBuf> = full.paths.iter().chain(logs.iter().flat_map(|log| &log.paths)).cloned().collect();
            compared.restore(&name, &shortest, |restored, compared| {
                let (end, restored) = (restored.recovery().analysis.end, restored as &dyn PageSource);
                compared.restore(&name, &all, |by_log, compared| {
                    assert_eq!(by_log.recovery().analysis.end, end, "{name}");
                    compared.compare(&name, restored, by_log);
                });
            });
        }
    }
    if !media.is_empty() {
        assert!(compared.comparisons >= 20 && compared.changed > 200 && compared.newer < 20, "{compared:?}");
    }
}
