//! `--snapshot-with` and its options, which name the program that makes a snapshot.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

const SNAPSHOT: &str = "Snapshot";

/// The program that makes and removes a snapshot.
#[derive(Args, Clone, Default)]
pub(crate) struct SnapshotArguments {
    /// Check a snapshot of the paths, which PROGRAM makes before the check and removes after it
    ///
    /// mdfsck calls 'PROGRAM create PATH...' with absolute paths. PROGRAM makes the snapshot, and prints the absolute
    /// path of a folder in which the files have the same names, or one line for each PATH. After the check, even if it
    /// fails or Ctrl+C ends it, mdfsck calls 'PROGRAM remove LINE...' with these lines. If mdfsck was killed, the next
    /// run with the same PROGRAM and arguments calls it before anything else. A record of each snapshot is kept for
    /// this in the folder FILE.snapshots beside the history FILE, or without --history in mdfsck/snapshots in
    /// $XDG_STATE_HOME, ~/.local/state or, on Windows, %LOCALAPPDATA%. PROGRAM is started without a shell and without a
    /// terminal, and has no time limit. If it cannot make a snapshot, nothing is checked; if it cannot remove the
    /// snapshot, mdfsck warns on stderr and sets bit 4 of the exit status. The history records the original paths.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "window", help_heading = SNAPSHOT)]
    pub(crate) snapshot_with: Option<PathBuf>,

    /// An argument for PROGRAM, before 'create' or 'remove'; repeatable
    #[arg(long, value_name = "ARG", requires = "snapshot_with", allow_hyphen_values = true, help_heading = SNAPSHOT)]
    pub(crate) snapshot_argument: Vec<OsString>,
}
