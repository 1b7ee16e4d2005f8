//! The databases to damage: small sound lab databases in memory, each identified by a number.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use catalog::Database;
use check::Silent;
use findings::{Options, Report};
use format::{AllocUnitId, PageId};
use lab::{Description, PageVerify, Version, histories, shapes, specimens};
use source::{MemoryFiles, PageSource};
use trials::mutate::{PageRole, Pages, Random};

use crate::baseline::{Baseline, clocked, told};
use crate::shared::Shared;
use crate::sound::{Sound, Whole, lab_tables};

/// The number of consecutive trials that use the same database.
const TRIALS_PER_DATABASE: u64 = 50;
/// The number of databases in memory at the same time.
const KEPT: usize = 12;
/// The approximate maximum size of a random database in bytes. A single table may have at most a quarter of this size.
/// The limit keeps a trial as short as some milliseconds.
const MOST_BYTES: usize = 6 << 20;
/// Every fourth database is a specimen, which contains every kind of structure. [`HISTORIES_AT`] describes another of
/// the four databases in each group; the remaining two are random.
const SPECIMEN_EVERY: u64 = 4;
/// In each group of [`SPECIMEN_EVERY`] databases, the database at this position has tables with added and dropped
/// columns.
const HISTORIES_AT: u64 = 2;
/// The number of rows at the earlier time, as a percentage of the present number.
const EARLIER_ROWS: u64 = 97;

/// The path and the content of a data file.
pub(crate) type Content = (PathBuf, Vec<u8>);

/// A sound database and the result of checking it.
pub(crate) struct Subject {
    /// The name and version of the database.
    pub(crate) name: String,
    /// The files of the database.
    pub(crate) files: MemoryFiles,
    /// The files of the database as bytes.
    pub(crate) contents: Vec<Content>,
    /// The catalog of the database.
    pub(crate) database: Database,
    /// The pages of the database, by role.
    pub(crate) roles: BTreeMap<PageRole, Vec<PageId>>,
    /// A finding in the sound database, if there is one. The finding is a bug of the check.
    pub(crate) flaw: Option<String>,
    /// The result of checking the sound database.
    pub(crate) baseline: Baseline,
    description: Description,
    earlier: OnceLock<Vec<Content>>,
    tables: OnceLock<Result<Vec<Whole>, String>>,
}

impl Subject {
    /// The database with this number.
    ///
    /// # Panics
    /// If the lab cannot write it.
    pub(crate) fn new(number: u64) -> Self {
        let description = describe(number);
        let contents = write(&description);
        let files = MemoryFiles::open(contents.clone()).unwrap_or_else(|error| panic!("{}: {error}", description.name));
        let database = catalog::load(&files);
        let (report, first) = clocked(|| check_pages(&files, 0));
        let (_, again) = clocked(|| check_pages(&files, 0));
        let names = report.names();
        let flaw = report.findings.first().map(|finding| format!("{} {}", finding.check.id, finding.text(&names)));
        let roles = Pages::new(&files, &database).by_role();
        Self {
            name: format!("{} {:?} {:?}", description.name, description.version, description.verify),
            flaw,
            contents,
            database,
            roles,
            baseline: Baseline { not_verified: told(&report), time: first.min(again) },
            files,
            description,
            earlier: OnceLock::new(),
            tables: OnceLock::new(),
        }
    }

    /// An earlier state of the files, in which the tables had fewer rows. Names and IDs are the same.
    pub(crate) fn earlier(&self) -> &[Content] {
        self.earlier.get_or_init(|| {
            let mut description = self.description.clone();
            for table in &mut description.tables {
                table.rows = table.rows * EARLIER_ROWS / 100;
            }
            write(&description)
        })
    }

    /// The database with the rows of its tables. Returns an error if the rows differ from those that the lab wrote.
    pub(crate) fn sound(&self) -> Result<Sound<'_>, &str> {
        let tables = self.tables.get_or_init(|| lab_tables(&self.files, &self.database, &self.description));
        let tables = tables.as_ref().map_err(String::as_str)?;
        let Self { name, files, database, roles, .. } = self;
        Ok(Sound { name, files, database, roles, tables })
    }

    /// The role of a page.
    pub(crate) fn role(&self, page: PageId) -> PageRole {
        let is_of = |(_, pages): &(&PageRole, &Vec<PageId>)| pages.binary_search(&page).is_ok();
        self.roles.iter().find(is_of).map_or(PageRole::Free, |(role, _)| *role)
    }

    /// The object to which an allocation unit belongs.
    pub(crate) fn object(&self, unit: AllocUnitId) -> Option<i32> {
        Pages::new(&self.files, &self.database).rowset(unit).map(|rowset| rowset.object_id)
    }

    /// A random page. The role is drawn before the page, so that pages of rare roles are drawn often enough.
    pub(crate) fn any_page(&self, random: &mut Random) -> PageId {
        let roles: Vec<&Vec<PageId>> = self.roles.values().collect();
        let pages = random.pick(&roles).copied();
        pages.and_then(|pages| random.pick(pages).copied()).unwrap_or(PageId::BOOT)
    }

    /// Writes the database files into a folder.
    pub(crate) fn store(&self, folder: &Path) -> std::io::Result<Vec<PathBuf>> {
        store(&self.contents, folder)
    }
}

/// Writes files into a folder. Each file keeps its name.
pub(crate) fn store(contents: &[Content], folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let write = |(path, bytes): &Content| {
        let path = folder.join(path.file_name().unwrap_or_default());
        std::fs::write(&path, bytes).map(|()| path)
    };
    contents.iter().map(write).collect()
}

/// Checks a database on one thread.
pub(crate) fn check_pages(pages: &dyn PageSource, seed: u64) -> Report {
    let database = catalog::load(pages);
    let options = Options { max_threads: 1, hash_seed: Some(seed), ..Options::default() };
    check::run(pages, &database, &options, &Silent)
}

/// A folder for the files of a trial. The folder is in memory if the system provides a file system in memory.
pub(crate) fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    let made = if shared.is_dir() {
        tempfile::Builder::new().prefix("mdfsck-trials-").tempdir_in(shared)
    } else {
        tempfile::tempdir()
    };
    made.or_else(|_| tempfile::tempdir()).unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}

fn write(description: &Description) -> Vec<Content> {
    let folder = folder();
    let written =
        lab::write(description, folder.path()).unwrap_or_else(|error| panic!("{}: {error}", description.name));
    let read = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (PathBuf::from(path.file_name().unwrap_or_default()), bytes)
    };
    written.files.iter().map(read).collect()
}

/// The description of the database with this number. A random database is limited in size.
fn describe(number: u64) -> Description {
    let mut random = Random::new(number);
    if number.is_multiple_of(SPECIMEN_EVERY) {
        let version = *random.pick(&Version::ALL).unwrap_or(&Version::V957);
        let verify = [PageVerify::Checksum, PageVerify::Checksum, PageVerify::Torn, PageVerify::None];
        let verify = *random.pick(&verify).unwrap_or(&PageVerify::Checksum);
        return specimens::specimen(version, verify, number + 1);
    }
    if number % SPECIMEN_EVERY == HISTORIES_AT {
        return histories::histories(*random.pick(&Version::ALL).unwrap_or(&Version::V957), number + 1);
    }
    let mut description = shapes::random(random.number());
    for table in &mut description.tables {
        while table.rows > 4 && rough_bytes(table) > MOST_BYTES as u64 / 4 {
            table.rows /= 2;
        }
    }
    description
}

/// The approximate size of a table in bytes. Most of it comes from long values.
fn rough_bytes(table: &lab::description::Table) -> u64 {
    use lab::description::Values;
    let column = |column: &lab::description::Column| match column.values {
        Values::Text { least, most } | Values::Bytes { least, most } => {
            u64::from(least.midpoint(most)) * if column.ty.is_unicode() { 2 } else { 1 }
        }
        _ => 8,
    };
    let row: u64 = table.columns.iter().map(column).sum();
    table.rows * (row + 20 * (1 + table.indexes.len() as u64))
}

/// The databases that trials share, by number.
#[derive(Default)]
pub(crate) struct Subjects(Shared<Subject>);

impl Subjects {
    /// The database of the trial with this seed.
    pub(crate) fn of(&self, seed: u64) -> Arc<Subject> {
        let number = seed / TRIALS_PER_DATABASE;
        self.0.get(number, KEPT, || Subject::new(number))
    }
}
