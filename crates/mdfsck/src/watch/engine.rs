//! Checks large backups with an external program that the user has named. The external program runs the tasks of a
//! check. mdfsck then merges the parts, and records the result in the same way as for a check without the external
//! program.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use history::History;
use jobs::failure::Failure;
use jobs::keep;
use jobs::program::{self, Ended};

use super::work::Shared;
use crate::cli::{EngineArguments, WatchArguments};
use crate::parted;

/// The approximate number of tasks of a plan.
const TASKS: u64 = 256;
/// Minimum size of a task, in bytes: a smaller task takes more time to start than to run.
const LEAST_TASK_BYTES: u64 = 1 << 30;
/// A second look, which reads pages again to locate damage, may read at most 1/`LOOKS` of the size of the backup, and
/// at most `MOST_LOOKS_BYTES` bytes, in this process.
const LOOKS: u64 = 16;
const MOST_LOOKS_BYTES: u64 = 64 << 30;

/// The program that runs the tasks of large backups.
pub(super) struct Engine<'a> {
    program: &'a Path,
    arguments: &'a EngineArguments,
    /// The folder for plans.
    folder: PathBuf,
    /// The names of the plans of this history begin with this prefix.
    prefix: String,
}

impl<'a> Engine<'a> {
    /// Makes the engine from the options. Returns `None` if the options name no program.
    ///
    /// # Errors
    /// If plans cannot be written to the folder from the options.
    pub(super) fn of(watch: &'a WatchArguments) -> Result<Option<Self>, Failure> {
        let arguments = &watch.engine;
        let (Some(program), Some(folder)) = (&arguments.engine, &arguments.engine_dir) else { return Ok(None) };
        let refused = |cause: &dyn std::fmt::Display| {
            Failure::usage(format!("--engine-dir {}: plans cannot be stored in this folder: {cause}", folder.display()))
        };
        if source::storage::url(folder).is_some() {
            return Err(refused(&"a plan is a folder of files that all machines can reach"));
        }
        fs::create_dir_all(folder).map_err(|cause| refused(&cause))?;
        tempfile::tempfile_in(folder).map_err(|cause| refused(&cause.kind()))?;
        let absolute = std::path::absolute(folder).map_err(|cause| refused(&cause))?;
        // Several hosts may use the same folder for plans, and their histories may have the same path. The prefix
        // therefore depends on both the host and the path.
        let mut hasher = DefaultHasher::new();
        keep::host().hash(&mut hasher);
        std::path::absolute(&watch.history).unwrap_or_else(|_| watch.history.clone()).hash(&mut hasher);
        let prefix = format!("mdfsck-{:016x}-", hasher.finish());
        Ok(Some(Self { program, arguments, folder: absolute, prefix }))
    }

    /// Whether the external program should check a backup of `bytes` bytes.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        bytes >= self.arguments.engine_from
    }

    /// The folder for the plan of a backup in the queue.
    pub(super) fn plan_of(&self, id: i64) -> PathBuf {
        self.folder.join(format!("{}{id}", self.prefix))
    }

    /// Deletes the plans of backups that are no longer in the queue.
    pub(super) fn tidy(&self, history: &History) -> history::Result<()> {
        // Lists the plans before it reads the queue. A plan that is made after the listing is not deleted.
        let entries: Vec<_> = fs::read_dir(&self.folder).into_iter().flatten().flatten().collect();
        let queued: Vec<i64> = history.queued()?.iter().map(|item| item.id).collect();
        for entry in entries {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(&self.prefix)?.parse().ok());
            if id.is_some_and(|id: i64| !queued.contains(&id)) {
                parted::remove_plan(&entry.path());
            }
        }
        Ok(())
    }

    /// Runs the program for a plan. If the program fails, returns a description of the failure.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub(super) fn call(&self, plan: &Path, shared: &Shared) -> Result<Option<String>, Failure> {
        let mut command = Command::new(self.program);
        command
            .args(&self.arguments.engine_argument)
            .arg(plan)
            // The operating system closes the pipe when this process ends. A program that reads from the pipe notices
            // this and can end too.
            .stdin(Stdio::piped())
            // The external program's output is ignored. Only the files with the parts of the result that the program
            // writes are used.
            .stdout(Stdio::null());
        shared.engines.fetch_add(1, Ordering::Relaxed);
        let ended = program::run(&mut command, self.arguments.engine_limit, &|| shared.is_stopped());
        shared.engines.fetch_sub(1, Ordering::Relaxed);
        let program = self.program.display();
        match ended {
            Ok(Ended::By(status)) if status.success() => Ok(None),
            Ok(Ended::By(status)) => Ok(Some(format!("{program}: ended with {status}"))),
            Ok(Ended::TookTooLong) => {
                let seconds = self.arguments.engine_limit.as_secs();
                Ok(Some(format!("{program}: took more than {seconds} seconds and was stopped (--engine-limit)")))
            }
            Ok(Ended::NotAtAll) => Ok(Some(format!(
                "{program}: took too long, or the watcher ended; the program was killed but is still running"
            ))),
            Ok(Ended::Stopped) => Ok(Some(format!("{program}: was stopped together with the watcher"))),
            Err(cause) => Err(Failure::unable(format!("{program}: cannot be started: {cause}"))),
        }
    }
}

/// Returns the maximum number of bytes that one task reads if the backup has `bytes` bytes.
pub(super) fn task_bytes(bytes: u64) -> u64 {
    (bytes / TASKS).max(LEAST_TASK_BYTES)
}

/// Returns the maximum number of bytes that this process may read in a second look, which locates damage, if the backup
/// has `bytes` bytes.
pub(super) fn local_limit(bytes: u64) -> u64 {
    (bytes / LOOKS).min(MOST_LOOKS_BYTES)
}
