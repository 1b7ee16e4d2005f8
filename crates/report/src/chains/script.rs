//! RESTORE statements for a chain of backups, for a person to review and run: `mdfsck chain --script`.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use source::backup::{Chain, ChainSet, DatabaseChains, Moment, SetKind};
use source::storage::device;

use super::{Found, until};
use crate::text_table::printable;

/// The number of log backups at the end of a chain that are restored with STOPAT. Backup labels give times in whole
/// seconds, so the second-last log backup may also contain the requested point in time.
const STOPPED: usize = 2;

/// Writes the statements that restore a database to the latest or the requested point in time.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(found: &Found<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let database = found.database;
    let name = printable(&database.database);
    let (path, verified) = found.usable_path();
    let to = match (&found.at, path.and_then(|path| until(database, path))) {
        (Some((time, _)), _) => printable(time).into_owned(),
        (None, Some(until)) => format!("{}, the latest point of these backups", printable(until)),
        (None, None) => "the latest point of these backups".to_owned(),
    };
    let unusable = match (path, verified) {
        (None, _) => Some("there is no path to it".to_owned()),
        (Some(_), Some(verified)) if !verified.is_usable() => Some(verified.text()),
        (Some(path), _) if path.omitted > 0 => Some("there are too many log backups".to_owned()),
        (Some(path), _) => unquotable(database, path),
    };
    let mut text = Vec::new();
    if let (None, Some(path)) = (&unusable, path) {
        let out: &mut dyn io::Write = &mut text;
        writeln!(out, "-- Restores the database {name} of {} to {to}.", printable(&database.server))?;
        match verified {
            Some(verified) => {
                writeln!(out, "-- Based on the backups below; mdfsck verified them: {}.", verified.text())?
            }
            None => writeln!(
                out,
                "-- Based on the labels of the backups below; pages were not read (--verify reads them)."
            )?,
        }
        writeln!(
            out,
            "-- Review this script before you run it: mdfsck never runs it. It has the paths at which mdfsck found the files;"
        )?;
        writeln!(
            out,
            "-- the server must find the files there too. To place the database's files elsewhere, uncomment and edit MOVE lines."
        )?;
        writeln!(
            out,
            "-- An existing database of this name is not overwritten: nothing runs, unless you delete the line with"
        )?;
        writeln!(
            out,
            "-- DB_ID. If the existing database still works, back up the tail of its log first (BACKUP LOG ... WITH \
             NORECOVERY)."
        )?;
        writeln!(out, "-- If a restore fails, nothing below it runs.")?;
        writeln!(out, "IF DB_ID({}) IS NOT NULL SET NOEXEC ON;", literal(&database.database))?;
        writeln!(out, "USE [master];")?;
        let stops = |moment: &Moment| found.detour.as_ref().map_or(moment.stops, |detour| detour.stops);
        let stop = found.at.as_ref().filter(|(_, moment)| stops(moment));
        statements(database, path, stop.map(|(time, _)| time.as_str()), out)?;
    }
    // sqlcmd replaces variables everywhere, even in comments.
    let unusable = unusable.or_else(|| has_variable(&text).then(|| format!("a name has {VARIABLE}")));
    match unusable {
        None => out.write_all(&text),
        Some(reason) => {
            let line = format!("-- The database {name} cannot be restored to {to}: {}.", printable(&reason));
            writeln!(out, "{}", line.replace("$(", "$ ("))
        }
    }
}

const VARIABLE: &str = "a dollar sign before a parenthesis, which sqlcmd would replace";

fn has_variable(text: &[u8]) -> bool {
    text.windows(2).any(|pair| pair == b"$(")
}

fn statements(database: &DatabaseChains, path: &Chain, stop: Option<&str>, out: &mut dyn io::Write) -> io::Result<()> {
    let name = identifier(&database.database);
    let mut placed = BTreeSet::new();
    for (number, set) in path.steps.iter().filter_map(|&step| database.sets.get(step)).enumerate() {
        let what = if set.set.kind == SetKind::Log { "LOG" } else { "DATABASE" };
        let finished = set.set.config.finished.as_deref().unwrap_or("an unknown time");
        let encrypted = if set.set.is_encrypted { "; encrypted: the server needs its certificate" } else { "" };
        writeln!(out, "\n-- {}, {}{encrypted}", set.set.kind.name(), printable(finished))?;
        writeln!(out, "RESTORE {what} {name}")?;
        for (stripe, file) in set.paths.iter().enumerate() {
            let end = if stripe + 1 == set.paths.len() { "" } else { "," };
            let from = if stripe == 0 { "  FROM" } else { "      " };
            let (device, place) = device(file).unwrap_or_default();
            writeln!(out, "{from} {device} = {}{end}", literal(&place))?;
        }
        writeln!(out, "  WITH FILE = {},", set.set.position)?;
        moves(set, &mut placed, out)?;
        if let Some(time) = stop.filter(|_| what == "LOG" && number + STOPPED >= path.steps.len()) {
            writeln!(out, "       STOPAT = {},", literal(&time.replace(' ', "T")))?;
        }
        writeln!(out, "       NORECOVERY;\nIF @@ERROR <> 0 SET NOEXEC ON;")?;
    }
    writeln!(out, "\n-- Nothing more can be restored after this.\nRESTORE DATABASE {name} WITH RECOVERY;")?;
    writeln!(out, "SET NOEXEC OFF;")
}

/// Writes a MOVE option, as a comment, for each file that no earlier set contains.
fn moves(set: &ChainSet, placed: &mut BTreeSet<(u16, String)>, out: &mut dyn io::Write) -> io::Result<()> {
    for file in set.set.files.iter().filter(|file| file.is_data || file.is_log) {
        if placed.insert((file.file_id, file.logical_name.clone())) {
            let (name, to) = (literal(&file.logical_name), literal(&file.physical_name));
            // A line break in a name must not end the comment.
            writeln!(out, "--     MOVE {} TO {},", printable(&name), printable(&to))?;
        }
    }
    Ok(())
}

/// The reason why no statements can be written; `None` if they can be written. A script runner would misread a name
/// that contains a control character or a variable.
fn unquotable(database: &DatabaseChains, path: &Chain) -> Option<String> {
    let sets = path.steps.iter().filter_map(|&step| database.sets.get(step));
    let files: Vec<&PathBuf> = sets.flat_map(|set| &set.paths).collect();
    let is_plain = |name: &str| !name.contains("$(") && !name.chars().any(char::is_control);
    if !is_plain(&database.database) {
        return Some(format!("its name has control characters or {VARIABLE}"));
    }
    let bad = files.into_iter().find(|file| device(file).is_none_or(|(_, place)| !is_plain(&place)));
    bad.map(|file| format!("the name {} is not plain text, or has {VARIABLE}", file.display()))
}

fn identifier(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

fn literal(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(identifier("a]b[c"), "[a]]b[c]");
        assert_eq!(literal("O'Brien"), "N'O''Brien'");
    }
}
