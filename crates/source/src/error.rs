//! The errors for databases that cannot be opened and pages that cannot be read. Each message is one line that names
//! the file, the place, the cause and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use format::Lsn;

use crate::arguments::argument;
use crate::identify::{Archive, FileKind, carve_command, identify, names_a_backup};
use crate::storage;

mod carve;

pub use carve::CarveError;

/// The reason why standard input cannot be read as a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StandardInput {
    /// The command does not read standard input.
    #[error("this command does not read standard input; save the backup to a file and name the file")]
    NotRead,
    /// `-` was given more than once.
    #[error("standard input is one backup file and can be named only once; name other files by path")]
    Twice,
    /// Standard input is empty.
    #[error("standard input is empty: the command before the pipe wrote nothing")]
    Empty,
    /// Standard input is a data file or a log.
    #[error("standard input is a {0}, but mdfsck reads only backups from standard input; name the file by its path")]
    OtherFile(&'static str),
    /// Standard input is something else.
    #[error("standard input is not a SQL Server backup")]
    NotABackup,
}

impl StandardInput {
    /// The reason why an input that begins with `start` is not a backup.
    pub fn of(start: &[u8]) -> Self {
        match identify(start) {
            _ if start.is_empty() => Self::Empty,
            FileKind::Data { .. } => Self::OtherFile("data file"),
            FileKind::Log => Self::OtherFile("transaction log file"),
            FileKind::Backup(_) | FileKind::Other => Self::NotABackup,
        }
    }
}

/// The reason why the named files cannot be opened as the data files of one database, or as a backup of one database.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system returned an error.
    #[error("{}: cannot be opened: {cause}{}", path.display(), remedy(cause))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A symbolic link that does not point to a readable file.
    #[error("{}: is a symbolic link to {}, which cannot be opened: {cause}; correct or remove the link", path.display(), target.display())]
    BrokenLink {
        /// Path of the link.
        path: PathBuf,
        /// The target of the link.
        target: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// Reads that bypass the system's cache were requested, but are not possible.
    #[error("{}: cannot be read without the system's file cache: {cause}; leave out --direct", path.display())]
    Direct {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// Standard input (`-`) cannot be read as a backup.
    #[error("-: {0}")]
    StandardInput(StandardInput),
    /// No path was given.
    #[error("no file given; name the .mdf and .ndf files of the database, or the folder that holds them")]
    Nothing,
    /// The path names a pipe, such as `<(...)` of a shell.
    #[error("{}: is a pipe; a backup from a pipe is named '-': COMMAND | mdfsck check -", path.display())]
    Pipe {
        /// Path of the file.
        path: PathBuf,
    },
    /// The path names neither a file nor a folder.
    #[error("{}: is not a regular file; name a .mdf or .ndf file, or a folder of them", path.display())]
    NotAFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{}: is empty (0 bytes); a database file holds at least its header page", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is a transaction log file.
    #[error("{}: is a transaction log file, not a data file; name the .mdf and .ndf files of the database", path.display())]
    Log {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is a backup, but the other files are data files.
    #[error("{}: is a {kind}, not a data file; name data files or backup files, not both", path.display())]
    Backup {
        /// Path of the file.
        path: PathBuf,
        /// The kind of backup.
        kind: &'static str,
    },
    /// The file is a data file, but the other files are backups.
    #[error("{}: is not a backup; name data files or backup files, not both", path.display())]
    NotABackup {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file was compressed by another program.
    #[error("{}: is compressed with {}: decompress it first; to check a backup without a decompressed copy: {}", path.display(), archive.name, archive.pipe(path))]
    Compressed {
        /// Path of the file.
        path: PathBuf,
        /// The format of the compressed file.
        archive: &'static Archive,
    },
    /// The file contains a database, but not in a format that can be checked.
    #[error("{}: {what}", path.display())]
    Held {
        /// Path of the file.
        path: PathBuf,
        /// The kind of file, and what to check instead.
        what: String,
    },
    /// The file is not a backup, but backups are expected.
    #[error("{}: is not a SQL Server backup{what}", path.display())]
    OtherThanBackup {
        /// Path of the file.
        path: PathBuf,
        /// The kind of file, in words that end the message.
        what: &'static str,
    },
    /// The backup contains no set that can be read.
    #[error("{}: no backup set in this file can be read: the file ends too early, or its configuration is damaged; if it is not compressed, {}", path.display(), carve_command(path))]
    NoSet {
        /// Path of the file.
        path: PathBuf,
    },
    /// `--set` names none of the sets.
    #[error("{}: no set has the requested number; the file contains {sets} ('mdfsck info' lists the sets)", path.display())]
    NoSuchSet {
        /// Path of the file.
        path: PathBuf,
        /// Number of sets in the file.
        sets: usize,
    },
    /// The backup was taken WITH ENCRYPTION.
    #[error("{}: the backup is encrypted: only the key's owner can read it; restore it and name its .mdf file", path.display())]
    EncryptedBackup {
        /// Path of the file.
        path: PathBuf,
    },
    /// The set is a log backup, which contains no pages to check.
    #[error("{}: set {position} is a transaction log backup, which has no pages to check; 'mdfsck log' reads it", path.display())]
    LogBackup {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
    },
    /// The set is a differential backup, and its full backup was not given.
    #[error("{}: set {position} is a differential backup, which contains only changed extents; name the full backup that it is based on too", path.display())]
    DifferentialAlone {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
    },
    /// The set is a differential backup that is based on a full backup other than the given one.
    #[error("{}: set {position} is a differential backup, but is not based on the full backup that was given", path.display())]
    OtherBase {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
    },
    /// The set is a log backup after a gap in the log.
    #[error("{}: set {position} starts at {first}, but the log before it ends at {reached}: name the log backups between them too", path.display())]
    LogGap {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// The LSN at which the applicable log ends.
        reached: Lsn,
        /// The LSN at which the set's log starts.
        first: Lsn,
    },
    /// The set is a log backup of the same database, but of another recovery fork: from before or after a restore to an
    /// earlier point.
    #[error("{}: set {position} is of another recovery fork than the full backup {}: the database was restored between the two backups", path.display(), other.display())]
    OtherFork {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// Path of the full backup.
        other: PathBuf,
    },
    /// The set is a log backup that continues beyond the point to which the database was later restored.
    #[error("{}: set {position} ends at {last}, in a recovery fork that was abandoned at {left_at}, when the database was restored; other backups continue from there", path.display())]
    LeftFork {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// The first LSN after the set's log.
        last: Lsn,
        /// The LSN to which the database was restored.
        left_at: Lsn,
    },
    /// The set is a full backup that ended after the point in time to restore to.
    #[error("{}: set {position} ends at {finished}, after the requested point in time; name an earlier full backup", path.display())]
    EndsLater {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// The time when the backup ended, in the local time of the server.
        finished: String,
    },
    /// Some stripes of the set were not given, although a set of this kind needs all its stripes.
    #[error("{}: set {position} (\"{kind}\") is striped over several files, and {missing} of these files are not given: a log backup needs all its stripes", path.display())]
    StripesMissing {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// The kind of the set.
        kind: &'static str,
        /// Number of missing stripes.
        missing: u16,
    },
    /// The set is a backup of another database.
    #[error("{}: set {position} is of another database than the full backup {}; name the backups of one database", path.display(), other.display())]
    OtherDatabaseSet {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// Path of the full backup.
        other: PathBuf,
    },
    /// The sets are file, filegroup or partial backups, and none of them contains the primary file.
    #[error("{}: set {position} holds files of a database without its primary file, which has the catalog; name the backup of the primary filegroup too", path.display())]
    WithoutPrimary {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
    },
    /// The set is a file, filegroup or partial backup, which cannot be restored to the requested point in time.
    #[error("{}: set {position} is a file or filegroup backup, and mdfsck applies log only to full backups: leave out the point in time, or name a full backup", path.display())]
    FilesHaveNoMoment {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
    },
    /// The set is a log backup, and it was given together with file or filegroup backups, to which log backups are not
    /// applied.
    #[error("{}: set {position} is a transaction log backup, and mdfsck applies log only to full backups, not to file or filegroup backups; leave the log backup out", path.display())]
    LogOfFiles {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
    },
    /// The set is of a type that cannot be read, such as a differential backup of files or filegroups, or a
    /// differential partial backup.
    #[error("{}: set {position} is a backup of type \"{kind}\", which mdfsck does not read; restore it and name its .mdf file", path.display())]
    UnsupportedSet {
        /// Path of the file.
        path: PathBuf,
        /// Position of the backup set in the file.
        position: u16,
        /// The type of the set.
        kind: &'static str,
    },
    /// The file is a backup that does not belong to any of the other given backups.
    #[error("{}: is neither a stripe of the backup {} nor a differential backup based on it; give one backup at a time", path.display(), other.display())]
    OtherBackup {
        /// Path of the file.
        path: PathBuf,
        /// Path of the backup to which it should belong.
        other: PathBuf,
    },
    /// The media header of the file cannot be read. It is therefore unknown whether the file belongs to the other given
    /// files.
    #[error("{}: the media header cannot be read, so this file cannot be matched with the other files; copy the file again, or take a new backup", path.display())]
    UnknownMedia {
        /// Path of the file.
        path: PathBuf,
    },
    /// The same stripe was given twice.
    #[error("{}: stripe {family} of the backup is given twice", path.display())]
    SameStripe {
        /// Path of the file.
        path: PathBuf,
        /// Number of the stripe.
        family: u16,
    },
    /// The file is a compressed backup that cannot be decompressed.
    #[error("{}: is a compressed backup in an unknown form: encrypted, such as the backup of a database with TDE, or compressed with an algorithm other than MS_XPRESS, such as ZSTD (SQL Server 2025) or QAT_DEFLATE (RESTORE HEADERONLY shows which); restore it and name its .mdf file", path.display())]
    UnknownCompression {
        /// Path of the file.
        path: PathBuf,
    },
    /// The backup needs more memory than its limit.
    #[error("{}: {what} need more memory than {}{}; {}", path.display(), bytes_text(*limit), of_grant(*granted), more_memory(*granted))]
    BackupTooLarge {
        /// Path of the file.
        path: PathBuf,
        /// The data that needs the memory.
        what: &'static str,
        /// The memory grant in bytes, if there was one.
        granted: Option<u64>,
        /// The memory limit for the backup in bytes: the part of the grant that the backup can use.
        limit: u64,
    },
    /// The backup claims to contain more objects of one kind than any server writes.
    #[error("{}: more than {limit} {what} at byte {at}, which no server writes: the backup is damaged at this place; copy it again, or take a new backup", path.display())]
    BackupImpossible {
        /// Path of the file.
        path: PathBuf,
        /// The kind of object.
        what: &'static str,
        /// The greatest number that a server writes.
        limit: usize,
        /// Offset in the backup; for a compressed backup, the offset in the decompressed tape.
        at: u64,
    },
    /// The file is longer than a data file can be.
    #[error("{}: has {length} bytes, more than the 16 TiB that a data file of SQL Server can have", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Length of the file in bytes.
        length: u64,
    },
    /// The file belongs to a database snapshot, and its base file was not given.
    #[error("{}: is a file of a database snapshot, which contains only pages that have changed in the database since: name it together with data file {file_id} of the database, or check the database without the snapshot", path.display())]
    Snapshot {
        /// Path of the file.
        path: PathBuf,
        /// The file ID of the snapshot file and of its base file.
        file_id: u16,
    },
    /// The file is a copy of a database snapshot's file, and its holes were filled with zeros.
    #[error("{}: is a copy of a database snapshot file, and the copy lost its holes (sparse regions): pages of zeros can no longer be distinguished from pages that are only in the database; copy the file again with a program that keeps holes, or check the database without the snapshot", path.display())]
    SnapshotHoles {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file belongs to a database under a snapshot, and its snapshot file was not given.
    #[error("{}: is a database file, and {} belongs to a snapshot of this database, but the matching file of the snapshot is not among the files given; name all files of the snapshot", path.display(), snapshot.display())]
    SnapshotIncomplete {
        /// Path of the database file.
        path: PathBuf,
        /// Path of another file of the snapshot.
        snapshot: PathBuf,
    },
    /// The file belongs to a database under a snapshot, and it is shorter than its snapshot file.
    #[error("{}: is shorter than its snapshot file {}: it was cut off, or has shrunk since the snapshot was made; check the database without the snapshot", path.display(), snapshot.display())]
    SnapshotBaseCut {
        /// Path of the database file.
        path: PathBuf,
        /// Path of the snapshot file.
        snapshot: PathBuf,
    },
    /// The file is something other than a data file.
    #[error("{}: is not a SQL Server data file: it begins with neither a file header page nor allocation pages{}", path.display(), who_reads(path))]
    NotADataFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// The pages of the file are not at their places.
    #[error("{}: has pages of file {file_id} of a database, but each of them is {}", path.display(), moved_by(path, *by))]
    Moved {
        /// Path of the file.
        path: PathBuf,
        /// The file ID in the pages.
        file_id: u16,
        /// The number of bytes by which each page is behind its place; negative if it is before its place.
        by: i64,
    },
    /// The file was written by SQL Server 2000 or an older version.
    #[error("{}: database version {version} ({product}) is older than SQL Server 2005, the oldest version that mdfsck reads; attach the database to SQL Server 2005 or 2008 first", path.display())]
    TooOld {
        /// Path of the file.
        path: PathBuf,
        /// Internal version number of the database.
        version: u16,
        /// Name of the product that wrote the file.
        product: &'static str,
    },
    /// Only secondary files were given, without the primary file.
    #[error("{}: is data file {file_id} of a database, but its primary file (file ID 1, usually .mdf) is not among the files given; name the primary file too", path.display())]
    NoPrimary {
        /// Path of one of the secondary files.
        path: PathBuf,
        /// File ID of this file.
        file_id: u16,
    },
    /// Two files have the same file ID.
    #[error("{} and {}: both are file {file_id} of a database; give the files of one database at a time", first.display(), second.display())]
    SameFileId {
        /// Path of one file.
        first: PathBuf,
        /// Path of the other file.
        second: PathBuf,
        /// The file ID of both files.
        file_id: u16,
    },
    /// The files belong to different databases.
    #[error("{}: belongs to another database than {} (their binding IDs differ); give the files of one database at a time", path.display(), primary.display())]
    OtherDatabase {
        /// Path of the file of the other database.
        path: PathBuf,
        /// Path of the primary file.
        primary: PathBuf,
    },
    /// No database could be carved out of the files.
    #[error(transparent)]
    Carve(#[from] CarveError),
    /// The folder contains no data files.
    #[error("{}: no SQL Server data file in this folder, and no backup; {}", path.display(), look_below(path))]
    EmptyFolder {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The files belong to several databases.
    #[error("{}: {}", of_several(folder.as_deref(), databases.len()), listed(databases))]
    SeveralDatabases {
        /// The folder that contains the files; `None` if the files were named individually.
        folder: Option<PathBuf>,
        /// A name for each database: its name on the server and its primary file.
        databases: Vec<String>,
        /// Paths of the data files of one of the databases, preferably one with its primary file.
        example: Vec<PathBuf>,
    },
}

/// The most database names to list in one message.
const MOST_NAMES: usize = 10;

/// The first [`MOST_NAMES`] names, followed by "..." if there are more.
fn listed(names: &[String]) -> String {
    let more = if names.len() > MOST_NAMES { ", ..." } else { "" };
    let named: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    format!("{}{more}", named.join(", "))
}

fn of_several(folder: Option<&Path>, count: usize) -> String {
    match folder {
        Some(folder) => format!("{}: contains the data files of {count} databases", folder.display()),
        None => format!("the files belong to {count} databases"),
    }
}

/// Returns the remedy for a folder that contains no data files itself.
fn look_below(folder: &Path) -> String {
    let entries = storage::list(folder).unwrap_or_default();
    match entries.iter().any(|entry| entry.is_folder || entry.path.is_dir()) {
        true => {
            format!("its subfolders are not searched: name the subfolders, such as {}", argument(&folder.join("*")))
        }
        false => "name the folder that contains them".to_owned(),
    }
}

/// The remedy for a file that the system refuses to read, as the end of a message; empty if there is no special remedy.
pub fn remedy(cause: &io::Error) -> &'static str {
    /// The Windows errors ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION.
    const IN_USE: [i32; 2] = [32, 33];
    /// The Unix error EMFILE.
    const TOO_MANY_FILES: i32 = 24;
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; run mdfsck as a user who may read this file",
        _ if cfg!(unix) && cause.raw_os_error() == Some(TOO_MANY_FILES) => {
            "; a restore opens all its backups at the same time: raise the limit on open files (ulimit -n)"
        }
        _ if cfg!(windows) && cause.raw_os_error().is_some_and(|code| IN_USE.contains(&code)) => {
            "; another program, most likely SQL Server, has this file open: check a backup, or the file in a shadow copy of its volume"
        }
        _ => "",
    }
}

/// The remedy for a failed read.
fn remedy_of_read(path: &Path, cause: &io::Error) -> &'static str {
    match remedy(cause) {
        // The message of the object storage already contains a remedy.
        _ if storage::url(path).is_some() => "",
        "" => "; check its storage, then repeat the run, or read another copy",
        remedy => remedy,
    }
}

/// A number of bytes as text, in MB.
fn bytes_text(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}

fn of_grant(granted: Option<u64>) -> String {
    granted.map_or_else(String::new, |granted| format!(", the unused part of a grant of {}", bytes_text(granted)))
}

fn more_memory(granted: Option<u64>) -> &'static str {
    match granted {
        Some(_) => "use a larger --memory",
        None => "this number means that the backup is damaged; to read it anyway, use 'mdfsck check --memory'",
    }
}

/// The reason why a page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system returned an error.
    #[error("{}: cannot read at byte {offset}: {cause}{}", path.display(), remedy_of_read(path, cause))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Offset in the file.
        offset: u64,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The page is in a missing part of the backup.
    #[error("{}: page {page} is in a part of the backup that {}", path.display(), if *is_stripe { "was not given" } else { "is damaged or missing" })]
    NotInBackup {
        /// Whether stripes of the backup were not given, one of which may have the page.
        is_stripe: bool,
        /// Path of the backup.
        path: PathBuf,
        /// ID of the page.
        page: format::PageId,
    },
    /// The page is not among the pages that were carved out of raw bytes.
    #[error("page {page} was not found in the image")]
    NotFound {
        /// ID of the page.
        page: format::PageId,
    },
    /// The database has no file with this ID.
    #[error("file {file_id} of the database was not given")]
    NoSuchFile {
        /// The requested file ID.
        file_id: u16,
    },
    /// A recovered page cannot be read back from its temporary file.
    #[error(
        "recovered page {page} cannot be read back from its temporary file: {cause}; check the storage of --temp-dir"
    )]
    Recovered {
        /// ID of the page.
        page: format::PageId,
        /// The operating system's error.
        cause: io::Error,
    },
}

/// Describes where the pages of a file are, and what to do about it.
fn moved_by(path: &Path, by: i64) -> String {
    let carve = format!("{} where they are", carve_command(path));
    match u64::try_from(by) {
        Ok(by) => format!(
            "{by} bytes behind its place: bytes were inserted at the start, or the file is a backup whose start is damaged. \
             {carve}; to remove the bytes: 'tail -c +{} FILE > COPY'",
            by.saturating_add(1)
        ),
        Err(_) => {
            let missing = by.unsigned_abs();
            format!(
                "{missing} bytes before its place: the first {missing} bytes of the file are missing. {carve}; to fill the gap \
                 with zeros: '(head -c {missing} /dev/zero; cat FILE) > COPY'"
            )
        }
    }
}

/// Returns the end of an error message, which names the command that can read a file of this kind. The extension of the
/// file shows its kind. Empty if no command can read it.
fn who_reads(path: &Path) -> &'static str {
    let is_of = |extension: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    match () {
        () if is_of("xel") => "; 'mdfsck events' reads Extended Events",
        () if names_a_backup(path) => ", and no part of it that was looked at is one of a backup",
        () if name.starts_with("ERRORLOG") => "; 'mdfsck checkpoints' reads error logs",
        () => "",
    }
}
