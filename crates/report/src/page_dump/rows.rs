//! Fields as rows of text.

use std::ops::Range;

use format::fields::{Kind, Place};
use format::instances::FieldInstance;
use format::render::hex;

use super::lines::{hex_lines, line};
use super::parsed::Parsed;
use crate::text_table::{padded, width};

/// Maximum number of bytes that are shown on the line of a field. The bytes of a longer field are shown below the line.
const BESIDE: usize = 10;
/// Number of bytes of a longer field that are shown on its line.
const EXCERPT: usize = 6;
/// Maximum number of bytes shown below a long field, or below a run of undescribed bytes.
const BELOW: usize = 128;

/// A line about a field, or about bytes that no field describes.
pub(super) struct Row {
    pub(super) bytes: Range<usize>,
    /// Offset of the bytes from the start of the record or other structure that contains them.
    relative: usize,
    pub(super) name: String,
    value: String,
    label: &'static str,
    /// Name of a nested structure that begins with this row.
    pub(super) heading: Option<&'static str>,
    /// The bytes to show below the line; `None` to show no bytes there.
    pub(super) below: Option<Range<usize>>,
}

/// The row for the field `found`. The structure of this field begins at `start`.
pub(super) fn of_field(parsed: &Parsed, found: &FieldInstance, start: usize) -> Row {
    let (field, bytes) = (found.field, parsed.slice(&found.bytes));
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
        value: if long { byte_count(bytes) } else { found.render(&parsed.page) },
        label: if again { "" } else { field.label },
        heading: None,
        below: opaque.then(|| found.bytes.clone()),
    }
}

/// The row for bytes that no field describes. The record that contains these bytes begins at `start`.
pub(super) fn of_gap(parsed: &Parsed, gap: Range<usize>, start: usize) -> Row {
    let bytes = parsed.slice(&gap);
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

/// Writes rows: offset on the page and in the structure, raw bytes, name, value, label.
pub(super) fn write(out: &mut String, parsed: &Parsed, rows: &[Row]) {
    const VALUE_CHARS: usize = 40;
    let widest = |text: fn(&Row) -> &str, most: usize| {
        rows.iter().map(|row| width(text(row))).filter(|width| *width <= most).max().unwrap_or_default()
    };
    let (names, values) = (widest(|row| &row.name, VALUE_CHARS), widest(|row| &row.value, VALUE_CHARS));
    for row in rows {
        if let Some(heading) = row.heading {
            line(out, format_args!("{:49}{heading}", ""));
        }
        let bytes = parsed.slice(&row.bytes);
        let raw = match bytes.len() {
            0..=BESIDE => hex(bytes, BESIDE),
            length => format!("{} .. +{}", excerpt(bytes), length - EXCERPT),
        };
        let Row { name, label, .. } = row;
        // A label that only repeats the name is left out.
        let label = if label.eq_ignore_ascii_case(name.trim_start()) { "" } else { label };
        let (at, relative) = (row.bytes.start, format!("+{}", row.relative));
        let (name, value) = (padded(name, names), padded(&row.value, values));
        line(out, format_args!("  0x{at:04X} {relative:>6}  {raw:<30}  {name}  {value}  {label}"));
        if let Some(below) = &row.below {
            hex_lines(out, "                 ", &parsed.page, below.clone(), BELOW);
        }
    }
}

fn byte_count(bytes: &[u8]) -> String {
    let zero = if bytes.iter().all(|byte| *byte == 0) { "zero, " } else { "" };
    format!("{zero}{} bytes", bytes.len())
}

/// The first bytes of a longer field, in hexadecimal.
fn excerpt(bytes: &[u8]) -> String {
    hex(bytes.get(..EXCERPT).unwrap_or(bytes), EXCERPT)
}
