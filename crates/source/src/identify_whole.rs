//! Identifies a file by places other than its beginning, which may be overwritten.

use std::path::Path;

use crate::backup::remains;
use crate::identify::{FileKind, identify, names_a_data_file};
use crate::positioned::ReadAt;
use crate::remains::Remains;

/// Identifies a file of `length` bytes by its first pages, `start`. If they are not enough, and the file has the name of a
/// data file or of a backup, reads other places of `file` too. A folder may have thousands of files with other names, so
/// these are not read further.
pub(crate) fn identify_whole(path: &Path, file: &dyn ReadAt, start: &[u8], length: u64) -> (FileKind, Remains) {
    let kind = identify(start);
    if kind != FileKind::Other {
        return (kind, Remains::Nothing);
    }
    if remains::form(path, file, length).is_some() {
        return (FileKind::Backup("SQL Server backup whose beginning is overwritten"), Remains::Nothing);
    }
    if !names_a_data_file(path) {
        return (kind, Remains::Nothing);
    }
    match Remains::of(file, length) {
        Remains::InPlace(file_id) => (FileKind::Data { file_id, header_is_sound: false }, Remains::InPlace(file_id)),
        remains => (kind, remains),
    }
}
