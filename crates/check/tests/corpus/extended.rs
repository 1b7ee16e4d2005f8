//! Indexed views and XML indexes. Their rowsets are checked like the rowsets of any table. With extended logical
//! checks, the XML documents of a table are also compared with the table's XML index (8907, 8908).

use catalog::{Database, Level, RowsetColumn, Stored, UnitKind};
use findings::{Options, Report};
use format::Page;
use format::record::Record;
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::image::{Image, children, get16, offset_of, put16, slot_at};

const FILES: [&str; 2] = [
    "EugeneSu0515__t4CodeTemplate/AdventureWorksLT2008_Data.zip.d/AdventureWorksLT2008_Data.mdf",
    "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf",
];
const TABLE: &str = "ProductModel";
const DOCUMENT: &str = "CatalogDescription";

/// Changes the image. Returns the number of each expected message, and part of its text.
type Change = fn(&mut Image) -> Vec<(u16, String)>;

/// One test per change and file.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let kinds: Vec<(&str, Change)> = vec![
        ("sound", |_| Vec::new()),
        ("a document without nodes", |image| {
            // Turns a NULL into an empty document, for which the index has no nodes.
            let spot = document(image, |stored| stored == Stored::Null);
            image.edit(spot.page, |bytes| spot.flip_null(bytes));
            vec![(8908, format!("'sys.{}'", nodes(&image.database())))]
        }),
        ("nodes without a document", |image| {
            let spot = document(image, |stored| matches!(stored, Stored::Plain(bytes) if !bytes.is_empty()));
            image.edit(spot.page, |bytes| {
                spot.flip_null(bytes);
                spot.shorten(bytes, 0);
            });
            vec![(8907, format!("'sys.{}'", nodes(&image.database())))]
        }),
        ("rows of a view out of order", |image| {
            swap(image, |database, object| database.objects.get(&object).is_some_and(|object| object.type_code == "V"))
        }),
        ("nodes out of order", |image| {
            swap(image, |database, object| {
                database.objects.get(&object).is_some_and(|object| object.name == nodes(database))
            })
        }),
    ];
    let mut trials = Vec::new();
    for (name, change) in kinds {
        for file in FILES {
            let corpus = corpus.clone();
            let version = file.rsplit('/').next().unwrap_or_default();
            trials.push(Trial::test(format!("extended: {name} ({version})"), move || {
                let mut image = Image::load(&corpus.files.join(file));
                let expected = change(&mut image);
                let options = Options { extended_logical_checks: true, ..Options::default() };
                agree(&image.check_with(&options), &expected)?;
                // Without the option for extended logical checks, documents are not compared with the index.
                let others: Vec<_> = expected.into_iter().filter(|(msg, _)| !matches!(msg, 8907 | 8908)).collect();
                messages_agree(&image.check(), &others)
            }));
        }
    }
    let file = corpus.files.join(FILES[0]);
    trials.push(Trial::test("extended: the nodes of a document with only a header are unknown", move || {
        let mut image = Image::load(&file);
        let spot = document(&image, |stored| matches!(stored, Stored::Plain(bytes) if !bytes.is_empty()));
        image.edit(spot.page, |bytes| spot.shorten(bytes, 5));
        let report = image.check_with(&Options { extended_logical_checks: true, ..Options::default() });
        messages_agree(&report, &[])?;
        match report.not_verified.iter().any(|entry| entry.what == "extended logical checks" && entry.count == 1) {
            true => Ok(()),
            false => Err(format!("{:?}", report.not_verified).into()),
        }
    }));
    trials
}

struct Spot {
    page: u32,
    /// Offset of the record on its page.
    at: usize,
    column: RowsetColumn,
}

impl Spot {
    fn flip_null(&self, bytes: &mut format::PageBytes) {
        let bitmap = self.at + usize::from(get16(bytes, self.at + 2)) + 2;
        let bit = usize::from(self.column.leaf_null_bit - 1);
        bytes[bitmap + bit / 8] ^= 1 << (bit % 8);
    }

    /// Shortens the document, which is the last variable column, to its first `keep` bytes.
    fn shorten(&self, bytes: &mut format::PageBytes, keep: u16) {
        let record = Record::data(&bytes[self.at..]).expect("record");
        let number = record.variable_count();
        let length = record.variable(number).expect("document").0.len() as u16;
        assert_eq!(number, self.column.leaf_offset.unsigned_abs(), "the last column");
        let ends = self.at + usize::from(record.fixed_end()) + 4 + usize::from(record.column_count()).div_ceil(8);
        let before = get16(bytes, ends + 2 * usize::from(number) - 4);
        put16(bytes, ends + 2 * usize::from(number) - 2, before + keep);
        put16(bytes, 28, get16(bytes, 28) + length - keep);
    }
}

/// The name of the internal table of the XML index.
fn nodes(database: &Database) -> String {
    let nodes = database.objects.values().find(|object| object.name.starts_with("xml_index_nodes_"));
    nodes.expect("nodes").name.clone()
}

/// The leaf pages of the clustered index of an object.
fn leaves(image: &Image, object_id: i32) -> Vec<u32> {
    let database = image.database();
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object_id, 1));
    let units = rowset.expect("rowset").units.iter().map(|unit| &database.units[*unit]);
    let root = units.filter(|unit| unit.kind == UnitKind::InRow).map(|unit| unit.root.page).next().expect("root");
    let page = image.page(root);
    if Page::new(&page).header().page_type == 1 { vec![root] } else { children(&page) }
}

/// The place of the first document that satisfies `wanted`.
fn document(image: &Image, wanted: impl Fn(Stored<'_>) -> bool) -> Spot {
    let database = image.database();
    let table = database.objects.values().find(|object| object.name == TABLE).expect("table").id;
    let id = database.columns[&table].iter().find(|column| column.name == DOCUMENT).expect("column").id;
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (table, 1));
    let column = rowset.expect("rowset").layout.column(id).expect("column");
    for page in leaves(image, table) {
        let bytes = image.page(page);
        for slot in 0..Page::new(&bytes).header().slot_count.get() {
            let at = offset_of(&bytes, slot);
            let record = Record::data(&bytes[at..]).expect("record");
            if wanted(column.stored(Level::Leaf, &record)) {
                return Spot { page, at, column: column.clone() };
            }
        }
    }
    panic!("no such document")
}

/// Swaps two rows on a leaf page.
fn swap(image: &mut Image, wanted: fn(&Database, i32) -> bool) -> Vec<(u16, String)> {
    let database = image.database();
    let rowset = database.rowsets.iter().find(|rowset| rowset.index_id == 1 && wanted(&database, rowset.object_id));
    let object = rowset.expect("rowset").object_id;
    let page = leaves(image, object)[1];
    image.edit(page, |bytes| {
        let (fourth, fifth) = (get16(bytes, slot_at(4)), get16(bytes, slot_at(5)));
        put16(bytes, slot_at(4), fifth);
        put16(bytes, slot_at(5), fourth);
    });
    vec![(2511, format!("Object ID {object}, index ID 1"))]
}

fn messages_agree(report: &Report, expected: &[(u16, String)]) -> Result<(), Failed> {
    let found: Vec<(u16, String)> =
        report.findings.iter().map(|finding| (finding.check.msg, finding.text(&report.names()))).collect();
    let is_expected = |(msg, text): &(u16, String)| expected.iter().any(|(at, part)| at == msg && text.contains(part));
    let is_found = |(msg, part): &(u16, String)| found.iter().any(|(at, text)| at == msg && text.contains(part));
    match found.iter().all(is_expected) && expected.iter().all(is_found) {
        true => Ok(()),
        false => Err(format!("found {found:#?}\nexpected {expected:#?}").into()),
    }
}

fn agree(report: &Report, expected: &[(u16, String)]) -> Result<(), Failed> {
    messages_agree(report, expected)?;
    let told = |part: &str| {
        let of_extended = |what: &str| what == "extended logical checks";
        report.not_verified.iter().any(|entry| of_extended(&entry.what) && entry.scope.contains(part))
    };
    match told("vProductAndDescription") && told("PXML_ProductModel_CatalogDescription") {
        true => Ok(()),
        false => Err(format!("not reported: {:?}", report.not_verified).into()),
    }
}
