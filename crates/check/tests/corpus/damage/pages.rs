//! Damage to headers, slots and records of single pages.

use super::*;

pub fn kinds() -> Vec<(&'static str, Damage)> {
    [records(), counts(), headers(), whole_pages()].concat()
}

/// Damage to records and slots.
fn records() -> Vec<(&'static str, Damage)> {
    vec![
        ("reserved bit of a status byte set", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[offset_of(bytes, 3)] |= 0x80);
            lost(8944, page, right)
        }),
        ("row of a clustered index that says it has moved", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[offset_of(bytes, 3)] |= 0x02);
            lost(8944, page, right)
        }),
        ("column count of a record far too high", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, 3);
                let count_at = at + usize::from(get16(bytes, at + 2));
                put16(bytes, count_at, 0x7FFF);
            });
            lost(8944, page, right)
        }),
        ("last variable offset runs into the next record", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let slot = by_place(bytes)[2];
                let at = offset_of(bytes, slot);
                let record = Record::data(&bytes[at..]).expect("record");
                let length = record.bytes().len();
                let end = record.variable_count();
                assert!(end > 0, "a variable column");
                let bitmap = usize::from(record.fixed_end()) + 2 + usize::from(record.column_count()).div_ceil(8);
                put16(bytes, at + bitmap + 2 * usize::from(end), (length + 40) as u16);
            });
            lost(8942, page, right)
        }),
        ("slot offset below 96", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| put16(bytes, slot_at(2), 60));
            lost(8941, page, right)
        }),
        ("slot offset beyond free data", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| put16(bytes, slot_at(2), get16(bytes, 30) + 9));
            lost(8941, page, right)
        }),
        ("two slots with one offset", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| put16(bytes, slot_at(2), get16(bytes, slot_at(3))));
            lost(8942, page, right)
        }),
    ]
}

/// Damage to the counts in page headers.
fn counts() -> Vec<(&'static str, Damage)> {
    vec![
        ("m_freeCnt wrong", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| put16(bytes, 28, get16(bytes, 28) ^ 0x10));
            lost(8939, page, right)
        }),
        ("m_freeData too high", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| put16(bytes, 30, 8191));
            lost(8939, page, right)
        }),
        ("m_freeData inside the last record", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| {
                let last = by_place(bytes).last().copied().expect("a record");
                let inside = offset_of(bytes, last) + 2;
                put16(bytes, 30, inside as u16);
            });
            lost(8944, page, right)
        }),
        ("last record runs into free space", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let last = by_place(bytes).last().copied().expect("a record");
                let end = offset_of(bytes, last)
                    + Record::data(&bytes[offset_of(bytes, last)..]).expect("record").bytes().len();
                put16(bytes, 30, end as u16 - 1);
            });
            lost(8943, page, right)
        }),
        ("m_slotCnt one too many", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| {
                let slots = get16(bytes, 22);
                put16(bytes, slot_at(slots), 0);
                put16(bytes, 22, slots + 1);
            });
            let bytes = image.page(page);
            let collides = usize::from(get16(&bytes, 30)) > PAGE_BYTES - 2 * usize::from(get16(&bytes, 22));
            lost(if collides { 8939 } else { 8941 }, page, right)
        }),
        ("m_slotCnt one too few", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| put16(bytes, 22, get16(bytes, 22) - 1));
            lost(8939, page, right)
        }),
        ("m_ghostRecCnt wrong", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| put16(bytes, 58, 2));
            vec![(8927, page)]
        }),
    ]
}

/// Damage to other fields of page headers.
fn headers() -> Vec<(&'static str, Damage)> {
    vec![
        ("IS_IN_SYSXACT set", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[4] |= 1);
            vec![(5282, page)]
        }),
        ("header version wrong", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[0] = 3);
            lost(8939, page, right)
        }),
        ("data page on a level above the leaf", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[3] = 1);
            lost(8939, page, right)
        }),
        ("second status byte says ghost, the first does not", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[offset_of(bytes, 3) + 1] = 1);
            lost(8944, page, right)
        }),
        ("page type impossible", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[1] = 0xF3);
            lost(8939, page, right)
        }),
        ("page type of another kind", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[1] = 3);
            lost(8938, page, right)
        }),
        ("page id wrong", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| put_page(bytes, 32, PageId::new(1, page + 1)));
            lost(8909, page, right)
        }),
        ("allocation unit of another index", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            let other = image.page(facts.nonclustered.leaves[0]);
            image.edit(page, |bytes| {
                bytes[6..8].copy_from_slice(&other[6..8]);
                bytes[24..28].copy_from_slice(&other[24..28]);
            });
            vec![(2533, page), (2534, page), (8976, page), (8978, right)]
        }),
        ("allocation unit that does not exist", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[24..28].copy_from_slice(&0x00AB_CDEFu32.to_le_bytes()));
            vec![(2533, page), (8976, page), (8978, right)]
        }),
    ]
}

/// Damage to whole pages.
fn whole_pages() -> Vec<(&'static str, Damage)> {
    vec![
        ("page zeroed", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit_unsealed(page, |bytes| bytes.fill(0));
            lost(8909, page, right)
        }),
        ("page filled with C0", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit_unsealed(page, |bytes| bytes.fill(0xC0));
            lost(8909, page, right)
        }),
        ("page overwritten by its neighbour", |image, facts| {
            let [left, page, right] = middle(&facts.clustered);
            let other = image.page(left);
            image.edit(page, |bytes| *bytes = other);
            lost(8909, page, right)
        }),
        ("aligned page with free data at an odd place", |image, _| {
            let page = 32;
            let header = *Page::new(&image.page(page)).header();
            assert!(header.flags.get() & format::page::page_flags::ALIGNED4 != 0, "page 1:32 is aligned");
            image.edit(page, |bytes| put16(bytes, 30, header.free_data.get() + 1));
            vec![(8940, page), (8928, page)]
        }),
    ]
}
