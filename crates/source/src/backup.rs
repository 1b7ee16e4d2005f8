//! Reads backups of one database (full, differential, striped, compressed) as if they were its data files.
//!
//! A backup file is a tape in Microsoft Tape Format (`blocks`), possibly inside a compressed container (`compressed`,
//! `xpress`). Its backup sets (`sets`, `config`) say where the regions of pages and of log are. `placement` finds the
//! extents in the page regions. `log_portion` finds the pages that a restore would still change when it applies the log
//! in the backup. [`BackupPages`] is the result.

mod blocks;
mod chain;
mod chain_sets;
mod compressed;
mod config;
mod damage;
mod files;
mod forks;
mod groups;
mod hints;
#[doc(hidden)]
pub mod hostile;
mod log_parts;
mod log_portion;
mod media;
mod names;
mod open;
mod pages;
mod pipe;
mod placement;
mod places;
mod plan;
mod records;
pub(crate) mod remains;
mod restore;
mod room;
mod seen;
mod sets;
mod version;
mod xpress;

pub use chain::{Beside, Chain, DatabaseChains, MOST_STEPS, Missing, Moment, Span, Unused, chains};
pub use chain_sets::ChainSet;
pub use config::{BackupFile, BackupFilegroup, SetConfig};
pub use damage::{Damage, DamageKind};
pub use forks::{Fork, Line};
pub use hints::Hints;
pub use log_parts::{BackupLog, LogPart, LogSet};
pub use pages::{BackupPages, SetLabel, UsedSet};
pub use plan::{BackupPlan, SetChoice, SetPlace, plan};
pub use restore::{Restore, Until};
pub use seen::{ContainerSeen, FileSeen, Runs};
pub use sets::{BackupMedia, BackupSet, SetKind};

use std::io::Read;
use std::path::Path;

use crate::identify::{Holder, IDENTIFY_BYTES};
use crate::{Archive, FileKind, OpenError, SharedFile, StandardInput, identify, read_fully_at, storage};
use media::Media;
use pipe::{Pipe, Piped};
use room::{Room, open_error};

/// Reads the labels of all backup sets in the backup file at `path`, without reading pages.
///
/// # Errors
/// [`OpenError`] if the file cannot be read or is not a readable backup.
pub fn media(path: &Path) -> Result<BackupMedia, OpenError> {
    let room = Room::new(None, storage::length(path).unwrap_or(0));
    let opened = open(path, &room)?;
    BackupMedia::read(&opened, &room).map_err(|cause| open_error(path, cause))
}

/// Like [`media()`], for a backup from a pipe: the pipe is read once, in bounded memory. In messages, the backup is
/// called `path`.
///
/// # Errors
/// [`OpenError`] if the pipe cannot be read or holds no readable backup.
pub fn media_from(path: &Path, input: Box<dyn Read + Send>) -> Result<BackupMedia, OpenError> {
    let failed = |cause| OpenError::Io { path: path.to_owned(), cause };
    let opened = match Pipe::open(input).map_err(failed)? {
        Piped::Backup(pipe) => Media::pipe(path, pipe),
        Piped::UnknownCompression => return Err(OpenError::UnknownCompression { path: path.to_owned() }),
        Piped::Other(start) => return Err(OpenError::StandardInput(StandardInput::of(&start))),
    };
    // The length of a pipe is unknown.
    BackupMedia::read(&opened, &Room::new(None, 0)).map_err(|cause| open_error(path, cause))
}

/// The error for a file without a backup set: the file is of another kind, or damaged.
pub fn no_set(path: &Path) -> OpenError {
    let mut start = vec![0; IDENTIFY_BYTES];
    let read = SharedFile::open(path).and_then(|file| {
        let read = read_fully_at(&file, &mut start, 0)?;
        Ok((read, remains::form(path, &file, file.length()?)))
    });
    let path = path.to_owned();
    let Ok((read, None)) = read else { return OpenError::NoSet { path } };
    start.truncate(read);
    if let Some(holder) = Holder::of(&path, &start) {
        let what = holder.told(&path);
        return OpenError::Held { path, what };
    }
    let what = match (identify(&start), Archive::of(&start)) {
        (FileKind::Backup(_), _) => return OpenError::NoSet { path },
        (FileKind::Data { .. }, _) => ": it is a data file",
        (FileKind::Log, _) => ": it is a transaction log file",
        (FileKind::Other, Some(archive)) => return OpenError::Compressed { path, archive },
        (FileKind::Other, None) if start.is_empty() => ": it is empty",
        (FileKind::Other, None) => ", or its start is damaged",
    };
    OpenError::OtherThanBackup { path, what }
}

fn open(path: &Path, room: &Room) -> Result<Media, OpenError> {
    if path.as_os_str() == "-" {
        return Err(OpenError::StandardInput(StandardInput::NotRead));
    }
    let file = SharedFile::open(path).map_err(|cause| OpenError::Io { path: path.to_owned(), cause })?;
    open_file(path, file, room)
}

fn open_file(path: &Path, file: SharedFile, room: &Room) -> Result<Media, OpenError> {
    let opened = Media::open(path, file, room).map_err(|cause| open_error(path, cause))?;
    opened.ok_or_else(|| OpenError::UnknownCompression { path: path.to_owned() })
}
