//! Performs redo by the rules of the format: applies each log record to the page on disk, and asserts that the page
//! contains the before-image of the record.

use std::collections::BTreeMap;

use super::read::{Record, long, lsn, word};
use crate::disk::file_index;
use crate::ids::{PAGE, PageId, UnitId};
use crate::page::{Lsn, PageVerify, page_type};
use crate::workload::frame::{Frame, with_ghost};
use crate::workload::key::page_id;

/// Pages of data files.
pub(super) struct Pages {
    files: Vec<Vec<u8>>,
    frames: BTreeMap<PageId, Frame>,
    verify: PageVerify,
    /// `applied` is the number of records that were applied, and `first` is the LSN of the first of these records.
    pub(super) applied: u64,
    pub(super) first: Option<Lsn>,
}

/// Whether records with this operation change a page.
fn concerns_page(operation: u8) -> bool {
    matches!(operation, 1..=7 | 10 | 11 | 13 | 16..=19 | 22)
}

impl Pages {
    pub(super) fn new(files: &[(String, Vec<u8>)], verify: PageVerify) -> Self {
        let files = files.iter().map(|(_, bytes)| bytes.clone()).collect();
        Self { files, frames: BTreeMap::new(), verify, applied: 0, first: None }
    }

    fn frame(&mut self, id: PageId) -> &mut Frame {
        self.lengthen(id);
        let files = &self.files;
        self.frames.entry(id).or_insert_with(|| {
            let from = id.page as usize * PAGE;
            Frame::read(files[file_index(id.file)][from..].first_chunk().unwrap())
        })
    }

    /// Makes the file long enough for a page. The file may have grown after a backup, or may have been shrunk later.
    fn lengthen(&mut self, id: PageId) {
        let (file, end) = (&mut self.files[file_index(id.file)], (id.page as usize + 1) * PAGE);
        file.resize(file.len().max(end), 0);
    }

    /// Replaces a page with `image`.
    pub(super) fn put(&mut self, id: PageId, image: &[u8]) {
        self.lengthen(id);
        let from = id.page as usize * PAGE;
        self.files[file_index(id.file)][from..from + PAGE].copy_from_slice(image);
        self.frames.remove(&id);
    }

    /// The bytes of a page as written to disk.
    pub(super) fn bytes(&self, id: PageId) -> Box<[u8; PAGE]> {
        let from = id.page as usize * PAGE;
        let on_disk = || Box::new(*self.files[file_index(id.file)][from..].first_chunk().unwrap());
        self.frames.get(&id).filter(|frame| frame.kind() > 0).map_or_else(on_disk, Frame::bytes)
    }

    /// Applies a record, unless the page already contains its change.
    pub(super) fn redo(&mut self, record: &Record) {
        let (operation, _) = record.operation();
        if !concerns_page(operation) {
            return;
        }
        let verify = self.verify;
        let page = page_id(&record.bytes[0x18..0x1E]);
        let frame = self.frame(page);
        if frame.lsn() >= record.lsn {
            return;
        }
        if operation == 1 {
            *frame = formatted(page, record, verify);
        } else {
            assert_eq!(frame.lsn(), lsn(&record.bytes, 0x24), "{page:?} at {} {:?}", record.lsn, record.operation());
            apply(frame, record);
        }
        frame.set_lsn(record.lsn);
        self.applied += 1;
        self.first = self.first.or(Some(record.lsn));
    }
}

fn formatted(page: PageId, record: &Record, verify: PageVerify) -> Frame {
    let bytes = &record.bytes;
    if let [start, end, ..] = record.elements()[..]
        && !start.is_empty()
    {
        let mut image = [0; PAGE];
        image[..start.len()].copy_from_slice(start);
        image[PAGE - end.len()..].copy_from_slice(end);
        return Frame::read(&image);
    }
    let unit = UnitId(u64::from(long(bytes, 0x20)) << 16 | u64::from(word(bytes, 0x2E)) << 48);
    let mut frame = Frame::fresh(page, (bytes[0x30], bytes[0x32]), unit, word(bytes, 0x3A), verify);
    frame.set_header(8, &bytes[0x34..0x3A]);
    frame.set_header(16, &bytes[0x3C..0x42]);
    if bytes[0x30] == page_type::IAM {
        let mut head = vec![0; 94];
        head[2] = 0x5E;
        head[44..46].copy_from_slice(&page.file.to_le_bytes());
        frame.records = vec![head, [&[0, 0, 0x38, 0x1F][..], &[0; 7988]].concat()];
    }
    frame
}

fn apply(frame: &mut Frame, record: &Record) {
    let (operation, context) = record.operation();
    let bytes = &record.bytes;
    let slot = usize::from(word(bytes, 0x1E));
    let is_compensation = word(bytes, 0x0E) & 1 == 1;
    match operation {
        2 => insert(frame, record, slot),
        3 => {
            let elements = record.elements();
            let old = &frame.records[slot];
            assert!(is_compensation && elements[0].is_empty() || elements[0] == old, "image of a deleted row");
            match context {
                19 => frame.records[slot] = with_ghost(old, true),
                1 | 5 | 6 => frame.records[slot].clear(),
                _ => drop(frame.records.remove(slot)),
            }
        }
        4 => {
            let elements = record.elements();
            let (at, length) = (usize::from(word(bytes, 0x38)), usize::from(word(bytes, 0x3A)));
            let row = &mut frame.records[slot];
            assert!(is_compensation || row[at..at + length] == *elements[0], "before-image at {}", record.lsn);
            row.splice(at..at + length, elements[1].iter().copied());
            // A record on a text page stores its own length in a field. The log record does not change this field.
            if matches!(frame.kind(), page_type::TEXT_MIX | page_type::TEXT_TREE) {
                let length = frame.records[slot].len() as u16;
                frame.records[slot][2..4].copy_from_slice(&length.to_le_bytes());
            }
        }
        5 => {
            let (elements, at) = (record.elements(), usize::from(word(bytes, 0x38)));
            assert_eq!(frame.header(at, elements[0].len()), elements[0]);
            frame.set_header(at, elements[1]);
        }
        6 => modify_columns(frame, record, slot),
        7 => {
            let (bit, value) = (usize::from(word(bytes, 0x30)), word(bytes, 0x34));
            let byte = &mut frame.records[slot][bit / 8];
            assert_eq!(u16::from(*byte >> (bit % 8) & 1), 1 - value, "bit {bit}");
            *byte ^= 1 << (bit % 8);
        }
        10 => {
            let byte = &mut frame.records[0][usize::from(word(bytes, 0x30))];
            assert_eq!(*byte, bytes[0x33]);
            *byte = bytes[0x32];
        }
        11 => {
            let rows = usize::from(word(bytes, 0x36));
            assert_eq!(slot + rows, frame.records.len(), "rows from the slot on");
            frame.records.truncate(slot);
        }
        13 => drop(frame.records.remove(slot)),
        16 => {
            let elements = record.elements();
            assert_eq!(frame.records[slot], elements[0]);
            frame.records[slot] = elements[1].to_vec();
        }
        18 => {
            for number in 0..8 {
                let at = 0x50 + 16 * number;
                let place = long(bytes, at + 8) as usize;
                if place > 0 {
                    frame.records[slot][place..place + 8].copy_from_slice(&bytes[at..at + 8]);
                }
            }
        }
        19 => {
            let place = long(bytes, 0x58) as usize;
            let pointer = &mut frame.records[slot][place..place + 6];
            assert_eq!(*pointer, bytes[0x50..0x56]);
            pointer.copy_from_slice(&bytes[0x48..0x4E]);
        }
        22 => {}
        _ => panic!("operation {operation}"),
    }
}

fn insert(frame: &mut Frame, record: &Record, slot: usize) {
    let elements = record.elements();
    let (context, flags) = (record.bytes[0x17], word(&record.bytes, 0x3A));
    let is_split = record.bytes[0x30..0x38] == [0; 8];
    if is_split {
        let (rows, rest) = elements.split_at(elements.len() - 2);
        assert!(rest.iter().all(|element| element.is_empty()));
        let rows = rows.iter().map(|row| row.to_vec());
        frame.records.splice(slot..slot, rows);
    } else if matches!(context, 1 | 5 | 6) {
        frame.records.resize(frame.records.len().max(slot + 1), Vec::new());
        assert!(frame.records[slot].is_empty());
        frame.records[slot] = elements[0].to_vec();
    } else if flags & 2 == 2 {
        assert_eq!(frame.records[slot], with_ghost(&frame.records[slot], true), "a ghost");
        frame.records[slot] = elements[0].to_vec();
    } else {
        frame.records.insert(slot, elements[0].to_vec());
    }
}

fn modify_columns(frame: &mut Frame, record: &Record, slot: usize) {
    let elements = record.elements();
    let is_compensation = word(&record.bytes, 0x0E) & 1 == 1;
    let (old, mut new, mut at) = (frame.records[slot].clone(), Vec::new(), 0);
    for (number, place) in elements[0].chunks(4).enumerate() {
        let (from, to) = (usize::from(word(place, 0)), usize::from(word(place, 2)));
        let length = usize::from(word(elements[1], 2 * number));
        let (before, after) = (elements[4 + 2 * number], elements[5 + 2 * number]);
        assert!(is_compensation || old[from..from + length] == *before, "before-image at {}", record.lsn);
        new.extend(&old[at..from]);
        assert_eq!(new.len(), to, "where the piece is afterwards");
        new.extend(after);
        at = from + length;
    }
    new.extend(&old[at..]);
    frame.records[slot] = new;
}

/// Asserts that each record contains the LSN of the previous record of its page and of its transaction.
pub(super) fn assert_chains(records: &[Record]) {
    let mut last: BTreeMap<PageId, Lsn> = BTreeMap::new();
    let mut transactions: BTreeMap<u32, Lsn> = BTreeMap::new();
    for record in records {
        let (operation, _) = record.operation();
        let transaction = long(&record.bytes, 0x10);
        if transaction > 0 {
            let previous = lsn(&record.bytes, 4);
            let before = transactions.insert(transaction, record.lsn);
            match operation {
                128 => assert!(before.is_none() && previous == Lsn::default()),
                129 | 130 => assert!(before.is_none_or(|before| previous <= before)),
                _ if word(&record.bytes, 0x0E) & 1 == 1 => assert!(before.is_none_or(|before| previous < before)),
                _ => assert!(before.is_none_or(|before| previous == before), "{}", record.lsn),
            }
        }
        if concerns_page(operation) {
            let page = page_id(&record.bytes[0x18..0x1E]);
            let before = last.insert(page, record.lsn);
            assert!(operation == 1 || before.is_none_or(|before| before == lsn(&record.bytes, 0x24)), "{}", record.lsn);
        }
    }
}
