//! Which table gets its turn next in windows over a database that changes.

use std::collections::BTreeMap;

use check::change::Turn;
use serde::{Deserialize, Serialize};

/// A table that needs more windows than this times the windows that its size needs changes faster than it can be read.
const PATIENCE: u64 = 2;
/// Windows that a table gets in addition, however small it is.
const LEAST_PATIENCE: u64 = 2;

/// What the windows of a database have tried, by object ID. A ledger keeps it from window to window.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Turns {
    /// The table whose turn it is, and the number of windows in which it was not completed.
    now: Option<(i32, u64)>,
    /// Tables whose turn was ended because they change faster than windows can read them, each with the time.
    ended: BTreeMap<i32, String>,
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

    /// Puts tables into order: the table whose turn it is, then those with the oldest proof. A table of which nothing needs
    /// to be read is left out. `proofs` has the times of the proofs; a table that is not in it was never proven.
    pub(super) fn order(&self, proofs: &BTreeMap<i32, String>, mut turns: Vec<Turn>) -> Vec<Turn> {
        turns.retain(|turn| turn.open_pages + turn.old_pages > 0);
        let now = self.now.map(|(object_id, _)| object_id);
        turns.sort_by(|one, other| {
            let key = |turn: &Turn| {
                let dates = [proofs.get(&turn.object_id), self.ended.get(&turn.object_id)];
                // Many small tables are proven in the time that one large table needs.
                (Some(turn.object_id) != now, dates.into_iter().flatten().max(), turn.pages, turn.object_id)
            };
            key(one).cmp(&key(other))
        });
        turns
    }

    /// Ends a window. `order` is the order in which tables had their turns, `left` says which of them are not complete, and
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

    fn ids(turns: &[Turn]) -> Vec<i32> {
        turns.iter().map(|turn| turn.object_id).collect()
    }

    #[test]
    fn the_oldest_proof_comes_first_and_a_table_keeps_its_turn() {
        let proofs = BTreeMap::from([(1, "2026-11-20".to_owned()), (2, "2026-11-10".to_owned())]);
        let tables = || vec![turn(1, 10, 5), turn(2, 900, 9), turn(3, 50, 50), turn(4, 20, 20), turn(5, 7, 0)];
        let mut turns = Turns::default();
        let order = turns.order(&proofs, tables());
        assert_eq!(ids(&order), [4, 3, 2, 1]);
        // Tables 4 and 3 are complete; the window ended in table 2, which is the first in the next window.
        assert_eq!(turns.end(&order, |id| id <= 2, (80, "2026-11-21")), None);
        let next = Turns::of_note(&turns.note());
        assert_eq!(next, turns);
        assert_eq!(ids(&next.order(&proofs, tables())), [2, 4, 3, 1]);
    }

    #[test]
    fn a_table_that_changes_too_fast_lets_the_others_go_first() {
        let (mut turns, proofs) = (Turns::default(), BTreeMap::new());
        let tables = || vec![turn(1, 1000, 600), turn(2, 2000, 2000)];
        let mut ended = None;
        let mut windows = 0;
        while ended.is_none() {
            let order = turns.order(&proofs, tables());
            assert_eq!(ids(&order), [1, 2]);
            ended = turns.end(&order, |_| true, (500, "2026-11-21"));
            windows += 1;
        }
        assert_eq!((ended, windows), (Some(1), 6), "twice the two windows that it needs, and two more");
        assert_eq!(ids(&turns.order(&proofs, tables())), [2, 1]);
        // A table that was completed after all is like any other.
        turns.end(&[], |_| false, (1, ""));
        assert_eq!(turns, Turns::default());
    }
}
