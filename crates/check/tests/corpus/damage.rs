//! One kind of damage at a time, done to a copy of a real database, gives the messages that CHECKDB documents for it, names
//! the right page, and nothing else. Each kind is tried with the page's checksum made right again; a wrong checksum masks
//! what else is wrong with the page, so that the answer is then always the same.

use check::Report;
use format::allocation::{IamHeader, PfsByte, bitmap, set_bits};
use format::page::PAGE_BYTES;
use format::record::Record;
use format::{AllocUnitId, Page, PageBytes, PageId, RecordId};
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::image::{Image, Tree, by_place, get16, offset_of, put_page, put16, slot_at};

/// The databases that are damaged: one with checksums, one with torn-page protection.
pub const SUBJECTS: [&str; 2] = [
    "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf",
    "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF",
];

/// A database with checksums.
pub fn subject(corpus: &Corpus) -> Image {
    Image::load(&corpus.files.join(SUBJECTS[0]))
}

/// What a kind of damage must give: messages and the page of each.
type Expected = Vec<(u16, u32)>;

/// Damages the image and tells what to expect.
type Damage = fn(&mut Image, &Facts) -> Expected;

/// Where things lie in the subject.
struct Facts {
    clustered: Tree,
    nonclustered: Tree,
    /// An unallocated page of a free extent.
    free_page: u32,
}

/// All kinds, on both subjects.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = Vec::new();
    for subject in SUBJECTS {
        for (name, damage) in kinds() {
            let corpus = corpus.clone();
            let file = subject.rsplit('/').next().unwrap_or_default();
            trials.push(Trial::test(format!("damage: {name} ({file})"), move || {
                let mut image = Image::load(&corpus.files.join(subject));
                let facts = facts(&image);
                let expected = damage(&mut image, &facts);
                agree(&image.check(), expected)
            }));
        }
        let corpus = corpus.clone();
        trials.push(Trial::test(format!("damage: a wrong checksum masks all else ({subject})"), move || {
            let mut image = Image::load(&corpus.files.join(subject));
            let facts = facts(&image);
            let [left, page, right] = middle(&facts.clustered);
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
            let _ = left;
            agree(&report, vec![(8939, page), (8928, page), (8976, page), (8978, right)])
        }));
    }
    trials
}

/// In an expectation: any further messages; only that the ones listed are there is checked.
const ANY: u16 = 1;
/// In an expectation: the file was cut, which is told on stderr and makes the run incomplete.
const CUT: u16 = 2;

fn agree(report: &Report, mut expected: Expected) -> Result<(), Failed> {
    let cut = expected.iter().position(|(msg, _)| *msg == CUT).map(|at| expected.remove(at)).is_some();
    if cut && (report.read_errors.is_empty() || report.complete()) {
        return Err("the cut was not told".into());
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

/// Three neighbouring leaves, none of them outermost.
fn middle(tree: &Tree) -> [u32; 3] {
    let at = tree.leaves.len() / 2;
    [tree.leaves[at - 1], tree.leaves[at], tree.leaves[at + 1]]
}

/// A page that fails its audit, between two neighbours.
fn lost(msg: u16, page: u32, right: u32) -> Expected {
    vec![(msg, page), (8928, page), (8976, page), (8978, right)]
}

#[expect(clippy::too_many_lines, reason = "a list")]
fn kinds() -> Vec<(&'static str, Damage)> {
    vec![
        ("reserved bit of a status byte set", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| bytes[offset_of(bytes, 3)] |= 0x80);
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
        ("next pointer skips a page", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let leaves = &facts.clustered.leaves;
            image.edit(leaves[at], |bytes| put_page(bytes, 16, PageId::new(1, leaves[at + 2])));
            vec![(8978, leaves[at + 1]), (8936, leaves[at + 2])]
        }),
        ("next pointer zeroed", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| put_page(bytes, 16, PageId::NONE));
            vec![(8978, right)]
        }),
        ("next pointer to a free page", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| put_page(bytes, 16, PageId::new(1, facts.free_page)));
            vec![(8978, right), (8981, facts.free_page)]
        }),
        ("next pointer to a page of another index", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            let other = facts.nonclustered.leaves[1];
            image.edit(page, |bytes| put_page(bytes, 16, PageId::new(1, other)));
            vec![(8978, right), (8982, other)]
        }),
        ("previous pointer wrong", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let leaves = &facts.clustered.leaves;
            image.edit(leaves[at], |bytes| put_page(bytes, 8, PageId::new(1, leaves[at - 2])));
            vec![(8935, leaves[at]), (8936, leaves[at])]
        }),
        ("leaf level cyclic", |image, facts| {
            let leaves = &facts.clustered.leaves;
            let (first, last) = (leaves[0], leaves[leaves.len() - 1]);
            image.edit(last, |bytes| put_page(bytes, 16, PageId::new(1, first)));
            vec![(8936, first)]
        }),
        ("two children of a parent swapped", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let leaves = facts.clustered.leaves.clone();
            image.edit(facts.clustered.root, |bytes| {
                let place = usize::from(get16(bytes, 14)) - 6;
                let (left, right) = (offset_of(bytes, at as u16) + place, offset_of(bytes, at as u16 + 1) + place);
                put_page(bytes, left, PageId::new(1, leaves[at + 1]));
                put_page(bytes, right, PageId::new(1, leaves[at]));
            });
            vec![
                (8934, leaves[at + 1]),
                (8933, leaves[at]),
                (8935, leaves[at]),
                (8935, leaves[at + 1]),
                (8935, leaves[at + 2]),
            ]
        }),
        ("child pointer to a free page", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            image.edit(facts.clustered.root, |bytes| {
                let place = offset_of(bytes, at as u16) + usize::from(get16(bytes, 14)) - 6;
                put_page(bytes, place, PageId::new(1, facts.free_page));
            });
            let leaves = &facts.clustered.leaves;
            vec![(8980, facts.free_page), (8977, leaves[at]), (8935, leaves[at + 1])]
        }),
        ("level of a leaf page changed", |image, facts| {
            let [_, page, right] = middle(&facts.nonclustered);
            image.edit(page, |bytes| bytes[3] = 1);
            vec![(8931, page), (2531, page), (2531, right)]
        }),
        ("two slots exchanged, so that keys are out of order", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let (first, second) = (get16(bytes, slot_at(2)), get16(bytes, slot_at(3)));
                put16(bytes, slot_at(2), second);
                put16(bytes, slot_at(3), first);
            });
            vec![(2511, page)]
        }),
        ("first key of a page below its parent's", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, 0);
                bytes[at + 4..at + 8].copy_from_slice(&0u32.to_le_bytes());
            });
            vec![(8933, page)]
        }),
        ("last key of a page not below the next one", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, get16(bytes, 22) - 1);
                bytes[at + 4..at + 8].copy_from_slice(&0x7FFF_FFFFu32.to_le_bytes());
            });
            vec![(8934, page)]
        }),
        ("two rows with one key", |image, facts| {
            let [_, page, _] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let (from, to) = (offset_of(bytes, 4), offset_of(bytes, 5));
                bytes.copy_within(from + 4..from + 8, to + 4);
            });
            vec![(2512, page)]
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
        ("leftmost leaf zeroed", |image, facts| {
            let leaves = &facts.clustered.leaves;
            image.edit_unsealed(leaves[0], |bytes| bytes.fill(0));
            vec![(8909, leaves[0]), (8928, leaves[0]), (8980, leaves[0]), (8978, leaves[1])]
        }),
        ("three leaves in a row zeroed", |image, facts| {
            let at = facts.clustered.leaves.len() / 2 - 1;
            let leaves = &facts.clustered.leaves;
            for page in &leaves[at..at + 3] {
                image.edit_unsealed(*page, |bytes| bytes.fill(0));
            }
            let mut expected =
                vec![(8976, leaves[at]), (8980, leaves[at + 1]), (8980, leaves[at + 2]), (8978, leaves[at + 3])];
            expected.extend(leaves[at..at + 3].iter().flat_map(|page| [(8909, *page), (8928, *page)]));
            expected
        }),
        ("root zeroed", |image, facts| {
            let root = facts.nonclustered.root;
            image.edit_unsealed(root, |bytes| bytes.fill(0));
            let mut expected = vec![(8909, root), (8928, root), (8980, root)];
            expected.extend(facts.nonclustered.leaves.iter().map(|leaf| (8977, *leaf)));
            expected
        }),
        ("empty page above the leaves", |image, facts| {
            let root = facts.nonclustered.root;
            image.edit(root, |bytes| {
                put16(bytes, 22, 0);
                put16(bytes, 58, 0);
                put16(bytes, 28, 8096);
                put16(bytes, 30, 96);
            });
            let mut expected = vec![(2574, root)];
            expected.extend(facts.nonclustered.leaves.iter().map(|leaf| (8977, *leaf)));
            expected
        }),
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
        ("extent claimed by two IAM pages", |image, facts| {
            let extent = owned_extent(image, facts);
            flip_map(image, facts.nonclustered.unit.first_iam.page, extent);
            vec![(8904, extent * 8), (8913, extent * 8), (8913, extent * 8)]
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
        ("IAM page claims an extent behind the end", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let beyond = (image.bytes.len() / PAGE_BYTES / 8) as u32 + 10;
            flip_map(image, iam, beyond);
            vec![(2579, beyond * 8)]
        }),
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
        ("pgroot to a free page", |image, facts| {
            edit_unit(image, facts.nonclustered.unit.id, 29, PageId::new(1, facts.free_page));
            vec![(8980, facts.free_page), (8979, facts.nonclustered.root)]
        }),
        ("pgroot to a leaf", |image, facts| {
            let leaf = facts.nonclustered.leaves[1];
            edit_unit(image, facts.nonclustered.unit.id, 29, PageId::new(1, leaf));
            vec![(8937, leaf), (8979, facts.nonclustered.root)]
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
            edit_unit_bytes(image, facts.clustered.unit.id, 21, &7u16.to_le_bytes());
            vec![(8996, facts.clustered.unit.first_iam.page)]
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
        ("child pointer to a page of another index", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let (leaves, others) = (&facts.clustered.leaves, &facts.nonclustered.leaves);
            image.edit(facts.clustered.root, |bytes| {
                let place = usize::from(get16(bytes, 14)) - 6;
                put_page(bytes, offset_of(bytes, at as u16) + place, PageId::new(1, others[1]));
            });
            vec![(8926, others[1]), (8977, leaves[at]), (8935, leaves[at + 1])]
        }),
        ("child pointer to the first page of another index", |image, facts| {
            let at = facts.clustered.leaves.len() / 2;
            let (leaves, others) = (&facts.clustered.leaves, &facts.nonclustered.leaves);
            image.edit(facts.clustered.root, |bytes| {
                let place = usize::from(get16(bytes, 14)) - 6;
                put_page(bytes, offset_of(bytes, at as u16) + place, PageId::new(1, others[0]));
            });
            vec![(8925, others[0]), (8977, leaves[at]), (8935, leaves[at + 1])]
        }),
        ("page count negative", |image, facts| {
            edit_unit_bytes(image, facts.clustered.unit.id, 41, &(-5i64).to_le_bytes());
            vec![(2508, 0)]
        }),
        ("owner of an allocation unit does not exist", |image, facts| {
            edit_unit_bytes(image, facts.nonclustered.unit.id, 9, &0x7777_0000u64.to_le_bytes());
            // The index of sysallocunits by owner no longer agrees with it.
            vec![(8930, 0), (ANY, 0)]
        }),
        ("catalogue row of an object in a schema that does not exist", |image, _| {
            let object = image.database().objects.values().find(|object| object.type_code == "U").expect("table").id;
            image.edit_object(object, |row| row[4 + 4..4 + 8].copy_from_slice(&4242u32.to_le_bytes()));
            vec![(8992, 0), (ANY, 0)]
        }),
        ("catalogue lost and a page damaged", |image, facts| {
            let first = image.database().boot.expect("boot page").first_sysallocunits.page;
            let [_, page, _] = middle(&facts.clustered);
            image.edit_unsealed(first, |bytes| bytes.fill(0));
            image.edit_unsealed(page, |bytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3));
            let mut zeroed = image.clone();
            zeroed.edit_unsealed(page, |bytes| bytes.fill(0));
            assert!(
                zeroed.check().findings.iter().any(|f| (f.check.msg, f.page) == (5256, Some(PageId::new(1, page))))
            );
            vec![(7985, first), (7995, 0), (5233, page), (ANY, 0)]
        }),
        ("aligned page with free data at an odd place", |image, _| {
            let page = 32;
            let header = *Page::new(&image.page(page)).header();
            assert!(header.flags.get() & format::page::page_flags::ALIGNED4 != 0, "page 1:32 is aligned");
            image.edit(page, |bytes| put16(bytes, 30, header.free_data.get() + 1));
            vec![(8940, page), (8928, page)]
        }),
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
        ("boot page damaged", |image, _| {
            image.edit_unsealed(9, |bytes| bytes.fill(0));
            vec![(5250, 9)]
        }),
        ("IAM page damaged, checksum wrong", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let lists = listed(image, iam);
            image.edit_unsealed(iam, |bytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3));
            let mut expected = vec![(8939, iam), (8928, iam), (2575, iam), (7965, 0)];
            expected.extend(orphaned(iam, lists));
            expected
        }),
        ("IAM page zeroed", |image, facts| {
            let iam = facts.clustered.unit.first_iam.page;
            let lists = listed(image, iam);
            image.edit_unsealed(iam, |bytes| bytes.fill(0));
            let mut expected = vec![(8909, iam), (8946, iam), (2575, iam), (7965, 0)];
            expected.extend(orphaned(iam, lists));
            expected
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
        ("sysallocunits: leaf page zeroed", |image, _| {
            let page = image.database().boot.expect("boot page").first_sysallocunits.page;
            image.edit_unsealed(page, |bytes| bytes.fill(0));
            vec![(7985, page), (7995, 0), (ANY, 0)]
        }),
        ("sysrowsets: page type changed", |image, _| {
            let page = leftmost(image, 5);
            image.edit(page, |bytes| bytes[1] = 10);
            vec![(7984, page), (7995, 0), (ANY, 0)]
        }),
        ("sysrscols: previous pointer wrong", |image, _| {
            let page = leftmost(image, 3);
            let next = Page::new(&image.page(page)).header().next().page;
            image.edit(next, |bytes| put_page(bytes, 8, PageId::new(1, 77)));
            vec![(7987, page), (7995, 0), (8935, next), (8936, next)]
        }),
        ("sysrscols: chain cyclic", |image, _| {
            let page = leftmost(image, 3);
            let next = Page::new(&image.page(page)).header().next().page;
            image.edit(next, |bytes| put_page(bytes, 16, PageId::new(1, page)));
            vec![(7988, page), (7995, 0), (ANY, 0)]
        }),
        ("sysschobjs: page damaged", |image, _| {
            let page = leftmost(image, 34);
            let right = Page::new(&image.page(page)).header().next().page;
            image.edit_unsealed(page, |bytes| bytes.fill(0));
            vec![(7995, 0), (8909, page), (8928, page), (8980, page), (8978, right)]
        }),
        ("file header damaged", |image, _| {
            image.edit_unsealed(0, |bytes| bytes.fill(0));
            vec![(5250, 0)]
        }),
    ]
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

/// An extent of the clustered index that holds leaves in the middle.
fn owned_extent(image: &Image, facts: &Facts) -> u32 {
    let leaves = &facts.clustered.leaves;
    let dedicated = |page: &&u32| pfs(image, **page).type_bits() == PfsByte::DEDICATED;
    leaves[1..leaves.len() - 1].iter().find(dedicated).expect("a dedicated extent") / 8
}

fn object_of(page: &PageBytes) -> u32 {
    Page::new(page).header().object_id.get()
}

/// The leftmost leaf of a base table's clustered index.
fn leftmost(image: &Image, table: i32) -> u32 {
    let database = image.database();
    let unit = database
        .units
        .iter()
        .find(|unit| database.rowset_of(unit).is_some_and(|rowset| (rowset.object_id, rowset.index_id) == (table, 1)))
        .expect("base table");
    let mut page = unit.root.page;
    while Page::new(&image.page(page)).header().page_type == 2 {
        page = crate::image::children(&image.page(page))[0];
    }
    page
}

/// Single pages and extents that an IAM page lists.
fn listed(image: &Image, iam: u32) -> (Vec<u32>, Vec<u32>) {
    let bytes = image.page(iam);
    let page = Page::new(&bytes);
    let slots = IamHeader::read(page).expect("IAM page").slots;
    let singles = slots.iter().filter(|slot| !slot.is_none()).map(|slot| slot.page).collect();
    (singles, set_bits(bitmap(page).expect("IAM page")).collect())
}

/// What is left when an IAM page is lost: its extents, its single pages and itself are nobody's.
fn orphaned(iam: u32, (singles, extents): (Vec<u32>, Vec<u32>)) -> Expected {
    let mut expected = vec![(8906, iam)];
    expected.extend(singles.into_iter().map(|page| (8906, page)));
    expected.extend(extents.into_iter().map(|extent| (8905, extent * 8)));
    expected
}

/// 8976, 8980 and 8978 for leaves that are not seen.
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

/// Changes a field of the sysallocunits row of a unit.
fn edit_unit_bytes(image: &mut Image, unit: AllocUnitId, field: usize, value: &[u8]) {
    image.edit_row(7, unit.0, |row| row[4 + field..][..value.len()].copy_from_slice(value));
}

/// Heaps: the one real table with a forwarded row.
pub fn heap_trials(corpus: &Corpus) -> Vec<Trial> {
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
