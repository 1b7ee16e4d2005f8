//! The bits of a block, and the bytes between them.

use super::Malformed;
use super::codes::{LONG, MIN_MATCH};

/// The bits of the codes, highest first.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Offset after the last counted word.
    at: usize,
    /// Bits taken from `bytes` and not used yet, highest first; bits of the next word may follow the counted ones.
    pub(super) window: u64,
    /// Number of counted bits.
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, window: 0, count: 0 }
    }

    /// Makes 48 bits available, if there are eight bytes.
    #[inline(always)]
    pub(super) fn refill_whole(&mut self) -> bool {
        let Some(eight) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) else { return false };
        // The first word is the highest, and its high byte comes first.
        let words = u64::from_be_bytes(*eight);
        let words = (words & 0x00FF_00FF_00FF_00FF) << 8 | words >> 8 & 0x00FF_00FF_00FF_00FF;
        self.window |= words >> self.count;
        // Advances by three words, less the words already there, so that 48 to 63 bits are counted.
        self.at += 6 - (self.count >> 3 & 6) as usize;
        self.count |= 48;
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

    /// The same, usually from eight bytes at once.
    #[inline(always)]
    pub(super) fn refill_at_once(&mut self) {
        if !self.refill_whole() {
            // Not in place: bits whose address is taken would not stay in registers.
            let Self { at, window, count, .. } = self.refilled();
            (self.at, self.window, self.count) = (at, window, count);
        }
    }

    #[cold]
    #[inline(never)]
    fn refilled(mut self) -> Self {
        self.refill();
        self
    }

    #[inline(always)]
    pub(super) fn take(&mut self, bits: u32) {
        self.window <<= bits;
        self.count -= bits;
    }

    /// The distance of a match: a one bit, followed by this many bits.
    #[inline(always)]
    pub(super) fn distance(&mut self, bits: u32) -> usize {
        let low = (self.window >> 1 >> (63 - bits)) as usize;
        self.take(bits);
        (1 << bits) + low
    }

    /// A length of at least 15 above the minimum: a byte, or two or four bytes if one does not suffice. They lie where
    /// a decoder that holds 16 to 31 bits in advance would load its next word.
    #[inline(always)]
    pub(super) fn long_length(&mut self) -> Result<usize, Malformed> {
        let ahead = (self.count >> 4).saturating_sub(1);
        self.count -= 16 * ahead;
        self.at -= 2 * ahead as usize;
        self.window &= !(u64::MAX >> self.count);
        let first = *self.bytes.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        if first < u8::MAX {
            return Ok(usize::from(first) + LONG);
        }
        let (length, taken) = longer_length(self.bytes.get(self.at..).unwrap_or_default()).ok_or(Malformed)?;
        self.at += taken;
        Ok(length)
    }

    /// Number of unused bytes.
    pub(super) fn left(&self) -> usize {
        (self.bytes.len() + self.count as usize / 8).saturating_sub(self.at)
    }

    /// Whether bits beyond the end were used; words loaded ahead do not count.
    pub(super) fn is_exhausted(&self) -> bool {
        self.at.saturating_sub(self.count as usize / 8) > self.bytes.len()
    }
}

/// A length that does not fit into a byte, and the number of its bytes. Not a method, so that the caller's bits need no
/// address.
#[cold]
#[inline(never)]
fn longer_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let byte = |at: usize| bytes.get(at).map(|&byte| usize::from(byte));
    let (mut length, mut taken) = (byte(0)? | byte(1)? << 8, 2);
    if length == 0 {
        (length, taken) = (byte(2)? | byte(3)? << 8 | byte(4)? << 16 | byte(5)? << 24, 6);
    }
    (length >= 15).then_some((length.saturating_add(MIN_MATCH), taken))
}
