//! XPRESS with Huffman coding ([MS-XCA] 2.1 and 2.2): one block, as each record of a compressed backup holds one.
//!
//! A block starts with the code lengths of 512 symbols, four bits each. Symbols below 256 are bytes; the others are matches:
//! four bits of length, four bits that say how many bits of distance follow. Bits come in 16-bit words, highest first; long
//! lengths stand between these words, at the place up to which words were taken.

/// The code lengths in front of the codes.
const TABLE_BYTES: usize = 256;
const SYMBOLS: usize = 512;
/// Longest code.
const MAX_BITS: u32 = 15;
/// Codes up to this length are decoded by one look-up, longer ones by search.
const FAST_BITS: u32 = 11;
/// Behind the last code comes the one that ends the block, and what is left of its words: 5 bytes at most in real backups.
/// More means that the block holds more than it should.
const MOST_LEFT: usize = 8;
/// Shortest match.
const MIN_MATCH: usize = 3;

/// The compressed bytes are not what they must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

/// Decompresses one block into `out`, which has the size of the result (64 KiB at most, the reach of a distance).
pub(crate) fn decompress(block: &[u8], out: &mut [u8]) -> Result<(), Malformed> {
    let (lengths, codes) = block.split_at_checked(TABLE_BYTES).ok_or(Malformed)?;
    let table = Table::new(lengths)?;
    let mut bits = Bits::new(codes);
    let mut at = 0;
    while at < out.len() {
        // 32 bits are enough for a code and a distance.
        bits.refill();
        let entry = table.entry(bits).ok_or(Malformed)?;
        bits.take(u32::from(entry & 15));
        let symbol = entry >> 4;
        if symbol < 256 {
            out[at] = symbol as u8;
            at += 1;
            continue;
        }
        let mut length = usize::from(symbol & 15);
        if length == 15 {
            (length, bits) = bits.long_length()?;
            bits.refill();
        }
        let distance = bits.distance(u32::from(symbol >> 4 & 15));
        length += MIN_MATCH;
        if bits.is_exhausted() || distance > at || length > out.len() - at {
            return Err(Malformed);
        }
        copy(out, at, distance, length);
        at += length;
    }
    if bits.is_exhausted() || bits.left() > MOST_LEFT { Err(Malformed) } else { Ok(()) }
}

/// Copies `length` bytes that lie `distance` before `at`; they may overlap what is written. The caller checked both.
fn copy(out: &mut [u8], at: usize, distance: usize, length: usize) {
    const STRIDE: usize = 16;
    let from = at - distance;
    if distance >= STRIDE && at + length + STRIDE <= out.len() {
        // Whole strides: what is written too far is written again later.
        let mut done = 0;
        while done < length {
            let (behind, ahead) = out.split_at_mut(at + done);
            if let (Some(source), Some(target)) =
                (behind.get(from + done..).and_then(|bytes| bytes.first_chunk::<STRIDE>()), ahead.first_chunk_mut())
            {
                *target = *source;
            }
            done += STRIDE;
        }
    } else if distance == 1 {
        let byte = out[from];
        out[at..at + length].fill(byte);
    } else if distance >= length {
        out.copy_within(from..from + length, at);
    } else {
        for to in at..at + length {
            out[to] = out[to - distance];
        }
    }
}

/// Canonical Huffman codes, ordered by length and symbol.
struct Table {
    /// By the next [`FAST_BITS`] bits: symbol << 4 | length; 0 where the code is longer.
    fast: [u16; 1 << FAST_BITS],
    /// Symbols in the order of their codes.
    sorted: [u16; SYMBOLS],
    /// By length: first code behind those of this length, left-aligned to [`MAX_BITS`] bits.
    ends: [u32; MAX_BITS as usize + 1],
    /// By length: index in `sorted` of the first symbol.
    firsts: [u16; MAX_BITS as usize + 1],
}

impl Table {
    fn new(lengths: &[u8]) -> Result<Self, Malformed> {
        let mut counts = [0u16; MAX_BITS as usize + 1];
        for &byte in lengths {
            counts[usize::from(byte & 15)] += 1;
            counts[usize::from(byte >> 4)] += 1;
        }
        counts[0] = 0;
        let mut table = Self {
            fast: [0; 1 << FAST_BITS],
            sorted: [0; SYMBOLS],
            ends: [0; MAX_BITS as usize + 1],
            firsts: [0; MAX_BITS as usize + 1],
        };
        let (mut index, mut end) = (0u16, 0u32);
        for length in 1..=MAX_BITS {
            let count = counts[length as usize];
            table.firsts[length as usize] = index;
            index += count;
            end += u32::from(count) << (MAX_BITS - length);
            table.ends[length as usize] = end;
        }
        if end > 1 << MAX_BITS {
            return Err(Malformed);
        }
        let mut next = table.firsts;
        for (pair, &byte) in lengths.iter().enumerate() {
            for (symbol, length) in [(2 * pair, byte & 15), (2 * pair + 1, byte >> 4)] {
                if length == 0 {
                    continue;
                }
                let place = &mut next[usize::from(length)];
                if let Some(slot) = table.sorted.get_mut(usize::from(*place)) {
                    *slot = symbol as u16;
                }
                *place += 1;
            }
        }
        let mut code = 0usize;
        for length in 1..=FAST_BITS {
            let span = 1usize << (FAST_BITS - length);
            let first = usize::from(table.firsts[length as usize]);
            for &symbol in table.sorted[first..].iter().take(usize::from(counts[length as usize])) {
                table.fast[code..code + span].fill(symbol << 4 | length as u16);
                code += span;
            }
        }
        Ok(table)
    }

    /// The next symbol << 4 and the length of its code.
    #[inline(always)]
    fn entry(&self, bits: Bits<'_>) -> Option<u16> {
        match self.fast[(bits.window >> (64 - FAST_BITS)) as usize] {
            0 => self.long_entry((bits.window >> (64 - MAX_BITS)) as u32),
            entry => Some(entry),
        }
    }

    #[cold]
    #[inline(never)]
    fn long_entry(&self, code: u32) -> Option<u16> {
        for length in FAST_BITS + 1..=MAX_BITS {
            if code < self.ends[length as usize] {
                let start = self.ends[length as usize - 1];
                let index = u32::from(self.firsts[length as usize]) + ((code - start) >> (MAX_BITS - length));
                return Some(self.sorted.get(index as usize)? << 4 | length as u16);
            }
        }
        None
    }
}

/// The bits of the codes, highest first. Handed over by value where it matters, so that it stays in registers.
#[derive(Clone, Copy)]
struct Bits<'a> {
    bytes: &'a [u8],
    /// Next byte to take.
    at: usize,
    /// Bits taken from `bytes` and not yet used, highest first.
    window: u64,
    /// How many.
    count: u32,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, window: 0, count: 0 }
    }

    /// Makes sure that 32 bits are there; behind the end they are zeros.
    #[inline(always)]
    fn refill(&mut self) {
        if self.count >= 32 {
            return;
        }
        let word = match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(four) => u32::from_le_bytes(*four).rotate_left(16),
            None => {
                let byte = |at: usize| u32::from(self.bytes.get(at).copied().unwrap_or_default());
                (byte(self.at) | byte(self.at + 1) << 8) << 16 | byte(self.at + 2) | byte(self.at + 3) << 8
            }
        };
        self.window |= u64::from(word) << (32 - self.count);
        self.count += 32;
        self.at += 4;
    }

    #[inline(always)]
    fn take(&mut self, bits: u32) {
        self.window <<= bits;
        self.count -= bits;
    }

    /// The distance of a match: a one, followed by so many bits.
    #[inline(always)]
    fn distance(&mut self, bits: u32) -> usize {
        let low = (self.window >> 32 >> (32 - bits)) as usize;
        self.take(bits);
        (1 << bits) + low
    }

    /// A length of 15 or more: a byte, or if that is not enough two, or four. They lie where a decoder that holds 16 to 31
    /// bits in advance would take its next word.
    #[cold]
    #[inline(never)]
    fn long_length(mut self) -> Result<(usize, Self), Malformed> {
        while self.count >= 32 {
            self.count -= 16;
            self.at -= 2;
        }
        self.window &= !(u64::MAX >> self.count);
        let mut next = || {
            let byte = self.bytes.get(self.at).copied().ok_or(Malformed)?;
            self.at += 1;
            Ok(usize::from(byte))
        };
        let first = next()?;
        if first < 255 {
            return Ok((first + 15, self));
        }
        let mut length = next()? | next()? << 8;
        if length == 0 {
            length = next()? | next()? << 8 | next()? << 16 | next()? << 24;
        }
        if length < 15 { Err(Malformed) } else { Ok((length, self)) }
    }

    /// Bytes that were not used.
    fn left(&self) -> usize {
        (self.bytes.len() + self.count as usize / 8).saturating_sub(self.at)
    }

    /// Whether bits behind the end were used: words ahead of use are no use.
    fn is_exhausted(&self) -> bool {
        self.at.saturating_sub(self.count as usize / 8) > self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [MS-XCA] 3.1: the published vectors.
    #[test]
    fn published_vectors_decompress() {
        let mut compressed = vec![0u8; 256];
        // "abcdefghijklmnopqrstuvwxyz": every letter and symbol 256 have codes.
        for (at, byte) in [
            (48, 0x50),
            (49, 0x55),
            (50, 0x55),
            (51, 0x55),
            (52, 0x55),
            (53, 0x55),
            (54, 0x55),
            (55, 0x55),
            (56, 0x55),
            (57, 0x55),
            (58, 0x55),
            (59, 0x45),
            (60, 0x44),
            (61, 0x04),
            (128, 0x04),
        ] {
            compressed[at] = byte;
        }
        compressed.extend([
            0xD8, 0x52, 0x3E, 0xD7, 0x94, 0x11, 0x5B, 0xE9, 0x19, 0x5F, 0xF9, 0xD6, 0x7C, 0xDF, 0x8D, 0x04, 0, 0, 0, 0,
        ]);
        let mut out = [0; 26];
        assert_eq!(decompress(&compressed, &mut out), Ok(()));
        assert_eq!(&out, b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!(decompress(&compressed, &mut out[..3]), Err(Malformed), "it holds more than that");

        // "abc" a hundred times: three letters and one long match.
        let mut compressed = vec![0u8; 256];
        for (at, byte) in [(48, 0x30), (49, 0x23), (128, 0x02), (143, 0x20)] {
            compressed[at] = byte;
        }
        compressed.extend([0xA8, 0xDC, 0x00, 0x00, 0xFF, 0x26, 0x01]);
        let mut out = [0; 300];
        assert_eq!(decompress(&compressed, &mut out), Ok(()));
        assert_eq!(&out[..], b"abc".repeat(100));
    }

    #[test]
    fn no_input_panics() {
        let mut state = 7u64;
        let mut out = vec![0; 65536];
        for round in 0..3000 {
            let mut block = vec![0u8; round % 1200];
            for byte in &mut block {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8 & if round % 3 == 0 { 0xFF } else { 0x9A };
            }
            let _ = decompress(&block, &mut out);
        }
        assert_eq!(decompress(&[], &mut out), Err(Malformed));
        assert_eq!(decompress(&[0; 300], &mut out), Err(Malformed), "no codes at all");
    }
}
