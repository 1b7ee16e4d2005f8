//! Changes pages of a data file directly, without the lab.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use format::allocation::{BITMAP_BYTES, INTERVAL_PAGES, PFS_PAGES, PfsByte, gam_page_of, pfs_page_of, sgam_page_of};
use format::file_header::FileHeader;
use format::page::PAGE_BYTES;
use format::{Page, PageBytes, PageType};
use trials::mutate::seal;

/// The only file of a database. Single pages of the file can be read and written.
pub(crate) struct Pages(File);

impl Pages {
    pub(crate) fn of(folder: &Path) -> Self {
        let path = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        Self(OpenOptions::new().read(true).write(true).open(path).unwrap())
    }

    pub(crate) fn count(&self) -> u32 {
        (self.0.metadata().unwrap().len() / PAGE_BYTES as u64) as u32
    }

    pub(crate) fn read(&self, page: u32) -> PageBytes {
        let mut bytes = [0; PAGE_BYTES];
        self.0.read_exact_at(&mut bytes, u64::from(page) * PAGE_BYTES as u64).unwrap();
        bytes
    }

    /// Writes a page. Before that, sets the page ID and the checksum in the page header to the correct values.
    pub(crate) fn write(&self, page: u32, bytes: &mut PageBytes) {
        bytes[32..36].copy_from_slice(&page.to_le_bytes());
        seal(bytes);
        self.0.write_all_at(bytes, u64::from(page) * PAGE_BYTES as u64).unwrap();
    }

    /// Extends the file to `pages` pages. The GAM pages show the new pages as allocated, and the PFS pages show them as
    /// free.
    pub(crate) fn grow(&self, pages: u32) {
        self.0.set_len(u64::from(pages) * PAGE_BYTES as u64).unwrap();
        let mut header = self.read(0);
        let size = FileHeader::read(Page::new(&header)).unwrap().size_pages().to_le_bytes();
        let grown = (96..PAGE_BYTES - 4).any(|at| {
            if header[at..at + 4] != size {
                return false;
            }
            header[at..at + 4].copy_from_slice(&pages.to_le_bytes());
            let is_size = FileHeader::read(Page::new(&header)).is_some_and(|header| header.size_pages() == pages);
            if !is_size {
                header[at..at + 4].copy_from_slice(&size);
            }
            is_size
        });
        assert!(grown);
        self.write(0, &mut header);
        for first in (PFS_PAGES..pages).step_by(PFS_PAGES as usize) {
            let mut pfs = self.read(1);
            Self::body(&mut pfs, 0, PFS_PAGES as usize).fill(0);
            self.write(pfs_page_of(first), &mut pfs);
        }
        for first in (INTERVAL_PAGES..pages).step_by(INTERVAL_PAGES as usize) {
            let maps = [(2, gam_page_of(first)), (3, sgam_page_of(first)), (6, first + 6), (7, first + 7)];
            for (from, to) in maps {
                let mut map = self.read(from);
                Self::body(&mut map, 1, BITMAP_BYTES).fill(0);
                self.write(to, &mut map);
            }
        }
    }

    /// The offset of the record in a slot.
    pub(crate) fn record(bytes: &PageBytes, slot: usize) -> usize {
        let at = PAGE_BYTES - 2 * (slot + 1);
        usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    }

    /// The first `length` bytes after the four header bytes of the record in a slot.
    pub(crate) fn body(bytes: &mut PageBytes, slot: usize, length: usize) -> &mut [u8] {
        let from = Self::record(bytes, slot) + 4;
        &mut bytes[from..from + length]
    }

    /// All pages of type `kind` that belong to user tables.
    pub(crate) fn user_pages(&self, kind: PageType) -> Vec<PageBytes> {
        let is_one = |bytes: &PageBytes| {
            let header = Page::new(bytes).header();
            header.kind() == Some(kind) && header.alloc_unit().0 >> 48 > 1
        };
        (0..self.count()).map(|page| self.read(page)).filter(is_one).collect()
    }

    /// Writes an IAM page for the interval that begins with page `start`. The IAM page belongs to the same allocation
    /// unit as `like`. It claims all extents of the interval if `claims_all`, otherwise none.
    pub(crate) fn write_iam(&self, page: u32, like: &PageBytes, start: u32, claims_all: bool) {
        let mut iam = *like;
        // Clears the pointers to the previous and the next page, and the list of single pages.
        iam[8..14].fill(0);
        iam[16..22].fill(0);
        let head = Self::body(&mut iam, 0, 90);
        head[36..40].copy_from_slice(&start.to_le_bytes());
        head[42..].fill(0);
        Self::body(&mut iam, 1, BITMAP_BYTES).fill(if claims_all { 0xFF } else { 0 });
        self.write(page, &mut iam);
        let mut pfs = self.read(pfs_page_of(page));
        Self::body(&mut pfs, 0, PFS_PAGES as usize)[(page % PFS_PAGES) as usize] = PfsByte::IAM;
        self.write(pfs_page_of(page), &mut pfs);
    }
}
