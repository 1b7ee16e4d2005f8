//! Counts in the form in which the history stores them.

/// Converts a count to the integer type that SQLite stores.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
