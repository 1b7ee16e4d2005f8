//! Shows field values as text.

use crate::allocation::PfsByte;
use crate::bytes::{array_at, u8_at, u16_at, u32_at, unsigned, utf16};
use crate::fields::{Field, Kind, Names};
use crate::ids::{Lsn, PageId, RecordId};
use crate::page::PageType;
use crate::record::{COMPLEX, RecordKind, status};
use crate::types::{datetime_text, guid_text};

/// The most characters of a text to show.
const EXCERPT_CHARS: usize = 64;
/// The most elements of a list to show.
const LIST_ITEMS: usize = 32;

/// The value of `field` in `bytes` as text. If there are too few bytes for the field's kind, the bytes are shown in hexadecimal.
///
/// ```
/// use format::fields::Structure;
/// use format::render::render;
/// let free_count = Structure::PageHeader.fields().iter().find(|field| field.name == "m_freeCnt").unwrap();
/// assert_eq!(render(free_count, &[0x10, 0x01]), "272");
/// ```
pub fn render(field: &Field, bytes: &[u8]) -> String {
    value(field.kind, bytes).unwrap_or_else(|| hex(bytes, LIST_ITEMS))
}

/// The first `most` bytes in hexadecimal, with blanks between them; an ellipsis follows if there are more bytes.
pub fn hex(bytes: &[u8], most: usize) -> String {
    let digits: Vec<String> = bytes.iter().take(most).map(|byte| format!("{byte:02X}")).collect();
    let rest = if bytes.len() > most { " .." } else { "" };
    digits.join(" ") + rest
}

fn value(kind: Kind, bytes: &[u8]) -> Option<String> {
    let number = (bytes.len() <= 8).then(|| unsigned(bytes));
    Some(match kind {
        Kind::Unsigned => number?.to_string(),
        Kind::Hex => hex_number(number?, bytes.len()),
        Kind::Flags(names) => flags(number?, bytes.len(), names),
        Kind::Named(names) => match names.iter().find(|(value, _)| Some(*value) == number) {
            Some((value, name)) => format!("{value} {name}"),
            None => format!("{} unknown", number?),
        },
        Kind::PageType => {
            let byte = u8_at(bytes, 0)?;
            format!("{byte} {}", PageType::from_byte(byte).map_or("unknown", PageType::name))
        }
        Kind::PagePointer => PageId::read(bytes, 0)?.to_string(),
        Kind::RecordPointer => RecordId::read(bytes, 0)?.to_string(),
        Kind::Lsn => Lsn::read(bytes, 0)?.to_string(),
        Kind::DateTime => {
            let (ticks, days) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?.cast_signed());
            match (days, ticks) {
                (0, 0) => "not set".to_owned(),
                _ => datetime_text(ticks, days).unwrap_or_else(|| format!("{days} days, {ticks} ticks")),
            }
        }
        Kind::Guid => guid_text(array_at(bytes, 0)?),
        Kind::Text => format!("'{}'", utf16(bytes).trim_end_matches(['\u{2020}', '\0', ' ']).escape_debug()),
        Kind::DatabaseVersion => {
            let version = u16_at(bytes, 0)?;
            match crate::version::product(version) {
                Some(product) => format!("{version} {product}"),
                None => version.to_string(),
            }
        }
        Kind::EngineBuild => {
            let &[low, high, minor, major] = bytes.first_chunk::<4>()?;
            format!("{major}.{minor}.{}", u16::from_le_bytes([low, high]))
        }
        Kind::RecordStatus => record_status(u8_at(bytes, 0)?),
        Kind::CdStatus => cd_status(u8_at(bytes, 0)?),
        Kind::EndOffset => {
            let entry = u16_at(bytes, 0)?;
            let complex = if entry & COMPLEX != 0 { " complex" } else { "" };
            format!("{}{complex}", entry & !COMPLEX)
        }
        Kind::SlotOffset => match u16_at(bytes, 0)? {
            0 => "0 empty".to_owned(),
            offset => format!("0x{offset:04X} ({offset})"),
        },
        Kind::PfsBytes => {
            let allocated = bytes.iter().filter(|byte| PfsByte(**byte).is_allocated()).count();
            format!("{} pages, {allocated} allocated", bytes.len())
        }
        Kind::ExtentBits => {
            let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            format!("{} extents, {set} set", bytes.len() * 8)
        }
        Kind::NullBits => null_bits(bytes),
        Kind::ColumnCodes => {
            let codes = bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4]);
            codes.take(EXCERPT_CHARS).map(|code| format!("{code:X}")).collect()
        }
        Kind::Zero if bytes.iter().all(|byte| *byte == 0) => "0".to_owned(),
        Kind::Zero => format!("not zero: {}", hex(bytes, LIST_ITEMS)),
        Kind::Bytes => excerpt(bytes),
    })
}

fn hex_number(number: u64, bytes: usize) -> String {
    format!("0x{number:0digits$X}", digits = 2 * bytes)
}

fn flags(number: u64, bytes: usize, names: Names) -> String {
    let mut text = hex_number(number, bytes);
    for (_, name) in names.iter().filter(|(bit, _)| number & bit == *bit) {
        text.push_str(if text.contains(' ') { ", " } else { " " });
        text.push_str(name);
    }
    text
}

fn record_status(byte: u8) -> String {
    let mut text = format!("0x{byte:02X} {}", RecordKind::of(byte).name());
    for (bit, name) in [
        (status::COMPRESSED, "compressed"),
        (status::NULL_BITMAP, "null bitmap"),
        (status::VARIABLE, "variable part"),
        (status::VERSION_TAG, "version tag"),
        (status::RESERVED, "reserved bit"),
    ] {
        if byte & bit != 0 {
            text.push_str(", ");
            text.push_str(name);
        }
    }
    text
}

fn cd_status(byte: u8) -> String {
    const KINDS: [&str; 8] = [
        "primary",
        "ghost empty",
        "forwarding stub",
        "ghost data",
        "forwarded",
        "ghost forwarded",
        "index",
        "ghost index",
    ];
    let kind = KINDS.get(usize::from(byte >> 2 & 7)).copied().unwrap_or_default();
    let version = if byte & 0x02 != 0 { ", version tag" } else { "" };
    let long = if byte & 0x20 != 0 { ", long region" } else { "" };
    format!("0x{byte:02X} {kind}{version}{long}")
}

/// The numbers, counted from 1, of the columns with a set bit.
fn null_bits(bytes: &[u8]) -> String {
    let mut columns = (0..bytes.len() * 8)
        .filter(|bit| bytes.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0))
        .map(|bit| (bit + 1).to_string());
    let shown: Vec<String> = columns.by_ref().take(LIST_ITEMS).collect();
    match (shown.is_empty(), columns.count()) {
        (true, _) => "no NULL".to_owned(),
        (false, 0) => format!("NULL: {}", shown.join(" ")),
        (false, more) => format!("NULL: {} and {more} more", shown.join(" ")),
    }
}

/// The bytes as characters: as UTF-16 if they look like UTF-16 text, otherwise one character for each byte. An
/// unprintable character becomes a dot.
fn excerpt(bytes: &[u8]) -> String {
    let printable = |byte: &u8| (0x20..0x7F).contains(byte);
    let wide = bytes.len() >= 2
        && bytes.len().is_multiple_of(2)
        && bytes.iter().step_by(2).all(printable)
        && bytes.iter().skip(1).step_by(2).all(|byte| *byte == 0);
    let step = if wide { 2 } else { 1 };
    let mut text: String = bytes
        .iter()
        .step_by(step)
        .take(EXCERPT_CHARS)
        .map(|byte| if printable(byte) { char::from(*byte) } else { '.' })
        .collect();
    if bytes.len() / step > EXCERPT_CHARS {
        text.push_str("..");
    }
    text
}
