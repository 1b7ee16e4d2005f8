//! Finds the point at which recovery starts, and verifies that a log belongs to the data files.

use format::boot::Boot;
use format::log::Operation;
use format::{Lsn, Page, PageId, PageType};
use log::{Damage, EndReason, FIRST_BLOCK, Log, LogError, Walk};
use source::PageSource;

use crate::log_damage::LogDamage;
use crate::on_disk::readable;
use crate::refusal::Refusal;

/// The LSNs at which recovery starts: the checkpoint, the start of redo, and the start of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The LSN of the checkpoint that the boot page names.
    pub checkpoint: Lsn,
    /// The LSN from which records are redone.
    pub redo_from: Lsn,
    /// The LSN from which the log is read. It may be before the checkpoint, because the oldest transaction that was
    /// open at the checkpoint may have begun earlier.
    pub from: Lsn,
}

impl Start {
    /// Verifies that the log belongs to the data files. The log and the data files must have the same binding ID, and
    /// the log must contain the checkpoint that the boot page names.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the log belongs to another database or to another point in time, or cannot be read.
    pub fn of(source: &dyn PageSource, log: &Log) -> Result<Self, Refusal> {
        let binding = source.files().first().and_then(|file| file.binding_guid);
        if let (Some(binding), Some(file)) = (binding, log.files().first())
            && binding != file.binding_guid
        {
            return Err(Refusal::OtherDatabase);
        }
        let (checkpoint, redo_from) = start(source).ok_or(Refusal::NoBoot)?;
        let oldest = oldest_open(log, checkpoint)?;
        let from = oldest.into_iter().chain([redo_from, checkpoint]).min().unwrap_or(redo_from);
        Ok(Self { checkpoint, redo_from, from })
    }
}

/// The LSN of the checkpoint and the LSN at which redo starts, from the boot page.
fn start(source: &dyn PageSource) -> Option<(Lsn, Lsn)> {
    let bytes = readable(source, PageId::BOOT)?;
    let page = Page::new(&bytes);
    let boot = Boot::read(page).filter(|_| page.header().kind() == Some(PageType::Boot))?;
    Some((boot.checkpoint_lsn(), boot.redo_lsn()))
}

/// Verifies that a BEGIN_CKPT record is at the checkpoint's LSN. Returns a lower bound for the start of the oldest
/// transaction that was open at the checkpoint.
fn oldest_open(log: &Log, checkpoint: Lsn) -> Result<Option<Lsn>, Refusal> {
    let Some(mut walk) = Walk::from(log, checkpoint) else { return Err(without_checkpoint(log, checkpoint)?) };
    let mut oldest = None;
    let mut is_found = false;
    while let Some(block) = walk.next_block()? {
        let first = block.first_lsn();
        if !is_found && block.is_encrypted() && (first.vlf, first.block) == (checkpoint.vlf, checkpoint.block) {
            return Err(Refusal::Encrypted);
        }
        for (lsn, record) in block.records().skip_while(|(lsn, _)| *lsn < checkpoint) {
            match record.begin_checkpoint() {
                Some(begin) if lsn == checkpoint => {
                    is_found = true;
                    oldest = begin.oldest;
                }
                _ if !is_found => return Err(without_checkpoint(log, checkpoint)?),
                _ => {}
            }
            let listed = record.open_transactions().map(|open| open.begin).filter(|begin| *begin != Lsn::default());
            oldest = listed.chain(oldest).min();
            if record.operation() == Operation::END_CKPT {
                return Ok(oldest);
            }
        }
        if !is_found {
            return Err(without_checkpoint(log, checkpoint)?);
        }
    }
    if is_found { Ok(oldest) } else { Err(without_checkpoint(log, checkpoint)?) }
}

/// The reason why the log does not contain a checkpoint. Either the log is damaged or cut off at the checkpoint, or the
/// log comes from another point in time.
fn without_checkpoint(log: &Log, checkpoint: Lsn) -> Result<Refusal, LogError> {
    if let Some(file) = log.files().iter().find(|file| file.is_cut()) {
        return Ok(Refusal::CutOff { at: file.bytes });
    }
    let other_moment = Refusal::OtherMoment { checkpoint };
    let first = log.run().iter().find(|placed| placed.vlf.sequence == checkpoint.vlf);
    let first = first.map(|_| Lsn { block: FIRST_BLOCK, slot: 1, ..checkpoint });
    let Some(mut walk) = first.and_then(|first| Walk::from(log, first)) else { return Ok(other_moment) };
    let mut is_first = true;
    while let Some(block) = walk.next_block()? {
        let first = block.first_lsn();
        // A valid block begins at or after the LSN of the checkpoint, and the checkpoint was not found. Unless bytes
        // before this block are lost, the log does not belong to these data files.
        if (first.vlf, first.block) >= (checkpoint.vlf, checkpoint.block) {
            let is_lost = is_first && walk.lost_bytes() > 0 && first.block > checkpoint.block;
            let damaged = Refusal::CheckpointDamaged { checkpoint, damage: None };
            return Ok(if is_lost { damaged } else { other_moment });
        }
        is_first = false;
    }
    let Some(end) = walk.end() else { return Ok(other_moment) };
    match end.reason {
        EndReason::Written => Ok(other_moment),
        EndReason::Damaged { damage: Damage::Format(2), .. } => {
            let path = log.files().get(end.at.file).map(|file| file.path.clone()).unwrap_or_default();
            Ok(LogError::TooOld { path }.into())
        }
        _ => Ok(Refusal::CheckpointDamaged { checkpoint, damage: Some(LogDamage::at(log, &end)) }),
    }
}
