//! Access to the log in backup files: the log of log backups, and the log portion of full and differential backups
//! (docs/format/backups.md#log-portion).

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use format::Lsn;
use format::log::block::SECTOR_BYTES;
use format::log::{Vlf, vlf};

use super::chain_sets::MOST_MISSING_NAMED;
use super::media::Media;
use super::open::{Group, check_labels, open_all, refuse_encrypted, size_of_files, stripes_of};
use super::room::Room;
use super::sets::{BackupMedia, BackupSet, LogRegion, SetKind};
use crate::{FileChange, OpenError, ReadFaults};

/// A backup set that contains readable log.
#[derive(Clone, Debug)]
pub struct LogSet {
    /// Path of the file that contains the set's first stripe.
    pub path: PathBuf,
    /// Position of the set in that file, from 1.
    pub position: u16,
    /// The kind of backup set.
    pub kind: SetKind,
    /// The binding ID of the database; zeros if the set does not store it.
    pub binding_guid: [u8; 16],
    /// Name of the database.
    pub database: String,
    /// The first LSN of the set's log, according to the set's label.
    pub first_lsn: Option<Lsn>,
    /// The first LSN after the set's log, according to the set's label.
    pub last_lsn: Option<Lsn>,
    /// Number of stripes of the set.
    pub stripes: u16,
    /// The numbers of the stripes that were not given.
    pub missing: Vec<u16>,
    /// Whether the set is a log backup with extents that a bulk operation wrote, whose content the log lacks.
    pub has_bulk_extents: bool,
}

impl LogSet {
    /// Whether the set's label shows that the set contains no log, because nothing was written to the database since
    /// the previous log backup.
    pub fn is_empty(&self) -> bool {
        self.first_lsn.is_some() && self.first_lsn == self.last_lsn
    }
}

/// The log of one virtual log file (VLF) in one backup set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPart {
    /// The VLF.
    pub vlf: Vlf,
    /// Index of the set in [`BackupLog::sets`].
    pub set: usize,
    /// ID of the log file that contains the VLF.
    pub file_id: u16,
    /// Offset in the log file at which the part starts; a log block starts there.
    pub from: u64,
    /// Offset in the log file at which the part ends.
    pub to: u64,
    tape: u16,
    at: u64,
}

/// The log of all sets in some backup files.
#[derive(Debug)]
pub struct BackupLog {
    media: Arc<Vec<Media>>,
    sets: Vec<LogSet>,
    parts: Vec<LogPart>,
    unusable: usize,
}

impl BackupLog {
    /// Opens backup files to read the log of their sets, of any kind and any database. `positions` selects sets by
    /// their positions in the files.
    ///
    /// # Errors
    /// [`OpenError`] if one of the files cannot be read or is not a readable backup.
    pub fn open(paths: &[PathBuf], positions: &[u16]) -> Result<Self, OpenError> {
        let room = Room::new(None, size_of_files(paths, None));
        let (media, labels) = open_all(paths, None, &room)?;
        check_labels(&labels, positions)?;
        let mut groups: Vec<Group> = Vec::new();
        let mut seen = BTreeSet::new();
        for (tape, label) in labels.iter().enumerate() {
            for (number, set) in label.sets.iter().enumerate() {
                let is_wanted = positions.is_empty() || positions.contains(&set.position);
                if is_wanted && !seen.contains(&(tape, number)) {
                    let group = stripes_of(&labels, set, label);
                    refuse_encrypted(&labels, &group)?;
                    seen.extend(group.iter().copied());
                    groups.push(group);
                }
            }
        }
        Ok(Self::new(Arc::new(media), &labels, &groups))
    }

    /// Collects the log of several sets. Each group contains the stripes of one set. A stripe is given by the index of
    /// its file and the index of the set in this file.
    pub(super) fn new(media: Arc<Vec<Media>>, labels: &[BackupMedia], groups: &[Group]) -> Self {
        let mut this = Self { media, sets: Vec::new(), parts: Vec::new(), unusable: 0 };
        for group in groups {
            let stripes: Vec<(usize, &BackupMedia, &BackupSet)> = group
                .iter()
                .filter_map(|&(tape, set)| Some((tape, labels.get(tape)?, labels.get(tape)?.sets.get(set)?)))
                .collect();
            let Some((_, label, set)) = stripes.first() else { continue };
            let given: BTreeSet<u16> = stripes.iter().map(|(_, label, _)| label.family).collect();
            let missing = (1..=label.families).filter(|family| !given.contains(family));
            let number = this.sets.len();
            this.sets.push(LogSet {
                path: label.path.clone(),
                position: set.position,
                kind: set.kind,
                binding_guid: set.config.binding_guid,
                database: set.config.database.clone(),
                first_lsn: set.config.first_lsn,
                last_lsn: set.config.last_lsn,
                stripes: label.families,
                missing: missing.take(MOST_MISSING_NAMED).collect(),
                has_bulk_extents: stripes.iter().any(|(_, _, set)| set.has_bulk_extents()),
            });
            for (tape, _, set) in &stripes {
                for region in set.log.iter().filter(|region| region.used > 0) {
                    match part(region, number, *tape as u16) {
                        Some(part) => this.parts.push(part),
                        None => this.unusable += 1,
                    }
                }
            }
        }
        this
    }

    /// The sets.
    pub fn sets(&self) -> &[LogSet] {
        &self.sets
    }

    /// The parts of the log, in the order of the sets.
    pub fn parts(&self) -> &[LogPart] {
        &self.parts
    }

    /// Number of parts left out because the backup describes them with impossible values.
    pub fn unusable_parts(&self) -> usize {
        self.unusable
    }

    /// Reads a part from offset `at` of its log file. At the end of the part, fewer bytes than requested are read.
    ///
    /// # Errors
    /// Errors of the operating system; `InvalidData` where the backup is damaged.
    pub fn read_at(&self, part: &LogPart, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let (Some(media), Some(within)) = (self.media.get(usize::from(part.tape)), at.checked_sub(part.from)) else {
            return Ok(0);
        };
        let left = usize::try_from(part.to.saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
        media.read_at(buffer.get_mut(..left).unwrap_or_default(), part.at.saturating_add(within))
    }

    /// All read errors up to now.
    pub fn read_faults(&self) -> ReadFaults {
        let mut faults = ReadFaults::default();
        self.media.iter().for_each(|media| media.add_read_faults(&mut faults));
        faults
    }

    /// The backup files that have changed since they were opened.
    pub fn changes(&self) -> Vec<FileChange> {
        self.media.iter().filter_map(Media::change).collect()
    }
}

/// The part of the log that a region contains; `None` if the backup describes the region with impossible values.
fn part(region: &LogRegion, set: usize, tape: u16) -> Option<LogPart> {
    let vlf = region.vlf;
    let (from, to) = (region.start, region.start.checked_add(region.used)?);
    let is_inside = vlf.is_used()
        && vlf.offset.checked_add(vlf.bytes).is_some_and(|end| to <= end)
        && vlf.offset.checked_add(vlf::HEADER_BYTES).is_some_and(|first| first <= from)
        && (from - vlf.offset).is_multiple_of(SECTOR_BYTES as u64);
    is_inside.then_some(LogPart { vlf, set, file_id: region.file_id, from, to, tape, at: region.region.at })
}
