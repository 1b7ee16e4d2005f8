//! Which table gets its turn next in windows over a database that changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use check::change::Turn;
use serde::{Deserialize, Serialize};

/// A table that needs more windows than this times the windows that its size needs changes faster than it can be read.
const PATIENCE: u64 = 2;
/// Windows that a table gets in addition, however small it is.
const LEAST_PATIENCE: u64 = 2;

/// When tables were proven and read, and how much each of them weighs.
pub(super) struct Ages<'a> {
    /// When each table was proven, by object ID. A table that is not in it was never proven.
    pub(super) proofs: &'a BTreeMap<i32, String>,
    /// The times of the earlier runs, the latest first.
    pub(super) runs: &'a [String],
    /// The weights of tables, by object ID; others have the weight 1. Each day of a table of weight 2 counts as two.
    pub(super) weights: &'a BTreeMap<i32, u32>,
    /// The time that has passed since a date, in any unit.
    pub(super) since: &'a dyn Fn(&str) -> u64,
}

/// What the windows of a database have tried, by object ID. A ledger keeps it from window to window.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Turns {
    /// The table whose turn it is, and the number of windows in which it was not completed.
    now: Option<(i32, u64)>,
    /// Tables whose turn was ended because they change faster than windows can read them, each with the time.
    ended: BTreeMap<i32, String>,
    /// The state that the last window has checked, and the number of pages that it has left.
    #[serde(default)]
    left: Option<(String, u64)>,
}

impl Turns {
    /// Reads what a window has noted. What cannot be read counts as nothing.
    pub(super) fn of_note(note: &str) -> Self {
        serde_json::from_str(note).unwrap_or_default()
    }

    /// What the next window must know.
    pub(super) fn note(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Notes the number of pages of a state that a window has left.
    pub(super) fn leave(&mut self, state: String, pages: u64) {
        self.left = Some((state, pages));
    }

    /// The state that the last window has checked, and the number of pages that it has left.
    pub(super) fn left(self) -> Option<(String, u64)> {
        self.left
    }

    /// Puts tables into order: the table whose turn it is, then those with the oldest proof or, if pages must be read again,
    /// the oldest read, by weight. A table of which nothing needs to be read is left out.
    pub(super) fn order(&self, ages: &Ages<'_>, mut turns: Vec<Turn>) -> Vec<Turn> {
        let Ages { proofs, runs, weights, since } = *ages;
        turns.retain(|turn| turn.open_pages + turn.old_pages > 0);
        let now = self.now.map(|(object_id, _)| object_id);
        turns.sort_by(|one, other| {
            let key = |turn: &Turn| {
                let read_at = turn.oldest.filter(|_| turn.old_pages > 0).and_then(|run| runs.get(run));
                let proven_at =
                    proofs.get(&turn.object_id).map(|proven_at| read_at.map_or(proven_at, |it| it.min(proven_at)));
                let last = [proven_at, self.ended.get(&turn.object_id)].into_iter().flatten().max();
                let weight = weights.get(&turn.object_id).copied().unwrap_or(1);
                let age = last.map_or(u64::MAX, |date| since(date).saturating_mul(weight.into()));
                // Many small tables are proven in the time that one large table needs.
                (Some(turn.object_id) != now, Reverse(age), turn.pages, turn.object_id)
            };
            key(one).cmp(&key(other))
        });
        turns
    }

    /// Ends a window. `order` is the order in which tables had their turns, `left` says of which of them something
    /// must still be read, and
    /// `window_pages` is the number of pages that the window has read. Returns the table whose turn ends because it changes
    /// faster than windows can read it.
    pub(super) fn end(
        &mut self,
        order: &[Turn],
        left: impl Fn(i32) -> bool,
        (window_pages, now): (u64, &str),
    ) -> Option<i32> {
        let first = order.iter().find(|turn| left(turn.object_id));
        self.ended.retain(|object_id, _| left(*object_id));
        let Some(first) = first else {
            self.now = None;
            return None;
        };
        let tried = self.now.filter(|(object_id, _)| *object_id == first.object_id).map_or(0, |(_, tried)| tried) + 1;
        let needed = first.pages.div_ceil(window_pages.max(1)).saturating_mul(PATIENCE).saturating_add(LEAST_PATIENCE);
        if tried < needed {
            self.now = Some((first.object_id, tried));
            return None;
        }
        self.now = None;
        self.ended.insert(first.object_id, now.to_owned());
        Some(first.object_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(object_id: i32, pages: u64, open_pages: u64) -> Turn {
        Turn { object_id, pages, open_pages, old_pages: 0, oldest: None }
    }

    /// The days of November 2026, or the nights of a simulation, that have passed since a date.
    fn since(now: u64) -> impl Fn(&str) -> u64 {
        move |date| now - date.rsplit('-').next().unwrap().parse::<u64>().unwrap()
    }

    fn order(turns: &Turns, proofs: &BTreeMap<i32, String>, weights: &[(i32, u32)], tables: Vec<Turn>) -> Vec<Turn> {
        let weights = weights.iter().copied().collect();
        turns.order(&Ages { proofs, runs: &[], weights: &weights, since: &since(30) }, tables)
    }

    fn ids(turns: &[Turn]) -> Vec<i32> {
        turns.iter().map(|turn| turn.object_id).collect()
    }

    #[test]
    fn the_oldest_proof_comes_first_and_a_table_keeps_its_turn() {
        let proofs = BTreeMap::from([(1, "2026-11-20".to_owned()), (2, "2026-11-10".to_owned())]);
        let tables = || vec![turn(1, 10, 5), turn(2, 900, 9), turn(3, 50, 50), turn(4, 20, 20), turn(5, 7, 0)];
        let mut turns = Turns::default();
        let order = order(&turns, &proofs, &[], tables());
        assert_eq!(ids(&order), [4, 3, 2, 1]);
        // Tables 4 and 3 are complete; the window ended in table 2, which is the first in the next window.
        assert_eq!(turns.end(&order, |id| id <= 2, (80, "2026-11-21")), None);
        let next = Turns::of_note(&turns.note());
        assert_eq!(next, turns);
        assert_eq!(ids(&super::tests::order(&next, &proofs, &[], tables())), [2, 4, 3, 1]);
    }

    #[test]
    fn a_day_of_a_table_counts_as_often_as_its_weight_says() {
        let proofs =
            BTreeMap::from([(1, "2026-11-20".to_owned()), (2, "2026-11-26".to_owned()), (3, "2026-11-27".to_owned())]);
        let tables = || vec![turn(1, 10, 5), turn(2, 10, 5), turn(3, 10, 5), turn(4, 99, 9)];
        let order = |weights: &[(i32, u32)]| ids(&order(&Turns::default(), &proofs, weights, tables()));
        assert_eq!(order(&[]), [4, 1, 2, 3], "a table that was never proven, then the oldest proof");
        assert_eq!(order(&[(3, 4)]), [4, 3, 1, 2], "10, 4 and 12 days");
        assert_eq!(order(&[(2, 2), (3, 100)]), [4, 3, 1, 2], "10, 8 and 300 days");
    }

    #[test]
    fn a_weight_does_not_starve_other_tables() {
        let heavy = BTreeMap::from([(0, 5)]);
        for seed in 1..=10 {
            let (longest, closed, _) = nights(&[50; 20], 4, seed, &heavy);
            let (_, without, _) = nights(&[50; 20], 4, seed, &BTreeMap::new());
            assert!(
                closed[0] > without[0],
                "closed in {} nights without its weight, in {} with it",
                without[0],
                closed[0]
            );
            assert!(longest.iter().all(|nights| *nights <= 18), "{longest:?}");
        }
    }

    #[test]
    fn a_table_that_changes_too_fast_lets_the_others_go_first() {
        let (mut turns, proofs) = (Turns::default(), BTreeMap::new());
        let tables = || vec![turn(1, 1000, 600), turn(2, 2000, 2000)];
        let mut ended = None;
        let mut windows = 0;
        while ended.is_none() {
            let order = order(&turns, &proofs, &[], tables());
            assert_eq!(ids(&order), [1, 2]);
            ended = turns.end(&order, |_| true, (500, "2026-11-21"));
            windows += 1;
        }
        assert_eq!((ended, windows), (Some(1), 6), "twice the two windows that it needs, and two more");
        assert_eq!(ids(&order(&turns, &proofs, &[], tables())), [2, 1]);
        // A table that was completed after all is like any other.
        turns.end(&[], |_| false, (1, ""));
        assert_eq!(turns, Turns::default());
    }

    /// A range of a table in a model of a database.
    #[derive(Clone, Copy)]
    struct Range {
        /// The night of its last read; `None` if it was never read.
        read: Option<u64>,
        is_changed: bool,
    }

    /// Random numbers, the same in each run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end.max(1)
        }
    }

    /// Runs nights over a database of 1,000 ranges in `sizes`, of which the first tables are hot. Each night, 3 % of the
    /// extents change: half of them are new ones of a hot table, the others are somewhere in the hot tables. A window has
    /// the time for a tenth of the ranges. Returns for each table the longest time, in nights, from one proof to the next, and
    /// the number of nights in which it was closed; and the age of the oldest read.
    fn nights(sizes: &[usize], hot: usize, seed: u64, weights: &BTreeMap<i32, u32>) -> (Vec<u64>, Vec<u64>, u64) {
        const NIGHTS: u64 = 60;
        let date = |night: u64| format!("{night:04}");
        let mut random = Random(seed);
        let nothing = Range { read: None, is_changed: false };
        let mut tables: Vec<Vec<Range>> = sizes.iter().map(|size| vec![nothing; *size]).collect();
        let (mut turns, mut proofs) = (Turns::default(), BTreeMap::new());
        let (mut proven, mut longest, mut closed) = (vec![0; sizes.len()], vec![0; sizes.len()], vec![0; sizes.len()]);
        let mut oldest_read = 0;
        for night in 1..=NIGHTS {
            let all: usize = tables.iter().map(Vec::len).sum();
            let changes = all * 4 * 3 / 100;
            for change in 0..changes {
                let table = random.below(hot);
                let size = tables[table].len();
                if change % 2 == 0 {
                    tables[table][random.below(size)].is_changed = true;
                } else if change % 8 == 1 {
                    tables[table].push(nothing);
                }
            }
            let is_open = |range: &Range| range.read.is_none() || range.is_changed;
            let is_old = |range: &Range| !is_open(range) && range.read.is_some_and(|read| read + 9 < night);
            let turn = |(at, ranges): (usize, &Vec<Range>)| Turn {
                object_id: at as i32,
                pages: ranges.len() as u64,
                open_pages: ranges.iter().filter(|range| is_open(range)).count() as u64,
                old_pages: ranges.iter().filter(|range| is_old(range)).count() as u64,
                // Runs count backwards: 0 is that of last night.
                oldest: ranges.iter().filter_map(|range| Some((night - 1 - range.read?) as usize)).max(),
            };
            let runs: Vec<String> = (0..night).rev().map(date).collect();
            let ages = Ages { proofs: &proofs, runs: &runs, weights, since: &since(night) };
            let order = turns.order(&ages, tables.iter().enumerate().map(turn).collect());
            let mut left = all / 10;
            for turn in &order {
                for kind in 0..3 {
                    for range in &mut tables[turn.object_id as usize] {
                        let is_of_kind = match kind {
                            0 => range.read.is_none(),
                            1 => range.read.is_some() && range.is_changed,
                            _ => is_old(range),
                        };
                        if is_of_kind && left > 0 {
                            *range = Range { read: Some(night), is_changed: false };
                            left -= 1;
                        }
                    }
                }
            }
            let is_left = |object_id: i32| tables[object_id as usize].iter().any(is_open);
            let has_more =
                |object_id: i32| tables[object_id as usize].iter().any(|range| is_open(range) || is_old(range));
            turns.end(&order, has_more, ((all / 10) as u64, &date(night)));
            for table in 0..tables.len() {
                if !is_left(table as i32) {
                    proven[table] = night;
                    closed[table] += 1;
                    proofs.insert(table as i32, date(night));
                }
                longest[table] = longest[table].max(night - proven[table]);
                let oldest = tables[table].iter().filter_map(|range| range.read).min().unwrap_or(night);
                oldest_read = oldest_read.max(night - oldest);
            }
        }
        (longest, closed, oldest_read)
    }

    #[test]
    fn every_table_is_closed_within_two_weeks_although_the_database_changes() {
        let small: Vec<usize> = std::iter::repeat_n(8, 50).collect();
        let databases = [
            (vec![200, 400, 400], 1),
            (vec![100, 100, 400, 300, 100], 2),
            ([vec![40, 160], small, vec![400]].concat(), 2),
            (vec![50; 20], 4),
        ];
        for (sizes, hot) in databases {
            for seed in 1..=10 {
                let (longest, _, oldest_read) = nights(&sizes, hot, seed, &BTreeMap::new());
                assert!(longest.iter().all(|nights| *nights <= 14), "{sizes:?}: {longest:?}");
                // The largest table of the first database grows by half in this time.
                assert!(oldest_read <= if hot == 1 { 28 } else { 21 }, "{sizes:?}: {oldest_read}");
            }
        }
    }
}
