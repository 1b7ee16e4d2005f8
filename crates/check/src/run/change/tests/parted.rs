//! A run by change whose ranges other processes have swept.

use std::io::Cursor;

use super::*;
use crate::part::{Part as TaskPart, Sweeper, read_ranges_left, sweeper};

const HEAD: &[u8] = b"head";

/// What a plan and its tasks have made.
struct Planned {
    areas: Vec<FileRange>,
    /// The ranges that each task has swept.
    swept: Vec<Vec<FileRange>>,
    parts: Vec<Vec<u8>>,
    pages_kept: u64,
}

/// Plans a run, and runs its tasks, the last first. No task sweeps more than `most` pages.
fn planned(later: &Later, database: &Database, options: &Options, ledger: &Memory, most: u64) -> Planned {
    sweeper(later, database, options, &Silent, |sweeper: Option<&mut Sweeper<'_, '_>>| {
        let sweeper = sweeper.unwrap();
        let left_out = sweeper.left_out(ledger, &Silent).unwrap();
        let areas = sweeper.ranges_left(&left_out, most, 1 << 20);
        assert!(areas.iter().all(|(_, pages)| *pages <= most));
        let areas: Vec<FileRange> = areas.into_iter().map(|(range, _)| range).collect();
        sweeper.tile(&areas).unwrap();
        let (mut all_swept, mut parts) = (Vec::new(), Vec::new());
        for range in areas.iter().rev() {
            let mut bytes = Vec::new();
            sweeper.write_ranges(&left_out, *range, HEAD, &mut bytes).unwrap();
            let key = options.hash_key.as_ref().unwrap();
            let swept = read_ranges_left(key, (*range, 8), HEAD, &mut bytes.as_slice()).unwrap();
            assert!(read_ranges_left(key, (*range, 8), b"other", &mut bytes.as_slice()).is_err());
            let mut part = Vec::new();
            sweeper.sweep_ranges((*range, &swept, 8), HEAD, &Silent, &mut part).unwrap();
            all_swept.push(swept);
            parts.push(part);
        }
        Planned { areas, swept: all_swept, parts, pages_kept: left_out.pages_kept }
    })
}

fn merged(
    later: &Later,
    database: &Database,
    options: &Options,
    ledger: &Memory,
    planned: &Planned,
) -> Result<(Report, Reuse), NotByChange> {
    let (mut ranges, mut parts) = (planned.swept.iter().cloned(), planned.parts.iter());
    let divided = Divided {
        ranges: planned.areas.clone(),
        swept: &mut || ranges.next().map(Ok),
        begin: &mut |surveyed| {
            surveyed.tile(&planned.areas).unwrap();
            Ok(())
        },
        parts: &mut || {
            parts.next().map(|part| Ok(TaskPart { head: HEAD.to_vec(), from: Box::new(Cursor::new(part.clone())) }))
        },
    };
    merge_by_change((later, database), options, (&Silent, None), ledger, divided)
}

/// The parts that the last run has kept, by their ranges.
fn kept(ledger: &Memory) -> BTreeMap<(u16, u32), Part> {
    let runs = ledger.runs.lock().unwrap();
    let groups = &runs.last().unwrap().groups;
    let parts = groups.iter().flat_map(|group| &group.parts);
    parts.map(|part| ((part.key.range.file_id, part.key.range.first), part.clone())).collect()
}

#[test]
fn tasks_make_the_parts_and_the_report_of_one_run() {
    for damaged in [0, 60] {
        let (files, database, ledger) = base(damaged);
        let pages = data_pages(&files.files);
        let later = changed(&files.files, &[pages[3], pages[30]], with_other_lsn);
        for (state, ledger) in [(&files, Memory::new()), (&later, ledger.again()), (&later, Memory::new())] {
            let again = || if ledger.runs() == 0 { Memory::new() } else { ledger.again() };
            let one = again();
            let (report, reuse) = run_by_change(state, &database, &options(), &Silent, &one).unwrap();
            for (threads, most) in [(1, 128), (3, 128), (2, 1 << 20)] {
                let options = Options { max_threads: threads, ..options() };
                let tasks = again();
                let planned = planned(state, &database, &options, &tasks, most);
                let (found, found_reuse) = merged(state, &database, &options, &tasks, &planned).unwrap();
                // With an empty ledger, one run also reads stretches of free pages.
                assert!(said_of(found, &report), "{threads} threads, {most} pages");
                assert_eq!((found_reuse.pages_kept, found_reuse.ranges), (reuse.pages_kept, reuse.ranges));
                assert!(planned.pages_kept >= reuse.pages_kept, "{} {}", planned.pages_kept, reuse.pages_kept);
                assert!(kept(&tasks) == kept(&one), "{threads} threads, {most} pages");
                // The next run uses what the tasks have kept.
                let next = check(state, &database, &options, &tasks.next());
                assert_eq!(next, check(state, &database, &options, &again_of(&one)));
            }
        }
    }
}

/// The ledger as the next run finds it.
fn again_of(ledger: &Memory) -> Memory {
    let runs = ledger.runs.lock().unwrap().clone();
    let given = runs.len();
    Memory { later: ledger.later, ..Memory::of(runs, given) }.next()
}

#[test]
fn parts_do_not_depend_on_the_threads_and_a_changed_part_is_refused() {
    let (files, database, ledger) = base(0);
    let later = changed(&files.files, &[data_pages(&files.files)[3]], with_other_lsn);
    let of_threads =
        |max_threads| planned(&later, &database, &Options { max_threads, ..options() }, &ledger.again(), 128);
    let (one, many) = (of_threads(1), of_threads(4));
    assert!(one.parts == many.parts, "the threads show");
    assert!(one.parts.len() > 1, "{:?}", one.areas);
    for at in (0..one.parts[0].len()).step_by(97) {
        let mut changed =
            Planned { areas: one.areas.clone(), swept: one.swept.clone(), parts: one.parts.clone(), pages_kept: 0 };
        changed.parts[0][at] ^= 4;
        assert!(merged(&later, &database, &options(), &ledger.again(), &changed).is_err(), "{at}");
    }
}

#[test]
fn a_range_that_is_neither_planned_nor_kept_ends_the_merge_and_none_counts_twice() {
    let (files, database, ledger) = base(0);
    let later = changed(&files.files, &[data_pages(&files.files)[3]], with_other_lsn);
    let planned = planned(&later, &database, &options(), &ledger.again(), 256);
    let refused = merged(&later, &database, &options(), &Memory::new(), &planned);
    assert!(matches!(refused, Err(NotByChange::LeftOut { count, .. }) if count > 10), "{:?}", refused.err());
    // Another check has added the parts of the planned ranges in the meantime.
    let grown = ledger.again();
    let (report, reuse) = run_by_change(&later, &database, &options(), &Silent, &grown).unwrap();
    let (again, reuse_again) = merged(&later, &database, &options(), &grown.next(), &planned).unwrap();
    assert!(said_of(again, &report));
    assert_eq!(reuse_again.pages_kept, reuse.pages_kept);
}

#[test]
fn a_kept_page_that_the_merge_finds_bad_ends_it() {
    let (files, database, ledger) = base(0);
    let (node, children) = node_with_children(&files.files);
    let child = lone_child(&files.files, node, &children);
    let later = changed(&files.files, &[child], with_other_lsn);
    let planned = planned(&later, &database, &options(), &ledger.again(), 256);
    let rotten = Later { files: with_rot(&later.files, node), above: later.above.clone() };
    let refused = merged(&rotten, &database, &options(), &ledger.again(), &planned);
    assert!(matches!(refused, Err(NotByChange::Rotten(page)) if page == node), "{:?}", refused.err());
}
