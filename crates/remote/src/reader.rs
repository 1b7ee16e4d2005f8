//! Synchronous reads of an object by many threads.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};
use source::storage::Object;
use tokio::runtime::Handle;

use crate::fault::{self, Act};
use crate::location::Place;
use crate::pool::{Found, Pool, Read};
use crate::settings::Settings;

/// The period in which an answer must deliver at least `LEAST_BYTES` bytes.
const A_WHILE: Duration = Duration::from_secs(60);
const LEAST_BYTES: usize = 1024;
/// The number of times that an answer may end too early, if the server sends no entity tags.
const MOST_CUTS: u32 = 8;

/// Identifies the version of an object. It shows whether a newer object with the same name has replaced the object.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) length: u64,
    pub(crate) etag: Option<String>,
    /// The time of the last change in seconds since 1970; 0 if the server does not send it.
    pub(crate) modified: i64,
}

impl Version {
    pub(crate) fn of(meta: &object_store::ObjectMeta) -> Self {
        Self { length: meta.size, etag: meta.e_tag.clone(), modified: meta.last_modified.timestamp() }
    }

    /// Whether `self` and `other` are the same version of an object. Compares the lengths, and also the tags if the
    /// server sends tags, otherwise the times of the last change.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_tagged = self.etag.is_some();
        self.length == other.length && self.etag == other.etag && (is_tagged || self.modified == other.modified)
    }

    /// The tag, if it is a strong entity tag (RFC 9110, 8.8.1). Objects with different bytes never have the same strong
    /// tag.
    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// Options for reading a range. With a strong tag, the server refuses the request if the object has changed. Weak
    /// tags never match in such a request, so the caller must compare the tag of the answer.
    fn options(&self, from: u64, to: u64) -> GetOptions {
        let if_match = self.strong_etag().map(str::to_owned);
        GetOptions { range: Some(GetRange::Bounded(from..to)), if_match, ..GetOptions::default() }
    }
}

/// An object, with all that is needed to read it.
pub(crate) struct Remote {
    /// Number of the object in the pool.
    pub(crate) number: u32,
    pub(crate) version: Version,
    pub(crate) path: Path,
    pub(crate) place: Place,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) runtime: Handle,
    /// The reason why the object can no longer be read. A request fails only after it has been repeated several times,
    /// so the first error is final.
    pub(crate) failed: OnceLock<String>,
}

/// The handle through which callers read an object.
pub(crate) struct Reader(pub(crate) Arc<Remote>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("path", &self.0.path).field("version", &self.0.version).finish_non_exhaustive()
    }
}

impl Remote {
    /// Sends a request for each range.
    fn ask(self: &Arc<Self>, ranges: Vec<(u64, u64)>) {
        for (from, to) in ranges {
            let mut under_way = UnderWay { remote: Arc::clone(self), from, content: None };
            self.runtime.spawn(async move {
                let content = under_way.remote.get(from, to).await;
                under_way.answered(content);
            });
        }
    }

    /// Sends one request, which is repeated if it fails.
    async fn get(&self, from: u64, to: u64) -> Result<Bytes, String> {
        let told = |error| fault::of(&error, Act::Read, &self.place, &self.settings).to_string();
        let mut cuts = 0;
        loop {
            // Another request for this object may have failed for good in the meantime.
            if let Some(text) = self.failed.get() {
                return Err(text.clone());
            }
            let answer = self.store.get_opts(&self.path, self.version.options(from, to)).await.map_err(told)?;
            if !Version::of(&answer.meta).is_same(&self.version) {
                return Err(fault::OVERWRITTEN.to_owned());
            }
            match body(answer, to - from).await {
                Ok(Some(bytes)) if bytes.len() as u64 == to - from => return Ok(bytes),
                Ok(Some(_)) => return Err("the storage sends fewer bytes than requested; try again later".to_owned()),
                Ok(None) => return Err(fault::TOO_LONG.to_owned()),
                // If the server sends tags, the client has already resumed the answer as often as is useful.
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
        let read = self.pool.state().read(self.number, self.version.length, (offset, end));
        let filled = self.fill(buffer, (offset, end), &read);
        self.pool.state().ended(&read);
        filled
    }

    /// Copies the bytes between `offset` and `end` as they arrive. After each copy, requests the next ranges.
    fn fill(self: &Arc<Self>, buffer: &mut [u8], (offset, end): (u64, u64), read: &Read) -> io::Result<usize> {
        let mut rest = buffer;
        let mut at = offset;
        let mut state = self.pool.state();
        while at < end {
            self.has_not_failed()?;
            let (found, asked) = state.go_on(read, at);
            self.ask(asked);
            match found {
                Found::Here(bytes) => {
                    drop(state);
                    let copied = copy(&bytes, rest);
                    rest = rest.get_mut(copied..).unwrap_or_default();
                    at += copied as u64;
                    if copied == 0 {
                        break;
                    }
                    state = self.pool.state();
                }
                Found::UnderWay(start) => state = self.pool.wait(state, self.number, Some(start)),
                Found::Nothing => state = self.pool.wait(state, self.number, None),
            }
        }
        Ok(usize::try_from(at - offset).unwrap_or(usize::MAX))
    }

    fn prefetch(self: &Arc<Self>, offset: u64, bytes: u64) {
        if self.failed.get().is_none() && offset < self.version.length {
            let mut state = self.pool.state();
            self.ask(state.announced(self.number, self.version.length, (offset, bytes)));
        }
    }
}

/// A request in progress. When it is dropped, the threads that wait for its bytes are woken, however the request ended.
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
            // If the request failed with an error, that error is already set and is kept.
            let _ = self.remote.failed.set("the request ended without an answer; try again".to_owned());
        }
        self.remote.pool.came(self.remote.number, self.from, self.content.take());
    }
}

/// The body of an answer; `None` if the body has more than `most_bytes` bytes, regardless of the answer's header.
pub(crate) async fn body(answer: GetResult, most_bytes: u64) -> object_store::Result<Option<Bytes>> {
    let said = answer.range.end.saturating_sub(answer.range.start).min(most_bytes);
    collected(answer.into_stream(), (said, most_bytes), A_WHILE).await
}

async fn collected(
    mut stream: impl Stream<Item = object_store::Result<Bytes>> + Unpin,
    (said, most_bytes): (u64, u64),
    a_while: Duration,
) -> object_store::Result<Option<Bytes>> {
    let mut whole = Vec::with_capacity(usize::try_from(said).unwrap_or_default());
    let (mut since, mut had) = (Instant::now(), 0);
    while let Some(piece) = stream.try_next().await? {
        if (whole.len() + piece.len()) as u64 > most_bytes {
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
        // A server that sends single bytes would otherwise keep a check waiting forever, because each byte resets the
        // read timeout.
        if since.elapsed() >= a_while {
            if whole.len() - had < LEAST_BYTES {
                let source = "the server sends almost no data".into();
                return Err(object_store::Error::Generic { store: "HTTP", source });
            }
            (since, had) = (Instant::now(), whole.len());
        }
    }
    Ok(Some(whole.into()))
}

/// Copies as many bytes as both slices have, and returns their number.
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
        version.etag.clone().unwrap_or_else(|| format!("modified {} seconds after 1970-01-01 UTC", version.modified))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_sends_a_byte_now_and_then_holds_nobody_for_ever() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let drop_by_drop = |bytes: usize| {
            futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Some((Ok(Bytes::from(vec![0; bytes])), ()))
            })
        };
        let read = |bytes: usize| {
            runtime.block_on(collected(Box::pin(drop_by_drop(bytes)), (0, 20_000), Duration::from_millis(50)))
        };
        assert!(read(1).unwrap_err().to_string().contains("almost no data"));
        assert!(read(2000).unwrap().is_none(), "more data than requested");
    }
}
