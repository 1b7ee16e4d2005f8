//! Tests with reads that fail at first and succeed later.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use check::Silent;
use findings::Options;
use format::page::PAGE_BYTES;
use source::{DataFiles, PageSource};

use super::{data_file, folder_with_database};

/// The test truncates the file while its catalog is read, and restores the file before its pages are read.
#[test]
fn a_read_that_fails_only_while_the_catalogue_is_read_is_an_error_of_the_run_and_no_finding() {
    let folder = folder_with_database();
    let path = data_file(folder.path());
    let bytes = fs::read(&path).unwrap();
    let source = DataFiles::open(std::slice::from_ref(&path)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(12 * PAGE_BYTES as u64).unwrap();
    let database = catalog::load(&source);
    assert!(!database.gaps.is_empty());
    file.write_all_at(&bytes, 0).unwrap();
    let report = check::run(&source, &database, &Options::default(), &Silent);
    let [error] = &report.read_errors[..] else { panic!("{:?}", report.read_errors) };
    let words = [path.to_str().unwrap(), "cannot read at byte", "has become shorter", "repeat the run"];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(!report.complete());
    // If no read failed, a source reports no faults.
    assert_eq!(DataFiles::open(std::slice::from_ref(&path)).unwrap().read_faults(), source::ReadFaults::default());
}
