//! Damage to forwarding stubs and forwarded rows.

use super::*;

/// Heaps: the one real table with a forwarded row.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
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
                // A record in front of the stub becomes a second stub; what is left of it is free space.
                let slot = if stub.slot == 0 { 1 } else { stub.slot - 1 };
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
            vec![(8909, row.page.page), (8928, row.page.page), (8993, stub.page.page)]
        }),
        ("heap page of an index type", |image, _, row| {
            image.edit(row.page.page, |bytes| bytes[1] = 2);
            vec![(ANY, 0), (8938, row.page.page), (8928, row.page.page)]
        }),
    ];
    kinds
        .into_iter()
        .map(|(name, damage)| {
            let corpus = corpus.clone();
            Trial::test(format!("damage: {name} (Shafici.mdf)"), move || {
                let mut image = Image::load(&corpus.files.join(HEAP_SUBJECT));
                let (stub, row) = forwarding_pair(&image);
                let expected = damage(&mut image, stub, row);
                agree(&image.check(), expected)
            })
        })
        .collect()
}

/// A database with a forwarded row.
const HEAP_SUBJECT: &str = "Dirie__From-Database/Shafici.mdf";

/// Damage to a forwarding pair.
type HeapDamage = fn(&mut Image, RecordId, RecordId) -> Expected;

fn forwarding_pair(image: &Image) -> (RecordId, RecordId) {
    for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
        let bytes = image.page(page);
        if bytes[1] != 1 || !pfs(image, page).is_allocated() {
            continue;
        }
        for slot in by_place(&bytes) {
            let at = offset_of(&bytes, slot);
            if bytes[at] == 4 {
                let stub = RecordId { page: PageId::new(1, page), slot };
                return (stub, RecordId::read(&bytes, at + 1).expect("row address"));
            }
        }
    }
    panic!("no forwarding stub")
}
