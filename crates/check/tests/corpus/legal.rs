//! States that look unusual but are legal, and states that cannot be judged. They must never cause a finding. Whatever
//! cannot be verified because of such a state must be listed as not verified.

mod pages;

use std::fs::OpenOptions;
use std::io::Write;

use catalog::{Level, UnitKind};
use check::Silent;
use findings::{Options, Report};
use format::boot::status::CLEAN_SHUTDOWN;
use format::page::{PAGE_BYTES, page_flags};
use format::{Page, PageId};
use libtest_mimic::{Failed, Trial};
use source::DataFiles;

use crate::Corpus;
use crate::damage::subject;
use crate::image::{Image, offset_of, put_page, put16, slot_at};

/// Changes the image. Returns the item that must be listed as not verified, if any.
type Legal = fn(&mut Image) -> Option<&'static str>;

/// States that pages and the catalog have in the course of ordinary work.
fn of_ordinary_work() -> Vec<(&'static str, Legal)> {
    vec![
        ("garbage on every free page", |image| {
            for page in 10..(image.bytes.len() / PAGE_BYTES) as u32 {
                if image.page(1)[100 + page as usize] & 0x40 == 0 {
                    image.edit_unsealed(page, |bytes| bytes.fill(0xA7));
                }
            }
            None
        }),
        ("mixed bit left on a free page", |image| {
            let extents = (image.bytes.len() / PAGE_BYTES) as u32;
            let page = (10..extents).find(|page| image.page(1)[100 + *page as usize] == 0).expect("a free page");
            image.edit(1, |bytes| bytes[100 + page as usize] = 0x20);
            None
        }),
        ("not shut down cleanly, a page newer than the checkpoint, a link broken", |image| {
            let leaves = image.tree(true).leaves;
            image.edit(9, |bytes| {
                let status = u32::from_le_bytes([bytes[132], bytes[133], bytes[134], bytes[135]]) & !CLEAN_SHUTDOWN;
                bytes[132..136].copy_from_slice(&status.to_le_bytes());
            });
            image.edit(leaves[3], |bytes| {
                bytes[40..44].copy_from_slice(&0x00FF_FFFFu32.to_le_bytes());
                put_page(bytes, 16, PageId::new(1, leaves[5]));
            });
            Some("message 8978")
        }),
        ("row count of the catalog is stale", |image| {
            let tree = image.tree(true);
            let database = image.database();
            let rowset = database.rowset_of(&tree.unit).expect("rowset").id;
            image.edit_row(5, rowset, |row| row[4 + 27] ^= 1);
            Some("row count")
        }),
        ("a dropped unit waits for its pages to be given back", |image| {
            let unit = image.tree(false).unit.id.0;
            image.edit_row(7, unit, |row| {
                row[4 + 8] = 0;
                row[4 + 9..4 + 17].fill(0);
            });
            Some("records")
        }),
        ("not shut down cleanly, an allocated page never written", |image| {
            let leaves = image.tree(true).leaves;
            image.edit(9, |bytes| {
                let status = u32::from_le_bytes([bytes[132], bytes[133], bytes[134], bytes[135]]) & !CLEAN_SHUTDOWN;
                bytes[132..136].copy_from_slice(&status.to_le_bytes());
            });
            image.edit_unsealed(leaves[3], |bytes| bytes.fill(0));
            Some("message 8909")
        }),
        ("a page that a reorganize was working on", |image| {
            let leaves = image.tree(false).leaves;
            image.edit(leaves[1], |bytes| bytes[1] = 19);
            Some("pages")
        }),
    ]
}

/// States that depend on a feature of the server: FILESTREAM, several files, tempdb, encryption.
fn of_features() -> Vec<(&'static str, Legal)> {
    vec![
        ("a FILESTREAM column: its values are files", |image| {
            const FILESTREAM: u8 = 0x20;
            let database = image.database();
            let object = database.objects.values().find(|object| object.name == "Product").expect("table").id;
            let photo =
                database.columns[&object].iter().find(|column| column.name == "ThumbNailPhoto").expect("column").id;
            let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object, 1));
            let key = [rowset.expect("rowset").id.to_le_bytes().as_slice(), &photo.to_le_bytes()].concat();
            image.edit_row_by(3, &key, |row| row[4 + 36] |= FILESTREAM);
            Some("FILESTREAM files")
        }),
        ("a data file of the database was not given", |image| {
            let database = image.database();
            let rowset = database.rowsets.iter().find(|rowset| rowset.object_id == 24).expect("sysprufiles");
            let column = |name: &str| {
                let columns = &database.columns[&24];
                let id = columns.iter().find(|column| column.name == name).expect("column").id;
                rowset.layout.column(id).expect("column").place(Level::Leaf).0.unsigned_abs()
            };
            let (kind, file) = (usize::from(column("filetype")), usize::from(column("fileid")));
            let root = database.units[rowset.units[0]].root.page;
            image.edit(root, |bytes| {
                for slot in 0..Page::new(bytes).header().slot_count.get() {
                    let at = offset_of(bytes, slot);
                    if bytes[at + file] == 2 {
                        bytes[at + kind] = 0;
                    }
                }
            });
            Some("file")
        }),
        ("tempdb, shut down cleanly, a link broken", |image| {
            let leaves = image.tree(true).leaves;
            image.edit(9, |bytes| {
                put16(bytes, 96 + 0x138, 2);
                let name: Vec<u8> = "tempdb".encode_utf16().flat_map(u16::to_le_bytes).collect();
                bytes[96 + 0x34..96 + 0x134].fill(0x20);
                bytes[96 + 0x34..96 + 0x34 + name.len()].copy_from_slice(&name);
                put16(bytes, 96 + 0x134, name.len() as u16);
            });
            image.edit(leaves[3], |bytes| put_page(bytes, 16, PageId::new(1, leaves[5])));
            Some("message 8978")
        }),
        ("the database is being encrypted", |image| {
            const GAM: u32 = 2;
            image.edit(GAM, |bytes| {
                bytes[4 + 1] |= 0x04;
                bytes[96..].fill(0xA7);
            });
            Some("pages")
        }),
        ("a page that is still encrypted", |image| {
            let leaves = image.tree(false).leaves;
            image.edit(leaves[1], |bytes| {
                bytes[4 + 1] |= 0x04;
                bytes[96..].fill(0xA7);
            });
            Some("pages")
        }),
    ]
}

/// One test per state.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials: Vec<Trial> = of_ordinary_work()
        .into_iter()
        .chain(of_features())
        .map(|(name, change)| {
            let corpus = corpus.clone();
            Trial::test(format!("legal: {name}"), move || {
                let mut image = subject(&corpus);
                let expected = change(&mut image);
                // The test of a dropped unit changes a row of sysallocunits, but not the matching row in the index of
                // sysallocunits by owner. So this test checks only allocation and pages.
                let physical_only = name.starts_with("a dropped unit");
                sound_but(&image.check_with(&Options { physical_only, ..Options::default() }), expected)
            })
        })
        .collect();
    let heaps = corpus.clone();
    trials.push(Trial::test("legal: rows of a heap that are shorter than a forwarding stub", move || {
        short_rows(&Image::load(&heaps.files.join(HEAP)))
    }));
    let heaps = corpus.clone();
    trials.push(Trial::test("legal: bytes of a page of a heap that a transaction reserved", move || {
        reserved_bytes(&Image::load(&heaps.files.join(HEAP)))
    }));
    let heaps = corpus.clone();
    trials.push(Trial::test("legal: rows with columns that SQL Server 2000 dropped", move || {
        columns_of_2000(&Image::load(&heaps.files.join(HEAP)))
    }));
    let model = corpus.clone();
    trials.push(Trial::test("legal: master, with the settings of the server at (1:10)", move || {
        let mut image = Image::load(&model.files.join(MODEL));
        settings_of_the_server(&mut image);
        sound_but(&image.check(), None)
    }));
    let versions = corpus.clone();
    trials.push(Trial::test("legal: a row that holds an older version of itself", move || {
        longer_row(&Image::load(&versions.files.join(VERSIONED)))
    }));
    let newer = corpus.clone();
    trials.push(Trial::test("legal: types of a release that is newer than this program", move || {
        newer_type(subject(&newer))
    }));
    let tails = corpus.clone();
    trials.push(Trial::test("legal: bytes after the end of the file according to its header", move || {
        let mut image = subject(&tails);
        image.bytes.extend([0xA7; 100]);
        let report = image.check();
        match report.read_errors.first() {
            Some(error) => Err(error.into()),
            None => sound_but(&report, None),
        }
    }));
    let twice = corpus.clone();
    trials.push(Trial::test("legal: a rebuild of an index was paused", move || {
        let image = subject(&twice);
        let index = image.tree(false).unit.rowset;
        let report = image.check_as(|database| {
            let rowset = database.rowsets[index.expect("rowset")].clone();
            database.rowsets.push(catalog::Rowset { id: u64::MAX, units: Vec::new(), ..rowset });
        });
        sound_but(&report, Some("index rows against table rows"))
    }));
    trials.extend(pages::trials(corpus));
    let corpus = corpus.clone();
    trials.push(Trial::test("legal: the file becomes shorter while it is read", move || shrinks(&subject(&corpus))));
    trials
}

/// A database with an IAM page at (1:10).
const MODEL: &str = "candocompany90__DATA/model.mdf";

/// Moves the IAM page at (1:10) to a free page of a mixed extent, and writes at (1:10) the page that master has there:
/// the settings of the server.
fn settings_of_the_server(image: &mut Image) {
    const CONFIG: u32 = 10;
    let bit = |page: &[u8; PAGE_BYTES], extent: u32| page[194 + extent as usize / 8] >> (extent % 8) & 1 == 1;
    let pages = (image.bytes.len() / PAGE_BYTES) as u32;
    let is_room = |page: &u32| {
        let is_mixed = !bit(&image.page(2), page / 8) && bit(&image.page(3), page / 8);
        is_mixed && image.page(1)[100 + *page as usize] & 0x40 == 0
    };
    let room = (16..pages).find(is_room).expect("a mixed extent with room");
    let iam = image.page(CONFIG);
    let unit = Page::new(&iam).header().alloc_unit().0;
    image.edit_unsealed(room, |bytes| *bytes = iam);
    image.edit(room, |bytes| put_page(bytes, 32, PageId::new(1, room)));
    image.edit_row(7, unit, |row| row[4 + 35..4 + 39].copy_from_slice(&room.to_le_bytes()));
    image.edit(CONFIG, |bytes| {
        bytes[1] = 14;
        put16(bytes, 6, 0);
        bytes[24..28].copy_from_slice(&99u32.to_le_bytes());
    });
    image.edit(1, |bytes| {
        bytes[100 + room as usize] = 0x70;
        bytes[100 + CONFIG as usize] = 0x64;
    });
}

/// A database with a heap of one page, without indexes or off-row values. The first column of the heap is nullable.
const HEAP: &str = "Dirie__From-Database/Shafici.mdf";
const HEAP_TABLE: &str = "PaymentMohts";

/// The database in which each row of the heap is replaced by `row`. The free-space count of the page assumes that each
/// row has `counted` bytes.
fn with_rows(image: &Image, row: &[u8], counted: usize) -> Image {
    let page = heap_page(image);
    let mut image = image.clone();
    let rows = usize::from(Page::new(&image.page(page)).header().slot_count.get());
    image.edit(page, |bytes| {
        for slot in 0..rows {
            let at = 96 + row.len() * slot;
            bytes[at..at + row.len()].copy_from_slice(row);
            put16(bytes, slot_at(slot as u16), at as u16);
        }
        put16(bytes, 28, (8096 - (counted + 2) * rows) as u16);
        put16(bytes, 30, (96 + row.len() * rows) as u16);
    });
    // The page is at most half full now, and the PFS byte must say that.
    image.edit(1, |bytes| bytes[100 + page as usize] = bytes[100 + page as usize] & !7 | 1);
    image
}

/// Tests that columns that were dropped in SQL Server 2000 are legal. Rows keep these columns, but the catalog does not
/// describe them. At most, the catalog stores their number.
fn columns_of_2000(image: &Image) -> Result<(), Failed> {
    let database = image.database();
    let table = database.objects.values().find(|object| object.name == HEAP_TABLE).expect("table").id;
    let is_heap = |rowset: &&catalog::Rowset| (rowset.object_id, rowset.index_id) == (table, 0);
    let layout = &database.rowsets.iter().find(is_heap).expect("a heap").layout;
    let stored = layout.columns.iter().filter(|column| column.leaf_offset < 0).count() as u16 + 1;
    // A row with one fixed byte, a column count of 1, and a null bitmap that marks this column as NULL. The row has one
    // variable column more than the table. This additional column has one byte, and all other variable columns are
    // empty.
    let mut row = vec![0x30, 0, 5, 0, 0, 1, 0, 1];
    row.extend(stored.to_le_bytes());
    let start = row.len() as u16 + 2 * stored;
    for column in 1..=stored {
        row.extend((start + u16::from(column == stored)).to_le_bytes());
    }
    row.push(0xA7);
    let image = with_rows(image, &row, row.len());
    if image.check().findings.iter().all(|finding| finding.check.msg != 2537) {
        return Err("a column too many is not reported".into());
    }
    let with = |create_version: u16, change: fn(u16) -> u16| {
        image.check_as(|database| {
            database.boot.as_mut().expect("boot page").create_version = create_version;
            for rowset in database.rowsets.iter_mut().filter(|rowset| is_heap(&&**rowset)) {
                rowset.max_null_bit = change(rowset.max_null_bit);
            }
        })
    };
    sound_but(&with(539, |bits| bits + 1), None)?;
    // SQL Server 2005 does not store the number of dropped columns, so a number of 0 must be legal too.
    sound_but(&with(539, |_| 0), None)?;
    // All databases created by later releases keep dropped columns in the catalog, so an undescribed column must be
    // reported.
    let is_told = |report: Report| report.findings.iter().any(|finding| finding.check.msg == 2537);
    match is_told(with(611, |_| 0)) && is_told(with(611, |bits| bits + 1)) {
        true => Ok(()),
        false => Err("a column too many is not reported".into()),
    }
}

/// Tests rows of eight bytes. A heap reserves nine bytes for every row, so that a forwarding stub can replace the row.
/// So the free-space count of the page may count each row as nine bytes or as eight.
fn short_rows(image: &Image) -> Result<(), Failed> {
    // A row with one fixed byte and one column, which is NULL.
    const ROW: [u8; 8] = [0x10, 0, 5, 0, 0, 1, 0, 1];
    let with = |counted: usize| with_rows(image, &[&ROW[..], &[0]].concat(), counted).check();
    sound_but(&with(9), None)?;
    sound_but(&with(8), None)?;
    let report = with(7);
    let messages: Vec<u16> = report.findings.iter().map(|finding| finding.check.msg).collect();
    if messages == [8939, 8928] { Ok(()) } else { Err(format!("{messages:?}").into()) }
}

/// The page of the heap.
fn heap_page(image: &Image) -> u32 {
    let database = image.database();
    let table = database.objects.values().find(|object| object.name == HEAP_TABLE).expect("table").id;
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (table, 0));
    let unit = rowset.expect("a heap").units.iter().map(|unit| &database.units[*unit]);
    unit.filter(|unit| unit.kind == UnitKind::InRow).map(|unit| unit.first_page.page).next().expect("a page")
}

/// A database of SQL Server 2022 that has rows with version tags, and one of its pages with these rows.
const VERSIONED: &str = "AhmedHamada87__Point-Of-Sales-MVC-ASP.NET-Core/Database.rar.d/Ecommerce.mdf";
const VERSIONED_PAGE: u32 = 280;

/// Tests a row whose short older version is stored within the row, as accelerated database recovery does. Only the
/// free-space count of the page shows that this version exists. This must be legal in the release of the file, but a
/// finding in an older release.
fn longer_row(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    if Page::new(&image.page(VERSIONED_PAGE)).header().flags.get() & page_flags::VERSION_INFO == 0 {
        return Err("no page of rows with versions".into());
    }
    image.edit(VERSIONED_PAGE, |bytes| {
        let header = *Page::new(bytes).header();
        put16(bytes, 28, header.free_count.get() - 24);
        put16(bytes, 30, header.free_data.get() + 24);
    });
    sound_but(&image.check(), Some("records"))?;
    // Older releases store versions only in tempdb, so the same row must be a finding there.
    image.edit(9, |bytes| put16(bytes, 96 + 4, 869));
    match image.check().findings.iter().any(|finding| finding.check.msg == 8939) {
        true => Ok(()),
        false => Err("a row that is longer than its columns is not reported".into()),
    }
}

/// Tests a column type that the catalog does not contain. In a known release, this must be a finding. In a newer
/// release, it may be a built-in type, so the message must be listed as not verified.
fn newer_type(mut image: Image) -> Result<(), Failed> {
    const SYSCOLPARS: i32 = 41;
    let database = image.database();
    let table = database.objects.values().find(|object| object.name == "Product").expect("table").id;
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (SYSCOLPARS, 1));
    let rowset = rowset.expect("syscolpars");
    let [id, utype] = ["id", "utype"].map(|name| {
        let column = database.columns[&SYSCOLPARS].iter().find(|column| column.name == name).expect("column").id;
        usize::from(rowset.layout.column(column).expect("column").place(Level::Leaf).0.unsigned_abs())
    });
    let unit = database.units[rowset.units[0]].id;
    for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
        let header = *Page::new(&image.page(page)).header();
        let in_use = image.page(1)[100 + page as usize] & 0x40 != 0;
        if in_use && header.page_type == 1 && header.alloc_unit() == unit {
            image.edit(page, |bytes| {
                for at in (0..header.slot_count.get()).map(|slot| offset_of(bytes, slot)).collect::<Vec<_>>() {
                    if bytes[at + id..at + id + 4] == table.to_le_bytes() {
                        bytes[at + utype..at + utype + 4].copy_from_slice(&9999i32.to_le_bytes());
                    }
                }
            });
        }
    }
    if image.check().findings.iter().all(|finding| finding.check.msg != 8992) {
        return Err("the type is known".into());
    }
    image.edit(9, |bytes| put16(bytes, 96 + 4, format::version::NEWEST + 1));
    sound_but(&image.check(), Some("message 8992"))
}

/// Tests a page on which a transaction has reserved bytes. These bytes are free only for that transaction, so it is
/// legal that the PFS page counts them as used.
fn reserved_bytes(image: &Image) -> Result<(), Failed> {
    let page = heap_page(image);
    let mut image = image.clone();
    image.edit(1, |bytes| bytes[100 + page as usize] = bytes[100 + page as usize] & !7 | 4);
    if image.check().findings.iter().all(|finding| finding.check.msg != 8914) {
        return Err("the page is full".into());
    }
    image.edit(page, |bytes| bytes.copy_within(28..30, 38));
    sound_but(&image.check(), None)
}

fn sound_but(report: &Report, not_verified: Option<&str>) -> Result<(), Failed> {
    if let Some(finding) = report.findings.first() {
        return Err(finding.text(&report.names()).into());
    }
    match not_verified {
        Some(what) if !report.not_verified.iter().chain(&report.notes).any(|entry| entry.what == what) => {
            Err(format!("{what} is not among {:?}", report.not_verified).into())
        }
        _ => Ok(()),
    }
}

/// Tests a file that shrinks while the check runs. The missing pages must give one read error and one item not
/// verified, and nothing else. Pages that were read before must still count.
fn shrinks(image: &Image) -> Result<(), Failed> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&image.bytes)?;
    let files = DataFiles::open(&[file.path().to_owned()]).map_err(|error| error.to_string())?;
    let database = catalog::load(&files);
    OpenOptions::new().write(true).open(file.path())?.set_len(image.bytes.len() as u64 / 2)?;
    let report = check::run(&files, &database, &Options::default(), &Silent);
    let told = report.read_errors.len() == 1 && report.read_errors[0].contains("shorter");
    if !told || report.complete() || report.statistics.rows == 0 {
        return Err(format!("{:?} {:?}", report.read_errors, report.not_verified).into());
    }
    sound_but(&report, Some("pages"))
}
