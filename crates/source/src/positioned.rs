//! Positioned reads: no shared cursor, so that threads need no lock.

use std::fs::File;
use std::io;

/// Reads from `offset` on until `buffer` is full or the file ends; returns the bytes read.
///
/// # Errors
/// Those of the system; an interrupted read is repeated.
pub fn read_fully_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read_at(file, buffer.get_mut(done..).unwrap_or_default(), offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// Announces that bytes will be read soon: a hint, which may fail without harm.
#[cfg(target_os = "linux")]
pub(crate) fn will_need(file: &File, offset: u64, bytes: u64) {
    let _ = rustix::fs::fadvise(file, offset, std::num::NonZeroU64::new(bytes), rustix::fs::Advice::WillNeed);
}

/// Announces that bytes will be read soon; this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn will_need(_file: &File, _offset: u64, _bytes: u64) {}
