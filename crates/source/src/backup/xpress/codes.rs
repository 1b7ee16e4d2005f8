//! The Huffman codes of a block, sorted by code length and then by symbol.

use super::Malformed;

/// Number of bytes for the code lengths, which precede the codes.
pub(super) const TABLE_BYTES: usize = 256;
const SYMBOLS: usize = 512;
/// Length of the longest code in bits.
const MAX_BITS: u32 = 15;
/// Number of possible code lengths, including 0 for symbols without a code.
const LENGTHS: usize = MAX_BITS as usize + 1;
/// The longest code in bits that one look-up can decode. Longer codes are decoded by a search.
const FAST_BITS: u32 = 11;
/// Length of the shortest match in bytes.
pub(super) const MIN_MATCH: usize = 3;

/// The meaning of a code in 32 bits; 0 for codes that are too long for one look-up.
///
/// From the lowest bit, the fields are: 6 bits for the number of bits of the code and the distance together; 2 bits for
/// the number of bytes (with `RUNS`); 6 bits for the number of bits of the distance; 1 bit [`LITERAL`]; 1 bit
/// [`COMMON`]. Without `RUNS`, the upper half has 8 bits for the length of the match (1 for a byte) and 8 bits for the
/// byte. With `RUNS`, the upper half holds the length of the match, or one or two bytes.
pub(super) struct Entry<const RUNS: bool>;

/// Flag: the symbol is a byte.
pub(super) const LITERAL: u32 = 1 << 14;
/// Flag: the symbol is a byte, or a match that one copy of a stride can produce.
pub(super) const COMMON: u32 = 1 << 15;
/// Length in bytes of the longest match with [`COMMON`].
pub(super) const COMMON_LENGTH: usize = 16;
/// The length that marks a long match: the actual length is stored after it.
pub(super) const LONG: usize = 15 + MIN_MATCH;

impl<const RUNS: bool> Entry<RUNS> {
    pub(super) fn of(symbol: u16, code_bits: u32) -> u32 {
        let symbol = u32::from(symbol);
        if symbol < 256 {
            let byte = if RUNS { symbol << 16 | 1 << 6 } else { symbol << 24 | 1 << 16 };
            return byte | COMMON | LITERAL | code_bits;
        }
        let (distance_bits, length) = (symbol >> 4 & 15, (symbol & 15) + MIN_MATCH as u32);
        let common = if length <= COMMON_LENGTH as u32 { COMMON } else { 0 };
        length << 16 | common | distance_bits << 8 | (code_bits + distance_bits)
    }

    /// An entry for two successive bytes; `None` if one symbol is a match, or if the two codes do not fit into one
    /// look-up.
    fn pair(first: u32, second: u32) -> Option<u32> {
        let bits = Self::bits(first) + Self::bits(second);
        let fits = first & second & LITERAL != 0 && bits <= FAST_BITS;
        fits.then_some((second >> 16) << 24 | first & 0xFF << 16 | COMMON | LITERAL | 2 << 6 | bits)
    }

    /// Number of bits of the code and the distance together.
    #[inline(always)]
    pub(super) fn bits(entry: u32) -> u32 {
        entry & 63
    }

    #[inline(always)]
    pub(super) fn distance_bits(entry: u32) -> u32 {
        entry >> 8 & 15
    }

    /// The distance of a match, whose binary form is a 1 followed by the bits after the code; 1 for a byte.
    #[inline(always)]
    pub(super) fn distance(entry: u32, window: u64) -> usize {
        // A shift uses only the lowest six bits of its count, so the other fields of the entry do no harm.
        let high = 1u64.wrapping_shl(entry >> 8 & 63);
        (high | window.wrapping_shr(entry.wrapping_neg()) & (high - 1)) as usize
    }

    /// Length of the match in bytes, or the number of bytes in the entry.
    #[inline(always)]
    pub(super) fn length(entry: u32) -> usize {
        if RUNS {
            (entry >> 16 & Self::mask(entry) as u32 | entry >> 6 & 3) as usize
        } else {
            (entry >> 16 & 0xFF) as usize
        }
    }

    /// The byte or bytes of the entry; 0 for a match.
    #[inline(always)]
    pub(super) fn literal(entry: u32) -> u64 {
        if RUNS { u64::from(entry >> 16) & !Self::mask(entry) } else { u64::from(entry >> 24) }
    }

    /// Returns a mask for the copied bytes: all ones for a match, zero for a byte. With a mask of zero, the byte of the
    /// entry takes the place of the copied bytes.
    #[inline(always)]
    pub(super) fn mask(entry: u32) -> u64 {
        u64::from(entry >> 14 & 1).wrapping_sub(1)
    }
}

/// The symbols of a block in the order of their codes.
pub(super) struct Order {
    /// Symbols sorted by the length of their codes and then by number; symbols without a code come first.
    symbols: [u16; SYMBOLS],
    /// For each code length, the number of symbols that have a shorter code or no code.
    firsts: [u16; LENGTHS + 1],
    /// For each code length, the first value after the codes of this length, left-aligned to [`MAX_BITS`] bits.
    ends: [u32; LENGTHS],
    /// The part of the code space that the codes of bytes occupy, in units of one code of [`MAX_BITS`] bits.
    bytes_share: u32,
}

impl Order {
    const NONE: Self = Self { symbols: [0; SYMBOLS], firsts: [0; LENGTHS + 1], ends: [0; LENGTHS], bytes_share: 0 };

    #[expect(clippy::indexing_slicing, reason = "a length has four bits; places count the symbols")]
    pub(super) fn of(lengths: &[u8; TABLE_BYTES]) -> Result<Self, Malformed> {
        let of_bytes = counts(&lengths[..TABLE_BYTES / 2]);
        let of_matches = counts(&lengths[TABLE_BYTES / 2..]);
        let share = |counts: &[u16; LENGTHS]| -> u32 {
            (1..).zip(&counts[1..]).map(|(length, &count)| u32::from(count) << (MAX_BITS - length)).sum()
        };
        let mut this = Self { bytes_share: share(&of_bytes), ..Self::NONE };
        let mut end = 0;
        for length in 0..LENGTHS {
            let count = of_bytes[length] + of_matches[length];
            if length > 0 {
                end += u32::from(count) << (MAX_BITS as usize - length);
            }
            this.firsts[length + 1] = this.firsts[length] + count;
            this.ends[length] = end;
        }
        if end > 1 << MAX_BITS {
            return Err(Malformed);
        }
        let mut next = this.firsts;
        for (symbol, length) in (0..).zip(lengths.iter().flat_map(|byte| [byte & 15, byte >> 4])) {
            let place = &mut next[usize::from(length)];
            this.symbols[usize::from(*place) % SYMBOLS] = symbol;
            *place += 1;
        }
        Ok(this)
    }

    /// Whether most symbols are probably bytes. This is assumed if the codes of bytes occupy a large part of the code
    /// space.
    pub(super) fn has_runs(&self) -> bool {
        self.bytes_share > 5 << (MAX_BITS - 3)
    }

    /// The symbols whose codes have this length.
    fn with_length(&self, length: u32) -> &[u16] {
        let place = |length: usize| self.firsts.get(length).map_or(SYMBOLS, |&first| first.into());
        self.symbols.get(place(length as usize)..place(length as usize + 1)).unwrap_or_default()
    }
}

/// For each code length, the number of symbols with codes of that length.
#[expect(clippy::indexing_slicing, reason = "a length has four bits")]
fn counts(lengths: &[u8]) -> [u16; LENGTHS] {
    // Two arrays are used so that two equal lengths in one byte do not update the same counter in succession.
    let (mut even, mut odd) = ([0; LENGTHS], [0; LENGTHS]);
    for byte in lengths {
        even[usize::from(byte & 15)] += 1;
        odd[usize::from(byte >> 4)] += 1;
    }
    for (even, odd) in even.iter_mut().zip(odd) {
        *even += odd;
    }
    even
}

/// A decoding table for canonical Huffman codes, which are sorted by length and symbol.
pub(super) struct Table<const RUNS: bool> {
    /// The entries, indexed by the next [`FAST_BITS`] bits.
    fast: [u32; 1 << FAST_BITS],
    order: Order,
}

impl<const RUNS: bool> Table<RUNS> {
    pub(super) const EMPTY: Self = Self { fast: [0; 1 << FAST_BITS], order: Order::NONE };

    /// Fills an empty table. The table is filled in place, because it is too large to move.
    #[expect(clippy::indexing_slicing, reason = "masked")]
    pub(super) fn fill(&mut self, order: Order) {
        self.order = order;
        let mut rest = self.fast.as_mut_slice();
        for length in 1..=FAST_BITS {
            let symbols = self.order.with_length(length);
            let span = 1 << (FAST_BITS - length);
            let Some((these, others)) = rest.split_at_mut_checked(symbols.len() * span) else { break };
            for (entries, &symbol) in these.chunks_exact_mut(span).zip(symbols) {
                entries.fill(Entry::<RUNS>::of(symbol, length));
            }
            rest = others;
        }
        if RUNS {
            let single = self.fast;
            for (index, entry) in self.fast.iter_mut().enumerate() {
                let next = (index << Entry::<RUNS>::bits(*entry)) & (single.len() - 1);
                *entry = Entry::<RUNS>::pair(*entry, single[next]).unwrap_or(*entry);
            }
        }
    }

    /// The entry of the code at the start of `window`; 0 if the code is longer than [`FAST_BITS`].
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

    #[cold]
    #[inline(never)]
    pub(super) fn search(&self, window: u64) -> Option<u32> {
        self.search_from(FAST_BITS + 1, window)
    }

    /// The entry for only the first code in `window`, whereas [`Self::look_up`] may return an entry for two bytes.
    #[cold]
    pub(super) fn single(&self, window: u64) -> Option<u32> {
        self.search_from(1, window)
    }

    /// The entry of the code at the start of `window`; the code must have at least `shortest` bits.
    #[expect(clippy::indexing_slicing, reason = "a length is at least 1 and at most MAX_BITS")]
    fn search_from(&self, shortest: u32, window: u64) -> Option<u32> {
        let code = (window >> (64 - MAX_BITS)) as u32;
        for length in shortest..=MAX_BITS {
            if code < self.order.ends[length as usize] {
                let start = self.order.ends[length as usize - 1];
                let index = code.checked_sub(start)? >> (MAX_BITS - length);
                return Some(Entry::<RUNS>::of(*self.order.with_length(length).get(index as usize)?, length));
            }
        }
        None
    }
}
