//! Large backups: a program of the user runs their tasks. The parts are merged here, and recorded as for any other check.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use history::History;

use super::work::Shared;
use crate::cli::{EngineArguments, WatchArguments};
use crate::failure::Failure;
use crate::keep;
use crate::program::{self, Ended};
use crate::spread;

/// The approximate number of tasks of a plan.
const TASKS: u64 = 256;
/// The fewest bytes of a task: a smaller one costs more to start than to run.
const LEAST_TASK_BYTES: u64 = 1 << 30;
/// The divisor of a backup's size, and the number of bytes, that limit second looks in this process.
const LOOKS: u64 = 16;
const MOST_LOOKS_BYTES: u64 = 64 << 30;

/// The program that runs the tasks of large backups.
pub(super) struct Engine<'a> {
    program: &'a Path,
    arguments: &'a EngineArguments,
    /// The folder of the plans.
    folder: PathBuf,
    /// The prefix of the names of this history's plans.
    prefix: String,
}

impl<'a> Engine<'a> {
    /// The program of the options, if there is one.
    ///
    /// # Errors
    /// If its folder cannot hold plans.
    pub(super) fn of(watch: &'a WatchArguments) -> Result<Option<Self>, Failure> {
        let arguments = &watch.engine;
        let (Some(program), Some(folder)) = (&arguments.engine, &arguments.engine_dir) else { return Ok(None) };
        let refused = |cause: &dyn std::fmt::Display| {
            Failure::usage(format!("--engine-dir {}: cannot hold plans: {cause}", folder.display()))
        };
        if source::storage::url(folder).is_some() {
            return Err(refused(&"a plan is a folder of files that all machines see"));
        }
        fs::create_dir_all(folder).map_err(|cause| refused(&cause))?;
        tempfile::tempfile_in(folder).map_err(|cause| refused(&cause.kind()))?;
        let absolute = std::path::absolute(folder).map_err(|cause| refused(&cause))?;
        // Several hosts may share the folder, each with a history at the same path.
        let mut hasher = DefaultHasher::new();
        keep::host().hash(&mut hasher);
        std::path::absolute(&watch.history).unwrap_or_else(|_| watch.history.clone()).hash(&mut hasher);
        let prefix = format!("mdfsck-{:016x}-", hasher.finish());
        Ok(Some(Self { program, arguments, folder: absolute, prefix }))
    }

    /// Whether the program runs the check of a backup of this size.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        bytes >= self.arguments.engine_from
    }

    /// The folder of the plan for a backup in the queue.
    pub(super) fn plan_of(&self, id: i64) -> PathBuf {
        self.folder.join(format!("{}{id}", self.prefix))
    }

    /// Deletes the plans of backups that are no longer in the queue.
    pub(super) fn tidy(&self, history: &History) -> history::Result<()> {
        // Read before the queue, so that a plan that is made meanwhile is kept.
        let entries: Vec<_> = fs::read_dir(&self.folder).into_iter().flatten().flatten().collect();
        let queued: Vec<i64> = history.queued()?.iter().map(|item| item.id).collect();
        for entry in entries {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(&self.prefix)?.parse().ok());
            if id.is_some_and(|id: i64| !queued.contains(&id)) {
                spread::remove_plan(&entry.path());
            }
        }
        Ok(())
    }

    /// Calls the program for a plan. Returns a description of its failure, if it failed.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub(super) fn call(&self, plan: &Path, shared: &Shared) -> Result<Option<String>, Failure> {
        let mut command = Command::new(self.program);
        command
            .args(&self.arguments.engine_argument)
            .arg(plan)
            // The pipe closes when this process ends, so that a program that reads it can end too.
            .stdin(Stdio::piped())
            // Only its part files count; its output is ignored.
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
                Ok(Some(format!("{program}: took more than {seconds} seconds and was ended (--engine-limit)")))
            }
            Ok(Ended::NotAtAll) => Ok(Some(format!(
                "{program}: took too long or was to end with the watcher, was killed, and is still there"
            ))),
            Ok(Ended::Stopped) => Ok(Some(format!("{program}: was ended together with the watcher"))),
            Err(cause) => Err(Failure::unable(format!("{program}: cannot be started: {cause}"))),
        }
    }
}

/// The most bytes that a task of a backup of this size reads.
pub(super) fn task_bytes(bytes: u64) -> u64 {
    (bytes / TASKS).max(LEAST_TASK_BYTES)
}

/// The most bytes that a second look may read in this process.
pub(super) fn local_limit(bytes: u64) -> u64 {
    (bytes / LOOKS).min(MOST_LOOKS_BYTES)
}
