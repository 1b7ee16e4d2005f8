//! One JSON object a line: run, objects, findings, errors, what was not verified, statistics, summary.
//!
//! Readers must ignore unknown keys and kinds. 64-bit ids are strings, because many readers keep numbers as doubles.
//! Only the last two lines, statistics and summary, hold what may differ from run to run (times, memory).

use std::collections::BTreeMap;
use std::io;

use check::{
    ConstraintResult, Finding, Group, IdentityResult, NotVerified, Options, Owner, Report, RowsetCounts, Scope, Value,
};
use format::PageId;
use serde_json::{Map, Value as Json, json};

use crate::listing::Listing;
use crate::{Gate, View, statistics};

/// Version of the lines; it changes when a key changes its meaning.
pub const VERSION: u32 = 1;

/// Writes `report` to `out`. Objects are listed whatever `view` says of informational messages.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    let listing = Listing::of(report);
    line(&run(report), out)?;
    for rowset in report.rowsets.iter().filter(|rowset| rowset.pages() > 0) {
        line(&object(rowset), out)?;
    }
    let objects: BTreeMap<i32, String> =
        listing.objects.iter().filter_map(|object| Some((object.id, object.qualified_name()?))).collect();
    let mut gate = Gate::new(view);
    for group in report.findings.groups() {
        for found in gate.pass(report, group) {
            line(&finding("finding", report, &found, &objects), out)?;
        }
    }
    for found in report.demoted.iter().take(view.max_findings.unwrap_or(usize::MAX)) {
        let mut fields = finding("demoted", report, &found, &objects);
        if let Some(limit) = found.demoted_by {
            add(&mut fields, "limit", limit.id);
            add(&mut fields, "kind_of", limit.kind.name());
            add(&mut fields, "reason", limit.reason);
        }
        line(&fields, out)?;
    }
    if !report.service_broker.is_empty() {
        line(&service_broker(report), out)?;
    }
    for result in &report.beyond.constraints {
        line(&constraint(result), out)?;
    }
    for result in &report.beyond.identities {
        line(&identity(result), out)?;
    }
    for text in
        report.read_errors.iter().map(String::as_str).chain(report.findings.error()).chain(report.demoted.error())
    {
        line(&json!({"kind": "error", "text": text}), out)?;
    }
    for entry in &report.not_verified {
        let mut fields = limited("not_verified", entry);
        if report.is_allowed(entry.limit) {
            add(&mut fields, "allowed", true);
        }
        line(&fields, out)?;
    }
    for entry in &report.notes {
        line(&limited("note", entry), out)?;
    }
    line(&statistics::line(report), out)?;
    line(&summary(report, &listing, &gate), out)
}

/// What a limit kept from being verified, or what is merely worth knowing.
fn limited(kind: &str, entry: &NotVerified) -> Json {
    json!({
        "kind": kind, "what": entry.what, "scope": entry.scope, "reason": entry.reason, "count": entry.count,
        "id": entry.limit.id, "kind_of": entry.limit.kind.name(),
    })
}

/// Writes one line.
pub(crate) fn line(value: &Json, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Adds a field at the end of a line.
fn add(line: &mut Json, key: &str, value: impl Into<Json>) {
    if let Some(fields) = line.as_object_mut() {
        fields.insert(key.to_owned(), value.into());
    }
}

fn run(report: &Report) -> Json {
    let database = &report.database;
    let file = |file: &check::FileSummary| {
        json!({
            "path": file.path.display().to_string(), "file_id": file.file_id, "logical_name": file.logical_name,
            "pages": file.pages,
        })
    };
    json!({
        "kind": "run",
        "v": VERSION,
        "tool": "mdfsck",
        "version": env!("CARGO_PKG_VERSION"),
        "database": database.name,
        "db_version": database.version,
        "clean_shutdown": database.clean_shutdown,
        "files": database.files.iter().map(file).collect::<Vec<_>>(),
        "options": options(&report.options),
    })
}

/// What was asked for. Not the number of threads: the answer does not depend on it.
fn options(options: &Options) -> Json {
    let mut fields = Map::new();
    fields.insert("command".into(), options.scope.command().into());
    match &options.scope {
        Scope::Tables(ids) => fields.insert("tables".into(), ids.clone().into()),
        Scope::Filegroup(id) => fields.insert("filegroup".into(), (*id).into()),
        Scope::Database | Scope::Allocation | Scope::Catalog => None,
    };
    fields.insert("physical_only".into(), options.physical_only.into());
    fields.insert("no_index".into(), options.no_index.into());
    fields.insert("extended_logical_checks".into(), options.extended_logical_checks.into());
    fields.insert("data_purity".into(), options.checks_purity().into());
    fields.insert("constraints".into(), options.constraints.into());
    fields.insert("identity".into(), options.identities.into());
    fields.into()
}

/// How many there are of each kind, by the kind's name in messages: "Message Types" ...
fn service_broker(report: &Report) -> Json {
    let counts: Map<String, Json> =
        report.service_broker.iter().map(|kind| (kind.name.to_owned(), kind.count.into())).collect();
    json!({"kind": "service_broker", "analyzed": counts})
}

fn object(rowset: &RowsetCounts) -> Json {
    json!({
        "kind": "object",
        "object_id": rowset.object_id,
        "schema": rowset.schema,
        "name": rowset.name,
        "type": rowset.type_code,
        "index_id": rowset.index_id,
        "index": rowset.index_name,
        "partition": rowset.partition,
        "partition_id": rowset.partition_id.cast_signed().to_string(),
        "rows": rowset.rows,
        "ghost_rows": rowset.ghost_rows,
        "forwarded_rows": rowset.forwarded_rows,
        "pages": {
            "data": rowset.data_pages,
            "index": rowset.index_pages,
            "iam": rowset.iam_pages,
            "lob": rowset.lob_pages,
            "overflow": rowset.overflow_pages,
        },
    })
}

fn finding(kind: &str, report: &Report, finding: &Finding, objects: &BTreeMap<i32, String>) -> Json {
    let owner = finding.owner.as_ref();
    let evidence: Map<String, Json> =
        finding.evidence.iter().map(|(name, value)| ((*name).to_owned(), evidence(value))).collect();
    let file = |page: Option<PageId>| page.map(|page| page.file);
    let page = |page: Option<PageId>| page.map(|page| page.page);
    json!({
        "kind": kind,
        "id": finding.check.id,
        "msg": finding.check.msg,
        "level": check::registry::LEVEL,
        "state": finding.state,
        "repair": finding.repair().name(),
        "object_id": owner.map(|owner| owner.object_id),
        "object": finding.object_id().and_then(|id| objects.get(&id)),
        "index_id": owner.map(|owner| owner.index_id),
        "partition_id": owner.map(|owner| owner.partition_id.cast_signed().to_string()),
        "alloc_unit_id": owner.map(|owner| owner.alloc_unit.to_string()),
        "alloc_type": owner.map(Owner::type_name),
        "file": file(finding.page),
        "page": page(finding.page),
        "slot": finding.slot,
        "ref_file": file(finding.ref_page),
        "ref_page": page(finding.ref_page),
        "ref_slot": finding.ref_slot,
        "text": finding.text(&report.names()),
        "evidence": evidence,
    })
}

fn evidence(value: &Value) -> Json {
    match value {
        Value::Number(number) => (*number).into(),
        Value::Page(page) => page.to_string().into(),
        Value::Text(text) => text.as_str().into(),
        Value::Owner(owner) => json!({
            "object_id": owner.object_id,
            "index_id": owner.index_id,
            "partition_id": owner.partition_id.cast_signed().to_string(),
            "alloc_unit_id": owner.alloc_unit.to_string(),
            "alloc_type": owner.type_name(),
        }),
    }
}

fn constraint(result: &ConstraintResult) -> Json {
    json!({
        "kind": "constraint",
        "table": result.table,
        "name": result.name,
        "type": result.type_name,
        "trusted": result.is_trusted,
        "verified": result.is_verified,
        "rows": result.rows,
        "violations": result.violations,
    })
}

fn identity(result: &IdentityResult) -> Json {
    let number = |value: Option<i64>| value.map(|value| value.to_string());
    json!({
        "kind": "identity",
        "table": result.table,
        "column": result.column,
        "current": number(result.current()),
        "increment": number(result.mark.map(|mark| mark.increment)),
        "seed": number(result.mark.map(|mark| mark.seed)),
        "farthest": number(result.farthest),
        "behind": result.is_behind(),
    })
}

fn summary(report: &Report, listing: &Listing<'_>, gate: &Gate) -> Json {
    let counted = |object_id: Option<i32>, object: Option<String>, group: &Group| {
        let counts = group.counts;
        counts.any().then(|| {
            json!({
                "object_id": object_id, "object": object, "allocation_errors": counts.allocation,
                "consistency_errors": counts.consistency,
            })
        })
    };
    let unattributed = counted(None, None, &listing.unattributed);
    let objects =
        listing.objects.iter().filter_map(|object| counted(Some(object.id), object.qualified_name(), &object.findings));
    let phase =
        |phase: &check::PhaseStatistics| json!({"name": phase.name, "seconds": phase.seconds, "bytes": phase.bytes});
    let (counts, statistics) = (report.counts(), &report.statistics);
    json!({
        "kind": "summary",
        "allocation_errors": counts.allocation,
        "consistency_errors": counts.consistency,
        "counted_per_object": unattributed.into_iter().chain(objects).collect::<Vec<_>>(),
        "findings": report.findings.len(),
        "findings_hidden": gate.hidden,
        "repair_level": report.repair().name(),
        "complete": report.complete(),
        "pages_read": statistics.pages_read,
        "pages_allocated": statistics.pages_allocated,
        "rows": statistics.rows,
        "verified": {
            "rows": statistics.rows_checked,
            "column_values": statistics.column_values_checked,
            "column_values_not_verified": statistics.column_values_not_verified,
            "indexes": statistics.indexes_compared,
            "indexes_in_scope": statistics.indexes_in_scope,
            "index_rows": statistics.index_rows_compared,
        },
        "seconds": statistics.seconds,
        "phases": statistics.phases.iter().map(phase).collect::<Vec<_>>(),
        "memory_peak": statistics.memory_peak,
        "memory_granted": statistics.memory_granted,
        "spilled": statistics.spilled_bytes,
    })
}
