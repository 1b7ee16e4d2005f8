//! Times in the log: datetime values in the local time of the server.

use crate::bytes::u32_at;

/// The number of datetime ticks in a day, 300 per second.
const TICKS_PER_DAY: u32 = 24 * 60 * 60 * 300;

/// A datetime in the local time of the server, with a resolution of 1/300 second. Sorts by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LogTime {
    /// Days since 1900-01-01.
    pub days: i32,
    /// The time of day in 1/300 seconds.
    pub ticks: u32,
}

impl LogTime {
    /// Reads the datetime at `offset` of `bytes`: u32 ticks, i32 days. `None` if SQL Server cannot have written a date
    /// of that year. Filler bytes, in which all bits are set, give such a date.
    pub fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        /// The plausible days, 1990-01-01 to 2173-10-14.
        const DAYS: std::ops::Range<i32> = 32_872..100_000;
        let (ticks, days) = (u32_at(bytes, offset)?, u32_at(bytes, offset.checked_add(4)?)?.cast_signed());
        (ticks < TICKS_PER_DAY && DAYS.contains(&days)).then_some(Self { days, ticks })
    }

    /// The milliseconds from `earlier` to this time; negative if `earlier` is the later of the two.
    pub fn ms_since(self, earlier: Self) -> i64 {
        let ticks = |time: Self| i64::from(time.days) * i64::from(TICKS_PER_DAY) + i64::from(time.ticks);
        let difference = ticks(self) - ticks(earlier);
        // 300 ticks are 1000 ms.
        difference * 10 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ordered_and_fillers_are_none() {
        let at = |ticks: u32, days: i32| [ticks.to_le_bytes(), days.to_le_bytes()].concat();
        let evening = LogTime::read(&at(TICKS_PER_DAY - 1, 40_000), 0).unwrap();
        let morning = LogTime::read(&at(299, 40_001), 0).unwrap();
        assert!(evening < morning);
        assert_eq!((morning.ms_since(evening), evening.ms_since(morning)), (1000, -1000));
        for (ticks, days) in [(u32::MAX, -1), (TICKS_PER_DAY, 40_000), (0, 0)] {
            assert_eq!(LogTime::read(&at(ticks, days), 0), None);
        }
    }
}
