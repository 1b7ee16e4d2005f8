//! Tests of references between base tables. In real files, every reference must be intact and of a known class. A
//! damaged reference must be reported.

use std::borrow::Cow;

use check::{CatalogReference, catalog_references};
use findings::{Finding, Options, Report, Scope};
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::base_table::BaseTable;
use crate::image::Image;
use crate::subjects;

/// Files of SQL Server 2012, 2008 R2, 2022, 2019, 2008 R2 and 2005. Together, their catalogs have rows for nearly every
/// class of references.
const SUBJECTS: [&str; 6] = [
    "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf",
    "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF",
    "AhmedHamada87__Point-Of-Sales-MVC-ASP.NET-Core/Database.rar.d/Ecommerce.mdf",
    "neotraly__StudentDB/Students.mdf",
    "EugeneSu0515__t4CodeTemplate/AdventureWorksLT2008_Data.zip.d/AdventureWorksLT2008_Data.mdf",
    "anhnbt-it__hna-c-sharp-assignment-6-mdi-example/pubs.mdf",
];

/// An object ID that no object has.
const NOBODY: i64 = i32::MAX as i64;

pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    let mut trials = vec![
        trial(corpus, "every reference of a real catalog is of a known kind", all_is_known),
        trial(corpus, "what a row must have and lacks is reported", lacking),
        trial(corpus, "a reference to a table with errors is not judged", flawed_tables_prove_nothing),
        trial(corpus, "CHECKCATALOG alone finds the same", checkcatalog_finds_the_same),
        trial(corpus, "scopes without the catalog do not check it", other_scopes_do_not_look),
        trial(corpus, "Service Broker's objects are counted as in every new database", broker_counts),
        trial(corpus, "a module that executes as its owner is legal", executes_as_owner),
        trial(corpus, "a database that needs its log gives no finding about its catalog", dirty_is_not_judged),
    ];
    for (at, reference) in catalog_references().enumerate() {
        let corpus = corpus.clone();
        let columns: Vec<&str> = reference.columns().iter().map(|(column, _)| *column).collect();
        let name = format!(
            "catalog: {at}: {} {} of {} to {}",
            reference.message().map_or("unproven".to_owned(), |message| message.to_string()),
            columns.join(","),
            reference.view(),
            reference.referenced()
        );
        trials.push(Trial::test(name, move || damage(&corpus, reference)));
    }
    trials
}

fn trial(corpus: &Corpus, name: &str, test: fn(&Corpus) -> Result<(), Failed>) -> Trial {
    let corpus = corpus.clone();
    Trial::test(format!("catalog: {name}"), move || test(&corpus))
}

/// Findings of the catalog checks.
fn of_catalog(report: &Report) -> Vec<Cow<'_, Finding>> {
    report.findings.iter().filter(|finding| matches!(finding.check.msg, 8992 | 8997)).collect()
}

fn texts(report: &Report, findings: &[Cow<'_, Finding>]) -> String {
    findings.iter().map(|finding| finding.text(&report.names())).collect::<Vec<_>>().join("\n")
}

fn all_is_known(corpus: &Corpus) -> Result<(), Failed> {
    for subject in SUBJECTS {
        let report = Image::load(&corpus.files.join(subject)).check();
        let unknown: Vec<_> = report.not_verified.iter().filter(|entry| entry.what == "catalog references").collect();
        if !unknown.is_empty() || !report.findings.is_empty() {
            return Err(format!("{subject}: {unknown:?} {:?}", report.findings).into());
        }
    }
    Ok(())
}

/// Base table, class and column of the references that no row of these files has. In the program, the rule of each of
/// these references has a comment that names the evidence for the rule.
const UNTRIED: [(&str, Option<i64>, &str); 30] = [
    ("syscolpars", None, "chk"),
    ("sysscalartypes", None, "dflt"),
    ("sysscalartypes", None, "chk"),
    ("sysobjvalues", Some(4), "objid"),
    ("sysobjvalues", Some(63), "objid"),
    ("sysobjvalues", None, "objid"),
    ("sysobjvalues", Some(113), "objid"),
    ("syssingleobjrefs", Some(7), "depid"),
    ("syssingleobjrefs", Some(7), "indepid"),
    ("syssingleobjrefs", Some(36), "depid"),
    ("syssingleobjrefs", Some(36), "indepid"),
    ("syssingleobjrefs", Some(46), "depid"),
    ("syssingleobjrefs", Some(46), "indepid"),
    ("syssingleobjrefs", Some(47), "depid"),
    ("syssingleobjrefs", Some(47), "indepid"),
    ("syssingleobjrefs", Some(62), "depid"),
    ("syssingleobjrefs", Some(62), "indepid"),
    ("syssingleobjrefs", Some(112), "depid"),
    ("syssingleobjrefs", Some(112), "indepid"),
    ("sysobjkeycrypts", Some(24), "id"),
    ("sysguidrefs", Some(2), "id"),
    ("sysguidrefs", Some(3), "id"),
    ("sysobjvalues", Some(182), "objid"),
    ("syssingleobjrefs", Some(137), "depid"),
    ("syssingleobjrefs", Some(137), "indepid"),
    ("sysprivs", Some(4), "id"),
    ("sysobjvalues", Some(11), "objid"),
    ("syssingleobjrefs", Some(11), "depid"),
    ("syssingleobjrefs", Some(11), "indepid"),
    ("sysguidrefs", Some(1), "id"),
];

/// Breaks a reference. Of all rows that have the reference, the row with the largest ID is changed, so that it refers
/// to an object that does not exist.
fn damage(corpus: &Corpus, reference: CatalogReference) -> Result<(), Failed> {
    if matches!(reference.message(), Some(3852 | 3857)) {
        return Ok(()); // These require a row elsewhere, whatever its content: see `lacking`.
    }
    let is_untried = UNTRIED.contains(&(reference.table().1, reference.class(), reference.columns()[0].0));
    for subject in SUBJECTS {
        let Some(result) = tried(Image::load(&corpus.files.join(subject)), reference) else { continue };
        if is_untried {
            return Err("it can be tried: take it off the list".into());
        }
        return result;
    }
    if is_untried { Ok(()) } else { Err("no file to try it on".into()) }
}

/// Breaks a reference in this database and verifies the report; `None` if no row has the reference.
fn tried(mut image: Image, reference: CatalogReference) -> Option<Result<(), Failed>> {
    let table = BaseTable::of(&image.database(), reference.table().0)?;
    let is_about = |record: &[u8]| reference.applies(|column| table.value(record, column));
    // Chooses the column to change: the last column of the reference that can be changed so that the reference still
    // applies to the row.
    let nobody = |column: &str| if table.length(column) < 4 { 250 } else { NOBODY };
    let keeps = |record: &[u8], changed: &str| {
        reference.applies(|column| if column == changed { Some(nobody(changed)) } else { table.value(record, column) })
    };
    let columns = reference.columns().iter().map(|(column, named)| (*column, *named));
    let rows = table.rows(&image);
    let any = rows.iter().find(|row| is_about(&row.bytes))?;
    let (column, named) = columns.rev().find(|(column, _)| keeps(&any.bytes, column))?;
    let wanted = rows.iter().filter(|row| is_about(&row.bytes));
    let row = wanted.max_by_key(|row| table.value(&row.bytes, column))?;
    let before = table.value(&row.bytes, column)?;
    table.change(&mut image, row, column, nobody(column));
    Some(told(&image.check(), reference, named, (before, nobody(column))))
}

/// The smallest number of references that a new database with the tables of the lab must have.
const LEAST_OF_LAB: usize = 30;

/// Breaks every reference of a lab database, one at a time.
pub fn lab_trials() -> Vec<Trial> {
    let broken = || {
        let (mut count, mut wrong) = (0, Vec::new());
        let references = catalog_references().filter(|reference| !matches!(reference.message(), Some(3852 | 3857)));
        for reference in references {
            match tried(subjects::image(subjects::ORDERS_2019), reference) {
                None => {}
                Some(Ok(())) => count += 1,
                Some(Err(error)) => wrong.push(format!(
                    "{} of {} to {}: {}",
                    reference.columns()[0].0,
                    reference.view(),
                    reference.referenced(),
                    error.message().unwrap_or_default()
                )),
            }
        }
        match wrong.is_empty() && count >= LEAST_OF_LAB {
            true => Ok(()),
            false => Err(Failed::from(format!("{count} told; {}", wrong.join("\n")))),
        }
    };
    vec![Trial::test("catalog: every reference of a lab catalog, broken, is reported (lab orders)", broken)]
}

fn told(report: &Report, reference: CatalogReference, named: &str, (before, nobody): (i64, i64)) -> Result<(), Failed> {
    let found = of_catalog(report);
    let Some(number) = reference.message() else { return not_verified(report, reference, &found) };
    let message = format!("Msg {number}, State 1: ");
    let text = |finding: &Finding| finding.text(&report.names());
    let is_told = |finding: &Cow<'_, Finding>| {
        let text = text(finding);
        let says = match number {
            9000.. => text.ends_with(&format!(" with ID {nobody}.")),
            3855 => text.contains(&format!("={nobody}")),
            _ => text.contains(&format!("{named}={nobody}")),
        };
        says && text.contains(&message)
    };
    if !found.iter().any(is_told) {
        let first = report.findings.first();
        return Err(format!("not reported: {message}{named}={nobody}\n{}\n{first:?}", texts(report, &found)).into());
    }
    // Other findings about references are permitted if they concern the new value, or a reference to the old value of
    // the changed row.
    let belongs = |finding: &Finding| {
        let text = text(finding);
        text.contains(&format!("={nobody}")) || text.contains(&format!("={before}")) || text.contains(" ID ")
    };
    if let Some(stranger) = found.iter().find(|finding| !belongs(finding)) {
        return Err(text(stranger).into());
    }
    // Findings about the key order of the changed table are permitted too.
    let other = report.findings.iter().find(|finding| {
        let is_order =
            finding.object_id() == Some(reference.table().0) && matches!(finding.check.msg, 2511 | 8933 | 8934);
        // 8995 is permitted because a base table can only be in the first filegroup.
        !matches!(finding.check.msg, 8992 | 8995 | 8997) && !is_order
    });
    other.map_or(Ok(()), |other| Err(text(&other).into()))
}

/// Asserts that the violation of an `Unproven` reference is listed as not verified, and that no finding is about this
/// reference.
fn not_verified(report: &Report, reference: CatalogReference, found: &[Cow<'_, Finding>]) -> Result<(), Failed> {
    let (_, table) = reference.table();
    let is_listed = report.not_verified.iter().any(|entry| {
        entry.what == "catalog references" && entry.scope.contains(table) && entry.reason.contains("do not exist")
    });
    let tells = |finding: &&Cow<'_, Finding>| {
        let text = finding.text(&report.names());
        text.contains(&format!("in sys.{} does not", reference.view()))
            && text.contains(&format!("in sys.{}.", reference.referenced()))
    };
    match (is_listed, found.iter().find(tells)) {
        (true, None) => Ok(()),
        (false, _) => Err(format!("not listed: {:?}", report.not_verified).into()),
        (true, Some(finding)) => Err(finding.text(&report.names()).into()),
    }
}

/// Changes a column of one row of a base table, in the first subject that has such a row.
fn changed(
    corpus: &Corpus,
    (table, column): (i32, &str),
    is_wanted: impl Fn(&BaseTable, &[u8]) -> bool,
    change: impl Fn(i64) -> i64,
) -> Result<Image, Failed> {
    for subject in SUBJECTS {
        let image = Image::load(&corpus.files.join(subject));
        if let Ok(image) = changed_in(image, (table, column), &is_wanted, &change) {
            return Ok(image);
        }
    }
    Err("no file has such a row".into())
}

/// Changes a column of one row of a base table in this database.
fn changed_in(
    mut image: Image,
    (table, column): (i32, &str),
    is_wanted: impl Fn(&BaseTable, &[u8]) -> bool,
    change: impl Fn(i64) -> i64,
) -> Result<Image, Failed> {
    let table = BaseTable::of(&image.database(), table).ok_or("no such table")?;
    let rows = table.rows(&image);
    let row = rows.iter().rev().find(|row| is_wanted(&table, &row.bytes)).ok_or("no such row")?;
    let value = table.value(&row.bytes, column).ok_or("no such column")?;
    table.change(&mut image, row, column, change(value));
    Ok(image)
}

const SYSOWNERS: i32 = 27;
const SYSSCHOBJS: i32 = 34;
const SYSCOLPARS: i32 = 41;
const SYSIDXSTATS: i32 = 54;
const SYSBINOBJS: i32 = 58;
const SYSCLSOBJS: i32 = 64;
const SYSSINGLEOBJREFS: i32 = 74;

fn is(column: &'static str, wanted: i64) -> impl Fn(&BaseTable, &[u8]) -> bool {
    move |table, record| table.value(record, column) == Some(wanted)
}

/// A type code as a number.
fn code(code: &str) -> i64 {
    code.bytes().rev().fold(0, |all, byte| all << 8 | i64::from(byte))
}

fn lacking(corpus: &Corpus) -> Result<(), Failed> {
    let images = [
        changed(corpus, (SYSCOLPARS, "status"), is("status", 0), |_| 0x10)?,
        changed(corpus, (SYSIDXSTATS, "status"), is("status", 0xb), |status| status | 0x20000)?,
        changed(corpus, (SYSIDXSTATS, "indid"), is("status", 0x2b), |index| index + 1000)?,
        changed(corpus, (SYSSCHOBJS, "type"), is("type", code("IT")), |_| code("P "))?,
        changed(corpus, (SYSSCHOBJS, "type"), is("type", code("D ")), |_| code("F "))?,
        changed(corpus, (SYSSCHOBJS, "type"), is("type", code("D ")), |_| code("U "))?,
        changed(corpus, (SYSOWNERS, "type"), is("type", code("S")), |_| code("R"))?,
        changed(corpus, (SYSCLSOBJS, "id"), is("class", 50), |id| id + 1)?,
        changed(corpus, (SYSBINOBJS, "id"), is("class", 23), |id| id + 1)?,
    ];
    let expected = [
        "Check Catalog Msg 3857, State 1: The attribute (definition) is required but is missing for row (object_id=",
        "Check Catalog Msg 3857, State 1: The attribute (filter_definition) is required but is missing for row (object_id=",
        ") in sys.indexes does not have a matching row (object_id=",
        "Check Catalog Msg 3857, State 1: The attribute (definition) is required but is missing for row (object_id=",
        ") in sys.foreign_keys does not have a matching row (constraint_object_id=",
        ") in sys.objects does not have a matching row (object_id=",
        "Check Catalog Msg 3857, State 1: The attribute (owning_principal_id) is required but is missing for row (principal_id=",
        "Check Catalog Msg 3857, State 1: The attribute (principal_id) is required but is missing for row (schema_id=16394)",
        "Check Catalog Msg 3857, State 1: The attribute (service_queue_id) is required but is missing for row (service_id=4)",
    ];
    for (image, expected) in images.iter().zip(expected) {
        let report = image.check();
        let all = texts(&report, &of_catalog(&report));
        if !all.contains(expected) {
            return Err(format!("not reported: {expected}\n{all}\n{:?}", report.not_verified).into());
        }
    }
    Ok(())
}

fn flawed_tables_prove_nothing(corpus: &Corpus) -> Result<(), Failed> {
    // Changes the ID of the last schema in the table, but not in the table's index. Then it is unknown which of the two
    // IDs is right.
    let mut image = Image::load(&corpus.files.join(SUBJECTS[0]));
    let table = BaseTable::of(&image.database(), SYSCLSOBJS).ok_or("no sysclsobjs")?;
    let rows = table.rows(&image);
    let row = rows.iter().rev().find(|row| is("class", 50)(&table, &row.bytes)).ok_or("no schema")?;
    table.change_alone(&mut image, row, "id", 16_394);
    let report = image.check();
    if !report.findings.iter().any(|finding| finding.object_id() == Some(SYSCLSOBJS)) {
        return Err("the table has no findings".into());
    }
    let all = texts(&report, &of_catalog(&report));
    if all.contains("in sys.schemas.") && !all.contains("principal_id") {
        return Err(all.into());
    }
    let is_noted = report.not_verified.iter().any(|entry| entry.scope == "to rows of sys.sysclsobjs");
    if is_noted { Ok(()) } else { Err(format!("{:?}", report.not_verified).into()) }
}

/// A database in which a table belongs to a schema that does not exist.
fn lost_schema(corpus: &Corpus) -> Result<Image, Failed> {
    changed(corpus, (SYSSCHOBJS, "nsid"), is("type", code("U ")), |_| NOBODY)
}

fn checkcatalog_finds_the_same(corpus: &Corpus) -> Result<(), Failed> {
    let image = lost_schema(corpus)?;
    let whole = image.check();
    let catalog = image.check_with(&Options { scope: Scope::Catalog, ..Options::default() });
    let wanted = texts(&whole, &of_catalog(&whole));
    let found: Vec<Cow<'_, Finding>> = catalog.findings.iter().collect();
    if wanted.is_empty() || texts(&catalog, &found) != wanted || catalog.statistics.pages_read != 0 {
        return Err(format!("{wanted}\n{}", texts(&catalog, &found)).into());
    }
    Ok(())
}

fn other_scopes_do_not_look(corpus: &Corpus) -> Result<(), Failed> {
    let image = lost_schema(corpus)?;
    let physical = Options { physical_only: true, ..Options::default() };
    let scopes = [Scope::Tables(vec![SYSSCHOBJS]), Scope::Filegroup(1), Scope::Allocation];
    let scopes = scopes.into_iter().map(|scope| Options { scope, ..Options::default() });
    for options in scopes.chain([physical]) {
        let report = image.check_with(&options);
        if !of_catalog(&report).is_empty() || !report.service_broker.is_empty() {
            return Err(format!("{options:?}").into());
        }
    }
    Ok(())
}

fn broker_counts(corpus: &Corpus) -> Result<(), Failed> {
    for subject in SUBJECTS {
        let report = Image::load(&corpus.files.join(subject)).check();
        let found: Vec<(u16, u64)> = report.service_broker.iter().map(|kind| (kind.number, kind.count)).collect();
        let mut expected =
            vec![(9675, 14), (9676, 6), (9667, 3), (9668, 3), (9669, 0), (9674, 0), (9670, 0), (9605, 0)];
        // Conversation priorities exist since SQL Server 2008.
        expected.truncate(if report.database.version < 655 { 7 } else { 8 });
        if found != expected {
            return Err(format!("{subject}: {found:?}").into());
        }
    }
    Ok(())
}

/// For EXECUTE AS OWNER, `execute_as_principal_id` of sys.sql_modules is -2, which is not the ID of any principal.
fn executes_as_owner(corpus: &Corpus) -> Result<(), Failed> {
    const OWNER: i64 = -2;
    let report = changed(corpus, (SYSSINGLEOBJREFS, "indepid"), is("class", 22), |_| OWNER)?.check();
    let all = texts(&report, &of_catalog(&report));
    if all.is_empty() { Ok(()) } else { Err(all.into()) }
}

fn dirty_is_not_judged(corpus: &Corpus) -> Result<(), Failed> {
    let mut image = lost_schema(corpus)?;
    // Clears the clean shutdown bit in the status of the boot record.
    image.edit(9, |boot| boot[96 + 0x24 + 3] &= !0x40);
    let report = image.check();
    let is_withheld = report.not_verified.iter().any(|entry| entry.what == "message 8992");
    if of_catalog(&report).is_empty() && is_withheld { Ok(()) } else { Err(format!("{:?}", report.findings).into()) }
}
