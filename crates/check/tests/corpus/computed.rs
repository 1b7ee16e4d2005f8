//! Persisted computed columns. No real persisted column with rows is available. But in AdventureWorks, every order is
//! due twelve days after its date, so the tests declare the due date as a computed column in the catalog.

use catalog::{Database, Expression, ExpressionKind};
use findings::Report;
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::damage::subject;
use crate::image::Image;
use crate::rows::Rows;
use crate::subjects;

const TABLE: &str = "SalesLT.SalesOrderHeader";
const DUE: &str = "(dateadd(day,(12),[OrderDate]))";
const SHIPPED: &str = "([OrderDate]+(7))";

/// Declares a column of the order table as computed and persisted.
fn define(database: &mut Database, column: &str, text: &str) {
    let object_id = *database.objects.keys().find(|id| database.object_name(**id) == TABLE).expect("table");
    let columns = database.columns.get_mut(&object_id).expect("columns");
    let column = columns.iter_mut().find(|other| other.name == column).expect("column");
    column.status |= 0x50;
    let (kind, sub_id) = (ExpressionKind::ComputedColumn, column.id.cast_signed());
    database.expressions.push(Expression { kind, object_id, sub_id, text: Some(text.to_owned()) });
    database.expressions.sort_by_key(|expression| (expression.object_id, expression.kind, expression.sub_id));
}

fn orders(database: &mut Database) {
    define(database, "DueDate", DUE);
    define(database, "ShipDate", SHIPPED);
}

/// The entries about persisted computed columns that are listed as not verified.
fn not_verified(report: &Report) -> Vec<String> {
    let of_computed = report.not_verified.iter().filter(|entry| entry.what == "persisted computed columns");
    of_computed.map(|entry| format!("{} {} {}", entry.scope, entry.count, entry.reason)).collect()
}

fn is(found: &[String], expected: &[&str]) -> Result<(), Failed> {
    let fits = |(found, expected): (&String, &&str)| found.contains(expected);
    if found.len() == expected.len() && found.iter().zip(expected).all(fits) {
        return Ok(());
    }
    Err(format!("found {found:#?}\nexpected {expected:#?}").into())
}

fn findings(report: &Report) -> Vec<String> {
    let text = |finding: &findings::Finding| format!("{} {}", finding.check.msg, finding.text(&report.names()));
    report.findings.iter().map(|finding| text(&finding)).collect()
}

type Test = fn(&mut Image) -> Result<(), Failed>;

fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("values that the definition gives are silent", |image| {
            let report = image.check_as(orders);
            is(&findings(&report), &[])?;
            is(&not_verified(&report), &[])
        }),
        ("a definition that gives other values is reported for every row", |image| {
            let report = image.check_as(|database| define(database, "DueDate", SHIPPED));
            let found = findings(&report);
            let all = found.iter().all(|text| text.contains("The record check (valid computed column) failed."));
            if all && found.len() == 32 { Ok(()) } else { Err(format!("{found:?}").into()) }
        }),
        ("a changed value", |image| {
            let rows = Rows::of_table(image, TABLE);
            let due = rows.named("DueDate").clone();
            let at = rows.at[5];
            let mut value = rows.value(image, at, &due).expect("value");
            value[0] ^= 1;
            rows.write(image, at, &due, &value);
            let (page, slot, object) = (at.page, at.slot, rows.object_id);
            is(
                &findings(&image.check_as(orders)),
                &[&format!(
                    "page {page}, row {slot}. The record check (valid computed column) failed. The values are {} and 0.",
                    due.id
                )],
            )?;
            is(&findings(&image.check_as(orders)), &[&format!("2537 Table error: object ID {object}, index ID 1, ")])
        }),
        ("a changed value that others are computed from", |image| {
            let rows = Rows::of_table(image, TABLE);
            let at = rows.at[31];
            let date = rows.named("OrderDate").clone();
            let mut value = rows.value(image, at, &date).expect("value");
            value[4] ^= 1;
            rows.write(image, at, &date, &value);
            is(&findings(&image.check_as(orders)), &["2537 ", "2537 "])
        }),
        ("a definition that is not evaluated is named", |image| {
            let reports = image.check_as(|database| {
                define(database, "DueDate", "(dateadd(day,[dbo].[f]([OrderDate]),[OrderDate]))");
                define(database, "ShipDate", "(CONVERT([datetime2](7),[OrderDate]))");
                define(database, "TaxAmt", "(CONVERT([money],sqrt([SubTotal])))");
            });
            is(&findings(&reports), &[])?;
            is(
                &not_verified(&reports),
                &[
                    "SalesLT.SalesOrderHeader.DueDate 32 expression (dateadd(day,[dbo].[f]([OrderDate]),[OrderDate])) is not evaluated: function dbo.f",
                    "SalesLT.SalesOrderHeader.ShipDate 32 the computed column has type datetime, but its definition has the type datetime2(7)",
                    "SalesLT.SalesOrderHeader.TaxAmt 32 mdfsck cannot compute the values of these rows with certainty",
                ],
            )
        }),
    ]
}

/// Tests that change an operand of a persisted computed column in a lab database.
pub fn lab_trials() -> Vec<Trial> {
    vec![Trial::test("computed columns: a changed value that another is computed from (lab specimen)", || {
        let mut image = subjects::image(subjects::SPECIMEN);
        let rows = Rows::of_table(&image, "computed");
        let (a, b) = (rows.named("a").clone(), rows.named("b").clone());
        let at = *rows.at.iter().find(|at| rows.int(&image, **at, &b) != 0).ok_or("a product that changes")?;
        rows.write(&mut image, at, &a, &1_000_i32.to_le_bytes());
        is(&findings(&image.check()), &["2537 Table error: "])
    })]
}

/// One test per fact about computed columns.
pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    tests()
        .into_iter()
        .map(|(name, test)| {
            let corpus = corpus.clone();
            Trial::test(format!("computed columns: {name}"), move || test(&mut subject(&corpus)))
        })
        .collect()
}
