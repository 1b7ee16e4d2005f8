//! The bits of a block, and the bytes between them.

use super::Malformed;
use super::codes::{LONG, MIN_MATCH};

/// The bits of the codes, highest first.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    pub(super) bytes: &'a [u8],
    /// After the last word that is counted.
    pub(super) at: usize,
    /// Bits taken from `bytes` and not used yet, highest first; bits of the next word may follow the counted ones.
    pub(super) window: u64,
    /// Number of counted bits.
    pub(super) count: u32,
}

impl Bits<'_> {
    /// Makes 48 bits available, if there are eight bytes.
    #[inline(always)]
    pub(super) fn refill_whole(&mut self) -> bool {
        let Some(eight) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) else { return false };
        // The first word comes first, its high byte first.
        let words = u64::from_be_bytes(*eight);
        let words = (words & 0x00FF_00FF_00FF_00FF) << 8 | words >> 8 & 0x00FF_00FF_00FF_00FF;
        self.window |= words >> self.count;
        let taken = (63 - self.count) >> 4;
        self.at += 2 * taken as usize;
        self.count += 16 * taken;
        true
    }

    /// Makes 48 bits available; beyond the end they are zeros.
    pub(super) fn refill(&mut self) {
        self.window &= !(u64::MAX >> self.count);
        while self.count < 48 {
            let byte = |at: usize| u64::from(self.bytes.get(at).copied().unwrap_or_default());
            self.window |= (byte(self.at) | byte(self.at + 1) << 8) << (48 - self.count);
            self.at += 2;
            self.count += 16;
        }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, bits: u32) {
        self.window <<= bits;
        self.count -= bits;
    }

    /// The distance of a match: a one, followed by this many bits.
    #[inline(always)]
    pub(super) fn distance(&mut self, bits: u32) -> usize {
        let low = (self.window >> 1 >> (63 - bits)) as usize;
        self.take(bits);
        (1 << bits) + low
    }

    /// A length of 15 and more beyond the least: a byte, or if that is not enough two, or four. They lie where a decoder
    /// that holds 16 to 31 bits in advance would take its next word.
    #[inline(always)]
    pub(super) fn long_length(&mut self) -> Result<usize, Malformed> {
        let ahead = (self.count >> 4).saturating_sub(1);
        self.count -= 16 * ahead;
        self.at -= 2 * ahead as usize;
        self.window &= !(u64::MAX >> self.count);
        let first = *self.bytes.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        if first < 255 { Ok(usize::from(first) + LONG) } else { self.longer_length() }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn longer_length(&mut self) -> Result<usize, Malformed> {
        let mut next = || {
            let byte = self.bytes.get(self.at).copied().ok_or(Malformed)?;
            self.at += 1;
            Ok(usize::from(byte))
        };
        let mut length = next()? | next()? << 8;
        if length == 0 {
            length = next()? | next()? << 8 | next()? << 16 | next()? << 24;
        }
        if length < 15 { Err(Malformed) } else { Ok(length.saturating_add(MIN_MATCH)) }
    }

    /// Bytes not used.
    pub(super) fn left(&self) -> usize {
        (self.bytes.len() + self.count as usize / 8).saturating_sub(self.at)
    }

    /// Whether bits beyond the end were used: words taken ahead do not count.
    pub(super) fn is_exhausted(&self) -> bool {
        self.at.saturating_sub(self.count as usize / 8) > self.bytes.len()
    }
}
