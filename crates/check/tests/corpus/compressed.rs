//! ROW and PAGE compression. No file with compressed rows is available, so the tests themselves compress the tables and
//! indexes of real files, with code (`writer`) that follows only the published description. Afterwards, sound databases
//! must still be sound, with at least as many verified values, and compressed indexes must match their uncompressed
//! tables. Damage must give exactly the documented messages.

mod values;
mod writer;

use std::collections::BTreeSet;

use catalog::{Database, Rowset};
use findings::Report;
use format::compressed::{CdRecord, CompressionInfo, Descriptor};
use format::{PageBytes, PageId};
use libtest_mimic::{Failed, Trial};

use self::values::Stored;
use self::writer::{Mode, compress, compress_changed, first_record, in_row_unit, leaf_pages, stored_order};
use crate::image::{Image, get16, offset_of, put_page, put16, slot_at};
use crate::subjects;

/// Files of several releases, with tables of many types, indexes on heaps and on clustered tables, and off-row values.
const SUBJECTS: [&str; 5] = [
    NORTHWIND,
    "Apress__pro-sql-server-2012-bi-solutions",
    "jdhj__edx",
    "aehyok__DotNetCore/database/database.rar.d/aehyokCore2.mdf",
    "tschareck__LinqWorkshop/NORTHWND.zip.d/NORTHWND.MDF",
];
const NORTHWIND: &str = "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF";

/// The rowsets to compress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Tables,
    Indexes,
    All,
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (subject, path) in crate::corpus().map(|corpus| real_subjects(&corpus)).unwrap_or_default() {
        for mode in [Mode::Row, Mode::Page] {
            for what in [What::Tables, What::Indexes, What::All] {
                let path = path.clone();
                let name = format!("compressed: {what:?} under {mode:?} compression stay sound: {subject}");
                trials.push(Trial::test(name, move || sound(&Image::load(&path), what, mode)));
            }
        }
    }
    for subject in [NORTHWIND, subjects::SHOP].into_iter().filter(|name| subjects::is_there(name)) {
        for (name, test) in
            DAMAGE.into_iter().filter(|(name, _)| subject == NORTHWIND || !NEEDS_NORTHWIND.contains(name))
        {
            let name = format!("compressed: {name} ({})", subjects::short(subject));
            trials.push(Trial::test(name, move || test(&subjects::image(subject))));
        }
    }
    trials
}

/// The subjects with their data files. If a subject is a folder, its first data file is used.
fn real_subjects(corpus: &crate::Corpus) -> Vec<(&'static str, std::path::PathBuf)> {
    SUBJECTS.iter().filter_map(|subject| Some((*subject, data_file(&corpus.files.join(subject))?))).collect()
}

fn data_file(path: &std::path::Path) -> Option<std::path::PathBuf> {
    if !path.is_dir() {
        let is_data = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mdf"));
        return is_data.then(|| path.to_owned());
    }
    let mut entries: Vec<_> = std::fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    entries.iter().find_map(|entry| data_file(entry))
}

fn is_user(database: &Database, rowset: &Rowset) -> bool {
    database.objects.get(&rowset.object_id).is_some_and(|object| object.type_code == "U")
}

/// Compresses all rowsets that can be compressed. Returns how many of them have rows.
fn compress_all(image: &mut Image, what: What, mode: Mode) -> usize {
    let database = image.database();
    let wanted = |rowset: &&Rowset| match what {
        What::Tables => rowset.index_id <= 1,
        What::Indexes => rowset.index_id > 1,
        What::All => true,
    };
    let mut compressed = 0;
    for rowset in database.rowsets.iter().filter(|rowset| is_user(&database, rowset)).filter(wanted) {
        if rowset.rows > 0 && compress(image, &database, rowset, mode) {
            compressed += 1;
        }
    }
    compressed
}

fn sound(original: &Image, what: What, mode: Mode) -> Result<(), Failed> {
    let before = original.check();
    let mut image = original.clone();
    let compressed = compress_all(&mut image, what, mode);

    if compressed < 3 {
        return Err(format!("only {compressed} rowsets could be compressed").into());
    }
    let report = image.check();
    silent(&report)?;
    let (now, then) = (&report.statistics, &before.statistics);
    // There may be more values than before, because the writer also writes the columns that old rows lack.
    let as_many = now.column_values_checked >= then.column_values_checked;
    if (now.rows, now.rows_checked) != (then.rows, then.rows_checked) || !as_many {
        return Err(format!("rows and values checked: {now:?}, before {then:?}").into());
    }
    // Everything that was verified before must still be verified, except for undocumented forms.
    let notes = |report: &Report| -> BTreeSet<String> {
        report.not_verified.iter().map(|note| format!("{} of {}: {}", note.what, note.scope, note.reason)).collect()
    };
    let published = notes(&before);
    let known = "the form of child pointers in compressed non-leaf rows is undocumented";
    let new: Vec<_> =
        notes(&report).into_iter().filter(|note| !published.contains(note) && !note.contains(known)).collect();
    if new.is_empty() { Ok(()) } else { Err(format!("not verified: {new:#?}").into()) }
}

fn silent(report: &Report) -> Result<(), Failed> {
    if report.findings.is_empty() {
        return Ok(());
    }
    let texts: Vec<_> = report.findings.iter().take(5).map(|finding| finding.text(&report.names())).collect();
    Err(format!("{} findings: {texts:#?}", report.findings.len()).into())
}

type Test = fn(&Image) -> Result<(), Failed>;

/// Tests that work only with the names, indexes and trees of Northwind.
const NEEDS_NORTHWIND: [&str; 4] = [
    "a changed value in the table",
    "a changed value in a compressed index",
    "a leaf that is lost",
    "text in no known form is not compared",
];

const DAMAGE: [(&str, Test); 18] = [
    ("a column descriptor without meaning", |image| {
        let mut subject = Subject::table(image, Mode::Row);
        let at = offset_of(&subject.page_bytes(), 2);
        subject.edit(|page| page[at + 2] = page[at + 2] & 0xF0 | 0x0D);
        subject.fails("Compressed record in slot 2", "CDEntry <= CD_DICTIONARY_SYMBOL", "Values are 13 and 12.")
    }),
    ("a column descriptor of a set bit in another column", |image| {
        let mut subject = Subject::table(image, Mode::Row);
        let at = offset_of(&subject.page_bytes(), 0);
        // The second column had a long value. Now its descriptor says that the value has no bytes. So the record stores
        // one long value more than its descriptors describe. No real record with this form was ever seen.
        subject.edit(|page| page[at + 2] = page[at + 2] & 0x0F | 0xB0);
        subject.is_silent_but("records of Suppliers.PK_Suppliers: the compressed rows have an undocumented form")
    }),
    ("more columns than the table", |image| {
        let mut subject = Subject::table(image, Mode::Row);
        let at = offset_of(&subject.page_bytes(), 0);
        subject.edit(|page| page[at + 1] += 1);
        subject.fails("Compressed record in slot 0", "cColumns <= cColumnsInRowset", "Values are 13 and 12.")
    }),
    ("long values that do not ascend", |image| {
        let mut subject = Subject::table(image, Mode::Row);
        let bytes = subject.page_bytes();
        let at = offset_of(&bytes, 0) + subject.record(&bytes, 0).parts().long_offsets_at.expect("long values");
        let (first, second) = (get16(&bytes, at), get16(&bytes, at + 2));
        subject.edit(|page| put16(page, at, second + 1));
        assert!(first < second);
        let values = format!("Values are {second} and {}.", second + 1);
        subject.fails("Compressed record in slot 0", "longOffset [i] >= priorOffset", &values)
    }),
    ("a row that runs into the next", |image| {
        let mut subject = Subject::table(image, Mode::Row);
        let bytes = subject.page_bytes();
        let record = subject.record(&bytes, 0);
        let count = record.columns().filter(|column| column.descriptor == Descriptor::Long).count();
        let at = offset_of(&bytes, 0) + record.parts().long_offsets_at.expect("long values") + 2 * (count - 1);
        let (end, length) = (get16(&bytes, at), record.bytes().len());
        subject.edit(|page| put16(page, at, (end & 0x8000) | 0x7000));
        let over = length + 0x7000 - usize::from(end & 0x7FFF);
        let values = format!("Values are {over} and {length}.");
        subject.fails("Compressed record in slot 0", "longDataEnd <= (nextRec - pRec)", &values)
    }),
    ("a symbol beyond the dictionary", |image| {
        let mut subject = Subject::table(image, Mode::Page);
        let (slot, at) = subject.find(|column| column == Descriptor::Symbol, |_| true);
        let entries = subject.info(&subject.page_bytes()).entries();
        subject.edit(|page| page[at] = 0xFE);
        let values = format!("Values are 254 and {entries}.");
        subject.fails(&format!("Compressed record in slot {slot}"), "symbol < cDictionaryEntries", &values)
    }),
    ("a prefix longer than its anchor", |image| {
        let mut subject = Subject::table(image, Mode::Page);
        // The second column, the company's name, has an anchor with which its values are combined.
        let (slot, at) = subject.find(|column| column == Descriptor::Long, |column| column == 1);
        subject.edit(|page| page[at] = 0x7F);
        subject.fails(
            &format!("Compressed record in slot {slot}"),
            "prefixLength <= anchorLength",
            "Values are 127 and ",
        )
    }),
    ("an anchor with a column too many", |image| {
        let mut subject = Subject::table(image, Mode::Page);
        subject.edit(|page| page[96 + 7 + 1] += 1);
        subject.fails("Compression information", "cColumns <= cColumnsInRowset", "Values are 13 and 12.")
    }),
    ("compression information larger than its place", |image| {
        let mut subject = Subject::table(image, Mode::Page);
        let room = first_record(&subject.page_bytes()) - 96;
        subject.edit(|page| put16(page, 96 + 5, room as u16 + 1));
        let values = format!("Values are {} and {room}.", room + 1);
        subject.fails("Compression information", "CI size <= first record - PAGEHEADSIZE", &values)
    }),
    ("a dictionary whose entries do not ascend", |image| {
        let mut subject = Subject::table(image, Mode::Page);
        let at = 96 + usize::from(get16(&subject.page_bytes(), 96 + 3)) + 2;
        subject.edit(|page| put16(page, at, 1));
        subject.fails("Compression information", "dictionaryOffset [i] >= priorOffset", "Values are 1 and ")
    }),
    ("a changed value in the table", |image| {
        let mut subject = Subject::table(image, Mode::Row);
        let bytes = subject.page_bytes();
        let name = subject.record(&bytes, 0).columns().nth(1).expect("name").bytes;
        let at = name.as_ptr() as usize - bytes.as_ptr() as usize;
        subject.edit(|page| page[at] = b'X');
        subject.has(&[8951, 8952, 8955, 8956], &["CompanyName = 'Xxotic Liquids'", "CompanyName = 'Exotic Liquids'"])
    }),
    ("a changed value in a compressed index", |image| {
        let mut subject = Subject::new(image, "CompanyName", Mode::Row);
        let bytes = subject.page_bytes();
        let name = subject.record(&bytes, 5).columns().next().expect("name").bytes;
        let at = name.as_ptr() as usize - bytes.as_ptr() as usize + name.len() - 2;
        let found = bytes[at];
        subject.edit(|page| page[at] = found ^ 1);
        subject.has(&[8951, 8952, 8955, 8956], &[])
    }),
    ("keys out of order", |image| {
        let mut subject = Subject::table(image, Mode::Page);
        subject.edit(|page| {
            let (a, b) = (get16(page, slot_at(3)), get16(page, slot_at(4)));
            put16(page, slot_at(3), b);
            put16(page, slot_at(4), a);
        });
        subject.has(&[2511], &["(1:"])
    }),
    ("values that their columns do not allow", |image| {
        let (mut image, order) = (image.clone(), |name| Subject::number(image, name));
        let (id, name, phone) = (order("SupplierID"), order("CompanyName"), order("Phone"));
        let change = move |row: usize, values: &mut Vec<Stored>| match row {
            1 => values[name] = Stored::Null,
            2 => values[id] = Stored::Bytes(vec![0x81, 1, 2, 3, 4]),
            3 => values[phone] = Stored::Bytes(vec![b'1'; 51]),
            _ => {}
        };
        Subject::compress(&mut image, 1, Mode::Row, &change);
        let report = image.check();
        // The rows without a name or an ID differ from their index rows.
        let messages: BTreeSet<_> = report.findings.iter().map(|finding| finding.check.msg).collect();
        let texts = texts(&report);
        let wanted = [
            "page (1:",
            "Column 'CompanyName' was created NOT NULL, but is NULL",
            "Valid length of column 'SupplierID') failed. The values are 5 and 4.",
            "Valid length of column 'Phone') failed. The values are 102 and 48.",
        ];
        match wanted.iter().find(|wanted| !texts.contains(**wanted)) {
            Some(missing) => Err(format!("no {missing} in {texts}").into()),
            None if messages.contains(&8951) => Err(format!("rows of which not all is known: {texts}").into()),
            None => Ok(()),
        }
    }),
    ("a previous pointer that skips a page", |image| {
        let (mut image, leaves) = compressed_leaves(image);
        image.edit(leaves[3], |page| put_page(page, 8, PageId::new(1, leaves[1])));
        messages(&image.check(), &[8936])
    }),
    ("a leaf that is lost", |image| {
        let (mut image, leaves) = compressed_leaves(image);
        image.edit(leaves[3], |page| page[0] = 7);
        // It is undocumented how a compressed parent row stores the page number of its child, but the neighbors show
        // that the leaf is missing.
        messages(&image.check(), &[8928, 8939, 8978, 8981])
    }),
    ("base tables are read all the same", |original| {
        let mut image = original.clone();
        let before = original.database();
        for table in [23, 24, 34, 41, 54, 55, 60, 64] {
            let is = |rowset: &&Rowset| (rowset.object_id, rowset.index_id) == (table, 1);
            let rowset = before.rowsets.iter().find(is).expect("base table");
            assert!(compress(&mut image, &before, rowset, Mode::Page), "{table}");
        }
        let after = image.database();
        let facts = |database: &Database| {
            let Database { objects, schemas, indexes, columns, index_columns, expressions, .. } = database;
            format!("{objects:?}{schemas:?}{indexes:?}{columns:?}{index_columns:?}{expressions:?}")
        };
        assert_eq!(after.gaps.len(), 0);
        assert!(facts(&after) == facts(&before));
        silent(&image.check())
    }),
    ("text in no known form is not compared", |image| {
        let (mut image, name) = (image.clone(), Subject::number(image, "CompanyName"));
        let change = move |row: usize, values: &mut Vec<Stored>| {
            if row == 1 {
                values[name] = Stored::Bytes(vec![0x0C]);
            }
        };
        Subject::compress(&mut image, 1, Mode::Row, &change);
        let report = image.check();
        silent(&report)?;
        noted(&report, "column values of Suppliers.PK_Suppliers.CompanyName")?;
        noted(&report, "index rows against table rows of Suppliers.CompanyName")
    }),
];

/// The database with its largest clustered index compressed, and the leaf pages of that index.
fn compressed_leaves(image: &Image) -> (Image, Vec<u32>) {
    let mut image = image.clone();
    let (database, tree) = (image.database(), image.tree(true));
    let rowset = database.rowset_of(&tree.unit).expect("rowset");
    assert!(compress(&mut image, &database, rowset, Mode::Page));
    (image, tree.leaves)
}

/// Asserts that the report has exactly these message numbers.
fn messages(report: &Report, messages: &[u16]) -> Result<(), Failed> {
    let mut found: Vec<u16> = report.findings.iter().map(|finding| finding.check.msg).collect();
    found.sort_unstable();
    if found == messages { Ok(()) } else { Err(format!("{found:?} {}", texts(report)).into()) }
}

/// A database in which the table Suppliers or one of its indexes is compressed, and the only leaf page of the
/// compressed rowset.
struct Subject {
    image: Image,
    page: u32,
    columns: usize,
}

impl Subject {
    fn table(image: &Image, mode: Mode) -> Self {
        Self::new(image, "PK_Suppliers", mode)
    }

    fn new(image: &Image, index: &str, mode: Mode) -> Self {
        let mut image = image.clone();
        let database = image.database();
        let object = Self::object(&database);
        let index = database.indexes.values().find(|row| row.object_id == object && row.name == index).expect("index");
        let (page, columns) = Self::compress(&mut image, index.index_id, mode, &|_, _| {});
        Self { image, page, columns }
    }

    fn object(database: &Database) -> i32 {
        database.objects.values().find(|object| object.name == "Suppliers").expect("table").id
    }

    fn rowset(database: &Database, index_id: i32) -> &Rowset {
        let object = Self::object(database);
        let is = |rowset: &&Rowset| (rowset.object_id, rowset.index_id) == (object, index_id);
        database.rowsets.iter().find(is).expect("rowset")
    }

    fn compress(
        image: &mut Image,
        index_id: i32,
        mode: Mode,
        change: &dyn Fn(usize, &mut Vec<Stored>),
    ) -> (u32, usize) {
        let database = image.database();
        let rowset = Self::rowset(&database, index_id);
        assert!(compress_changed(image, &database, rowset, mode, change));
        let pages = leaf_pages(image, in_row_unit(&database, rowset).expect("unit"), index_id);
        (pages[0], rowset.layout.columns.len())
    }

    /// The position of a column in the compressed rows of the table.
    fn number(image: &Image, name: &str) -> usize {
        let database = image.database();
        let column = database.columns[&Self::object(&database)].iter().find(|column| column.name == name);
        let id = column.expect("column").id;
        stored_order(Self::rowset(&database, 1)).iter().position(|column| column.id == id).expect("stored")
    }

    fn page_bytes(&self) -> PageBytes {
        self.image.page(self.page)
    }

    fn edit(&mut self, change: impl FnOnce(&mut PageBytes)) {
        self.image.edit(self.page, change);
    }

    fn record<'a>(&self, bytes: &'a PageBytes, slot: u16) -> CdRecord<'a> {
        CdRecord::read(&bytes[offset_of(bytes, slot)..], self.columns).expect("record")
    }

    fn info<'a>(&self, bytes: &'a PageBytes) -> CompressionInfo<'a> {
        CompressionInfo::read(&bytes[96..first_record(bytes)], self.columns).expect("compression information")
    }

    /// Finds the first value that has bytes and whose descriptor satisfies `how` and whose column number satisfies
    /// `which`. Returns its slot, and the offset of its bytes on the page.
    fn find(&self, how: impl Fn(Descriptor) -> bool, which: impl Fn(usize) -> bool) -> (u16, usize) {
        let bytes = self.page_bytes();
        for slot in 0..get16(&bytes, 22) {
            for (number, column) in self.record(&bytes, slot).columns().enumerate() {
                if how(column.descriptor) && which(number) && !column.bytes.is_empty() {
                    return (slot, column.bytes.as_ptr() as usize - bytes.as_ptr() as usize);
                }
            }
        }
        panic!("no such value on the page")
    }

    /// Asserts that the audit of the page fails with the internal test `test`, and that 8928 is the only other message.
    fn fails(&self, part: &str, test: &str, values: &str) -> Result<(), Failed> {
        let report = self.image.check();
        let text =
            format!("{part} is invalid for compressed page; the following internal test failed: {test}. {values}");
        let messages: Vec<_> = report.findings.iter().map(|finding| finding.check.msg).collect();
        let texts = texts(&report);
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        if sorted == [5274, 8928] && texts.contains(&text) {
            Ok(())
        } else {
            Err(format!("{messages:?} {texts}").into())
        }
    }

    /// Asserts that the report has exactly these message numbers, and that these texts occur in the messages.
    fn has(&self, expected: &[u16], wanted: &[&str]) -> Result<(), Failed> {
        let report = self.image.check();
        messages(&report, expected)?;
        let texts = texts(&report);
        if wanted.iter().all(|wanted| texts.contains(wanted)) { Ok(()) } else { Err(texts.into()) }
    }

    fn is_silent_but(&self, note: &str) -> Result<(), Failed> {
        let report = self.image.check();
        silent(&report)?;
        noted(&report, note)
    }
}

fn texts(report: &Report) -> String {
    report.findings.iter().map(|finding| finding.text(&report.names()) + "\n").collect()
}

/// Asserts that an entry that begins with this text is listed as not verified.
fn noted(report: &Report, wanted: &str) -> Result<(), Failed> {
    let notes = report.not_verified.iter().map(|note| format!("{} of {}: {}", note.what, note.scope, note.reason));
    let notes: Vec<_> = notes.collect();
    if notes.iter().any(|note| note.starts_with(wanted)) { Ok(()) } else { Err(format!("{notes:#?}").into()) }
}
