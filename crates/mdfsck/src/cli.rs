//! The command line: one declaration an option, from which parsing, help, completions and manual pages come.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use report::Format;

use crate::failure::Failure;
use crate::output;

/// Foot of the manual pages.
const VERSION: &str = concat!("mdfsck ", env!("CARGO_PKG_VERSION"));

const ABOUT: &str =
    "Checks SQL Server database files offline, as DBCC CHECKDB does: no server, no restore, no snapshot.";

const LONG_ABOUT: &str = "\
Checks SQL Server database files offline, as DBCC CHECKDB does: no server, no restore, no snapshot.

mdfsck reads the .mdf and .ndf files of one database, or a backup of it, opened shared and read-only, and never writes to \
them. What it finds \
it prints in DBCC's own words. A finding is a proof: what could not be verified is listed as such, with the reason, and is \
never called an error.";

const EXIT_STATUS: &str = "\
Exit status (bits, they add):
   0  sound and complete
   1  corruption found
   4  could not look (failed reads, damage beyond opening), or could not write all results
   8  wrong usage
  16  incomplete: something that was asked for was not verified

Examples:
  mdfsck check Northwind.mdf              check a database of one file
  mdfsck check /data/sales                check all data files in a folder
  mdfsck check Northwind.bak              check a backup without restoring it
  mdfsck info Northwind.mdf               what is this file?
  mdfsck explain 8976                     what does this message mean, and what now?";

const CHECK_EXAMPLES: &str = "\
Exit status (bits, they add):
   0  sound and complete           4  could not look (I/O error), or not write all results
   1  corruption found             8  wrong usage
  16  incomplete: something that was asked for was not verified

Examples:
  mdfsck check sales.mdf sales_2.ndf
          all that DBCC CHECKDB (sales) would print
  mdfsck check --no-infomsgs sales.mdf
          findings and summaries only: no output means sound and complete
  mdfsck check --physical-only --progress lines /data/sales
          pages, record headers and allocation only
  mdfsck check --table Sales.Orders --table dbo.Customers sales.mdf
          these two tables, as DBCC CHECKTABLE
  mdfsck check --tableresults --output sales.csv sales.mdf
          a row a finding, with the columns of WITH TABLERESULTS
  mdfsck check --format json sales.mdf | jq 'select(.kind == \"finding\")'
          the same for programs";

const INFO_EXAMPLES: &str = "\
Examples:
  mdfsck info sales.mdf
  mdfsck info --json /data/sales
  mdfsck info sales.bak
  gunzip < sales.bak.gz | mdfsck info -
          read once, nothing is kept";

const TABLES_EXAMPLES: &str = "\
Rows and pages are those that the catalogue keeps: quick, and right in a sound database. 'mdfsck check' counts them.

Examples:
  mdfsck tables sales.mdf
  mdfsck tables --all --json sales.mdf | jq 'select(.index_type == \"heap\")'";

const LINT_EXAMPLES: &str = "\
Examples:
  mdfsck lint sales.mdf
  mdfsck lint --json /data/sales | jq .rule";

const BENCH_EXAMPLES: &str = "\
Examples:
  mdfsck bench sales.mdf
  mdfsck bench --maxdop 1,2,4,8 --configurations full,physical --html bench.html /data/sales
  mdfsck bench --size 20GB --schema orders --files 8 --cache warm,cold --html bench.html
          a database that is built for it, and removed again
  mdfsck bench --save before sales.mdf && ... && mdfsck bench --against before sales.mdf";

const PAGE_EXAMPLES: &str = "\
Examples:
  mdfsck page 1:9 sales.mdf               the boot page
  mdfsck page '(3:153)' sales.mdf sales_2.ndf
          as messages print an address
  mdfsck page 1:153 --raw sales.mdf       8192 bytes in hexadecimal";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  mdfsck explain 8976
  mdfsck explain tree.child-unseen
  mdfsck explain --all                    one line a check";

const CHAIN_EXAMPLES: &str = "\
Exit status: 0 all chains are whole, 4 a file cannot be read, 16 a gap, a missing stripe or a damaged file.

Examples:
  mdfsck chain /backups/sales
  mdfsck chain --json /backups | jq '{database, until: [.chains[].until]}'";

const EXTRACT_EXAMPLES: &str = "\
No existing file is overwritten. A run that was broken off is completed by the same command.

Examples:
  mdfsck extract sales.bak --output /tmp/sales
  mdfsck extract sales_1.bak sales_2.bak sales_diff.bak --output /tmp/sales";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mdfsck completions bash > /etc/bash_completion.d/mdfsck
  mdfsck completions powershell >> $PROFILE";

const MAN_EXAMPLES: &str = "\
Examples:
  mdfsck man | man -l -
  mdfsck man check > mdfsck-check.1";

#[derive(Parser)]
#[command(name = "mdfsck", version, about = ABOUT, long_about = LONG_ABOUT, after_help = EXIT_STATUS)]
#[command(max_term_width = 120, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Prove a database sound, or say where it is not
    ///
    /// Reads every allocated page once and prints what DBCC CHECKDB would print: for each object its findings, rows and
    /// pages, then the numbers of errors and the minimum repair level. What could not be verified ends the output.
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArguments),

    /// Tell what a database is: version, name, files, state, features; or what a backup file holds
    ///
    /// Reads the boot page, the file headers and the catalogue only. Of backup files: their labels, as RESTORE LABELONLY,
    /// HEADERONLY and FILELISTONLY.
    #[command(after_long_help = INFO_EXAMPLES)]
    Info(InfoArguments),

    /// List objects, indexes and partitions as the catalogue has them
    ///
    /// With keys, compression, filters and computed columns. Reads the catalogue only.
    #[command(after_long_help = TABLES_EXAMPLES)]
    Tables(TablesArguments),

    /// Tell what in a schema makes DBCC CHECKDB slow, or blind
    ///
    /// For those who still run it. Reads the catalogue only.
    #[command(after_long_help = LINT_EXAMPLES)]
    Lint(LintArguments),

    /// Measure what a check costs on this machine
    ///
    /// Checks a database over and over: each configuration at each degree of parallelism, memory grant and state of the
    /// cache, in turns, each run a process of its own. Tells the median, the spread, and where the time went.
    #[command(after_long_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),

    /// Show one page, field by field
    ///
    /// Names, offsets and raw bytes of the header, the records and their columns, as DBCC PAGE (..., 3) does. Any page can
    /// be shown, however damaged.
    #[command(after_long_help = PAGE_EXAMPLES)]
    Page(PageArguments),

    /// Show on a sample what mdfsck does: a sound database, five kinds of damage, what each finding means
    ///
    /// The databases stay in DIR, to be looked at.
    #[cfg(feature = "lab")]
    #[command(after_long_help = crate::demo::EXAMPLES)]
    Demo {
        /// Folder for the databases; it must be empty, and is made if it is not there
        #[arg(value_name = "DIR", default_value = "mdfsck-demo")]
        dir: PathBuf,
    },

    /// Write databases to practise on
    #[cfg(feature = "lab")]
    #[command(after_long_help = crate::lab::EXAMPLES, subcommand_required = true)]
    Lab {
        #[command(subcommand)]
        command: crate::lab::LabCommand,
    },

    /// Tell which restore chains a folder of backups holds
    ///
    /// By database: the full backups, the differential and the log backups that follow on each, where the log breaks off,
    /// and until when the database could be restored. Reads labels only, no pages.
    #[command(after_long_help = CHAIN_EXAMPLES)]
    Chain(ChainArguments),

    /// Write the data files of a backup as it holds them, for inspection
    ///
    /// Full backup, its stripes and a differential, in any order. The files are not recovered: what the log of the backup
    /// would still change is not applied, so no server accepts them. Free extents become holes.
    #[command(after_long_help = EXTRACT_EXAMPLES)]
    Extract(ExtractArguments),

    /// Explain a check or a message
    ///
    /// What must be true, what breaks it, and what to do.
    #[command(after_long_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArguments),

    /// Print a completion script for a shell
    #[command(after_long_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Print a manual page (roff)
    #[command(after_long_help = MAN_EXAMPLES)]
    Man {
        /// The command whose page is wanted; without it, that of mdfsck itself
        command: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct CheckArguments {
    /// All data files of one database, in any order, or the folder that holds them; or a backup of it
    ///
    /// Of a backup: the full backup, all its stripes, and perhaps a differential, in any order; '-' is one that comes from
    /// standard input, which is kept in a temporary file first.
    /// The primary file is found by content, never by name. Log files are passed over.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Position of the set in a backup file that holds several, as FILE = N of RESTORE; may be given several times
    ///
    /// Without it the first full backup is taken, and from other files the first differential that is based on it.
    #[arg(long, value_name = "N", help_heading = SCOPE)]
    pub(crate) set: Vec<u16>,

    /// Check pages, record headers and allocation only
    ///
    /// As WITH PHYSICAL_ONLY: no keys, no links between pages of an index, no list of objects.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) physical_only: bool,

    /// Leave out the logical checks of nonclustered indexes of user tables
    #[arg(long, help_heading = SCOPE)]
    pub(crate) noindex: bool,

    /// Check this table or indexed view only, as CHECKTABLE; may be given several times
    ///
    /// A name without schema is one of dbo, else of any schema that has it. Brackets are allowed, and so is an object ID.
    #[arg(long, value_name = "[SCHEMA.]NAME", help_heading = SCOPE, conflicts_with_all = ["filegroup", "alloc", "catalog"])]
    pub(crate) table: Vec<String>,

    /// Check the objects of this filegroup only, as CHECKFILEGROUP
    #[arg(long, value_name = "NAME|ID", help_heading = SCOPE, conflicts_with_all = ["alloc", "catalog"])]
    pub(crate) filegroup: Option<String>,

    /// Check and list the allocation only, as CHECKALLOC
    #[arg(long, help_heading = SCOPE)]
    pub(crate) alloc: bool,

    /// Check the catalogue against itself only, as CHECKCATALOG
    ///
    /// References between base tables, nothing else: neither pages nor Service Broker.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["alloc", "physical_only", "noindex", "estimate_only"])]
    pub(crate) catalog: bool,

    /// Check that values lie in the domains of their types, which is the default
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["no_data_purity", "physical_only"])]
    pub(crate) data_purity: bool,

    /// Do not check data purity
    #[arg(long, help_heading = SCOPE)]
    pub(crate) no_data_purity: bool,

    /// Check indexed views, XML and spatial indexes against what they are made from
    ///
    /// As WITH EXTENDED_LOGICAL_CHECKS.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) extended_logical_checks: bool,

    /// Check trusted CHECK and FOREIGN KEY constraints too, as CHECKCONSTRAINTS; beyond what CHECKDB does
    ///
    /// Constraints that are disabled or not trusted claim nothing of the rows there are, and are left alone.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) constraints: bool,

    /// Tell where identity columns stand, as CHECKIDENT with NORESEED; beyond what CHECKDB does
    ///
    /// A high-water mark behind the values of the rows is told and no error: SET IDENTITY_INSERT and a reseed leave such.
    #[arg(long, help_heading = SCOPE, conflicts_with_all = ["physical_only", "alloc", "catalog"])]
    pub(crate) identity: bool,

    /// Tell what the check would take, and check nothing
    ///
    /// Memory, space for temporary files, and bytes to be read, as WITH ESTIMATEONLY tells of tempdb.
    #[arg(long, help_heading = SCOPE)]
    pub(crate) estimate_only: bool,

    /// Use so much memory at most, such as 256MB or 2GB; less than the check needs is refused
    ///
    /// What does not fit is kept in temporary files. The findings do not depend on it. By default 128 MB and two bytes a
    /// page of the database. A limit on address space (ulimit -v) should be 64 MB larger, and 68 MB more
    /// per thread: code, stacks and what malloc reserves are not part of the grant. Under a smaller limit the run may end
    /// without results.
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, help_heading = RESOURCES)]
    pub(crate) memory: Option<u64>,

    /// Keep temporary files in DIR; by default where the system keeps them
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) temp_dir: Option<PathBuf>,

    /// Keep no more than so much of standard input in a temporary file
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, default_value = "100GB", help_heading = RESOURCES)]
    pub(crate) spool_limit: u64,

    /// Use so many threads at most; 0: one a processor
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Who reads: N threads that do nothing else, or one a file (per-file)
    ///
    /// By default each thread reads what it judges, and tells the system what comes next: the fastest for data in memory
    /// or on one disk. per-file is for files on disks of their own, as trace flag 2549; N for disks that need many reads
    /// under way. Both take one megabyte of memory a reader and more switches between threads.
    #[arg(long, value_name = "N|per-file", value_parser = readers, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) readers: check::Readers,

    /// Check the tables in N passes over the files
    ///
    /// 'one', and 'auto' too, read every page once: sums need so little memory that there is no gain in less. N passes
    /// read pages of their own tables only, some of them twice, and need an Nth of the space for temporary files. The
    /// opposite of trace flag 2562.
    #[arg(long, value_name = "auto|one|N", value_parser = batches, default_value = "auto", help_heading = RESOURCES)]
    pub(crate) batches: u16,

    /// Read past the system's cache
    ///
    /// For a database larger than memory: the check does not evict what other programs need.
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) direct: bool,

    /// Read SIZE bytes a second at most, such as 200MB
    ///
    /// For a disk that others need too; the check takes longer accordingly.
    #[arg(long, value_name = "SIZE", value_parser = crate::size::bytes, help_heading = RESOURCES)]
    pub(crate) io_limit: Option<u64>,

    /// Let other programs have the processor first
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) nice: bool,

    /// Tell on stderr what each phase cost: time, processor, reading, waiting, spilling
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) stats: bool,

    /// Format of the results
    #[arg(long, value_enum, default_value_t = FormatKind::Text, value_name = "FORMAT", help_heading = OUTPUT)]
    format: FormatKind,

    /// The same as --format tableresults
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    tableresults: bool,

    /// Leave out informational messages
    ///
    /// Findings, and numbers of errors that are not zero, remain; for a sound database that is nothing at all. What could
    /// not be verified is told all the same.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_infomsgs: bool,

    /// Write the results to FILE instead of stdout
    ///
    /// An existing file is replaced, unless it is one of SQL Server's, and only when all results are on the disk: a run that
    /// fails or is killed leaves it as it was. Pipes and devices are written as they are.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Show N findings at most; all are counted
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    pub(crate) max_findings: Option<usize>,

    /// How to tell on stderr how far the run is
    #[arg(long, value_enum, default_value_t = ProgressKind::Auto, value_name = "KIND", help_heading = OUTPUT)]
    pub(crate) progress: ProgressKind,

    /// Leave bit 16 (incomplete) out of the exit status
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) exit_zero_on_incomplete: bool,
}

const SCOPE: &str = "Scope and depth";
const RESOURCES: &str = "Resources";
const OUTPUT: &str = "Output";

impl CheckArguments {
    pub(crate) fn format(&self) -> Format {
        match self.format {
            _ if self.tableresults => Format::TableResults,
            FormatKind::Text => Format::Text,
            FormatKind::Json => Format::Json,
            FormatKind::Tableresults => Format::TableResults,
        }
    }
}

fn readers(text: &str) -> Result<check::Readers, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(check::Readers::Own),
        ("per-file", _) => Ok(check::Readers::PerFile),
        (_, Ok(count @ 1..=256)) => Ok(check::Readers::Count(count)),
        _ => Err("neither per-file nor a number from 1 to 256".to_owned()),
    }
}

fn batches(text: &str) -> Result<u16, String> {
    match (text, text.parse()) {
        ("auto" | "one", _) => Ok(1),
        (_, Ok(count @ 1..=1000)) => Ok(count),
        _ => Err("neither auto, one, nor a number from 1 to 1000".to_owned()),
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatKind {
    /// DBCC's own lines in DBCC's order
    Text,
    /// One JSON object a line
    Json,
    /// CSV with the columns of WITH TABLERESULTS, SQL Server 2012 and later
    Tableresults,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ProgressKind {
    /// A bar if stderr is a terminal, else nothing
    Auto,
    /// A bar
    Bar,
    /// Lines "phase current maximum", in pages
    Lines,
    /// The same as JSON
    Json,
    /// Nothing
    None,
}

#[derive(Args)]
pub(crate) struct InfoArguments {
    /// Data files of one database, or the folder that holds them; or backup files, '-' for one from standard input
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct TablesArguments {
    /// Data files of one database, or the folder that holds them; or backup files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Position of the set in a backup file that holds several, as FILE = N of RESTORE; may be given several times
    ///
    /// Without it the first full backup is taken, and from other files the first differential that is based on it.
    #[arg(long, value_name = "N")]
    pub(crate) set: Vec<u16>,

    /// List system objects too
    #[arg(long)]
    pub(crate) all: bool,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LintArguments {
    /// Data files of one database, or the folder that holds them; or backup files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Position of the set in a backup file that holds several, as FILE = N of RESTORE; may be given several times
    ///
    /// Without it the first full backup is taken, and from other files the first differential that is based on it.
    #[arg(long, value_name = "N")]
    pub(crate) set: Vec<u16>,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// All data files of one database, or the folder that holds them; with --size, the folder in which one is built and
    /// kept
    #[arg(value_name = "PATH")]
    #[cfg_attr(feature = "lab", arg(required_unless_present = "size"))]
    #[cfg_attr(not(feature = "lab"), arg(required = true))]
    pub(crate) paths: Vec<PathBuf>,

    #[cfg(feature = "lab")]
    #[command(flatten)]
    pub(crate) build: crate::lab::Build,

    /// Degrees of parallelism
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2")]
    pub(crate) maxdop: Vec<u16>,

    /// Configurations: full or physical, alone or with /batches, /per-file or /both
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "full,physical")]
    #[arg(value_parser = crate::bench::configuration)]
    pub(crate) configurations: Vec<crate::bench::Configuration>,

    /// Memory grants; by default that of a check
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = crate::size::bytes)]
    pub(crate) memory: Vec<u64>,

    /// With the files in the system's cache, or dropped from it before each run
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', value_enum, default_value = "warm")]
    pub(crate) cache: Vec<crate::bench::Cache>,

    /// Runs of each cell
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) repeat: u16,

    /// Write all figures to FILE as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,

    /// Write a line a cell to FILE as CSV
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,

    /// Write a page with charts to FILE
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    /// Keep the results as a baseline, in .mdfsck-bench below the current folder
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub(crate) save: Option<String>,

    /// Tell the change against a baseline, and whether it is outside the noise
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub(crate) against: Option<String>,
}

#[derive(Args)]
pub(crate) struct PageArguments {
    /// Address of the page: file ID and page number
    #[arg(value_name = "F:P", value_parser = crate::page::address)]
    pub(crate) page: format::PageId,

    /// Data files of one database, or the folder that holds them; or backup files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Position of the set in a backup file that holds several, as FILE = N of RESTORE; may be given several times
    ///
    /// Without it the first full backup is taken, and from other files the first differential that is based on it.
    #[arg(long, value_name = "N")]
    pub(crate) set: Vec<u16>,

    /// Print all bytes as they were read
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ChainArguments {
    /// Backup files, or folders that hold them, at any depth
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ExtractArguments {
    /// Backup files of one database: all stripes, and perhaps a differential
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Folder for the data files; it is made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// Position of the set in a backup file that holds several, as FILE = N of RESTORE; may be given several times
    #[arg(long, value_name = "N")]
    pub(crate) set: Vec<u16>,
}

#[derive(Args)]
pub(crate) struct ExplainArguments {
    /// Id of a check, or message number
    #[arg(value_name = "ID|MSG", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) keys: Vec<String>,

    /// List all checks
    #[arg(long)]
    pub(crate) all: bool,

    /// Print the full explanations as Markdown: docs/checks.md
    #[arg(long, requires = "all")]
    pub(crate) markdown: bool,
}

/// `mdfsck completions`.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mdfsck", &mut script);
    output::print(|out| out.write_all(&script))?;
    Ok(0)
}

/// `mdfsck man`.
pub(crate) fn man(command: Option<&str>) -> Result<u8, Failure> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root,
        Some(name) => match root.find_subcommand(name) {
            Some(found) => found.clone(),
            None => return Err(Failure::usage(format!("{name}: no such command"))),
        },
    };
    let name = command.map_or_else(|| "mdfsck".to_owned(), |name| format!("mdfsck-{name}"));
    output::print(|out| clap_mangen::Man::new(page).title(name.to_uppercase()).source(VERSION).render(out))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(text.contains(&format!("mdfsck {}", command.get_name())), "{}", command.get_name());
        }
    }
}
