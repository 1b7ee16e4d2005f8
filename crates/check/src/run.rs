//! A run from end to end: survey, sweep, reckon, and the report.

pub mod change;
pub(crate) mod container;
pub(crate) mod encryption;
pub(crate) mod estimate;
pub(crate) mod facts;
pub(crate) mod inventory;
pub(crate) mod mapping;
mod notes;
pub mod part;
pub(crate) mod patterns;
pub(crate) mod read_ranges;
pub(crate) mod reckon;
pub(crate) mod settle;
pub(crate) mod witness;

use std::collections::BTreeSet;
use std::convert::Infallible;

use catalog::Database;
use findings::registry::limits;
use findings::{
    Beyond, BrokerCount, Content, Coverage, FileRange, Finding, LogAudit, Options, Report, RowsetCounts, Scope,
    Statistics,
};
use source::{FileChange, PageSource};
use sums::spill::{Shelf, TempStore};

use crate::basis::accounting::{Meter, Metered, Phases};
use crate::basis::ledger::FindingCollector;
use crate::basis::outcome::{Outcome, Results};
use crate::basis::progress::Progress;
use crate::basis::system;
use crate::basis::units::Units;
use crate::checks::columns;
use crate::checks::{Checks, Sums};
use crate::metadata::{self, broker, catalog_rules, prechecks};
use crate::run::patterns::Damaged;
use crate::run::witness::{Fingerprint, Witness};
use crate::survey::Maps;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::keeping::Keeper;
use crate::sweep::memory::MemoryBudget;
use crate::sweep::rounds::Rounds;
use crate::sweep::row_check::Stage;
use crate::sweep::{self, warnings};

/// Checks the database whose pages are in `source` and whose catalog is in `database`.
///
/// Never fails: pages that cannot be read are listed in [`Report::read_errors`], and everything that could not be
/// verified in [`Report::not_verified`].
pub fn run(source: &dyn PageSource, database: &Database, options: &Options, progress: &dyn Progress) -> Report {
    let Ok(report) = run_with(source, database, options, (progress, None), |run, context, checks| {
        run.sweep(context, checks, |_, swept| Ok::<_, Infallible>(swept))
    });
    report
}

/// The report of a comparison of the pages with the log, without any other check. `log_changes` are the log files that
/// changed while they were read. If they or the data files have changed, the contradictions prove nothing.
pub fn report_of_audit(
    source: &dyn PageSource,
    database: &Database,
    audit: &LogAudit,
    log_changes: Vec<FileChange>,
) -> Report {
    let mut findings = audit.findings.clone();
    findings.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
    let mut coverage = Coverage::default();
    audit.note(&mut coverage);
    let (findings, demoted, warnings) = settle::settle_audit(source, (findings, log_changes), &mut coverage);
    let (not_verified, notes) = coverage.into_lists();
    // One rowset per object is enough, as only the name of the object is needed.
    let all = findings.iter().chain(&demoted);
    let objects: BTreeSet<i32> = all.filter_map(Finding::object_id).collect();
    let named = |object_id: i32| {
        let object = database.objects.get(&object_id)?;
        let (schema, name) = (database.schema_name(object).to_owned(), object.name.clone());
        Some(RowsetCounts { object_id, schema, name, ..RowsetCounts::default() })
    };
    let rowsets = objects.into_iter().filter_map(named).collect();
    let database = findings::summary(source, database);
    let (findings, demoted) = (findings.into(), demoted.into());
    Report { database, warnings, rowsets, findings, demoted, not_verified, notes, ..Report::default() }
}

/// Like [`run`], but `sweep` supplies the sums of the pass over the pages. Second looks at pages may be left to the
/// tasks of `rounds`; the report lacks their results.
pub(crate) fn run_with<E>(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    (progress, rounds): (&dyn Progress, Option<&Rounds<'_>>),
    sweep: impl FnOnce(&mut Run<'_>, &mut Context<'_>, &Checks) -> Result<Swept<Sums>, E>,
) -> Result<Report, E> {
    let counters = system::counters();
    let metered = Metered::new(source);
    let needs = Checks::needs(&metered, database, options);
    let space = TempStore::new(options.temp_dir.clone(), needs.bytes_for_facts(options));
    progress.begin(source, database, needs.granted_bytes(options));
    let mut run = Run {
        source: &metered,
        meter: &metered.meter,
        database,
        options,
        progress,
        space: &space,
        needs,
        counters,
        phases: Phases::new(&metered.meter, &space),
        findings: FindingCollector::new(needs.bytes_for_findings(options), &space)
            .recovered(database.is_recovered(&metered)),
        coverage: Coverage::default(),
        fingerprint: Fingerprint::default(),
        is_open: false,
        read_errors: Vec::new(),
        outcome: Outcome::default(),
        service_broker: Vec::new(),
    };
    run.look_at_input();
    if database.is_encrypted {
        return Ok(run.of_headers());
    }
    let mut context = run.survey();
    context.rounds = rounds;
    let mut checks = Checks::new(&context);
    let mut swept = sweep(&mut run, &mut context, &checks)?;
    let is_open = run.is_open;
    // Sums are compared only if all pages were read, because sums over some of the pages prove nothing.
    if !is_open {
        run.reckon(&context, &mut checks, &mut swept);
    }
    run.catalog();
    if !is_open {
        run.beyond(&context, &mut checks, &mut swept);
    }
    Ok(run.settle(&context, &checks, swept))
}

/// Reads the allocation maps, and adds to `units` the units that only IAM pages name. Also returns a fingerprint of the
/// pages that were read. Without a hash key in the options, the fingerprint is meaningless. With a `shelf`, the maps are
/// kept there.
pub(crate) fn maps_of(
    (source, database): (&dyn PageSource, &Database),
    (options, shelf): (&Options, Option<&Shelf>),
    units: &mut Units,
    (findings, coverage): (&mut FindingCollector, &mut Coverage),
) -> (Maps, Fingerprint) {
    match &options.hash_key {
        None => (Maps::read((source, shelf), database, units, findings, coverage), Fingerprint::default()),
        Some(key) => {
            let witness = Witness::new(source, key);
            let maps = Maps::read((&witness, shelf), database, units, findings, coverage);
            let fingerprint = witness.fingerprint();
            (maps, fingerprint)
        }
    }
}

/// The state of a run. Its methods are the phases of the run, in order.
pub(crate) struct Run<'a> {
    source: &'a dyn PageSource,
    meter: &'a Meter,
    database: &'a Database,
    options: &'a Options,
    pub(crate) progress: &'a dyn Progress,
    space: &'a TempStore,
    needs: MemoryBudget,
    /// The operating system's counters for this process at the start of the run.
    counters: Vec<(&'static str, u64)>,
    phases: Phases<'a>,
    pub(crate) findings: FindingCollector,
    pub(crate) coverage: Coverage,
    /// Fingerprint of the allocation maps. Meaningful only if other processes share the hash key.
    pub(crate) fingerprint: Fingerprint,
    /// Whether some pages were not read, so that sums are not compared.
    pub(crate) is_open: bool,
    read_errors: Vec<String>,
    outcome: Outcome,
    service_broker: Vec<BrokerCount>,
}

impl<'a> Run<'a> {
    /// Checks the files, the boot page and the catalog, without comparing them with each other.
    fn look_at_input(&mut self) {
        let (source, database) = (self.source, self.database);
        self.read_errors = notes::truncated_files(source, &mut self.coverage);
        self.findings.extend(prechecks::findings(source, database));
        metadata::check(source, database, &mut self.findings, &mut self.coverage);
        notes::note_missing(source, database, &self.options.scope, &mut self.coverage);
        notes::note_recovery(self.options, &mut self.coverage);
        if let Some(audit) = &self.options.log_audit {
            self.findings.extend(audit.findings.iter().cloned());
            audit.note(&mut self.coverage);
        }
        container::note_missing_stripes(source, &mut self.coverage);
        container::note_undescribed_blocks(source, &mut self.coverage);
    }

    /// Determines from the maps which unit owns each page.
    fn survey(&mut self) -> Context<'a> {
        self.progress.phase("survey", 0);
        let (source, database, options) = (self.source, self.database, self.options);
        let mut units = Units::of(database);
        metadata::system_tables(database, &units, &mut self.findings);
        if !options.physical_only {
            columns::anti_matter(database, &units, &mut self.findings, &mut self.coverage);
        }
        let results = (&mut self.findings, &mut self.coverage);
        let shelf = self.needs.shelf(options, self.space);
        let (maps, fingerprint) = maps_of((source, database), (options, shelf.as_ref()), &mut units, results);
        let survey = maps.compare(source, database, &units, &mut self.findings, &mut self.coverage);
        self.fingerprint = fingerprint;
        self.phases.end("survey", self.space);
        Context::new(source, database, options, units, survey, self.space)
    }

    /// Makes one pass over the pages for each batch of tables. `carry` receives the sums after each batch, and returns
    /// the sums with which the next batch continues.
    pub(crate) fn sweep<E>(
        &mut self,
        context: &mut Context<'_>,
        checks: &Checks,
        mut carry: impl FnMut(&Context<'_>, Swept<Sums>) -> Result<Swept<Sums>, E>,
    ) -> Result<Swept<Sums>, E> {
        let nothing = |context: &Context<'_>| Swept::new(checks, context.units.list().len());
        let mut swept = nothing(context);
        let batches = u32::from(self.options.batches.max(1));
        for batch in 0..batches {
            context.batch = (batches > 1).then_some((batch, batches));
            let part = match self.options.scope.reads_pages() {
                true => sweep::sweep(context, checks, &mut self.findings, self.meter, self.progress),
                false => nothing(context),
            };
            self.phases.end("sweep", self.space);
            let mut part = carry(context, part)?;
            self.end_batch(context, checks, &mut part);
            swept.merge(part);
            if batch + 1 < batches {
                self.phases.end("compare", self.space);
            }
        }
        context.batch = None;
        context.learn(&mut swept.tallies);
        Ok(swept)
    }

    /// Makes one pass over the pages of some ranges, and passes the sums of each range to `keeper`. The caller has told the
    /// progress display of the phase.
    pub(crate) fn sweep_ranges(
        &mut self,
        of: (&Context<'_>, &Checks),
        ranges: &[FileRange],
        keeper: &dyn Keeper<Sums>,
    ) -> Swept<Sums> {
        sweep::sweep_ranges(of, ranges, keeper, &mut self.findings, (self.meter, self.progress))
    }

    /// Completes a pass whose sums come from several sources.
    pub(crate) fn end_pass(&mut self, context: &mut Context<'_>, checks: &Checks, swept: &mut Swept<Sums>) {
        self.phases.end("sweep", self.space);
        self.end_batch(context, checks, swept);
        context.learn(&mut swept.tallies);
    }

    fn end_batch(&mut self, context: &Context<'_>, checks: &Checks, swept: &mut Swept<Sums>) {
        self.progress.phase("compare", 0);
        checks.end_batch(context, swept, &mut self.findings);
    }

    /// Completes a sweep that other processes have made in parts.
    pub(crate) fn end_parts(&mut self, context: &mut Context<'_>, checks: &Checks, swept: &mut Swept<Sums>) {
        self.phases.end("sweep", self.space);
        // From here on, pages of all parts may be read again. So the units with bad pages in any part must be known.
        context.bad_units = swept.tallies.bad_units().into();
        self.end_batch(context, checks, swept);
        context.learn(&mut swept.tallies);
    }

    fn results(&mut self) -> Results<'_> {
        Results { findings: &mut self.findings, coverage: &mut self.coverage, outcome: &mut self.outcome }
    }

    /// Compares the sums. Only now are all damaged units known, because a page of one table may show that another table
    /// is damaged.
    fn reckon(&mut self, context: &Context<'_>, checks: &mut Checks, swept: &mut Swept<Sums>) {
        let progress = self.progress;
        reckon::reckon(context, checks, swept, &mut self.results(), progress);
        self.phases.end("compare", self.space);
    }

    /// Compares the tables of the catalog with each other.
    fn catalog(&mut self) {
        if !self.options.scope.checks_catalog() || self.options.physical_only {
            return;
        }
        self.progress.phase("catalog", 0);
        catalog_rules::check(self.source, self.database, &mut self.findings, &mut self.coverage);
        if self.options.scope == Scope::Database {
            self.service_broker = broker::count(self.source, self.database, &mut self.coverage);
        }
        self.phases.end("catalog", self.space);
    }

    /// Checks constraints and identity columns. For a backup, also checks the parts of its container that were not read
    /// yet.
    fn beyond(&mut self, context: &Context<'_>, checks: &mut Checks, swept: &mut Swept<Sums>) {
        if self.options.constraints {
            self.progress.phase("constraints", 0);
        }
        checks.settle(Stage::Beyond, context, swept, &mut self.results());
        self.phases.end("constraints", self.space);
        match context.open.is_empty() {
            true => self.check_container(),
            false if self.source.backup().is_some() => self.coverage.note(&limits::WINDOW_CONTAINER_OPEN, "backup", 0),
            false => {}
        }
    }

    fn check_container(&mut self) {
        if self.options.scope == Scope::Database {
            if self.source.backup().is_some() {
                self.progress.phase("container", 0);
            }
            container::check(self.source, &mut self.findings, &mut self.coverage, &mut self.read_errors);
        }
    }

    /// Separates the findings that are proofs from all other findings, and completes the report.
    fn settle(mut self, context: &Context<'_>, checks: &Checks, swept: Swept<Sums>) -> Report {
        let Swept { tallies: swept, sums } = swept;
        let settled = settle::settle(context, (checks, &sums), self.findings, &mut self.coverage);
        let content = |bytes: &_, page| Content::of(bytes, page, |header| context.may_know(header));
        let damaged =
            Damaged { source: self.source, survey: Some(&context.survey), content: &content, space: self.space };
        let patterns = damaged.patterns(&settled.findings, &settled.demoted);
        self.phases.end("findings", self.space);
        notes::leave_out_growing(self.source, &settled.moved, &mut self.read_errors);
        notes::note_not_found(context, &mut self.coverage);
        notes::note_unchecked(context, &swept, &mut self.coverage);
        self.read_errors.extend(notes::unread_pages(context, swept.unread.clone()));
        let ranges = read_ranges::read_ranges(context, &swept.unread);
        let page_map = self.options.page_map.then(|| mapping::page_map(context, &swept.unread));
        let rowsets = inventory::rowsets(context, &swept);
        // From here on, only the lists of findings, which tell of their own errors, are read from temporary files.
        self.read_errors.extend(self.space.error());
        if self.options.scope == Scope::Database && !self.options.physical_only {
            broker::note_queues(self.database, &rowsets, &mut self.coverage);
        }
        let rows = rowsets.iter().filter(|rowset| rowset.index_id <= 1).map(|rowset| rowset.rows).sum();
        let (not_verified, notes) = self.coverage.into_lists();
        let (outcome, source) = (self.outcome, self.source);
        let counters = system::counters().into_iter().zip(self.counters);
        Report {
            database: findings::summary(source, self.database),
            warnings: warnings::warnings_after(source, self.database, &self.options.scope, &settled.moved),
            options: self.options.clone(),
            rowsets,
            findings: settled.findings,
            demoted: settled.demoted,
            patterns,
            beyond: outcome.beyond,
            not_verified,
            notes,
            read_errors: self.read_errors,
            notices: self.meter.shortage().into_iter().chain(source.read_faults().healed).collect(),
            file_totals: context.survey.totals.clone(),
            ranges,
            page_map,
            service_broker: self.service_broker,
            change: None,
            statistics: Statistics {
                pages_read: swept.pages_read,
                pages_allocated: swept.pages_allocated,
                rows,
                rows_checked: outcome.rows_checked,
                column_values_checked: outcome.column_values_checked,
                column_values_not_verified: outcome.column_values_not_verified,
                indexes_in_scope: outcome.indexes_in_scope,
                indexes_compared: outcome.indexes_compared,
                index_rows_compared: outcome.index_rows_compared,
                threads: self.options.threads(),
                seconds: self.meter.seconds(),
                phases: self.phases.into_list(),
                series: self.meter.series(),
                memory_peak: system::peak_memory_bytes(),
                memory_granted: self.needs.granted_bytes(self.options),
                spilled_bytes: self.space.spilled_bytes(),
                counters: counters.map(|((name, now), (_, then))| (name, now - then)).collect(),
            },
        }
    }

    /// The report of an encrypted database: only page headers can be checked.
    fn of_headers(mut self) -> Report {
        let (source, database, options) = (self.source, self.database, self.options);
        let looked = encryption::check(
            (source, self.needs.shelf(options, self.space)),
            database,
            options,
            &mut self.findings,
            &mut self.coverage,
            self.progress,
        );
        self.phases.end("sweep", self.space);
        self.check_container();
        self.read_errors.extend(notes::lines(source, looked.unread));
        let findings = (self.findings, self.space);
        let settled =
            settle::settle_headers((source, database), (options, looked.is_lost), findings, &mut self.coverage);
        let content = |bytes: &_, page| Content::of(bytes, page, |_| true);
        let damaged = Damaged { source, survey: None, content: &content, space: self.space };
        let patterns = damaged.patterns(&settled.findings, &settled.demoted);
        self.read_errors.extend(self.space.error());
        let statistics = Statistics {
            pages_read: looked.pages_read,
            threads: 1,
            seconds: self.meter.seconds(),
            phases: self.phases.into_list(),
            series: self.meter.series(),
            memory_peak: system::peak_memory_bytes(),
            memory_granted: self.needs.granted_bytes(options),
            spilled_bytes: self.space.spilled_bytes(),
            ..Statistics::default()
        };
        let (not_verified, notes) = self.coverage.into_lists();
        Report {
            database: findings::summary(source, database),
            warnings: warnings::warnings_after(source, database, &options.scope, &settled.moved),
            options: options.clone(),
            rowsets: Vec::new(),
            findings: settled.findings,
            demoted: settled.demoted,
            patterns,
            beyond: Beyond::default(),
            not_verified,
            notes,
            read_errors: self.read_errors,
            notices: source.read_faults().healed,
            file_totals: Vec::new(),
            ranges: Vec::new(),
            page_map: None,
            service_broker: Vec::new(),
            change: None,
            statistics,
        }
    }
}
