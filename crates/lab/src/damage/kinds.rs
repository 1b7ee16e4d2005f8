//! How each kind of damage is done. Each kind picks the page that suits it best: first pages like those of a large user
//! table; if the database has none, a smaller page, a page of a base table, or a page on which other checks must detect
//! the damage.

use super::Kind;
use super::image::{Image, Rank};
use super::target::Target;
use crate::disk::LabError;
use crate::ids::{EXTENT, PAGE, PFS_INTERVAL, PageId};
use crate::page::{PageVerify, page_type};
use crate::random::Random;

/// The changed pages, the damage as text, and the numbers of the messages to expect.
pub(super) type Done = (Vec<PageId>, String, &'static [u16]);

/// Ranks are below this number if the page is the best of its kind; the rank of each substitute is this number higher
/// than that of the substitute before it.
const SUBSTITUTE: u8 = 4;
/// The first page of a file that a zeroed extent may contain: the boot page and the maps are in the extents before it.
const FIRST_ORDINARY: u32 = 2 * EXTENT;

pub(super) fn bit_rot(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |_, page| {
        let by_verify = match page.verify() {
            PageVerify::Checksum => 0,
            PageVerify::Torn => SUBSTITUTE,
            PageVerify::None => 2 * SUBSTITUTE,
        };
        Ok(page.by_leaf().filter(|_| page.end_is_sound()).map(|rank| rank + by_verify))
    })?;
    let mut page = found.ok_or_else(|| nothing(Kind::BitRot))?;
    page.protect();
    let (offset, bit, messages): (usize, u64, &[u16]) = match page.verify() {
        PageVerify::Checksum => {
            let used = u64::from(page.end()) - 96;
            (96 + dice.below(used) as usize, dice.below(8), &[8928, 8939])
        }
        // Torn-page protection detects only changes of the last two bits of a sector.
        PageVerify::Torn => (512 * (2 + dice.below(15) as usize) - 1, dice.below(2), &[8928, 8939]),
        // Without protection, an offset in the slot array that is outside the page reveals the change.
        PageVerify::None => {
            let slot = dice.below(u64::from(page.slots())) as usize;
            (PAGE - 1 - 2 * slot, 6 + dice.below(2), &[8941, 8942, 8928, 8939])
        }
    };
    page.bytes[offset] ^= 1 << bit;
    target.write(&page)?;
    Ok((vec![page.id], format!("bit {bit} of byte {offset} of page {} is flipped", text(page.id)), messages))
}

pub(super) fn torn_write(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |_, page| {
        let by_verify = if page.verify() == PageVerify::None { SUBSTITUTE } else { 0 };
        Ok(page.by_leaf().map(|rank| rank + by_verify))
    })?;
    let mut page = found.ok_or_else(|| nothing(Kind::TornWrite))?;
    let sectors = 1 + dice.below(15) as usize;
    page.protect();
    // Without protection, the empty slot array at the end of the page reveals the damage.
    let messages: &[u16] = match page.verify() {
        PageVerify::None => &[8928, 8939, 8941, 8942, 8944],
        _ => &[8928, 8939],
    };
    page.bytes[512 * sectors..].fill(0);
    target.write(&page)?;
    let what = format!("{sectors} of the 16 sectors of page {} were written, the rest is zero", text(page.id));
    Ok((vec![page.id], what, messages))
}

pub(super) fn lost_write(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |_, page| {
        let rank = match page.is_upper(2) {
            true => page.by_owner().map(|rank| rank + 1),
            false => page.by_leaf().filter(|_| page.is_index()).map(|rank| rank - 1),
        };
        Ok(rank.filter(|_| page.is_without_gaps()))
    })?;
    let mut page = found.ok_or_else(|| nothing(Kind::LostWrite))?;
    let messages: &[u16] = if page.is_upper(2) { &[8976, 8979, 8977] } else { &[8951] };
    let slots = page.slots();
    let at = page.slot(slots - 1);
    let length = page.end() - at;
    page.put_u16(22, slots - 1);
    page.put_u16(28, page.u16(28).saturating_add(length + 2));
    page.put_u16(30, at);
    page.bytes[usize::from(at)..usize::from(at + length)].fill(0);
    page.set_slot(slots - 1, 0);
    target.write_protected(&mut page)?;
    let what = format!("index page {} lost the write of its last row (slot {})", text(page.id), slots - 1);
    Ok((vec![page.id], what, messages))
}

pub(super) fn swapped_pages(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let none = || nothing(Kind::SwappedPages);
    let mut one = target.pick(dice, |_, page| Ok(page.by_leaf()))?.ok_or_else(none)?;
    let place = one.id;
    let mut other = target.pick(dice, |_, page| Ok(page.by_leaf().filter(|_| page.id != place)))?.ok_or_else(none)?;
    one.protect();
    other.protect();
    (one.id, other.id) = (other.id, one.id);
    target.write(&one)?;
    target.write(&other)?;
    let what = format!("pages {} and {} have changed places", text(one.id), text(other.id));
    Ok((vec![one.id, other.id], what, &[8909, 8928]))
}

pub(super) fn broken_link(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |_, page| {
        let by_links = match (page.has_previous(), page.has_next()) {
            (true, true) => 0,
            (false, false) => return Ok(None),
            _ => SUBSTITUTE,
        };
        Ok(page.by_leaf().map(|rank| rank + by_links))
    })?;
    let mut page = found.ok_or_else(|| nothing(Kind::BrokenLink))?;
    let previous: [u8; 6] = page.field(8);
    page.bytes[16..22].copy_from_slice(&previous);
    target.write_protected(&mut page)?;
    let what = match page.has_previous() {
        true => format!("page {} now points to the page before it as its next page", text(page.id)),
        false => format!("page {} no longer points to its next page", text(page.id)),
    };
    Ok((vec![page.id], what, &[8936, 8978, 8981, 8977]))
}

pub(super) fn key_order(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |_, page| {
        // The pages of a heap have no order. They have no neighbors either.
        let is_ordered = page.is_index() || page.has_siblings() || page.names_clustered_index();
        let by_slots = if page.slots() > 6 { 0 } else { SUBSTITUTE };
        let rank = page.by_leaf().filter(|_| is_ordered).map(|rank| rank / 2 * 2 + by_slots);
        let upper = page.by_owner().filter(|_| page.is_upper(7)).map(|rank| rank + 1);
        Ok(rank.or(upper))
    })?;
    let mut page = found.ok_or_else(|| nothing(Kind::KeyOrder))?;
    let slot = 1 + dice.below(u64::from(page.slots()) - 3) as u16;
    let (first, second) = (page.slot(slot), page.slot(slot + 1));
    page.set_slot(slot, second);
    page.set_slot(slot + 1, first);
    target.write_protected(&mut page)?;
    let what = format!("rows {slot} and {} of page {} are swapped", slot + 1, text(page.id));
    Ok((vec![page.id], what, &[2511]))
}

pub(super) fn zeroed_extent(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |target, page| {
        let by_links = if page.has_siblings() { 0 } else { SUBSTITUTE };
        match page.by_leaf().map(|rank| rank + by_links) {
            Some(rank) if may_be_zeroed(target, page)? => Ok(Some(rank)),
            _ => Ok(None),
        }
    })?;
    let page = found.ok_or_else(|| nothing(Kind::ZeroedExtent))?;
    let pages = extent(page.id);
    for &id in &pages {
        target.write(&Image { id, bytes: Box::new([0; PAGE]) })?;
    }
    let what = format!("the extent at {} is zero", text(pages[0]));
    Ok((pages, what, &[8909, 8928]))
}

/// Whether the catalog can still be read if the extent of this page is zero.
fn may_be_zeroed(target: &mut Target, page: &Image) -> Result<bool, LabError> {
    if page.id.page < FIRST_ORDINARY || page.id.page % PFS_INTERVAL < EXTENT {
        return Ok(false);
    }
    for id in extent(page.id) {
        match target.read(id)? {
            Some(page) if page.is_needed_to_read() => return Ok(false),
            Some(_) => {}
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// The pages of the extent that contains this page.
fn extent(page: PageId) -> Vec<PageId> {
    let first = page.page / EXTENT * EXTENT;
    (first..first + EXTENT).map(|number| PageId::new(page.file, number)).collect()
}

pub(super) fn lost_extent(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let found = target.pick(dice, |_, page| {
        if page.bytes[1] != page_type::IAM {
            return Ok(None);
        }
        let by_places: Rank = match (page.map_bits().len(), page.single_pages().len()) {
            (2.., _) => Some(0),
            (1, _) => Some(SUBSTITUTE),
            (0, 1..) => Some(2 * SUBSTITUTE),
            _ => None,
        };
        Ok(page.by_owner().zip(by_places).map(|(rank, by_places)| rank + by_places))
    })?;
    let mut page = found.ok_or_else(|| nothing(Kind::LostExtent))?;
    let bits = page.map_bits();
    if bits.is_empty() {
        return lost_page(target, dice, page);
    }
    let bit = bits[dice.below((bits.len() as u64 - 1).max(1)) as usize];
    let at = usize::from(page.slot(1)) + 4 + bit / 8;
    page.bytes[at] &= !(1 << (bit % 8));
    let base: [u8; 6] = page.field(usize::from(page.slot(0)) + 40);
    target.write_protected(&mut page)?;
    let base = address(base);
    let extent = PageId::new(base.file, base.page.saturating_add(bit as u32 * EXTENT));
    let what = format!("IAM page {} no longer names the extent at {}", text(page.id), text(extent));
    Ok((vec![extent, page.id], what, &[8905]))
}

/// An IAM page without extents loses one of the pages of mixed extents that it names.
fn lost_page(target: &mut Target, dice: &mut Random, mut page: Image) -> Result<Done, LabError> {
    let places = page.single_pages();
    let at = places[dice.below(places.len() as u64) as usize];
    let lost = address(page.field(at));
    page.bytes[at..at + 6].fill(0);
    target.write_protected(&mut page)?;
    let what = format!("IAM page {} no longer names page {} of a mixed extent", text(page.id), text(lost));
    Ok((vec![lost, page.id], what, &[8906]))
}

pub(super) fn truncated(target: &mut Target) -> Result<Done, LabError> {
    let none = || nothing(Kind::Truncated);
    // A file of one page cannot be cut off between two pages.
    let file = target.files.iter().rfind(|file| file.pages > 1).ok_or_else(none)?;
    let (id, half) = (file.id, file.pages / 2);
    // The second half of a real file may have no page in use.
    let last = target.last_in_use(id)?.unwrap_or(half);
    let pages = half.min(last.max(1));
    let file = target.files.iter_mut().find(|file| file.id == id).ok_or_else(none)?;
    let done = file.handle.set_len(u64::from(pages) * PAGE as u64);
    done.map_err(|source| LabError::Io { path: file.path.clone(), source })?;
    let messages = &[7965, 8968, 2579, 8929, 8965, 8980];
    Ok((vec![PageId::new(id, pages)], format!("file {id} ends after {pages} pages"), messages))
}

fn address(bytes: [u8; 6]) -> PageId {
    let page = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    PageId::new(u16::from_le_bytes([bytes[4], bytes[5]]), page)
}

fn text(id: PageId) -> String {
    format!("({}:{})", id.file, id.page)
}

/// The error for a database that has no place for this kind of damage.
fn nothing(kind: Kind) -> LabError {
    LabError::Description(format!("no place for the damage {}: the files have no {}", kind.name(), kind.needs()))
}
