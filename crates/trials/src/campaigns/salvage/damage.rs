//! Damage to pages of user tables and to allocation maps. The page protection reveals only a part of the damage.

use std::collections::{BTreeMap, BTreeSet};

use format::allocation::EXTENT_PAGES;
use format::page::{PAGE_BYTES, page_flags};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId};
use source::PageSource;
use trials::mutate::{PageRole, Pages, Random, Survey, seal};

use crate::campaigns::sealed;
use crate::sound::Sound;

/// The maximum number of damaged pages, not counting adjacent pages.
const MOST_PAGES: usize = 4;
/// The size of a sector in bytes.
const SECTOR: usize = 512;
/// The bytes of the page header that say which kind of protection the page has.
const FLAGS: std::ops::Range<usize> = 4..6;
/// The bytes of the page header that contain the page ID.
const OWN_ID: std::ops::Range<usize> = 32..38;

/// Roles of the pages to damage. A repeated role is drawn more often.
const ROLES: [PageRole; 10] = [
    PageRole::Heap,
    PageRole::Heap,
    PageRole::Clustered,
    PageRole::Clustered,
    PageRole::Node,
    PageRole::Leaf,
    PageRole::Iam,
    PageRole::Text,
    PageRole::Pfs,
    PageRole::Gam,
];

/// The damage of one trial. `changes` has the content of each damaged page as stored on disk.
pub(super) struct Damage {
    pub(super) kind: String,
    pub(super) changes: BTreeMap<PageId, PageBytes>,
    /// The damaged pages that were sealed: their page protection was corrected and they have their own page ID.
    pub(super) sealed: BTreeSet<PageId>,
}

/// Kinds of damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Zero,
    Image,
    Bits,
    Sector,
    SealedImage,
    SealedBits,
    SealedSector,
}

impl Kind {
    const SHOWN: [Self; 4] = [Self::Zero, Self::Image, Self::Bits, Self::Sector];
    const SEALED: [Self; 3] = [Self::SealedImage, Self::SealedBits, Self::SealedSector];

    fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero page",
            Self::Image => "image of another page",
            Self::Bits => "bits",
            Self::Sector => "zero sector",
            Self::SealedImage => "sealed: image of another page",
            Self::SealedBits => "sealed: bits and bytes",
            Self::SealedSector => "sealed: zero sector",
        }
    }

    fn is_sealed(self) -> bool {
        Self::SEALED.contains(&self)
    }
}

/// Damages some pages. In half of the trials the page protection reveals all damage, in a quarter it reveals none, and
/// in a quarter some.
pub(super) fn damage(sound: &Sound<'_>, random: &mut Random) -> Damage {
    let kinds: Vec<Kind> = match random.below(4) {
        0 => Kind::SEALED.to_vec(),
        1 => Kind::SHOWN.into_iter().chain(Kind::SEALED).collect(),
        _ => Kind::SHOWN.to_vec(),
    };
    let is_mixed = kinds.len() > Kind::SHOWN.len();
    loop {
        let mut kind = *random.pick(&kinds).unwrap_or(&Kind::Zero);
        let mut damage = Damage { kind: String::new(), changes: BTreeMap::new(), sealed: BTreeSet::new() };
        let mut done = BTreeSet::new();
        for _ in 0..1 + random.below(MOST_PAGES) {
            if is_mixed {
                kind = *random.pick(&kinds).unwrap_or(&kind);
            }
            let role = ROLES[random.below(ROLES.len())];
            let of_role = sound.roles.get(&role).map(Vec::as_slice).unwrap_or_default();
            let Some(first) = random.pick(of_role).copied() else { continue };
            let side_by_side = match random.below(12) {
                0 => EXTENT_PAGES,
                1..4 => 2 + random.below(2) as u32,
                _ => 1,
            };
            for page in (first.page..first.page + side_by_side).map(|number| PageId::new(first.file, number)) {
                if !of_role.contains(&page) || !is_of_user(sound, page, role) {
                    break;
                }
                if let Some(bytes) = damaged(sound, (page, of_role), kind, random) {
                    damage.changes.insert(page, bytes);
                    done.insert(kind);
                    if kind.is_sealed() {
                        damage.sealed.insert(page);
                    }
                }
            }
        }
        if !damage.changes.is_empty() {
            let one = done.first().filter(|_| done.len() == 1);
            damage.kind = one.map_or("several kinds", |kind| kind.name()).to_owned();
            return damage;
        }
    }
}

/// Whether a page belongs to a judged table, or is a PFS or GAM page. The pages of a table include those of its indexes
/// and off-row values.
fn is_of_user(sound: &Sound<'_>, page: PageId, role: PageRole) -> bool {
    let unit = sound.files.read_page(page).map(|bytes| Page::new(&bytes).header().alloc_unit());
    let rowset = unit.and_then(|unit| Pages::new(sound.files, sound.database).rowset(unit));
    matches!(role, PageRole::Pfs | PageRole::Gam)
        || rowset.is_some_and(|rowset| sound.tables.iter().any(|whole| whole.table.object_id == rowset.object_id))
}

/// Returns the damaged page. `None` if the damage leaves the page unchanged. Also `None` for an unsealed kind of damage
/// that neither the page protection nor the page ID reveals.
fn damaged(
    sound: &Sound<'_>,
    (page, of_role): (PageId, &[PageId]),
    kind: Kind,
    random: &mut Random,
) -> Option<PageBytes> {
    let stored = *sound.files.read_page(page)?;
    let protection = Page::new(&stored).header().flags.get() & (page_flags::CHECKSUM | page_flags::TORN_BITS);
    let mut bytes = stored;
    if kind.is_sealed() {
        undo_torn_bits(&mut bytes);
    }
    match kind {
        Kind::Zero => bytes.fill(0),
        Kind::Image | Kind::SealedImage => {
            let other = *random.pick(of_role).filter(|other| **other != page)?;
            let own_id: [u8; 6] = bytes.get(OWN_ID)?.try_into().ok()?;
            bytes = *sound.files.read_page(other)?;
            if kind == Kind::SealedImage {
                undo_torn_bits(&mut bytes);
                bytes[OWN_ID].copy_from_slice(&own_id);
            }
        }
        Kind::Bits if protection & page_flags::CHECKSUM == 0 => return None,
        Kind::Bits => {
            for _ in 0..1 + random.below(8) {
                let at = random.below(PAGE_BYTES);
                bytes[at] ^= if FLAGS.contains(&at) { 0 } else { 1 << random.below(8) };
            }
        }
        Kind::SealedBits => {
            let pages = Pages::new(sound.files, sound.database);
            let survey = Survey::of_page(&pages, sound.database, page);
            for _ in 0..1 + random.below(2) {
                let at = sealed::place(&survey, random);
                let is_kept = FLAGS.contains(&at) || OWN_ID.contains(&at);
                let flips = if random.below(2) == 0 { 1 << random.below(8) } else { 1 + random.below(255) as u8 };
                bytes[at] ^= if is_kept { 0 } else { flips };
            }
        }
        Kind::Sector if protection == 0 => return None,
        Kind::Sector | Kind::SealedSector => {
            let at = SECTOR * (1 + random.below(PAGE_BYTES / SECTOR - 1));
            bytes[at..at + SECTOR].fill(0);
        }
    }
    if kind.is_sealed() {
        let mut sound = stored;
        undo_torn_bits(&mut sound);
        let is_changed = bytes != sound;
        seal(&mut bytes);
        return is_changed.then_some(bytes);
    }
    // This kind of damage represents storage faults, which the page protection or the page ID reveals.
    let is_shown = format::protection::verify(&bytes).is_err() || Page::new(&bytes).header().page_id() != page;
    is_shown.then_some(bytes)
}
