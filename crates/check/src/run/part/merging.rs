//! Merges all parts into one report.

use std::io::Read;

use catalog::Database;
use findings::registry::limits;
use findings::{FileRange, Finding, Options, Ranges, Report, RowsetCounts};
use source::{BackupPages, PageSource};
use sums::CheckSums;
use sums::wire::{Input, SumsError};

use super::body::Body;
use super::cut::{self, Untiled};
use crate::basis::progress::Progress;
use crate::checks::{Checks, Sums};
use crate::run::witness::{Faulty, Fingerprint};
use crate::run::{Run, run_with};
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::rounds::Rounds;

/// A part to be merged.
pub struct Part<'p> {
    /// The head with which the part was written: bytes that are not in the part, but on which its hashes depend.
    pub head: Vec<u8>,
    /// The bytes of the part.
    pub from: Box<dyn Read + 'p>,
}

/// The state of a run that has read its maps and can merge parts.
pub struct Surveyed<'s> {
    /// Fingerprint of the maps.
    pub fingerprint: Fingerprint,
    tile: &'s dyn Fn(&[FileRange]) -> Result<(), Untiled>,
}

impl Surveyed<'_> {
    /// Checks that these ranges contain each page to be read exactly once.
    ///
    /// # Errors
    ///
    /// [`Untiled`] with the first page that no range or more than one range contains.
    pub fn tile(&self, ranges: &[FileRange]) -> Result<(), Untiled> {
        (self.tile)(ranges)
    }
}

/// Like [`crate::run`], but other processes have made the sweep; `ranges` are the ranges of their parts. Calls `begin`
/// after the maps are read; `begin` may stop the run by returning an error. Then `next` supplies the parts, in any
/// order.
///
/// # Errors
/// The errors of `begin` and `next`; [`SumsError`] for a part that cannot be read.
pub fn merge<'p, E: From<SumsError>>(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    progress: &dyn Progress,
    ranges: &[FileRange],
    begin: impl FnOnce(Surveyed<'_>) -> Result<(), E>,
    next: impl FnMut() -> Option<Result<Part<'p>, E>>,
) -> Result<Report, E> {
    merge_with((source, database), options, progress, (ranges, 0, None), begin, next)
}

/// Like [`merge`], but this process reads no page again if it would have to read many bytes. Instead,
/// tasks answer the questions of `rounds`, each for one page range. The report is complete only if [`Rounds::end`]
/// returns no further questions.
///
/// # Errors
///
/// The errors of [`merge`].
pub fn merge_in_rounds<'p, E: From<SumsError>>(
    (source, database): (&dyn PageSource, &Database),
    options: &Options,
    progress: &dyn Progress,
    (ranges, rounds): (&[FileRange], &Rounds<'_>),
    begin: impl FnOnce(Surveyed<'_>) -> Result<(), E>,
    next: impl FnMut() -> Option<Result<Part<'p>, E>>,
) -> Result<Report, E> {
    merge_with((source, database), options, progress, (ranges, 0, Some(rounds)), begin, next)
}

/// Makes an interim report while `left` of the `ranges` have no part yet. The report includes all results from the maps
/// and the catalog, but only those findings of the parts that a single page proves. Sums are not
/// compared, and the report says so.
///
/// # Errors
/// The errors of [`merge`].
pub fn so_far<'p, E: From<SumsError>>(
    (source, database): (&dyn PageSource, &Database),
    options: &Options,
    progress: &dyn Progress,
    (ranges, left): (&[FileRange], u64),
    begin: impl FnOnce(Surveyed<'_>) -> Result<(), E>,
    next: impl FnMut() -> Option<Result<Part<'p>, E>>,
) -> Result<Report, E> {
    let report = merge_with((source, database), options, progress, (ranges, left, None), begin, next)?;
    // Counts would include only some of the rows and pages.
    Ok(Report { rowsets: report.rowsets.into_iter().map(RowsetCounts::uncounted).collect(), ..report })
}

fn merge_with<'p, E: From<SumsError>>(
    (source, database): (&dyn PageSource, &Database),
    options: &Options,
    progress: &dyn Progress,
    (ranges, left, rounds): (&[FileRange], u64, Option<&Rounds<'_>>),
    begin: impl FnOnce(Surveyed<'_>) -> Result<(), E>,
    mut next: impl FnMut() -> Option<Result<Part<'p>, E>>,
) -> Result<Report, E> {
    let source = Faulty::new(source);
    run_with(&source, database, options, (progress, rounds), |run, context, checks| {
        if !options.scope.reads_pages() {
            return Ok(Swept::new(checks, context.units.list().len()));
        }
        surveyed(run, context, begin)?;
        let mut swept = Swept::new(checks, context.units.list().len());
        source.backup().into_iter().for_each(BackupPages::forget_seen);
        run.progress.phase("merge", ranges.iter().map(|range| u64::from(range.pages)).sum());
        while let Some(part) = next() {
            let is_wanted = |finding: &Finding| left == 0 || finding.check.is_of_one_range();
            take_part((run, context, checks), (&source, part?), &mut swept, is_wanted, |_| Ok(()))?;
        }
        context.ranges = Ranges::new(ranges.to_vec());
        match left {
            0 => run.end_parts(context, checks, &mut swept),
            left => {
                run.is_open = true;
                run.coverage.note(&limits::WINDOW_OPEN, "database", left);
            }
        }
        Ok(swept)
    })
}

/// Calls `act` with the state of a run that has read its maps.
pub(crate) fn surveyed<R>(run: &Run<'_>, context: &Context<'_>, act: impl FnOnce(Surveyed<'_>) -> R) -> R {
    act(Surveyed { fingerprint: run.fingerprint, tile: &|ranges| cut::tile(context, ranges) })
}

/// Reads a part of a run, and adds its sums to `swept`. `rest` reads what follows the sums. Findings for which
/// `is_wanted` is false are left out.
pub(crate) fn take_part(
    (run, context, checks): (&mut Run<'_>, &Context<'_>, &Checks),
    (source, part): (&Faulty<'_>, Part<'_>),
    swept: &mut Swept<Sums>,
    is_wanted: impl Fn(&Finding) -> bool,
    rest: impl FnOnce(&mut Input<'_>) -> Result<(), SumsError>,
) -> Result<(), SumsError> {
    let Part { head, mut from } = part;
    let mut from = Input::new(&context.hash, &head, (context.space, context.units.list().len()), &mut from);
    let body = Body::take(&mut from, |finding| {
        if is_wanted(&finding) {
            run.findings.push(finding);
        }
    })?;
    rest(&mut from)?;
    from.finish()?;
    source.add(body.faults);
    source.backup().into_iter().for_each(|backup| backup.add_seen(&body.container));
    swept.merge(body.swept);
    swept.sums.gather(context.space);
    checks.bound(context, &mut swept.sums);
    Ok(())
}
