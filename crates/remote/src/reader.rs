//! An object that is read synchronously, by many threads.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};
use source::storage::Object;
use tokio::runtime::Handle;

use crate::fault::{self, Act};
use crate::location::Place;
use crate::pool::{Found, Pool, SMALL_BYTES};
use crate::settings::Settings;
use crate::streams::Streams;

/// Announced reads below this are pages by themselves.
const LARGE_HINT_BYTES: u64 = 512 << 10;
/// Answers of a server without tags that may end too early.
const MOST_CUTS: u32 = 8;

/// The version of an object: another one may take its name.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) length: u64,
    pub(crate) etag: Option<String>,
    /// Seconds since 1970; 0 if the server does not say it.
    pub(crate) modified: i64,
}

impl Version {
    pub(crate) fn of(meta: &object_store::ObjectMeta) -> Self {
        Self { length: meta.size, etag: meta.e_tag.clone(), modified: meta.last_modified.timestamp() }
    }

    /// Whether both are of one object. A tag says it all; without one, the time must do.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_tagged = self.etag.is_some();
        self.length == other.length && self.etag == other.etag && (is_tagged || self.modified == other.modified)
    }

    /// The tag, if no other bytes have it (RFC 9110, 8.8.1).
    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// What a request must say so that another object is refused. A weak tag never matches, so that only the answer tells.
    fn options(&self, from: u64, to: u64) -> GetOptions {
        let if_match = self.strong_etag().map(str::to_owned);
        GetOptions { range: Some(GetRange::Bounded(from..to)), if_match, ..GetOptions::default() }
    }
}

/// An object, and the way to it.
pub(crate) struct Remote {
    /// Its number in the pool.
    pub(crate) number: u32,
    pub(crate) version: Version,
    pub(crate) path: Path,
    pub(crate) place: Place,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) runtime: Handle,
    pub(crate) streams: Mutex<Streams>,
    /// Why it can no longer be read. Every request was repeated often enough, so that the first error is the last.
    pub(crate) failed: OnceLock<String>,
}

/// A handle of an object.
pub(crate) struct Reader(pub(crate) Arc<Remote>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("path", &self.0.path).field("version", &self.0.version).finish_non_exhaustive()
    }
}

impl Remote {
    fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for bytes that are not there yet; whether all of them are asked for now.
    fn ask(self: &Arc<Self>, state: &mut crate::pool::State, range: (u64, u64), step: u64, is_needed: bool) -> bool {
        let range = (range.0.min(self.version.length), range.1.min(self.version.length));
        let (begun, is_all) = state.begin(self.number, range, step, is_needed);
        for (from, to) in begun {
            let mut under_way = UnderWay { remote: Arc::clone(self), from, content: None };
            self.runtime.spawn(async move {
                let content = under_way.remote.get(from, to).await;
                under_way.answered(content);
            });
        }
        is_all
    }

    /// One request, repeated where it fails.
    async fn get(&self, from: u64, to: u64) -> Result<Bytes, String> {
        let told = |error| fault::of(&error, Act::Read, &self.place, &self.settings).to_string();
        let mut cuts = 0;
        loop {
            let answer = self.store.get_opts(&self.path, self.version.options(from, to)).await.map_err(told)?;
            if !Version::of(&answer.meta).is_same(&self.version) {
                return Err(fault::OVERWRITTEN.to_owned());
            }
            match body(answer, to - from).await {
                Ok(Some(bytes)) if bytes.len() as u64 == to - from => return Ok(bytes),
                Ok(Some(_)) => return Err("the storage sends fewer bytes than asked for; try again later".to_owned()),
                Ok(None) => return Err(fault::TOO_LONG.to_owned()),
                // With a tag, the client has gone on behind the cut as often as it makes sense.
                Err(_) if self.version.etag.is_none() && cuts < MOST_CUTS => cuts += 1,
                Err(error) => return Err(told(error)),
            }
        }
    }

    fn has_not_failed(&self) -> io::Result<()> {
        self.failed.get().map_or(Ok(()), |text| Err(io::Error::other(text.clone())))
    }

    fn read_at(self: &Arc<Self>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.version.length);
        if offset >= end {
            return Ok(0);
        }
        self.has_not_failed()?;
        let mut streams = self.streams();
        let stream = streams.note(offset, end - offset);
        let mut state = self.pool.state();
        let (small_from, small_to) = (offset / SMALL_BYTES * SMALL_BYTES, end.next_multiple_of(SMALL_BYTES));
        let (large, ahead) = stream.map_or((SMALL_BYTES, 0), |number| state.share(self.number, number));
        let wanted = (small_from, if stream.is_some() { small_to.max(small_from + large) } else { small_to });
        let step = large.max(small_to - small_from);
        if matches!(state.find(self.number, offset), Found::Nothing) {
            self.ask(&mut state, wanted, step, true);
            stream.into_iter().for_each(|number| streams.asked(number, wanted.1));
        }
        // What comes next, while this is read.
        while let Some((number, (from, to))) =
            stream.and_then(|number| Some((number, streams.next(number, ahead, large)?)))
        {
            if from >= self.version.length || !self.ask(&mut state, (from, to), large, false) {
                break;
            }
            streams.asked(number, to);
        }
        drop(streams);
        loop {
            self.has_not_failed()?;
            match state.find(self.number, offset) {
                Found::Here(bytes) => {
                    drop(state);
                    return Ok(copy(&bytes, buffer));
                }
                Found::UnderWay(start) => state = self.pool.wait(state, self.number, Some(start)),
                // Given up for others before it was read, or there was no room yet.
                Found::Nothing => {
                    self.ask(&mut state, wanted, step, true);
                    if matches!(state.find(self.number, offset), Found::Nothing) {
                        state = self.pool.wait(state, self.number, None);
                    }
                }
            }
        }
    }

    fn prefetch(self: &Arc<Self>, offset: u64, bytes: u64) {
        if self.failed.get().is_some() || offset >= self.version.length {
            return;
        }
        // What a stream comes to is on its way in larger pieces.
        if self.streams().covers(offset) {
            return;
        }
        let step = if bytes >= LARGE_HINT_BYTES { bytes } else { SMALL_BYTES };
        let range = (offset / SMALL_BYTES * SMALL_BYTES, offset.saturating_add(bytes).next_multiple_of(SMALL_BYTES));
        self.ask(&mut self.pool.state(), range, step, false);
    }
}

/// A request under way: however it ends, those who wait for its bytes are woken.
struct UnderWay {
    remote: Arc<Remote>,
    from: u64,
    content: Option<Bytes>,
}

impl UnderWay {
    fn answered(&mut self, content: Result<Bytes, String>) {
        match content {
            Ok(content) => self.content = Some(content),
            Err(text) => drop(self.remote.failed.set(text)),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.content.is_none() {
            // The error, where there was one, is there already.
            let _ = self.remote.failed.set("the request ended without an answer; try again".to_owned());
        }
        self.remote.pool.came(self.remote.number, self.from, self.content.take());
    }
}

/// The body of an answer; `None` if it has more than `most_bytes`, whatever its header says.
pub(crate) async fn body(answer: GetResult, most_bytes: u64) -> object_store::Result<Option<Bytes>> {
    let mut stream = answer.into_stream();
    let mut whole = Vec::new();
    while let Some(piece) = stream.try_next().await? {
        if (whole.len() + piece.len()) as u64 > most_bytes {
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Some(whole.into()))
}

/// Copies as much as there is and fits.
fn copy(bytes: &Bytes, buffer: &mut [u8]) -> usize {
    let length = bytes.len().min(buffer.len());
    if let (Some(to), Some(from)) = (buffer.get_mut(..length), bytes.get(..length)) {
        to.copy_from_slice(from);
    }
    length
}

impl Object for Reader {
    fn length(&self) -> u64 {
        self.0.version.length
    }

    fn version(&self) -> String {
        let version = &self.0.version;
        version.etag.clone().unwrap_or_else(|| format!("written {} seconds after 1970", version.modified))
    }

    fn has_strong_version(&self) -> bool {
        self.0.version.strong_etag().is_some()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        self.0.prefetch(offset, bytes);
    }
}
