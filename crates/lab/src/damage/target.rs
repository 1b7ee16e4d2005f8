//! The data files that the lab damages, and the search for a page that suits a kind of damage.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::image::{Image, Rank};
use crate::disk::LabError;
use crate::ids::{PAGE, PFS_INTERVAL, PageId};
use crate::page::{self, page_type};
use crate::random::Random;

/// The number of random pages that are tried before all pages are searched in order.
const TRIES: u64 = 2_000;

pub(super) struct Target {
    pub(super) files: Vec<TargetFile>,
}

pub(super) struct TargetFile {
    pub(super) id: u16,
    pub(super) path: PathBuf,
    pub(super) handle: File,
    pub(super) pages: u32,
}

impl Target {
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, LabError> {
        let mut files = Vec::new();
        for path in paths {
            let failed = |source| LabError::Io { path: path.clone(), source };
            let mut handle = File::options().read(true).write(true).open(path).map_err(failed)?;
            let pages = (handle.metadata().map_err(failed)?.len() / PAGE as u64) as u32;
            let mut header = [0; 64];
            handle.read_exact(&mut header).map_err(failed)?;
            let id = u16::from_le_bytes([header[36], header[37]]);
            if header[1] != page_type::FILE_HEADER || files.iter().any(|file: &TargetFile| file.id == id) {
                return Err(LabError::Description(format!("{}: not a data file of this database", path.display())));
            }
            files.push(TargetFile { id, path: path.clone(), handle, pages });
        }
        Ok(Self { files })
    }

    /// Reads a page. Returns `None` if the files have no such page.
    pub(super) fn read(&mut self, id: PageId) -> Result<Option<Image>, LabError> {
        let Some(file) = self.files.iter_mut().find(|file| file.id == id.file && id.page < file.pages) else {
            return Ok(None);
        };
        let mut bytes = Box::new([0; PAGE]);
        let at = u64::from(id.page) * PAGE as u64;
        let done = file.handle.seek(SeekFrom::Start(at)).and_then(|_| file.handle.read_exact(&mut bytes[..]));
        done.map_err(|source| LabError::Io { path: file.path.clone(), source })?;
        Ok(Some(Image { id, bytes }))
    }

    /// Picks an allocated page that contains its own address and has the lowest rank. First tries random pages; if none
    /// of them has rank 0, searches all pages in order. Returns `None` if no page is suitable.
    pub(super) fn pick(
        &mut self,
        dice: &mut Random,
        rank: impl Fn(&mut Self, &Image) -> Result<Rank, LabError>,
    ) -> Result<Option<Image>, LabError> {
        let total: u64 = self.files.iter().map(|file| u64::from(file.pages)).sum();
        let mut best: Option<(u8, Image)> = None;
        for number in (0..TRIES).map(|_| dice.below(total)).chain(0..total) {
            let Some(id) = self.nth(number) else { continue };
            let Some(mut page) = self.read(id)? else { continue };
            if page.field::<6>(32) != id.bytes() || !self.is_allocated(id)? {
                continue;
            }
            page::unprotect(&mut page.bytes);
            let Some(rank) = rank(self, &page)? else { continue };
            if best.as_ref().is_none_or(|(best, _)| rank < *best) {
                best = Some((rank, page));
            }
            if rank == 0 {
                break;
            }
        }
        Ok(best.map(|(_, page)| page))
    }

    fn nth(&self, mut number: u64) -> Option<PageId> {
        for file in &self.files {
            if number < u64::from(file.pages) {
                return Some(PageId::new(file.id, number as u32));
            }
            number -= u64::from(file.pages);
        }
        None
    }

    fn is_allocated(&mut self, id: PageId) -> Result<bool, LabError> {
        let place = (id.page / PFS_INTERVAL * PFS_INTERVAL).max(1);
        let Some(mut map) = self.read(PageId::new(id.file, place))? else { return Ok(false) };
        page::unprotect(&mut map.bytes);
        Ok(map.bytes[100 + (id.page % PFS_INTERVAL) as usize] & 0x40 != 0)
    }

    /// The last page in use of a file.
    pub(super) fn last_in_use(&mut self, file: u16) -> Result<Option<u32>, LabError> {
        let pages = self.files.iter().find(|of| of.id == file).map_or(0, |file| file.pages);
        for interval in (0..pages.div_ceil(PFS_INTERVAL)).rev() {
            let first = interval * PFS_INTERVAL;
            let Some(mut map) = self.read(PageId::new(file, first.max(1)))? else { continue };
            page::unprotect(&mut map.bytes);
            let of_file = first..pages.min(first + PFS_INTERVAL);
            let last = of_file.rev().find(|page| map.bytes[100 + (page - first) as usize] & 0x40 != 0);
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(None)
    }

    pub(super) fn write(&mut self, page: &Image) -> Result<(), LabError> {
        let Some(file) = self.files.iter_mut().find(|file| file.id == page.id.file) else { return Ok(()) };
        let at = u64::from(page.id.page) * PAGE as u64;
        let done = file.handle.seek(SeekFrom::Start(at)).and_then(|_| file.handle.write_all(&page.bytes[..]));
        done.map_err(|source| LabError::Io { path: file.path.clone(), source })
    }

    /// Writes a page and recomputes its page protection, so that the protection does not detect the damage.
    pub(super) fn write_protected(&mut self, page: &mut Image) -> Result<(), LabError> {
        page.protect();
        self.write(page)
    }
}
