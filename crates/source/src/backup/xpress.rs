//! XPRESS with Huffman coding ([MS-XCA] 2.1 and 2.2). Each record of a compressed backup contains one block in this
//! format.
//!
//! A block starts with the code lengths of 512 symbols, four bits each. A symbol below 256 is a byte. Any other symbol
//! is a match: four bits give its length, and four bits give the number of distance bits that follow. Codes are read
//! from 16-bit words, highest bit first. Long lengths are stored between these words, after the last word that the
//! decoder has loaded.
//!
//! [`run`] decodes nearly all of a block. Per symbol, it needs one look-up, one refill and one copy of [`STRIDE`]
//! bytes. [`finish`] decodes the last bytes, where a refill or a copy would reach beyond the end. [`finish`] could also
//! decode the whole block, but more slowly.

mod bits;
mod codes;

use bits::Bits;
use codes::{COMMON, COMMON_LENGTH, Entry, LITERAL, LONG, Order, TABLE_BYTES, Table};

/// The most bytes that may remain in the block when `out` is full. In a real block, only the end code and the unused
/// bits of its last words remain, at most 5 bytes. If more bytes remain, the block contains more than `out` can hold.
const MOST_LEFT: usize = 8;
/// Number of bytes that one copy moves.
const STRIDE: usize = COMMON_LENGTH;
/// Number of bytes that [`run`] needs in `out` after the current position: space for a few bytes and one copy.
const ROOM: usize = 64;

/// The compressed bytes are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

/// Decompresses one block into `out`, whose length must be the size of the content. The size is at most 64 KiB, the
/// greatest distance of a match.
pub(crate) fn decompress(block: &[u8], out: &mut [u8]) -> Result<(), Malformed> {
    let (lengths, codes) = block.split_first_chunk::<TABLE_BYTES>().ok_or(Malformed)?;
    let order = Order::of(lengths)?;
    if order.has_runs() { decode::<true>(order, codes, out) } else { decode::<false>(order, codes, out) }
}

/// Like [`decompress`], but strictly one symbol after another; used to verify [`decompress`].
pub(super) fn decompress_by_symbols(block: &[u8], out: &mut [u8]) -> Result<(), Malformed> {
    let (lengths, codes) = block.split_first_chunk::<TABLE_BYTES>().ok_or(Malformed)?;
    let mut table = Table::<false>::EMPTY;
    table.fill(Order::of(lengths)?);
    finish(&table, &mut Bits::new(codes), out, 0)
}

/// Decodes a block. `RUNS` says whether the block has many single bytes in succession (runs). Blocks with runs are
/// decoded with other tables and loops than other blocks.
fn decode<const RUNS: bool>(order: Order, codes: &[u8], out: &mut [u8]) -> Result<(), Malformed> {
    let mut table = Table::<RUNS>::EMPTY;
    table.fill(order);
    let mut bits = Bits::new(codes);
    let at = run(&table, &mut bits, out)?;
    finish(&table, &mut bits, out, at)
}

/// Decodes while enough bytes are left in the input and in `out`. Returns how many bytes of `out` are written.
///
/// Every symbol is first treated as a match, whose bytes are copied. If the symbol is a byte, this byte then replaces
/// the first copied byte. In this way the code needs no branch on the kind of the next symbol, which the processor
/// could not predict. With `RUNS`, runs of bytes are decoded first, in a loop.
#[expect(clippy::indexing_slicing, reason = "ROOM bytes are left wherever two are written")]
fn run<const RUNS: bool>(table: &Table<RUNS>, state: &mut Bits<'_>, out: &mut [u8]) -> Result<usize, Malformed> {
    // The state is copied so that the compiler keeps it in registers.
    let mut bits = *state;
    // The first symbol must be a byte, because a match has no earlier bytes to copy.
    let mut at = 0;
    if !bits.refill_whole() || out.len() < ROOM {
        return Ok(at);
    }
    let mut entry = table.entry(bits.window).ok_or(Malformed)?;
    if entry & LITERAL == 0 {
        return Err(Malformed);
    }
    let [first, second, ..] = Entry::<RUNS>::literal(entry).to_le_bytes();
    (out[0], out[1]) = (first, second);
    at += Entry::<RUNS>::length(entry);
    bits.take(Entry::<RUNS>::bits(entry));
    entry = table.look_up(bits.window);
    while at + ROOM <= out.len() && bits.refill_whole() {
        // At least 48 bits are available.
        if RUNS && entry & LITERAL != 0 {
            for _ in 0..2 {
                let [first, second, ..] = Entry::<RUNS>::literal(entry).to_le_bytes();
                (out[at], out[at + 1]) = (first, second);
                at += Entry::<RUNS>::length(entry);
                bits.take(Entry::<RUNS>::bits(entry));
                entry = table.look_up(bits.window);
                if entry & LITERAL == 0 {
                    break;
                }
            }
            continue;
        }
        if entry & COMMON == 0 {
            (bits, at, entry) = uncommon(table, bits, out, at, entry)?;
            continue;
        }
        let (length, distance) = (Entry::<RUNS>::length(entry), Entry::<RUNS>::distance(entry, bits.window));
        bits.take(Entry::<RUNS>::bits(entry));
        // At least 18 bits are left, which is enough to look up the next symbol before the refill.
        let next = table.look_up(bits.window);
        // If the symbol is a byte, the copied bytes are not used. The copy then reads from a place that was not written
        // recently, because reading a place just written would stall the processor.
        let mask = Entry::<RUNS>::mask(entry);
        let from = at.wrapping_sub(distance) & mask as usize;
        if from >= at {
            return Err(Malformed);
        }
        if length <= distance {
            // Bytes written beyond the end of the match will be overwritten by the next symbols.
            let [low, high] = two(out, from);
            put_two(out, at, [low & mask | Entry::<RUNS>::literal(entry), high]);
        } else {
            overlapping(out, at, distance, length);
        }
        at += length;
        entry = next;
    }
    *state = bits;
    Ok(at)
}

/// Decodes a symbol with a long code, or a match with a long length. Returns the new position and the next entry.
#[expect(clippy::indexing_slicing, reason = "ROOM bytes are left")]
#[inline(always)]
fn uncommon<'b, const RUNS: bool>(
    table: &Table<RUNS>,
    mut bits: Bits<'b>,
    out: &mut [u8],
    at: usize,
    mut entry: u32,
) -> Result<(Bits<'b>, usize, u32), Malformed> {
    if entry == 0 {
        entry = table.search(bits.window).ok_or(Malformed)?;
    }
    let mut length = Entry::<RUNS>::length(entry);
    let mut distance = Entry::<RUNS>::distance(entry, bits.window);
    if length < LONG {
        bits.take(Entry::<RUNS>::bits(entry));
    } else {
        bits.take(Entry::<RUNS>::bits(entry) - Entry::<RUNS>::distance_bits(entry));
        length = bits.long_length()?;
        bits.refill_at_once();
        distance = bits.distance(Entry::<RUNS>::distance_bits(entry));
    }
    let next = table.look_up(bits.window);
    if entry & LITERAL != 0 {
        out[at] = Entry::<RUNS>::literal(entry) as u8;
        return Ok((bits, at + 1, next));
    }
    if distance > at || length > out.len() - at {
        return Err(Malformed);
    }
    copy(out, at, distance, length);
    Ok((bits, at + length, next))
}

/// Copies a short match whose source overlaps its destination.
#[cold]
#[inline(never)]
fn overlapping(out: &mut [u8], at: usize, distance: usize, length: usize) {
    copy(out, at, distance, length);
}

/// The sixteen bytes at offset `at`.
#[inline(always)]
fn two(bytes: &[u8], at: usize) -> [u64; 2] {
    let stride = bytes.get(at..).and_then(|rest| rest.first_chunk::<STRIDE>());
    let [low, high] = stride.and_then(|stride| stride.as_chunks::<8>().0.first_chunk().copied()).unwrap_or_default();
    [u64::from_le_bytes(low), u64::from_le_bytes(high)]
}

#[inline(always)]
fn put_two(bytes: &mut [u8], at: usize, [low, high]: [u64; 2]) {
    let mut stride = [0; STRIDE];
    stride[..8].copy_from_slice(&low.to_le_bytes());
    stride[8..].copy_from_slice(&high.to_le_bytes());
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = stride;
    }
}

/// Decodes from position `at` of `out` to its end, and checks that the block ends there too.
#[expect(clippy::indexing_slicing, reason = "at is less than the length")]
fn finish<const RUNS: bool>(
    table: &Table<RUNS>,
    bits: &mut Bits<'_>,
    out: &mut [u8],
    mut at: usize,
) -> Result<(), Malformed> {
    while at < out.len() {
        bits.refill();
        let mut entry = table.entry(bits.window).ok_or(Malformed)?;
        if entry & LITERAL != 0 {
            if Entry::<RUNS>::length(entry) > out.len() - at {
                // The entry may combine the codes of two bytes. If `out` has space for only one more byte, the bits
                // after the first code are not a code, so only the first code is decoded.
                entry = table.single(bits.window).ok_or(Malformed)?;
            }
            bits.take(Entry::<RUNS>::bits(entry));
            let bytes = Entry::<RUNS>::literal(entry).to_le_bytes();
            for (place, byte) in out[at..].iter_mut().zip(bytes).take(Entry::<RUNS>::length(entry)) {
                *place = byte;
                at += 1;
            }
            continue;
        }
        let mut length = Entry::<RUNS>::length(entry);
        bits.take(Entry::<RUNS>::bits(entry) - Entry::<RUNS>::distance_bits(entry));
        if length == LONG {
            length = bits.long_length()?;
            bits.refill();
        }
        let distance = bits.distance(Entry::<RUNS>::distance_bits(entry));
        if bits.is_exhausted() || distance > at || length > out.len() - at {
            return Err(Malformed);
        }
        copy(out, at, distance, length);
        at += length;
    }
    if bits.is_exhausted() || bits.left() > MOST_LEFT { Err(Malformed) } else { Ok(()) }
}

/// Copies `length` bytes from `distance` bytes before `at`. Source and destination may overlap. The caller has checked
/// `length` and `distance`.
#[inline(always)]
fn copy(out: &mut [u8], at: usize, distance: usize, length: usize) {
    let (mut from, mut to, end) = (at - distance, at, at + length);
    if end + 2 * STRIDE <= out.len() {
        // Copies whole strides. Bytes written beyond the end will be overwritten by the next symbols. If the distance
        // is shorter than a stride, the copied pattern is first doubled until it is at least as long as a stride.
        let mut period = distance;
        while period < STRIDE && to + period < end {
            put_two(out, to, two(out, from));
            to += period;
            period *= 2;
        }
        while to < end {
            put_two(out, to, two(out, from));
            from += STRIDE;
            to += STRIDE;
        }
    } else {
        // Copies all bytes that are already written; their number doubles each time.
        while to < end {
            let part = (to - from).min(end - to);
            out.copy_within(from..from + part, to);
            to += part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the examples published in [MS-XCA] 3.1.
    #[test]
    fn published_vectors_decompress() {
        let mut compressed = vec![0u8; 256];
        // The compressed form of "abcdefghijklmnopqrstuvwxyz". Only these 26 letters and symbol 256 have codes.
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

        // "abc" repeated a hundred times is coded as three letters and one long match.
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
    fn no_input_panics_and_both_ways_agree() {
        let mut state = 7u64;
        let (mut out, mut other) = (vec![0; 65536], vec![0; 65536]);
        for round in 0..3000 {
            let mut block = vec![0u8; round % 1200];
            for byte in &mut block {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8 & if round % 3 == 0 { 0xFF } else { 0x9A };
            }
            let size = if round % 5 == 0 { 1000 } else { out.len() };
            let fast = decompress(&block, &mut out[..size]);
            assert_eq!(fast, decompress_by_symbols(&block, &mut other[..size]), "round {round}");
            assert!(fast.is_err() || out[..size] == other[..size], "round {round}");
        }
        assert_eq!(decompress(&[], &mut out), Err(Malformed));
        assert_eq!(decompress(&[0; 300], &mut out), Err(Malformed), "no codes at all");
    }
}
