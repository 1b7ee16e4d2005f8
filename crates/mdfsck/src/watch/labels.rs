//! The content of the labels of a backup file, in the form in which the history stores it. The labels are read once,
//! and again only after the file has changed.

use std::io;
use std::path::Path;

use history::queue::Kind;
use jobs::inventory;
use serde::{Deserialize, Serialize};
use source::OpenError;
use source::backup::{self, BackupMedia, BackupSet, DamageKind, SetKind};

/// The result of reading the labels of a file.
#[derive(Serialize, Deserialize)]
pub(super) enum Labels {
    /// The file is not a backup.
    Other,
    /// The file has the name or the start of a backup, but its labels are damaged or not written yet. The text is the
    /// reason.
    Lost(String),
    /// The file may contain a database or a backup, but cannot be checked in its present form, for example because it
    /// is compressed. The text is the reason.
    Refused(String),
    /// The file is a backup.
    Backup(Media),
}

/// The labels of a backup file.
#[derive(Serialize, Deserialize)]
pub(super) struct Media {
    pub(super) media_set: Option<String>,
    /// Number of stripes in the media set.
    pub(super) stripes: u16,
    /// Number of this file's stripe, from 1.
    pub(super) stripe: u16,
    pub(super) sets: Vec<Set>,
}

/// A backup set.
#[derive(Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) position: u16,
    pub(super) guid: Option<String>,
    kind: char,
    pub(super) database: String,
    pub(super) server: String,
    pub(super) family: Option<String>,
    pub(super) finished: Option<String>,
    pub(super) bytes: u64,
    pub(super) has_checksums: bool,
    /// Whether the file ends before the end of the backup set.
    pub(super) is_cut: bool,
    /// Whether the labels of the file are damaged. A file that only ends too early does not count as damaged.
    pub(super) is_damaged: bool,
    /// For a differential, the GUID of the full backup that it is based on.
    pub(super) base: Option<String>,
    /// For a differential, the checkpoint LSN of the full backup that it is based on.
    pub(super) base_lsn: Option<String>,
    /// The LSN of the checkpoint that this backup made.
    pub(super) checkpoint: Option<String>,
}

impl Set {
    pub(super) fn kind(&self) -> Kind {
        match self.kind {
            'D' => Kind::Full,
            'I' => Kind::Differential,
            'L' => Kind::Log,
            'F' => Kind::Files,
            _ => Kind::Other,
        }
    }
}

/// The reason why a file is not checked. The path is removed from the text, since the line that is printed already
/// begins with the path.
fn refused(path: &Path, error: &OpenError) -> String {
    let text = error.to_string();
    let why = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
    format!("NOT CHECKED: {why}")
}

/// Whether a file may be a backup, according to its stored labels `kept`. If so, the file may get a verdict.
pub(super) fn may_be_backup(kept: &str) -> bool {
    kept != OTHER
}

/// The stored text of `Labels::Other`.
const OTHER: &str = "\"Other\"";

/// Reads the labels of a file.
///
/// # Errors
/// If the file cannot be read now.
pub(super) fn read(path: &Path) -> io::Result<Labels> {
    if !source::starts_backup(path)? {
        return Ok(match inventory::is_lost_backup(path) {
            true => Labels::Lost(backup::no_set(path).to_string()),
            false => inventory::unchecked(path).map_or(Labels::Other, |error| Labels::Refused(refused(path, &error))),
        });
    }
    match backup::media(path) {
        Ok(media) if !media.read_faults.failed.is_empty() && (media.sets.is_empty() || !media.damage.is_empty()) => {
            Err(io::Error::other("its labels cannot be read"))
        }
        Ok(media) if media.sets.is_empty() => Ok(Labels::Lost(backup::no_set(path).to_string())),
        Ok(media) => Ok(Labels::Backup(of(&media))),
        Err(OpenError::Io { cause, .. }) => Err(cause),
        Err(error) => Ok(Labels::Lost(error.to_string())),
    }
}

fn of(media: &BackupMedia) -> Media {
    let is_cut = |position: u16| {
        let is_named =
            |kind: &DamageKind| matches!(kind, DamageKind::SetIncomplete { position: named } if *named == position);
        let is_last = media.sets.last().is_some_and(|set| set.position == position);
        let is_end = |kind: &DamageKind| *kind == DamageKind::Truncated && is_last;
        media.damage.iter().any(|damage| is_named(&damage.kind) || is_end(&damage.kind))
    };
    let is_other = |kind: &DamageKind| !matches!(kind, DamageKind::Truncated | DamageKind::SetIncomplete { .. });
    let is_damaged = media.damage.iter().any(|damage| is_other(&damage.kind));
    let set = |set: &BackupSet| {
        let config = &set.config;
        let base_lsn = set.files.iter().find_map(|file| file.differential_base_lsn);
        Set {
            position: set.position,
            guid: set.guid.clone(),
            kind: match set.kind {
                SetKind::Full => 'D',
                SetKind::Differential => 'I',
                SetKind::Log => 'L',
                SetKind::Files | SetKind::Partial => 'F',
                SetKind::Other(_) => '?',
            },
            database: config.database.clone(),
            server: config.server.clone(),
            family: config.family_id.clone().or_else(|| config.binding_id.clone()),
            finished: config.finished.clone(),
            bytes: config.bytes,
            has_checksums: set.has_checksums,
            is_cut: is_cut(set.position),
            is_damaged,
            base: config.differential_base_guid.clone(),
            base_lsn: base_lsn.filter(|_| set.kind == SetKind::Differential).map(|lsn| lsn.to_string()),
            checkpoint: config.checkpoint_lsn.map(|lsn| lsn.to_string()),
        }
    };
    Media {
        media_set: media.media_set.clone(),
        stripes: media.families,
        stripe: media.family,
        sets: media.sets.iter().map(set).collect(),
    }
}

#[cfg(test)]
impl Media {
    /// Labels of a stripe with one full backup, for tests.
    pub(super) fn example(guid: &str, (stripe, stripes): (u16, u16), is_cut: bool) -> Self {
        let set = Set {
            position: 1,
            guid: Some(guid.to_owned()),
            kind: 'D',
            database: "Sales".to_owned(),
            server: "PROD1".to_owned(),
            family: Some("F".to_owned()),
            finished: Some("2026-11-21 22:00:00".to_owned()),
            bytes: 1000,
            has_checksums: true,
            is_cut,
            is_damaged: false,
            base: None,
            base_lsn: None,
            checkpoint: Some("1".to_owned()),
        };
        Self { media_set: Some("M".to_owned()), stripes, stripe, sets: vec![set] }
    }

    /// Turns the sets into differentials that are based on the set `base`.
    pub(super) fn based_on(mut self, base: &str) -> Self {
        for set in &mut self.sets {
            (set.kind, set.base) = ('I', Some(base.to_owned()));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_no_backup_has_no_verdict() {
        let kept = |labels: &Labels| may_be_backup(&serde_json::to_string(labels).unwrap());
        assert!(!kept(&Labels::Other));
        assert!(kept(&Labels::Lost(String::new())) && kept(&Labels::Backup(Media::example("A", (1, 1), false))));
    }
}
