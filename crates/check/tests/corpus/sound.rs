//! Every data file of the corpus is sound: the check has no finding, and the numbers of rows and pages agree with
//! independent counts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use check::Silent;
use findings::registry::limits;
use findings::{Options, Report, RowsetCounts};
use flate2::read::GzDecoder;
use libtest_mimic::{Failed, Trial};
use source::DataFiles;

use crate::Corpus;

/// The version of SQL Server 2000. Files of this version must be refused.
const TOO_OLD: &str = "539";

/// Object ID, index ID and partition number.
pub type Key = (i64, i64, i64);

/// One test per data file.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let inventory = fs::read_to_string(corpus.lists.join("inventory.tsv")).expect("inventory.tsv");
    let expected = expected(corpus, "expected.tsv.gz");
    let mut trials = Vec::new();
    for line in inventory.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (Some(&path), Some(&kind), Some(&version)) = (columns.first(), columns.get(3), columns.get(4)) else {
            continue;
        };
        if kind != "mdf" {
            continue;
        }
        let (path, version) = (path.to_owned(), version.to_owned());
        let full = corpus.files.join(&path);
        let rows = expected.get(&path).cloned().unwrap_or_default();
        trials.push(Trial::test(format!("sound: {path}"), move || {
            if version == TOO_OLD {
                let refused = DataFiles::open(&[full]).err().map(|error| error.to_string()).unwrap_or_default();
                return if refused.contains("SQL Server 2000") { Ok(()) } else { Err("not refused".into()) };
            }
            let files = DataFiles::open(&[full]).map_err(|error| error.to_string())?;
            let database = catalog::load(&files);
            let options = Options { constraints: true, identities: true, ..Options::default() };
            let report = check::run(&files, &database, &options, &Silent);
            no_findings(&report)?;
            catalog_is_known(&report)?;
            indexes_compared(&report)?;
            counts_agree(&report, &rows)?;
            crate::together::same(&files, &database)
        }));
    }
    trials.extend(later_trials(corpus));
    trials
}

/// Tests of the files of the second archive, as far as they are available. Some of these files were copied while a
/// server used them.
fn later_trials(corpus: &Corpus) -> Vec<Trial> {
    let inventory = fs::read_to_string(corpus.lists.join("inventory2.tsv")).unwrap_or_default();
    let mut trials = Vec::new();
    for line in inventory.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (Some(&path), Some(&"mdf")) = (columns.first(), columns.get(3)) else { continue };
        let full = corpus.files.join(path);
        let name = path.to_owned();
        trials.push(Trial::test(format!("sound: {path}"), move || {
            let files = DataFiles::open(&[full]).map_err(|error| error.to_string())?;
            let database = catalog::load(&files);
            let options = Options { constraints: true, identities: true, ..Options::default() };
            let report = check::run(&files, &database, &options, &Silent);
            no_findings(&report)?;
            let unknown = [&limits::IDENTITY_MARK, &limits::COLUMN_UNKNOWN];
            let is_unknown = |entry: &&findings::NotVerified| unknown.contains(&entry.limit);
            if let Some(entry) = report.not_verified.iter().find(is_unknown) {
                return Err(format!("{entry:?}").into());
            }
            // SJClassic was created by SQL Server 2005; 23 of its 27 identity columns are decimals.
            match report.beyond.identities.len() {
                27 => Ok(()),
                other if name == "Arivunidhi-S__SJClassic/App_Data/SJClassic.mdf" => {
                    Err(format!("{other} marks").into())
                }
                _ => Ok(()),
            }
        }));
    }
    let stripe = corpus.files.join(ENCRYPTED_STRIPE);
    if stripe.is_file() {
        trials.push(Trial::test("sound: a stripe of an encrypted backup", move || {
            let source = source::open(&[stripe], &[], false).map_err(|error| error.to_string())?;
            let database = catalog::load(source.as_ref());
            let report = check::run(source.as_ref(), &database, &Options::default(), &Silent);
            no_findings(&report)?;
            let is_told = report.not_verified.iter().any(|entry| entry.reason.starts_with("encrypted (TDE)"));
            if database.is_encrypted && is_told { Ok(()) } else { Err("not known as encrypted".into()) }
        }));
    }
    trials
}

/// One of the two stripes of an encrypted backup. The boot page is in the other stripe.
const ENCRYPTED_STRIPE: &str = "1211102575__CCS6344-DatabaseSecurity/@791f7f16/IMS.bak";

pub fn no_findings(report: &Report) -> Result<(), Failed> {
    match report.findings.first() {
        None => Ok(()),
        Some(first) => {
            Err(format!("{} findings, first: {}", report.findings.len(), first.text(&report.names())).into())
        }
    }
}

/// Asserts that every row of the base tables that refer to each other is of a known class, and that the numbers of
/// Service Broker objects are those of a new database.
fn catalog_is_known(report: &Report) -> Result<(), Failed> {
    let unknown =
        |entry: &&findings::NotVerified| matches!(entry.what.as_str(), "catalog references" | "Service Broker");
    let counts: Vec<u64> = report.service_broker.iter().map(|kind| kind.count).collect();
    match report.not_verified.iter().find(unknown) {
        Some(entry) => Err(format!("{entry:?}").into()),
        None if counts.starts_with(&[14, 6, 3, 3, 0, 0, 0]) => Ok(()),
        None => Err(format!("{counts:?}").into()),
    }
}

/// Asserts that every nonclustered index is compared with its table.
fn indexes_compared(report: &Report) -> Result<(), Failed> {
    let statistics = &report.statistics;
    match statistics.indexes_in_scope {
        0 => Err("no index was looked at".into()),
        indexes if indexes == statistics.indexes_compared => Ok(()),
        indexes => Err(format!("{} of {indexes} indexes were compared", statistics.indexes_compared).into()),
    }
}

/// The numbers of rows and pages that an independent reader counted for a rowset.
#[derive(Clone)]
pub struct Expected {
    live_rows: u64,
    pages: BTreeMap<String, u64>,
}

pub fn expected(corpus: &Corpus, list: &str) -> BTreeMap<String, BTreeMap<Key, Expected>> {
    let mut text = String::new();
    let file = fs::File::open(corpus.lists.join(list)).expect("list of counts");
    GzDecoder::new(file).read_to_string(&mut text).expect("list of counts");
    let mut all: BTreeMap<String, BTreeMap<Key, Expected>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| columns[at].parse::<i64>().unwrap_or_default();
        let pages = serde_json::from_str(columns[13]).expect("pages");
        let row = Expected { live_rows: number(11).unsigned_abs(), pages };
        all.entry(columns[0].to_owned()).or_default().insert((number(3), number(7), number(9)), row);
    }
    all
}

pub fn counts_agree(report: &Report, expected: &BTreeMap<Key, Expected>) -> Result<(), Failed> {
    let key = |counts: &RowsetCounts| (counts.object_id.into(), counts.index_id.into(), counts.partition.into());
    let found: BTreeMap<Key, &RowsetCounts> = report.rowsets.iter().map(|counts| (key(counts), counts)).collect();
    if found.len() != expected.len() {
        return Err(format!("{} rowsets instead of {}", found.len(), expected.len()).into());
    }
    for (key, expected) in expected {
        let Some(found) = found.get(key) else { return Err(format!("rowset {key:?} is missing").into()) };
        let pages = |name: &str| expected.pages.get(name).copied().unwrap_or_default();
        let wanted = [
            expected.live_rows,
            pages("in_row.data"),
            pages("in_row.index"),
            pages("iam"),
            pages("lob.text_mix") + pages("lob.text_tree"),
        ];
        let counted = [found.rows, found.data_pages, found.index_pages, found.iam_pages, found.lob_pages];
        if wanted != counted {
            return Err(format!("{key:?}: rows, data, index, IAM, LOB pages {counted:?} instead of {wanted:?}").into());
        }
    }
    Ok(())
}
