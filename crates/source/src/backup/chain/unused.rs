//! Why no restore can use a set.

use std::collections::HashMap;

use format::Lsn;

use super::Model;
use crate::backup::sets::SetKind;

/// Why no restore can use a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// Its files are damaged.
    Damaged,
    /// Some of its stripes were not found.
    StripesMissing,
    /// A differential whose full backup was not found, or log without any full backup.
    NoFull,
    /// A differential whose full backup is damaged or lacks stripes.
    FullNotWhole,
    /// From before or after a restore of the database to an earlier point: no full backup leads there.
    OtherFork,
    /// A log backup that ends before the oldest full backup: no restore can apply it.
    BeforeFull,
    /// A log backup after missing log: from this LSN, to this LSN.
    AfterGap(Lsn, Lsn),
    /// Written by a release whose backups are not understood.
    TooOld,
    /// A set of files of the database: chains start at full backups.
    OfFiles,
    /// A set of another type, or without LSNs.
    NotUnderstood,
}

/// Why no restore can use the set `index`; `gaps` has the log that is missing before log backups.
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
