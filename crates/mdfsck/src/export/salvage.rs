//! `export --damaged`: salvages rows that are missing from the files of the tables because of damage.

use std::path::{Path, PathBuf};

use ::export::{Destination, SalvageFiles, SalvageForm, write_salvaged};
use ::rows::salvage::{PageSet, Request, Unreached, foreign, reach};
use ::rows::{Scan, ScanOptions, Table, Why};
use format::PageId;
use jobs::failure::Failure;
use report::export::Exported;

use super::Run;
use crate::cli::ExportFormat;
use crate::output;

/// The search for lost rows may use 1/`SHARE` of the remaining memory. Pages and open files use the other part.
const SHARE: u64 = 2;
/// Maximum number of unreachable pages to keep in memory.
const MOST_STRAYS: usize = 100_000;

/// The files for the salvaged rows of a table. They are in the same folder as the file of the table.
pub(super) fn files(destination: &Destination) -> SalvageFiles {
    let beside = |suffix: &str| Destination {
        rows: named(&destination.rows, suffix),
        unreadable: named(&destination.unreadable, suffix),
        replaces: destination.replaces,
    };
    SalvageFiles { doubtful: beside("doubtful"), rebuilt: beside("rebuilt") }
}

/// Adds a suffix before the extension: `dbo.Orders.csv` with `doubtful` becomes `dbo.Orders.doubtful.csv`.
fn named(path: &Path, suffix: &str) -> PathBuf {
    let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    path.with_extension(format!("{suffix}.{end}"))
}

/// Salvages rows of all tables that have a file, and adds the counts to `exported`. `exported` and `left_out` have one
/// element for each table of the plan.
pub(super) fn salvage(
    run: &Run<'_>,
    memory: u64,
    left_out: &[Vec<(PageId, Why)>],
    exported: &mut [Exported],
) -> Result<(), Failure> {
    let planned = run.plan.tables.iter().enumerate();
    let tables = planned.filter_map(|(at, planned)| Some((at, Table::of(run.database, planned.object_id).ok()?)));
    let (places, tables): (Vec<usize>, Vec<Table>) = tables.unzip();
    let left_out = |at: usize| left_out.get(at).map_or(&[][..], Vec::as_slice);
    let mut reached = PageSet::of(run.pages);
    for (at, table) in places.iter().zip(&tables) {
        let foreign = foreign(left_out(*at));
        let mut scan = Scan::new(run.pages, run.database, table, ScanOptions::default());
        while let Some(range) = scan.next_range() {
            reach(&mut reached, &range, &foreign);
        }
    }
    let unreached = Unreached::find(run.pages, run.database, &tables, &reached, MOST_STRAYS);
    let form = match run.arguments.format {
        ExportFormat::Csv => SalvageForm::Csv,
        ExportFormat::Jsonl => SalvageForm::JsonLines,
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => SalvageForm::Parquet,
        ExportFormat::Sql => SalvageForm::Sql,
    };
    for (at, table) in places.into_iter().zip(&tables) {
        let (Some(planned), Some(exported)) = (run.plan.tables.get(at), exported.get_mut(at)) else { continue };
        let request = Request {
            source: run.pages,
            database: run.database,
            table,
            damaged: left_out(at),
            reached: &reached,
            unreached: Some(&unreached),
            rows_read: &[exported.rows],
            ghosts: run.arguments.ghosts,
            memory: usize::try_from(memory / SHARE).unwrap_or(usize::MAX),
        };
        let files = files(&planned.destination);
        let salvaged = write_salvaged(&request, form, &files);
        let salvaged = salvaged.map_err(|cause| output::unwritable(&files.doubtful.rows, &cause))?;
        exported.doubtful = salvaged.doubtful + salvaged.deleted;
        exported.rebuilt = salvaged.rebuilt.rows;
        exported.known_lost = salvaged.known_lost;
        salvaged.rebuilt.missing.iter().for_each(|why| crate::speaker::warn(format!("{}: {why}", table.full_name())));
    }
    Ok(())
}
