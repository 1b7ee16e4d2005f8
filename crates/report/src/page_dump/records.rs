//! The records of the page.

use std::ops::Range;

use format::PageType;
use format::fields::Structure;
use format::instances::{FieldInstance, RecordSpace};
use format::lob::Fragment;
use format::record::{Record, RecordFault, RecordKind, status};

use super::lines::line;
use super::parsed::Parsed;
use super::rows::{self, Row};
use crate::columns::ColumnValue;
use crate::text_table::{padded, width};

/// A function that decodes the columns of the record in a slot, given the bytes that the record may use. An empty list
/// means that the columns are unknown.
pub type Columns<'a> = dyn Fn(u16, &[u8]) -> Vec<ColumnValue> + 'a;

/// One record of the page.
pub(super) struct RecordView<'a> {
    pub(super) space: &'a RecordSpace,
    pub(super) fields: &'a [FieldInstance],
    /// A description of the record's kind.
    pub(super) kind: String,
    /// The record's length in bytes, if known.
    pub(super) length: Option<usize>,
    /// Why the record cannot be parsed; `None` if it can be parsed.
    pub(super) fault: Option<RecordFault>,
    pub(super) columns: Vec<ColumnValue>,
}

impl RecordView<'_> {
    /// Bytes of a record that no field describes: gaps between fields, or the whole record if it has no known fields.
    pub(super) fn undescribed(&self) -> Vec<Range<usize>> {
        let space = &self.space.bytes;
        let end = self.length.map_or(space.end, |length| space.end.min(space.start.saturating_add(length)));
        let mut gaps = Vec::new();
        let mut at = space.start;
        for found in self.fields {
            if found.bytes.start > at {
                gaps.push(at..found.bytes.start);
            }
            at = at.max(found.bytes.end);
        }
        if at < end {
            gaps.push(at..end);
        }
        gaps
    }
}

/// The records of a page, in slot order.
pub(super) fn of<'b>(parsed: &'b Parsed, columns: Option<&'b Columns<'b>>) -> impl Iterator<Item = RecordView<'b>> {
    let mut rest = parsed.fields.as_slice();
    parsed.spaces.iter().map(move |space| {
        let start = rest.iter().position(|found| found.slot == Some(space.slot)).unwrap_or(rest.len());
        let from = rest.get(start..).unwrap_or_default();
        let length = from.iter().position(|found| found.slot != Some(space.slot)).unwrap_or(from.len());
        let (fields, behind) = from.split_at_checked(length).unwrap_or_default();
        if !fields.is_empty() {
            rest = behind;
        }
        view(parsed, space, fields, columns)
    })
}

fn view<'b>(
    parsed: &'b Parsed,
    space: &'b RecordSpace,
    fields: &'b [FieldInstance],
    columns: Option<&Columns<'_>>,
) -> RecordView<'b> {
    let bytes = parsed.slice(&space.bytes);
    let first = bytes.first().copied().unwrap_or_default();
    let header = parsed.view().header();
    let kind = RecordKind::of(first).name();
    let (kind, read) = match parsed.kind() {
        Some(PageType::Data | PageType::Index) if first & status::COMPRESSED != 0 => {
            ("compressed record".to_owned(), None)
        }
        Some(PageType::FileHeader) => {
            ("file header record".to_owned(), Some(Record::data(bytes).map(|record| record.bytes().len())))
        }
        Some(PageType::Data) => {
            let record = Record::data(bytes);
            (format!("{kind} record"), Some(record.map(|record| record.bytes().len())))
        }
        Some(PageType::Index) => {
            let record = Record::index(bytes, header.pminlen.get());
            (format!("{kind} record"), Some(record.map(|record| record.bytes().len())))
        }
        Some(PageType::TextMix | PageType::TextTree) => {
            (kind.to_owned(), Some(Fragment::read(bytes).map(|fragment| fragment.bytes().len())))
        }
        _ => match fields.iter().map(|found| found.field.structure).next() {
            Some(structure) => (structure.name().to_owned(), None),
            None => ("undescribed record".to_owned(), None),
        },
    };
    let (length, fault) = match read {
        Some(Ok(length)) => (Some(length), None),
        Some(Err(fault)) => (None, Some(fault)),
        None => (None, None),
    };
    let columns = columns.map(|columns| columns(space.slot, bytes)).unwrap_or_default();
    RecordView { space, fields, kind, length, fault, columns }
}

/// Writes the record, its fields, and its columns by name.
pub(super) fn write(out: &mut String, parsed: &Parsed, record: &RecordView<'_>) {
    let start = record.space.bytes.start;
    let length = record
        .length
        .map_or_else(|| format!("{} bytes of space", record.space.bytes.len()), |length| format!("{length} bytes"));
    line(out, format_args!("\nSlot {}  at 0x{start:04X} ({start}), {length}, {}", record.space.slot, record.kind));
    if let Some(fault) = record.fault {
        line(out, format_args!("  DAMAGED: {}; values {} and {}", fault.test.text(), fault.value, fault.against));
    }
    rows::write(out, parsed, &rows_of(parsed, record));
    let widest = |text: fn(&ColumnValue) -> &str| {
        record.columns.iter().map(|column| width(text(column))).max().unwrap_or_default().min(40)
    };
    let (names, types) = (widest(|column| &column.name), widest(|column| &column.type_name));
    for column in &record.columns {
        let place = match column.bytes.is_empty() {
            true => "-".to_owned(),
            false => format!("+{}", column.bytes.start),
        };
        let (name, kind) = (padded(&column.name, names), padded(&column.type_name, types));
        line(out, format_args!("  {place:>13}  {name}  {kind}  {}", column.value));
    }
}

/// One row of text for each field of a record, and for each run of bytes that no field describes, ordered by offset.
fn rows_of(parsed: &Parsed, record: &RecordView<'_>) -> Vec<Row> {
    let start = record.space.bytes.start;
    let own = record.fields.first().map(|found| found.field.structure);
    let mut inside = own;
    let mut rows = Vec::with_capacity(record.fields.len());
    for found in record.fields {
        let structure = found.field.structure;
        let nested = !matches!(structure, Structure::FileHeader | Structure::DataRecord | Structure::IndexRecord)
            && own != Some(structure);
        let mut row = rows::of_field(parsed, found, start);
        if nested {
            row.name.insert_str(0, "  ");
            if inside != Some(structure) {
                row.heading = Some(structure.name());
            }
        }
        inside = Some(structure);
        // If the columns are shown by name, their bytes are not shown again.
        if !record.columns.is_empty() {
            row.below = None;
        }
        rows.push(row);
    }
    rows.extend(record.undescribed().into_iter().map(|gap| rows::of_gap(parsed, gap, start)));
    rows.sort_by_key(|row| row.bytes.start);
    rows
}
