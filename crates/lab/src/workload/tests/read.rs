//! Reads a log and asserts that it follows each rule of the format.

use crate::log::SECTOR;
use crate::page::Lsn;

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn lsn(bytes: &[u8], at: usize) -> Lsn {
    Lsn(long(bytes, at), long(bytes, at + 4), word(bytes, at + 8))
}

/// A log record with its LSN.
pub(super) struct Record {
    pub(super) lsn: Lsn,
    pub(super) bytes: Vec<u8>,
}

impl Record {
    pub(super) fn operation(&self) -> (u8, u8) {
        (self.bytes[0x16], self.bytes[0x17])
    }

    /// The elements of the record. Each element starts at a multiple of four.
    pub(super) fn elements(&self) -> Vec<&[u8]> {
        let fixed = usize::from(word(&self.bytes, 2));
        let count = usize::from(word(&self.bytes, fixed));
        let mut at = fixed + 2 + 2 * count;
        let element = |number: usize| {
            at = at.next_multiple_of(4);
            let from = at;
            at += usize::from(word(&self.bytes, fixed + 2 + 2 * number));
            &self.bytes[from..at]
        };
        let elements: Vec<&[u8]> = (0..count).map(element).collect();
        assert!(at <= self.bytes.len() && self.bytes.len() - at < 8, "{} of {}", at, self.bytes.len());
        elements
    }
}

/// Reads all records of a log file. The log is in the VLFs with consecutive sequence numbers, up to the highest number.
/// VLFs before a gap in the sequence numbers do not belong to the log.
pub(super) fn records(file: &[u8], has_checksum: bool) -> Vec<Record> {
    let (mut vlfs, mut at) = (Vec::new(), 8192);
    while at < file.len() {
        assert_eq!(file[at], 0xAB);
        let bytes = long(file, at + 0x10) as usize;
        assert_eq!(long(file, at + 0x18) as usize, at);
        vlfs.push((long(file, at + 4), file[at + 1], at, bytes));
        at += bytes;
    }
    assert_eq!(at, file.len(), "the last VLF ends with the file");
    vlfs.retain(|vlf| vlf.0 > 0);
    vlfs.sort_unstable();
    let newest = vlfs.windows(2).rposition(|pair| pair[0].0 + 1 != pair[1].0).map_or(0, |gap| gap + 1);
    let (mut out, mut previous) = (Vec::new(), None);
    for (sequence, parity, start, bytes) in vlfs.split_off(newest) {
        let mut at = start + 8192;
        while at < start + bytes && file[at] & 0xD0 == parity | 0x10 {
            let place = Lsn(sequence, ((at - start) / SECTOR) as u32, 1);
            let Some((block, mut found)) = block(&file[at..], parity, place, has_checksum) else { break };
            assert!(previous.is_none_or(|size| usize::from(word(&block, 10)) == size), "size of the block before");
            previous = Some(block.len());
            at += block.len();
            out.append(&mut found);
        }
    }
    out
}

/// The records of consecutive blocks. The tuple has the sequence number and parity of their VLF, and the number of the
/// first block.
pub(super) fn blocks(bytes: &[u8], (sequence, parity, first): (u32, u8, u32), has_checksum: bool) -> Vec<Record> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let place = Lsn(sequence, first + (at / SECTOR) as u32, 1);
        let (block, mut records) = block(&bytes[at..], parity, place, has_checksum).expect("a block");
        at += block.len();
        out.append(&mut records);
    }
    out
}

/// A block with the replaced bytes of its sectors restored, and its records; `None` if the block is from an earlier use
/// of the VLF.
fn block(bytes: &[u8], parity: u8, place: Lsn, has_checksum: bool) -> Option<(Vec<u8>, Vec<Record>)> {
    let size = usize::from(word(bytes, 6));
    let disk = &bytes[..size];
    let mut block = disk.to_vec();
    for sector in 0..size / SECTOR {
        let (is_first, is_last) = (sector == 0, sector + 1 == size / SECTOR);
        let status = parity | u8::from(is_first) << 4 | u8::from(is_last) << 3;
        assert_eq!(disk[sector * SECTOR], status, "status of sector {sector}");
        block[sector * SECTOR] = disk[size - 1 - sector];
    }
    if lsn(&block, 12) != place {
        return None;
    }
    assert_eq!(word(&block, 8), 1 | u16::from(has_checksum) << 1);
    if has_checksum {
        let mut summed = disk.to_vec();
        summed[0x18..0x1C].fill(0);
        let sectors = summed.chunks(SECTOR).enumerate().map(|(number, sector)| {
            let folded = sector.chunks(4).fold(0, |all, word| all ^ long(word, 0));
            folded.rotate_left((size / SECTOR - 1 - number) as u32)
        });
        assert_eq!(long(&block, 0x18), sectors.fold(0, |all, sector| all ^ sector), "checksum");
    }
    let (count, used) = (usize::from(word(&block, 2)), usize::from(word(&block, 4)));
    assert!(used + size / SECTOR <= size);
    let mut offsets: Vec<usize> = (1..=count).map(|number| usize::from(word(&block, used - 2 * number))).collect();
    assert!(count == 0 || offsets[0] == [24, 28, 40, 48, 72][usize::from(word(&block, 0)) - 2]);
    offsets.push(used - 2 * count);
    let record = |(number, pair): (usize, &[usize])| Record {
        lsn: Lsn(place.0, place.1, number as u16 + 1),
        bytes: block[pair[0]..pair[1]].to_vec(),
    };
    let records = offsets.windows(2).enumerate().map(record).collect();
    Some((block, records))
}
