//! Divides the memory grant: the fixed part, and the number of threads that the rest allows.

use std::thread;

use ::rows::MOST_LISTED;
use ::rows::salvage::PageSet;
use catalog::Database;
use script::Definitions;
use source::{BackupPages, PageSource};

use crate::cli::{ExportArguments, ExportFormat};
use crate::failure::Failure;
use crate::size;

/// The grant without `--memory`, unless the catalog alone needs more.
pub(crate) const DEFAULT_BYTES: u64 = 64 << 20;
/// Bytes that the program needs for any export.
const BASE_BYTES: u64 = 12 << 20;
/// The page sets, with a bit for each page, in memory while the pages of a table are found; salvage needs one more.
const SCAN_SETS: u64 = 2;
/// Bytes for a table with a file: its names, and its entry in the report.
const TABLE_BYTES: u64 = 1000;
/// Bytes for a damaged page that is salvaged: its address, why it is damaged, and what is lost with it.
const LISTED_PAGE_BYTES: u64 = 180;
/// Bytes for a thread that writes text: the pages of a range, and the text.
const TEXT_THREAD_BYTES: u64 = 10 << 20;
/// Bytes for a thread that writes row groups: their values, and the encoded values.
const GROUP_THREAD_BYTES: u64 = 44 << 20;

/// The share of the grant that recovered pages may use, in bytes.
pub(crate) fn for_recovery(granted: Option<u64>) -> u64 {
    granted.unwrap_or(DEFAULT_BYTES) / 4
}

/// The bytes that an export needs, whatever the number of threads.
pub(super) fn fixed_bytes(
    arguments: &ExportArguments,
    pages: &dyn PageSource,
    database: &Database,
    texts: Option<&Definitions>,
) -> u64 {
    let (sets, listed) =
        if arguments.damaged { (SCAN_SETS + 1, MOST_LISTED as u64 * LISTED_PAGE_BYTES) } else { (SCAN_SETS, 0) };
    reading_bytes(pages, database, sets)
        + texts.map_or(0, Definitions::bytes)
        + listed
        + database.objects.values().filter(|object| object.type_code == "U").count() as u64 * TABLE_BYTES
}

/// The memory for reading with `sets` sets of pages, in bytes.
fn reading_bytes(pages: &dyn PageSource, database: &Database, sets: u64) -> u64 {
    let held = pages.backup().map_or(0, BackupPages::held_bytes);
    BASE_BYTES + database.bytes() + held + sets * PageSet::bytes_for(pages)
}

/// Fails if the grant is too small for the first rows of a table, which one thread reads.
pub(crate) fn for_preview(
    granted: Option<u64>,
    kept_bytes: u64,
    pages: &dyn PageSource,
    database: &Database,
) -> Result<(), Failure> {
    let least = kept_bytes + reading_bytes(pages, database, SCAN_SETS) + TEXT_THREAD_BYTES;
    enough(granted, least, "reading rows").map(|_| ())
}

/// Returns the grant, or an error if it is too small for `what`.
fn enough(granted: Option<u64>, least: u64, what: &str) -> Result<u64, Failure> {
    match granted {
        Some(granted) if granted < least => {
            let (granted, least) = (size::text(granted), size::text(least.next_multiple_of(1 << 20)));
            Err(Failure::small_grant(format!("--memory {granted}: {what} needs at least {least}")))
        }
        Some(granted) => Ok(granted),
        None => Ok(DEFAULT_BYTES.max(least)),
    }
}

/// The bytes of the grant beside the fixed part, and the number of threads that they allow.
pub(super) fn grant(arguments: &ExportArguments, fixed: u64) -> Result<(u64, usize), Failure> {
    let each = match arguments.format {
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => GROUP_THREAD_BYTES,
        _ => TEXT_THREAD_BYTES,
    };
    let granted = enough(arguments.database.recovery.room.memory, fixed + each, "this export")?;
    let left = granted - fixed;
    let wanted = match arguments.maxdop {
        0 => thread::available_parallelism().map_or(1, |count| count.get() as u64),
        count => u64::from(count),
    };
    Ok((left, wanted.min(left / each) as usize))
}
