//! CSV with the rows and columns of DBCC's WITH TABLERESULTS (docs/format/checkdb.md#tableresults). NULL is an empty cell.
//!
//! Lines without a row in DBCC's result have no row here: headings, the minimum repair level and the last line. The
//! list of what was not verified has no row either, so the caller must report it elsewhere.

use std::borrow::Cow;
use std::io;

use findings::registry::{self, LEVEL};
use findings::{ErrorCounts, Finding, Group, Report, Scope};
use format::{AllocUnitId, PageId};

use crate::listing::{Listing, ObjectListing};
use crate::message::{self, Message};
use crate::{Gate, View};

/// The columns of DBCC's result, which depend on the release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Columns {
    /// SQL Server 2012 and later.
    #[default]
    Newer,
    /// SQL Server 2005, 2008 and 2008 R2.
    Older,
}

impl Columns {
    fn names(self) -> Vec<&'static str> {
        let of_row = ["Error", "Level", "State", "MessageText", "RepairLevel", "Status", "DbId"];
        let newer: [&[&str]; 3] = [
            &of_row,
            &["DbFragId", "ObjectId", "IndexId", "PartitionId", "AllocUnitId", "RidDbId", "RidPruId"],
            &["File", "Page", "Slot", "RefDbId", "RefPruId", "RefFile", "RefPage", "RefSlot", "Allocation"],
        ];
        let older: [&[&str]; 3] = [
            &of_row,
            &["Id", "IndId", "PartitionId", "AllocUnitId"],
            &["File", "Page", "Slot", "RefFile", "RefPage", "RefSlot", "Allocation"],
        ];
        match self {
            Self::Newer => newer,
            Self::Older => older,
        }
        .concat()
    }
}

/// The messages whose columns RefFile, RefPage and RefSlot name the parent page.
const NAME_PARENT: [u16; 2] = [8976, 8980];

/// The level of summaries and counts.
const INFORMATIONAL: u8 = 10;

/// Writes `report` to `out`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(columns: Columns, report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    let gate = Gate::new(view);
    let mut rows = Rows { report, gate, columns, csv: csv::Writer::from_writer(out) };
    rows.csv.write_record(columns.names()).map_err(io_error)?;
    rows.run(&Listing::of(report), view)?;
    rows.csv.flush()
}

/// Writes a row for each of `messages`, which are informational and belong to no object.
pub(crate) fn write_messages(columns: Columns, messages: &[Message], out: &mut dyn io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(columns.names()).map_err(io_error)?;
    for message in messages {
        let cells = informational(message, 0).cells(columns, 0);
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

pub(crate) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

struct Rows<'a> {
    report: &'a Report,
    gate: Gate,
    columns: Columns,
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
        let is_checkcatalog = report.options.scope == Scope::Catalog;
        match message::catalog_updated(report) {
            // CHECKCATALOG prints warning 3859 as an informational message.
            Some(warning) if is_checkcatalog && !view.no_infomsgs => self.summary(&warning, 0)?,
            Some(warning) if !is_checkcatalog => self.row(&Row { level: LEVEL, ..informational(&warning, 0) })?,
            _ => {}
        }
        let counts = listing.unattributed.counts;
        if counts.any() && !is_checkcatalog {
            self.summary(&message::found_unattributed(command, counts), 0)?;
        }
        let lists_objects =
            !view.no_infomsgs && !report.options.physical_only && report.options.scope != Scope::Allocation;
        for object in &listing.objects {
            self.object(object, lists_objects)?;
        }
        if let Some(lost) = message::facts_lost(report) {
            self.row(&Row { level: LEVEL, ..informational(&lost, 0) })?;
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
        // The row of message 8928 names the parent page, but only a later message about the same page tells which page
        // is the parent. The findings of a page are therefore collected before their rows are written.
        let mut waiting: Vec<Cow<'_, Finding>> = Vec::new();
        for finding in self.gate.pass(self.report, group) {
            if finding.page.is_none() {
                self.page_of_findings(&std::mem::take(&mut waiting))?;
                self.page_of_findings(&[finding])?;
                continue;
            }
            if waiting.last().is_some_and(|before| before.page != finding.page || before.owner != finding.owner) {
                self.page_of_findings(&waiting)?;
                waiting.clear();
            }
            waiting.push(finding);
        }
        self.page_of_findings(&waiting)
    }

    /// Writes the rows of findings that all have the same page and owner.
    fn page_of_findings(&mut self, findings: &[Cow<'_, Finding>]) -> io::Result<()> {
        let names_parent = |finding: &&Cow<'_, Finding>| NAME_PARENT.contains(&finding.check.msg);
        let parent = findings.iter().find(names_parent).map(|finding| (finding.ref_page, finding.ref_slot));
        for finding in findings {
            let own = (finding.ref_page, finding.ref_slot);
            let is_unprocessed = finding.check == &registry::PAGE_UNPROCESSED;
            self.finding(finding, if is_unprocessed { parent.unwrap_or(own) } else { own })?;
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding, (ref_page, ref_slot): (Option<PageId>, Option<u16>)) -> io::Result<()> {
        let owner = finding.owner.unwrap_or(findings::Owner {
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
            ref_page: ref_page.unwrap_or(PageId::NONE),
            ref_slot: ref_slot.unwrap_or_default(),
        })
    }

    fn summary(&mut self, message: &Message, object_id: i32) -> io::Result<()> {
        self.row(&informational(message, object_id))
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.csv.write_record(row.cells(self.columns, self.report.database.id)).map_err(io_error)
    }
}

/// The cells that differ from row to row. The other columns have constant values.
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
    /// The value of RidDbId and RefDbId.
    row_database: u16,
    page: PageId,
    slot: u16,
    ref_page: PageId,
    ref_slot: u16,
}

impl Row<'_> {
    fn cells(&self, columns: Columns, database: u16) -> Vec<String> {
        let text = str::to_owned;
        let mut cells = vec![
            self.error.to_string(),
            self.level.to_string(),
            self.state.to_string(),
            text(self.text),
            // An empty cell is NULL.
            text(self.repair.unwrap_or_default()),
            text("0"),
            database.to_string(),
        ];
        let is_newer = columns == Columns::Newer;
        let newer = |values: &[&str]| -> Vec<String> {
            if is_newer { values.iter().copied().map(text).collect() } else { Vec::new() }
        };
        let rid_database = self.row_database.to_string();
        cells.extend(newer(&["1"]));
        cells.extend([self.object_id.to_string(), self.index_id.to_string()]);
        cells.extend([self.partition_id.to_string(), self.alloc_unit.to_string()]);
        for (page, slot) in [(self.page, self.slot), (self.ref_page, self.ref_slot)] {
            cells.extend(newer(&[&rid_database, "0"]));
            cells.extend([page.file.to_string(), page.page.cast_signed().to_string(), slot.to_string()]);
        }
        cells.push(text("1"));
        cells
    }
}
