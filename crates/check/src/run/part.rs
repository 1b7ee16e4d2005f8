//! Parts: one check that is distributed over several processes. Each process sweeps ranges of pages and writes one part
//! per range. One process merges all parts and continues like a run after its sweep.
//!
//! Every degree of parallelism and every memory grant produces the same part, byte for byte. A part refers to units and
//! plans by numbers that follow from the catalog and the maps. So a process that reads the part must have read the same
//! catalog and maps; a [`Fingerprint`] proves that it has.

mod body;
mod cut;
mod error;
#[doc(hidden)]
pub mod frames;
mod merging;
pub(crate) mod seen;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{Read, Write};

use catalog::Database;
use findings::{Coverage, FileRange, LogAudit, Options, RangeRead, Ranges};
use format::PageId;
use source::{BackupPages, PageSource, ReadFaults};
use sums::HashKey;
use sums::hash::FactHash;

use crate::basis::accounting::Metered;
use crate::basis::ledger::FindingCollector;
use crate::basis::progress::Progress;
use crate::checks::index_match;
use crate::checks::{Checks, Sums};
use crate::run::change::{
    Groups, Ledger, LeftOut, NotByChange, Watched, others, ranges_head, read_ranges_of, sweep_of_task,
};
use crate::run::read_ranges;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::memory::MemoryBudget;
pub use crate::sweep::rounds::{Answer, Asked, Open, Question, Rounds, Wanted};
use sums::spill::TempStore;

use crate::basis::units::Units;
use crate::run::maps_of;
use crate::survey::Survey;
use crate::sweep;
pub use sums::wire::{Digest, SumsError};
use sums::wire::{Input, Output, Wire, hash_of};

pub use crate::run::witness::{Fingerprint, fingerprint_of, load};
use body::{Body, take_findings};
pub use cut::Untiled;
pub use error::PartError;
pub use merging::{Part, Surveyed, merge, merge_in_rounds, so_far};
pub(crate) use merging::{surveyed, take_part};

/// Sweeps ranges of a database independently of each other.
pub struct Sweeper<'r, 'a> {
    context: &'r mut Context<'a>,
    checks: &'r Checks,
    metered: &'r Metered<'a>,
    /// The pages of ranges that this process does not sweep.
    watched: &'r Watched<'a>,
    findings_bytes: usize,
    /// Fingerprint of the maps; the default value if this process did not read the maps itself.
    pub fingerprint: Fingerprint,
}

/// The result of sweeping a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Pages that were read.
    pub pages_read: u64,
    /// The number of findings on single pages.
    pub findings: u64,
    /// Whether every page could be read.
    pub is_read: bool,
}

/// Reads the maps of a database and calls `act` with a [`Sweeper`], which can sweep ranges of the database. Calls `act`
/// with `None` if no table page needs to be read: only allocation or the catalog is checked, or the database is
/// encrypted.
pub fn sweeper<R>(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    progress: &dyn Progress,
    act: impl FnOnce(Option<&mut Sweeper<'_, '_>>) -> R,
) -> R {
    if !is_swept(database, options) {
        return act(None);
    }
    progress.phase("survey", 0);
    let survey = |metered: &Metered<'_>, needs: &MemoryBudget, space: &TempStore| {
        progress.begin(source, database, needs.granted_bytes(options));
        // The findings are dropped: the process that merges the parts reads the maps too and reports the same findings.
        let mut findings = FindingCollector::new(needs.bytes_for_findings(options), space);
        let mut units = Units::of(database);
        let shelf = needs.shelf(options, space);
        let results = (&mut findings, &mut Coverage::default());
        let (maps, fingerprint) = maps_of((metered, database), (options, shelf.as_ref()), &mut units, results);
        let survey = maps.uncompared(&units);
        Ok::<_, Infallible>((units, survey, fingerprint))
    };
    let Ok(done) = sweeper_of(source, database, options, survey, |sweeper| act(Some(sweeper)));
    done
}

/// Like [`sweeper`], but another process has read the maps. The input is the output of [`Sweeper::write_common`]; call
/// [`Sweeper::read_maps`] before sweeping a range. Calls `act` with `None` in the same cases as [`sweeper`].
///
/// # Errors
/// [`SumsError`] if the input was not written for this database.
pub fn sweeper_without_maps<R>(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    (head, from): (&[u8], &mut dyn Read),
    act: impl FnOnce(Option<&mut Sweeper<'_, '_>>) -> R,
) -> Result<R, SumsError> {
    if !is_swept(database, options) {
        return Ok(act(None));
    }
    let survey = |_: &Metered<'_>, _: &MemoryBudget, space: &TempStore| {
        let (hash, mut units) = (options.fact_hash(), Units::of(database));
        let mut from = Input::new(&hash, head, (space, units.list().len()), from);
        let survey = Survey::read_common(source, &mut units, &mut from)?;
        from.finish()?;
        Ok((units, survey, Fingerprint::default()))
    };
    sweeper_of(source, database, options, survey, |sweeper| act(Some(sweeper)))
}

/// Whether any table page needs to be read.
fn is_swept(database: &Database, options: &Options) -> bool {
    !database.is_encrypted && options.scope.reads_pages()
}

fn sweeper_of<R, E>(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    survey: impl FnOnce(&Metered<'_>, &MemoryBudget, &TempStore) -> Result<(Units, Survey, Fingerprint), E>,
    act: impl FnOnce(&mut Sweeper<'_, '_>) -> R,
) -> Result<R, E> {
    let watched = Watched::new(source);
    let metered = Metered::new(&watched);
    let needs = Checks::needs(&metered, database, options);
    let space = TempStore::new(options.temp_dir.clone(), needs.bytes_for_facts(options));
    let (units, survey, fingerprint) = survey(&metered, &needs, &space)?;
    let mut context = Context::new(&metered, database, options, units, survey, &space);
    let checks = Checks::new(&context);
    Ok(act(&mut Sweeper {
        context: &mut context,
        checks: &checks,
        metered: &metered,
        watched: &watched,
        findings_bytes: needs.bytes_for_findings(options),
        fingerprint,
    }))
}

impl Sweeper<'_, '_> {
    /// One line that says why maps may be incomplete, if a temporary file could not be written or read.
    pub fn lost(&self) -> Option<String> {
        self.context.space.error()
    }

    /// Splits all pages to be read into ascending ranges of about this many pages, or fewer.
    pub fn ranges(&self, pages: u64) -> Vec<FileRange> {
        cut::ranges(self.context, pages)
    }

    /// Checks that these ranges contain each page to be read exactly once.
    ///
    /// # Errors
    ///
    /// [`Untiled`] with the first page that no range or more than one range contains.
    pub fn tile(&self, ranges: &[FileRange]) -> Result<(), Untiled> {
        cut::tile(self.context, ranges)
    }

    /// Writes the facts that are common to the maps of all ranges, for processes that do not read the maps themselves.
    /// `head` is not written, but the hashes of the output depend on it. So a reader of the output needs the same
    /// `head`.
    ///
    /// # Errors
    ///
    /// [`SumsError`] if the facts cannot be written.
    pub fn write_common(&self, head: &[u8], to: &mut dyn Write) -> Result<(), SumsError> {
        let mut to = Output::new(&self.context.hash, head, self.context.space, to);
        self.context.survey.write_common(&self.context.units, &mut to)?;
        to.finish()
    }

    /// Writes the maps of a range, which must be one of [`Self::ranges`].
    ///
    /// # Errors
    /// [`SumsError`] if the maps cannot be written.
    pub fn write_maps(&self, range: FileRange, head: &[u8], to: &mut dyn Write) -> Result<(), SumsError> {
        let mut to = Output::new(&self.context.hash, head, self.context.space, to);
        self.context.survey.write_stretch(range, &mut to)?;
        to.finish()
    }

    /// Reads the output of [`Self::write_maps`]. Afterwards, only this range can be swept.
    ///
    /// # Errors
    /// [`SumsError`] if the input was not written for this range.
    pub fn read_maps(&mut self, range: FileRange, head: &[u8], from: &mut dyn Read) -> Result<(), SumsError> {
        let units = self.context.units.list().len();
        let mut from = Input::new(&self.context.hash, head, (self.context.space, units), from);
        self.context.survey.read_stretch(range, &mut from)?;
        from.finish()
    }

    /// Describes the pages in use in each of these ranges. Each range is extended to the start of the next range, so
    /// that the ranges together contain all pages of their files.
    pub fn tiles(&self, ranges: &[FileRange]) -> Vec<RangeRead> {
        read_ranges::tiles(self.context, ranges)
    }

    /// Answers a question about a range by reading its pages a second time.
    ///
    /// # Errors
    ///
    /// [`PartError`]. After an error, the output must not be used. A question that was written by another run is
    /// rejected as damaged.
    pub fn answer(
        &mut self,
        question: &mut Question,
        range: FileRange,
        head: &[u8],
        to: &mut dyn Write,
    ) -> Result<(), PartError> {
        (self.context.taken, self.context.bad_units) = question.take_known();
        let context = &*self.context;
        let mut to = Output::new(&context.hash, head, context.space, to);
        if !index_match::answer((context, &self.checks.indexes), &question.of, range, &mut to)? {
            return Err(SumsError::Damaged { at: 0, what: "a question" }.into());
        }
        to.finish()?;
        match context.survey.has_missed() {
            true => Err(PartError::Beyond(range)),
            false => Ok(()),
        }
    }

    /// Sweeps a range and writes the part. The hashes of the part depend on `head`, so a reader of the part needs the
    /// same `head`.
    ///
    /// # Errors
    ///
    /// [`PartError`]. After an error, the output must not be used.
    pub fn sweep(
        &mut self,
        range: FileRange,
        head: &[u8],
        progress: &dyn Progress,
        to: &mut dyn Write,
    ) -> Result<Done, PartError> {
        self.context.range = Some(range);
        self.context.ranges = Ranges::new(vec![range]);
        let mut begun = self.begin();
        let context = &*self.context;
        let mut swept = sweep::sweep(context, self.checks, &mut begun.findings, &self.metered.meter, progress);
        self.checks.end_part(context, &mut swept, &mut begun.findings);
        let is_read = !swept.tallies.unread.may_be_in(range.file_id, range.first..range.end());
        let mut to = Output::new(&context.hash, head, context.space, to);
        let (pages_read, findings) = self.end(range, (begun, swept), &mut to)?;
        to.finish()?;
        match self.lost() {
            Some(error) => Err(PartError::Lost(error)),
            None => Ok(Done { pages_read, findings, is_read }),
        }
    }

    /// Finds the ranges whose sums are not in a ledger, or have changed since. Keeps the ledger as it is.
    ///
    /// # Errors
    /// [`NotByChange`] if the ledger cannot be used.
    pub fn left_out(&self, ledger: &dyn Ledger, progress: &dyn Progress) -> Result<LeftOut, NotByChange> {
        LeftOut::find((self.context, self.checks), ledger, progress)
    }

    /// Like [`Self::ranges`], but only pages that must be swept count. Each range has at most `most` pages to be read in
    /// a whole run. Returns the ranges with the numbers of pages that must be swept.
    pub fn ranges_left(&self, left_out: &LeftOut, pages: u64, most: u64) -> Vec<(FileRange, u64)> {
        cut::counted_ranges(self.context, (pages, most), |file, first, pages| left_out.pages_swept(file, first, pages))
    }

    /// Writes which pages of a range must be swept. The hashes of the output depend on `head`.
    ///
    /// # Errors
    /// [`SumsError`] if that cannot be written.
    pub fn write_ranges(
        &self,
        left_out: &LeftOut,
        range: FileRange,
        head: &[u8],
        to: &mut dyn Write,
    ) -> Result<(), SumsError> {
        let mut to = Output::new(&self.context.hash, &ranges_head(head), self.context.space, to);
        left_out.write(range, &mut to)?;
        to.finish()
    }

    /// Sweeps some ranges, which are ascending, and writes a part that also has the sums of each small range of
    /// `range_pages` pages, for [`crate::change::merge_by_change`]. The maps of these ranges must have been read.
    ///
    /// # Errors
    ///
    /// [`PartError`]. After an error, the output must not be used.
    pub fn sweep_ranges(
        &mut self,
        (range, ranges, range_pages): (FileRange, &[FileRange], u32),
        head: &[u8],
        progress: &dyn Progress,
        to: &mut dyn Write,
    ) -> Result<Done, PartError> {
        (self.context.range, self.context.ranges) = (None, Ranges::default());
        self.watched.keep(others(self.context, ranges));
        self.watched.take_suspects();
        let mut begun = self.begin();
        let context = &*self.context;
        let groups = Groups::new(range_pages, context.space);
        let to_sums = |error| match error {
            NotByChange::Sums(error) => PartError::Sums(error),
            error => PartError::Lost(error.to_string()),
        };
        let swept = sweep_of_task(
            (context, self.checks),
            &groups,
            ranges,
            &mut begun.findings,
            (&self.metered.meter, progress),
        )
        .map_err(to_sums)?;
        let is_read = !swept.tallies.unread.may_be_in(range.file_id, range.first..range.end());
        let mut to = Output::new(&context.hash, head, context.space, to);
        let (pages_read, findings) = self.end(range, (begun, swept), &mut to)?;
        self.watched.take_suspects().write(&mut to)?;
        groups.put(&mut to)?;
        to.finish()?;
        match self.lost() {
            Some(error) => Err(PartError::Lost(error)),
            None => Ok(Done { pages_read, findings, is_read }),
        }
    }

    /// Begins the sweep of a part.
    fn begin(&self) -> Begun {
        let context = &*self.context;
        context.source.backup().into_iter().for_each(BackupPages::forget_seen);
        let findings = FindingCollector::new(self.findings_bytes, context.space);
        Begun { known: context.source.read_faults(), findings: findings.recovered(context.is_clean()) }
    }

    /// Writes the result of a sweep. Returns the number of pages that were read, and the number of findings.
    fn end(
        &self,
        range: FileRange,
        (begun, mut swept): (Begun, Swept<Sums>),
        to: &mut Output<'_>,
    ) -> Result<(u64, u64), PartError> {
        let context = &*self.context;
        swept.put_in_order(context);
        if context.survey.has_missed() {
            return Err(PartError::Beyond(range));
        }
        if let Some(error) = context.space.error() {
            return Err(PartError::Lost(error));
        }
        let pages_read = swept.tallies.pages_read;
        let body = Body {
            faults: body::met_since(&begun.known, context.source.read_faults()),
            container: context.source.backup().map(BackupPages::seen).unwrap_or_default(),
            swept,
        };
        Ok((pages_read, body.put(begun.findings, to)?))
    }
}

/// What is known at the beginning of the sweep of a part.
struct Begun {
    /// The reads that had failed before.
    known: ReadFaults,
    findings: FindingCollector,
}

/// Reads the output of [`Sweeper::write_ranges`]: the ranges that must be swept. Neighboring ranges are joined.
///
/// # Errors
/// [`SumsError`] if the input was not written for this range, with this `key` and `head`.
pub fn read_ranges_left(
    key: &HashKey,
    (range, range_pages): (FileRange, u32),
    head: &[u8],
    from: &mut dyn Read,
) -> Result<Vec<FileRange>, SumsError> {
    let (hash, space) = (FactHash::of_key(key), TempStore::default());
    let mut from = Input::new(&hash, &ranges_head(head), (&space, 0), from);
    let ranges = read_ranges_of(range, range_pages, &mut from)?;
    from.finish()?;
    Ok(ranges)
}

/// Reads a part to its end and verifies that the part is unchanged and was written with this `key` and this `head`.
/// Returns a digest of the part. Different parts have different digests.
///
/// # Errors
/// [`SumsError`] if the verification fails.
pub fn verify(key: &HashKey, head: &[u8], from: &mut dyn Read) -> Result<Digest, SumsError> {
    Input::new(&FactHash::of_key(key), head, (&TempStore::default(), 0), from).verify()
}

/// The pages that the findings of a part refer to, but not more than `most` pages.
///
/// # Errors
/// [`SumsError`] if the part was changed after it was written.
pub fn pages_with_findings(key: &HashKey, part: &mut Part<'_>, most: usize) -> Result<BTreeSet<PageId>, SumsError> {
    let (hash, space) = (FactHash::of_key(key), TempStore::default());
    let mut from = Input::new(&hash, &part.head, (&space, 0), &mut part.from);
    let mut pages = BTreeSet::new();
    take_findings(&mut from, |finding| {
        let named = finding.page.into_iter().chain(finding.ref_page);
        pages.extend(named.take(most.saturating_sub(pages.len())));
    })?;
    Ok(pages)
}

/// The `head` with which the results of comparing the pages with the log are encoded.
const AUDIT: &[u8] = b"audit";

/// Encodes the results of comparing the pages with the log, so that the comparison is made only once for all processes
/// of a run.
///
/// # Errors
/// Fails only if memory cannot be allocated.
pub fn write_audit(key: &HashKey, audit: &LogAudit) -> Result<Vec<u8>, SumsError> {
    let mut bytes = Vec::new();
    let (hash, space) = (FactHash::of_key(key), TempStore::default());
    let mut to = Output::new(&hash, AUDIT, &space, &mut bytes);
    audit.write(&mut to)?;
    to.finish()?;
    Ok(bytes)
}

/// Reads the output of [`write_audit`].
///
/// # Errors
///
/// [`SumsError`] if the bytes were not written by [`write_audit`] with the same key.
pub fn read_audit(key: &HashKey, mut bytes: &[u8]) -> Result<LogAudit, SumsError> {
    let (hash, space) = (FactHash::of_key(key), TempStore::default());
    let mut from = Input::new(&hash, AUDIT, (&space, 0), &mut bytes);
    let audit = LogAudit::read(&mut from)?;
    from.finish()?;
    Ok(audit)
}

/// Computes the hash of `bytes` with a secret key.
pub fn digest(key: &HashKey, bytes: &[u8]) -> Digest {
    hash_of(&FactHash::of_key(key), &Digest::default(), bytes)
}

#[cfg(test)]
mod tests;
