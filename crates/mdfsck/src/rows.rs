//! `mdfsck rows`: shows the first rows of a table.

use ::export::{TableSource, cells, write_some};
use ::rows::{RangeCounts, ScanOptions, Table};
use catalog::RestsOn;
use jobs::failure::Failure;
use jobs::scope;

use crate::carved;
use crate::cli::{RowsArguments, RowsFormat};
use crate::export::{Opened, memory, with_database};
use crate::lost_catalog::Search;
use crate::speaker::warn;
use crate::{output, terminal};

pub(crate) fn run(arguments: &RowsArguments) -> Result<u8, Failure> {
    let carve = arguments.carve.carve;
    let listener = carved::listener(carve);
    let lost = (arguments.like.like.as_slice(), Search::IfNeeded);
    with_database(&arguments.database, (&arguments.stop, carve), lost, listener, |opened, listener| {
        drop(listener);
        let Opened { pages, database, kept_bytes } = opened;
        memory::for_preview(arguments.database.recovery.room.memory, kept_bytes, pages, database)?;
        let name = &arguments.table;
        let id = scope::table(database, name).map_err(|failure| scope::nearest(failure, database, name))?;
        let table = Table::of(database, id).map_err(|why| Failure::unable(format!("{name}: {why}")))?;
        let source = TableSource { pages, database, table: &table, options: ScanOptions::default() };
        let (counts, gaps) = match arguments.format {
            RowsFormat::Text => (text(source, arguments.limit)?, 0),
            RowsFormat::Csv | RowsFormat::Jsonl => {
                let mut read = None;
                let is_json = arguments.format == RowsFormat::Jsonl;
                output::print(|out| {
                    let (previewed, gaps) = write_some(source, is_json, arguments.limit, out)?;
                    read = Some((previewed.counts, gaps.len() as u64));
                    Ok(())
                })?;
                read.unwrap_or_default()
            }
        };
        let rests_on = database.rests_on.get(&table.object_id);
        Ok(report(&table, &counts, gaps) | rests_on.map_or(0, |rests_on| incomplete(&table, rests_on)))
    })
}

/// Maximum number of rows of an aligned table. All rows are kept in memory, since the column widths are known only
/// after the last row was read.
const MOST_ALIGNED_ROWS: u64 = 10_000;

/// Prints an aligned table. Returns how many pages and records were read, and how many were left out.
fn text(source: TableSource<'_>, limit: u64) -> Result<RangeCounts, Failure> {
    if limit > MOST_ALIGNED_ROWS {
        return Err(Failure::usage(format!(
            "--limit {limit}: a table on the terminal has at most {MOST_ALIGNED_ROWS} rows; add --format csv or jsonl"
        )));
    }
    let (names, rows, previewed) = cells(source, limit).map_err(Failure::unable)?;
    let columns = terminal::is_stdout().then(terminal::columns);
    output::print(|out| {
        report::export::write_rows(&names, &rows, columns, out)?;
        let count = previewed.rows;
        match previewed.has_more {
            true => writeln!(out, "({count} rows; the table has more rows, which a larger --limit shows)"),
            false => writeln!(out, "({count} {})", if count == 1 { "row" } else { "rows" }),
        }
    })?;
    Ok(previewed.counts)
}

/// Says on what the columns rest, if the catalog could not be read in the usual way. Returns the exit-status bit.
fn incomplete(table: &Table, rests_on: &RestsOn) -> u8 {
    let name = table.full_name();
    warn(format!(
        "{name}: its columns rest on {rests_on}; rows of pages that no IAM page lists any more are not shown, but \
         'mdfsck export --damaged' writes them"
    ));
    Failure::INCOMPLETE
}

/// Reports the pages whose rows are not shown, and how many records and values cannot be read. Returns the exit-status
/// bits.
fn report(table: &Table, counts: &RangeCounts, gaps: u64) -> u8 {
    let name = table.full_name();
    for (page, why) in counts.damaged_pages.iter().take(3) {
        warn(format!("{name}: the rows of page {page} are not shown: {why}"));
    }
    match counts.pages_left_out.saturating_sub(3) {
        0 => {}
        more => warn(format!("{name}: the rows of {more} more pages are not shown")),
    }
    if counts.skipped_slots > 0 {
        warn(format!("{name}: {} records on sound pages cannot be read", counts.skipped_slots));
    }
    if gaps > 0 {
        warn(format!("{name}: {gaps} values cannot be read and are shown as NULL"));
    }
    let is_whole = counts.pages_left_out == 0 && counts.skipped_slots == 0 && gaps == 0;
    if is_whole { 0 } else { Failure::INCOMPLETE }
}
