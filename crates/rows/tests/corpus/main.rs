//! Reads the tables of real databases. The row counts must equal the counts of an independent reader, rows of tables
//! with a clustered index must be in key order, and every value must be readable. Some values of Microsoft's sample
//! databases are also checked.
//!
//! The files are not part of the repository. The tests look for them in `target/corpus` (see CONTRIBUTING.md). If the
//! files are missing, the only test reports their absence and counts as ignored.

#![expect(clippy::expect_used, reason = "a test harness of its own: a failed expectation is a failed test")]

mod known;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use catalog::Database;
use flate2::read::GzDecoder;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rows::{NoKeyOrder, Order, RangeCounts, Reader, Scan, ScanOptions, Table, Unreadable, Value};
use source::PageSource;

/// The number of rows, by object and partition.
type Counts = BTreeMap<(i32, i32), u64>;

fn main() {
    let arguments = Arguments::from_args();
    let Some((files, lists)) = corpus() else {
        let why = || Ok(Completion::ignored_with("no real database files in target/corpus"));
        libtest_mimic::run(&arguments, vec![Trial::ignorable_test("rows", why)]).exit();
    };
    let mut trials = Vec::new();
    for list in ["expected.tsv.gz", "expected2.tsv.gz", "expected-backups.tsv.gz"] {
        for (path, counts) in expected(&lists.join(list)) {
            let full = files.join(&path);
            trials.push(Trial::test(format!("rows: {path}"), move || all_rows(&full, &counts)));
        }
    }
    trials.extend(known::trials(&files));
    // Tests with real files are marked as ignored, because only the full test tier, which runs ignored tests, must run
    // them.
    let trials = trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// The folder of the database files, and the folder with the lists of their row counts. `None` if these are missing, or
/// if the tests must run without them.
fn corpus() -> Option<(PathBuf, PathBuf)> {
    if std::env::var_os("MDFSCK_WITHOUT_CORPUS").is_some() {
        return None;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lists = std::env::var_os("MDFSCK_CORPUS_LISTS").map(PathBuf::from);
    let (files, lists) = (workspace.join("target/corpus"), lists.unwrap_or(workspace.join("../shared/corpus")));
    (files.is_dir() && lists.join("expected.tsv.gz").is_file()).then_some((files, lists))
}

/// The numbers of live rows of heaps and clustered indexes, by file.
fn expected(list: &Path) -> BTreeMap<String, Counts> {
    let mut text = String::new();
    let file = fs::File::open(list).expect("a list of the corpus");
    GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let mut files: BTreeMap<String, Counts> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, _, _, object, _, _, _, index, _, partition, _, live, ..] = columns.as_slice() else { continue };
        let number = |text: &str| text.parse::<i32>().ok();
        let (Some(object), Some(0 | 1), Some(partition), Ok(live)) =
            (number(object), number(index), number(partition), live.parse())
        else {
            continue;
        };
        files.entry((*path).to_owned()).or_default().insert((object, partition), live);
    }
    files
}

fn all_rows(path: &Path, expected: &Counts) -> Result<(), Failed> {
    let source = source::open(&[path.to_owned()], &[], false).map_err(|error| error.to_string())?;
    let database = catalog::load(source.as_ref());
    let mut wrong = Vec::new();
    let mut found = Counts::new();
    let mut objects: Vec<i32> = expected.keys().map(|(object, _)| *object).collect();
    objects.dedup();
    for object in objects {
        let table = match Table::of(&database, object) {
            Ok(table) => table,
            Err(why) => {
                wrong.push(format!("{object}: {why}"));
                continue;
            }
        };
        let counts = rows_of(source.as_ref(), &database, &table, &mut found, &mut wrong);
        if !counts.damaged_pages.is_empty() || counts.skipped_slots > 0 {
            wrong.push(format!("{}: {counts:?}", table.full_name()));
        }
    }
    for (key, live) in expected {
        let read = found.get(key).copied().unwrap_or_default();
        if read != *live {
            wrong.push(format!("{key:?}: {read} rows read, {live} counted"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Reads a table and checks each value.
fn rows_of(
    source: &dyn PageSource,
    database: &Database,
    table: &Table,
    found: &mut Counts,
    wrong: &mut Vec<String>,
) -> RangeCounts {
    let options = ScanOptions::default();
    let mut scan = Scan::new(source, database, table, options);
    if !matches!(scan.order(), Order::Key | Order::Allocation(NoKeyOrder::Heap)) {
        wrong.push(format!("{}: {}", table.full_name(), scan.order()));
    }
    let mut reader = Reader::new(source, database, table, options);
    let mut all = RangeCounts::default();
    let mut bad: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(range) = scan.next_range() {
        let partition = database.rowsets[table.partitions[range.partition]].partition;
        let counts = reader.read(&range, &mut |row| {
            *found.entry((table.object_id, partition)).or_default() += 1;
            for (column, value) in table.columns.iter().zip(row.values) {
                let why = match value {
                    Value::Unreadable(Unreadable::NotStored) => continue,
                    Value::Unreadable(why) => format!("{why:?}"),
                    Value::LongText(long) | Value::LongBytes(long) => match long.pieces(&mut |_| Ok(()))? {
                        Ok(()) => continue,
                        Err(why) => format!("{why:?} in pieces"),
                    },
                    _ => continue,
                };
                let collation = column.collation.0;
                let declared = column.info.declaration();
                *bad.entry(format!("{} {declared} {} {collation:#x} {why}", column.name, column.user_type))
                    .or_default() += 1;
            }
            Ok(())
        });
        all.add(&counts.expect("rows are only looked at"));
    }
    wrong.extend(bad.into_iter().map(|(what, count)| format!("{}: {count} of {what}", table.full_name())));
    all
}
