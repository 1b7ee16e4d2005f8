//! `mdfsck lab`: sound databases to practise on.

use std::fs;
use std::path::PathBuf;

use ::lab::{PageVerify, Version};
use clap::{Args, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::{output, size};

pub(crate) const EXAMPLES: &str = "\
Examples:
  mdfsck lab new practice
          a small order-entry database in the folder practice
  mdfsck lab new bench --size 20GB --files 4 --seed 7
          a large one in four files: input for 'mdfsck bench'
  mdfsck lab new old --version 611 --verify torn
          as SQL Server 2005 lays it out";

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Write a sound database
    ///
    /// The same options give the same database, byte for byte but for the paths in its catalogue. SQL Server did not
    /// write it: it is for checkers and readers, not for attaching.
    New(NewArguments),
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
