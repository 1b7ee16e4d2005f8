use lab::Version;
use source::MemoryFiles;

use super::*;
use crate::run::run;

/// A lab database with damaged pages, which have no checksum. `damaged` is the number of these pages.
pub(crate) fn database_of_lab(damaged: usize, bytes: u64) -> MemoryFiles {
    let folder = tempfile::tempdir().unwrap();
    let description = lab::orders::orders(Version::V852, 3, bytes);
    let paths = lab::write(&description, folder.path()).unwrap().files;
    let mut files: Vec<_> = paths.into_iter().map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect();
    let mut left = damaged;
    let pages = files.iter_mut().flat_map(|(_, bytes)| bytes.chunks_exact_mut(8192)).skip(200).step_by(7);
    for (at, page) in pages.enumerate().filter(|(_, page)| page[0] == 1 && (1..=4).contains(&page[1])) {
        if left == 0 {
            break;
        }
        left -= 1;
        // Removes the checksum, then changes the next page, the previous page, the level, or a byte of a row.
        page[5] &= !3;
        page[[16, 8, 3, 110][at % 4]] ^= 5;
    }
    MemoryFiles::open(files).unwrap()
}

/// The content of a report, without the time and memory that the run took.
pub(crate) fn said(report: &Report) -> String {
    let findings: Vec<String> = report.findings.into_iter().map(|finding| format!("{finding:?}")).collect();
    let Report { rowsets, beyond, not_verified, notes, read_errors, file_totals, statistics, .. } = report;
    let counts =
        (statistics.pages_read, statistics.rows, statistics.column_values_checked, statistics.index_rows_compared);
    format!(
        "{findings:#?} {rowsets:?} {beyond:?} {not_verified:#?} {notes:?} {read_errors:?} {file_totals:?} {counts:?}"
    )
}

fn all() -> Options {
    Options { constraints: true, identities: true, hash_seed: Some(7), ..Options::default() }
}

#[test]
fn sums_that_are_written_and_read_after_the_sweep_give_the_same_report() {
    for damaged in [0, 60] {
        let files = database_of_lab(damaged, 2 << 20);
        let database = catalog::load(&files);
        for options in [
            all(),
            Options { batches: 3, ..all() },
            Options { memory_bytes: Some(1), max_threads: 3, ..all() },
            Options { physical_only: true, ..all() },
        ] {
            let expected = run(&files, &database, &options, &Silent);
            assert_eq!(expected.findings.into_iter().count() > 0, damaged > 0);
            let mut bytes_written = 0;
            let carried = run_with_sums_carried(&files, &database, &options, |bytes| bytes_written += bytes.len());
            assert_eq!(said(&carried.unwrap()), said(&expected), "{options:?}");
            assert!(bytes_written > 1000);
        }
    }
}

#[test]
fn sums_that_were_cut_or_changed_or_are_of_another_run_are_an_error() {
    let files = database_of_lab(0, 2 << 20);
    let database = catalog::load(&files);
    let carried = |seed, change: &mut dyn FnMut(&mut Vec<u8>)| {
        let options = Options { hash_seed: Some(seed), ..all() };
        run_with_sums_carried(&files, &database, &options, change)
    };
    let mut whole = Vec::new();
    carried(7, &mut |bytes| whole = bytes.clone()).unwrap();
    for part in [0, 1, 2, 3] {
        let at = whole.len() * part / 4;
        assert!(carried(7, &mut |bytes| bytes.truncate(at)).is_err(), "cut at {at}");
        assert!(carried(7, &mut |bytes| bytes[at] ^= 1).is_err(), "changed at {at}");
    }
    assert!(carried(7, &mut |bytes| bytes.push(0)).is_ok(), "what follows is another's");
    assert!(carried(8, &mut |bytes| bytes.clone_from(&whole)).is_err(), "of another seed");
}
