//! Restores backups of the lab in memory, to the end of each backup set and to points in time between commits. Compares
//! the result with the rows that the lab recorded.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use format::log::LogTime;
use format::record::{Record, RecordKind};
use format::{AllocUnitId, Lsn, Page, PageBytes, PageId, PageType};
use lab::workload::{Chain, ChainOptions, ChainSet, Event, SetKind, Spec, TableTruth, Values, Workload};
use log::Log;
use recovery::{Analysis, RecoveredPages, Recovery, Refusal, RestoreStart, Settings, Stop};
use source::backup::{Restore, Until};
use source::{OpenError, PageSource};

const KINDS: [SetKind; 6] =
    [SetKind::Full, SetKind::Log, SetKind::Log, SetKind::Differential, SetKind::Log, SetKind::Log];

/// Type number of bit columns.
const BIT: u8 = 104;

/// The sorted rows of each table.
type Tables = BTreeMap<String, Vec<Values>>;

fn spec(seed: u64) -> Spec {
    Spec { seed, transactions: 60, log_files: 1 + (seed % 3) as u16, ..Spec::default() }
}

fn chain(seed: u64, options: ChainOptions, folder: &std::path::Path) -> Chain {
    Workload::new(spec(seed)).unwrap().chain(&KINDS, options, folder).unwrap()
}

/// Restores the backups in memory and passes the result to `then`. Fails if the restore refuses any of the files.
fn restored<T>(
    paths: &[PathBuf],
    until: Until<'_>,
    stop: Option<&Stop>,
    then: impl FnOnce(&RecoveredPages<'_>) -> T,
) -> Result<T, Refusal> {
    restored_without(&[], paths, until, stop, then)
}

/// Like [`restored`], but the restore must refuse exactly the files in `refused`.
fn restored_without<T>(
    refused: &[PathBuf],
    paths: &[PathBuf],
    until: Until<'_>,
    stop: Option<&Stop>,
    then: impl FnOnce(&RecoveredPages<'_>) -> T,
) -> Result<T, Refusal> {
    let restore = match Restore::open(paths, &[], None, None, until) {
        Err(OpenError::EndsLater { .. }) => {
            return Err(Refusal::StopTooEarly { until: Lsn::default(), pages_to: Lsn::default() });
        }
        other => other.unwrap(),
    };
    let found: BTreeSet<&PathBuf> = restore.refused.iter().map(|(path, _)| path).collect();
    assert_eq!(found, refused.iter().collect(), "{:?}", restore.refused);
    let is_of_a_fork = |error: &OpenError| matches!(error, OpenError::LeftFork { .. } | OpenError::OtherFork { .. });
    assert!(restore.refused.iter().all(|(_, error)| is_of_a_fork(error)), "{:?}", restore.refused);
    let start = RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to };
    let log = Log::of_backups(restore.log)?;
    let settings = Settings { grant_bytes: 64 << 20, ..Settings::default() };
    let analysis = Analysis::of_restore(start, &log, stop, &settings)?;
    let recovery = Recovery::new(&restore.pages, &log, analysis, &settings)?;
    Ok(then(&RecoveredPages::new(&restore.pages, recovery)))
}

/// The rows of the chain's tables. Values that are stored off the row are left out.
fn rows(source: &dyn PageSource, chain: &Chain) -> Tables {
    rows_of(source, &chain.tables)
}

/// The rows of these tables. Fails if the database has another table that DDL made.
fn rows_of(source: &dyn PageSource, expected: &[TableTruth]) -> Tables {
    let database = catalog::load(source);
    let made = database.objects.values().filter(|object| object.name.starts_with("made_"));
    made.for_each(|object| assert!(expected.iter().any(|table| table.name == object.name), "{}", object.name));
    let mut tables: Tables = BTreeMap::new();
    for table in expected {
        let object = database.objects.values().find(|object| object.name == table.name).unwrap();
        let rowset = database.table_rowsets(object.id).next().unwrap();
        let columns: Vec<_> = table
            .columns
            .iter()
            .map(|name| database.columns[&object.id].iter().find(|column| column.name == *name).unwrap())
            .map(|column| rowset.layout.column(column.id).unwrap())
            .collect();
        let rows = tables.entry(table.name.clone()).or_default();
        for (page, bytes) in allocated(source) {
            let (id, page) = (page, Page::new(&bytes));
            let header = page.header();
            let unit = AllocUnitId::from_header(header.index_id.get(), header.object_id.get());
            let is_of_it = database.unit_index(unit).is_some_and(|unit| database.units[unit].owner_id == rowset.id);
            if !is_of_it || header.page_id() != id || header.kind() != Some(PageType::Data) {
                continue;
            }
            for slot in 0..page.header().slot_count.get() {
                let at = usize::from(page.slot_offset(slot).unwrap());
                let is_row = |status: u8| matches!(RecordKind::of(status), RecordKind::Primary | RecordKind::Forwarded);
                if at == 0 || !is_row(bytes[at]) {
                    continue;
                }
                let record = Record::data(&bytes[at..]).unwrap();
                let value = |column: &&catalog::RowsetColumn| match column.leaf_bytes(&record)? {
                    // The bit columns of a row share a byte.
                    [byte] if column.info.xtype == BIT => Some(vec![byte >> column.leaf_bit & 1]),
                    bytes => Some(bytes.to_vec()),
                };
                rows.push(columns.iter().map(value).collect());
            }
        }
    }
    tables
}

/// The allocated pages. Bits that torn-page protection replaced are restored.
fn allocated(source: &dyn PageSource) -> impl Iterator<Item = (PageId, Box<PageBytes>)> {
    let pages = source.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
    pages.filter_map(|page| {
        let pfs = source.read_page(PageId::new(page.file, (page.page / 8088 * 8088).max(1)))?;
        let is_allocated = pfs[100 + page.page as usize % 8088] & 0x40 != 0;
        let mut bytes = source.read_page(page).filter(|_| is_allocated)?;
        format::protection::undo_torn_bits(&mut bytes);
        Some((page, bytes))
    })
}

/// The expected rows after all commits up to, but not including, the first commit for which `is_in` returns false.
fn truth(chain: &Chain, mut is_in: impl FnMut(&lab::workload::Commit) -> bool) -> Tables {
    let mut tables: Vec<BTreeMap<Values, usize>> = Vec::new();
    for table in &chain.tables {
        let mut rows = BTreeMap::new();
        table.rows.iter().for_each(|row| *rows.entry(row.clone()).or_insert(0) += 1);
        tables.push(rows);
    }
    for commit in chain.commits.iter().take_while(|commit| is_in(commit)) {
        for change in &commit.changes {
            let rows = &mut tables[change.table];
            if let Some(before) = &change.before {
                let count = rows.get_mut(before).unwrap();
                *count -= 1;
                if *count == 0 {
                    rows.remove(before);
                }
            }
            if let Some(after) = &change.after {
                *rows.entry(after.clone()).or_insert(0) += 1;
            }
        }
    }
    let all = |rows: BTreeMap<Values, usize>| {
        rows.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, count)).collect()
    };
    chain.tables.iter().zip(tables).map(|(table, rows)| (table.name.clone(), all(rows))).collect()
}

/// Compares the rows of all tables. If a table has long values, its last column is not compared, because long values
/// are stored off the row.
fn compare(found: Tables, expected: Tables, name: &str) {
    for (table, expected) in expected {
        let is_long = |row: &Values| row.iter().any(|value| value.as_ref().is_some_and(|value| value.len() > 7000));
        let has_long = table == "documents" || expected.iter().any(is_long);
        let keep = |rows: Vec<Values>| {
            let columns = |row: Values| if has_long { row[..row.len() - 1].to_vec() } else { row };
            let mut rows: Vec<Values> = rows.into_iter().map(columns).collect();
            rows.sort();
            rows
        };
        let (found, expected) = (keep(found[&table].clone()), keep(expected));
        assert_eq!(found.len(), expected.len(), "{name}: {table}");
        assert!(found == expected, "{name}: rows of {table}");
    }
}

/// Asserts that a check of the restored database reports no findings.
fn assert_sound(source: &RecoveredPages<'_>, name: &str) {
    let database = catalog::load(source);
    let options = findings::Options { max_threads: 1, constraints: true, ..findings::Options::default() };
    let report = check::run(source, &database, &options, &check::Silent);
    let names = report.names();
    let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&names)).collect();
    assert_eq!(found, Vec::<String>::new(), "{name}");
    let doubts: Vec<_> = report.not_verified.iter().map(|entry| (&entry.what, &entry.scope, &entry.reason)).collect();
    assert!(report.demoted.is_empty() && doubts.is_empty(), "{name}: {doubts:?}");
}

#[test]
fn sets_in_any_order_are_the_database_at_the_end_of_the_last_one() {
    assert_eq!(refused_ends_of_sets(1..2), 0);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn sets_in_any_order_are_the_database_at_the_end_of_the_last_one_in_many_databases() {
    let refused = refused_ends_of_sets(0..12);
    assert!(refused <= 6, "{refused} of 60");
}

fn refused_ends_of_sets(seeds: Range<u64>) -> u32 {
    let options = [
        ChainOptions::default(),
        ChainOptions { checksum: true, compressed: true, stripes: 1 },
        ChainOptions { checksum: true, compressed: false, stripes: 3 },
    ];
    let mut refused = 0;
    for seed in seeds {
        let folder = tempfile::tempdir().unwrap();
        let chain = chain(seed, options[seed as usize % 3], folder.path());
        for last in 1..chain.sets.len() {
            let mut paths: Vec<PathBuf> = chain.sets[..=last].iter().flat_map(|set| set.files.clone()).collect();
            if seed % 2 == 1 {
                paths.reverse();
            }
            let name = format!("seed {seed}, set {last}");
            let end = &chain.sets[last].lsns.1;
            let whole = restored(&paths, Until::End, None, |source| {
                let applied = &source.recovery().applied;
                if !applied.not_recovered.is_empty() || applied.transactions_not_undone > 0 {
                    return false;
                }
                compare(rows(source, &chain), truth(&chain, |commit| commit.lsn < *end), &name);
                assert_sound(source, &name);
                true
            });
            refused += u32::from(!whole.unwrap());
        }
    }
    refused
}

#[test]
fn a_chain_with_ddl_is_the_database_at_the_end_of_each_set() {
    // In the first set of seed 0, the data file grew and no page of its new part is in use.
    assert_eq!(refused_ends_with_ddl(0..2), 0);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn many_chains_with_ddl_are_the_databases_at_the_end_of_each_set() {
    let refused = refused_ends_with_ddl(0..24);
    assert!(refused <= 6, "{refused} of 120");
}

fn refused_ends_with_ddl(seeds: Range<u64>) -> u32 {
    let mut refused = 0;
    for seed in seeds {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { ddl_each: 1 + seed % 5, transactions: 150, ..spec(seed) };
        let chain = Workload::new(spec).unwrap().chain(&KINDS, ChainOptions::default(), folder.path()).unwrap();
        for last in 1..chain.sets.len() {
            let paths: Vec<PathBuf> = chain.sets[..=last].iter().flat_map(|set| set.files.clone()).collect();
            let name = format!("seed {seed}, set {last}");
            let tables = &chain.sets[last].truth.tables;
            let whole = restored(&paths, Until::End, None, |source| {
                let applied = &source.recovery().applied;
                if !applied.not_recovered.is_empty() || applied.transactions_not_undone > 0 {
                    return false;
                }
                let expected = tables.iter().map(|table| (table.name.clone(), table.rows.clone())).collect();
                let [found, expected] = [rows_of(source, tables), expected].map(|rows| comparable(rows, tables));
                compare(found, expected, &name);
                assert_sound(source, &name);
                true
            });
            refused += u32::from(!whole.unwrap());
        }
    }
    refused
}

/// Makes the values of the columns `body` NULL, because long values are stored off the row. Also makes empty values NULL:
/// a forwarded row may have its back pointer at the place of an empty value, which then cannot be read as plain bytes.
fn comparable(mut rows: Tables, tables: &[TableTruth]) -> Tables {
    for table in tables {
        let body = table.columns.iter().position(|column| column == "body");
        for row in rows.get_mut(&table.name).into_iter().flatten() {
            body.and_then(|at| row.get_mut(at)).map(Option::take);
            row.iter_mut().for_each(|value| drop(value.take_if(|bytes| bytes.is_empty())));
        }
    }
    rows
}

/// Parses a time in the format that the lab uses: `2024-03-04T09:02:37.763`.
fn time(text: &str) -> LogTime {
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap();
    let seconds = number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
    // Days are counted from 1900-01-01, so day 45,350 is 2024-03-01.
    LogTime { days: 45_349 + number(8..10) as i32, ticks: seconds * 300 + number(20..23) * 3 / 10 }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_stop_between_two_commits_has_the_rows_of_that_moment() {
    let (mut stops, mut refused, mut too_early) = (0, 0, 0);
    for seed in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let chain = chain(seed, ChainOptions::default(), folder.path());
        let paths: Vec<PathBuf> = chain.sets.iter().flat_map(|set| set.files.clone()).collect();
        let end = &chain.sets.last().unwrap().lsns.1;
        let moments: BTreeSet<&str> =
            chain.commits.iter().filter(|commit| commit.lsn < *end).map(|commit| commit.time.as_str()).collect();
        for moment in moments.iter().step_by(5) {
            let name = format!("seed {seed}, {moment}");
            let stop = Stop::At(time(moment));
            let text = moment[..19].replace('T', " ");
            let found = restored(&paths, Until::Time(&text), Some(&stop), |source| {
                let applied = &source.recovery().applied;
                if !applied.not_recovered.is_empty() || applied.transactions_not_undone > 0 {
                    return false;
                }
                compare(rows(source, &chain), truth(&chain, |commit| commit.time.as_str() <= *moment), &name);
                assert_sound(source, &name);
                true
            });
            match found {
                Ok(is_whole) => refused += u32::from(!is_whole),
                Err(Refusal::StopTooEarly { .. }) => too_early += 1,
                Err(other) => panic!("{name}: {other}"),
            }
            stops += 1;
        }
    }
    assert!(stops > 40 && refused * 10 <= stops && too_early * 3 <= stops, "{stops} {refused} {too_early}");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn marks_stop_with_the_first_transaction_of_their_name_or_before_it() {
    let (mut stops, mut refused, mut too_early, mut twice) = (0, 0, 0, 0);
    for seed in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { marked_each: 9, transactions: 90, ..spec(seed) };
        let chain = Workload::new(spec).unwrap().chain(&KINDS, ChainOptions::default(), folder.path()).unwrap();
        let mut paths: Vec<PathBuf> = chain.sets.iter().flat_map(|set| set.files.clone()).collect();
        paths.rotate_left(seed as usize);
        let ((first, full_end), end) = (&chain.sets[0].lsns, &chain.sets.last().unwrap().lsns.1);
        for (number, mark) in ["mark 1", "Mark 2", "MARK 3"].into_iter().enumerate() {
            // The mark is the first committed transaction with this name. Transactions that were rolled back do not
            // count.
            let is_it = |commit: &&lab::workload::Commit| {
                commit.name == format!("mark {}", number + 1) && commit.lsn >= *first && commit.lsn < *end
            };
            let all: Vec<_> = chain.commits.iter().filter(is_it).collect();
            twice += u32::from(all.len() > 1);
            for (stop, with_it) in [(Stop::AtMark(mark.into()), true), (Stop::BeforeMark(mark.into()), false)] {
                let name = format!("seed {seed}, {stop:?}");
                let found = restored(&paths, Until::Mark, Some(&stop), |source| {
                    let applied = &source.recovery().applied;
                    if !applied.not_recovered.is_empty() || applied.transactions_not_undone > 0 {
                        return false;
                    }
                    let last = &all[0].lsn;
                    let expected = truth(&chain, |commit| commit.lsn < *last || with_it && commit.lsn == *last);
                    compare(rows(source, &chain), expected, &name);
                    assert_sound(source, &name);
                    true
                });
                match (found, all.first()) {
                    (Ok(is_whole), Some(_)) => refused += u32::from(!is_whole),
                    // The full backup already contains the marked transaction.
                    (Err(Refusal::StopTooEarly { .. }), Some(mark)) if mark.lsn < *full_end => too_early += 1,
                    (Err(Refusal::NoMark { .. }), None) => {}
                    (other, mark) => panic!("{name}: {other:?} {mark:?}"),
                }
                stops += 1;
            }
        }
        for mark in ["mark 4", "mark", "mark 1 "] {
            for stop in [Stop::AtMark(mark.into()), Stop::BeforeMark(mark.into())] {
                let found = restored(&paths, Until::Mark, Some(&stop), |_| ());
                assert!(matches!(found, Err(Refusal::NoMark { name, .. }) if name == mark), "seed {seed}, {stop:?}");
            }
        }
    }
    assert!(
        stops >= 20 && twice >= 4 && refused <= 4 && too_early * 3 <= stops,
        "{stops} {twice} {refused} {too_early}"
    );
}

/// Sequences of events for databases that are restored to an earlier point in time.
fn stories() -> [(&'static str, Vec<Event>); 6] {
    use Event::{BackUp, Remember, Restore, Settle, Work};
    use SetKind::{Differential, Full, Log};
    let in_the_middle = [Settle, Remember, Work, BackUp(Log), Restore, Work, BackUp(Log), Work, BackUp(Log)];
    let begun = [Work, BackUp(Full), Work, BackUp(Log), Work];
    [
        // The first log backup of the new recovery fork begins in the old recovery fork.
        ("in the middle of a log backup", [&begun[..], &in_the_middle].concat()),
        (
            "to the end of a log backup",
            [
                &begun[..],
                &[Settle, BackUp(Log), Remember, Work, BackUp(Log), Work, BackUp(Log), Restore, Work, BackUp(Log)],
                &[Work, BackUp(Differential), Work, BackUp(Log)],
            ]
            .concat(),
        ),
        ("twice, each time from the fork before", [&begun[..], &in_the_middle, &in_the_middle].concat()),
        (
            "to a moment before the newest full backup and a differential",
            [
                &begun[..],
                &[Settle, Remember, Work, BackUp(Differential), Work, BackUp(Full), Work, BackUp(Log), Restore],
                &[Work, BackUp(Log)],
            ]
            .concat(),
        ),
        (
            "twice to one moment",
            [
                &begun[..],
                &[Settle, Remember, Work, BackUp(Log), Restore, Work, BackUp(Log), Work, BackUp(Log), Restore],
                &[Work, BackUp(Log), Work, BackUp(Log)],
            ]
            .concat(),
        ),
        (
            "and a full backup after that",
            [&begun[..], &in_the_middle, &[Work, BackUp(Full), Work, BackUp(Log)]].concat(),
        ),
    ]
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_database_that_was_restored_to_a_moment_goes_on_in_its_new_recovery_fork_only() {
    let (mut stops, mut partial, mut left_rows) = (0, 0, 0);
    for (seed, (story, events)) in (0..12).zip(stories().into_iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { transactions: 90, ..spec(seed) };
        let chain = Workload::new(spec).unwrap().story(&events, ChainOptions::default(), folder.path()).unwrap();
        let files = |is_wanted: &dyn Fn(&ChainSet) -> bool| -> Vec<PathBuf> {
            chain.sets.iter().filter(|set| is_wanted(set)).flat_map(|set| set.files.clone()).collect()
        };
        // Only log backups of the abandoned fork are reported. Unneeded full and differential backups are not reported.
        let left = files(&|set| set.is_left && set.kind == SetKind::Log);
        let (mut all, kept) = (files(&|_| true), files(&|set| !set.is_left));
        all.rotate_left(seed as usize % 5);
        let end = chain.sets.last().unwrap();
        let expected =
            || end.truth.tables.iter().map(|table| (table.name.clone(), table.rows.clone())).collect::<Tables>();
        for (paths, refused) in [(&all, left.as_slice()), (&kept, &[])] {
            let name = format!("seed {seed}, {story}, {} files", paths.len());
            restored_without(refused, paths, Until::End, None, |source| {
                let applied = &source.recovery().applied;
                let is_whole = applied.not_recovered.is_empty() && applied.transactions_not_undone == 0;
                partial += u32::from(!is_whole);
                if is_whole {
                    compare(rows(source, &chain), expected(), &name);
                    assert_sound(source, &name);
                }
            })
            .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        }
        // Restores to the time of every seventh commit on the recovery forks that the database followed.
        let moments: BTreeSet<&str> = chain.commits.iter().map(|commit| commit.time.as_str()).collect();
        for moment in
            moments.into_iter().filter(|moment| *moment < chain.commits.last().unwrap().time.as_str()).step_by(7)
        {
            let name = format!("seed {seed}, {story}, {moment}");
            let text = moment[..19].replace('T', " ");
            let stop = Stop::At(time(moment));
            let found = restored_without(&left, &all, Until::Time(&text), Some(&stop), |source| {
                let applied = &source.recovery().applied;
                if applied.not_recovered.is_empty() && applied.transactions_not_undone == 0 {
                    let expected = truth(&chain, |commit| commit.time.as_str() <= moment);
                    compare(rows(source, &chain), expected, &name);
                    assert_sound(source, &name);
                    stops += 1;
                }
            });
            assert!(matches!(found, Ok(()) | Err(Refusal::StopTooEarly { .. })), "{name}: {:?}", found.err());
        }
        // If the backup sets of the new fork are missing, the abandoned fork can be restored too. The result is the
        // database before its restore to an earlier point.
        let Some(number) = chain.sets.iter().rposition(|set| set.is_left).filter(|_| story.starts_with("in the"))
        else {
            continue;
        };
        let before = files(&|set| set.lsns.0 <= chain.sets[number].lsns.0 && (set.is_left || !left_after(&chain, set)));
        let name = format!("seed {seed}, {story}, the fork that was left");
        restored(&before, Until::End, None, |source| {
            let applied = &source.recovery().applied;
            if applied.not_recovered.is_empty() && applied.transactions_not_undone == 0 {
                let tables = &chain.sets[number].truth.tables;
                let expected = tables.iter().map(|table| (table.name.clone(), table.rows.clone())).collect();
                compare(rows(source, &chain), expected, &name);
                left_rows += 1;
            }
        })
        .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    }
    assert!(stops > 40 && partial <= 4 && left_rows > 0, "{stops} {partial} {left_rows}");
}

/// Whether a set is newer than at least one set of an abandoned fork.
fn left_after(chain: &Chain, set: &ChainSet) -> bool {
    let number = |wanted: &ChainSet| chain.sets.iter().position(|set| set.files == wanted.files);
    chain.sets.iter().filter(|other| other.is_left).any(|other| number(other) < number(set))
}

/// Changes bytes of a log backup. The restore may be refused, or may recover all or some pages. Neither the recovery
/// nor a check of its result may panic.
#[test]
#[ignore = "full tier: takes seconds"]
fn any_log_backup_is_applied_or_refused() {
    let (mut refused, mut partial, mut whole) = (0, 0, 0);
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let chain = chain(seed, ChainOptions { checksum: seed == 1, ..ChainOptions::default() }, folder.path());
        let paths: Vec<PathBuf> = chain.sets.iter().flat_map(|set| set.files.clone()).collect();
        let target = &chain.sets[4].files[0];
        let sound = std::fs::read(target).unwrap();
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % below as u64) as usize
        };
        for round in 0..60 {
            let mut bytes = sound.clone();
            for _ in 0..=round % 3 {
                let at = next(bytes.len());
                bytes[at] = if round % 2 == 0 { bytes[at] ^ (1 << next(8)) } else { next(256) as u8 };
            }
            if round % 10 == 0 {
                bytes.truncate(1 + next(sound.len()));
            }
            std::fs::write(target, &bytes).unwrap();
            let Ok(restore) = Restore::open(&paths, &[], None, None, Until::End) else {
                refused += 1;
                continue;
            };
            let start = RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to };
            let settings = Settings { grant_bytes: 64 << 20, ..Settings::default() };
            let made = Log::of_backups(restore.log).map_err(Refusal::from).and_then(|log| {
                let analysis = Analysis::of_restore(start, &log, None, &settings)?;
                Recovery::new(&restore.pages, &log, analysis, &settings)
            });
            let Ok(recovery) = made else {
                refused += 1;
                continue;
            };
            match recovery.applied.not_recovered.len() {
                0 => whole += 1,
                _ => partial += 1,
            }
            let recovered = RecoveredPages::new(&restore.pages, recovery);
            let database = catalog::load(&recovered);
            let options = findings::Options { max_threads: 1, ..findings::Options::default() };
            drop(check::run(&recovered, &database, &options, &check::Silent));
        }
        std::fs::write(target, &sound).unwrap();
    }
    assert!(refused > 10 && whole > 10, "{refused} {partial} {whole}");
}
