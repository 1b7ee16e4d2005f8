//! Finds out whether runs of pages repeat at a fixed distance.

/// The number of runs that are needed for a distance.
const LEAST_RUNS: usize = 4;
/// A distance counts only if runs at random places would have it with a probability below 2 to the power of minus this.
const LEAST_BITS: u32 = 18;
/// The largest distance in pages that is tried for blocks, as a power of two: 1 GB.
const MOST_SHIFT: u32 = 17;
/// The smallest distance in pages that is tried for blocks, as a power of two: 64 KB.
const LEAST_SHIFT: u32 = 3;

/// The distance at which runs repeat, and the number of pages of the longest block. The runs, each with its first and its
/// last page, are in page order. Runs may be missing in between, because a page that is not in use is not damaged.
pub(super) fn period(runs: &[(u32, u32)]) -> Option<(u32, u32)> {
    if runs.len() < LEAST_RUNS {
        return None;
    }
    of_starts(runs).or_else(|| of_blocks(runs))
}

/// The distance of runs that begin at the same place of each block: the greatest common divisor of their distances.
fn of_starts(runs: &[(u32, u32)]) -> Option<(u32, u32)> {
    let (start, _) = *runs.first()?;
    let distance = runs.iter().fold(0, |divisor, (first, _)| gcd(divisor, first - start));
    let longest = runs.iter().map(|(first, last)| last - first + 1).max()?;
    let bits = distance.checked_ilog2()?;
    let repeats = runs.len() as u32 - 2;
    (longest <= distance / 2 && bits.saturating_mul(repeats) >= LEAST_BITS).then_some((distance, longest))
}

/// The distance of blocks that are divided into several runs, because some of their pages are sound: the largest power of
/// two for which all runs are in the same quarter, or a smaller part, of each block.
fn of_blocks(runs: &[(u32, u32)]) -> Option<(u32, u32)> {
    (LEAST_SHIFT..=MOST_SHIFT).rev().find_map(|shift| {
        let distance = 1 << shift;
        let (mut low, mut high, mut blocks, mut before) = (u32::MAX, 0, 0u32, None);
        for &(first, last) in runs {
            let block = first / distance;
            if last / distance != block {
                return None;
            }
            (low, high) = (low.min(first % distance), high.max(last % distance));
            if high - low >= distance / 4 {
                return None;
            }
            blocks += u32::from(before.replace(block) != Some(block));
        }
        let length = high - low + 1;
        let bits = (distance / length).checked_ilog2()?;
        let is_enough = blocks as usize >= LEAST_RUNS && bits.saturating_mul(blocks - 1) >= LEAST_BITS;
        is_enough.then_some((distance, length))
    })
}

fn gcd(mut one: u32, mut other: u32) -> u32 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
