//! `mdfsck info`, `mdfsck tables` and `mdfsck lint`: what the catalogue alone tells.

use std::io;
use std::path::{Path, PathBuf};

use catalog::Database;
use source::{DataFiles, PageSource};

use crate::cli::{InfoArguments, LintArguments, TablesArguments};
use crate::failure::{Failure, complain, tell_read_faults};
use crate::{logs, output};

pub(crate) fn info(arguments: &InfoArguments) -> Result<u8, Failure> {
    if arguments.paths.iter().any(|path| is_pipe(path) || source::is_backup(path)) {
        return backups(arguments);
    }
    let source = DataFiles::open(&arguments.paths)?;
    let database = catalog::load(&source);
    let logs = logs::find(&source, &database);
    output::print(|out| match arguments.json {
        true => report::info::write_json(&source, &database, &logs, out),
        false => report::info::write(&source, &database, &logs, out),
    })?;
    if database.boot.is_none() {
        complain("the boot page (1:9) is damaged; 'mdfsck check' tells more");
        return Ok(Failure::BLIND | tell_read_faults(&source.read_faults()));
    }
    Ok(tell_read_faults(&source.read_faults()))
}

/// Standard input.
fn is_pipe(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What backup files say of themselves.
fn backups(arguments: &InfoArguments) -> Result<u8, Failure> {
    let look = |path: &PathBuf| match is_pipe(path) {
        true => source::backup::media_from(path, Box::new(io::stdin())),
        false => source::backup::media(path),
    };
    let media = arguments.paths.iter().map(look).collect::<Result<Vec<_>, _>>()?;
    output::print(|out| match arguments.json {
        true => report::backups::write_json(&media, out),
        false => report::backups::write(&media, out),
    })?;
    let is_damaged = media.iter().any(|media| !media.damage.is_empty());
    let status = if is_damaged { Failure::BLIND } else { 0 };
    Ok(media.iter().fold(status, |status, media| status | tell_read_faults(&media.read_faults)))
}

pub(crate) fn tables(arguments: &TablesArguments) -> Result<u8, Failure> {
    let source = source::open(&arguments.database.paths, &arguments.database.set, false)?;
    let database = catalog::load(source.as_ref());
    output::print(|out| match arguments.json {
        true => report::tables::write_json(&database, arguments.all, out),
        false => report::tables::write(&database, arguments.all, out),
    })?;
    Ok(complain_of_gaps(source.as_ref(), &database) | tell_read_faults(&source.read_faults()))
}

pub(crate) fn lint(arguments: &LintArguments) -> Result<u8, Failure> {
    let source = source::open(&arguments.database.paths, &arguments.database.set, false)?;
    let database = catalog::load(source.as_ref());
    output::print(|out| match arguments.json {
        true => report::lint::write_json(&database, out),
        false => report::lint::write(&database, out),
    })?;
    Ok(complain_of_gaps(source.as_ref(), &database) | tell_read_faults(&source.read_faults()))
}

/// Reports what of the catalog could not be read. Returns the exit status for that.
fn complain_of_gaps(source: &dyn PageSource, database: &Database) -> u8 {
    if database.boot.is_none() {
        complain("the boot page (1:9) is damaged: the catalogue cannot be found");
        return Failure::BLIND;
    }
    if database.is_encrypted {
        complain("the database is encrypted (TDE): which tables it has only the key's owner can tell");
        return Failure::BLIND;
    }
    let why = match database.is_recovered(source) {
        true => "is damaged",
        false => "cannot be read to its end, perhaps because the database was not shut down cleanly",
    };
    for gap in &database.gaps {
        complain(format!("system table {} {why}: the list is not complete", gap.table));
    }
    if database.gaps.is_empty() { 0 } else { Failure::BLIND }
}
