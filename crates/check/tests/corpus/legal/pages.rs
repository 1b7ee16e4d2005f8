//! States that are legal on any page. There must be no finding even if all pages of a file are changed to such a state.

use catalog::UnitKind;
use format::lob::Fragment;
use format::page::{PAGE_BYTES, page_flags};
use format::record::Record;
use format::record::status::{COMPRESSED, VERSION_TAG};
use format::{Page, PageBytes, PageType};
use libtest_mimic::{Failed, Trial};

use super::{HEAP, VERSIONED, heap_page, sound_but};
use crate::Corpus;
use crate::image::{Image, offset_of, put16, slot_at};

/// One test per state and file.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in EVERYWHERE {
        let file = corpus.files.join(name);
        let name = name.rsplit('/').next().unwrap_or_default();
        let same = file.clone();
        trials.push(Trial::test(format!("legal: empty slots at the end ({name})"), move || {
            empty_slots(Image::load(&same))
        }));
        trials.push(Trial::test(format!("legal: bits of maps that say nothing ({name})"), move || {
            idle_bits(&Image::load(&file))
        }));
    }
    for (what, change) in ANY_PAGE {
        for name in EVERYWHERE {
            let file = corpus.files.join(name);
            let name = name.rsplit('/').next().unwrap_or_default();
            trials.push(Trial::test(format!("legal: on every page with room, {what} ({name})"), move || {
                on_every_page(Image::load(&file), change)
            }));
        }
    }
    let heaps = corpus.clone();
    trials.push(Trial::test("legal: what is left of deleted rows for the sake of their versions", move || {
        left_of_rows(&Image::load(&heaps.files.join(HEAP)))
    }));
    trials
}

/// Appends a record to a page, with a new slot.
fn append(bytes: &mut PageBytes, record: &[u8]) {
    let header = *Page::new(bytes).header();
    let (slots, at) = (header.slot_count.get(), usize::from(header.free_data.get()));
    assert!(at + record.len() <= slot_at(slots), "no room");
    bytes[at..at + record.len()].copy_from_slice(record);
    put16(bytes, slot_at(slots), at as u16);
    put16(bytes, 22, slots + 1);
    put16(bytes, 28, header.free_count.get() - record.len() as u16 - 2);
    put16(bytes, 30, (at + record.len()) as u16);
}

/// A ghost version: a status byte and a version tag.
const GHOST_VERSION: [u8; 15] = [0x4E, 9, 0, 0, 0, 1, 0, 0, 0, 0x77, 0, 0, 0, 0, 0];

/// Tests two records that remain of deleted rows: a version tag alone, and a deleted forwarded row. The forwarded row
/// is tested with and without the status bit that marks its second byte as used.
fn left_of_rows(image: &Image) -> Result<(), Failed> {
    let page = heap_page(image);
    for reserved in [0, 0x80] {
        let mut image = image.clone();
        image.edit(page, |bytes| {
            let record = Record::data(&bytes[offset_of(bytes, 0)..]).expect("record").bytes().to_vec();
            let mut forwarded = record;
            forwarded[0] = forwarded[0] & !0x0E | 0x02 | reserved;
            forwarded[1] = 1;
            append(bytes, &GHOST_VERSION);
            append(bytes, &forwarded);
        });
        let report = image.check();
        sound_but(&report, Some("forwarded rows"))?;
        let is_told = |entry: &findings::NotVerified| {
            entry.what == "free-space and ghost counts in page headers" && entry.count == 1
        };
        assert!(report.not_verified.iter().any(is_told), "how the page counts them is unknown, and not reported");
        // A row that is not deleted never has this status bit, so it must be reported.
        image.edit(page, |bytes| {
            let at = offset_of(bytes, 0);
            bytes[at] |= 0x80;
        });
        if image.check().findings.iter().all(|finding| finding.check.msg != 8944) {
            return Err("a reserved bit is not reported".into());
        }
    }
    Ok(())
}

/// Files of several releases. The tests change all their pages.
const EVERYWHERE: [&str; 5] = [
    HEAP,
    VERSIONED,
    "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf",
    "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF",
    "anhnbt-it__hna-c-sharp-assignment-6-mdi-example/pubs.mdf",
];

/// Changes a page. Returns false if the change is not possible on this page.
type EachPage = fn(&mut PageBytes) -> bool;

/// The states, each with the change that produces it.
const ANY_PAGE: [(&str, EachPage); 4] = [
    ("what is left of a deleted record for the sake of its versions", |bytes| {
        let header = *Page::new(bytes).header();
        let behind = usize::from(header.free_data.get()) + GHOST_VERSION.len();
        let has_room = behind <= slot_at(header.slot_count.get());
        if has_room {
            append(bytes, &GHOST_VERSION);
        }
        has_room
    }),
    ("a record was moved and has left a hole", |bytes| move_first(bytes, false)),
    ("a record has got a version tag", |bytes| move_first(bytes, true)),
    ("the last record is gone, and its bytes are left", |bytes| {
        const GONE: usize = 40;
        let header = *Page::new(bytes).header();
        let behind = usize::from(header.free_data.get()) + GONE;
        let has_room = behind <= slot_at(header.slot_count.get());
        if has_room {
            bytes[behind - GONE..behind].fill(0xA7);
            put16(bytes, 30, behind as u16);
        }
        has_room
    }),
];

/// Moves the record of the first slot to the end of the used space and, with `with_tag`, adds a version tag to it.
fn move_first(bytes: &mut PageBytes, with_tag: bool) -> bool {
    const STUB: u8 = 4;
    let header = *Page::new(bytes).header();
    let space = &bytes[offset_of(bytes, 0)..];
    let record = match header.kind() {
        Some(PageType::Data) => Record::data(space).map(|record| record.bytes()),
        Some(PageType::Index) => Record::index(space, header.pminlen.get()).map(|record| record.bytes()),
        _ => Fragment::read(space).map(|fragment| fragment.bytes()),
    };
    let mut record = record.expect("record").to_vec();
    let gets_tag = with_tag && record[0] & VERSION_TAG == 0 && record[0] & 0x0E != STUB;
    if gets_tag {
        record[0] |= VERSION_TAG;
        record.extend(&GHOST_VERSION[1..]);
    }
    let (at, more) = (usize::from(header.free_data.get()), if gets_tag { 14 } else { 0 });
    if at + record.len() > slot_at(header.slot_count.get()) - 2 || header.free_count.get() < more {
        return false;
    }
    bytes[at..at + record.len()].copy_from_slice(&record);
    put16(bytes, slot_at(0), at as u16);
    put16(bytes, 28, header.free_count.get() - more);
    put16(bytes, 30, (at + record.len()) as u16);
    true
}

/// Adds an empty slot to pages of heaps and of off-row values. This is legal, because the slot of a deleted record may
/// stay empty there.
fn empty_slots(mut image: Image) -> Result<(), Failed> {
    let database = image.database();
    let heaps: Vec<_> = database
        .units
        .iter()
        .filter(|unit| {
            unit.kind != UnitKind::InRow
                || database.rowset_of(unit).is_some_and(|rowset| rowset.index_id == 0 && rowset.compression == 0)
        })
        .map(|unit| unit.id)
        .collect();
    let mut changed = 0;
    for page in 10..(image.bytes.len() / PAGE_BYTES) as u32 {
        let header = *Page::new(&image.page(page)).header();
        let in_use = image.page(1)[100 + page as usize] & 0x40 != 0;
        let slots = header.slot_count.get();
        let has_room = usize::from(header.free_data.get()) + 2 <= slot_at(slots) && header.free_count.get() >= 2;
        if in_use && has_room && matches!(header.page_type, 1 | 3 | 4) && heaps.contains(&header.alloc_unit()) {
            image.edit(page, |bytes| {
                put16(bytes, slot_at(slots), 0);
                put16(bytes, 22, slots + 1);
                put16(bytes, 28, header.free_count.get() - 2);
            });
            changed += 1;
        }
    }
    if changed == 0 {
        return Err("no such page".into());
    }
    sound_but(&image.check(), None)
}

/// Changes bits of allocation maps that checks ignore. These bits mark extents that were changed since the last full
/// backup, extents with bulk-loaded data, fill levels of index pages, and pages that may have ghost records.
fn idle_bits(image: &Image) -> Result<(), Failed> {
    let pages = image.bytes.len() / PAGE_BYTES;
    for fill in [0, 0xFF] {
        let mut image = image.clone();
        let types: Vec<u8> = (0..pages as u32).map(|page| Page::new(&image.page(page)).header().page_type).collect();
        for map in [6, 7] {
            image.edit(map, |bytes| bytes[194..194 + pages / 64].fill(fill));
        }
        image.edit(1, |bytes| {
            for (page, kind) in types.iter().enumerate().skip(10) {
                let byte = &mut bytes[100 + page];
                if *byte & 0x40 != 0 && matches!(kind, 1 | 2) {
                    *byte |= 0x08 & fill;
                }
                if *byte & 0x40 != 0 && *kind == 2 {
                    *byte = *byte & !7 | 4 & fill;
                }
            }
        });
        sound_but(&image.check(), None)?;
    }
    Ok(())
}

fn on_every_page(mut image: Image, change: EachPage) -> Result<(), Failed> {
    let mut changed = 0;
    for page in 10..(image.bytes.len() / PAGE_BYTES) as u32 {
        let mut bytes = image.page(page);
        let header = *Page::new(&bytes).header();
        let in_use = image.page(1)[100 + page as usize] & 0x40 != 0;
        let has_records = matches!(header.page_type, 1..=4) && header.slot_count.get() > 0;
        let is_plain = header.flags.get() & page_flags::ALIGNED4 == 0;
        if in_use && has_records && is_plain && bytes[offset_of(&bytes, 0)] & COMPRESSED == 0 && change(&mut bytes) {
            image.edit(page, |old| *old = bytes);
            changed += 1;
        }
    }
    if changed < 50 {
        return Err(format!("{changed} pages only").into());
    }
    sound_but(&image.check(), None)
}
