//! `mdfsck compare-dbcc`: compares the results of DBCC CHECKDB with a check of the same files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use jobs::failure::{Failure, unreadable};
use jobs::inventory;
use jobs::judge::judge;
use jobs::spool;
use jobs::spread::{Spread, What};
use report::comparison::{self, MOST_BYTES, Results};
use source::{FileKind, identify};

use crate::cli::CompareArguments;
use crate::{nice, output, progress};

pub(crate) fn run(arguments: &CompareArguments) -> Result<u8, Failure> {
    if arguments.run.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    let path = arguments.result.as_path();
    let is_input = |path: &Path| path.as_os_str() == "-";
    if is_input(path) && arguments.paths.iter().any(|path| is_input(path)) {
        return Err(Failure::usage("-: standard input can hold the results or a backup, but not both"));
    }
    // The results are read before the check, so that a wrong file is reported immediately and not after hours.
    let results = results(path)?;
    let mut check = arguments.check();
    check.recovery.room.temp_dir.as_deref().map_or(Ok(()), spool::try_folder)?;
    let choice = check.sets()?;
    let named = check.paths.clone();
    let (paths, sets) = inventory::one("compare-dbcc", &named, &choice, check.stop.until())?;
    check.paths = paths;
    let what = What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    let (checked, (text, differs, is_whole)) =
        judge(&check, &what, progress::listener(check.run.progress, None), |report, _, _| {
            let comparison = comparison::compare(&results, report);
            let mut text = Vec::new();
            let written = match arguments.json {
                true => comparison::write_json(&results, report, &comparison, &mut text),
                false => comparison::write_text(&results, report, &comparison, &mut text),
            };
            (written.map(|()| text), comparison.differs(), results.is_whole() && comparison.hidden == 0)
        })?;
    let text = text.map_err(|cause| Failure::unable(format!("cannot write the comparison: {cause}")))?;
    let printed = output::print(|out| out.write_all(&text));
    // Findings that CHECKDB reported too are no difference.
    let mut status = checked & !Failure::CORRUPT;
    if differs {
        status |= Failure::CORRUPT;
    }
    if !is_whole && !arguments.exit_zero_on_incomplete {
        status |= Failure::INCOMPLETE;
    }
    Ok(status | printed.map_or_else(Failure::report, |()| 0))
}

/// Reads the results of the server.
fn results(path: &Path) -> Result<Results, Failure> {
    let bytes = read(path).map_err(|cause| unreadable(path, &cause))?;
    let refuse = |text: &str| Err(Failure::usage(format!("{}: {text}", path.display())));
    if bytes.len() as u64 > MOST_BYTES {
        return refuse("is larger than 64 MB; give only the results of one CHECKDB, WITH NO_INFOMSGS");
    }
    if identify(&bytes) != FileKind::Other {
        return refuse("is a SQL Server file; the results of CHECKDB come first, then the files of the database");
    }
    Results::read(&bytes).or_else(|refused| refuse(&refused.to_string()))
}

/// The content of a file, or of standard input for `-`: at most one byte more than a file of results may have.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path.as_os_str() == "-" {
        true => io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)?,
        false => File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}
