//! Reads the whole log, from its oldest block to its end, including the part that recovery does not need.

use format::Lsn;
use format::log::Block;
use log::{End, EndReason, Log, LogError, Walk};
use recovery::Start;

/// The range of the log that could be read, as LSNs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The first LSN of the oldest block.
    pub(crate) oldest: Lsn,
    /// The LSN of the last record.
    pub(crate) end: Lsn,
    /// The two LSNs around a damaged part of the log. The records between them are unknown.
    pub(crate) gap: Option<(Lsn, Lsn)>,
    /// Whether the log is damaged or cut off after the last readable record.
    pub(crate) is_end_damaged: bool,
    /// Whether some log records are encrypted.
    pub(crate) has_encrypted: bool,
}

impl Extent {
    /// Whether the log would contain the record with this LSN, if such a record was ever written.
    pub(crate) fn covers(&self, lsn: Lsn) -> bool {
        (self.oldest..=self.end).contains(&lsn) && !self.gap.is_some_and(|(from, to)| from < lsn && lsn < to)
    }
}

/// Visits all log blocks. `visit` receives each block, and the first LSN of the sequence of undamaged blocks that
/// contains the block.
pub(crate) fn each_block(log: &Log, start: &Start, visit: &mut dyn FnMut(&Block<'_>, Lsn)) -> Result<Extent, LogError> {
    let mut run = Run { visit, first: None, oldest: None, last: Lsn::default(), has_encrypted: false };
    let mut end = run.follow(Walk::new(log))?;
    let mut gap = None;
    let needed = start.redo_from.min(start.checkpoint);
    // The log is damaged before the part that recovery needs, so reading continues at the start of this part.
    if run.last < needed
        && let Some(walk) = Walk::from(log, needed)
    {
        let before = run.last;
        run.first = None;
        end = run.follow(walk)?;
        gap = run.first.filter(|_| run.oldest < run.first).map(|first| (before, first));
    }
    Ok(Extent {
        oldest: run.oldest.unwrap_or_default(),
        end: run.last,
        gap,
        is_end_damaged: end
            .is_some_and(|end| matches!(end.reason, EndReason::Damaged { .. }) || log.cut_at(&end).is_some()),
        has_encrypted: run.has_encrypted,
    })
}

struct Run<'v> {
    visit: &'v mut dyn FnMut(&Block<'_>, Lsn),
    first: Option<Lsn>,
    oldest: Option<Lsn>,
    last: Lsn,
    has_encrypted: bool,
}

impl Run<'_> {
    fn follow(&mut self, mut walk: Walk<'_>) -> Result<Option<End>, LogError> {
        while let Some(block) = walk.next_block()? {
            if block.record_count() == 0 {
                continue;
            }
            self.has_encrypted |= block.is_encrypted();
            let first = block.first_lsn();
            let run = *self.first.get_or_insert(first);
            self.oldest.get_or_insert(first);
            self.last = Lsn { slot: first.slot.saturating_add(block.record_count() as u16 - 1), ..first };
            (self.visit)(&block, run);
        }
        Ok(walk.end())
    }
}
