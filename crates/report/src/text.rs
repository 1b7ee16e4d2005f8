//! DBCC's own lines in DBCC's order, so that existing parsers keep working (docs/format/checkdb.md#order-of-lines).

use std::collections::BTreeMap;
use std::io;

use findings::registry::LEVEL;
use findings::{Group, IdentityResult, Report, Scope};

use crate::listing::{Listing, ObjectListing};
use crate::message::{self, Message};
use crate::text_table::printable;
use crate::{Gate, View, not_verified, pattern_lines, text_alloc, text_constraints};

/// Writes `report` to `out`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    let gate = Gate::new(view);
    let mut identities: BTreeMap<i32, Vec<&IdentityResult>> = BTreeMap::new();
    for result in &report.beyond.identities {
        identities.entry(result.table_id).or_default().push(result);
    }
    Text { report, view, gate, identities, out }.run(&Listing::of(report))
}

struct Text<'a> {
    report: &'a Report,
    view: View,
    gate: Gate,
    /// Results of identity columns, by table.
    identities: BTreeMap<i32, Vec<&'a IdentityResult>>,
    out: &'a mut dyn io::Write,
}

impl Text<'_> {
    fn run(&mut self, listing: &Listing<'_>) -> io::Result<()> {
        let report = self.report;
        let command = report.options.scope.command();
        pattern_lines(report).try_for_each(|line| writeln!(self.out, "{line}"))?;
        if report.options.scope == Scope::Catalog {
            return self.catalog(listing);
        }
        let is_checktable = matches!(report.options.scope, Scope::Tables(_));
        self.findings(&listing.before_heading)?;
        if !is_checktable {
            self.info(&message::results_for(&report.database.name))?;
        }
        if report.options.no_index {
            self.info(&message::no_index(command))?;
        }
        for kind in &report.service_broker {
            self.info(&message::broker_count(kind))?;
        }
        self.findings(&listing.unattributed)?;
        if let Some(warning) = message::catalog_updated(report) {
            self.error(warning.number, 1, &warning.text)?;
        }
        let counts = listing.unattributed.counts;
        if counts.any() {
            self.message(&message::found_unattributed(command, counts))?;
        }
        for object in &listing.objects {
            self.object(object)?;
            if is_checktable {
                // Each table has its own repair level, because CHECKTABLE checks only one table per statement.
                let level = object.findings.repair.max(listing.unattributed.repair);
                self.repair_level(level, object.qualified_name().as_deref())?;
            }
        }
        if let Some(lost) = message::facts_lost(report) {
            self.error(lost.number, 1, &lost.text)?;
        }
        if report.options.scope == Scope::Allocation && self.prints_objects() {
            text_alloc::write_totals(report, self.out)?;
        }
        if !is_checktable {
            let summary = message::found_in_database(report);
            if report.counts().any() { self.message(&summary) } else { self.info(&summary) }?;
            self.repair_level(report.repair(), None)?;
        }
        if report.options.constraints {
            text_constraints::write(report, self.view, self.out)?;
        }
        if let Some(line) = message::constraints(report).filter(|_| !self.view.no_infomsgs) {
            writeln!(self.out, "{line}")?;
        }
        self.end()
    }

    /// Writes the results of CHECKCATALOG, which have neither heading nor summary.
    fn catalog(&mut self, listing: &Listing<'_>) -> io::Result<()> {
        self.findings(&listing.before_heading)?;
        self.findings(&listing.unattributed)?;
        for object in &listing.objects {
            self.findings(&object.findings)?;
        }
        if let Some(warning) = message::catalog_updated(self.report) {
            self.info(&warning)?;
        }
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.info(&message::completed())?;
        match self.gate.hidden {
            0 => {}
            1 => writeln!(self.out, "One more finding is counted but not shown (--max-findings).")?,
            hidden => writeln!(self.out, "{hidden} more findings are counted but not shown (--max-findings).")?,
        }
        match self.view.findings_only {
            true => Ok(()),
            false => not_verified::write(self.report, self.view, self.out),
        }
    }

    /// Whether objects without findings are listed. PHYSICAL_ONLY and NO_INFOMSGS suppress them.
    fn prints_objects(&self) -> bool {
        !self.view.no_infomsgs && !self.report.options.physical_only
    }

    fn object(&mut self, object: &ObjectListing<'_>) -> io::Result<()> {
        let command = self.report.options.scope.command();
        let name = object.name();
        let counted = object.counted(&name);
        let is_listed = self.prints_objects() && (counted.is_some() || !object.findings.is_empty());
        if is_listed && self.report.options.scope == Scope::Allocation {
            text_alloc::write_object(object, self.out)?;
            self.findings(&object.findings)?;
        } else {
            if is_listed {
                self.message(&message::results_for(&name))?;
            }
            self.findings(&object.findings)?;
            if let Some(counted) = counted.filter(|_| is_listed) {
                self.message(&counted)?;
            }
            self.identities(object.id)?;
        }
        let counts = object.findings.counts;
        if counts.any() {
            self.message(&message::found_in_table(command, counts, &name, object.id))?;
        }
        Ok(())
    }

    /// Writes the results for the identity columns of an object. If rows have values beyond the current identity value
    /// of a column, the column is reported even if informational messages are suppressed.
    fn identities(&mut self, object_id: i32) -> io::Result<()> {
        for result in self.identities.remove(&object_id).unwrap_or_default() {
            self.info(&message::identity(result))?;
            if result.is_behind() {
                writeln!(self.out, "{}", printable(&message::identity_behind(result)))?;
            }
        }
        Ok(())
    }

    fn repair_level(&mut self, repair: findings::registry::Repair, table: Option<&str>) -> io::Result<()> {
        match message::repair_level(self.report, repair, table) {
            Some(message) => self.message(&message),
            None => Ok(()),
        }
    }

    fn findings(&mut self, group: &Group) -> io::Result<()> {
        for finding in self.gate.pass(self.report, group) {
            let (number, state, text) = message::of_finding(self.report, &finding);
            self.error(number, state, &text)?;
        }
        Ok(())
    }

    fn error(&mut self, number: u16, state: u8, text: &str) -> io::Result<()> {
        writeln!(self.out, "Msg {number}, Level {LEVEL}, State {state}, Line 1")?;
        writeln!(self.out, "{}", printable(text))
    }

    fn message(&mut self, message: &Message) -> io::Result<()> {
        writeln!(self.out, "{}", printable(&message.text))
    }

    fn info(&mut self, message: &Message) -> io::Result<()> {
        if self.view.no_infomsgs { Ok(()) } else { self.message(message) }
    }
}
