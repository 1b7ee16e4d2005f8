//! `mdfsck lab redact`: copies a database with other names and other values, for which a check has the same findings.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ::redact::{Kept, Key, Redaction, differences};
use check::Silent;
use clap::Args;
use findings::{Options, Report};
use jobs::failure::Failure;
use report::printable;
use source::{DataFile, DataFiles, PageSource};

use super::{create_like, free_names, give_names, refused};
use crate::output;

#[derive(Args)]
pub(crate) struct RedactArguments {
    /// Data files of one database, or the folder that holds them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Folder for the copy; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// The most differences that an error lists.
const MOST_DIFFERENCES: usize = 3;

pub(super) fn run(arguments: &RedactArguments) -> Result<u8, Failure> {
    let source = DataFiles::open(&arguments.paths)?;
    let dir = &arguments.output;
    fs::create_dir_all(dir).map_err(|cause| refused(dir, &cause))?;
    let paths: Vec<PathBuf> = source.files().iter().map(|file| file.path.clone()).collect();
    let names = free_names(&paths, dir)?;
    // The copy gets its final name only after its findings were compared with those of the original.
    let staged = tempfile::Builder::new().prefix(".redact.").suffix(".partial").tempdir_in(dir);
    let staged = staged.map_err(|cause| refused(dir, &cause))?;
    let (copies, kept) = copy(&source, staged.path())?;
    let before = check(&source);
    let found = differences(&before, &check(&DataFiles::open(&copies)?));
    if !found.is_empty() {
        let listed: Vec<&str> = found.iter().take(MOST_DIFFERENCES).map(String::as_str).collect();
        return Err(Failure::unable(format!(
            "{}: a check of the copy says something else in {} places, so the copy was removed; send the original, or \
             report this: {}",
            dir.display(),
            found.len(),
            listed.join("; ")
        )));
    }
    give_names(&copies, &names)?;
    tell(&names, &before, &kept)?;
    Ok(if kept.has_values() { Failure::INCOMPLETE } else { 0 })
}

fn check(source: &DataFiles) -> Report {
    let database = catalog::load(source);
    ::check::run(source, &database, &Options::default(), &Silent)
}

/// Writes the data files with new names and values.
fn copy(source: &DataFiles, folder: &Path) -> Result<(Vec<PathBuf>, Kept), Failure> {
    let database = catalog::load(source);
    let key = Key::random().map_err(|cause| Failure::unable(format!("no random numbers: {cause}")))?;
    let mut redaction = Redaction::of(source, &database, key).map_err(Failure::unable)?;
    let mut copies = Vec::new();
    for file in source.files() {
        let path = folder.join(file.path.file_name().unwrap_or_default());
        write(&mut redaction, file, &path)?;
        copies.push(path);
    }
    Ok((copies, redaction.kept().clone()))
}

fn write(redaction: &mut Redaction<'_>, file: &DataFile, path: &Path) -> Result<(), Failure> {
    let failed = |cause: std::io::Error| refused(path, &cause);
    let mut out = BufWriter::new(create_like(&file.path, path).map_err(failed)?);
    for page in 0..file.pages {
        let page = redaction.page(format::PageId::new(file.file_id, page)).map_err(Failure::unable)?;
        out.write_all(page.as_slice()).map_err(failed)?;
    }
    // A part of a page at the end of the file has no readable content.
    out.write_all(&vec![0; file.tail_bytes as usize]).map_err(failed)?;
    let file = out.into_inner().map_err(|cause| failed(cause.into_error()))?;
    file.sync_all().map_err(failed)
}

fn tell(names: &[PathBuf], before: &Report, kept: &Kept) -> Result<(), Failure> {
    output::print(|out| {
        for name in names {
            writeln!(out, "{}", name.display())?;
        }
        let findings = before.findings.len() + before.demoted.len();
        writeln!(out, "  names and values were replaced; findings of the original and of the copy: {findings}")?;
        writeln!(out, "  left out: log files, because their records contain old values")?;
        for (why, place, count) in kept.iter() {
            writeln!(out, "  kept: {} ({count}): {}", printable(place), why.text())?;
        }
        Ok(())
    })
}
