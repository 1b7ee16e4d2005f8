//! The reasons why no restore can use a set.

use std::collections::HashMap;

use format::Lsn;

use super::Model;
use crate::backup::sets::SetKind;

/// The reason why no restore can use a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// One of the set's files is damaged.
    Damaged,
    /// Some stripes of the set were not found.
    StripesMissing,
    /// A differential backup whose full backup was not found, or a log backup of a database without any full backup.
    NoFull,
    /// A differential backup whose full backup is damaged or lacks stripes.
    FullNotWhole,
    /// A set from before or after a restore of the database to an earlier point: its recovery fork connects to no full
    /// backup.
    OtherFork,
    /// A log backup that ends before the oldest full backup, so no restore can apply it.
    BeforeFull,
    /// A log backup after a gap in the log; the missing log is given by its first LSN and its end LSN.
    AfterGap(Lsn, Lsn),
    /// A set written by a SQL Server version whose backups this program does not understand.
    TooOld,
    /// A file, filegroup or partial backup; chains start only at full backups.
    OfFiles,
    /// A set of an unknown type, or without LSNs.
    NotUnderstood,
}

/// The reason why no restore can use the set `index`. `gaps` holds the missing log before log backups.
pub(super) fn reason(model: &Model<'_>, index: usize, gaps: &HashMap<usize, (Lsn, Lsn)>) -> Unused {
    let Some(set) = model.set(index) else { return Unused::NotUnderstood };
    let config = &set.set.config;
    let base = || model.bases.get(index).copied().flatten().and_then(|base| model.set(base));
    match set.set.kind {
        _ if set.is_too_old() => Unused::TooOld,
        _ if set.is_damaged => Unused::Damaged,
        _ if set.missing_stripes > 0 => Unused::StripesMissing,
        SetKind::Differential => match base() {
            None => Unused::NoFull,
            Some(full) if !full.is_whole() => Unused::FullNotWhole,
            Some(_) => Unused::OtherFork,
        },
        SetKind::Log if config.first_lsn.is_none() || config.last_lsn < config.first_lsn => Unused::NotUnderstood,
        SetKind::Log if model.fulls.is_empty() => Unused::NoFull,
        SetKind::Log => match gaps.get(&index) {
            Some(&(from, to)) => Unused::AfterGap(from, to),
            None if model.lines.with(config).any(|line| !model.starts(line).is_empty()) => Unused::BeforeFull,
            None => Unused::OtherFork,
        },
        SetKind::Files | SetKind::Partial => Unused::OfFiles,
        SetKind::Full | SetKind::Other(_) => Unused::NotUnderstood,
    }
}
