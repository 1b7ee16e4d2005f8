//! CSV with the rows and columns of DBCC's WITH TABLERESULTS, SQL Server 2012 and later
//! (docs/format/checkdb.md#tableresults).
//!
//! Lines without a row in DBCC's result have none here: headings, the minimum repair level and the last line. What was
//! not verified has none either, so the caller must report it elsewhere.

use std::io;

use check::registry::LEVEL;
use check::{ErrorCounts, Finding, Group, Report, Scope};
use format::{AllocUnitId, PageId};

use crate::listing::{Listing, ObjectListing};
use crate::message::{self, Message};
use crate::{Gate, View};

const COLUMNS: [&str; 23] = [
    "Error",
    "Level",
    "State",
    "MessageText",
    "RepairLevel",
    "Status",
    "DbId",
    "DbFragId",
    "ObjectId",
    "IndexId",
    "PartitionId",
    "AllocUnitId",
    "RidDbId",
    "RidPruId",
    "File",
    "Page",
    "Slot",
    "RefDbId",
    "RefPruId",
    "RefFile",
    "RefPage",
    "RefSlot",
    "Allocation",
];

/// Level of summaries and counts.
const INFORMATIONAL: u8 = 10;

/// Writes `report` to `out`.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    let gate = Gate::new(view);
    let mut rows = Rows { report, gate, csv: csv::Writer::from_writer(out) };
    rows.csv.write_record(COLUMNS).map_err(io_error)?;
    rows.run(&Listing::of(report), view)?;
    rows.csv.flush()
}

/// Writes rows for informational messages that belong to no object.
pub(crate) fn write_messages(messages: &[Message], out: &mut dyn io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(COLUMNS).map_err(io_error)?;
    for message in messages {
        let cells = informational(message, 0).cells(0);
        csv.write_record(&cells).map_err(io_error)?;
    }
    csv.flush()
}

fn informational(message: &Message, object_id: i32) -> Row<'_> {
    Row {
        error: message.number,
        level: INFORMATIONAL,
        state: 1,
        text: &message.text,
        repair: None,
        object_id,
        index_id: 0,
        partition_id: 0,
        alloc_unit: AllocUnitId(0),
        row_database: 0,
        page: PageId::NONE,
        slot: 0,
        ref_page: PageId::NONE,
        ref_slot: 0,
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

struct Rows<'a> {
    report: &'a Report,
    gate: Gate,
    csv: csv::Writer<&'a mut dyn io::Write>,
}

impl Rows<'_> {
    fn run(&mut self, listing: &Listing<'_>, view: View) -> io::Result<()> {
        let report = self.report;
        let command = report.options.scope.command();
        self.findings(&listing.before_heading)?;
        for kind in report.service_broker.iter().filter(|_| !view.no_infomsgs) {
            self.summary(&message::broker_count(kind), 0)?;
        }
        self.findings(&listing.unattributed)?;
        let counts = listing.unattributed.counts;
        let is_checkcatalog = report.options.scope == Scope::Catalog;
        if counts.any() && !is_checkcatalog {
            self.summary(&message::found_unattributed(command, counts), 0)?;
        }
        let lists_objects =
            !view.no_infomsgs && !report.options.physical_only && report.options.scope != Scope::Allocation;
        for object in &listing.objects {
            self.object(object, lists_objects)?;
        }
        let is_checktable = matches!(report.options.scope, Scope::Tables(_));
        if !is_checktable && !is_checkcatalog && (!view.no_infomsgs || report.counts() != ErrorCounts::default()) {
            self.summary(&message::found_in_database(report), 0)?;
        }
        Ok(())
    }

    fn object(&mut self, object: &ObjectListing<'_>, lists_objects: bool) -> io::Result<()> {
        let name = object.name();
        if let Some(counted) = object.counted(&name).filter(|_| lists_objects) {
            self.summary(&counted, object.id)?;
        }
        self.findings(&object.findings)?;
        let counts = object.findings.counts;
        if counts.any() {
            let command = self.report.options.scope.command();
            self.summary(&message::found_in_table(command, counts, &name, object.id), object.id)?;
        }
        Ok(())
    }

    fn findings(&mut self, group: &Group) -> io::Result<()> {
        for finding in self.gate.pass(self.report, group) {
            self.finding(&finding)?;
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let owner = finding.owner.unwrap_or(check::Owner {
            object_id: 0,
            index_id: 0,
            partition_id: 0,
            alloc_unit: AllocUnitId(0),
            kind: None,
        });
        let (error, state, text) = message::of_finding(self.report, finding);
        let database = self.report.database.id;
        self.row(&Row {
            error,
            level: LEVEL,
            state,
            text: &text,
            repair: finding.repair().name(),
            object_id: owner.object_id,
            index_id: owner.index_id,
            partition_id: owner.partition_id.cast_signed(),
            alloc_unit: owner.alloc_unit,
            row_database: database,
            page: finding.page.unwrap_or(PageId::NONE),
            slot: finding.slot.unwrap_or_default(),
            ref_page: finding.ref_page.unwrap_or(PageId::NONE),
            ref_slot: finding.ref_slot.unwrap_or_default(),
        })
    }

    fn summary(&mut self, message: &Message, object_id: i32) -> io::Result<()> {
        self.row(&informational(message, object_id))
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.csv.write_record(row.cells(self.report.database.id)).map_err(io_error)
    }
}

/// What differs from row to row; the other columns are constant.
struct Row<'a> {
    error: u16,
    level: u8,
    state: u8,
    text: &'a str,
    repair: Option<&'static str>,
    object_id: i32,
    index_id: i32,
    partition_id: i64,
    alloc_unit: AllocUnitId,
    /// RidDbId and RefDbId.
    row_database: u16,
    page: PageId,
    slot: u16,
    ref_page: PageId,
    ref_slot: u16,
}

impl Row<'_> {
    fn cells(&self, database: u16) -> [String; COLUMNS.len()] {
        let text = str::to_owned;
        [
            self.error.to_string(),
            self.level.to_string(),
            self.state.to_string(),
            text(self.text),
            text(self.repair.unwrap_or("NULL")),
            text("0"),
            database.to_string(),
            text("1"),
            self.object_id.to_string(),
            self.index_id.to_string(),
            self.partition_id.to_string(),
            self.alloc_unit.to_string(),
            self.row_database.to_string(),
            text("0"),
            self.page.file.to_string(),
            self.page.page.cast_signed().to_string(),
            self.slot.to_string(),
            self.row_database.to_string(),
            text("0"),
            self.ref_page.file.to_string(),
            self.ref_page.page.cast_signed().to_string(),
            self.ref_slot.to_string(),
            text("1"),
        ]
    }
}
