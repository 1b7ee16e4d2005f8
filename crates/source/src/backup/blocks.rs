//! The tape: descriptor blocks and their streams in Microsoft Tape Format (see docs/format/backups.md#tape).

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use format::bytes::{u16_at, u64_at, utf16};
use format::page::PAGE_BYTES;

use super::damage::{Damage, DamageKind};
use super::media::{Media, Part};
use super::room::Room;
use super::sets::LEAD_BYTES;

/// The length of a sector in bytes. Every block starts at a multiple of this length in the tape. Checksums are computed
/// sector by sector.
pub(crate) const SECTOR_BYTES: usize = 512;
/// Length in bytes of the header at the start of every block.
const HEADER_BYTES: usize = 52;
/// Length in bytes of a stream's header.
const STREAM_BYTES: usize = 22;
/// The greatest length of a block's own fields, which end before its first stream. The longest fields seen have 600
/// bytes.
const MAX_FIELDS: usize = 4096;
/// The most streams in one block; SQL Server writes no more than six.
const MAX_STREAMS: usize = 64;
/// The number of bytes read per step when searching for the next block after damage. The first step is short because
/// the next block is usually near.
const SEARCH_BYTES: RangeInclusive<usize> = 4096..=1 << 20;
/// Memory in bytes for the description of one damaged place, not counting the path of the backup file.
const BYTES_PER_DAMAGE: usize = 2 * size_of::<Damage>();
/// The most types of blocks with unknown content that are counted type by type. Blocks of further types are counted
/// together.
const MOST_TYPES: usize = 64;
/// The tag under which the blocks of all further types are counted, after [`MOST_TYPES`] types.
const OTHER_TYPES: Tag = *b"????";

/// The four letters that name the type of a block or stream.
pub(crate) type Tag = [u8; 4];

const BLOCKS: [&Tag; 9] = [b"TAPE", b"SFMB", b"SSET", b"VOLB", b"MSCI", b"MSDA", b"MSTL", b"MSLS", b"ESET"];

/// A descriptor block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) tag: Tag,
    /// Offset of the block in the tape, in bytes.
    pub(crate) at: u64,
    /// The bytes of the block up to its first stream.
    pub(crate) fields: Vec<u8>,
    pub(crate) streams: Vec<Stream>,
}

/// A stream of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) tag: Tag,
    /// The tape offset at which the stream's data starts.
    pub(crate) at: u64,
    /// Length of the stream's data in bytes. If the data extends beyond the end of the tape, only the part on the tape
    /// counts.
    pub(crate) length: u64,
    pub(crate) is_encrypted: bool,
}

impl Block {
    /// The first stream with this tag.
    pub(crate) fn stream(&self, tag: &Tag) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.tag == *tag)
    }

    /// The text whose length and offset are stored at offset `at` of the block's fields; empty if the fields are too
    /// short.
    pub(crate) fn text(&self, at: usize) -> String {
        let place = |at| u16_at(&self.fields, at).map(usize::from);
        let (Some(length), Some(offset)) = (place(at), place(at + 2)) else { return String::new() };
        let bytes = self.fields.get(offset..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        // String type 1 is ANSI, 2 is Unicode.
        let text: String = match self.fields.get(0x30) {
            Some(1) => bytes.iter().map(|&byte| char::from(byte)).collect(),
            _ => utf16(bytes),
        };
        text.trim_end_matches('\0').to_owned()
    }
}

/// The length of the soft filemark block at the start of `bytes`; `None` if `bytes` do not start with one.
pub(crate) fn is_filemark(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(u16_at(bytes, 8)?);
    let is_mark = bytes.starts_with(b"SFMB")
        && words_xor(bytes, 25) == u16_at(bytes, 50)
        && length.is_multiple_of(SECTOR_BYTES)
        && (SECTOR_BYTES..=MAX_FIELDS).contains(&length);
    is_mark.then_some(length)
}

/// The XOR of the first `count` 16-bit words; `None` if there are fewer words.
fn words_xor(bytes: &[u8], count: usize) -> Option<u16> {
    let (words, _) = bytes.get(..2 * count)?.as_chunks::<2>();
    Some(words.iter().fold(0, |sum, word| sum ^ u16::from_le_bytes(*word)))
}

/// Whether `bytes` start with the undamaged header of a block.
pub(super) fn is_block(bytes: &[u8]) -> bool {
    bytes.first_chunk::<4>().is_some_and(|tag| BLOCKS.contains(&tag))
        && words_xor(bytes, 25).is_some_and(|sum| Some(sum) == u16_at(bytes, 50))
}

/// Whether `bytes` start with the undamaged header of a stream.
fn is_stream(bytes: &[u8]) -> bool {
    bytes.iter().take(4).all(u8::is_ascii_uppercase)
        && words_xor(bytes, 10).is_some_and(|sum| Some(sum) == u16_at(bytes, 20))
}

/// Walks over the blocks of a tape.
pub(crate) struct Walk<'a> {
    media: &'a Media,
    at: u64,
    room: &'a Room,
    /// The damage found up to now: the tape offset and the kind of each place.
    pub(crate) damage: Vec<(u64, DamageKind)>,
    /// For each block type that this program does not use, the number of undamaged blocks of this type found up to now.
    pub(crate) undescribed: BTreeMap<Tag, u64>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(media: &'a Media, room: &'a Room) -> Self {
        Self { media, at: 0, room, damage: Vec::new(), undescribed: BTreeMap::new() }
    }

    /// The backup file.
    pub(super) fn media(&self) -> &'a Media {
        self.media
    }

    /// The tape offset at which the next block should begin.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    fn note(&mut self, at: u64, kind: DamageKind) -> io::Result<()> {
        let path = self.media.path.as_os_str().len();
        self.room.take(BYTES_PER_DAMAGE + path, "its damaged places")?;
        self.damage.push((at, kind));
        Ok(())
    }

    /// The next block; `None` at the end of the tape.
    pub(crate) fn next(&mut self) -> io::Result<Option<Block>> {
        while self.at < self.media.length() {
            let at = self.at;
            let mut fields = vec![0; MAX_FIELDS];
            let read = match self.media.read_part(&mut fields, at)? {
                Part::Read(read) => read,
                Part::Damaged(_) => {
                    self.search(at + 1)?;
                    continue;
                }
            };
            fields.truncate(read);
            if read == 0 {
                // This is the end of a pipe: its length was unknown until now.
                break;
            }
            if read < HEADER_BYTES {
                self.truncated(at)?;
                break;
            }
            let is_sound = words_xor(&fields, 25) == u16_at(&fields, 50);
            let tag = fields.first_chunk::<4>().copied().unwrap_or_default();
            let first_stream = usize::from(u16_at(&fields, 8).unwrap_or_default());
            let is_known = BLOCKS.contains(&&tag) && first_stream >= HEADER_BYTES;
            if at > 0 && fields.iter().take(SECTOR_BYTES).all(|&byte| byte == 0) {
                // Zeros after the last block are padding by the device. Zeros between blocks are blocks that were
                // wiped.
                self.search(at)?;
                if self.at < self.media.length() {
                    self.note(at, DamageKind::Lost)?;
                }
                continue;
            }
            if !is_sound {
                self.note(at, DamageKind::BlockChecksum { tag })?;
            }
            if !is_known || first_stream > MAX_FIELDS {
                let is_name = tag.iter().all(u8::is_ascii_uppercase) && !BLOCKS.contains(&&tag);
                if is_sound && is_name && (HEADER_BYTES..=MAX_FIELDS).contains(&first_stream) {
                    self.pass(tag, at + first_stream as u64)?;
                    continue;
                }
                if is_sound {
                    self.note(at, DamageKind::UnknownBlock { tag })?;
                }
                self.search(at + 1)?;
                continue;
            }
            fields.truncate(first_stream);
            if &tag == b"SFMB" {
                self.at = at + first_stream as u64;
                return Ok(Some(Block { tag, at, fields, streams: Vec::new() }));
            }
            let streams = self.streams(at + first_stream as u64)?;
            return Ok(Some(Block { tag, at, fields, streams }));
        }
        Ok(None)
    }

    /// Skips a block of a type that SQL Server has never been seen to write. The tape format defines more types than
    /// SQL Server writes (docs/format/backups.md#tape). The bytes after the header of the skipped block need not be
    /// streams, so damage found in these bytes is not reported.
    fn pass(&mut self, tag: Tag, first: u64) -> io::Result<()> {
        let is_told = self.undescribed.len() < MOST_TYPES || self.undescribed.contains_key(&tag);
        *self.undescribed.entry(if is_told { tag } else { OTHER_TYPES }).or_default() += 1;
        let known_damage = self.damage.len();
        self.streams(first)?;
        self.damage.truncate(known_damage);
        Ok(())
    }

    /// The streams of a block, up to and including SPAD. Sets `self.at` to the start of the next block.
    fn streams(&mut self, first: u64) -> io::Result<Vec<Stream>> {
        let mut streams = Vec::new();
        let mut at = first;
        let end = self.media.length();
        for _ in 0..MAX_STREAMS {
            let mut header = [0; STREAM_BYTES];
            let read = match self.media.read_at(&mut header, at) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.search(at)?;
                    return Ok(streams);
                }
                Err(error) => return Err(error),
            };
            if read < STREAM_BYTES {
                self.truncated(at)?;
                self.at = end;
                return Ok(streams);
            }
            if header == [0; STREAM_BYTES] {
                // An all-zero header has a correct checksum. It is damage nevertheless, because the streams of a block
                // end with a SPAD stream.
                self.note(at, DamageKind::Lost)?;
                self.search(at)?;
                return Ok(streams);
            }
            let tag = header.first_chunk::<4>().copied().unwrap_or_default();
            if words_xor(&header, 10) != u16_at(&header, 20) {
                self.note(at, DamageKind::StreamChecksum { tag })?;
                if !self.is_followed(at, &header)? {
                    self.search(at)?;
                    return Ok(streams);
                }
            }
            let claimed = u64_at(&header, 8).unwrap_or_default();
            let data = at + STREAM_BYTES as u64;
            let length = claimed.min(end.saturating_sub(data));
            let is_encrypted = u16_at(&header, 16) != Some(0);
            // Records within the stream's data are lost, and their total length is unknown. The length in the stream's
            // header is then unreliable, so the next block is searched for.
            if let Some(lost) = self.media.loss_in(data, length)
                && !self.is_followed(at, &header)?
            {
                self.search(lost)?;
                let length = self.length_before(data, self.at.min(end))?;
                streams.push(Stream { tag, at: data, length, is_encrypted });
                return Ok(streams);
            }
            streams.push(Stream { tag, at: data, length, is_encrypted });
            if length < claimed {
                self.truncated(data.saturating_add(length))?;
                self.at = end;
                return Ok(streams);
            }
            at = (data + length).next_multiple_of(4);
            if &tag == b"SPAD" {
                self.at = at;
                return Ok(streams);
            }
        }
        self.search(at)?;
        Ok(streams)
    }

    /// Whether a valid header of a stream or block follows the stream's data. If so, the length in the stream's header
    /// can be trusted, although the header or the data is damaged.
    fn is_followed(&self, at: u64, header: &[u8; STREAM_BYTES]) -> io::Result<bool> {
        let length = u64_at(header, 8).unwrap_or(u64::MAX);
        let Some(next) = at.checked_add(STREAM_BYTES as u64).and_then(|data| data.checked_add(length)) else {
            return Ok(false);
        };
        let Some(next) = next.checked_next_multiple_of(4).filter(|&next| next < self.media.length()) else {
            return Ok(false);
        };
        let mut bytes = [0; HEADER_BYTES];
        let read = self.media.read_at(&mut bytes, next).unwrap_or_default();
        let bytes = bytes.get(..read).unwrap_or_default();
        let is_block = words_xor(bytes, 25).is_some_and(|sum| Some(sum) == u16_at(bytes, 50));
        Ok(is_stream(bytes) || is_block && bytes.iter().take(4).any(|&byte| byte != 0))
    }

    /// The length of the page or log data that starts at `data`. Between the data and the next block, which starts at
    /// `end`, there is padding.
    pub(super) fn length_before(&self, data: u64, end: u64) -> io::Result<u64> {
        let unit = PAGE_BYTES as u64;
        let mut units = end.saturating_sub(data + LEAD_BYTES) / unit;
        // The padding is at most as long as one page.
        for _ in 0..2 {
            let length = LEAD_BYTES + units * unit;
            let mut header = [0; STREAM_BYTES];
            let read = self.media.read_at(&mut header, (data + length).next_multiple_of(4)).unwrap_or_default();
            if header.get(..read).is_some_and(is_stream) {
                return Ok(length);
            }
            units = units.saturating_sub(1);
        }
        Ok(end.saturating_sub(data))
    }

    /// Moves to the next undamaged block at or after `from`; blocks start at multiples of a sector. If there is no
    /// further block, the skipped bytes are reported unless they are all zeros.
    fn search(&mut self, from: u64) -> io::Result<()> {
        let from = from.next_multiple_of(SECTOR_BYTES as u64);
        let mut window = Vec::new();
        let mut wanted = *SEARCH_BYTES.start();
        let mut at = from;
        let mut is_empty = true;
        while at < self.media.length() {
            window.resize(wanted, 0);
            let read = match self.media.read_part(&mut window, at) {
                Ok(Part::Read(0)) => break,
                Ok(Part::Read(read)) => read,
                // Damaged records of the compressed container are stepped over.
                Ok(Part::Damaged(bytes)) => {
                    at = at.saturating_add(bytes.next_multiple_of(SECTOR_BYTES as u64));
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
                // If several sectors cannot be read together, they are read one by one.
                Err(_) => {
                    if wanted == SECTOR_BYTES {
                        at += SECTOR_BYTES as u64;
                    }
                    wanted = SECTOR_BYTES;
                    continue;
                }
            };
            for (sector, bytes) in window.get(..read).unwrap_or_default().chunks(SECTOR_BYTES).enumerate() {
                if is_block(bytes) {
                    self.at = at + (sector * SECTOR_BYTES) as u64;
                    return Ok(());
                }
                is_empty &= bytes.iter().all(|&byte| byte == 0);
            }
            at += read as u64;
            wanted = (wanted * 2).min(*SEARCH_BYTES.end());
        }
        if !is_empty {
            self.note(from, DamageKind::Lost)?;
        }
        self.at = self.media.length();
        Ok(())
    }

    fn truncated(&mut self, at: u64) -> io::Result<()> {
        self.at = self.media.length();
        self.note(at, DamageKind::Truncated)
    }
}
