//! Checks that go beyond CHECKDB: constraints that rows violate, and identity columns whose current value is behind the
//! values of their rows.

use catalog::{Database, Level, Rowset, Stored, UnitKind};
use findings::{Options, Report};
use format::boot::status::CLEAN_SHUTDOWN;
use format::page::PAGE_BYTES;
use format::record::Record;
use format::{AllocUnitId, Page, PageBytes, PageType};
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::damage::subject;
use crate::image::{Image, offset_of};
use crate::subjects;

/// Changes the image. Returns the expected findings in order. Each finding is given as a list of texts that its message
/// must contain.
type Damage = fn(&mut Image) -> Vec<Vec<String>>;

/// Changes the image. Returns the reason why a constraint is not verified after the change; `None` if all constraints
/// are still verified.
type Legal = fn(&mut Image) -> Option<&'static str>;

fn all(max_threads: usize) -> Options {
    Options { constraints: true, identities: true, max_threads, ..Options::default() }
}

/// Tests on lab databases: a changed key or value must be reported as a violated constraint.
pub fn lab_trials() -> Vec<Trial> {
    const CASES: [(&str, &str, i32, [&str; 2]); 2] = [
        (
            "a key that refers to no row",
            "ProductModelID",
            99_999,
            ["FK_Product_ProductModel_ProductModelID", "[ProductModelID] = '99999'. Rows that violate it: 1."],
        ),
        ("a value that a condition forbids", "ListPrice", -5, ["CK_Product_ListPrice", "[ListPrice] = '-5'"]),
    ];
    let trial = |(name, column, value, parts): (&str, &'static str, i32, [&'static str; 2])| {
        Trial::test(format!("beyond: {name} (lab shop)"), move || {
            let mut image = subjects::image(subjects::SHOP);
            let place = Place::of(&image, "Product", column, 7);
            image.edit(place.page, |bytes| bytes[place.at..place.at + 4].copy_from_slice(&value.to_le_bytes()));
            let report = image.check_with(&all(1));
            let texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
            let row = format!("row (1:{}:{})", place.page, place.slot);
            let is = |text: &String| text.contains(&row) && parts.iter().all(|part| text.contains(part));
            if texts.len() == 1 && texts.iter().all(is) { Ok(()) } else { Err(format!("{texts:#?}").into()) }
        })
    };
    CASES.into_iter().map(trial).collect()
}

/// One test per change.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = vec![all_constraints(corpus.clone())];
    for (name, damage) in damages() {
        let corpus = corpus.clone();
        trials.push(Trial::test(format!("beyond: {name}"), move || {
            let mut image = subject(&corpus);
            let expected = damage(&mut image);
            let one = texts(&image.check_with(&all(1)));
            let many = texts(&image.check_with(&Options { batches: 3, ..all(5) }));
            if one != many {
                return Err(format!("depends on the threads: {one:?}, {many:?}").into());
            }
            let is = |(text, parts): (&String, &Vec<String>)| parts.iter().all(|part| text.contains(part));
            match one.len() == expected.len() && one.iter().zip(&expected).all(is) {
                true => Ok(()),
                false => Err(format!("expected {expected:#?}, found {one:#?}").into()),
            }
        }));
    }
    for (name, change) in legals() {
        let corpus = corpus.clone();
        trials.push(Trial::test(format!("beyond: {name}"), move || {
            let mut image = subject(&corpus);
            let reason = change(&mut image);
            silent(&image.check_with(&all(0)), reason)
        }));
    }
    let corpus = corpus.clone();
    trials.push(Trial::test("beyond: an identity column below its rows is reported, without a finding", move || {
        let mut image = subject(&corpus);
        lower_identity(&mut image, 11_382, 11_000);
        let report = image.check_with(&all(0));
        silent(&report, None)?;
        let behind: Vec<&findings::IdentityResult> =
            report.beyond.identities.iter().filter(|result| result.is_behind()).collect();
        match behind.as_slice() {
            [only] if only.column == "AddressID" && only.current() == Some(11_000) && only.farthest == Some(11_382) => {
                Ok(())
            }
            other => Err(format!("{other:?}").into()),
        }
    }));
    trials
}

fn damages() -> Vec<(&'static str, Damage)> {
    vec![
        ("a key that refers to no row", |image| {
            let place = Place::of(image, "Product", "ProductModelID", 7);
            image.edit(place.page, |bytes| bytes[place.at..place.at + 4].copy_from_slice(&99_999_u32.to_le_bytes()));
            vec![vec![
                "'FK_Product_ProductModel_ProductModelID' of table 'SalesLT.Product'".to_owned(),
                format!("row (1:{}:{}) refers to no row of table 'SalesLT.ProductModel'", place.page, place.slot),
                "[ProductModelID] = '99999'. Rows that violate it: 1.".to_owned(),
            ]]
        }),
        ("a value that a condition forbids", |image| {
            let place = Place::of(image, "Product", "ListPrice", 3);
            image.edit(place.page, |bytes| {
                bytes[place.at..place.at + 8].copy_from_slice(&(-12_345_i64).to_le_bytes());
            });
            vec![vec![
                "'CK_Product_ListPrice' of table 'SalesLT.Product'".to_owned(),
                format!("row (1:{}:{}): [ListPrice] = '-1.2345'", place.page, place.slot),
            ]]
        }),
        ("two rows that violate one constraint are counted", |image| {
            let places = [2, 5].map(|row| Place::of(image, "Product", "StandardCost", row));
            for place in &places {
                image.edit(place.page, |bytes| bytes[place.at + 7] = 0x80);
            }
            let part = "Rows that violate it: 2.".to_owned();
            vec![vec!["CK_Product_StandardCost".to_owned(), part.clone()], vec![part]]
        }),
    ]
}

fn legals() -> Vec<(&'static str, Legal)> {
    vec![
        ("a key with NULL demands nothing", |image| {
            let place = Place::of(image, "Product", "ProductModelID", 7);
            image.edit(place.page, |bytes| place.set_null(bytes));
            None
        }),
        ("a condition that is UNKNOWN holds", |image| {
            // The condition of CK_Product_Weight is ([Weight]>(0.00)).
            let place = Place::of(image, "Product", "Weight", 4);
            image.edit(place.page, |bytes| place.set_null(bytes));
            None
        }),
        ("a constraint that is not trusted claims nothing", |image| {
            let place = Place::of(image, "Product", "ProductModelID", 7);
            image.edit(place.page, |bytes| bytes[place.at..place.at + 4].copy_from_slice(&99_999_u32.to_le_bytes()));
            set_status(image, "FK_Product_ProductModel_ProductModelID", 0x400);
            None
        }),
        ("a status of unknown meaning is not trusted", |image| {
            set_status(image, "FK_Product_ProductModel_ProductModelID", 0x0100_0000);
            Some("the status 0x1000000 of the constraint has bits")
        }),
        ("rows that a damaged page has lost are not missed", |image| {
            let place = Place::of(image, "ProductModel", "ProductModelID", 3);
            image.edit_unsealed(place.page, |bytes| bytes.fill(0));
            Some("a table of the constraint is damaged")
        }),
        ("the log may hold the row referred to", |image| {
            let place = Place::of(image, "Product", "ProductModelID", 7);
            image.edit(place.page, |bytes| bytes[place.at..place.at + 4].copy_from_slice(&99_999_u32.to_le_bytes()));
            image.edit(9, |bytes| {
                let status = u32::from_le_bytes([bytes[132], bytes[133], bytes[134], bytes[135]]) & !CLEAN_SHUTDOWN;
                bytes[132..136].copy_from_slice(&status.to_le_bytes());
            });
            Some("may explain the reported errors")
        }),
    ]
}

/// Tests that a row is reported if it violates an untrusted or disabled constraint and the check of all constraints is
/// requested.
fn all_constraints(corpus: Corpus) -> Trial {
    Trial::test("beyond: a constraint that is not trusted is checked when all are asked for", move || {
        let mut image = subject(&corpus);
        let place = Place::of(&image, "Product", "ProductModelID", 7);
        image.edit(place.page, |bytes| bytes[place.at..place.at + 4].copy_from_slice(&99_999_u32.to_le_bytes()));
        for (status, standing) in [(0x400, "is not trusted, but"), (0x500, "is disabled, but")] {
            set_status(&mut image, "FK_Product_ProductModel_ProductModelID", status);
            if !texts(&image.check_with(&all(1))).is_empty() {
                return Err("it was not asked for".into());
            }
            let texts = texts(&image.check_with(&Options { all_constraints: true, ..all(1) }));
            if texts.len() != 1 || !texts.iter().all(|text| text.contains(standing)) {
                return Err(format!("{standing}: {texts:#?}").into());
            }
        }
        Ok(())
    })
}

/// The texts of the findings about constraints.
fn texts(report: &Report) -> Vec<String> {
    let constraints = report.findings.iter().filter(|finding| finding.check.msg == 547);
    constraints.map(|finding| finding.text(&report.names())).collect()
}

/// Asserts that no constraint is reported as violated. If `reason` is given, a constraint must be listed as not
/// verified for this reason.
fn silent(report: &Report, reason: Option<&str>) -> Result<(), Failed> {
    let found = texts(report);
    let told = |reason: &str| report.not_verified.iter().any(|entry| entry.reason.contains(reason));
    let unverified = report.beyond.constraints.iter().filter(|result| result.is_trusted && !result.is_verified);
    match (found.first(), reason) {
        (Some(text), _) => Err(text.as_str().into()),
        (None, Some(reason)) if !told(reason) => Err(format!("not reported: {reason}").into()),
        (None, None) if unverified.count() > 0 => Err("a constraint is not verified".into()),
        _ if report.beyond.constraints.len() != 25 => Err("not all constraints are listed".into()),
        _ => Ok(()),
    }
}

/// The place of a fixed column of a row.
struct Place {
    page: u32,
    slot: u16,
    at: usize,
    null_bit: u16,
    bitmap: usize,
}

impl Place {
    fn set_null(&self, bytes: &mut PageBytes) {
        let bit = usize::from(self.null_bit - 1);
        bytes[self.bitmap + bit / 8] |= 1 << (bit % 8);
    }

    /// Finds the column in the row with index `row`. Only the rows in which the column is not NULL are counted, in page
    /// and slot order.
    fn of(image: &Image, table: &str, column: &str, row: usize) -> Self {
        let database = image.database();
        let object = database.objects.values().find(|object| object.name == table && object.type_code == "U");
        let object = object.expect("table").id;
        let id = database.columns[&object].iter().find(|known| known.name == column).expect("column").id;
        let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object, 1));
        let rowset = rowset.expect("clustered index");
        let column = rowset.layout.column(id).expect("column").clone();
        let unit = in_row(&database, rowset);
        let mut left = row;
        for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
            let bytes = image.page(page);
            let header = *Page::new(&bytes).header();
            let in_use = image.page(1)[100 + page as usize] & 0x40 != 0;
            if header.kind() != Some(PageType::Data) || header.alloc_unit() != unit || !in_use {
                continue;
            }
            for slot in 0..header.slot_count.get() {
                let at = offset_of(&bytes, slot);
                let record = Record::data(&bytes[at..]).expect("record");
                if !matches!(column.stored(Level::Leaf, &record), Stored::Plain(_)) {
                    continue;
                }
                if left == 0 {
                    let fixed_end = usize::from(u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]));
                    return Self {
                        page,
                        slot,
                        at: at + usize::from(column.leaf_offset.unsigned_abs()),
                        null_bit: column.leaf_null_bit,
                        bitmap: at + fixed_end + 2,
                    };
                }
                left -= 1;
            }
        }
        panic!("no such row")
    }
}

/// The in-row unit of a rowset.
fn in_row(database: &Database, rowset: &Rowset) -> AllocUnitId {
    let units = rowset.units.iter().map(|unit| &database.units[*unit]);
    units.filter(|unit| unit.kind == UnitKind::InRow).map(|unit| unit.id).next().expect("in-row unit")
}

/// Sets sysschobjs.status of a constraint.
fn set_status(image: &mut Image, name: &str, status: u32) {
    let database = image.database();
    let constraint = database.constraints.iter().find(|constraint| constraint.name == name).expect("constraint").id;
    let id = database.columns[&34].iter().find(|column| column.name == "status").expect("column").id;
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (34, 1)).expect("rowset");
    let at = usize::from(rowset.layout.column(id).expect("column").leaf_offset.unsigned_abs());
    image.edit_object(constraint, |row| row[at..at + 4].copy_from_slice(&status.to_le_bytes()));
}

/// Lowers the current value of an IDENTITY(1,1) column in the catalog. The column is found by its current value,
/// `from`.
fn lower_identity(image: &mut Image, from: u32, to: u32) {
    let mark = |current: u32| [current, 1, 1].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let database = image.database();
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (41, 1)).expect("rowset");
    let unit = in_row(&database, rowset);
    for page in 0..(image.bytes.len() / PAGE_BYTES) as u32 {
        let bytes = image.page(page);
        let header = *Page::new(&bytes).header();
        let in_use = image.page(1)[100 + page as usize] & 0x40 != 0;
        if header.kind() != Some(PageType::Data) || header.alloc_unit() != unit || !in_use {
            continue;
        }
        for slot in 0..header.slot_count.get() {
            let start = offset_of(&bytes, slot);
            let record = Record::data(&bytes[start..]).expect("record").bytes();
            if let Some(at) = record.windows(12).position(|window| window == mark(from)).map(|at| start + at) {
                return image.edit(page, |bytes| bytes[at..at + 12].copy_from_slice(&mark(to)));
            }
        }
    }
    panic!("no identity column is at {from}")
}
