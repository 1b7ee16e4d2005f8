//! The tests that take most of the time, which `cargo test` leaves to the full tier.

use libtest_mimic::Trial;

/// By name: kills at many instants, every byte of a part, every form and size of tasks and windows, waits of a watch.
pub(crate) const NAMES: [&str; 48] = [
    "a backup whose copy is damaged too is passed over for the next older one, and said",
    "a check that is killed at any instant leaves a sound history",
    "a history that is locked or goes wrong during a check costs it nothing but a line",
    "a log that was named goes to its database, and one of none is an error",
    "a merge without all parts, or with damaged or foreign ones, is refused with nothing on stdout",
    "a part of an earlier round that is lost is made again, and the merge goes on",
    "a part with any byte changed, or cut anywhere, is refused",
    "a restore may open as many files as the system allows",
    "a task that is killed leaves no part, and two that run at once leave one",
    "a window that is killed at any instant goes on where it was, and gives what check prints",
    "advise names the steps for each kind of damage",
    "an export has the same bytes for every number of threads and grant",
    "an export of too small a grant says how much it needs",
    "an export that is killed or interrupted leaves no file that looks whole, and can be run again",
    "chain --script writes statements in their order, with STOPAT and quoted names, and overwrites nothing",
    "chain --verify goes round a damaged full backup by an older one and all log since",
    "databases that share a backup device are each checked with their log backups",
    "each row of a damaged database is whole, doubtful, rebuilt or known to be lost",
    "every command of the guides runs",
    "files that change between windows are a new image, even if size and time are put back",
    "files that were not shut down cleanly are a new image in each window",
    "log that is missing between the backups keeps pages from being restored, and is named",
    "looks that are too large for a merge are taken by tasks, round by round, and the results are the same",
    "maps that were changed, cut, or are those of another plan or task are refused",
    "on a full disk the file in hand is gone, those before it are whole, and one line says so",
    "rows of a damaged page are left out and said",
    "salvaged rows stand in files of their own in every format, and the output names them",
    "serve answers while slow clients hold more connections than it takes",
    "serve shows how far a check is, with curves and a map, and that it was killed",
    "side by side is one after another, byte for byte, within one grant",
    "tasks give what check prints, of a crashed database with its log",
    "tasks give what check prints, of a restore to a moment and of one chosen in a folder",
    "tasks give what check prints, of backups in each form",
    "tasks give what check prints, whatever its scope and depth",
    "tasks of any size in any order give what check prints, of data files with each kind of damage",
    "the commands of the samples run, and the PowerShell module knows the fields",
    "the page of an estate has 8 MB at most, and says what it leaves out",
    "watch calls no log backup sound of which a part is missing",
    "watch checks a differential with its full backup, and reads log backups",
    "watch ends an engine that takes too long, or when it ends itself",
    "watch keeps what an engine has done, and has only the rest carried out",
    "watch lets an engine check what is large, round by round, and records what a check would",
    "watch never calls a backup sound that its engine has not carried out, and tries again",
    "watch passes events on until the program has worked once, and never for what is acknowledged",
    "watch that is killed checks each backup exactly once all the same",
    "what was not looked at again is not gone",
    "windows give what check prints, of backups in each form",
    "windows of any length and ranges of any size give what check prints, of data files",
];

/// Names of [`NAMES`] that no trial has: a test that was given another name would come back into the quick tier.
pub(crate) fn unknown(trials: &[Trial]) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| !trials.iter().any(|trial| trial.name() == *name)).collect()
}
