use std::io::Read as _;
use std::time::Instant;

use ::findings::{
    FileSummary, Finding, MAX_OWNERS, MAX_RUNS, MapOfFile, MapOwner, MapRun, MapState, NotVerified, PageMap, registry,
};
use format::PageId;
use serde_json::Value;

use super::*;
use crate::fixture::{owner, page_io, report, rowset};

/// A source without pages, so that the report shows no bytes.
struct NoPages;

impl PageSource for NoPages {
    fn files(&self) -> &[source::DataFile] {
        &[]
    }

    fn read(&self, first: PageId, _: &mut [u8]) -> Result<usize, source::ReadError> {
        Err(source::ReadError::NoSuchFile { file_id: first.file })
    }
}

fn page(report: &Report) -> String {
    let database = Database::default();
    let commands = Commands { paths: "a.mdf", command: "check", arguments: "a.mdf", status: 1 };
    let page = CheckPage {
        report,
        database: &database,
        source: &NoPages,
        command_line: "mdfsck check --html a.html a.mdf",
        commands,
        version: "1.2.3",
        started: "2026-11-21 22:00:00",
    };
    let mut out = Vec::new();
    page.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The content of the script element with this ID.
fn script<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!(" id={id}>")).unwrap();
    rest.split_once("</script>").unwrap().0
}

fn data(page: &str) -> Value {
    serde_json::from_str(script(page, "data")).unwrap()
}

/// The runs and marks of the page, decoded and decompressed.
fn runs(page: &str) -> Vec<u64> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut packed = Vec::new();
    for group in script(page, "runs").as_bytes().chunks(4) {
        let digit = |byte: &u8| DIGITS.find(char::from(*byte)).unwrap_or(0) as u32;
        let bits = group.iter().fold(0, |bits, byte| bits << 6 | digit(byte));
        let length = 3 - group.iter().filter(|byte| **byte == b'=').count();
        packed.extend_from_slice(&bits.to_be_bytes()[1..=length]);
    }
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0, 0);
    for byte in bytes {
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

fn of_file(pages: u32, runs: Vec<MapRun>) -> PageMap {
    PageMap { files: vec![MapOfFile { file_id: 1, pages, cell_shift: 0, runs }], ..PageMap::default() }
}

#[test]
fn names_cannot_become_markup() {
    let hostile = format!("</script><img src=x onerror=alert(1)>\u{202e}\0<!--{}", "x".repeat(4000));
    let mut report = report(&hostile, 5);
    report.rowsets = vec![rowset(&hostile, &hostile, 5, (2, 1))];
    report.database.files =
        vec![FileSummary { path: hostile.clone().into(), file_id: 1, logical_name: hostile.clone(), pages: 80 }];
    report.findings = vec![
        page_io(owner(5, 1, 1), PageId::new(1, 9), 1, 2),
        Finding::new(&registry::EXTENT_OWNER).page(PageId::new(1, 16)).text_value("owner_name", hostile.clone()),
    ]
    .into();
    report.read_errors = vec![hostile.clone()];
    report.not_verified = vec![NotVerified {
        what: "key order".into(),
        scope: hostile.clone(),
        reason: hostile.clone(),
        count: 1,
        limit: &registry::limits::COLUMNS_UNKNOWN,
        objects: Vec::new(),
    }];
    report.page_map = Some(of_file(80, vec![MapRun { cells: 10, owner: 0, state: MapState::Free }]));
    let page = page(&report);
    assert!(!page.contains("<img") && !page.contains("<!--"));
    assert_eq!(page.matches("</script>").count(), page.matches("<script").count());
    assert!(!page.contains(['\0', '\u{202e}']));
    assert!(page.len() < 100_000, "{}", page.len());
    let data = data(&page);
    let name = data["head"]["name"].as_str().unwrap();
    assert!(name.starts_with(r"</script><img src=x onerror=alert(1)>\u{202e}\u{0}<!--xxx") && name.ends_with('…'));
    assert_eq!(data["findings"]["count"], 2);
}

#[test]
fn a_page_loads_nothing() {
    let page = page(&report("Shop", 5));
    assert!(page.contains("default-src 'none'"));
    let policy = page.find("Content-Security-Policy").unwrap();
    assert!(policy < page.find("<style").unwrap() && policy < page.find("<script").unwrap());
    for loads in ["http://", "https://", "src=", "href=", "url(", "@import", "innerHTML", "eval(", "fetch("] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn runs_and_marks_are_those_of_the_map() {
    let mut report = report("Shop", 5);
    report.findings = vec![page_io(owner(5, 1, 1), PageId::new(1, 9), 1, 2)].into();
    let runs_of_file = vec![
        MapRun { cells: 1, owner: 0, state: MapState::Maps },
        MapRun { cells: 300, owner: 2, state: MapState::Index },
    ];
    let owner = |object_id, index_id| MapOwner { object_id, index_id };
    let map = PageMap {
        owners: vec![owner(5, 1), owner(5, 2)],
        unread: vec![(PageId::new(1, 70), 4096)],
        ..of_file(2408, runs_of_file)
    };
    report.page_map = Some(map);
    let page = page(&report);
    // Two runs, then marks of one page each: page 9 is damaged, page 70 is not verified.
    assert_eq!(runs(&page), [2, 1, 7, 300, 2 << 4 | 2, 0, 2, 9 << 1 | 1, 61 << 1]);
    let data = data(&page);
    assert_eq!(data["map"]["owners"], serde_json::json!([[0, "index ID 1"], [0, "index ID 2"]]));
    assert_eq!(data["map"]["files"][0]["pages"], 2408);
    // Page 70 is the first of 4,096 unread pages.
    assert_eq!(data["map"]["files"][0]["unread"], serde_json::json!([70, 4096]));
}

#[test]
fn marks_of_many_pages_become_stretches_and_none_is_lost() {
    let mut report = report("Shop", 5);
    let pages = 300_000;
    report.findings =
        (0..pages).map(|at| page_io(owner(5, 1, 1), PageId::new(1, at * 8), 1, 2)).collect::<Vec<_>>().into();
    report.page_map = Some(of_file(pages * 8, vec![MapRun { cells: pages, owner: 0, state: MapState::Data }]));
    let page = page(&report);
    let numbers = runs(&page);
    let (shift, count) = (numbers[3], numbers[4]);
    assert!(shift > 3 && count <= 1 << 16, "{shift}, {count}");
    let last: u64 = numbers[5..].iter().map(|number| number >> 1).sum();
    assert_eq!(last, u64::from((pages - 1) * 8) >> shift);
    let data = data(&page);
    assert_eq!(data["findings"]["count"], pages);
    assert_eq!(data["findings"]["places"][0]["messages"][0]["shown"].as_array().unwrap().len(), 200);
}

/// The size of a generated report.
struct Amount {
    pages: u32,
    files: u16,
    tables: i32,
    findings: u32,
    not_verified: usize,
}

/// The largest report that is possible: a database of 800 GB.
const MOST: Amount = Amount { pages: 100_000_000, files: 2000, tables: 5000, findings: 100_000, not_verified: 20_000 };

/// A long text of the characters that need the most bytes when escaped.
fn longest() -> String {
    "<\u{202e}名".repeat(1300)
}

/// A report on a database in which neighboring extents differ as often as possible.
fn irregular(amount: &Amount, name: &str) -> Report {
    let Amount { pages, files, tables, findings, not_verified } = *amount;
    let mut report = report(name, 5);
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let states = MapState::ALL;
    let extents = u64::from(pages / 8);
    let most = extents.min(MAX_RUNS as u64);
    // The lengths of the runs are random. On average, the runs together cover all extents.
    let runs = (0..most).map(|_| MapRun {
        cells: 1 + next((2 * extents / most).saturating_sub(1).max(1)) as u32,
        owner: next(MAX_OWNERS as u64 + 2) as u16,
        state: states[next(states.len() as u64) as usize],
    });
    let runs = runs.collect();
    let owners = (0..MAX_OWNERS as i32).map(|at| MapOwner { object_id: at + 5, index_id: 1 }).collect();
    let mut map = PageMap { owners, ..of_file(pages, runs) };
    let free = MapRun { cells: 1, owner: 0, state: MapState::Free };
    map.files.extend((2..=files).map(|file_id| MapOfFile { file_id, pages: 8, cell_shift: 0, runs: vec![free] }));
    report.page_map = Some(map);
    report.database.files = (1..=files)
        .map(|file_id| FileSummary { path: name.into(), file_id, logical_name: name.to_owned(), pages: 8 })
        .collect();
    report.rowsets = (0..tables).map(|id| rowset(name, name, id, (2, 1))).collect();
    let finding = |at: u32| {
        let check = registry::ALL[at as usize % registry::ALL.len()];
        let owner = owner(5 + at as i32 % (tables - 1), 1, 1);
        Finding::new(check).owner(owner).page(PageId::new(1, at * 991)).text_value("name", name.to_owned())
    };
    report.findings = (0..findings).map(finding).collect::<Vec<_>>().into();
    report.not_verified = (0..not_verified)
        .map(|at| NotVerified {
            what: name.to_owned(),
            scope: format!("{at} {name}"),
            reason: format!("{} {name}", at % 500),
            count: 1,
            limit: registry::limits::ALL[at % registry::limits::ALL.len()],
            objects: Vec::new(),
        })
        .collect();
    report
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_page_has_8_megabytes_at_most() {
    let report = irregular(&MOST, &longest());
    let start = Instant::now();
    let page = page(&report);
    println!("{} bytes in {:.2} s", page.len(), start.elapsed().as_secs_f64());
    assert!(page.len() <= 8_000_000, "{}", page.len());
    let data = data(&page);
    assert_eq!(data["findings"]["count"], 100_000);
    let files = data["map"]["files"].as_array().unwrap().len() as u64;
    assert_eq!(data["map"]["more_files"], 2000 - files);
}

/// If the environment variable `MDFSCK_PAGES` names a folder, this test also writes the pages to it, so that
/// `benches/page_load.py` can load them into a browser.
#[test]
#[ignore = "full tier: takes seconds"]
fn pages_of_large_databases_have_8_megabytes_at_most() {
    let folder = std::env::var_os("MDFSCK_PAGES");
    let write = |name: &str, report: &Report| {
        let page = page(report);
        assert!(page.len() <= 8_000_000, "{name}: {}", page.len());
        if let Some(folder) = &folder {
            std::fs::write(std::path::Path::new(folder).join(name), page).expect("a folder that can be written");
        }
    };
    for pages in [1_000_000, 100_000_000] {
        let amount = Amount { pages, files: 4, tables: 300, findings: 500, not_verified: 40 };
        write(&format!("{pages}.html"), &irregular(&amount, "orders"));
    }
    write("most.html", &irregular(&MOST, &longest()));
}
