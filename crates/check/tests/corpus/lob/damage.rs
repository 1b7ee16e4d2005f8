//! Damage to fragments of values, to the links between fragments and to their pages, with the expected messages.

use super::*;

#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn kinds() -> Vec<(&'static str, &'static [&'static str], Damage)> {
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
            // The page of the node is empty now. But for a page of type 4 (text tree), the PFS byte is expected to say
            // that the page is full.
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
        ("a link leads to the IAM page of its own values", BOTH, |image| {
            let (_, (piece, reference, row)) = Values::find(image, Values::data);
            let unit = Page::new(&image.page(piece.at.page.page)).header().alloc_unit();
            let is_iam = |page: &u32| {
                let bytes = image.page(*page);
                let header = Page::new(&bytes).header();
                (header.page_type, header.alloc_unit()) == (PageType::Iam as u8, unit)
            };
            let iam = (8..(image.bytes.len() / 8192) as u32).find(is_iam).expect("an IAM page");
            let other = RecordId { page: PageId::new(1, iam), slot: 1 };
            image.edit(reference.from.page.page, |bytes| put_record(bytes, reference.at, other));
            // An IAM page never contains a fragment (8965). The fragment that the link pointed to before has lost its
            // parent (8964).
            vec![(8965, 1, other), (8964, 1, piece.at), owner(row)]
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
            // The fragments below the node are not reported as orphans.
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
            // After the change, the node expects children of another kind, and the parent of the node expects a node of
            // another kind, because the level of a node determines these kinds.
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
