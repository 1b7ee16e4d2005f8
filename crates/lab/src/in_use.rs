//! Makes databases of any size that look like databases after a crash: the last changes of their rows are only in the
//! log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::database::Written;
use crate::description::Description;
use crate::disk::{LabError, file_id};
use crate::fixed::{CHECKPOINT_LSN, CLEAN, FIRST_WITH_REDO_LSN, REDO_LSN, STATUS, log_header};
use crate::ids::{PAGE, PageId};
use crate::log::{Change, HEADER_PAGE, Log, LogForm, part_header};
use crate::page::{self, Lsn, PageVerify};
use crate::staged::Staged;

/// The number of pages that are read at a time. Each transaction changes a row on every page of this batch that
/// `one_in` selects.
const PAGES_AT_ONCE: usize = 128;
/// The maximum number of bytes in a row's fixed-length part that one log record changes. With this maximum, the log
/// records have a typical length.
const CHANGED_BYTES: usize = 40;
/// Size of each virtual log file in bytes.
const VLF_BYTES: u64 = 64 << 20;
/// Sequence number of the first virtual log file. It is greater than the sequence number in the LSN of every page.
const FIRST_SEQUENCE: u32 = 1000;
/// `BOOT_PAGE` is the page number of the boot page. `RECORD` is the offset of the record on this page.
const BOOT_PAGE: u64 = 9;
const RECORD: usize = 96;

/// A database that crashed.
#[derive(Clone, Debug)]
pub struct InUse {
    /// The path of the log file.
    pub log: PathBuf,
    /// Number of pages that the log changes.
    pub pages: u64,
    /// Number of log records that change pages.
    pub records: u64,
}

/// Writes a log and changes the boot page of a written database, as if the database had crashed. According to the log,
/// one in `one_in` pages of user tables was changed since the last checkpoint: one row on the page was changed and
/// changed back `times` times. All changes are committed, and none of them is in the data files. Because each row was
/// changed back, the database is sound both with and without its log.
///
/// # Errors
///
/// [`LabError`] if a file cannot be read or written.
pub fn leave_in_use(description: &Description, written: &Written, times: u32, one_in: u32) -> Result<InUse, LabError> {
    let version = description.version.facts().number;
    let form = LogForm::of(version, description.verify == PageVerify::Checksum);
    let first = Lsn(FIRST_SEQUENCE, (HEADER_PAGE / 512) as u32, 1);
    let mut log = Log::empty(form, first, (VLF_BYTES - HEADER_PAGE) as usize);
    log.checkpoint(version, TIME);
    let folder = written.files.first().and_then(|file| file.parent()).unwrap_or(Path::new("."));
    let mut file = LogFile::create(folder.join(format!("{}_log.ldf", description.name)), description, form)?;
    let (mut pages, mut records) = (0, 0);
    for (index, path) in written.files.iter().enumerate() {
        let failed = |source| LabError::Io { path: path.clone(), source };
        let mut data = File::open(path).map_err(failed)?;
        let mut buffer = vec![0; PAGES_AT_ONCE * PAGE];
        for start in (0..written.pages[index]).step_by(PAGES_AT_ONCE) {
            let count = (written.pages[index] - start).min(PAGES_AT_ONCE as u32) as usize;
            let bytes = &mut buffer[..count * PAGE];
            data.read_exact(bytes).map_err(failed)?;
            let numbered = (start..).zip(bytes.chunks_exact(PAGE)).filter(|(number, _)| number % one_in == 0);
            let change = |(number, page): (u32, &[u8])| {
                Change::of_first_row(PageId::new(file_id(index), number), page, CHANGED_BYTES)
            };
            let mut changes: Vec<Change> = numbered.filter_map(change).collect();
            for _ in 0..2 * times {
                let lsns = log.transaction(&changes, true, TIME);
                for (change, lsn) in changes.iter_mut().zip(lsns) {
                    (change.before, change.old) = (lsn, change.after());
                }
                records += changes.len() as u64;
            }
            pages += changes.len() as u64;
            file.append(log.take_full())?;
        }
    }
    file.finish(description, log)?;
    mark_in_use(&written.files[0], version, first)?;
    Ok(InUse { log: folder.join(format!("{}_log.ldf", description.name)), pages, records })
}

/// 2020-01-01 12:00 as a datetime.
const TIME: [u8; 8] = ((43_829u64 << 32) | (12 * 3600 * 300)).to_le_bytes();

/// Changes the boot page as if the database had not been shut down, and sets the LSN of its last checkpoint.
fn mark_in_use(primary: &Path, version: u16, checkpoint: Lsn) -> Result<(), LabError> {
    let failed = |source| LabError::Io { path: primary.to_owned(), source };
    let mut file = File::options().read(true).write(true).open(primary).map_err(failed)?;
    let mut boot = [0; PAGE];
    let at = SeekFrom::Start(BOOT_PAGE * PAGE as u64);
    file.seek(at).and_then(|_| file.read_exact(&mut boot)).map_err(failed)?;
    let verify = match u16::from_le_bytes([boot[4], boot[5]]) & 0x300 {
        0x100 => PageVerify::Torn,
        0x200 => PageVerify::Checksum,
        _ => PageVerify::None,
    };
    page::unprotect(&mut boot);
    boot[RECORD + STATUS + 3] &= !((CLEAN >> 24) as u8);
    let mut put = |at: usize| boot[RECORD + at..RECORD + at + 10].copy_from_slice(&checkpoint.bytes());
    put(CHECKPOINT_LSN);
    if version >= FIRST_WITH_REDO_LSN {
        put(REDO_LSN);
    }
    page::protect(&mut boot, verify);
    file.seek(at).and_then(|_| file.write_all(&boot)).map_err(failed)
}

/// The log file, to which virtual log files are written one after another.
struct LogFile {
    staged: Staged,
    form: LogForm,
    vlfs: u32,
}

impl LogFile {
    fn create(path: PathBuf, description: &Description, form: LogForm) -> Result<Self, LabError> {
        let staged = Staged::create(&path).map_err(|source| LabError::Io { path, source })?;
        let mut this = Self { staged, form, vlfs: 0 };
        // The header page is written again when the size of the file is known. Until then, it contains the size 0.
        this.write(&log_header(description, (0, 1), 0))?;
        Ok(this)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LabError> {
        let done = self.staged.file().write_all(bytes);
        done.map_err(|source| LabError::Io { path: self.staged.path.clone(), source })
    }

    fn append(&mut self, full: Vec<Vec<u8>>) -> Result<(), LabError> {
        for blocks in full {
            let at = HEADER_PAGE + u64::from(self.vlfs) * VLF_BYTES;
            self.write(&part_header(self.form, FIRST_SEQUENCE + self.vlfs, 1, at, VLF_BYTES))?;
            self.write(&blocks)?;
            self.vlfs += 1;
        }
        Ok(())
    }

    fn finish(mut self, description: &Description, mut log: Log) -> Result<(), LabError> {
        self.append(log.take_full())?;
        let (mut last, _) = log.finish();
        last.resize((VLF_BYTES - HEADER_PAGE) as usize, 0);
        self.append(vec![last])?;
        let path = self.staged.path.clone();
        let bytes = HEADER_PAGE + u64::from(self.vlfs) * VLF_BYTES;
        let rewound = self.staged.file().seek(SeekFrom::Start(0));
        rewound.map_err(|source| LabError::Io { path: path.clone(), source })?;
        self.write(&log_header(description, (0, 1), bytes))?;
        self.staged.publish().map_err(|source| LabError::Io { path, source })
    }
}
