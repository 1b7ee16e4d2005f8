//! For tests: whether the parts in a ledger are what a sweep gives now, and the sums of groups what a merge gives.

use std::sync::{Mutex, PoisonError};

use catalog::Database;
use findings::{FileRange, Options};
use source::PageSource;
use sums::names::Translation;

use super::groups::{merged, part_of};
use super::kept::{Fitting, Found};
use super::states::States;
use super::{Change, KeptGroup, Ledger, NotByChange, Part, PartKey, Piece};
use crate::basis::progress::Silent;
use crate::checks::Sums;
use crate::run::run_with;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::keeping::{Keeper, SweptRange};

/// Sweeps each range whose part would be used, and compares the part with the sums of the sweep, byte for byte, and the
/// sums of each group that would be used with a merge of its parts. Returns the number of parts, and the ranges whose
/// parts differ; for a group, the first of its ranges.
///
/// # Errors
/// [`NotByChange`] as for [`super::run_by_change`].
pub fn differing_parts(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    ledger: &dyn Ledger,
) -> Result<(u64, Vec<FileRange>), NotByChange> {
    let (mut count, mut differing) = (0, Vec::new());
    run_with(source, database, options, (&Silent, None), |run, context, checks| {
        let context = &*context;
        let change = Change::new(context, checks, ledger)?;
        let (mut parts, mut groups) = (Vec::new(), Vec::new());
        let states = States::of(context, ledger.range_pages());
        change.each_fitting(run.progress, states, |Found { fitting, group, translation, mut swept, .. }| {
            let keys = match fitting {
                Fitting::Part(key) => std::slice::from_ref(key),
                Fitting::Group(keys) => {
                    // The numbers of units and plans are translated, so the bytes are made anew.
                    groups.push((keys.to_vec(), merged(context, keys, &mut swept)?));
                    keys
                }
            };
            for key in keys {
                parts.push((*key, change.again(key, translation, &mut *group)?));
            }
            Ok(())
        })?;
        let mut fresh_parts = Vec::new();
        for (key, part) in parts {
            let fresh = Fresh { key, swept: Mutex::default(), range_pages: ledger.range_pages() };
            run.sweep_ranges((context, checks), &[key.range], &fresh);
            count += 1;
            let fresh = fresh.swept.into_inner().unwrap_or_else(PoisonError::into_inner);
            if fresh.as_ref().map(|(fresh, _)| fresh) != Some(&part) {
                differing.push(key.range);
            }
            fresh_parts.extend(fresh);
        }
        for (keys, bytes) in groups {
            let mut all = change.nothing();
            let (of_group, others) =
                fresh_parts.into_iter().partition::<Vec<_>, _>(|(part, _)| keys.contains(&part.key));
            fresh_parts = others;
            let is_whole = of_group.len() == keys.len();
            for (_, mut swept) in of_group {
                swept.sums.trees.take_bounds();
                all.merge(swept);
            }
            if !is_whole || merged(context, &keys, &mut all)? != bytes {
                differing.extend(keys.first().map(|key| key.range));
            }
        }
        Ok::<_, NotByChange>(change.nothing())
    })?;
    Ok((count, differing))
}

impl Change<'_> {
    /// Reads a part of an earlier run, and writes it with the present numbers.
    fn again(&self, key: &PartKey, translation: &Translation, group: &mut dyn KeptGroup) -> Result<Part, NotByChange> {
        let at = group.keys().iter().position(|other| other == key).unwrap_or_default();
        let mut swept = self.read(&key.to_bytes(), translation, &group.read(Piece::Sums(at))?)?;
        swept.sums.trees.add_bounds(vec![self.read_bounds(key, translation, &group.read(Piece::Bounds(at))?)?]);
        Ok(part_of(self.context, *key, &mut swept)?)
    }
}

/// Receives the sums of a fresh sweep.
struct Fresh {
    key: PartKey,
    swept: Mutex<Option<(Part, Swept<Sums>)>>,
    range_pages: u32,
}

impl Keeper<Sums> for Fresh {
    fn range_pages(&self) -> u32 {
        self.range_pages
    }

    fn keep(&self, context: &Context<'_>, mut done: SweptRange<Sums>) -> Option<Swept<Sums>> {
        let part = part_of(context, self.key, &mut done.swept).ok()?;
        *self.swept.lock().unwrap_or_else(PoisonError::into_inner) = Some((part, done.swept));
        None
    }
}
