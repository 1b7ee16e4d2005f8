//! The configuration objects in which a backup set describes its database, filegroups and files.

use super::facts::{Facts, FileFacts};
use crate::bytes::put;
use crate::page::Lsn;

/// A date and time in five bytes: 14 bits for the year, 4 for the month, 5 for the day, 5 for the hour, 6 for the
/// minute and 6 for the second, from high to low.
pub(super) fn date((year, month, day): (u16, u8, u8), (hour, minute, second): (u8, u8, u8)) -> [u8; 5] {
    let fields =
        [(year, 14), (month.into(), 4), (day.into(), 5), (hour.into(), 5), (minute.into(), 6), (second.into(), 6)];
    let all = fields.iter().fold(0u64, |all, &(value, bits)| all << bits | u64::from(value));
    let [.., a, b, c, d, e] = all.to_be_bytes();
    [a, b, c, d, e]
}

/// Text as UTF-16LE.
pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A configuration object under construction: first its tag and length, then its fields, then its texts.
struct Object(Vec<u8>);

impl Object {
    fn new(tag: &[u8; 4], length: usize) -> Self {
        let mut bytes = vec![0; length];
        bytes[..4].copy_from_slice(tag);
        Self(bytes)
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        put(&mut self.0, at, value);
    }

    fn lsn(&mut self, at: usize, lsn: Lsn) {
        self.put(at, &lsn.bytes());
    }

    /// Appends a text, and writes its length and offset to the field at `at`.
    fn text(&mut self, at: usize, text: &str) {
        let (offset, bytes) = (self.0.len() as u16, utf16(text));
        self.put(at, &(bytes.len() as u16).to_le_bytes());
        self.put(at + 2, &offset.to_le_bytes());
        self.0.extend(bytes);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() as u32).to_le_bytes();
        self.put(4, &length);
        self.0
    }
}

/// The values that differ between the two configurations of a set: the one at its start and the one at its end.
pub(super) struct Moment {
    /// Whether this is the configuration at the end of the set, when the sizes and the finish time are known.
    pub(super) is_end: bool,
    /// The size of the set in bytes: at the start, the size of its pages and log; at the end, its size on the tape.
    pub(super) bytes: u64,
    /// Number of copied pages, by data file.
    pub(super) pages: Vec<u32>,
    /// Number of bytes of log.
    pub(super) log_bytes: u64,
}

/// All configuration objects of a set.
pub(super) fn configuration(facts: &Facts, moment: &Moment) -> Vec<u8> {
    let mut bytes = set(facts, moment);
    for (id, name) in &facts.filegroups {
        bytes.extend(filegroup(facts, *id, name));
    }
    for (number, file) in facts.files.iter().enumerate() {
        bytes.extend(self::file(facts, file, Some(number), moment));
    }
    for log in std::iter::once(&facts.log_file).chain(&facts.more_logs) {
        bytes.extend(self::file(facts, log, None, moment));
    }
    bytes
}

/// The lengths in bytes of the fixed fields in the configuration objects of a set, of a filegroup and of a file, for
/// databases of this internal version.
fn lengths(version: u16) -> (usize, usize, usize) {
    match version {
        ..655 => (0x158, 0x30, 0x190),
        655..700 => (0x16C, 0x30, 0x400),
        700.. => (0x190, 0xE0, 0x404),
    }
}

fn set(facts: &Facts, moment: &Moment) -> Vec<u8> {
    let mut object = Object::new(b"SCIN", lengths(facts.version).0);
    object.put(0x08, &facts.flags.to_le_bytes());
    object.put(0x0C, &[1, 0, 0, 0, 1, 0, 0, 0]);
    object.put(0x18, &facts.build);
    object.put(0x1C, &[if facts.version < 655 { 0 } else { 9 }]);
    object.lsn(0x20, facts.first_lsn);
    object.lsn(0x2A, facts.last_lsn);
    object.lsn(0x34, facts.checkpoint_lsn);
    object.lsn(0x3E, facts.full_backup_lsn);
    object.put(0x48, &facts.created);
    object.put(0x4D, &facts.started);
    if moment.is_end {
        object.put(0x52, &facts.finished);
    }
    object.put(0x57, &[facts.letter, facts.sort_order, 1, 0, facts.compatibility]);
    object.put(0x5E, &facts.version.to_le_bytes());
    object.put(0x60, &moment.bytes.to_le_bytes());
    object.put(0x74, &0x409u16.to_le_bytes());
    object.put(0x78, &[1, 0, 3, 0]);
    object.put(0x7C, &facts.binding);
    object.lsn(0x90, facts.last_lsn);
    object.put(0x9C, &facts.fork);
    object.lsn(0xAC, facts.earlier_fork.1);
    object.put(0xB8, &facts.earlier_fork.0);
    object.put(0xC8, &facts.base_set);
    let is_differential = facts.letter == b'I';
    object.put(0xD8, &facts.collation.to_le_bytes());
    object.put(0xDC, &u32::from(facts.sort_order).to_le_bytes());
    object.put(0xE0, &facts.family);
    object.put(0xF0, &[0, 0, 1, 0, u8::from(facts.stripes > 1), 0, 1, 0]);
    object.lsn(0xF8, facts.redo_lsn);
    if is_differential {
        object.lsn(0x104, facts.base_lsn);
    }
    if facts.version >= 700 && is_differential {
        object.put(0x110, &facts.base_set);
    }
    if facts.version >= 700 {
        object.lsn(0x14C, facts.redo_lsn);
        object.put(0x174, &[1]);
    }
    if facts.version >= 655 {
        object.put(0x158, &moment.bytes.to_le_bytes());
    }
    object.text(0x68, &facts.database);
    object.text(0x6C, &facts.server);
    object.finish()
}

fn filegroup(facts: &Facts, id: u16, name: &str) -> Vec<u8> {
    let mut object = Object::new(b"SFGI", lengths(facts.version).1);
    object.put(0x08, &0x10u32.to_le_bytes());
    object.put(0x0C, &u32::from(id).to_le_bytes());
    object.put(0x14, &1u32.to_le_bytes());
    if facts.version >= 700 {
        object.put(0x28, &[4]);
        object.lsn(0x34, facts.first_lsn);
        object.lsn(0x40, facts.last_lsn);
        object.lsn(0x4C, facts.checkpoint_lsn);
        object.lsn(0x64, facts.redo_lsn);
        object.lsn(0x70, facts.redo_lsn);
        object.lsn(0x80, facts.last_lsn);
        object.put(0x8C, &facts.fork);
    }
    object.text(0x10, name);
    object.finish()
}

/// Returns the configuration object for the data file with this position among the data files, or for a log file if
/// `number` is `None`.
fn file(facts: &Facts, file: &FileFacts, number: Option<usize>, moment: &Moment) -> Vec<u8> {
    /// Status bit: the file grows by a percentage.
    const PERCENT: u32 = 8;
    let mut object = Object::new(b"SFIN", lengths(facts.version).2);
    let is_data = number.is_some();
    let (pages, bytes) = match number {
        Some(number) => {
            let pages = moment.pages.get(number).copied().unwrap_or_default();
            (pages, u64::from(pages) * 8192)
        }
        None => ((moment.log_bytes / 8192) as u32, moment.log_bytes),
    };
    let is_full = facts.letter == b'D';
    let percent = if file.grows_by_percent { PERCENT } else { 0 };
    object.put(0x08, &(4 | percent | if is_data && is_full { 0x80u32 } else { 0 }).to_le_bytes());
    object.put(0x10, &0x2000u32.to_le_bytes());
    object.put(0x14, &file.id.to_le_bytes());
    object.put(0x1C, &if is_data { 1u32 } else { 2 }.to_le_bytes());
    object.put(0x20, &file.sector_bytes.to_le_bytes());
    object.put(0x24, &u32::from(file.filegroup).to_le_bytes());
    object.put(0x28, &file.bytes.to_le_bytes());
    object.put(0x56, &file.most_bytes.to_le_bytes());
    object.put(0x5E, &file.growth.to_le_bytes());
    object.put(0x72, &file.first_bytes.to_le_bytes());
    object.put(0x7A, &0x1FFF_FFFF_E000u64.to_le_bytes());
    object.put(0x82, &file.bytes.to_le_bytes());
    object.put(0xBA, &file.guid);
    object.lsn(0xCA, facts.first_lsn);
    object.lsn(0xDA, facts.last_lsn);
    object.lsn(0xEA, facts.checkpoint_lsn);
    if is_data {
        // A full backup that is not copy-only becomes the differential base. So the fields about the differential base
        // are set in the configuration at the end of the backup set.
        if is_full && moment.is_end && !facts.is_copy_only {
            object.lsn(0x9E, facts.checkpoint_lsn);
            object.put(0xAA, &facts.set);
            object.put(0x106, &facts.finished_at.to_le_bytes());
        } else {
            object.lsn(0x9E, facts.base_lsn);
            object.put(0xAA, &facts.base_set);
            object.put(0x106, &facts.base_at.to_le_bytes());
        }
    }
    if is_data || moment.is_end {
        object.put(0x18, &pages.to_le_bytes());
        object.put(0xFA, &bytes.to_le_bytes());
    }
    object.text(0x30, &file.logical_name);
    object.text(0x34, &file.path);
    object.finish()
}
