//! Writes the boot page and the file header pages, which describe the database and its files.

use crate::description::Description;
use crate::disk::{Disk, LabError, file_id};
use crate::ids::{PAGE, PageId, UnitId};
use crate::page::{Lsn, Page, PageVerify, page_type};
use crate::random::mix;
use crate::version::Version;

/// Bit of dbi_status: simple recovery model. `TORN` (torn-page protection), `CHECKSUM` (page checksums) and `CLEAN`
/// (clean shutdown) are further bits of dbi_status.
const SIMPLE: u32 = 0x8;
const TORN: u32 = 0x10;
const CHECKSUM: u32 = 0x1_0000;
pub(crate) const CLEAN: u32 = 0x4000_0000;

/// The offset of dbi_status in the record on the boot page. `CHECKPOINT_LSN` is the offset of another field in this
/// record.
pub(crate) const STATUS: usize = 0x24;
pub(crate) const CHECKPOINT_LSN: usize = 0x15C;
/// The offset of the LSN at which redo starts, in the record on the boot page. The field exists since version
/// [`FIRST_WITH_REDO_LSN`].
pub(crate) const REDO_LSN: usize = 0x174;
/// The internal version of SQL Server 2012.
pub(crate) const FIRST_WITH_REDO_LSN: u16 = 706;

/// 2024-01-02 10:00 as a datetime: the time when every database of the lab was created.
pub(crate) const CREATED: [u8; 8] = [0xC0, 0xCB, 0xA4, 0x00, 0xEB, 0xB0, 0x00, 0x00];

/// A GUID that depends only on the seed and the number.
pub(crate) fn guid(seed: u64, number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mix(seed ^ mix(number)).to_le_bytes());
    bytes[8..].copy_from_slice(&mix(seed ^ mix(number + 1000)).to_le_bytes());
    // Marks the GUID as version 4, like the GUIDs of newid().
    bytes[7] = bytes[7] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

/// The GUID of the file at this position.
pub(crate) fn file_guid(seed: u64, index: usize) -> [u8; 16] {
    guid(seed, 100 + index as u64)
}

/// File growth in pages: 64 MB from SQL Server 2016 on, 1 MB before.
pub(crate) fn growth(version: Version) -> u32 {
    if version >= Version::V852 { 8192 } else { 128 }
}

/// The fields of the boot page that depend on the database's content.
pub(crate) struct Boot {
    /// First leaf page of sysallocunits.
    pub first_units: PageId,
    /// LSN of the last checkpoint. It is greater than the LSN of every page.
    pub checkpoint: Lsn,
    /// Sequence number of the next allocation unit.
    pub next_unit: u64,
    /// The object ID that was assigned last.
    pub last_object: i32,
}

/// Writes the boot page.
pub(crate) fn write_boot(disk: &mut Disk, description: &Description, boot: &Boot) -> Result<(), LabError> {
    let facts = description.version.facts();
    let mut record = vec![0u8; usize::from(facts.boot_length)];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = record.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    let verify = match description.verify {
        PageVerify::None => 0,
        PageVerify::Torn => TORN,
        PageVerify::Checksum => CHECKSUM,
    };
    let checkpoint = boot.checkpoint.bytes();
    put(0x02, &facts.boot_length.to_le_bytes());
    put(0x04, &facts.number.to_le_bytes());
    put(0x06, &facts.number.to_le_bytes());
    put(STATUS, &(SIMPLE | CLEAN | verify).to_le_bytes());
    put(0x28, &boot.last_object.to_le_bytes());
    put(0x2C, &CREATED);
    put(0x34, &[0x20; 256]);
    let name: Vec<u8> = description.name.encode_utf16().take(128).flat_map(u16::to_le_bytes).collect();
    put(0x34, &name);
    put(0x134, &(name.len() as u32).to_le_bytes());
    put(0x138, &7u16.to_le_bytes());
    put(0x13A, &facts.compatibility.to_le_bytes());
    put(0x13C, &2000u64.to_le_bytes());
    put(CHECKPOINT_LSN, &checkpoint);
    put(0x166, &2u16.to_le_bytes());
    if facts.number >= FIRST_WITH_REDO_LSN {
        put(REDO_LSN, &checkpoint);
    }
    put(0x188, &description.collation.to_le_bytes());
    put(0x190, &0x6100_0000u32.to_le_bytes());
    put(0x198, &guid(description.seed, 1));
    // In a database that was never restored, the recovery fork GUID is the same as the family GUID.
    put(0x1C8, &guid(description.seed, 1));
    put(0x204, &boot.first_units.bytes());
    put(0x20A, &facts.model_version.to_le_bytes());
    put(0x2A4, &CREATED);
    let (major, minor, build) = facts.build;
    put(0x2AC, &[build.to_le_bytes()[0], build.to_le_bytes()[1], minor, major]);
    put(0x2B4, &guid(description.seed, 3));
    put(0x2E0, &(0x100 << 32 | boot.next_unit).to_le_bytes());
    let mut page = Page::new(page_type::BOOT, 0, UnitId::FIXED_PAGES, 0);
    page.push(&record);
    disk.write(&mut page, PageId::new(1, 9), Default::default())
}

/// Writes the header page of the file at this position.
pub(crate) fn write_header(
    disk: &mut Disk,
    description: &Description,
    (index, group): (usize, u16),
    name: &str,
    pages: u32,
) -> Result<(), LabError> {
    let record = header_record(description, (file_id(index), group), name, pages, file_guid(description.seed, index));
    let mut page = Page::new(page_type::FILE_HEADER, 0, UnitId::FIXED_PAGES, 0);
    page.push(&record);
    disk.write(&mut page, PageId::new(file_id(index), 0), Default::default())
}

/// Returns the part of a log file's name that follows the database name. `number` is 0 for the first log file.
pub(crate) fn log_suffix(number: u16) -> String {
    if number == 0 { "_log".to_owned() } else { format!("_log{}", number + 1) }
}

/// Returns the file ID of a log file. The first log file has ID 2; the IDs of further log files follow those of the
/// data files.
pub(crate) fn log_file_id(number: u16, data_files: usize) -> u16 {
    if number == 0 { LOG_FILE } else { file_id(data_files + usize::from(number) - 1) }
}

pub(crate) fn log_file_guid(seed: u64, number: u16) -> [u8; 16] {
    guid(seed, if number == 0 { LOG_GUID } else { 0x5000 + u64::from(number) })
}

/// The header page of a log file with a size of `bytes` bytes.
pub(crate) fn log_header(description: &Description, (number, data_files): (u16, usize), bytes: u64) -> [u8; PAGE] {
    let name = format!("{}{}", description.name, log_suffix(number));
    let own_guid = log_file_guid(description.seed, number);
    let id = log_file_id(number, data_files);
    let record = header_record(description, (id, 0), &name, (bytes / PAGE as u64) as u32, own_guid);
    let mut page = Page::new(page_type::FILE_HEADER, 0, UnitId::FIXED_PAGES, 0);
    page.push(&record);
    *page.finish(PageId::new(id, 0), Default::default(), Lsn::default(), description.verify)
}

/// `LOG_FILE` is the file ID of the first log file, and `LOG_GUID` is the number from which its GUID is made.
const LOG_FILE: u16 = 2;
const LOG_GUID: u64 = 99;

/// The record on the header page of the file with this ID and filegroup.
fn header_record(
    description: &Description,
    (file, group): (u16, u16),
    name: &str,
    pages: u32,
    own_guid: [u8; 16],
) -> Vec<u8> {
    let (columns, variables) = description.version.facts().header_columns;
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut record = vec![0x30, 0, 8, 0, 0, 0, 0, 0];
    record.extend(columns.to_le_bytes());
    record.extend(vec![0; usize::from(columns).div_ceil(8)]);
    let values: Vec<Vec<u8>> = (0..variables)
        .map(|at| match at {
            0 => guid(description.seed, 1).to_vec(),
            2 => file.to_le_bytes().to_vec(),
            3 => group.to_le_bytes().to_vec(),
            4 | 12 => pages.to_le_bytes().to_vec(),
            5 => u32::MAX.to_le_bytes().to_vec(),
            6 => growth(description.version).to_le_bytes().to_vec(),
            7 | 13 | 24 | 50..=52 | 55..=58 => vec![0; 4],
            14 => u32::MAX.to_le_bytes().to_vec(),
            15 => 512u32.to_le_bytes().to_vec(),
            8..=10 | 16 | 18..=20 | 22 | 25 | 38 | 39 | 41 | 49 | 54 => vec![0; 10],
            17 | 40 | 43 => vec![0; 28],
            21 | 28 | 35 | 42 => vec![0; 16],
            23 => own_guid.to_vec(),
            27 => name.clone(),
            44 | 53 => vec![0; 8],
            45 => vec![0; 600],
            48 => 1u16.to_le_bytes().to_vec(),
            _ => Vec::new(),
        })
        .collect();
    record.extend((variables as u16).to_le_bytes());
    let mut end = record.len() + 2 * variables;
    for value in &values {
        end += value.len();
        record.extend((end as u16).to_le_bytes());
    }
    record.extend(values.concat());
    record
}
