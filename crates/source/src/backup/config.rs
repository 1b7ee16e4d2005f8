//! Configuration objects: the description of a backup set's database, files and filegroups
//! (docs/format/backups.md#configuration).

use std::io;

use format::Lsn;
use format::bytes::{array_at, u16_at, u32_at, u64_at, utf16};

use super::room::{MOST_FILES, MOST_OBJECTS, Room, at_most};

/// Total length in bytes of the tag and the length field with which an object begins.
const HEAD_BYTES: usize = 8;
/// The most bytes to read of one object: its fields, and three texts of at most 64 KB.
const MAX_OBJECT_BYTES: u64 = 256 << 10;
/// The text in the error message when the lists of files and filegroups exceed the memory limit.
const FILES: &str = "the names of its files";

/// A date in the server's local time, without a time zone. The bits are: year 14, month 4, day 5, hour 5, minute 6,
/// second 6.
pub(crate) fn date(bytes: &[u8], at: usize) -> Option<String> {
    let raw = array_at::<5>(bytes, at)?.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let field = |shift: u32, bits: u32| raw >> shift & ((1 << bits) - 1);
    let (year, month, day) = (field(26, 14), field(22, 4), field(17, 5));
    let (hour, minute, second) = (field(12, 5), field(6, 6), field(0, 6));
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    is_date.then(|| format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"))
}

/// A GUID in SQL Server's notation; `None` if all bytes are zero.
pub(crate) fn guid(bytes: &[u8], at: usize) -> Option<String> {
    let raw = array_at::<16>(bytes, at).filter(|raw| raw.iter().any(|&byte| byte != 0))?;
    let mut text = String::with_capacity(36);
    for (place, &from) in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02X}", raw.get(from)?));
    }
    Some(text)
}

/// The LSN at offset `at`; `None` if it is zero.
fn lsn(bytes: &[u8], at: usize) -> Option<Lsn> {
    Lsn::read(bytes, at).filter(|&lsn| lsn != Lsn::default())
}

/// The text whose length and offset are stored at offset `at` of an object.
fn text(object: &[u8], at: usize) -> String {
    let place = |at| u16_at(object, at).map(usize::from);
    let (Some(length), Some(offset)) = (place(at), place(at + 2)) else { return String::new() };
    utf16(object.get(offset..).and_then(|rest| rest.get(..length)).unwrap_or_default())
}

/// The bits of a backup set's flags.
pub(crate) mod set_flags {
    /// WITH CHECKSUM.
    pub(crate) const CHECKSUM: u32 = 0x10;
    /// WITH COPY_ONLY.
    pub(crate) const COPY_ONLY: u32 = 0x400;
    /// The flags that the BACKUP statement sets. The server sets further flags while the backup runs: 0x20 means that
    /// it found damage and continued (see the column Flags of RESTORE HEADERONLY).
    pub(crate) const OF_STATEMENT: u32 = CHECKSUM | COPY_ONLY;
}

/// The configuration object SCIN, with the properties of the backup set as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SetConfig {
    pub(crate) flags: u32,
    /// The start of the log that a restore of this set needs.
    pub first_lsn: Option<Lsn>,
    /// The first LSN after the log in the backup.
    pub last_lsn: Option<Lsn>,
    /// The LSN of the checkpoint that the backup made. Differential backups are based on the checkpoint of their full
    /// backup.
    pub checkpoint_lsn: Option<Lsn>,
    /// The checkpoint LSN of the latest full backup before this backup.
    pub database_backup_lsn: Option<Lsn>,
    /// When the database was created.
    pub database_created: Option<String>,
    /// When the backup started.
    pub started: Option<String>,
    /// When the backup finished.
    pub finished: Option<String>,
    pub(crate) type_letter: u8,
    /// Compatibility level of the database.
    pub compatibility_level: u8,
    /// Internal version number of the database.
    pub version: u16,
    /// Uncompressed size of the backup in bytes.
    pub bytes: u64,
    /// Name of the database.
    pub database: String,
    /// Name of the server.
    pub server: String,
    /// Locale ID.
    pub locale: u16,
    /// The binding ID of the database (RESTORE HEADERONLY, BindingID).
    pub binding_id: Option<String>,
    /// The binding ID in the format in which the database's files store it; zeros if there is no binding ID.
    pub binding_guid: [u8; 16],
    /// The ID of the database's recovery fork.
    pub recovery_fork_id: Option<String>,
    /// The LSN at which this recovery fork began, that is the LSN to which the database was restored. `None` if the
    /// database was never restored to an earlier point.
    pub fork_point_lsn: Option<Lsn>,
    /// The ID of the recovery fork before this one.
    pub earlier_fork_id: Option<String>,
    /// The GUID of the full backup on which a differential backup is based.
    pub differential_base_guid: Option<String>,
    /// The family ID of the database. It never changes, even if the database is restored under another name.
    pub family_id: Option<String>,
}

impl SetConfig {
    /// The ID that identifies the database: the family ID, which stays the same after a restore. If the family ID is
    /// unknown, this is the binding ID, which a restore changes. `None` if neither ID is known.
    pub(super) fn lasting_id(&self) -> Option<&str> {
        self.family_id.as_deref().or(self.binding_id.as_deref())
    }

    /// Whether `self` and `other` come from one database that was neither restored nor upgraded between the two
    /// backups.
    pub(super) fn is_of_same_database(&self, other: &Self) -> bool {
        let ids = |config: &Self| (config.family_id.clone(), config.binding_id.clone(), config.version);
        self.database == other.database && ids(self) == ids(other)
    }

    fn read(object: &[u8]) -> Self {
        let u8_at = |at: usize| object.get(at).copied().unwrap_or_default();
        Self {
            flags: u32_at(object, 0x08).unwrap_or_default(),
            first_lsn: lsn(object, 0x20),
            last_lsn: lsn(object, 0x2A),
            checkpoint_lsn: lsn(object, 0x34),
            database_backup_lsn: lsn(object, 0x3E),
            database_created: date(object, 0x48),
            started: date(object, 0x4D),
            finished: date(object, 0x52),
            type_letter: u8_at(0x57),
            compatibility_level: u8_at(0x5B),
            version: u16_at(object, 0x5E).unwrap_or_default(),
            bytes: u64_at(object, 0x60).unwrap_or_default(),
            database: text(object, 0x68),
            server: text(object, 0x6C),
            locale: u16_at(object, 0x74).unwrap_or_default(),
            binding_id: guid(object, 0x7C),
            binding_guid: array_at::<16>(object, 0x7C).unwrap_or_default(),
            recovery_fork_id: guid(object, 0x9C),
            fork_point_lsn: lsn(object, 0xAC),
            earlier_fork_id: guid(object, 0xB8),
            differential_base_guid: guid(object, 0xC8),
            family_id: guid(object, 0xE0),
        }
    }
}

/// The configuration object SFIN, which describes a file of the database.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackupFile {
    /// File ID.
    pub file_id: u16,
    /// Whether the file is a data file (.mdf, .ndf).
    pub is_data: bool,
    /// Whether the file is a log file.
    pub is_log: bool,
    /// Number of pages copied, over all stripes.
    pub pages_copied: u32,
    /// ID of the filegroup.
    pub filegroup: u16,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Logical name of the file.
    pub logical_name: String,
    /// Path of the file on the server.
    pub physical_name: String,
    /// The LSN of the checkpoint on which a differential backup is based. The differential backup contains the changes
    /// after this checkpoint.
    pub differential_base_lsn: Option<Lsn>,
}

impl BackupFile {
    fn read(object: &[u8]) -> Self {
        Self {
            file_id: u16_at(object, 0x14).unwrap_or_default(),
            is_data: u16_at(object, 0x1C) == Some(1),
            is_log: u16_at(object, 0x1C) == Some(2),
            pages_copied: u32_at(object, 0x18).unwrap_or_default(),
            filegroup: u16_at(object, 0x24).unwrap_or_default(),
            bytes: u64_at(object, 0x28).unwrap_or_default(),
            logical_name: text(object, 0x30),
            physical_name: text(object, 0x34),
            differential_base_lsn: lsn(object, 0x9E),
        }
    }
}

/// The configuration object SFGI, which describes a filegroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupFilegroup {
    /// ID of the filegroup.
    pub id: u16,
    /// Name of the filegroup.
    pub name: String,
}

/// All configuration objects of one stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Configuration {
    pub(crate) set: SetConfig,
    pub(crate) files: Vec<BackupFile>,
    pub(crate) filegroups: Vec<BackupFilegroup>,
}

impl Configuration {
    /// Reads the configuration objects, which have a total length of `length` bytes. `read` fetches bytes at an offset
    /// from the start of the first object; `at` is the tape offset of the first object. `None` if no object describes a
    /// backup set.
    pub(super) fn read_from(
        length: u64,
        read: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
        at: u64,
        room: &Room,
    ) -> io::Result<Option<Self>> {
        let mut found = Self::default();
        let (mut has_set, mut objects, mut next) = (false, 0, 0);
        let mut bytes = Vec::new();
        // Each object consists of a tag, a length and fields. Offsets stored in an object are relative to its tag.
        while next < length {
            let mut head = [0; HEAD_BYTES];
            let is_head = read(next, &mut head)? == HEAD_BYTES;
            let size = u32_at(&head, 4).map_or(0, u64::from);
            if !is_head || size < HEAD_BYTES as u64 || size > length - next {
                break;
            }
            objects += 1;
            at_most(MOST_OBJECTS, objects, "objects in a configuration", at)?;
            let tag = head.first_chunk::<4>();
            if let Some(tag @ (b"SCIN" | b"SFIN" | b"SFGI")) = tag {
                // Each text of an object has at most 64 KB.
                bytes.resize(size.min(MAX_OBJECT_BYTES) as usize, 0);
                let got = read(next, &mut bytes)?;
                bytes.truncate(got);
                if (bytes.len() as u64) < size.min(MAX_OBJECT_BYTES) {
                    break;
                }
                match tag {
                    b"SCIN" => (found.set, has_set) = (SetConfig::read(&bytes), true),
                    b"SFIN" => {
                        let file = BackupFile::read(&bytes);
                        at_most(MOST_FILES, found.files.len() + 1, "files in a configuration", at)?;
                        let texts = file.logical_name.len() + file.physical_name.len();
                        room.take(size_of::<BackupFile>() * 3 / 2 + texts, FILES)?;
                        found.files.push(file);
                    }
                    _ => {
                        let group =
                            BackupFilegroup { id: u16_at(&bytes, 0x0C).unwrap_or_default(), name: text(&bytes, 0x10) };
                        at_most(MOST_FILES, found.filegroups.len() + 1, "filegroups in a configuration", at)?;
                        room.take(size_of::<BackupFilegroup>() * 3 / 2 + group.name.len(), FILES)?;
                        found.filegroups.push(group);
                    }
                }
            }
            next += size;
        }
        Ok(has_set.then_some(found))
    }

    /// Whether all names and IDs are equal in both configurations. A backup stores its configuration at its start and
    /// at its end. Only the compatibility level may change while the backup runs.
    pub(crate) fn has_same_constants(&self, other: &Self) -> bool {
        let names = |set: &SetConfig| {
            let numbers = (set.flags & set_flags::OF_STATEMENT, set.type_letter, set.version, set.locale);
            let ids = (set.binding_id.clone(), set.recovery_fork_id.clone());
            (numbers, ids, set.database.clone(), set.server.clone())
        };
        let is_same = |(file, other): (&BackupFile, &BackupFile)| {
            (file.file_id, file.is_data, file.is_log, file.filegroup)
                == (other.file_id, other.is_data, other.is_log, other.filegroup)
                && file.logical_name == other.logical_name
                && file.physical_name == other.physical_name
        };
        names(&self.set) == names(&other.set)
            && self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(is_same)
            && self.filegroups == other.filegroups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_guids_as_servers_print_them() {
        assert_eq!(date(&[0x1F, 0xA5, 0x84, 0x8E, 0x96], 0).as_deref(), Some("2025-06-02 08:58:22"));
        assert_eq!(date(&[0; 5], 0), None);
        let raw = [0xF7, 0x0E, 0x9C, 0xF6, 0x71, 0x12, 0x34, 0x45, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(guid(&raw, 0).as_deref(), Some("F69C0EF7-1271-4534-0102-030405060708"));
        assert_eq!(guid(&[0; 16], 0), None);
    }

    #[test]
    fn what_may_change_while_a_backup_runs_is_no_constant() {
        let first = Configuration::default();
        let with = |change: fn(&mut SetConfig)| {
            let mut last = first.clone();
            change(&mut last.set);
            last.has_same_constants(&first)
        };
        assert!(with(|set| set.flags |= 0x20), "WITH CONTINUE_AFTER_ERROR, and an error");
        assert!(with(|set| set.compatibility_level = 160));
        assert!(!with(|set| set.flags |= set_flags::CHECKSUM));
        assert!(!with(|set| set.database.push('2')));
    }

    /// Reads the configuration in `bytes` with a memory limit of `granted` bytes.
    fn read_with(bytes: &[u8], granted: Option<u64>) -> io::Result<Option<Configuration>> {
        let read = |at: u64, buffer: &mut [u8]| {
            let rest = bytes.get(at as usize..).unwrap_or_default();
            let taken = rest.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&rest[..taken]);
            Ok(taken)
        };
        Configuration::read_from(bytes.len() as u64, read, 0, &Room::new(granted, bytes.len() as u64))
    }

    fn read(bytes: &[u8]) -> Option<Configuration> {
        read_with(bytes, None).unwrap()
    }

    #[test]
    fn lying_lengths_end_the_list() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(b"SCIN\0\0\0\0"), None);
        assert_eq!(read(b"SCIN\xFF\xFF\xFF\xFF"), None);
        let mut twice = b"SCIN\x08\0\0\0".to_vec();
        twice.extend(b"SFIN\xFF\0\0\0");
        assert_eq!(read(&twice).map(|found| found.files.len()), Some(0));
    }

    #[test]
    fn more_files_than_a_database_can_have_are_refused() {
        let object = |tag: &[u8; 4]| [&tag[..], &[8, 0, 0, 0]].concat();
        let with = |tag: &[u8; 4], count: usize| [object(b"SCIN"), object(tag).repeat(count)].concat();
        assert_eq!(read(&with(b"SFIN", MOST_FILES)).unwrap().files.len(), MOST_FILES);
        for (tag, count) in [(b"SFIN", MOST_FILES + 1), (b"SFGI", MOST_FILES + 1), (b"NONE", MOST_OBJECTS)] {
            let refused = read_with(&with(tag, count), None).unwrap_err();
            assert!(refused.to_string().starts_with("more than"), "{refused}");
        }
        let refused = read_with(&with(b"SFIN", MOST_FILES), Some(crate::PROGRAM_BYTES + (1 << 20))).unwrap_err();
        assert!(refused.to_string().starts_with("no room"), "{refused}");
    }
}
