//! Damage to forwarding stubs and forwarded rows.

use format::record::RecordKind;

use super::*;

/// Damage to heaps, in databases with forwarded rows.
pub fn trials() -> Vec<Trial> {
    let kinds: Vec<(&'static str, HeapDamage)> = vec![
        ("forwarding stub leads to another row", |image, stub, row| {
            image.edit(stub.page.page, |bytes| put_page(bytes, offset_of(bytes, stub.slot) + 1, PageId::new(1, 5)));
            vec![(8993, stub.page.page), (8994, row.page.page)]
        }),
        ("forwarded row points back to another stub", |image, stub, row| {
            image.edit(row.page.page, |bytes| {
                let at = offset_of(bytes, row.slot);
                let length = Record::data(&bytes[at..]).expect("record").bytes().len();
                put16(bytes, at + length - 2, 77);
            });
            vec![(8971, stub.page.page)]
        }),
        ("two stubs lead to one row", |image, stub, row| {
            image.edit(stub.page.page, |bytes| {
                // Turns a record of the page into a second stub. The bytes that the stub does not need become free
                // space.
                let slots = (0..Page::new(bytes).header().slot_count.get()).rev();
                let slot = slots.filter(|slot| *slot != stub.slot).find(|slot| keeps_all(bytes, *slot)).expect("a row");
                let (at, from) = (offset_of(bytes, slot), offset_of(bytes, stub.slot));
                let length = Record::data(&bytes[at..]).expect("record").bytes().len();
                bytes.copy_within(from..from + 9, at);
                let free = get16(bytes, 28) + length as u16 - 9;
                put16(bytes, 28, free);
            });
            let _ = row;
            vec![(8972, stub.page.page)]
        }),
        ("page of the forwarded row zeroed", |image, stub, row| {
            image.edit_unsealed(row.page.page, |bytes| bytes.fill(0));
            let lost = forwarding_pairs(image).into_iter().filter(|(_, lost)| lost.page == row.page);
            let mut expected: Expected = lost.map(|(stub, _)| (8993, stub.page.page)).collect();
            assert!(expected.contains(&(8993, stub.page.page)));
            expected.extend([(8909, row.page.page), (8928, row.page.page)]);
            expected
        }),
        ("heap page of an index type", |image, _, row| {
            image.edit(row.page.page, |bytes| bytes[1] = 2);
            vec![(ANY, 0), (8938, row.page.page), (8928, row.page.page)]
        }),
    ];
    let there = || SUBJECTS.into_iter().filter(|name| subjects::is_there(name));
    let each = kinds.into_iter().flat_map(|kind| there().map(move |subject| (kind, subject)));
    each.map(|((name, damage), subject)| {
        Trial::test(format!("damage: {name} ({})", subjects::short(subject)), move || {
            let mut image = subjects::image(subject);
            let (stub, row) = forwarding_pairs(&image).into_iter().next().expect("a forwarding stub");
            let expected = damage(&mut image, stub, row);
            agree(&image.check(), expected)
        })
    })
    .collect()
}

/// The only real database with a forwarded row, and a lab database.
const SUBJECTS: [&str; 2] = ["Dirie__From-Database/Shafici.mdf", subjects::SPECIMEN];

/// Damages a forwarding pair, given the addresses of its stub and its row. Returns the expected messages.
type HeapDamage = fn(&mut Image, RecordId, RecordId) -> Expected;

/// Whether a slot holds a row without off-row values.
fn keeps_all(bytes: &PageBytes, slot: u16) -> bool {
    let record = Record::data(&bytes[offset_of(bytes, slot)..]);
    offset_of(bytes, slot) > 0
        && record.is_ok_and(|record| {
            record.kind() == RecordKind::Primary && record.variables().all(|(_, is_complex)| !is_complex)
        })
}

/// The addresses of all forwarding stubs and of the rows that they point to.
fn forwarding_pairs(image: &Image) -> Vec<(RecordId, RecordId)> {
    let mut pairs = Vec::new();
    for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
        let bytes = image.page(page);
        if bytes[1] != 1 || !pfs(image, page).is_allocated() {
            continue;
        }
        for slot in by_place(&bytes) {
            let at = offset_of(&bytes, slot);
            if bytes[at] == 4 {
                let stub = RecordId { page: PageId::new(1, page), slot };
                pairs.push((stub, RecordId::read(&bytes, at + 1).expect("row address")));
            }
        }
    }
    pairs
}
