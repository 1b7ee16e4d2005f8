//! The options of recovery, for every command that reads the pages of a database.

use std::path::PathBuf;

use clap::Args;

use super::RESOURCES;

#[derive(Args)]
pub(crate) struct RecoveryArguments {
    /// Read data files as they are, without the changes in their log
    ///
    /// Data files that were not shut down cleanly are recovered in memory with their log, if it is named or lies beside
    /// them. Nothing is written to them.
    #[arg(long, help_heading = "Recovery")]
    pub(crate) no_log: bool,

    /// Limit memory to SIZE, such as 256MB or 2GB; a limit below what is needed is refused
    ///
    /// Data that does not fit goes to temporary files; results do not change. By default a check takes 128 MB plus two bytes
    /// per database page, and recovery from a log up to 512 MB before that. A limit on address space (ulimit -v) should be 64
    /// MB larger, plus 68 MB per thread, because code, stacks and memory reserved by malloc are not part of the grant. Under a
    /// smaller limit the run may end without results.
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, help_heading = RESOURCES)]
    pub(crate) memory: Option<u64>,

    /// Folder for temporary files (default: the system's)
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) temp_dir: Option<PathBuf>,
}
