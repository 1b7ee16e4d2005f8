//! `mdfsck chain`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{OpenError, backup};

use crate::cli::ChainArguments;
use crate::failure::{Failure, complain, tell_read_faults};
use crate::output;

/// Folders in folders that are looked into: backup jobs keep one a database and kind.
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
    // A link beside the file that it leads to is the same file.
    let mut seen = BTreeSet::new();
    paths.retain(|path| fs::canonicalize(path).map_or(true, |file| seen.insert(file)));
    let (mut media, mut status) = (Vec::new(), 0);
    for path in &paths {
        match backup::media(path) {
            Ok(read) if read.sets.is_empty() => {
                complain(OpenError::NoSet { path: path.clone() });
                status |= Failure::BLIND;
            }
            Ok(read) => media.push(read),
            Err(error) => {
                complain(error);
                status |= Failure::BLIND;
            }
        }
    }
    if media.is_empty() {
        return Err(Failure::blind("no backup file found; name backup files, or the folder that holds them"));
    }
    let chains = backup::chains(&media);
    output::print(|out| match arguments.json {
        true => report::chains::write_json(&chains, out),
        false => report::chains::write(&chains, out),
    })?;
    let is_broken = |database: &backup::DatabaseChains| {
        let gap = database.chains.last().is_none_or(|chain| chain.gap.is_some());
        gap || database.sets.iter().any(|set| !set.is_whole())
    };
    for media in &media {
        status |= tell_read_faults(&media.read_faults);
    }
    if chains.iter().any(is_broken) {
        status |= Failure::INCOMPLETE;
    }
    Ok(status)
}

/// The backup files in a folder and the folders in it. Of symbolic links only those to files are followed, so that none
/// leads in a circle.
fn find(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::blind(format!("{}: {error}", folder.display()));
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
