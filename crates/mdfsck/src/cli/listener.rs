//! `--on-event` and its options, which name the program that receives events.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

const EVENTS: &str = "Events";

/// The program that receives the events.
#[derive(Args, Clone, Default)]
pub(crate) struct ListenerArguments {
    /// Run PROGRAM for each event: a finding is new, confirmed or gone; a promise is broken or kept again; a check has
    /// failed
    ///
    /// PROGRAM gets JSON lines on standard input, and MDFSCK_EVENT, MDFSCK_DATABASE and MDFSCK_COUNT in the
    /// environment. It is started without a shell and must end within 60 seconds. The history records each event
    /// together with its run. If PROGRAM does not exit with 0, mdfsck calls it again for the same event: first during
    /// this run, after growing pauses, then in the next run.
    #[arg(long, value_name = "PROGRAM", requires = "history", help_heading = EVENTS)]
    pub(crate) on_event: Option<PathBuf>,

    /// An argument for PROGRAM; repeatable
    #[arg(long, value_name = "ARG", requires = "on_event", allow_hyphen_values = true, help_heading = EVENTS)]
    pub(crate) event_argument: Vec<OsString>,

    /// For tests: the time limit of the program in seconds, instead of 60.
    #[arg(long, hide = true, requires = "on_event")]
    pub(crate) event_seconds: Option<u64>,
}
