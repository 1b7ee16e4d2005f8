//! `mdfsck info`, `mdfsck tables` and `mdfsck lint`: what the catalogue alone tells.

use catalog::Database;
use source::DataFiles;

use crate::cli::{InfoArguments, LintArguments, TablesArguments};
use crate::failure::{Failure, complain};
use crate::{logs, output};

pub(crate) fn info(arguments: &InfoArguments) -> Result<u8, Failure> {
    let source = DataFiles::open(&arguments.paths)?;
    let database = catalog::load(&source);
    let logs = logs::find(&source, &database);
    output::print(|out| match arguments.json {
        true => report::info::write_json(&source, &database, &logs, out),
        false => report::info::write(&source, &database, &logs, out),
    })?;
    if database.boot.is_none() {
        complain("the boot page (1:9) is damaged; 'mdfsck check' tells more");
        return Ok(Failure::BLIND);
    }
    Ok(0)
}

pub(crate) fn tables(arguments: &TablesArguments) -> Result<u8, Failure> {
    let source = DataFiles::open(&arguments.paths)?;
    let database = catalog::load(&source);
    output::print(|out| match arguments.json {
        true => report::tables::write_json(&database, arguments.all, out),
        false => report::tables::write(&database, arguments.all, out),
    })?;
    Ok(complain_of_gaps(&database))
}

pub(crate) fn lint(arguments: &LintArguments) -> Result<u8, Failure> {
    let source = DataFiles::open(&arguments.paths)?;
    let database = catalog::load(&source);
    output::print(|out| match arguments.json {
        true => report::lint::write_json(&database, out),
        false => report::lint::write(&database, out),
    })?;
    Ok(complain_of_gaps(&database))
}

/// Tells what of the catalogue could not be read, and the exit status for that.
fn complain_of_gaps(database: &Database) -> u8 {
    if database.boot.is_none() {
        complain("the boot page (1:9) is damaged: the catalogue cannot be found");
        return Failure::BLIND;
    }
    for gap in &database.gaps {
        complain(format!("system table {} is damaged: the list is not complete", gap.table));
    }
    if database.gaps.is_empty() { 0 } else { Failure::BLIND }
}
