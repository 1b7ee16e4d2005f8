//! A page that was changed after the last checkpoint is noted, but is never a finding. If the database was shut down
//! cleanly, the clean shutdown bit may also be set in a file that was copied while the server used it. If the database was
//! not shut down cleanly and its log is missing, the page may have half of a transaction.

use format::PageBytes;
use format::boot::status::CLEAN_SHUTDOWN;
use libtest_mimic::{Failed, Trial};

use crate::damage::REAL;
use crate::image::Image;
use crate::subjects;

/// Offset of the boot record on the boot page. The next two constants are the offsets of two fields of the boot record
/// on this page.
const RECORD: usize = 96;
const STATUS: usize = RECORD + 0x24;
const CHECKPOINT: usize = RECORD + 0x15C;
/// Offset of a page's LSN. It has ten bytes, as in the boot record.
const PAGE_LSN: usize = 40;

/// A test case: its name, a change, and the note about the changed page. The change sets the LSN of the given page. In
/// one case, it also changes the boot page.
type Case = (&'static str, fn(&mut Image, u32), Option<&'static str>);

/// The notes about newer pages.
const NOTES: [&str; 2] = ["pages.after-checkpoint", "recovery.newer-pages"];

const CASES: [Case; 4] = [
    ("legal: a page from after the last checkpoint is noted", |image, page| newer(image, page, 1), Some(NOTES[0])),
    ("legal: a page with the checkpoint's own LSN", |image, page| newer(image, page, 0), None),
    (
        "legal: a page from after the last checkpoint, the database was not shut down",
        |image, page| {
            newer(image, page, 1);
            image.edit(9, |boot| boot[STATUS + 3] &= !((CLEAN_SHUTDOWN >> 24) as u8));
        },
        Some(NOTES[1]),
    ),
    (
        "legal: a page from long before the last checkpoint",
        |image, page| {
            image.edit(page, |bytes| bytes[PAGE_LSN..PAGE_LSN + 10].fill(0));
        },
        None,
    ),
];

/// One test per case and subject.
pub fn trials() -> Vec<Trial> {
    let subjects = [REAL[0], REAL[1], subjects::ORDERS, subjects::ORDERS_2019, subjects::TORN].into_iter();
    let older = subjects.filter(|name| subjects::is_there(name)).flat_map(|subject| {
        CASES.map(|(name, change, note)| {
            let name = format!("{name} ({})", subjects::short(subject));
            Trial::test(name, move || agree(subject, change, note))
        })
    });
    older.collect()
}

/// Gives a page an LSN that is `records` log records after the LSN of the checkpoint.
fn newer(image: &mut Image, page: u32, records: u8) {
    let boot = image.page(9);
    image.edit(page, |bytes: &mut PageBytes| {
        bytes[PAGE_LSN..PAGE_LSN + 10].copy_from_slice(&boot[CHECKPOINT..CHECKPOINT + 10]);
        bytes[PAGE_LSN + 8] += records;
    });
}

fn agree(subject: &str, change: fn(&mut Image, u32), expected: Option<&str>) -> Result<(), Failed> {
    let mut image = subjects::image(subject);
    let page = image.tree(true).leaves[1];
    change(&mut image, page);
    let report = image.check();
    let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    let is_of_objects = |id: &str, objects: &[i32]| (id == NOTES[1]) == (objects.len() == 1);
    let noted: Vec<(&str, u64)> = report
        .notes
        .iter()
        .filter(|note| NOTES.contains(&note.limit.id) && is_of_objects(note.limit.id, &note.objects))
        .map(|note| (note.limit.id, note.count))
        .collect();
    let expected: Vec<(&str, u64)> = expected.map(|id| (id, 1)).into_iter().collect();
    if found.is_empty() && noted == expected { Ok(()) } else { Err(format!("{found:?} {noted:?}").into()) }
}
