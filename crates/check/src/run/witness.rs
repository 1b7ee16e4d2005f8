//! A fingerprint of those pages of the catalog and the maps that a process has read. Equal fingerprints show that two
//! processes have read the same pages with the same content.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use catalog::Database;
use format::PageId;
use format::page::PAGE_BYTES;
use source::{PageSource, ReadError, ReadFaults};
use sums::HashKey;
use sums::hash::{FactHash, Sum};

/// A sum over pages and their contents.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Fingerprint(Sum);

/// Formats the fingerprint as in JSON: 32 hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.parts();
        write!(f, "{first:016x}{second:016x}")
    }
}

/// A page source that reads pages and adds the content of each of them to a sum.
pub(crate) struct Witness<'a> {
    inner: &'a dyn PageSource,
    hash: FactHash,
    sum: Mutex<Sum>,
}

impl<'a> Witness<'a> {
    /// Starts with an empty sum.
    pub(crate) fn new(inner: &'a dyn PageSource, key: &HashKey) -> Self {
        Self { inner, hash: FactHash::of_key(key), sum: Mutex::default() }
    }

    /// The fingerprint of the pages read so far.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint(*self.sum.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn saw(&self, page: PageId, bytes: Option<&[u8]>) {
        let mut hasher = self.hash.hasher();
        hasher.add_bytes(&(u64::from(page.file) << 32 | u64::from(page.page)).to_le_bytes());
        match bytes {
            Some(bytes) => hasher.add_bytes(bytes),
            None => hasher.add_null(),
        }
        self.sum.lock().unwrap_or_else(PoisonError::into_inner).add(hasher.finish().into());
    }
}

impl PageSource for Witness<'_> {
    source::as_inner!();
    source::hints_as_inner!();

    fn read_faults(&self) -> ReadFaults {
        self.inner.read_faults()
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let read = self.inner.read(first, buffer);
        match &read {
            Ok(pages) => {
                for (page, bytes) in (first.page..).zip(buffer.chunks_exact(PAGE_BYTES)).take(*pages) {
                    self.saw(PageId::new(first.file, page), Some(bytes));
                }
            }
            Err(_) => self.saw(first, None),
        }
        read
    }
}

/// Reads the catalog. Also returns the fingerprint of the pages that were read for this.
pub fn load(source: &dyn PageSource, key: &HashKey) -> (Database, Fingerprint) {
    let witness = Witness::new(source, key);
    let database = catalog::load(&witness);
    let fingerprint = witness.fingerprint();
    (database, fingerprint)
}

/// The fingerprint of these pages.
pub fn fingerprint_of(source: &dyn PageSource, key: &HashKey, pages: impl IntoIterator<Item = PageId>) -> Fingerprint {
    let witness = Witness::new(source, key);
    let mut buffer = vec![0; PAGE_BYTES];
    for page in pages {
        // A failed read also contributes to the sum.
        let _ = witness.read(page, &mut buffer);
    }
    witness.fingerprint()
}

/// A page source that also reports the failed reads of other processes.
pub(crate) struct Faulty<'a> {
    inner: &'a dyn PageSource,
    of_others: Mutex<ReadFaults>,
}

impl<'a> Faulty<'a> {
    /// Starts without failed reads of other processes.
    pub(crate) fn new(inner: &'a dyn PageSource) -> Self {
        Self { inner, of_others: Mutex::default() }
    }

    /// Adds the failed reads of another process.
    pub(crate) fn add(&self, faults: ReadFaults) {
        self.of_others.lock().unwrap_or_else(PoisonError::into_inner).merge(faults);
    }
}

impl PageSource for Faulty<'_> {
    source::as_inner!();
    source::hints_as_inner!();

    fn read_faults(&self) -> ReadFaults {
        let mut faults = self.inner.read_faults();
        faults.merge(self.of_others.lock().unwrap_or_else(PoisonError::into_inner).clone());
        faults
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.inner.read(first, buffer)
    }
}
