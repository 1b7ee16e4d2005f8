//! How much of the grant is spoken for, and how many threads the rest is enough for.

use std::thread;

use ::rows::MOST_LISTED;
use ::rows::salvage::PageSet;
use catalog::Database;
use script::Definitions;
use source::{BackupPages, PageSource};

use crate::cli::{ExportArguments, ExportFormat};
use crate::failure::Failure;
use crate::size;

/// Memory without `--memory`, unless the catalog alone needs more.
pub(crate) const DEFAULT_BYTES: u64 = 64 << 20;
/// What the program takes whatever is exported.
const BASE_BYTES: u64 = 12 << 20;
/// Sets with a bit for each page that finding the pages of a table takes at once; salvage keeps one more.
const SCAN_SETS: u64 = 2;
/// What a table costs that has a file: its names, and what is reported of it.
const TABLE_BYTES: u64 = 1000;
/// What a damaged page costs that is salvaged: its place, why it is damaged, and what is lost with it.
const LISTED_PAGE_BYTES: u64 = 180;
/// What a thread takes that makes text: pages of a range, and text.
const TEXT_THREAD_BYTES: u64 = 10 << 20;
/// What a thread takes that makes row groups: their values, and these encoded.
const GROUP_THREAD_BYTES: u64 = 44 << 20;

/// What recovery may keep in memory of a grant.
pub(crate) fn for_recovery(granted: Option<u64>) -> u64 {
    granted.unwrap_or(DEFAULT_BYTES) / 4
}

/// What is kept while tables are exported, whatever the number of threads.
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

/// Whether a grant is enough for the first rows of a table, which are read by one thread.
pub(crate) fn for_preview(
    granted: Option<u64>,
    kept_bytes: u64,
    pages: &dyn PageSource,
    database: &Database,
) -> Result<(), Failure> {
    let least = kept_bytes + reading_bytes(pages, database, SCAN_SETS) + TEXT_THREAD_BYTES;
    enough(granted, least, "reading rows").map(|_| ())
}

/// The grant, if it is enough for `what`.
fn enough(granted: Option<u64>, least: u64, what: &str) -> Result<u64, Failure> {
    match granted {
        Some(granted) if granted < least => {
            let (granted, least) = (size::text(granted), size::text(least.next_multiple_of(1 << 20)));
            Err(Failure::small_grant(format!("--memory {granted}: {what} needs {least} at least")))
        }
        Some(granted) => Ok(granted),
        None => Ok(DEFAULT_BYTES.max(least)),
    }
}

/// The bytes of the grant that are not fixed, and how many threads they are enough for.
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
