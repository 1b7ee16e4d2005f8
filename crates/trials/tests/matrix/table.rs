//! The matrix as a table, and the comparison of a run with the committed results and the exemptions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use lab::specimens::specimens;
use libtest_mimic::{Failed, Trial};
use trials::mutate::Verb;
use trials::mutate::exemptions::{self, Exemption, exemptions};

use crate::run::{Cell, Column, Matrix, Row, Subject};
use crate::{catalog, logs};

/// A real database to damage.
struct Choice {
    name: &'static str,
    /// An earlier copy of the database.
    older: Option<&'static str>,
    /// The number of sites to damage per field. If the number is greater than one, some additional mutants keep their
    /// old checksums.
    sites: usize,
    /// Whether to damage rows of system tables as well. System tables are almost the same in all databases.
    system_rows: bool,
}

/// Databases of versions from 2005 to 2022. Some have checksums and some have torn bits. They contain heaps, indexes
/// and off-row values.
const SUBJECTS: &[Choice] = &[
    Choice {
        name: "dotnetdev-kr__nerddinner/@0998efcb/NerdDinner/App_Data/NerdDinner.mdf",
        older: None,
        sites: 2,
        system_rows: true,
    },
    Choice { name: "itsligo__sampledbs/pubs.mdf", older: None, sites: 2, system_rows: false },
    Choice {
        name: "jordandashel__NerdDinner/NerdDinner/App_Data/NerdDinner.mdf",
        older: Some("jordandashel__NerdDinner/@c9aa9349/NerdDinner/App_Data/NerdDinner.mdf"),
        sites: 1,
        system_rows: false,
    },
    Choice {
        name: "AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF",
        older: None,
        sites: 1,
        system_rows: false,
    },
    Choice {
        name: "EugeneSu0515__t4CodeTemplate/AdventureWorksLT2008_Data.zip.d/AdventureWorksLT2008_Data.mdf",
        older: None,
        sites: 1,
        system_rows: false,
    },
    Choice {
        name: "AhmedHamada87__Point-Of-Sales-MVC-ASP.NET-Core/Database.rar.d/Ecommerce.mdf",
        older: None,
        sites: 1,
        system_rows: true,
    },
];
/// The number of sites to damage per field in each lab database.
const SITES_OF_LAB: usize = 1;
/// The seed that decides which sites are damaged.
const SEED: u64 = 1;
/// The committed result. A run fails if its result is worse.
const BASELINE: &str = include_str!("baseline.tsv");
/// The document that shows the same results to readers.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sensitivity.md");
/// The environment variable that makes the result of a run the new baseline.
pub const WRITE: &str = "MDFSCK_WRITE_BASELINE";

/// The minimum number of mutants in a run.
const LEAST_MUTANTS: u64 = 15_000;

type Rows = BTreeMap<(String, String), Row>;

/// The trials that need no database.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("matrix: docs/sensitivity.md shows the baseline", || {
            let document = document(&parse(BASELINE), &exemptions());
            if std::env::var_os(WRITE).is_some() {
                std::fs::write(DOCUMENT, &document)?;
            }
            let shown = std::fs::read_to_string(DOCUMENT).map_err(|error| error.to_string())?;
            match shown == document {
                true => Ok(()),
                false => Err(format!("docs/sensitivity.md differs: run this test with {WRITE}=1").into()),
            }
        }),
        Trial::test("matrix: what goes unnoticed has a reason, and no reason is idle", || {
            let (rows, exemptions) = (parse(BASELINE), exemptions());
            let is_noticed = |row: &Row| row.cells.values().all(|cell| cell.found == cell.tried);
            let mut wrong = Vec::new();
            for ((structure, field), row) in rows.iter().filter(|(_, row)| !is_noticed(row)) {
                if !exemptions.iter().any(|exemption| exemption.covers(structure, field)) {
                    wrong.push(format!("no reason: {structure}, {field}: {}", cells(row)));
                }
            }
            for exemption in &exemptions {
                for pattern in &exemption.fields {
                    let covered = |(structure, field): &(String, String)| {
                        exemption.is_of(structure) && exemptions::matches(pattern, field)
                    };
                    let is_idle = rows.iter().all(|(name, row)| !covered(name) || is_noticed(row));
                    if is_idle && !catalog::silent().iter().chain(&logs::silent()).any(covered) {
                        wrong.push(format!("idle: {}, {pattern}", exemption.structure));
                    }
                }
            }
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
        }),
    ]
}

/// Runs the matrix and compares it with the baseline.
pub fn compare(folder: &Path) -> Result<(), Failed> {
    let chosen = SUBJECTS.iter().filter(|choice| is_asked_for(choice.name));
    let load = |choice: &Choice| Subject::load(folder, choice.name, choice.older, choice.sites, choice.system_rows);
    let mut subjects: Vec<Subject> = chosen.map(load).collect();
    let written = specimens().into_iter().filter(|description| is_asked_for(&description.name));
    subjects.extend(written.map(|description| Subject::write(&description, SITES_OF_LAB)));
    let matrix = Matrix::of(&subjects, SEED);
    println!("{}", summary(&matrix));
    if let Some(path) = std::env::var_os("MDFSCK_MATRIX_LOG") {
        std::fs::write(path, matrix.log.join("\n"))?;
    }
    if !matrix.broken.is_empty() {
        return Err(matrix.broken.join("\n").into());
    }
    if let Some((taken, most)) = matrix.memory.filter(|(taken, most)| taken > most) {
        return Err(format!("the runs took {taken} bytes of memory, {most} are granted").into());
    }
    if matrix.mutants < LEAST_MUTANTS {
        return Err(format!("only {} mutants", matrix.mutants).into());
    }
    if std::env::var_os(WRITE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matrix/baseline.tsv");
        std::fs::write(path, print(&matrix.rows))?;
        std::fs::write(DOCUMENT, document(&matrix.rows, &exemptions()))?;
    }
    let mut worse = Vec::new();
    for ((structure, field), row) in parse(BASELINE) {
        let Some(now) = matrix.rows.get(&(structure.clone(), field.clone())) else {
            worse.push(format!("{structure}, {field}: not tried any more"));
            continue;
        };
        for (column, before) in &row.cells {
            let cell = now.cells.get(column).copied().unwrap_or_default();
            let is_worse = |before_hits: u32, hits: u32| {
                u64::from(hits) * u64::from(before.tried) < u64::from(before_hits) * u64::from(cell.tried)
            };
            if is_worse(before.found, cell.found) || is_worse(before.found + before.told, cell.found + cell.told) {
                worse.push(format!("{structure}, {field}, {}: {} now {}", name(*column), text(before), text(&cell)));
            }
        }
    }
    if worse.is_empty() { Ok(()) } else { Err(worse.join("\n").into()) }
}

/// Whether a database is part of the run. If a developer sets the variable MDFSCK_MATRIX_ONLY to a text, only databases
/// whose names contain this text are part of the run.
fn is_asked_for(name: &str) -> bool {
    std::env::var("MDFSCK_MATRIX_ONLY").map_or(true, |only| name.contains(&only))
}

fn summary(matrix: &Matrix) -> String {
    let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    format!(
        "{} mutants of {} fields: {} found, {} listed as not verified. Among those found, the first finding names the page in \
         {:.1} %, any finding in {:.1} %; {:.2} findings a damaged page on average, {:.1} in the middle. \
         {} MB of memory on top of the databases, of {} MB granted",
        matrix.mutants,
        matrix.rows.len(),
        matrix.found,
        matrix.told,
        share(matrix.named, matrix.found),
        share(matrix.named_at_all, matrix.found),
        matrix.findings.iter().sum::<f64>() / matrix.found.max(1) as f64,
        matrix.findings.get(matrix.findings.len() / 2).copied().unwrap_or_default(),
        matrix.memory.map_or(0, |(taken, _)| taken >> 20),
        matrix.memory.map_or(0, |(_, most)| most >> 20),
    )
}

fn columns() -> impl Iterator<Item = Column> {
    Verb::ALL.into_iter().map(Column::Verb).chain([Column::Stale])
}

fn name(column: Column) -> &'static str {
    match column {
        Column::Verb(verb) => verb.name(),
        Column::Stale => "checksum wrong",
    }
}

/// A cell as text: `found/tried`, or `found+listed/tried`; `-` if nothing was tried.
fn text(cell: &Cell) -> String {
    match (cell.tried, cell.told) {
        (0, _) => "-".to_owned(),
        (tried, 0) => format!("{}/{tried}", cell.found),
        (tried, told) => format!("{}+{told}/{tried}", cell.found),
    }
}

fn cells(row: &Row) -> String {
    let texts: Vec<String> =
        columns().map(|column| text(&row.cells.get(&column).copied().unwrap_or_default())).collect();
    texts.join("\t")
}

fn print(rows: &Rows) -> String {
    let mut lines = String::from("structure\tfield");
    for column in columns() {
        lines.push('\t');
        lines.push_str(name(column));
    }
    lines.push_str("\tfirst findings\n");
    for ((structure, field), row) in rows {
        let _ = writeln!(lines, "{structure}\t{field}\t{}\t{}", cells(row), first(row).join(", "));
    }
    lines
}

/// Returns the three check IDs that first findings have most often.
fn first(row: &Row) -> Vec<&str> {
    let mut ids: Vec<(&String, &u32)> = row.ids.iter().collect();
    ids.sort_by_key(|(id, count)| (std::cmp::Reverse(**count), id.as_str()));
    ids.into_iter().take(3).map(|(id, _)| id.as_str()).collect()
}

fn parse(text: &str) -> Rows {
    let mut rows = Rows::new();
    for line in text.lines().skip(1) {
        let parts: Vec<&str> = line.split('\t').collect();
        let [structure, field, cells @ .., ids] = parts.as_slice() else { panic!("{line}") };
        let mut row = Row::default();
        for (column, cell) in columns().zip(cells) {
            if let Some((hits, tried)) = cell.split_once('/') {
                let (found, told) = hits.split_once('+').unwrap_or((hits, "0"));
                let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line}"));
                row.cells.insert(column, Cell { tried: number(tried), found: number(found), told: number(told) });
            }
        }
        // The committed text contains the check IDs in order, but not how often each occurred.
        let ids: Vec<&str> = ids.split(", ").filter(|id| !id.is_empty()).collect();
        row.ids = ids.into_iter().rev().zip(1..).map(|(id, count)| (id.to_owned(), count)).collect();
        rows.insert(((*structure).to_owned(), (*field).to_owned()), row);
    }
    rows
}

fn document(rows: &Rows, exemptions: &[Exemption]) -> String {
    let (mut tried, mut found, mut told) = (0, 0, 0);
    let mut noticed = 0;
    for row in rows.values() {
        let cells = || row.cells.values();
        tried += cells().map(|cell| cell.tried).sum::<u32>();
        found += cells().map(|cell| cell.found).sum::<u32>();
        told += cells().map(|cell| cell.told).sum::<u32>();
        noticed += u32::from(cells().all(|cell| cell.found == cell.tried));
    }
    let mut text = String::from(INTRODUCTION);
    let _ = writeln!(
        text,
        "{tried} mutants of {} fields were tried, on {} databases written by SQL Server 2005 to 2022 and {} that the lab \
         wrote: {found} gave findings or were refused, {told} were listed as not verified, and {} went unnoticed. {noticed} fields \
         are noticed whatever the verb; the tables below give the reasons for the others.",
        rows.len(),
        SUBJECTS.len(),
        specimens().len(),
        tried - found - told
    );
    text.push_str("\n## What may go unnoticed, and why\n\n| structure | fields | reason |\n|---|---|---|\n");
    for exemption in exemptions {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            exemption.structure.replace('*', "\\*"),
            exemption.fields.join("; ").replace('*', "\\*"),
            exemption.reason
        );
    }
    text.push_str(&catalog::document());
    text.push_str(&logs::document());
    text.push_str("\n## Every field\n");
    let mut last = "";
    for ((structure, field), row) in rows {
        if structure != last {
            let _ = write!(text, "\n### {structure}\n\n| field |");
            for column in columns() {
                let _ = write!(text, " {} |", name(column));
            }
            text.push_str(" first findings |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
            last = structure;
        }
        let _ = write!(text, "| {field} |");
        for column in columns() {
            let cell = row.cells.get(&column).copied().unwrap_or_default();
            let _ = match cell.found == cell.tried && cell.tried > 0 {
                true => write!(text, " all {} |", cell.tried),
                false => write!(text, " {} |", self::text(&cell)),
            };
        }
        let _ = writeln!(text, " {} |", first(row).join(", "));
    }
    text
}

const INTRODUCTION: &str = "# What a check notices

For everyone who wonders which changed fields a check notices: each field of each structure was damaged by eight verbs, on several
pages each, and the database was checked each time. The checksum or torn bits of the page were then corrected, so that only the
field shows the damage; in the column *checksum wrong* they were left wrong. A cell shows `found/tried`, or `found+listed/tried` if
some damage was only listed as *not verified*; a verb that would not change the value is not counted.

This page is generated from real database files by
`MDFSCK_WRITE_BASELINE=1 cargo test --profile tests -p trials --test matrix -- --ignored`. A test fails if a cell gets worse than
it is here.

";
