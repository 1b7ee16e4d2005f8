//! `mdfsck check --history`: records each run. If the history cannot be used, the check still delivers its results.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use history::{FailedRun, History, HistoryError, InWindow, Naming, Recorded, Run};
use report::windows::Changed;

use crate::ended::Ended;
use crate::failure::Failure;
use crate::host::warn;
use crate::machine;
use crate::request::Request;

/// Opens or creates the history, and returns its path. On failure, warns and returns the exit-status bits.
pub fn usable(path: Option<&Path>) -> (Option<PathBuf>, u8) {
    let Some(path) = path else { return (None, 0) };
    match History::open_or_create(path) {
        Ok(_) => (Some(path.to_owned()), 0),
        Err(error) => (None, unkept(&error)),
    }
}

/// The folder that contains the plans of windows and the ledgers of a history. It is in the same folder as the history.
pub(crate) fn parts_beside(history: &Path) -> PathBuf {
    let mut name = history.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

/// Records a finished run, and prints how many findings are new, confirmed and gone. Also returns the exit-status bits
/// for problems with the history.
pub fn checked(request: &Request, ended: &Ended<'_>, exit_status: u8, window: Option<InWindow<'_>>) -> (Changed, u8) {
    let Some(path) = &request.results.history else { return Default::default() };
    let Ended { report, source, database, started, .. } = *ended;
    let mark = request.results.watched.as_deref();
    if mark.is_some_and(|mark| !mark.stands(!report.findings.is_empty())) {
        return Default::default();
    }
    let (naming, watched) = (naming(request), mark.map(|mark| mark.watched()));
    let has_listener = request.results.listener.is_there();
    let run = Run { report, source, database, naming: &naming, started, exit_status, window, watched, has_listener };
    match History::open_or_create(path).and_then(|mut history| history.record(&run)) {
        Ok(recorded) => {
            let Recorded { new, confirmed, gone, .. } = recorded;
            if !request.windows.are_asked_for() {
                say(&recorded);
            }
            (Changed { new, confirmed, gone }, 0)
        }
        Err(error) => (Changed::default(), unkept(&error)),
    }
}

/// Records a run that failed.
pub fn failed(request: &Request, started: SystemTime, failure: &Failure) -> u8 {
    let Some(path) = &request.results.history else { return 0 };
    // A failure without a text is not recorded. It means that the reader of the output has closed the pipe, and says
    // nothing about the database. A failed estimate is not recorded either.
    if failure.text.is_empty() || request.estimate_only {
        return 0;
    }
    let mark = request.results.watched.as_deref();
    if mark.is_some_and(|mark| !mark.stands(false)) {
        return 0;
    }
    let host = host();
    let (paths, exit_status, error) = (&request.originals(), failure.status, failure.text.as_str());
    let watched = mark.map(|mark| mark.watched().claim);
    let has_listener = request.results.listener.is_there();
    let run = FailedRun { paths, host: &host, started, exit_status, error, watched, has_listener };
    let recorded = History::open_or_create(path).and_then(|mut history| history.record_failure(&run));
    recorded.map_or_else(|error| unkept(&error), |()| 0)
}

/// Prints one line with three numbers: new, confirmed and gone findings.
fn say(recorded: &Recorded) {
    let Recorded { new, confirmed, gone, not_looked_at, .. } = *recorded;
    if new + confirmed + gone + not_looked_at == 0 {
        return;
    }
    let rest = match not_looked_at {
        0 => String::new(),
        1 => "; 1 could not be checked again".to_owned(),
        rest => format!("; {rest} could not be checked again"),
    };
    warn(format!("history: {new} new, {confirmed} confirmed, {gone} gone{rest}"));
}

/// Reports why a run is not recorded. Returns the exit-status bits.
pub fn unkept(error: &HistoryError) -> u8 {
    let failure = Failure::from(error);
    warn(format!("{}; the run is not recorded", failure.text));
    failure.status
}

impl From<&HistoryError> for Failure {
    fn from(error: &HistoryError) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::unable(error) }
    }
}

/// The host, server and replica settings that the history uses to identify databases.
pub fn naming(request: &Request) -> Naming {
    let named = &request.results.naming;
    let originals = request.snapshot.originals.clone();
    Naming { host: host(), server: named.server.clone(), are_replicas: named.replicas, originals }
}

/// The name of this machine.
pub fn host() -> String {
    machine::name().unwrap_or_else(|| "unknown".to_owned())
}
