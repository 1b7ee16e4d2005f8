//! `mdfsck info`, `mdfsck tables` and `mdfsck lint`: show facts from file headers, backup labels and the catalog,
//! without reading the rows of tables.

use std::io;
use std::path::{Path, PathBuf};

use catalog::{Database, Fetched};
use check::Silent;
use format::PageId;
use jobs::failure::{Failure, report_faults, report_read_faults};
use jobs::inventory::{self, Inventory};
use jobs::request::RecoveryOptions;
use jobs::{carve, folders, logs, recover};
use report::info::Table;
use source::backup::BackupMedia;
use source::{DataFiles, OpenError, PageSource, StandardInput};

use crate::carved;
use crate::cli::{DatabaseArguments, InfoArguments, LintArguments, TableOrder, TablesArguments};
use crate::lost_catalog::{self, Search};
use crate::output;
use crate::speaker::warn;

pub(crate) fn info(arguments: &InfoArguments) -> Result<u8, Failure> {
    if arguments.carve.carve {
        carve::refuse_recursive(arguments.recursive)?;
    }
    if arguments.recursive {
        let paths = folders::with_subfolders(&arguments.paths)?;
        return info(&InfoArguments { paths, recursive: false, ..arguments.clone() });
    }
    if arguments.tableresults {
        return dbinfo(arguments);
    }
    if arguments.carve.carve {
        return database(arguments, &arguments.paths, &mut Table::default());
    }
    if arguments.paths.iter().all(|path| logs::is_log(path)) {
        return log_files(arguments);
    }
    match inventory::inventory(&arguments.paths)? {
        Some(inventory) => several(arguments, inventory),
        None if arguments.paths.iter().any(|path| is_pipe(path) || source::is_backup(path)) => backups(arguments),
        None => database(arguments, &arguments.paths, &mut Table::default()),
    }
}

/// Prints the facts of several databases and backups, one after another. Prints a table with one line for each of them
/// at the end.
fn several(arguments: &InfoArguments, inventory: Inventory) -> Result<u8, Failure> {
    let Inventory { databases, backups, problems, notes } = inventory;
    notes.iter().for_each(warn);
    let mut status = 0;
    let mut table = Table::default();
    for (number, paths) in databases.iter().enumerate() {
        if number > 0 && !arguments.json {
            status |= output::print(|out| writeln!(out)).map_or_else(Failure::report, |()| 0);
        }
        status |=
            database(arguments, paths, &mut table).unwrap_or_else(|failure| refused(arguments, failure, &mut table));
    }
    if !backups.is_empty() {
        if !databases.is_empty() && !arguments.json {
            status |= output::print(|out| writeln!(out)).map_or_else(Failure::report, |()| 0);
        }
        table.backups(&backups);
        status |= labels(arguments, &backups).unwrap_or_else(|failure| refused(arguments, failure, &mut table));
    }
    for problem in problems {
        status |= refused(arguments, problem, &mut table);
    }
    if !arguments.json {
        status |= output::print(|out| table.write(out)).map_or_else(Failure::report, |()| 0);
    }
    Ok(status)
}

/// Reports that one of several databases cannot be shown. Writes the reason to stderr, and with `--json` also as a JSON
/// line among the results.
fn refused(arguments: &InfoArguments, failure: Failure, table: &mut Table) -> u8 {
    if !failure.text.is_empty() {
        table.refused(&failure.text);
    }
    let written = match arguments.json && !failure.text.is_empty() {
        false => Ok(()),
        true => output::print(|out| report::json::write_failure(&failure.text, failure.status, out)),
    };
    failure.report() | written.map_or_else(Failure::report, |()| 0)
}

/// Prints the facts of a database.
fn database(arguments: &InfoArguments, paths: &[PathBuf], table: &mut Table) -> Result<u8, Failure> {
    let source = match arguments.carve.carve {
        true => carve::open(paths, None, carved::listener(true).as_ref())?,
        false => Box::new(DataFiles::open(paths)?),
    };
    let source = source.as_ref();
    check::carved(source).iter().for_each(|warning| warn(&warning.text));
    let (database, found) = lost_catalog::look(source, catalog::load(source));
    table.database(source, &database);
    // Without --carve, the log may be beside the data files.
    let logs = if arguments.carve.carve { Vec::new() } else { logs::find(source, &database) };
    let recovery = if arguments.carve.carve { None } else { recover::need(paths, source, &database) };
    let about_log = (logs.as_slice(), recovery.as_ref());
    output::print(|out| match arguments.json {
        true => report::info::write_json(source, &database, about_log, found.as_ref(), out),
        false => report::info::write(source, &database, about_log, found.as_ref(), out),
    })?;
    if database.boot.is_none() {
        match found {
            Some(_) => warn("the boot page (1:9) cannot be read"),
            None => warn(recover::without_boot_page(source)),
        }
        return Ok(Failure::UNABLE | report_faults(source));
    }
    Ok(report_faults(source))
}

/// Prints the boot page of data files or of a backup.
fn dbinfo(arguments: &InfoArguments) -> Result<u8, Failure> {
    if arguments.paths.iter().any(|path| is_pipe(path)) {
        return Err(Failure::usage(
            "info --tableresults: give files; mdfsck reads only the labels of a backup from standard input",
        ));
    }
    let source = carved::stored(&arguments.paths, &[], None, arguments.carve.carve)?;
    let Fetched::Sound(boot) = catalog::fetch(source.as_ref(), PageId::BOOT) else {
        return Err(Failure::unable(
            "the boot page (1:9) is damaged or not in these files; 'mdfsck check' reports more",
        ));
    };
    output::print(|out| report::dbinfo::write(&boot, out))?;
    Ok(report_faults(source.as_ref()))
}

/// Describes log files that the user named without data files.
fn log_files(arguments: &InfoArguments) -> Result<u8, Failure> {
    let size = |path: &PathBuf| source::storage::length(path).unwrap_or(0);
    let logs: Vec<(&Path, u64)> = arguments.paths.iter().map(|path| (path.as_path(), size(path))).collect();
    output::print(|out| match arguments.json {
        true => report::info::write_logs_json(&logs, out),
        false => report::info::write_logs(&logs, out),
    })?;
    Ok(0)
}

/// Whether the path means standard input.
fn is_pipe(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Prints the labels of backup files.
fn backups(arguments: &InfoArguments) -> Result<u8, Failure> {
    if arguments.paths.iter().filter(|path| is_pipe(path)).count() > 1 {
        return Err(OpenError::StandardInput(StandardInput::Twice).into());
    }
    let look = |path: &PathBuf| match is_pipe(path) {
        true => source::backup::media_from(path, Box::new(io::stdin())),
        false => source::backup::media(path),
    };
    let media = arguments.paths.iter().map(look).collect::<Result<Vec<_>, _>>()?;
    let status = labels(arguments, &media)?;
    if !arguments.json {
        let mut table = Table::default();
        table.backups(&media);
        output::print(|out| table.write(out))?;
    }
    Ok(status)
}

fn labels(arguments: &InfoArguments, media: &[BackupMedia]) -> Result<u8, Failure> {
    output::print(|out| match arguments.json {
        true => report::backups::write_json(media, out),
        false => report::backups::write(media, out),
    })?;
    let is_damaged = media.iter().any(|media| !media.damage.is_empty());
    let status = if is_damaged { Failure::UNABLE } else { 0 };
    Ok(media.iter().fold(status, |status, media| status | report_read_faults(&media.read_faults)))
}

pub(crate) fn tables(arguments: &TablesArguments) -> Result<u8, Failure> {
    let order = match arguments.sort {
        TableOrder::Name => report::tables::Order::Name,
        TableOrder::Size => report::tables::Order::Size,
        TableOrder::Rows => report::tables::Order::Rows,
    };
    let (all, is_json) = (arguments.all, arguments.json);
    let more = (Some(arguments.like.like.as_slice()), arguments.carve.carve);
    show_catalog(&arguments.database, more, is_json, |source, database, out| match (arguments.statistics, is_json) {
        (true, true) => report::table_statistics::write_json(source, database, all, out),
        (true, false) => report::table_statistics::write(source, database, all, out),
        (false, true) => report::tables::write_json(database, all, order, out).map(|()| true),
        (false, false) => report::tables::write(database, all, order, out).map(|()| true),
    })
}

pub(crate) fn lint(arguments: &LintArguments) -> Result<u8, Failure> {
    // Hints about a catalog that was put together would be no facts.
    let more = (None, false);
    show_catalog(&arguments.database, more, arguments.json, |_, database, out| match arguments.json {
        true => report::lint::write_json(database, out).map(|()| true),
        false => report::lint::write(database, out).map(|()| true),
    })
}

/// The warning that a list is incomplete because a system table could not be read completely. The warning is printed
/// only if the catalog has reported no gap.
const NOT_WHOLE: &str = "a system table cannot be read completely: the list is not complete";

/// Prints facts from the catalog after recovery. If the catalog is lost, `like` has the paths of a copy, or is `None` if
/// the catalog is not to be put together. `write` prints the facts, and returns whether it could read all of
/// them.
fn show_catalog(
    arguments: &DatabaseArguments,
    (like, carve): (Option<&[PathBuf]>, bool),
    is_json: bool,
    write: impl FnOnce(&dyn PageSource, &Database, &mut dyn io::Write) -> io::Result<bool>,
) -> Result<u8, Failure> {
    let source = carved::stored(&arguments.paths, &arguments.set, arguments.recovery.room.memory, carve)?;
    let as_stored = catalog::load(source.as_ref());
    let recovery = RecoveryOptions::from(&arguments.recovery);
    let recovered = recover::recover(&arguments.paths, &recovery, source.as_ref(), &as_stored, || false)?;
    let (source, database) = recovered.view(source.as_ref(), as_stored);
    let lacks_input = recover::warn_about_input(source, &database, "read");
    let memory = lost_catalog::memory_for_search(arguments.recovery.room.memory);
    let database = match like {
        Some(like) => lost_catalog::complete(source, database, (like, Search::IfNeeded), memory, &Silent)?,
        None => database,
    };
    let gaps = gaps(source, &database, lacks_input);
    gaps.iter().for_each(warn);
    let mut is_whole = true;
    output::print(|out| {
        // In an encrypted database, or without the boot page and any other page of it, there is no catalog to show.
        let has_tables = database.boot.is_some() || !database.rests_on.is_empty();
        if has_tables && !database.is_encrypted {
            is_whole = write(source, &database, out)?;
        }
        let more = (!is_whole && gaps.is_empty()).then_some(NOT_WHOLE).into_iter();
        let mut errors = gaps.iter().map(String::as_str).chain(more).filter(|_| is_json);
        errors.try_for_each(|gap| report::json::write_failure(gap, Failure::UNABLE, out))
    })?;
    if !is_whole && gaps.is_empty() {
        warn(NOT_WHOLE);
    }
    let status = if gaps.is_empty() && is_whole { 0 } else { Failure::UNABLE };
    Ok(status | recover::report_doubts(&recovered) | report_faults(source))
}

/// Describes the parts of the catalog that could not be read.
fn gaps(source: &dyn PageSource, database: &Database, lacks_input: bool) -> Vec<String> {
    if !database.rests_on.is_empty() {
        return vec!["the catalog is not whole: the list may not be complete".to_owned()];
    }
    if database.boot.is_none() {
        return vec![recover::without_boot_page(source).to_owned()];
    }
    if database.is_encrypted {
        return vec!["the database is encrypted (TDE): its tables cannot be listed without the key".to_owned()];
    }
    let why = match database.is_recovered(source) {
        true => "is damaged",
        false => "cannot be read completely, perhaps because the database was not shut down cleanly",
    };
    recover::catalog_gaps(database, lacks_input, why, "the list is not complete")
}
