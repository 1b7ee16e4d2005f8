//! What a run would need, in the form of CHECKDB's message 5281.

use std::io;

use check::{Estimate, Scope};

use crate::json::lines::{self, Line};
use crate::message::{self, Message};
use crate::text_table::printable;
use crate::{Format, tableresults};

/// Writes an estimate.
///
/// # Errors
/// Those of `out`.
pub fn write(
    format: Format,
    estimate: Estimate,
    scope: &Scope,
    database: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let lines = lines(estimate, scope.command(), database);
    match format {
        Format::Text => {
            for line in lines.iter().chain([&message::completed()]) {
                writeln!(out, "{}", printable(&line.text))?;
            }
            Ok(())
        }
        Format::TableResults => tableresults::write_messages(&lines, out),
        Format::Json => {
            let line = Line::Estimate(lines::Estimate {
                database,
                command: scope.command(),
                read_bytes: estimate.read_bytes,
                memory_bytes: estimate.memory_bytes,
                minimum_memory_bytes: estimate.minimum_memory_bytes,
                temp_bytes: estimate.temp_bytes,
            });
            crate::json::line(&line, out)
        }
    }
}

fn lines(estimate: Estimate, command: &str, database: &str) -> [Message; 4] {
    let line = |what: &str, bytes: u64| message::estimated(what, command, database, bytes.div_ceil(1024));
    [
        line("TEMPDB space", estimate.temp_bytes),
        line("memory", estimate.memory_bytes),
        line("least memory", estimate.minimum_memory_bytes),
        line("reading", estimate.read_bytes),
    ]
}
