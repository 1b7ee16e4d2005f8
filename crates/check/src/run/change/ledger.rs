//! What a ledger keeps of a run, and gives back to later runs.

use std::io;

use findings::FileRange;
use source::backup::FileSeen;
use sums::spill::TempStore;
use sums::wire::{Digest, Input, Output, SumsError};

use super::NotByChange;
use crate::run::part::seen;

/// The inputs of a range's sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartKey {
    /// The pages of the range.
    pub range: FileRange,
    /// A digest of the bytes that do not come from the first set of the backup; zero if there are none.
    pub above: Digest,
    /// A digest of the maps of the range.
    pub maps: Digest,
    /// A digest of the meaning of the units in the range.
    pub meaning: Digest,
}

impl PartKey {
    /// Stands in place of the digest of the bytes if the run has found something in the range, or has not read all of it.
    /// Such a part has no sums; no run may use the sums that an earlier run has kept of the range.
    pub const FOUND: Digest = [0xff; 16];
    /// Number of bytes of a key.
    pub const BYTES: usize = 10 + 3 * 16;

    /// The key as bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let FileRange { file_id, first, pages } = self.range;
        let mut bytes = [0; Self::BYTES];
        let pieces: [&[u8]; 6] = [
            &file_id.to_le_bytes(),
            &first.to_le_bytes(),
            &pages.to_le_bytes(),
            &self.above,
            &self.maps,
            &self.meaning,
        ];
        let mut rest = &mut bytes[..];
        for piece in pieces {
            let Some((place, after)) = rest.split_at_mut_checked(piece.len()) else { break };
            place.copy_from_slice(piece);
            rest = after;
        }
        bytes
    }

    /// Reads the output of [`Self::to_bytes`]; `None` if there are too few bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let digest = |at: usize| bytes.get(at..)?.first_chunk::<16>().copied();
        let file_id = u16::from_le_bytes(*bytes.first_chunk()?);
        let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let range = FileRange { file_id, first: number(2)?, pages: number(6)? };
        Some(Self { range, above: digest(10)?, maps: digest(26)?, meaning: digest(42)? })
    }
}

/// The sums of a range, as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The inputs of the sums.
    pub key: PartKey,
    /// The sums without the key bounds of pages.
    pub sums: Vec<u8>,
    /// The first and last key of each page of a B-tree. A later run needs them only where the page or its parent has
    /// changed.
    pub bounds: Vec<u8>,
    /// Digests of the extents that should never change, by which a later run tests the differential maps of data files.
    pub extents: Vec<u8>,
}

/// What a ledger gives back.
pub enum Entry<'e> {
    /// The beginning of the parts that one run has kept: what [`Ledger::begin`] received.
    Run(&'e [u8]),
    /// Parts that the run has kept together.
    Group(&'e mut dyn KeptGroup),
}

/// A group of parts that the ledger gives back, piece by piece.
pub trait KeptGroup {
    /// The keys of the parts.
    fn keys(&self) -> &[PartKey];

    /// Reads a piece.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    fn read(&mut self, piece: Piece) -> io::Result<Vec<u8>>;
}

/// A piece of a group of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The merged sums of all parts.
    All,
    /// The sums of the part at this index.
    Sums(usize),
    /// The key bounds of the part at this index.
    Bounds(usize),
    /// The digests of extents of the part at this index.
    Extents(usize),
}

/// The storage for the parts of earlier runs and of this run.
pub trait Ledger: Sync {
    /// The number of pages of a range: a power of two, at most 128.
    fn range_pages(&self) -> u32;

    /// The number of runs that have kept parts.
    fn runs(&self) -> usize;

    /// Whether what an earlier run, counted backwards, has read last must be read again.
    fn must_read_again(&self, run: usize) -> bool {
        let _ = run;
        false
    }

    /// Calls `visit` with everything that earlier runs have kept, the latest run first.
    ///
    /// # Errors
    /// If the ledger cannot be read, or an error of `visit`.
    fn each(&self, visit: &mut dyn FnMut(Entry<'_>) -> Result<(), NotByChange>) -> Result<(), NotByChange>;

    /// What the latest run has passed to [`Self::stand`]; `None` if it has passed nothing.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    fn standing(&self) -> Result<Option<Vec<u8>>, NotByChange>;

    /// A digest of what identifies the files of the later sets of the backup; `None` if they have no identity. If it is the
    /// same as in the latest run, pages that come from these sets are not read to compare them.
    fn later_sets(&self) -> Option<Digest>;

    /// Begins to keep the parts of this run. `names` must be given back with them.
    fn begin(&self, names: &[u8]);

    /// Keeps parts of this run, and their merged sums; the merged sums are empty if there is only one part. If that fails,
    /// the run goes on.
    fn keep(&self, parts: &[Part], all: &[u8]);

    /// Keeps what the next run must know about this run, if it keeps any parts.
    fn stand(&self, standing: &[u8]);
}

/// The head with which what was read of a backup is encoded.
const SEEN: &[u8] = b"seen of a backup";

/// Encodes what was read of the first set of a backup.
///
/// # Errors
/// Fails only if memory cannot be allocated.
pub fn write_seen(key: &sums::HashKey, seen: &[FileSeen]) -> Result<Vec<u8>, SumsError> {
    let (hash, space, mut bytes) = (sums::hash::FactHash::of_key(key), TempStore::default(), Vec::new());
    let mut to = Output::new(&hash, SEEN, &space, &mut bytes);
    seen::put_files(seen, &mut to)?;
    to.finish()?;
    Ok(bytes)
}

/// Reads the output of [`write_seen`].
///
/// # Errors
/// [`SumsError`] if the bytes were not written by [`write_seen`] with the same key.
pub fn read_seen(key: &sums::HashKey, mut bytes: &[u8]) -> Result<Vec<FileSeen>, SumsError> {
    let (hash, space) = (sums::hash::FactHash::of_key(key), TempStore::default());
    let mut from = Input::new(&hash, SEEN, (&space, 0), &mut bytes);
    let seen = seen::take_files(&mut from)?;
    from.finish()?;
    Ok(seen)
}
