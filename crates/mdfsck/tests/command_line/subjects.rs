//! The databases and backups for tests of the plain commands. A database and a backup chain of the lab are always used.
//! Real databases and backups are also used if the corpus is installed.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lab::description::{Column, Description};
use lab::workload::{ChainOptions, SetKind, Spec, Workload};
use lab::{SqlType, Version};
use libtest_mimic::{Completion, Failed, Trial};
use tempfile::TempDir;

/// A test of a database. The database is in the test's folder as `a.mdf`.
pub(crate) type DatabaseTest = fn(&Path, &Database) -> Result<(), Failed>;
/// A test of backups. The backups are in the test's folder under the names in [`BACKUPS`].
pub(crate) type BackupTest = fn(&Path, &Backups) -> Result<(), Failed>;

/// A database, with the values and pages that the tests need.
pub(crate) struct Database {
    pub(crate) name: &'static str,
    /// The internal database version, and the SQL Server product of that version.
    pub(crate) version: (&'static str, &'static str),
    /// The value of `dbi_verRDB` in the boot page.
    pub(crate) build: &'static str,
    /// The name of a table.
    pub(crate) table: &'static str,
    /// The line that CHECKDB prints for one of the tables of the database.
    pub(crate) rows: &'static str,
    /// Three texts: the lines that CHECKIDENT adds for a table, the name of the identity column, and the greatest value
    /// in this column.
    pub(crate) identity: (&'static str, &'static str, &'static str),
    /// The number of CHECK constraints and the number of FOREIGN KEY constraints. All of them are trusted.
    pub(crate) constraints: (usize, usize),
    /// The name of an index on a computed column, as `lint` prints it.
    pub(crate) on_computed: &'static str,
    /// The object ID of a table.
    pub(crate) object: i32,
    /// The number of a leaf page of a B-tree. The page has neighbors on both sides, and its parent page stays sound if
    /// page `other` is damaged.
    pub(crate) leaf: usize,
    /// The number of a leaf page of a B-tree other than the B-tree that contains page `leaf`.
    pub(crate) other: usize,
    /// A range of allocated pages. A test may remove every second page of the range.
    pub(crate) many: RangeInclusive<usize>,
    /// The numbers of four data pages that have rows at offset 1000.
    pub(crate) rows_at: [usize; 4],
    /// The numbers of two pages whose records have columns.
    pub(crate) records: [usize; 2],
    /// A length in pages. If the file is truncated to this length, data is lost.
    pub(crate) cut: usize,
}

const ADVENTURE_WORKS: Database = Database {
    name: "AdventureWorksLT2012",
    version: ("705", "SQL Server 2008"),
    build: "184551126",
    table: "SalesLT.Product",
    rows: "There are 762 rows in 18 pages for object \"SalesLT.ProductDescription\".",
    identity: (
        "There are 450 rows in 9 pages for object \"SalesLT.Address\".\n\
         Checking identity information: current identity value '11382', current column value '11382'.\n",
        "AddressID",
        "11382",
    ),
    constraints: (13, 12),
    on_computed: "SalesLT.SalesOrderHeader.AK_SalesOrderHeader_SalesOrderNumber",
    object: 37_575_172,
    leaf: 600,
    other: 300,
    many: 500..=558,
    rows_at: [300, 301, 500, 640],
    records: [300, 400],
    cut: 600,
};

/// The lab database: the `orders` schema with an identity column. The table of long documents is left out, because it
/// would make the database large. The description of the lab determines the numbers of pages and rows.
const OF_LAB: Database = Database {
    name: "sample",
    version: ("706", "SQL Server 2012"),
    build: "184551476",
    table: "orders",
    rows: "There are 13160 rows in 117 pages for object \"order_lines\".",
    identity: (
        "There are 326 rows in 4 pages for object \"customers\".\n\
         Checking identity information: current identity value '329', current column value '329'.\n",
        "customer_id",
        "329",
    ),
    constraints: (2, 1),
    on_computed: "order_lines.ix_order_lines_amount",
    object: 261_575_970,
    leaf: 760,
    other: 670,
    many: 740..=798,
    rows_at: [670, 671, 760, 790],
    records: [603, 760],
    cut: 760,
};

/// The amount of data in the largest table, in bytes. With this amount, the table has some hundred pages.
const BYTES: u64 = (8 << 20) + 2_000_000;

fn description() -> Description {
    let mut description = lab::orders::orders(Version::V706, 1, BYTES);
    description.name = OF_LAB.name.to_owned();
    description.least_pages = 0;
    description.tables.retain(|table| table.name != "documents");
    for table in &mut description.tables {
        if table.name == "customers" {
            table.columns[0] = Column::identity("customer_id", SqlType::INT);
        }
    }
    description
}

/// The bytes of the lab database. The lab writes the database only once.
fn database_of_lab() -> Result<&'static [u8], Failed> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let write = || -> Result<Vec<u8>, Failed> {
        let folder = TempDir::new()?;
        let written = lab::write(&description(), folder.path())?;
        Ok(fs::read(written.files.first().ok_or("no file")?)?)
    };
    let bytes = BYTES.get_or_init(|| write().map_err(|failed| failed.message().unwrap_or_default().to_owned()));
    Ok(bytes.as_deref().map_err(Clone::clone)?)
}

/// A chain of backups.
pub(crate) struct Backups {
    pub(crate) name: &'static str,
    /// The times at which three backups finished: the full backup, the last log backup and the first log backup.
    pub(crate) finished: [&'static str; 3],
    /// The number of pages in the data file.
    pub(crate) pages: usize,
}

const RESTORE_TIME: Backups = Backups {
    name: "RestoreTimeClean",
    finished: ["2017-06-01 12:59:12", "2017-06-01 13:29:13", "2017-06-01 13:19:13"],
    pages: 288,
};

const CHAIN_OF_LAB: Backups = Backups {
    name: "workload",
    finished: ["2024-03-04 09:00:19", "2024-03-04 09:01:44", "2024-03-04 09:01:00"],
    pages: 1104,
};

/// The file names of the backups in the folder of a test.
const BACKUPS: [&str; 5] = ["full.bak", "diff.bak", "log1.trn", "log2.trn", "log3.trn"];

/// The bytes of each backup in the lab's chain. The lab writes the chain only once.
fn chain_of_lab() -> Result<&'static [Vec<u8>], Failed> {
    static BYTES: OnceLock<Result<Vec<Vec<u8>>, String>> = OnceLock::new();
    let write = || -> Result<Vec<Vec<u8>>, Failed> {
        let folder = TempDir::new()?;
        let spec = Spec { version: Version::V904, seed: 1, transactions: 20, ..Spec::default() };
        let kinds = [SetKind::Full, SetKind::Differential, SetKind::Log, SetKind::Log, SetKind::Log];
        let chain = Workload::new(spec)?.chain(&kinds, ChainOptions::default(), folder.path())?;
        let files = chain.sets.iter().flat_map(|set| &set.files);
        Ok(files.map(fs::read).collect::<Result<_, _>>()?)
    };
    let bytes = BYTES.get_or_init(|| write().map_err(|failed| failed.message().unwrap_or_default().to_owned()));
    Ok(bytes.as_deref().map_err(Clone::clone)?)
}

/// The path of a file or folder in the corpus of real files.
pub(crate) fn corpus(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus").join(path)
}

/// A test of the full tier that needs the real file or folder `path`. If `path` does not exist, the test is ignored.
pub(crate) fn of_real_files(
    name: impl Into<String>,
    path: PathBuf,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let run = move || match path.exists() {
        true => run().map(|()| Completion::Completed),
        false => Ok(Completion::ignored_with("the real file is not in target/corpus")),
    };
    Trial::ignorable_test(name, run).with_ignored_flag(true)
}

/// Returns two tests for each given test: one for the lab database, and one for a real database, which may be missing.
pub(crate) fn with_databases(tests: Vec<(&'static str, DatabaseTest)>) -> Vec<Trial> {
    let real = corpus("jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf");
    let mut trials = Vec::new();
    for (name, test) in tests {
        let real = real.clone();
        trials.push(Trial::test(name, move || {
            let folder = TempDir::new()?;
            fs::write(folder.path().join("a.mdf"), database_of_lab()?)?;
            test(folder.path(), &OF_LAB)
        }));
        trials.push(of_real_files(format!("{name}: a real file"), real.clone(), move || {
            let folder = TempDir::new()?;
            fs::write(folder.path().join("a.mdf"), fs::read(real)?)?;
            test(folder.path(), &ADVENTURE_WORKS)
        }));
    }
    trials
}

/// Returns two tests for each given test: one for the lab's backup chain, and one for a real chain, which may be
/// missing.
pub(crate) fn with_chains(tests: Vec<(&'static str, BackupTest)>) -> Vec<Trial> {
    const REAL: [&str; 5] = [
        "RestoreTimeClean.bak",
        "RestoreTimeClean2.bak",
        "RestoreTimeClean2_1.trn",
        "RestoreTimeClean2_2.trn",
        "RestoreTimeClean2_3.trn",
    ];
    let real = corpus("dataplat__appveyor-lab/RestoreTimeClean");
    let mut trials = Vec::new();
    for (name, test) in tests {
        let real = real.clone();
        trials.push(Trial::test(name, move || {
            let folder = TempDir::new()?;
            for (bytes, to) in chain_of_lab()?.iter().zip(BACKUPS) {
                fs::write(folder.path().join(to), bytes)?;
            }
            test(folder.path(), &CHAIN_OF_LAB)
        }));
        trials.push(of_real_files(format!("{name}: real files"), real.clone(), move || {
            let folder = TempDir::new()?;
            for (from, to) in REAL.into_iter().zip(BACKUPS) {
                fs::write(folder.path().join(to), fs::read(real.join(from))?)?;
            }
            test(folder.path(), &RESTORE_TIME)
        }));
    }
    trials
}
