//! A compressor for XPRESS with Huffman coding ([MS-XCA] 2.1). It finds matches greedily, then assigns codes to the
//! symbols.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SYMBOLS: usize = 512;
/// The longest allowed code, in bits.
const MOST_BITS: u8 = 15;
/// The symbol that marks the end of the data.
const END: u16 = 256;
const LEAST_MATCH: usize = 3;
const HASH_BITS: u32 = 14;
/// The maximum number of earlier places that are compared when searching for a match.
const TRIES: usize = 8;

/// A symbol of the compressed data. If the symbol is a match, the token also contains its distance, and its length
/// minus the minimum length of a match.
#[derive(Clone, Copy)]
struct Token {
    symbol: u16,
    length: u32,
    distance: u32,
}

/// Compresses one block of at most 64 KiB.
pub fn compress(data: &[u8]) -> Vec<u8> {
    let mut tokens = tokens(data);
    tokens.push(Token { symbol: END, length: 0, distance: 0 });
    let mut counts = [0u32; SYMBOLS];
    for token in &tokens {
        counts[usize::from(token.symbol)] += 1;
    }
    let lengths = code_lengths(&counts);
    let codes = codes(&lengths);
    let table = lengths.as_chunks::<2>().0.iter().map(|&[low, high]| low | high << 4);
    let mut out = Writer::new(table.collect());
    for token in &tokens {
        let symbol = usize::from(token.symbol);
        out.bits(lengths[symbol].into(), codes[symbol].into());
        // In the format, symbol 256 can be a match of three bytes at distance one, or the end of the data. This
        // compressor writes it only as the end.
        if token.symbol <= END {
            continue;
        }
        if token.length >= 15 {
            match token.length - 15 {
                more @ 0..255 => out.bytes(&[more as u8]),
                _ => out.bytes(&[255, token.length as u8, (token.length >> 8) as u8]),
            }
        }
        let bits = token.distance.ilog2();
        out.bits(bits, token.distance - (1 << bits));
    }
    out.finish()
}

/// Splits the data into single bytes and matches. To find a match, compares the bytes with the last few places that
/// begin with the same three bytes, and uses the longest match.
fn tokens(data: &[u8]) -> Vec<Token> {
    let mut heads = vec![u32::MAX; 1 << HASH_BITS];
    let mut before = vec![u32::MAX; data.len()];
    let hash = |at: usize| {
        let three = u32::from_le_bytes([data[at], data[at + 1], data[at + 2], 0]);
        (three.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize
    };
    let mut tokens = Vec::with_capacity(data.len() / 2);
    let mut at = 0;
    let mut entered = 0;
    while at < data.len() {
        let (mut best, mut from) = (0, 0);
        if at + LEAST_MATCH <= data.len() {
            while entered < at {
                let slot = hash(entered);
                before[entered] = std::mem::replace(&mut heads[slot], entered as u32);
                entered += 1;
            }
            let mut candidate = heads[hash(at)];
            for _ in 0..TRIES {
                let Some(earlier) = before.get(candidate as usize) else { break };
                let length = common(data, candidate as usize, at);
                if length > best {
                    (best, from) = (length, candidate as usize);
                }
                candidate = *earlier;
            }
        }
        let distance = (at - from) as u32;
        if best < LEAST_MATCH || best == LEAST_MATCH && distance == 1 {
            tokens.push(Token { symbol: data[at].into(), length: 0, distance: 0 });
            at += 1;
            continue;
        }
        let length = (best - LEAST_MATCH) as u32;
        let symbol = 256 | distance.ilog2() << 4 | length.min(15);
        tokens.push(Token { symbol: symbol as u16, length, distance });
        at += best;
    }
    tokens
}

/// Returns how many bytes from `earlier` on are equal to the bytes from `at` on.
fn common(data: &[u8], earlier: usize, at: usize) -> usize {
    data[at..].iter().zip(&data[earlier..]).take_while(|(one, other)| one == other).count()
}

/// Computes the lengths of the Huffman codes from the counts of the symbols. If a code is too long, halves all counts,
/// which makes their differences smaller, and computes the lengths again.
fn code_lengths(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut counts = *counts;
    loop {
        let lengths = huffman(&counts);
        if lengths.iter().all(|&length| length <= MOST_BITS) {
            return lengths;
        }
        for count in counts.iter_mut().filter(|count| **count > 0) {
            *count = *count / 2 + 1;
        }
    }
}

fn huffman(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    // The heap contains the nodes of the Huffman tree that have no parent yet, the lightest first. Nodes below
    // `SYMBOLS` are symbols; nodes with higher numbers are pairs of nodes. `parents` contains the parent of each node.
    let mut heap: BinaryHeap<Reverse<(u32, usize)>> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, count)| Reverse((*count, symbol)))
        .collect();
    let mut lengths = [0; SYMBOLS];
    if let (1, Some(Reverse((_, only)))) = (heap.len(), heap.peek()) {
        lengths[*only] = 1;
        return lengths;
    }
    let mut parents = vec![usize::MAX; SYMBOLS];
    while let (Some(Reverse((first, one))), Some(Reverse((second, other)))) = (heap.pop(), heap.pop()) {
        let node = parents.len();
        parents.push(usize::MAX);
        (parents[one], parents[other]) = (node, node);
        if heap.is_empty() {
            break;
        }
        heap.push(Reverse((first + second, node)));
    }
    // A pair has a higher number than its two nodes. So if the nodes are processed from the highest number down, the
    // depth of a parent is known before the depths of its children are computed.
    let mut depths = vec![0u8; parents.len()];
    for node in (0..parents.len()).rev() {
        if let Some(&depth) = depths.get(parents[node]) {
            depths[node] = depth.saturating_add(1);
        }
    }
    lengths.copy_from_slice(&depths[..SYMBOLS]);
    lengths
}

/// Assigns the codes in the order of their lengths; codes of equal length are in the order of their symbols.
fn codes(lengths: &[u8; SYMBOLS]) -> [u16; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut next = 0u32;
    for length in 1..=MOST_BITS {
        next <<= 1;
        for symbol in (0..SYMBOLS).filter(|&symbol| lengths[symbol] == length) {
            codes[symbol] = next as u16;
            next += 1;
        }
    }
    codes
}

/// Writes bits in 16-bit words, highest bit first, and whole bytes between the words. A reader always reads two words
/// ahead of the bits that it uses. Therefore the writer reserves space for the next two words before it writes whole
/// bytes.
struct Writer {
    out: Vec<u8>,
    word: u32,
    free: u32,
    /// Offsets of the current word and of the next word.
    places: [usize; 2],
}

impl Writer {
    fn new(mut out: Vec<u8>) -> Self {
        let at = out.len();
        out.resize(at + 4, 0);
        Self { out, word: 0, free: 16, places: [at, at + 2] }
    }

    fn bits(&mut self, count: u32, bits: u32) {
        if let Some(free) = self.free.checked_sub(count) {
            self.free = free;
            self.word = self.word << count | bits;
            return;
        }
        let later = count - self.free;
        self.word = self.word << self.free | bits >> later;
        self.put_word();
        self.word = bits & ((1 << later) - 1);
        self.free = 16 - later;
        self.places = [self.places[1], self.out.len()];
        self.out.extend([0; 2]);
    }

    fn put_word(&mut self) {
        let place = self.places[0];
        self.out[place..place + 2].copy_from_slice(&(self.word as u16).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn finish(mut self) -> Vec<u8> {
        self.word <<= self.free;
        self.put_word();
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compresses the example texts of [MS-XCA] 3.1 and compares the results with the published bytes.
    #[test]
    fn published_vectors() {
        let packed = compress(&b"abc".repeat(100));
        let mut expected = vec![0; 256];
        for (at, byte) in [(48, 0x30), (49, 0x23), (128, 0x02), (143, 0x20)] {
            expected[at] = byte;
        }
        expected.extend([0xA8, 0xDC, 0x00, 0x00, 0xFF, 0x26, 0x01]);
        assert_eq!(packed, expected);
        let alphabet = compress(b"abcdefghijklmnopqrstuvwxyz");
        let codes = [
            0xD8, 0x52, 0x3E, 0xD7, 0x94, 0x11, 0x5B, 0xE9, 0x19, 0x5F, 0xF9, 0xD6, 0x7C, 0xDF, 0x8D, 0x04, 0, 0, 0, 0,
        ];
        assert_eq!(alphabet[256..], codes);
    }

    #[test]
    fn no_code_is_too_long() {
        // Counts that grow like the Fibonacci numbers lead to the longest possible codes, longer than the format
        // allows.
        let mut counts = [0; SYMBOLS];
        let (mut one, mut two) = (1u32, 1u32);
        for count in counts.iter_mut().take(40) {
            *count = one;
            (one, two) = (two, one + two);
        }
        let lengths = code_lengths(&counts);
        let sum: u32 = lengths.iter().filter(|&&length| length > 0).map(|&length| 1 << (MOST_BITS - length)).sum();
        assert!(lengths.iter().all(|&length| length <= MOST_BITS));
        assert_eq!(sum, 1 << MOST_BITS, "the codes are a whole tree");
    }
}
