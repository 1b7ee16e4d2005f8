//! Each test applies one kind of damage to a copy of a sound database. The report must contain exactly the messages
//! that CHECKDB documents for this damage, with the correct page. The checksum of a damaged page is corrected, because
//! a wrong checksum would mask all other faults of the page.

mod allocation;
mod catalogue;
mod heaps;
mod order;
mod pages;
mod trees;

use findings::Report;
use format::allocation::{IamHeader, PfsByte, bitmap, set_bits};
use format::page::PAGE_BYTES;
use format::record::Record;
use format::{AllocUnitId, Page, PageBytes, PageId, RecordId};
use libtest_mimic::{Failed, Trial};

use crate::image::{Image, Tree, by_place, get16, offset_of, put_page, put16, slot_at};
use crate::{Corpus, subjects};

/// The databases that are damaged: real and lab databases, with checksums and with torn-page protection.
const SUBJECTS: [&str; 4] = [ADVENTURE_WORKS, NORTHWIND, subjects::ORDERS, subjects::TORN];
/// The real databases.
pub const REAL: [&str; 2] = [ADVENTURE_WORKS, NORTHWIND];
/// A real database with checksums.
pub const ADVENTURE_WORKS: &str = "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf";
const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";

/// A database with checksums.
pub fn subject(corpus: &Corpus) -> Image {
    Image::load(&corpus.files.join(ADVENTURE_WORKS))
}

/// The expected messages: message number and page of each.
type Expected = Vec<(u16, u32)>;

/// Damages the image and returns the expected messages.
type Damage = fn(&mut Image, &Facts) -> Expected;

/// Places in the subject to which damage can be applied.
struct Facts {
    clustered: Tree,
    nonclustered: Tree,
    /// An unallocated page of a free extent.
    free_page: u32,
}

/// One test per kind of damage and available subject.
pub fn trials() -> Vec<Trial> {
    let subjects = SUBJECTS.into_iter().filter(|name| subjects::is_there(name));
    subjects.flat_map(trials_of).chain(heaps::trials()).chain(of_2000()).collect()
}

/// Tests a data page of a clustered index that has index ID 0 in its header, as SQL Server 2000 wrote it. Damage to
/// this page must be reported for the clustered index.
fn of_2000() -> Option<Trial> {
    subjects::is_there(NORTHWIND).then(|| {
        Trial::test("damage: a page that names index 0 of a clustered index", || {
            let mut image = subjects::image(NORTHWIND);
            let database = image.database();
            let leaves = 8..(image.bytes.len() / PAGE_BYTES) as u32;
            let old = |page: &u32| {
                let bytes = image.page(*page);
                let header = Page::new(&bytes).header();
                let clustered = header.alloc_unit().clustered_of_2000();
                header.page_type == 1
                    && pfs(&image, *page).is_allocated()
                    && clustered.is_some_and(|unit| database.units.iter().any(|row| row.id == unit))
            };
            let page = leaves.rev().find(old).expect("a page of SQL Server 2000");
            let object = object_of(&image.page(page)).cast_signed();
            image.edit_unsealed(page, |bytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3));
            let report = image.check();
            let of_page = report.findings.iter().filter(|finding| finding.page == Some(PageId::new(1, page)));
            let owners: Vec<(u16, i32, i32)> = of_page
                .filter_map(|finding| Some((finding.check.msg, finding.owner?.object_id, finding.owner?.index_id)))
                .take(2)
                .collect();
            let expected = [(8939, object, 1), (8928, object, 1)];
            if owners == expected { Ok(()) } else { Err(format!("{owners:?}").into()) }
        })
    })
}

fn trials_of(subject: &'static str) -> Vec<Trial> {
    let file = subjects::short(subject);
    let mut trials = order::trials(subject);
    for (name, damage) in kinds() {
        trials.push(Trial::test(format!("damage: {name} ({file})"), move || {
            let mut image = subjects::image(subject);
            let facts = facts(&image);
            let expected = damage(&mut image, &facts);
            agree(&image.check(), expected)
        }));
    }
    trials.push(Trial::test(format!("damage: a wrong checksum masks all else ({file})"), move || {
        let mut image = subjects::image(subject);
        let facts = facts(&image);
        let [_, page, right] = middle(&facts.clustered);
        image.edit_unsealed(page, |bytes| {
            for sector in bytes.chunks_exact_mut(512).skip(1) {
                sector[511] ^= 3;
            }
        });
        let report = image.check();
        let first = report.findings.iter().find(|finding| finding.check.msg == 8939).ok_or("no 8939")?;
        if (first.state, first.page) != (98, Some(PageId::new(1, page))) {
            return Err(format!("{first:?}").into());
        }
        agree(&report, vec![(8939, page), (8928, page), (8976, page), (8978, right)])
    }));
    trials
}

/// A special number in a list of expected messages. With this number, other messages are permitted too: the test
/// verifies only that the listed messages are present.
const ANY: u16 = 1;
/// A special number in a list of expected messages. It says that the file was truncated. The report must contain a read
/// error, and the run must be incomplete.
const CUT: u16 = 2;

fn agree(report: &Report, mut expected: Expected) -> Result<(), Failed> {
    let cut = expected.iter().position(|(msg, _)| *msg == CUT).map(|at| expected.remove(at)).is_some();
    if cut && (report.read_errors.is_empty() || report.complete()) {
        return Err("the cut was not reported".into());
    }
    if let Some(at) = expected.iter().position(|(msg, _)| *msg == ANY) {
        expected.remove(at);
        let found = |(msg, page): &(u16, u32)| {
            report.findings.iter().any(|f| f.check.msg == *msg && f.page.map_or(0, |found| found.page) == *page)
        };
        let missing: Vec<&(u16, u32)> = expected.iter().filter(|wanted| !found(wanted)).collect();
        return if missing.is_empty() { Ok(()) } else { Err(format!("missing {missing:?}").into()) };
    }
    let mut found: Vec<(u16, u32)> =
        report.findings.iter().map(|f| (f.check.msg, f.page.map_or(0, |page| page.page))).collect();
    found.sort_unstable();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    let texts: Vec<String> =
        report.findings.iter().take(20).map(|f| format!("Msg {} {}", f.check.msg, f.text(&report.names()))).collect();
    Err(format!("found {found:?}\nexpected {expected:?}\n{}", texts.join("\n")).into())
}

fn facts(image: &Image) -> Facts {
    let (clustered, nonclustered) = (image.tree(true), image.tree(false));
    let gam = image.page(2);
    let extents = image.bytes.len() / PAGE_BYTES / 8;
    let free =
        (0..extents).rev().find(|extent| gam[194 + extent / 8] & (1 << (extent % 8)) != 0).expect("a free extent");
    Facts { clustered, nonclustered, free_page: free as u32 * 8 + 3 }
}

/// Three neighboring leaves; none is the first or the last leaf.
fn middle(tree: &Tree) -> [u32; 3] {
    let at = tree.leaves.len() / 2;
    [tree.leaves[at - 1], tree.leaves[at], tree.leaves[at + 1]]
}

/// The messages for a leaf that fails its audit with message `msg`. `right` is the leaf after it.
fn lost(msg: u16, page: u32, right: u32) -> Expected {
    vec![(msg, page), (8928, page), (8976, page), (8978, right)]
}

fn kinds() -> Vec<(&'static str, Damage)> {
    [pages::kinds(), trees::kinds(), allocation::kinds(), catalogue::kinds()].concat()
}

fn pfs(image: &Image, page: u32) -> PfsByte {
    PfsByte(image.page(1)[100 + page as usize])
}

fn set_pfs(image: &mut Image, page: u32, byte: u8) {
    image.edit(1, |bytes| bytes[100 + page as usize] = byte);
}

/// Flips the bit of an extent on a GAM, SGAM or IAM page.
fn flip_map(image: &mut Image, map: u32, extent: u32) {
    image.edit(map, |bytes| {
        let at = offset_of(bytes, 1) + 4 + extent as usize / 8;
        bytes[at] ^= 1 << (extent % 8);
    });
}

/// A dedicated extent that contains a leaf of the clustered index, but not its first or last leaf.
fn owned_extent(image: &Image, facts: &Facts) -> u32 {
    let leaves = &facts.clustered.leaves;
    let dedicated = |page: &&u32| pfs(image, **page).type_bits() == PfsByte::DEDICATED;
    leaves[1..leaves.len() - 1].iter().find(dedicated).expect("a dedicated extent") / 8
}

fn object_of(page: &PageBytes) -> u32 {
    Page::new(page).header().object_id.get()
}

/// The root page of a base table's clustered index.
fn root(image: &Image, table: i32) -> u32 {
    let database = image.database();
    let unit = database
        .units
        .iter()
        .find(|unit| database.rowset_of(unit).is_some_and(|rowset| (rowset.object_id, rowset.index_id) == (table, 1)))
        .expect("base table");
    unit.root.page
}

/// The leftmost leaf of a base table's clustered index.
fn leftmost(image: &Image, table: i32) -> u32 {
    let mut page = root(image, table);
    while Page::new(&image.page(page)).header().page_type == 2 {
        page = crate::image::children(&image.page(page))[0];
    }
    page
}

/// The single pages and the extents that an IAM page lists.
fn listed(image: &Image, iam: u32) -> (Vec<u32>, Vec<u32>) {
    let bytes = image.page(iam);
    let page = Page::new(&bytes);
    let slots = IamHeader::read(page).expect("IAM page").slots;
    let singles = slots.iter().filter(|slot| !slot.is_none()).map(|slot| slot.page).collect();
    (singles, set_bits(bitmap(page).expect("IAM page")).collect())
}

/// The messages 8976, 8980 and 8978 for a tree whose pages `lost` are missing.
fn unseen_leaves(tree: &Tree, lost: &[u32]) -> Expected {
    let is_lost = |at: usize| tree.leaves.get(at).is_some_and(|leaf| lost.contains(leaf));
    let mut expected = Vec::new();
    for (at, leaf) in tree.leaves.iter().enumerate() {
        let left_is_seen = at > 0 && !is_lost(at - 1);
        match (is_lost(at), left_is_seen) {
            (true, true) => expected.push((8976, *leaf)),
            (true, false) => expected.push((8980, *leaf)),
            (false, false) if at > 0 => expected.push((8978, *leaf)),
            _ => {}
        }
    }
    if lost.contains(&tree.root) {
        expected.push((8980, tree.root));
    }
    expected
}

/// Changes a page pointer in the sysallocunits row of a unit.
fn edit_unit(image: &mut Image, unit: AllocUnitId, field: usize, value: PageId) {
    let [a, b, c, d] = value.page.to_le_bytes();
    let [e, f] = value.file.to_le_bytes();
    edit_unit_bytes(image, unit, field, &[a, b, c, d, e, f]);
}

/// Changes a field of the sysallocunits row of a unit. Returns the page that contains the row.
fn edit_unit_bytes(image: &mut Image, unit: AllocUnitId, field: usize, value: &[u8]) -> u32 {
    image.edit_row(7, unit.0, |row| row[4 + field..][..value.len()].copy_from_slice(value))
}
