//! The errors that concern plans and parts.

use std::io;
use std::path::{Path, PathBuf};

use check::part::SumsError;
use thiserror::Error;

/// An error that concerns a plan or a part. Its text names the file, the reason, and the remedy.
#[derive(Debug, Error)]
pub enum PartsError {
    /// The folder for a new plan exists already.
    #[error("{}: exists and will not be overwritten; name another folder for the plan", .path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder does not contain a plan.
    #[error("{}: holds no plan; make one with 'mdfsck plan PATH... --dir FOLDER'", .path.display())]
    NoPlan {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system cannot read a file of the plan.
    #[error("{}: cannot be read: {cause}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The operating system cannot write a file of the plan.
    #[error("{}: cannot be written: {cause}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The operating system gave no random numbers for the key of a plan.
    #[error("no key can be made for the plan: the system gives no random numbers: {0}")]
    NoRandomNumbers(String),
    /// A file of the plan has changed since it was written.
    #[error("{}: is damaged: {what}; make a new plan", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        what: String,
    },
    /// Another process uses the ledger.
    #[error("{}: another check is using it", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another version of mdfsck made the plan.
    #[error("{}: the plan was made by mdfsck {theirs}, and this is mdfsck {ours}: plan, tasks and merge need the same mdfsck", .path.display())]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// The mdfsck version that made the plan.
        theirs: String,
        /// This mdfsck version.
        ours: String,
    },
    /// This version of mdfsck does not know the format of the plan.
    #[error("{}: is a plan of form {found}, and this mdfsck knows only {known}; use the mdfsck that made the plan", .path.display())]
    OtherForm {
        /// The file.
        path: PathBuf,
        /// The format version of the file.
        found: u32,
        /// The format version that this mdfsck knows.
        known: u32,
    },
    /// A source file has changed since the plan was made.
    #[error("{}: {what} since the plan was made; make a new plan", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// A description of the change.
        what: String,
    },
    /// The plan has no task with this number.
    #[error("task {id}: the plan has {}", match *.tasks { 0 => "no tasks: merge does all of it".to_owned(), 1 => "one task, 0".to_owned(), tasks => format!("the tasks 0 to {}", tasks - 1) })]
    NoSuchTask {
        /// The requested number.
        id: u32,
        /// The number of tasks in the plan.
        tasks: u32,
    },
    /// The text of an argument names no task.
    #[error("{text}: {what}; a task is a number, a list such as 3,7-9, or env")]
    NotAnId {
        /// The text of the argument.
        text: String,
        /// A description of the mistake in the text.
        what: &'static str,
    },
    /// Some tasks have no part.
    #[error("parts missing: {} ({} of {tasks}); {}", shown(.missing), .missing.len(), remedy(.path, .missing))]
    Missing {
        /// The folder of the plan.
        path: PathBuf,
        /// The numbers of the tasks without a part.
        missing: Vec<u32>,
        /// The number of tasks in the plan.
        tasks: u32,
    },
    /// Two parts of one task differ.
    #[error("task {task} twice: {} and {} differ; remove both and run the task again", .one.display(), .other.display())]
    Twice {
        /// The number of the task.
        task: u32,
        /// The file of one part.
        one: PathBuf,
        /// The file of the other part.
        other: PathBuf,
    },
    /// A part has changed since its task wrote it.
    #[error("{}: is damaged: {what}; remove it and run task {task} again", .path.display())]
    PartDamaged {
        /// The file.
        path: PathBuf,
        /// The task whose part is damaged, if the head of the part names a task.
        task: TaskName,
        /// A description of the damage.
        what: String,
    },
    /// A file is not a part of this plan.
    #[error("{}: {what}; remove it", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// A description of the file that was found.
        what: String,
    },
}

/// The number of a task; `None` if it is unknown.
#[derive(Clone, Copy, Debug)]
pub struct TaskName(pub(crate) Option<u32>);

impl std::fmt::Display for TaskName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(task) => write!(f, "{task}"),
            None => f.write_str("of this name"),
        }
    }
}

/// The most tasks that a message lists.
const MOST_SHOWN: usize = 100;

fn remedy(plan: &Path, missing: &[u32]) -> String {
    if missing.len() > MOST_SHOWN {
        format!("mdfsck plan --status {} --missing lists all", plan.display())
    } else {
        format!("run mdfsck task {} {}", plan.display(), listed(missing))
    }
}

/// A list of tasks in the form that `sbatch --array` and `mdfsck task` accept.
pub fn listed(tasks: &[u32]) -> String {
    tasks.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn shown(tasks: &[u32]) -> String {
    match tasks.get(..MOST_SHOWN) {
        Some(first) if first.len() < tasks.len() => format!("{},...", listed(first)),
        _ => listed(tasks),
    }
}

impl PartsError {
    /// Whether the caller made a mistake. False for files that cannot be read or have changed.
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::NoRandomNumbers(_) | Self::Changed { .. }
        )
    }

    pub(crate) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| Self::Unreadable { path, cause }
    }

    pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| Self::Unwritable { path, cause }
    }

    /// The error for a part that cannot be read back.
    pub fn of_part(path: &Path, task: u32, error: SumsError) -> Self {
        match error {
            SumsError::Io { error: cause, .. } if cause.kind() != io::ErrorKind::UnexpectedEof => {
                Self::Unreadable { path: path.to_owned(), cause }
            }
            SumsError::Io { at, .. } => {
                Self::part_damaged(path, Some(task), format!("it ends at byte {at} of its sums"))
            }
            SumsError::Damaged { at, what } => {
                Self::part_damaged(path, Some(task), format!("byte {at} of its sums: {what}"))
            }
        }
    }

    /// The error for a piece of the maps at `path` that cannot be read.
    pub fn of_maps(path: &Path, error: SumsError) -> Self {
        let what = match error {
            SumsError::Io { error: cause, .. } if cause.kind() != io::ErrorKind::UnexpectedEof => {
                return Self::Unreadable { path: path.to_owned(), cause };
            }
            SumsError::Io { .. } => "it ends too early".to_owned(),
            SumsError::Damaged { what, .. } => format!("it is not what the plan wrote: {what}"),
        };
        Self::Damaged { path: path.to_owned(), what }
    }

    pub(crate) fn part_damaged(path: &Path, task: Option<u32>, what: impl Into<String>) -> Self {
        Self::PartDamaged { path: path.to_owned(), task: TaskName(task), what: what.into() }
    }
}
