//! Tests of the anti-matter column, which remains after an interrupted online index build. Message 5228 is for rows,
//! and message 5229 is for tables. The tests use sound tables and mark one of their columns as anti-matter in the
//! catalog.

use catalog::column_status::ANTI_MATTER;
use libtest_mimic::{Failed, Trial};

use crate::image::{Image, slot_at};
use crate::subjects;

const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";
const TABLE: &str = "Employees";
/// Internal version of SQL Server 2017, in which index builds can be paused.
const VERSION_2017: u16 = 869;

/// Changes a copy of the image and verifies the report.
type Place = fn(&Image) -> Result<(), Failed>;

/// One test per state and subject.
pub fn trials() -> Vec<Trial> {
    let there = [NORTHWIND, subjects::SHOP].into_iter().filter(|name| subjects::is_there(name));
    there.flat_map(trials_of).collect()
}

fn trials_of(subject: &'static str) -> Vec<Trial> {
    let file = subjects::short(subject);
    let trial = |(name, place): (&str, Place)| {
        Trial::test(format!("anti-matter: {name} ({file})"), move || place(&subjects::image(subject)))
    };
    vec![
        trial(("rows of an index", rows)),
        trial(("a table", table)),
        trial(("a build may be paused", paused)),
        trial(("a paused build has a row and its mark", row_and_mark)),
    ]
}

/// Marks a column of the given index of the table as anti-matter in the catalog.
fn mark(image: &mut Image, index: &str, column: u32) {
    let database = image.database();
    let object = database.objects.values().find(|object| object.name == TABLE).expect("table").id;
    let index =
        database.indexes.values().find(|found| found.object_id == object && found.name == index).expect("index");
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object, index.index_id));
    let key = [rowset.expect("rowset").id.to_le_bytes().as_slice(), &column.to_le_bytes()].concat();
    image.edit_row_by(3, &key, |row| row[4 + 36] |= ANTI_MATTER as u8);
}

/// Tests rows of an index that have anti-matter values. Marks the second column of the index on PostalCode as
/// anti-matter. This column contains the employee's number, from 1 to 9, so no value is 0.
fn rows(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    mark(&mut image, "PostalCode", 2);
    let report = image.check();
    let mut texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    texts.sort_by_key(|text| text.chars().rev().nth(2));
    let expected =
        |(text, value): (&String, i32)| text.ends_with(&format!("(The anti-matter column value is {value}.)"));
    let is_as_expected = texts.len() == 9 && texts.iter().zip(1..).all(expected);
    let numbers = report.findings.iter().all(|finding| finding.check.msg == 5228);
    if is_as_expected && numbers { Ok(()) } else { Err(format!("{texts:#?}").into()) }
}

fn table(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    mark(&mut image, "PK_Employees", 1);
    let report = image.check();
    let texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    match texts.as_slice() {
        [text] if text.ends_with("contains an anti-matter column, but is not a nonclustered index.") => Ok(()),
        _ => Err(format!("{texts:#?}").into()),
    }
}

fn paused(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    mark(&mut image, "PostalCode", 2);
    image.edit(9, |page| page[96 + 4..96 + 6].copy_from_slice(&VERSION_2017.to_le_bytes()));
    let report = image.check();
    let is_told = report.not_verified.iter().any(|entry| entry.what == "anti-matter columns");
    if report.findings.is_empty() && is_told { Ok(()) } else { Err(format!("{:#?}", report.findings).into()) }
}

/// Tests that an index whose build may be paused may contain the same key twice and lack rows of the table.
fn row_and_mark(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let database = image.database();
    let object = database.objects.values().find(|object| object.name == TABLE).expect("table").id;
    let index = database.indexes.values().find(|index| index.object_id == object && index.name == "PostalCode");
    let index = index.expect("index").index_id;
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object, index));
    let root = database.units[rowset.expect("rowset").units[0]].root.page;
    image.edit(root, |page| {
        // Copies a row over the next row, which has the same length, so that two slots have equal rows.
        let at =
            |page: &[u8], slot: u16| usize::from(u16::from_le_bytes([page[slot_at(slot)], page[slot_at(slot) + 1]]));
        let slots = format::Page::new(page).header().slot_count.get();
        let end = |page: &[u8], from: usize| (0..slots).map(|slot| at(page, slot)).filter(|next| *next > from).min();
        let length = |page: &[u8], slot: u16| end(page, at(page, slot)).map(|end| end - at(page, slot));
        let slot =
            (0..slots - 1).find(|&slot| length(page, slot).is_some() && length(page, slot) == length(page, slot + 1));
        let slot = slot.expect("two rows of one length");
        let (from, to, length) = (at(page, slot), at(page, slot + 1), length(page, slot).expect("length"));
        page.copy_within(from..from + length, to);
    });
    let numbers = |image: &Image| image.check().findings.iter().map(|finding| finding.check.msg).collect::<Vec<_>>();
    if !numbers(&image).contains(&2512) {
        return Err("no key is there twice".into());
    }
    mark(&mut image, "PostalCode", 2);
    image.edit(9, |page| page[96 + 4..96 + 6].copy_from_slice(&VERSION_2017.to_le_bytes()));
    let found = numbers(&image);
    if found.is_empty() { Ok(()) } else { Err(format!("{found:?}").into()) }
}
