//! Damages database files on purpose, in realistic ways. The seed determines the damage. The result describes the
//! damage and lists the messages that a checker is expected to report.
//!
//! This code reads little more than page headers, so it can damage any database, not only databases of the lab. Use it
//! only on copies.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::disk::LabError;
use crate::ids::{EXTENT, PAGE, PFS_INTERVAL, PageId};
use crate::page::{self, PageVerify, page_type};
use crate::random::Random;

/// A kind of damage. Bit rot needs a database with checksums, because no other page protection detects it reliably.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "what each is, `summary` tells")]
pub enum Kind {
    BitRot,
    TornWrite,
    LostWrite,
    SwappedPages,
    BrokenLink,
    KeyOrder,
    ZeroedExtent,
    LostExtent,
    Truncated,
}

/// A description of the damage.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The kind of the damage.
    pub kind: Kind,
    /// The changed pages. The damage is visible on the first page.
    pub pages: Vec<PageId>,
    /// The damage as text.
    pub what: String,
    /// The numbers of the expected messages. A checker should report at least one of these messages.
    pub messages: &'static [u16],
}

impl Kind {
    /// All kinds of damage.
    pub const ALL: [Self; 9] = [
        Self::BitRot,
        Self::TornWrite,
        Self::LostWrite,
        Self::SwappedPages,
        Self::BrokenLink,
        Self::KeyOrder,
        Self::ZeroedExtent,
        Self::LostExtent,
        Self::Truncated,
    ];

    /// The name of the kind on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::BitRot => "bit-rot",
            Self::TornWrite => "torn-write",
            Self::LostWrite => "lost-write",
            Self::SwappedPages => "swapped-pages",
            Self::BrokenLink => "broken-link",
            Self::KeyOrder => "key-order",
            Self::ZeroedExtent => "zeroed-extent",
            Self::LostExtent => "lost-extent",
            Self::Truncated => "truncated",
        }
    }

    /// One line that describes the kind.
    pub fn summary(self) -> &'static str {
        match self {
            Self::BitRot => "One bit of a page has flipped; only checksums detect it reliably",
            Self::TornWrite => "Only the first sectors of a page reached the disk",
            Self::LostWrite => "An index page lost its last write",
            Self::SwappedPages => "Two pages have changed places",
            Self::BrokenLink => "A leaf page points to the wrong neighbor",
            Self::KeyOrder => "Two rows of an index are in the wrong order",
            Self::ZeroedExtent => "Eight pages in sequence are zero",
            Self::LostExtent => "An IAM page has lost an extent",
            Self::Truncated => "The file ends too early",
        }
    }

    fn messages(self) -> &'static [u16] {
        match self {
            Self::BitRot | Self::TornWrite => &[8928, 8939],
            Self::LostWrite => &[8951],
            Self::SwappedPages => &[8909, 8928],
            Self::BrokenLink => &[8936, 8978],
            Self::KeyOrder => &[2511],
            Self::ZeroedExtent => &[8909, 8928],
            Self::LostExtent => &[8905],
            Self::Truncated => &[7965, 8968],
        }
    }
}

/// Damages the files of one database, in place.
pub fn damage(files: &[PathBuf], kind: Kind, seed: u64) -> Result<Damage, LabError> {
    let mut target = Target::open(files)?;
    let mut dice = Random::new(seed ^ (kind as u64) << 32);
    let (pages, what) = match kind {
        Kind::BitRot => bit_rot(&mut target, &mut dice)?,
        Kind::TornWrite => torn_write(&mut target, &mut dice)?,
        Kind::LostWrite => lost_write(&mut target, &mut dice)?,
        Kind::SwappedPages => swapped_pages(&mut target, &mut dice)?,
        Kind::BrokenLink => broken_link(&mut target, &mut dice)?,
        Kind::KeyOrder => key_order(&mut target, &mut dice)?,
        Kind::ZeroedExtent => zeroed_extent(&mut target, &mut dice)?,
        Kind::LostExtent => lost_extent(&mut target, &mut dice)?,
        Kind::Truncated => truncated(&mut target)?,
    };
    Ok(Damage { kind, pages, what, messages: kind.messages() })
}

type Done = (Vec<PageId>, String);

fn bit_rot(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    // Torn-page protection does not detect bit rot, so the page must have a checksum.
    let mut page = target.pick(dice, |page| page.is_leaf() && page.u16(4) & 0x200 != 0 && page.end_is_sound())?;
    let used = u64::from(page.u16(30)) - 96;
    let (offset, bit) = (96 + dice.below(used) as usize, dice.below(8));
    page.protect();
    page.bytes[offset] ^= 1 << bit;
    target.write(&page)?;
    Ok((vec![page.id], format!("bit {bit} of byte {offset} of page {} is flipped", text(page.id))))
}

fn torn_write(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let mut page = target.pick(dice, |page| page.is_leaf() && page.is_protected())?;
    let sectors = 1 + dice.below(15) as usize;
    page.protect();
    page.bytes[512 * sectors..].fill(0);
    target.write(&page)?;
    Ok((vec![page.id], format!("{sectors} of the 16 sectors of page {} were written, the rest is zero", text(page.id))))
}

fn lost_write(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let last_is_highest = |page: &Image| {
        let offsets: Vec<u16> = (0..page.slots()).map(|slot| page.slot(slot)).collect();
        offsets.last().is_some_and(|last| offsets.iter().all(|offset| offset <= last))
    };
    let ends_behind_last = |page: &Image| page.end_is_sound() && page.u16(30) > page.slot(page.slots() - 1);
    let mut page = target.pick(dice, |page| {
        page.is_index_leaf() && page.slots() > 4 && page.u16(58) == 0 && last_is_highest(page) && ends_behind_last(page)
    })?;
    let slots = page.slots();
    let at = page.slot(slots - 1);
    let length = page.u16(30) - at;
    page.put_u16(22, slots - 1);
    page.put_u16(28, page.u16(28).saturating_add(length + 2));
    page.put_u16(30, at);
    page.bytes[usize::from(at)..usize::from(at + length)].fill(0);
    let entry = PAGE - 2 * usize::from(slots);
    page.put_u16(entry, 0);
    target.write_protected(&mut page)?;
    let what = format!("index page {} lost the write of its last row (slot {})", text(page.id), slots - 1);
    Ok((vec![page.id], what))
}

fn swapped_pages(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let mut one = target.pick(dice, |page| page.is_leaf())?;
    let place = one.id;
    let mut other = target.pick(dice, |page| page.is_leaf() && page.id != place)?;
    one.protect();
    other.protect();
    (one.id, other.id) = (other.id, one.id);
    target.write(&one)?;
    target.write(&other)?;
    let what = format!("pages {} and {} have changed places", text(one.id), text(other.id));
    Ok((vec![one.id, other.id], what))
}

fn broken_link(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let mut page = target.pick(dice, |page| page.is_leaf() && page.has_siblings())?;
    let prev: [u8; 6] = page.field(8);
    page.bytes[16..22].copy_from_slice(&prev);
    target.write_protected(&mut page)?;
    Ok((vec![page.id], format!("page {} now points to the page before it as its next page", text(page.id))))
}

fn key_order(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let mut page = target
        .pick(dice, |page| (page.is_leaf() && page.has_siblings() || page.is_index_leaf()) && page.slots() > 6)?;
    let slot = 1 + dice.below(u64::from(page.slots()) - 3) as u16;
    let (first, second) = (page.slot(slot), page.slot(slot + 1));
    page.put_u16(PAGE - 2 - 2 * usize::from(slot), second);
    page.put_u16(PAGE - 4 - 2 * usize::from(slot), first);
    target.write_protected(&mut page)?;
    Ok((vec![page.id], format!("rows {slot} and {} of page {} are swapped", slot + 1, text(page.id))))
}

fn zeroed_extent(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let page =
        target.pick(dice, |page| page.is_leaf() && page.has_siblings() && page.id.page % PFS_INTERVAL > EXTENT)?;
    let first = page.id.page / EXTENT * EXTENT;
    let pages: Vec<PageId> = (first..first + EXTENT).map(|number| PageId::new(page.id.file, number)).collect();
    for &id in &pages {
        target.write(&Image { id, bytes: Box::new([0; PAGE]) })?;
    }
    Ok((pages, format!("the extent at {} is zero", text(PageId::new(page.id.file, first)))))
}

fn lost_extent(target: &mut Target, dice: &mut Random) -> Result<Done, LabError> {
    let mut page =
        target.pick(dice, |page| page.is_user() && page.bytes[1] == page_type::IAM && page.map_bits().len() > 1)?;
    let bits = page.map_bits();
    let bit = bits[dice.below(bits.len() as u64 - 1) as usize];
    let at = usize::from(page.slot(1)) + 4 + bit / 8;
    page.bytes[at] &= !(1 << (bit % 8));
    let base: [u8; 6] = page.field(usize::from(page.slot(0)) + 40);
    target.write_protected(&mut page)?;
    let first = u32::from_le_bytes([base[0], base[1], base[2], base[3]]).saturating_add(bit as u32 * EXTENT);
    let extent = PageId::new(u16::from_le_bytes([base[4], base[5]]), first);
    let what = format!("IAM page {} no longer names the extent at {}", text(page.id), text(extent));
    Ok((vec![extent, page.id], what))
}

fn truncated(target: &mut Target) -> Result<Done, LabError> {
    let Some(file) = target.files.last_mut() else { return Err(nothing()) };
    let pages = (file.pages / 2).max(1);
    let done = file.handle.set_len(u64::from(pages) * PAGE as u64);
    done.map_err(|source| LabError::Io { path: file.path.clone(), source })?;
    Ok((vec![PageId::new(file.id, pages)], format!("file {} ends after {pages} pages", file.id)))
}

fn text(id: PageId) -> String {
    format!("({}:{})", id.file, id.page)
}

fn nothing() -> LabError {
    LabError::Description("no page suitable for this damage".to_owned())
}

/// A page as stored in the file, but with its torn-page protection undone.
struct Image {
    id: PageId,
    bytes: Box<[u8; PAGE]>,
}

impl Image {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn put_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[at..at + N]);
        field
    }

    fn slots(&self) -> u16 {
        self.u16(22)
    }

    fn slot(&self, number: u16) -> u16 {
        self.u16(PAGE - 2 - 2 * usize::from(number)).min(PAGE as u16 - 100)
    }

    /// Whether the free data pointer is after the page header and within the page.
    fn end_is_sound(&self) -> bool {
        (97..=PAGE).contains(&usize::from(self.u16(30)))
    }

    /// Whether the allocation unit of the page has an ID in the form that SQL Server has used for user tables since
    /// 2005. A few system tables have allocation unit IDs of this form, too.
    fn is_user(&self) -> bool {
        self.u16(6) == 0x100
    }

    fn is_leaf(&self) -> bool {
        self.is_user() && self.bytes[1] == page_type::DATA && (5..2000).contains(&self.slots())
    }

    fn is_index_leaf(&self) -> bool {
        self.is_user() && self.bytes[1] == page_type::INDEX && self.bytes[3] == 0 && (5..2000).contains(&self.slots())
    }

    fn has_siblings(&self) -> bool {
        self.field::<6>(8) != [0; 6] && self.field::<6>(16) != [0; 6]
    }

    fn is_protected(&self) -> bool {
        self.u16(4) & 0x300 != 0
    }

    /// Recomputes the page protection that the page header indicates.
    fn protect(&mut self) {
        let verify = match self.u16(4) & 0x300 {
            0x100 => PageVerify::Torn,
            0x200 => PageVerify::Checksum,
            _ => PageVerify::None,
        };
        page::protect(&mut self.bytes, verify);
    }

    /// The numbers of the set bits on an IAM page, one for each extent.
    fn map_bits(&self) -> Vec<usize> {
        let from = usize::from(self.slot(1)) + 4;
        let bits = self.bytes.get(from..from + 188).unwrap_or_default();
        (0..bits.len() * 8).filter(|bit| bits[bit / 8] >> (bit % 8) & 1 == 1).collect()
    }
}

struct Target {
    files: Vec<TargetFile>,
}

struct TargetFile {
    id: u16,
    path: PathBuf,
    handle: File,
    pages: u32,
}

/// The number of random pages that are tried before all pages are searched in order.
const TRIES: u64 = 2_000;

impl Target {
    fn open(paths: &[PathBuf]) -> Result<Self, LabError> {
        let mut files = Vec::new();
        for path in paths {
            let failed = |source| LabError::Io { path: path.clone(), source };
            let mut handle = File::options().read(true).write(true).open(path).map_err(failed)?;
            let pages = (handle.metadata().map_err(failed)?.len() / PAGE as u64) as u32;
            let mut header = [0; 64];
            handle.read_exact(&mut header).map_err(failed)?;
            let id = u16::from_le_bytes([header[36], header[37]]);
            if header[1] != page_type::FILE_HEADER || files.iter().any(|file: &TargetFile| file.id == id) {
                return Err(LabError::Description(format!("{}: not a data file of this database", path.display())));
            }
            files.push(TargetFile { id, path: path.clone(), handle, pages });
        }
        Ok(Self { files })
    }

    fn read(&mut self, id: PageId) -> Result<Image, LabError> {
        let Some(file) = self.files.iter_mut().find(|file| file.id == id.file) else { return Err(nothing()) };
        let mut bytes = Box::new([0; PAGE]);
        let at = u64::from(id.page) * PAGE as u64;
        let done = file.handle.seek(SeekFrom::Start(at)).and_then(|_| file.handle.read_exact(&mut bytes[..]));
        done.map_err(|source| LabError::Io { path: file.path.clone(), source })?;
        Ok(Image { id, bytes })
    }

    /// Picks an allocated page that contains its own address and for which `wanted` returns true. First tries random
    /// pages; if none of them meets these conditions, picks the first page of the database that meets them.
    fn pick(&mut self, dice: &mut Random, wanted: impl Fn(&Image) -> bool) -> Result<Image, LabError> {
        let total: u64 = self.files.iter().map(|file| u64::from(file.pages)).sum();
        for number in (0..TRIES).map(|_| dice.below(total)).chain(0..total) {
            let Some(id) = self.nth(number) else { continue };
            let mut page = self.read(id)?;
            if page.field::<6>(32) != id.bytes() || !self.is_allocated(id)? {
                continue;
            }
            page::unprotect(&mut page.bytes);
            if wanted(&page) {
                return Ok(page);
            }
        }
        Err(nothing())
    }

    fn nth(&self, mut number: u64) -> Option<PageId> {
        for file in &self.files {
            if number < u64::from(file.pages) {
                return Some(PageId::new(file.id, number as u32));
            }
            number -= u64::from(file.pages);
        }
        None
    }

    fn is_allocated(&mut self, id: PageId) -> Result<bool, LabError> {
        let place = (id.page / PFS_INTERVAL * PFS_INTERVAL).max(1);
        let mut map = self.read(PageId::new(id.file, place))?;
        page::unprotect(&mut map.bytes);
        Ok(map.bytes[100 + (id.page % PFS_INTERVAL) as usize] & 0x40 != 0)
    }

    fn write(&mut self, page: &Image) -> Result<(), LabError> {
        let Some(file) = self.files.iter_mut().find(|file| file.id == page.id.file) else { return Err(nothing()) };
        let at = u64::from(page.id.page) * PAGE as u64;
        let done = file.handle.seek(SeekFrom::Start(at)).and_then(|_| file.handle.write_all(&page.bytes[..]));
        done.map_err(|source| LabError::Io { path: file.path.clone(), source })
    }

    /// Writes a page and recomputes its page protection, so that the protection does not detect the damage.
    fn write_protected(&mut self, page: &mut Image) -> Result<(), LabError> {
        page.protect();
        self.write(page)
    }
}
