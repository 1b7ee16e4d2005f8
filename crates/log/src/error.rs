//! Why a log cannot be read. Each message names file, place, cause and remedy in one line.

use std::io;
use std::path::PathBuf;

/// The named files are not the log files of one database that can be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No path was given.
    #[error("no file given; name the .ldf files of one database")]
    Nothing,
    /// The system refused to read a file.
    #[error("{}: cannot be read at byte {at}: {cause}{}", path.display(), source::remedy(cause))]
    Io {
        /// The file.
        path: PathBuf,
        /// Offset in the file.
        at: u64,
        /// The system's error.
        cause: io::Error,
    },
    /// Not a regular file, or a file of another kind.
    #[error("{}: is not a transaction log file; name the .ldf files of one database", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// An empty file.
    #[error("{}: is empty (0 bytes): it has no log; copy the file again, or name the log of the database", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The header of the first VLF, or of one inside the file, is damaged.
    #[error("{}: no virtual log file starts at byte {at}, where the one before ends: the file is damaged or cut there; the log before it cannot be put in order without the rest", path.display())]
    NoVlf {
        /// The file.
        path: PathBuf,
        /// Offset at which a VLF should start.
        at: u64,
    },
    /// More VLFs than a log can have.
    #[error("{}: more than {most} virtual log files: the file is damaged, or is not a transaction log file", path.display())]
    TooManyVlfs {
        /// The file.
        path: PathBuf,
        /// The accepted maximum.
        most: usize,
    },
    /// Files of different databases.
    #[error("{}: is a log file of another database than {}; name the log files of one database", path.display(), other.display())]
    OtherDatabase {
        /// The file.
        path: PathBuf,
        /// The file before it.
        other: PathBuf,
    },
    /// A file was named twice, or a copy of it.
    #[error("{}: has the same file ID {file_id} as {}; name each log file once", path.display(), other.display())]
    SameFile {
        /// The file.
        path: PathBuf,
        /// The file before it.
        other: PathBuf,
        /// The file ID that both have.
        file_id: u16,
    },
    /// SQL Server 2000 wrote it.
    #[error("{}: was written by SQL Server 2000, whose log records are of another form; SQL Server 2005 and later can be read", path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
    },
    /// A file that is cut off before its first readable block.
    #[error("{}: is cut off at byte {at}, and none of the virtual log files before that is in use: the log was in the part that is missing; copy the file again", path.display())]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        at: u64,
    },
    /// A backup set without log that has a missing stripe.
    #[error("{}: set {position} has no log in the stripes that were given, and {} not given; name {} too", path.display(), stripes_text(missing, *stripes), if missing.len() == 1 { "its file" } else { "their files" })]
    StripesMissing {
        /// The first of its files.
        path: PathBuf,
        /// Its position there.
        position: u16,
        /// Numbers of the missing stripes.
        missing: Vec<u16>,
        /// Number of its stripes.
        stripes: u16,
    },
    /// A backup set that should hold log but has none that can be read.
    #[error("{}: no log was found in set {position}, and its label does not say that it is empty", path.display())]
    NoLog {
        /// The first of its files.
        path: PathBuf,
        /// Its position there.
        position: u16,
    },
    /// A log that was never used.
    #[error("{}: has never been written: none of its virtual log files is in use", path.display())]
    NeverUsed {
        /// The file.
        path: PathBuf,
    },
}

/// `stripe 2 of 3 is`, `stripes 1, 2 of 3 are`.
pub(crate) fn stripes_text(missing: &[u16], stripes: u16) -> String {
    let numbers = missing.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    match missing {
        [_] => format!("stripe {numbers} of {stripes} is"),
        _ => format!("stripes {numbers} of {stripes} are"),
    }
}
