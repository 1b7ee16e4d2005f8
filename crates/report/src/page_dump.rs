//! One page, field by field: what DBCC PAGE shows, with names, places and raw bytes.
//!
//! Driven by the catalog of fields ([`format::fields`]). Every byte of a record is shown: bytes that no field describes
//! are shown raw. Only the page's protection is verified, and whether each record can be parsed.

mod allocation;
mod header;
mod json;
mod lines;
mod maps;
mod parsed;
mod protection;
mod records;
mod rows;
mod slots;

use std::io;

use format::fields::Structure;
use format::page::HEADER_BYTES;
use format::{PageBytes, PageId, PageType};

pub use self::allocation::Allocation;
use self::parsed::Parsed;
pub use self::records::{ColumnValue, Columns};
use crate::json::lines::Line;
use crate::json::page;

/// A page to be shown, and what is known about it.
#[derive(Clone, Copy)]
pub struct PageDump<'a> {
    /// Its address.
    pub at: PageId,
    /// Its bytes as read, protection in place.
    pub bytes: &'a PageBytes,
    /// What the allocation maps say.
    pub allocation: Option<&'a Allocation>,
    /// Whether an index page is a leaf; if unknown, level 0 counts as leaf.
    pub leaf: Option<bool>,
    /// Column values by name.
    pub columns: Option<&'a Columns<'a>>,
}

impl<'a> PageDump<'a> {
    /// The page `bytes` read at `at`, with nothing else known.
    pub fn new(at: PageId, bytes: &'a PageBytes) -> Self {
        Self { at, bytes, allocation: None, leaf: None, columns: None }
    }

    /// The page as text.
    pub fn text(&self) -> String {
        let parsed = self.parsed();
        let mut out = String::new();
        header::write_title(&mut out, &parsed, self.at);
        protection::write(&mut out, self.bytes);
        header::write_owner(&mut out, &parsed, self.allocation);
        header::write_fields(&mut out, &parsed);
        if parsed.view().header().is_encrypted() {
            out.push_str("\nEncrypted (TDE): bytes 96 to 8191 are ciphertext, which only the key's owner can read.\n");
            return out;
        }
        slots::write(&mut out, &parsed);
        for record in records::of(&parsed, self.columns) {
            records::write(&mut out, &parsed, &record);
        }
        maps::write(&mut out, &parsed, self.at);
        out
    }

    /// Writes the page as one JSON object.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let parsed = self.parsed();
        let header = parsed.view().header();
        let records = records::of(&parsed, self.columns).map(|record| json::record(&parsed, record));
        let line = Line::Page(page::Page {
            page: self.at.to_string(),
            file: self.at.file,
            number: self.at.page,
            file_offset: header::file_offset(self.at),
            page_type: header.page_type,
            type_name: parsed.kind().map(PageType::name),
            alloc_unit_id: header.alloc_unit().to_string(),
            protection: json::protection(self.bytes),
            encrypted: header.is_encrypted(),
            allocation: self.allocation.map(json::allocation),
            header: json::fields(&parsed, Structure::PageHeader, 0),
            compression_information: json::fields(&parsed, Structure::CompressionInfo, HEADER_BYTES),
            slots: slots::offsets(&parsed).collect(),
            records: records.collect(),
            map: if header.is_encrypted() { Vec::new() } else { json::map(&parsed, self.at) },
        });
        crate::json::line(&line, out)
    }

    /// All bytes of the page as read, 16 per line with offsets and characters.
    pub fn raw(&self) -> String {
        lines::hex_page(self.bytes)
    }

    fn parsed(&self) -> Parsed {
        Parsed::new(self.bytes, self.leaf)
    }
}

#[cfg(test)]
mod tests;
