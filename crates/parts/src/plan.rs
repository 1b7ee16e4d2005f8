//! A plan: the division of one check of one database into tasks.

use check::part::Fingerprint;
use findings::FileRange;
use serde::{Deserialize, Serialize};

use crate::error::PartsError;
use crate::files::SourceFile;
use crate::random::random;

/// The format version of plans and parts. It changes when older plans or parts can no longer be used.
pub const VERSION: u32 = 1;

/// The ID of a plan: 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanId(String);

impl PlanId {
    /// A new random ID.
    ///
    /// # Errors
    /// If the operating system gives no random numbers.
    pub fn new() -> Result<Self, PartsError> {
        Ok(Self(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The digits of the ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The fingerprints of the catalog and the maps that were read for the plan, hashed with the plan's key. If a task
/// computes other fingerprints, it is reading another database.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The fingerprint of the catalog that was read for the plan.
    pub catalog: String,
    /// The fingerprint of the maps that were read for the plan; `None` if the plan sweeps no pages of tables.
    pub maps: Option<String>,
}

impl Image {
    /// Makes an image from these fingerprints.
    pub fn new(catalog: Fingerprint, maps: Option<Fingerprint>) -> Self {
        Self { catalog: catalog.to_string(), maps: maps.map(|maps| maps.to_string()) }
    }

    /// Whether the catalog of the plan has this fingerprint.
    pub fn is_catalog(&self, catalog: Fingerprint) -> bool {
        self.catalog == catalog.to_string()
    }

    /// Whether the maps of the plan have this fingerprint.
    pub fn is_maps(&self, maps: Fingerprint) -> bool {
        self.maps.as_ref().is_some_and(|known| *known == maps.to_string())
    }
}

/// A range of pages to sweep.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The number of the task. Tasks are numbered from 0 in page order.
    pub id: u32,
    /// The file ID of the range.
    pub file: u16,
    /// The first page of the range.
    pub first: u32,
    /// The number of consecutive pages.
    pub pages: u32,
}

impl Task {
    /// The page range of the task.
    pub fn range(&self) -> FileRange {
        FileRange { file_id: self.file, first: self.first, pages: self.pages }
    }
}

/// The division of one check of one database into tasks. `O` has the options of the check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan<O> {
    /// The format version, [`VERSION`].
    pub v: u32,
    /// The ID of the plan.
    pub plan: PlanId,
    /// The mdfsck build that made the plan. Only this build may run its tasks.
    pub build: String,
    /// The name of the database.
    pub database: String,
    /// The fingerprints of the database.
    pub image: Image,
    /// The options of the check.
    pub options: O,
    /// The source files.
    pub files: Vec<SourceFile>,
    /// The tasks, ordered by ID.
    pub tasks: Vec<Task>,
    /// Ranges without a task of the plan. Tasks of further rounds may read their pages. They are numbered after the tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<Task>,
    /// The round of the tasks; 0 for the tasks that sweep pages.
    #[serde(skip)]
    pub round: u32,
}

impl<O> Plan<O> {
    /// The number of tasks.
    pub fn task_count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// The ranges of all tasks, and those without a task.
    pub fn areas(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().chain(&self.rest)
    }

    /// The number of ranges with and without a task.
    pub fn area_count(&self) -> u32 {
        u32::try_from(self.tasks.len() + self.rest.len()).unwrap_or(u32::MAX)
    }

    /// The range with this number.
    pub fn area(&self, id: u32) -> Option<&Task> {
        self.tasks.get(id as usize).or_else(|| self.rest.get((id as usize).checked_sub(self.tasks.len())?))
    }

    /// Returns the task with this number.
    ///
    /// # Errors
    /// If the plan does not have the task.
    pub fn task(&self, id: u32) -> Result<&Task, PartsError> {
        self.tasks.get(id as usize).ok_or(PartsError::NoSuchTask { id, tasks: self.task_count() })
    }

    /// Makes one task for each range, in the order of the ranges.
    pub fn tasks_of(ranges: &[FileRange]) -> Vec<Task> {
        let task =
            |(id, range): (u32, &FileRange)| Task { id, file: range.file_id, first: range.first, pages: range.pages };
        (0..).zip(ranges).map(task).collect()
    }

    /// Checks that no source file has changed.
    ///
    /// # Errors
    /// An error for the first file that has changed.
    pub fn verify_files(&self) -> Result<(), PartsError> {
        self.files.iter().try_for_each(SourceFile::verify)
    }

    /// Whether the ranges are numbered from 0 in order.
    pub(crate) fn is_in_order(&self) -> bool {
        (0..).zip(self.areas()).all(|(id, task): (u32, &Task)| task.id == id)
    }
}
