//! The point that a recovery has reached. A later recovery of the same backups with a longer log goes on from there.
//!
//! What redo has made of the pages is kept as it was *before* any change was undone, because the next log continues the
//! transactions that were open. The records of these transactions are read again, so nothing is kept about them but
//! where they begin.

use std::io;

use format::log::{LogTime, TransactionId};
use format::{Lsn, PageId};
use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, Loser, Open};

/// The most open transactions that are kept.
const MOST_OPEN: usize = 10_000;

/// An LSN as numbers: the virtual log file, the block and the slot.
type Numbers = (u32, u32, u16);

/// The point in the log that a recovery has reached.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reached {
    /// The LSN from which the log was read, and the LSN from which records were redone.
    from: Numbers,
    redo_from: Numbers,
    /// The last record.
    end: Numbers,
    last_commit: Option<(i32, u32)>,
    log_bytes: u64,
    records: u64,
    open: Vec<OpenTransaction>,
}

/// A transaction that is open at that point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenTransaction {
    id: (u16, u32),
    first: Numbers,
    last: Numbers,
    needs: Numbers,
    has_begin: bool,
    is_structural: bool,
    is_prepared: bool,
    made_a_chain: bool,
}

/// The point from which a recovery goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumed {
    /// The last record that an earlier recovery has redone.
    pub(crate) after: Lsn,
    /// The LSN from which the records of open transactions are read.
    pub(crate) undo_from: Lsn,
}

/// Pages that redo has made, before any change was undone. They are kept outside of this process, and are given back as
/// they were kept, or not at all.
pub trait RedonePages {
    /// The pages that an earlier recovery has kept, in ascending order.
    fn pages(&self) -> Vec<PageId>;

    /// Whether an earlier recovery has kept this page.
    fn has(&self, page: PageId) -> bool;

    /// What was kept of a page.
    ///
    /// # Errors
    /// If it was not kept, cannot be read, or is not what was kept.
    fn read(&self, page: PageId) -> io::Result<Vec<u8>>;

    /// Keeps a page, instead of what an earlier recovery has kept of it.
    fn keep(&mut self, page: PageId, bytes: &[u8]);
}

impl Reached {
    /// The point that the reading of a log has reached. `None` if too many transactions are open.
    pub(crate) fn of(analysis: &Analysis) -> Option<Self> {
        let open = analysis.losers.iter().map(|(id, loser)| OpenTransaction {
            id: (id.high, id.low),
            first: numbers(loser.first),
            last: numbers(loser.last),
            needs: numbers(loser.needs),
            has_begin: loser.has_begin,
            is_structural: loser.is_structural,
            is_prepared: loser.is_prepared,
            made_a_chain: loser.made_a_chain,
        });
        (analysis.losers.len() <= MOST_OPEN).then(|| Self {
            from: numbers(analysis.from),
            redo_from: numbers(analysis.redo_from),
            end: numbers(analysis.end),
            last_commit: analysis.last_commit.map(|time| (time.days, time.ticks)),
            log_bytes: analysis.log_bytes,
            records: analysis.records,
            open: open.collect(),
        })
    }

    /// Lets an analysis go on from here. Returns the open transactions; `None` if the analysis is that of other backups.
    pub(crate) fn open_after(&self, analysis: &mut Analysis) -> Option<Open> {
        if self.from != numbers(analysis.from) || self.redo_from != numbers(analysis.redo_from) {
            return None;
        }
        let mut open = Open::default();
        for one in &self.open {
            let mut loser = Loser::new((lsn(one.first), lsn(one.needs)), one.has_begin);
            loser.last = lsn(one.last);
            (loser.is_structural, loser.is_prepared) = (one.is_structural, one.is_prepared);
            loser.made_a_chain = one.made_a_chain;
            open.insert(TransactionId { high: one.id.0, low: one.id.1 }, loser);
        }
        let after = lsn(self.end);
        let undo_from = open.values().map(|loser| loser.needs).min().map_or(after, |needs| needs.min(after));
        (analysis.end, analysis.log_bytes, analysis.records) = (after, self.log_bytes, self.records);
        analysis.last_commit = self.last_commit.map(|(days, ticks)| LogTime { days, ticks });
        analysis.resumed = Some(Resumed { after, undo_from: undo_from.max(analysis.from) });
        Some(open)
    }
}

fn numbers(lsn: Lsn) -> Numbers {
    (lsn.vlf, lsn.block, lsn.slot)
}

fn lsn((vlf, block, slot): Numbers) -> Lsn {
    Lsn { vlf, block, slot }
}
