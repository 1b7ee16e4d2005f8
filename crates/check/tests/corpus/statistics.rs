//! Statistics of real databases: every blob must be readable to its end, its steps must be in ascending order, and its
//! counts must be possible. Every collation of a real column must have a name. Damaged statistics in lab databases must
//! give a note, but only with extended logical checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use catalog::{Database, StatisticsColumn, StoredStatistics, read_base_table, read_statistics};
use findings::Options;
use findings::registry::limits::{self, Limit};
use format::PAGE_BYTES;
use format::bytes::unsigned;
use format::collation::CollationId;
use format::statistics::{StatisticsBlob, Step, StepOrder};
use libtest_mimic::{Failed, Trial};
use source::PageSource;

use crate::Corpus;
use crate::base_table::BaseTable;
use crate::image::Image;
use crate::subjects::{self, STATISTICS};

/// Two tests over all files.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let (one, other) = (corpus.clone(), corpus.clone());
    vec![
        Trial::test("statistics: all histograms are whole and in order", move || histograms(&one)),
        Trial::test("statistics: all collations of columns have a name", move || collations(&other)),
    ]
}

/// Calls `each` for all data files, and for all backups that can be opened without other files.
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
            // Single stripes and files without a readable catalog are skipped.
            if database.boot.is_some() && !database.is_encrypted && database.gaps.is_empty() {
                each(path, source.as_ref(), &database);
                count += 1;
            }
        }
    }
    count
}

/// The number of blobs read and, by type and collation, how many pairs of steps ascend and how many are undecided.
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

/// Reads a blob and counts its pairs of neighboring steps.
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
    let collation = if order.is_of_text() { column.collation.name().unwrap_or_default() } else { String::new() };
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
    /// The collation ID of columns of XML node tables. The meaning of one of its bits is unknown, and no server has a
    /// name for this collation.
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

/// The place of a blob: page and offset.
type At = (u32, usize);

/// Damages a blob. The argument is the part of the page that starts with the blob.
type Damage = fn(&mut [u8]);

/// A test of a state other than a damaged blob.
type State = fn() -> Result<(), Failed>;

/// One test per kind of damage, and tests of other states.
pub fn lab_trials() -> Vec<Trial> {
    let damages: [(&str, &'static Limit, usize, Damage); 10] = [
        ("a number above the next", &limits::STATISTICS_ORDER, NUMBERS, |blob| step(blob, 3)[16..20].fill(0x7F)),
        ("a text above the next", &limits::STATISTICS_ORDER, TEXTS, |blob| step(blob, 3)[23] = b'~'),
        ("a count that is no number", &limits::STATISTICS_COUNTS, NUMBERS, |blob| step(blob, 2)[4..8].fill(0xFF)),
        ("a negative count", &limits::STATISTICS_COUNTS, TEXTS, |blob| step(blob, 2)[7] |= 0x80),
        ("rows that no step has", &limits::STATISTICS_COUNTS, NUMBERS, |blob| {
            blob[13] += 1;
            blob[21] += 1;
        }),
        ("a density above 1", &limits::STATISTICS_DENSITIES, NUMBERS, |blob| blob[35] = 0x41),
        ("a step less", &limits::STATISTICS_WHOLE, NUMBERS, |blob| blob[164] -= 1),
        ("a histogram that ends too early", &limits::STATISTICS_WHOLE, TEXTS, |blob| blob[340] -= 1),
        ("an unknown version", &limits::STATISTICS_FORM, NUMBERS, |blob| blob[0] = 8),
        ("a text that only the collation orders", &limits::STATISTICS_ORDER_COLLATION, TEXTS, |blob| {
            // A Hangul character, whose position in the sort order is not proven.
            step(blob, 3)[23..25].copy_from_slice(&[0x00, 0xAC]);
        }),
    ];
    let damages = damages.into_iter().map(|(name, limit, which, damage)| {
        Trial::test(format!("statistics: {name}"), move || {
            let mut image = subjects::image(STATISTICS);
            let (page, at) = blobs(&image)[which];
            image.edit(page, |bytes| damage(&mut bytes[at..]));
            is_noted(&image, limit)
        })
    });
    let others: [(&str, State); 3] = [
        ("sound ones are silent", sound_ones_are_silent),
        ("a column of another type", another_type),
        ("a page that cannot be read", unreadable),
    ];
    let others = others.into_iter().map(|(name, test)| Trial::test(format!("statistics: {name}"), test));
    damages.chain(others).collect()
}

const NUMBERS: usize = 0;
const TEXTS: usize = 1;

fn extended() -> Options {
    Options { extended_logical_checks: true, ..Options::default() }
}

/// Asserts two results. With extended logical checks, there is no finding, and `limit` is the only entry about
/// statistics. Without extended logical checks, there is no entry about statistics.
fn is_noted(image: &Image, limit: &'static Limit) -> Result<(), Failed> {
    let report = image.check_with(&extended());
    let list = if limit.is_note() { &report.notes } else { &report.not_verified };
    let of_statistics = |entry: &&findings::NotVerified| entry.what == "statistics";
    let ids: Vec<&str> = list.iter().filter(of_statistics).map(|entry| entry.limit.id).collect();
    if ids != [limit.id] || !report.findings.is_empty() {
        return Err(format!("{ids:?} {:?} {:?}", report.notes, report.not_verified).into());
    }
    is_silent(image, &Options::default())
}

fn is_silent(image: &Image, options: &Options) -> Result<(), Failed> {
    let report = image.check_with(options);
    let mut all = report.notes.iter().chain(&report.not_verified);
    match (report.findings.is_empty(), all.find(|entry| entry.what == "statistics")) {
        (true, None) => Ok(()),
        (_, entry) => Err(format!("{entry:?}").into()),
    }
}

fn sound_ones_are_silent() -> Result<(), Failed> {
    is_silent(&subjects::image(STATISTICS), &extended())
}

/// Tests statistics about a column of numbers. The base table sysiscols is changed so that these statistics name
/// another column, whose values are longer.
fn another_type() -> Result<(), Failed> {
    const SYSISCOLS: i32 = 55;
    let mut image = subjects::image(STATISTICS);
    let database = image.database();
    let columns = BaseTable::of(&database, SYSISCOLS).expect("sysiscols");
    let rows = columns.rows(&image);
    let of_statistics = |record: &[u8]| columns.value(record, "status") == Some(1);
    let row = rows.iter().find(|row| of_statistics(&row.bytes) && columns.value(&row.bytes, "intprop") == Some(2));
    columns.change(&mut image, row.expect("statistics of the second column"), "intprop", 4);
    // The change also makes the index of sysiscols unordered, so findings are allowed here.
    let report = image.check_with(&extended());
    let mut all = report.notes.iter().chain(&report.not_verified).filter(|entry| entry.what == "statistics");
    match (all.next(), all.next()) {
        (Some(entry), None) if entry.limit == &limits::STATISTICS_COLUMN => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn unreadable() -> Result<(), Failed> {
    let mut image = subjects::image(STATISTICS);
    let (page, at) = blobs(&image)[NUMBERS];
    image.edit_unsealed(page, |bytes| bytes[at] ^= 0x40);
    let report = image.check_with(&extended());
    match report.not_verified.iter().any(|entry| entry.limit == &limits::STATISTICS_UNREAD) {
        true => Ok(()),
        false => Err(format!("{:?}", report.not_verified).into()),
    }
}

/// Finds the statistics blobs in the image. `NUMBERS` and `TEXTS` are the positions of the two blobs in the result.
fn blobs(image: &Image) -> Vec<At> {
    /// The first bytes of a blob: the version, and the update time that the lab writes.
    const BEGINNING: [u8; 12] = [7, 0, 0, 0, 0x00, 0xC1, 0xC5, 0x00, 0x69, 0xA8, 0x00, 0x00];
    let pages = 0..(image.bytes.len() / PAGE_BYTES) as u32;
    let mut found: Vec<At> = pages
        .flat_map(|page| {
            let bytes = image.page(page);
            let starts = bytes.windows(BEGINNING.len()).enumerate().filter(|(_, window)| *window == BEGINNING);
            starts.map(|(at, _)| (page, at)).collect::<Vec<_>>()
        })
        .collect();
    // Byte 176 of a blob shows whether its records have a variable length. Only the records of the text statistics have
    // one. So the sort separates the two blobs.
    found.sort_by_key(|(page, at)| image.page(*page)[at + 176]);
    found.reverse();
    found
}

/// The bytes of the blob from step `number` of the histogram on.
fn step(blob: &mut [u8], number: usize) -> &mut [u8] {
    const BASE: usize = 348;
    let start = u16::from_le_bytes([blob[BASE + 8 * number], blob[BASE + 8 * number + 1]]);
    &mut blob[BASE + usize::from(start)..]
}
