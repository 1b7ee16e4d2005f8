//! Promises about databases, such as the time within which all pages are read. A broken promise raises one event. When
//! the promise is kept again, another event is raised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Event, Line, put};
use crate::error::Result;
use crate::file::History;
use crate::identity::identity_of;
use crate::time;

/// How long an alarm (the record of a broken promise) is kept if no process judges the promise. If the promise is
/// judged again later, a new alarm starts.
const FORGOTTEN: Duration = Duration::from_secs(400 * 86_400);
/// The interval at which the history records that a promise is still being judged.
const NOTED: Duration = Duration::from_secs(86_400);

/// A promise about a database. Each promise has its own alarms, because the same state of a database may break one
/// promise and keep another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// The event that reports a broken promise.
    pub broken: Event,
    /// The kind of process that judges the promise.
    pub judge: Judge,
    /// The time span that the promise allows.
    pub span: Duration,
}

impl Promise {
    /// A text that distinguishes the promise from other promises with the same event.
    fn text(&self) -> String {
        let judge = match self.judge {
            Judge::Watch => "watch",
            Judge::Check => "check",
            Judge::CheckOfPages => "check pages",
        };
        format!("{judge} {}", self.span.as_secs())
    }
}

/// The kind of process that judges a promise. A watcher and a check may come to different results, because a check also
/// predicts whether the promise can be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judge {
    /// A watcher, which judges by the content of the history.
    Watch,
    /// A full check, which judges only the database that it checks.
    Check,
    /// A check with `--physical-only`. It reads only pages, and judges only the database that it checks.
    CheckOfPages,
}

/// A database for which a promise is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raised {
    /// The family of the database.
    pub family: String,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub server: String,
    /// The name of the database.
    pub name: String,
    /// Why the promise is broken.
    pub text: String,
}

impl Raised {
    /// The identity of the database, which is the key of its alarm.
    pub fn key(&self) -> String {
        identity_of(&self.family, &self.server, &self.name)
    }
}

impl History {
    /// Records the databases for which a promise is broken; these are in `raised`. If only one database was judged,
    /// `judged` is its identity; `None` means that all databases were judged. If `has_listener` is set, each newly
    /// broken promise is also recorded as an event, and so is each promise with the event `PromiseBroken` that is kept
    /// again. Returns the identities of the databases for which the promise was not broken before.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn raise(
        &mut self,
        promise: &Promise,
        raised: &[Raised],
        judged: Option<&str>,
        has_listener: bool,
    ) -> Result<BTreeSet<String>> {
        let (event, promise) = (promise.broken, promise.text());
        let moment = SystemTime::now();
        let ago = |span: Duration| time::text(moment.checked_sub(span).unwrap_or(moment));
        let now = time::text(moment);
        self.transaction(|transaction| {
            transaction.execute("DELETE FROM alarm WHERE judged < ?1", [ago(FORGOTTEN)])?;
            let known = known(transaction, event, &promise, judged)?;
            let current: BTreeMap<String, &Raised> = raised.iter().map(|one| (one.key(), one)).collect();
            let mut new = BTreeSet::new();
            for (key, one) in current.iter().filter(|(key, _)| !known.contains(key.as_str())) {
                new.insert(key.clone());
                let insert = "INSERT INTO alarm (identity, kind, promise, since, judged) VALUES (?1, ?2, ?3, ?4, ?4)";
                transaction.execute(insert, params![key, event.name(), promise, now])?;
                if has_listener {
                    tell(transaction, event, (&one.family, &one.name, &one.text), &now)?;
                }
            }
            for identity in &known {
                let of = params![identity, event.name(), promise, now, ago(NOTED)];
                if current.contains_key(identity.as_str()) {
                    let noted =
                        "UPDATE alarm SET judged = ?4 WHERE identity = ?1 AND kind = ?2 AND promise = ?3 AND judged < ?5";
                    transaction.execute(noted, of)?;
                    continue;
                }
                let ended = "DELETE FROM alarm WHERE identity = ?1 AND kind = ?2 AND promise = ?3";
                transaction.execute(ended, params![identity, event.name(), promise])?;
                if has_listener && event == Event::PromiseBroken {
                    let query = "SELECT family, name FROM database WHERE identity = ?1";
                    let of: Option<(String, String)> =
                        transaction.query_row(query, [identity], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
                    let (family, name) = of.unwrap_or_else(|| (identity.clone(), String::new()));
                    let text = "the promise is kept again";
                    tell(transaction, Event::PromiseKeptAgain, (&family, &name, text), &now)?;
                }
            }
            Ok(new)
        })
    }
}

/// The judged databases for which the promise is already recorded as broken.
fn known(
    transaction: &Transaction<'_>,
    event: Event,
    promise: &str,
    judged: Option<&str>,
) -> rusqlite::Result<BTreeSet<String>> {
    let mut known = transaction
        .prepare("SELECT identity FROM alarm WHERE kind = ?1 AND promise = ?2 AND (?3 IS NULL OR identity = ?3)")?;
    known.query_map(params![event.name(), promise, judged], |row| row.get(0))?.collect()
}

fn tell(
    transaction: &Transaction<'_>,
    event: Event,
    (family, database, text): (&str, &str, &str),
    now: &str,
) -> rusqlite::Result<()> {
    let text = text.to_owned();
    let line = Line { v: 1, event: event.name(), at: now, database, family, text, ..Line::default() };
    put(transaction, event, database, &[line], (1, now))
}
