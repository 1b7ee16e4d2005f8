//! Damage to allocation maps, IAM chains and the pointers to them.

use std::collections::BTreeSet;

use super::*;

pub fn kinds() -> Vec<(&'static str, Damage)> {
    [bits(), claims(), chains(), pointers(), whole_pages()].concat()
}

/// Damage to single bytes and bits of PFS, GAM and SGAM pages.
fn bits() -> Vec<(&'static str, Damage)> {
    vec![
        ("PFS byte of a leaf cleared", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            let dedicated = pfs(image, page).type_bits() == PfsByte::DEDICATED;
            set_pfs(image, page, 0);
            let mut expected = vec![(8976, page), (8978, right)];
            if !dedicated {
                expected.push((8948, page));
            }
            expected
        }),
        ("PFS byte of a leaf says IAM page", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            let byte = pfs(image, page).0 | 0x70;
            set_pfs(image, page, byte);
            vec![(8948, page)]
        }),
        ("PFS byte of an IAM page says ordinary page", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            set_pfs(image, iam, 0x60);
            vec![(8948, iam)]
        }),
        ("PFS byte of a free page says allocated", |image, facts| {
            set_pfs(image, facts.free_page, 0x40);
            vec![(8948, facts.free_page)]
        }),
        ("GAM bit of a free extent cleared", |image, facts| {
            let extent = facts.free_page / 8;
            flip_map(image, 2, extent);
            vec![(8905, extent * 8)]
        }),
        ("GAM bit of an owned extent set", |image, facts| {
            let extent = owned_extent(image, facts);
            flip_map(image, 2, extent);
            vec![(8904, extent * 8), (8913, extent * 8), (8913, extent * 8)]
        }),
        ("GAM bit of the first extent set", |image, _| {
            flip_map(image, 2, 0);
            vec![(8904, 0), (8913, 0), (8913, 0)]
        }),
        ("the extent of the file header claimed by an IAM page", |image, facts| {
            flip_map(image, facts.clustered.unit.first_iam.page, 0);
            vec![(8904, 0), (8913, 0), (8913, 0)]
        }),
        ("the boot page in the list of an IAM page", |image, facts| {
            list_single(image, facts.clustered.unit.first_iam.page, 9);
            vec![(8910, 9), (ANY, 0)]
        }),
        ("the first GAM page in the list of an IAM page", |image, facts| {
            list_single(image, facts.clustered.unit.first_iam.page, 2);
            vec![(8910, 2), (ANY, 0)]
        }),
        ("SGAM bit of a free extent set", |image, facts| {
            let extent = facts.free_page / 8;
            flip_map(image, 3, extent);
            vec![(8903, extent * 8)]
        }),
        ("SGAM bit of an owned extent set", |image, facts| {
            let extent = owned_extent(image, facts);
            flip_map(image, 3, extent);
            vec![(8904, extent * 8), (8913, extent * 8), (8913, extent * 8)]
        }),
    ]
}

/// Damage to what IAM pages claim.
fn claims() -> Vec<(&'static str, Damage)> {
    vec![
        ("extent claimed by two IAM pages", |image, facts| {
            let extent = owned_extent(image, facts);
            flip_map(image, facts.nonclustered.unit.first_iam.page, extent);
            vec![(8904, extent * 8), (8913, extent * 8), (8913, extent * 8)]
        }),
        ("extent claimed by all IAM pages", |image, facts| {
            let extent = owned_extent(image, facts);
            let owner = facts.clustered.unit.first_iam.page;
            for page in (8..(image.bytes.len() / PAGE_BYTES) as u32).filter(|page| *page != owner) {
                if pfs(image, page).type_bits() == PfsByte::IAM {
                    flip_map(image, page, extent);
                }
            }
            // There are eight messages 8913, because each page belongs to the unit that its header names, even if
            // message 8904 does not list this unit as one of the claimants.
            std::iter::once((8904, extent * 8)).chain([(8913, extent * 8); 8]).collect()
        }),
        ("IAM bit of an owned extent lost", |image, facts| {
            let extent = owned_extent(image, facts);
            let object = object_of(&image.page(facts.clustered.root));
            let pages: Vec<u32> = (extent * 8..extent * 8 + 8)
                .filter(|page| pfs(image, *page).is_allocated() && object_of(&image.page(*page)) == object)
                .collect();
            flip_map(image, facts.clustered.unit.first_iam.page, extent);
            let mut expected = vec![(8905, extent * 8)];
            expected.extend(unseen_leaves(&facts.clustered, &pages));
            expected
        }),
        ("IAM page misnumbered", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            image.edit(iam, |bytes| bytes[offset_of(bytes, 0) + 4] = 5);
            vec![(2577, 0)]
        }),
        ("two IAM pages for one interval", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let sgam = image.page(3);
            let is_mixed = |page: &u32| sgam[194 + *page as usize / 64] & (1 << (page / 8 % 8)) != 0;
            let pages = 8..(image.bytes.len() / PAGE_BYTES) as u32;
            let second = pages.filter(is_mixed).find(|page| !pfs(image, *page).is_allocated()).expect("a free page");
            let copy = image.page(iam);
            image.edit(second, |bytes| {
                *bytes = copy;
                put_page(bytes, 32, PageId::new(1, second));
                put_page(bytes, 8, PageId::new(1, iam));
                let (header, bits) = (offset_of(bytes, 0), offset_of(bytes, 1) + 4);
                bytes[header + 4] = 1;
                bytes[header + 46..header + 46 + 48].fill(0);
                bytes[bits..bits + 7988].fill(0);
            });
            image.edit(iam, |bytes| put_page(bytes, 16, PageId::new(1, second)));
            set_pfs(image, second, 0x70);
            vec![(8947, iam.min(second))]
        }),
        ("GAM page miscounts its free bytes", |image, _| {
            image.edit(2, |bytes| put16(bytes, 28, get16(bytes, 28) + 1));
            vec![(8946, 2), (8998, 0), (ANY, 0)]
        }),
        ("IAM page with one record of another length", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            image.edit(iam, |bytes| {
                let at = offset_of(bytes, 1);
                put16(bytes, at + 2, 7990);
            });
            vec![(8946, iam), (2575, iam), (ANY, 0)]
        }),
        ("PFS byte of the GAM page says free", |image, _| {
            set_pfs(image, 2, 0);
            vec![(8948, 2)]
        }),
    ]
}

/// Damage to IAM chains, and claims beyond the end of the file.
fn chains() -> Vec<(&'static str, Damage)> {
    vec![
        ("IAM chain cyclic", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            image.edit(iam, |bytes| put_page(bytes, 16, PageId::new(1, iam)));
            vec![(8969, iam), (2577, iam)]
        }),
        ("IAM chain goes on at a free page", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            image.edit(iam, |bytes| put_page(bytes, 16, PageId::new(1, facts.free_page)));
            vec![(2575, facts.free_page), (7965, 0)]
        }),
        ("IAM page claims an extent beyond the end", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let beyond = (image.bytes.len() / PAGE_BYTES / 8) as u32 + 10;
            flip_map(image, iam, beyond);
            vec![(2579, beyond * 8)]
        }),
        ("IAM page claims all that its interval has beyond the end", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let end = (image.bytes.len() / PAGE_BYTES).div_ceil(8) as u32;
            (end..63_904).for_each(|extent| flip_map(image, iam, extent));
            // At most 200 extents are listed per IAM page.
            (end..end + 200).map(|extent| (2579, extent * 8)).collect()
        }),
    ]
}

/// Damage to pointers to IAM pages, and to what IAM pages name.
fn pointers() -> Vec<(&'static str, Damage)> {
    vec![
        ("pgfirstiam zeroed", |image, facts| {
            edit_unit(image, facts.clustered.unit.id, 35, PageId::NONE);
            vec![(2576, 0)]
        }),
        ("pgfirstiam to a free page", |image, facts| {
            edit_unit(image, facts.clustered.unit.id, 35, PageId::new(1, facts.free_page));
            vec![(2575, facts.free_page), (2576, 0), (7965, 0)]
        }),
        ("pgfirstiam out of range", |image, facts| {
            edit_unit(image, facts.clustered.unit.id, 35, PageId::new(1, 0x00FF_FFFF));
            vec![(8968, 0x00FF_FFFF), (2576, 0), (7965, 0)]
        }),
        ("pgfirstiam to the IAM page of another index", |image, facts| {
            let (own, other) = (facts.nonclustered.unit.first_iam.page, facts.clustered.unit.first_iam);
            edit_unit(image, facts.nonclustered.unit.id, 35, other);
            assert_ne!(own, other.page);
            vec![(8959, other.page), (2576, 0), (7965, 0)]
        }),
        ("IAM page of a unit that does not exist", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            image.edit(iam, |bytes| bytes[24..28].copy_from_slice(&0x00AB_CDEFu32.to_le_bytes()));
            vec![(8959, iam)]
        }),
        ("IAM page maps an interval of an unknown file", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            image.edit(iam, |bytes| {
                let at = offset_of(bytes, 0) + 40;
                put_page(bytes, at, PageId::new(9, 0));
            });
            vec![(8968, 0), (ANY, 0)]
        }),
        ("allocation unit in another filegroup", |image, facts| {
            let page = edit_unit_bytes(image, facts.clustered.unit.id, 21, &7u16.to_le_bytes());
            // 8992 is reported too, because filegroup 7 does not exist.
            vec![(8996, facts.clustered.unit.first_iam.page), (8992, page)]
        }),
        ("single-page slot names a page of another unit", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let (others, _) = listed(image, facts.nonclustered.unit.first_iam.page);
            let page = others[0];
            image.edit(iam, |bytes| {
                let at = offset_of(bytes, 0) + 46 + 7 * 6;
                assert!(bytes[at..at + 6] == [0; 6] || !others.is_empty());
                put_page(bytes, at, PageId::new(1, page));
            });
            vec![(8910, page), (ANY, 0)]
        }),
        ("single-page slot names a page twice", |image, facts| {
            let iam = facts.nonclustered.unit.first_iam.page;
            let (singles, _) = listed(image, iam);
            image.edit(iam, |bytes| {
                let at = offset_of(bytes, 0) + 46 + 7 * 6;
                put_page(bytes, at, PageId::new(1, singles[0]));
            });
            vec![(8973, singles[0]), (ANY, 0)]
        }),
    ]
}

/// Damage to whole allocation pages, and to the end of the file.
fn whole_pages() -> Vec<(&'static str, Damage)> {
    vec![
        ("PFS page zeroed", |image, _| {
            image.edit_unsealed(1, |bytes| bytes.fill(0));
            vec![(8946, 1), (8909, 1), (8998, 0)]
        }),
        ("GAM page zeroed", |image, _| {
            image.edit_unsealed(2, |bytes| bytes.fill(0));
            vec![(8946, 2), (8909, 2), (8998, 0)]
        }),
        ("differential map of another type", |image, _| {
            image.edit(6, |bytes| bytes[1] = 17);
            vec![(8946, 6)]
        }),
        ("IAM page damaged, checksum wrong", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let lost = without_owner(image, iam);
            image.edit_unsealed(iam, |bytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3));
            [vec![(8928, iam), (2575, iam), (7965, 0)], lost].concat()
        }),
        ("IAM page zeroed", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let lost = without_owner(image, iam);
            image.edit_unsealed(iam, |bytes| bytes.fill(0));
            [vec![(8909, iam), (8946, iam), (2575, iam), (7965, 0)], lost].concat()
        }),
        ("IAM page zeroed, and a page that another unit has lost", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let other = facts.nonclustered.unit.first_iam.page;
            let (singles, _) = listed(image, other);
            image.edit_unsealed(iam, |bytes| bytes.fill(0));
            image.edit(other, |bytes| {
                let at = offset_of(bytes, 0) + 46;
                bytes[at..at + 6].fill(0);
            });
            vec![(8909, iam), (8946, iam), (2575, iam), (7965, 0), (8906, singles[0]), (ANY, 0)]
        }),
        ("fields that allocation pages have no use for", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            // The level, minimum record length, ghost count, neighbors and unit in the headers of these pages are
            // wrong, but the content of the pages can still be trusted.
            image.edit(iam, |bytes| bytes[3] = 1);
            image.edit(1, |bytes| put16(bytes, 58, 3));
            image.edit(2, |bytes| put16(bytes, 14, 91));
            image.edit(6, |bytes| put_page(bytes, 16, PageId::new(1, 7)));
            image.edit(9, |bytes| put_page(bytes, 8, PageId::new(1, 8)));
            image.edit(0, |bytes| put16(bytes, 24, 98));
            vec![(8946, iam), (8946, 1), (8946, 2), (8946, 6), (5250, 9), (5250, 0)]
        }),
        ("file header in another filegroup", |image, _| {
            let fields = format::instances::instances_of(&image.page(0), true);
            let place = fields.into_iter().find(|field| field.field.name == "FileGroupId").expect("filegroup").bytes;
            image.edit(0, |bytes| bytes[place].copy_from_slice(&7u16.to_le_bytes()));
            // There is one message for the file header and none for the IAM pages, because the catalog and all IAM
            // pages agree.
            vec![(5250, 0)]
        }),
        ("file cut inside an extent and a page", |image, facts| {
            let (_, extents) = listed(image, facts.clustered.unit.first_iam.page);
            let cut_extent = extents[extents.len() / 2];
            let keep = cut_extent * 8 + 3;
            let in_use = (keep..cut_extent * 8 + 8).filter(|page| pfs(image, *page).is_allocated());
            let mut expected: Expected = in_use.map(|page| (8966, page)).collect();
            expected.extend(extents.iter().filter(|extent| **extent > cut_extent).map(|extent| (2579, *extent * 8)));
            image.bytes.truncate(keep as usize * PAGE_BYTES + 4000);
            expected.extend([(CUT, 0), (ANY, 0)]);
            expected
        }),
    ]
}

/// Returns the messages about pages and extents that have no owner if this IAM page is lost: 8906 for the IAM page and
/// for each single page that it lists, and 8905 for each extent that it claims.
fn without_owner(image: &Image, iam: u32) -> Expected {
    let (mut singles, extents) = listed(image, iam);
    singles.push(iam);
    let mut expected: Expected = extents.into_iter().map(|extent| (8905, extent * 8)).collect();
    let sgam = image.page(3);
    let extents: BTreeSet<u32> = singles.iter().map(|page| page / 8).collect();
    for extent in extents {
        let lost: Vec<u32> = singles.iter().filter(|page| **page / 8 == extent).copied().collect();
        let has_free_pages = sgam[194 + extent as usize / 8] & (1 << (extent % 8)) != 0;
        // If an extent without an owner is full, nothing shows that it was a mixed extent.
        match lost.len() == 8 && !has_free_pages {
            true => expected.push((8905, extent * 8)),
            false => expected.extend(lost.into_iter().map(|page| (8906, page))),
        }
    }
    expected
}

/// Writes a page into a single-page slot of an IAM page: the first unused slot, or the last slot if all are used.
fn list_single(image: &mut Image, iam: u32, page: u32) {
    image.edit(iam, |bytes| {
        let slots = IamHeader::read(Page::new(bytes)).expect("IAM page").slots;
        let slot = slots.iter().position(|slot| slot.is_none()).unwrap_or(slots.len() - 1);
        let at = offset_of(bytes, 0) + 46 + 6 * slot;
        put_page(bytes, at, PageId::new(1, page));
    });
}
