//! What opening a full backup has found, kept for a later opening of the same files: the index of a compressed file, for
//! which opening walks from record to record, and the places of extents in stripes, for which it reads all pages.
//!
//! The caller vouches that the files are the same and that the bytes were not changed. Nevertheless, a hint can do no harm
//! (docs/architecture/changes.md#what-opening-found): pages name themselves, records have checksums, and each number is
//! tested against the files. A hint that does not fit is ignored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compressed::Compressed;
use super::groups::{Entry, Groups};
use super::media::Media;
use super::placement::{Placed, Stripes};
use super::places::{FRAME_BYTES, FilePlaces, Layer, Run};
use super::room::MOST_REGIONS;
use super::seen::lasting;
use super::{BackupPages, SetKind};

/// What opening has found.
#[derive(Clone, Debug, Default)]
pub struct Hints(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    /// The GUID of the set.
    set: String,
    /// The files, in the order of the numbers of their tapes.
    files: Vec<File>,
    places: Vec<Place>,
}

#[derive(Debug, Default)]
struct File {
    path: PathBuf,
    /// Length of the file.
    length: u64,
    /// The index entries of a compressed file.
    entries: Vec<u64>,
}

/// A run of extents of a data file.
#[derive(Debug)]
struct Place {
    file_id: u16,
    region: u16,
    extent: u32,
    count: u32,
    tape: u16,
    at: u64,
}

impl Place {
    const BYTES: usize = 2 + 2 + 4 + 4 + 2 + 8;
}

impl Hints {
    /// Reads the output of [`BackupPages::hints`]; `None` if it has another form. Memory grows with the bytes that are
    /// there, whatever numbers they contain.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Bytes(bytes);
        let mut found = Found { set: rest.text()?, ..Found::default() };
        for _ in 0..rest.number()? {
            let mut file = File { path: rest.text()?.into(), length: rest.number()?, entries: Vec::new() };
            let entries = rest.number()?;
            let entries = rest.take(usize::try_from(entries).ok()?.checked_mul(8)?)?;
            file.entries.extend(entries.chunks_exact(8).filter_map(|entry| Bytes(entry).number()));
            found.files.push(file);
        }
        let places = rest.number()?;
        let places = rest.take(usize::try_from(places).ok()?.checked_mul(Place::BYTES)?)?;
        for place in places.chunks_exact(Place::BYTES) {
            let mut place = Bytes(place);
            found.places.push(Place {
                file_id: u16::from_le_bytes(place.array()?),
                region: u16::from_le_bytes(place.array()?),
                extent: u32::from_le_bytes(place.array()?),
                count: u32::from_le_bytes(place.array()?),
                tape: u16::from_le_bytes(place.array()?),
                at: u64::from_le_bytes(place.array()?),
            });
        }
        rest.0.is_empty().then(|| Self(Arc::new(found)))
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.files.is_empty()
    }

    /// The index of a compressed file; `None` if it is unknown or does not fit the file.
    pub(super) fn index(&self, path: &Path, length: u64) -> Option<Groups> {
        let path = lasting(path);
        let file = self.0.files.iter().find(|file| file.path == path && file.length == length)?;
        Groups::of_hint(&file.entries, length)
    }

    /// The places of the extents of a set; `None` if they are unknown or do not fit the files.
    pub(super) fn places(&self, media: &[Media], stripes: &Stripes<'_>) -> Option<Placed> {
        let Found { set, files, places } = &*self.0;
        let (_, first) = stripes.first()?;
        if places.is_empty() || first.guid.as_ref() != Some(set) || first.kind != SetKind::Full {
            return None;
        }
        // The files may be given in another order now.
        let tape_of = |file: &File| {
            let is_it = |(tape, _): &&(u16, &super::BackupSet)| {
                media.get(usize::from(*tape)).is_some_and(|media| lasting(&media.path) == file.path)
            };
            stripes.iter().find(is_it).map(|(tape, _)| *tape)
        };
        let tapes: Vec<Option<u16>> = files.iter().map(tape_of).collect();
        if stripes.iter().any(|(tape, _)| !tapes.contains(&Some(*tape))) {
            return None;
        }
        let mut placed = Placed::default();
        for place in places {
            let tape = tapes.get(usize::from(place.tape)).copied().flatten()?;
            let end = u64::from(place.count).checked_mul(FRAME_BYTES)?.checked_add(place.at)?;
            let is_file = first.files.iter().any(|file| file.is_data && file.file_id == place.file_id);
            let is_inside = end <= media.get(usize::from(tape))?.length().next_multiple_of(FRAME_BYTES);
            let is_region = usize::from(place.region) < MOST_REGIONS;
            // The higher bits of a place hold the number of the tape.
            let is_inside = is_inside && end < 1 << 48;
            if place.count == 0
                || place.extent.checked_add(place.count).is_none()
                || !(is_file && is_inside && is_region)
            {
                return None;
            }
            let is_new = placed.files.last().is_none_or(|file| file.file_id != place.file_id);
            if is_new {
                if placed.files.iter().any(|file| file.file_id >= place.file_id) {
                    return None;
                }
                placed.files.push(FilePlaces { file_id: place.file_id, layers: Vec::new(), base_layers: None });
            }
            let layers = &mut placed.files.last_mut()?.layers;
            let region = usize::from(place.region);
            if layers.last().is_none_or(|layer| layer.region < region) {
                layers.push(Layer::of_region(region));
            }
            let layer = layers.last_mut().filter(|layer| layer.region == region)?;
            if !layer.push_known(Run::new(place.extent, place.count, tape, place.at)) {
                return None;
            }
        }
        Some(placed)
    }
}

impl BackupPages {
    /// What opening this full backup has found, for a later opening of the same files, after all of it was read; `None` if
    /// opening it again is cheap, if there are more than `most_bytes` bytes, or if the backup has damage or several sets.
    pub fn hints(&self, most_bytes: u64) -> Option<Vec<u8>> {
        let [set] = self.sets.as_slice() else { return None };
        let guid = set.guid.as_ref().filter(|_| set.kind == SetKind::Full)?;
        let is_whole = self.damage.is_empty() && self.missing_stripes == 0 && self.undescribed.is_empty();
        if !is_whole || set.paths.len() != self.media.len() {
            return None;
        }
        let mut bytes = Vec::new();
        put_text(guid, &mut bytes);
        put(self.media.len() as u64, &mut bytes);
        let mut has_index = false;
        for media in self.media.iter() {
            put_text(lasting(&media.path).to_str()?, &mut bytes);
            let (length, entries) = match media.compressed() {
                Some((length, compressed)) => (length, compressed.sound_entries()?),
                None => (media.length(), &[][..]),
            };
            has_index |= !entries.is_empty();
            if bytes.len() as u64 + size_of_val(entries) as u64 > most_bytes {
                return None;
            }
            put(length, &mut bytes);
            put(entries.len() as u64, &mut bytes);
            entries.iter().for_each(|entry| put(entry.to_bits(), &mut bytes));
        }
        // The maps of a backup with a single stripe give the places of its extents.
        let mut places = Vec::new();
        if self.media.len() > 1 {
            for file in &self.places {
                for layer in &file.layers {
                    let region = u16::try_from(layer.region).ok()?;
                    for (extent, count, tape, at) in layer.known()? {
                        if (bytes.len() + places.len() + Place::BYTES) as u64 > most_bytes {
                            return None;
                        }
                        places.extend(file.file_id.to_le_bytes());
                        places.extend(region.to_le_bytes());
                        places.extend(extent.to_le_bytes());
                        places.extend(count.to_le_bytes());
                        places.extend(tape.to_le_bytes());
                        places.extend(at.to_le_bytes());
                    }
                }
            }
        }
        put((places.len() / Place::BYTES) as u64, &mut bytes);
        let is_worth = has_index || !places.is_empty();
        bytes.append(&mut places);
        is_worth.then_some(bytes)
    }

    /// Whether opening has used hints.
    pub fn is_hinted(&self) -> bool {
        self.is_hinted
    }

    /// Whether a file whose index came from a hint has a record that cannot be read. A whole opening may find more about
    /// such damage.
    pub fn hint_failed(&self) -> bool {
        self.media
            .iter()
            .filter_map(|media| media.compressed())
            .any(|(_, compressed)| Compressed::hint_failed(compressed))
    }
}

fn put(number: u64, to: &mut Vec<u8>) {
    to.extend(number.to_le_bytes());
}

fn put_text(text: &str, to: &mut Vec<u8>) {
    put(text.len() as u64, to);
    to.extend(text.as_bytes());
}

/// Bytes that are read from the start.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        Some(std::str::from_utf8(self.take(length)?).ok()?.to_owned())
    }
}

impl Entry {
    fn to_bits(self) -> u64 {
        self.0
    }
}

impl Groups {
    /// The index with these entries; `None` if they are no index of a whole and sound file of this length.
    fn of_hint(entries: &[u64], length: u64) -> Option<Self> {
        let mut groups = Self { is_whole: true, ..Self::default() };
        let mut next = 0;
        for entry in entries.iter().map(|bits| Entry(*bits)) {
            let is_known = entry.flags() == 0 || entry.flags() == Entry::LITERAL;
            if !is_known || entry.offset() < next || entry.offset() >= length || !(1..=128).contains(&entry.sectors()) {
                return None;
            }
            next = entry.offset() + 1;
            groups.length = groups.length.checked_add(entry.bytes() as u64)?;
            groups.entries.push(entry);
        }
        groups.has_records().then_some(groups)
    }
}
