//! Migration of histories that an older version of the program wrote.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::NamedTempFile;

use super::{History, Purpose, beside, configure};
use crate::error::{HistoryError, Result, of_io, of_sqlite};
use crate::schema;

/// The maximum number of copies of the same older form that are kept beside a history.
const MOST_COPIES: u32 = 100;

impl History {
    /// Copies the history, then migrates the file of the history from an older form to the newest form. If the
    /// migration succeeds, the copy stays beside the history; otherwise it is deleted.
    pub(super) fn migrate(&mut self, from: i64, migrations: &[&str]) -> Result<()> {
        let copy = free_name(&self.path, from)?;
        let migrated = self.copy_to(&copy).and_then(|()| {
            self.transaction(|transaction| {
                let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
                // Another process may have migrated the history first, and kept its own copy.
                let is_mine = version == from;
                if is_mine { schema::migrate(transaction, from, migrations) } else { Ok(()) }.map(|()| is_mine)
            })
        });
        if !matches!(migrated, Ok(true)) {
            let _ = fs::remove_file(&copy);
        }
        migrated.map(drop)
    }

    /// Makes a temporary copy of the history, migrates the copy to the newest form, and makes the connection to it
    /// read-only. The file of the history is not changed.
    pub(super) fn into_copy(self, from: i64, migrations: &[&str]) -> Result<Self> {
        let place = NamedTempFile::with_prefix("mdfsck-history.").map_err(|cause| of_io(&self.path, &cause, false))?;
        self.copy_to(place.path())?;
        let open = || {
            let mut connection = Connection::open(place.path())?;
            configure(&connection, Purpose::Ask)?;
            let transaction = connection.transaction()?;
            schema::migrate(&transaction, from, migrations)?;
            transaction.commit()?;
            connection.pragma_update(None, "query_only", true)?;
            Ok(connection)
        };
        let connection = open().map_err(|error: rusqlite::Error| {
            let cause = of_sqlite(place.path(), &error).to_string();
            let cause = format!(
                "it has version {from}, of an earlier mdfsck, and no copy in the present version can be made: {cause}"
            );
            HistoryError::Unreadable { path: self.path.clone(), cause }
        })?;
        Ok(Self { connection, copy: Some(place), ..self })
    }

    fn copy_to(&self, place: &Path) -> Result<()> {
        let to = place.to_string_lossy().into_owned();
        self.connection.execute("VACUUM INTO ?1", [to]).map_err(|error| self.failed(&error)).map(drop)
    }
}

/// Creates an empty file beside the history, for a copy in the older form `form`. Existing files are not overwritten,
/// because they belong to an earlier history or to a process that was killed.
fn free_name(history: &Path, form: i64) -> Result<PathBuf> {
    for number in 1..=MOST_COPIES {
        let suffix = if number == 1 { format!(".bak-v{form}") } else { format!(".bak-v{form}-{number}") };
        let name = beside(history, &suffix);
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(_) => return Ok(name),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
            Err(cause) => {
                let cause =
                    format!("{}: {cause}; the history has version {form}, of an earlier mdfsck", name.display());
                return Err(HistoryError::Unwritable { path: history.to_owned(), cause });
            }
        }
    }
    let cause = format!("there are {MOST_COPIES} copies of its version {form}; remove some of these copies");
    Err(HistoryError::Unwritable { path: history.to_owned(), cause })
}
