//! Measures how fast the records of a compressed backup are decompressed, on one thread: `cargo bench -p mdfsck-source
//! --bench xpress`.
//!
//! With the path of a compressed backup after `--`, only that backup is measured. If a second path follows, the bench
//! writes the compressed blocks to it, so that another decoder can be timed on the same blocks. For each block, the
//! file holds the compressed length (u32, in bytes), the decompressed length (u32, in bytes) and the compressed bytes.

#![expect(clippy::expect_used, reason = "what it measures must work")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use source::hostile::{compressed_blocks, decompress};

const RUNS: usize = 15;
const BLOCK_BYTES: usize = 1 << 16;
const BLOCKS: usize = 100;

/// A compressed block, and its decompressed length in bytes.
type Block = (Vec<u8>, usize);

fn measure(name: &str, blocks: &[Block]) {
    let mut out = vec![0; BLOCK_BYTES];
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        for (block, bytes) in blocks {
            assert!(black_box(decompress(black_box(block), &mut out[..*bytes])));
        }
        times.push(start.elapsed());
    }
    times.sort();
    let stored: usize = blocks.iter().map(|(block, _)| block.len()).sum();
    let content: usize = blocks.iter().map(|(_, bytes)| bytes).sum();
    let rate = |bytes: usize, time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    let median = times[RUNS / 2];
    println!(
        "{name:<24} {:>10.0} {:>10.0} {:>10.0} {:>8.2}",
        rate(content, median),
        rate(content, times[0]),
        rate(stored, median),
        content as f64 / stored as f64
    );
}

fn packed(content: impl Fn(u32) -> u8) -> Vec<Block> {
    let bytes: Vec<u8> = (0..(BLOCKS * BLOCK_BYTES) as u32).map(content).collect();
    bytes.chunks(BLOCK_BYTES).map(|piece| (lab::backup::compress(piece), piece.len())).collect()
}

/// A pseudo-random number that depends only on `at`.
fn scattered(at: u32) -> u32 {
    let number = at.wrapping_mul(0x9E37_79B1);
    (number ^ number >> 15).wrapping_mul(0x85EB_CA77)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    println!("{:<24} {:>10} {:>10} {:>10} {:>8}", "one thread", "MB/s", "fastest", "stored", "ratio");
    let Some(path) = words.first() else {
        // Rows of 80 bytes that hold increasing numbers, pseudo-random numbers, and text with few distinct words.
        measure(
            "rows",
            &packed(|at| match at % 80 {
                0..4 => (at / 80).to_be_bytes()[at as usize % 4],
                place @ 4..16 => {
                    if scattered(at / 80).is_multiple_of(3) {
                        scattered(at) as u8
                    } else {
                        place as u8
                    }
                }
                16..60 => {
                    b"customer order shipped on time to the place "
                        [(at as usize + scattered(at / 160) as usize % 9 * 4) % 44]
                }
                place => (place % 7) as u8,
            }),
        );
        measure("letters", &packed(|at| b'a' + (scattered(at) >> 24) as u8 % 26));
        measure("bytes, hardly smaller", &packed(|at| (scattered(at) >> 24) as u8 % 200));
        return;
    };
    let backup = std::fs::read(path).expect("a backup that can be read");
    let blocks: Vec<Block> =
        compressed_blocks(&backup).into_iter().map(|(block, bytes)| (block.to_vec(), bytes)).collect();
    assert!(!blocks.is_empty(), "{path} has no compressed records");
    if let Some(copy) = words.get(1) {
        let number = |number: usize| (number as u32).to_le_bytes();
        let all: Vec<u8> = blocks
            .iter()
            .flat_map(|(block, bytes)| [&number(block.len()), &number(*bytes), &block[..]].concat())
            .collect();
        std::fs::write(copy, all).expect("a file for the blocks");
    }
    measure("records of the backup", &blocks);
}
