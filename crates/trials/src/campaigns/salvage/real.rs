//! Real databases from the corpus, which is not part of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use catalog::Database;
use format::PageId;
use rows::Table;
use source::{MemoryFiles, PageSource};
use trials::mutate::{PageRole, Pages};

use crate::shared::Shared;
use crate::sound::{Sound, Whole};
use crate::subject::check_pages;

/// The maximum size of a file, in bytes, because a trial should take only some milliseconds.
const MOST_BYTES: u64 = 12 << 20;
/// The number of consecutive seeds that share one real database. Only the odd seeds use it; the even seeds use a lab
/// database.
const TRIALS_PER_DATABASE: u64 = 20;
/// The number of databases in memory at the same time.
const KEPT: usize = 6;

/// A real database without findings, and its tables that can be read completely.
pub(crate) struct Real {
    name: String,
    files: MemoryFiles,
    database: Database,
    roles: BTreeMap<PageRole, Vec<PageId>>,
    tables: Vec<Whole>,
}

impl Real {
    fn open(path: &Path) -> Option<Self> {
        let files = MemoryFiles::open(vec![(path.to_owned(), fs::read(path).ok()?)]).ok()?;
        let database = catalog::load(&files);
        let is_usable = |id: &i32| !database.is_system_table(*id);
        let list = Table::list(&database).into_iter().filter(is_usable);
        let tables: Vec<Whole> = list
            .filter_map(|id| Whole::read(&files, &database, Table::of(&database, id).ok()?).ok())
            .filter(|whole| !whole.rows.is_empty())
            .collect();
        if tables.is_empty() || !check_pages(&files, 0).findings.is_empty() {
            return None;
        }
        let roles = Pages::new(&files, &database).by_role();
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(Self { name: format!("{name} of {} pages", files.files().first()?.pages), files, database, roles, tables })
    }

    pub(super) fn sound(&self) -> Sound<'_> {
        let Self { name, files, database, roles, tables } = self;
        Sound { name, files, database, roles, tables }
    }
}

/// The most recently used databases.
#[derive(Default)]
pub(crate) struct Reals(Shared<Option<Real>>);

impl Reals {
    /// The database for the trial with this seed; `None` if a check of it has findings, or if the corpus is missing.
    pub(super) fn of(&self, seed: u64) -> Arc<Option<Real>> {
        let number = seed / TRIALS_PER_DATABASE;
        let path = files().get(number as usize % files().len().max(1));
        self.0.get(number, KEPT, || path.and_then(|path| Real::open(path)))
    }
}

/// Data files of the corpus.
fn files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut found = Vec::new();
        search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut found);
        found.sort();
        found
    })
}

fn search(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_data = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mdf"));
        if path.is_dir() {
            search(&path, found);
        } else if is_data && fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MOST_BYTES) {
            found.push(path);
        }
    }
}
