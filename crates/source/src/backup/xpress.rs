//! XPRESS with Huffman coding ([MS-XCA] 2.1 and 2.2): one block, the content of each record of a compressed backup.
//!
//! A block starts with the code lengths of 512 symbols, four bits each. Symbols below 256 are bytes; the others are
//! matches: four bits of length, and four bits with the number of distance bits that follow. Bits come in 16-bit words,
//! highest first; long lengths are between these words, at the place up to which words were taken.
//!
//! Nearly all of a block is decoded by [`run`]: one look-up per symbol, one refill, a copy of a whole stride. Its last
//! bytes, where a refill or a stride would reach beyond the end, are left to [`finish`].

mod bits;
mod codes;

use bits::Bits;
use codes::{Counts, Entry, LITERAL, LONG, TABLE_BYTES, Table};

/// After the last code come the end code of the block and the rest of its words: at most 5 bytes in real backups. More
/// means that the block holds more than it should.
const MOST_LEFT: usize = 8;
/// Bytes that a copy moves at once.
const STRIDE: usize = 16;
/// Room that [`run`] needs after what it writes: a few bytes and a stride.
const ROOM: usize = 64;

/// The compressed bytes are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

/// Decompresses one block into `out`, which has the size of the result (at most 64 KiB, the reach of a distance).
pub(crate) fn decompress(block: &[u8], out: &mut [u8]) -> Result<(), Malformed> {
    let (lengths, codes) = block.split_first_chunk::<TABLE_BYTES>().ok_or(Malformed)?;
    let counts = Counts::of(lengths);
    let bits = Bits { bytes: codes, at: 0, window: 0, count: 0 };
    if counts.has_runs() {
        decode::<true>(lengths, &counts, bits, out)
    } else {
        decode::<false>(lengths, &counts, bits, out)
    }
}

/// `RUNS`: whether bytes come in runs, which use other tables and loops.
fn decode<const RUNS: bool>(
    lengths: &[u8; TABLE_BYTES],
    counts: &Counts,
    mut bits: Bits<'_>,
    out: &mut [u8],
) -> Result<(), Malformed> {
    let mut table = Table::<RUNS>::EMPTY;
    table.fill(lengths, counts)?;
    let at = run(&table, &mut bits, out)?;
    finish(&table, &mut bits, out, at)
}

/// Decodes while both sides have room; returns how much of `out` is written.
///
/// A byte is treated as a match whose first byte is replaced, so that no branch depends on the kind of the next symbol,
/// which is unpredictable. If bytes come in runs, they are handled first.
#[expect(clippy::indexing_slicing, reason = "ROOM bytes are left wherever two are written")]
fn run<const RUNS: bool>(table: &Table<RUNS>, state: &mut Bits<'_>, out: &mut [u8]) -> Result<usize, Malformed> {
    // By value, so that it stays in registers.
    let mut bits = *state;
    // Nothing precedes the first symbol.
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
        // At least 48 bits.
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
        if entry == 0 {
            entry = table.entry(bits.window).ok_or(Malformed)?;
        }
        let mut length = Entry::<RUNS>::length(entry);
        let mut distance = Entry::<RUNS>::distance(entry, bits.window);
        if length < LONG {
            bits.take(Entry::<RUNS>::bits(entry));
        } else {
            bits.take(Entry::<RUNS>::bits(entry) - Entry::<RUNS>::distance_bits(entry));
            length = bits.long_length()?;
            if !bits.refill_whole() {
                bits.refill();
            }
            distance = bits.distance(Entry::<RUNS>::distance_bits(entry));
        }
        // At least 18 bits are left: enough to look ahead before the refill.
        let next = table.look_up(bits.window);
        // A byte copies from a place that was not just written, which a load would have to wait for.
        let mask = Entry::<RUNS>::mask(entry);
        let from = at.wrapping_sub(distance) & mask as usize;
        if from >= at {
            return Err(Malformed);
        }
        if length <= STRIDE && length <= distance {
            // Bytes written too far are overwritten later.
            let [low, high] = two(out, from);
            put_two(out, at, [low & mask | Entry::<RUNS>::literal(entry), high]);
        } else {
            if length > out.len() - at {
                return Err(Malformed);
            }
            copy(out, at, distance, length);
        }
        at += length;
        entry = next;
    }
    *state = bits;
    Ok(at)
}

/// The sixteen bytes at `at`.
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

/// Decodes from `at` of `out` to the end, and tests whether the block ends there too.
#[expect(clippy::indexing_slicing, reason = "at is less than the length")]
fn finish<const RUNS: bool>(
    table: &Table<RUNS>,
    bits: &mut Bits<'_>,
    out: &mut [u8],
    mut at: usize,
) -> Result<(), Malformed> {
    while at < out.len() {
        bits.refill();
        let entry = table.entry(bits.window).ok_or(Malformed)?;
        let mut length = Entry::<RUNS>::length(entry);
        if entry & LITERAL != 0 {
            bits.take(Entry::<RUNS>::bits(entry));
            // After the last byte there may be bits that look like another one.
            for (place, byte) in out[at..].iter_mut().zip(Entry::<RUNS>::literal(entry).to_le_bytes()).take(length) {
                *place = byte;
                at += 1;
            }
            continue;
        }
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

/// Copies `length` bytes from `distance` before `at`; source and destination may overlap. The caller checked both.
#[expect(clippy::indexing_slicing, reason = "the caller checked both")]
#[inline(always)]
fn copy(out: &mut [u8], at: usize, distance: usize, length: usize) {
    let from = at - distance;
    if distance >= STRIDE && at + length + STRIDE <= out.len() {
        // Whole strides: bytes written too far are overwritten later.
        for done in (0..length).step_by(STRIDE) {
            out.copy_within(from + done..from + done + STRIDE, at + done);
        }
    } else if distance == 1 {
        let byte = out[from];
        out[at..at + length].fill(byte);
    } else {
        // As much as is available, which doubles each time.
        let mut done = 0;
        while done < length {
            let part = (distance + done).min(length - done);
            out.copy_within(from..from + part, at + done);
            done += part;
        }
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
