//! A history as CSV.

use std::io;

use history::query::{FindingRow, ObjectRow, RunRow};

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Writes runs with the columns of the table CommandLog of Ola Hallengren's maintenance scripts.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_runs_csv(runs: &[RunRow], out: &mut dyn io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "ID",
        "DatabaseName",
        "SchemaName",
        "ObjectName",
        "ObjectType",
        "IndexName",
        "IndexType",
        "StatisticsName",
        "PartitionNumber",
        "ExtendedInfo",
        "Command",
        "CommandType",
        "StartTime",
        "EndTime",
        "ErrorNumber",
        "ErrorMessage",
    ])?;
    for run in runs {
        let message = match (&run.error, run.findings, run.not_verified) {
            (Some(error), ..) => error.clone(),
            (None, 0, 0) => String::new(),
            (None, found, unverified) => {
                format!(
                    "{found} findings ({} new, {} gone), {unverified} not verified",
                    run.findings_new, run.findings_gone
                )
            }
        };
        let command = if run.command.is_empty() { "CHECKDB" } else { &run.command };
        csv.write_record([
            &run.id.to_string(),
            run.database.as_deref().unwrap_or_default(),
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            &run.paths,
            &format!("DBCC {command} ({})", run.database.as_deref().unwrap_or("?")),
            &format!("DBCC_{command}"),
            &run.started,
            &run.ended,
            &run.exit_status.to_string(),
            &message,
        ])?;
    }
    csv.flush()
}

/// Writes findings, one row each.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_findings_csv(findings: &[FindingRow], out: &mut dyn io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "Key",
        "Database",
        "Source",
        "Host",
        "Location",
        "Life",
        "Check",
        "Error",
        "State",
        "Object",
        "ObjectId",
        "IndexId",
        "File",
        "Page",
        "Slot",
        "FirstSeen",
        "LastSeen",
        "LastLooked",
        "Seen",
        "AckBy",
        "AckText",
        "AckUntil",
        "MessageText",
    ])?;
    for found in findings {
        csv.write_record([
            found.id.to_string(),
            found.database.clone(),
            found.source.clone(),
            found.host.clone(),
            found.location.clone(),
            found.life.clone(),
            found.check_id.clone(),
            found.msg.to_string(),
            found.state.to_string(),
            text(found.object.as_ref()),
            text(found.object_id),
            text(found.index_id),
            text(found.file),
            text(found.page),
            text(found.slot),
            found.first_seen.clone(),
            found.last_seen.clone(),
            found.last_looked.clone(),
            found.seen.to_string(),
            text(found.ack_by.as_ref()),
            text(found.ack_text.as_ref()),
            text(found.ack_until.as_ref()),
            found.text.clone(),
        ])?;
    }
    csv.flush()
}

/// Writes heaps and indexes, one row each.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_objects_csv(objects: &[ObjectRow], out: &mut dyn io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "Database",
        "Object",
        "ObjectId",
        "Index",
        "IndexId",
        "Partition",
        "FirstAt",
        "FirstRows",
        "FirstPages",
        "LastAt",
        "LastRows",
        "LastPages",
        "ProvenAt",
    ])?;
    for object in objects {
        csv.write_record([
            object.database.clone(),
            object.object.clone(),
            object.object_id.to_string(),
            object.index.clone(),
            object.index_id.to_string(),
            object.partition.to_string(),
            object.first_at.clone(),
            object.first.0.to_string(),
            object.first.1.to_string(),
            object.last_at.clone(),
            object.last.0.to_string(),
            object.last.1.to_string(),
            text(object.closed_at.as_ref()),
        ])?;
    }
    csv.flush()
}
