//! Estimates the resources that a run would need, as CHECKDB WITH ESTIMATEONLY does for CHECKDB.

use catalog::Database;
use findings::{Coverage, Estimate, Options, Scope};
use format::page::PAGE_BYTES;
use format::{PageId, PageType};
use source::PageSource;
use sums::spill::TempStore;

use crate::basis::ledger::FindingCollector;
use crate::basis::units::Units;
use crate::checks::Checks;
use crate::checks::tree::FACT_BYTES_PER_PAGE;
use crate::survey;
use crate::sweep::any_in_scope;
use crate::sweep::context::Context;
use crate::sweep::memory::CHUNK_PAGES;

/// The smallest memory grant, in bytes, that is sufficient for [`crate::run`].
pub fn minimum_memory_bytes(source: &dyn PageSource, database: &Database, options: &Options) -> u64 {
    Checks::needs(source, database, options).minimum_bytes()
}

/// Estimates what [`crate::run`] would need with the same arguments. Reads only the allocation pages.
pub fn estimate(source: &dyn PageSource, database: &Database, options: &Options) -> Estimate {
    let needs = Checks::needs(source, database, options);
    let mut estimate = Estimate { minimum_memory_bytes: needs.minimum_bytes(), ..Estimate::default() };
    let space = TempStore::new(options.temp_dir.clone(), 0);
    let (mut findings, mut coverage) =
        (FindingCollector::new(needs.bytes_for_findings(options), &space), Coverage::default());
    let mut units = Units::of(database);
    let mut facts = 0;
    if !database.is_encrypted {
        let survey = survey::survey(
            (source, needs.shelf(options, &space).as_ref()),
            database,
            &mut units,
            &mut findings,
            &mut coverage,
        );
        let context = Context::new(source, database, options, units, survey, &space);
        if options.scope != Scope::Allocation {
            estimate.read_bytes = swept_pages(&context) * PAGE_BYTES as u64;
            facts = tree_pages(&context) * FACT_BYTES_PER_PAGE as u64;
        }
    }
    let budget = needs.bytes_for_facts(options);
    estimate.memory_bytes = needs.bytes_with(facts.min(budget)).max(estimate.minimum_memory_bytes);
    // When the facts of a thread fill three quarters of its share of the memory, the thread writes all of them to a
    // temporary file.
    estimate.temp_bytes = needs.most_bytes_on_shelf() + if facts > budget / 4 * 3 { facts } else { 0 };
    estimate
}

fn ranges<'a>(context: &'a Context<'_>, step: u32) -> impl Iterator<Item = (PageId, u32)> + 'a {
    context.survey.files.iter().flat_map(move |file| {
        let range = move |first: u32| (PageId::new(file.file_id, first), step.min(file.pages - first));
        (0..file.pages).step_by(step as usize).map(range)
    })
}

fn swept_pages(context: &Context<'_>) -> u64 {
    let in_scope = ranges(context, CHUNK_PAGES).filter(|(first, pages)| any_in_scope(context, *first, *pages));
    in_scope.map(|(_, pages)| u64::from(pages)).sum()
}

/// The number of pages in scope whose key bounds a run records.
fn tree_pages(context: &Context<'_>) -> u64 {
    let is_of_tree = |page: PageId| {
        let unit = context.survey.owner(page).and_then(|unit| context.units.get(unit));
        unit.is_some_and(|unit| context.checks_tree(unit) && unit.shape.allows(PageType::Index))
            && any_in_scope(context, page, 1)
    };
    let pages = context
        .survey
        .files
        .iter()
        .flat_map(|file| file.claimed_pages(0..file.pages).map(move |page| PageId::new(file.file_id, page)));
    pages.filter(|page| is_of_tree(*page)).count() as u64
}
