//! Database snapshots. The sparse files of a snapshot contain the old versions of the pages that were changed after the
//! snapshot was taken. To read the snapshot, these files are laid over the files of their database, which is called the
//! base.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use format::allocation::{PFS_PAGES, PfsByte, pfs_bytes, pfs_page_of};
use format::boot::Boot;
use format::file_header::FileHeader;
use format::page::PAGE_BYTES;
use format::protection::{undo_torn_bits, verify};
use format::{Lsn, Page, PageBytes, PageId, PageType};

use super::DataFiles;
use crate::buffer::is_aligned;
use crate::positioned::{Cache, SharedFile, read_fully_at};
use crate::{DataFile, FileChange, OpenError, PageSource};

/// The number of bytes at the start of a file that are needed to decide whether it may belong to a snapshot. These
/// bytes contain all allocation maps of the first GAM interval.
pub(super) const START_BYTES: usize = 8 * PAGE_BYTES;

/// Page numbers of the allocation maps at the start of every data file: PFS, GAM, SGAM, differential map, minimally
/// logged map.
const MAPS: [usize; 5] = [1, 2, 3, 6, 7];

/// In every primary file, the catalog occupies at least this number of bytes at the start. A file of a database has no
/// hole there.
const CATALOG_BYTES: u64 = 64 * PAGE_BYTES as u64;

/// The most newer pages to list; further pages are only counted.
pub const MOST_NEWER: usize = 1 << 14;

/// Pages per read when searching for newer pages.
const CHUNK_PAGES: u32 = 128;

/// A database snapshot that is laid over its base.
#[derive(Debug)]
pub struct Snapshot {
    /// The base of each data file.
    bases: Vec<Base>,
    newer: OnceLock<Newer>,
}

/// A data file of the base, which is the database under the snapshot.
#[derive(Debug)]
struct Base {
    path: PathBuf,
    file: SharedFile,
    /// A second handle of the file, for reads that bypass the system's cache; `None` unless such reads were requested.
    direct: Option<SharedFile>,
}

/// Pages of the base that the snapshot uses although they are newer than the snapshot.
#[derive(Debug, Default)]
pub(super) struct Newer {
    /// The first [`MOST_NEWER`] of the newer pages, in ascending order.
    pub(super) pages: Vec<PageId>,
    count: u64,
}

/// An opened file of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotFile {
    pub(super) file: DataFile,
    pub(super) handle: SharedFile,
    /// Whether the file still has its holes.
    pub(super) is_sparse: bool,
}

/// Whether a data file belongs to a snapshot, according to its name, its file header, and missing allocation maps.
/// `start` holds the first bytes of the file; `hole` is the offset of its first hole.
pub(super) fn is_snapshot(path: &Path, start: &[u8], hole: Option<u64>) -> bool {
    let is_lacking = |map: &&usize| start.get(**map * PAGE_BYTES..(**map + 1) * PAGE_BYTES).is_some_and(is_zeros);
    shows_snapshot(path, says_sparse(start), MAPS.iter().filter(is_lacking).count(), hole)
}

/// Makes the decision of [`is_snapshot`]. `says_sparse` is the sparse flag of the file header (`None` if the header is
/// damaged), and `lacking` is the number of missing allocation maps.
fn shows_snapshot(path: &Path, says_sparse: Option<bool>, lacking: usize, hole: Option<u64>) -> bool {
    // Missing maps alone prove nothing, because damage may fill maps with zeros. Holes alone prove nothing either,
    // because copy programs turn zeros into holes. A file without a flag or a name of a snapshot therefore counts as a
    // snapshot only if it has both: missing maps, and a hole within the range of the catalog.
    let lacks_catalog = says_sparse.is_some() && lacking > 1 && hole.is_some_and(|at| at < CATALOG_BYTES);
    let is_named = has_snapshot_name(path) && (hole.is_some() || lacking > 0);
    says_sparse == Some(true) || is_named || lacks_catalog
}

/// Whether the file header has the flag for sparse files, which `sysfiles.status` shows; `None` if the header is
/// damaged.
fn says_sparse(start: &[u8]) -> Option<bool> {
    let mut bytes = *start.first_chunk::<PAGE_BYTES>()?;
    verify(&bytes).ok()?;
    undo_torn_bits(&mut bytes);
    FileHeader::read(Page::new(&bytes)).map(|header| header.is_sparse())
}

/// Whether a file has the name of a snapshot file: DBCC creates names such as `sales.mdf_MSSQL_DBCC11`, and users
/// usually choose the extension `.ss`.
fn has_snapshot_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_of_dbcc = |(_, number): (&str, &str)| number.bytes().all(|byte| byte.is_ascii_digit());
    name.ends_with(".ss") || name.rsplit_once("_mssql_dbcc").is_some_and(is_of_dbcc)
}

/// Returns the paths of data files that are copies of snapshot files, but have lost the holes. Such a copy is named
/// like a snapshot file, and contains zeros where its base (another of the files) contains pages.
pub fn copies_without_holes(files: &[&DataFile]) -> Vec<PathBuf> {
    let has_lost = |file: &DataFile, base: &DataFile| {
        let open = |file: &DataFile| SharedFile::open(&file.path).ok();
        open(file).zip(open(base)).is_some_and(|(file, base)| has_zeros_over(&file, &base).unwrap_or(false))
    };
    let named = files.iter().filter(|file| has_snapshot_name(&file.path));
    let is_copy = |file: &&&DataFile| {
        let mut others = files.iter().filter(|other| other.path != file.path && is_same_place(other, file));
        others.any(|other| has_lost(file, other))
    };
    named.filter(is_copy).map(|file| file.path.clone()).collect()
}

/// Whether two data files have the same file ID and belong to the same database.
fn is_same_place(one: &DataFile, other: &DataFile) -> bool {
    one.file_id == other.file_id && one.binding_guid.is_some() && one.binding_guid == other.binding_guid
}

fn has_zeros_over(file: &SharedFile, base: &SharedFile) -> io::Result<bool> {
    let mut bytes = vec![0; CHUNK_PAGES as usize * PAGE_BYTES];
    let mut page = Box::new([0; PAGE_BYTES]);
    let mut offset = 0;
    loop {
        let read = read_fully_at(file, &mut bytes, offset)?;
        for (at, own) in (0..).zip(bytes.get(..read).unwrap_or_default().chunks_exact(PAGE_BYTES)) {
            if is_zeros(own)
                && read_fully_at(base, page.as_mut_slice(), offset + at * PAGE_BYTES as u64)? == PAGE_BYTES
                && !is_zeros(page.as_slice())
            {
                return Ok(true);
            }
        }
        if read < bytes.len() {
            return Ok(false);
        }
        offset += read as u64;
    }
}

fn is_zeros(bytes: &[u8]) -> bool {
    // For most pages, the first byte is enough to decide.
    bytes.first() == Some(&0) && bytes.iter().all(|byte| *byte == 0)
}

/// Replaces each base file among the `opened` files by its snapshot file. `None` if there is no snapshot.
///
/// # Errors
/// [`OpenError`] if the snapshot or the base lacks a file, or if a snapshot file has lost its holes.
pub(super) fn lay(
    opened: &mut Vec<(DataFile, SharedFile)>,
    mut snapshots: Vec<SnapshotFile>,
) -> Result<Option<Snapshot>, OpenError> {
    // Copies without holes look like data files, so they are found by comparison with their base.
    let copies = copies_without_holes(&opened.iter().map(|(file, _)| file).collect::<Vec<_>>());
    let copies = opened.extract_if(.., |(file, _)| copies.contains(&file.path));
    snapshots.extend(copies.map(|(file, handle)| SnapshotFile { file, handle, is_sparse: false }));
    let Some(first) = snapshots.first().map(|snapshot| snapshot.file.path.clone()) else { return Ok(None) };
    let mut laid: Vec<(u16, Base)> = Vec::new();
    for SnapshotFile { file, handle, is_sparse } in snapshots {
        let path = file.path.clone();
        let Some(under) = opened.iter_mut().find(|(base, _)| is_same_place(base, &file)) else {
            return Err(OpenError::Snapshot { path, file_id: file.file_id });
        };
        if laid.iter().any(|(file_id, _)| *file_id == file.file_id) {
            return Err(OpenError::SameFileId { first: under.0.path.clone(), second: path, file_id: file.file_id });
        }
        if under.0.pages < file.pages {
            return Err(OpenError::SnapshotBaseCut { path: under.0.path.clone(), snapshot: path });
        }
        let failed = |cause| OpenError::Io { path: path.clone(), cause };
        if !is_sparse && has_zeros_over(&handle, &under.1).map_err(failed)? {
            return Err(OpenError::SnapshotHoles { path });
        }
        let file_id = file.file_id;
        let (base, file_of_base) = std::mem::replace(under, (file, handle));
        laid.push((file_id, Base { path: base.path, file: file_of_base, direct: None }));
    }
    laid.sort_by_key(|(file_id, _)| *file_id);
    let is_laid = |file: &DataFile| laid.iter().any(|(file_id, _)| *file_id == file.file_id);
    if let Some((file, _)) = opened.iter().find(|(file, _)| !is_laid(file)) {
        return Err(OpenError::SnapshotIncomplete { path: file.path.clone(), snapshot: first });
    }
    let bases = laid.into_iter().map(|(_, base)| base).collect();
    Ok(Some(Snapshot { bases, newer: OnceLock::new() }))
}

impl Snapshot {
    /// The paths of the base files over which the snapshot is laid.
    pub fn bases(&self) -> impl Iterator<Item = &Path> {
        self.bases.iter().map(|base| base.path.as_path())
    }

    /// Number of pages of the base that the snapshot uses although they are newer than the snapshot. The number is 0
    /// until [`PageSource::in_flight`] is called.
    pub fn newer_pages(&self) -> u64 {
        self.newer.get().map_or(0, |newer| newer.count)
    }

    /// The files of the base that have changed since they were opened.
    pub(super) fn changes(&self) -> impl Iterator<Item = FileChange> {
        self.bases
            .iter()
            .filter_map(|Base { path, file, .. }| file.change(path).map(|kind| FileChange { path: path.clone(), kind }))
    }

    /// The base file of the data file with this index.
    pub(super) fn base(&self, file: usize) -> Option<&SharedFile> {
        self.bases.get(file).map(|base| &base.file)
    }

    /// Makes all further reads bypass the system's cache.
    pub(super) fn read_directly(&mut self) -> Result<(), OpenError> {
        for base in &mut self.bases {
            let file = SharedFile::open_with(&base.path, Cache::Bypassed);
            base.direct = Some(file.map_err(|cause| OpenError::Direct { path: base.path.clone(), cause })?);
        }
        Ok(())
    }

    /// Replaces the pages in `pages` that are all zeros by the pages of the base, because they were never copied into
    /// the snapshot. `pages` were read from `offset` of the snapshot file. `filled` receives the index in `pages` of
    /// each replaced page.
    pub(super) fn fill(
        &self,
        file: usize,
        pages: &mut [u8],
        offset: u64,
        mut filled: impl FnMut(usize),
    ) -> io::Result<()> {
        let Some(base) = self.bases.get(file) else { return Ok(()) };
        let count = pages.len() / PAGE_BYTES;
        let mut at = 0;
        while at < count {
            let rest = pages.get(at * PAGE_BYTES..).unwrap_or_default();
            let holes = rest.chunks_exact(PAGE_BYTES).take_while(|page| is_zeros(page)).count();
            if holes > 0 {
                let room = pages.get_mut(at * PAGE_BYTES..(at + holes) * PAGE_BYTES).unwrap_or_default();
                let handle = base.direct.as_ref().filter(|_| is_aligned(room)).unwrap_or(&base.file);
                match read_fully_at(handle, room, offset + (at * PAGE_BYTES) as u64) {
                    Ok(read) if read == holes * PAGE_BYTES => (at..at + holes).for_each(&mut filled),
                    Ok(_) => return Err(base.named(io::Error::from(ErrorKind::UnexpectedEof))),
                    Err(cause) => return Err(base.named(cause)),
                }
            }
            // The page after the zeros is a page of the snapshot, so it is skipped.
            at += holes + 1;
        }
        Ok(())
    }

    /// The pages of the base that are newer than the snapshot. Pages that cannot be read are skipped; the check reports
    /// them.
    pub(super) fn newer(&self, files: &DataFiles) -> &Newer {
        self.newer.get_or_init(|| {
            let mut newer = Newer::default();
            let moment = moment(files);
            for (number, file) in files.files().iter().enumerate() {
                let mut pfs = Pfs { files, file_id: file.file_id, page: 0, bytes: None };
                let mut bytes = vec![0; CHUNK_PAGES as usize * PAGE_BYTES];
                for first in (0..file.pages).step_by(CHUNK_PAGES as usize) {
                    let pages = (file.pages - first).min(CHUNK_PAGES);
                    self.add_newer((files, number), (first, pages), (moment, &mut pfs), &mut bytes, &mut newer);
                }
            }
            newer
        })
    }

    fn add_newer(
        &self,
        (files, number): (&DataFiles, usize),
        (first, pages): (u32, u32),
        (moment, pfs): (Lsn, &mut Pfs<'_>),
        bytes: &mut [u8],
        newer: &mut Newer,
    ) {
        let bytes = bytes.get_mut(..pages as usize * PAGE_BYTES).unwrap_or_default();
        let mut of_base = Vec::new();
        match files.read_stored(number, first, bytes, |page| of_base.push(page)) {
            Ok(()) => {}
            // A failed read of several pages is repeated page by page.
            Err(_) if pages > 1 => {
                for page in first..first + pages {
                    self.add_newer((files, number), (page, 1), (moment, pfs), bytes, newer);
                }
                return;
            }
            Err(_) => return,
        }
        for at in of_base {
            let Some(page) = bytes.get(at * PAGE_BYTES..).and_then(<[u8]>::first_chunk::<PAGE_BYTES>) else { continue };
            let number = first + at as u32;
            // Damaged pages are left out: their LSN is meaningless, and their checksum already proves the damage.
            if Page::new(page).header().lsn() > moment && pfs.has(number) && verify(page).is_ok() {
                newer.count += 1;
                if newer.pages.len() < MOST_NEWER {
                    newer.pages.push(PageId::new(pfs.file_id, number));
                }
            }
        }
    }
}

impl Base {
    fn named(&self, cause: io::Error) -> io::Error {
        io::Error::new(cause.kind(), format!("{}: {cause}", self.path.display()))
    }
}

/// The checkpoint LSN of the snapshot, from its boot page; the lowest LSN if the boot page cannot be read.
fn moment(files: &DataFiles) -> Lsn {
    let boot = files.read_page(PageId::BOOT).and_then(|mut bytes| {
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        Boot::read(page).filter(|_| page.header().kind() == Some(PageType::Boot)).map(|boot| boot.checkpoint_lsn())
    });
    boot.unwrap_or_default()
}

/// Finds out from PFS pages whether pages of a file are in use.
struct Pfs<'a> {
    files: &'a DataFiles,
    file_id: u16,
    /// Number of the PFS page that was read last.
    page: u32,
    bytes: Option<Box<PageBytes>>,
}

impl Pfs<'_> {
    /// Whether a page is in use; true if its PFS page cannot be read.
    fn has(&mut self, page: u32) -> bool {
        let at = pfs_page_of(page);
        if self.page != at {
            self.page = at;
            self.bytes = self.files.read_page(PageId::new(self.file_id, at));
            self.bytes.as_deref_mut().into_iter().for_each(undo_torn_bits);
        }
        let known = self.bytes.as_deref().and_then(|bytes| pfs_bytes(Page::new(bytes)));
        known.and_then(|known| known.get((page % PFS_PAGES) as usize)).is_none_or(|byte| PfsByte(*byte).is_allocated())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_in_the_place_of_maps_are_no_proof_of_a_snapshot_without_its_name_or_a_hole_in_the_catalog() {
        let hole = Some(16 * PAGE_BYTES as u64);
        let shows = |name: &str, header, lacking, hole| shows_snapshot(Path::new(name), header, lacking, hole);
        assert!(shows("monday.mdf", Some(false), 2, hole));
        assert!(shows("monday.mdf", Some(true), 0, None), "its header says so");
        assert!(!shows("a.mdf", Some(false), 2, None), "damage");
        assert!(!shows("a.mdf", Some(false), 2, Some(80 << 20)), "damage, and holes where nothing is in use");
        assert!(!shows("a.mdf", Some(false), 1, hole), "a single map");
        assert!(!shows("a.mdf", None, 5, hole), "the header is damaged too");
        for name in ["a.mdf_MSSQL_DBCC11", "A.SS"] {
            assert!(shows(name, Some(false), 1, None) && shows(name, None, 0, hole), "{name}");
            assert!(!shows(name, Some(false), 0, None), "a whole file");
        }
        assert!(!shows("a.mdf_MSSQL_DBCCX", Some(false), 1, None) && !shows("ss", Some(false), 1, None));
    }
}
