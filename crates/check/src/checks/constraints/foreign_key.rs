//! Foreign keys: every key without NULL must exist in the referenced table.
//!
//! The check needs no sorted input, and its memory is bounded. The keys are divided into parts by their hash. Each pass
//! handles one part: it stores the hashes of the referenced keys in that part, and looks up the referencing keys of the
//! same part. The more keys the referenced table has, the more passes are needed. Hashes are keyed and 128 bits long,
//! so that no file can be crafted in which two different keys have the same hash.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use findings::registry::limits;
use format::RecordId;
use format::record::Record;

use super::Verdict;
use super::key::{KeyValue, key_value, place};
use super::plan::{KeyReference, Named, Plan, RowRule};
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::page::forwarding::locator_of;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{PageRange, Unread, each_row, stretches};

/// Bytes per stored key. The table is a half-full hash table with two hashes per key: the hash of the whole key, and
/// the hash of the letters by which a collation first compares the key.
const BYTES_PER_KEY: u64 = 80;
/// The minimum and maximum number of keys that a pass stores. The maximum number of keys needs about 40 MB. Within
/// these limits, a pass uses half of the unused memory grant.
const KEYS_PER_PASS: std::ops::RangeInclusive<u64> = 1 << 15..=1 << 19;

/// The page ranges of tables with foreign keys. One pass finds the ranges for all keys, because a database may have a
/// hundred thousand tables with a foreign key each.
pub(super) struct Places(BTreeMap<UnitIndex, PageRange>);

impl Places {
    /// The page ranges for the foreign keys in `plans` whose tables have rows.
    pub(super) fn of<'a>(context: &Context<'_>, swept: &Tallies, plans: impl Iterator<Item = &'a Plan>) -> Self {
        let mut units = BTreeSet::new();
        for plan in plans {
            let RowRule::KeyReference(key) = &plan.demand else { continue };
            if rows_of(swept, &mut plan.units.iter().copied()) > 0 {
                units.extend(key.from.iter().chain(&key.to).map(|(unit, _)| *unit));
            }
        }
        Self(stretches(context, &units))
    }
}

fn rows_of(swept: &Tallies, units: &mut dyn Iterator<Item = UnitIndex>) -> u64 {
    units.filter_map(|unit| swept.units.get(unit as usize)).map(|tally| tally.rows).sum()
}

/// Checks the rows of a foreign key.
pub(super) fn verdict(
    context: &Context<'_>,
    swept: &Tallies,
    plan: &Plan,
    key: &KeyReference,
    places: &Places,
) -> Verdict {
    let rows = rows_of(swept, &mut plan.units.iter().copied());
    let mut verdict = Verdict { rows, ..Verdict::default() };
    if verdict.rows == 0 {
        return verdict;
    }
    // If a page of the referenced table cannot be read, any key may refer to a row on that page.
    let unread = || Verdict {
        rows,
        undecided: [((&limits::PAGES_UNREADABLE, Cow::default()), rows)].into(),
        ..Verdict::default()
    };
    let memory = context.bytes_for_facts() as u64;
    let keys_per_pass = (memory / 2 / BYTES_PER_KEY).clamp(*KEYS_PER_PASS.start(), *KEYS_PER_PASS.end());
    let passes = rows_of(swept, &mut key.to.iter().map(|(unit, _)| *unit)).div_ceil(keys_per_pass).max(1);
    for pass in 0..passes {
        let mut keys: HashSet<(u64, u64)> = HashSet::new();
        // The pass that handles a key depends on the hash of the key's letters (the first level of comparison in a
        // collation), if the letters are known. Equal keys have the same letters, so the same pass handles them even if
        // the hashes of the whole keys differ.
        let in_pass = |hash: (u64, u64), letters: Option<(u64, u64)>| letters.unwrap_or(hash).0 % passes == pass;
        // If the value of a key is not certain, it is unknown which other keys are equal to this key.
        let (mut has_uncertain, mut has_unknown, mut all_have_letters) = (false, false, true);
        let referred = each_key(context, places, &key.to, &mut |_, columns, record| match key_value(
            &context.hash,
            columns,
            record,
        ) {
            KeyValue::Null => {}
            KeyValue::Unknown => has_unknown = true,
            KeyValue::Value { hash, is_certain, letters } => {
                has_uncertain |= !is_certain;
                all_have_letters &= letters.is_some();
                if in_pass(hash, letters) {
                    keys.insert(hash);
                    keys.extend(letters);
                }
            }
        });
        let referring = each_key(context, places, &key.from, &mut |at, columns, record| {
            let undecided = match key_value(&context.hash, columns, record) {
                KeyValue::Null => return,
                // An unknown key has no hash that would assign it to a pass, so it is reported in the first pass only.
                KeyValue::Unknown if pass > 0 => return,
                KeyValue::Unknown => Some(&limits::CONSTRAINT_KEYS_OFF_ROW),
                KeyValue::Value { hash, letters, .. } if !in_pass(hash, letters) || keys.contains(&hash) => return,
                KeyValue::Value { .. } if has_unknown => Some(&limits::CONSTRAINT_KEYS_OFF_ROW),
                // No referenced key has the same letters (the first level of comparison in a collation), so no
                // referenced key is equal to this key.
                KeyValue::Value { letters: Some(letters), .. } if all_have_letters && !keys.contains(&letters) => None,
                KeyValue::Value { is_certain, .. } if !is_certain || has_uncertain => {
                    Some(&limits::CONSTRAINT_KEYS_COLLATION)
                }
                KeyValue::Value { .. } => None,
            };
            match undecided {
                Some(limit) => *verdict.undecided.entry((limit, Cow::default())).or_default() += 1,
                None => verdict.violation(at, || place(columns, record)),
            }
        });
        if referred.and(referring).is_err() {
            return unread();
        }
    }
    verdict
}

/// Calls `visit` for each live row of one side of the foreign key, with the key columns of that side.
fn each_key(
    context: &Context<'_>,
    places: &Places,
    side: &[(UnitIndex, Vec<Named>)],
    visit: &mut dyn FnMut(RecordId, &[Named], &Record<'_>),
) -> Result<(), Unread> {
    let units = side.iter().map(|(unit, _)| *unit).collect();
    let stretch = PageRange::around(side.iter().filter_map(|(unit, _)| places.0.get(unit).copied()));
    each_row(context, &units, stretch, |unit, at, record| {
        if let (Some((_, columns)), Some(_)) = (side.iter().find(|(other, _)| *other == unit), locator_of(at, record)) {
            visit(at, columns, record);
        }
    })
}
