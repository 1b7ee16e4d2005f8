//! Finds the place of each extent of a backup set. In a full backup with one stripe, the allocation maps give the
//! places in the first region. In other sets and regions, the page IDs in the pages themselves give the places
//! (docs/format/backups.md#where-the-pages-are). Places from allocation maps are always verified with the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use format::allocation::{self, EXTENT_PAGES, INTERVAL_EXTENTS, INTERVAL_PAGES, PFS_PAGES};
use format::page::PAGE_BYTES;
use format::protection::{self, undo_torn_bits};
use format::{Page, PageBytes, PageId, PageType};

use super::config::BackupFile;
use super::files::members;
use super::media::Media;
use super::names::{Identity, NamesOfRegion, SetFiles, keep_ascending, names};
use super::places::{FRAME_BYTES, FilePlaces, Layer, Place, Run};
use super::room::{MOST_STRIPES, Room};
use super::sets::{BackupSet, Region, SetKind};

/// The most places per file that are verified: the pages at these places must agree with the allocation maps.
const PROBES: u32 = 32;

/// The available stripes of a set. Each stripe is given by the number of its tape, and by the set as this tape
/// describes it.
pub(crate) type Stripes<'a> = [(u16, &'a BackupSet)];

/// The places of a set's extents.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// The places by data file.
    pub(crate) files: Vec<FilePlaces>,
    /// The files with fewer pages than their label counts: file ID, number of pages copied, number of pages found.
    pub(crate) short: Vec<(u16, u64, u64)>,
}

impl Placed {
    /// Keeps only the wanted files.
    pub(super) fn keep(&mut self, mut is_wanted: impl FnMut(u16) -> bool) {
        self.files.retain(|file| is_wanted(file.file_id));
        self.short.retain(|(file_id, ..)| self.files.iter().any(|file| file.file_id == *file_id));
    }
}

/// Finds the places of a set's extents.
pub(super) fn place(media: &[Media], stripes: &Stripes<'_>, room: &Room) -> io::Result<Placed> {
    let Some((_, set)) = stripes.first() else { return Ok(Placed::default()) };
    if let Some(placed) = room.places(media, stripes) {
        let layers = placed.files.iter().flat_map(|file| &file.layers);
        room.take(layers.map(Layer::held_bytes).sum(), EXTENTS)?;
        return Ok(placed);
    }
    let data_files = set.files.iter().filter(|file| file.is_data);
    let files = SetFiles::new(data_files.map(|file| (file.file_id, extents_of(file))));
    let regions = stripes.iter().map(|(_, set)| set.pages.len()).max().unwrap_or_default();
    let mut placed = Placed::default();
    placed.files.extend(files.ids().map(|file_id| FilePlaces { file_id, layers: Vec::new(), base_layers: None }));
    // The number of extents whose extent numbers could not be determined. The key is the index of the file and the
    // number of the region.
    let mut unplaced: BTreeMap<(u16, usize), u64> = BTreeMap::new();
    for number in 0..regions {
        let of_stripes: Vec<(u16, Region)> =
            stripes.iter().filter_map(|(tape, set)| Some((*tape, *set.pages.get(number)?))).collect();
        let is_plain = number == 0 && of_stripes.len() == 1 && stripes.len() == 1;
        let by_maps = match of_stripes.first() {
            Some(&(tape, region)) if is_plain => by_maps(media, set, tape, region, files.len())?,
            _ => None,
        };
        let mut nameless: BTreeMap<u16, Vec<Nameless>> = BTreeMap::new();
        // A layer is made only for files with extents in the region, so that a region of few extents needs little
        // memory.
        let layers = match by_maps {
            Some(layers) => layers,
            None => {
                let mut layers = Layers::new();
                for (tape, region) in of_stripes {
                    let bytes = ordering_bytes(region);
                    room.take(bytes, EXTENTS)?;
                    by_pages(media, &files, tape, region, &mut layers, &mut nameless)?;
                    room.give_back(bytes);
                }
                for index in nameless.keys() {
                    layers.entry(*index).or_default();
                }
                layers
            }
        };
        for (index, mut layer) in layers {
            let Some(file) = placed.files.get_mut(usize::from(index)) else { continue };
            layer.sort();
            layer.region = number;
            file.layers.push(layer);
            let left = place_nameless(media, set, number, nameless.remove(&index).unwrap_or_default(), file)?;
            if left > 0 {
                unplaced.insert((index, number), left);
            }
            room.take(file.layers.last().map_or(0, Layer::held_bytes), EXTENTS)?;
        }
    }
    let members = match set.kind.is_of_files() {
        true => members(media, stripes, &placed)?,
        false => files.ids().collect(),
    };
    let limit = most_extents(stripes);
    for (number, counts) in set.copied.iter().enumerate() {
        let mut counted = BTreeSet::new();
        for &(file_id, expected) in counts {
            let Some(index) = files.index(file_id).filter(|_| counted.insert(file_id)) else { continue };
            let Some(file) = placed.files.get_mut(usize::from(index)) else { continue };
            let layer = file.layers.binary_search_by_key(&number, |layer| layer.region).ok();
            let found = layer.and_then(|at| file.layers.get(at)).map_or(0, Layer::extents);
            let present = found + unplaced.get(&(index, number)).copied().unwrap_or_default();
            let (expected, extent_pages) = (u64::from(expected), u64::from(EXTENT_PAGES));
            if present * extent_pages < expected {
                placed.short.push((file_id, expected, present * extent_pages));
            }
            let is_member = members.contains(&file_id);
            if found * extent_pages < expected && number == 0 && regions > 0 && is_member {
                note_missing(media, set, limit, file, room)?;
            }
        }
    }
    placed.keep(|file_id| members.contains(&file_id));
    Ok(placed)
}

/// The text in the error message when the places exceed the memory limit.
const EXTENTS: &str = "the places of its extents";
/// Memory in bytes per extent while the extents of a region are sorted.
const BYTES_PER_ORDERED_EXTENT: usize = size_of::<Identity>() + 2 * size_of::<usize>() + size_of::<bool>();

/// Memory in bytes that is needed while the extents of a region are read and sorted; the result needs less.
fn ordering_bytes(region: Region) -> usize {
    let extents = region.length.div_ceil(FRAME_BYTES) as usize;
    extents.saturating_mul(BYTES_PER_ORDERED_EXTENT).saturating_add(NamesOfRegion::held_bytes(region))
}

/// The layer of each file in a region, by index of the file.
type Layers = BTreeMap<u16, Layer>;

/// An upper bound for the number of extents of a file, computed from the length of the stripes. There is a PFS page
/// every 8088 pages, and backups always copy PFS pages. A greater size in the configuration is not trusted.
pub(crate) fn most_extents(stripes: &Stripes<'_>) -> u32 {
    let bytes: u64 = stripes.iter().flat_map(|(_, set)| &set.pages).map(|region| region.length).sum();
    let frames = (bytes / FRAME_BYTES).saturating_mul(u64::from(MOST_STRIPES));
    u32::try_from(frames.saturating_mul(u64::from(PFS_PAGES / EXTENT_PAGES)))
        .map_or(MAX_EXTENTS, |most| most.min(MAX_EXTENTS))
}

/// SQL Server's limit for the size of a file, 16 TiB.
const MAX_EXTENTS: u32 = (1 << 31) / EXTENT_PAGES;

/// Size of a data file in extents.
fn extents_of(file: &BackupFile) -> u32 {
    u32::try_from(file.bytes.div_ceil(FRAME_BYTES)).unwrap_or(MAX_EXTENTS).clamp(1, MAX_EXTENTS)
}

/// Finds the extents of a region with the allocation maps that the region contains. The region stores the files in
/// sequence, with the extents of each file in ascending order. `known` is the number of distinct file IDs. `None` if
/// two files have the same ID, or if the maps do not agree with the pages or with the numbers of copied pages.
fn by_maps(media: &[Media], set: &BackupSet, tape: u16, region: Region, known: usize) -> io::Result<Option<Layers>> {
    let Some(media) = media.get(usize::from(tape)) else { return Ok(None) };
    let mut frame = 0u64;
    let mut layers = Layers::new();
    let files = set.files.iter().filter(|file| file.is_data);
    if files.clone().count() != known {
        return Ok(None);
    }
    for (index, file) in (0..).zip(files) {
        let frames = u64::from(file.pages_copied / EXTENT_PAGES);
        let first = frame;
        let end = first + frames;
        if end * FRAME_BYTES > region.length {
            return Ok(None);
        }
        if frames == 0 {
            continue;
        }
        let extents = extents_of(file);
        let mut layer = Layer::default();
        for interval in 0..extents.div_ceil(INTERVAL_EXTENTS) {
            let map = |page: u32, kind| {
                let at = region.at + frame * FRAME_BYTES + u64::from(page % EXTENT_PAGES) * PAGE_BYTES as u64;
                sound_page(media, at, PageId::new(file.file_id, page), kind)
            };
            if frame >= end {
                break;
            }
            let named = match set.kind {
                SetKind::Differential => changed(interval, map)?,
                _ => allocated(interval, extents, map)?,
            };
            let Some(expected) = named else { return Ok(None) };
            for extent in expected {
                if frame < end && extent < extents {
                    layer.push(Run::one(extent, tape, region.at + frame * FRAME_BYTES));
                    frame += 1;
                } else if extent < extents {
                    return Ok(None);
                }
            }
        }
        if frame != end {
            return Ok(None);
        }
        // The region and the maps list the same number of extents, both in ascending order. Therefore it is enough to
        // verify some places. Between two places that the pages confirm, an error is possible only if the region lacks
        // an extent that the maps list and also contains an extent that the maps do not list.
        let step = (layer.extents() as u32 / PROBES).max(1);
        let places: Vec<(u32, u64)> = layer.frames(step);
        let only = SetFiles::new(std::iter::once((file.file_id, extents)));
        for (extent, at) in places {
            // Old pages in the extent may name other extents. If the place is correct, at least one page names this
            // extent, or no page names any extent.
            let names = names(media, at, &only)?;
            if names.is_filler || !names.found.is_empty() && !names.found.contains(&(0, extent)) {
                return Ok(None);
            }
        }
        layers.insert(index, layer);
    }
    Ok(Some(layers))
}

/// Consecutive extents of a region that have no names in their pages, because they were never written or are damaged.
#[derive(Clone, Copy, Debug)]
struct Nameless {
    tape: u16,
    at: u64,
    count: u32,
    /// Index of the file to which the extents belong.
    file: u16,
    /// The numbers of these extents are in the range from `first` up to but not including `end`.
    first: u32,
    end: u32,
    is_readable: bool,
}

/// Finds the extents of a region by the names in their pages. Extents without a name are added to `nameless`, by file.
fn by_pages(
    media: &[Media],
    files: &SetFiles,
    tape: u16,
    region: Region,
    layers: &mut Layers,
    nameless: &mut BTreeMap<u16, Vec<Nameless>>,
) -> io::Result<()> {
    let Some(media) = media.get(usize::from(tape)) else { return Ok(()) };
    let mut add = |found: Nameless| nameless.entry(found.file).or_default().push(found);
    let mut frames = Vec::new();
    let mut before = None;
    let mut named = NamesOfRegion::new(media, region, files);
    for frame in 0..region.length.div_ceil(FRAME_BYTES) {
        let names = named.next(region.at + frame * FRAME_BYTES)?;
        let identity = names.identity(before);
        if let Identity::Named(file, extent) = identity {
            before = Some((file, extent));
        }
        frames.push(identity);
    }
    keep_ascending(&mut frames);
    let mut open: Option<Nameless> = None;
    let mut before: Option<(u16, u32)> = None;
    for (at, identity) in (region.at..).step_by(FRAME_BYTES as usize).zip(frames) {
        match identity {
            Identity::Named(index, extent) => {
                // The region stores the files in sequence, and the first extent of each file has names in its pages.
                // Nameless extents therefore belong to the file before them.
                if let Some(nameless) = open.take() {
                    let file = before.map_or(0, |(file, _)| file);
                    let end = if file == index { extent } else { u32::MAX };
                    // This is the first extent with a name in the region of a stripe. The nameless extents before it
                    // may belong to the file of this extent or to any earlier file. They are kept only if no earlier
                    // file exists.
                    if before.is_some() || index == 0 {
                        add(Nameless { end, ..nameless });
                    }
                }
                layers.entry(index).or_default().push(Run::one(extent, tape, at));
                before = Some((index, extent));
            }
            Identity::Filler => {}
            Identity::Nameless | Identity::Unreadable => {
                let is_readable = identity == Identity::Nameless;
                let (file, first) = before.map_or((0, 0), |(index, extent)| (index, extent + 1));
                match (&mut open, files.id(file)) {
                    (Some(open), _) => {
                        open.count += 1;
                        open.is_readable &= is_readable;
                    }
                    (None, Some(_)) => {
                        open = Some(Nameless { tape, at, count: 1, file, first, end: u32::MAX, is_readable });
                    }
                    (None, None) => {}
                }
            }
        }
    }
    if let Some(open) = open.filter(|_| before.is_some() || files.len() == 1) {
        add(open);
    }
    Ok(())
}

/// The page at tape offset `at`, if it is undamaged and has this page ID and type.
fn sound_page(media: &Media, at: u64, id: PageId, kind: PageType) -> io::Result<Option<Box<PageBytes>>> {
    let mut bytes = Box::new([0; PAGE_BYTES]);
    match media.read_at(bytes.as_mut_slice(), at) {
        Ok(PAGE_BYTES) => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
        Err(error) => return Err(error),
    }
    let is_sound = protection::verify(&bytes).is_ok();
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    Ok((is_sound && header.page_id() == id && header.kind() == Some(kind)).then_some(bytes))
}

type FetchedPage = io::Result<Option<Box<PageBytes>>>;

/// The extents of a GAM interval that a full backup copies: the first extent, the extents that are allocated in the GAM
/// or marked in the SGAM, and the extents with a PFS page. `extents` is the number of extents of the file. `None` if a
/// map cannot be read.
fn allocated(
    interval: u32,
    extents: u32,
    fetch: impl Fn(u32, PageType) -> FetchedPage,
) -> io::Result<Option<Vec<u32>>> {
    let first_page = interval * INTERVAL_PAGES;
    let gam_page = allocation::gam_page_of(first_page);
    let (gam, sgam) = (fetch(gam_page, PageType::Gam)?, fetch(gam_page + 1, PageType::Sgam)?);
    let (Some(gam), Some(sgam)) = (gam, sgam) else { return Ok(None) };
    let (Some(gam), Some(sgam)) = (allocation::bitmap(Page::new(&gam)), allocation::bitmap(Page::new(&sgam))) else {
        return Ok(None);
    };
    let first_extent = interval * INTERVAL_EXTENTS;
    let holds_pfs = |extent: u32| (extent * EXTENT_PAGES).next_multiple_of(PFS_PAGES) < (extent + 1) * EXTENT_PAGES;
    let is_copied = |index: &u32| {
        let extent = first_extent + index;
        *index == 0 || !allocation::bit(gam, *index) || allocation::bit(sgam, *index) || holds_pfs(extent)
    };
    let of_file = extents.saturating_sub(first_extent).min(INTERVAL_EXTENTS);
    Ok(Some((0..of_file).filter(is_copied).map(|index| first_extent + index).collect()))
}

/// The extents of a GAM interval that a differential backup copies: the first extent, and the extents marked in the
/// differential map.
fn changed(interval: u32, fetch: impl Fn(u32, PageType) -> FetchedPage) -> io::Result<Option<Vec<u32>>> {
    let Some(map) = fetch(interval * INTERVAL_PAGES + 6, PageType::DiffMap)? else { return Ok(None) };
    let Some(map) = allocation::bitmap(Page::new(&map)) else { return Ok(None) };
    let marked = allocation::set_bits(map).filter(|&index| index != 0);
    Ok(Some(std::iter::once(0).chain(marked).map(|index| interval * INTERVAL_EXTENTS + index).collect()))
}

/// The extents of a GAM interval that the backup must contain, according to the allocation maps in a placed file;
/// `None` if the maps were not found.
fn expected(media: &[Media], set: &BackupSet, places: &FilePlaces, interval: u32) -> io::Result<Option<Vec<u32>>> {
    let fetch = |page: u32, kind| {
        let (Place::At(tape, at), _) = places.locate(page / EXTENT_PAGES) else { return Ok(None) };
        let Some(media) = media.get(usize::from(tape)) else { return Ok(None) };
        let at = at + u64::from(page % EXTENT_PAGES) * PAGE_BYTES as u64;
        sound_page(media, at, PageId::new(places.file_id, page), kind)
    };
    match set.kind {
        SetKind::Differential => changed(interval, fetch),
        _ => allocated(interval, MAX_EXTENTS, fetch),
    }
}

/// Assigns extent numbers to nameless extents. An extent gets a number that the allocation maps require and that is
/// between the numbers of the extents around it. Returns how many extents got no number.
///
/// If the maps require more extents than there are nameless extents, the backup omitted some extents, and it is unknown
/// which. In the first region of a full backup, readable nameless extents get numbers anyway: their pages were never
/// written, so their order does not matter. In other regions, a wrong number would hide a good copy of another extent
/// in the layer below, so the nameless extents get no numbers. In a differential backup, all extents that could be one
/// of them then count as missing. In a region of extents that were copied again, the first copy remains valid.
fn place_nameless(
    media: &[Media],
    set: &BackupSet,
    region: usize,
    all: Vec<Nameless>,
    places: &mut FilePlaces,
) -> io::Result<u64> {
    let total: u64 = all.iter().map(|nameless| u64::from(nameless.count)).sum();
    let is_bottom = region == 0 && set.kind != SetKind::Differential;
    let mut added: Vec<Run> = Vec::new();
    let (mut given, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    let mut known: Option<(u32, Option<Vec<u32>>)> = None;
    for nameless in all {
        let mut left = nameless.count;
        let (first, end) = (nameless.first, nameless.end.min(MAX_EXTENTS));
        let mut free: Vec<u32> = Vec::new();
        for interval in first / INTERVAL_EXTENTS..end.div_ceil(INTERVAL_EXTENTS) {
            if known.as_ref().is_none_or(|(of, _)| *of != interval) {
                known = Some((interval, expected(media, set, places, interval)?));
            }
            let Some((_, Some(expected))) = &known else { break };
            let is_placed = |extent: &u32| {
                given.contains(extent) || places.layers.last().is_some_and(|layer| layer.contains(*extent))
            };
            let from = expected.partition_point(|&extent| extent < first);
            let between = expected.get(from..).unwrap_or_default().iter().take_while(|&&extent| extent < end);
            free.extend(between.filter(|extent| !is_placed(extent)));
            if is_bottom && free.len() > nameless.count as usize {
                break;
            }
        }
        if free.len() as u64 == u64::from(nameless.count) || nameless.is_readable && is_bottom {
            for (number, extent) in free.into_iter().enumerate() {
                if left == 0 {
                    break;
                }
                added.push(Run::one(extent, nameless.tape, nameless.at + number as u64 * FRAME_BYTES));
                given.insert(extent);
                left -= 1;
            }
        } else if region == 0 && !is_bottom {
            unknown.extend(free);
        }
    }
    if let Some(layer) = places.layers.last_mut() {
        unknown.into_iter().for_each(|extent| layer.push_missing(extent..extent + 1));
    }
    let left = total - added.len() as u64;
    if let Some(layer) = places.layers.last_mut().filter(|_| !added.is_empty()) {
        added.into_iter().for_each(|run| layer.push(run));
        layer.sort();
    }
    Ok(left)
}

/// Marks as missing the extents that the allocation maps in the first region require, but that were not found. If the
/// maps of a GAM interval were not found either, every extent of this interval that was not found is marked as missing.
fn note_missing(media: &[Media], set: &BackupSet, limit: u32, places: &mut FilePlaces, room: &Room) -> io::Result<()> {
    let bytes = set.files.iter().find(|file| file.file_id == places.file_id).map_or(0, |file| file.bytes);
    let extents = u32::try_from(bytes / FRAME_BYTES).unwrap_or(u32::MAX).min(limit);
    if places.layers.first().is_none_or(|layer| layer.region != 0) {
        places.layers.insert(0, Layer::default());
    }
    let mut missing = Layer::default();
    let mut first = 0;
    while first < extents {
        let (place, same) = places.locate(first);
        let Some(layer) = places.layers.first() else { return Ok(()) };
        let interval = first / INTERVAL_EXTENTS;
        let named = match place {
            Place::At(..) => expected(media, set, places, interval)?,
            _ => None,
        };
        let end = match &named {
            Some(expected) => {
                let is_missing = |extent: &&u32| **extent < extents && !layer.contains(**extent);
                expected.iter().filter(is_missing).for_each(|&extent| missing.push_missing(extent..extent + 1));
                first + INTERVAL_EXTENTS
            }
            None => {
                // The maps of a GAM interval are in its first extent. If a range of missing extents extends over the
                // first extents of further intervals, the maps of these intervals are missing too.
                let same = if matches!(place, Place::At(..)) { 1 } else { same };
                let end = first.saturating_add(same).div_ceil(INTERVAL_EXTENTS).saturating_mul(INTERVAL_EXTENTS);
                layer.gaps(first..end.min(extents)).for_each(|gap| missing.push_missing(gap));
                end
            }
        };
        first = end;
    }
    room.take(missing.held_bytes(), EXTENTS)?;
    if let Some(layer) = places.layers.first_mut() {
        layer.take_missing(missing);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
