//! `mdfsck lab crash`: writes a database that crashed in use, with its log and the true result of recovery.

use std::path::PathBuf;

use ::lab::workload::{Flush, Spec, Stop, TableTruth, Truth, Values, Workload};
use ::lab::{PageVerify, Version};
use clap::{Args, ValueEnum};
use jobs::failure::Failure;
use serde_json::{Value, json};

use super::{refused, unwritten, version};
use crate::output;

#[derive(Args)]
pub(crate) struct CrashArguments {
    /// Folder for the files; created if missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Seed from which all values derive
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of transactions that commit or roll back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=100_000), default_value_t = 60)]
    transactions: u64,

    /// Number of rows in each table at the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), default_value_t = 300)]
    rows: u64,

    /// Internal database version: 706, 852, 904 or 957
    #[arg(long, value_name = "VERSION", value_parser = version, default_value = "904")]
    version: Version,

    /// Crash while transactions are open
    #[arg(long)]
    open: bool,

    /// Crash after this number of log records (default: after all transactions)
    #[arg(long, value_name = "RECORDS", conflicts_with = "open")]
    after: Option<u64>,

    /// Shut the database down cleanly instead of crashing
    #[arg(long, conflicts_with_all = ["open", "after"])]
    clean: bool,

    /// Replace one page by an older version, as if the disk had lost a write
    #[arg(long)]
    lost_write: bool,

    /// Number of log files
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4), default_value_t = 1)]
    log_files: u16,

    /// Take no checkpoints, so that recovery must redo the whole log
    #[arg(long)]
    no_checkpoints: bool,

    /// Which of the changed pages are on disk at the crash
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Written::Some)]
    flush: Written,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    /// Only the pages that were written before the crash
    None,
    /// Also some other pages, chosen by the seed
    Some,
    /// All changed pages
    All,
}

pub(super) fn run(arguments: &CrashArguments) -> Result<u8, Failure> {
    let spec = Spec {
        version: arguments.version,
        verify: PageVerify::Checksum,
        seed: arguments.seed,
        rows: arguments.rows,
        transactions: arguments.transactions,
        log_files: arguments.log_files,
        has_checkpoints: !arguments.no_checkpoints,
        ..Spec::default()
    };
    let stop = match arguments.after {
        Some(records) => Stop::After(records),
        None if arguments.clean => Stop::ShutDown,
        None if arguments.open => Stop::WithOpen,
        None => Stop::WithoutOpen,
    };
    let flush = match arguments.flush {
        Written::None => Flush::None,
        Written::Some => Flush::Some(arguments.seed),
        Written::All => Flush::All,
    };
    let workload = Workload::new(spec).map_err(Failure::unable)?;
    let (crashed, lost) = if arguments.lost_write {
        let lost = workload.with_lost_write(stop, None, arguments.seed);
        let (crashed, lost) =
            lost.ok_or_else(|| Failure::unable("no page was written twice; use more --transactions"))?;
        (crashed, Some(lost))
    } else {
        (workload.crash(stop, flush), None)
    };
    let dir = &arguments.dir;
    let description = dir.join("truth.json");
    if description.exists() {
        return Err(Failure::exists(&description));
    }
    let files = crashed.write(dir).map_err(unwritten)?;
    let mut line = truth(&crashed.truth);
    if let Some(lost) = &lost {
        line["lost_write"] = json!({
            "page": format!("{}:{}", lost.page.file, lost.page.page),
            "page_type": lost.page_type,
            "on_disk": lost.on_disk,
            "last": lost.last,
            "in_log": lost.is_in_log,
        });
    }
    let text = format!("{line}\n");
    std::fs::write(&description, text).map_err(|cause| refused(&description, &cause))?;
    let truth = &crashed.truth;
    output::print(|out| {
        for file in files.iter().chain([&description]) {
            writeln!(out, "{}", file.display())?;
        }
        let (records, missing, open) = (truth.records, truth.missing.len(), truth.open.len());
        writeln!(out, "  {records} log records, {missing} changed pages not on disk, {open} transactions open")?;
        if let Some(lost) = &lost {
            let (file, page) = (lost.page.file, lost.page.page);
            writeln!(out, "  page ({file}:{page}) lost a write: its LSN is {} instead of {}", lost.on_disk, lost.last)?;
        }
        Ok(())
    })?;
    Ok(0)
}

/// Formats the true result of recovery as JSON.
pub(super) fn truth(truth: &Truth) -> Value {
    let open = truth.open.iter().map(|open| {
        json!({
            "transaction": open.number,
            "begin": open.begin,
            "system": open.is_system,
            "prepared": open.is_prepared,
            "creates_chain": open.creates_chain,
        })
    });
    let missing = truth.missing.iter().map(|page| format!("{}:{}", page.file, page.page));
    json!({
        "records": truth.records,
        "end": truth.end,
        "open": open.collect::<Vec<Value>>(),
        "not_on_disk": missing.collect::<Vec<String>>(),
        "tables": tables(&truth.tables),
    })
}

/// Formats the rows of tables as JSON.
pub(super) fn tables(tables: &[TableTruth]) -> Vec<Value> {
    let table = |table: &TableTruth| {
        let rows: Vec<Value> = table.rows.iter().map(row).collect();
        json!({ "name": table.name, "columns": table.columns, "rows": rows })
    };
    tables.iter().map(table).collect()
}

/// Formats a row as JSON: each value is the hexadecimal digits of its stored bytes, and NULL is null.
pub(super) fn row(row: &Values) -> Value {
    row.iter().map(|value| value.as_ref().map(|bytes| lab::hex_digits(bytes))).collect::<Vec<_>>().into()
}
