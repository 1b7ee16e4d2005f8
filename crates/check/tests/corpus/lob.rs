//! Damage to off-row values. The protection of the changed pages is corrected, so exactly the documented messages must
//! be reported.

mod damage;
mod special;

use std::collections::BTreeSet;

use catalog::{Database, Level, Stored, UnitKind};
use findings::Report;
use format::lob::{Fragment, Node, Pointer};
use format::record::{Record, RecordKind};
use format::types::xtype;
use format::{AllocUnitId, Page, PageBytes, PageId, PageType, RecordId};
use libtest_mimic::{Failed, Trial};

use crate::image::{Image, get16, offset_of, put_page, put16, slot_at};
use crate::subjects;

use damage::kinds;
use special::{any_threads, documents, impossible_length, only_a_ghost, overflow, rows_damaged, text_in_row};

/// A database with text pointers and trees written by SQL Server 2000, and torn-page protection.
const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";
/// A database whose rows contain the roots of LOB trees. Some of these roots have an internal node below them.
const ROOTS: &str = "aehyok__DotNetCore/database/database.rar.d/aehyokCore2.mdf";
/// A database whose rows contain the roots of LOB trees. In the rows, other variable columns precede the roots.
const KNJIZNICA: &str = "bakolega__KnjiznicaApp2/database.7z.d/Knjiznica.mdf";

/// A database whose rows contain the roots of LOB trees. These roots point directly to data fragments.
const DIRECT: &str = "Asssatiani__GymManagerDB/DB.rar.d/GymManagerWPF.mdf";

/// A fragment of an off-row value.
#[derive(Clone, Copy)]
struct Found {
    at: RecordId,
    id: u64,
    kind: u16,
    /// Offset of the record on its page.
    offset: usize,
    length: usize,
}

/// A reference to a fragment.
#[derive(Clone, Copy)]
struct Reference {
    from: RecordId,
    in_row: bool,
    id: u64,
    target: RecordId,
    /// Offset, on the page, of the address in the reference. `start` is the offset of the pointer or node that contains
    /// this address.
    at: usize,
    start: usize,
    text_pointer: bool,
}

/// The off-row values of a table.
struct Values {
    fragments: Vec<Found>,
    references: Vec<Reference>,
}

fn pages_of(image: &Image, unit: AllocUnitId) -> Vec<u32> {
    let pfs = image.page(1);
    // Data pages written by SQL Server 2000 have index ID 0 (docs/format/README.md#index-id-0-on-data-pages).
    let named = |page: &u32| {
        let bytes = image.page(*page);
        let header = Page::new(&bytes).header();
        let old = header.index_id.get() == 0 && unit == AllocUnitId::from_header(1, header.object_id.get());
        header.alloc_unit() == unit || old
    };
    (8..(image.bytes.len() / 8192).min(8088) as u32)
        .filter(|page| pfs[100 + *page as usize] & 0x50 == 0x40)
        .filter(named)
        .collect()
}

fn place(page: &PageBytes, inner: &[u8]) -> usize {
    inner.as_ptr().addr() - page.as_ptr().addr()
}

impl Values {
    /// The off-row values of the first rowset for which `wanted` returns a result, and that result.
    fn find<T>(image: &Image, wanted: impl Fn(&Self) -> Option<T>) -> (Self, T) {
        let database = image.database();
        for rowset in 0..database.rowsets.len() {
            let values = Self::of(image, &database, rowset);
            if let Some(found) = values.as_ref().and_then(&wanted) {
                return (values.expect("values"), found);
            }
        }
        panic!("no such value")
    }

    fn of(image: &Image, database: &Database, rowset: usize) -> Option<Self> {
        let rowset = &database.rowsets[rowset];
        let unit = |kind| rowset.units.iter().map(|unit| &database.units[*unit]).find(|unit| unit.kind == kind);
        let (rows, lob) = (unit(UnitKind::InRow)?, unit(UnitKind::Lob)?);
        let mut values = Self { fragments: Vec::new(), references: Vec::new() };
        if rowset.object_id < 100 || lob.first_iam.is_none() {
            return None;
        }
        for page in pages_of(image, lob.id) {
            values.text_page(&image.page(page), page);
        }
        for page in pages_of(image, rows.id) {
            let bytes = image.page(page);
            for slot in 0..Page::new(&bytes).header().slot_count.get() {
                let offset = offset_of(&bytes, slot);
                if Page::new(&bytes).header().page_type != 1 || offset == 0 {
                    continue;
                }
                let Ok(record) = Record::data(&bytes[offset..]) else { continue };
                if record.kind() != RecordKind::Primary {
                    continue;
                }
                let from = RecordId { page: PageId::new(1, page), slot };
                for column in &rowset.layout.columns {
                    if let Stored::Complex(pointer) = column.stored(Level::Leaf, &record) {
                        values.pointer(&bytes, from, pointer);
                    }
                }
            }
        }
        Some(values)
    }

    fn text_page(&mut self, bytes: &PageBytes, page: u32) {
        for slot in 0..Page::new(bytes).header().slot_count.get() {
            let offset = offset_of(bytes, slot);
            let Ok(fragment) = Fragment::read(&bytes[offset..]) else { continue };
            if offset == 0 {
                continue;
            }
            let at = RecordId { page: PageId::new(1, page), slot };
            let (id, length) = (fragment.blob_id(), fragment.bytes().len());
            self.fragments.push(Found { at, id, kind: fragment.node_type(), offset, length });
            let (stride, first, links) = match fragment.node() {
                Node::Tree { links, .. } => (12, 28, links),
                Node::Internal { links, .. } => (16, 28, links),
                _ => continue,
            };
            for (position, link) in links.iter().enumerate() {
                let place = offset + first + position * stride;
                self.references.push(Reference {
                    from: at,
                    in_row: false,
                    id,
                    target: link.target,
                    at: place,
                    start: offset,
                    text_pointer: false,
                });
            }
        }
    }

    fn pointer(&mut self, page: &PageBytes, from: RecordId, pointer: &[u8]) {
        let start = place(page, pointer);
        match Pointer::read(pointer) {
            Pointer::Text { id, root } => self.references.push(Reference {
                from,
                in_row: true,
                id,
                target: root,
                at: start + 8,
                start,
                text_pointer: true,
            }),
            Pointer::InlineRoot { id, links, .. } => {
                for (position, link) in links.iter().enumerate() {
                    let at = start + 16 + position * 12;
                    let target = link.target;
                    self.references.push(Reference { from, in_row: true, id, target, at, start, text_pointer: false });
                }
            }
            _ => {}
        }
    }

    fn fragment(&self, at: RecordId) -> Found {
        *self.fragments.iter().find(|fragment| fragment.at == at).expect("fragment")
    }

    /// The row that contains the reference to the value with this ID.
    fn row(&self, id: u64) -> RecordId {
        self.references.iter().find(|reference| reference.in_row && reference.id == id).expect("row").from
    }

    fn text_pointers(&self) -> Vec<Reference> {
        self.references.iter().filter(|reference| reference.text_pointer).copied().collect()
    }

    /// Two text pointers, from different rows.
    fn two_text_pointers(&self) -> Option<(Reference, Reference)> {
        let pointers = self.text_pointers();
        let first = *pointers.first()?;
        Some((first, *pointers.iter().find(|pointer| pointer.from != first.from)?))
    }

    /// A data fragment, the reference to it, and the row that owns its value.
    fn data(&self) -> Option<(Found, Reference, RecordId)> {
        let piece = |reference: &&Reference| self.fragment(reference.target).kind == 3;
        let reference = *self.references.iter().find(piece)?;
        Some((self.fragment(reference.target), reference, self.row(reference.id)))
    }
}

/// The expected messages: number, state, page and slot of each.
type Expected = Vec<(u16, u8, RecordId)>;

fn owner(row: RecordId) -> (u16, u8, RecordId) {
    (8929, 1, row)
}

/// Makes the slot of a fragment empty, as a deletion does.
fn lose(image: &mut Image, fragment: Found) {
    let page = fragment.at.page.page;
    image.edit(page, |bytes| {
        put16(bytes, slot_at(fragment.at.slot), 0);
        let free = get16(bytes, 28) + fragment.length as u16;
        put16(bytes, 28, free);
    });
    let used = 8096 - u32::from(get16(&image.page(page), 28));
    let class = [0, 4048, 6476, 7691].iter().filter(|limit| used > **limit).count() as u8;
    image.edit(1, |bytes| bytes[100 + page as usize] = bytes[100 + page as usize] & !7 | class);
}

fn put_record(bytes: &mut PageBytes, at: usize, value: RecordId) {
    put_page(bytes, at, value.page);
    put16(bytes, at + 6, value.slot);
}

type Damage = fn(&mut Image) -> Expected;

type Special = fn(&Image) -> Result<(), Failed>;

/// One test per kind of damage and subject.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, subjects, damage) in kinds() {
        for subject in subjects.iter().filter(|name| subjects::is_there(name)) {
            let file = subjects::short(subject);
            trials.push(Trial::test(format!("lob: {name} ({file})"), move || {
                let mut image = subjects::image(subject);
                let expected = damage(&mut image);
                agree(&image.check(), expected)
            }));
        }
    }
    let special: [(&str, &str, Special); 10] = [
        ("the same answer for any number of threads", ROOTS, any_threads),
        ("values pushed off the row", DIRECT, |image| {
            let messages = lob_messages(&overflow(image).0.check());
            if messages.is_empty() { Ok(()) } else { Err(format!("{messages:?}").into()) }
        }),
        ("a value pushed off the row lost", DIRECT, |image| {
            let (mut image, reference, piece) = overflow(image);
            lose(&mut image, piece);
            same_messages(&image, &[(8929, reference.from), (8965, piece.at)])
        }),
        ("a row-overflow pointer leads elsewhere", DIRECT, |image| {
            let (mut image, reference, piece) = overflow(image);
            let nowhere = RecordId { slot: 4000, ..reference.target };
            image.edit(reference.from.page.page, |bytes| put_record(bytes, reference.at, nowhere));
            let expected = [(8929, reference.from), (8964, piece.at), (8965, nowhere)];
            same_messages(&image, &expected)
        }),
        ("the id in a row-overflow pointer changed", DIRECT, |image| {
            let (mut image, reference, piece) = overflow(image);
            image.edit(reference.from.page.page, |bytes| bytes[reference.start + 8] ^= 0x10);
            let messages = lob_messages(&image.check());
            // The ID of every fragment of the value differs from the ID in the pointer.
            let (owners, pieces): (Vec<_>, Vec<_>) = messages.iter().partition(|(msg, _)| *msg == 8929);
            let all_differ = pieces.iter().all(|(msg, _)| *msg == 8961) && pieces.contains(&(8961, piece.at));
            if owners == [(8929, reference.from)] && all_differ { Ok(()) } else { Err(format!("{messages:?}").into()) }
        }),
        ("large values may be of text types", ROOTS, text_in_row),
        ("documents off the row begin as documents do", ROOTS, documents),
        ("the page of the rows damaged: no orphans", ROOTS, rows_damaged),
        ("a value of which only a deleted row knows", ROOTS, only_a_ghost),
        ("a pointer of impossible length", KNJIZNICA, impossible_length),
    ];
    for (name, subject, test) in special.into_iter().filter(|(_, subject, _)| subjects::is_there(subject)) {
        trials.push(Trial::test(format!("lob: {name}"), move || test(&subjects::image(subject))));
    }
    trials
}

fn place_of(finding: &findings::Finding) -> RecordId {
    RecordId { page: finding.page.unwrap_or_default(), slot: finding.slot.unwrap_or_default() }
}

fn agree(report: &Report, mut expected: Expected) -> Result<(), Failed> {
    let mut found: Expected =
        report.findings.iter().map(|finding| (finding.check.msg, finding.state, place_of(&finding))).collect();
    found.sort_unstable();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    let texts: Vec<String> =
        report.findings.iter().take(20).map(|f| format!("Msg {} {}", f.check.msg, f.text(&report.names()))).collect();
    Err(format!("found {found:?}\nexpected {expected:?}\n{}", texts.join("\n")).into())
}

fn lob_messages(report: &Report) -> Vec<(u16, RecordId)> {
    let of_lobs = |msg: u16| matches!(msg, 8914 | 8925 | 8929 | 8960..=8965 | 8974);
    let findings = report.findings.iter().filter(|finding| of_lobs(finding.check.msg));
    findings.map(|finding| (finding.check.msg, place_of(&finding))).collect()
}

fn same_messages(image: &Image, expected: &[(u16, RecordId)]) -> Result<(), Failed> {
    let mut messages = lob_messages(&image.check());
    messages.sort_unstable();
    if messages == expected { Ok(()) } else { Err(format!("{messages:?}").into()) }
}
