//! A plan: how one check of one database is cut into tasks.

use check::FileRange;
use check::part::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::error::PartsError;
use crate::files::SourceFile;
use crate::folder::random;

/// Version of plans and parts; it changes when one of another version cannot be used.
pub const VERSION: u32 = 1;

/// Tells plans apart: 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanId(String);

impl PlanId {
    /// A new one.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn new() -> Result<Self, PartsError> {
        Ok(Self(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What was read of the database when the plan was made, as sums under the plan's key: a task that reads anything else has another
/// database before it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The sum of the catalog.
    pub catalog: String,
    /// The sum of the maps; `None` if no page of a table is to be read.
    pub maps: Option<String>,
}

impl Image {
    /// These.
    pub fn new(catalog: Fingerprint, maps: Option<Fingerprint>) -> Self {
        Self { catalog: catalog.to_string(), maps: maps.map(|maps| maps.to_string()) }
    }

    /// Whether this is the catalog.
    pub fn is_catalog(&self, catalog: Fingerprint) -> bool {
        self.catalog == catalog.to_string()
    }

    /// Whether these are the maps.
    pub fn is_maps(&self, maps: Fingerprint) -> bool {
        self.maps.as_ref().is_some_and(|known| *known == maps.to_string())
    }
}

/// A range of pages to be swept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its number: tasks count from 0, in the order of their pages.
    pub id: u32,
    /// The file.
    pub file: u16,
    /// The first page.
    pub first: u32,
    /// How many pages follow each other.
    pub pages: u32,
}

impl Task {
    /// Its pages.
    pub fn range(&self) -> FileRange {
        FileRange { file_id: self.file, first: self.first, pages: self.pages }
    }
}

/// How one check of one database is cut into tasks; `O` is what is checked, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan<O> {
    /// [`VERSION`].
    pub v: u32,
    /// Which plan it is.
    pub plan: PlanId,
    /// The mdfsck that made it, and that carries it out.
    pub build: String,
    /// Name of the database.
    pub database: String,
    /// What was read of it.
    pub image: Image,
    /// What is checked, and how.
    pub options: O,
    /// The files that are read.
    pub files: Vec<SourceFile>,
    /// The tasks, by id.
    pub tasks: Vec<Task>,
    /// The round whose tasks these are: 0 for those that sweep pages.
    #[serde(skip)]
    pub round: u32,
}

impl<O> Plan<O> {
    /// How many tasks it has.
    pub fn task_count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// A task.
    ///
    /// # Errors
    /// If the plan does not have it.
    pub fn task(&self, id: u32) -> Result<&Task, PartsError> {
        self.tasks.get(id as usize).ok_or(PartsError::NoSuchTask { id, tasks: self.task_count() })
    }

    /// The tasks of ranges, in their order.
    pub fn tasks_of(ranges: &[FileRange]) -> Vec<Task> {
        let task =
            |(id, range): (u32, &FileRange)| Task { id, file: range.file_id, first: range.first, pages: range.pages };
        (0..).zip(ranges).map(task).collect()
    }

    /// Whether all source files are what they were.
    ///
    /// # Errors
    /// The first that is not.
    pub fn verify_files(&self) -> Result<(), PartsError> {
        self.files.iter().try_for_each(SourceFile::verify)
    }

    /// Whether its tasks are numbered as they must be.
    pub(crate) fn is_in_order(&self) -> bool {
        (0..).zip(&self.tasks).all(|(id, task): (u32, &Task)| task.id == id)
    }
}
