//! The list of contents of a ledger, and where it stands.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use check::part::{Digest, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sums::HashKey;

use crate::error::PartsError;

pub(super) const KIND: &[u8; 16] = b"mdfsck ledger 3\n";
pub(crate) const SLOTS: [u64; 2] = [512, 1024];
pub(crate) const CONTENT: u64 = 4096;
/// Number of bytes of a slot: a number, a place, a length, the digest of the list of contents, and that of the slot.
const SLOT_BYTES: usize = 3 * 8 + 2 * 16;
/// A limit, in bytes, for the list of contents. No real list reaches it: it has a few hundred bytes per run.
const MOST_HEAD_BYTES: u64 = 1 << 26;
/// A limit, in bytes, for a part and for the names of a run. No real part or list of names reaches it.
pub(super) const MOST_PART_BYTES: u32 = 1 << 30;

/// A place in the file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

impl Span {
    pub(crate) fn end(self) -> u64 {
        self.at.saturating_add(self.bytes)
    }
}

/// A run whose parts are in the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptRun {
    /// The state of the database that the run has read: the last backup set, and when it was taken.
    pub image: String,
    /// When the run began, as the history writes it.
    pub read_at: String,
    /// The number of parts.
    pub parts: u64,
    pub(super) names: Span,
    pub(super) content: Span,
}

/// The list of contents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head<B, R = KeptRun> {
    pub(super) build: String,
    /// The key with which all facts in the ledger are hashed.
    pub(super) key: [u8; HashKey::BYTES],
    pub(super) range_pages: u32,
    /// The base, as the caller describes it.
    pub(super) base: B,
    /// The runs, the earliest first.
    pub(super) runs: Vec<R>,
    /// What the check of the base has read of the container.
    pub(super) seen: Span,
    /// What the latest run has noted for the next.
    pub(super) standing: Span,
    /// What opening the base has found, and a digest of it under the key.
    pub(super) opened: Span,
    /// What was read of the container of the later sets, and what identifies their files.
    pub(super) later_seen: Option<(Digest, Span)>,
    /// What the caller wants to find again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
}

pub(super) fn damaged(path: &Path, what: &str) -> PartsError {
    PartsError::Damaged { path: path.to_owned(), what: what.to_owned() }
}

/// The newest list of contents, and its place.
pub(super) fn head_of<B: DeserializeOwned>(path: &Path, file: &mut File) -> Result<(Slot, Head<B>), PartsError> {
    let unreadable = PartsError::unreadable;
    let mut kind = [0; KIND.len()];
    file.read_exact(&mut kind).map_err(unreadable(path))?;
    if &kind != KIND {
        return Err(damaged(path, "it is no ledger"));
    }
    let slots = SLOTS.iter().filter_map(|at| slot(file, *at).transpose());
    let slots = slots.collect::<io::Result<Vec<_>>>().map_err(unreadable(path))?;
    let newest = slots.into_iter().max_by_key(|slot| slot.sequence);
    let newest = newest.ok_or_else(|| damaged(path, "it has no contents"))?;
    let bytes = span(file, newest.head).map_err(unreadable(path))?;
    if digest_of(&bytes) != newest.digest {
        return Err(damaged(path, "its list of contents has changed"));
    }
    let head = serde_json::from_slice(&bytes).map_err(|error| damaged(path, &error.to_string()))?;
    Ok((newest, head))
}

/// Whether a range may have this number of pages.
pub(super) fn is_range(pages: u32) -> bool {
    pages.is_power_of_two() && (8..=128).contains(&pages)
}

/// The place of a list of contents.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) sequence: u64,
    pub(crate) head: Span,
    pub(crate) digest: Digest,
}

impl Slot {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.sequence, self.head.at, self.head.bytes];
        let mut bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).chain(self.digest).collect();
        bytes.extend(digest_of(&bytes));
        bytes
    }
}

/// Reads a slot; `None` if it was never written, or was written in part.
pub(crate) fn slot(file: &mut File, at: u64) -> io::Result<Option<Slot>> {
    let mut bytes = [0; SLOT_BYTES];
    file.seek(SeekFrom::Start(at))?;
    match file.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let Some((body, own)) = bytes.split_last_chunk::<16>() else { return Ok(None) };
    let number =
        |at: usize| body.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
    let (Some(sequence), Some(at), Some(bytes), Some(digest)) =
        (number(0), number(8), number(16), body.last_chunk::<16>())
    else {
        return Ok(None);
    };
    let is_number = (1..u64::MAX).contains(&sequence);
    let is_sound = digest_of(body) == *own && is_number && bytes <= MOST_HEAD_BYTES;
    Ok(is_sound.then_some(Slot { sequence, head: Span { at, bytes }, digest: *digest }))
}

/// A digest that shows accidents. Parts and names have digests under the key of the ledger.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    digest(&HashKey::new([0; HashKey::BYTES]), bytes)
}

/// Reads a place of the file. The buffer grows with the bytes that are read, whatever length the file states.
pub(crate) fn span(file: &mut (impl Read + Seek), span: Span) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(span.at))?;
    let mut bytes = Vec::new();
    let read = file.take(span.bytes.min(MOST_PART_BYTES.into())).read_to_end(&mut bytes)?;
    if read as u64 == span.bytes { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
