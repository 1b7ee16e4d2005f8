//! Recognizes a backup whose beginning is overwritten, as by ransomware, by its other blocks or records, and finds the
//! pages whose block is lost.

use std::io;
use std::ops::Range;
use std::path::Path;

use format::allocation::EXTENT_PAGES;
use format::page::PAGE_BYTES;

use super::blocks::{SECTOR_BYTES, is_block};
use super::compressed::expand;
use super::media::{Media, Part};
use super::places::FRAME_BYTES;
use super::version::{MAX_SECTORS, V1, V2, Version};
use crate::identify::{Archive, FileKind, Holder, IDENTIFY_BYTES, identify, names_a_backup};
use crate::positioned::{ReadAt, read_fully_at};
use crate::remains::first_of_two;

/// The length of the pieces of a file that are looked at: its end, its beginning and its middle.
const PIECE_BYTES: u64 = 1 << 20;
/// The most places of a piece that are tried as the start of a record. In compressed data, the tags of both versions stand
/// at 8,192 places of a piece by chance, and the first record starts within the first 66 KB.
const MOST_TRIED: usize = 1 << 14;
/// Bytes per read when looking for pages.
const WINDOW_BYTES: usize = 1 << 20;

/// The form of a backup file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A tape.
    Plain,
    /// A compressed container.
    Compressed(Version),
}

/// The form of a file of `length` bytes that does not begin like a backup; `None` if nothing in it shows that it is one.
/// Only files with the name of a backup are looked at, because a folder may have thousands of others.
pub(crate) fn form(path: &Path, file: &dyn ReadAt, length: u64) -> Option<Form> {
    if !names_a_backup(path) {
        return None;
    }
    let mut start = vec![0; IDENTIFY_BYTES];
    let read = read_fully_at(file, &mut start, 0).ok()?;
    let start = start.get(..read)?;
    let is_other =
        identify(start) != FileKind::Other || Archive::of(start).is_some() || Holder::of(path, start).is_some();
    if is_other {
        return None;
    }
    // The last blocks of a backup are at its end. In a compressed backup, each piece has records.
    let starts = [length.saturating_sub(PIECE_BYTES), 0, length / 2];
    let mut bytes = vec![0; PIECE_BYTES.min(length) as usize];
    starts.into_iter().find_map(|start| {
        let start = start.next_multiple_of(SECTOR_BYTES as u64);
        let read = read_fully_at(file, &mut bytes, start).ok()?;
        form_of(bytes.get(..read)?)
    })
}

/// The form of a backup file, according to a piece of it that starts at a sector.
fn form_of(piece: &[u8]) -> Option<Form> {
    // The filemarks of a compressed container are blocks too, so its records are looked for first.
    let mut room = vec![0; usize::from(MAX_SECTORS) * SECTOR_BYTES];
    let mut is_record = |version: Version, at: usize| {
        let (sectors, payload) = piece.get(at..).and_then(|bytes| version.record(bytes))?;
        let out = room.get_mut(..usize::from(sectors) * SECTOR_BYTES)?;
        expand(payload, out).then_some(Form::Compressed(version))
    };
    let tags = piece.iter().enumerate().filter_map(|(at, byte)| match *byte {
        byte if byte == V1.tag => Some((V1, at)),
        byte if byte == V2.tag => Some((V2, at)),
        _ => None,
    });
    let record = tags.take(MOST_TRIED).find_map(|(version, at)| is_record(version, at));
    record.or_else(|| piece.chunks(SECTOR_BYTES).any(is_block).then_some(Form::Plain))
}

/// The tape offset of the first extent whose pages are in the tape's bytes `lost`, which belong to no block. `None` if there
/// are no pages.
pub(super) fn first_extent(media: &Media, lost: &Range<u64>) -> io::Result<Option<u64>> {
    let mut window = vec![0; WINDOW_BYTES + 2 * PAGE_BYTES];
    let mut at = lost.start.next_multiple_of(SECTOR_BYTES as u64);
    while at < lost.end {
        let read = match media.read_part(&mut window, at) {
            Ok(Part::Read(0)) => break,
            Ok(Part::Read(read)) => read,
            Ok(Part::Damaged(bytes)) => {
                at = at.saturating_add(bytes.next_multiple_of(SECTOR_BYTES as u64));
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
            // Each failed read may take seconds, so the frame is passed over as a whole.
            Err(_) => {
                at += FRAME_BYTES.next_multiple_of(SECTOR_BYTES as u64);
                continue;
            }
        };
        let bytes = window.get(..read).unwrap_or_default();
        let found = (0..read).step_by(SECTOR_BYTES).find_map(|offset| Some((offset, first_of_two(bytes, offset)?)));
        if let Some((offset, page)) = found {
            let before = u64::from(page.page % EXTENT_PAGES) * PAGE_BYTES as u64;
            let (first, after) = ((at + offset as u64).checked_sub(before), FRAME_BYTES - before);
            let first = first.filter(|first| *first >= lost.start).unwrap_or(at + offset as u64 + after);
            return Ok(Some(first).filter(|first| *first < lost.end));
        }
        // The next window begins so that it has each pair of pages that this window has not as a whole.
        let step = read.saturating_sub(2 * PAGE_BYTES).max(SECTOR_BYTES);
        at += (step as u64).next_multiple_of(SECTOR_BYTES as u64);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_backup_may_have_a_further_extension() {
        let names = ["a.bak", "A.BAK", "a.trn", "a.bak.locked", "sales.diff"];
        assert!(names.iter().all(|name| names_a_backup(Path::new(name))));
        assert!(["a.mdf", "bak", "a.bakery", ""].iter().all(|name| !names_a_backup(Path::new(name))));
    }

    #[test]
    fn bytes_of_other_files_have_no_form() {
        for bytes in [
            vec![0; 1 << 16],
            vec![0x21; 1 << 16],
            vec![0x81; 1 << 16],
            (0..1u32 << 14).flat_map(u32::to_le_bytes).collect(),
        ] {
            assert!(form_of(&bytes).is_none());
        }
    }
}
