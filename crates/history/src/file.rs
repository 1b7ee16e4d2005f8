//! Recognizes, creates and opens the file of a history.

mod older;
mod own;

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use tempfile::NamedTempFile;

use self::own::Own;
pub use self::own::is_open;
use crate::error::{HistoryError, Result, of_io, of_sqlite};
use crate::schema::{self, APPLICATION_ID, MIGRATIONS};

/// How long a connection waits while another program writes to the history. Connections that record the progress of a
/// check wait only for `LITTLE_PATIENCE`.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const LITTLE_PATIENCE: Duration = Duration::from_millis(250);
/// The maximum number of bytes of memory that SQLite may use, whatever settings are stored in the file.
const MEMORY_BYTES: i64 = 64 << 20;
/// The number of file pages that a connection for recording progress keeps in memory.
const NOTE_CACHE_PAGES: i64 = 64;
/// The maximum size in bytes of a history file that is checked as a whole each time before a run is recorded.
const PROVEN_BYTES: u64 = 8 << 20;
/// The length of the header of an SQLite file, in bytes.
const HEADER_BYTES: usize = 100;

/// An open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    /// A temporary copy, migrated to the newest form. The copy exists only if the history has an older form and its
    /// file cannot be written. This field must be dropped after the connection.
    copy: Option<NamedTempFile>,
    /// Counts this connection among the process's connections to the file. This field must be dropped after the
    /// connection.
    _own: Own,
}

/// Why a history is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// To record a run. Opening must be fast.
    Record,
    /// To run queries, or to change the content of the history.
    Ask,
    /// To record the progress of a check. Opening must be very fast. The progress is soon outdated, so it need not
    /// survive a power failure.
    Note,
}

impl History {
    /// Opens the history at `path` to record runs. If the file does not exist, it is created.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, or is not a sound history. An existing file that is not a sound history is not
    /// changed.
    pub fn open_or_create(path: &Path) -> Result<Self> {
        if matches!(fs::symlink_metadata(path), Err(cause) if cause.kind() == ErrorKind::NotFound) {
            create(path)?;
        }
        Self::open_for(path, Purpose::Record, MIGRATIONS)
    }

    /// Opens the history at `path`, and reads the whole file to check that it is sound.
    ///
    /// # Errors
    ///
    /// If the file is not a sound history. In this case, the file is not changed.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_for(path, Purpose::Ask, MIGRATIONS)
    }

    /// Opens the history at `path` to record the progress of a check. Does not check again that the history is sound:
    /// the caller must have opened it before. Later writes wait at most 250 ms for other writers.
    ///
    /// # Errors
    ///
    /// If the file is not a history, or is read-only.
    pub fn open_to_note(path: &Path) -> Result<Self> {
        Self::open_for(path, Purpose::Note, MIGRATIONS)
    }

    fn open_for(path: &Path, purpose: Purpose, migrations: &[&str]) -> Result<Self> {
        let own = Own::new(path, || recognize(path))?;
        let failed = |error: rusqlite::Error| of_sqlite(path, &error);
        let connection = connect(path, purpose).map_err(failed)?;
        configure(&connection, purpose).map_err(failed)?;
        let mut history = Self { connection, path: path.to_owned(), copy: None, _own: own };
        if purpose != Purpose::Ask && history.connection.is_readonly("main").map_err(failed)? {
            let cause = "it is read-only".to_owned();
            return Err(HistoryError::Unwritable { path: path.to_owned(), cause });
        }
        let version = history.version().map_err(failed)?;
        let known = migrations.len() as i64;
        if version > known {
            return Err(HistoryError::Newer { path: path.to_owned(), found: version });
        }
        let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= PROVEN_BYTES);
        if is_small && purpose == Purpose::Record || purpose == Purpose::Ask {
            history.prove()?;
        }
        history.compare_schema(version, migrations)?;
        if version < known {
            match history.migrate(version, migrations) {
                Ok(()) => {}
                Err(HistoryError::Unwritable { .. } | HistoryError::Unreadable { .. }) if purpose == Purpose::Ask => {
                    history = history.into_copy(version, migrations)?;
                }
                Err(error) => return Err(error),
            }
            history.compare_schema(known, migrations)?;
        }
        Ok(history)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes this connection read-only.
    ///
    /// # Errors
    /// If SQLite refuses.
    pub fn read_only(self) -> Result<Self> {
        let set = self.connection.pragma_update(None, "query_only", true);
        set.map_err(|error| self.failed(&error))?;
        Ok(self)
    }

    /// Whether this connection uses a temporary copy, because the history has an older form and its file cannot be
    /// written. Later changes to the file do not appear in the copy.
    pub fn is_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// A number that changes when another connection changes the history.
    ///
    /// # Errors
    ///
    /// If the number cannot be read.
    pub fn data_version(&self) -> Result<i64> {
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|error| self.failed(&error))
    }

    /// Runs the queries of `ask` on one snapshot of the history. Changes that other processes write meanwhile are not
    /// visible to these queries.
    ///
    /// # Errors
    ///
    /// The errors of `ask`; another error if the history cannot be read.
    pub fn at_one_moment<T>(&self, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        // The end of this function drops the transaction, which ends the snapshot.
        let moment = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        let answer = ask();
        drop(moment);
        answer
    }

    /// The connection to the file.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Converts an error of SQLite to an error of this crate.
    pub(crate) fn failed(&self, error: &rusqlite::Error) -> HistoryError {
        of_sqlite(&self.path, error)
    }

    /// Runs `work` as one transaction. Afterwards, either all changes that `work` made are on disk, or none of them is.
    ///
    /// # Errors
    ///
    /// The errors of `work`; another error if other programs keep the file locked.
    pub(crate) fn transaction<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let path = &self.path;
        let failed = |error: rusqlite::Error| of_sqlite(path, &error);
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(failed)?;
        let done = work(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(done)
    }

    fn version(&self) -> rusqlite::Result<i64> {
        self.connection.pragma_query_value(None, "user_version", |row| row.get(0))
    }

    /// Runs SQLite's quick check on the whole file.
    fn prove(&self) -> Result<()> {
        let said: String = self
            .connection
            .pragma_query_value(None, "quick_check", |row| row.get(0))
            .map_err(|error| self.failed(&error))?;
        match said.as_str() {
            "ok" => Ok(()),
            _ => {
                let what = said.lines().take(2).collect::<Vec<_>>().join(" ");
                Err(HistoryError::Damaged { path: self.path.clone(), what })
            }
        }
    }

    /// Checks that the schema of the file has exactly the definitions of `version`. A file with another schema might
    /// contain triggers or views, which are code that SQLite would run.
    fn compare_schema(&self, version: i64, migrations: &[&str]) -> Result<()> {
        let failed = |error| self.failed(&error);
        let found = schema::definitions(&self.connection).map_err(failed)?;
        if version == schema::VERSION && migrations == MIGRATIONS && schema::are_newest(&found) {
            return Ok(());
        }
        let expected = schema::expected(version, migrations).map_err(failed)?;
        let is_other = |pair: &&(String, String)| !expected.contains(pair);
        let other = found.iter().find(is_other).or_else(|| expected.iter().find(|pair| !found.contains(pair)));
        match other {
            None => Ok(()),
            Some((name, _)) => {
                let what = format!("the definition of '{name}' differs from that of a history of this version");
                Err(HistoryError::Damaged { path: self.path.clone(), what })
            }
        }
    }
}

/// Opens the file. If the file cannot be written and the purpose is `Ask`, the file is opened read-only.
fn connect(path: &Path, purpose: Purpose) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match Connection::open_with_flags(path, flags) {
        Ok(connection) if purpose != Purpose::Ask || is_readable(&connection, path) => Ok(connection),
        Err(error) if purpose != Purpose::Ask => Err(error),
        // On read-only storage, SQLite cannot create the -shm file. Because no process can write to the history there,
        // SQLite may open the file as immutable, and then needs no -shm file.
        _ => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(uri(path), flags)
        }
    }
}

fn is_readable(connection: &Connection, path: &Path) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, SystemIoFailure};
    let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    match read.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
        Some(CannotOpen) => false,
        // On a full disk, SQLite cannot create the -shm file either. If the file were opened as immutable, SQLite would
        // ignore the content of its -wal file. So the file is opened as immutable only if the -wal file is empty or
        // does not exist.
        Some(DiskFull | SystemIoFailure) => fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0),
        _ => true,
    }
}

/// Returns the path as a URI that tells SQLite to treat the file as immutable.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b':' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// Sets the options of a connection. Some options prevent a manipulated file from doing harm.
fn configure(connection: &Connection, purpose: Purpose) -> rusqlite::Result<()> {
    let is_note = purpose == Purpose::Note;
    connection.busy_timeout(if is_note { LITTLE_PATIENCE } else { PATIENCE })?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    let _: i64 = connection.query_row(&format!("PRAGMA hard_heap_limit={MEMORY_BYTES}"), [], |row| row.get(0))?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "synchronous", if is_note { "NORMAL" } else { "FULL" })?;
    if is_note {
        connection.pragma_update(None, "cache_size", NOTE_CACHE_PAGES)?;
    }
    connection.pragma_update(None, "foreign_keys", true)
}

/// Creates an empty history under a temporary name, and gives the complete file its final name. So no process ever sees
/// an incomplete history.
fn create(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mdfsck-history.");
    // The file gets the same permissions as other new files in its folder.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder).map_err(|cause| {
        let text = match cause.kind() {
            ErrorKind::NotFound => format!("the folder {} does not exist", folder.display()),
            kind => kind.to_string(),
        };
        of_io(path, &std::io::Error::new(cause.kind(), text), true)
    })?;
    make(file.path()).map_err(|error| of_sqlite(path, &error))?;
    file.as_file().sync_all().map_err(|cause| of_io(path, &cause, true))?;
    // `into_temp_path` closes the file before it is renamed. After the rename, other threads may open the file and lock
    // it. If this descriptor were closed only after the rename, those threads would lose their locks (see [`own`]).
    match file.into_temp_path().persist_noclobber(path) {
        Ok(_) => Ok(()),
        // Another process has created the history meanwhile.
        Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(failed) => Err(of_io(path, &failed.error, true)),
    }
}

/// Writes an empty history to an empty file.
fn make(path: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    schema::migrate(&transaction, 0, MIGRATIONS)?;
    transaction.commit()?;
    // The journal mode may stay unchanged: if readers and writers cannot share memory, as on some network drives,
    // SQLite keeps the rollback journal.
    let _: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    connection.close().map_err(|(_, error)| error)
}

/// Checks that the file begins like a history, and that it is at least as long as its header states. This check must
/// run before SQLite opens the file, because SQLite may write to a file when it opens it.
fn recognize(path: &Path) -> Result<()> {
    let foreign = |what: &str| Err(HistoryError::Foreign { path: path.to_owned(), what: what.to_owned() });
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            return Err(HistoryError::Missing { path: path.to_owned() });
        }
        Err(cause) => return Err(of_io(path, &cause, false)),
    };
    if metadata.is_dir() {
        return foreign("it is a folder");
    }
    if !metadata.is_file() {
        return foreign("it is not a regular file");
    }
    let mut header = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut header));
    opened.map_err(|cause| of_io(path, &cause, false))?;
    if header.is_empty() {
        return foreign("it is empty");
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return foreign("it is not an SQLite database");
    }
    let number = |at: usize| header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let (Some(pages), Some(version), Some(application)) = (number(28), number(60), number(68)) else {
        return foreign("it ends within its header");
    };
    if application != APPLICATION_ID {
        return foreign("another program's SQLite database");
    }
    if i64::from(version) > schema::VERSION {
        return Err(HistoryError::Newer { path: path.to_owned(), found: version.into() });
    }
    let page_bytes = match header.get(16..18).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes) {
        Some(1) => 65_536,
        bytes => u64::from(bytes.unwrap_or_default()),
    };
    // While another program writes, the end of the file may still be in the -wal file.
    let has_log = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    if !has_log && metadata.len() < u64::from(pages) * page_bytes {
        let what = format!("it has only {} of {} bytes", metadata.len(), u64::from(pages) * page_bytes);
        return Err(HistoryError::Damaged { path: path.to_owned(), what });
    }
    Ok(())
}

/// The path of a file beside the history: the path of the history with `suffix` appended.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
