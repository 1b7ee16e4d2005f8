//! Columns with few distinct values. Each distinct value is stored once, and the rows refer to it by number.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

use super::plain::Plain;

/// The maximum size of the distinct values in a dictionary, in bytes.
const MOST_BYTES: usize = 64 << 10;
/// The number of values in the sample. If more than half of the first `SAMPLE` values are distinct, the column gets no
/// dictionary.
const SAMPLE: usize = 1024;

/// The distinct values of a column, in order of first appearance.
pub(super) struct Dictionary {
    pub(super) values: Plain,
    pub(super) count: u16,
    /// For each value of the column, its number in the dictionary.
    pub(super) numbers: Vec<u16>,
}

impl Dictionary {
    /// Creates a dictionary if each value appears at least twice on average, both among the first `SAMPLE` values and
    /// among all values. Otherwise returns `None`.
    pub(super) fn of(plain: &Plain) -> Option<Self> {
        let mut bytes = Vec::new();
        let mut numbers = Vec::new();
        let mut known: HashMap<&[u8], u16, RandomState> = HashMap::default();
        for value in plain.values() {
            let next = u16::try_from(known.len()).ok()?;
            let number = match known.entry(value) {
                Entry::Occupied(found) => *found.get(),
                Entry::Vacant(place) => {
                    if bytes.len() + value.len() > MOST_BYTES {
                        return None;
                    }
                    bytes.extend_from_slice(value);
                    *place.insert(next)
                }
            };
            numbers.push(number);
            if numbers.len() == SAMPLE && known.len() > SAMPLE / 2 {
                return None;
            }
        }
        let count = u16::try_from(known.len()).ok().filter(|count| usize::from(*count) * 2 <= numbers.len())?;
        (count > 0).then_some(Self { values: Plain { bytes, length: plain.length }, count, numbers })
    }

    /// The number of bits of the largest number in the dictionary.
    pub(super) fn width(&self) -> u32 {
        self.count.saturating_sub(1).checked_ilog2().map_or(1, |bits| bits + 1)
    }
}
