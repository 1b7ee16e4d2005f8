//! Divides the memory grant into a fixed part and a part for threads. The second part determines the number of threads.

use std::thread;

use ::rows::MOST_LISTED;
use ::rows::salvage::PageSet;
use catalog::Database;
use jobs::failure::Failure;
use jobs::size::{self, DEFAULT_BYTES};
use script::Definitions;
use source::{BackupPages, Carved, PageSource};

use crate::cli::{ExportArguments, ExportFormat};

/// Memory that the program needs for any export, in bytes.
const BASE_BYTES: u64 = 13 << 20;
/// Number of page sets in memory while the pages of a table are located. A page set has one bit per page. Salvage needs
/// one more page set.
const SCAN_SETS: u64 = 2;
/// Memory for each table that has a file, in bytes. It holds the table's names, and the table's entry in the report.
const TABLE_BYTES: u64 = 1000;
/// Memory per salvaged page, in bytes. It holds the page's address, the description of the damage, and the list of what
/// is lost.
const LISTED_PAGE_BYTES: u64 = 180;
/// Memory per thread that writes text, in bytes. It holds the pages that the thread is processing, and the text of
/// their rows.
const TEXT_THREAD_BYTES: u64 = 10 << 20;
/// Memory per thread that writes row groups, in bytes. It holds the values of a row group before and after they are
/// encoded.
const GROUP_THREAD_BYTES: u64 = 44 << 20;

/// The part of the grant that recovered pages may use, in bytes.
pub(crate) fn for_recovery(granted: Option<u64>) -> u64 {
    granted.unwrap_or(DEFAULT_BYTES) / 4
}

/// Memory that an export needs independently of the number of threads, in bytes.
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

/// Memory for reading the database while `sets` page sets are in memory, in bytes.
fn reading_bytes(pages: &dyn PageSource, database: &Database, sets: u64) -> u64 {
    let held = pages.backup().map_or(0, BackupPages::held_bytes) + pages.carved().map_or(0, Carved::held_bytes);
    BASE_BYTES + database.bytes() + held + sets * PageSet::bytes_for(pages)
}

/// Returns an error if the grant is too small for one thread to read the first rows of a table.
pub(crate) fn for_preview(
    granted: Option<u64>,
    kept_bytes: u64,
    pages: &dyn PageSource,
    database: &Database,
) -> Result<(), Failure> {
    let least = kept_bytes + reading_bytes(pages, database, SCAN_SETS) + TEXT_THREAD_BYTES;
    enough(granted, least, "reading rows").map(|_| ())
}

/// The grant in bytes. Returns an error if the grant is smaller than `least`, the number of bytes that `what` needs.
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

/// Subtracts the fixed part from the grant. Returns the remaining memory in bytes, and the number of threads for which
/// it suffices.
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
