//! The sums of a sweep as text, for tests that compute the same sums in two ways.

use std::fmt::Write;

use catalog::Database;
use findings::{Coverage, Options, Report};
use format::{PageBytes, PageId};
use source::PageSource;
use sums::CheckSums;
use sums::spill::TempStore;
use sums::wire::SumsError;

use crate::basis::accounting::Metered;
use crate::basis::ledger::FindingCollector;
use crate::basis::progress::Silent;
use crate::basis::units::Units;
use crate::checks::Checks;
use crate::run::run_with;
use crate::survey;
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::{Target, sweep};

/// Every sum, count and bound of a sweep over all pages, one per line. If the options fix the seed of the hash, the
/// text can be compared with that of another sweep.
pub fn facts(source: &dyn PageSource, database: &Database, options: &Options) -> String {
    let metered = Metered::new(source);
    let bytes = Checks::needs(source, database, options).bytes_for_facts(options);
    let space = TempStore::new(options.temp_dir.clone(), bytes);
    let mut units = Units::of(database);
    let ledger = || FindingCollector::new(usize::MAX, &space);
    let survey = survey::survey((source, None), database, &mut units, &mut ledger(), &mut Coverage::default());
    let context = Context::new(source, database, options, units, survey, &space);
    let mut findings = ledger();
    let checks = Checks::new(&context);
    let swept = sweep(&context, &checks, &mut findings, &metered.meter, &Silent);
    text(swept, findings, &space)
}

/// Calls `then` with a function that computes facts from pages. The pages passed to that function, as stored on disk,
/// replace the pages of `source`. The facts of several pages are added up.
pub fn facts_of_pages(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    then: impl FnOnce(&mut dyn FnMut(&[(PageId, PageBytes)]) -> String),
) {
    let bytes = Checks::needs(source, database, options).bytes_for_facts(options);
    let space = TempStore::new(options.temp_dir.clone(), bytes);
    let mut units = Units::of(database);
    let ledger = || FindingCollector::new(usize::MAX, &space);
    let survey = survey::survey((source, None), database, &mut units, &mut ledger(), &mut Coverage::default());
    let context = Context::new(source, database, options, units, survey, &space);
    let checks = Checks::new(&context);
    let (mut target, mut scratch) = (Target::default(), <Checks as CheckList>::Scratch::default());
    then(&mut |pages| {
        let mut swept = Swept::new(&checks, context.units.list().len());
        for (id, bytes) in pages {
            target.page(&context, &checks, *id, &mut bytes.clone(), &mut swept, &mut scratch);
        }
        let mut findings = ledger();
        findings.extend(swept.tallies.findings.drain(..));
        text(swept, findings, &space)
    });
}

/// Runs a check. After the sweep, its sums are written as bytes, modified by `change`, and read back.
///
/// # Errors
/// The sums cannot be written or read.
pub fn run_with_sums_carried(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    mut change: impl FnMut(&mut Vec<u8>),
) -> Result<Report, SumsError> {
    run_with(source, database, options, (&Silent, None), |run, context, checks| {
        run.sweep(context, checks, |context, swept| {
            let mut bytes = Vec::new();
            swept.write(context, &mut bytes)?;
            change(&mut bytes);
            Swept::read(context, &mut bytes.as_slice())
        })
    })
}

/// The facts as text, one per line.
fn text(swept: Swept<impl CheckSums>, findings: FindingCollector, space: &TempStore) -> String {
    let Swept { tallies: mut swept, sums } = swept;
    let mut text = String::new();
    let mut put = |what: &str, fact: &dyn std::fmt::Debug| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what} {fact:?}");
    };
    for finding in findings.into_sorted() {
        put("finding", &finding);
    }
    let taken = swept.take_taken();
    put("taken", &taken);
    for (at, unit) in swept.units.iter().enumerate() {
        put("unit", &(at, unit));
    }
    put("sums", &sums.facts(space));
    put("pages", &(swept.pages_read, swept.pages_allocated, swept.unclaimed_pages, &swept.unread));
    text
}

#[cfg(test)]
pub(crate) mod tests;
