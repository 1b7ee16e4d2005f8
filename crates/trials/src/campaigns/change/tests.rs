use std::path::{Path, PathBuf};

use source::backup::{self, BackupSet, SetKind};

use super::*;
use night::Settings;

/// The most log backups after the pages of a real state.
const MOST_LOGS: usize = 6;

/// A real backup: its label, and the files that have its stripes.
struct Real {
    label: BackupSet,
    stripes: BTreeMap<u16, PathBuf>,
}

impl Real {
    fn kind(&self) -> SetKind {
        self.label.kind
    }

    fn end(&self) -> Option<format::Lsn> {
        self.label.config.last_lsn
    }

    fn is_of_database_of(&self, other: &Self) -> bool {
        let of = |real: &Self| (real.label.config.family_id.clone(), real.label.config.database.clone());
        of(self) == of(other)
    }
}

/// The whole backups in a folder, each in files of its own.
fn backups(folder: &Path) -> Vec<Real> {
    let mut found: BTreeMap<String, (Real, u16)> = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(entries) = folders.pop().and_then(|folder| std::fs::read_dir(folder).ok()) {
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if source::is_backup(&path)
                && let Ok(mut media) = backup::media(&path)
                && media.sets.len() == 1
                && let Some(label) = media.sets.pop()
                && let Some(guid) = label.guid.clone()
            {
                let real = Real { label, stripes: BTreeMap::new() };
                let (real, _) = found.entry(guid).or_insert((real, media.families));
                real.stripes.entry(media.family).or_insert(path);
            }
        }
    }
    let is_whole = |(real, families): &(Real, u16)| real.stripes.len() == usize::from(*families);
    found.into_values().filter(is_whole).map(|(real, _)| real).collect()
}

/// The states that can be restored from a full backup and others: with and without a differential, and with the first
/// log backups after it.
fn states<'r>(full: &'r Real, all: &'r [Real]) -> Vec<Vec<&'r Real>> {
    let is_on_full = |real: &&Real| {
        real.kind() == SetKind::Differential && real.label.config.differential_base_guid == full.label.guid
    };
    let mut states = vec![vec![full]];
    states.extend(all.iter().filter(is_on_full).map(|differential| vec![full, differential]));
    for pages in states.clone() {
        let end = pages.last().and_then(|real| real.end());
        let is_later = |real: &&Real| real.kind() == SetKind::Log && real.is_of_database_of(full) && real.end() > end;
        let mut log: Vec<&Real> = all.iter().filter(is_later).collect();
        log.sort_by_key(|real| real.end());
        let counts = 1..=log.len().min(MOST_LOGS);
        states.extend(counts.map(|count| pages.iter().chain(log.iter().take(count)).copied().collect()));
    }
    states
}

#[test]
#[ignore = "full tier: real files"]
fn real_chains_are_proven_by_change_as_by_a_whole_check() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus/dataplat__appveyor-lab");
    if !corpus.is_dir() {
        println!("skipped: no chains in target/corpus");
        return;
    }
    let all = backups(&corpus);
    let mut figures = Figures::new();
    for full in all.iter().filter(|real| real.kind() == SetKind::Full) {
        let states = states(full, &all);
        for part_pages in [8, 32] {
            let made = folder();
            let mut nights = Nights::new(made.path(), Settings::plain(part_pages), &mut figures);
            for state in states.iter().filter(|_| states.len() > 1) {
                let files: Vec<PathBuf> = state.iter().flat_map(|real| real.stripes.values().cloned()).collect();
                assert_eq!(nights.prove(&files, None, false), Ok(()), "{files:?}");
            }
        }
    }
    // The databases are small, and pages of system tables are never kept.
    let at_least = |name: &str, least: u64| figures.get(name).is_some_and(|count| *count >= least);
    assert!(at_least("states proven by change", 50) && at_least(PARTS_KEPT, 30), "{figures:#?}");
}

#[test]
fn a_proof_by_change_gives_the_report_of_a_whole_check() {
    let mut figures = Figures::new();
    for seed in [1, 2, 3] {
        let outcome = trial(seed);
        assert_eq!(outcome.failure(), None, "seed {seed}: {}", outcome.what);
        for (name, count) in outcome.figures {
            *figures.entry(name).or_default() += count;
        }
    }
    assert!(figures.get(PARTS_KEPT).is_some_and(|count| *count > 100), "{figures:?}");
}

#[test]
fn a_campaign_that_keeps_no_part_or_damages_nothing_has_a_shortfall() {
    let mut tally = Tally { tried: TRIALS, ..Tally::default() };
    tally.figures = MUST_COUNT.iter().map(|name| ((*name).to_owned(), 1)).collect();
    assert_eq!(shortfall(&tally), None);
    for name in [PARTS_KEPT, DAMAGE] {
        let mut without = tally.clone();
        without.figures.insert(name.to_owned(), 0);
        assert!(shortfall(&without).is_some_and(|text| text.contains(name)));
        without.tried -= 1;
        assert_eq!(shortfall(&without), None);
    }
}
