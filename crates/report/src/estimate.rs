//! The estimated needs of a run: the temporary space (CHECKDB's message 5281), the memory, and the bytes to read.

use std::io;
use std::time::Duration;

use findings::{Estimate, Scope};
use history::windows::promise::Rhythm;

use crate::json::lines::{self, Line};
use crate::message;
use crate::text_table::printable;
use crate::{Format, View, tableresults, windows};

/// The schedule of a check that is spread over several windows of time.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// The length of a window.
    pub window: Duration,
    /// Read speed in the last windows, in bytes per second; `None` if unknown.
    pub rate: Option<f64>,
}

impl Windows {
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
                cycle_windows: windows.and_then(|Windows { window, rate }| {
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
