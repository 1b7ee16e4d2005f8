//! Tests that a changed byte, a truncated file and a wrong length in a backup are reported, unless the changed place
//! has no checksum.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use format::allocation::{PFS_PAGES, pfs_bytes};
use format::bytes::{u16_at, u32_at, u64_at};
use format::page::PAGE_BYTES;
use format::protection::{Protection, undo_torn_bits, verify};
use format::{Page, PageBytes, PageId};
use libtest_mimic::{Failed, Trial};
use source::{BackupPages, PageSource};
use tempfile::TempDir;

use super::check;
use crate::Corpus;

/// The number of bytes that are changed in each backup, one at a time.
const ROUNDS: usize = 200;
/// Time limit for one check. A check of these small files usually takes milliseconds.
const LIMIT: Duration = Duration::from_secs(20);

/// Backups of all forms, in this order: uncompressed, uncompressed with extents that the server read again, WITH
/// CHECKSUM, compressed in two container formats, and a media set of two stripes.
const SUBJECTS: [&[&str]; 6] = [
    &["AlonsoMesen14__AnalisisMultiDimensional-Proyecto/Parametros.bak"],
    &["Aroubaz__Advanced-Database-Master2/DW2.bak"],
    &["dataplat__appveyor-lab/sql2008-backups/db3/FULL/SQL2008_db3_FULL_20170518_041739.bak"],
    &["devsatya__sqlpython/TutorialDB.bak"],
    &["Apress__pro-sql-server-2012-bi-solutions/_BookFiles/_LearnByDoing/Chapter08Files/FilledDWNorthwindOrder.bak"],
    &[
        "dataplat__appveyor-lab/@d419d023/sql2008-backups/RestoreTimeStripe/Stripe1/restoretime.bak",
        "dataplat__appveyor-lab/@d419d023/sql2008-backups/RestoreTimeStripe/Stripe2/restoretime1.bak",
    ],
];

pub(super) fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = Vec::new();
    for names in SUBJECTS {
        let files: Vec<PathBuf> = names.iter().map(|name| corpus.files.join(name)).collect();
        let name = names[0];
        trials.push(Trial::test(format!("backups: {ROUNDS} bytes changed one at a time ({name})"), {
            let files = files.clone();
            move || flips(&files)
        }));
        trials.push(Trial::test(format!("backups: cut at every block ({name})"), move || cuts(&files)));
    }
    let subject = corpus.files.join(SUBJECTS[0][0]);
    let (same, other) = (subject.clone(), subject.clone());
    trials.push(Trial::test("backups: a block of a type that is not described is no damage", move || {
        undescribed_block(&other)
    }));
    trials
        .push(Trial::test("backups: a wrong checksum in the header of a block is reported", move || wrong_sums(&same)));
    let longer = subject.clone();
    trials.push(Trial::test("backups: bytes after the last block that are no block are reported", move || {
        rubbish_at_the_end(&longer)
    }));
    trials.push(Trial::test("backups: lengths that lie", move || lies(&subject)));
    trials
}

/// Copies of the files of a backup in a temporary folder. The first file can be changed.
struct Lab {
    folder: TempDir,
    files: Vec<PathBuf>,
    bytes: Vec<u8>,
}

impl Lab {
    fn new(originals: &[PathBuf]) -> Result<Self, Failed> {
        let folder = TempDir::new()?;
        let mut files = Vec::new();
        for (number, original) in originals.iter().enumerate() {
            let file = folder.path().join(format!("{number}.bak"));
            fs::copy(original, &file)?;
            files.push(file);
        }
        let bytes = fs::read(&files[0])?;
        Ok(Self { folder, files, bytes })
    }

    /// Checks the backup with `bytes` as the content of its first file. Returns whether damage is noticed: there is a
    /// finding, or the file is refused.
    fn finds(&self, bytes: &[u8]) -> Result<bool, Failed> {
        let first = self.folder.path().join("0.bak");
        fs::write(&first, bytes)?;
        let start = Instant::now();
        let found = match check(&self.files) {
            Ok(report) => !report.findings.is_empty(),
            Err(_) => true,
        };
        if start.elapsed() > LIMIT { Err(format!("took {:?}", start.elapsed()).into()) } else { Ok(found) }
    }
}

fn flips(files: &[PathBuf]) -> Result<(), Failed> {
    let lab = Lab::new(files)?;
    if lab.finds(&lab.bytes)? {
        return Err("the sound backup has findings".into());
    }
    let protected = protected(&lab.bytes, files)?;
    let (mut state, mut found, mut inside) = (0x1234_5678_9ABC_DEF1u64, 0, 0);
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = (state % lab.bytes.len() as u64) as usize;
        let mut bytes = lab.bytes.clone();
        bytes[at] ^= ((state >> 40) as u8).max(1);
        let is_found = lab.finds(&bytes)?;
        let is_protected = protected.iter().any(|range| range.contains(&at));
        found += usize::from(is_found);
        inside += usize::from(is_protected);
        if is_protected && !is_found {
            return Err(format!("byte {at} changed, nothing found").into());
        }
    }
    // A change outside the protected places need not be found, because the changed byte may be in a free page, in
    // padding, or in a text without a checksum.
    if inside < ROUNDS / 4 || found < inside {
        return Err(format!("{found} found, {inside} in protected places: the test does not test").into());
    }
    Ok(())
}

fn cuts(files: &[PathBuf]) -> Result<(), Failed> {
    let lab = Lab::new(files)?;
    let places: Vec<usize> = if lab.bytes.starts_with(b"TAPE") {
        blocks(&lab.bytes).into_iter().map(|block| block.at).collect()
    } else {
        records(&lab.bytes).into_iter().step_by(5).map(|record| record.start).collect()
    };
    if places.len() < 10 {
        return Err(format!("only {} places", places.len()).into());
    }
    for at in places.into_iter().filter(|&at| at > 0) {
        for at in [at, at + 7, at + 600].into_iter().filter(|&at| at < lab.bytes.len()) {
            if !lab.finds(&lab.bytes[..at])? {
                return Err(format!("cut at byte {at} of {}, nothing found", lab.bytes.len()).into());
            }
        }
    }
    Ok(())
}

/// Changes the header checksum of each block, one block at a time. The first block is left out, because the program
/// recognizes a backup by this block.
fn wrong_sums(file: &Path) -> Result<(), Failed> {
    let lab = Lab::new(&[file.to_owned()])?;
    for block in blocks(&lab.bytes).into_iter().skip(1) {
        let mut bytes = lab.bytes.clone();
        bytes[block.at + 50] ^= 1;
        fs::write(&lab.files[0], bytes)?;
        let report = check(&lab.files)?;
        if !report.findings.iter().any(|finding| finding.check.id == "backup.block-checksum") {
            return Err(format!("block at byte {}: {:?}", block.at, report.findings).into());
        }
    }
    Ok(())
}

fn rubbish_at_the_end(file: &Path) -> Result<(), Failed> {
    let lab = Lab::new(&[file.to_owned()])?;
    fs::write(&lab.files[0], [&lab.bytes[..], &[0xA5; 2048]].concat())?;
    let report = check(&lab.files)?;
    match report.findings.iter().any(|finding| finding.check.id == "backup.lost-bytes") {
        true => Ok(()),
        false => Err(format!("{:?}", report.findings).into()),
    }
}

/// Inserts an end-of-tape marker (EOTM) of the tape format, before each block and at the end. SQL Server was never seen
/// to write this marker.
fn undescribed_block(file: &Path) -> Result<(), Failed> {
    let lab = Lab::new(&[file.to_owned()])?;
    let mut block = vec![0; 1024];
    block[..4].copy_from_slice(b"EOTM");
    block[8..10].copy_from_slice(&100u16.to_le_bytes());
    let sum = xor(&block, 25);
    block[50..52].copy_from_slice(&sum.to_le_bytes());
    let stream = &mut block[100..122];
    stream[..4].copy_from_slice(b"SPAD");
    stream[8..16].copy_from_slice(&(1024 - 122u64).to_le_bytes());
    let sum = xor(stream, 10);
    stream[20..22].copy_from_slice(&sum.to_le_bytes());
    let mut places: Vec<usize> = blocks(&lab.bytes).into_iter().map(|block| block.at).skip(1).collect();
    places.push(lab.bytes.len());
    for at in places {
        fs::write(&lab.files[0], [&lab.bytes[..at], &block, &lab.bytes[at..]].concat())?;
        let report = check(&lab.files)?;
        if let Some(finding) = report.findings.first() {
            return Err(format!("at byte {at}: {}", finding.text(&report.names())).into());
        }
        if !report.not_verified.iter().any(|entry| entry.what == "blocks of the backup" && entry.scope.contains("EOTM"))
        {
            return Err(format!("at byte {at}: {:?}", report.not_verified).into());
        }
    }
    Ok(())
}

/// Sets lengths and sizes to wrong values, and corrects the checksums. Most of the wrong values are huge.
fn lies(file: &Path) -> Result<(), Failed> {
    let lab = Lab::new(&[file.to_owned()])?;
    for block in blocks(&lab.bytes) {
        for stream in &block.streams {
            for length in [u64::MAX, 1 << 62, 1 << 40, lab.bytes.len() as u64, 3, 0] {
                let mut bytes = lab.bytes.clone();
                let header = &mut bytes[stream.start..stream.start + 22];
                if header[8..16] == length.to_le_bytes() {
                    continue;
                }
                header[8..16].copy_from_slice(&length.to_le_bytes());
                let sum = xor(header, 10);
                header[20..22].copy_from_slice(&sum.to_le_bytes());
                // If the length of a stream is wrong, the next block is not found. This must be noticed if the stream
                // contains data pages or log.
                let is_found = lab.finds(&bytes)?;
                if !is_found && matches!(&stream.tag, b"MQDA" | b"MQTL") && length > 3 {
                    return Err(format!("{length} as length at byte {}: nothing found", stream.start).into());
                }
            }
        }
        if block.tag == *b"MSCI" || block.tag == *b"MSLS" {
            // The fields of the SFIN object at these offsets are the size of the data file (0x28), the number of copied
            // pages (0x18), and the length of the object (4).
            let config = &lab.bytes[block.streams[0].data.clone()];
            let at = config.windows(4).position(|tag| tag == b"SFIN").unwrap_or_default();
            for (offset, value) in [(0x28, u64::MAX), (0x28, 16 << 40), (0x18, 0xFFFF_FFF8), (4, 0xFFFF_FFFF), (4, 0)] {
                let mut bytes = lab.bytes.clone();
                let place = block.streams[0].data.start + at + offset;
                bytes[place..place + 4].copy_from_slice(&value.to_le_bytes()[..4]);
                if offset == 0x28 {
                    bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
                }
                lab.finds(&bytes)?;
            }
        }
    }
    Ok(())
}

/// A descriptor block of a sound backup.
pub(super) struct Block {
    pub(super) tag: [u8; 4],
    pub(super) at: usize,
    pub(super) streams: Vec<Stream>,
}

pub(super) struct Stream {
    pub(super) tag: [u8; 4],
    pub(super) start: usize,
    data: Range<usize>,
}

fn xor(bytes: &[u8], words: usize) -> u16 {
    bytes[..2 * words].chunks_exact(2).fold(0, |sum, pair| sum ^ u16::from_le_bytes([pair[0], pair[1]]))
}

fn tag(bytes: &[u8], at: usize) -> [u8; 4] {
    bytes[at..at + 4].try_into().expect("four bytes")
}

/// The blocks of a sound backup.
pub(super) fn blocks(bytes: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at + 52 <= bytes.len() {
        let mut next = at + usize::from(u16_at(bytes, at + 8).expect("offset"));
        let mut block = Block { tag: tag(bytes, at), at, streams: Vec::new() };
        while block.tag != *b"SFMB" {
            let length = u64_at(bytes, next + 8).expect("length") as usize;
            let stream = Stream { tag: tag(bytes, next), start: next, data: next + 22..next + 22 + length };
            next = stream.data.end.next_multiple_of(4);
            let is_last = stream.tag == *b"SPAD";
            block.streams.push(stream);
            if is_last {
                break;
            }
        }
        blocks.push(block);
        at = next;
    }
    blocks
}

/// The records of a sound compressed backup, each from its tag to the end of its payload.
pub(super) fn records(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut at, tag, header) = if bytes[8] == 1 { (0x10, 0x81, 8) } else { (0x1E0, 0x21, 28) };
    let mut records = Vec::new();
    while at < bytes.len() {
        let size = u16_at(bytes, at + 2).map(usize::from);
        if let (true, Some(size)) = (bytes[at] == tag && bytes[at + 1] <= 128, size) {
            records.push(at..at + header + size);
            at += header + size;
            continue;
        }
        at = at.next_multiple_of(512);
        while at < bytes.len() && !bytes[at..].starts_with(b"SFMB") {
            at += 512;
        }
        at += u16_at(bytes, at + 8).map_or(512, usize::from);
    }
    records
}

/// The places where any changed byte must be noticed.
fn protected(bytes: &[u8], files: &[PathBuf]) -> Result<Vec<Range<usize>>, Failed> {
    let mut places = Vec::new();
    if !bytes.starts_with(b"TAPE") {
        let checksum = if bytes[8] == 1 { 4..8 } else { 24..28 };
        for record in records(bytes) {
            places.push(record.start..record.start + 4);
            places.push(record.start + checksum.start..record.start + checksum.end);
            places.push(record.start + checksum.end..record.end);
        }
        return Ok(places);
    }
    let pages = BackupPages::open(files, &[]).map_err(|error| error.to_string())?;
    let mut regions = Vec::new();
    for block in blocks(bytes) {
        places.push(block.at..block.at + 52);
        for (number, stream) in block.streams.iter().enumerate() {
            places.push(stream.start..stream.start + 22);
            let is_summed = block.streams.get(number + 1).is_some_and(|next| next.tag == *b"CSUM");
            match &stream.tag {
                b"CSUM" => places.push(stream.data.clone()),
                _ if is_summed => places.push(stream.data.start + 2..stream.data.end),
                b"MQDA" if stream.data.len() > 2 => regions.push(stream.data.start + 2..stream.data.end),
                b"MQTL" => {
                    let used = u64_at(bytes, block.at + 0x44).zip(u64_at(bytes, block.at + 0x3C));
                    let used = used.map_or(0, |(end, start)| end - start) as usize;
                    places.extend(log_blocks(bytes, stream.data.start + 2..stream.data.start + 2 + used));
                }
                _ => {}
            }
        }
    }
    // If a backup contains a page twice, only the later copy of the page counts. So the regions are visited in reverse
    // order.
    let mut later = Vec::new();
    for region in regions.into_iter().rev() {
        let mut here = Vec::new();
        for at in region.step_by(PAGE_BYTES) {
            let mut page: PageBytes = *bytes[at..].first_chunk().expect("whole pages");
            let id = PageId::new(u16_at(&page, 36).unwrap_or_default(), u32_at(&page, 32).unwrap_or_default());
            let is_protected = verify(&page) == Ok(Protection::Checksum);
            undo_torn_bits(&mut page);
            here.push(id);
            if is_protected && !later.contains(&id) && is_allocated(&pages, id) {
                places.push(at..at + PAGE_BYTES);
            }
        }
        later.extend(here);
    }
    Ok(places)
}

fn is_allocated(pages: &BackupPages, id: PageId) -> bool {
    let map = PageId::new(id.file, if id.page < PFS_PAGES { 1 } else { id.page / PFS_PAGES * PFS_PAGES });
    pages.read_page(map).is_some_and(|bytes| {
        pfs_bytes(Page::new(&bytes)).is_some_and(|bytes| bytes[(id.page % PFS_PAGES) as usize] & 0x40 != 0)
    })
}

/// The log blocks within a range that have a checksum.
fn log_blocks(bytes: &[u8], range: Range<usize>) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let size = usize::from(u16_at(bytes, at + 6).expect("size"));
        if u16_at(bytes, at + 8).is_some_and(|flags| flags & 2 != 0) {
            blocks.push(at..at + size);
        }
        at += size.max(512);
    }
    blocks
}
