//! What a run notes for the next: of which parts its sums consist, and which non-leaf pages it could not settle.
//!
//! A non-leaf page is compared with its children at the end of a run. The next run need not read it again if this page
//! and all of its children have the parts with which it was compared. It is not enough that all of these parts come from
//! earlier runs: two parts of different runs may never have been compared with each other.

use std::collections::{BTreeMap, BTreeSet};

use findings::FileRange;
use format::PageId;
use sums::hash::FactHash;
use sums::spill::TempStore;
use sums::wire::{Digest, Input, Output, SumsError, Wire};

use super::PartKey;
use crate::checks::tree::bounds::MOST_OPEN;
use crate::sweep::context::Context;
use crate::sweep::settled::Verified;

/// What a run has noted.
#[derive(Default)]
pub(super) struct Standing {
    /// A digest of the identity of the later sets' files.
    pub(super) later: Option<Digest>,
    /// A digest of the conditions of the run.
    pub(super) globals: Digest,
    /// The ranges whose sums do not come from a part of the first run: their parts, if they have any.
    parts: BTreeMap<(u16, u32), Stood>,
    /// The non-leaf pages that must be compared with their children again.
    pub(super) open: BTreeSet<PageId>,
    /// The values off the row that were sound.
    pub(super) values: Verified,
    /// Whether facts were lost, so that the next run must not rely on this one.
    pub(super) is_void: bool,
}

/// How the sums of a range were made.
#[derive(Clone, Copy)]
struct Stood {
    /// The range, and its inputs if it has a part.
    key: PartKey,
    is_kept: bool,
    /// Which pages come from later sets; zero if any comes from the log.
    mask: u128,
}

/// The head with which a standing is encoded.
const STANDING: &[u8] = b"standing of a run";

impl Standing {
    /// Nothing but the identity of the later sets' files and the conditions of the run.
    pub(super) fn of(later: Option<Digest>, globals: Digest) -> Self {
        Self { later, globals, ..Self::default() }
    }

    /// The number of ranges that were noted.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Notes the part of a range, or that it has none.
    pub(super) fn add(&mut self, range: FileRange, key: Option<PartKey>, mask: Option<u128>) {
        let nothing = PartKey { range, above: [0; 16], maps: [0; 16], meaning: [0; 16] };
        let stood = Stood { key: key.unwrap_or(nothing), is_kept: key.is_some(), mask: mask.unwrap_or_default() };
        self.parts.insert((range.file_id, range.first), stood);
    }

    /// Whether a range was noted.
    pub(super) fn has(&self, range: FileRange) -> bool {
        self.parts.contains_key(&(range.file_id, range.first))
    }

    /// The part of a range, if one was noted.
    pub(super) fn key(&self, range: FileRange) -> Option<&PartKey> {
        self.parts.get(&(range.file_id, range.first)).filter(|stood| stood.is_kept).map(|stood| &stood.key)
    }

    /// The digest of the bytes of a range that come from later sets, if the same pages came from them.
    pub(super) fn above(&self, range: FileRange, mask: u128) -> Option<Digest> {
        let stood = self.parts.get(&(range.file_id, range.first))?;
        (stood.is_kept && stood.key.range == range && stood.mask == mask && mask != 0).then_some(stood.key.above)
    }

    /// The bytes; `None` if there are too many pages to note, or facts were lost.
    pub(super) fn written(&self, hash: &FactHash) -> Option<Vec<u8>> {
        if self.open.len() >= MOST_OPEN || self.is_void {
            return None;
        }
        let (mut bytes, space) = (Vec::new(), TempStore::default());
        let mut to = Output::new(hash, STANDING, &space, &mut bytes);
        self.put(&mut to).and_then(|()| to.finish()).ok()?;
        Some(bytes)
    }

    fn put(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.later, self.globals).write(to)?;
        (self.parts.len() as u64).write(to)?;
        for Stood { key, is_kept, mask } in self.parts.values() {
            to.put(&key.to_bytes())?;
            is_kept.write(to)?;
            mask.to_le_bytes().write(to)?;
        }
        self.open.write(to)?;
        self.values.write(to)
    }

    /// Reads the output of [`Self::written`].
    pub(super) fn read(context: &Context<'_>, mut bytes: &[u8]) -> Result<Self, SumsError> {
        let mut from = Input::new(&context.hash, STANDING, (context.space, 0), &mut bytes);
        let (later, globals) = Wire::read(&mut from)?;
        let mut parts = BTreeMap::new();
        for _ in 0..u64::read(&mut from)? {
            let key = PartKey::from_bytes(&from.array::<{ PartKey::BYTES }>()?);
            let key = key.ok_or_else(|| from.damaged("a part"))?;
            let (is_kept, mask): (bool, Digest) = Wire::read(&mut from)?;
            let stood = Stood { key, is_kept, mask: u128::from_le_bytes(mask) };
            parts.insert((key.range.file_id, key.range.first), stood);
        }
        let (open, values) = Wire::read(&mut from)?;
        from.finish()?;
        Ok(Self { later, globals, parts, open, values, is_void: false })
    }
}
