//! A hand-built data file of four extents. Extent 0 contains the pages at fixed addresses. Extent 1 is a mixed extent
//! with an IAM page. Extent 2 is claimed by this IAM page. Extent 3 is free.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;

use format::page::PAGE_BYTES;
use format::{AllocUnitId, PageBytes, PageId, PageType};
use source::{DataFile, PageSource, ReadError};

use crate::test_pages::{TestPage, UNIT};

/// The file ID; not 1, because file 1 would need a boot page.
pub(crate) const FILE: u16 = 3;
pub(crate) const PAGES: u32 = 32;
pub(crate) const IAM: u32 = 8;
/// The number of the mixed extent. The next two constants are the numbers of the claimed extent and of the free extent.
pub(crate) const MIXED: u32 = 1;
pub(crate) const CLAIMED: u32 = 2;
pub(crate) const FREE: u32 = 3;

/// A data file in memory: the content of its pages, and the pages that cannot be read.
pub(crate) struct TestFile {
    info: [DataFile; 1],
    pub(crate) pages: BTreeMap<u32, Box<PageBytes>>,
    pub(crate) unread: BTreeSet<u32>,
    /// Pages that are read correctly once, and are damaged in every later read.
    pub(crate) rotting: BTreeSet<u32>,
    read: Mutex<BTreeSet<u32>>,
}

impl PageSource for TestFile {
    fn files(&self) -> &[DataFile] {
        &self.info
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        for (page, bytes) in (first.page..).zip(buffer.chunks_mut(PAGE_BYTES)) {
            if self.unread.contains(&page) {
                let cause = io::Error::from(io::ErrorKind::Other);
                return Err(ReadError::Io { path: self.info[0].path.clone(), offset: 0, cause });
            }
            match self.pages.get(&page) {
                Some(page) => bytes.copy_from_slice(&page[..]),
                None => bytes.fill(0),
            }
            let is_first = self.read.lock().unwrap().insert(page);
            bytes[5000] ^= u8::from(!is_first && self.rotting.contains(&page));
        }
        Ok(buffer.len() / PAGE_BYTES)
    }
}

/// The content of the allocation maps, which tests can change.
pub(crate) struct Maps {
    pub(crate) pfs: Vec<u8>,
    pub(crate) gam_free: Vec<u32>,
    pub(crate) sgam: Vec<u32>,
    /// For each IAM page: the unit, the extents that its bitmap claims, and the page in its first single-page slot.
    pub(crate) iam: BTreeMap<u32, (AllocUnitId, Vec<u32>, Option<u32>)>,
}

impl Maps {
    /// Maps that agree with each other.
    pub(crate) fn sound() -> Self {
        let mut pfs = vec![0; PAGES as usize];
        for page in [0, 1, 2, 3, 6, 7].into_iter().chain(16..24) {
            pfs[page] = 0x40;
        }
        pfs[IAM as usize] = 0x70;
        let iam = BTreeMap::from([(IAM, (UNIT, vec![CLAIMED], None))]);
        Self { pfs, gam_free: vec![FREE], sgam: vec![MIXED], iam }
    }

    pub(crate) fn file(&self) -> TestFile {
        let of_system = |kind, page| TestPage::new(kind).at(PageId::new(FILE, page)).of(AllocUnitId::SYSTEM);
        let bitmap = |extents: &[u32]| {
            let mut record = record(7992);
            extents.iter().for_each(|extent| record[4 + *extent as usize / 8] |= 1 << (extent % 8));
            record
        };
        let map = |kind, page, extents: &[u32]| {
            of_system(kind, page).set16(14, 90).record(&record(94)).record(&bitmap(extents)).finish()
        };
        let mut pfs = record(8092);
        pfs[4..4 + self.pfs.len()].copy_from_slice(&self.pfs);
        let header = crate::test_pages::row(1, b"file");
        let mut pages = BTreeMap::from([
            (0, of_system(PageType::FileHeader, 0).set16(14, 0).record(&header).finish()),
            (1, of_system(PageType::Pfs, 1).set16(14, 0).record(&pfs).finish()),
            (2, map(PageType::Gam, 2, &self.gam_free)),
            (3, map(PageType::Sgam, 3, &self.sgam)),
            (6, map(PageType::DiffMap, 6, &[])),
            (7, map(PageType::MlMap, 7, &[])),
        ]);
        for (&page, (unit, extents, single)) in &self.iam {
            let mut header = record(94);
            header[44..46].copy_from_slice(&FILE.to_le_bytes());
            if let Some(single) = single {
                header[46..50].copy_from_slice(&single.to_le_bytes());
                header[50..52].copy_from_slice(&FILE.to_le_bytes());
            }
            let iam = TestPage::new(PageType::Iam).at(PageId::new(FILE, page)).of(*unit).set16(14, 90);
            pages.insert(page, iam.record(&header).record(&bitmap(extents)).finish());
        }
        let info = DataFile {
            path: "three.ndf".into(),
            file_id: FILE,
            filegroup: 1,
            logical_name: "three".to_owned(),
            pages: PAGES,
            header_pages: Some(PAGES),
            tail_bytes: 0,
            binding_guid: None,
            header_is_sound: true,
        };
        TestFile { info: [info], pages, unread: BTreeSet::new(), rotting: BTreeSet::new(), read: Mutex::default() }
    }
}

/// A record of an allocation map. It has `length` bytes and is filled with zeros.
fn record(length: u16) -> Vec<u8> {
    let mut record = vec![0; length.into()];
    record[2..4].copy_from_slice(&length.to_le_bytes());
    record
}
