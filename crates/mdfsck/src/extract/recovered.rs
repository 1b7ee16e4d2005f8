//! `mdfsck extract --recovered`: writes the data files after recovery. The files are in the state in which a clean
//! shutdown of the server would leave them.

use std::collections::BTreeMap;

use catalog::{Boot, Database};
use check::Silent;
use findings::{Options, RecoveryState};
use format::boot::shut_down;
use format::protection::{seal, undo_torn_bits, verify};
use format::{Lsn, PAGE_BYTES, PageBytes, PageId};
use jobs::audit;
use jobs::failure::{Failure, report_faults};
use jobs::input::{Input, Reading};
use jobs::recover::{self, Outcome, report_doubts};
use jobs::request::{RecoveryOptions, StopOptions};
use jobs::spool::Spool;
use source::PageSource;
use source::backup::Hints;

use super::Targets;
use crate::cli::ExtractArguments;
use crate::speaker::warn;

/// A mark in the names of the written files. It shows that the files are recovered.
const MARK: &str = "recovered";
/// Maximum size, in bytes, of the copy of a backup from standard input.
const SPOOL_BYTES: u64 = 100 << 30;

pub(super) fn run(arguments: &ExtractArguments) -> Result<u8, Failure> {
    let options = &arguments.database;
    let (recovery, stop) = (RecoveryOptions::from(&options.recovery), StopOptions::from(&arguments.stop));
    let reading = Reading {
        named: &options.paths,
        sets: &options.set,
        direct: false,
        carve: false,
        spool: Spool { directory: options.recovery.room.temp_dir.as_deref(), limit: SPOOL_BYTES, progress: &Silent },
        memory: options.recovery.room.memory,
        stop: &stop,
        hints: Hints::default(),
    };
    let input = Input::open(&options.paths, &reading)?;
    let source = input.pages();
    let as_stored = catalog::load(source);
    let (_, recovered) = audit::beside(
        0,
        || audit::of_log(&options.paths, &recovery, source, &as_stored),
        |is_newer| recover::of_input(&input, &options.paths, &recovery, &as_stored, is_newer, None),
    );
    let recovered = recovered?;
    if let Some(reason) = doubt(&recovered, source, &as_stored) {
        report_doubts(&recovered);
        return Err(Failure::incomplete(format!(
            "nothing is written, because the database could not be recovered completely: {reason}"
        )));
    }
    let (pages, database) = recovered.view(source, as_stored);
    let at_rest = AtRest::new(&recovered, pages, &database, options.recovery.room.memory);
    let targets = Targets::new(pages, &arguments.output, MARK)?;
    let written = targets.write(&mut |first, bytes| {
        pages.read(first, bytes).map_err(Failure::unable)?;
        for (page, bytes) in (first.page..).zip(bytes.as_chunks_mut::<PAGE_BYTES>().0) {
            at_rest.settle(PageId::new(first.file, page), bytes);
        }
        Ok(0)
    });
    if let Err(failure) = written {
        targets.discard();
        return Err(failure);
    }
    targets.finish()?;
    warn(
        "the written files are recovered and can be read or checked without a log; attach them, with ATTACH_REBUILD_LOG, only on \
         a test server, because SQL Server did not write them; to get a database back, use RESTORE",
    );
    Ok(report_faults(pages))
}

/// The reason why the written pages may differ from those of the recovered database; `None` if they cannot differ.
fn doubt(recovered: &Outcome<'_>, source: &dyn PageSource, database: &Database) -> Option<String> {
    let is_clean = database.boot.as_ref().is_some_and(Boot::clean_shutdown);
    match (&recovered.summary, source.in_flight()) {
        (Some(summary), _) => match summary.state {
            RecoveryState::Done | RecoveryState::NotNeeded => None,
            RecoveryState::Partial => Some("recovery is not complete".to_owned()),
            RecoveryState::Refused | RecoveryState::Off => Some(summary.reason.clone()),
        },
        (None, Some([])) => None,
        (None, Some(pages)) if source.snapshot().is_some() => Some(format!(
            "{} pages of the database are newer than the snapshot, and the snapshot has no copy of these pages",
            pages.len()
        )),
        (None, Some(pages)) => Some(format!("the log in the backup still changes {} pages; use RESTORE", pages.len())),
        (None, None) if source.backup().is_some_and(|backup| !backup.has_one_moment()) => {
            Some("the files are from backups of different points in time; use RESTORE".to_owned())
        }
        (None, None) if is_clean => None,
        (None, None) if source.backup().is_some() => Some("the log in the backup could not be read".to_owned()),
        (None, None) => {
            Some("the database was not shut down cleanly, and its log was not found; give the .ldf file too".to_owned())
        }
    }
}

/// The values that a clean shutdown writes to pages without logging the changes.
struct AtRest {
    /// The LSN of the end of the log. For a backup that was not recovered, this is the checkpoint LSN in the boot page.
    /// `None` for data files that were not recovered, and for a backup that was not recovered and has no readable boot
    /// page.
    end: Option<Lsn>,
    /// The number of rows of each rowset, which the server writes to the catalog at checkpoints.
    rows: BTreeMap<u64, u64>,
}

impl AtRest {
    fn new(recovered: &Outcome<'_>, pages: &dyn PageSource, database: &Database, memory_bytes: Option<u64>) -> Self {
        let recovery = recovered.pages.as_ref().map(|pages| pages.recovery());
        let of_backup = database.boot.as_ref().filter(|_| pages.backup().is_some()).map(|boot| boot.checkpoint_lsn);
        let end = recovery.map(|recovery| recovery.analysis.end).or(of_backup);
        let Some(recovery) = recovery else { return Self { end, rows: BTreeMap::new() } };
        let memory_bytes = memory_bytes.map(|granted| granted.saturating_sub(recovery.kept_bytes()));
        let options = Options { memory_bytes, data_purity: Some(false), ..Options::default() };
        let report = check::run(pages, database, &options, &Silent);
        // If pages are damaged, the stored row counts are not changed. Rows may be missing then, and the stored counts
        // may be the only evidence of the missing rows.
        let rows = match report.findings.is_empty() {
            true => report.rowsets.iter().map(|rowset| (rowset.partition_id, rowset.rows)).collect(),
            false => BTreeMap::new(),
        };
        Self { end, rows }
    }

    /// Changes a page in the same way as a clean shutdown. Does not change a damaged page.
    fn settle(&self, page: PageId, bytes: &mut PageBytes) {
        let Some(end) = self.end.filter(|_| verify(bytes).is_ok()) else { return };
        let mut settled = *bytes;
        undo_torn_bits(&mut settled);
        let is_changed = match page {
            PageId::BOOT => shut_down(&mut settled, end),
            _ => catalog::set_row_counts(&mut settled, &self.rows),
        };
        if is_changed {
            seal(&mut settled);
            *bytes = settled;
        }
    }
}
