//! Settling, the last phase: decides which findings are proofs. If something unknown may explain a finding, the finding
//! is demoted: it keeps all its values, and is listed under the limit that demotes it.

use catalog::{ChainFault, Database, Fetched, fetch};
use findings::registry::Policy;
use findings::registry::limits::{self, Limit};
use findings::{Coverage, Finding, Findings, List, Options, Scope, Warning};
use format::version::NEWEST;
use format::{Page, PageBytes, PageId};
use source::{FileChange, PageSource};
use sums::spill::TempStore;

use crate::basis::in_flight::InFlight;
use crate::basis::ledger::FindingCollector;
use crate::checks::{Checks, Sums};
use crate::survey::PageSet;
use crate::sweep::context::Context;
use crate::sweep::rereads::{Moved, Rereads};
use crate::sweep::warnings;

/// The findings of a run, divided into proofs and demoted findings.
pub(crate) struct Settled {
    /// Findings that are proofs.
    pub(crate) findings: Findings,
    /// Findings that something unknown may explain, each with its limit.
    pub(crate) demoted: Findings,
    /// How the files have changed during the run.
    pub(crate) moved: Moved,
}

/// Notes that allocation maps could not be read back from a temporary file: pages in use may have been taken for free ones.
fn note_lost(is_lost: bool, coverage: &mut Coverage) {
    if is_lost {
        coverage.note_as("pages", &limits::DEMOTED_MAPS_LOST, "database", 0);
    }
}

/// Keeps the findings that the options request, in listing order, and separates proofs from the other findings.
pub(crate) fn settle(
    context: &Context<'_>,
    (checks, sums): (&Checks, &Sums),
    findings: FindingCollector,
    coverage: &mut Coverage,
) -> Settled {
    let doubts = Doubts::of(context);
    let newer = context.source.snapshot().map_or(0, source::Snapshot::newer_pages);
    if newer > 0 {
        coverage.note(&limits::SNAPSHOT_NEWER, "database", newer);
    }
    let mut rereads = Rereads::new(context.source, context.database, context.options.settle_page);
    // The two lists share the memory for findings.
    let limit_bytes = findings.limit_bytes() / if doubts.any() || rereads.has_changes() { 2 } else { 1 };
    let mut kept = List::new(limit_bytes, context.space);
    let mut demoted = List::new(limit_bytes, context.space);
    let mut proven_pages = PageSet::new(&context.survey.files);
    let mut demoted_pages = PageSet::new(&context.survey.files);
    let mut first_limit = None;
    for finding in findings.into_sorted().filter(|finding| is_asked_for(context, finding)) {
        let Some(finding) = checks.proven(context, sums, finding, coverage) else { continue };
        if context.ended.leaves_out(&finding) {
            coverage.note(&limits::CATALOG_AFTER_PRE_CHECK, context.ended.name(&finding), 1);
            continue;
        }
        if let Some(limit) = doubts.limit(&finding).or_else(|| rereads.limit(&finding)) {
            finding.page.into_iter().for_each(|page| demoted_pages.insert(page));
            first_limit.get_or_insert(limit);
            demoted.push(demote(finding, limit, coverage));
        } else {
            if !finding.check.policy.is_explained {
                finding.page.into_iter().for_each(|page| proven_pages.insert(page));
            }
            kept.push(finding);
        }
    }
    rereads.settle();
    let kept = kept.finish();
    note_lost(context.survey.has_missed(), coverage);
    if first_limit.is_none() && !rereads.may_have_moved() && !context.survey.has_missed() {
        return Settled { findings: kept, demoted: demoted.finish(), moved: rereads.end(coverage) };
    }
    let mut proven = List::new(limit_bytes, context.space);
    for finding in &kept {
        let page = finding.page.unwrap_or_default();
        // A finding that only refers to another message is demoted together with that message.
        let is_alone = finding.check.policy.is_explained && !proven_pages.contains(page);
        let of_message = first_limit.filter(|_| is_alone && demoted_pages.contains(page));
        // The sets of pages are in the temporary file of the maps too.
        let of_maps = context.survey.has_missed().then_some(&limits::DEMOTED_MAPS_LOST);
        match rereads.limit_of_moved(&finding).or(of_message).or(of_maps) {
            Some(limit) => demoted.push(demote(finding.into_owned(), limit, coverage)),
            None => proven.push(finding.into_owned()),
        }
    }
    Settled { findings: proven.finish(), demoted: demoted.finish(), moved: rereads.end(coverage) }
}

/// Settles the findings about the page headers of an encrypted database. Only a change of the files may explain them.
pub(crate) fn settle_headers(
    (source, database): (&dyn PageSource, &Database),
    (options, is_lost): (&Options, bool),
    (findings, space): (FindingCollector, &TempStore),
    coverage: &mut Coverage,
) -> Settled {
    note_lost(is_lost, coverage);
    let of_maps = is_lost.then_some(&limits::DEMOTED_MAPS_LOST);
    let mut rereads = Rereads::new(source, database, options.settle_page);
    let limit_bytes = findings.limit_bytes() / if rereads.has_changes() || is_lost { 2 } else { 1 };
    let is_asked_for = |finding: &Finding| !options.physical_only || finding.check.physical_only;
    let (mut kept, mut demoted) = (List::new(limit_bytes, space), List::new(limit_bytes, space));
    for finding in findings.into_sorted().filter(is_asked_for) {
        match rereads.limit(&finding).or(of_maps) {
            Some(limit) => demoted.push(demote(finding, limit, coverage)),
            None => kept.push(finding),
        }
    }
    rereads.settle();
    let mut proven = List::new(limit_bytes, space);
    for finding in &kept.finish() {
        match rereads.limit_of_moved(&finding) {
            Some(limit) => demoted.push(demote(finding.into_owned(), limit, coverage)),
            None => proven.push(finding.into_owned()),
        }
    }
    Settled { findings: proven.finish(), demoted: demoted.finish(), moved: rereads.end(coverage) }
}

/// Settles the contradictions between the pages and the log: proofs, findings that a change of the files may explain, and
/// the warnings about changed files.
pub(crate) fn settle_audit(
    source: &dyn PageSource,
    (findings, log_changes): (Vec<Finding>, Vec<FileChange>),
    coverage: &mut Coverage,
) -> (Vec<Finding>, Vec<Finding>, Vec<Warning>) {
    let moved = Moved::of_audit(source.changes().into_iter().chain(log_changes), !findings.is_empty());
    moved.note(coverage);
    let warnings = warnings::changed(&moved);
    match moved.files.is_empty() {
        true => (findings, Vec::new(), warnings),
        false => {
            let demoted =
                findings.into_iter().map(|finding| demote(finding, &limits::INPUT_CHANGED, coverage)).collect();
            (Vec::new(), demoted, warnings)
        }
    }
}

/// Marks a finding that `limit` may explain, and notes that its message is not verified.
fn demote(finding: Finding, limit: &'static Limit, coverage: &mut Coverage) -> Finding {
    coverage.note_as(&format!("message {}", finding.check.msg), limit, "database", 1);
    Finding { demoted_by: Some(limit), ..finding }
}

/// All facts about the database that are unknown and may therefore explain findings.
struct Doubts<'a> {
    in_flight: Option<&'a InFlight>,
    in_flight_limit: &'static Limit,
    general: Vec<Doubt>,
}

/// A fact about the whole database that is unknown, and a test for the findings that this fact may explain.
struct Doubt {
    limit: &'static Limit,
    rests_on_it: RestsOnIt,
}

/// Returns whether findings of checks with this policy may be explained by the unknown fact.
type RestsOnIt = fn(Policy) -> bool;

impl<'a> Doubts<'a> {
    fn of(context: &'a Context<'_>) -> Self {
        let in_flight = context.in_flight.as_ref().filter(|in_flight| !in_flight.is_empty());
        let in_flight_limit = match context.source.snapshot() {
            Some(_) => &limits::SNAPSHOT_NEWER,
            None => &limits::DEMOTED_IN_FLIGHT,
        };
        let is_newer = context.database.boot.as_ref().is_some_and(|boot| boot.version > NEWEST);
        let on_maps: RestsOnIt = |policy| policy.rests_on_maps;
        let log_limit = if context.source.has_one_moment() { &limits::DEMOTED_LOG } else { &limits::DEMOTED_MOMENTS };
        // The description of a row in the catalog may be that of another point in time or of another database, so not
        // even a page and its rows prove anything.
        let is_mixed = context.source.carved().is_some_and(|carved| !carved.has_one_moment());
        let all: [(bool, &'static Limit, RestsOnIt); 6] = [
            (is_mixed, &limits::DEMOTED_CARVED, |_| true),
            // Maps that could not be read back from a temporary file: any check may have taken a page for another's.
            (context.survey.has_missed(), &limits::DEMOTED_MAPS_LOST, |_| true),
            (in_flight.is_none() && needs_the_log(context), log_limit, |policy| policy.rests_on_log),
            (!context.survey.unread.is_empty(), &limits::DEMOTED_MAPS, on_maps),
            (is_catalog_unread(context), &limits::DEMOTED_CATALOG, on_maps),
            (is_newer, &limits::DEMOTED_RELEASE, |policy| policy.rests_on_release),
        ];
        let general = all.into_iter().filter(|(is_met, ..)| *is_met);
        Self {
            in_flight,
            in_flight_limit,
            general: general.map(|(_, limit, rests_on_it)| Doubt { limit, rests_on_it }).collect(),
        }
    }

    fn any(&self) -> bool {
        self.in_flight.is_some() || !self.general.is_empty()
    }

    /// The first limit that may explain a finding; `None` if no limit explains it. One limit is enough to demote a
    /// finding.
    fn limit(&self, finding: &Finding) -> Option<&'static Limit> {
        let policy = finding.check.policy;
        if self.in_flight.is_some_and(|in_flight| in_flight.touches(finding, policy.rests_on_log)) {
            return Some(self.in_flight_limit);
        }
        self.general.iter().find(|doubt| (doubt.rests_on_it)(policy)).map(|doubt| doubt.limit)
    }
}

/// Whether part of the catalog, or the boot page that points to it, could not be read when the catalog was loaded. Two
/// cases do not count as failed reads, because damage can cause them: a pointer into a file that was not given, and a
/// page with the encryption flag.
fn is_catalog_unread(context: &Context<'_>) -> bool {
    let is_boot =
        |fetched| matches!(fetched, Fetched::Sound(bytes) if format::boot::Boot::read(Page::new(&bytes)).is_some());
    let is_encrypted = |bytes: &PageBytes| Page::new(bytes).header().is_encrypted();
    let is_failed_read = |page: PageId| {
        context.source.contains(page) && !context.source.read_page(page).is_some_and(|bytes| is_encrypted(&bytes))
    };
    let mut gaps = context.database.gaps.iter();
    // If the catalog was loaded without the boot page, but the boot page can be read now, an earlier read of it must
    // have failed.
    gaps.any(|gap| matches!(gap.fault, Some(ChainFault::Unread { page }) if is_failed_read(page)))
        || context.database.boot.is_none() && is_boot(fetch(context.source, PageId::BOOT))
}

/// Returns whether the log may contain changes that are missing in the files. If so, until recovery applies the log,
/// two places in the files may contradict each other, and allocated pages may not have been written yet. The LSN of the
/// last checkpoint does not show which pages are affected, because a transaction may begin before the checkpoint and
/// end after the start of the checkpoint.
fn needs_the_log(context: &Context<'_>) -> bool {
    // Data files without a boot page are checked page by page, and no log is needed for this. A backup without a boot
    // page still needs its log.
    (context.database.boot.is_some() || context.source.backup().is_some()) && !context.is_clean()
}

fn is_asked_for(context: &Context<'_>, finding: &Finding) -> bool {
    if context.options.physical_only && !finding.check.physical_only {
        return false;
    }
    let is_of_all = finding.check.is_of_every_scope();
    match &context.options.scope {
        Scope::Database => true,
        Scope::Allocation => is_of_all || finding.check.policy.is_of_checkalloc,
        Scope::Catalog => is_of_all || finding.check.policy.is_of_checkcatalog,
        Scope::Tables(objects) => {
            is_of_all
                || finding.object_id().is_some_and(|object| objects.contains(&object))
                || !finding.check.is_of_allocation() && finding.object_id().is_none()
        }
        Scope::Filegroup(group) => {
            let file = finding.page.and_then(|page| context.source.file(page.file));
            is_of_all || file.is_some_and(|file| file.filegroup == *group)
        }
    }
}

#[cfg(test)]
mod tests {
    use findings::registry;

    use super::*;

    fn doubts(all: &[(&'static Limit, RestsOnIt)]) -> Doubts<'static> {
        let general = all.iter().map(|&(limit, rests_on_it)| Doubt { limit, rests_on_it }).collect();
        Doubts { in_flight: None, in_flight_limit: &limits::DEMOTED_IN_FLIGHT, general }
    }

    #[test]
    fn any_doubt_demotes_what_rests_on_it_whatever_other_doubts_there_are() {
        let all = doubts(&[
            (&limits::DEMOTED_MAPS, |policy| policy.rests_on_maps),
            (&limits::DEMOTED_RELEASE, |policy| policy.rests_on_release),
        ]);
        // The first limit in `all` cannot explain the findings of this check, but the second limit can. So the search
        // must not stop at the first limit.
        let check: &'static registry::Check = Box::leak(Box::new(registry::Check {
            policy: Policy { rests_on_release: true, ..registry::RECORD_AUDIT.policy },
            ..registry::RECORD_AUDIT
        }));
        assert_eq!(all.limit(&Finding::new(check)), Some(&limits::DEMOTED_RELEASE));
        assert_eq!(all.limit(&Finding::new(&registry::TREE_CHILD_UNSEEN)), Some(&limits::DEMOTED_MAPS));
        assert_eq!(all.limit(&Finding::new(&registry::RECORD_AUDIT)), None, "a page proves it by itself");
    }

    #[test]
    fn what_rests_on_nothing_is_a_proof_whatever_is_unknown() {
        let all = doubts(&[(&limits::DEMOTED_LOG, |policy| policy.rests_on_log)]);
        for check in [&registry::PAGE_IO, &registry::RECORD_AUDIT, &registry::FIXED_PAGE_INVALID] {
            assert_eq!(all.limit(&Finding::new(check)), None, "{check:?}");
        }
        for check in
            [&registry::PAGE_ID, &registry::PAGE_TYPE, &registry::TREE_CHILD_UNSEEN, &registry::MAP_PAGE_INVALID]
        {
            assert_eq!(all.limit(&Finding::new(check)), Some(&limits::DEMOTED_LOG), "{check:?}");
        }
    }
}
