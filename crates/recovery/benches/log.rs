//! Measures how long one thread needs to read a log from the file cache of the operating system. The result is compared
//! with the time for reading the blocks and computing their checksums. Run it with `cargo bench -p mdfsck-recovery
//! --bench log`. After `--`, give the size of the log to generate in MB (default 256), or the path of an existing log.
//! The benchmark only reads an existing log.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use format::log::block::{MAX_BYTES, size_on_disk};
use format::protection::sectors_sum;
use lab::workload::{Flush, Spec, Stop, Workload};
use log::{Log, Walk};
use recovery::{Analysis, RecoveredPages, Recovery, Settings};
use source::{DataFiles, PageSource, read_fully_at};

/// Approximate number of bytes that each generated transaction adds to the log.
const BYTES_PER_TRANSACTION: u64 = 22_000;
const RUNS: usize = 9;
const READ_BYTES: usize = 1 << 20;

type Timed = (Duration, u64);

/// The shortest time of several runs, and the number of bytes read.
fn fastest(mut run: impl FnMut() -> Result<u64, Box<dyn Error>>) -> Result<Timed, Box<dyn Error>> {
    let mut best = (Duration::MAX, 0);
    for _ in 0..RUNS {
        let start = Instant::now();
        let bytes = black_box(run()?);
        best = best.min((start.elapsed(), bytes));
    }
    Ok(best)
}

/// Reads all blocks in order and computes their checksums, without comparing the checksums or interpreting the blocks.
fn sums(log: &Log) -> Result<u64, Box<dyn Error>> {
    let file = File::open(&log.files().first().ok_or("a file")?.path)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut bytes, mut sum) = (0, 0);
    for placed in log.run() {
        let mut at = placed.from;
        while at < placed.to {
            let wanted = usize::try_from(placed.to - at)?.min(READ_BYTES);
            let read = read_fully_at(&file, &mut buffer[..wanted], at)?;
            let mut within = 0;
            // A block that may be incomplete in the buffer is read again by the next read.
            while within + MAX_BYTES <= read || within < read && at + read as u64 >= placed.to {
                let Some(size) = size_on_disk(&buffer[within..read]).filter(|size| within + size <= read) else {
                    break;
                };
                sum ^= sectors_sum(0, &buffer[within..within + size]);
                within += size;
            }
            if within == 0 {
                break;
            }
            bytes += within as u64;
            at += within as u64;
        }
    }
    black_box(sum);
    Ok(bytes)
}

/// Walks the log to its end and counts the records.
fn walk(log: &Log, records: &mut usize) -> Result<u64, Box<dyn Error>> {
    let (mut walk, mut bytes) = (Walk::new(log), 0);
    *records = 0;
    while let Some(block) = walk.next_block()? {
        bytes += block.size() as u64;
        *records += block.records().count();
    }
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let megabytes = words.first().map_or(Ok(256), |word| word.parse());
    println!("{:<40} {:>8} {:>8} {:>10}", "one thread, from the cache", "MB", "GB/s", "of least");
    match megabytes {
        Ok(megabytes) => of_a_workload(megabytes),
        Err(_) => read(&Log::open(&words.iter().map(PathBuf::from).collect::<Vec<_>>())?).map(|_| ()),
    }
}

fn print(name: &str, timed: Timed, least: Timed) {
    let rate = |(time, bytes): Timed| bytes as f64 / time.as_secs_f64();
    let (megabytes, share) = (timed.1 as f64 / 1e6, rate(timed) / rate(least));
    println!("{name:<40} {megabytes:>8.1} {:>8.2} {share:>10.2}", rate(timed) / 1e9);
}

/// Measures only the reading of the log, without recovery. Returns the time for computing the checksums alone, which is
/// the lower bound.
fn read(log: &Log) -> Result<Timed, Box<dyn Error>> {
    let least = fastest(|| sums(log))?;
    print("least: each block read and summed", least, least);
    let mut records = 0;
    print("walk: blocks verified, all records", fastest(|| walk(log, &mut records))?, least);
    println!("{records} records of {} bytes of log on average", least.1 / (records as u64).max(1));
    Ok(least)
}

fn of_a_workload(megabytes: u64) -> Result<(), Box<dyn Error>> {
    let spec = Spec {
        transactions: (megabytes << 20) / BYTES_PER_TRANSACTION,
        rows: 2000,
        vlf_bytes: 16 << 20,
        has_checkpoints: false,
        ..Spec::default()
    };
    let folder = tempfile::tempdir()?;
    let crashed = Workload::new(spec)?.crash(Stop::WithOpen, Flush::None);
    let mut paths = Vec::new();
    for (name, bytes) in crashed.files.iter().chain([&crashed.log]) {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes)?;
        paths.push(path);
    }
    drop(crashed);
    let log = Log::open(&[paths.pop().ok_or("a log")?])?;
    let source = DataFiles::open(&paths)?;
    let settings = Settings { grant_bytes: 2 << 30, ..Settings::default() };

    let least = read(&log)?;
    let analysis = || Analysis::new(&source, &log, &settings);
    print("analysis: last LSN per page, open ones", fastest(|| Ok(analysis()?.log_bytes))?, least);
    let mut done = (0, 0);
    let recovered = fastest(|| {
        let recovery = Recovery::new(&source, &log, analysis()?, &settings)?;
        done = (recovery.applied.pages, recovery.applied.records);
        let bytes = recovery.analysis.log_bytes;
        black_box(RecoveredPages::new(&source, recovery).files().len());
        Ok(bytes)
    })?;
    print("recovery: analysis, redo and undo", recovered, least);
    println!("{} pages made from {} records", done.0, done.1);
    Ok(())
}
