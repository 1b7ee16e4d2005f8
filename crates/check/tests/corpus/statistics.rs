//! Statistics of real databases: every blob is read to its end, its steps ascend and its counts are possible; and every
//! collation of a real column has a name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use catalog::{Database, StatisticsColumn, StoredStatistics, read_base_table, read_statistics};
use format::bytes::unsigned;
use format::collation::CollationId;
use format::key::KeyOrder;
use format::statistics::{StatisticsBlob, Step, StepOrder};
use libtest_mimic::{Failed, Trial};
use source::PageSource;

use crate::Corpus;

/// Two tests over all files.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let (one, other) = (corpus.clone(), corpus.clone());
    vec![
        Trial::test("statistics: all histograms are whole and in order", move || histograms(&one)),
        Trial::test("statistics: all collations of columns have a name", move || collations(&other)),
    ]
}

/// Data files and backups, those that can be opened by themselves.
fn each_database(corpus: &Corpus, mut each: impl FnMut(&str, &dyn PageSource, &Database)) -> usize {
    let mut count = 0;
    for list in ["inventory.tsv", "inventory2.tsv"] {
        let inventory = fs::read_to_string(corpus.lists.join(list)).unwrap_or_default();
        for line in inventory.lines().skip(1) {
            let columns: Vec<&str> = line.split('\t').collect();
            let (Some(&path), Some(&("mdf" | "bak"))) = (columns.first(), columns.get(3)) else { continue };
            let full: PathBuf = corpus.files.join(path);
            let Ok(source) = source::open(&[full], &[], false) else { continue };
            let database = catalog::load(source.as_ref());
            // Stripes by themselves, and files that lost their catalog, are left out.
            if database.boot.is_some() && !database.is_encrypted && database.gaps.is_empty() {
                each(path, source.as_ref(), &database);
                count += 1;
            }
        }
    }
    count
}

/// What was read, and how many pairs of steps of each type and collation ascend or are undecided.
#[derive(Default)]
struct Counts {
    empty: u64,
    read: u64,
    steps: BTreeMap<String, [u64; 2]>,
    wrong: Vec<String>,
}

fn histograms(corpus: &Corpus) -> Result<(), Failed> {
    let mut counts = Counts::default();
    let databases = each_database(corpus, |path, source, database| {
        let all = read_statistics(
            source,
            database,
            |_| true,
            |statistics, stored| {
                let place = || format!("{path}: {} of object {}", statistics.id, statistics.object_id);
                let bytes = match stored {
                    StoredStatistics::Nothing => return counts.empty += 1,
                    StoredStatistics::Unreadable => return counts.wrong.push(format!("{}: off the row", place())),
                    StoredStatistics::Blob(bytes) => bytes,
                };
                let column = statistics.columns.first().copied().flatten();
                if let Err(why) = one(&mut counts, bytes, column) {
                    counts.wrong.push(format!("{}: {why}", place()));
                }
            },
        );
        if let Err(why) = all {
            counts.wrong.push(format!("{path}: {why:?}"));
        }
    });
    println!("{databases} databases: {} blobs read, {} empty", counts.read, counts.empty);
    for (what, [ascend, undecided]) in &counts.steps {
        println!("  {what}: {ascend} ascend, {undecided} undecided");
    }
    let total = counts.steps.values().fold([0, 0], |sum, pair| [sum[0] + pair[0], sum[1] + pair[1]]);
    println!("  all: {} ascend, {} undecided, {} wrong", total[0], total[1], counts.wrong.len());
    match counts.wrong.is_empty() && counts.read > 30_000 {
        true => Ok(()),
        false => Err(format!("{} read\n{}", counts.read, counts.wrong.join("\n")).into()),
    }
}

/// Reads a blob and counts its pairs of steps.
fn one(counts: &mut Counts, bytes: &[u8], column: Option<StatisticsColumn>) -> Result<(), String> {
    let blob = StatisticsBlob::read(bytes).map_err(|fault| format!("{fault:?}"))?;
    counts.read += 1;
    if !blob.has_possible_counts() || !blob.has_possible_densities() {
        return Err("impossible counts".to_owned());
    }
    let column = column.ok_or("no column")?;
    let order = StepOrder::of(column.info, column.collation).ok_or("no order")?;
    if let Some(step) = blob.steps.iter().find(|step| !order.fits(step)) {
        return Err(format!("{step:?} does not fit"));
    }
    let is_text = matches!(order, StepOrder::Key { order: KeyOrder::Ansi(_) | KeyOrder::Unicode(_), .. });
    let collation = if is_text { column.collation.name().unwrap_or_default() } else { String::new() };
    let pair = counts.steps.entry(format!("{} {collation}", column.info.name())).or_default();
    for (before, after) in blob.steps.iter().zip(blob.steps.iter().skip(1)) {
        match order.ascends(before, after) {
            Some(true) => pair[0] += 1,
            None => pair[1] += 1,
            Some(false) => return Err(contradiction(before, after)),
        }
    }
    Ok(())
}

fn contradiction(before: &Step<'_>, after: &Step<'_>) -> String {
    format!("{:02x?} is followed by {:02x?}", before.value, after.value)
}

fn collations(corpus: &Corpus) -> Result<(), Failed> {
    /// Of XML node tables: a bit of it is not known, and no server has a name for it.
    const OF_NODES: u32 = 0xC08;
    const SYSCOLPARS: i32 = 41;
    let mut found: BTreeMap<u32, u64> = BTreeMap::new();
    let mut unread = BTreeSet::new();
    each_database(corpus, |path, source, database| {
        let read = read_base_table(source, database, SYSCOLPARS, &["collationid"], |_, values| {
            let id = values.first().copied().flatten().map_or(0, unsigned);
            *found.entry(id as u32).or_default() += 1;
        });
        if read.is_err() {
            unread.insert(path.to_owned());
        }
    });
    for (id, count) in &found {
        println!("{id:08X} {}: {count}", CollationId(*id).name().unwrap_or_default());
    }
    let unnamed: Vec<u32> = found.into_keys().filter(|id| CollationId(*id).name().is_none()).collect();
    match unnamed == [0, OF_NODES] && unread.is_empty() {
        true => Ok(()),
        false => Err(format!("no name: {unnamed:x?}; not read: {unread:?}").into()),
    }
}
