//! Facts that base tables store twice. If one of the two copies is changed, the change must be reported.

use findings::Report;
use libtest_mimic::{Failed, Trial};

use crate::Corpus;
use crate::base_table::{BaseTable, Row};
use crate::image::Image;
use crate::subjects;

/// Databases of SQL Server 2022, 2008 R2 and 2005.
const SUBJECTS: [&str; 3] = [
    "AhmedHamada87__Point-Of-Sales-MVC-ASP.NET-Core/Database.rar.d/Ecommerce.mdf",
    "EugeneSu0515__t4CodeTemplate/AdventureWorksLT2008_Data.zip.d/AdventureWorksLT2008_Data.mdf",
    "anhnbt-it__hna-c-sharp-assignment-6-mdi-example/pubs.mdf",
];

/// The way in which a change is reported.
enum Told {
    /// Message 3858 is reported, about an attribute with this name.
    Invalid(&'static str),
    /// An entry with this scope is listed as not verified.
    Doubt(&'static str),
}

use Told::{Doubt, Invalid};

/// Gives the value of a column of a row, by name.
type Columns<'a> = dyn Fn(&str) -> i64 + 'a;

/// A change of one row of a base table.
struct Change {
    name: &'static str,
    base: i32,
    column: &'static str,
    /// Returns whether the change applies to a row with these column values.
    when: fn(&Columns<'_>) -> bool,
    change: fn(i64) -> i64,
    told: Told,
    /// The first database version on which the change is tried. Older catalogs store the changed fact in a different
    /// form.
    since: u16,
}

/// Whether an object ID is that of a user object.
fn is_of_a_user(id: i64) -> bool {
    id > 100_000
}

const INT: i64 = 56;
const NVARCHAR: i64 = 231;

static CHANGES: &[Change] = &[
    Change {
        name: "an int of five bytes",
        base: 41,
        column: "length",
        when: |row| row("xtype") == INT && is_of_a_user(row("id")),
        change: |value| value + 1,
        told: Invalid("max_length=5"),
        since: 0,
    },
    Change {
        name: "an int of precision 11",
        base: 41,
        column: "prec",
        when: |row| row("xtype") == INT && is_of_a_user(row("id")),
        change: |value| value + 1,
        told: Invalid("precision=11"),
        since: 0,
    },
    Change {
        name: "an int with a collation",
        base: 41,
        column: "collationid",
        when: |row| row("xtype") == INT && is_of_a_user(row("id")),
        change: |value| value ^ 8,
        told: Invalid("collation_id=8"),
        since: 0,
    },
    Change {
        name: "an int whose type is that of bigint",
        base: 41,
        column: "xtype",
        when: |row| row("xtype") == INT && row("utype") == INT && is_of_a_user(row("id")),
        change: |_| 127,
        told: Invalid("system_type_id=127"),
        since: 0,
    },
    Change {
        name: "a type whose scale is not its own",
        base: 50,
        column: "scale",
        when: |row| row("xtype") == INT,
        change: |value| value + 1,
        told: Invalid("scale=1"),
        since: 0,
    },
    Change {
        name: "a length that the table's rows do not have",
        base: 41,
        column: "length",
        when: |row| row("xtype") == NVARCHAR && row("number") == 0 && row("length") > 100 && is_of_a_user(row("id")),
        change: |value| value - 2,
        told: Doubt("sys.syscolpars and sys.sysrscols, type"),
        since: 0,
    },
    Change {
        name: "NOT NULL where the table's rows may be NULL, or the other way round",
        base: 41,
        column: "status",
        when: |row| row("xtype") == NVARCHAR && row("number") == 0 && is_of_a_user(row("id")),
        change: |value| value ^ 1,
        told: Doubt("sys.syscolpars and sys.sysrscols, NOT NULL"),
        since: 0,
    },
    Change {
        name: "a collation that the table's rows do not have",
        base: 41,
        column: "collationid",
        when: |row| row("xtype") == NVARCHAR && row("number") == 0 && is_of_a_user(row("id")),
        change: |value| value ^ 0x1000,
        told: Doubt("sys.syscolpars and sys.sysrscols, collation"),
        since: 0,
    },
    Change {
        name: "a key column in another place of the key",
        base: 55,
        column: "tinyprop1",
        when: |row| row("tinyprop1") == 1 && row("idminor") == 1 && is_of_a_user(row("idmajor")),
        change: |value| value + 1,
        told: Doubt("sys.sysiscols and sys.sysrscols, key order"),
        since: 0,
    },
    Change {
        name: "an index that names another's rowset",
        base: 54,
        column: "rowset",
        when: |row| row("indid") == 1 && row("rowset") != 0 && is_of_a_user(row("id")),
        change: |value| value + (1 << 16),
        told: Doubt("sys.sysidxstats and sys.sysrowsets"),
        since: 0,
    },
    Change {
        name: "a unique index whose rowset is not",
        base: 54,
        column: "status",
        when: |row| row("indid") == 1 && row("status") & 8 != 0 && is_of_a_user(row("id")),
        change: |value| value ^ 8,
        told: Doubt("sys.sysidxstats and sys.sysrowsets, UNIQUE"),
        since: 0,
    },
    Change {
        name: "a primary key whose index is none",
        base: 54,
        column: "status",
        when: |row| row("indid") == 1 && row("status") & 0x20 != 0 && is_of_a_user(row("id")),
        change: |value| value ^ 0x20,
        told: Doubt("sys.sysschobjs and sys.sysidxstats"),
        since: 0,
    },
    Change {
        name: "a heap's id with the type of a clustered index",
        base: 54,
        column: "type",
        when: |row| row("indid") == 0 && is_of_a_user(row("id")),
        change: |_| 2,
        told: Doubt("sys.sysidxstats, type"),
        since: 0,
    },
    Change {
        name: "fixed columns that end before the fixed part does",
        base: 5,
        column: "minleaf",
        when: |row| row("idminor") == 1 && is_of_a_user(row("idmajor")),
        change: |value| value + 1,
        told: Doubt("sys.sysrscols, places of columns"),
        since: 655,
    },
    Change {
        name: "more null bits than columns",
        base: 5,
        column: "maxnullbit",
        when: |row| row("idminor") == 1 && is_of_a_user(row("idmajor")),
        change: |value| value + 1,
        told: Doubt("sys.sysrscols, places of columns"),
        since: 655,
    },
    Change {
        name: "a column of no rows, moved by a byte",
        base: 3,
        column: "offset",
        when: |row| row("rscolid") == 2 && row("offset") & 0x8000 == 0 && row("offset") > 4 && row("ordkey") == 0,
        change: |value| value + 1,
        told: Doubt("sys.sysrscols, places of columns"),
        since: 655,
    },
    Change {
        name: "an object of a type that does not exist",
        base: 34,
        column: "type",
        when: |row| row("type") == i64::from(u16::from_le_bytes(*b"D ")),
        change: |value| value ^ 1,
        told: Doubt("sys.sysschobjs, type"),
        since: 0,
    },
    Change {
        name: "a permission in a state that does not exist",
        base: 29,
        column: "state",
        when: |_| true,
        change: |value| value ^ 1,
        told: Doubt("sys.sysprivs, state"),
        since: 0,
    },
    Change {
        name: "a default that names another column",
        base: 34,
        column: "intprop",
        when: |row| row("type") == i64::from(u16::from_le_bytes(*b"D ")) && row("pid") != 0,
        change: |value| if value == 1 { 2 } else { 1 },
        told: Doubt("sys.syscolpars and sys.sysschobjs, defaults"),
        since: 0,
    },
    Change {
        name: "a table whose last column is beyond its highest column number",
        base: 34,
        column: "intprop",
        when: |row| {
            row("type") == i64::from(u16::from_le_bytes(*b"U ")) && row("intprop") > 2 && is_of_a_user(row("id"))
        },
        change: |_| 1,
        told: Doubt("sys.sysschobjs, intprop"),
        since: 0,
    },
    Change {
        name: "a primary key of no table",
        base: 34,
        column: "pid",
        when: |row| row("type") == i64::from(u16::from_le_bytes(*b"PK")),
        change: |_| 0,
        told: Doubt("sys.sysschobjs, parent"),
        since: 0,
    },
    Change {
        name: "more pages in use than reserved",
        base: 7,
        column: "pcreserved",
        when: |row| row("pcused") > 1 && row("ownerid") > 1 << 40,
        change: |_| 1,
        told: Doubt("sys.sysallocunits"),
        since: 0,
    },
    Change {
        name: "an allocation unit with pages and without a first page",
        base: 7,
        column: "pgfirst",
        when: |row| row("pcused") > 1 && row("ownerid") > 1 << 40,
        change: |_| 0,
        told: Doubt("sys.sysallocunits"),
        since: 0,
    },
    Change {
        name: "rows longer than the longest",
        base: 5,
        column: "maxleaf",
        when: |row| row("minleaf") > 8 && is_of_a_user(row("idmajor")),
        change: |_| 1,
        told: Doubt("sys.sysrowsets, lengths"),
        since: 655,
    },
    Change {
        name: "growth that the file header does not have",
        base: 24,
        column: "growth",
        when: |row| row("fileid") == 1,
        change: |value| value + 8,
        told: Doubt("files"),
        since: 655,
    },
    Change {
        name: "a size that the file header does not have",
        base: 24,
        column: "size",
        when: |row| row("fileid") == 1,
        change: |value| value + 8,
        told: Doubt("files"),
        since: 655,
    },
    Change {
        name: "a log that sysfiles1 calls a data file",
        base: 24,
        column: "filetype",
        when: |row| row("fileid") == 2,
        change: |_| 0,
        told: Doubt("files"),
        since: 655,
    },
    Change {
        name: "a status that no user has",
        base: 27,
        column: "status",
        when: |_| true,
        change: |value| value ^ 8,
        told: Doubt("sys.sysowners, status"),
        since: 0,
    },
    Change {
        name: "a status that no column of an index has",
        base: 55,
        column: "status",
        when: |row| row("idminor") == 1 && is_of_a_user(row("idmajor")),
        change: |value| value | 0x100,
        told: Doubt("sys.sysiscols, status"),
        since: 0,
    },
];

pub fn trials(corpus: &Corpus) -> Vec<Trial> {
    CHANGES
        .iter()
        .map(|change| {
            let corpus = corpus.clone();
            Trial::test(format!("said twice: {}", change.name), move || told(&corpus, change))
        })
        .collect()
}

fn told(corpus: &Corpus, change: &Change) -> Result<(), Failed> {
    let mut tried_in = 0;
    for subject in SUBJECTS {
        let image = Image::load(&corpus.files.join(subject));
        let result = tried(image, change)
            .map_err(|error| Failed::from(format!("{subject}: {}", error.message().unwrap_or_default())));
        tried_in += usize::from(result?);
    }
    if tried_in > 0 { Ok(()) } else { Err("no file to try it on".into()) }
}

/// The name of a change that is tried only on real catalogs. In a lab catalog, the row to which this change applies is
/// not checked.
const OF_REAL_CATALOGS: &str = "a column of no rows, moved by a byte";

/// A test of all changes on a catalog that the lab wrote.
pub fn lab_trials() -> Vec<Trial> {
    let all = || {
        let mut count = 0;
        for change in CHANGES.iter().filter(|change| change.name != OF_REAL_CATALOGS) {
            let result = tried(subjects::image(subjects::ORDERS_2019), change)
                .map_err(|error| Failed::from(format!("{}: {}", change.name, error.message().unwrap_or_default())));
            count += usize::from(result?);
        }
        if 2 * count > CHANGES.len() { Ok(()) } else { Err(Failed::from(format!("only {count} could be tried"))) }
    };
    vec![Trial::test("said twice: one of the two changed in a lab catalog (lab orders)", all)]
}

/// Makes a change and verifies the report; false if the database has no row to change.
fn tried(mut image: Image, change: &Change) -> Result<bool, Failed> {
    let database = image.database();
    if database.boot.as_ref().is_none_or(|boot| boot.version < change.since) {
        return Ok(false);
    }
    let Some(table) = BaseTable::of(&database, change.base) else { return Ok(false) };
    // In syscolpars, only columns of user tables are changed, for two reasons: the columns of views and functions do
    // not occur in stored rows, and the collation of a system table's column may also be the collation of the database.
    let is_stored = |row: &Row| {
        let id = table.value(&row.bytes, "id").and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        change.base != 41 || database.objects.get(&id).is_some_and(|object| object.type_code == "U")
    };
    let rows = table.rows(&image);
    let wanted = |row: &&Row| {
        let value = |column: &str| table.value(&row.bytes, column).unwrap_or_default();
        (change.when)(&value) && is_stored(row)
    };
    let Some(row) = rows.iter().rev().find(wanted) else { return Ok(false) };
    let before = table.value(&row.bytes, change.column).ok_or("no such column")?;
    table.change_alone(&mut image, row, change.column, (change.change)(before));
    is_told(&image.check(), change)?;
    Ok(true)
}

fn is_told(report: &Report, change: &Change) -> Result<(), Failed> {
    let texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
    let doubts: Vec<_> = report.not_verified.iter().filter(|entry| entry.what == "catalog values").collect();
    let is_told = match change.told {
        Invalid(attribute) => {
            texts.iter().any(|text| text.contains(&format!("Msg 3858, State 1: The attribute ({attribute})")))
        }
        Doubt(scope) => doubts.iter().any(|entry| entry.scope == scope && entry.count == 1),
    };
    match is_told {
        true => Ok(()),
        false => Err(format!("not reported: {texts:?} {doubts:?}").into()),
    }
}
