//! The codes of a block: Huffman codes by their lengths, shorter ones first, and by symbol within a length.

use super::Malformed;

/// The code lengths before the codes.
pub(super) const TABLE_BYTES: usize = 256;
const SYMBOLS: usize = 512;
/// Longest code.
const MAX_BITS: u32 = 15;
/// Codes up to this length are decoded by one look-up, longer ones by a search.
const FAST_BITS: u32 = 11;
/// Shortest match.
pub(super) const MIN_MATCH: usize = 3;

/// The meaning of a code, in 32 bits; 0 for codes that are longer than a look-up.
///
/// From the lowest bit on: 6 bits for the length of the code and the distance after it; 2 for the number of bytes, if
/// they come in runs; 6 for the length of the distance; 1 for bytes, 1 unused. The upper half holds 8 bits for the
/// length of the match, or 1, and 8 for the byte; if bytes come in runs, it holds the length of the match, or one or
/// two bytes.
pub(super) struct Entry<const RUNS: bool>;

/// A byte.
pub(super) const LITERAL: u32 = 1 << 14;
/// Match length beyond which a longer length follows.
pub(super) const LONG: usize = 15 + MIN_MATCH;

impl<const RUNS: bool> Entry<RUNS> {
    pub(super) fn of(symbol: u16, code_bits: u32) -> u32 {
        let symbol = u32::from(symbol);
        match (symbol < 256, RUNS) {
            (true, true) => symbol << 16 | LITERAL | 1 << 6 | code_bits,
            (true, false) => symbol << 24 | 1 << 16 | LITERAL | code_bits,
            (false, _) => {
                let distance_bits = symbol >> 4 & 15;
                ((symbol & 15) + MIN_MATCH as u32) << 16 | distance_bits << 8 | (code_bits + distance_bits)
            }
        }
    }

    /// Two bytes of a run, if both are bytes and their codes fit into one look-up.
    pub(super) fn pair(first: u32, second: u32) -> Option<u32> {
        let bits = Self::bits(first) + Self::bits(second);
        let fits = first & second & LITERAL != 0 && bits <= FAST_BITS;
        fits.then_some((second >> 16) << 24 | first & 0xFF << 16 | LITERAL | 2 << 6 | bits)
    }

    /// Bits of the code and of the distance.
    #[inline(always)]
    pub(super) fn bits(entry: u32) -> u32 {
        entry & 63
    }

    #[inline(always)]
    pub(super) fn distance_bits(entry: u32) -> u32 {
        entry >> 8 & 15
    }

    /// The distance of a match: a one, followed by the bits after the code; 1 for a byte.
    #[inline(always)]
    pub(super) fn distance(entry: u32, window: u64) -> usize {
        // Shifts use only the lowest six bits of their count.
        let high = 1u64.wrapping_shl(entry >> 8);
        (high | window.wrapping_shr(entry.wrapping_neg()) & (high - 1)) as usize
    }

    /// Length of the match, or number of bytes.
    #[inline(always)]
    pub(super) fn length(entry: u32) -> usize {
        if RUNS {
            (entry >> 16 & Self::mask(entry) as u32 | entry >> 6 & 3) as usize
        } else {
            (entry >> 16 & 0xFF) as usize
        }
    }

    /// The bytes; 0 for a match.
    #[inline(always)]
    pub(super) fn literal(entry: u32) -> u64 {
        if RUNS { u64::from(entry >> 16) & !Self::mask(entry) } else { u64::from(entry >> 24) }
    }

    /// Mask for what was there before: nothing for bytes.
    #[inline(always)]
    pub(super) fn mask(entry: u32) -> u64 {
        u64::from(entry >> 14 & 1).wrapping_sub(1)
    }
}

/// Number of symbols with codes of each length.
pub(super) struct Counts {
    bytes: [u32; MAX_BITS as usize + 1],
    matches: [u32; MAX_BITS as usize + 1],
}

impl Counts {
    #[expect(clippy::indexing_slicing, reason = "a length has four bits")]
    pub(super) fn of(lengths: &[u8; TABLE_BYTES]) -> Self {
        let count = |lengths: &[u8]| {
            let mut counts = [0; MAX_BITS as usize + 1];
            for &byte in lengths {
                counts[usize::from(byte & 15)] += 1;
                counts[usize::from(byte >> 4)] += 1;
            }
            counts
        };
        let (bytes, matches) = lengths.split_at(TABLE_BYTES / 2);
        Self { bytes: count(bytes), matches: count(matches) }
    }

    /// Whether most symbols are bytes: their share of the codes is their share of the symbols.
    pub(super) fn has_runs(&self) -> bool {
        let share: u32 = (1..).zip(&self.bytes[1..]).map(|(length, count)| count << (MAX_BITS - length)).sum();
        share > 5 << (MAX_BITS - 3)
    }
}

/// Canonical Huffman codes, ordered by length and symbol.
pub(super) struct Table<const RUNS: bool> {
    /// By the next [`FAST_BITS`] bits.
    fast: [u32; 1 << FAST_BITS],
    /// Symbols with longer codes, in code order.
    long: [u16; SYMBOLS],
    /// By length: the first code beyond those of this length, left-aligned to [`MAX_BITS`] bits.
    ends: [u32; MAX_BITS as usize + 1],
    /// By length: number of symbols in `long` with shorter codes.
    firsts: [u16; MAX_BITS as usize + 1],
}

impl<const RUNS: bool> Table<RUNS> {
    pub(super) const EMPTY: Self = Self {
        fast: [0; 1 << FAST_BITS],
        long: [0; SYMBOLS],
        ends: [0; MAX_BITS as usize + 1],
        firsts: [0; MAX_BITS as usize + 1],
    };

    #[expect(clippy::indexing_slicing, reason = "a length has four bits; what follows was masked")]
    pub(super) fn fill(&mut self, lengths: &[u8; TABLE_BYTES], counts: &Counts) -> Result<(), Malformed> {
        // Where the next code of each length starts, left-aligned; for long ones, its place in `long`.
        let mut next = [0u32; MAX_BITS as usize + 1];
        let (mut end, mut index) = (0, 0);
        for length in 1..=MAX_BITS {
            let count = counts.bytes[length as usize] + counts.matches[length as usize];
            next[length as usize] = end >> (MAX_BITS - FAST_BITS);
            if length > FAST_BITS {
                self.firsts[length as usize] = index as u16;
                next[length as usize] = index;
                index += count;
            }
            end += count << (MAX_BITS - length);
            self.ends[length as usize] = end;
        }
        if end > 1 << MAX_BITS {
            return Err(Malformed);
        }
        for (pair, &byte) in lengths.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            for (symbol, length) in
                [(2 * pair as u16, u32::from(byte & 15)), (2 * pair as u16 + 1, u32::from(byte >> 4))]
            {
                let place = &mut next[length as usize];
                let start = *place as usize;
                if length == 0 {
                    continue;
                }
                if length > FAST_BITS {
                    *place += 1;
                    if let Some(slot) = self.long.get_mut(start) {
                        *slot = symbol;
                    }
                    continue;
                }
                let span = 1 << (FAST_BITS - length);
                *place += span;
                if let Some(entries) = self.fast.get_mut(start..start + span as usize) {
                    entries.fill(Entry::<RUNS>::of(symbol, length));
                }
            }
        }
        if RUNS {
            let single = self.fast;
            for (index, entry) in self.fast.iter_mut().enumerate() {
                let next = (index << Entry::<RUNS>::bits(*entry)) & (single.len() - 1);
                *entry = Entry::<RUNS>::pair(*entry, single[next]).unwrap_or(*entry);
            }
        }
        Ok(())
    }

    /// The entry of the code at the start of `window`, unless it is a long one.
    #[expect(clippy::indexing_slicing, reason = "FAST_BITS bits of the window")]
    #[inline(always)]
    pub(super) fn look_up(&self, window: u64) -> u32 {
        self.fast[(window >> (64 - FAST_BITS)) as usize]
    }

    /// The entry of the code at the start of `window`.
    #[inline(always)]
    pub(super) fn entry(&self, window: u64) -> Option<u32> {
        match self.look_up(window) {
            0 => self.search(window),
            entry => Some(entry),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a length is greater than FAST_BITS and not than MAX_BITS")]
    #[cold]
    #[inline(never)]
    pub(super) fn search(&self, window: u64) -> Option<u32> {
        let code = (window >> (64 - MAX_BITS)) as u32;
        for length in FAST_BITS + 1..=MAX_BITS {
            if code < self.ends[length as usize] {
                let start = self.ends[length as usize - 1];
                let index = u32::from(self.firsts[length as usize]) + (code.checked_sub(start)? >> (MAX_BITS - length));
                return Some(Entry::<RUNS>::of(*self.long.get(index as usize)?, length));
            }
        }
        None
    }
}
