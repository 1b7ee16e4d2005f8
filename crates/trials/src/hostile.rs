//! Entry points that must accept any bytes: they must return and must not panic. The fuzz targets and the tests that
//! replay inputs call the same entry points.

mod backup;
mod database;
mod dbcc;
pub mod inputs;
mod log;
mod part;
mod request;

use expr::{ColumnType, Scratch};
use format::compressed::{CdRecord, CompressedColumn, CompressionInfo, Expansion};
use format::instances::{instances_of, record_spaces};
use format::lob::{Fragment, Pointer};
use format::page::PAGE_BYTES;
use format::protection::{undo_torn_bits, verify};
use format::record::Record;
use format::sparse::SparseVector;
use format::types::TypeInfo;
use format::{Page, PageBytes};

pub use backup::backup;
pub use database::{bootstrap, database};
pub use dbcc::dbcc;
pub use log::{log_file, recovery};
pub use part::{part, part_payload};
pub use request::request;

/// An entry point; it must accept any bytes.
pub type Target = fn(&[u8]);

/// The entry points by name. In this list, the entry points that change a database change a minimal file, and the input
/// of `backup` is a whole backup.
pub const TARGETS: &[(&str, Target)] = &[
    ("page", page),
    ("record", record),
    ("compressed", compressed),
    ("expression", expression),
    ("bootstrap", |bytes| bootstrap(None, bytes)),
    ("database", |bytes| database(None, bytes)),
    ("backup", |bytes| backup(&[], bytes)),
    ("xpress", source::hostile::xpress),
    ("log", source::hostile::log_block),
    ("log_file", log_file),
    ("recovery", recovery),
    ("xel", xel),
    ("part", part),
    ("request", request),
    ("dbcc", dbcc),
];

/// The number of columns that are assumed for records of unknown layout.
const COLUMNS: usize = 16;

/// Reads a page: its protection, slots, records, fields and their values.
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

/// Reads the bytes as a record, once for every kind of record.
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

/// The types from which compressed columns are chosen by index.
const COMPRESSED_TYPES: [u32; 32] = [
    0x38, 0x30, 0x34, 0x7F, 0x3C, 0x7A, 0x3D, 0x3A, 0x3E, 0x3B, 0x24, 0x28, 0x68, 0xBD, 0x00_07_29, 0x00_03_2A,
    0x00_05_2B, 0x04_12_6A, 0x26_26_6A, 0x00_FF_6A, 0x0A_00_AF, 0x0A_00_AD, 0x14_00_EF, 0x14_00_E7, 0x14_00_A7,
    0x14_00_A5, 0xE7, 0xA5, 0x62, 0xF1, 0x3F, 0,
];

/// Reads a compressed row. `bytes` holds, in this order: the number of columns, the types of the columns, the length of
/// the compression information (u16), the compression information, and the row.
pub fn compressed(bytes: &[u8]) {
    let Some((&[count], bytes)) = bytes.split_first_chunk() else { return };
    let Some((types, bytes)) = bytes.split_at_checked(usize::from(count)) else { return };
    let Some((&size, bytes)) = bytes.split_first_chunk() else { return };
    let (info, row) = bytes.split_at(usize::from(u16::from_le_bytes(size)).min(bytes.len()));
    let column = |&kind: &u8| {
        let ti = COMPRESSED_TYPES.get(usize::from(kind & 0x1F)).copied().filter(|_| kind < 0xE0)?;
        Some(CompressedColumn { info: TypeInfo::from_ti(ti), is_uniquifier: kind & 0x20 != 0 })
    };
    let columns: Vec<_> = types.iter().map(column).collect();
    let Some(expansion) = Expansion::new(&columns) else { return };
    let Ok(record) = CdRecord::read(row, columns.len()) else { return };
    let info = CompressionInfo::read(info, columns.len()).ok();
    let _ = expansion.audit(&record, info.as_ref());
    let mut scratch = Default::default();
    if let Ok(expanded) = expansion.expand(&record, info.as_ref(), &mut scratch) {
        for (number, column) in columns.iter().enumerate() {
            let value = match expansion.place(number) {
                Some(place @ 1..) => {
                    expanded.record.fixed(place.unsigned_abs(), column.map_or(1, |column| column.info.length))
                }
                Some(place) => expanded.record.variable(place.unsigned_abs()).map(|(value, _)| value),
                None => None,
            };
            let info = column.map(|column| column.info).unwrap_or_default();
            let _ = format::value::text(info, value.unwrap_or_default(), 1);
        }
    }
}

/// Compiles an expression with columns of several types, and evaluates it.
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

/// Reads every event and every value of an extended-events file.
pub fn xel(bytes: &[u8]) {
    let Ok(reader) = events::xel::Reader::new(bytes) else { return };
    let mut values = 0;
    for event in reader.filter_map(Result::ok) {
        for (_, value) in event.fields.iter().chain(&event.actions) {
            let _ = value.to_string();
            values += 1;
        }
        let _ = (events::checkpoints::Mark::of(&event), event.at.map(|at| at.to_string()));
    }
    assert!(values <= bytes.len(), "each value has a byte of its own");
}
