//! The page as a whole: its type, its owner, and its header.

use format::PageId;
use format::fields::Structure;
use format::page::{HEADER_BYTES, PAGE_BYTES};

use super::allocation::Allocation;
use super::lines::line;
use super::parsed::Parsed;
use super::rows;

/// Offset of the page in its file, in bytes.
pub(super) fn file_offset(at: PageId) -> u64 {
    u64::from(at.page) * PAGE_BYTES as u64
}

/// Writes the page's address and type.
pub(super) fn write_title(out: &mut String, parsed: &Parsed, at: PageId) {
    let header = parsed.view().header();
    let kind =
        parsed.kind().map_or_else(|| format!("unknown type {}", header.page_type), |kind| kind.name().to_owned());
    line(out, format_args!("Page {at}  {kind} page, file offset 0x{:X}", file_offset(at)));
    if header.page_id() != at {
        line(out, format_args!("  The header says it is page {}", header.page_id()));
    }
    out.push('\n');
}

/// Writes the page's owner, according to its header and to the allocation maps.
pub(super) fn write_owner(out: &mut String, parsed: &Parsed, allocation: Option<&Allocation>) {
    line(out, format_args!("Alloc unit      {}", parsed.view().header().alloc_unit()));
    if let Some(allocation) = allocation {
        if let Some(owner) = &allocation.owner {
            line(out, format_args!("Owner           {owner}"));
        }
        for (name, map, state) in allocation.states() {
            line(out, format_args!("{name:<15} {:<14} {state}", map.to_string()));
        }
    }
}

/// Writes the fields of the header, and of the compression information that may follow it.
pub(super) fn write_fields(out: &mut String, parsed: &Parsed) {
    let rows = |structure, start| -> Vec<_> {
        parsed.fields_of(structure).map(|found| rows::of_field(parsed, found, start)).collect()
    };
    out.push_str("\nHeader\n");
    rows::write(out, parsed, &rows(Structure::PageHeader, 0));
    let compression = rows(Structure::CompressionInfo, HEADER_BYTES);
    if !compression.is_empty() {
        out.push_str("\nCompression information\n");
        rows::write(out, parsed, &compression);
    }
}
