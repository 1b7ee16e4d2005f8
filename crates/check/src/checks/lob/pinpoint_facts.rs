//! Facts from rows and text pages about the addresses of fragments, in a form that can be sorted.

use std::cmp::Ordering;

use format::RecordId;
use format::bytes::{u16_at, u32_at, u64_at};
use sums::spill::{Item, record_to};

use super::facts::{Expects, Held, Kind, Reference};
use crate::basis::units::UnitIndex;

/// The place of a reference: the record (a row or a node of an off-row value) that contains the reference, and its
/// unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct From {
    pub(super) at: RecordId,
    pub(super) unit: UnitIndex,
}

/// One fact about the address `about`, at which a fragment of an off-row value is stored or expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FragmentFact {
    pub(super) about: RecordId,
    pub(super) what: FragmentFactKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FragmentFactKind {
    /// This fragment is at the address.
    Fragment { unit: UnitIndex, held: Held },
    /// A deleted row refers to the address, with this value ID.
    Ghost { id: u64 },
    /// A live row or a node refers to the address.
    Reference { from: From, to: Reference },
}

impl FragmentFactKind {
    /// Returns the sort key: first a number for the kind, which brings the kinds into the order in which they must be
    /// processed, then the fields that order the facts of one kind.
    fn key(&self) -> (u8, Option<From>, u64) {
        match self {
            Self::Fragment { .. } => (0, None, 0),
            Self::Ghost { id } => (1, None, *id),
            Self::Reference { from, to } => (2, Some(*from), to.id),
        }
    }
}

/// One fact about the value with this ID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct OfValue {
    pub(super) id: u64,
    pub(super) what: Known,
}

/// A fact about an off-row value. The facts about one value are sorted in the order of these variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Known {
    /// A node of the value was lost, so a fragment below the node looks like an orphan.
    Lost,
    /// A fault at the target of a reference that is in a node of the value. The row that owns the value must still be
    /// found.
    Wrong,
    /// A fragment of the value to which nothing refers.
    Orphan { unit: UnitIndex, at: RecordId },
    /// A row that owns the value.
    Owner { at: RecordId },
}

const NOT_NTEXT: u64 = u64::MAX;

impl Item for FragmentFact {
    fn order(&self, other: &Self) -> Ordering {
        (self.about, self.what.key()).cmp(&(other.about, other.what.key()))
    }

    fn bytes(&self) -> usize {
        2 * size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        record_to(out, self.about);
        match self.what {
            FragmentFactKind::Fragment { unit, held } => {
                let (kind, size, level) = match held.kind {
                    Kind::Root { size } => (0, size, 0),
                    Kind::Part { size, level } => (1, size, level),
                    Kind::Malformed => (2, 0, 0),
                    Kind::Unknown => (3, 0, 0),
                    Kind::Undescribed => (4, 0, 0),
                };
                out.extend([0, kind]);
                out.extend(unit.to_le_bytes());
                sizes_to(out, held.id, size, level);
            }
            FragmentFactKind::Ghost { id } => {
                out.extend([1, 0]);
                out.extend(id.to_le_bytes());
            }
            FragmentFactKind::Reference { from, to } => {
                let (kind, size, level) = match to.expects {
                    Expects::Root { ntext } => (0, ntext.map_or(NOT_NTEXT, u64::from), 0),
                    Expects::Part { size, level } => (1, size, level),
                    Expects::Overflow { size, level } => (2, size, level),
                };
                out.extend([2, kind]);
                out.extend(to.unit.to_le_bytes());
                sizes_to(out, to.id, size, level);
                record_to(out, from.at);
                out.extend(from.unit.to_le_bytes());
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let about = RecordId::read(bytes, 0)?;
        let kind = *bytes.get(9)?;
        let sizes = || Some((u32_at(bytes, 10)?, u64_at(bytes, 14)?, u64_at(bytes, 22)?, u16_at(bytes, 30)?));
        let what = match bytes.get(8)? {
            0 => {
                let (unit, id, size, level) = sizes()?;
                let kind = match kind {
                    0 => Kind::Root { size },
                    1 => Kind::Part { size, level },
                    2 => Kind::Malformed,
                    3 => Kind::Unknown,
                    _ => Kind::Undescribed,
                };
                FragmentFactKind::Fragment { unit, held: Held { id, kind } }
            }
            1 => FragmentFactKind::Ghost { id: u64_at(bytes, 10)? },
            _ => {
                let (unit, id, size, level) = sizes()?;
                let expects = match kind {
                    0 => Expects::Root { ntext: u32::try_from(size).ok() },
                    1 => Expects::Part { size, level },
                    _ => Expects::Overflow { size, level },
                };
                let from = From { at: RecordId::read(bytes, 32)?, unit: u32_at(bytes, 40)? };
                FragmentFactKind::Reference { from, to: Reference { unit, target: about, id, expects } }
            }
        };
        Some(Self { about, what })
    }
}

impl Item for OfValue {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        2 * size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.id.to_le_bytes());
        let (kind, unit, at) = match self.what {
            Known::Lost => (0, 0, RecordId::default()),
            Known::Wrong => (1, 0, RecordId::default()),
            Known::Orphan { unit, at } => (2, unit, at),
            Known::Owner { at } => (3, 0, at),
        };
        out.push(kind);
        out.extend(unit.to_le_bytes());
        record_to(out, at);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (unit, at) = (u32_at(bytes, 9)?, RecordId::read(bytes, 13)?);
        let what = match bytes.get(8)? {
            0 => Known::Lost,
            1 => Known::Wrong,
            2 => Known::Orphan { unit, at },
            _ => Known::Owner { at },
        };
        Some(Self { id: u64_at(bytes, 0)?, what })
    }
}

fn sizes_to(out: &mut Vec<u8>, id: u64, size: u64, level: u16) {
    out.extend(id.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(level.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use format::PageId;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let at = |page, slot| RecordId { page: PageId::new(3, page), slot };
        let mut bytes = Vec::new();
        let kinds = [
            Kind::Root { size: u64::MAX },
            Kind::Part { size: 5, level: 7 },
            Kind::Malformed,
            Kind::Unknown,
            Kind::Undescribed,
        ];
        let fragments = kinds.map(|kind| FragmentFactKind::Fragment { unit: 9, held: Held { id: 1 << 63, kind } });
        let expects = [
            Expects::Root { ntext: None },
            Expects::Root { ntext: Some(17) },
            Expects::Part { size: 1 << 40, level: 2 },
            Expects::Overflow { size: 8000, level: 0 },
        ];
        let from = From { at: at(u32::MAX, 12), unit: 4 };
        let references = expects.map(|expects| FragmentFactKind::Reference {
            from,
            to: Reference { unit: 8, target: at(77, 6), id: 5, expects },
        });
        for what in fragments.into_iter().chain(references).chain([FragmentFactKind::Ghost { id: 6 }]) {
            bytes.clear();
            let said = FragmentFact { about: at(77, 6), what };
            said.write(&mut bytes);
            assert_eq!(FragmentFact::read(&bytes), Some(said));
        }
        let known = [Known::Lost, Known::Wrong, Known::Orphan { unit: 3, at: at(1, 2) }, Known::Owner { at: at(3, 4) }];
        for what in known {
            bytes.clear();
            let value = OfValue { id: u64::MAX - 2, what };
            value.write(&mut bytes);
            assert_eq!(OfValue::read(&bytes), Some(value));
        }
    }
}
