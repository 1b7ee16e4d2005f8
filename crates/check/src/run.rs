//! A run from end to end: survey, sweep, reckon, and what it amounts to.

use catalog::{Database, UnitKind, column_status};
use format::page::PAGE_BYTES;
use source::PageSource;

use crate::accounting::{Metered, Phases};
use crate::beyond::Beyond;
use crate::check_list::Swept;
use crate::checks::Checks;
use crate::context::Context;
use crate::coverage::Coverage;
use crate::finding::Finding;
use crate::findings::{Findings, List};
use crate::ledger::Ledger;
use crate::options::{Options, Scope};
use crate::outcome::{Outcome, Results};
use crate::progress::Progress;
use crate::registry::limits;
use crate::report::{DatabaseSummary, FileSummary, Report, Statistics};
use crate::row_check::Stage;
use crate::spill::Space;
use crate::tallies::{Tallies, UnreadPages};
use crate::units::{Shape, Units};
use crate::{
    broker, catalog_rules, columns, container, encryption, inventory, metadata, reckon, settle, survey, sweep, system,
};

/// Checks the database whose pages `source` has and whose catalogue was read into `database`.
///
/// Never fails: pages that cannot be read are in [`Report::read_errors`], what could not be verified in
/// [`Report::not_verified`].
pub fn run(source: &dyn PageSource, database: &Database, options: &Options, progress: &dyn Progress) -> Report {
    let before = system::counters();
    let metered = Metered::new(source);
    let source: &dyn PageSource = &metered;
    let needs = Checks::needs(source, database, options);
    let space = Space::new(options.temp_dir.clone(), needs.bytes_for_facts(options));
    let mut phases = Phases::new(&metered.meter, &space);
    let mut findings = Ledger::new(needs.bytes_for_findings(options), &space);
    let mut coverage = Coverage::default();
    let mut read_errors = truncated_files(source, &mut coverage);
    metadata::check(source, database, &mut findings, &mut coverage);
    metadata::roots(source, database, &mut findings);
    note_missing(source, database, &mut coverage);
    container::note_missing_stripes(source, &mut coverage);
    container::note_undescribed_blocks(source, &mut coverage);
    if database.is_encrypted {
        let looked = encryption::check(source, database, options, &mut findings, &mut coverage, progress);
        phases.end("sweep", &space);
        if options.scope == Scope::Database {
            container::check(source, &mut findings, &mut coverage, &mut read_errors);
        }
        read_errors.extend(lines(source, looked.unread));
        let mut kept = List::new(findings.limit_bytes(), &space);
        let is_asked_for = |finding: &Finding| !options.physical_only || finding.check.physical_only;
        findings.into_sorted().filter(is_asked_for).for_each(|finding| kept.push(finding));
        let statistics = Statistics {
            pages_read: looked.pages_read,
            threads: 1,
            seconds: metered.meter.seconds(),
            phases: phases.into_list(),
            series: metered.meter.series(),
            memory_peak: system::peak_memory_bytes(),
            memory_granted: needs.granted_bytes(options),
            ..Statistics::default()
        };
        return of_headers(source, database, options, kept.finish(), coverage, (read_errors, statistics));
    }

    progress.phase("survey", 0);
    let mut units = Units::of(database);
    metadata::system_tables(database, &units, &mut findings);
    if !options.physical_only {
        columns::anti_matter(database, &units, &mut findings, &mut coverage);
    }
    let survey = survey::survey(source, database, &mut units, &mut findings, &mut coverage);
    phases.end("survey", &space);

    let mut context = Context::new(source, database, options, units, survey, &space);
    let mut checks = Checks::new(&context);
    let mut swept = Swept::new(&checks, context.units.list().len());
    let mut outcome = Outcome::default();
    let batches = u32::from(options.batches.max(1));
    for batch in 0..batches {
        context.batch = (batches > 1).then_some((batch, batches));
        let mut part = if options.scope.reads_pages() {
            sweep::sweep(&context, &checks, &mut findings, &metered.meter, progress)
        } else {
            Swept::new(&checks, context.units.list().len())
        };
        phases.end("sweep", &space);
        progress.phase("reckon", 0);
        checks.end_batch(&context, &mut part, &mut findings);
        swept.merge(part);
        if batch + 1 < batches {
            phases.end("reckon", &space);
        }
    }
    context.batch = None;
    context.taken = swept.tallies.take_taken();
    // Damage of one table may be found on a page of another: what is damaged is known only now.
    let mut to = Results { findings: &mut findings, coverage: &mut coverage, outcome: &mut outcome };
    reckon::reckon(&context, &mut checks, &mut swept, &mut to, progress);
    phases.end("reckon", &space);
    let mut service_broker = Vec::new();
    if options.scope.checks_catalog() && !options.physical_only {
        progress.phase("catalogue", 0);
        catalog_rules::check(source, database, &mut findings, &mut coverage);
        if options.scope == Scope::Database {
            service_broker = broker::count(source, database, &mut coverage);
        }
        phases.end("catalogue", &space);
    }
    if options.constraints {
        progress.phase("constraints", 0);
    }
    let mut to = Results { findings: &mut findings, coverage: &mut coverage, outcome: &mut outcome };
    checks.settle(Stage::Beyond, &context, &mut swept, &mut to);
    phases.end("beyond", &space);
    if options.scope == Scope::Database {
        container::check(source, &mut findings, &mut coverage, &mut read_errors);
    }

    let settled = settle::settle(&context, (&checks, &swept.sums), findings, &mut coverage);
    phases.end("settle", &space);
    let swept = swept.tallies;
    note_unchecked(&context, &swept, &mut coverage);
    read_errors.extend(unread_pages(&context, swept.unread.clone()));
    read_errors.extend(space.error());
    let rowsets = inventory::rowsets(&context, &swept);
    if options.scope == Scope::Database && !options.physical_only {
        broker::note_queues(database, &rowsets, &mut coverage);
    }
    let rows = rowsets.iter().filter(|rowset| rowset.index_id <= 1).map(|rowset| rowset.rows).sum();
    let (not_verified, notes) = coverage.into_lists();
    Report {
        database: summary(source, database),
        options: options.clone(),
        rowsets,
        findings: settled.findings,
        demoted: settled.demoted,
        beyond: outcome.beyond,
        not_verified,
        notes,
        read_errors,
        notices: metered.meter.shortage().into_iter().chain(source.read_faults().healed).collect(),
        file_totals: context.survey.totals,
        service_broker,
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
            threads: options.threads(),
            seconds: metered.meter.seconds(),
            phases: phases.into_list(),
            series: metered.meter.series(),
            memory_peak: system::peak_memory_bytes(),
            memory_granted: needs.granted_bytes(options),
            spilled_bytes: space.spilled_bytes(),
            counters: system::counters()
                .into_iter()
                .zip(before)
                .map(|((name, now), (_, then))| (name, now - then))
                .collect(),
        },
    }
}

/// The report of a database of which only page headers could be judged.
fn of_headers(
    source: &dyn PageSource,
    database: &Database,
    options: &Options,
    findings: Findings,
    coverage: Coverage,
    (read_errors, statistics): (Vec<String>, Statistics),
) -> Report {
    let (not_verified, notes) = coverage.into_lists();
    Report {
        database: summary(source, database),
        options: options.clone(),
        rowsets: Vec::new(),
        findings,
        demoted: Findings::default(),
        beyond: Beyond::default(),
        not_verified,
        notes,
        read_errors,
        notices: source.read_faults().healed,
        file_totals: Vec::new(),
        service_broker: Vec::new(),
        statistics,
    }
}

/// Files shorter than their header says: each a line for stderr, and pages nobody can verify.
fn truncated_files(source: &dyn PageSource, coverage: &mut Coverage) -> Vec<String> {
    let mut errors = Vec::new();
    for file in source.files() {
        let claimed = file.header_pages.unwrap_or(file.pages);
        // What lies behind the size in the header is no part of the database.
        if file.pages < claimed || file.tail_bytes != 0 && file.header_pages.is_none() {
            let bytes = u64::from(file.pages) * PAGE_BYTES as u64 + u64::from(file.tail_bytes);
            errors.push(format!(
                "{}: has {bytes} bytes, but its header says {claimed} pages ({} bytes): the file was cut; \
                 copy or restore it again",
                file.path.display(),
                u64::from(claimed) * PAGE_BYTES as u64
            ));
            let lost = u64::from(claimed.saturating_sub(file.pages)).max(1);
            coverage.note(&limits::PAGES_BEYOND_END, format!("file {}", file.file_id), lost);
        }
    }
    errors
}

/// Pages that the system could not read.
fn unread_pages(context: &Context<'_>, mut unread: UnreadPages) -> Vec<String> {
    for &page in &context.survey.unread {
        let mut bytes = [0; PAGE_BYTES];
        if let Err(error) = context.source.read(page, &mut bytes) {
            unread.add(page, || error.to_string());
        }
    }
    lines(context.source, unread)
}

/// A line per file whose reads failed: the first page that could not be read, with its cause, and how many. Whatever became
/// of a read that failed, and whichever phase asked for it, it is an error of the run.
fn lines(source: &dyn PageSource, unread: UnreadPages) -> Vec<String> {
    let (mut lines, mut files) = (Vec::new(), Vec::new());
    for (page, error, pages) in unread.into_files() {
        lines.push(match pages {
            1 => format!("{error} (page {page})"),
            pages => format!("{error} (page {page}; {pages} pages in all)"),
        });
        files.extend(source.file(page.file).map(|file| file.path.clone()));
    }
    let others = source.read_faults().failed.into_iter().filter(|failed| !files.contains(&failed.path));
    lines.extend(others.map(|failed| failed.text));
    lines
}

/// Data files that the catalogue names and that were not given.
fn note_missing(source: &dyn PageSource, database: &Database, coverage: &mut Coverage) {
    for row in &database.files {
        if survey::is_missing(source, database, row.file_id) {
            let scope = format!("file {} ({})", row.file_id, row.logical_name);
            coverage.note(limits::FILE_NOT_GIVEN.with(&[&row.physical_name]), scope, 0);
        }
    }
    if let Some(boot) = &database.boot
        && format::version::product(boot.version).is_none()
    {
        coverage.note(limits::VERSION_UNKNOWN.with(&[&boot.version]), "database", 0);
    }
}

/// What the options ask for and this program does not check, or cannot.
fn note_unchecked(context: &Context<'_>, swept: &Tallies, coverage: &mut Coverage) {
    if !context.options.scope.reads_pages() {
        return;
    }
    if swept.unclaimed_pages > 0 {
        coverage.note(&limits::PAGES_UNCLAIMED, "database", swept.unclaimed_pages);
    }
    for (at, tally) in swept.units.touched().filter(|(_, tally)| tally.pages() > 0) {
        let Some(unit) = context.units.list().get(at).filter(|unit| context.in_scope(unit)) else { continue };
        let name = context.index_name(unit);
        if tally.unaudited_rows > 0 {
            let is_dropped =
                unit.row.and_then(|row| context.database.units.get(row)).is_some_and(|row| row.is_dropped());
            let limit = if unit.compressed && unit.shape != Shape::Unknown {
                &limits::RECORDS_COMPRESSED_FORM
            } else if unit.row.is_none() {
                &limits::RECORDS_UNIT_UNKNOWN
            } else if is_dropped {
                &limits::RECORDS_DROPPED
            } else {
                &limits::RECORDS_FORM_UNKNOWN
            };
            coverage.note(limit, &name, tally.unaudited_rows);
        }
        if unit.compressed && unit.shape.is_rows() && unit.shape != Shape::Unknown {
            coverage.note(&limits::HEADERS_COUNTS_COMPRESSED, &name, tally.pages());
        } else if tally.uncounted_pages > 0 {
            coverage.note(&limits::HEADERS_COUNTS_GHOSTS, &name, tally.uncounted_pages);
        }
    }
    if context.options.physical_only {
        return;
    }
    note_features(context, coverage);
}

/// Checks of whole kinds that are still to be built.
fn note_features(context: &Context<'_>, coverage: &mut Coverage) {
    let database = context.database;
    let in_scope = |rowset: &&catalog::Rowset| {
        rowset.units.iter().any(|unit| context.units.list().get(*unit).is_some_and(|unit| context.in_scope(unit)))
    };
    let rowsets = || database.rowsets.iter().filter(in_scope);
    for object in database.memory_optimized_tables() {
        coverage.note(&limits::TABLE_MEMORY_OPTIMIZED, database.object_name(object), 0);
    }
    let unknown_units = database.units.iter().filter(|unit| matches!(unit.kind, UnitKind::Other(_))).count();
    if unknown_units > 0 {
        coverage.note(&limits::ALLOCATION_UNIT_TYPE, "database", unknown_units as u64);
    }
    let is_filestream = |column: &catalog::RowsetColumn| column.status & column_status::FILESTREAM != 0;
    for rowset in rowsets().filter(|rowset| rowset.layout.columns.iter().any(is_filestream)) {
        let name = database.object_name(rowset.object_id);
        coverage.note(&limits::FILESTREAM_FILES, name, 0);
    }
}

/// The name by which messages call a database: its own, or that of its file when the boot page cannot be read.
pub fn database_name(source: &dyn PageSource, database: &Database) -> String {
    let by_file = || Some(source.files().first()?.path.file_stem()?.to_string_lossy().into_owned());
    let own = database.boot.as_ref().map(|boot| boot.name.clone()).filter(|name| !name.is_empty());
    own.or_else(by_file).unwrap_or_default()
}

fn summary(source: &dyn PageSource, database: &Database) -> DatabaseSummary {
    let files = source.files();
    let boot = database.boot.as_ref();
    DatabaseSummary {
        name: database_name(source, database),
        id: boot.map_or(0, |boot| boot.database_id),
        version: boot.map_or(0, |boot| boot.version),
        clean_shutdown: boot.map(catalog::Boot::clean_shutdown),
        files: files
            .iter()
            .map(|file| FileSummary {
                path: file.path.clone(),
                file_id: file.file_id,
                logical_name: file.logical_name.clone(),
                pages: file.pages,
            })
            .collect(),
    }
}
