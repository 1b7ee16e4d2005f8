//! Measures how many MB of data pages per second one core exports, for each kind of table and each form of file. Run
//! the benchmark with `cargo bench -p mdfsck-export --bench rows`. Words after `--` select tables and forms.
//!
//! Each rate is based on the processor time of the best of several runs. The forms take turns in each run. The number
//! in parentheses after a rate is the ratio of this rate to the rate of verifying checksums, the least possible work.
//! The checksums of the same file are verified in each run, too.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use catalog::Database;
use export::{Destination, Form, TableSource, frame, write_table};
use format::protection::verify;
use format::{PAGE_BYTES, Page, PageType};
use lab::description::{Column, Compression, DEFAULT_COLLATION, Description, Filegroup, Index, Table, Values};
use lab::{PageVerify, SqlType, Version};
use rows::{RANGE_PAGES, Reader, Scan, ScanOptions};
use script::Definitions;
use source::{DataFiles, PageBuffer, PageSource};

const RUNS: u32 = 5;
/// The approximate size of a table in bytes.
const BYTES: u64 = 40 << 20;

/// Processor time of this process.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// A table: its name, the approximate size of a row in bytes, and its columns.
type Subject = (&'static str, u64, fn() -> Vec<Column>);

fn uniform(low: i64, high: i64) -> Values {
    Values::Uniform { low, high }
}

fn text(least: u32, most: u32) -> Values {
    Values::Text { least, most }
}

const SUBJECTS: [Subject; 8] = [
    ("fixed and short strings", 120, || {
        let mut columns = fixed();
        columns.extend([
            Column::new("code", SqlType::char(8), Values::Scattered { per: 1 }),
            Column::new("name", SqlType::nvarchar(60), text(6, 30)),
            Column::new("city", SqlType::varchar(40), text(4, 20)).nullable(5),
        ]);
        columns
    }),
    ("fixed", 60, fixed),
    ("integers", 50, || (0..9).map(|n| Column::new(&format!("c{n}"), SqlType::INT, uniform(1, 1 << 30))).collect()),
    ("short varchar", 100, || {
        (0..4).map(|n| Column::new(&format!("c{n}"), SqlType::varchar(40), text(4, 36))).collect()
    }),
    ("short nvarchar", 180, || {
        (0..4).map(|n| Column::new(&format!("c{n}"), SqlType::nvarchar(40), text(4, 36))).collect()
    }),
    ("decimals and dates", 80, || {
        let columns = [
            ("a", SqlType::decimal(38, 10)),
            ("b", SqlType::MONEY),
            ("c", SqlType::datetime2(7)),
            ("d", SqlType::DATE),
            ("e", SqlType::datetimeoffset(3)),
            ("f", SqlType::FLOAT),
            ("g", SqlType::UNIQUEIDENTIFIER),
        ];
        columns.map(|(name, ty)| Column::new(name, ty, uniform(1, 2_000_000))).into()
    }),
    ("page compressed", 120, || SUBJECTS[0].2()),
    ("off-row values of 20 to 60 KB", 40_000, || {
        vec![Column::new("document", SqlType::VARCHAR_MAX, text(20_000, 60_000))]
    }),
];

fn fixed() -> Vec<Column> {
    vec![
        Column::new("customer", SqlType::INT, uniform(1, 1_000_000)),
        Column::new("amount", SqlType::decimal(12, 2), uniform(1, 5_000_000)),
        Column::new("paid", SqlType::DATETIME, Values::Serial { start: 40_000, step: 1 }),
        Column::new("kind", SqlType::SMALLINT, uniform(1, 9)),
        Column::new("active", SqlType::BIT, uniform(0, 1)),
        Column::new("ticket", SqlType::BIGINT, uniform(1, 1 << 40)),
        Column::new("price", SqlType::MONEY, uniform(1, 50_000_000)),
    ]
}

fn description((name, row_bytes, columns): Subject) -> Description {
    let id = Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 });
    let is_compressed = name.contains("compressed");
    let table = Table {
        name: "subject".to_owned(),
        columns: [id].into_iter().chain(columns()).collect(),
        // Compressed tables are heaps, because the form of non-leaf rows of a compressed index is undocumented.
        clustered: (!is_compressed).then(|| Index::on("pk", &[0]).primary_key()),
        compression: if is_compressed { Compression::Page } else { Compression::None },
        rows: BYTES / row_bytes,
        ..Table::default()
    };
    Description {
        name: "bench".to_owned(),
        version: Version::V852,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed: 1,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table],
        least_pages: 1024,
    }
}

/// Reads and verifies all pages of the file. Returns the number of pages, and the number of pages with off-row values.
fn verify_all(source: &dyn PageSource) -> (u64, u64) {
    let mut buffer = PageBuffer::new(RANGE_PAGES as u32);
    let (mut all, mut off_row, mut first) = (0, 0, format::PageId::new(1, 0));
    loop {
        let Ok(read @ 1..) = source.read(first, buffer.bytes()) else { return (all, off_row) };
        for page in buffer.bytes().chunks_exact(PAGE_BYTES).take(read).filter_map(<[u8]>::first_chunk) {
            all += u64::from(black_box(verify(page)).is_ok());
            let kind = Page::new(page).header().kind();
            off_row += u64::from(matches!(kind, Some(PageType::TextMix | PageType::TextTree)));
        }
        first.page += read as u32;
    }
}

/// Reads all rows without using them; returns the number of pages.
fn read_all(source: TableSource<'_>) -> Result<u64, Box<dyn Error>> {
    let mut scan = Scan::new(source.pages, source.database, source.table, source.options);
    let mut reader = Reader::new(source.pages, source.database, source.table, source.options);
    let mut pages = 0;
    while let Some(range) = scan.next_range() {
        pages += range.pages.len() as u64;
        reader.read(&range, &mut |row| {
            black_box(row.values);
            Ok(())
        })?;
    }
    Ok(pages)
}

fn form(name: &str, definitions: &Definitions, source: TableSource<'_>) -> Result<Form, Box<dyn Error>> {
    Ok(match name {
        "csv" => Form::Csv,
        "jsonl" => Form::JsonLines,
        "parquet" => Form::Parquet,
        _ => Form::Sql(frame(source.database, definitions, source.table).ok_or("no frame")?),
    })
}

const FORMS: [&str; 4] = ["csv", "jsonl", "sql", "parquet"];

/// Returns six rates in MB of pages per second: for verifying checksums, for reading rows, and for writing each of the
/// four forms of file. The first two rates serve as a comparison for the rates of the forms.
fn measure(source: TableSource<'_>, folder: &Path, forms: &[&str]) -> Result<[f64; 6], Box<dyn Error>> {
    let definitions = Definitions::load(source.pages, source.database);
    let (all_pages, off_row_pages) = verify_all(source.pages);
    let pages = read_all(source)? + off_row_pages;
    let mut best = [Duration::MAX; 6];
    for _ in 0..RUNS {
        let mut take =
            |at: usize, work: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| -> Result<(), Box<dyn Error>> {
                let start = cpu();
                work()?;
                best[at] = best[at].min(cpu() - start);
                Ok(())
            };
        take(0, &mut || {
            black_box(verify_all(source.pages));
            Ok(())
        })?;
        take(1, &mut || read_all(source).map(|_| ()))?;
        for (at, name) in FORMS.iter().enumerate().filter(|(_, name)| forms.contains(*name)) {
            let place = |end: &str| folder.join(format!("subject.{end}"));
            let to = Destination { rows: place(name), unreadable: place("unreadable.csv"), replaces: true };
            take(2 + at, &mut || {
                let written = write_table(source, form(name, &definitions, source)?, &to, 1, &|_| {})?;
                let damaged = written.counts.damaged_pages.first();
                assert_eq!((damaged, written.unreadable_values), (None, 0), "{name}");
                Ok(())
            })?;
            std::fs::remove_file(&to.rows)?;
        }
    }
    let megabytes = |pages: u64| pages as f64 * PAGE_BYTES as f64 / 1e6;
    let mut rates = best.map(|best| megabytes(pages) / best.as_secs_f64());
    // Verifying checksums reads all pages of the file, including pages without rows of the table. So the first rate
    // counts all pages.
    rates[0] = megabytes(all_pages) / best[0].as_secs_f64();
    Ok(rates)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (forms, words): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| FORMS.contains(word) || *word == "rows");
    let forms = if forms.is_empty() { FORMS.to_vec() } else { forms };
    println!("MB of data pages per second of one core (ratio to verifying checksums)\n");
    print!("{:<42} {:>8} {:>14}", "table", "verify", "rows only");
    println!("{}", FORMS.map(|form| format!("{form:>14}")).concat());
    for subject in SUBJECTS.into_iter().filter(|(name, ..)| words.iter().all(|word| name.contains(word))) {
        let folder = tempfile::tempdir()?;
        let files = DataFiles::open(&lab::write(&description(subject), folder.path())?.files)?;
        let database: Database = catalog::load(&files);
        let id = rows::Table::list(&database)[0];
        let table = rows::Table::of(&database, id).map_err(|why| why.to_string())?;
        let source = TableSource { pages: &files, database: &database, table: &table, options: ScanOptions::default() };
        let [verified, rates @ ..] = measure(source, folder.path(), &forms)?;
        print!("{:<42} {verified:>8.0}", subject.0);
        println!("{}", rates.map(|rate| format!(" {rate:>5.0} ({:>4.2})", rate / verified)).concat());
    }
    Ok(())
}
