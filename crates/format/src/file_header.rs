//! The file header, page 0 of every file (docs/format/boot-and-file-headers.md#file-header).

use crate::bytes::{array_at, u16_at, u32_at, utf16};
use crate::fields::{self, Structure};
use crate::ids::Lsn;
use crate::page::Page;
use crate::record::Record;

/// The number of the variable column that contains a field.
const fn at(name: &str, bytes: u32) -> u16 {
    fields::column(Structure::FileHeader, name, bytes)
}

/// The record of a file header page. All its columns are variable; newer releases have more columns.
#[derive(Clone, Copy)]
pub struct FileHeader<'a> {
    record: Record<'a>,
}

impl<'a> FileHeader<'a> {
    /// Reads the record in slot 0, which does not always start at offset 96. `None` if the record is incomplete.
    pub fn read(page: Page<'a>) -> Option<Self> {
        let record = Record::data(page.slot_bytes(0)?).ok()?;
        (record.variable_count() >= 6).then_some(Self { record })
    }

    /// Bytes of variable column `position`, counted from 0.
    fn column(&self, position: u16) -> &'a [u8] {
        self.record.variable(position + 1).map_or(&[], |(bytes, _)| bytes)
    }

    /// The GUID that identifies the database of the file.
    pub fn binding_guid(&self) -> [u8; 16] {
        array_at(self.column(const { at("BindingID", 16) }), 0).unwrap_or_default()
    }

    /// The file ID: 1 for the primary data file, usually 2 for the log.
    pub fn file_id(&self) -> u16 {
        u16_at(self.column(const { at("FileId", 2) }), 0).unwrap_or_default()
    }

    /// The filegroup of the file; 0 for log files.
    pub fn filegroup(&self) -> u16 {
        u16_at(self.column(const { at("FileGroupId", 2) }), 0).unwrap_or_default()
    }

    /// Size in pages: the file's length divided by 8192.
    pub fn size_pages(&self) -> u32 {
        u32_at(self.column(const { at("Size", 4) }), 0).unwrap_or_default()
    }

    /// The largest size in pages to which the file may grow; `u32::MAX` if it has no limit.
    pub fn max_size_pages(&self) -> u32 {
        u32_at(self.column(const { at("MaxSize", 4) }), 0).unwrap_or_default()
    }

    /// The growth increment, in pages or in percent.
    pub fn growth(&self) -> u32 {
        u32_at(self.column(const { at("Growth", 4) }), 0).unwrap_or_default()
    }

    /// The sector size of the disk in bytes: 512 or 4096.
    pub fn sector_bytes(&self) -> u32 {
        u32_at(self.column(const { at("SectorSize", 4) }), 0).unwrap_or_default()
    }

    /// The LSN of the file's differential base: the differential map marks the extents that changed after it.
    pub fn differential_base_lsn(&self) -> Lsn {
        Lsn::read(self.column(const { at("BackupLSN", 10) }), 0).unwrap_or_default()
    }

    /// The GUID of the full backup that is the file's differential base; zeros if there is none.
    pub fn differential_base_guid(&self) -> [u8; 16] {
        array_at(self.column(const { at("DifferentialBaseGuid", 16) }), 0).unwrap_or_default()
    }

    /// Whether the file is flagged as sparse. The status has the same bits as `sysfiles.status`.
    pub fn is_sparse(&self) -> bool {
        const SPARSE: u32 = 0x1000_0000;
        u32_at(self.column(const { at("Status", 4) }), 0).unwrap_or_default() & SPARSE != 0
    }

    /// The GUID that identifies the file; zeros in files that SQL Server 2000 created.
    pub fn file_guid(&self) -> [u8; 16] {
        array_at(self.column(const { at("FileGuid", 16) }), 0).unwrap_or_default()
    }

    /// The logical name of the file.
    pub fn logical_name(&self) -> String {
        utf16(self.column(const { at("LogicalName", 0) })).trim_end_matches(['\0', ' ']).to_owned()
    }
}
