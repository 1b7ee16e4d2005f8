//! `mdfsck demo`: a sound database, damaged in five ways, and what a check reports for each.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::lab::Version;
use ::lab::damage::{self, Kind};
use check::{Finding, Names, Options, Report, Silent};
use source::DataFiles;

use crate::failure::Failure;
use crate::{lab, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  mdfsck demo
  mdfsck demo /tmp/demo && mdfsck check /tmp/demo/3-lost-write";

/// Small enough for a second, large enough for trees of several levels.
const BYTES: u64 = 10 << 20;
const SEED: u64 = 42;
/// Findings shown for each damage.
const SHOWN: usize = 2;
const WIDTH: usize = 96;

/// Folder, kind, and why it matters.
const DAMAGE: [(&str, Kind, &str); 5] = [
    ("1-bit-rot", Kind::BitRot, "A disk gives back a page that differs in one bit from what was written."),
    (
        "2-torn-write",
        Kind::TornWrite,
        "Power fails while a page is written: its first sectors are new, the rest is not.",
    ),
    ("3-lost-write", Kind::LostWrite, "Storage says 'written' and forgets it. Page and checksum are right, but old."),
    ("4-broken-link", Kind::BrokenLink, "A pointer between two pages of an index leads astray."),
    ("5-lost-extent", Kind::LostExtent, "A map forgets that 64 KB belong to a table: they will be given away again."),
];

pub(crate) fn run(dir: &Path) -> Result<u8, Failure> {
    let refused = |cause: io::Error| Failure::unable(format!("{}: {cause}", dir.display()));
    let sound = dir.join("0-sound");
    std::fs::create_dir_all(dir).map_err(refused)?;
    if std::fs::read_dir(dir).map_err(refused)?.next().is_some() {
        return Err(Failure::usage(format!("{}: is not empty", dir.display())));
    }
    std::fs::create_dir_all(&sound).map_err(refused)?;
    let description = ::lab::orders::orders(Version::V904, SEED, BYTES);
    let written = ::lab::write(&description, &sound).map_err(Failure::unable)?;
    let rows: u64 = written.tables.iter().map(|(_, rows)| rows).sum();
    let (report, milliseconds) = check(&written.files)?;
    output::print(|out| {
        writeln!(out, "A small order-entry database, made for this: {}", written.files[0].display())?;
        writeln!(out, "  {} tables, {rows} rows, {} pages of 8 KB", written.tables.len(), written.pages[0])?;
        writeln!(out, "  checked in {milliseconds} ms: {} findings", report.findings.len())
    })?;
    for (name, kind, story) in DAMAGE {
        let files = lab::copy(&written.files, &dir.join(name))?;
        let done = damage::damage(&files, kind, SEED).map_err(Failure::unable)?;
        let (report, milliseconds) = check(&files)?;
        output::print(|out| show(&files[0], story, &done.what, (&report, milliseconds), out))?;
    }
    output::print(|out| {
        writeln!(out, "\nThe same in full:  mdfsck check {}", dir.join(DAMAGE[2].0).display())?;
        writeln!(out, "What to do:        mdfsck explain 8951")?;
        writeln!(out, "Your own database: mdfsck check PATH")
    })?;
    Ok(0)
}

fn check(files: &[PathBuf]) -> Result<(Report, u128), Failure> {
    let source = DataFiles::open(files)?;
    let begin = Instant::now();
    let report = check::run(&source, &catalog::load(&source), &Options::default(), &Silent);
    Ok((report, begin.elapsed().as_millis()))
}

/// One damage: what happened, what the check reports, what that means.
fn show(
    file: &Path,
    story: &str,
    what: &str,
    (report, milliseconds): (&Report, u128),
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\n{story}\n  {}: {what}", file.display())?;
    writeln!(out, "  checked in {milliseconds} ms: {} findings", report.findings.len())?;
    let names = Names { database: &report.database.name, database_id: report.database.id, command: "CHECKDB" };
    // A repeated message says little.
    let mut shown: Vec<Cow<'_, Finding>> = Vec::new();
    for finding in &report.findings {
        if shown.len() < SHOWN && shown.iter().all(|other| other.check.msg != finding.check.msg) {
            shown.push(finding);
        }
    }
    for finding in shown {
        writeln!(out)?;
        indent(&format!("Msg {}: {}", finding.check.msg, finding.text(&names)), "    ", out)?;
        indent(&format!("= {}", finding.check.cause), "      ", out)?;
    }
    Ok(())
}

/// Breaks text between words.
fn indent(text: &str, margin: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && margin.len() + line.len() + word.len() >= WIDTH {
            writeln!(out, "{margin}{line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{margin}{line}")
}
