//! Rows of an index and its table that do not match: 8951 with 8955, 8952 with 8956, with their values; nothing for what a
//! damaged page has lost.

use check::{Options, Report};
use format::Page;
use format::page::PAGE_BYTES;
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::damage::subject;
use crate::image::{Image, get16, offset_of, put16, slot_at};

/// Damage, and the messages with the record each is about.
type Damage = fn(&mut Image) -> Vec<String>;

/// The address index of a table: a leaf row is status, AddressID, bitmap, the address.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let kinds: Vec<(&'static str, Damage)> = vec![
        ("locator of an index row changed", |image| {
            let page = image.tree(false).leaves[1];
            let id = row_id(image, page, 5);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, 5);
                bytes[at + 1..at + 5].copy_from_slice(&77_777u32.to_le_bytes());
            });
            vec![
                "8951".to_owned(),
                format!("8955 AddressID = {id})"),
                "8952".to_owned(),
                format!("8956 (1:{page}:5)"),
                "8956 and AddressID = 77777) pointing to the data row identified by (AddressID = 77777).".to_owned(),
            ]
        }),
        ("row of an index lost", |image| {
            let page = image.tree(false).leaves[1];
            let id = row_id(image, page, 5);
            image.edit(page, |bytes| remove_slot(bytes, 5));
            vec![
                "8951".to_owned(),
                format!("8955 identified by (AddressID = {id}) with index values 'AddressLine1 = '"),
            ]
        }),
        ("value of an index on a computed column changed", |image| {
            let database = image.database();
            let index = database.indexes.values().find(|index| index.name == "AK_SalesOrderHeader_SalesOrderNumber");
            let key = index.map(|index| (index.object_id, index.index_id)).expect("index");
            let rowset =
                database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == key).expect("rowset");
            let page = database.units[rowset.units[0]].root.page;
            let last = get16(&image.page(page), 22) - 1;
            image.edit(page, |bytes| {
                let at = offset_of(bytes, last);
                let number: Vec<u8> = "SO".encode_utf16().flat_map(u16::to_le_bytes).collect();
                let digit = at + find(&bytes[at..], &number).expect("an order number") + 12;
                bytes[digit] = b'9';
            });
            vec![
                "8951".to_owned(),
                "8955 SalesOrderNumber = 'SO71946'".to_owned(),
                "8952".to_owned(),
                format!(
                    "8956 Index row (1:{page}:{last}) with values (SalesOrderNumber = 'SO71949' and SalesOrderID = 71946)"
                ),
            ]
        }),
        ("indexed value of a table row changed", |image| {
            let tree = image.tree(true);
            let page = tree.leaves[tree.leaves.len() / 2];
            let at = find(&image.page(page), &"FR-".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
            let Some(at) = at else { panic!("no product number on page {page}") };
            image.edit(page, |bytes| bytes[at] = b'G');
            vec![
                "8951".to_owned(),
                "8955 ProductNumber = 'GR-".to_owned(),
                "8952".to_owned(),
                "8956 ProductNumber = 'FR-".to_owned(),
            ]
        }),
    ];
    let mut trials: Vec<Trial> = kinds
        .into_iter()
        .map(|(name, damage)| {
            let corpus = corpus.clone();
            Trial::test(format!("index rows: {name}"), move || {
                let mut image = subject(&corpus);
                let expected = damage(&mut image);
                agree(&image.check(), &expected)
            })
        })
        .collect();
    let corpus = corpus.clone();
    trials.push(Trial::test("index rows: rows on a damaged page are not missed in its indexes", move || {
        let mut image = subject(&corpus);
        let tree = image.tree(true);
        image.edit_unsealed(tree.leaves[4], |bytes| bytes.fill(0));
        let report = image.check_with(&Options::default());
        let told = report.not_verified.iter().any(|entry| entry.reason.contains("is damaged"));
        let silent = report.findings.iter().all(|finding| !(8951..=8956).contains(&finding.check.msg));
        if told && silent { Ok(()) } else { Err(format!("{:?}", report.findings).into()) }
    }));
    trials
}

/// The messages are of the kinds expected and no others, and each expected text is found.
fn agree(report: &Report, expected: &[String]) -> Result<(), Failed> {
    let texts: Vec<String> = report
        .findings
        .iter()
        .map(|finding| format!("{} {}", finding.check.msg, finding.text(&report.names())))
        .collect();
    let kinds: Vec<&str> = expected.iter().filter_map(|text| text.split(' ').next()).collect();
    let foreign = texts.iter().find(|text| !kinds.iter().any(|kind| text.starts_with(kind)));
    let found = |wanted: &String| match wanted.split_once(' ') {
        Some((kind, part)) => texts.iter().any(|text| text.starts_with(kind) && text.contains(part)),
        None => texts.iter().any(|text| text.starts_with(wanted.as_str())),
    };
    match (foreign, expected.iter().find(|wanted| !found(wanted))) {
        (None, None) => Ok(()),
        (foreign, missing) => Err(format!("foreign {foreign:?}, missing {missing:?}\n{}", texts.join("\n")).into()),
    }
}

/// The locator in a row of the address index.
fn row_id(image: &Image, page: u32, slot: u16) -> u32 {
    let bytes = image.page(page);
    let at = offset_of(&bytes, slot);
    u32::from_le_bytes([bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4]])
}

/// Takes a row out of a page as the engine would: slot gone, its space free.
fn remove_slot(bytes: &mut [u8; PAGE_BYTES], slot: u16) {
    let at = offset_of(bytes, slot);
    let pminlen = Page::new(bytes).header().pminlen.get();
    let length = format::record::Record::index(&bytes[at..], pminlen).expect("record").bytes().len() as u16;
    let slots = get16(bytes, 22);
    for slot in slot..slots - 1 {
        let next = get16(bytes, slot_at(slot + 1));
        put16(bytes, slot_at(slot), next);
    }
    put16(bytes, 22, slots - 1);
    let free = get16(bytes, 28);
    put16(bytes, 28, free + length + 2);
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
