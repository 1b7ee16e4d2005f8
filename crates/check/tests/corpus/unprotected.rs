//! If a database has page protection enabled, a note gives the number of pages without protection, because no check can
//! detect a changed value on these pages.

use format::boot::status::{CHECKSUM, TORN_PAGE};
use format::page::page_flags;
use libtest_mimic::{Failed, Trial};

use crate::image::{Image, get16, put16};
use crate::subjects;

/// Offset of the flags in the header of every page. The next constant is the offset of the database status on the boot
/// page.
const FLAGS: usize = 4;
const STATUS: usize = 96 + 0x24;

/// A test case: its name, a change of two pages, and the number by which the count of pages in the note must increase.
type Case = (&'static str, fn(&mut Image, &[u32]), u64);

const CASES: [Case; 3] = [
    ("legal: two pages without protection are noted", |image, pages| protect(image, pages, 0), 2),
    (
        "legal: two pages without protection, as the option says",
        |image, pages| {
            protect(image, pages, 0);
            image.edit(9, |boot| {
                let option = CHECKSUM | TORN_PAGE;
                put16(boot, STATUS, get16(boot, STATUS) & !(option as u16));
                put16(boot, STATUS + 2, get16(boot, STATUS + 2) & !((option >> 16) as u16));
            });
        },
        0,
    ),
    (
        "legal: two pages with torn bits from before the option was CHECKSUM",
        |image, pages| protect(image, pages, page_flags::TORN_BITS),
        0,
    ),
];

/// One test per case and subject.
pub fn trials() -> Vec<Trial> {
    let subjects = [subjects::ORDERS, subjects::ORDERS_2019].into_iter();
    let all = subjects.flat_map(|subject| {
        CASES.map(|(name, change, noted)| {
            let name = format!("{name} ({})", subjects::short(subject));
            Trial::test(name, move || agree(subject, change, noted))
        })
    });
    all.collect()
}

/// Replaces the protection of pages with the protection `flag`; 0 means no protection.
fn protect(image: &mut Image, pages: &[u32], flag: u16) {
    for &page in pages {
        image.edit(page, |bytes| {
            put16(bytes, FLAGS, get16(bytes, FLAGS) & !(page_flags::CHECKSUM | page_flags::TORN_BITS) | flag);
        });
    }
}

fn agree(subject: &str, change: fn(&mut Image, &[u32]), expected: u64) -> Result<(), Failed> {
    let noted = |image: &mut Image| {
        let report = image.check();
        let found: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
        let notes = report.notes.iter().filter(|note| note.limit.id == "pages.unprotected");
        let texts: Vec<String> = notes.clone().map(|note| note.limit.reason.to_string()).collect();
        (found, notes.map(|note| note.count).sum::<u64>(), texts)
    };
    let mut image = subjects::image(subject);
    let pages = image.tree(true).leaves[1..3].to_vec();
    let before = noted(&mut image);
    change(&mut image, &pages);
    let after = noted(&mut image);
    if after.0.is_empty() && after.1 == before.1 + expected {
        Ok(())
    } else {
        Err(format!("{before:?} {after:?}").into())
    }
}
