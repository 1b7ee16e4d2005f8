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

    /// Show only entries since this date (UTC), or of the last span, such as 14d
    #[arg(long, global = true, value_name = "DATE|SPAN", value_parser = history::time::moment)]
    pub(crate) since: Option<String>,

    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print CSV (with runs, findings or objects)
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Subcommand)]
pub(crate) enum HistoryVerb {
    /// Show when each database was last read and proven
    ///
    /// The age of a page in use is the time since a run last read and checked it. A relation (the links of an index or
    /// heap, or the match of an index with its table) is proven as a whole, in one state of the database. Pages of a
    /// backup are as old as the backup.
    Coverage {
        /// Set exit status 16 unless every page in use was read and every relation proven within this span, such as 14d
        #[arg(long, value_name = "SPAN", value_parser = history::time::span)]
        within: Option<Duration>,
    },
    /// List the runs, newest first
    Runs,
    /// List open findings with their keys: new, confirmed or acknowledged
    Findings {
        /// Include findings that are gone
        #[arg(long)]
        all: bool,
    },
    /// Show the rows and pages of each heap and index, and their growth
    Objects,
    /// Show findings that appeared or disappeared between two runs, by default the last two runs of a database
    Diff {
        /// Numbers of two runs
        #[arg(value_name = "RUN", num_args = 2)]
        runs: Vec<i64>,
    },
    /// Show the throughput of the runs, and the baselines of 'mdfsck bench --history FILE --save NAME'
    Baselines,
    /// Write one HTML page of all databases, worst first, each with the age of its last reads, its findings and its
    /// runs
    ///
    /// The page is one file of at most 8 MB, and loads and sends nothing. With --database, it shows only that database.
    Html {
        /// The file to write; an existing file is replaced once the page is complete
        #[arg(short, long, value_name = "FILE.html")]
        output: PathBuf,
    },
    /// Mark a finding as known and accepted; it is still reported
    Ack {
        /// Key of the finding, as 'findings' shows it
        key: i64,
        /// Why the finding is accepted
        #[arg(long, value_name = "TEXT")]
        because: String,
        /// Date (UTC) until which the finding is accepted
        #[arg(long, value_name = "DATE", value_parser = date)]
        until: Option<String>,
    },
    /// Forget a database, or old runs
    Forget {
        /// The database: its name or its family GUID
        #[arg(value_name = "DATABASE", required_unless_present = "older", conflicts_with = "older")]
        name: Option<String>,
        /// Forget runs before this date (UTC), or older than a span such as 400d, except the last run of each database
        #[arg(long, value_name = "DATE|SPAN", value_parser = history::time::moment)]
        older: Option<String>,
    },
}

fn date(text: &str) -> Result<String, String> {
    let seconds = history::time::seconds(text).ok_or("expected a date such as 2026-12-01")?;
    Ok(history::time::text_of_seconds(seconds))
}
