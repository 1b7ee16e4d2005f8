//! The boot page, (1:9): the properties of the database, and the page where its catalog starts
//! (docs/format/boot-and-file-headers.md#boot-page).

use crate::bytes::{array_at, u16_at, u32_at, utf16};
use crate::fields::{Structure, offset};
use crate::ids::{Lsn, PageId};
use crate::page::{Page, PageBytes};

/// The bits of dbi_status.
pub mod status {
    /// The database closes when its last user leaves.
    pub const AUTO_CLOSE: u32 = 0x1;
    /// The recovery model is bulk-logged.
    pub const BULK_LOGGED: u32 = 0x4;
    /// The recovery model is simple.
    pub const SIMPLE: u32 = 0x8;
    /// PAGE_VERIFY is TORN_PAGE_DETECTION.
    pub const TORN_PAGE: u32 = 0x10;
    /// The database is read-only.
    pub const READ_ONLY: u32 = 0x400;
    /// PAGE_VERIFY is CHECKSUM.
    pub const CHECKSUM: u32 = 0x10000;
    /// The database was shut down cleanly: the data files contain every change that the log contains.
    pub const CLEAN_SHUTDOWN: u32 = 0x4000_0000;
}

/// The record of the boot page.
#[derive(Clone, Copy)]
pub struct Boot<'a> {
    record: &'a [u8],
}

/// The offset of a field in the record.
const fn at(name: &str, bytes: u32) -> usize {
    offset(Structure::Boot, name, bytes)
}

/// The length in bytes of the shortest record that contains every field that this module reads. The record of SQL
/// Server 2005 has 732 bytes.
pub const MIN_RECORD_BYTES: usize = at("dbi_engineBuild", 4) + 4;

/// The first internal version with dbi_DirtyPageLSN in the boot page: SQL Server 2012.
const FIRST_WITH_DIRTY_PAGE_LSN: u16 = 706;

const NAME_BYTES: usize = 256;
const NAME_AT: usize = at("dbi_dbname", NAME_BYTES as u32);

/// Marks the database of this boot page as shut down cleanly: sets the clean shutdown bit, and stores `end` as the LSN
/// of the last checkpoint and of the start of redo. No page may have a higher LSN than `end`. Before the call, the bits
/// that torn-page protection replaced must be restored. After the call, the page must be sealed
/// ([`crate::protection::seal`]). Returns false if the boot record is missing or too short.
pub fn shut_down(page: &mut PageBytes, end: Lsn) -> bool {
    set(page, |status| status | status::CLEAN_SHUTDOWN, end, end)
}

/// Marks the database of this boot page as in use: clears the clean shutdown bit, and stores the LSNs of the last
/// checkpoint and of the start of redo. Versions before 2012 do not store the start of redo. Before the call, the bits
/// that torn-page protection replaced must be restored. After the call, the page must be sealed
/// ([`crate::protection::seal`]). Returns false if the boot record is missing or too short.
pub fn in_use(page: &mut PageBytes, checkpoint: Lsn, redo_from: Lsn) -> bool {
    set(page, |status| status & !status::CLEAN_SHUTDOWN, checkpoint, redo_from)
}

fn set(page: &mut PageBytes, status: impl FnOnce(u32) -> u32, checkpoint: Lsn, redo_from: Lsn) -> bool {
    let view = Page::new(page);
    let Some(boot) = Boot::read(view) else { return false };
    let Some(start) = view.slot_offset(0).map(usize::from) else { return false };
    let status = status(boot.status());
    let has_redo_start = boot.version() >= FIRST_WITH_DIRTY_PAGE_LSN;
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = page.get_mut(start + at..start + at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(const { at("dbi_status", 4) }, &status.to_le_bytes());
    put(const { at("dbi_checkptLSN", 10) }, &checkpoint.bytes());
    if has_redo_start {
        put(const { at("dbi_DirtyPageLSN", 10) }, &redo_from.bytes());
    }
    true
}

impl<'a> Boot<'a> {
    /// The record in slot 0 of the boot page; `None` if it is too short.
    pub fn read(page: Page<'a>) -> Option<Self> {
        let record = page.slot_bytes(0)?;
        (record.len() >= MIN_RECORD_BYTES && u16_at(record, const { at("length", 2) })? as usize >= MIN_RECORD_BYTES)
            .then_some(Self { record })
    }

    /// The internal version of the database, from a boot page of any release, including SQL Server 7 and 2000.
    pub fn version_of(page: Page<'_>) -> Option<u16> {
        u16_at(page.slot_bytes(0)?, const { at("dbi_version", 2) })
    }

    fn u16(&self, offset: usize) -> u16 {
        u16_at(self.record, offset).unwrap_or_default()
    }

    fn u32(&self, offset: usize) -> u32 {
        u32_at(self.record, offset).unwrap_or_default()
    }

    fn lsn(&self, offset: usize) -> Lsn {
        Lsn::read(self.record, offset).unwrap_or_default()
    }

    /// The datetime at `offset`: the time of day in ticks of 1/300 second, and the days since 1900-01-01.
    fn datetime(&self, offset: usize) -> (u32, i32) {
        (self.u32(offset), self.u32(offset + 4).cast_signed())
    }

    /// Internal version of the database.
    pub fn version(&self) -> u16 {
        self.u16(const { at("dbi_version", 2) })
    }

    /// The internal version with which the database was created.
    pub fn create_version(&self) -> u16 {
        self.u16(const { at("dbi_createVersion", 2) })
    }

    /// The bits of dbi_status; see [`status`].
    pub fn status(&self) -> u32 {
        self.u32(const { at("dbi_status", 4) })
    }

    /// The name of the database. Its length is stored in the boot page, because bytes of an earlier, longer name may
    /// follow the name. If the stored length is impossible, the name ends where its padding begins.
    pub fn name(&self) -> String {
        let length = self.u32(const { at("dbi_dbname length", 4) }) as usize;
        let is_length = length.is_multiple_of(2) && (2..=NAME_BYTES).contains(&length);
        let length = if is_length { length } else { NAME_BYTES };
        let text = utf16(self.record.get(NAME_AT..NAME_AT + length).unwrap_or_default());
        text.trim_end_matches(['\u{2020}', '\0', ' ']).to_owned()
    }

    /// The ID of the database on the server that wrote the file.
    pub fn database_id(&self) -> u16 {
        self.u16(const { at("dbi_dbid", 2) })
    }

    /// The compatibility level, 80 to 170.
    pub fn compatibility_level(&self) -> u16 {
        self.u16(const { at("dbi_cmptlevel", 2) })
    }

    /// The date on which the database was created or attached.
    pub fn created(&self) -> (u32, i32) {
        self.datetime(const { at("dbi_crdate", 8) })
    }

    /// The LSN of the last checkpoint. After a clean shutdown it is higher than the LSN of every page.
    pub fn checkpoint_lsn(&self) -> Lsn {
        self.lsn(const { at("dbi_checkptLSN", 10) })
    }

    /// The LSN up to which the last log backup reaches; zero if the log was never backed up.
    pub fn log_backup_lsn(&self) -> Lsn {
        self.lsn(const { at("dbi_logBackupLSN", 10) })
    }

    /// The LSN at which the chain of log backups starts; zero if no full backup has started a chain.
    pub fn log_backup_chain_origin(&self) -> Lsn {
        self.lsn(const { at("dbi_logBackupChainOrigin", 10) })
    }

    /// The LSN at which redo starts: the last checkpoint or an older LSN. Databases from 2012 on store the older LSN if
    /// the checkpoint left a page with earlier changes unwritten (docs/format/log.md#where-redo-starts).
    pub fn redo_lsn(&self) -> Lsn {
        let checkpoint = self.checkpoint_lsn();
        let oldest = self.lsn(const { at("dbi_DirtyPageLSN", 10) });
        let has_it = self.version() >= FIRST_WITH_DIRTY_PAGE_LSN && oldest != Lsn::default();
        if has_it { oldest.min(checkpoint) } else { checkpoint }
    }

    /// dbi_dbccFlags: 2 means that CHECKDB checks data purity by default.
    pub fn dbcc_flags(&self) -> u16 {
        self.u16(const { at("dbi_dbccFlags", 2) })
    }

    /// The ID of the default collation of the database.
    pub fn collation(&self) -> u32 {
        self.u32(const { at("dbi_collation", 4) })
    }

    /// The family GUID of the database.
    pub fn family_guid(&self) -> [u8; 16] {
        crate::bytes::array_at(self.record, const { at("dbi_familyGUID", 16) }).unwrap_or_default()
    }

    /// The first page of the clustered index of sysallocunits, where the catalog starts.
    pub fn first_sysallocunits(&self) -> PageId {
        PageId::read(self.record, const { at("dbi_firstSysIndexes", 6) }).unwrap_or_default()
    }

    /// The GUID of the last full backup, on which the differential maps are based; zeros if there is none.
    pub fn differential_base_guid(&self) -> [u8; 16] {
        array_at(self.record, const { at("dbi_differentialBaseGuid", 16) }).unwrap_or_default()
    }

    /// The time of the last DBCC CHECKDB without errors. The offset of the field is inferred
    /// (docs/format/boot-and-file-headers.md#boot-page).
    pub fn last_known_good(&self) -> (u32, i32) {
        self.datetime(const { at("dbi_dbccLastKnownGood", 8) })
    }

    /// The time of the last manual update of system tables. The offset of the field is inferred
    /// (docs/format/boot-and-file-headers.md#boot-page).
    pub fn catalog_updated(&self) -> (u32, i32) {
        self.datetime(const { at("dbi_updSysCatalog", 8) })
    }

    /// The time at which the boot page was last modified.
    pub fn modified(&self) -> (u32, i32) {
        self.datetime(const { at("dbi_modDate", 8) })
    }

    /// The target recovery time in seconds of indirect checkpoints; `None` if checkpoints are automatic.
    pub fn target_recovery_seconds(&self) -> Option<u32> {
        const FIRST_VERSION: u16 = 706;
        let seconds = self.u32(const { at("dbi_targetRecoveryTime", 4) });
        (self.version() >= FIRST_VERSION && seconds > 0).then_some(seconds)
    }

    /// The build of the engine that last wrote the boot page: major version, minor version, build number.
    pub fn engine_build(&self) -> (u8, u8, u16) {
        let build = self.u32(const { at("dbi_engineBuild", 4) });
        ((build >> 24) as u8, (build >> 16) as u8, build as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(place: &str, length: u32) -> String {
        let mut record = vec![0; MIN_RECORD_BYTES];
        record[NAME_AT..NAME_AT + NAME_BYTES].fill(0x20);
        for (at, unit) in place.encode_utf16().enumerate() {
            record[NAME_AT + 2 * at..][..2].copy_from_slice(&unit.to_le_bytes());
        }
        record[NAME_AT + NAME_BYTES..][..4].copy_from_slice(&length.to_le_bytes());
        Boot { record: &record }.name()
    }

    #[test]
    fn the_name_ends_where_its_length_says_and_else_with_its_padding() {
        // The end of an earlier, longer name follows the name, as in a backup of SQL Server 2025.
        assert_eq!(named("AdventureWorks202525", 36), "AdventureWorks2025");
        let longest = "x".repeat(128);
        assert_eq!(named(&longest, 256), longest);
        for no_length in [0, 7, 258, u32::MAX] {
            assert_eq!(named("orders", no_length), "orders");
        }
    }
}
