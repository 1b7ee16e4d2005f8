//! One page, field by field, like the output of DBCC PAGE, with names, offsets and raw bytes.
//!
//! The catalog of fields ([`format::fields`]) determines the output. Every byte of a record is shown; bytes that no
//! field describes are shown raw. Only two things are verified: the page's protection, and whether each record can be
//! parsed.

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
mod tableresults;

use std::io;

use format::fields::Structure;
use format::page::HEADER_BYTES;
use format::{Lsn, Page, PageBytes, PageId, PageType};

pub use self::allocation::Allocation;
use self::parsed::Parsed;
pub use self::records::Columns;
pub use self::tableresults::PageOwner;
pub use crate::columns::ColumnValue;
use crate::json::lines::Line;
use crate::json::page;
use crate::server_text::lsn_text;

/// A page to show, and the facts known about it.
#[derive(Clone, Copy)]
pub struct PageDump<'a> {
    /// The page's address.
    pub at: PageId,
    /// The bytes of the page as read from the file. Torn-page protection may have replaced some bits.
    pub bytes: &'a PageBytes,
    /// The states of the page in the allocation maps; `None` if these states are unknown.
    pub allocation: Option<&'a Allocation>,
    /// Whether the page is a leaf of its index; `None` if this is unknown. An index page of level 0 then counts as a
    /// leaf.
    pub leaf: Option<bool>,
    /// A function that decodes the columns of a record and returns them with their names; `None` if the columns are
    /// unknown.
    pub columns: Option<&'a Columns<'a>>,
}

/// The page as it would be after recovery.
#[derive(Clone, Copy)]
pub struct RecoveredDump<'a> {
    /// The page.
    pub dump: PageDump<'a>,
    /// Number of log records that recovery applied because the page lacked their changes.
    pub redone: u32,
    /// Number of changes of open transactions that recovery rolled back.
    pub undone: u32,
}

impl<'a> PageDump<'a> {
    /// A dump of the page `bytes`, which was read at the address `at`. Nothing else is known about the page.
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

    /// The page as text, followed by the page as it would be after recovery.
    pub fn text_with(&self, recovered: &RecoveredDump<'_>) -> String {
        let RecoveredDump { dump, redone, undone } = recovered;
        format!(
            "As stored, LSN {}. Recovered from the log, LSN {}: {redone} records redone, {undone} rolled back; see below.\n\n\
             {}\nRecovered\n\n{}",
            self.lsn(),
            dump.lsn(),
            self.text(),
            dump.text()
        )
    }

    /// Writes the page as one JSON object, with the page after recovery if recovery changes it.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_json(&self, recovered: Option<&RecoveredDump<'_>>, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = self.page_line();
        page.recovered = recovered.map(|RecoveredDump { dump, redone, undone }| {
            Box::new(page::Recovered {
                on_disk_lsn: lsn_text(self.lsn()),
                lsn: lsn_text(dump.lsn()),
                records_redone: *redone,
                records_undone: *undone,
                page: dump.page_line(),
            })
        });
        crate::json::line(&Line::Page(page), out)
    }

    /// Writes the page as rows of DBCC PAGE WITH TABLERESULTS.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_tableresults(&self, owner: Option<PageOwner>, out: &mut dyn io::Write) -> io::Result<()> {
        crate::dbcc_rows::write(tableresults::rows(self, owner), out)
    }

    fn lsn(&self) -> Lsn {
        Page::new(self.bytes).header().lsn()
    }

    fn page_line(&self) -> page::Page<'a> {
        let parsed = self.parsed();
        let header = parsed.view().header();
        let records = records::of(&parsed, self.columns).map(|record| json::record(&parsed, record));
        page::Page {
            v: crate::json::VERSION,
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
            recovered: None,
        }
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
