//! Damage to the links and keys of B-trees.

use super::*;

pub fn kinds() -> Vec<(&'static str, Damage)> {
    [links(), keys(), whole_pages(), pointers()].concat()
}

/// Damage to the links of a level.
fn links() -> Vec<(&'static str, Damage)> {
    vec![
        ("next pointer skips a page", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let leaves = &facts.clustered.leaves;
            image.edit(leaves[at], |bytes| put_page(bytes, 16, PageId::new(1, leaves[at + 2])));
            vec![(8978, leaves[at + 1]), (8936, leaves[at + 2])]
        }),
        ("next pointer zeroed", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| put_page(bytes, 16, PageId::NONE));
            vec![(8978, right)]
        }),
        ("next pointer to a free page", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| put_page(bytes, 16, PageId::new(1, facts.free_page)));
            vec![(8978, right), (8981, facts.free_page)]
        }),
        ("next pointer to a page of another index", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            let other = facts.nonclustered.leaves[1];
            image.edit(page, |bytes| put_page(bytes, 16, PageId::new(1, other)));
            vec![(8978, right), (8982, other)]
        }),
        ("previous pointer wrong", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let leaves = &facts.clustered.leaves;
            image.edit(leaves[at], |bytes| put_page(bytes, 8, PageId::new(1, leaves[at - 2])));
            vec![(8935, leaves[at]), (8936, leaves[at])]
        }),
        ("leaf level cyclic", |image, facts| {
            let leaves = &facts.clustered.leaves;
            let (first, last) = (leaves[0], leaves[leaves.len() - 1]);
            image.edit(last, |bytes| put_page(bytes, 16, PageId::new(1, first)));
            vec![(8936, first)]
        }),
    ]
}

/// Damage to children, levels and keys.
fn keys() -> Vec<(&'static str, Damage)> {
    vec![
        ("two children of a parent swapped", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let leaves = facts.clustered.leaves.clone();
            image.edit(facts.clustered.root, |bytes| {
                let place = usize::from(get16(bytes, 14)) - 6;
                let (left, right) = (offset_of(bytes, at as u16) + place, offset_of(bytes, at as u16 + 1) + place);
                put_page(bytes, left, PageId::new(1, leaves[at + 1]));
                put_page(bytes, right, PageId::new(1, leaves[at]));
            });
            vec![
                (8934, leaves[at + 1]),
                (8933, leaves[at]),
                (8935, leaves[at]),
                (8935, leaves[at + 1]),
                (8935, leaves[at + 2]),
            ]
        }),
        ("child pointer to a free page", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            image.edit(facts.clustered.root, |bytes| {
                let place = offset_of(bytes, at as u16) + usize::from(get16(bytes, 14)) - 6;
                put_page(bytes, place, PageId::new(1, facts.free_page));
            });
            let leaves = &facts.clustered.leaves;
            vec![(8980, facts.free_page), (8977, leaves[at]), (8935, leaves[at + 1])]
        }),
        ("level of a leaf page changed", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| bytes[3] = 1);
            vec![(8931, page), (2531, page), (2531, right)]
        }),
        ("two slots exchanged, so that keys are out of order", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let (first, second) = (get16(bytes, slot_at(2)), get16(bytes, slot_at(3)));
                put16(bytes, slot_at(2), second);
                put16(bytes, slot_at(3), first);
            });
            vec![(2511, page)]
        }),
        ("first key of a page below its parent's", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, 0);
                bytes[at + 4..at + 8].copy_from_slice(&0u32.to_le_bytes());
            });
            vec![(8933, page)]
        }),
        ("last key of a page not below the next one", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, get16(bytes, 22) - 1);
                bytes[at + 4..at + 8].copy_from_slice(&0x7FFF_FFFFu32.to_le_bytes());
            });
            vec![(8934, page)]
        }),
        ("two rows with one key", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            let database = image.database();
            let layout = &database.rowset_of(&facts.clustered.unit).expect("rowset").layout;
            let keys = layout.columns.iter().filter(|column| column.key_ordinal > 0);
            let places: Vec<(usize, usize)> =
                keys.map(|key| (usize::from(key.leaf_offset.unsigned_abs()), usize::from(key.info.length))).collect();
            image.edit(page, |bytes| {
                let (from, to) = (offset_of(bytes, 4), offset_of(bytes, 5));
                for (at, length) in places {
                    bytes.copy_within(from + at..from + at + length, to + at);
                }
            });
            vec![(2512, page)]
        }),
    ]
}

/// Damage to whole pages of a tree.
fn whole_pages() -> Vec<(&'static str, Damage)> {
    vec![
        ("leftmost leaf zeroed", |image, facts| {
            let leaves = &facts.clustered.leaves;
            image.edit_unsealed(leaves[0], |bytes| bytes.fill(0));
            vec![(8909, leaves[0]), (8928, leaves[0]), (8980, leaves[0]), (8978, leaves[1])]
        }),
        ("three leaves in a row zeroed", |image, facts| {
            let at = facts.clustered.leaves.len() / 2 - 1;
            let leaves = &facts.clustered.leaves;
            for page in &leaves[at..at + 3] {
                image.edit_unsealed(*page, |bytes| bytes.fill(0));
            }
            let mut expected =
                vec![(8976, leaves[at]), (8980, leaves[at + 1]), (8980, leaves[at + 2]), (8978, leaves[at + 3])];
            expected.extend(leaves[at..at + 3].iter().flat_map(|page| [(8909, *page), (8928, *page)]));
            expected
        }),
        ("root zeroed", |image, facts| {
            let root = facts.nonclustered.root;
            image.edit_unsealed(root, |bytes| bytes.fill(0));
            let mut expected = vec![(8909, root), (8928, root), (8980, root)];
            expected.extend(facts.nonclustered.leaves.iter().map(|leaf| (8977, *leaf)));
            expected
        }),
        ("empty page above the leaves", |image, facts| {
            let root = facts.nonclustered.root;
            image.edit(root, |bytes| {
                put16(bytes, 22, 0);
                put16(bytes, 58, 0);
                put16(bytes, 28, 8096);
                put16(bytes, 30, 96);
            });
            let mut expected = vec![(2574, root)];
            expected.extend(facts.nonclustered.leaves.iter().map(|leaf| (8977, *leaf)));
            expected
        }),
    ]
}

/// Damage to pointers to roots and children.
fn pointers() -> Vec<(&'static str, Damage)> {
    vec![
        ("pgroot to a free page", |image, facts| {
            edit_unit(image, facts.nonclustered.unit.id, 29, PageId::new(1, facts.free_page));
            vec![(8980, facts.free_page), (8979, facts.nonclustered.root)]
        }),
        ("pgroot to a leaf", |image, facts| {
            let leaf = facts.nonclustered.leaves[1];
            edit_unit(image, facts.nonclustered.unit.id, 29, PageId::new(1, leaf));
            vec![(8937, leaf), (8979, facts.nonclustered.root)]
        }),
        ("child pointer to a page of another index", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let (leaves, others) = (&facts.clustered.leaves, &facts.nonclustered.leaves);
            image.edit(facts.clustered.root, |bytes| {
                let place = usize::from(get16(bytes, 14)) - 6;
                put_page(bytes, offset_of(bytes, at as u16) + place, PageId::new(1, others[1]));
            });
            vec![(8926, others[1]), (8977, leaves[at]), (8935, leaves[at + 1])]
        }),
        ("child pointer to the first page of another index", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let (leaves, others) = (&facts.clustered.leaves, &facts.nonclustered.leaves);
            image.edit(facts.clustered.root, |bytes| {
                let place = usize::from(get16(bytes, 14)) - 6;
                put_page(bytes, offset_of(bytes, at as u16) + place, PageId::new(1, others[0]));
            });
            vec![(8925, others[0]), (8977, leaves[at]), (8935, leaves[at + 1])]
        }),
    ]
}
