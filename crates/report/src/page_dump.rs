//! One page, field by field: what DBCC PAGE shows, with names, places and raw bytes.
//!
//! The catalogue of fields ([`format::fields`]) drives it. Every byte of a record comes out: what no field describes is
//! shown as it is. Nothing is judged except the page's protection and whether each record can be parsed.

use std::fmt::Write;
use std::ops::Range;

use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, IamHeader, PFS_PAGES, PfsByte, bit, bitmap, pfs_bytes};
use format::fields::{FieldInstance, Kind, Place, RecordSpace, Structure, hex, instances_of, record_spaces};
use format::lob::Fragment;
use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::protection::{Protection, ProtectionFault, stored_word, undo_torn_bits, verify};
use format::record::{Record, RecordFault, RecordKind, status};
use format::slots::MAX_SLOTS;
use format::{Page, PageBytes, PageId, PageType};
use serde_json::{Value, json};

/// Bytes shown beside a field; longer fields go on below.
const BESIDE: usize = 10;
/// Bytes shown beside a longer field.
const EXCERPT: usize = 6;
/// Bytes of a long field or of undescribed bytes that are shown.
const BELOW: usize = 128;
/// Bytes of a line of a hex dump.
const LINE: usize = 16;

/// What the allocation maps say about a page. Every part is optional: a map may be unreadable.
#[derive(Clone, Default, Debug)]
pub struct Allocation {
    /// The PFS page that describes it, and its byte.
    pub pfs: Option<(PageId, u8)>,
    /// The GAM page, and the extent's bit: set = free.
    pub gam: Option<(PageId, bool)>,
    /// The SGAM page, and the bit: set = mixed with room.
    pub sgam: Option<(PageId, bool)>,
    /// The differential map, and the bit: set = changed.
    pub diff: Option<(PageId, bool)>,
    /// The minimally logged map, and the bit: set = minimally logged.
    pub ml: Option<(PageId, bool)>,
    /// Whose page it is, in words.
    pub owner: Option<String>,
}

/// A column of a record, decoded by someone who knows the table.
#[derive(Clone, Debug)]
pub struct ColumnValue {
    /// Name of the column.
    pub name: String,
    /// Its type as a table definition would write it.
    pub type_name: String,
    /// Where it lies, from the start of the record; empty if it is not stored.
    pub bytes: Range<usize>,
    /// Its value as text.
    pub value: String,
}

/// Decodes the columns of the record in a slot, given the bytes the record may take. An empty list: not known.
pub type Columns<'a> = dyn Fn(u16, &[u8]) -> Vec<ColumnValue> + 'a;

/// A page to be shown, and what is known about it.
#[derive(Clone, Copy)]
pub struct PageDump<'a> {
    /// Where it was read.
    pub at: PageId,
    /// Its bytes as they were read, protection in place.
    pub bytes: &'a PageBytes,
    /// What the allocation maps say.
    pub allocation: Option<&'a Allocation>,
    /// Whether an index page is a leaf; without it level 0 counts as leaf.
    pub leaf: Option<bool>,
    /// Column values by name.
    pub columns: Option<&'a Columns<'a>>,
}

impl<'a> PageDump<'a> {
    /// The page `bytes` read at `at`, nothing else known.
    pub fn new(at: PageId, bytes: &'a PageBytes) -> Self {
        Self { at, bytes, allocation: None, leaf: None, columns: None }
    }

    /// The page as text.
    pub fn text(&self) -> String {
        Parsed::new(self).text(self)
    }

    /// The page as one JSON object.
    pub fn json(&self) -> Value {
        Parsed::new(self).json(self)
    }

    /// All bytes of the page as they were read, 16 a line with offsets and characters.
    pub fn raw(&self) -> String {
        let mut out = String::new();
        for at in (0..PAGE_BYTES).step_by(LINE) {
            hex_line(&mut out, "", at, self.bytes.get(at..at + LINE).unwrap_or_default());
        }
        out
    }
}

/// The page with its torn bits put back, and its fields.
struct Parsed {
    page: PageBytes,
    fields: Vec<FieldInstance>,
    spaces: Vec<RecordSpace>,
}

/// One record of the page.
struct RecordView<'a> {
    space: &'a RecordSpace,
    fields: &'a [FieldInstance],
    /// What it is, in words.
    kind: String,
    /// Bytes it takes, if they can be told.
    length: Option<usize>,
    /// Why it cannot be parsed.
    fault: Option<RecordFault>,
    columns: Vec<ColumnValue>,
}

/// A line about a field, or about bytes that no field describes.
struct Row {
    bytes: Range<usize>,
    /// From the start of the record.
    relative: usize,
    name: String,
    value: String,
    label: &'static str,
    /// A structure inside the record that begins here.
    heading: Option<&'static str>,
    /// Bytes to be shown in full.
    below: Option<Range<usize>>,
}

/// A run of pages or extents that share a state.
struct Run {
    first: u64,
    last: u64,
    count: u64,
    state: String,
}

impl Parsed {
    fn new(dump: &PageDump<'_>) -> Self {
        let mut page = *dump.bytes;
        undo_torn_bits(&mut page);
        let leaf = dump.leaf.unwrap_or(Page::new(&page).header().level == 0);
        Self { fields: instances_of(&page, leaf), spaces: record_spaces(Page::new(&page)), page }
    }

    fn view(&self) -> Page<'_> {
        Page::new(&self.page)
    }

    fn kind(&self) -> Option<PageType> {
        self.view().header().kind()
    }

    fn fields_of(&self, structure: Structure) -> impl Iterator<Item = &FieldInstance> {
        self.fields.iter().filter(move |found| found.field.structure == structure)
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.page.get(range.clone()).unwrap_or_default()
    }

    /// Records in slot order.
    fn records<'b>(&'b self, columns: Option<&'b Columns<'b>>) -> impl Iterator<Item = RecordView<'b>> {
        let mut rest = self.fields.as_slice();
        self.spaces.iter().map(move |space| {
            let start = rest.iter().position(|found| found.slot == Some(space.slot)).unwrap_or(rest.len());
            let from = rest.get(start..).unwrap_or_default();
            let length = from.iter().position(|found| found.slot != Some(space.slot)).unwrap_or(from.len());
            let (fields, behind) = from.split_at_checked(length).unwrap_or_default();
            if !fields.is_empty() {
                rest = behind;
            }
            self.record(space, fields, columns)
        })
    }

    fn record<'b>(
        &'b self,
        space: &'b RecordSpace,
        fields: &'b [FieldInstance],
        columns: Option<&Columns<'_>>,
    ) -> RecordView<'b> {
        let bytes = self.slice(&space.bytes);
        let first = bytes.first().copied().unwrap_or_default();
        let header = self.view().header();
        let kind = RecordKind::of(first).name();
        let (kind, parsed) = match self.kind() {
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
        let (length, fault) = match parsed {
            Some(Ok(length)) => (Some(length), None),
            Some(Err(fault)) => (None, Some(fault)),
            None => (None, None),
        };
        let columns = columns.map(|columns| columns(space.slot, bytes)).unwrap_or_default();
        RecordView { space, fields, kind, length, fault, columns }
    }

    fn text(&self, dump: &PageDump<'_>) -> String {
        let mut out = String::new();
        self.write_title(&mut out, dump);
        self.write_header(&mut out);
        let compression: Vec<_> =
            self.fields_of(Structure::CompressionInfo).map(|found| self.row(found, HEADER_BYTES)).collect();
        if !compression.is_empty() {
            out.push_str("\nCompression information\n");
            self.write_rows(&mut out, &compression);
        }
        self.write_slots(&mut out);
        for record in self.records(dump.columns) {
            self.write_record(&mut out, &record);
        }
        self.write_maps(&mut out, dump.at);
        out
    }

    fn write_title(&self, out: &mut String, dump: &PageDump<'_>) {
        let header = self.view().header();
        let kind =
            self.kind().map_or_else(|| format!("unknown type {}", header.page_type), |kind| kind.name().to_owned());
        line(out, format_args!("Page {}  {kind} page, file offset 0x{:X}", dump.at, file_offset(dump.at)));
        if header.page_id() != dump.at {
            line(out, format_args!("  The header says it is page {}", header.page_id()));
        }
        out.push('\n');
        line(out, format_args!("Protection      {}", protection_text(dump.bytes)));
        line(out, format_args!("Alloc unit      {}", header.alloc_unit()));
        if let Some(allocation) = dump.allocation {
            if let Some(owner) = &allocation.owner {
                line(out, format_args!("Owner           {owner}"));
            }
            for (name, map, state) in allocation_states(allocation) {
                line(out, format_args!("{name:<15} {:<14} {state}", map.to_string()));
            }
        }
    }

    fn write_header(&self, out: &mut String) {
        out.push_str("\nHeader\n");
        let rows: Vec<_> = self.fields_of(Structure::PageHeader).map(|found| self.row(found, 0)).collect();
        self.write_rows(out, &rows);
    }

    fn write_slots(&self, out: &mut String) {
        const PER_LINE: usize = 8;
        let count = usize::from(self.view().header().slot_count.get());
        let odd = if count > MAX_SLOTS { ", more than a page can have" } else { "" };
        line(out, format_args!("\nSlot array, {count} slot{}{odd}", if count == 1 { "" } else { "s" }));
        let slots: Vec<_> = self.fields_of(Structure::SlotArray).collect();
        for (number, chunk) in slots.chunks(PER_LINE).enumerate() {
            let _ = write!(out, "  {:>5}:", number * PER_LINE);
            for found in chunk {
                match format::bytes::u16_at(self.slice(&found.bytes), 0).unwrap_or_default() {
                    0 => out.push_str("  empty "),
                    offset => {
                        let _ = write!(out, "  0x{offset:04X}");
                    }
                }
            }
            while out.ends_with(' ') {
                out.pop();
            }
            out.push('\n');
        }
    }

    fn write_record(&self, out: &mut String, record: &RecordView<'_>) {
        let start = record.space.bytes.start;
        let length = record
            .length
            .map_or_else(|| format!("{} bytes of space", record.space.bytes.len()), |length| format!("{length} bytes"));
        line(out, format_args!("\nSlot {}  at 0x{start:04X} ({start}), {length}, {}", record.space.slot, record.kind));
        if let Some(fault) = record.fault {
            line(out, format_args!("  DAMAGED: {}; values {} and {}", fault.test.text(), fault.value, fault.against));
        }
        self.write_rows(out, &self.record_rows(record));
        let width = |text: fn(&ColumnValue) -> &str| {
            record.columns.iter().map(|column| text(column).chars().count()).max().unwrap_or_default().min(40)
        };
        let (names, types) = (width(|column| &column.name), width(|column| &column.type_name));
        for column in &record.columns {
            let place = match column.bytes.is_empty() {
                true => "-".to_owned(),
                false => format!("+{}", column.bytes.start),
            };
            let (name, kind, value) = (&column.name, &column.type_name, &column.value);
            line(out, format_args!("  {place:>13}  {name:<names$}  {kind:<types$}  {value}"));
        }
    }

    /// Bytes of a record that no field describes: gaps between fields, the whole record if nothing is known of it.
    fn undescribed(&self, record: &RecordView<'_>) -> Vec<Range<usize>> {
        let space = &record.space.bytes;
        let end = record.length.map_or(space.end, |length| space.end.min(space.start.saturating_add(length)));
        let mut gaps = Vec::new();
        let mut at = space.start;
        for found in record.fields {
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

    /// The fields of a record and the bytes between them, by place.
    fn record_rows(&self, record: &RecordView<'_>) -> Vec<Row> {
        let start = record.space.bytes.start;
        let own = record.fields.first().map(|found| found.field.structure);
        let mut inside = own;
        let mut rows = Vec::with_capacity(record.fields.len());
        for found in record.fields {
            let structure = found.field.structure;
            let nested = !matches!(structure, Structure::FileHeader | Structure::DataRecord | Structure::IndexRecord)
                && own != Some(structure);
            let mut row = self.row(found, start);
            if nested {
                row.name.insert_str(0, "  ");
                if inside != Some(structure) {
                    row.heading = Some(structure.name());
                }
            }
            inside = Some(structure);
            // Columns that are shown by name need not be shown as bytes.
            if !record.columns.is_empty() {
                row.below = None;
            }
            rows.push(row);
        }
        rows.extend(self.undescribed(record).into_iter().map(|gap| self.gap(gap, start)));
        rows.sort_by_key(|row| row.bytes.start);
        rows
    }

    fn row(&self, found: &FieldInstance, start: usize) -> Row {
        let (field, bytes) = (found.field, self.slice(&found.bytes));
        let name = match (field.place, found.index) {
            (Place::Column(position), _) => format!("{position} {}", field.name),
            (_, Some(index)) => format!("{}[{index}]", field.name),
            (_, None) => field.name.to_owned(),
        };
        let long = matches!(field.kind, Kind::Bytes) && bytes.len() > BESIDE;
        let opaque = long && bytes.iter().any(|byte| *byte != 0);
        let again = !matches!(field.place, Place::Column(_)) && found.index.is_some_and(|index| index > 0);
        Row {
            bytes: found.bytes.clone(),
            relative: found.bytes.start.saturating_sub(start),
            name,
            value: if long { byte_count(bytes) } else { found.render(&self.page) },
            label: if again { "" } else { field.label },
            heading: None,
            below: opaque.then(|| found.bytes.clone()),
        }
    }

    fn gap(&self, gap: Range<usize>, start: usize) -> Row {
        let bytes = self.slice(&gap);
        let zero = bytes.iter().all(|byte| *byte == 0);
        Row {
            relative: gap.start.saturating_sub(start),
            name: "-".to_owned(),
            value: byte_count(bytes),
            label: "undescribed",
            heading: None,
            below: (!zero && bytes.len() > BESIDE).then(|| gap.clone()),
            bytes: gap,
        }
    }

    /// Offset on the page and in the structure, raw bytes, name, value, plain name.
    fn write_rows(&self, out: &mut String, rows: &[Row]) {
        const VALUE_CHARS: usize = 40;
        let widest = |text: fn(&Row) -> &str, most: usize| {
            rows.iter().map(|row| text(row).chars().count()).filter(|width| *width <= most).max().unwrap_or_default()
        };
        let (names, values) = (widest(|row| &row.name, VALUE_CHARS), widest(|row| &row.value, VALUE_CHARS));
        for row in rows {
            if let Some(heading) = row.heading {
                line(out, format_args!("{:49}{heading}", ""));
            }
            let bytes = self.slice(&row.bytes);
            let raw = match bytes.len() {
                0..=BESIDE => hex(bytes, BESIDE),
                length => format!("{} .. +{}", excerpt(bytes), length - EXCERPT),
            };
            let Row { name, value, label, .. } = row;
            // A name that says it all needs no second one.
            let label = if label.eq_ignore_ascii_case(name.trim_start()) { "" } else { label };
            let (at, relative) = (row.bytes.start, format!("+{}", row.relative));
            line(out, format_args!("  0x{at:04X} {relative:>6}  {raw:<30}  {name:<names$}  {value:<values$}  {label}"));
            if let Some(below) = &row.below {
                hex_lines(out, "                 ", &self.page, below.clone(), BELOW);
            }
        }
    }

    fn write_maps(&self, out: &mut String, at: PageId) {
        let (title, runs) = self.runs(at);
        if runs.is_empty() {
            return;
        }
        line(out, format_args!("\n{title}"));
        let unit = if self.kind() == Some(PageType::Pfs) { "page" } else { "extent" };
        for run in runs {
            let first = format!("({}:{})", self.map_file(at), run.first);
            let last = match run.count {
                1 => String::new(),
                _ => format!("({}:{})", self.map_file(at), run.last),
            };
            let plural = if run.count == 1 { " " } else { "s" };
            let text = format!("  {first:<14} - {last:<14} = {:<44} {:>6} {unit}{plural}", run.state, run.count);
            line(out, format_args!("{}", text.trim_end()));
        }
    }

    /// The file whose pages the map describes.
    fn map_file(&self, at: PageId) -> u16 {
        match (self.kind(), IamHeader::read(self.view())) {
            (Some(PageType::Iam), Some(header)) => header.start.file,
            _ => at.file,
        }
    }

    /// What an allocation page says, as runs. As in DBCC PAGE a run of extents ends with the first page of its last
    /// extent.
    fn runs(&self, at: PageId) -> (&'static str, Vec<Run>) {
        let page = self.view();
        let (title, clear, set) = match self.kind() {
            Some(PageType::Pfs) => {
                let base = u64::from(at.page / PFS_PAGES * PFS_PAGES);
                let states = pfs_bytes(page).into_iter().flatten().copied();
                return ("PFS: page allocation status", runs(base, 1, states, |byte| pfs_text(*byte)));
            }
            Some(PageType::Gam) => ("GAM: extent allocation status", "ALLOCATED", "NOT ALLOCATED"),
            Some(PageType::Sgam) => ("SGAM: extent allocation status", "NOT ALLOCATED", "ALLOCATED"),
            Some(PageType::DiffMap) => ("DIFF_MAP: extent change status", "NOT CHANGED", "CHANGED"),
            Some(PageType::MlMap) => ("ML_MAP: extent logging status", "NOT MIN_LOGGED", "MIN_LOGGED"),
            Some(PageType::Iam) => ("IAM: extent allocation status", "NOT ALLOCATED", "ALLOCATED"),
            _ => return ("", Vec::new()),
        };
        let base = match (self.kind(), IamHeader::read(page)) {
            (Some(PageType::Iam), Some(header)) => header.start.page,
            _ => at.page / INTERVAL_PAGES * INTERVAL_PAGES,
        };
        let bits = bitmap(page).into_iter().flat_map(|map| (0..INTERVAL_PAGES / EXTENT_PAGES).map(|at| bit(map, at)));
        let text = |is_set: &bool| if *is_set { set } else { clear }.to_owned();
        (title, runs(u64::from(base), u64::from(EXTENT_PAGES), bits, text))
    }

    fn json(&self, dump: &PageDump<'_>) -> Value {
        let header = self.view().header();
        let field = |found: &FieldInstance, start: usize| {
            let mut object = json!({
                "structure": found.field.structure.name(),
                "name": found.field.name,
                "label": found.field.label,
                "at": found.bytes.start,
                "offset": found.bytes.start.saturating_sub(start),
                "length": found.bytes.len(),
            });
            if let (Some(index), Some(map)) = (found.index, object.as_object_mut()) {
                map.insert("index".to_owned(), json!(index));
            }
            if let Some(map) = object.as_object_mut() {
                // Whole maps are told as runs.
                if found.bytes.len() < 4096 {
                    map.insert("bytes".to_owned(), json!(hex(self.slice(&found.bytes), PAGE_BYTES)));
                }
                map.insert("value".to_owned(), json!(found.render(&self.page)));
            }
            object
        };
        let records: Vec<Value> = self
            .records(dump.columns)
            .map(|record| {
                let start = record.space.bytes.start;
                json!({
                    "slot": record.space.slot,
                    "at": start,
                    "space": record.space.bytes.len(),
                    "length": record.length,
                    "kind": record.kind,
                    "fault": record.fault.map(|fault| json!({
                        "test": fault.test.text(), "value": fault.value, "against": fault.against,
                    })),
                    "fields": record.fields.iter().map(|found| field(found, start)).collect::<Vec<_>>(),
                    "undescribed": self.undescribed(&record).into_iter().map(|gap| json!({
                        "at": gap.start, "offset": gap.start - start, "bytes": hex(self.slice(&gap), PAGE_BYTES),
                    })).collect::<Vec<_>>(),
                    "columns": record.columns.iter().map(|column| json!({
                        "name": column.name, "type": column.type_name, "offset": column.bytes.start,
                        "length": column.bytes.len(), "value": column.value,
                    })).collect::<Vec<_>>(),
                })
            })
            .collect();
        let (_, map_runs) = self.runs(dump.at);
        let file = self.map_file(dump.at);
        json!({
            "kind": "page",
            "page": dump.at.to_string(),
            "file": dump.at.file,
            "number": dump.at.page,
            "file_offset": file_offset(dump.at),
            "type": header.page_type,
            "type_name": self.kind().map(PageType::name),
            "alloc_unit_id": header.alloc_unit().to_string(),
            "protection": protection_json(dump.bytes),
            "allocation": dump.allocation.map(allocation_json),
            "header": self.fields_of(Structure::PageHeader).map(|found| field(found, 0)).collect::<Vec<_>>(),
            "compression_information": self
                .fields_of(Structure::CompressionInfo)
                .map(|found| field(found, HEADER_BYTES))
                .collect::<Vec<_>>(),
            "slots": self
                .fields_of(Structure::SlotArray)
                .map(|found| format::bytes::u16_at(self.slice(&found.bytes), 0))
                .collect::<Vec<_>>(),
            "records": records,
            "map": map_runs.into_iter().map(|run| json!({
                "file": file, "first": run.first, "last": run.last, "count": run.count, "state": run.state,
            })).collect::<Vec<_>>(),
        })
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn byte_count(bytes: &[u8]) -> String {
    let zero = if bytes.iter().all(|byte| *byte == 0) { "zero, " } else { "" };
    format!("{zero}{} bytes", bytes.len())
}

/// The first few bytes.
fn excerpt(bytes: &[u8]) -> String {
    hex(bytes.get(..EXCERPT).unwrap_or(bytes), EXCERPT)
}

fn file_offset(at: PageId) -> u64 {
    u64::from(at.page) * PAGE_BYTES as u64
}

/// The first `most` bytes of `range`, [`LINE`] a line; a star for lines equal to the one before.
fn hex_lines(out: &mut String, indent: &str, page: &PageBytes, range: Range<usize>, most: usize) {
    let bytes = page.get(range.clone()).unwrap_or_default();
    let shown = bytes.get(..most).unwrap_or(bytes);
    let mut repeated = false;
    for (number, chunk) in shown.chunks(LINE).enumerate() {
        let previous = number.checked_sub(1).and_then(|previous| shown.chunks(LINE).nth(previous));
        if previous == Some(chunk) {
            // As hexdump does.
            if !repeated {
                line(out, format_args!("{indent}*"));
            }
            repeated = true;
            continue;
        }
        repeated = false;
        hex_line(out, indent, range.start + number * LINE, chunk);
    }
    if shown.len() < bytes.len() {
        line(out, format_args!("{indent}.. {} more bytes (--raw shows all)", bytes.len() - shown.len()));
    }
}

fn hex_line(out: &mut String, indent: &str, at: usize, bytes: &[u8]) {
    let (left, right) = bytes.split_at_checked(LINE / 2).unwrap_or((bytes, &[]));
    let digits = format!("{}  {}", hex(left, LINE), hex(right, LINE));
    let characters: String =
        bytes.iter().map(|byte| if (0x20..0x7F).contains(byte) { char::from(*byte) } else { '.' }).collect();
    line(out, format_args!("{indent}0x{at:04X}  {digits:<48}  {characters}"));
}

/// Neighbours with the same state, together. The last of a run of several is its last element's first page.
fn runs<T: PartialEq>(base: u64, step: u64, states: impl Iterator<Item = T>, text: impl Fn(&T) -> String) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut current: Option<T> = None;
    for (at, state) in (base..).step_by(step as usize).zip(states) {
        match runs.last_mut() {
            Some(run) if current.as_ref() == Some(&state) => {
                run.last = at;
                run.count += 1;
            }
            _ => {
                runs.push(Run { first: at, last: at, count: 1, state: text(&state) });
                current = Some(state);
            }
        }
    }
    runs
}

fn pfs_text(byte: u8) -> String {
    let byte = PfsByte(byte);
    let text = if byte.is_allocated() { "" } else { "NOT ALLOCATED " };
    format!("{text}{}", byte.flags_text())
}

/// Map, its page, and what it says.
fn allocation_states(allocation: &Allocation) -> Vec<(&'static str, PageId, String)> {
    let mut states = Vec::new();
    if let Some((map, byte)) = allocation.pfs {
        states.push(("PFS", map, format!("0x{byte:02X} {}", pfs_text(byte))));
    }
    for (name, state, set, clear) in [
        ("GAM", allocation.gam, "NOT ALLOCATED", "ALLOCATED"),
        ("SGAM", allocation.sgam, "ALLOCATED", "NOT ALLOCATED"),
        ("DIFF", allocation.diff, "CHANGED", "NOT CHANGED"),
        ("ML", allocation.ml, "MIN_LOGGED", "NOT MIN_LOGGED"),
    ] {
        if let Some((map, is_set)) = state {
            states.push((name, map, if is_set { set } else { clear }.to_owned()));
        }
    }
    states
}

fn allocation_json(allocation: &Allocation) -> Value {
    let states = allocation_states(allocation)
        .into_iter()
        .map(|(name, map, state)| json!({ "map": name, "page": map.to_string(), "state": state }));
    json!({ "owner": allocation.owner, "maps": states.collect::<Vec<_>>() })
}

/// Sectors whose bits differ from the pattern of the torn word.
fn torn_sectors(stored: u32, actual: u32) -> Vec<u32> {
    (1..16).filter(|sector| actual >> (2 * sector) & 3 != stored & 3).collect()
}

fn protection_text(bytes: &PageBytes) -> String {
    match verify(bytes) {
        Ok(Protection::None) => "none: neither checksum nor torn bits".to_owned(),
        Ok(Protection::Checksum) => format!("checksum 0x{:08X}, right", stored_word(bytes)),
        Ok(Protection::TornBits) => {
            let word = stored_word(bytes);
            format!("torn bits 0x{word:08X}, all sectors of one write (pattern {:02b})", word & 3)
        }
        Err(ProtectionFault::Checksum { stored, computed }) => {
            format!("checksum WRONG: stored 0x{stored:08X}, computed 0x{computed:08X}")
        }
        Err(ProtectionFault::Torn { stored, actual }) => {
            let sectors: Vec<String> = torn_sectors(stored, actual).iter().map(u32::to_string).collect();
            format!(
                "TORN: pattern {:02b} is not that of sectors {} (stored 0x{stored:08X}, actual 0x{actual:08X})",
                stored & 3,
                sectors.join(" ")
            )
        }
    }
}

fn protection_json(bytes: &PageBytes) -> Value {
    let hex = |word: u32| format!("0x{word:08X}");
    match verify(bytes) {
        Ok(Protection::None) => json!({ "kind": "none", "ok": null }),
        Ok(Protection::Checksum) => json!({ "kind": "checksum", "ok": true, "stored": hex(stored_word(bytes)) }),
        Ok(Protection::TornBits) => json!({ "kind": "torn_bits", "ok": true, "stored": hex(stored_word(bytes)) }),
        Err(ProtectionFault::Checksum { stored, computed }) => {
            json!({ "kind": "checksum", "ok": false, "stored": hex(stored), "computed": hex(computed) })
        }
        Err(ProtectionFault::Torn { stored, actual }) => json!({
            "kind": "torn_bits", "ok": false, "stored": hex(stored), "actual": hex(actual),
            "sectors": torn_sectors(stored, actual),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// A page at (1:200) with a checksum.
    fn sealed(mut page: PageBytes) -> PageBytes {
        page[0] = 1;
        page[5] = 2;
        page[32..38].copy_from_slice(&[200, 0, 0, 0, 1, 0]);
        let sum = format::protection::checksum(&page);
        page[60..64].copy_from_slice(&sum.to_le_bytes());
        page
    }

    fn with_records(kind: u8, pminlen: u8, records: &[&[u8]]) -> PageBytes {
        let mut page = [0; PAGE_BYTES];
        (page[1], page[14], page[22]) = (kind, pminlen, records.len() as u8);
        let mut at = HEADER_BYTES;
        for (slot, record) in records.iter().enumerate() {
            page[at..at + record.len()].copy_from_slice(record);
            let entry = PAGE_BYTES - 2 - 2 * slot;
            page[entry..entry + 2].copy_from_slice(&(at as u16).to_le_bytes());
            at += record.len();
        }
        page[30..32].copy_from_slice(&(at as u16).to_le_bytes());
        sealed(page)
    }

    const ROW: [u8; 20] = [0x30, 0, 8, 0, 1, 2, 3, 4, 3, 0, 0b010, 2, 0, 19, 0, 20, 0, b'a', b'b', b'c'];

    fn has(text: &str, words: &[&str]) {
        let found = text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == words.join(" "));
        assert!(found, "{words:?} in\n{text}");
    }

    #[test]
    fn a_data_page_shows_header_records_and_columns() {
        let page = with_records(1, 8, &[&ROW, &ROW]);
        let columns = |slot: u16, space: &[u8]| {
            assert_eq!(space, ROW);
            let (name, type_name) = ("Name".to_owned(), "varchar(10)".to_owned());
            vec![ColumnValue { name, type_name, bytes: 17..19, value: format!("ab{slot}") }]
        };
        let allocation = Allocation {
            pfs: Some((PageId::new(1, 1), 0x41)),
            sgam: Some((PageId::new(1, 3), false)),
            owner: Some("dbo.T".to_owned()),
            ..Allocation::default()
        };
        let at = PageId::new(1, 200);
        let dump = PageDump { allocation: Some(&allocation), columns: Some(&columns), ..PageDump::new(at, &page) };
        let text = dump.text();
        has(&text, &["Page (1:200) data page, file offset 0x190000"]);
        has(&text, &["PFS (1:1) 0x41 ALLOCATED 50_PCT_FULL"]);
        has(&text, &["SGAM (1:3) NOT ALLOCATED"]);
        has(&text, &["0x0016 +22 02 00 m_slotCnt 2 slot count"]);
        has(&text, &["Slot 1 at 0x0074 (116), 20 bytes, primary record"]);
        has(&text, &["0x007E +10 02 nullBitmap NULL: 2 null bitmap"]);
        has(&text, &["+17 Name varchar(10) ab1"]);
        assert!(text.contains(", right\n") && !text.contains("DAMAGED") && !text.contains("undescribed"));
        let json = dump.json();
        assert_eq!(json["records"][1]["columns"][0]["value"], "ab1");
        assert_eq!(json["header"][12]["name"], "m_freeData");
        assert_eq!(json["slots"], json!([96, 116]));
        assert_eq!(json["protection"]["ok"], true);
    }

    #[test]
    fn damage_is_told_and_the_rest_shown() {
        let mut row = ROW;
        row[15] = 18;
        let mut page = with_records(1, 8, &[&row]);
        page[5000] ^= 1;
        let dump = PageDump::new(PageId::new(1, 201), &page);
        let text = dump.text();
        assert!(text.contains("checksum WRONG: stored 0x"), "{text}");
        assert!(text.contains("The header says it is page (1:200)"), "{text}");
        assert!(text.contains("DAMAGED: columnOffsets->offTbl"), "{text}");
        has(&text, &["0x0073 +19 63 - 1 bytes undescribed"]);
        assert_eq!(dump.json()["records"][0]["fault"]["value"], 18);
        assert_eq!(dump.raw().lines().count(), 512);
    }

    #[test]
    fn allocation_pages_come_out_as_runs() {
        let mut record = vec![0; 8092];
        record[2..4].copy_from_slice(&8092u16.to_le_bytes());
        record[4..8].fill(0x44);
        let page = with_records(11, 0, &[&record]);
        let text = PageDump::new(PageId::new(1, 8088), &page).text();
        has(&text, &["(1:8088) - (1:8091) = ALLOCATED 100_PCT_FULL 4 pages"]);
        has(&text, &["(1:8092) - (1:16175) = NOT ALLOCATED 0_PCT_FULL 8084 pages"]);
        let mut map = vec![0xFF; 7992];
        map[4] = 0b1111_1110;
        let page = with_records(8, 90, &[&[0; 94], &map]);
        let text = PageDump::new(PageId::new(3, 2), &page).text();
        has(&text, &["(3:0) - = ALLOCATED 1 extent"]);
        has(&text, &["(3:8) - (3:511224) = NOT ALLOCATED 63903 extents"]);
    }

    #[test]
    fn any_bytes_can_be_shown() {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for round in 0..300u32 {
            let mut page = [0u8; PAGE_BYTES];
            page.fill_with(&mut next);
            page[1] = (round % 21) as u8;
            if round % 3 != 0 {
                page[23] = 0;
                page[8001..].iter_mut().step_by(2).for_each(|high| *high &= 0x1F);
            }
            let dump = PageDump::new(PageId::new(u16::MAX, u32::MAX - round), &page);
            assert!(dump.text().len() < 1 << 23);
            assert!(dump.json().is_object());
        }
    }

    fn data_files(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                data_files(&path, found);
            } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mdf")) {
                found.push(path);
            }
        }
    }

    /// On real pages every byte of every record has its field, and no record is damaged.
    #[test]
    fn real_pages_are_described_completely() {
        const MOST_BYTES: u64 = 5 << 20;
        const FILES: usize = 6;
        let mut files = Vec::new();
        data_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut files);
        files.retain(|path| path.metadata().is_ok_and(|metadata| metadata.len() <= MOST_BYTES));
        files.sort();
        if files.is_empty() {
            eprintln!("SKIPPED: no corpus in target/corpus");
        }
        for path in files.iter().step_by((files.len() / FILES).max(1)) {
            let bytes = std::fs::read(path).unwrap();
            let pages = bytes.as_chunks::<PAGE_BYTES>().0;
            if format::boot::Boot::version_of(Page::new(&pages[9])).is_none_or(|version| version < 611) {
                continue;
            }
            let mut pfs = pages[1];
            undo_torn_bits(&mut pfs);
            let pfs = *pfs_bytes(Page::new(&pfs)).unwrap();
            for (number, page) in pages.iter().enumerate().filter(|(number, _)| PfsByte(pfs[*number]).is_allocated()) {
                let dump = PageDump::new(PageId::new(1, number as u32), page);
                let text = dump.text();
                let at = format!("{} page {number}\n{text}", path.display());
                assert!(!text.contains("WRONG") && !text.contains("TORN") && !text.contains("DAMAGED"), "{at}");
                assert!(!text.contains("The header says"), "{at}");
                let json = dump.json();
                let kind = json["type"].as_u64().unwrap();
                // The boot record has unknown parts, LOB nodes have unused places.
                if (kind == 1 || kind == 2) && number != 32 {
                    assert!(!text.contains("undescribed"), "{at}");
                }
            }
        }
    }
}
