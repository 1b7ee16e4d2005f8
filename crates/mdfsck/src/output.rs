//! Where results go: stdout, or a file that is none of a database's.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use source::{FileKind, PageSource, identify};

use crate::failure::Failure;

/// Bytes that tell what a file is.
const IDENTIFY_BYTES: u64 = 4 * format::PAGE_BYTES as u64;

/// Opens `path`, or stdout.
pub(crate) fn open(path: Option<&Path>, inputs: &dyn PageSource) -> Result<Box<dyn Write>, Failure> {
    let Some(path) = path else { return Ok(Box::new(BufWriter::new(io::stdout().lock()))) };
    refuse_database_files(path, inputs)?;
    let file = File::create(path).map_err(|cause| unwritable(path, &cause))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn unwritable(path: &Path, cause: &io::Error) -> Failure {
    Failure::blind(format!("{}: cannot be written: {cause}", path.display()))
}

/// An existing file that is an input, or any data, log or backup file, is never overwritten.
fn refuse_database_files(path: &Path, inputs: &dyn PageSource) -> Result<(), Failure> {
    let same = |input: &Path| matches!((fs::canonicalize(input), fs::canonicalize(path)), (Ok(a), Ok(b)) if a == b);
    if inputs.files().iter().any(|file| same(&file.path)) {
        return Err(Failure::usage(format!("--output {}: is one of the files to be checked", path.display())));
    }
    refuse_sql_server_file(path)
}

/// A data, log or backup file is never overwritten, whatever its name.
pub(crate) fn refuse_sql_server_file(path: &Path) -> Result<(), Failure> {
    // Found by content, so that hard links to inputs and logs beside them are safe too. Only regular files are read: a
    // pipe would not end.
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        let mut start = Vec::new();
        let read = File::open(path).and_then(|file| file.take(IDENTIFY_BYTES).read_to_end(&mut start));
        read.map_err(|cause| unwritable(path, &cause))?;
        if identify(&start) != FileKind::Other {
            let text = format!("{}: is a SQL Server file and will not be overwritten", path.display());
            return Err(Failure::usage(text));
        }
    }
    Ok(())
}

/// Runs `write` on stdout.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    finish(write(&mut out).and_then(|()| out.flush()))
}

/// Judges the outcome of writing results. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::blind(format!("the results cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
