//! `mdfsck info` and `mdfsck tables`.

use source::DataFiles;

use crate::cli::{InfoArguments, TablesArguments};
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
    if database.boot.is_none() {
        complain("the boot page (1:9) is damaged: the catalogue cannot be found");
        return Ok(Failure::BLIND);
    }
    for gap in &database.gaps {
        complain(format!("system table {} is damaged: the list is not complete", gap.table));
    }
    Ok(if database.gaps.is_empty() { 0 } else { Failure::BLIND })
}
