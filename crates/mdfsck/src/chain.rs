//! `mdfsck chain`.

mod verify;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::backup;

use crate::cli::ChainArguments;
use crate::failure::{Failure, report_read_faults, warn};
use crate::output;

/// Levels of folders that are searched: backup jobs use one per database and kind.
const MAX_DEPTH: usize = 8;

pub(crate) fn run(arguments: &ChainArguments) -> Result<u8, Failure> {
    let mut paths = Vec::new();
    for path in &arguments.paths {
        match path.is_dir() {
            true => find(path, MAX_DEPTH, &mut paths)?,
            false => paths.push(path.clone()),
        }
    }
    paths.sort();
    // A link beside its target is the same file.
    let mut seen = BTreeSet::new();
    paths.retain(|path| fs::canonicalize(path).map_or(true, |file| seen.insert(file)));
    let (mut media, mut status) = (Vec::new(), 0);
    for path in &paths {
        match backup::media(path) {
            Ok(read) if read.sets.is_empty() => {
                warn(backup::no_set(path));
                status |= Failure::UNABLE;
            }
            Ok(read) => media.push(read),
            Err(error) => {
                warn(error);
                status |= Failure::UNABLE;
            }
        }
    }
    // Why none of the files is a backup was said.
    if media.is_empty() && status != 0 {
        return Ok(status);
    }
    if media.is_empty() {
        return Err(Failure::unable("no backup file found; name backup files, or the folder that holds them"));
    }
    let chains = backup::chains(&media);
    output::print(|out| {
        for (number, database) in chains.iter().enumerate() {
            let mut verified = Vec::new();
            if arguments.verify {
                for chain in &database.chains {
                    let (found, bits) = verify::verify(database, chain, &arguments.recovery());
                    verified.push(found);
                    status |= bits;
                }
            }
            if number > 0 && !arguments.json {
                writeln!(out)?;
            }
            match arguments.json {
                true => report::chains::write_json(database, &verified, out)?,
                false => report::chains::write(database, &verified, out)?,
            }
        }
        Ok(())
    })?;
    let is_broken = |database: &backup::DatabaseChains| {
        let gap = database.chains.last().is_none_or(|chain| chain.gap.is_some());
        gap || database.sets.iter().any(|set| !set.is_whole())
    };
    for media in &media {
        status |= report_read_faults(&media.read_faults);
    }
    if chains.iter().any(is_broken) {
        status |= Failure::INCOMPLETE;
    }
    Ok(status)
}

/// The backup files in a folder and its subfolders. Symbolic links are followed only to files, so that none leads in a
/// circle.
fn find(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::unable(format!("{}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && depth > 0 {
            find(&entry.path(), depth - 1, paths)?;
        } else if entry.path().is_file() && source::is_backup(&entry.path()) {
            paths.push(entry.path());
        }
    }
    Ok(())
}
