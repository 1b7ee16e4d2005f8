//! Backups of a database that is in use. Such a backup contains the pages as they were on disk when they were copied,
//! and the log that a restore needs to make them consistent.

use std::path::{Path, PathBuf};

use super::config::date;
use super::facts::{Facts, FileFacts};
use super::origin::Origin;
use super::set::Content;
use super::tape::{LARGE, SMALL};
use super::{BackupOptions, Base, Changes, Container, Failure, Prepared, deal, write_stripe};
use crate::disk::LabError;
use crate::fixed::{log_file_guid, log_file_id, log_suffix};
use crate::log::{LogForm, Part};
use crate::page::{Lsn, PageVerify};

/// The contents of a set.
#[derive(Clone, Debug)]
pub(crate) enum LiveKind {
    /// All pages in use.
    Full,
    /// The extents that changed since the full backup, each as file ID and extent number.
    Differential(Vec<(u16, u32)>),
    /// The log. After a bulk operation under the bulk-logged recovery model, also the extents that it wrote, each as file ID
    /// and extent number.
    Log(Vec<(u16, u32)>),
}

/// A backup set of a database in use.
pub(crate) struct LiveSet<'a> {
    pub(crate) kind: LiveKind,
    /// The data files, with the content that was copied.
    pub(crate) files: &'a [PathBuf],
    /// The number of the set, which is also its time in minutes after the first set.
    pub(crate) step: u8,
    /// The number and the checkpoint LSN of the last full backup.
    pub(crate) base: Option<(u8, Lsn)>,
    /// The first LSN of the set, the LSN of its checkpoint, and the LSN after its last log record.
    pub(crate) lsns: (Lsn, Lsn, Lsn),
    /// The start and the end of the backup. Each time consists of the day of March 2024, and the hour, minute and
    /// second.
    pub(crate) times: [(u8, (u8, u8, u8)); 2],
    /// The log blocks, and their places in the log files.
    pub(crate) log: (Vec<u8>, Vec<Part>),
    /// Number of log files.
    pub(crate) log_files: u16,
    pub(crate) checksum: bool,
    pub(crate) compressed: bool,
    pub(crate) stripes: u16,
}

/// Writes the set to new backup files, one for each stripe.
pub(crate) fn write(set: &LiveSet<'_>, folder: &Path, name: &str) -> Result<Vec<PathBuf>, LabError> {
    let options = BackupOptions {
        base: set
            .base
            .filter(|_| matches!(set.kind, LiveKind::Differential(_)))
            .map(|(step, _)| Base { files: &[], step }),
        checksum: set.checksum,
        stripes: set.stripes,
        ..BackupOptions::default()
    };
    let origin = Origin::open(set.files)?;
    let mut facts = Facts::new(&origin, set.step, &options)?;
    (facts.first_lsn, facts.checkpoint_lsn, facts.last_lsn) = set.lsns;
    facts.redo_lsn = facts.first_lsn;
    let seed = facts.log_file.guid.iter().fold(0, |all, byte| (all << 4) ^ u64::from(*byte));
    let more = (1..set.log_files).map(|number| FileFacts {
        id: log_file_id(number, set.files.len()),
        logical_name: format!("{}{}", facts.database, log_suffix(number)),
        path: facts.log_file.path.replace("_log.", &format!("{}.", log_suffix(number))),
        guid: log_file_guid(seed, number),
        ..facts.log_file.clone()
    });
    facts.more_logs = more.collect();
    [facts.started, facts.finished] = set.times.map(|(day, time)| date((2024, 3, day), time));
    facts.full_backup_lsn = set.base.map(|(_, lsn)| lsn).unwrap_or_default();
    if options.base.is_some() {
        facts.base_lsn = facts.full_backup_lsn;
    }
    let extents = match &set.kind {
        LiveKind::Full => origin.in_use()?,
        LiveKind::Differential(changed) => origin.with_first(changed),
        LiveKind::Log(extents) => extents.clone(),
    };
    if let LiveKind::Log(_) = set.kind {
        (facts.letter, facts.name) = (b'L', format!("{}-Transaction Log Backup", facts.database));
    }
    let verify = origin.boot()?.verify;
    let regions = match &set.kind {
        LiveKind::Log(extents) if extents.is_empty() => Vec::new(),
        _ => vec![deal(&extents, facts.stripes, u64::from(set.step))],
    };
    let content = Content {
        left_out: Vec::new(),
        regions,
        log: set.log.0.clone(),
        log_parts: set.log.1.clone(),
        log_form: LogForm::of(facts.version, verify == PageVerify::Checksum),
        with_checksum: set.checksum,
    };
    let (device, container) = if set.compressed { (LARGE, Some(Container::Version2)) } else { (SMALL, None) };
    let changes = Changes { verify, ..Changes::default() };
    let mut prepared = [Prepared { origin, facts, content, changes }];
    let ending = if let LiveKind::Log(_) = set.kind { "trn" } else { "bak" };
    let mut written = Vec::new();
    for stripe in 0..set.stripes.max(1) {
        let path = match set.stripes {
            0 | 1 => folder.join(format!("{name}.{ending}")),
            _ => folder.join(format!("{name}_{}.{ending}", stripe + 1)),
        };
        let failed = |failure| match failure {
            Failure::Output(source) => LabError::Io { path: path.clone(), source },
            Failure::Origin(error) => error,
        };
        let (staged, _) = write_stripe(&mut prepared, stripe, &path, (container, device)).map_err(failed)?;
        staged.publish().map_err(|source| LabError::Io { path: path.clone(), source })?;
        written.push(path);
    }
    Ok(written)
}
