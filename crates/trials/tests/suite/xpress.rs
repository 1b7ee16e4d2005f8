//! The lab's compressor and the reader's decompressor share no code, so they test each other: decompression must return
//! the original data.

use lab::backup::compress;
use trials::mutate::Random;

#[track_caller]
fn comes_back(data: &[u8]) {
    let packed = compress(data);
    assert!(source::hostile::decompressed(&packed, data.len()).as_deref() == Some(data), "{} bytes", data.len());
}

#[test]
fn what_is_compressed_comes_back() {
    let mut dice = Random::new(7);
    for round in 0..600usize {
        let length = [1, 2, 3, 63, 64, 65, 80, 300, 5000, 65_536][round % 10] + round % 3 * usize::from(round % 10 < 9);
        // The data contains few or many different byte values: as single bytes, or in pieces that repeat at near and
        // far distances.
        let kinds = 1 + dice.below([2, 7, 40, 256][round / 10 % 4]);
        let mut data: Vec<u8> = Vec::with_capacity(length);
        while data.len() < length {
            match dice.below(4) {
                0 if !data.is_empty() => {
                    let distance = 1 + dice.below(if round % 2 == 0 { data.len() } else { 20 });
                    let from = data.len().saturating_sub(distance);
                    let count = dice.below([5, 30, 400, 70_000][round % 4]);
                    for at in from..from + count.min(length - data.len()) {
                        data.push(data[at]);
                    }
                }
                _ => (0..dice.below(20)).for_each(|_| data.push(dice.below(kinds) as u8)),
            }
        }
        data.truncate(length);
        comes_back(&data);
    }
    // Each byte value is half as frequent as the previous value, so the compressor assigns codes of all lengths.
    let skewed: Vec<u8> = (0..60_000).map(|_| (dice.number().trailing_zeros() as u8).wrapping_mul(9)).collect();
    comes_back(&skewed);
    comes_back(&vec![0; 65_536]);
}

#[test]
fn a_damaged_block_is_decoded_at_once_as_it_is_symbol_by_symbol() {
    let mut dice = Random::new(11);
    for round in 0..400usize {
        let kinds = 1 + dice.below([3, 30, 256][round % 3]);
        let mut data: Vec<u8> = Vec::new();
        while data.len() < 300 + round * 20 {
            match dice.below(3) {
                0 if !data.is_empty() => {
                    let from = data.len() - 1 - dice.below(data.len().min(700));
                    let end = (from + dice.below(90)).min(data.len());
                    data.extend_from_within(from..end);
                }
                _ => (0..dice.below(12)).for_each(|_| data.push(dice.below(kinds) as u8)),
            }
        }
        let size = data.len() as u16;
        let block = [&size.to_le_bytes()[..], &compress(&data)].concat();
        source::hostile::xpress(&block);
        for _ in 0..60 {
            let mut damaged = block.clone();
            for _ in 0..=dice.below(3) {
                let at = dice.below(damaged.len());
                damaged[at] ^= 1 << dice.below(8);
            }
            damaged.truncate(damaged.len() - [0, 0, 1, 9][dice.below(4)]);
            // Panics if the two decoders differ.
            source::hostile::xpress(&damaged);
        }
    }
}
