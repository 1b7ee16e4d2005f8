//! Where an analysis stands, and how another goes on from there.

use format::Lsn;
use format::log::{LogTime, TransactionId};

use super::{Analysis, Loser, Open};
use crate::reached::{Numbers, OpenTransaction, Reached, Resumed};

/// The most open transactions that are kept.
const MOST_OPEN: usize = 10_000;

impl Analysis {
    /// The point that this analysis has reached. `None` if too many transactions are open.
    pub(crate) fn reached(&self) -> Option<Reached> {
        let open = self.losers.iter().map(|(id, loser)| OpenTransaction {
            id: (id.high, id.low),
            first: numbers(loser.first),
            last: numbers(loser.last),
            needs: numbers(loser.needs),
            has_begin: loser.has_begin,
            is_structural: loser.is_structural,
            is_prepared: loser.is_prepared,
            made_a_chain: loser.made_a_chain,
        });
        (self.losers.len() <= MOST_OPEN).then(|| Reached {
            from: numbers(self.from),
            redo_from: numbers(self.redo_from),
            end: numbers(self.end),
            last_commit: self.last_commit.map(|time| (time.days, time.ticks)),
            log_bytes: self.log_bytes,
            records: self.records,
            open: open.collect(),
        })
    }

    /// Lets this analysis go on from there. Returns the open transactions; `None` if the analysis is that of other backups.
    pub(super) fn go_on_from(&mut self, reached: &Reached) -> Option<Open> {
        if reached.from != numbers(self.from) || reached.redo_from != numbers(self.redo_from) {
            return None;
        }
        let mut open = Open::default();
        for one in &reached.open {
            let mut loser = Loser::new((lsn(one.first), lsn(one.needs)), one.has_begin);
            loser.last = lsn(one.last);
            (loser.is_structural, loser.is_prepared) = (one.is_structural, one.is_prepared);
            loser.made_a_chain = one.made_a_chain;
            open.insert(TransactionId { high: one.id.0, low: one.id.1 }, loser);
        }
        let after = lsn(reached.end);
        let undo_from = open.values().map(|loser| loser.needs).min().map_or(after, |needs| needs.min(after));
        (self.end, self.log_bytes, self.records) = (after, reached.log_bytes, reached.records);
        self.last_commit = reached.last_commit.map(|(days, ticks)| LogTime { days, ticks });
        self.resumed = Some(Resumed { after, undo_from: undo_from.max(self.from) });
        Some(open)
    }
}

fn numbers(lsn: Lsn) -> Numbers {
    (lsn.vlf, lsn.block, lsn.slot)
}

fn lsn((vlf, block, slot): Numbers) -> Lsn {
    Lsn { vlf, block, slot }
}
