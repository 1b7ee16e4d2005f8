//! Damage to off-row values, protection made right again: exactly the documented messages.

use std::collections::BTreeSet;

use catalog::{Database, Level, Stored, UnitKind};
use check::Report;
use format::lob::{Fragment, Node, Pointer};
use format::record::{Record, RecordKind};
use format::types::xtype;
use format::{AllocUnitId, Page, PageBytes, PageId, RecordId};
use libtest_mimic::{Failed, Trial};

use crate::image::{Image, get16, offset_of, put_page, put16, slot_at};
use crate::subjects;

/// Text pointers and trees of SQL Server 2000, torn-page protection.
const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";
/// Roots in the row, some with an internal node below them.
const ROOTS: &str = "aehyok__DotNetCore/database/database.rar.d/aehyokCore2.mdf";
/// Roots behind other variable columns.
const KNJIZNICA: &str = "bakolega__KnjiznicaApp2/database.7z.d/Knjiznica.mdf";

/// Roots in the row with nothing but data below them.
const DIRECT: &str = "Asssatiani__GymManagerDB/DB.rar.d/GymManagerWPF.mdf";

/// A fragment of an off-row value.
#[derive(Clone, Copy)]
struct Found {
    at: RecordId,
    id: u64,
    kind: u16,
    /// Place of the record on its page.
    offset: usize,
    length: usize,
}

/// What leads to a fragment.
#[derive(Clone, Copy)]
struct Reference {
    from: RecordId,
    in_row: bool,
    id: u64,
    target: RecordId,
    /// Place of the address on the page, and of the pointer or node that it is part of.
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
    // Data pages of SQL Server 2000 carry index id 0 (docs/format/README.md#index-id-0-on-data-pages).
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
    /// Those of the rowset in which `wanted` finds what it needs.
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

    /// The row that owns a value.
    fn row(&self, id: u64) -> RecordId {
        self.references.iter().find(|reference| reference.in_row && reference.id == id).expect("row").from
    }

    fn text_pointers(&self) -> Vec<Reference> {
        self.references.iter().filter(|reference| reference.text_pointer).copied().collect()
    }

    /// Text pointers of two rows.
    fn two_text_pointers(&self) -> Option<(Reference, Reference)> {
        let pointers = self.text_pointers();
        let first = *pointers.first()?;
        Some((first, *pointers.iter().find(|pointer| pointer.from != first.from)?))
    }

    /// A piece of data, what leads to it, and the row of its value.
    fn data(&self) -> Option<(Found, Reference, RecordId)> {
        let piece = |reference: &&Reference| self.fragment(reference.target).kind == 3;
        let reference = *self.references.iter().find(piece)?;
        Some((self.fragment(reference.target), reference, self.row(reference.id)))
    }
}

/// Message, state, page and slot.
type Expected = Vec<(u16, u8, RecordId)>;

fn owner(row: RecordId) -> (u16, u8, RecordId) {
    (8929, 1, row)
}

/// Empties a slot of a text page, as a deletion does.
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

#[expect(clippy::too_many_lines, reason = "a list")]
fn kinds() -> Vec<(&'static str, &'static [&'static str], Damage)> {
    const BOTH: &[&str] = &[NORTHWIND, ROOTS, subjects::SPECIMEN];
    const TEXT: &[&str] = &[NORTHWIND, subjects::SPECIMEN];
    const INLINE: &[&str] = &[ROOTS, subjects::SPECIMEN];
    vec![
        ("a piece of data lost", BOTH, |image| {
            let (_, (piece, _, row)) = Values::find(image, Values::data);
            lose(image, piece);
            vec![(8965, 1, piece.at), owner(row)]
        }),
        ("a root lost", TEXT, |image| {
            let (values, pointer) = Values::find(image, |values| {
                values.text_pointers().into_iter().find(|pointer| values.fragment(pointer.target).kind == 5)
            });
            lose(image, values.fragment(pointer.target));
            let children = values.references.iter().filter(|reference| reference.from == pointer.target);
            let orphans = children.map(|child| (8964, 1, child.target));
            [(8965, 1, pointer.target), owner(pointer.from)].into_iter().chain(orphans).collect()
        }),
        ("an internal node lost", INLINE, |image| {
            let (values, node) = Values::find(image, |values| values.fragments.iter().find(|f| f.kind == 2).copied());
            lose(image, node);
            // Nothing is left on its page, which for type 4 says full all the same.
            image.edit(1, |bytes| bytes[100 + node.at.page.page as usize] = 0x44);
            let children = values.references.iter().filter(|reference| reference.from == node.at);
            let orphans = children.map(|child| (8964, 1, child.target));
            [(8965, 1, node.at), owner(values.row(node.id))].into_iter().chain(orphans).collect()
        }),
        ("a text page zeroed", BOTH, |image| {
            let (values, (piece, ..)) = Values::find(image, Values::data);
            let lost = piece.at.page;
            image.edit_unsealed(lost.page, |bytes| bytes.fill(0));
            let unseen: BTreeSet<(RecordId, u64)> = values
                .references
                .iter()
                .filter(|reference| reference.target.page == lost && reference.from.page != lost)
                .map(|reference| (reference.target, reference.id))
                .collect();
            let rows: BTreeSet<(RecordId, u64)> = unseen.iter().map(|(_, id)| (values.row(*id), *id)).collect();
            let page = RecordId { page: lost, slot: 0 };
            let mut expected = vec![(8909, 1, page), (8928, 1, page)];
            expected.extend(unseen.into_iter().map(|(at, _)| (8965, 1, at)));
            expected.extend(rows.into_iter().map(|(row, _)| owner(row)));
            expected
        }),
        ("a text pointer leads to another row's value", TEXT, |image| {
            let (_, pointers) = Values::find(image, Values::two_text_pointers);
            let (first, second) = pointers;
            image.edit(second.from.page.page, |bytes| put_record(bytes, second.at, first.target));
            vec![(8961, 1, first.target), (8964, 1, second.target), owner(second.from)]
        }),
        ("a text pointer written twice", TEXT, |image| {
            let (_, pointers) = Values::find(image, Values::two_text_pointers);
            let (first, second) = pointers;
            let pointer = image.page(first.from.page.page)[first.start..first.start + 16].to_vec();
            image.edit(second.from.page.page, |bytes| {
                bytes[second.start..second.start + 16].copy_from_slice(&pointer);
            });
            vec![(8974, 1, first.target), (8964, 1, second.target), owner(first.from), owner(second.from)]
        }),
        ("a text pointer leads to nothing", TEXT, |image| {
            let (_, pointer) = Values::find(image, |values| values.text_pointers().first().copied());
            let nowhere = RecordId { slot: 4000, ..pointer.target };
            image.edit(pointer.from.page.page, |bytes| put_record(bytes, pointer.at, nowhere));
            vec![(8965, 1, nowhere), (8964, 1, pointer.target), owner(pointer.from)]
        }),
        ("a link leads to a page of another table", BOTH, |image| {
            let (_, (piece, reference, row)) = Values::find(image, Values::data);
            let other = RecordId { page: PageId::new(1, image.tree(true).leaves[0]), slot: 1 };
            image.edit(reference.from.page.page, |bytes| put_record(bytes, reference.at, other));
            vec![(8925, 1, other), (8964, 1, piece.at), owner(row)]
        }),
        ("the id of a piece of data changed", BOTH, |image| {
            let (_, (piece, _, row)) = Values::find(image, Values::data);
            image.edit(piece.at.page.page, |bytes| bytes[piece.offset + 7] ^= 0x10);
            vec![(8961, 1, piece.at), owner(row)]
        }),
        ("the id in a text pointer changed", TEXT, |image| {
            let (_, pointer) = Values::find(image, |values| values.text_pointers().first().copied());
            image.edit(pointer.from.page.page, |bytes| bytes[pointer.start + 3] ^= 0x10);
            vec![(8961, 1, pointer.target), owner(pointer.from)]
        }),
        ("the length in a link changed", BOTH, |image| {
            let last = |values: &Values| {
                let single = |reference: &&Reference| {
                    values.references.iter().filter(|other| other.from == reference.from).count() == 1
                };
                let reference = *values.references.iter().filter(|r| !r.text_pointer).find(single)?;
                Some((reference, values.row(reference.id)))
            };
            let (_, (reference, row)) = Values::find(image, last);
            image.edit(reference.from.page.page, |bytes| bytes[reference.at - 4] ^= 1);
            vec![(8961, 2, reference.target), owner(row)]
        }),
        ("a piece of data cut short", BOTH, |image| {
            let (_, (piece, _, row)) = Values::find(image, Values::data);
            image.edit(piece.at.page.page, |bytes| {
                let length = get16(bytes, piece.offset + 2);
                put16(bytes, piece.offset + 2, length - 1);
                let free = get16(bytes, 28) + 1;
                put16(bytes, 28, free);
            });
            vec![(8961, 2, piece.at), owner(row)]
        }),
        ("a link removed from a root", TEXT, |image| {
            let of_several = |values: &Values| {
                let root = values.fragments.iter().find(|f| {
                    matches!(f.kind, 4 | 5) && values.references.iter().filter(|r| r.from == f.at).count() > 1
                })?;
                let last = values.references.iter().rfind(|reference| reference.from == root.at)?;
                Some((*root, *last))
            };
            let (_, (root, last)) = Values::find(image, of_several);
            image.edit(root.at.page.page, |bytes| {
                let links = get16(bytes, root.offset + 16);
                put16(bytes, root.offset + 16, links - 1);
            });
            vec![(8964, 1, last.target)]
        }),
        ("a node type that does not exist", BOTH, |image| {
            let (_, (piece, _, row)) = Values::find(image, Values::data);
            image.edit(piece.at.page.page, |bytes| put16(bytes, piece.offset + 12, 9));
            vec![(8962, 1, piece.at), owner(row)]
        }),
        ("data turned into a NULL", BOTH, |image| {
            let (_, (piece, _, row)) = Values::find(image, Values::data);
            image.edit(piece.at.page.page, |bytes| put16(bytes, piece.offset + 12, 8));
            vec![(8961, 4, piece.at), owner(row)]
        }),
        ("an internal node turned into a small value", INLINE, |image| {
            let (values, node) = Values::find(image, |values| values.fragments.iter().find(|f| f.kind == 2).copied());
            image.edit(node.at.page.page, |bytes| put16(bytes, node.offset + 12, 0));
            // What hung below it is not called orphaned.
            vec![(8963, 1, node.at), (8961, 4, node.at), owner(values.row(node.id))]
        }),
        ("a link in a row leads to another row's value", &[DIRECT], |image| {
            let two = |values: &Values| {
                let direct = |reference: &&Reference| reference.in_row && !reference.text_pointer;
                let first = *values.references.iter().find(direct)?;
                let second = values.references.iter().filter(direct).find(|other| other.from != first.from)?;
                Some((first, *second))
            };
            let (_, (first, second)) = Values::find(image, two);
            image.edit(second.from.page.page, |bytes| put_record(bytes, second.at, first.target));
            vec![(8961, 1, first.target), (8964, 1, second.target), owner(second.from)]
        }),
        ("the level of an internal node changed", INLINE, |image| {
            let (values, node) = Values::find(image, |values| values.fragments.iter().find(|f| f.kind == 2).copied());
            image.edit(node.at.page.page, |bytes| put16(bytes, node.offset + 18, 1));
            // Its children are not what such a node has, and it is not what its parent has.
            let children = values.references.iter().filter(|reference| reference.from == node.at);
            let children = children.map(|child| (8961, 4, child.target));
            [(8961, 4, node.at), owner(values.row(node.id))].into_iter().chain(children).collect()
        }),
        ("PFS says that a text page is emptier than it is", BOTH, |image| {
            let (_, (piece, ..)) = Values::find(image, Values::data);
            let page = piece.at.page;
            image.edit(1, |bytes| bytes[100 + page.page as usize] -= 1);
            vec![(8914, 1, RecordId { page, slot: 0 })]
        }),
        ("PFS says that a tree page is empty", INLINE, |image| {
            let (_, node) = Values::find(image, |values| values.fragments.iter().find(|f| f.kind == 2).copied());
            image.edit(1, |bytes| bytes[100 + node.at.page.page as usize] &= !7);
            vec![(8914, 1, RecordId { page: node.at.page, slot: 0 })]
        }),
        ("PFS says that a heap page is empty", BOTH, |image| {
            let database = image.database();
            let heap = database.units.iter().filter(|unit| {
                let rowset = database.rowset_of(unit);
                unit.kind == UnitKind::InRow && rowset.is_some_and(|rowset| rowset.index_id == 0)
            });
            let page = heap.flat_map(|unit| pages_of(image, unit.id)).next().expect("a page of a heap");
            image.edit(1, |bytes| bytes[100 + page as usize] &= !7);
            vec![(8914, 1, RecordId { page: PageId::new(1, page), slot: 0 })]
        }),
    ]
}

type Special = fn(&Image) -> Result<(), Failed>;

/// One test a kind of damage and subject.
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
            // Each piece of the value differs.
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

fn place_of(finding: &check::Finding) -> RecordId {
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

/// A column of a (max) type turned into one of type ntext or text, as of a table with the option "text in row": roots and
/// short values lie in the row.
fn text_in_row(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let in_row = |values: &Values| values.references.iter().find(|r| r.in_row && !r.text_pointer).copied();
    let (_, reference) = Values::find(&image, in_row);
    let database = image.database();
    let unit = Page::new(&image.page(reference.from.page.page)).header().alloc_unit();
    let rowset = database.rowset_of(&database.units[database.unit_index(unit).expect("unit")]).expect("rowset");
    let is_large = |column: &&catalog::RowsetColumn| {
        matches!(column.info.xtype, xtype::NVARCHAR | xtype::VARCHAR) && matches!(column.info.length, 0 | u16::MAX)
    };
    let column = rowset.layout.columns.iter().find(is_large).expect("a (max) column");
    let kind = if column.info.xtype == xtype::NVARCHAR { xtype::NTEXT } else { xtype::TEXT };
    let key = [rowset.id.to_le_bytes().as_slice(), &column.id.to_le_bytes()].concat();
    image.edit_row_by(3, &key, |row| row[4 + 24..4 + 28].copy_from_slice(&[kind, 16, 0, 0]));
    let report = image.check();
    let unverified =
        report.not_verified.iter().find(|entry| entry.what == "LOB trees" || entry.what == "column values");
    match (report.findings.first(), unverified) {
        (None, None) => Ok(()),
        (first, unverified) => Err(format!("{first:?} {unverified:?}").into()),
    }
}

/// A column of a (max) type turned into one of type xml, its values into something that begins as documents do.
fn documents(image: &Image) -> Result<(), Failed> {
    const SIGNATURE: [u8; 3] = [0xDF, 0xFF, 1];
    let mut image = image.clone();
    let database = image.database();
    let is_large = |column: &&catalog::RowsetColumn| {
        matches!(column.info.xtype, xtype::NVARCHAR | xtype::VARCHAR) && matches!(column.info.length, 0 | u16::MAX)
    };
    let direct = |values: &Values| {
        let first = |r: &&Reference| r.in_row && !r.text_pointer && r.at == r.start + 16;
        let mut firsts = values.references.iter().filter(first);
        firsts.find(|reference| values.fragment(reference.target).kind == 3).copied()
    };
    let found = (0..database.rowsets.len()).find_map(|at| {
        let rowset = &database.rowsets[at];
        let mut large = rowset.layout.columns.iter().filter(is_large);
        let column = large.next().filter(|_| large.next().is_none())?;
        let values = Values::of(&image, &database, at)?;
        let reference = direct(&values)?;
        Some((rowset, column, values, reference))
    });
    let (rowset, column, values, reference) = found.expect("a table with one (max) column");
    let key = [rowset.id.to_le_bytes().as_slice(), &column.id.to_le_bytes()].concat();
    image.edit_row_by(3, &key, |row| row[4 + 24..4 + 28].copy_from_slice(&[xtype::XML, 0, 0, 0]));
    for piece in values.fragments.iter().filter(|fragment| fragment.kind == 3) {
        image.edit(piece.at.page.page, |bytes| {
            bytes[piece.offset + 14..piece.offset + 17].copy_from_slice(&SIGNATURE);
        });
    }
    let units = rowset.units.iter().map(|unit| &database.units[*unit]).filter(|unit| unit.kind == UnitKind::InRow);
    for page in units.flat_map(|unit| pages_of(&image, unit.id)).collect::<Vec<_>>() {
        let bytes = image.page(page);
        if Page::new(&bytes).header().page_type != 1 {
            continue;
        }
        for slot in 0..Page::new(&bytes).header().slot_count.get() {
            let Ok(record) = Record::data(&bytes[offset_of(&bytes, slot)..]) else { continue };
            if let Stored::Plain(value @ [_, _, _, ..]) = column.stored(Level::Leaf, &record) {
                let at = place(&bytes, value);
                image.edit(page, |bytes| bytes[at..at + 3].copy_from_slice(&SIGNATURE));
            }
        }
    }
    let report = image.check();
    let unverified = report.not_verified.iter().find(|entry| entry.what == "column values");
    if !report.findings.is_empty() || unverified.is_some() {
        return Err(format!("{:?} {unverified:?}", report.findings.first()).into());
    }
    let first = values.fragment(reference.target);
    image.edit(first.at.page.page, |bytes| bytes[first.offset + 14] = b'<');
    let report = image.check();
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.check.msg, place_of(&finding))).collect();
    if found == [(2570, reference.from)] { Ok(()) } else { Err(format!("{found:?}").into()) }
}

/// A table's values turned into row-overflow data, of which there is no real sample: the same fragments, pointers of type 2
/// and a unit of type 3. All its values have one piece.
fn overflow(image: &Image) -> (Image, Reference, Found) {
    let mut image = image.clone();
    let single = |values: &Values| {
        let pieces = values.fragments.len();
        let direct = values.references.iter().all(|reference| reference.in_row && !reference.text_pointer);
        let first = *values.references.first()?;
        (direct && values.references.len() == pieces).then(|| (first, values.fragment(first.target)))
    };
    let (values, (reference, piece)) = Values::find(&image, single);
    let database = image.database();
    let unit = Page::new(&image.page(piece.at.page.page)).header().alloc_unit();
    let rowset = database.rowset_of(&database.units[database.unit_index(unit).expect("unit")]).expect("rowset");
    for unit in rowset.units.iter().map(|unit| &database.units[*unit]).filter(|unit| unit.kind != UnitKind::InRow) {
        let kind = if unit.kind == UnitKind::Lob { 3 } else { 2 };
        image.edit_row(7, unit.id.0, |row| row[4 + 8] = kind);
    }
    for reference in &values.references {
        image.edit(reference.from.page.page, |bytes| bytes[reference.start] = 2);
    }
    (image, reference, piece)
}

fn any_threads(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let (_, (piece, ..)) = Values::find(&image, Values::data);
    image.edit_unsealed(piece.at.page.page, |bytes| bytes.fill(0));
    let texts = |max_threads| {
        let report = image.check_with(&check::Options { max_threads, ..check::Options::default() });
        report.findings.iter().map(|finding| finding.text(&report.names())).collect::<Vec<_>>()
    };
    let one = texts(1);
    if one.len() > 3 && (2..8).all(|threads| texts(threads) == one) { Ok(()) } else { Err(one.join("\n").into()) }
}

fn rows_damaged(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let (_, (_, _, row)) = Values::find(&image, Values::data);
    image.edit(row.page.page, |bytes| put16(bytes, 28, get16(bytes, 28) ^ 0x10));
    let report = image.check();
    let told = report.findings.iter().any(|finding| (finding.check.msg, finding.page) == (8928, Some(row.page)));
    match (told, lob_messages(&report).as_slice()) {
        (true, []) => Ok(()),
        (told, messages) => Err(format!("8928 {told}, {messages:?}").into()),
    }
}

fn only_a_ghost(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let (_, (_, _, row)) = Values::find(&image, Values::data);
    image.edit(row.page.page, |bytes| {
        let at = offset_of(bytes, row.slot);
        bytes[at] |= 0x0C;
        put16(bytes, 58, get16(bytes, 58) + 1);
    });
    let report = image.check();
    let noted = report.not_verified.iter().any(|entry| entry.what == "LOB trees");
    match (noted, lob_messages(&report).as_slice()) {
        (true, []) => Ok(()),
        (noted, messages) => Err(format!("noted {noted}, {messages:?}").into()),
    }
}

/// The last variable column, a pointer, loses four bytes.
fn impossible_length(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let last = |values: &Values, image: &Image| {
        values.references.iter().filter(|reference| reference.in_row && !reference.text_pointer).find_map(|reference| {
            let page = image.page(reference.from.page.page);
            let at = offset_of(&page, reference.from.slot);
            let record = Record::data(&page[at..]).ok()?;
            let ends = at + usize::from(record.fixed_end()) + 4 + usize::from(record.column_count()).div_ceil(8);
            let (bytes, _) = record.variable(record.variable_count())?;
            let end = ends + 2 * (usize::from(record.variable_count()) - 1);
            (place(&page, bytes) == reference.start).then_some((*reference, end))
        })
    };
    let (_, (reference, end)) = Values::find(&image, |values| last(values, &image));
    image.edit(reference.from.page.page, |bytes| {
        put16(bytes, end, get16(bytes, end) - 4);
        put16(bytes, 28, get16(bytes, 28) + 4);
    });
    let expected = [(8960, reference.from), (8964, reference.target)];
    match lob_messages(&image.check()) {
        messages if messages == expected => Ok(()),
        messages => Err(format!("{messages:?}").into()),
    }
}
