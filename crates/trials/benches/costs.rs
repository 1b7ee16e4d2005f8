//! Measures what expressions just below the complexity limits cost: processor time per page and per GB.
//!
//! Run it with `cargo bench -p trials --bench costs`; the run takes a minute. It fails if a page costs more than 2 ms.
#![expect(clippy::unwrap_used, reason = "an instrument: where it cannot work, no result means anything")]

use check::Silent;
use findings::{Options, Report};
use lab::description::{Column, Filter, Index, Table, Values};
use lab::{Description, SqlType, Version, orders};

/// The number of data pages of the checked table.
const PAGES: u64 = 200;
/// The maximum length of an expression, in bytes. The lab cannot store a longer expression in a row of sysobjvalues.
const TEXT_BYTES: usize = 7_600;
/// The maximum processor time per page. It is a thousand times the processor time of a page without constraints.
const MOST_MICROSECONDS_PER_PAGE: f64 = 2_000.0;

/// Terms of expressions. Each entry consists of a name, which says why the term is slow, and the term, a condition that
/// is always false. `#` is replaced by a number, which is smaller if a page has more rows.
const TERMS: [(&str, &str); 12] = [
    ("LIKE, no match", "replicate('a',#) like '%aaaaaaaaab'"),
    ("LIKE, sets", "replicate('a',#) like '%[a-z]%[0-9]'"),
    ("REPLACE", "len(replace(replicate('ab',#),'b','cc'))<(0)"),
    ("CHARINDEX", "charindex('aaaaaaaab',replicate('a',#))>(0)"),
    ("decimal division", "[d]/(1.0000000003)/(1.0000000007)<(0)"),
    ("decimal product", "[d]*(1.0000000003)*(1.0000000007)<(0)"),
    ("decimal to string", "len(CONVERT([varchar](40),[d]))<(0)"),
    ("string to decimal", "CONVERT([decimal](38,4),replicate('1',[a]))<(0)"),
    ("date and time to string", "CONVERT([varchar](30),[t],(121))<'0'"),
    ("string to date", "CONVERT([datetime],left('20201231',[a]))<'17530101'"),
    ("DATEDIFF and DATEADD", "datediff(day,[t],dateadd(month,(3),[t]))<(0)"),
    ("comparisons", "[a]<(0) AND [d]<(0)"),
];

fn database(rows_per_page: u64, condition: String) -> Description {
    let filler = (7900 / rows_per_page).saturating_sub(40).max(1) as u16;
    let mut description = orders::orders(Version::V904, 3, 0);
    let checks = vec![("ck".to_owned(), Filter::Written(1, condition))];
    description.tables = vec![Table {
        name: "t".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("a", SqlType::INT, Values::Uniform { low: 8, high: 8 }),
            Column::new("d", SqlType::decimal(19, 4), Values::Uniform { low: 10_000, high: 90_000 }),
            Column::new("t", SqlType::DATETIME, Values::Uniform { low: 1_000_000_000, high: 2_000_000_000 }),
            Column::new("c", SqlType::char(filler), Values::Text { least: 1, most: 1 }),
        ],
        clustered: Some(Index::on("pk_t", &[0]).primary_key()),
        rows: PAGES * rows_per_page,
        checks,
        ..Table::default()
    }];
    description
}

/// Checks the database on one thread. Returns the report, and the processor time of the check in seconds.
fn check(description: &Description, constraints: bool) -> (Report, f64) {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(description, folder.path()).unwrap();
    let source = source::DataFiles::open(&written.files).unwrap();
    let database = catalog::load(&source);
    let options = Options { constraints, max_threads: 1, ..Options::default() };
    let report = check::run(&source, &database, &options, &Silent);
    let seconds = report.statistics.phases.iter().filter_map(|phase| phase.cpu_user_seconds).sum();
    (report, seconds)
}

/// Checks the database with an expression that has as many terms as the complexity limits and the maximum length of the
/// text allow. Returns the cost in microseconds per page, and the number of terms.
fn cost(term: &str, rows_per_page: u64) -> (f64, usize) {
    let condition = |terms: usize| format!("(NOT ({}))", vec![term; terms].join(" OR "));
    let most = TEXT_BYTES / (term.len() + 4);
    let (mut low, mut high) = (0, most + 1);
    let mut cost = 0.0;
    while high - low > 1 + low / 16 {
        let terms = low.midpoint(high);
        let description = database(rows_per_page, condition(terms));
        let (report, seconds) = check(&description, true);
        let is_refused = report.not_verified.iter().any(|note| note.scope.contains("ck"));
        if is_refused {
            high = terms;
        } else {
            low = terms;
            let (_, bare) = check(&description, false);
            cost = (seconds - bare) * 1e6 / PAGES as f64;
        }
    }
    (cost, low)
}

fn main() {
    let mut worst = 0.0_f64;
    for rows_per_page in [1, 12, 60, 200] {
        for (name, term) in TERMS {
            let term = term.replace('#', &(2000 / rows_per_page).to_string());
            let (microseconds, terms) = cost(&term, rows_per_page);
            let per_gb = microseconds * 131_072.0 / 1e6;
            println!(
                "{rows_per_page:3} rows per page, {name}: {terms} terms, {microseconds:.0} us per page, {per_gb:.0} s per GB"
            );
            worst = worst.max(microseconds);
        }
    }
    assert!(worst < MOST_MICROSECONDS_PER_PAGE, "{worst:.0} us");
}
