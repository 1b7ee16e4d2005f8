//! Compares every allocated page with the log. Finds lost writes on pages with a correct checksum, bytes that something
//! other than SQL Server changed, and pages from another point in time.
//!
//! The audit compares pages as stored in the files, not as recovered. One pass over the log builds a table of pages
//! (`table`), and one pass over the pages compares the pages with the table (`pages`). If there are suspects, a second
//! pass over the log judges them and collects the missing changes (`suspects`). docs/architecture/audit.md explains
//! what counts as a proof, and why.

#![warn(clippy::indexing_slicing)]

mod findings;
mod image;
mod missing;
mod pages;
mod stamp;
mod suspects;
mod table;
mod walk;

use ::findings::{LogAudit, LogAuditDoubt, LogAuditDoubtKind};
use catalog::Database;
use format::PageId;
use log::Log;
use recovery::{Refusal, Start};
use source::{ExtentSet, PageSource};

use image::ImageKey;
use pages::{Comparison, Tally};
use suspects::{Suspects, Why};
use table::PageTable;

/// Compares the pages of `source` with `log`, using about `memory_bytes` of memory. The findings are the same for any
/// amount of memory.
///
/// # Errors
/// [`Refusal`] if the log does not belong to the files, or cannot be read.
pub fn audit(source: &dyn PageSource, database: &Database, log: &Log, memory_bytes: u64) -> Result<LogAudit, Refusal> {
    audit_of(source, database, log, (memory_bytes, None))
}

/// Like [`audit`], but if `changed` is given, compares only the pages of these extents and the pages that the log names.
///
/// # Errors
/// As for [`audit`].
pub fn audit_of(
    source: &dyn PageSource,
    database: &Database,
    log: &Log,
    (memory_bytes, changed): (u64, Option<&ExtentSet>),
) -> Result<LogAudit, Refusal> {
    let start = Start::of(source, log)?;
    let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let key = ImageKey::new();
    let is_known_file = |file| source.file(file).is_some();
    let log_files: Vec<u16> = log.files().iter().map(|file| file.file_id).collect();
    let (mut audit, mut suspects, mut tally) = (LogAudit::default(), Suspects::default(), Tally::default());
    let mut other_files = std::collections::BTreeSet::new();
    let mut from = PageId::NONE;
    let extent = loop {
        let mut table = PageTable::new(from, start.redo_from, memory_bytes, key);
        let extent =
            walk::each_block(log, &start, &mut |block, run| table.block(block, run, &is_known_file, &mut other_files))?;
        if extent.has_encrypted {
            break extent;
        }
        Comparison {
            source,
            table: &mut table,
            key,
            extent,
            redo_from: start.redo_from,
            changed,
            suspects: &mut suspects,
            tally: &mut tally,
        }
        .run();
        seek(log, &start, &mut table, source, &mut suspects)?;
        match table.range().to {
            Some(to) => from = to,
            None => break extent,
        }
    };
    if suspects.any() {
        let redo_from = start.redo_from;
        let mut describe = |record: &format::log::LogRecord<'_>| missing::describe(database, record);
        walk::each_block(log, &start, &mut |block, run| suspects.block(block, run, redo_from, &mut describe))?;
    }
    (audit.pages_compared, audit.images_compared) = (tally.compared, tally.images);
    (audit.pages_older, audit.pages_without_records) = (tally.older, tally.without_records);
    (audit.range, audit.redo_from) = (Some((extent.oldest, extent.end)), Some(start.redo_from));
    let mut doubt = |kind, scope: String, count| audit.doubts.push(LogAuditDoubt { kind, scope, count });
    if extent.has_encrypted {
        doubt(LogAuditDoubtKind::LogEncrypted, "log".to_owned(), 0);
    }
    if let Some((before, _)) = extent.gap {
        doubt(LogAuditDoubtKind::LogDamaged, format!("after {before}"), 0);
    }
    if extent.is_end_damaged {
        doubt(LogAuditDoubtKind::LogDamaged, format!("after {}", extent.end), 0);
    }
    if tally.unreadable > 0 {
        doubt(LogAuditDoubtKind::Pages, "database".to_owned(), tally.unreadable);
    }
    if tally.left_out > 0 {
        doubt(LogAuditDoubtKind::Unchanged, "database".to_owned(), tally.left_out);
    }
    for file in other_files.into_iter().filter(|file| !log_files.contains(file)) {
        doubt(LogAuditDoubtKind::FileNotGiven, format!("file {file}"), 0);
    }
    findings::settle(database, &start, suspects, &mut audit);
    Ok(audit)
}

/// For each page whose entry is marked as sought, searches the page's records for the page's LSN. A page that has no
/// record at its LSN becomes a suspect.
fn seek(
    log: &Log,
    start: &Start,
    table: &mut PageTable,
    source: &dyn PageSource,
    suspects: &mut Suspects,
) -> Result<(), Refusal> {
    let sought = |table: &PageTable| {
        table
            .iter()
            .filter(|(_, entry)| entry.is_sought)
            .map(|(page, entry)| (page, entry.before_first))
            .collect::<Vec<_>>()
    };
    if table.iter().all(|(_, entry)| !entry.is_sought) {
        return Ok(());
    }
    walk::each_block(log, start, &mut |block, _| {
        for (lsn, record) in block.records() {
            let entry = record.on_page().and_then(|place| table.get_mut(place.page));
            if let Some(entry) = entry.filter(|entry| entry.is_sought && entry.before_first == lsn.into()) {
                entry.is_sought = false;
            }
        }
    })?;
    for (page, lsn) in sought(table) {
        let unit =
            source.read_page(page).map(|bytes| format::Page::new(&bytes).header().alloc_unit()).unwrap_or_default();
        suspects.add(page, Why::Apart, lsn.into(), unit);
        suspects.add_stray(page, lsn.into(), unit);
    }
    Ok(())
}
