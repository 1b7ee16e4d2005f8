//! The contents of a backup file: its media header, its backup sets, and the places of their pages and log blocks.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use format::Lsn;
use format::bytes::{u8_at, u16_at, u32_at, u64_at};
use format::log::Vlf;

use super::blocks::{Block, Stream, Tag, Walk};
use super::config::{BackupFile, BackupFilegroup, Configuration, SetConfig, date, guid, set_flags};
use super::damage::{Damage, DamageKind};
use super::media::Media;
use super::pages::SetLabel;
use super::remains::first_extent;
use super::room::{MOST_REGIONS, Room, at_most};
use crate::ReadFaults;

/// Memory for a set without its files and regions. The texts of a set need about 500 bytes.
const BYTES_PER_SET: usize = size_of::<BackupSet>() + 512;
/// Memory for a region, and for the numbers of pages that were copied to it from each file.
const BYTES_PER_REGION: usize = size_of::<LogRegion>() + size_of::<Vec<(u16, u32)>>();
/// The blocks of a set after its label.
const OF_SETS: [&Tag; 5] = [b"VOLB", b"MSCI", b"MSDA", b"MSTL", b"MSLS"];
/// Number of zero bytes before the data of a page or log stream.
pub(crate) const LEAD_BYTES: u64 = 2;

/// The type of a backup set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum SetKind {
    /// A full backup, with all allocated extents.
    #[default]
    Full,
    /// A differential backup, with the extents changed since a full backup.
    Differential,
    /// A log backup.
    Log,
    /// A backup with FILE or FILEGROUP, with all allocated extents of some files.
    Files,
    /// A backup with READ_WRITE_FILEGROUPS, with all allocated extents of the primary filegroup and of all read-write
    /// filegroups.
    Partial,
    /// Another type, with the letter that identifies it.
    Other(u8),
}

impl SetKind {
    /// Whether this is a file, filegroup or partial backup, which contains only some files of the database.
    pub fn is_of_files(self) -> bool {
        matches!(self, Self::Files | Self::Partial)
    }

    /// The name of the type, as in RESTORE HEADERONLY.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "Database",
            Self::Differential => "Database Differential",
            Self::Log => "Transaction Log",
            Self::Files => "File or Filegroup",
            Self::Partial => "Partial",
            Self::Other(b'G') => "File or Filegroup Differential",
            Self::Other(b'Q') => "Partial Differential",
            Self::Other(_) => "of an unknown type",
        }
    }

    /// The value of BackupType in RESTORE HEADERONLY.
    pub fn number(self) -> Option<u8> {
        Some(match self {
            Self::Full => 1,
            Self::Log => 2,
            Self::Files => 4,
            Self::Differential => 5,
            Self::Other(b'G') => 6,
            Self::Partial => 7,
            Self::Other(b'Q') => 8,
            Self::Other(_) => return None,
        })
    }
}

/// The data of a page or log stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    /// Tape offset of the data.
    pub(crate) at: u64,
    pub(crate) length: u64,
    /// The stored checksum of the data, if the backup was taken WITH CHECKSUM.
    pub(crate) checksum: Option<u32>,
}

/// A region with the log of one virtual log file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRegion {
    pub(crate) region: Region,
    /// Number of bytes of log in the region. The remaining bytes of the region are filler.
    pub(crate) used: u64,
    /// Offset in the log file at which the log of the region starts.
    pub(crate) start: u64,
    /// The virtual log file.
    pub(crate) vlf: Vlf,
    /// ID of the log file that contains the VLF.
    pub(crate) file_id: u16,
}

/// One backup set of a backup file.
#[derive(Clone, Debug)]
pub struct BackupSet {
    /// Position of the set in the file, from 1. It is the number n in RESTORE ... WITH FILE = n.
    pub position: u16,
    /// Kind of the set.
    pub kind: SetKind,
    /// Name of the set.
    pub name: String,
    /// Description of the set.
    pub description: String,
    /// The user who took the backup.
    pub user: String,
    /// The machine on which the backup was taken.
    pub machine: String,
    /// Major and minor version of the program that wrote the set.
    pub software: (u8, u8),
    /// The GUID of the set, which all its stripes share.
    pub guid: Option<String>,
    /// The time when the set was written, according to the tape's label.
    pub labelled: Option<String>,
    /// The properties of the set that its label describes.
    pub config: SetConfig,
    /// The files of the database.
    pub files: Vec<BackupFile>,
    /// The filegroups of the database.
    pub filegroups: Vec<BackupFilegroup>,
    /// Whether the backup was taken WITH CHECKSUM.
    pub has_checksums: bool,
    /// Whether the backup was taken WITH COPY_ONLY.
    pub is_copy_only: bool,
    /// Whether the streams of the set are encrypted.
    pub is_encrypted: bool,
    /// Tape offset at which the set begins.
    pub(crate) at: u64,
    /// For each region, the number of copied pages by data file. The first configuration of the set counts the pages of
    /// the first region; the last configuration counts the pages of the last region.
    pub(crate) copied: Vec<Vec<(u16, u32)>>,
    /// The regions of pages. Pages in later regions override pages in earlier regions.
    pub(crate) pages: Vec<Region>,
    pub(crate) log: Vec<LogRegion>,
}

impl BackupSet {
    /// A summary of the set's label.
    pub(super) fn label(&self) -> SetLabel {
        let version = Some(self.config.version).filter(|&version| version != 0);
        SetLabel {
            kind: self.kind,
            position: self.position,
            finished: self.config.finished.clone(),
            version,
            server: self.config.server.clone(),
            database: self.config.database.clone(),
            guid: self.guid.clone(),
            lasting_id: self.config.lasting_id().map(str::to_owned),
        }
    }

    /// Whether this is a log backup with extents that a bulk operation wrote, whose content the log lacks.
    pub fn has_bulk_extents(&self) -> bool {
        self.kind == SetKind::Log && self.pages.iter().any(|region| region.length > 0)
    }

    /// Number of bytes of log in the set.
    pub fn log_bytes(&self) -> u64 {
        self.log.iter().map(|log| log.used).sum()
    }
}

/// The media header and the set labels of a backup file.
#[derive(Clone, Debug)]
pub struct BackupMedia {
    /// Path of the file.
    pub path: PathBuf,
    /// Whether the file is a compressed container.
    pub is_compressed: bool,
    /// The ID of the media set, which all stripes share.
    pub media_set: Option<String>,
    /// The ID of this stripe (media family) in the media set.
    pub family_id: u32,
    /// Number of stripes (media families) of the media set.
    pub families: u16,
    /// Number of this stripe (media family), from 1.
    pub family: u16,
    /// Name of the media set.
    pub name: String,
    /// Description of the media set.
    pub description: String,
    /// The program that wrote the media header.
    pub software: String,
    /// Block size in bytes.
    pub block_bytes: u16,
    /// The time when the media set was created.
    pub created: Option<String>,
    /// The backup sets in the file.
    pub sets: Vec<BackupSet>,
    /// Damage to the blocks of the tape.
    pub damage: Vec<Damage>,
    /// The types of undamaged blocks that the format documentation does not describe, and the number of blocks of each
    /// type. The content of these blocks is unknown.
    pub undescribed: Vec<([u8; 4], u64)>,
    /// Reads that failed during the search for sets.
    pub read_faults: ReadFaults,
}

impl BackupMedia {
    /// A backup file with these sets, for tests.
    #[cfg(test)]
    pub(super) fn of_sets(path: &str, sets: Vec<BackupSet>) -> Self {
        Self {
            path: path.into(),
            is_compressed: false,
            media_set: None,
            family_id: 0,
            families: 1,
            family: 1,
            name: String::new(),
            description: String::new(),
            software: String::new(),
            block_bytes: 512,
            created: None,
            sets,
            damage: Vec::new(),
            undescribed: Vec::new(),
            read_faults: ReadFaults::default(),
        }
    }

    /// Reads all blocks of a tape.
    pub(super) fn read(media: &Media, room: &Room) -> io::Result<Self> {
        let mut this = Self {
            path: media.path.clone(),
            is_compressed: media.is_compressed(),
            media_set: None,
            family_id: 0,
            families: 1,
            family: 1,
            name: String::new(),
            description: String::new(),
            software: String::new(),
            block_bytes: 0,
            created: None,
            sets: Vec::new(),
            damage: Vec::new(),
            undescribed: Vec::new(),
            read_faults: ReadFaults::default(),
        };
        let mut walk = Walk::new(media, room);
        let mut open: Option<OpenSet> = None;
        let mut last = Tag::default();
        let mut expected = 0;
        while let Some(block) = walk.next()? {
            last = block.tag;
            let lost = (expected < block.at).then_some(expected..block.at);
            expected = walk.at();
            match &block.tag {
                b"TAPE" => this.label(media, &block)?,
                b"SSET" => {
                    this.close(open.take(), false);
                    room.take(BYTES_PER_SET, "its sets")?;
                    open = Some(OpenSet::new(&block, this.sets.len()));
                }
                b"ESET" => this.close(open.take(), true),
                _ => {
                    // The label of the set is lost. Its last block has the configuration too.
                    if open.is_none() && lost.is_some() && OF_SETS.contains(&&block.tag) {
                        room.take(BYTES_PER_SET, "its sets")?;
                        open = Some(OpenSet::without_label(block.at, this.sets.len()));
                    }
                    if let Some(set) = &mut open {
                        if let Some(lost) = &lost {
                            set.add_lost(&walk, lost, &block.tag)?;
                        }
                        set.add(media, &block, room)?;
                    }
                }
            }
        }
        let damage = |(at, kind)| Damage { path: media.path.clone(), at, kind };
        this.damage.extend(walk.damage.into_iter().map(damage));
        this.undescribed = walk.undescribed.into_iter().collect();
        // A soft filemark follows each set, so the last block of a complete tape is a soft filemark.
        let is_cut = &last != b"SFMB"
            && this.undescribed.is_empty()
            && !this.damage.iter().any(|damage| damage.kind == DamageKind::Truncated);
        if is_cut {
            this.damage.push(damage((media.length(), DamageKind::Truncated)));
        }
        this.close(open.take(), false);
        media.add_read_faults(&mut this.read_faults);
        Ok(this)
    }

    /// Reads the TAPE block, which describes the media set and this stripe.
    fn label(&mut self, media: &Media, block: &Block) -> io::Result<()> {
        self.family_id = u32_at(&block.fields, 0x34).unwrap_or_default();
        (self.name, self.description, self.software) = (block.text(0x44), block.text(0x48), block.text(0x50));
        self.block_bytes = u16_at(&block.fields, 0x54).unwrap_or_default();
        self.created = date(&block.fields, 0x58);
        if let Some(stream) = block.stream(b"RAID").filter(|stream| stream.length >= 0x1A) {
            let mut raid = [0; 0x1A];
            media.read_exact_at(&mut raid, stream.at)?;
            self.media_set = guid(&raid, 0);
            self.families = u16_at(&raid, 0x14).unwrap_or(1).max(1);
            self.family = u16_at(&raid, 0x18).unwrap_or(1).max(1);
        }
        Ok(())
    }

    fn close(&mut self, open: Option<OpenSet>, is_ended: bool) {
        let Some(open) = open else { return };
        let (at, is_complete, position) = (open.at, open.last.is_some() && is_ended, open.position);
        if !is_complete {
            let kind = DamageKind::SetIncomplete { position };
            self.damage.push(Damage { path: self.path.clone(), at, kind });
        }
        if let (Some(first), Some(last)) = (&open.first, &open.last)
            && !first.has_same_constants(last)
        {
            let kind = DamageKind::Configuration { position };
            self.damage.push(Damage { path: self.path.clone(), at, kind });
        }
        self.sets.extend(open.finish());
    }
}

/// A backup set whose blocks are still being read.
#[derive(Default)]
struct OpenSet {
    at: u64,
    position: u16,
    name: String,
    description: String,
    user: String,
    machine: String,
    software: (u8, u8),
    guid: Option<String>,
    labelled: Option<String>,
    first: Option<Configuration>,
    last: Option<Configuration>,
    pages: Vec<Region>,
    log: Vec<LogRegion>,
    is_encrypted: bool,
}

impl OpenSet {
    fn new(block: &Block, sets: usize) -> Self {
        let fields = &block.fields;
        let byte = |at: usize| fields.get(at).copied().unwrap_or_default();
        Self {
            at: block.at,
            position: u16_at(fields, 0x3E).filter(|&n| n > 0).unwrap_or(next_position(sets)),
            name: block.text(0x40),
            description: block.text(0x44),
            user: block.text(0x4C),
            machine: String::new(),
            software: (byte(0x5D), byte(0x5E)),
            guid: guid(fields, 0x64),
            labelled: date(fields, 0x58),
            first: None,
            last: None,
            pages: Vec::new(),
            log: Vec::new(),
            is_encrypted: false,
        }
    }

    /// A set of which the first block that was found is at the tape offset `at`. `sets` sets are before it.
    fn without_label(at: u64, sets: usize) -> Self {
        Self { at, position: next_position(sets), ..Self::default() }
    }

    /// Adds the pages in the bytes `lost`, which precede a block with the tag `tag` and belong to no block: the block to
    /// which they belonged is damaged.
    fn add_lost(&mut self, walk: &Walk<'_>, lost: &Range<u64>, tag: &Tag) -> io::Result<()> {
        let may_follow_pages = matches!(tag, b"MSDA" | b"MSTL" | b"MSLS");
        if !may_follow_pages || !self.pages.is_empty() {
            return Ok(());
        }
        let Some(at) = first_extent(walk.media(), lost)? else { return Ok(()) };
        let length = walk.length_before(at.saturating_sub(LEAD_BYTES), lost.end)?.saturating_sub(LEAD_BYTES);
        self.pages.push(Region { at, length, checksum: None });
        Ok(())
    }

    fn add(&mut self, media: &Media, block: &Block, room: &Room) -> io::Result<()> {
        self.is_encrypted |= block.streams.iter().any(|stream| stream.is_encrypted);
        match &block.tag {
            b"VOLB" => self.machine = block.text(0x40),
            b"MSCI" => self.first = configuration(media, block, room)?.or(self.first.take()),
            b"MSLS" => self.last = configuration(media, block, room)?.or(self.last.take()),
            b"MSDA" => {
                let known = self.pages.len();
                self.pages.extend(regions(media, block, b"MQDA")?);
                at_most(MOST_REGIONS, self.pages.len(), "regions of pages in one set", block.at)?;
                room.take((self.pages.len() - known) * BYTES_PER_REGION, "its regions of pages")?;
            }
            b"MSTL" => {
                let range = (u64_at(&block.fields, 0x3C), u64_at(&block.fields, 0x44));
                let (start, end) = (range.0.unwrap_or_default(), range.1.unwrap_or_default());
                let (vlf, file_id) = descriptor(&block.fields);
                for region in regions(media, block, b"MQTL")? {
                    room.take(BYTES_PER_REGION, "its regions of log")?;
                    let used = end.saturating_sub(start).min(region.length);
                    self.log.push(LogRegion { region, used, start, vlf, file_id });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Option<BackupSet> {
        let copied = |configuration: &Configuration| {
            let files = configuration.files.iter().filter(|file| file.is_data);
            files.map(|file| (file.file_id, file.pages_copied)).collect()
        };
        let counts: Vec<Vec<(u16, u32)>> = match (&self.first, &self.last) {
            (Some(first), Some(last)) => (0..self.pages.len())
                .map(|region| match region {
                    0 => copied(first),
                    _ if region + 1 == self.pages.len() => copied(last),
                    _ => Vec::new(),
                })
                .collect(),
            (Some(first), None) => vec![copied(first)],
            (None, Some(last)) if self.pages.len() <= 1 => vec![copied(last)],
            _ => Vec::new(),
        };
        // Only the last configuration contains the final LSNs and times of the set.
        let pages_copied: Vec<(u16, u32)> = counts.first().cloned().unwrap_or_default();
        let mut found = self.last.or(self.first)?;
        // If two files have the same ID, the first file is used.
        let pages_copied: BTreeMap<u16, u32> = pages_copied.into_iter().rev().collect();
        for file in found.files.iter_mut().filter(|file| file.is_data) {
            if let Some(pages) = pages_copied.get(&file.file_id) {
                file.pages_copied = *pages;
            }
        }
        let kind = match found.set.type_letter {
            b'D' => SetKind::Full,
            b'I' => SetKind::Differential,
            b'L' => SetKind::Log,
            b'F' => SetKind::Files,
            b'P' => SetKind::Partial,
            other => SetKind::Other(other),
        };
        Some(BackupSet {
            position: self.position,
            kind,
            name: self.name,
            description: self.description,
            user: self.user,
            machine: self.machine,
            software: self.software,
            guid: self.guid,
            labelled: self.labelled,
            has_checksums: found.set.flags & set_flags::CHECKSUM != 0,
            is_copy_only: found.set.flags & set_flags::COPY_ONLY != 0,
            is_encrypted: self.is_encrypted,
            at: self.at,
            config: found.set,
            files: found.files,
            filegroups: found.filegroups,
            copied: counts,
            pages: self.pages,
            log: self.log,
        })
    }
}

/// The position of the set after `sets` sets, unless its label says otherwise.
fn next_position(sets: usize) -> u16 {
    (sets + 1).try_into().unwrap_or(u16::MAX)
}

/// The non-empty data streams of `block` that have the tag `tag`. In the block, a checksum stream may follow each data
/// stream.
fn regions(media: &Media, block: &Block, tag: &[u8; 4]) -> io::Result<Vec<Region>> {
    let mut regions = Vec::new();
    for (number, stream) in block.streams.iter().enumerate() {
        if stream.tag == *tag && stream.length > LEAD_BYTES {
            let checksum = match block.streams.get(number + 1) {
                Some(Stream { tag: [b'C', b'S', b'U', b'M'], at, length: 4, .. }) => {
                    let mut stored = [0; 4];
                    media.read_exact_at(&mut stored, *at)?;
                    Some(u32::from_le_bytes(stored))
                }
                _ => None,
            };
            regions.push(Region { at: stream.at + LEAD_BYTES, length: stream.length - LEAD_BYTES, checksum });
        }
    }
    Ok(regions)
}

fn configuration(media: &Media, block: &Block, room: &Room) -> io::Result<Option<Configuration>> {
    let Some(stream) = block.stream(b"MQCI") else { return Ok(None) };
    let read = |at: u64, buffer: &mut [u8]| media.read_at(buffer, stream.at + at);
    match Configuration::read_from(stream.length, read, stream.at, room) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        read => read,
    }
}

/// The VLF that an MSTL block describes, and the ID of its log file (docs/format/backups.md#log-portion).
fn descriptor(fields: &[u8]) -> (Vlf, u16) {
    const AT: usize = 0x5C;
    let vlf = Vlf {
        sequence: u32_at(fields, AT).unwrap_or_default(),
        bytes: u64_at(fields, AT + 4).unwrap_or_default(),
        offset: u64_at(fields, AT + 12).unwrap_or_default(),
        parity: u8_at(fields, AT + 0x16).unwrap_or_default(),
        created: Lsn::read(fields, AT + 0x18).unwrap_or_default(),
        format: u16_at(fields, AT + 0x22).unwrap_or_default(),
    };
    (vlf, u16_at(fields, AT + 0x14).unwrap_or_default())
}
