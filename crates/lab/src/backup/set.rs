//! Writes a backup set to the tapes of all stripes.

use super::config::{Moment, configuration, utf16};
use super::facts::Facts;
use super::origin::EXTENT_BYTES;
use super::tape::{BLOCK, Block, Tape, attribute};
use crate::bytes::put;
use crate::disk::LabError;
use crate::ids::{EXTENT, PAGE};
use crate::log::{LogForm, Part};
use crate::page::{self, PageVerify};

/// Extents, each as file ID and extent number.
pub(super) type Extents = Vec<(u16, u32)>;

/// The contents of a set.
pub(super) struct Content {
    /// The regions of pages, in the order in which they are written. A region contains, for each stripe, the extents
    /// that the stripe stores.
    pub(super) regions: Vec<Vec<Extents>>,
    /// Extents that the backup does not contain, but that are included in the page counts of its first region.
    pub(super) left_out: Extents,
    /// The log blocks in the backup; `log_parts` contains their places in the log file.
    pub(super) log: Vec<u8>,
    pub(super) log_parts: Vec<Part>,
    pub(super) log_form: LogForm,
    pub(super) with_checksum: bool,
}

/// Log in a backup is padded to a multiple of this number of bytes.
const LOG_UNIT: usize = 1 << 16;
/// If several files are backed up, the first region is padded to a multiple of this number of extents.
const REGION_UNIT: usize = (1 << 20) / EXTENT_BYTES;
/// Page type of the padding pages after the last extent.
const FILLER: u8 = 0x65;

/// The fields of a block, followed by the texts of the block. For each text, a field contains its length and offset.
struct Texts {
    fields: Vec<u8>,
    header: usize,
}

impl Texts {
    /// Creates fields of `length` zero bytes after a header of `header` bytes.
    fn new(header: usize, length: usize) -> Self {
        Self { fields: vec![0; length], header }
    }

    /// Writes a field. `at` is the offset of the field from the start of the block header.
    fn put(&mut self, at: usize, value: &[u8]) {
        put(&mut self.fields, at - self.header, value);
    }

    fn text(&mut self, at: usize, text: &[u8]) {
        let offset = (self.header + self.fields.len()) as u16;
        if !text.is_empty() {
            self.put(at, &(text.len() as u16).to_le_bytes());
            self.put(at + 2, &offset.to_le_bytes());
            self.fields.extend_from_slice(text);
        }
    }
}

/// Writes the media label at the start of a backup file.
pub(super) fn label(tape: &mut Tape, facts: &Facts, stripe: u16) -> std::io::Result<()> {
    tape.is_of_2005 = facts.version < 655;
    let mut texts = Texts::new(0x34, 0x5E - 0x34);
    let family = facts.families.get(usize::from(stripe)).copied().unwrap_or_default();
    texts.put(0x34, &family.to_le_bytes());
    texts.put(0x38, &5u32.to_le_bytes());
    texts.put(0x3C, &1u16.to_le_bytes());
    texts.put(0x40, &((tape.device.sector / 512) as u16).to_le_bytes());
    texts.put(0x42, &3u16.to_le_bytes());
    texts.put(0x54, &(BLOCK as u16).to_le_bytes());
    texts.put(0x56, &0x1200u16.to_le_bytes());
    texts.put(0x58, &facts.media_date);
    texts.put(0x5D, &[1]);
    texts.text(0x50, &utf16("Microsoft SQL Server\0\0"));
    tape.block(&Block { tag: b"TAPE", attributes: 0x3_0000, strings: 2, fields: texts.fields })?;
    let mut raid = [0; 32];
    put(&mut raid, 0, &facts.media_set);
    put(&mut raid, 0x10, &0xF000_00ADu32.to_le_bytes());
    put(&mut raid, 0x14, &facts.stripes.to_le_bytes());
    put(&mut raid, 0x16, &1u16.to_le_bytes());
    put(&mut raid, 0x18, &(stripe + 1).to_le_bytes());
    put(&mut raid, 0x1E, &1u16.to_le_bytes());
    tape.stream(b"RAID", 0, &raid)?;
    tape.spad_device()?;
    tape.filemark()
}

/// The entry for a set in the catalog of sets at the end of a backup file.
pub(super) struct CatalogEntry {
    set_at: u64,
    bytes: u64,
    position: u16,
    facts: Facts,
}

/// The attributes of a set: differential or full, and copy-only.
fn attributes(facts: &Facts) -> u32 {
    let kind = if facts.letter == b'I' { 8 } else { 4 };
    kind | if facts.is_copy_only { 2 } else { 0 }
}

/// A function that returns the bytes of an extent. Its arguments are the number of the region, and the extent as file
/// ID and extent number.
pub(super) type Fetch<'a> = dyn FnMut(usize, (u16, u32)) -> Result<Vec<u8>, LabError> + 'a;

/// Writes a set to one stripe. `catalog` contains entries for the previous sets of the file; an entry for the new set
/// is added.
pub(super) fn write(
    tape: &mut Tape,
    (facts, content): (&Facts, &Content),
    stripe: usize,
    fetch: &mut Fetch<'_>,
    catalog: &mut Vec<CatalogEntry>,
) -> Result<(), super::Failure> {
    let position = catalog.len() as u16 + 1;
    let set_at = tape.at();
    let copied = |region: usize| -> Vec<u32> {
        let left_out = content.left_out.iter().filter(|_| region == 0);
        let all = || content.regions.get(region).into_iter().flatten().flatten().chain(left_out.clone());
        facts.files.iter().map(|file| all().filter(|(id, _)| *id == file.id).count() as u32 * EXTENT).collect()
    };
    let first = copied(0);
    let log_bytes = content.log.len() as u64;
    let estimate = first.iter().map(|&pages| u64::from(pages) * PAGE as u64).sum::<u64>() + log_bytes;
    start(tape, facts, position, set_at)?;
    let moment = Moment { is_end: false, bytes: estimate, pages: first, log_bytes: 0 };
    tape.block(&Block { tag: b"MSCI", attributes: 0, strings: 2, fields: vec![0; 4] })?;
    tape.stream(b"MQCI", 0, &configuration(facts, &moment))?;
    tape.spad()?;
    for (number, region) in content.regions.iter().enumerate() {
        let longest = region.iter().map(Vec::len).max().unwrap_or_default();
        let is_padded = number == 0 && facts.files.len() > 1;
        let frames = if is_padded { longest.next_multiple_of(REGION_UNIT) } else { longest };
        let extents = region.get(stripe).map(Vec::as_slice).unwrap_or_default();
        pages(tape, content.with_checksum, (number, frames), extents, fetch)?;
    }
    log(tape, facts, content, stripe == 0)?;
    // The size includes all bytes up to and including the MSLS block, which is written next.
    let bytes = tape.since_filemark() + BLOCK;
    let moment = Moment { is_end: true, bytes, pages: copied(content.regions.len().saturating_sub(1)), log_bytes };
    tape.block(&Block { tag: b"MSLS", attributes: 0, strings: 2, fields: vec![0; 4] })?;
    tape.stream(b"MQCI", 0, &configuration(facts, &moment))?;
    tape.spad_device()?;
    tape.filemark()?;
    catalog.push(CatalogEntry { set_at, bytes, position, facts: facts.clone() });
    end(tape, facts, stripe, position, catalog)?;
    Ok(())
}

fn start(tape: &mut Tape, facts: &Facts, position: u16, set_at: u64) -> std::io::Result<()> {
    tape.start_set();
    let mut texts = Texts::new(0x34, 0x7A - 0x34);
    texts.put(0x34, &attributes(facts).to_le_bytes());
    texts.put(0x3C, &0x1200u16.to_le_bytes());
    texts.put(0x3E, &position.to_le_bytes());
    texts.put(0x50, &set_at.to_le_bytes());
    texts.put(0x58, &facts.started);
    let [_, _, minor, major] = facts.build;
    texts.put(0x5D, &[major, minor, facts.time_zone, 0, 2]);
    texts.put(0x64, &facts.set);
    texts.text(0x40, &utf16(&facts.name));
    texts.text(0x4C, &utf16(&facts.user));
    tape.block(&Block { tag: b"SSET", attributes: 0, strings: 2, fields: texts.fields })?;
    tape.spad()?;
    let mut texts = Texts::new(0x34, 0x49 - 0x34);
    texts.put(0x34, &2u32.to_le_bytes());
    texts.put(0x44, &facts.started);
    texts.text(0x38, &utf16("C:"));
    // The block has a field for the volume name even if the name is empty.
    texts.put(0x3E, &0x4Du16.to_le_bytes());
    texts.text(0x3C, &utf16(&facts.volume));
    texts.text(0x40, &utf16(&facts.machine));
    tape.block(&Block { tag: b"VOLB", attributes: 0, strings: 2, fields: texts.fields })?;
    tape.spad()
}

/// Writes the extents of a region that belong to one stripe. If there are fewer than `frames` extents, padding extents
/// are appended, so that the stripe has `frames` extents.
fn pages(
    tape: &mut Tape,
    with_checksum: bool,
    (region, frames): (usize, usize),
    extents: &[(u16, u32)],
    fetch: &mut Fetch<'_>,
) -> Result<(), super::Failure> {
    tape.block(&Block { tag: b"MSDA", attributes: 0, strings: 0, fields: vec![0, 0, 0, 0, 0, 0, 1, 0] })?;
    let summed = if with_checksum { attribute::SUMMED } else { 0 };
    tape.start_data(b"MQDA", attribute::DATA | summed, (frames * EXTENT_BYTES) as u64)?;
    for &extent in extents {
        tape.data(&fetch(region, extent)?)?;
    }
    let filler = filler().repeat(EXTENT as usize);
    for _ in extents.len()..frames {
        tape.data(&filler)?;
    }
    tape.end_data(with_checksum)?;
    tape.stream(b"MQDA", attribute::DATA_END, &[])?;
    tape.spad()?;
    Ok(())
}

/// A padding page.
fn filler() -> [u8; PAGE] {
    let mut page = [0; PAGE];
    (page[0], page[1]) = (1, FILLER);
    put(&mut page, 28, &8096u16.to_le_bytes());
    put(&mut page, 30, &96u16.to_le_bytes());
    // The page belongs to a file ID that no file has.
    put(&mut page, 50, &[1]);
    page::protect(&mut page, PageVerify::Checksum);
    page
}

/// Writes a block for each VLF. The log of a VLF in use follows its block. In stripes other than the first (`with_log`
/// is false), only the blocks are written.
fn log(tape: &mut Tape, facts: &Facts, content: &Content, with_log: bool) -> std::io::Result<()> {
    let length = match facts.version {
        ..655 => 0x24,
        655..700 => 0x1F4,
        700.. => 0x1F8usize,
    };
    let mut rest = content.log.as_slice();
    for part in &content.log_parts {
        let is_used = !part.copied.is_empty();
        let (own, others) = rest.split_at(rest.len().min((part.copied.end - part.copied.start) as usize));
        rest = others;
        let mut fields = vec![0; 0x5C - 0x34 + length];
        fields[6] = 1;
        let mut field = |at: usize, value: &[u8]| put(&mut fields, at - 0x34, value);
        field(0x3C, &part.copied.start.to_le_bytes());
        field(0x44, &part.copied.end.to_le_bytes());
        field(0x5C, &part.sequence.to_le_bytes());
        field(0x72, &[part.parity]);
        field(0x74, &part.created);
        field(0x4C, &2u32.to_le_bytes());
        field(0x50, &(length as u16).to_le_bytes());
        field(0x52, &0x5Cu16.to_le_bytes());
        field(0x60, &part.bytes.to_le_bytes());
        field(0x68, &part.at.to_le_bytes());
        field(0x70, &part.file.max(2).to_le_bytes());
        field(0x7E, &content.log_form.part().to_le_bytes());
        tape.block(&Block { tag: b"MSTL", attributes: 0, strings: 0, fields })?;
        if is_used && with_log {
            let room = own.len().next_multiple_of(LOG_UNIT);
            tape.start_data(b"MQTL", if content.with_checksum { attribute::SUMMED } else { 0 }, room as u64)?;
            tape.data(own)?;
            tape.data(&vec![0; room - own.len()])?;
            tape.end_data(content.with_checksum)?;
        }
        tape.spad()?;
    }
    Ok(())
}

/// Writes the end of the set, and the catalog of all sets written so far.
fn end(tape: &mut Tape, facts: &Facts, stripe: usize, position: u16, catalog: &[CatalogEntry]) -> std::io::Result<()> {
    // SQL Server 2005 stores the offset of the next block here.
    let ended_at = tape.at() + if tape.is_of_2005 { BLOCK } else { 0 };
    let block = |at: u64| {
        let mut fields = vec![0; 0x58 - 0x34];
        put(&mut fields, 0, &attributes(facts).to_le_bytes());
        put(&mut fields, 8, &at.to_le_bytes());
        put(&mut fields, 0x4E - 0x34, &position.to_le_bytes());
        put(&mut fields, 0x50 - 0x34, &facts.started);
        Block { tag: b"ESET", attributes: 0, strings: 0, fields }
    };
    tape.block(&block(0))?;
    tape.opad()?;
    let family = facts.families.get(stripe).copied().unwrap_or_default();
    let mut map = Vec::new();
    map.extend(family.to_le_bytes());
    map.extend((catalog.len() as u32).to_le_bytes());
    for entry in catalog {
        map.extend(entry.set());
        map.extend(entry.volume());
    }
    tape.stream(b"TSMP", 0, &map)?;
    tape.spad_device()?;
    tape.block(&block(ended_at))?;
    tape.spad_device()?;
    tape.filemark()
}

impl CatalogEntry {
    fn set(&self) -> Vec<u8> {
        let mut texts = Texts::new(0, 0x5C);
        texts.put(2, &1u16.to_le_bytes());
        texts.put(8, &attributes(&self.facts).to_le_bytes());
        texts.put(0x0C, &self.set_at.to_le_bytes());
        texts.put(0x1E, &self.position.to_le_bytes());
        texts.put(0x34, &self.bytes.to_le_bytes());
        texts.put(0x3C, &1u16.to_le_bytes());
        texts.put(0x50, &self.facts.started);
        texts.put(0x55, &[self.facts.time_zone, 0x0E, 1, 2, 0, 2]);
        texts.text(0x40, &utf16(&self.facts.name));
        texts.text(0x4C, &utf16(&self.facts.user));
        let length = (texts.fields.len() as u16).to_le_bytes();
        texts.put(0, &length);
        texts.fields
    }

    fn volume(&self) -> Vec<u8> {
        let mut texts = Texts::new(0, 0x3E);
        texts.put(2, b"VOLB");
        texts.put(6, &1u16.to_le_bytes());
        texts.put(0x0C, &1u16.to_le_bytes());
        texts.put(0x20, &[0x0E, 1, 2, 0, 2, 0, 0, 0]);
        texts.put(0x38, &self.facts.started);
        texts.text(0x28, &utf16("C:"));
        texts.text(0x2C, &utf16(&self.facts.volume));
        texts.text(0x30, &utf16(&self.facts.machine));
        let length = (texts.fields.len() as u16).to_le_bytes();
        texts.put(0, &length);
        texts.fields
    }
}
