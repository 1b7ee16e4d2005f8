//! No input can cause harm: after any damage to a database, the check ends without a panic and in bounded time.

use std::time::{Duration, Instant};

use check::Silent;
use findings::Options;
use format::page::PAGE_BYTES;
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::damage::REAL;
use crate::image::{Image, seal};

/// The number of rounds of random damage for each subject.
const ROUNDS: u64 = 60;
/// Time limit for one check. A check of one of these small files usually takes milliseconds, but a loop whose length
/// depends on a damaged field would take far longer.
const LIMIT: Duration = Duration::from_secs(20);

/// Tests with random damage of several kinds, from fixed seeds.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = Vec::new();
    for subject in REAL {
        for part in 0..4 {
            let corpus = corpus.clone();
            trials.push(Trial::test(format!("hostile: random damage, part {part} ({subject})"), move || {
                let original = Image::load(&corpus.files.join(subject));
                for seed in (part..ROUNDS).step_by(4) {
                    round(&original, seed + 1)?;
                }
                Ok(())
            }));
        }
    }
    trials
}

fn round(original: &Image, seed: u64) -> Result<(), Failed> {
    let mut image = original.clone();
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let pages = (image.bytes.len() / PAGE_BYTES) as u64;
    for _ in 0..1 + random.below(40) {
        // Half of the damage is in the first 140 pages, through which all other pages are found.
        let page = if random.below(2) == 0 { random.below(pages.min(140)) } else { random.below(pages) } as u32;
        let kind = random.below(6);
        let (at, value, other) = (random.below(8192) as usize, random.next(), random.below(pages) as u32);
        let source = image.page(other);
        image.edit(page, |bytes| match kind {
            0 => bytes[at % 96] = value as u8,
            1 => bytes[8191 - at % 64] = value as u8,
            2 => bytes[at] ^= 1 << (value % 8),
            3 => bytes[at..].iter_mut().take(16).for_each(|byte| *byte = value as u8),
            4 => {
                // Replaces the content of this page by that of another page, but keeps the page ID of this page.
                let id: [u8; 6] = bytes[32..38].try_into().unwrap_or_default();
                *bytes = source;
                bytes[32..38].copy_from_slice(&id);
            }
            _ => {
                let mut random = Random(value);
                bytes[96..].iter_mut().for_each(|byte| *byte = random.next() as u8);
                seal(bytes);
            }
        });
    }
    if random.below(5) == 0 {
        let length = random.below(image.bytes.len() as u64 - 70_000) as usize + 70_000;
        image.bytes.truncate(length);
    }
    let start = Instant::now();
    image.try_check_with(&Options::default(), &Silent);
    if start.elapsed() > LIMIT {
        return Err(format!("seed {seed}: took {:?}", start.elapsed()).into());
    }
    Ok(())
}

/// A small random number generator (splitmix64), which gives the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
