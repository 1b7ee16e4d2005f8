//! The options of recovery, for every command that reads the pages of a database.

use std::path::PathBuf;

use clap::Args;
use jobs::request::StopMoment;

use super::RESOURCES;

pub(super) const RECOVERY: &str = "Recovery";

#[derive(Args, Clone, Default)]
pub(crate) struct RecoveryArguments {
    /// Read data files as they are, without the changes in their log
    ///
    /// Without this option, data files that were not shut down cleanly are recovered in memory with their log, if the
    /// log is named on the command line or is in the folder of the data files. The files themselves are not changed.
    /// With this option, mdfsck does not look for lost writes either.
    #[arg(long, help_heading = RECOVERY)]
    pub(crate) no_log: bool,

    #[command(flatten)]
    pub(crate) room: RoomArguments,
}

/// The options for memory, and for the temporary files that hold data that does not fit into memory.
#[derive(Args, Clone, Default)]
pub(crate) struct RoomArguments {
    /// Limit memory to SIZE, such as 256MB or 2GB; a SIZE that is too small for the run is refused
    ///
    /// Data that does not fit into memory goes to temporary files; results do not change. By default a check uses 128
    /// MB plus two bytes per database page, or plus 1 GB for more than 4 TB. For 'task', only the pages of the largest
    /// range of the plan count. Recovery from a log runs before the check and uses up to 512 MB. If you limit the
    /// address space (ulimit -v), allow SIZE plus 64 MB, plus 68 MB per thread: SIZE does not include code, stacks and
    /// memory reserved by malloc. With a smaller limit, the run may end without results.
    #[arg(long, value_name = "SIZE", value_parser = jobs::size::bytes, help_heading = RESOURCES)]
    pub(crate) memory: Option<u64>,

    /// Folder for temporary files (default: the temporary folder of the system)
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) temp_dir: Option<PathBuf>,
}

/// The options for the point at which the restore of backups stops.
#[derive(Args, Clone, Default)]
pub(crate) struct StopArguments {
    /// Restore backups to this point in time (local time of the server), such as 2020-05-12T13:30:00
    ///
    /// Like STOPAT, includes the transactions that were committed up to this time. Uses the newest full and
    /// differential backups before this time, and the log backups that follow these backups.
    #[arg(long, value_name = "TIME", value_parser = jobs::request::stop_moment, help_heading = RECOVERY, group = "stop")]
    pub(crate) stop_at: Option<StopMoment>,

    /// Restore backups up to and including the marked transaction NAME
    ///
    /// Like STOPATMARK, stops at the first transaction of this name that was committed after the oldest full backup.
    #[arg(long, value_name = "NAME", help_heading = RECOVERY, group = "stop")]
    pub(crate) stop_at_mark: Option<String>,

    /// Restore backups up to, but not including, the marked transaction NAME
    #[arg(long, value_name = "NAME", help_heading = RECOVERY, group = "stop")]
    pub(crate) stop_before_mark: Option<String>,
}
