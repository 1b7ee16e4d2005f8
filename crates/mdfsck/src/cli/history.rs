//! The options of `mdfsck history`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct HistoryArguments {
    /// The file that 'mdfsck check --history FILE' writes
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(subcommand)]
    pub(crate) verb: Option<HistoryVerb>,

    /// Show only this database: its name or its family GUID
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) database: Option<String>,

    /// Show only entries since this date (UTC), or from a span until now, such as 14d
    #[arg(long, global = true, value_name = "DATE|SPAN", value_parser = history::time::moment)]
    pub(crate) since: Option<String>,

    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print CSV (only with the subcommands runs, findings and objects)
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Subcommand)]
pub(crate) enum HistoryVerb {
    /// Show how long ago the pages of each database were read, and its indexes and heaps verified
    ///
    /// The age of a page in use is the time since a run last read and checked the page. A relation is a set of
    /// cross-references: either the links inside one index or heap, or the match of an index with its table. A run
    /// verifies all cross-references of a relation in one state of the database. Pages of a backup are as old as the
    /// backup.
    Coverage {
        /// Set exit status 16 unless every page in use was read, and every relation verified, within this span, such as
        /// 14d
        #[arg(long, value_name = "SPAN", value_parser = history::time::span)]
        within: Option<Duration>,
    },
    /// List the runs, newest first
    Runs,
    /// List open findings (new, confirmed or acknowledged) with their keys
    Findings {
        /// Also list findings that are gone
        #[arg(long)]
        all: bool,
    },
    /// Show the rows and pages of each heap and index, and their growth
    Objects,
    /// List the tables, those with the oldest proof first: when all relations of a table were last verified, and when the
    /// pages were read on which this proof rests
    Tables,
    /// Show findings that appeared or disappeared between two runs, by default the last two runs of a database
    Diff {
        /// Numbers of the two runs to compare
        #[arg(value_name = "RUN", num_args = 2)]
        runs: Vec<i64>,
    },
    /// Show the throughput of the runs, and the baselines that 'mdfsck bench --history FILE --save NAME' saved
    Baselines,
    /// List the ledgers: what checks with --keep-parts have kept of full backups, so that checks of later backups read
    /// only what has changed
    Ledgers,
    /// Write one HTML page of all databases, worst first, each with its findings, its runs, and the time since its
    /// pages were last read
    ///
    /// The page is one file of at most 8 MB. It loads nothing from a network and sends nothing. With --database, the
    /// page shows only the given database.
    Html {
        /// The file to write; an existing file is replaced once the page is complete
        #[arg(short, long, value_name = "FILE.html")]
        output: PathBuf,
    },
    /// Mark a finding as known and accepted; it is still reported
    Ack {
        /// Key of the finding, as 'mdfsck history FILE findings' shows it
        key: i64,
        /// Why the finding is accepted
        #[arg(long, value_name = "TEXT")]
        because: String,
        /// Date (UTC) until which the finding is accepted
        #[arg(long, value_name = "DATE", value_parser = date)]
        until: Option<String>,
    },
    /// Remove a database, or old runs, from the history
    Forget {
        /// The database: its name or its family GUID
        #[arg(value_name = "DATABASE", required_unless_present = "older", conflicts_with = "older")]
        name: Option<String>,
        /// Remove runs before this date (UTC), or runs older than a span such as 400d; the last run of each database is
        /// kept
        #[arg(long, value_name = "DATE|SPAN", value_parser = history::time::moment)]
        older: Option<String>,
    },
}

fn date(text: &str) -> Result<String, String> {
    let seconds = history::time::seconds(text).ok_or("expected a date such as 2026-12-01")?;
    Ok(history::time::text_of_seconds(seconds))
}
