//! Compares the lines that CHECKALLOC or CHECKCATALOG printed for the sound copy with those of mdfsck.

use std::collections::BTreeMap;

/// The beginnings of lines that name the database or divide the output.
const IGNORED: [&str; 8] = [
    "dbcc results for",
    "changed language",
    "processed ",
    "checkalloc found",
    "checkcatalog found",
    "dbcc execution completed",
    "*",
    "prove:",
];

/// The lines of two listings.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Listing {
    /// The number of lines in both.
    pub(super) both: usize,
    /// Lines of the server alone, in its order.
    pub(super) server: Vec<String>,
    /// Lines of mdfsck alone, in its order.
    pub(super) mdfsck: Vec<String>,
}

impl Listing {
    /// Compares two texts as sets of lines, in which a line may occur several times.
    pub(super) fn of(server: &str, mdfsck: &str) -> Self {
        let surplus = |lines_of: &str, other: &str| {
            let mut left: BTreeMap<String, usize> = BTreeMap::new();
            for line in lines(other) {
                *left.entry(line).or_default() += 1;
            }
            let is_surplus = |line: &String| match left.get_mut(line).filter(|count| **count > 0) {
                Some(count) => {
                    *count -= 1;
                    false
                }
                None => true,
            };
            lines(lines_of).filter(is_surplus).collect::<Vec<_>>()
        };
        let alone = surplus(server, mdfsck);
        let both = lines(server).count() - alone.len();
        Self { both, mdfsck: surplus(mdfsck, server), server: alone }
    }

    pub(super) fn is_equal(&self) -> bool {
        self.server.is_empty() && self.mdfsck.is_empty()
    }
}

/// The lines to compare, with single blanks. The heading of an error names the server, and is left out.
fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let small = line.to_ascii_lowercase();
        let is_heading = small.starts_with("msg ") && small.contains(", level ");
        let is_ignored = line.is_empty() || is_heading || IGNORED.iter().any(|start| small.starts_with(start));
        (!is_ignored).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_compared_line_by_line_without_what_names_the_database() {
        let server = "Changed language setting to us_english.\nDBCC results for 'mdfsck_prove_1_000'.\n\
                      Table sys.x        Object ID 3.\nTotal number of extents is 1.\nTotal number of extents is 1.\n\
                      Processed 3 entries in system catalog for database ID 9.\n";
        let mdfsck = "DBCC results for 'orders'.\nTable sys.x                Object ID 3.\n\
                      Total number of extents is 1.\nTotal number of extents is 1.\n";
        assert_eq!(Listing::of(server, mdfsck), Listing { both: 3, ..Listing::default() });
    }

    #[test]
    fn a_line_that_one_prints_more_often_is_a_difference() {
        let listing = Listing::of("a\nb\na\n", "a\nc\nMsg 8992, Level 16, State 1\n");
        assert_eq!(listing.both, 1);
        assert_eq!(listing.server, ["b", "a"]);
        assert_eq!(listing.mdfsck, ["c"]);
        assert!(!listing.is_equal());
    }
}
