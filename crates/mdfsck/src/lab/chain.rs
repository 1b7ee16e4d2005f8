//! `mdfsck lab chain`: writes backups of a database in use, and the true rows at the end of each backup.

use std::path::PathBuf;

use ::lab::workload::{ChainOptions, SetKind, Spec, Workload};
use ::lab::{PageVerify, Version};
use clap::{Args, ValueEnum};
use jobs::failure::Failure;
use serde_json::{Value, json};

use super::crash::{row, tables, truth};
use super::{refused, unwritten, version};
use crate::output;

#[derive(Args)]
pub(crate) struct ChainArguments {
    /// Folder for the files; created if missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Kinds of backups, in this order; the first must be full
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',', default_value = "full,log,diff,log,log")]
    sets: Vec<Kind>,

    /// Seed from which all values derive
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of transactions that commit or roll back, without the transactions that run while pages are copied
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=100_000), default_value_t = 200)]
    transactions: u64,

    /// Number of rows in each table at the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), default_value_t = 300)]
    rows: u64,

    /// After each N transactions, make, drop, truncate, rebuild or change a table, or change the size of the data file; 0
    /// for never
    #[arg(long, value_name = "N", default_value_t = 0)]
    ddl: u64,

    /// Internal database version: 706, 852, 904 or 957
    #[arg(long, value_name = "VERSION", value_parser = version, default_value = "904")]
    version: Version,

    /// Number of stripes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), default_value_t = 1)]
    stripes: u16,

    /// Write the backups WITH COMPRESSION
    #[arg(long)]
    compressed: bool,

    /// Write the backups WITH CHECKSUM
    #[arg(long)]
    checksum: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A full backup: all pages in use
    Full,
    /// A differential backup: extents that changed since the last full backup
    Diff,
    /// A log backup: the log since the last log backup
    Log,
}

pub(super) fn run(arguments: &ChainArguments) -> Result<u8, Failure> {
    let spec = Spec {
        version: arguments.version,
        verify: PageVerify::Checksum,
        seed: arguments.seed,
        rows: arguments.rows,
        transactions: arguments.transactions,
        ddl_each: arguments.ddl,
        ..Spec::default()
    };
    let kinds = arguments.sets.iter().map(|kind| match kind {
        Kind::Full => SetKind::Full,
        Kind::Diff => SetKind::Differential,
        Kind::Log => SetKind::Log,
    });
    let kinds: Vec<SetKind> = kinds.collect();
    let dir = &arguments.dir;
    std::fs::create_dir_all(dir).map_err(|cause| refused(dir, &cause))?;
    let description = dir.join("truth.json");
    if description.exists() {
        return Err(Failure::exists(&description));
    }
    let options =
        ChainOptions { checksum: arguments.checksum, compressed: arguments.compressed, stripes: arguments.stripes };
    let chain = Workload::new(spec).and_then(|workload| workload.chain(&kinds, options, dir)).map_err(unwritten)?;
    let sets = chain.sets.iter().map(|set| {
        let names = set.files.iter().map(|file| file.file_name().unwrap_or_default().to_string_lossy());
        let mut line = truth(&set.truth);
        line["files"] = json!(names.collect::<Vec<_>>());
        line["first"] = json!(set.lsns.0);
        line["last"] = json!(set.lsns.1);
        line
    });
    let commits = chain.commits.iter().map(|commit| {
        let changes = commit.changes.iter().map(|change| {
            let (before, after) = (change.before.as_ref().map(row), change.after.as_ref().map(row));
            json!({ "table": chain.tables[change.table].name, "before": before, "after": after })
        });
        json!({ "lsn": commit.lsn, "time": commit.time, "changes": changes.collect::<Vec<Value>>() })
    });
    let commits: Vec<Value> = commits.collect();
    let all = json!({ "sets": sets.collect::<Vec<Value>>(), "tables": tables(&chain.tables), "commits": commits });
    let text = format!("{all}\n");
    std::fs::write(&description, text).map_err(|cause| refused(&description, &cause))?;
    output::print(|out| {
        for set in &chain.sets {
            for file in &set.files {
                writeln!(out, "{}", file.display())?;
            }
            writeln!(out, "  {} .. {}  {} transactions open", set.lsns.0, set.lsns.1, set.truth.open.len())?;
        }
        writeln!(out, "{}", description.display())
    })?;
    Ok(0)
}
