//! The contents of a transaction log, for people.

use std::io;

use format::types::guid_text;
use log::{Checkpoint, Transaction, duration_ms};

use crate::log::{Held, Hold, LogReport, login_text, state};
use crate::server_text::{lsn_text, time_text};
use crate::text_table::{TextTable, printable};

/// Number of characters per line in the picture of the VLFs.
const PICTURE_WIDTH: usize = 96;
/// Number of characters of the longest bar.
const BAR_WIDTH: u64 = 32;
const KB: u64 = 1024;
/// Number of characters of a time to the minute: `2024-03-01 00:10`.
const MINUTE: usize = 16;

impl LogReport<'_> {
    /// Writes the whole log for people.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_text(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.files(out)?;
        self.picture(out)?;
        self.state(out)?;
        self.transactions("Open transactions", self.open, out)?;
        self.transactions("Largest transactions", &self.totals.largest, out)?;
        self.checkpoints(out)?;
        self.rate(out)
    }

    fn files(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut table = TextTable::new(&[0, 2, 3, 4]);
        table.row(["file", "name", "MB", "VLFs", "in use", "path"]);
        for (number, file) in self.log.files().iter().enumerate() {
            let in_use = self.log.run().iter().filter(|placed| placed.file == number).count();
            table.row([
                file.file_id.to_string(),
                file.logical_name.clone(),
                megabytes(file.bytes),
                file.vlfs.len().to_string(),
                in_use.to_string(),
                file.path.display().to_string(),
            ]);
        }
        table.write(0, out)?;
        if let Some(file) = self.log.files().first() {
            writeln!(out, "\nBinding GUID: {}", guid_text(file.binding_guid))?;
        }
        Ok(())
    }

    /// Draws the VLFs of each file. Each character represents one VLF. If a log has very many VLFs, a character
    /// represents several adjacent VLFs.
    fn picture(&self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "\nVirtual log files: # needed for recovery, + log that is no longer needed, . free")?;
        for (number, file) in self.log.files().iter().enumerate() {
            let letters: Vec<char> = file.vlfs.iter().map(|vlf| self.letter(number, vlf.offset)).collect();
            // A character for several VLFs shows the most important state among them.
            let together = letters.len().div_ceil(10 * PICTURE_WIDTH).max(1);
            let shown: Vec<char> = letters
                .chunks(together)
                .filter_map(|letters| letters.iter().copied().max_by_key(|letter| ".+#".find(*letter)))
                .collect();
            for (index, line) in shown.chunks(PICTURE_WIDTH).enumerate() {
                let head = if index == 0 { format!("{:>4}", file.file_id) } else { " ".repeat(4) };
                writeln!(out, "{head}  {}", line.iter().collect::<String>())?;
            }
            if together > 1 {
                writeln!(out, "      each letter stands for {together} virtual log files")?;
            }
        }
        Ok(())
    }

    fn letter(&self, file: usize, offset: u64) -> char {
        match self.use_of(file, offset) {
            (_, true) => '#',
            (0, false) => '.',
            (_, false) => '+',
        }
    }

    fn state(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut table = TextTable::new(&[]);
        let oldest = self.log.run().first().map_or(0, |placed| placed.vlf.sequence);
        table.row([
            "Log".to_owned(),
            format!(
                "{} blocks, {} records, {}, from VLF {oldest} to VLF {}",
                self.history.blocks(),
                self.history.records(),
                size(self.history.bytes()),
                self.end.at.vlf.sequence
            ),
        ]);
        let last = self.history.last().map_or_else(|| "no record".to_owned(), lsn_text);
        let closed =
            self.history.last_closed().and_then(time_text).map(|at| format!(", written {at}")).unwrap_or_default();
        table.row(["Last record".to_owned(), format!("{last}{closed}")]);
        let end = match (self.end_words(), self.log.cut_at(&self.end)) {
            (_, Some(at)) => format!("CUT OFF: the log file ends at byte {at}"),
            (("written", _), None) => "nothing follows".to_owned(),
            (("under way", count), None) => {
                format!("{count} blocks of unfinished writes follow, as after a crash")
            }
            (("damaged", 0), None) => "DAMAGED: the log continues, but its next block is damaged".to_owned(),
            _ => "DAMAGED: more blocks of the log follow, but a block before them is missing or damaged".to_owned(),
        };
        table.row(["After that".to_owned(), end]);
        let needed = match (self.needed_from(), self.history.last_checkpoint()) {
            (Some(needed), Some(checkpoint)) if checkpoint.redo == Some(needed) => {
                let before = if self.end_words().0 == "damaged" { " before the damage" } else { "" };
                format!("{}, the redo start of the last checkpoint{before}", lsn_text(needed))
            }
            (Some(needed), _) => format!("{}, the begin of the oldest open transaction", lsn_text(needed)),
            (None, _) => "unknown: no checkpoint ended in this log".to_owned(),
        };
        table.row(["Needed from".to_owned(), needed]);
        let is_damaged = self.end_words().0 == "damaged";
        match self.held() {
            Some(held) => table.row(["Log reuse wait".to_owned(), self.held_words(held)]),
            None if is_damaged => table.row(["Log reuse wait", "unknown: the log after the damage cannot be read"]),
            None => {}
        }
        let backups = match self.boot {
            Some(boot) if boot.is_simple_recovery() => "do not delay reuse (simple recovery model)",
            Some(boot) if boot.log_backup_chain_origin == format::Lsn::default() => {
                "do not delay reuse, as there is no full backup yet"
            }
            Some(_) => "the log is kept until it is backed up (full or bulk-logged recovery model)",
            None => "unknown without the data files: pass them on the command line too",
        };
        table.row(["Log backups".to_owned(), backups.to_owned()]);
        table.row([
            "Not known".to_owned(),
            "whether replication or change data capture still needs part of the log".to_owned(),
        ]);
        writeln!(out)?;
        table.write(0, out)
    }

    /// A text that says why a part of the log is still needed, and how large this part is.
    fn held_words(&self, held: Held) -> String {
        let why = match held.by {
            Hold::Nothing => "only the current virtual log file is needed".to_owned(),
            Hold::Checkpoint => "the redo start of the last checkpoint".to_owned(),
            Hold::LogBackup => "the log from this LSN on is not backed up".to_owned(),
            Hold::ActiveTransaction => self.oldest_open().map_or_else(String::new, |transaction| {
                let login =
                    login_text(transaction, self.logins).map(|login| format!(" of {login}")).unwrap_or_default();
                let began = transaction.began.and_then(time_text).map(|at| format!(" since {at}")).unwrap_or_default();
                format!(
                    "transaction {} ({}), session {}{login}, open{began}",
                    transaction.id,
                    printable(&transaction.name),
                    transaction.session
                )
            }),
        };
        format!("{}, {} from {} on: {why}", held.by.name(), size(held.bytes), lsn_text(held.from))
    }

    fn checkpoints(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let totals = self.totals;
        writeln!(out, "\nCheckpoints: {}", self.history.checkpoints())?;
        if let (Some(first), Some(last)) = (totals.first.and_then(time_text), totals.last.and_then(time_text)) {
            writeln!(out, "  from {first} to {last}, local time of the server")?;
        }
        if totals.timed_checkpoints == 0 {
            return Ok(());
        }
        let average = totals.checkpoint_ms as f64 / totals.timed_checkpoints as f64;
        let per = totals.checkpoint_log_bytes / totals.timed_checkpoints;
        writeln!(out, "  {average:.1} ms and {} of log on average; the longest:", size(per))?;
        checkpoint_table(&totals.longest, out)?;
        if totals.timed_checkpoints > totals.longest.len() as u64 {
            writeln!(out, "  the last:")?;
            checkpoint_table(totals.latest.iter(), out)?;
        }
        Ok(())
    }

    /// Writes the amount of log over time: log bytes, records and transactions, with one line per time step.
    fn rate(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let (seconds, steps) = self.steps();
        if steps.is_empty() {
            return writeln!(out, "\nLog over time: the log contains no times");
        }
        writeln!(
            out,
            "\nLog over time, per {}; local time of the server, steps without log are omitted:",
            length_text(seconds)
        )?;
        let most = steps.iter().map(|(_, step)| step.log_bytes).max().unwrap_or(1).max(1);
        let mut table = TextTable::new(&[1, 2, 3]);
        table.row(["from", "MB of log", "records", "transactions"]);
        for (from, step) in &steps {
            let from = time_text(*from).unwrap_or_default();
            let bar = "#".repeat((step.log_bytes * BAR_WIDTH).div_ceil(most) as usize);
            table.row([
                from.get(..MINUTE).unwrap_or(&from).to_owned(),
                format!("{:.2}", step.log_bytes as f64 / f64::from(1 << 20)),
                step.records.to_string(),
                step.transactions.to_string(),
                bar,
            ]);
        }
        table.write(2, out)
    }

    fn transactions(&self, title: &str, of: &[Transaction], out: &mut dyn io::Write) -> io::Result<()> {
        if of.is_empty() {
            return writeln!(out, "\n{title}: none");
        }
        writeln!(out, "\n{title}:")?;
        let mut table = TextTable::new(&[1, 5, 6]);
        table.row(["id", "session", "login", "name", "state", "records", "KB of log", "began", "LSN"]);
        for transaction in of {
            let session = Some(transaction.session).filter(|session| *session != 0);
            table.row([
                transaction.id.to_string(),
                session.map(|session| session.to_string()).unwrap_or_default(),
                login_text(transaction, self.logins).unwrap_or_default(),
                transaction.name.clone(),
                state(transaction.outcome).to_owned(),
                transaction.records.to_string(),
                transaction.log_bytes.div_ceil(KB).to_string(),
                transaction.began.and_then(time_text).unwrap_or_default(),
                transaction.begin.map(lsn_text).unwrap_or_default(),
            ]);
        }
        table.write(2, out)
    }
}

fn checkpoint_table<'c>(of: impl IntoIterator<Item = &'c Checkpoint>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[1, 2, 3]);
    table.row(["began", "ms", "KB of log before it", "open transactions", "LSN"]);
    for checkpoint in of {
        table.row([
            checkpoint.began.and_then(time_text).unwrap_or_default(),
            duration_ms(checkpoint).map(|ms| ms.to_string()).unwrap_or_default(),
            checkpoint.log_bytes.div_ceil(KB).to_string(),
            checkpoint.open_transactions.to_string(),
            lsn_text(checkpoint.begin),
        ]);
    }
    table.write(2, out)
}

/// A duration in the largest unit of which the duration is a whole multiple.
fn length_text(seconds: i64) -> String {
    const UNITS: [(i64, &str); 3] = [(86_400, "day"), (3600, "hour"), (60, "minute")];
    let unit = UNITS.iter().find(|(unit, _)| seconds % unit == 0);
    let (count, name) = unit.map_or((seconds, "second"), |(unit, name)| (seconds / unit, name));
    if count == 1 { name.to_owned() } else { format!("{count} {name}s") }
}

/// A size in KB if it is below 1 MB, otherwise in MB.
fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KB", bytes.div_ceil(KB)) } else { format!("{} MB", megabytes(bytes)) }
}

/// Megabytes with one decimal.
fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_kilobytes_are_not_0_mb() {
        let sizes = [0, 1, 1024, 1025, (1 << 20) - 1024, 1 << 20, 3 << 19, 10 << 30];
        let expected = ["0 KB", "1 KB", "1 KB", "2 KB", "1023 KB", "1.0 MB", "1.5 MB", "10240.0 MB"];
        assert_eq!(sizes.map(size), expected);
    }
}
