//! Reads the bits of a block, and the bytes stored between its 16-bit words.

use super::Malformed;
use super::codes::{LONG, MIN_MATCH};

/// A reader for the bits of the codes, highest bit first.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The offset in `bytes` of the next word, whose bits `count` does not include yet.
    at: usize,
    /// The bits that were loaded from `bytes` and not used yet, highest bit first. The first `count` bits are valid;
    /// bits of the next word may follow them.
    pub(super) window: u64,
    /// Number of valid bits in `window`.
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, window: 0, count: 0 }
    }

    /// Makes at least 48 bits available; returns false if fewer than eight bytes are left.
    #[inline(always)]
    pub(super) fn refill_whole(&mut self) -> bool {
        let Some(eight) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) else { return false };
        // The first word goes to the top, and in each word the second byte comes first.
        let words = u64::from_be_bytes(*eight);
        let words = (words & 0x00FF_00FF_00FF_00FF) << 8 | words >> 8 & 0x00FF_00FF_00FF_00FF;
        self.window |= words >> self.count;
        // Advances by three words, minus the words that were already loaded, so that `count` becomes 48 to 63.
        self.at += 6 - (self.count >> 3 & 6) as usize;
        self.count |= 48;
        true
    }

    /// Makes at least 48 bits available; bits beyond the end of the block are zeros.
    pub(super) fn refill(&mut self) {
        self.window &= !(u64::MAX >> self.count);
        while self.count < 48 {
            let byte = |at: usize| u64::from(self.bytes.get(at).copied().unwrap_or_default());
            self.window |= (byte(self.at) | byte(self.at + 1) << 8) << (48 - self.count);
            self.at += 2;
            self.count += 16;
        }
    }

    /// Like [`Self::refill`], but usually with one load of eight bytes.
    #[inline(always)]
    pub(super) fn refill_at_once(&mut self) {
        if !self.refill_whole() {
            // `refilled` takes a copy of `self`: with a reference to `self`, the compiler could not keep the bits in
            // registers.
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

    /// Reads the distance of a match, whose binary form is a 1 followed by the next `bits` bits.
    #[inline(always)]
    pub(super) fn distance(&mut self, bits: u32) -> usize {
        let low = (self.window >> 1 >> (63 - bits)) as usize;
        self.take(bits);
        (1 << bits) + low
    }

    /// Reads a long length (at least 15 above the minimum). It is stored in one byte, or, if one byte is too small, in
    /// two or four further bytes. These bytes are not in the sequence of code words. They are at the place of the next
    /// word that a decoder would load if it always held 16 to 31 bits in advance.
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

    /// Whether bits beyond the end of the block were used; bits that were only loaded in advance do not count.
    pub(super) fn is_exhausted(&self) -> bool {
        self.at.saturating_sub(self.count as usize / 8) > self.bytes.len()
    }
}

/// Returns a length that does not fit into one byte, and the number of bytes that store the length. `self` is not a
/// parameter, so that the caller's bits can stay in registers.
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
