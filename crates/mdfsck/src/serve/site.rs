//! The web pages that the server shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use history::{History, HistoryError};
use jobs::failure::Failure;
use jobs::keep;
use report::history_page::{self, HistoryPages};
use requests::{Request, Route, fields, route};

use super::http::Answer;
use super::page_view::{self, Printed};
use super::token::Token;
use crate::error_log;
use crate::version::VERSION;

/// The page of all databases is rebuilt at most once in the time `FRESH`. After the time `STALE`, it is rebuilt even if
/// the history is unchanged, since the page would otherwise show a killed check as running.
const FRESH: Duration = Duration::from_secs(1);
const STALE: Duration = Duration::from_secs(10);
/// Maximum number of characters of the reason for an acknowledgement.
const REASON_CHARS: usize = 1000;
/// The delay before a request with a wrong token is answered.
const DELAY: Duration = Duration::from_millis(250);

pub(super) struct Site {
    path: PathBuf,
    /// The name of the history file, as the pages show it.
    file: String,
    /// The name of this machine.
    host: String,
    token: Option<Token>,
    style: Arc<Vec<u8>>,
    script: Arc<Vec<u8>>,
    state: Mutex<State>,
    /// The latest page of all databases.
    estate: Mutex<Option<Estate>>,
    /// A second connection to the history, used only to build the page of all databases, so that other requests need
    /// not wait for it.
    maker: Mutex<Option<State>>,
}

struct State {
    history: History,
    /// Identifies the open history file, since another file may later have the same path.
    identity: Option<Identity>,
}

/// Identifies a file by its device and its inode. If the history is a copy, the time of its last write is also part of
/// the identity.
type Identity = (u64, u64, Option<SystemTime>);

struct Estate {
    page: Arc<Vec<u8>>,
    /// The version of the history just before the page was built. `None` if the page is known to be outdated.
    version: Option<i64>,
    identity: Option<Identity>,
    made: Instant,
}

impl Site {
    /// Opens the history at `path`.
    ///
    /// # Errors
    /// If the history cannot be used.
    pub(super) fn open(path: &Path, token: Option<Token>) -> Result<Self, Failure> {
        let state = State::open(path).map_err(|error| Failure::from(&error))?;
        Ok(Self {
            path: path.to_owned(),
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            host: keep::host(),
            token,
            style: history_page::style().into_bytes().into(),
            script: history_page::script().into_bytes().into(),
            state: Mutex::new(state),
            estate: Mutex::new(None),
            maker: Mutex::new(None),
        })
    }

    /// Answers a request.
    pub(super) fn answer(&self, request: &Request) -> Answer {
        let is_reading = matches!(request.method.as_str(), "GET" | "HEAD");
        match (route(&request.target), is_reading) {
            (None, _) => Answer::refusal(404),
            (Some(Route::Acknowledge(key)), false) if request.method == "POST" => self.acknowledge(key, request),
            (Some(Route::Acknowledge(_)), _) | (Some(_), false) => Answer::refusal(405),
            (Some(Route::Style), _) => Answer { content_type: "text/css", ..Answer::html(self.style.clone()) },
            (Some(Route::Script), _) => Answer { content_type: "text/javascript", ..Answer::html(self.script.clone()) },
            (Some(Route::Estate), _) => match self.estate() {
                Ok(page) => Answer::html(page),
                Err(error) => failed(&error),
            },
            (Some(Route::Database(id)), _) => self
                .made(|state| Ok(self.pages(state, |pages| pages.database(id, self.token.is_some()))?.map(Arc::new))),
            (Some(Route::Run(id)), _) => self.made(|state| Ok(self.pages(state, |pages| pages.run(id))?.map(Arc::new))),
            (Some(Route::Running(id)), _) => self.running(id),
            // Refuses requests that come from foreign websites. Otherwise a website could include this URL as a
            // picture, and each visit would start a process on this machine.
            (Some(Route::Page(_)), _)
                if request.fetch_site.as_deref() == Some("cross-site")
                    && request.fetch_mode.as_deref() != Some("navigate") =>
            {
                Answer::refusal(403)
            }
            (Some(Route::Page(key)), _) => self.page(key),
        }
    }

    /// The open history. If another file has replaced the history file, opens the new file.
    fn state(&self) -> Result<MutexGuard<'_, State>, HistoryError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if identity(&self.path, state.history.is_copy()) != state.identity {
            *state = State::open(&self.path)?;
        }
        Ok(state)
    }

    fn made(&self, make: impl FnOnce(&State) -> Result<Option<Arc<Vec<u8>>>, HistoryError>) -> Answer {
        match self.state().and_then(|state| make(&state)) {
            Ok(Some(page)) => Answer::html(page),
            Ok(None) => Answer::refusal(404),
            Err(error) => failed(&error),
        }
    }

    /// Shows the page of a running check. Browsers reload this page regularly. Once the check has ended, the answer is
    /// a redirect to the page of all databases.
    fn running(&self, id: i64) -> Answer {
        match self.state().and_then(|state| self.pages(&state, |pages| pages.running(id))) {
            Ok(Some(page)) => Answer::html(page),
            Ok(None) => Answer { location: Some("/".to_owned()), ..Answer::refusal(303) },
            Err(error) => failed(&error),
        }
    }

    fn pages<T>(
        &self,
        state: &State,
        make: impl FnOnce(&HistoryPages<'_>) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        let now = history::time::text(SystemTime::now());
        make(&HistoryPages { history: &state.history, file: &self.file, version: VERSION, now: &now, host: &self.host })
    }

    /// The page of all databases. It is rebuilt when the history has changed. While one request rebuilds the page,
    /// other requests receive the previous version of the page.
    fn estate(&self) -> Result<Arc<Vec<u8>>, HistoryError> {
        // The version of the history is read before the page is built. If the history changes while the page is built,
        // the page then counts as outdated.
        let (version, identity) = {
            let state = self.state()?;
            (state.history.data_version()?, state.identity)
        };
        let last = |is_wanted: &dyn Fn(&Estate) -> bool| {
            let estate = self.estate.lock().unwrap_or_else(PoisonError::into_inner);
            let known = estate.as_ref()?;
            (known.identity == identity && is_wanted(known)).then(|| known.page.clone())
        };
        let is_good = |known: &Estate| {
            let age = known.made.elapsed();
            known.version.is_some() && age < STALE && (age < FRESH || known.version == Some(version))
        };
        if let Some(page) = last(&is_good) {
            return Ok(page);
        }
        let mut maker = match self.maker.try_lock() {
            Ok(maker) => maker,
            Err(TryLockError::Poisoned(maker)) => maker.into_inner(),
            Err(TryLockError::WouldBlock) => {
                if let Some(page) = last(&|_| true) {
                    return Ok(page);
                }
                self.maker.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        // While this request waited for the lock, another request may have built the page.
        if let Some(page) = last(&is_good) {
            return Ok(page);
        }
        let state = match maker.take().filter(|state| state.identity == identity) {
            Some(state) => state,
            None => State::open(&self.path)?,
        };
        let page = Arc::new(self.pages(&state, |pages| pages.estate())?);
        *maker = Some(state);
        let made = Estate { page: page.clone(), version: Some(version), identity, made: Instant::now() };
        *self.estate.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(page)
    }

    /// Shows the database page that a finding is about.
    fn page(&self, key: i64) -> Answer {
        let found = match self.state().and_then(|state| state.history.page_of_finding(key)) {
            Ok(Some(found)) => found,
            Ok(None) => return Answer::refusal(404),
            Err(error) => return failed(&error),
        };
        let Some((file, page)) = found.page else { return Answer::refusal(404) };
        let title = format!("Page {file}:{page} of {}", found.name);
        let about = [
            format!("{} on {}", found.paths, found.host),
            format!(
                "This is the page as it is now; the finding was last seen {} UTC.",
                found.last_seen.replace('T', " ").replace('Z', "")
            ),
        ];
        let back = format!("/database/{}", found.database);
        let made = |text: &str, printed: &str| {
            let about: Vec<&str> = about.iter().map(String::as_str).chain((!text.is_empty()).then_some(text)).collect();
            Answer::html(history_page::plain(&title, &back, &about, printed))
        };
        match page_view::show(&found, (file, page)) {
            Printed::Page(text) => made("", &text),
            Printed::Nothing(why) => made(&why, ""),
            Printed::Busy => {
                Answer { status: 503, ..made("The server is busy reading other pages; try again in a moment.", "") }
            }
        }
    }

    fn acknowledge(&self, key: i64, request: &Request) -> Answer {
        let Some(token) = &self.token else { return Answer::refusal(403) };
        if request.fetch_site.as_deref().is_some_and(|site| site != "same-origin" && site != "none") {
            return Answer::refusal(403);
        }
        let fields = fields(&request.body);
        let field = |name: &str| fields.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value.trim());
        if !token.is(field("token")) {
            thread::sleep(DELAY);
            return refused(403, "The token is wrong.");
        }
        let because: String = field("because").chars().take(REASON_CHARS).collect();
        let until = match field("until") {
            "" => Ok(None),
            text => history::time::seconds(text).map(history::time::text_of_seconds).map(Some).ok_or(()),
        };
        // An acknowledgement that has already expired would have no effect.
        let until = until.and_then(|until| match until {
            Some(until) if until <= history::time::text(SystemTime::now()) => Err(()),
            until => Ok(until),
        });
        let (false, Ok(until)) = (because.is_empty(), until) else {
            return refused(
                400,
                "A reason is required. The date is optional; if given, it must be in the future, such as 2026-12-01.",
            );
        };
        let who = format!("{}, by mdfsck serve", error_log::who());
        let done = History::open(&self.path).and_then(|mut history| {
            history.acknowledge(key, &who, &because, until.as_deref())?;
            history.page_of_finding(key)
        });
        match done {
            Ok(found) => {
                if let Some(known) = self.estate.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    known.version = None;
                }
                let location = found.map_or_else(|| "/".to_owned(), |found| format!("/database/{}", found.database));
                Answer { location: Some(location), ..Answer::refusal(303) }
            }
            Err(error) if error.is_usage() => Answer::refusal(404),
            Err(error) => failed(&error),
        }
    }
}

impl State {
    fn open(path: &Path) -> Result<Self, HistoryError> {
        let [plain, of_copy] = [false, true].map(|is_copy| identity(path, is_copy));
        let history = History::open(path)?.read_only()?;
        Ok(Self { identity: if history.is_copy() { of_copy } else { plain }, history })
    }
}

/// Identifies the file at a path. If the history is a copy, the time of its last write is part of the identity.
fn identity(path: &Path, is_copy: bool) -> Option<Identity> {
    let metadata = fs::metadata(path).ok()?;
    let changed = if is_copy { metadata.modified().ok() } else { None };
    let (device, number) = number(&metadata);
    Some((device, number, changed))
}

#[cfg(unix)]
fn number(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// On this system, an open file cannot be replaced, so its identity does not matter.
#[cfg(not(unix))]
fn number(_metadata: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

fn refused(status: u16, why: &str) -> Answer {
    Answer { status, ..Answer::html(history_page::plain("Not acknowledged", "/", &[why], "")) }
}

fn failed(error: &HistoryError) -> Answer {
    let text = error.to_string();
    Answer { status: 500, ..Answer::html(history_page::plain("The history cannot be read", "/", &[&text], "")) }
}
