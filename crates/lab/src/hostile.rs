//! Entry points that must take any bytes: they end, and they do not panic. The fuzz targets and the replaying tests call
//! the same ones.

use std::path::PathBuf;

use check::{Options, Silent};
use expr::{ColumnType, Scratch};
use format::compressed::{CdRecord, CompressionInfo};
use format::fields::{instances_of, record_spaces};
use format::lob::{Fragment, Pointer};
use format::page::PAGE_BYTES;
use format::protection::{undo_torn_bits, verify};
use format::record::Record;
use format::sparse::SparseVector;
use format::types::TypeInfo;
use format::{Page, PageBytes, PageId};
use source::{MemoryFiles, PageSource};

use crate::mutate::seal;

/// Takes any bytes.
pub type Target = fn(&[u8]);

/// The entry points that need no database, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("page", page),
    ("record", record),
    ("expression", expression),
    ("bootstrap", |bytes| bootstrap(None, bytes)),
    ("database", |bytes| database(None, bytes)),
];

/// Columns of records whose layout nobody knows.
const COLUMNS: usize = 16;

/// A page: protection, slots, records, fields and their values.
pub fn page(bytes: &[u8]) {
    let mut page: PageBytes = [0; PAGE_BYTES];
    for (place, byte) in page.iter_mut().zip(bytes) {
        *place = *byte;
    }
    let _ = verify(&page);
    undo_torn_bits(&mut page);
    let view = Page::new(&page);
    let spaces = record_spaces(view);
    for space in &spaces {
        record(page.get(space.bytes.clone()).unwrap_or_default());
    }
    let first = spaces.iter().map(|space| space.bytes.start).min().unwrap_or(PAGE_BYTES);
    let _ = CompressionInfo::of(view, first, COLUMNS);
    let _ = format::allocation::IamHeader::read(view);
    let _ = format::file_header::FileHeader::read(view).map(|header| (header.file_id(), header.logical_name()));
    let _ = format::boot::Boot::read(view);
    for is_leaf in [true, false] {
        for instance in instances_of(&page, is_leaf) {
            assert!(!instance.bytes.is_empty() && instance.bytes.end <= PAGE_BYTES, "{instance:?}");
            let _ = instance.render(&page);
        }
    }
}

/// A record, as every kind of record.
pub fn record(bytes: &[u8]) {
    let minimum = bytes.get(1).copied().unwrap_or_default().into();
    for record in [Record::data(bytes), Record::index(bytes, minimum)].into_iter().flatten() {
        for (value, is_complex) in record.variables() {
            if is_complex {
                complex(value);
            }
        }
        for number in 0..=record.column_count().min(64) {
            let _ = (record.null_bit(number), record.fixed(number, 8), record.variable(number));
        }
        let _ = (record.version_tag(), record.bytes(), record.null_word(3));
        let _ = SparseVector::of(&record).map(SparseVector::values).map(Iterator::count);
    }
    complex(bytes);
    if let Ok(fragment) = Fragment::read(bytes) {
        let _ = (fragment.blob_id(), fragment.is_live(), format!("{:?}", fragment.node()).len());
    }
    if let Ok(record) = CdRecord::read(bytes, COLUMNS) {
        let _ = (record.length(), record.version_tag(), record.columns().count());
    }
    let _ = CompressionInfo::read(bytes, COLUMNS).map(|info| {
        for symbol in 0..=u8::MAX {
            let _ = info.entry(symbol);
        }
    });
    let mut text = Vec::new();
    let _ = format::compressed::scsu::decode(bytes, &mut text);
    for kind in [36u8, 40, 41, 42, 43, 52, 56, 59, 60, 61, 62, 98, 104, 106, 127, 167, 231] {
        let _ = format::value::text(TypeInfo::from_ti(u32::from(kind) | 0x0500), bytes, 1);
    }
}

fn complex(bytes: &[u8]) {
    if let Pointer::Overflow { links, .. } | Pointer::InlineRoot { links, .. } = Pointer::read(bytes) {
        let _ = (links.size(), links.iter().count());
    }
    if let Some(vector) = SparseVector::read(bytes) {
        let _ = (vector.fault(), vector.value(7), vector.values().count());
    }
}

/// An expression, compiled with columns of some types and evaluated.
pub fn expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let kinds = [56u8, 231, 106, 61, 104, 62, 36, 41];
    let column = |name: &str| {
        let kind = kinds.get(name.len() % kinds.len()).copied()?;
        let mut info = TypeInfo::from_ti(u32::from(kind));
        info.length = format::types::fixed_length(info).unwrap_or(40);
        (info.precision, info.scale) = (18, 4);
        Some(ColumnType { info, nullable: true, ..ColumnType::default() })
    };
    let Ok(program) = expr::compile(&text, &column) else { return };
    let mut scratch = Scratch::default();
    let value = [7u8; 16];
    for length in [0, 1, 4, 8, 16] {
        let row: [Option<&[u8]>; 8] = [value.get(..length); 8];
        let _ = program.evaluate(&row, &mut scratch).map(|value| value.to_string());
    }
}

/// The catalogue of a database that was changed as `bytes` say.
pub fn bootstrap(base: Option<&MemoryFiles>, bytes: &[u8]) {
    if let Some(files) = changed(base, bytes) {
        let _ = catalog::load(&files);
    }
}

/// A whole small database that was changed as `bytes` say, checked with every message printed.
pub fn database(base: Option<&MemoryFiles>, bytes: &[u8]) {
    if let Some(files) = changed(base, bytes) {
        let database = catalog::load(&files);
        let options = Options { max_threads: 1, ..Options::default() };
        let report = check::run(&files, &database, &options, &Silent);
        let names = report.names();
        assert!(report.findings.iter().all(|finding| !finding.text(&names).is_empty()));
    }
}

/// Pages of the database that stands in where there is no other.
const EMPTY_PAGES: usize = 32;
/// Bytes in front of each change: page, offset, how many bytes follow.
const CHANGE_HEADER: usize = 5;

/// `base`, or a file of almost nothing, with changes: each is u16 page, u16 offset, u8 length, and so many bytes. The
/// protection of each changed page is made right; without that, nothing would look behind it.
fn changed(base: Option<&MemoryFiles>, bytes: &[u8]) -> Option<MemoryFiles> {
    let empty;
    let base = match base {
        Some(base) => base,
        None => {
            empty = almost_nothing()?;
            &empty
        }
    };
    let pages = base.files().first()?.pages.max(1);
    let mut changes = std::collections::BTreeMap::new();
    let mut rest = bytes;
    while let Some((header, behind)) = rest.split_first_chunk::<CHANGE_HEADER>() {
        let [a, b, c, d, length] = *header;
        let id = PageId::new(1, u32::from(u16::from_le_bytes([a, b])) % pages);
        let at = usize::from(u16::from_le_bytes([c, d])) % PAGE_BYTES;
        let (value, next) = behind.split_at(usize::from(length).min(behind.len()));
        rest = next;
        let page = match changes.entry(id) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let mut page = base.read_page(id)?;
                undo_torn_bits(&mut page);
                entry.insert(page)
            }
        };
        for (place, byte) in page.iter_mut().skip(at).zip(value) {
            *place = *byte;
        }
    }
    base.with_pages(changes.into_iter().map(|(id, mut page)| {
        seal(&mut page);
        (id, *page)
    }))
    .ok()
}

/// A file that is taken for a data file by its allocation pages, which are empty.
fn almost_nothing() -> Option<MemoryFiles> {
    let mut bytes = vec![0; EMPTY_PAGES * PAGE_BYTES];
    for (number, kind) in [(0u8, 15u8), (1, 11), (2, 8), (3, 9), (6, 16), (7, 17), (9, 13)] {
        let page = bytes.get_mut(usize::from(number) * PAGE_BYTES..)?.first_chunk_mut::<PAGE_BYTES>()?;
        // Header version, type, unit 99 of the system's pages, own id.
        [page[0], page[1], page[24], page[32], page[36]] = [1, kind, 99, number, 1];
    }
    MemoryFiles::open(vec![(PathBuf::from("nothing.mdf"), bytes)]).ok()
}
