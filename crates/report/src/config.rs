//! The defaults and limits of a machine, and where they come from.

use std::io;

use crate::json::{self, VERSION};
use crate::text_table::TextTable;

/// A default or a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigRow {
    /// The file.
    pub file: String,
    /// The section: the name of a command, or `limits`.
    pub section: String,
    /// The long name of the option.
    pub option: String,
    /// The value, or several values.
    pub value: String,
    /// The file whose value counts in place of this one; `None` if this one counts.
    pub replaced_by: Option<String>,
}

/// Writes a table for people. `missing` are files that would be read if they existed.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(rows: &[ConfigRow], missing: &[String], out: &mut dyn io::Write) -> io::Result<()> {
    if !rows.is_empty() {
        let mut table = TextTable::new(&[]);
        table.row(["section", "option", "value", "file", "state"]);
        for ConfigRow { file, section, option, value, replaced_by } in rows {
            let state = replaced_by.as_ref().map_or_else(|| "in force".to_owned(), |by| format!("{by} counts"));
            table.row([section, option, value, file, &state]);
        }
        table.write(0, out)?;
    }
    missing.iter().try_for_each(|file| writeln!(out, "{file} does not exist"))
}

/// Writes a line of JSON for each default and limit.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(rows: &[ConfigRow], out: &mut dyn io::Write) -> io::Result<()> {
    rows.iter().try_for_each(|ConfigRow { file, section, option, value, replaced_by }| {
        let row =
            json::catalog::ConfigLine { v: VERSION, file, section, option, value, replaced_by: replaced_by.as_deref() };
        json::line(&json::lines::Line::Config(row), out)
    })
}
