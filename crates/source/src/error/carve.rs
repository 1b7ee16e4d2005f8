//! The reasons why no pages can be carved out of files.

use std::io;
use std::path::{Path, PathBuf};

use super::remedy;

/// The reason why no database can be carved out of the named files. Each message is one line that names the file, the
/// place, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CarveError {
    /// The operating system returned an error.
    #[error("{}: cannot be opened: {cause}{}", path.display(), remedy(cause))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The path is not one of a file with bytes at offsets.
    #[error("{}: is {what}, but --carve reads pages again at their offsets: {instead}", path.display())]
    NotAnImage {
        /// The path.
        path: PathBuf,
        /// The kind of thing that it names.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// There are more files than can be numbered.
    #[error(
        "{count} files are named, but --carve reads at most {} of them in one run: join the pieces of an image to one file",
        u16::MAX
    )]
    TooMany {
        /// The number of files.
        count: usize,
    },
    /// No page was found.
    #[error(
        "{}: no page of a SQL Server database in {bytes} bytes{}: if the bytes are compressed or encrypted, decompress or decrypt them first",
        first(paths),
        and_more(paths)
    )]
    NoPages {
        /// Paths of the files.
        paths: Vec<PathBuf>,
        /// The number of bytes that were read.
        bytes: u64,
    },
    /// No page of the primary file was found.
    #[error(
        "{}: pages of file {files} of a database were found{}, but none of file 1, the primary file, which has the catalog: name the image of its disk too",
        first(paths),
        and_more(paths)
    )]
    NoPrimary {
        /// Paths of the files.
        paths: Vec<PathBuf>,
        /// The IDs of the files of which pages were found, as text.
        files: String,
    },
    /// The pages are in more pieces than the memory can hold.
    #[error("{}: at byte {at}: the list of the pages found needs more than {} MB, its share of the memory: {}", path.display(), limit >> 20, more_memory(*is_granted))]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// The offset of the page for which there is no room.
        at: u64,
        /// The share of the memory in bytes.
        limit: u64,
        /// Whether the user has granted the memory.
        is_granted: bool,
    },
}

fn first(paths: &[PathBuf]) -> std::path::Display<'_> {
    paths.first().map_or_else(|| Path::new(""), PathBuf::as_path).display()
}

fn and_more(paths: &[PathBuf]) -> String {
    match paths.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more files"),
    }
}

fn more_memory(is_granted: bool) -> &'static str {
    match is_granted {
        true => "use a larger --memory, or name a smaller part of the image",
        false => "grant more with --memory, or name a smaller part of the image",
    }
}
