//! Writes a real backup again from its data files. The differences show which parts of SQL Server's output the lab
//! cannot explain.

#![expect(clippy::unwrap_used, reason = "an instrument of tests: a backup that cannot be read has no result")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::facts::FileFacts;
use super::{BackupOptions, Content, Facts, LARGE, Lsn, Prepared, SMALL, Set, write_stripe};
use crate::log::Part;

/// The fields in which differences are accepted, by block or configuration object, as offsets. Their meaning is
/// unknown, or they depend on the history of the database.
const UNEXPLAINED: [(&str, &[usize]); 6] = [
    // A checksum with an unknown algorithm, the size estimated at the start, fields about earlier restores of the
    // database, and flags.
    ("SCIN", &[0x14, 0x5C, 0x60, 0xF4, 0x14C, 0x150, 0x154, 0x158]),
    ("SCIN", &[0x130, 0x134, 0x138, 0x13C, 0x140, 0x144, 0x148]),
    (
        "SFGI",
        &[
            0x70, 0x74, 0x78, 0x8C, 0x90, 0x94, 0x98, 0x9C, 0xA0, 0xA4, 0xA8, 0xAC, 0xB0, 0xB4, 0xB8, 0xBC, 0xC0, 0xC4,
            0xC8, 0xCC, 0xD0,
        ],
    ),
    // Characters that appear to be leftovers of earlier contents.
    ("SFIN", &[0x400]),
    // Possibly the difference in seconds between the date in this block and the other dates in the backup.
    ("VOLB", &[0x48]),
    ("TSMP", &[0x50, 0xF8, 0x134]),
];

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

fn fixed<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().unwrap()
}

fn lsn(bytes: &[u8], at: usize) -> Lsn {
    Lsn(number(bytes, at, 4) as u32, number(bytes, at + 4, 4) as u32, number(bytes, at + 8, 2) as u16)
}

/// Reads a text. The field at `at` contains the length of the text, followed by its offset from the start of the block
/// or object.
fn text(bytes: &[u8], at: usize) -> String {
    let (length, from) = (number(bytes, at, 2) as usize, number(bytes, at + 2, 2) as usize);
    let units: Vec<u16> = bytes[from..from + length].chunks(2).map(|unit| number(unit, 0, 2) as u16).collect();
    String::from_utf16(&units).unwrap()
}

/// A real backup, and the offsets of its blocks and configuration objects.
struct Real {
    bytes: Vec<u8>,
    /// The name and offset of each block and object, in file order.
    places: Vec<(String, usize)>,
}

impl Real {
    fn new(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let (mut places, mut at) = (Vec::new(), 0);
        while at + 52 <= bytes.len() {
            let name = |at: usize| String::from_utf8_lossy(&bytes[at..at + 4]).into_owned();
            places.push((name(at), at));
            let mut stream = at + number(&bytes, at + 8, 2) as usize;
            if name(at) == "SFMB" {
                at = stream;
                continue;
            }
            loop {
                let (data, length) = (stream + 22, number(&bytes, stream + 8, 8) as usize);
                places.push((name(stream), stream));
                let mut object = data;
                while name(stream) == "MQCI" && object < data + length {
                    places.push((name(object), object));
                    object += number(&bytes, object + 4, 4) as usize;
                }
                let is_last = name(stream) == "SPAD";
                stream = (data + length).next_multiple_of(4);
                if is_last {
                    break;
                }
            }
            at = stream;
        }
        Self { bytes, places }
    }

    fn all(&self, name: &str) -> Vec<&[u8]> {
        self.places.iter().filter(|(found, _)| found == name).map(|(_, at)| &self.bytes[*at..]).collect()
    }

    fn last(&self, name: &str) -> &[u8] {
        self.all(name).pop().unwrap()
    }

    /// Copies to `facts` the metadata that the real backup contains and that cannot be derived from the data files.
    fn label(&self, facts: &mut Facts) {
        let (tape, raid, set) = (self.last("TAPE"), &self.last("RAID")[22..], self.last("SSET"));
        facts.families = vec![number(tape, 0x34, 4) as u32];
        facts.media_date = fixed(tape, 0x58);
        facts.media_set = fixed(raid, 0);
        facts.set = fixed(set, 0x64);
        (facts.name, facts.user) = (text(set, 0x40), text(set, 0x4C));
        facts.time_zone = set[0x5F];
        (facts.volume, facts.machine) = (text(self.last("VOLB"), 0x3C), text(self.last("VOLB"), 0x40));
        let config = self.last("SCIN");
        facts.started = fixed(config, 0x4D);
        facts.finished = fixed(config, 0x52);
        facts.created = fixed(config, 0x48);
        facts.server = text(config, 0x6C);
        facts.database = text(config, 0x68);
        facts.sort_order = config[0x58];
        facts.binding = fixed(config, 0x7C);
        (facts.first_lsn, facts.last_lsn) = (lsn(config, 0x20), lsn(config, 0x2A));
        (facts.checkpoint_lsn, facts.full_backup_lsn) = (lsn(config, 0x34), lsn(config, 0x3E));
        facts.redo_lsn = lsn(config, 0xF8);
        let files = self.all("SFIN");
        let (before, after) = files.split_at(files.len() / 2);
        facts.base_lsn = lsn(before[0], 0x9E);
        facts.base_set = fixed(before[0], 0xAA);
        facts.base_at = number(before[0], 0x106, 8);
        facts.finished_at = number(after[0], 0x106, 8);
        let file = |bytes: &&[u8]| FileFacts {
            id: number(bytes, 0x14, 2) as u16,
            filegroup: number(bytes, 0x24, 2) as u16,
            bytes: number(bytes, 0x28, 8),
            first_bytes: number(bytes, 0x72, 8),
            most_bytes: number(bytes, 0x56, 8),
            growth: number(bytes, 0x5E, 8),
            grows_by_percent: bytes[8] & 8 != 0,
            sector_bytes: number(bytes, 0x20, 4) as u32,
            guid: fixed(bytes, 0xBA),
            logical_name: text(bytes, 0x30),
            path: text(bytes, 0x34),
        };
        let mut files: Vec<FileFacts> = after.iter().map(file).collect();
        facts.log_file = files.pop().unwrap();
        facts.files = files;
        let groups = self.all("SFGI");
        let group = |bytes: &&[u8]| (number(bytes, 0x0C, 2) as u16, text(bytes, 0x10));
        facts.filegroups = groups[groups.len() / 2..].iter().map(group).collect();
    }

    fn log(&self, content: &mut Content) {
        let part = |block: &[u8]| Part {
            file: number(block, 0x70, 2) as u16,
            sequence: number(block, 0x5C, 4) as u32,
            parity: block[0x72],
            at: number(block, 0x68, 8),
            bytes: number(block, 0x60, 8),
            created: fixed(block, 0x74),
            copied: number(block, 0x3C, 8)..number(block, 0x44, 8),
        };
        content.log_parts = self.all("MSTL").into_iter().map(part).collect();
        let used: u64 = content.log_parts.iter().map(|part| part.copied.end - part.copied.start).sum();
        content.log = self.last("MQTL")[24..24 + used as usize].to_vec();
    }
}

/// Writes a full backup from the data files from which the real backup `real` was written, and compares the two
/// backups. The written backup goes into `folder`. `real` must contain one backup set in one file.
///
/// Returns the number of bytes that differ. The key is the name of the block or configuration object, and the offset of
/// the four-byte field in it. Fields of unknown meaning are left out.
///
/// # Panics
///
/// If a file cannot be read or written, or if the backup does not have the required form.
pub fn differences(real: &Path, files: &[PathBuf], folder: &Path) -> BTreeMap<(String, usize), usize> {
    let real = Real::new(real);
    let options = BackupOptions { checksum: !real.all("CSUM").is_empty(), ..BackupOptions::default() };
    let mut set = Prepared::new(&Set { files, step: 1, options }).unwrap();
    real.label(&mut set.facts);
    real.log(&mut set.content);
    let device = if number(real.last("SFMB"), 8, 2) == 512 { SMALL } else { LARGE };
    let path = folder.join("written.bak");
    let (staged, _) = write_stripe(&mut [set], 0, &path, (None, device)).map_err(drop).unwrap();
    staged.publish().unwrap();
    let written = std::fs::read(path).unwrap();
    assert_eq!(written.len(), real.bytes.len(), "bytes of the backup");
    let explained = |place: &str, field: usize| {
        !UNEXPLAINED.iter().any(|(known, fields)| *known == place && fields.contains(&field))
    };
    let mut found = BTreeMap::new();
    for (at, _) in written.iter().zip(&real.bytes).enumerate().filter(|(_, (one, other))| one != other) {
        let (place, start) = real.places.iter().rev().find(|(_, start)| *start <= at).unwrap();
        let field = (at - start) / 4 * 4;
        if explained(place, field) {
            *found.entry((place.clone(), field)).or_default() += 1;
        }
    }
    found
}
