//! `mdfsck config`: the defaults and limits in force, and where they come from.

use std::io::{self, Write};

use jobs::failure::Failure;
use report::config::{ConfigRow, write, write_json};

use super::file::Origin;
use super::{files, limits, places};
use crate::cli::ConfigArguments;
use crate::output;

/// Prints the files, and what is in force.
///
/// # Errors
/// If a file contains a mistake, or the output cannot be written.
pub(crate) fn run(arguments: &ConfigArguments) -> Result<u8, Failure> {
    let files = files()?;
    let mut rows = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let later = || files.iter().skip(at + 1);
        for default in &file.defaults {
            let replacing = later().find(|later| {
                later.defaults.iter().any(|one| (&one.command, &one.option) == (&default.command, &default.option))
            });
            let values: Vec<&str> =
                default.typed.iter().map(|typed| typed.split_once('=').map_or("true", |(_, value)| value)).collect();
            rows.push(ConfigRow {
                file: file.path.display().to_string(),
                section: default.command.clone(),
                option: default.option.clone(),
                value: if values.is_empty() { "false".to_owned() } else { values.join(", ") },
                replaced_by: replacing.map(|file| file.path.display().to_string()),
            });
        }
        for (option, most) in file.limits.each() {
            let lowest = files
                .iter()
                .filter_map(|file| Some((file.limits.each().find(|(name, _)| *name == option)?.1, &file.path)));
            let lowest = lowest.min().filter(|(lowest, path)| *lowest < most && **path != file.path);
            rows.push(ConfigRow {
                file: file.path.display().to_string(),
                section: "limits".to_owned(),
                option: option.to_owned(),
                value: limits::text(option, most),
                replaced_by: lowest.map(|(_, path)| path.display().to_string()),
            });
        }
    }
    let known = |path: &std::path::Path| files.iter().any(|file| file.path == path);
    let places = places();
    let missing = places.iter().filter(|(path, origin)| *origin != Origin::Named && !known(path));
    let missing: Vec<String> = missing.map(|(path, _)| path.display().to_string()).collect();
    let print = |out: &mut dyn Write| -> io::Result<()> {
        if arguments.json { write_json(&rows, out) } else { write(&rows, &missing, out) }
    };
    output::print(|out| print(out))?;
    Ok(0)
}
