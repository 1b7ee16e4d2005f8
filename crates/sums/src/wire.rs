//! Encodes sums as bytes, so that the sums of several machines can be merged.
//!
//! The bytes are divided into frames. Each frame has a hash under the key of the run, so truncated or changed bytes,
//! and bytes of another run, cause an error. Readers never allocate much more memory than the number of bytes that they
//! have read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::sync::Arc;

use format::{Lsn, PageId, RecordId};
use thiserror::Error;

pub use crate::hash::Digest;
use crate::hash::{FactHash, Sum};
use crate::names::{Name, Names, Translation};
use crate::spill::{Fact, Run, TempStore};

/// Why sums cannot be read or written.
#[derive(Debug, Error)]
pub enum SumsError {
    /// The operating system could not read the input or write the output, or the input ended early.
    #[error("sums at byte {at}: {error}; write the part again")]
    Io {
        /// Number of bytes read or written before the error.
        at: u64,
        /// The error that the operating system reported.
        error: io::Error,
    },
    /// The bytes were changed, or another run wrote them.
    #[error(
        "sums at byte {at} are not what this run wrote: {what}; write the part again, with the same seed and files"
    )]
    Damaged {
        /// Number of bytes read before the error.
        at: u64,
        /// The kind of damage.
        what: &'static str,
    },
}

/// A value that can be encoded and decoded.
pub trait Wire: Sized {
    /// Writes the value.
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError>;

    /// Reads the output of [`Self::write`].
    fn read(from: &mut Input<'_>) -> Result<Self, SumsError>;
}

/// Number of content bytes in a frame; the last frames may have fewer.
const FRAME_BYTES: usize = 1 << 16;
/// Number of bytes for the length of a frame.
pub const LENGTH_BYTES: usize = 4;
/// Number of bytes for the hash of a frame.
pub const HASH_BYTES: usize = 16;

/// The hash of a frame. It includes `before`, the hash of the previous frame, so that the last hash covers all frames.
pub fn hash_of(hash: &FactHash, before: &Digest, frame: &[u8]) -> Digest {
    let mut hasher = hash.hasher();
    hasher.add_bytes(before);
    hasher.add_bytes(frame);
    hasher.digest()
}

/// The value that the hash of the first frame includes in place of a previous hash. It depends on `head`.
fn start_of(hash: &FactHash, head: &[u8]) -> Digest {
    hash_of(hash, &[0; HASH_BYTES], head)
}

/// An output for sums.
pub struct Output<'a> {
    hash: &'a FactHash,
    /// The storage with the facts that were written to temporary files. These facts are read back from it when they are
    /// encoded.
    space: &'a TempStore,
    to: &'a mut dyn Write,
    frame: Vec<u8>,
    /// The hash of the last frame that was written.
    last: Digest,
    written: u64,
}

impl<'a> Output<'a> {
    /// Creates an empty output. `head` is not written but determines the hashes, so a reader must use the same `head`.
    pub fn new(hash: &'a FactHash, head: &[u8], space: &'a TempStore, to: &'a mut dyn Write) -> Self {
        Self { hash, space, to, frame: Vec::new(), last: start_of(hash, head), written: 0 }
    }

    /// Writes bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), SumsError> {
        // Nearly all values are short and fit into the frame.
        if self.frame.len() + bytes.len() < FRAME_BYTES {
            self.frame.extend_from_slice(bytes);
            return Ok(());
        }
        self.put_over_frames(bytes)
    }

    fn put_over_frames(&mut self, mut bytes: &[u8]) -> Result<(), SumsError> {
        while let Some((now, later)) = bytes.split_at_checked(bytes.len().min(FRAME_BYTES - self.frame.len()))
            && !bytes.is_empty()
        {
            self.frame.extend_from_slice(now);
            bytes = later;
            if self.frame.len() == FRAME_BYTES {
                self.end_frame()?;
            }
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), SumsError> {
        let length = (self.frame.len() as u32).to_le_bytes();
        self.last = hash_of(self.hash, &self.last, &self.frame);
        for part in [&length[..], &self.frame, &self.last] {
            self.to.write_all(part).map_err(|error| SumsError::Io { at: self.written, error })?;
            self.written += part.len() as u64;
        }
        self.frame.clear();
        Ok(())
    }

    /// Ends the output with an empty frame.
    pub fn finish(mut self) -> Result<(), SumsError> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        self.end_frame()
    }
}

/// An input for sums.
pub struct Input<'a> {
    hash: &'a FactHash,
    /// Storage for facts that do not fit into memory.
    space: &'a TempStore,
    /// The number of units of the run.
    pub units: usize,
    /// How to translate the numbers of units and plans, if an earlier run has written the input.
    translation: Option<&'a Translation>,
    /// The check whose sums are read.
    check: &'static str,
    from: &'a mut dyn Read,
    frame: Vec<u8>,
    /// Number of bytes of the current frame that were consumed.
    taken: usize,
    /// The hash of the last frame that was read.
    last: Digest,
    read: u64,
}

impl<'a> Input<'a> {
    /// An input that was written with the same `head`, in a run with this number of units.
    pub fn new(
        hash: &'a FactHash,
        head: &[u8],
        (space, units): (&'a TempStore, usize),
        from: &'a mut dyn Read,
    ) -> Self {
        let (frame, last) = (Vec::new(), start_of(hash, head));
        Self { hash, space, units, translation: None, check: "", from, frame, taken: 0, last, read: 0 }
    }

    /// The input was written by an earlier run, in which units and plans had other numbers.
    #[must_use]
    pub fn translated(self, translation: &'a Translation) -> Self {
        Self { translation: Some(translation), ..self }
    }

    /// From here on, the plans are those of this check.
    pub fn of_check(&mut self, check: &'static str) {
        self.check = check;
    }

    /// The number of units of the run that wrote the input.
    pub fn units_then(&self) -> usize {
        self.translation.map_or(self.units, Translation::units)
    }

    /// The present number of a unit.
    ///
    /// # Errors
    /// [`SumsError::Damaged`] if there is no such unit, or not any more.
    pub fn unit(&self, unit: u32) -> Result<u32, SumsError> {
        let now = self.translation.map_or(Some(unit), |translation| translation.unit(unit));
        now.filter(|unit| (*unit as usize) < self.units).ok_or_else(|| self.damaged("a unit"))
    }

    /// The present number of a plan of the check whose sums are read.
    ///
    /// # Errors
    /// [`SumsError::Damaged`] if there is no such plan any more.
    pub fn plan(&self, plan: usize) -> Result<usize, SumsError> {
        let now = self.translation.map_or(Some(plan), |translation| translation.plan(self.check, plan));
        now.ok_or_else(|| self.damaged("a plan"))
    }

    /// Reads all frames without decoding them, and verifies that they are unchanged. Returns the hash of the last
    /// frame. The hash of each frame also covers the hash of the frame before it, so two inputs have the same last hash
    /// only if all their bytes are equal.
    pub fn verify(mut self) -> Result<Digest, SumsError> {
        while {
            self.next_frame()?;
            !self.frame.is_empty()
        } {}
        Ok(self.last)
    }

    /// The error for content that this program would not have written.
    pub fn damaged(&self, what: &'static str) -> SumsError {
        SumsError::Damaged { at: self.read, what }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SumsError> {
        self.from.read_exact(bytes).map_err(|error| SumsError::Io { at: self.read, error })?;
        self.read += bytes.len() as u64;
        Ok(())
    }

    fn next_frame(&mut self) -> Result<(), SumsError> {
        let mut length = [0; LENGTH_BYTES];
        self.fill(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_BYTES {
            return Err(self.damaged("the length of a frame"));
        }
        let mut frame = std::mem::take(&mut self.frame);
        frame.resize(length, 0);
        self.fill(&mut frame)?;
        let mut hash = [0; HASH_BYTES];
        self.fill(&mut hash)?;
        self.last = hash_of(self.hash, &self.last, &frame);
        if hash != self.last {
            return Err(self.damaged("the hash of a frame"));
        }
        (self.frame, self.taken) = (frame, 0);
        Ok(())
    }

    /// Reads this number of bytes, and calls `visit` with them piece by piece.
    pub fn take(&mut self, mut length: usize, mut visit: impl FnMut(&[u8])) -> Result<(), SumsError> {
        while length > 0 {
            if self.taken == self.frame.len() {
                self.next_frame()?;
                if self.frame.is_empty() {
                    return Err(self.damaged("an early end"));
                }
            }
            let rest = self.frame.get(self.taken..).unwrap_or_default();
            let now = rest.get(..length.min(rest.len())).unwrap_or_default();
            visit(now);
            self.taken += now.len();
            length -= now.len();
        }
        Ok(())
    }

    /// Reads the bytes of an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], SumsError> {
        if let Some(bytes) = self.frame.get(self.taken..).and_then(|rest| rest.first_chunk::<N>()) {
            self.taken += N;
            return Ok(*bytes);
        }
        let mut bytes = [0; N];
        let mut places = bytes.iter_mut();
        self.take(N, |piece| places.by_ref().zip(piece).for_each(|(place, byte)| *place = *byte))?;
        Ok(bytes)
    }

    /// Verifies that the input ends here.
    pub fn finish(mut self) -> Result<(), SumsError> {
        if self.taken == self.frame.len() {
            self.next_frame()?;
        }
        if self.frame.is_empty() { Ok(()) } else { Err(self.damaged("what follows the end")) }
    }
}

/// Implements `Wire` for a struct, field by field. The compiler rejects a list that lacks a field.
#[doc(hidden)]
#[macro_export]
macro_rules! wire_fields {
    ($name:ident $(<$of:ident>)? { $($field:ident),* $(,)? }) => {
        impl $(<$of: $crate::wire::Wire>)? $crate::wire::Wire for $name $(<$of>)? {
            fn write(&self, to: &mut $crate::wire::Output<'_>) -> Result<(), $crate::wire::SumsError> {
                let Self { $($field),* } = self;
                $($crate::wire::Wire::write($field, to)?;)*
                Ok(())
            }

            fn read(from: &mut $crate::wire::Input<'_>) -> Result<Self, $crate::wire::SumsError> {
                Ok(Self { $($field: $crate::wire::Wire::read(from)?),* })
            }
        }
    };
}

pub use crate::wire_fields as wire;

impl Wire for () {
    fn write(&self, _: &mut Output<'_>) -> Result<(), SumsError> {
        Ok(())
    }

    fn read(_: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(())
    }
}

/// The maximum count. Larger counts are rejected, so that the sums of many machines cannot overflow.
const MOST: u64 = 1 << 56;

/// A count, encoded with seven bits per byte. Only the last byte is below 128.
impl Wire for u64 {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let mut rest = *self;
        while rest >= 0x80 {
            to.put(&[rest as u8 | 0x80])?;
            rest >>= 7;
        }
        to.put(&[rest as u8])
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let mut value = 0;
        for shift in (0..).step_by(7).take(9) {
            let [byte] = from.array()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return if value <= MOST { Ok(value) } else { Err(from.damaged("a count")) };
            }
        }
        Err(from.damaged("a count"))
    }
}

/// Implements `Wire` for integers that are encoded with a fixed length.
macro_rules! wire_fixed {
    ($($integer:ty),*) => {$(
        impl Wire for $integer {
            fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
                to.put(&self.to_le_bytes())
            }

            fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        }
    )*};
}

wire_fixed!(u8, u16, u32, i64);

impl Wire for bool {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        u8::from(*self).write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(u8::read(from)? != 0)
    }
}

impl Wire for PageId {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.file, self.page).write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (file, page) = Wire::read(from)?;
        Ok(Self::new(file, page))
    }
}

impl Wire for Lsn {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.vlf, self.block, self.slot).write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (vlf, block, slot) = Wire::read(from)?;
        Ok(Self { vlf, block, slot })
    }
}

impl Wire for RecordId {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.page, self.slot).write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (page, slot) = Wire::read(from)?;
        Ok(Self { page, slot })
    }
}

impl Wire for Sum {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let (first, second) = self.parts();
        to.put(&first.to_le_bytes())?;
        to.put(&second.to_le_bytes())
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (first, second) = (from.array()?, from.array()?);
        Ok((u64::from_le_bytes(first), u64::from_le_bytes(second)).into())
    }
}

impl Wire for Box<[u8]> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.len() as u64).write(to)?;
        to.put(self)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let mut bytes = Vec::new();
        let length = u64::read(from)? as usize;
        from.take(length, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes.into())
    }
}

impl Wire for String {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.len() as u64).write(to)?;
        to.put(self.as_bytes())
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let bytes = Box::<[u8]>::read(from)?;
        Self::from_utf8(bytes.into()).map_err(|_| from.damaged("a text"))
    }
}

impl Wire for Cow<'static, str> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.clone().into_owned().write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(Self::Owned(String::read(from)?))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.is_some().write(to)?;
        self.iter().try_for_each(|value| value.write(to))
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(if bool::read(from)? { Some(T::read(from)?) } else { None })
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        T::write(self, to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        T::read(from).map(Self::new)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.len() as u64).write(to)?;
        self.iter().try_for_each(|value| value.write(to))
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        // No capacity is reserved for the declared length, which may be wrong: the list grows with the bytes that are
        // read.
        let length = u64::read(from)?;
        let mut list = Self::new();
        for _ in 0..length {
            list.push(T::read(from)?);
        }
        Ok(list)
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.len() as u64).write(to)?;
        self.iter().try_for_each(|(key, value)| {
            key.write(to)?;
            value.write(to)
        })
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(Vec::<(K, V)>::read(from)?.into_iter().collect())
    }
}

impl<T: Wire + Ord> Wire for BTreeSet<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.len() as u64).write(to)?;
        self.iter().try_for_each(|value| value.write(to))
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(Vec::<T>::read(from)?.into_iter().collect())
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.0.write(to)?;
        self.1.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.0.write(to)?;
        self.1.write(to)?;
        self.2.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok((A::read(from)?, B::read(from)?, C::read(from)?))
    }
}

impl Wire for Name {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        to.put(&self.0.to_le_bytes())
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(Self(u64::from_le_bytes(from.array()?)))
    }
}

impl Wire for Digest {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        to.put(self)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        from.array()
    }
}

wire!(Names { units, plans });

/// The part of the memory for facts that the facts of one run may use while other facts are read: one sixteenth.
const SHARE: usize = 16;

/// The number of facts that are read before the memory of a run is bounded again.
const FACTS_PER_BOUND: usize = 128;

/// A run is encoded as its facts, in order. A byte before each fact says that a fact follows; a zero byte ends the run.
impl<F: Fact> Wire for Run<F> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let (mut bytes, mut before) = (Vec::new(), None);
        let mut result = Ok(());
        self.each(to.space, |fact| {
            if result.is_ok() {
                bytes.clear();
                bytes.push(1);
                fact.pack(before.as_ref(), &mut bytes);
                result = to.put(&bytes);
                before = Some(fact);
            }
        });
        result?;
        if let Some(error) = to.space.error() {
            return Err(SumsError::Io { at: to.written, error: io::Error::other(error) });
        }
        to.put(&[0])
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let limit = limit_of::<F>(from.space);
        let (mut run, mut before, mut count) = (Self::default(), None, 0_usize);
        while bool::read(from)? {
            let mut failed = None;
            let fact = F::unpack(before.as_ref(), &mut |bytes| {
                let mut places = bytes.iter_mut();
                let length = places.len();
                let filled =
                    from.take(length, |piece| places.by_ref().zip(piece).for_each(|(place, byte)| *place = *byte));
                filled.map_err(|error| failed = Some(error)).ok()
            });
            if let Some(error) = failed {
                return Err(error);
            }
            let fact = fact.ok_or_else(|| from.damaged("a fact"))?;
            let fact_now = fact.translated(|unit| from.unit(unit).ok());
            run.push(fact_now.ok_or_else(|| from.damaged("a unit"))?);
            count += 1;
            // The room that a run reserves each time is much more than the facts of a small range need.
            if count % FACTS_PER_BOUND == 0 {
                run.bound(limit, from.space);
            }
            before = Some(fact);
        }
        Ok(run)
    }
}

/// The number of facts of a run that may be in memory while other facts are read.
pub fn limit_of<F>(space: &TempStore) -> usize {
    (space.memory_bytes() / SHARE / size_of::<F>()).max(1)
}

#[cfg(test)]
mod tests;
