//! Expressions in the catalog that are designed to take hours. A check must skip them and report them as not verified.
//! Options such as the number of threads must not change the report.
#![allow(clippy::unwrap_used)]

use check::Silent;
use findings::{Options, Readers, Report};
use lab::description::{Column, Expression, Filter, Index, Table, Values};
use lab::{Description, SqlType, Version, orders};

const TOO_EXPENSIVE: &str = "the expression is too expensive to evaluate for these rows";

/// 6 KB of terms. Each term searches for a text in 8000 characters that do not contain the text.
fn endless_filter() -> String {
    let term = format!("replicate('a',8000) like '%{}b'", "a".repeat(27));
    format!("({})", vec![term; 100].join(" or "))
}

/// A search for a text in a million characters that do not contain the text.
fn endless_condition() -> String {
    format!("(convert(varchar(max),replicate(convert(varchar(max),'a'),1000000)) like '%{}b')", "a".repeat(3000))
}

fn database(table: Table) -> Description {
    let mut description = orders::orders(Version::V904, 3, 0);
    description.tables = vec![table];
    description
}

fn table(checks: Vec<(&str, Filter)>, computed: &[&str], indexes: Vec<Index>) -> Table {
    let uniform = |low, high| Values::Uniform { low, high };
    let mut columns = vec![
        Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
        Column::new("a", SqlType::INT, uniform(0, 400)),
        Column::new("b", SqlType::INT, uniform(0, 400)),
        Column::new("c", SqlType::varchar(60), Values::Text { least: 2, most: 60 }).nullable(10),
    ];
    let written = |text: &&str| Expression::Written(1, 2, (*text).to_owned());
    columns.extend(computed.iter().map(|text| Column::computed("computed", written(text), true)));
    Table {
        name: "t".to_owned(),
        columns,
        clustered: Some(Index::on("pk_t", &[0]).primary_key()),
        indexes,
        rows: 1500,
        // Because of ghost records, the rows of some pages differ in layout. On the other pages, all rows that are not
        // ghost records have the same layout.
        ghost_every: 70,
        checks: checks.into_iter().map(|(name, check)| (name.to_owned(), check)).collect(),
        ..Table::default()
    }
}

/// Checks the database with several sets of options. Returns the report, which must be the same for all of them.
fn each_way(description: &Description) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(description, folder.path()).unwrap();
    let source = source::DataFiles::open(&written.files).unwrap();
    let database = catalog::load(&source);
    let all = Options { constraints: true, max_threads: 1, ..Options::default() };
    let run = |options: &Options| check::run(&source, &database, options, &Silent);
    let told = |report: &Report| {
        let findings: Vec<String> = report.findings.iter().map(|finding| format!("{finding:?}")).collect();
        format!("{findings:#?} {:#?} {:#?}", report.not_verified, report.beyond)
    };
    let first = run(&all);
    let expected = told(&first);
    for options in [
        Options { max_threads: 2, ..all.clone() },
        Options { max_threads: 5, memory_bytes: Some(1), ..all.clone() },
        Options { max_threads: 3, readers: Readers::Count(1), ..all.clone() },
        Options { batches: 3, ..all.clone() },
        Options { batches: 2, max_threads: 2, row_by_row: true, ..all.clone() },
        Options { row_by_row: true, ..all.clone() },
    ] {
        assert!(told(&run(&options)) == expected, "{options:?}");
    }
    first
}

fn notes(report: &Report) -> Vec<(String, String, u64)> {
    let expensive = report.not_verified.iter().filter(|note| note.reason == TOO_EXPENSIVE);
    expensive.map(|note| (note.what.clone(), note.scope.clone(), note.count)).collect()
}

#[test]
fn an_endless_filter_leaves_its_index_unverified_and_others_not() {
    let indexes = vec![
        Index::on("ix_endless", &[1]).filtered(Filter::Written(1, endless_filter())),
        Index::on("ix_plain", &[2]),
        Index::on("ix_filtered", &[2]).filtered(Filter::AtLeast(2, 100)),
        Index::on("ix_text", &[2]).filtered(Filter::Written(2, "([b]>=(0) AND NOT [c] like '%[0-9]%z%')".to_owned())),
    ];
    let mut table = table(Vec::new(), &[], indexes);
    table.columns[3].nullable = false;
    let report = each_way(&database(table));
    assert_eq!(report.findings.iter().count(), 0, "{:?}", report.findings.iter().next());
    let index = ("index rows against table rows".to_owned(), "t.ix_endless".to_owned(), 1479);
    assert_eq!(notes(&report), [index]);
    assert_eq!(report.not_verified.iter().filter(|note| note.scope.starts_with("t.")).count(), 1);
}

#[test]
fn an_endless_constraint_is_not_verified_and_others_are() {
    let checks = vec![
        ("ck_endless", Filter::Written(1, endless_condition())),
        ("ck_plain", Filter::AtLeast(1, 0)),
        ("ck_text", Filter::Written(3, "(len([c])<=(60))".to_owned())),
    ];
    let report = each_way(&database(table(checks, &[], Vec::new())));
    assert_eq!(report.findings.iter().count(), 0, "{:?}", report.findings.iter().next());
    let [(_, scope, count)] = &notes(&report)[..] else { panic!("{:?}", report.not_verified) };
    assert!(scope.contains("ck_endless"), "{scope}");
    assert_eq!(*count, 1479);
    let verified: Vec<&str> =
        report.beyond.constraints.iter().filter(|c| c.is_verified).map(|c| c.name.as_str()).collect();
    assert_eq!(verified, ["ck_plain", "ck_text"]);
}

#[test]
fn an_endless_computed_column_is_not_verified() {
    let search = format!("replicate('a',8000) like '%{}b%'", "_".repeat(100));
    let text = format!("(case when {search} then (0) else [a]+[b] end)");
    let report = each_way(&database(table(Vec::new(), &[&text], vec![Index::on("ix_computed", &[4])])));
    assert_eq!(report.findings.iter().count(), 0, "{:?}", report.findings.iter().next());
    let [(what, scope, _)] = &notes(&report)[..] else { panic!("{:?}", report.not_verified) };
    assert_eq!([what.as_str(), scope.as_str()], ["persisted computed columns", "t.computed"]);
}

/// A check evaluates the rows of a page in order until it reaches the limit of steps per page. With any options, a
/// check must evaluate the same rows and find the same violations.
#[test]
fn a_page_is_evaluated_as_far_as_its_steps_reach() {
    let long = format!("replicate('a',[a]*(4)) like '%{}b%'", "_".repeat(4));
    let checks = vec![
        ("ck_long", Filter::Written(1, format!("([b]>=(390) OR NOT {long})"))),
        ("ck_wrong", Filter::Written(1, format!("({long})"))),
    ];
    let report = each_way(&database(table(checks, &[], Vec::new())));
    let notes = notes(&report);
    assert_eq!(notes.len(), 2, "{notes:?}");
    for (_, _, count) in &notes {
        assert!((100..1400).contains(count), "{notes:?}");
    }
    let violations = |name: &str| report.beyond.constraints.iter().find(|c| c.name == name).unwrap().violations;
    assert_eq!(violations("ck_long"), 0);
    assert!((100..1400).contains(&violations("ck_wrong")), "{}", violations("ck_wrong"));
    assert!(report.findings.iter().count() > 0);
}
