//! The pages of a backup as a [`PageSource`].

use std::collections::BTreeMap;
use std::io;
use std::mem::offset_of;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use format::allocation::EXTENT_PAGES;
use format::file_header::FileHeader;
use format::page::PAGE_BYTES;
use format::protection::{sectors_sum, undo_torn_bits};
use format::{Lsn, Page, PageHeader, PageId};

use super::damage::{Damage, DamageKind};
use super::log_portion::LogPortion;
use super::media::{Media, is_damage};
use super::places::{FRAME_BYTES, FilePlaces, Layer, Place};
use super::sets::{Region, SetKind};
use crate::identify::is_file_header;
use crate::{DataFile, FileChange, PageSource, ReadError, ReadFaults};

/// Offset of the LSN in a page's header.
const LSN_AT: usize = offset_of!(PageHeader, lsn);
const LSN_BYTES: usize = 10;

/// Memory for a page that a restore would still change: its entry in `in_flight`, and in the sets built from this list.
const BYTES_PER_PAGE_IN_FLIGHT: usize = 32;

/// The pages of a backup. These are the pages of a full backup, with the newer pages of a differential backup if there
/// is one, or the pages of several sets of files.
#[derive(Debug)]
pub struct BackupPages {
    pub(super) media: Arc<Vec<Media>>,
    pub(super) files: Vec<DataFile>,
    pub(super) places: Vec<FilePlaces>,
    /// The checksums of regions, sorted by tape and tape offset.
    pub(super) sums: Vec<RegionSum>,
    /// Damage found while opening the backup.
    pub(super) damage: Vec<Damage>,
    /// Number of missing stripes of the media set.
    pub(super) missing_stripes: u16,
    /// The numbers of the missing stripes, if they are known, and the number of all stripes.
    pub(super) missing_numbers: (Vec<u16>, u16),
    /// The label of the set that determines the state of the pages. For several sets of files, this is the newest set.
    pub(super) set: SetLabel,
    /// The types of blocks whose content is unknown, and the number of blocks of each type.
    pub(super) undescribed: Vec<([u8; 4], u64)>,
    pub(super) in_flight: Option<Vec<PageId>>,
    /// Whether all files have the state of the same point in time, because at most one set of files is used.
    pub(super) has_one_moment: bool,
    /// Positions of the sets that are not read, in the file that contains the first set.
    pub(super) other_sets: Vec<u16>,
    /// The sets that are used.
    pub(super) sets: Vec<UsedSet>,
    /// Whether opening has used what an earlier opening found.
    pub(super) is_hinted: bool,
    /// The paths of the data files on the server, by file ID.
    pub(super) physical_names: BTreeMap<u16, String>,
}

/// Properties of a backup set, from its label.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SetLabel {
    /// Kind of the set.
    pub kind: SetKind,
    /// Position of the set in the file, from 1.
    pub position: u16,
    /// When the backup finished, in the local time of the server.
    pub finished: Option<String>,
    /// Internal version of the database; `None` if unknown.
    pub version: Option<u16>,
    /// Name of the server that took the backup.
    pub server: String,
    /// Name of the database on that server.
    pub database: String,
    /// The GUID of the set, which all its stripes share.
    pub guid: Option<String>,
    /// The ID that identifies the database: the family ID, which stays the same after a restore. If the family ID is
    /// unknown, this is the binding ID. `None` if neither ID is known.
    pub lasting_id: Option<String>,
}

/// A backup set that is part of a restore.
#[derive(Clone, Debug)]
pub struct UsedSet {
    /// The files that contain the stripes of the set.
    pub paths: Vec<PathBuf>,
    /// The position of the set in these files. It is the number n in RESTORE ... WITH FILE = n.
    pub position: u16,
    /// Kind of the set.
    pub kind: SetKind,
    /// When the backup finished, in the local time of the server.
    pub finished: Option<String>,
    /// The GUID of the set, which all its stripes share.
    pub guid: Option<String>,
}

/// The checksum of a region's data. The extents of the region can be added in any order.
#[derive(Debug)]
pub(super) struct RegionSum {
    pub(super) tape: u16,
    pub(super) region: Region,
    stored: u32,
    pub(super) sum: AtomicU32,
    /// The extents that have been added, one bit each.
    pub(super) seen: Vec<AtomicU64>,
}

impl RegionSum {
    pub(super) fn new(tape: u16, region: Region) -> Option<Self> {
        let frames = region.length.div_ceil(FRAME_BYTES);
        let seen = (0..frames.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Some(Self { tape, region, stored: region.checksum?, sum: AtomicU32::new(0), seen })
    }

    /// The number of the tape, and the tape offset at which the region starts.
    pub(super) fn place(&self) -> (u16, u64) {
        (self.tape, self.region.at)
    }

    /// Adds the checksum of an extent, unless it was added before. To account for the position of the extent, its
    /// checksum is first rotated by one bit for each sector between the extent and the end of the region.
    fn add(&self, frame: u64, bytes: &[u8]) {
        let bit = 1 << (frame % 64);
        let Some(word) = self.seen.get((frame / 64) as usize) else { return };
        if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            let following_sectors = self.region.length.saturating_sub(frame * FRAME_BYTES + bytes.len() as u64) / 512;
            self.sum.fetch_xor(sectors_sum(0, bytes).rotate_left((following_sectors % 32) as u32), Ordering::Relaxed);
        }
    }

    /// Adds the checksums of all complete extents in `bytes`, which were read from offset `at` of the tape with number
    /// `tape`.
    fn observe(&self, tape: u16, at: u64, bytes: &[u8]) {
        let Some(skipped) = at.checked_sub(self.region.at).filter(|_| tape == self.tape) else { return };
        if at >= self.region.at + self.region.length || !skipped.is_multiple_of(FRAME_BYTES) {
            return;
        }
        for (frame, bytes) in (skipped / FRAME_BYTES..).zip(bytes.chunks(FRAME_BYTES as usize)) {
            let length = (self.region.length.saturating_sub(frame * FRAME_BYTES)).min(FRAME_BYTES);
            if bytes.len() as u64 == length {
                self.add(frame, bytes);
            }
        }
    }

    /// Reads the extents that have not been read yet, and compares the checksum with the stored checksum.
    fn finish(&self, media: &Media) -> io::Result<Option<DamageKind>> {
        let mut buffer = vec![0; FRAME_BYTES as usize];
        for frame in 0..self.region.length.div_ceil(FRAME_BYTES) {
            let word = self.seen.get((frame / 64) as usize).map_or(u64::MAX, |word| word.load(Ordering::Relaxed));
            if word & 1 << (frame % 64) == 0 {
                let length = (self.region.length - frame * FRAME_BYTES).min(FRAME_BYTES);
                let bytes = buffer.get_mut(..length as usize).unwrap_or_default();
                media.read_exact_at(bytes, self.region.at + frame * FRAME_BYTES)?;
                self.add(frame, bytes);
            }
        }
        let (stored, computed) = (self.stored, self.sum.load(Ordering::Relaxed));
        Ok((stored != computed).then_some(DamageKind::DataChecksum { stored, computed }))
    }
}

impl BackupPages {
    /// The sets that are used: a full backup, its differential backup, and the log backups that follow; or sets of
    /// files.
    pub fn sets(&self) -> &[UsedSet] {
        &self.sets
    }

    /// Approximate number of bytes kept in memory, without read buffers.
    pub fn held_bytes(&self) -> u64 {
        let places = self.places.iter().flat_map(|places| &places.layers).map(Layer::held_bytes);
        let media = self.media.iter().map(Media::held_bytes);
        let sums = self.sums.iter().map(|sum| size_of::<RegionSum>() + sum.seen.len() * size_of::<AtomicU64>());
        let in_flight = self.in_flight.as_ref().map_or(0, Vec::len) * BYTES_PER_PAGE_IN_FLIGHT;
        let texts = |file: &DataFile| file.path.as_os_str().len() + file.logical_name.len();
        let files = self.files.iter().map(|file| size_of::<DataFile>() + size_of::<FilePlaces>() + texts(file));
        let names = self.physical_names.values().map(|name| size_of::<(u16, String)>() + name.len());
        let damage = self.damage.iter().map(|damage| size_of::<Damage>() + damage.path.as_os_str().len());
        let lists = places.chain(media).chain(sums).chain(files).chain(names).chain(damage);
        (lists.sum::<usize>() + in_flight) as u64
    }

    /// Whether all files have the state of the same point in time. If false, the files come from several sets of files
    /// that were backed up at different times. Links between the files are then consistent only after the log that was
    /// written between these backups is applied.
    pub fn has_one_moment(&self) -> bool {
        self.has_one_moment
    }

    /// Number of missing stripes of the media set.
    pub fn missing_stripes(&self) -> u16 {
        self.missing_stripes
    }

    /// The numbers of the missing stripes (from 1), if they are known, and the number of all stripes.
    pub fn missing_stripe_numbers(&self) -> (&[u16], u16) {
        (&self.missing_numbers.0, self.missing_numbers.1)
    }

    /// The set that determines the state of the pages: the differential backup if there is one, otherwise the full
    /// backup.
    pub fn set(&self) -> &SetLabel {
        &self.set
    }

    /// The types of blocks in the backup that the format documentation does not describe, and the number of blocks of
    /// each type. The content of these blocks is unknown.
    pub fn undescribed_blocks(&self) -> &[([u8; 4], u64)] {
        &self.undescribed
    }

    /// The path of a data file on the server; empty if it is unknown.
    pub fn physical_name(&self, file_id: u16) -> &str {
        self.physical_names.get(&file_id).map_or("", String::as_str)
    }

    /// Positions of the sets that are not read, in the file that contains the full backup.
    pub fn other_sets(&self) -> &[u16] {
        &self.other_sets
    }

    /// Completes the list of data files from their file header pages. The places of all pages must be known before the
    /// call.
    pub(super) fn read_headers(&mut self) {
        for index in 0..self.files.len() {
            let file_id = self.files.get(index).map_or(0, |file| file.file_id);
            let id = PageId::new(file_id, 0);
            let bytes = self.read_page(id);
            let Some(file) = self.files.get_mut(index) else { continue };
            // If the file header page is in a missing part of the backup, it does not count as damaged.
            file.header_is_sound = bytes.as_ref().is_none_or(|bytes| is_file_header(bytes));
            if let Some(mut bytes) = bytes.filter(|bytes| is_file_header(bytes)) {
                undo_torn_bits(&mut bytes);
                if let Some(header) = FileHeader::read(Page::new(&bytes)) {
                    file.binding_guid = Some(header.binding_guid());
                }
            }
        }
    }

    /// Returns the pages that a restore would still change by applying the set's log. These are pages whose LSN is
    /// lower than the LSN of their last log record, and pages changed by a transaction that had not ended at the end of
    /// the log.
    pub(super) fn settle(&self, log: &LogPortion) -> Vec<PageId> {
        let mut pages = log.undone.clone();
        for (&page, &last) in &log.changes {
            let image = self.lsn_of(page);
            if image.is_none_or(|image| image < last) {
                pages.push(page);
            }
        }
        // The log in a set of files also contains changes to files that are not in the set.
        pages.retain(|page| self.places_of(page.file).is_some());
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The places of a file's extents.
    fn places_of(&self, file_id: u16) -> Option<&FilePlaces> {
        let at = self.places.binary_search_by_key(&file_id, |places| places.file_id).ok()?;
        self.places.get(at)
    }

    fn lsn_of(&self, page: PageId) -> Option<Lsn> {
        let places = self.places_of(page.file)?;
        let (Place::At(tape, at), _) = places.locate(page.page / EXTENT_PAGES) else { return None };
        let mut bytes = [0; LSN_AT + LSN_BYTES];
        let at = at + u64::from(page.page % EXTENT_PAGES) * PAGE_BYTES as u64;
        self.media.get(usize::from(tape))?.read_exact_at(&mut bytes, at).ok()?;
        Lsn::read(&bytes, LSN_AT)
    }
}

impl PageSource for BackupPages {
    fn files(&self) -> &[DataFile] {
        &self.files
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let (Some(file), Some(places)) = (self.file(first.file), self.places_of(first.file)) else {
            return Err(ReadError::NoSuchFile { file_id: first.file });
        };
        let wanted = (file.pages.saturating_sub(first.page) as usize).min(buffer.len() / PAGE_BYTES);
        let mut done = 0;
        while done < wanted {
            let page = first.page + done as u32;
            let (place, extents) = places.locate(page / EXTENT_PAGES);
            let skipped = page % EXTENT_PAGES;
            let together =
                (u64::from(extents) * u64::from(EXTENT_PAGES) - u64::from(skipped)).min((wanted - done) as u64);
            let bytes = buffer.get_mut(done * PAGE_BYTES..).unwrap_or_default();
            let bytes = bytes.get_mut(..together as usize * PAGE_BYTES).unwrap_or_default();
            match place {
                Place::At(tape, at) => self.read_tape(tape, at + u64::from(skipped) * PAGE_BYTES as u64, bytes)?,
                // A backup does not copy free extents; in a restored file they contain zeros.
                Place::Free => bytes.fill(0),
                Place::Missing => {
                    return Err(ReadError::NotInBackup {
                        is_stripe: self.missing_stripes > 0,
                        path: file.path.clone(),
                        page: PageId::new(first.file, page),
                    });
                }
            }
            done += together as usize;
        }
        Ok(wanted)
    }

    fn prefetch(&self, first: PageId, pages: u32) {
        let Some((Place::At(tape, at), extents)) =
            self.places_of(first.file).map(|places| places.locate(first.page / EXTENT_PAGES))
        else {
            return;
        };
        let length = u64::from(extents.min(pages.div_ceil(EXTENT_PAGES))) * FRAME_BYTES;
        if let Some(media) = self.media.get(usize::from(tape)) {
            media.prefetch(at, length);
        }
    }

    fn read_faults(&self) -> ReadFaults {
        let mut faults = ReadFaults::default();
        self.media.iter().for_each(|media| media.add_read_faults(&mut faults));
        faults
    }

    fn changes(&self) -> Vec<FileChange> {
        self.media.iter().filter_map(Media::change).collect()
    }

    fn backup(&self) -> Option<&BackupPages> {
        Some(self)
    }

    fn above_base(&self, first: PageId, pages: u32) -> Option<u128> {
        let places = self.places_of(first.file)?;
        let (mut above, mut known) = (0, None);
        for (bit, page) in (0..pages.min(u128::BITS)).zip(first.page..) {
            let extent = page / EXTENT_PAGES;
            let is_above = match known {
                Some((of, is_above)) if of == extent => is_above,
                _ => places.is_above_base(extent)?,
            };
            known = Some((extent, is_above));
            above |= u128::from(is_above) << bit;
        }
        Some(above)
    }
}

impl BackupPages {
    /// The pages that a restore would still change by redo or undo of the backup's log, in ascending order; `None` if
    /// they are unknown.
    pub fn in_flight(&self) -> Option<&[PageId]> {
        self.in_flight.as_deref()
    }

    /// Reports the damage outside the pages to `found`, and returns the read errors that occurred. It reads all data
    /// that has not been read before, so it should be called once, at the end.
    pub fn container_damage(&self, mut found: impl FnMut(Damage)) -> Vec<ReadError> {
        let mut errors = Vec::new();
        self.damage.iter().cloned().for_each(&mut found);
        for sum in &self.sums {
            let Some(media) = self.media.get(usize::from(sum.tape)) else { continue };
            match sum.finish(media) {
                Ok(Some(kind)) => found(Damage { path: media.path.clone(), at: sum.region.at, kind }),
                Ok(None) => {}
                // Damage to the container is reported below. If the tape ends early, this was reported when the backup
                // was opened.
                Err(error) if is_damage(&error) => {}
                Err(cause) => errors.push(io_error(&media.path, sum.region.at, cause)),
            }
        }
        for media in self.media.iter() {
            if let Err(cause) = media.container_damage(&mut found) {
                errors.push(io_error(&media.path, 0, cause));
            }
        }
        errors
    }

    fn read_tape(&self, tape: u16, at: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        let Some(media) = self.media.get(usize::from(tape)) else {
            return Err(ReadError::NoSuchFile { file_id: 0 });
        };
        media.read_exact_at(bytes, at).map_err(|cause| io_error(&media.path, at, cause))?;
        // Regions do not overlap, and each read is within one region.
        let after = self.sums.partition_point(|sum| sum.place() <= (tape, at));
        if let Some(sum) = after.checked_sub(1).and_then(|index| self.sums.get(index)) {
            sum.observe(tape, at, bytes);
        }
        Ok(())
    }
}

fn io_error(path: &std::path::Path, offset: u64, cause: io::Error) -> ReadError {
    ReadError::Io { path: PathBuf::from(path), offset, cause }
}
