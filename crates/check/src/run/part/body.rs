//! The content of a part.

use std::collections::BTreeMap;
use std::path::Path;

use findings::Finding;
use source::backup::ContainerSeen;
use source::{FailedReads, ReadFaults};
use sums::wire::{Input, Output, SumsError, Wire};

use crate::basis::ledger::FindingCollector;
use crate::checks::Sums;
use crate::sweep::check_list::Swept;

use super::seen::{path_of, put_container, put_path, take_container};

/// The result of sweeping a range, without the findings. There may be many findings, so they are written before the
/// body.
pub(super) struct Body {
    /// Failed reads of the sweep.
    pub(super) faults: ReadFaults,
    /// The facts about the container of a backup that were read with the pages.
    pub(super) container: ContainerSeen,
    pub(super) swept: Swept<Sums>,
}

impl Body {
    /// Writes the findings and then the body; returns the number of findings.
    pub(super) fn put(&self, findings: FindingCollector, to: &mut Output<'_>) -> Result<u64, SumsError> {
        let mut count = 0;
        for finding in findings.into_sorted() {
            true.write(to)?;
            finding.write(to)?;
            count += 1;
        }
        false.write(to)?;
        put_faults(&self.faults, to)?;
        put_container(&self.container, to)?;
        self.swept.put(to)?;
        Ok(count)
    }

    /// Reads the output of [`Self::put`]; calls `findings` with each finding of the part.
    pub(super) fn take(from: &mut Input<'_>, findings: impl FnMut(Finding)) -> Result<Self, SumsError> {
        take_findings(from, findings)?;
        Ok(Self { faults: take_faults(from)?, container: take_container(from)?, swept: Swept::take(from)? })
    }
}

/// Reads the findings, which are at the start of a part.
pub(super) fn take_findings(from: &mut Input<'_>, mut findings: impl FnMut(Finding)) -> Result<(), SumsError> {
    while bool::read(from)? {
        findings(Wire::read(from)?);
    }
    Ok(())
}

/// Returns the failed reads that are in `now` but not in `known`. Reads may have failed in this process before the part
/// was swept; `known` contains them. Reads that succeeded on a retry are not included.
pub(super) fn met_since(known: &ReadFaults, now: ReadFaults) -> ReadFaults {
    let of = |path: &Path| known.failed.iter().find(|failed| failed.path == path);
    let new = |mut failed: FailedReads| {
        if let Some(known) = of(&failed.path) {
            failed.places.retain(|place, _| !known.places.contains_key(place));
            failed.unlisted = failed.unlisted.saturating_sub(known.unlisted);
        }
        (!failed.places.is_empty() || failed.unlisted > 0).then_some(failed)
    };
    ReadFaults { failed: now.failed.into_iter().filter_map(new).collect(), healed: Vec::new() }
}

fn put_faults(faults: &ReadFaults, to: &mut Output<'_>) -> Result<(), SumsError> {
    let ReadFaults { failed, healed: _ } = faults;
    (failed.len() as u64).write(to)?;
    for FailedReads { path, places, unlisted } in failed {
        put_path(path, to)?;
        (places.len() as u64).write(to)?;
        for (offset, text) in places {
            (offset.cast_signed(), text.clone()).write(to)?;
        }
        unlisted.write(to)?;
    }
    Ok(())
}

fn take_faults(from: &mut Input<'_>) -> Result<ReadFaults, SumsError> {
    let mut failed = Vec::new();
    for _ in 0..u64::read(from)? {
        let path = path_of(&Box::<[u8]>::read(from)?).ok_or_else(|| from.damaged("a path"))?;
        let mut places = BTreeMap::new();
        for _ in 0..u64::read(from)? {
            let (offset, text): (i64, String) = Wire::read(from)?;
            places.insert(offset.cast_unsigned(), text);
        }
        failed.push(FailedReads { path, places, unlisted: Wire::read(from)? });
    }
    Ok(ReadFaults { failed, healed: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_reads_that_failed_in_its_own_sweep() {
        let failed = |path: &str, places: &[u64], unlisted| FailedReads {
            path: path.into(),
            places: places.iter().map(|place| (*place, format!("at {place}"))).collect(),
            unlisted,
        };
        let faults = |failed: Vec<FailedReads>| ReadFaults { failed, healed: vec!["once".to_owned()] };
        let known = faults(vec![failed("a", &[0, 8192], 2), failed("c", &[5], 0)]);
        let now = faults(vec![failed("a", &[0, 8192, 16384], 5), failed("b", &[1], 0), failed("c", &[5], 0)]);
        let met = met_since(&known, now);
        assert_eq!(met.failed, [failed("a", &[16384], 3), failed("b", &[1], 0)]);
        assert!(met.healed.is_empty());
    }
}
