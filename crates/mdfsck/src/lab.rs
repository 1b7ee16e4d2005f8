//! `mdfsck lab`: sound databases to practise on.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use ::lab::damage::Kind;
use ::lab::{PageVerify, Version};
use clap::{Args, Subcommand, ValueEnum};
use source::{DataFiles, PageSource};

use crate::failure::Failure;
use crate::{output, size};

pub(crate) const EXAMPLES: &str = "\
Examples:
  mdfsck lab new practice
          a small order-entry database in the folder practice
  mdfsck lab new bench --size 20GB --files 4 --seed 7
          a large one in four files: input for 'mdfsck bench'
  mdfsck lab new old --version 611 --verify torn
          as SQL Server 2005 lays it out
  mdfsck lab damage sales.mdf -o broken --kind lost-write --seed 3
          a damaged copy, and which messages to expect";

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Write a sound database
    ///
    /// The same options give the same database, byte for byte but for the paths in its catalogue. SQL Server did not
    /// write it: it is for checkers and readers, not for attaching.
    New(NewArguments),

    /// Copy a database and damage the copy
    ///
    /// Tells what was done and of which messages a check gives one at least. The same seed does the same.
    Damage(DamageArguments),
}

#[derive(Args)]
pub(crate) struct NewArguments {
    /// Folder for the files; made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// About so much data
    #[arg(long, value_name = "SIZE", value_parser = size::bytes, default_value = "16MB")]
    size: u64,

    /// What it holds
    #[arg(long, value_enum, value_name = "SCHEMA", default_value_t = Schema::Orders)]
    schema: Schema,

    /// What all values derive from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Internal version whose layout is wanted: 611, 661, 706, 852, 904 or 957
    #[arg(long, value_name = "VERSION", value_parser = version, default_value = "852")]
    version: Version,

    /// Data files
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=8), default_value_t = 1)]
    files: u16,

    /// Page protection
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Verify::Checksum)]
    verify: Verify,
}

#[derive(Args)]
pub(crate) struct DamageArguments {
    /// Data files of one database, or the folder that holds them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Folder for the copy; made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// What happens to it
    #[arg(long, value_enum, value_name = "KIND")]
    kind: DamageKind,

    /// Where it happens
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum DamageKind {
    /// A bit flips on its own; only checksums see it for sure
    BitRot,
    /// Only the first sectors of a page reached the disk
    TornWrite,
    /// An index page is as it was before its last row came
    LostWrite,
    /// Two pages lie in each other's place
    SwappedPages,
    /// A leaf page points to the wrong neighbour
    BrokenLink,
    /// Two rows of an index are in the wrong order
    KeyOrder,
    /// Eight pages in a row are zero
    ZeroedExtent,
    /// An IAM page has lost an extent
    LostExtent,
    /// The file ends too early
    Truncated,
}

impl DamageKind {
    fn kind(self) -> Kind {
        match self {
            Self::BitRot => Kind::BitRot,
            Self::TornWrite => Kind::TornWrite,
            Self::LostWrite => Kind::LostWrite,
            Self::SwappedPages => Kind::SwappedPages,
            Self::BrokenLink => Kind::BrokenLink,
            Self::KeyOrder => Kind::KeyOrder,
            Self::ZeroedExtent => Kind::ZeroedExtent,
            Self::LostExtent => Kind::LostExtent,
            Self::Truncated => Kind::Truncated,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Schema {
    /// Customers, orders, order lines, documents: with filtered, computed and covering indexes, LOBs, heaps
    Orders,
    /// Anything, by the seed; its version, size, files and protection too
    Random,
}

#[derive(Clone, Copy, ValueEnum)]
enum Verify {
    Checksum,
    Torn,
    None,
}

fn version(text: &str) -> Result<Version, String> {
    let found = text.parse().ok().and_then(Version::from_number);
    found.ok_or_else(|| "one of 611, 661, 706, 852, 904, 957".to_owned())
}

pub(crate) fn run(command: &LabCommand) -> Result<u8, Failure> {
    match command {
        LabCommand::New(arguments) => new(arguments),
        LabCommand::Damage(arguments) => damage(arguments),
    }
}

fn new(arguments: &NewArguments) -> Result<u8, Failure> {
    let description = match arguments.schema {
        Schema::Orders => {
            let mut description = ::lab::orders::orders(arguments.version, arguments.seed, arguments.size);
            description.filegroups[0].files = arguments.files;
            description.verify = match arguments.verify {
                Verify::Checksum => PageVerify::Checksum,
                Verify::Torn => PageVerify::Torn,
                Verify::None => PageVerify::None,
            };
            description
        }
        Schema::Random => ::lab::shapes::random(arguments.seed),
    };
    let dir = &arguments.dir;
    fs::create_dir_all(dir).map_err(|cause| Failure::blind(format!("{}: {cause}", dir.display())))?;
    let written = ::lab::write(&description, dir).map_err(Failure::blind)?;
    output::print(|out| {
        for (file, pages) in written.files.iter().zip(&written.pages) {
            writeln!(out, "{}  {pages} pages", file.display())?;
        }
        for (table, rows) in &written.tables {
            writeln!(out, "  {table}  {rows} rows")?;
        }
        Ok(())
    })?;
    Ok(0)
}

fn damage(arguments: &DamageArguments) -> Result<u8, Failure> {
    // Opened only to find the data files among what was given.
    let source = DataFiles::open(&arguments.paths)?;
    let files: Vec<PathBuf> = source.files().iter().map(|file| file.path.clone()).collect();
    let copies = copy(&files, &arguments.output)?;
    let done = ::lab::damage::damage(&copies, arguments.kind.kind(), arguments.seed).map_err(Failure::blind)?;
    let messages: Vec<String> = done.messages.iter().map(ToString::to_string).collect();
    output::print(|out| {
        for copy in &copies {
            writeln!(out, "{}", copy.display())?;
        }
        writeln!(out, "  {}", done.what)?;
        writeln!(out, "  expect Msg {}", messages.join(" or "))
    })?;
    Ok(0)
}

/// Copies files into a folder; what is there is not replaced.
pub(crate) fn copy(files: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let refused = |path: &Path, cause: &dyn Display| Failure::blind(format!("{}: {cause}", path.display()));
    fs::create_dir_all(folder).map_err(|cause| refused(folder, &cause))?;
    let mut copies = Vec::new();
    for file in files {
        let copy = folder.join(file.file_name().unwrap_or_default());
        if copy.exists() {
            return Err(refused(&copy, &"is there already"));
        }
        fs::copy(file, &copy).map_err(|cause| refused(&copy, &cause))?;
        copies.push(copy);
    }
    Ok(copies)
}
