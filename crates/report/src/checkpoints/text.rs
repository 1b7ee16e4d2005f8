//! Checkpoints as text.

use std::io;

use events::Clock;

use super::CheckpointReport;
use super::tables::{Table, totals};
use crate::text_table::TextTable;

/// Maximum number of slow checkpoints that are listed, the slowest first.
const LISTED: usize = 20;

impl CheckpointReport {
    /// Writes the whole report for people.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_text(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut sections = Sections { out, is_first: true };
        for (heading, groups) in self.sources() {
            sections.table(&heading, totals(groups))?;
        }
        sections.table("Before and after a change", self.change_table())?;
        for clock in [Clock::Utc, Clock::Local] {
            let (title, table, more) = self.slow_table(clock, LISTED);
            sections.table(&title, table)?;
            if more > 0 {
                writeln!(sections.out, "  and {more} faster checkpoints (--json lists them)")?;
            }
        }
        sections.table("Settings in the boot pages", self.target_table())?;
        self.remarks(&mut sections)
    }

    fn remarks(&self, sections: &mut Sections<'_>) -> io::Result<()> {
        let counts = self.counts;
        let remarks = [
            (counts.unpaired_begins, "Checkpoint begins without an end"),
            (counts.unpaired_ends, "Checkpoint ends without a begin"),
            (counts.repeated, "Repeated begins and ends of checkpoints, counted once"),
            (counts.unusable, "Checkpoint events without a time or database, not counted"),
            (counts.unclear_lines, "Error log lines about checkpoints whose first line is missing, not counted"),
        ];
        let is_first = sections.is_first;
        if is_first && remarks.iter().all(|(count, _)| *count == 0) {
            return writeln!(sections.out, "No checkpoints.");
        }
        for (at, (count, text)) in remarks.into_iter().filter(|(count, _)| *count > 0).enumerate() {
            let gap = if at == 0 && !is_first { "\n" } else { "" };
            writeln!(sections.out, "{gap}{text}: {count}")?;
        }
        Ok(())
    }
}

/// Tables under headings, with an empty line between them.
struct Sections<'a> {
    out: &'a mut dyn io::Write,
    is_first: bool,
}

impl Sections<'_> {
    /// Writes a table if the table has rows.
    fn table(&mut self, title: &str, table: Table) -> io::Result<()> {
        if table.rows.is_empty() {
            return Ok(());
        }
        if !std::mem::take(&mut self.is_first) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{title}")?;
        let mut text = TextTable::new(table.numbers);
        text.row(table.heads.iter().copied());
        table.rows.into_iter().for_each(|row| text.row(row));
        text.write(2, self.out)
    }
}
