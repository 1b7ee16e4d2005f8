//! `mdfsck demo`: makes five copies of a sound database, damages each copy in a different way, and shows what a check
//! of each copy reports.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::lab::Version;
use ::lab::damage::{self, Kind};
use catalog::Database;
use check::Silent;
use findings::{Finding, Names, Options, Report};
use jobs::failure::Failure;
use source::DataFiles;

use crate::{lab, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  mdfsck demo
  mdfsck demo /tmp/demo && mdfsck check /tmp/demo/3-lost-write";

/// The size of the database in bytes. It is small enough to be checked in less than a second, and large enough for
/// indexes with several levels.
const BYTES: u64 = 10 << 20;
const SEED: u64 = 42;
/// Maximum number of findings to show for each kind of damage.
const SHOWN: usize = 2;
const WIDTH: usize = 96;

/// Folder of the sound database.
const SOUND: &str = "0-sound";
/// For each kind of damage: the name of its folder, the kind, and a text that says why this damage matters.
const DAMAGE: [(&str, Kind, &str); 5] = [
    ("1-bit-rot", Kind::BitRot, "A disk returns a page that differs in one bit from the page that was written."),
    (
        "2-torn-write",
        Kind::TornWrite,
        "Power fails while a page is written: its first sectors are new, the other sectors are old.",
    ),
    (
        "3-lost-write",
        Kind::LostWrite,
        "Storage confirms a write but loses it. The page matches its checksum, but is old.",
    ),
    ("4-broken-link", Kind::BrokenLink, "A pointer between two index pages is wrong."),
    (
        "5-lost-extent",
        Kind::LostExtent,
        "An IAM page lacks an extent (64 KB) of a table, so SQL Server will allocate the extent again.",
    ),
];

pub(crate) fn run(dir: &Path) -> Result<u8, Failure> {
    let refused = |cause: io::Error| Failure::unable(format!("{}: {cause}", dir.display()));
    let sound = dir.join(SOUND);
    let description = ::lab::orders::orders(Version::V904, SEED, BYTES);
    std::fs::create_dir_all(dir).map_err(refused)?;
    clear(dir, &format!("{}.mdf", description.name))?;
    std::fs::create_dir_all(&sound).map_err(refused)?;
    let written = ::lab::write(&description, &sound).map_err(Failure::unable)?;
    let rows: u64 = written.tables.iter().map(|(_, rows)| rows).sum();
    let Checked { report, milliseconds, .. } = check(&written.files)?;
    output::print(|out| {
        writeln!(out, "A small order-entry database, made for this demonstration: {}", written.files[0].display())?;
        writeln!(out, "  {} tables, {rows} rows, {} pages of 8 KB", written.tables.len(), written.pages[0])?;
        writeln!(out, "  checked in {milliseconds} ms: {} findings", report.findings.len())
    })?;
    for (name, kind, story) in DAMAGE {
        let files = lab::copy(&written.files, &dir.join(name))?;
        let done = damage::damage(&files, kind, SEED).map_err(Failure::unable)?;
        let checked = check(&files)?;
        output::print(|out| show(&files[0], story, &done.what, &checked, out))?;
    }
    output::print(|out| {
        writeln!(out, "\nAll findings:      mdfsck check {}", dir.join(DAMAGE[2].0).display())?;
        writeln!(out, "What to do:        mdfsck explain 8951")?;
        writeln!(out, "Your own database: mdfsck check PATH")
    })?;
    Ok(0)
}

/// Deletes the files of an earlier demo. Refuses a folder that has other files.
fn clear(dir: &Path, file: &str) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause: io::Error| Failure::unable(format!("{}: {cause}", path.display()))
    };
    let entries = |folder: &Path| -> Result<Vec<PathBuf>, Failure> {
        let found = std::fs::read_dir(folder).and_then(|found| found.collect::<io::Result<Vec<_>>>());
        Ok(found.map_err(failed(folder))?.iter().map(std::fs::DirEntry::path).collect())
    };
    // A demo creates no symbolic links, so a link in the folder was not created by a demo.
    let is_own = |path: &Path, is_kind: fn(&std::fs::Metadata) -> bool| {
        std::fs::symlink_metadata(path).is_ok_and(|metadata| is_kind(&metadata))
    };
    let is_known = |path: &Path| {
        let names = DAMAGE.iter().map(|(name, ..)| *name).chain([SOUND]);
        is_own(path, std::fs::Metadata::is_dir)
            && path.file_name().is_some_and(|own| names.into_iter().any(|name| own == name))
    };
    let known = entries(dir)?;
    let mut old = Vec::new();
    for folder in &known {
        if is_known(folder) {
            old.extend(entries(folder)?);
        }
    }
    let is_a_demo = known.iter().all(|folder| is_known(folder))
        && old
            .iter()
            .all(|path| is_own(path, std::fs::Metadata::is_file) && path.file_name().is_some_and(|own| own == file));
    if !is_a_demo {
        return Err(Failure::usage(format!(
            "{}: exists and contains files that are not from a demo; give another folder: mdfsck demo FOLDER",
            dir.display()
        )));
    }
    old.iter().try_for_each(|path| std::fs::remove_file(path).map_err(failed(path)))
}

/// The result of a check.
struct Checked {
    report: Report,
    database: Database,
    milliseconds: u128,
}

fn check(files: &[PathBuf]) -> Result<Checked, Failure> {
    let source = DataFiles::open(files)?;
    let begin = Instant::now();
    let database = catalog::load(&source);
    let report = check::run(&source, &database, &Options::default(), &Silent);
    Ok(Checked { report, database, milliseconds: begin.elapsed().as_millis() })
}

/// Prints one kind of damage: how the database was damaged, what the check reports, and what the report means.
fn show(file: &Path, story: &str, what: &str, checked: &Checked, out: &mut dyn Write) -> io::Result<()> {
    let Checked { report, database, milliseconds } = checked;
    writeln!(out, "\n{story}\n  {}: {what}", file.display())?;
    writeln!(out, "  checked in {milliseconds} ms: {} findings", report.findings.len())?;
    let names = Names { database: &report.database.name, database_id: report.database.id, command: "CHECKDB" };
    // Shows at most one finding for each message number. Findings that are consequences of other findings come last.
    let mut order: Vec<Cow<'_, Finding>> = report.findings.iter().collect();
    order.sort_by_key(|finding| finding.check.policy.follows);
    let mut shown: Vec<Cow<'_, Finding>> = Vec::new();
    for finding in order {
        if shown.len() < SHOWN && shown.iter().all(|other| other.check.msg != finding.check.msg) {
            shown.push(finding);
        }
    }
    for finding in &shown {
        let object = finding.owner.map(|owner| owner.object_id).filter(|object| database.objects.contains_key(object));
        let object = object.map(|object| format!(" in {}", database.object_name(object))).unwrap_or_default();
        writeln!(out)?;
        indent(&format!("Msg {}{object}: {}", finding.check.msg, finding.text(&names)), "    ", out)?;
        indent(&format!("= {}", finding.check.cause), "      ", out)?;
    }
    match report.findings.len() - shown.len() {
        0 => Ok(()),
        more => {
            let folder = file.parent().unwrap_or(file).display();
            writeln!(out, "\n    ... and {more} more: mdfsck check {folder}")
        }
    }
}

/// Writes text with a left margin, and breaks long lines between words.
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
