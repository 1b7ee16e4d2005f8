//! The options of `mdfsck plan`, `task` and `merge`.

use std::path::PathBuf;

use clap::Args;

use super::check::SCOPE;
use super::{
    OUTPUT, RESOURCES, RecoveryArguments, ResultArguments, RoomArguments, RunArguments, ScopeArguments, StopArguments,
};

#[derive(Args)]
pub(crate) struct PlanArguments {
    /// Data files of one database with their logs, backups of one database, or a folder that holds such files
    ///
    /// Accepts the same paths as check, except standard input. The plan stores the paths as absolute paths, by which
    /// task and merge open the files.
    #[arg(value_name = "PATH", required_unless_present = "status")]
    pub(crate) paths: Vec<PathBuf>,

    /// Folder for the plan and the results of its tasks; created if missing, otherwise it must be empty
    ///
    /// Use storage that all machines can reach. The folder will contain a key file that only its owner can read.
    #[arg(long, value_name = "PLAN", required_unless_present = "status", help_heading = OUTPUT)]
    pub(crate) dir: Option<PathBuf>,

    /// Maximum amount of data that one task reads, such as 64GB; at least 1MB
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, default_value = "16GB", help_heading = SCOPE)]
    pub(crate) task_size: u64,

    /// Use the sums that checks with --keep-parts have kept beside this history: tasks read only what has changed since
    ///
    /// If the history has a ledger of the full backup, and a differential backup or log backups are given too, the tasks
    /// read only the ranges that differ. If something does not fit, the tasks read all pages, and one line says why.
    /// Give the same history to merge.
    #[arg(long, value_name = "FILE", conflicts_with = "status", help_heading = OUTPUT)]
    pub(crate) history: Option<PathBuf>,

    /// Keep what the tasks have added up, in at most SIZE beside the history, when they are merged; needs --history
    ///
    /// See --keep-parts of 'mdfsck check'.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, requires = "history", help_heading = OUTPUT)]
    pub(crate) keep_parts: Option<u64>,

    /// For tests: the number of pages in a range, a power of two.
    #[arg(long, hide = true, requires = "keep_parts", value_parser = super::check::part_pages)]
    pub(crate) part_pages: Option<u32>,

    /// Print the progress of a plan as JSON
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["paths", "dir", "json"], help_heading = OUTPUT)]
    pub(crate) status: Option<PathBuf>,

    /// With --status, print only the numbers of the tasks that have no result yet, as a list that 'mdfsck task' and
    /// 'sbatch --array' accept
    #[arg(long, requires = "status", help_heading = OUTPUT)]
    pub(crate) missing: bool,

    /// Print one JSON object
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArguments,

    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,

    #[command(flatten)]
    pub(crate) stop: StopArguments,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Args)]
pub(crate) struct TaskArguments {
    /// Folder of the plan
    #[arg(value_name = "PLAN")]
    pub(crate) folder: PathBuf,

    /// Tasks to run: a number, a list such as 3,7-9, or env for the number that the scheduler sets in an environment
    /// variable
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,

    /// End when standard input ends, for example because the process at the other end of the pipe was killed
    #[arg(long)]
    pub(crate) until_eof: bool,

    #[command(flatten)]
    pub(crate) room: RoomArguments,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Args)]
pub(crate) struct MergeArguments {
    /// Folder of the plan
    #[arg(value_name = "PLAN")]
    pub(crate) folder: PathBuf,

    /// Maximum amount of data that merge reads to check an index again; merge leaves larger indexes to tasks
    ///
    /// If merge leaves indexes to tasks, it prints one JSON line with the number of tasks and ends with status 32. Run
    /// these tasks in the same way as the first tasks, and merge again. With 0, merge leaves all indexes to tasks.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, default_value = "64GB", help_heading = RESOURCES)]
    pub(crate) local_limit: u64,

    #[command(flatten)]
    pub(crate) room: RoomArguments,

    #[command(flatten)]
    pub(crate) run: RunArguments,

    /// The most bytes of the ledgers beside the history, if the plan uses or makes one; by default, those of the plan
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, requires = "history", help_heading = OUTPUT)]
    pub(crate) keep_parts: Option<u64>,

    #[command(flatten)]
    pub(crate) results: ResultArguments,
}
