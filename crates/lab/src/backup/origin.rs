//! Reads the data files of the database that is backed up.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use super::facts::FileFacts;
use crate::disk::LabError;
use crate::ids::{EXTENT, GAM_INTERVAL, PAGE, PFS_INTERVAL, PageId};
use crate::page::{self, Lsn, PageVerify, page_type};

/// Bytes of an extent.
pub(super) const EXTENT_BYTES: usize = EXTENT as usize * PAGE;
/// The offset of the bits on a map page (GAM, SGAM, differential map). The bits follow the page header, the first
/// record, which is like the first record of an IAM page, and the four-byte head of the second record.
const MAP: usize = 194;
/// The byte range of all bits on a map page.
pub(super) const MAP_BITS: Range<usize> = MAP..MAP + MAP_EXTENTS as usize / 8;
/// The number of extents that a map page describes.
const MAP_EXTENTS: u32 = GAM_INTERVAL / EXTENT;

/// The data files, each with its file ID.
pub(crate) struct Origin {
    files: Vec<OriginFile>,
}

struct OriginFile {
    id: u16,
    path: PathBuf,
    handle: File,
    extents: u32,
    bytes: u64,
}

/// The fields of the boot page that backups need.
pub(super) struct BootFacts {
    pub(super) name: String,
    pub(super) version: u16,
    pub(super) compatibility: u8,
    pub(super) build: [u8; 4],
    pub(super) collation: u32,
    pub(super) sort_order: u8,
    pub(super) checkpoint: Lsn,
    pub(super) family: [u8; 16],
    pub(super) fork: [u8; 16],
    /// The previous recovery fork, and the LSN at which the current fork began.
    pub(super) earlier_fork: ([u8; 16], Lsn),
    pub(super) verify: PageVerify,
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.get(at..at + length).unwrap_or_default().iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

fn lsn(bytes: &[u8], at: usize) -> Lsn {
    Lsn(number(bytes, at, 4) as u32, number(bytes, at + 4, 4) as u32, number(bytes, at + 8, 2) as u16)
}

fn sixteen(bytes: &[u8], at: usize) -> [u8; 16] {
    let mut found = [0; 16];
    if let Some(bytes) = bytes.get(at..at + 16) {
        found.copy_from_slice(bytes);
    }
    found
}

impl Origin {
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, LabError> {
        let mut files = Vec::new();
        for path in paths {
            let failed = |source| LabError::Io { path: path.clone(), source };
            let handle = File::open(path).map_err(failed)?;
            let bytes = handle.metadata().map_err(failed)?.len();
            let extents = (bytes / EXTENT_BYTES as u64) as u32;
            let mut file = OriginFile { id: 0, path: path.clone(), handle, extents, bytes };
            if bytes < EXTENT_BYTES as u64 {
                return Err(LabError::Description(format!("{}: too short to be backed up", path.display())));
            }
            file.id = number(&file.read(0)?[..PAGE], 36, 2) as u16;
            files.push(file);
        }
        files.sort_by_key(|file| file.id);
        if files.first().is_none_or(|file| file.id != 1) {
            return Err(LabError::Description("the primary file is not among the files".to_owned()));
        }
        Ok(Self { files })
    }

    /// The file IDs, each with the number of whole extents in the file.
    pub(super) fn extents(&self) -> Vec<(u16, u32)> {
        self.files.iter().map(|file| (file.id, file.extents)).collect()
    }

    /// An extent as stored in its file.
    pub(super) fn read(&mut self, file: u16, extent: u32) -> Result<Vec<u8>, LabError> {
        match self.files.iter_mut().find(|known| known.id == file) {
            Some(file) => file.read(extent),
            None => Err(LabError::Description(format!("no file {file}"))),
        }
    }

    fn page(&self, id: PageId) -> Result<Vec<u8>, LabError> {
        let Some(file) = self.files.iter().find(|file| file.id == id.file) else {
            return Err(LabError::Description(format!("no file {}", id.file)));
        };
        let mut extent = file.read(id.page / EXTENT)?;
        let from = (id.page % EXTENT) as usize * PAGE;
        let mut bytes: Vec<u8> = extent.drain(from..from + PAGE).collect();
        if let Some(bytes) = bytes.first_chunk_mut() {
            page::unprotect(bytes);
        }
        Ok(bytes)
    }

    pub(super) fn boot(&self) -> Result<BootFacts, LabError> {
        let bytes = self.page(PageId::new(1, 9))?;
        if bytes[1] != page_type::BOOT {
            return Err(LabError::Description("the boot page is damaged: nothing can be backed up".to_owned()));
        }
        let record = &bytes[96..];
        // The field may contain the end of a longer earlier name after the present name, so only `length` bytes are
        // used.
        let length = match number(record, 0x134, 4) as usize {
            length @ 2..=0x100 if length.is_multiple_of(2) => length,
            _ => 0x100,
        };
        let units: Vec<u16> =
            record[0x34..0x34 + length].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let name = String::from_utf16_lossy(&units);
        Ok(BootFacts {
            name: name.trim_end_matches(['\0', '\u{2020}']).to_owned(),
            version: number(record, 4, 2) as u16,
            compatibility: record[0x13A],
            build: [record[0x2AC], record[0x2AD], record[0x2AE], record[0x2AF]],
            // The collation consists of a fixed locale and the comparison flags. The boot page stores these flags next
            // to the sort order.
            collation: 0x409 | u32::from(record[0x189]) << 16,
            sort_order: record[0x18B],
            checkpoint: lsn(record, 0x15C),
            family: sixteen(record, 0x198),
            fork: sixteen(record, 0x1C8),
            earlier_fork: (sixteen(record, 0x1E4), lsn(record, 0x1D8)),
            verify: match number(&bytes, 4, 2) & 0x300 {
                0x200 => PageVerify::Checksum,
                0x100 => PageVerify::Torn,
                _ => PageVerify::None,
            },
        })
    }

    /// The value of a variable-length column in the header record of a file.
    fn header(&self, file: u16, column: usize) -> Result<Vec<u8>, LabError> {
        let bytes = self.page(PageId::new(file, 0))?;
        let record = &bytes[96..];
        let fixed = number(record, 2, 2) as usize;
        let columns = number(record, fixed, 2) as usize;
        let ends = fixed + 2 + columns.div_ceil(8) + 2;
        let end = |column: usize| number(record, ends + 2 * column, 2) as usize;
        let count = number(record, ends - 2, 2) as usize;
        let start = if column == 0 { ends + 2 * count } else { end(column - 1) };
        let found = record.get(start..end(column)).filter(|_| column < count);
        found.map(<[u8]>::to_vec).ok_or_else(|| LabError::Description(format!("the header of file {file} is damaged")))
    }

    /// The GUID of the database.
    pub(super) fn binding(&self) -> Result<[u8; 16], LabError> {
        Ok(sixteen(&self.header(1, 0)?, 0))
    }

    /// Returns what the file headers state about the files. Each path is only a file name, without a folder.
    pub(super) fn file_facts(&self) -> Result<Vec<FileFacts>, LabError> {
        let mut facts = Vec::new();
        for file in &self.files {
            let name = self.header(file.id, 27)?;
            let units: Vec<u16> = name.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            facts.push(FileFacts {
                id: file.id,
                filegroup: number(&self.header(file.id, 3)?, 0, 2) as u16,
                bytes: file.bytes,
                first_bytes: file.bytes,
                most_bytes: 0x1FFF_FFFF_E000,
                growth: 64 << 20,
                grows_by_percent: false,
                sector_bytes: 512,
                guid: sixteen(&self.header(file.id, 23)?, 0),
                logical_name: String::from_utf16_lossy(&units),
                path: file.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            });
        }
        Ok(facts)
    }

    /// The bits of a map page.
    fn map(&self, id: PageId) -> Result<Vec<u8>, LabError> {
        Ok(self.page(id)?.split_off(MAP))
    }

    /// Returns the extents that a full backup copies: extents in use, mixed extents with free pages, the first extent
    /// of each GAM interval, and each extent that contains a PFS page.
    pub(super) fn in_use(&self) -> Result<Vec<(u16, u32)>, LabError> {
        let mut all = Vec::new();
        for file in &self.files {
            for interval in 0..file.extents.div_ceil(MAP_EXTENTS) {
                let first = interval * GAM_INTERVAL;
                // The GAM page is the first page of its interval. Only in the first interval, the file header page and
                // the PFS page precede it.
                let gam = if interval == 0 { 2 } else { first };
                let gam_bits = self.map(PageId::new(file.id, gam))?;
                let sgam_bits = self.map(PageId::new(file.id, gam + 1))?;
                for index in 0..MAP_EXTENTS.min(file.extents - interval * MAP_EXTENTS) {
                    let extent = interval * MAP_EXTENTS + index;
                    let pages = extent * EXTENT..(extent + 1) * EXTENT;
                    let holds_pfs = pages.clone().any(|page| page % PFS_INTERVAL == 0);
                    let is_free = bit(&gam_bits, index) && !bit(&sgam_bits, index);
                    if index == 0 || holds_pfs || !is_free {
                        all.push((file.id, extent));
                    }
                }
            }
        }
        Ok(all)
    }

    /// The extents that a differential backup copies: the first extent of each GAM interval, and the changed extents.
    pub(super) fn with_first(&self, changed: &[(u16, u32)]) -> Vec<(u16, u32)> {
        let firsts = self
            .files
            .iter()
            .flat_map(|file| (0..file.extents).step_by(MAP_EXTENTS as usize).map(|extent| (file.id, extent)));
        let mut all: Vec<(u16, u32)> = firsts.chain(changed.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl OriginFile {
    fn read(&self, extent: u32) -> Result<Vec<u8>, LabError> {
        let mut bytes = vec![0; EXTENT_BYTES];
        let mut handle = &self.handle;
        let at = u64::from(extent) * EXTENT_BYTES as u64;
        let done = handle.seek(SeekFrom::Start(at)).and_then(|_| handle.read_exact(&mut bytes));
        done.map_err(|source| LabError::Io { path: self.path.clone(), source })?;
        Ok(bytes)
    }
}

fn bit(bits: &[u8], index: u32) -> bool {
    bits.get(index as usize / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// Returns the page number of the differential map page that covers an extent, and the byte offset and the bit of the
/// extent on this page.
pub(super) fn change_bit(extent: u32) -> (u32, usize, u8) {
    let index = extent % MAP_EXTENTS;
    (extent / MAP_EXTENTS * GAM_INTERVAL + 6, MAP + index as usize / 8, 1 << (index % 8))
}
