//! One JSON object per line: run, objects, findings, errors, what was not verified, statistics, summary.
//!
//! Readers must ignore unknown keys and kinds. 64-bit IDs are strings, because many readers keep numbers as doubles.
//! Only the last two lines, statistics and summary, contain values that may differ from run to run (times, memory).

pub(crate) mod advise;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod catalog;
pub(crate) mod chains;
pub(crate) mod checkpoints;
pub(crate) mod comparison;
pub(crate) mod cost;
pub(crate) mod databases;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod page;
pub(crate) mod parts;
#[cfg(test)]
mod schema;
pub(crate) mod watch;
pub(crate) mod windows;

use std::collections::BTreeMap;
use std::io;

use findings::{
    Change, ConstraintResult, Finding, Group, IdentityResult, NotVerified, Options, Pattern, PatternKind,
    RecoverySummary, Report, RowsetCounts, Scope, Value,
};
use format::PageId;
use serde::Serialize;

use crate::databases::set_line;
use crate::listing::Listing;
use crate::server_text::lsn_text;
use crate::{Gate, View, patterns, statistics};

use lines::Line;

/// Version of the JSON format. It is raised when a key changes its meaning.
pub const VERSION: u32 = 1;

/// Writes `report` to `out`. Objects are listed even if `view` suppresses informational messages.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    let listing = Listing::of(report);
    line(&Line::Run(run(report, view)), out)?;
    for warning in &report.warnings {
        line(&Line::Warning(lines::Warning { id: warning.id, text: &warning.text }), out)?;
    }
    for rowset in report.rowsets.iter().filter(|rowset| rowset.pages() > 0) {
        line(&Line::Object(object(rowset)), out)?;
    }
    for pattern in &report.patterns {
        line(&Line::Pattern(pattern_line(pattern)), out)?;
    }
    let names = Names::of(report);
    let mut gate = Gate::new(view);
    for group in report.findings.groups() {
        for found in gate.pass(report, group) {
            line(&Line::Finding(finding_line(report, &found, &names)), out)?;
        }
    }
    for found in report.demoted.iter().take(view.max_findings.unwrap_or(usize::MAX)) {
        line(&Line::Demoted(demoted(report, &found, &names)), out)?;
    }
    if !report.service_broker.is_empty() {
        let analyzed = report.service_broker.iter().map(|kind| (kind.name, kind.count)).collect();
        line(&Line::ServiceBroker(lines::ServiceBroker { analyzed }), out)?;
    }
    for result in &report.beyond.constraints {
        line(&Line::Constraint(constraint(result)), out)?;
    }
    for result in &report.beyond.identities {
        line(&Line::Identity(identity(result)), out)?;
    }
    for text in
        report.read_errors.iter().map(String::as_str).chain(report.findings.error()).chain(report.demoted.error())
    {
        line(&Line::Error(lines::ErrorText::of(text)), out)?;
    }
    for entry in &report.not_verified {
        line(&Line::NotVerified(not_verified_line(report, entry)), out)?;
    }
    for entry in &report.notes {
        line(&Line::Note(note(entry)), out)?;
    }
    line(&Line::Statistics(statistics::line(report)), out)?;
    line(&Line::Summary(summary(report, &listing, &gate)), out)
}

/// Writes the reason why a command failed, as the JSON line that replaces the results.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_failure(text: &str, status: u8, out: &mut dyn io::Write) -> io::Result<()> {
    line(&Line::Error(lines::ErrorText { v: Some(VERSION), status: Some(status), ..lines::ErrorText::of(text) }), out)
}

/// Writes one line.
pub(crate) fn line(value: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Names of the objects and indexes of a report, by ID.
pub(crate) struct Names<'a> {
    objects: BTreeMap<i32, String>,
    indexes: BTreeMap<(i32, i32), &'a str>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let listing = Listing::of(report);
        let objects = listing.objects.iter().filter_map(|object| Some((object.id, object.qualified_name()?)));
        let named = report.rowsets.iter().filter(|rowset| !rowset.index_name.is_empty());
        let indexes = named.map(|rowset| ((rowset.object_id, rowset.index_id), rowset.index_name.as_str()));
        Self { objects: objects.collect(), indexes: indexes.collect() }
    }
}

pub(crate) fn not_verified_line<'a>(report: &Report, entry: &'a NotVerified) -> lines::NotVerified<'a> {
    lines::NotVerified { note: note(entry), allowed: report.is_allowed(entry.limit).then_some(true) }
}

pub(crate) fn pattern_line(pattern: &Pattern) -> lines::Pattern {
    let (first_byte, last_byte) = patterns::bytes(pattern);
    lines::Pattern {
        id: patterns::id(pattern),
        text: patterns::line(pattern),
        cause: patterns::cause(pattern),
        file: pattern.file_id,
        first_page: pattern.first,
        last_page: pattern.last,
        pages: pattern.pages,
        runs: pattern.runs,
        first_byte,
        last_byte,
        every_pages: pattern.every.map(|(distance, _)| distance),
        block_pages: pattern.every.map(|(_, block)| block),
        byte: match pattern.kind {
            PatternKind::Same(byte) => Some(byte),
            _ => None,
        },
        other_file: match pattern.kind {
            PatternKind::OtherPlace { file, .. } => Some(file),
            _ => None,
        },
        distance_pages: match pattern.kind {
            PatternKind::OtherPlace { distance, .. } => distance,
            _ => None,
        },
        shift_bytes: match pattern.kind {
            PatternKind::Shifted(bytes) => Some(bytes),
            _ => None,
        },
    }
}

fn note(entry: &NotVerified) -> lines::Note<'_> {
    lines::Note {
        what: &entry.what,
        scope: &entry.scope,
        reason: &entry.reason,
        count: entry.count,
        id: entry.limit.id,
        kind_of: entry.limit.kind.name(),
    }
}

fn run(report: &Report, view: View) -> lines::Run<'_> {
    let database = &report.database;
    let files = database.files.iter().map(|file| lines::File {
        path: file.path.display().to_string(),
        file_id: file.file_id,
        logical_name: &file.logical_name,
        pages: file.pages,
    });
    lines::Run {
        v: VERSION,
        tool: "mdfsck",
        version: env!("CARGO_PKG_VERSION"),
        database: &database.name,
        db_version: Some(database.version).filter(|&version| version != 0),
        clean_shutdown: database.clean_shutdown,
        catalog_updated: database.catalog_updated.as_deref(),
        files: files.collect(),
        sets: (!database.sets.is_empty()).then(|| database.sets.iter().map(set_line).collect()),
        recovery: report.options.recovery.as_ref().map(recovery),
        options: options(&report.options),
        defaults: view.defaults,
    }
}

fn recovery(summary: &RecoverySummary) -> lines::Recovery<'_> {
    lines::Recovery {
        state: summary.state.name(),
        from: summary.range.map(|(from, _)| lsn_text(from)),
        to: summary.range.map(|(_, to)| lsn_text(to)),
        log_bytes: summary.log_bytes,
        records: summary.records,
        pages: summary.pages,
        transactions_undone: summary.transactions_undone,
        in_doubt: summary.in_doubt,
        reason: &summary.reason,
    }
}

fn options(options: &Options) -> lines::Options<'_> {
    let (tables, filegroup) = match &options.scope {
        Scope::Tables(ids) => (Some(ids.as_slice()), None),
        Scope::Filegroup(id) => (None, Some(*id)),
        Scope::Database | Scope::Allocation | Scope::Catalog => (None, None),
    };
    lines::Options {
        command: options.scope.command(),
        tables,
        filegroup,
        physical_only: options.physical_only,
        no_index: options.no_index,
        extended_logical_checks: options.extended_logical_checks,
        data_purity: options.checks_purity(),
        constraints: options.constraints,
        all_constraints: options.constraints && options.all_constraints,
        identity: options.identities,
    }
}

fn object(rowset: &RowsetCounts) -> lines::Object<'_> {
    lines::Object {
        object_id: rowset.object_id,
        schema: &rowset.schema,
        name: &rowset.name,
        type_code: &rowset.type_code,
        index_id: rowset.index_id,
        index: &rowset.index_name,
        partition: rowset.partition,
        partition_id: rowset.partition_id.cast_signed().to_string(),
        rows: rowset.rows,
        ghost_rows: rowset.ghost_rows,
        forwarded_rows: rowset.forwarded_rows,
        pages: lines::Pages {
            data: rowset.data_pages,
            index: rowset.index_pages,
            iam: rowset.iam_pages,
            lob: rowset.lob_pages,
            overflow: rowset.overflow_pages,
        },
    }
}

pub(crate) fn finding_line<'a>(report: &Report, finding: &'a Finding, names: &'a Names<'_>) -> lines::Finding<'a> {
    let file = |page: Option<PageId>| page.map(|page| page.file);
    let page = |page: Option<PageId>| page.map(|page| page.page);
    let owner = finding.owner.as_ref().map(owner);
    lines::Finding {
        id: finding.check.id,
        msg: finding.check.msg,
        level: findings::registry::LEVEL,
        state: finding.state,
        repair: finding.repair().name(),
        object_id: owner.as_ref().map(|owner| owner.object_id),
        object: finding.object_id().and_then(|id| names.objects.get(&id)).map(String::as_str),
        index_id: owner.as_ref().map(|owner| owner.index_id),
        index: owner.as_ref().and_then(|owner| names.indexes.get(&(owner.object_id, owner.index_id)).copied()),
        partition_id: owner.as_ref().map(|owner| owner.partition_id.clone()),
        alloc_unit_id: owner.as_ref().map(|owner| owner.alloc_unit_id.clone()),
        alloc_type: owner.as_ref().map(|owner| owner.alloc_type),
        file: file(finding.page),
        page: page(finding.page),
        slot: finding.slot,
        ref_file: file(finding.ref_page),
        ref_page: page(finding.ref_page),
        ref_slot: finding.ref_slot,
        text: finding.text(&report.names()),
        evidence: finding.evidence.iter().map(|(name, value)| (*name, evidence(value))).collect(),
    }
}

pub(crate) fn demoted<'a>(report: &Report, found: &'a Finding, names: &'a Names<'_>) -> lines::Demoted<'a> {
    lines::Demoted {
        finding: finding_line(report, found, names),
        limit: found.demoted_by.map(|limit| limit.id),
        kind_of: found.demoted_by.map(|limit| limit.kind.name()),
        reason: found.demoted_by.map(|limit| limit.reason),
    }
}

fn owner(owner: &findings::Owner) -> lines::Owner {
    lines::Owner {
        object_id: owner.object_id,
        index_id: owner.index_id,
        partition_id: owner.partition_id.cast_signed().to_string(),
        alloc_unit_id: owner.alloc_unit.to_string(),
        alloc_type: owner.type_name(),
    }
}

fn evidence(value: &Value) -> lines::Evidence<'_> {
    match value {
        Value::Number(number) => lines::Evidence::Number(*number),
        Value::Page(page) => lines::Evidence::Page(page.to_string()),
        Value::Text(text) => lines::Evidence::Text(text),
        Value::Owner(of) => lines::Evidence::Owner(owner(of)),
    }
}

fn constraint(result: &ConstraintResult) -> lines::Constraint<'_> {
    lines::Constraint {
        table: &result.table,
        name: &result.name,
        type_name: result.type_name,
        trusted: result.is_trusted,
        enabled: result.is_enabled,
        verified: result.is_verified,
        rows: result.rows,
        violations: result.violations,
    }
}

fn identity(result: &IdentityResult) -> lines::Identity<'_> {
    let number = |value: Option<i64>| value.map(|value| value.to_string());
    lines::Identity {
        table: &result.table,
        column: &result.column,
        current: number(result.current()),
        increment: number(result.mark.map(|mark| mark.increment)),
        seed: number(result.mark.map(|mark| mark.seed)),
        farthest: number(result.farthest),
        behind: result.is_behind(),
    }
}

fn summary(report: &Report, listing: &Listing<'_>, gate: &Gate) -> lines::Summary {
    let counted = |object_id: Option<i32>, object: Option<String>, group: &Group| {
        let counts = group.counts;
        counts.any().then_some(lines::Counted {
            object_id,
            object,
            allocation_errors: counts.allocation,
            consistency_errors: counts.consistency,
        })
    };
    let unattributed = counted(None, None, &listing.unattributed);
    let objects =
        listing.objects.iter().filter_map(|object| counted(Some(object.id), object.qualified_name(), &object.findings));
    let (counts, statistics) = (report.counts(), &report.statistics);
    let phase = |phase: &findings::PhaseStatistics| cost::Phase {
        name: phase.name,
        seconds: phase.seconds,
        bytes: phase.bytes,
    };
    lines::Summary {
        allocation_errors: Some(counts.allocation),
        consistency_errors: Some(counts.consistency),
        counted_per_object: unattributed.into_iter().chain(objects).collect(),
        findings: Some(report.findings.len()),
        findings_hidden: Some(gate.hidden),
        repair_level: report.repair().name(),
        complete: report.complete(),
        pages_read: Some(statistics.pages_read),
        by_change: match &report.change {
            Some(Change::Proven(change)) => Some(change.into()),
            _ => None,
        },
        not_by_change: match &report.change {
            Some(Change::Whole(why)) => Some(why.clone()),
            _ => None,
        },
        pages_allocated: Some(statistics.pages_allocated),
        rows: Some(statistics.rows),
        verified: Some(lines::Verified {
            rows: statistics.rows_checked,
            column_values: statistics.column_values_checked,
            column_values_not_verified: statistics.column_values_not_verified,
            indexes: statistics.indexes_compared,
            indexes_in_scope: statistics.indexes_in_scope,
            index_rows: statistics.index_rows_compared,
        }),
        seconds: Some(statistics.seconds),
        phases: statistics.phases.iter().map(phase).collect(),
        memory_peak: statistics.memory_peak,
        memory_granted: Some(statistics.memory_granted),
        spilled: Some(statistics.spilled_bytes),
    }
}
