//! Values that look wrong but are legal or cannot be proven wrong, and contradictions that do prove a value wrong.

use catalog::Stored;
use findings::Report;
use format::types::xtype;
use libtest_mimic::{Failed, Trial};

use super::{Spot, spots};
use crate::image::Image;
use crate::subjects;

/// One test per fact.
pub(super) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Failed>| Trial::test(format!("legal: {name}"), test);
    vec![
        trial("bytes that a variable column keeps under its NULL mean nothing", kept),
        trial("an index that holds the value contradicts the NULL over it", contradicted),
        trial("a decimal of zero has the sign of a positive number", zeros),
    ]
}

/// Sets a column of a row of the table `notes` to NULL but leaves its bytes and its end offset unchanged.
fn set_to_null(image: &mut Image, column: &str) -> Spot {
    let found = spots(image, |free, table, stored| {
        free.leaf_offset < 0 && table.name == "free" && matches!(stored, Stored::Plain(bytes) if bytes.len() > 3)
    });
    let row = &found[found.len() / 2];
    let database = image.database();
    let object = database.objects.values().find(|object| object.name == "notes").expect("table").id;
    let id = database.columns[&object].iter().find(|of_table| of_table.name == column).expect("column").id;
    let rowset = database.rowsets.iter().find(|rowset| (rowset.object_id, rowset.index_id) == (object, 1));
    let column = rowset.expect("rowset").layout.column(id).expect("column").clone();
    let spot = Spot { column, ..row.clone() };
    image.edit(spot.page, |bytes| spot.flip_null(bytes));
    spot
}

fn messages(report: &Report) -> Vec<u16> {
    report.findings.iter().map(|finding| finding.check.msg).collect()
}

/// Rows in which a NULL keeps its old bytes are legal, because servers write them: docs/format/records.md.
fn kept() -> Result<(), Failed> {
    let mut image = subjects::image(subjects::NOTES);
    let sound = image.check();
    if !sound.findings.is_empty() || !sound.not_verified.is_empty() {
        return Err(format!("before: {:?} {:?}", sound.findings, sound.not_verified).into());
    }
    set_to_null(&mut image, "free");
    let report = image.check();
    match report.findings.is_empty() && report.not_verified.is_empty() && report.complete() {
        true => Ok(()),
        false => Err(format!("{:?} {:?}", report.findings, report.not_verified).into()),
    }
}

fn contradicted() -> Result<(), Failed> {
    let mut image = subjects::image(subjects::NOTES);
    let spot = set_to_null(&mut image, "indexed");
    let report = image.check();
    let places: Vec<_> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    // The table row, now NULL, has no index row, and the index row with the old value has no table row.
    let of_row = |text: &String| text.contains(&format!("(1:{}:{})", spot.page, spot.slot));
    match messages(&report) == [8951, 8955, 8952, 8956] && places.iter().any(of_row) {
        true => Ok(()),
        false => Err(format!("{places:#?}").into()),
    }
}

fn zeros() -> Result<(), Failed> {
    for (sign, expected) in [(1, vec![]), (0, vec![2570])] {
        let mut image = subjects::image(subjects::ORDERS_2019);
        let spot = super::value(&image, xtype::DECIMAL);
        let length = usize::from(spot.column.info.length);
        image.edit(spot.page, |page| {
            page[spot.value()..spot.value() + length].fill(0);
            page[spot.value()] = sign;
        });
        let report = image.check();
        if messages(&report) != expected {
            return Err(format!("sign {sign}: {:?}", report.findings).into());
        }
    }
    Ok(())
}
