//! `mdfsck prove`: the parts of the prove-it kit that its shell script and its PowerShell script share. The scripts run
//! sqlcmd; these commands read what it printed, and never connect to a server.

mod files;
mod listing;
mod page;
mod reply;
mod report;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ::lab::damage::Kind;
use clap::{Args, Subcommand};
use jobs::failure::Failure;

use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mdfsck prove plan --copies 60 --seed 1
          lists the damaged copies of a run: number, kind of damage, seed
  mdfsck prove report results
          compares the outputs for the sound copy, prints a table per kind, and writes results/index.html";

/// The largest number of bytes of a file that the kit wrote to read.
const MOST_BYTES: u64 = 256 << 20;

#[derive(Subcommand)]
pub(crate) enum ProveCommand {
    /// List the damaged copies of a run
    ///
    /// Prints a line per copy: its number, the kind of damage and the seed, separated by tabs. Each kind has its turn.
    Plan(PlanArguments),

    /// Read the list of files in a backup, as RESTORE FILELISTONLY printed it
    ///
    /// Prints the size of the database, the names of its files in the new folder, and the MOVE clauses of RESTORE.
    Files(FilesArguments),

    /// Read the reply of sqlcmd to a statement
    ///
    /// Prints whether the statement ended, and if not, the reason and what to do. Reads replies in any language.
    Reply(ReplyArguments),

    /// Summarize a run
    ///
    /// Compares what CHECKALLOC and CHECKCATALOG printed for the sound copy with what mdfsck printed, prints a table
    /// per kind of damage, and writes the page index.html.
    Report(ReportArguments),
}

#[derive(Args)]
pub(crate) struct PlanArguments {
    /// Number of copies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=999), default_value_t = 60)]
    copies: u32,

    /// Seed of the first copy of each kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Args)]
pub(crate) struct FilesArguments {
    /// Output of sqlcmd with tabs between columns
    #[arg(value_name = "REPLY")]
    reply: PathBuf,

    /// New folder as the server names it, with a separator at its end
    #[arg(long, value_name = "FOLDER")]
    to: String,
}

#[derive(Args)]
pub(crate) struct ReplyArguments {
    /// Output of sqlcmd, and what it wrote to stderr
    #[arg(value_name = "REPLY", required = true)]
    replies: Vec<PathBuf>,

    /// Exit status of sqlcmd
    #[arg(long, value_name = "N", default_value_t = 0)]
    status: i32,
}

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(command: &ProveCommand) -> Result<u8, Failure> {
    match command {
        ProveCommand::Plan(arguments) => plan(arguments),
        ProveCommand::Files(arguments) => files::run(&read(&arguments.reply)?, &arguments.to),
        ProveCommand::Reply(arguments) => {
            let texts: Vec<String> = arguments.replies.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
            let text = texts.join("\n");
            let reply = reply::Reply::of(&text);
            output::print(|out| {
                writeln!(out, "outcome\t{}", reply.outcome().name())?;
                writeln!(out, "why\t{}", reply.why(arguments.status))
            })?;
            Ok(0)
        }
        ProveCommand::Report(arguments) => report::run(&arguments.dir),
    }
}

fn plan(arguments: &PlanArguments) -> Result<u8, Failure> {
    let kinds = Kind::ALL;
    output::print(|out| {
        for (copy, kind) in (1..=arguments.copies).zip(kinds.iter().cycle()) {
            let turn = u64::from(copy - 1) / kinds.len() as u64;
            writeln!(out, "{copy:03}\t{}\t{}", kind.name(), arguments.seed.saturating_add(turn))?;
        }
        Ok(())
    })?;
    Ok(0)
}

/// The text of a file that a script of the kit wrote, without line ends of Windows.
fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    file.map_err(|cause| Failure::unable(format!("{}: {cause}", path.display())))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_start_matches('\u{feff}').replace('\r', ""))
}
