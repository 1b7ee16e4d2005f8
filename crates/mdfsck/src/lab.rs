//! `mdfsck lab`: writes sample databases and backups.

mod build;
mod chain;
mod crash;
mod redact;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ::lab::backup::{BackupOptions, Base, Container, Set};
use ::lab::damage::Kind;
use ::lab::{Description, MOST_FILE_PAGES, PageVerify, Version, Written};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use format::page::PAGE_BYTES;
use jobs::failure::Failure;
use jobs::size;
use redact::RedactArguments;
use source::{DataFiles, PageSource};

use crate::output;
pub(crate) use build::Build;
use chain::ChainArguments;
use crash::CrashArguments;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mdfsck lab new practice
          writes a small order-entry database to the folder practice
  mdfsck lab new bench --size 20GB --files 4 --seed 7
          writes a large database in four files, as input for 'mdfsck bench'
  mdfsck lab new huge --size 1GB --files 25 --file-size 400GB --reserve
          writes a database of 10 TB in sparse files, which need 2.5 GB on disk
  mdfsck lab new old --version 611 --verify torn
          writes a database in the format of SQL Server 2005
  mdfsck lab new erp --tables 100000 --indexes 5
          writes a database like those of business software: many tables with indexes, most of them empty
  mdfsck lab new crashed --size 1GB --in-log 2
          writes a database as after a crash: for each page of its tables, some changes are only in the log
  mdfsck lab damage sales.mdf -o broken --kind lost-write --seed 3
          writes a damaged copy, and prints the messages to expect
  mdfsck lab redact sales.mdf -o redacted
          writes a copy with other names and values and the same findings, for somebody who must not see the data
  mdfsck lab backup practice -o backups --stripes 3 --compressed
          writes a compressed backup of this database in three stripes
  mdfsck lab backup broken --kind diff --since practice -o backups
          writes a full backup of the sound database, and a differential with the extents that the damage changed
  mdfsck lab crash dirty --seed 7 --transactions 200 --open
          writes a database that crashed with open transactions, its log, and the expected result of recovery
  mdfsck lab chain backups --sets full,log,diff,log
          writes the backups of a restore chain, taken while the database was in use";

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Write a sound database
    ///
    /// The same options write the same bytes, except for the paths in the catalog. Use the database for tools that
    /// check or read databases; SQL Server cannot attach it.
    New(NewArguments),

    /// Copy a database and damage the copy
    ///
    /// Prints the damage and the messages to expect; a check reports at least one of these messages. The same seed
    /// causes the same damage.
    Damage(DamageArguments),

    /// Copy a database with other names and other values
    ///
    /// A check of the copy has the same findings, except for names and values. Texts and numbers keep their lengths, their
    /// order and which of them are equal; a wrong checksum stays wrong. The secret from which the new values derive is
    /// forgotten. Lists what could not be changed (exit status 16), and leaves out log files. For a backup, run 'mdfsck
    /// extract' first.
    Redact(RedactArguments),

    /// Write a backup of a database
    ///
    /// The backup has SQL Server's layout, except for data that only a server knows. With --in-flight, the database
    /// appears to have been in use while it was backed up.
    Backup(BackupArguments),

    /// Write a database that crashed in use, with its log
    ///
    /// Runs transactions on a small database, stops after some log record, and leaves some of the changed pages on
    /// disk. The folder truth contains the data files that recovery must produce, and truth.json contains the rows
    /// after all committed transactions. The same options write the same bytes.
    Crash(CrashArguments),

    /// Write backups of a database in use: full, differential and log backups
    ///
    /// Runs transactions between the backups and while pages are copied. Some transactions are still open when a backup
    /// ends. truth.json contains the rows that a restore up to the end of each backup set must produce. The same
    /// options write the same bytes.
    Chain(ChainArguments),

    /// Write the files of a database snapshot
    ///
    /// Writes sparse files with the old versions of the pages that have changed since the snapshot. The database must
    /// have been shut down cleanly. An example is a database that 'mdfsck extract --recovered' has written.
    Snapshot(SnapshotArguments),
}

#[derive(Args)]
pub(crate) struct SnapshotArguments {
    /// Data files as of the time of the snapshot, or the folder that holds these files
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Current versions of these data files
    #[arg(long, value_name = "PATH", required = true)]
    now: Vec<PathBuf>,

    /// Folder for the files; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

#[derive(Args)]
pub(crate) struct BackupArguments {
    /// Data files of one database, or the folder that holds them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Folder for the backup; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Kind of backup
    #[arg(long, value_enum, value_name = "KIND", default_value_t = BackupKind::Full)]
    kind: BackupKind,

    /// Data files as of the time of the full backup on which the differential is based; this full backup is written too
    #[arg(long, value_name = "PATH", required_if_eq("kind", "diff"))]
    since: Vec<PathBuf>,

    /// Number of stripes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), default_value_t = 1)]
    stripes: u16,

    /// Write the backup WITH COMPRESSION
    #[arg(long)]
    compressed: bool,

    /// Write the backup WITH CHECKSUM
    #[arg(long)]
    checksum: bool,

    /// Write the backup WITH COPY_ONLY
    #[arg(long)]
    copy_only: bool,

    /// Number of pages that change while they are copied
    #[arg(long, value_name = "N", default_value_t = 0)]
    in_flight: usize,

    /// Number of backup sets in each file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50), default_value_t = 1)]
    sets: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackupKind {
    /// A full backup: all pages in use
    Full,
    /// A differential backup: extents that differ from the files of --since
    Diff,
}

#[derive(Args)]
pub(crate) struct NewArguments {
    /// Folder for the files; created if missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Approximate amount of data
    #[arg(long, value_name = "SIZE", value_parser = size::bytes, default_value = "16MB")]
    size: u64,

    /// Contents of the database
    #[arg(long, value_enum, value_name = "SCHEMA", default_value_t = Schema::Orders)]
    schema: Schema,

    /// Write N tables, most of them empty, as in databases of business software
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000),
          conflicts_with_all = ["size", "schema"])]
    tables: Option<u32>,

    /// Number of nonclustered indexes per table
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(0..=64), requires = "tables",
          default_value_t = 0)]
    indexes: u16,

    /// Number of rows in each of the largest tables (one table in 64 has this size; one table in 16 has up to a dozen
    /// rows)
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(0..=1_000_000), requires = "tables",
          default_value_t = 200)]
    rows: u64,

    /// Seed for all values
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Internal database version: 611, 661, 706, 852, 904 or 957
    #[arg(long, value_name = "VERSION", value_parser = version, default_value = "852")]
    version: Version,

    /// Number of data files
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), default_value_t = 1)]
    files: u16,

    /// Size of each data file; space without data is not written, so the files are sparse
    ///
    /// Only data and allocation maps need space on disk: 140 MB for each TB.
    #[arg(long, value_name = "SIZE", value_parser = file_size)]
    file_size: Option<u32>,

    /// With --file-size: reserve most extents for tables, without pages in use, as after a large delete
    #[arg(long, requires = "file_size")]
    reserve: bool,

    /// PAGE_VERIFY setting
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Verify::Checksum)]
    verify: Verify,

    /// Leave the database as after a crash: the log has N changes of a row on each page, and a reversal of each change
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    in_log: Option<u32>,

    /// With --in-log: change only one page in N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1,
          requires = "in_log")]
    one_page_in: u32,
}

#[derive(Args)]
pub(crate) struct DamageArguments {
    /// Data files of one database, or the folder that holds them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Folder for the copy; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Kind of damage
    #[arg(long, value_parser = kinds(), value_name = "KIND")]
    kind: Kind,

    /// Seed that selects the place of the damage
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// The kinds of damage, by name.
fn kinds() -> impl TypedValueParser<Value = Kind> {
    let values = Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.summary()));
    PossibleValuesParser::new(values)
        .try_map(|name| Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("no kind of damage has this name"))
}

/// The contents of a database.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Schema {
    /// Customers, orders, order lines and documents, with filtered, computed and covering indexes, LOBs and heaps
    Orders,
    /// One table with an index on an int and an index on a string, as used to measure other checkers
    Entries,
    /// Every data type with its extreme values, in heaps and clustered indexes, uncompressed and compressed
    Types,
    /// Tables with columns that ALTER dropped and added, as heaps and clustered indexes, uncompressed and compressed
    Histories,
    /// Random tables; the seed also decides the version, size, files and page protection
    Random,
}

impl Schema {
    /// The name of the schema on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Describes a database with this schema, for the lab to write.
    fn describe(self, version: Version, seed: u64, bytes: u64, files: u16) -> Description {
        let description = match self {
            Self::Orders => ::lab::orders::orders(version, seed, bytes),
            Self::Entries => ::lab::entries::entries(version, seed, bytes),
            Self::Types => ::lab::every_type::types(version, seed),
            Self::Histories => ::lab::histories::histories(version, seed),
            Self::Random => return ::lab::shapes::random(seed),
        };
        with_files(description, files)
    }
}

fn with_files(mut description: Description, files: u16) -> Description {
    if let Some(primary) = description.filegroups.first_mut() {
        primary.files = files;
    }
    description
}

/// Parses the size of a data file.
fn file_size(text: &str) -> Result<u32, String> {
    let pages = size::bytes(text)? / PAGE_BYTES as u64;
    let fits = u32::try_from(pages).ok().filter(|pages| *pages <= MOST_FILE_PAGES);
    fits.ok_or_else(|| "a data file of the lab can have at most 3900GB; use more --files".to_owned())
}

/// Maximum number of tables to list; further tables are only counted.
const MOST_LISTED: usize = 50;

/// Writes a database into a folder, and creates the folder if it is missing.
fn write(description: &Description, folder: &Path) -> Result<Written, Failure> {
    fs::create_dir_all(folder).map_err(|cause| Failure::unable(format!("{}: {cause}", folder.display())))?;
    ::lab::write(description, folder).map_err(unwritten)
}

#[derive(Clone, Copy, ValueEnum)]
enum Verify {
    Checksum,
    Torn,
    None,
}

fn version(text: &str) -> Result<Version, String> {
    let found = text.parse().ok().and_then(Version::from_number);
    found.ok_or_else(|| "expected one of 611, 661, 706, 852, 904, 957".to_owned())
}

pub(crate) fn run(command: &LabCommand) -> Result<u8, Failure> {
    match command {
        LabCommand::New(arguments) => new(arguments),
        LabCommand::Damage(arguments) => damage(arguments),
        LabCommand::Redact(arguments) => redact::run(arguments),
        LabCommand::Backup(arguments) => backup(arguments),
        LabCommand::Crash(arguments) => crash::run(arguments),
        LabCommand::Chain(arguments) => chain::run(arguments),
        LabCommand::Snapshot(arguments) => snapshot(arguments),
    }
}

/// The data files among the paths, ordered by file ID.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    Ok(DataFiles::open(paths)?.files().iter().map(|file| file.path.clone()).collect())
}

fn snapshot(arguments: &SnapshotArguments) -> Result<u8, Failure> {
    let dir = &arguments.output;
    let (then, now) = (files(&arguments.paths)?, files(&arguments.now)?);
    if then.len() > now.len() {
        return Err(Failure::usage("--now: give the current versions of all data files of the database"));
    }
    fs::create_dir_all(dir).map_err(|cause| refused(dir, &cause))?;
    let written = then.iter().zip(&now).map(|(then, now)| ::lab::snapshot::snapshot(then, now, dir).map_err(unwritten));
    let written = written.collect::<Result<Vec<_>, _>>()?;
    output::print(|out| written.iter().try_for_each(|file| writeln!(out, "{}", file.display())))?;
    Ok(0)
}

fn backup(arguments: &BackupArguments) -> Result<u8, Failure> {
    let dir = &arguments.output;
    fs::create_dir_all(dir).map_err(|cause| Failure::unable(format!("{}: {cause}", dir.display())))?;
    // Compressed backups have container version 2. Only SQL Server 2008 writes version 1, and the lab does not write
    // databases of 2008.
    let full = BackupOptions {
        base: None,
        copy_only: arguments.copy_only,
        checksum: arguments.checksum,
        container: arguments.compressed.then_some(Container::Version2),
        stripes: arguments.stripes,
        in_flight: arguments.in_flight,
        only: None,
        counts_all: false,
    };
    let now = files(&arguments.paths)?;
    let mut written = Vec::new();
    let mut write = |files: &[PathBuf], first: u8, options: BackupOptions<'_>, name: &str| {
        let sets: Vec<Set<'_>> =
            (0..arguments.sets).map(|number| Set { files, step: first + number, options }).collect();
        ::lab::backup::backup(&sets, dir, name).map(|done| written.push(done)).map_err(unwritten)
    };
    if arguments.kind == BackupKind::Diff {
        let then = files(&arguments.since)?;
        write(&then, 1, BackupOptions { in_flight: 0, ..full }, "full")?;
        // The differential backup is based on the last backup set in the file that contains the full backups.
        let base = Base { files: &then, step: arguments.sets };
        write(&now, 1 + arguments.sets, BackupOptions { base: Some(base), ..full }, "diff")?;
    } else {
        write(&now, 1, full, "full")?;
    }
    output::print(|out| {
        for done in &written {
            for file in &done.files {
                writeln!(out, "{}", file.display())?;
            }
            if !done.in_flight.is_empty() {
                writeln!(out, "  {} pages in flight", done.in_flight.len())?;
            }
        }
        Ok(())
    })?;
    Ok(0)
}

fn describe(arguments: &NewArguments) -> Description {
    let (version, seed, files) = (arguments.version, arguments.seed, arguments.files);
    let Some(tables) = arguments.tables else {
        return arguments.schema.describe(version, seed, arguments.size, files);
    };
    let many = ::lab::many_tables::many_tables(version, seed, tables, arguments.indexes, arguments.rows);
    with_files(many, files)
}

fn new(arguments: &NewArguments) -> Result<u8, Failure> {
    let mut description = describe(arguments);
    if arguments.schema != Schema::Random {
        description.verify = match arguments.verify {
            Verify::Checksum => PageVerify::Checksum,
            Verify::Torn => PageVerify::Torn,
            Verify::None => PageVerify::None,
        };
    }
    if let Some(pages) = arguments.file_size {
        description.least_pages = pages;
        description.tables.iter_mut().for_each(|table| table.has_reserve = arguments.reserve);
    }
    let written = write(&description, &arguments.dir)?;
    let leave =
        |times| ::lab::in_use::leave_in_use(&description, &written, times, arguments.one_page_in).map_err(unwritten);
    let in_use = arguments.in_log.map(leave).transpose()?;
    output::print(|out| {
        for (file, pages) in written.files.iter().zip(&written.pages) {
            writeln!(out, "{}  {pages} pages", file.display())?;
        }
        if let Some(in_use) = &in_use {
            writeln!(out, "{}  {} records of {} pages", in_use.log.display(), in_use.records, in_use.pages)?;
        }
        if written.tables.len() > MOST_LISTED {
            let rows: u64 = written.tables.iter().map(|(_, rows)| rows).sum();
            return writeln!(out, "  {} tables  {rows} rows", written.tables.len());
        }
        for (table, rows) in &written.tables {
            writeln!(out, "  {table}  {rows} rows")?;
        }
        Ok(())
    })?;
    Ok(0)
}

fn damage(arguments: &DamageArguments) -> Result<u8, Failure> {
    // Opens the database only to find out which of the paths are data files.
    let source = DataFiles::open(&arguments.paths)?;
    let files: Vec<PathBuf> = source.files().iter().map(|file| file.path.clone()).collect();
    // Damages the copies under temporary names, so that a copy with its final name is always damaged.
    let dir = &arguments.output;
    fs::create_dir_all(dir).map_err(|cause| refused(dir, &cause))?;
    let staged = tempfile::Builder::new().prefix(".damage.").suffix(".partial").tempdir_in(dir);
    let staged = staged.map_err(|cause| refused(dir, &cause))?;
    let final_names = free_names(&files, dir)?;
    let copies = copy(&files, staged.path())?;
    let done = ::lab::damage::damage(&copies, arguments.kind, arguments.seed).map_err(Failure::unable)?;
    for (copy, name) in copies.iter().zip(&final_names) {
        // Windows can sync only files that are open for writing.
        let synced = fs::File::options().write(true).open(copy).and_then(|file| file.sync_all());
        synced.map_err(|cause| refused(name, &cause))?;
    }
    give_names(&copies, &final_names)?;
    let messages: Vec<String> = done.messages.iter().map(ToString::to_string).collect();
    output::print(|out| {
        for copy in &final_names {
            writeln!(out, "{}", copy.display())?;
        }
        writeln!(out, "  {}", done.what)?;
        writeln!(out, "  expect Msg {}", messages.join(" or "))
    })?;
    Ok(0)
}

/// Copies files into a folder. Never replaces an existing file.
pub(crate) fn copy(files: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder).map_err(|cause| refused(folder, &cause))?;
    let copies = free_names(files, folder)?;
    for (file, copy) in files.iter().zip(&copies) {
        let mut original = fs::File::open(file).map_err(|cause| refused(file, &cause))?;
        let mut out = create_like(file, copy).map_err(|cause| not_named(copy, &cause))?;
        io::copy(&mut original, &mut out).map_err(|cause| refused(copy, &cause))?;
    }
    Ok(copies)
}

/// Creates a file for the copy of a file. Those who may not read the original may not read the copy either. Its owner may
/// always write it, even if the original is read-only. Never replaces an existing file.
fn create_like(original: &Path, copy: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(fs::metadata(original)?.permissions().mode() & 0o777 | 0o600);
    }
    #[cfg(not(unix))]
    let _ = original;
    options.open(copy)
}

/// Gives finished files their final names. Never replaces an existing file.
fn give_names(files: &[PathBuf], names: &[PathBuf]) -> Result<(), Failure> {
    for (file, name) in files.iter().zip(names) {
        let file = tempfile::TempPath::try_from_path(file).map_err(|cause| refused(name, &cause))?;
        file.persist_noclobber(name).map_err(|failed| not_named(name, &failed.error))?;
    }
    Ok(())
}

/// The failure for a file that could not get its name.
fn not_named(path: &Path, cause: &io::Error) -> Failure {
    if cause.kind() == io::ErrorKind::AlreadyExists { Failure::exists(path) } else { refused(path, cause) }
}

/// The paths for copies of files in a folder. Fails if one of these paths exists.
fn free_names(files: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let names: Vec<PathBuf> = files.iter().map(|file| folder.join(file.file_name().unwrap_or_default())).collect();
    // A link has the name even if its target does not exist.
    match names.iter().find(|name| fs::symlink_metadata(name).is_ok()) {
        Some(name) => Err(Failure::exists(name)),
        None => Ok(names),
    }
}

/// The failure for files that the lab could not write. Usually the files exist already.
fn unwritten(error: ::lab::LabError) -> Failure {
    match error {
        ::lab::LabError::Io { path, source } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            Failure::exists(&path)
        }
        error => Failure::unable(error),
    }
}

fn refused(path: &Path, cause: &dyn Display) -> Failure {
    Failure::unable(format!("{}: {cause}", path.display()))
}
