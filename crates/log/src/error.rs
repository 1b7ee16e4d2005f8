//! The reasons why a log cannot be read. Each message names the file, the place, the cause and the remedy in one line.

use std::io;
use std::path::PathBuf;

/// The reason why the given files cannot be read as the log of one database.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No path was given.
    #[error("no file given; name the .ldf files of one database")]
    Nothing,
    /// The operating system could not read a file.
    #[error("{}: cannot be read at byte {at}: {cause}{}", path.display(), source::remedy(cause))]
    Io {
        /// The file.
        path: PathBuf,
        /// The offset in the file.
        at: u64,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The file is not a regular file, or not a log file.
    #[error("{}: is not a transaction log file; name the .ldf files of one database", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{}: is empty (0 bytes): it has no log; copy the file again, or name the log of the database", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No valid VLF header was found at a place where a VLF should start.
    #[error("{}: no virtual log file starts at byte {at}, where the previous one ends: the file is damaged or cut off there; without the rest, the virtual log files before it cannot be put in order", path.display())]
    NoVlf {
        /// The file.
        path: PathBuf,
        /// The offset in the file at which a VLF should start.
        at: u64,
    },
    /// The file has more VLFs than a log can have.
    #[error("{}: more than {most} virtual log files: the file is damaged, or is not a transaction log file", path.display())]
    TooManyVlfs {
        /// The file.
        path: PathBuf,
        /// The most VLFs that are accepted.
        most: usize,
    },
    /// Two files belong to different databases.
    #[error("{}: is a log file of another database than {}; name the log files of one database", path.display(), other.display())]
    OtherDatabase {
        /// The file.
        path: PathBuf,
        /// A file of the other database.
        other: PathBuf,
    },
    /// A file, or a copy of it, was given twice.
    #[error("{}: has the same file ID {file_id} as {}; name each log file once", path.display(), other.display())]
    SameFile {
        /// The file.
        path: PathBuf,
        /// The file that was given first.
        other: PathBuf,
        /// The file ID of the two files.
        file_id: u16,
    },
    /// The file was written by SQL Server 2000. Such files cannot be read.
    #[error("{}: was written by SQL Server 2000, which has another format of log records; mdfsck reads logs of SQL Server 2005 and later", path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
    },
    /// The file is cut off before its first readable block.
    #[error("{}: is cut off at byte {at}, and no virtual log file before this byte is in use: the log was in the missing part; copy the file again", path.display())]
    CutOff {
        /// The file.
        path: PathBuf,
        /// The size of the file in bytes.
        at: u64,
    },
    /// No log was found, and a backup set has missing stripes that could contain log.
    #[error("{}: set {position} has no log in the stripes that were given, and {} not given; name {} too", path.display(), stripes_text(missing, *stripes), if missing.len() == 1 { "its file" } else { "their files" })]
    StripesMissing {
        /// The first file of the backup set.
        path: PathBuf,
        /// The position of the set in the file.
        position: u16,
        /// The numbers of the missing stripes.
        missing: Vec<u16>,
        /// The number of stripes of the set.
        stripes: u16,
    },
    /// A backup set should contain log, but contains no log that can be read.
    #[error("{}: no log was found in set {position}, although its label does not mark the log as empty", path.display())]
    NoLog {
        /// The first file of the backup set.
        path: PathBuf,
        /// The position of the set in the file.
        position: u16,
    },
    /// The log was never used.
    #[error("{}: has never been written: none of its virtual log files is in use", path.display())]
    NeverUsed {
        /// The file.
        path: PathBuf,
    },
}

/// The missing stripes as text, followed by the verb "is" or "are": `stripe 2 of 3 is`, `stripes 1, 2 of 3 are`.
pub(crate) fn stripes_text(missing: &[u16], stripes: u16) -> String {
    let numbers = missing.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    match missing {
        [_] => format!("stripe {numbers} of {stripes} is"),
        _ => format!("stripes {numbers} of {stripes} are"),
    }
}
