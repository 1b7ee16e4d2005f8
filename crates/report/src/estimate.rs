//! The estimated needs of a run: the temporary space (CHECKDB's message 5281), the memory, and the bytes to read.

use std::io;
use std::time::Duration;

use findings::{Estimate, Scope};
use history::windows::promise::Rhythm;

use crate::amounts::{counted, grouped};
use crate::databases::size;
use crate::json::lines::{self, Line};
use crate::message;
use crate::text_table::printable;
use crate::windows::ByTable;
use crate::{Format, View, tableresults, windows};

/// The schedule of a check that is spread over several windows of time.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// The length of a window.
    pub window: Duration,
    /// Read speed in the last windows, in bytes per second; `None` if unknown.
    pub rate: Option<f64>,
    /// What windows over a database that changes have left; `None` if unknown.
    pub left: Option<Left>,
}

/// What windows over a database that changes have left.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// The tables, and how many of them are closed.
    pub by_table: ByTable,
    /// Number of bytes of the pages in use.
    pub all_bytes: u64,
    /// Number of bytes of the pages that no window has read as they are now.
    pub left_bytes: u64,
    /// The part of them that has come since the last window; `None` if unknown.
    pub new_bytes: Option<u64>,
}

impl Windows {
    /// A line with the tables that are closed, and the number of windows until all are.
    pub fn left_text(self) -> Option<String> {
        let Left { by_table: ByTable { tables, closed }, all_bytes, left_bytes, new_bytes } = self.left?;
        let new = new_bytes.map(|bytes| format!(", {} of them new since the last window", size(bytes)));
        let new = new.filter(|_| left_bytes > 0).unwrap_or_default();
        let after = match self.windows_left() {
            _ if left_bytes == 0 => ".".to_owned(),
            Some(Some(windows)) => format!("; closed after {}.", counted(windows, "window", "windows")),
            Some(None) => "; from one window to the next, more changes than a window reads, so tables are closed in \
                           turn, but never all at once."
                .to_owned(),
            None => "; the number of windows is unknown, as there was none yet.".to_owned(),
        };
        let (closed, tables) = (grouped(closed), counted(tables, "table is", "tables are"));
        Some(format!("{closed} of {tables} closed; {} of {} are left{new}{after}", size(left_bytes), size(all_bytes)))
    }

    /// The number of windows until all tables are closed at once: `None` if the speed is unknown, and the inner `None` if that
    /// never happens.
    fn windows_left(self) -> Option<Option<u64>> {
        let Left { left_bytes, new_bytes, .. } = self.left?;
        let bytes = self.rate? * self.window.as_secs_f64();
        let gained = bytes - new_bytes.unwrap_or_default() as f64;
        let windows = (left_bytes as f64 / gained).ceil().max(1.0);
        Some((gained > 0.0 && windows < 1e9).then_some(windows as u64))
    }

    /// A line with the number of windows that are needed to read everything once.
    pub fn text(self, estimate: Estimate) -> String {
        windows::cycle(estimate.read_bytes, self.rate, self.window)
    }
}

/// Writes an estimate. JSON output includes the memory and the bytes to read. For the other formats, the caller must
/// write the line that [`needs`] returns.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(
    (format, view): (Format, View),
    (estimate, windows): (Estimate, Option<Windows>),
    scope: &Scope,
    database: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let space = message::estimated(scope.command(), database, kilobytes(estimate.temp_bytes));
    match format {
        Format::Text => {
            writeln!(out, "{}", printable(&space.text))?;
            if !view.no_infomsgs {
                writeln!(out, "{}", message::completed().text)?;
            }
            Ok(())
        }
        Format::TableResults(columns) => tableresults::write_messages(columns, &[space], out),
        Format::Json => {
            let left = windows.and_then(|windows| windows.left);
            let line = Line::Estimate(lines::Estimate {
                v: crate::json::VERSION,
                database,
                command: scope.command(),
                read_bytes: estimate.read_bytes,
                memory_bytes: estimate.memory_bytes,
                minimum_memory_bytes: estimate.minimum_memory_bytes,
                temp_bytes: estimate.temp_bytes,
                window_seconds: windows.map(|windows| windows.window.as_secs_f64()),
                bytes_per_second: windows.and_then(|windows| windows.rate),
                tables: left.map(|left| left.by_table.tables),
                tables_closed: left.map(|left| left.by_table.closed),
                left_bytes: left.map(|left| left.left_bytes),
                new_bytes: left.and_then(|left| left.new_bytes),
                windows_left: windows.and_then(Windows::windows_left).flatten(),
                cycle_windows: windows.and_then(|Windows { window, rate, .. }| {
                    let bytes = rate.map(|rate| rate * window.as_secs_f64());
                    Rhythm { bytes, every: Duration::ZERO }.windows(estimate.read_bytes)
                }),
            });
            crate::json::line(&line, out)
        }
    }
}

/// One line with the memory and the bytes to read, which DBCC's line does not mention.
pub fn needs(estimate: Estimate) -> String {
    let Estimate { memory_bytes, minimum_memory_bytes, read_bytes, .. } = estimate;
    let [memory, least, read] = [memory_bytes, minimum_memory_bytes, read_bytes].map(kilobytes);
    format!("Estimated memory (in KB) needed = {memory}, at least {least} (--memory); reading (in KB) = {read}.")
}

fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn windows(rate: Option<f64>, left_bytes: u64, new_bytes: Option<u64>) -> Windows {
        let by_table = ByTable { tables: 412, closed: if left_bytes == 0 { 412 } else { 380 } };
        let left = Left { by_table, all_bytes: 2040 * GB, left_bytes, new_bytes };
        Windows { window: Duration::from_secs(10), rate, left: Some(left) }
    }

    #[test]
    fn what_windows_have_left_is_said_with_the_windows_that_it_takes() {
        let gb_per_second = Some(GB as f64);
        let text = |windows: Windows| windows.left_text().unwrap();
        assert_eq!(
            text(windows(gb_per_second, 26 * GB, Some(4 * GB))),
            "380 of 412 tables are closed; 26 GB of 2040 GB are left, 4096 MB of them new since the last window; closed \
             after 5 windows."
        );
        assert!(text(windows(gb_per_second, 26 * GB, None)).ends_with("are left; closed after 3 windows."));
        assert!(text(windows(gb_per_second, 26 * GB, Some(10 * GB))).contains("never all at once"));
        assert!(text(windows(None, 26 * GB, Some(1))).ends_with("is unknown, as there was none yet."));
        assert_eq!(text(windows(gb_per_second, 0, Some(0))), "412 of 412 tables are closed; 0 MB of 2040 GB are left.");
    }
}
