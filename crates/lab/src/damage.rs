//! Damages database files on purpose, in realistic ways. The seed determines the damage. The result describes the
//! damage and lists the messages that a checker is expected to report.
//!
//! This code reads little more than page headers, so it can damage any database, not only databases of the lab. Use it
//! only on copies.

mod image;
mod kinds;
mod target;

use std::path::PathBuf;

use crate::disk::LabError;
use crate::ids::PageId;
use crate::random::Random;
use target::Target;

/// A kind of damage.
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
            Self::BitRot => "One bit of a page has flipped; on a page without checksum, a bit whose change is visible",
            Self::TornWrite => "Only the first sectors of a page reached the disk",
            Self::LostWrite => "An index page lost its last write",
            Self::SwappedPages => "Two pages have changed places",
            Self::BrokenLink => "A leaf page points to the wrong neighbor",
            Self::KeyOrder => "Two rows of an index are in the wrong order",
            Self::ZeroedExtent => "Eight pages in sequence are zero",
            Self::LostExtent => "An IAM page has lost an extent, or a page of a mixed extent",
            Self::Truncated => "The file ends too early",
        }
    }

    /// What the files of a database must have for this kind of damage.
    fn needs(self) -> &'static str {
        match self {
            Self::BitRot | Self::TornWrite => "leaf page with 5 or more rows",
            Self::LostWrite => {
                "index page with 5 or more rows, or above the leaf level with 2 or more rows, that has no gaps, so that \
                 its last row can be removed without a trace on the page"
            }
            Self::SwappedPages => "two leaf pages with 5 or more rows",
            Self::BrokenLink => "leaf page with a neighbor and 5 or more rows",
            Self::KeyOrder => "leaf page of an index with 5 or more rows",
            Self::ZeroedExtent => {
                "extent with a leaf page of 5 or more rows and without pages that are needed to read the catalog"
            }
            Self::LostExtent => "IAM page that names an extent or a page",
            Self::Truncated => "data file of two or more pages",
        }
    }
}

/// Damages the files of one database, in place.
pub fn damage(files: &[PathBuf], kind: Kind, seed: u64) -> Result<Damage, LabError> {
    let mut target = Target::open(files)?;
    let mut dice = Random::new(seed ^ (kind as u64) << 32);
    let (pages, what, messages) = match kind {
        Kind::BitRot => kinds::bit_rot(&mut target, &mut dice)?,
        Kind::TornWrite => kinds::torn_write(&mut target, &mut dice)?,
        Kind::LostWrite => kinds::lost_write(&mut target, &mut dice)?,
        Kind::SwappedPages => kinds::swapped_pages(&mut target, &mut dice)?,
        Kind::BrokenLink => kinds::broken_link(&mut target, &mut dice)?,
        Kind::KeyOrder => kinds::key_order(&mut target, &mut dice)?,
        Kind::ZeroedExtent => kinds::zeroed_extent(&mut target, &mut dice)?,
        Kind::LostExtent => kinds::lost_extent(&mut target, &mut dice)?,
        Kind::Truncated => kinds::truncated(&mut target)?,
    };
    Ok(Damage { kind, pages, what, messages })
}
