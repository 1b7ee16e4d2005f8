//! Why we could not look. Each message names file, place, cause and remedy in one line.

use std::io;
use std::path::PathBuf;

/// The named files are not the data files of one database that can be checked.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refuses.
    #[error("{}: cannot be opened: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Reads past the system's cache were asked for.
    #[error("{}: cannot be read past the system's cache: {cause}; leave out --direct", path.display())]
    Direct {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// `-` was given.
    #[error(
        "-: data files are read in several places at once and cannot come from standard input; give the path of the .mdf file"
    )]
    StandardInput,
    /// No path was given.
    #[error("no file given; name the .mdf and .ndf files of the database, or the folder that holds them")]
    Nothing,
    /// Neither file nor folder.
    #[error("{}: is not a regular file; name a .mdf or .ndf file, or a folder of them", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Nothing in it.
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
    /// A backup.
    #[error("{}: is a {kind}, not a data file; backups cannot be read yet: restore it and name its .mdf file", path.display())]
    Backup {
        /// The path.
        path: PathBuf,
        /// Which kind of backup.
        kind: &'static str,
    },
    /// Longer than a data file can be.
    #[error("{}: has {length} bytes, more than the 16 TiB that a data file of SQL Server can have", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// Something else.
    #[error("{}: is not a SQL Server data file: neither its first page is a file header nor are the next ones allocation pages", path.display())]
    NotADataFile {
        /// The path.
        path: PathBuf,
    },
    /// SQL Server 2000 or older.
    #[error("{}: database version {version} ({product}) is older than SQL Server 2005, whose catalogue is the oldest known; attach it to SQL Server 2005 or 2008 first", path.display())]
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
        /// The id both have.
        file_id: u16,
    },
    /// Files of two databases.
    #[error("{}: belongs to another database than {} (their binding ids differ); give the files of one database at a time", path.display(), primary.display())]
    OtherDatabase {
        /// The file that does not fit.
        path: PathBuf,
        /// The primary file.
        primary: PathBuf,
    },
    /// A folder without data files.
    #[error("{}: no SQL Server data file in this folder", path.display())]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
}

/// A page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{}: cannot read at byte {offset}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What the system said.
        cause: io::Error,
    },
    /// No such file.
    #[error("file {file_id} of the database was not given")]
    NoSuchFile {
        /// The file id asked for.
        file_id: u16,
    },
}
