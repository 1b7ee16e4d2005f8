//! Pages carved out of raw bytes: disk images, streams of pages, and files with bytes before, behind or between their
//! pages. No structure around the pages is needed: each page has its own address in its header, and its checksum or its
//! torn bits prove that it is a page.

mod extent;
mod page;
mod pass;
mod reading;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use format::boot::Boot;
use format::file_header::FileHeader;
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Lsn, Page, PageBytes, PageId, PageType, version};

use crate::faults::Reads;
use crate::identify::is_file_header;
use crate::positioned::SharedFile;
use crate::remains;
use crate::storage::{self, Kind};
use crate::{CarveError, DataFile, OpenError, PROGRAM_BYTES, PageSource};

pub use extent::LeftOut;
use runs::{Double, Doubles, Full, Run, Runs};

/// The memory for the index of the pages if none was granted, in bytes.
const DEFAULT_BYTES: u64 = 512 << 20;
/// The bytes that the index needs for a run at most: the list of runs, the list without copies, and the room that a list
/// has at its end when it grows.
const BYTES_PER_RUN: u64 = 4 * size_of::<Run>() as u64;
/// The most binding IDs of file headers that are kept apart.
const MOST_DATABASES: usize = 64;

/// The pages of a database, carved out of raw bytes.
///
/// A page that was not found is no page with an error: reading it yields [`crate::ReadError::NotFound`]. If a page
/// was found more than once, the copy with the newest LSN is read.
#[derive(Debug)]
pub struct Carved {
    images: Vec<Image>,
    /// Where the pages are, sorted by file and page. No page is in two runs.
    runs: Vec<Run>,
    files: Vec<DataFile>,
    doubles: Vec<Carving>,
    double_pages: u64,
    same_copies: u64,
    left_out: Vec<LeftOut>,
    databases: usize,
    has_one_moment: bool,
}

/// A file with raw bytes.
#[derive(Debug)]
struct Image {
    path: PathBuf,
    handle: SharedFile,
    reads: Reads,
}

/// A page that was found more than once, with different bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carving {
    /// The page.
    pub page: PageId,
    /// The copy that is read.
    pub used: PageCopy,
    /// The newest of the other copies with other bytes.
    pub other: PageCopy,
}

/// A copy of a page in an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageCopy {
    /// Path of the image.
    pub path: PathBuf,
    /// Offset of the page in the image.
    pub at: u64,
    /// The LSN in the header of the page.
    pub lsn: Lsn,
}

impl Carved {
    /// Finds the pages in the files at `paths`, and keeps where they are. Calls `passed` with the number of bytes after
    /// each read. The index of the pages uses its share of at most `granted` bytes of memory.
    ///
    /// # Errors
    /// [`CarveError`] if a file cannot be read, if no pages of a primary file are in the files, or if the index needs
    /// too much memory; [`OpenError::TooOld`] if the database is older than SQL Server 2005.
    pub fn open(paths: &[PathBuf], granted: Option<u64>, passed: &dyn Fn(u64)) -> Result<Self, OpenError> {
        if paths.len() > usize::from(u16::MAX) {
            return Err(CarveError::TooMany { count: paths.len() }.into());
        }
        let limit = granted.map_or(DEFAULT_BYTES, |bytes| bytes.saturating_sub(PROGRAM_BYTES));
        let most = usize::try_from(limit / BYTES_PER_RUN).unwrap_or(usize::MAX);
        let images = paths.iter().map(|path| Image::open(path)).collect::<Result<Vec<_>, _>>()?;
        let too_large = |full: Full| CarveError::TooLarge {
            path: images.get(usize::from(full.image)).map(|image| image.path.clone()).unwrap_or_default(),
            at: full.at,
            limit,
            is_granted: granted.is_some(),
        };
        let (found, bindings, bytes) = find(&images, most, passed).map_err(too_large)?;
        let read = |image: u16, at: u64, bytes: &mut [u8]| {
            images.get(usize::from(image)).is_some_and(|image| pass::read_exactly(&image.handle, bytes, at).is_ok())
        };
        let (runs, doubles) = runs::resolve(found, most, read).map_err(too_large)?;
        if runs.is_empty() {
            return Err(CarveError::NoPages { paths: paths.to_vec(), bytes }.into());
        }
        let this = Self::of(images, runs, &doubles, bindings.len());
        match this.files.first() {
            Some(file) if file.file_id == 1 => {}
            _ => {
                let files: Vec<String> = this.files.iter().map(|file| file.file_id.to_string()).collect();
                return Err(CarveError::NoPrimary { paths: paths.to_vec(), files: files.join(", ") }.into());
            }
        }
        this.refuse_old_versions()?;
        Ok(this)
    }

    fn of(images: Vec<Image>, runs: Vec<Run>, doubles: &Doubles, databases: usize) -> Self {
        let carving = |double: &Double| {
            let copy = |copy: runs::Copy| PageCopy {
                path: images.get(usize::from(copy.image)).map(|image| image.path.clone()).unwrap_or_default(),
                at: copy.at,
                lsn: copy.lsn,
            };
            Carving { page: double.page, used: copy(double.used), other: copy(double.other) }
        };
        let listed = doubles.listed.iter().map(carving).collect();
        let mut this = Self {
            images,
            runs,
            files: Vec::new(),
            doubles: listed,
            double_pages: doubles.pages,
            same_copies: doubles.same,
            left_out: Vec::new(),
            databases,
            has_one_moment: doubles.pages == 0 && databases <= 1,
        };
        let (files, left_out, are_in_place) = this.describe();
        this.has_one_moment &= are_in_place;
        let pages_of = |file_id: u16| {
            let at = files.binary_search_by_key(&file_id, |file| file.file_id);
            at.ok().and_then(|at| files.get(at)).map_or(0, |file| file.pages)
        };
        this.runs.retain(|run| run.first < pages_of(run.file));
        this.runs.shrink_to_fit();
        (this.files, this.left_out) = (files, left_out);
        this
    }

    /// Describes the files of which pages were found. Also returns the pages to leave out, and whether all files are
    /// complete as far as their headers tell, and their pages have one distance from their places.
    fn describe(&self) -> (Vec<DataFile>, Vec<LeftOut>, bool) {
        let count = extent::by_file(&self.runs).count();
        let starts = self.starts();
        let (mut files, mut left_out, mut are_in_place) = (Vec::new(), Vec::new(), true);
        for (file_id, runs) in extent::by_file(&self.runs) {
            let mut file = described(file_id, self.bytes_of(PageId::new(file_id, 0)).as_deref());
            let image = runs.first().and_then(|run| self.images.get(usize::from(run.image)));
            file.path = image.map(|image| image.path.clone()).unwrap_or_default();
            // The file is not cut off: pages that were not found are no damage.
            let (extent, beyond) = extent::of_file(runs, count, file.header_pages.take());
            are_in_place &= extent.is_known && are_in_line(runs, &starts);
            left_out.extend(beyond);
            file.pages = extent.pages;
            files.extend(Some(file).filter(|file| file.pages > 0));
        }
        (files, left_out, are_in_place)
    }

    /// The offset of each image, if all of them were one image.
    fn starts(&self) -> Vec<u64> {
        let lengths = self.images.iter().map(|image| image.handle.length().unwrap_or_default());
        let ends = lengths.scan(0u64, |end, length| {
            *end = end.saturating_add(length);
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }

    fn refuse_old_versions(&self) -> Result<(), OpenError> {
        let Some(mut bytes) = self.bytes_of(PageId::BOOT) else { return Ok(()) };
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let found = Boot::version_of(page).filter(|_| page.header().kind() == Some(PageType::Boot));
        let old = found.filter(|&version| version < version::OLDEST);
        match old.and_then(|version| Some((version, version::product(version)?))) {
            Some((version, product)) => {
                let path = self.files.first().map(|file| file.path.clone()).unwrap_or_default();
                Err(OpenError::TooOld { path, version, product })
            }
            None => Ok(()),
        }
    }

    /// The bytes of a page, as they are stored.
    fn bytes_of(&self, page: PageId) -> Option<Box<PageBytes>> {
        let run = self.run_of(page)?;
        let mut bytes = Box::new([0; PAGE_BYTES]);
        let image = self.images.get(usize::from(run.image))?;
        pass::read_exactly(&image.handle, bytes.as_mut_slice(), run.at(page.page)).ok()?;
        Some(bytes)
    }

    /// The run that has a page.
    fn run_of(&self, page: PageId) -> Option<&Run> {
        let after = self.runs.partition_point(|run| (run.file, run.first) <= (page.file, page.page));
        let run = after.checked_sub(1).and_then(|at| self.runs.get(at))?;
        (run.file == page.file && page.page < run.end()).then_some(run)
    }

    /// The runs of a file.
    fn runs_of(&self, file_id: u16) -> &[Run] {
        let start = self.runs.partition_point(|run| run.file < file_id);
        let end = self.runs.partition_point(|run| run.file <= file_id);
        self.runs.get(start..end).unwrap_or_default()
    }

    /// The ranges of pages of a file that were not found, in ascending order.
    pub fn not_found(&self, file_id: u16) -> impl Iterator<Item = Range<u32>> {
        let pages = self.file(file_id).map_or(0, |file| file.pages);
        extent::holes(self.runs_of(file_id), pages)
    }

    /// The number of pages of a file that were found.
    pub fn found(&self, file_id: u16) -> u64 {
        self.runs_of(file_id).iter().map(|run| u64::from(run.pages)).sum()
    }

    /// The first pages, at most 20, that were found more than once with different bytes.
    pub fn doubles(&self) -> &[Carving] {
        &self.doubles
    }

    /// The number of pages that were found more than once with different bytes.
    pub fn double_pages(&self) -> u64 {
        self.double_pages
    }

    /// The number of further copies of pages with the same bytes.
    pub fn same_copies(&self) -> u64 {
        self.same_copies
    }

    /// The pages that are left out because they are far beyond the other pages of their files; one entry per file.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The number of databases whose file headers were found. Pages do not name their database, so the pages of several
    /// databases cannot be distinguished. More than 64 count as 64.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// The paths of the images.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.images.iter().map(|image| image.path.as_path())
    }

    /// Whether the pages are files that only were moved: all pages of each file have the same distance from their
    /// places, no page has an other copy, and the file headers confirm the sizes. Otherwise, the pages may be from
    /// different points in time, or from different databases.
    pub fn has_one_moment(&self) -> bool {
        self.has_one_moment
    }

    /// Approximate number of bytes kept in memory, without read buffers.
    pub fn held_bytes(&self) -> u64 {
        (self.runs.capacity() * size_of::<Run>()) as u64
    }
}

impl Image {
    fn open(path: &Path) -> Result<Self, CarveError> {
        let path = path.to_owned();
        let refused = |path, what, instead| Err(CarveError::NotAnImage { path, what, instead });
        if path.as_os_str() == "-" {
            return refused(path, "standard input", "save the bytes to a file and name it");
        }
        match storage::kind(&path) {
            Err(cause) => return Err(CarveError::Io { path, cause }),
            Ok(Kind::Folder) => return refused(path, "a folder", "name the files in it"),
            Ok(Kind::Pipe) => return refused(path, "a pipe", "save the bytes to a file and name it"),
            Ok(Kind::Other) if !is_disk(&path) => return refused(path, "no file", "name a file or a disk"),
            Ok(Kind::File { .. } | Kind::Other) => {}
        }
        match SharedFile::open(&path) {
            Ok(handle) => Ok(Self { path, handle, reads: Reads::default() }),
            Err(cause) => Err(CarveError::Io { path, cause }),
        }
    }
}

/// Whether a path names a disk or another device that is read in blocks.
fn is_disk(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
    }
    #[cfg(not(unix))]
    {
        let _ = fs::metadata(path);
        false
    }
}

/// The number of bytes of all files at `paths`; 0 if the system does not know the length of one of them.
pub fn carved_bytes(paths: &[PathBuf]) -> u64 {
    let lengths = paths.iter().map(|path| storage::length(path).filter(|length| *length > 0));
    lengths.sum::<Option<u64>>().unwrap_or_default()
}

/// What the passes over all images found: the runs, the binding IDs of file headers, and the number of bytes.
type Passed = (Vec<Run>, BTreeSet<[u8; 16]>, u64);

fn find(images: &[Image], most: usize, passed: &dyn Fn(u64)) -> Result<Passed, Full> {
    let mut runs = Runs::new(most);
    let mut bindings = BTreeSet::new();
    let total = std::cell::Cell::new(0);
    let count = |bytes: u64| {
        total.set(total.get() + bytes);
        passed(bytes);
    };
    for (number, image) in (0..).zip(images) {
        let length = image.handle.length().unwrap_or_default();
        let phases = remains::phases(&image.handle, length, pass::SECTOR_BYTES);
        pass::pass((&image.handle, &image.reads), &phases, &count, |found| {
            if let Some((_, binding)) = found.place.header_of_file().filter(|_| bindings.len() < MOST_DATABASES) {
                bindings.insert(binding);
            }
            let PageId { file, page } = found.id;
            runs.push(Run { file, image: number, first: page, pages: 1, at: found.at })
        })?;
    }
    Ok((runs.list, bindings, total.get()))
}

/// What the file header page says about a file. A header page that was not found does not count as damaged. The number
/// of pages is added later.
fn described(file_id: u16, header: Option<&PageBytes>) -> DataFile {
    let undone = header.filter(|bytes| is_file_header(bytes)).map(|bytes| {
        let mut undone = *bytes;
        undo_torn_bits(&mut undone);
        undone
    });
    let record = undone.as_ref().and_then(|bytes| FileHeader::read(Page::new(bytes)));
    DataFile {
        path: PathBuf::new(),
        file_id,
        filegroup: record.as_ref().map_or(u16::from(file_id == 1), FileHeader::filegroup),
        logical_name: record.as_ref().map(FileHeader::logical_name).unwrap_or_default(),
        pages: 0,
        header_pages: record.as_ref().map(FileHeader::size_pages),
        tail_bytes: 0,
        binding_guid: record.as_ref().map(FileHeader::binding_guid),
        header_is_sound: header.is_none() || record.is_some(),
    }
}

/// Whether all runs of a file have the same distance from their places. `starts` are the offsets of the images.
fn are_in_line(runs: &[Run], starts: &[u64]) -> bool {
    let distance = |run: &Run| {
        let start = starts.get(usize::from(run.image)).copied().unwrap_or_default();
        i128::from(start) + i128::from(run.at) - i128::from(run.first) * PAGE_BYTES as i128
    };
    let mut distances = runs.iter().map(distance);
    let first = distances.next();
    distances.all(|distance| Some(distance) == first)
}
