//! Encodes findings as bytes: for temporary files of this process, and for exchange with other processes.

use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

use catalog::UnitKind;
use format::bytes::{u16_at, u32_at, u64_at};
use format::{AllocUnitId, PageId};
use sums::spill::{Item, page_to};
use sums::wire::{Input, Output, SumsError, Wire};

use super::{Finding, Owner, Value};
use crate::content::Content;
use crate::registry::{self, limits};

/// The names of evidence that were seen so far. In temporary files, a name is stored as its index in this list. The
/// list is short, because all names are literals in the program.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

fn number_of(name: &'static str) -> u16 {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = names.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    }) as u16
}

fn name_of(number: u16) -> Option<&'static str> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).get(usize::from(number)).copied()
}

impl Item for Finding {
    fn order(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }

    fn bytes(&self) -> usize {
        let text = |value: &Value| if let Value::Text(text) = value { text.capacity() } else { 0 };
        let texts: usize = self.evidence.iter().map(|(_, value)| text(value)).sum();
        size_of::<Self>() + self.evidence.capacity() * size_of::<(&str, Value)>() + texts
    }

    fn write(&self, out: &mut Vec<u8>) {
        let check = registry::ALL.iter().position(|check| *check == self.check).unwrap_or_default();
        out.extend((check as u16).to_le_bytes());
        out.push(self.state);
        put(out, self.demoted_by, |out, limit| {
            let at = limits::ALL.iter().position(|other| *other == limit).unwrap_or_default();
            out.extend((at as u16).to_le_bytes());
        });
        put(out, self.owner, |out, owner| owner_to(out, &owner));
        for (page, slot) in [(self.page, self.slot), (self.ref_page, self.ref_slot)] {
            put(out, page, page_to);
            put(out, slot, |out, slot| out.extend(slot.to_le_bytes()));
        }
        put(out, self.content, content_to);
        for (name, value) in &self.evidence {
            out.extend(number_of(name).to_le_bytes());
            match value {
                Value::Number(number) => {
                    out.push(0);
                    out.extend(number.to_le_bytes());
                }
                Value::Page(page) => {
                    out.push(1);
                    page_to(out, *page);
                }
                Value::Owner(owner) => {
                    out.push(2);
                    owner_to(out, owner);
                }
                Value::Text(text) => {
                    out.push(3);
                    out.extend((text.len() as u32).to_le_bytes());
                    out.extend(text.as_bytes());
                }
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = &mut Cursor(bytes);
        let mut finding = Self::new(registry::ALL.get(usize::from(bytes.u16()?)).copied()?);
        finding.state = bytes.u8()?;
        finding.demoted_by = bytes.optional(|bytes| limits::ALL.get(usize::from(bytes.u16()?)).copied())?;
        finding.owner = bytes.optional(Cursor::owner)?;
        (finding.page, finding.slot) = (bytes.optional(Cursor::page)?, bytes.optional(Cursor::u16)?);
        (finding.ref_page, finding.ref_slot) = (bytes.optional(Cursor::page)?, bytes.optional(Cursor::u16)?);
        finding.content = bytes.optional(Cursor::content)?;
        while !bytes.0.is_empty() {
            let name = name_of(bytes.u16()?)?;
            let value = match bytes.u8()? {
                0 => Value::Number(bytes.u64()?.cast_signed()),
                1 => Value::Page(bytes.page()?),
                2 => Value::Owner(bytes.owner()?),
                _ => {
                    let length = bytes.u32()? as usize;
                    Value::Text(String::from_utf8(bytes.take(length)?.to_vec()).ok()?)
                }
            };
            finding.evidence.push((name, value));
        }
        Some(finding)
    }
}

/// Limit on the number of names; the program has fewer.
const MOST_NAMES: usize = 1024;
/// Limit on the length of a name in bytes; all names are shorter.
const MOST_NAME_BYTES: usize = 64;

/// Returns the static name for a text that another process of the same program wrote. `None` if the text is too long to
/// be a name, or if there are too many names.
fn name(text: String) -> Option<&'static str> {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.iter().find(|known| **known == text) {
        return Some(known);
    }
    if names.len() >= MOST_NAMES || text.len() > MOST_NAME_BYTES {
        return None;
    }
    // The text is leaked so that it lives as long as the names in the program. There are few such texts.
    let name: &'static str = Box::leak(text.into_boxed_str());
    names.push(name);
    Some(name)
}

/// Encodes a finding for other processes of the same build. The names of evidence are written as text, not as numbers.
impl Wire for Finding {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let Self { check, state, owner, page, slot, ref_page, ref_slot, demoted_by, content, evidence } = self;
        check.id.to_owned().write(to)?;
        (*state, *owner, (*page, *slot)).write(to)?;
        (*ref_page, *ref_slot, *demoted_by).write(to)?;
        content.map(Content::numbers).write(to)?;
        (evidence.len() as u64).write(to)?;
        evidence.iter().try_for_each(|(name, value)| {
            (*name).to_owned().write(to)?;
            value.write(to)
        })
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let id = String::read(from)?;
        let check = registry::ALL.iter().copied().find(|check| check.id == id);
        let check = check.ok_or_else(|| from.damaged("the id of a check"))?;
        let (state, owner, (page, slot)) = Wire::read(from)?;
        let (ref_page, ref_slot, demoted_by) = Wire::read(from)?;
        let content = match Wire::read(from)? {
            None => None,
            Some(numbers) => Some(Content::from_numbers(numbers).ok_or_else(|| from.damaged("the content of a page"))?),
        };
        let mut evidence = Vec::new();
        for _ in 0..u64::read(from)? {
            let name = name(String::read(from)?).ok_or_else(|| from.damaged("the name of a value"))?;
            evidence.push((name, Value::read(from)?));
        }
        Ok(Self { check, state, owner, page, slot, ref_page, ref_slot, demoted_by, content, evidence })
    }
}

impl Wire for Owner {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let mut bytes = Vec::new();
        owner_to(&mut bytes, self);
        bytes.into_boxed_slice().write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let bytes = Box::<[u8]>::read(from)?;
        Cursor(&bytes).owner().ok_or_else(|| from.damaged("the owner of a finding"))
    }
}

impl Wire for Value {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        match self {
            Self::Number(number) => (0u8, *number).write(to),
            Self::Page(page) => (1u8, *page).write(to),
            Self::Owner(owner) => (2u8, *owner).write(to),
            Self::Text(text) => (3u8, text.clone()).write(to),
        }
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(match u8::read(from)? {
            0 => Self::Number(Wire::read(from)?),
            1 => Self::Page(Wire::read(from)?),
            2 => Self::Owner(Wire::read(from)?),
            3 => Self::Text(Wire::read(from)?),
            _ => return Err(from.damaged("the kind of a value")),
        })
    }
}

fn put<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(value.is_some().into());
    if let Some(value) = value {
        write(out, value);
    }
}

fn owner_to(out: &mut Vec<u8>, owner: &Owner) {
    out.extend(owner.object_id.to_le_bytes());
    out.extend(owner.index_id.to_le_bytes());
    out.extend(owner.partition_id.to_le_bytes());
    out.extend(owner.alloc_unit.0.to_le_bytes());
    put(out, owner.kind, |out, kind| {
        out.extend(match kind {
            UnitKind::InRow => [0, 0],
            UnitKind::Lob => [1, 0],
            UnitKind::Overflow => [2, 0],
            UnitKind::Other(number) => [3, number],
        });
    });
}

/// Appends a content to `out`.
fn content_to(out: &mut Vec<u8>, content: Content) {
    let (kind, small, large) = content.numbers();
    out.push(kind);
    out.extend(small.to_le_bytes());
    out.extend(large.to_le_bytes());
}

/// The bytes that remain to be read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        u16_at(self.take(2)?, 0)
    }

    fn u32(&mut self) -> Option<u32> {
        u32_at(self.take(4)?, 0)
    }

    fn u64(&mut self) -> Option<u64> {
        u64_at(self.take(8)?, 0)
    }

    fn page(&mut self) -> Option<PageId> {
        PageId::read(self.take(6)?, 0)
    }

    fn content(&mut self) -> Option<Content> {
        Content::from_numbers((self.u8()?, self.u16()?, self.u64()?.cast_signed()))
    }

    fn owner(&mut self) -> Option<Owner> {
        Some(Owner {
            object_id: self.u32()?.cast_signed(),
            index_id: self.u32()?.cast_signed(),
            partition_id: self.u64()?,
            alloc_unit: AllocUnitId(self.u64()?),
            kind: self.optional(|bytes| {
                Some(match (bytes.u8()?, bytes.u8()?) {
                    (0, _) => UnitKind::InRow,
                    (1, _) => UnitKind::Lob,
                    (2, _) => UnitKind::Overflow,
                    (_, number) => UnitKind::Other(number),
                })
            })?,
        })
    }

    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u8()? {
            0 => Some(None),
            _ => read(self).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_comes_back_whole() {
        let owner = |kind| Owner {
            object_id: -7,
            index_id: -1,
            partition_id: u64::MAX - 5,
            alloc_unit: AllocUnitId(1 << 63),
            kind,
        };
        let bare = Finding::new(registry::ALL[3]);
        let demoted = Finding { demoted_by: limits::ALL.last().copied(), ..bare.clone() };
        let full = Finding::new(registry::ALL[registry::ALL.len() - 1])
            .owner(owner(Some(UnitKind::Other(9))))
            .at(PageId::new(3, 4_000_000_000), 17)
            .ref_at(PageId::new(1, 5), u16::MAX)
            .state(98)
            .number("one", i64::MIN)
            .page_value("two", PageId::NONE)
            .text_value("three", "größer")
            .other_owner(owner(None))
            .content(Some(Content::OtherPlace { file: 3, distance: -9, is_known: true }));
        for finding in [bare, demoted, full] {
            let mut bytes = Vec::new();
            Item::write(&finding, &mut bytes);
            let back = <Finding as Item>::read(&bytes).map(|back| format!("{back:?}"));
            assert_eq!(back, Some(format!("{finding:?}")));
            assert!((0..bytes.len()).all(|length| <Finding as Item>::read(&bytes[..length]).is_none_or(|cut| {
                // A record that is cut off between two pieces of evidence reads as a finding with less evidence;
                // reading it never panics.
                cut.evidence.len() < finding.evidence.len()
            })));
        }
    }
}
