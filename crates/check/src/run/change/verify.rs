//! For tests: whether the parts in a ledger are what a sweep gives now.

use std::sync::{Mutex, PoisonError};

use catalog::Database;
use findings::{FileRange, Options};
use source::PageSource;
use sums::wire::Output;

use super::{Change, Ledger, NotByChange, PartKey};
use crate::basis::progress::Silent;
use crate::checks::Sums;
use crate::run::run_with;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::keeping::{Keeper, SweptRange};

/// Sweeps each range whose part would be used, and compares the part with the sums of the sweep, byte for byte. Returns
/// the number of parts, and the ranges whose parts differ.
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
        let mut parts = Vec::new();
        change.each_kept(run, |key, mut swept| {
            swept.put_in_order(context);
            parts.push((*key, encoded(context, key, &swept)));
        })?;
        for (key, part) in parts {
            let fresh = Fresh { key, part: Mutex::default(), range_pages: ledger.range_pages() };
            run.sweep_ranges((context, checks), &[key.range], &fresh);
            count += 1;
            if fresh.part.into_inner().unwrap_or_else(PoisonError::into_inner) != part {
                differing.push(key.range);
            }
        }
        Ok::<_, NotByChange>(Swept::new(checks, context.units.list().len()))
    })?;
    Ok((count, differing))
}

/// Receives the sums of a fresh sweep.
struct Fresh {
    key: PartKey,
    part: Mutex<Vec<u8>>,
    range_pages: u32,
}

impl Keeper<Sums> for Fresh {
    fn range_pages(&self) -> u32 {
        self.range_pages
    }

    fn keep(&self, context: &Context<'_>, done: &mut SweptRange<Sums>) {
        done.swept.put_in_order(context);
        *self.part.lock().unwrap_or_else(PoisonError::into_inner) = encoded(context, &self.key, &done.swept);
    }
}

fn encoded(context: &Context<'_>, key: &PartKey, swept: &Swept<Sums>) -> Vec<u8> {
    let (mut bytes, head) = (Vec::new(), key.to_bytes());
    let mut to = Output::new(&context.hash, &head, context.space, &mut bytes);
    let written = swept.put(&mut to).and_then(|()| to.finish());
    written.map(|()| bytes).unwrap_or_default()
}
