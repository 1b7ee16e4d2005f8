//! The options of `mdfsck compare-dbcc`.

use std::path::PathBuf;

use clap::Args;
use findings::registry::limits::Limit;
use jobs::request::Request;

use super::check::LimitId;
use super::{OUTPUT, RecoveryArguments, RunArguments, ScopeArguments, StopArguments};

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// Results of CHECKDB: CSV of WITH TABLERESULTS, or messages as text; '-' reads standard input
    ///
    /// Rows may come from sqlcmd, SSMS or PowerShell, with or without a line of column names. Text may be pasted, or be
    /// the output of sqlcmd. The encoding is UTF-8 or UTF-16. At most 64 MB.
    #[arg(value_name = "RESULT")]
    pub(crate) result: PathBuf,

    /// Data files of the database with their log, or the folder that holds these files, or backup files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Print one JSON object per line
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

    /// Accept the limit ID, a reason why something is not verified: this limit then does not set bit 16 (incomplete) of
    /// the exit status; repeatable
    #[arg(long, value_name = "ID", value_parser = LimitId, hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) allow: Vec<&'static Limit>,

    /// Leave bit 16 (incomplete) out of the exit status: 16 becomes 0, and 17 becomes 1
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,
}

impl CompareArguments {
    /// The check whose findings are compared.
    pub(crate) fn check(&self) -> Request {
        let mut check = Request::of_paths(self.paths.clone());
        check.scope = (&self.scope).into();
        check.recovery = (&self.recovery).into();
        check.stop = (&self.stop).into();
        check.run = (&self.run).into();
        check.results.allow.clone_from(&self.allow);
        check.results.exit_zero_on_incomplete = self.exit_zero_on_incomplete;
        check
    }
}
