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

    /// Only this database: its name or its family guid
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) database: Option<String>,

    /// Only entries since then: a date (UTC), or a span such as 14d
    #[arg(long, global = true, value_name = "DATE|SPAN", value_parser = history::time::moment)]
    pub(crate) since: Option<String>,

    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print CSV (runs, findings, objects)
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Subcommand)]
pub(crate) enum HistoryVerb {
    /// Show how long ago each database was read and proven
    ///
    /// The age of a page in use is the time since it was last read and judged. Relations (the links of an index or heap, an
    /// index with its table) are proven together, in one state of the database. Pages of a backup are as old as the backup.
    Coverage {
        /// Exit status 16 unless every page in use was read and every relation proven within this span, such as 14d
        #[arg(long, value_name = "SPAN", value_parser = history::time::span)]
        within: Option<Duration>,
    },
    /// The runs, newest first
    Runs,
    /// Open findings with their keys: new, confirmed, acknowledged
    Findings {
        /// Include findings that are gone
        #[arg(long)]
        all: bool,
    },
    /// Rows and pages of each heap and index, and how they grew
    Objects,
    /// Findings that came and went between two runs, by default the last two of a database
    Diff {
        /// Numbers of two runs
        #[arg(value_name = "RUN", num_args = 2)]
        runs: Vec<i64>,
    },
    /// Throughput of the runs, and baselines of 'mdfsck bench --history FILE --save NAME'
    Baselines,
    /// Write all databases as one page, worst first, each with the age of its last reads, its findings and its runs
    ///
    /// One file of at most 8 MB that loads and sends nothing. With --database, the page is about that database.
    Html {
        /// The file to write; an existing one is replaced once the page is complete
        #[arg(short, long, value_name = "FILE.html")]
        output: PathBuf,
    },
    /// Mark a finding as known and accepted; it is still reported
    Ack {
        /// Key of the finding, as 'findings' shows it
        key: i64,
        /// Why it is accepted
        #[arg(long, value_name = "TEXT")]
        because: String,
        /// Until when: a date (UTC)
        #[arg(long, value_name = "DATE", value_parser = date)]
        until: Option<String>,
    },
    /// Forget a database, or old runs
    Forget {
        /// The database: its name or its family guid
        #[arg(value_name = "DATABASE", required_unless_present = "older", conflicts_with = "older")]
        name: Option<String>,
        /// Runs before then, except the last one of each database: a date (UTC), or a span such as 400d
        #[arg(long, value_name = "DATE|SPAN", value_parser = history::time::moment)]
        older: Option<String>,
    },
}

fn date(text: &str) -> Result<String, String> {
    let seconds = history::time::seconds(text).ok_or("not a date such as 2026-12-01")?;
    Ok(history::time::text_of_seconds(seconds))
}
