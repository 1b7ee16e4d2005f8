//! Why a database could not be opened or a page not read. Each message names file, place, cause and remedy in one line.

use std::io;
use std::path::{Path, PathBuf};

use format::Lsn;

use crate::identify::{Archive, FileKind, identify};
use crate::storage;

/// Why standard input cannot be read as a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StandardInput {
    /// The command does not read standard input.
    #[error("this command does not read standard input; save the backup to a file and name that")]
    NotRead,
    /// `-` was given more than once.
    #[error("standard input is one backup file and can be named once; name other files by path")]
    Twice,
    /// Standard input is empty.
    #[error("standard input is empty: the command before the pipe wrote nothing")]
    Empty,
    /// Standard input is a data file or a log.
    #[error("standard input is a {0}, and only a backup can come from there; name the file by its path")]
    OtherFile(&'static str),
    /// Standard input is anything else.
    #[error("standard input is not a SQL Server backup")]
    NotABackup,
}

impl StandardInput {
    /// Explains why input that begins with `start` is not a backup.
    pub fn of(start: &[u8]) -> Self {
        match identify(start) {
            _ if start.is_empty() => Self::Empty,
            FileKind::Data { .. } => Self::OtherFile("data file"),
            FileKind::Log => Self::OtherFile("transaction log file"),
            FileKind::Backup(_) | FileKind::Other => Self::NotABackup,
        }
    }
}

/// The named files are not the data files, or the backup, of one database that can be checked.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("{}: cannot be opened: {cause}{}", path.display(), remedy(cause))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A symbolic link that cannot be followed to a file.
    #[error("{}: is a symbolic link to {}, which cannot be opened: {cause}; correct or remove the link", path.display(), target.display())]
    BrokenLink {
        /// The link.
        path: PathBuf,
        /// The target of the link.
        target: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Reads that bypass the system's cache were requested.
    #[error("{}: cannot be read directly, bypassing the system's cache: {cause}; leave out --direct", path.display())]
    Direct {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// `-` was given twice, or to a command that does not read it.
    #[error("-: {0}")]
    StandardInput(StandardInput),
    /// No path was given.
    #[error("no file given; name the .mdf and .ndf files of the database, or the folder that holds them")]
    Nothing,
    /// A pipe that has a path: `<(...)` of a shell.
    #[error("{}: is a pipe; a backup from a pipe is named '-': COMMAND | mdfsck check -", path.display())]
    Pipe {
        /// The path.
        path: PathBuf,
    },
    /// Neither a file nor a folder.
    #[error("{}: is not a regular file; name a .mdf or .ndf file, or a folder of them", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// An empty file.
    #[error("{}: is empty (0 bytes); a database file holds at least its header page", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// A log.
    #[error("{}: is a transaction log file, not a data file; name the .mdf and .ndf files of the database", path.display())]
    Log {
        /// The path.
        path: PathBuf,
    },
    /// A backup among data files.
    #[error("{}: is a {kind}, not a data file; name data files or backup files, not both", path.display())]
    Backup {
        /// The path.
        path: PathBuf,
        /// Which kind of backup.
        kind: &'static str,
    },
    /// A data file among backups.
    #[error("{}: is not a backup; name data files or backup files, not both", path.display())]
    NotABackup {
        /// The path.
        path: PathBuf,
    },
    /// Compressed by another program.
    #[error("{}: is compressed with {}: unpack it first; to check a backup in it: {}", path.display(), archive.name, archive.pipe(path))]
    Compressed {
        /// The path.
        path: PathBuf,
        /// The program that compressed it.
        archive: &'static Archive,
    },
    /// A database is in this file, in a form that has no pages to check.
    #[error("{}: {what}", path.display())]
    Held {
        /// The path.
        path: PathBuf,
        /// What it is, and what to check in its place.
        what: &'static str,
    },
    /// Another file where backups are expected.
    #[error("{}: is not a SQL Server backup{what}", path.display())]
    OtherThanBackup {
        /// The path.
        path: PathBuf,
        /// What it is, as the end of the message.
        what: &'static str,
    },
    /// A backup without a set that can be read.
    #[error("{}: no backup set can be read in it: it ends too early, or its configuration is damaged", path.display())]
    NoSet {
        /// The path.
        path: PathBuf,
    },
    /// `--set` names none of the sets.
    #[error("{}: no set has the number asked for; it holds {sets} (mdfsck info lists them)", path.display())]
    NoSuchSet {
        /// The path.
        path: PathBuf,
        /// How many sets there are.
        sets: usize,
    },
    /// WITH ENCRYPTION.
    #[error("{}: the backup is encrypted: only the key's owner can read it; restore it and name its .mdf file", path.display())]
    EncryptedBackup {
        /// The path.
        path: PathBuf,
    },
    /// A log backup.
    #[error("{}: set {position} is a transaction log backup: it holds log only, no pages to check; 'mdfsck log' reads it", path.display())]
    LogBackup {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
    },
    /// A differential backup without its full backup.
    #[error("{}: set {position} is a differential backup: it holds only what changed; name the full backup it is based on too", path.display())]
    DifferentialAlone {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
    },
    /// A differential backup of another full backup.
    #[error("{}: set {position} is a differential backup, but of another full backup than the one given", path.display())]
    OtherBase {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
    },
    /// A log backup after a gap.
    #[error("{}: set {position} starts at {first}, but the log before it ends at {reached}: name the log backups between them too", path.display())]
    LogGap {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// Where the log ends that can be applied.
        reached: Lsn,
        /// Where this set starts.
        first: Lsn,
    },
    /// A log backup of the same database from another recovery fork: before or after a restore to an earlier point.
    #[error("{}: set {position} is of another recovery fork than the full backup {}: the database was restored between them", path.display(), other.display())]
    OtherFork {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// The full backup.
        other: PathBuf,
    },
    /// A log backup that continues past the point to which the database was later restored.
    #[error("{}: set {position} ends at {last}, in a recovery fork that was abandoned at {left_at}, when the database was restored; other backups continue from there", path.display())]
    LeftFork {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// The record after its log.
        last: Lsn,
        /// The point to which the database was restored.
        left_at: Lsn,
    },
    /// A full backup that ends after the point in time to restore to.
    #[error("{}: set {position} ends at {finished}, after the point in time to restore to; name an earlier full backup", path.display())]
    EndsLater {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// When it ends, in the local time of the server.
        finished: String,
    },
    /// A set without all its stripes, where all are needed.
    #[error("{}: set {position} (\"{kind}\") is on several files, and {missing} of them are not given: log backups need all of them", path.display())]
    StripesMissing {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// What the set is.
        kind: &'static str,
        /// How many stripes are missing.
        missing: u16,
    },
    /// A set of another database.
    #[error("{}: set {position} is of another database than the full backup {}; name the backups of one database", path.display(), other.display())]
    OtherDatabaseSet {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// The full backup.
        other: PathBuf,
    },
    /// Sets of files, none of which has the primary file.
    #[error("{}: set {position} holds files of a database without its primary file, which has the catalog; name the backup of the primary filegroup too", path.display())]
    WithoutPrimary {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
    },
    /// Sets of files, where a restore to a point in time is requested.
    #[error("{}: set {position} holds files of a database, and log is applied to full backups only: no point in time can be chosen; leave it out, or name a full backup", path.display())]
    FilesHaveNoMoment {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
    },
    /// A log backup beside file or filegroup backups.
    #[error("{}: set {position} is a transaction log backup, and log is applied to full backups only, not to file or filegroup backups; leave it out", path.display())]
    LogOfFiles {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
    },
    /// A differential of a file, filegroup or partial backup.
    #[error("{}: set {position} is a backup of type \"{kind}\", which mdfsck does not read; restore it and name its .mdf file", path.display())]
    UnsupportedSet {
        /// The path.
        path: PathBuf,
        /// Position of the set in the file.
        position: u16,
        /// What it is.
        kind: &'static str,
    },
    /// A backup that belongs to none of the others.
    #[error("{}: is neither a stripe of the backup {} nor a differential of it; give one backup at a time", path.display(), other.display())]
    OtherBackup {
        /// The path.
        path: PathBuf,
        /// The backup that it should belong to.
        other: PathBuf,
    },
    /// A file whose media header cannot be read, given together with others that it may belong to.
    #[error("{}: its media header cannot be read, so it cannot be matched with the other files; copy or write it again", path.display())]
    UnknownMedia {
        /// The path.
        path: PathBuf,
    },
    /// One stripe given twice.
    #[error("{}: stripe {family} of the backup is given twice", path.display())]
    SameStripe {
        /// The path.
        path: PathBuf,
        /// Number of the stripe.
        family: u16,
    },
    /// A compressed backup that cannot be decompressed.
    #[error("{}: is a compressed backup in an unknown form: encrypted, or compressed with an algorithm other than MS_XPRESS, such as ZSTD (SQL Server 2025) or QAT_DEFLATE (RESTORE HEADERONLY shows which); restore it and name its .mdf file", path.display())]
    UnknownCompression {
        /// The path.
        path: PathBuf,
    },
    /// The memory needed for a backup does not fit.
    #[error("{}: {what} need more memory than {}{}; {}", path.display(), bytes_text(*limit), of_grant(*granted), more_memory(*granted))]
    BackupTooLarge {
        /// The path.
        path: PathBuf,
        /// What needs the memory.
        what: &'static str,
        /// The grant of memory in bytes, if there was one.
        granted: Option<u64>,
        /// The usable part of it, in bytes.
        limit: u64,
    },
    /// A backup that claims more of something than any server writes.
    #[error("{}: more than {limit} {what} at byte {at}, which no server writes: the backup is damaged there; copy it again or take a new one", path.display())]
    BackupImpossible {
        /// The path.
        path: PathBuf,
        /// What is claimed.
        what: &'static str,
        /// The maximum.
        limit: usize,
        /// Offset in the backup, or in the decompressed tape of a compressed one.
        at: u64,
    },
    /// Longer than a data file can be.
    #[error("{}: has {length} bytes, more than the 16 TiB that a data file of SQL Server can have", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// A file of a database snapshot, given without its base file.
    #[error("{}: is a file of a database snapshot, which holds only pages that its database has changed since: name it together with data file {file_id} of the database, or check the files of the database by themselves", path.display())]
    Snapshot {
        /// The path.
        path: PathBuf,
        /// The file ID that both have.
        file_id: u16,
    },
    /// A copy of a file of a database snapshot whose holes were filled with zeros.
    #[error("{}: is a copy of a file of a database snapshot that lost its holes: it no longer shows which of its pages are zeros and which were never copied from the database; copy it again with a program that keeps holes, or check the files of the database by themselves", path.display())]
    SnapshotHoles {
        /// The path.
        path: PathBuf,
    },
    /// A file of a database, given without its snapshot file.
    #[error("{}: is a file of the database of which {} is a snapshot, but the matching file of the snapshot is not among the files given; name all files of the snapshot", path.display(), snapshot.display())]
    SnapshotIncomplete {
        /// The file of the database.
        path: PathBuf,
        /// A file of the snapshot.
        snapshot: PathBuf,
    },
    /// A file of a database that is shorter than its snapshot.
    #[error("{}: is shorter than {}, which is a snapshot of it: it was cut, or has shrunk since the snapshot was made; check the files of the database by themselves", path.display(), snapshot.display())]
    SnapshotBaseCut {
        /// The file of the database.
        path: PathBuf,
        /// The file of the snapshot.
        snapshot: PathBuf,
    },
    /// Something else.
    #[error("{}: is not a SQL Server data file: it begins with neither a file header page nor allocation pages{}", path.display(), who_reads(path))]
    NotADataFile {
        /// The path.
        path: PathBuf,
    },
    /// SQL Server 2000 or older.
    #[error("{}: database version {version} ({product}) is older than SQL Server 2005, whose catalog is the oldest known; attach it to SQL Server 2005 or 2008 first", path.display())]
    TooOld {
        /// The path.
        path: PathBuf,
        /// Internal version.
        version: u16,
        /// Product name.
        product: &'static str,
    },
    /// Only secondary files.
    #[error("{}: is data file {file_id} of a database, but its primary file (file id 1, usually .mdf) is not among the files given; name it too", path.display())]
    NoPrimary {
        /// One of the secondary files.
        path: PathBuf,
        /// Its file id.
        file_id: u16,
    },
    /// Two files with one id.
    #[error("{} and {}: both are file {file_id} of a database; give the files of one database at a time", first.display(), second.display())]
    SameFileId {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The ID that both have.
        file_id: u16,
    },
    /// Files of different databases.
    #[error("{}: belongs to another database than {} (their binding ids differ); give the files of one database at a time", path.display(), primary.display())]
    OtherDatabase {
        /// The file that does not fit.
        path: PathBuf,
        /// The primary file.
        primary: PathBuf,
    },
    /// A folder without data files.
    #[error("{}: no SQL Server data file in this folder, and no backup; {}", path.display(), look_below(path))]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The data files of more than one database.
    #[error("{}: {}", of_several(folder.as_deref(), databases.len()), listed(databases))]
    SeveralDatabases {
        /// The folder that holds them; `None` if they were named.
        folder: Option<PathBuf>,
        /// A name for each: its name on the server, with its primary file.
        databases: Vec<String>,
        /// The data files of the first one.
        example: Vec<PathBuf>,
    },
}

/// The most names in one message.
const MOST_NAMES: usize = 10;

/// The first [`MOST_NAMES`] of several names, and the number of the others.
fn listed(names: &[String]) -> String {
    let more = if names.len() > MOST_NAMES { ", ..." } else { "" };
    let named: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    format!("{}{more}", named.join(", "))
}

fn of_several(folder: Option<&Path>, count: usize) -> String {
    match folder {
        Some(folder) => format!("{}: holds the data files of {count} databases", folder.display()),
        None => format!("the files belong to {count} databases"),
    }
}

/// Paths as they are written in a command.
pub fn arguments(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| argument(path)).collect::<Vec<_>>().join(" ")
}

/// The remedy for a folder that has no data files itself.
fn look_below(folder: &Path) -> String {
    let entries = storage::list(folder).unwrap_or_default();
    match entries.iter().any(|entry| entry.is_folder || entry.path.is_dir()) {
        true => format!("its subfolders are not searched: name them, such as {}", argument(&folder.join("*"))),
        false => "name the folder that holds them".to_owned(),
    }
}

/// A path, or another argument, as it is written in a command.
pub fn argument(path: &Path) -> String {
    /// Characters with a meaning for shells; a backslash separates folders on Windows.
    const SPECIAL: &str = if cfg!(windows) { "\"&|<>()%^;," } else { "'\"$`&|;<>()*?[]{}!#~\\" };
    let text = path.display().to_string();
    let is_plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || SPECIAL.contains(c));
    match is_plain {
        true => text,
        false if cfg!(windows) || !text.contains(['"', '$', '`', '\\', '!']) => format!("\"{text}\""),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The remedy for a file that the system refuses to read, as the end of a message; empty if the cause says it.
pub fn remedy(cause: &io::Error) -> &'static str {
    /// ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION of Windows.
    const IN_USE: [i32; 2] = [32, 33];
    /// EMFILE of Unix.
    const TOO_MANY_FILES: i32 = 24;
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; run mdfsck as a user who may read it",
        _ if cfg!(unix) && cause.raw_os_error() == Some(TOO_MANY_FILES) => {
            "; a restore reads all its backups at once: raise the limit on open files (ulimit -n)"
        }
        _ if cfg!(windows) && cause.raw_os_error().is_some_and(|code| IN_USE.contains(&code)) => {
            "; another program has it open, most likely SQL Server: check a backup, or the file in a shadow copy of its volume"
        }
        _ => "",
    }
}

/// The remedy for a failed read.
fn remedy_of_read(path: &Path, cause: &io::Error) -> &'static str {
    match remedy(cause) {
        // The object storage's own message has the remedy.
        _ if storage::url(path).is_some() => "",
        "" => "; look at its storage, then check again, or check another copy",
        remedy => remedy,
    }
}

/// A number of bytes in MB.
fn bytes_text(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}

fn of_grant(granted: Option<u64>) -> String {
    granted.map_or_else(String::new, |granted| format!(", the rest of a grant of {}", bytes_text(granted)))
}

fn more_memory(granted: Option<u64>) -> &'static str {
    match granted {
        Some(_) => "use a larger --memory",
        None => "so many mean damage; 'mdfsck check --memory' can give more",
    }
}

/// A page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("{}: cannot read at byte {offset}: {cause}{}", path.display(), remedy_of_read(path, cause))]
    Io {
        /// The file.
        path: PathBuf,
        /// Offset in the file.
        offset: u64,
        /// The system's error.
        cause: io::Error,
    },
    /// The page is in a missing part of the backup.
    #[error("{}: page {page} is in a part of the backup that was not given", path.display())]
    NotInBackup {
        /// The backup.
        path: PathBuf,
        /// The page.
        page: format::PageId,
    },
    /// No such file.
    #[error("file {file_id} of the database was not given")]
    NoSuchFile {
        /// The requested file ID.
        file_id: u16,
    },
    /// A recovered page cannot be read back from its temporary file.
    #[error(
        "page {page} as recovered cannot be read back from its temporary file: {cause}; look at the storage of --temp-dir"
    )]
    Recovered {
        /// The page.
        page: format::PageId,
        /// The system's error.
        cause: io::Error,
    },
}

/// The command that reads files with this name, as the end of a message.
fn who_reads(path: &Path) -> &'static str {
    let is_of = |extension: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    match () {
        () if is_of("xel") => "; 'mdfsck events' reads Extended Events",
        () if name.starts_with("ERRORLOG") => "; 'mdfsck checkpoints' reads error logs",
        () => "",
    }
}
