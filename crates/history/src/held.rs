//! Records which backups contain a finding. A finding in a backup is gone only when no existing backup contains it any
//! more. If a later backup does not contain the finding, this proves nothing about an earlier backup that still exists.

use std::path::Path;

use rusqlite::{Transaction, params};

use crate::identity::{Identity, Ids};

/// The files that a run has read. If these files are a backup, the run's findings are recorded for that backup.
pub(crate) struct Held<'a> {
    pub(crate) transaction: &'a Transaction<'a>,
    pub(crate) identity: &'a Identity,
    pub(crate) ids: Ids,
    /// The name of this machine.
    pub(crate) host: &'a str,
}

/// A backup that contains a finding.
struct Holder {
    image: i64,
    identity: String,
    host: String,
    paths: String,
}

impl Held<'_> {
    pub(crate) fn are_backups(&self) -> bool {
        self.identity.kind == "backup"
    }

    /// Records that this run's backup contains a finding.
    pub(crate) fn note(&self, finding: i64) -> rusqlite::Result<()> {
        if !self.are_backups() {
            return Ok(());
        }
        let put = "INSERT OR IGNORE INTO finding_file (finding, image, host, paths) VALUES (?1, ?2, ?3, ?4)";
        let values = params![finding, self.ids.image, self.host, self.identity.files];
        self.transaction.prepare_cached(put)?.execute(values).map(drop)
    }

    /// Deletes what is recorded for those backups on this machine that no longer exist, because such a backup no longer
    /// contains findings.
    pub(crate) fn forget_gone(&self) -> rusqlite::Result<()> {
        if !self.are_backups() {
            return Ok(());
        }
        let mut holders = self.transaction.prepare(
            "SELECT DISTINCT h.image, i.identity, h.host, h.paths FROM finding f JOIN finding_file h ON h.finding = f.id
             JOIN image i ON i.id = h.image WHERE f.source = ?1",
        )?;
        let rows = holders.query_map([self.ids.source], |row| {
            Ok(Holder { image: row.get(0)?, identity: row.get(1)?, host: row.get(2)?, paths: row.get(3)? })
        })?;
        for holder in rows.collect::<rusqlite::Result<Vec<_>>>()? {
            if !self.may_be_there(&holder)? {
                let gone = "DELETE FROM finding_file WHERE image = ?2 AND host = ?3 AND paths = ?4
                     AND finding IN (SELECT id FROM finding WHERE source = ?1)";
                let values = params![self.ids.source, holder.image, holder.host, holder.paths];
                self.transaction.execute(gone, values)?;
            }
        }
        Ok(())
    }

    /// Whether another backup still contains a finding. This run looked for the finding in its own backup and did not
    /// see it.
    pub(crate) fn is_still_held(&self, finding: i64) -> rusqlite::Result<bool> {
        let not_here = "DELETE FROM finding_file WHERE finding = ?1 AND image = ?2 AND host = ?3 AND paths = ?4";
        let values = params![finding, self.ids.image, self.host, self.identity.files];
        self.transaction.prepare_cached(not_here)?.execute(values)?;
        self.is_held(finding)
    }

    /// Whether all backups that contained a finding are gone. False if this run read data files.
    pub(crate) fn is_lost(&self, finding: i64) -> rusqlite::Result<bool> {
        Ok(self.are_backups() && !self.is_held(finding)?)
    }

    fn is_held(&self, finding: i64) -> rusqlite::Result<bool> {
        let query = "SELECT EXISTS (SELECT 1 FROM finding_file WHERE finding = ?1)";
        self.transaction.prepare_cached(query)?.query_row([finding], |row| row.get(0))
    }

    fn may_be_there(&self, holder: &Holder) -> rusqlite::Result<bool> {
        if holder.host != self.host {
            return Ok(true);
        }
        if holder.paths == self.identity.files {
            // The recorded files are the files that this run read. These files contain the image `ids.image`, because
            // this run read that image from them. If the recorded image is a different one, the files still contain it
            // only if one of its backup sets is among the sets that this run did not read.
            return Ok(holder.image == self.ids.image || self.has_set(&holder.identity));
        }
        let paths: Vec<String> = serde_json::from_str(&holder.paths).unwrap_or_default();
        if paths.iter().any(|path| path.contains("://")) {
            let gone = "SELECT EXISTS (SELECT 1 FROM backup WHERE paths = ?1 AND gone_at IS NOT NULL)
                 AND NOT EXISTS (SELECT 1 FROM backup WHERE paths = ?1 AND gone_at IS NULL)";
            let is_gone: bool = self.transaction.query_row(gone, [&holder.paths], |row| row.get(0))?;
            return Ok(!is_gone);
        }
        // If a path cannot be examined, its file is assumed to exist.
        Ok(paths.iter().any(|path| Path::new(path).try_exists().unwrap_or(true)))
    }

    /// Whether the files of this run also contain a backup set of `image` that the run did not read. `image` is the
    /// text that identifies an image; the second word of the text lists the positions of the backup sets.
    fn has_set(&self, image: &str) -> bool {
        let positions = image.split(' ').nth(1).unwrap_or_default().split('+');
        positions
            .filter_map(|position| position.parse().ok())
            .any(|position| self.identity.other_sets.contains(&position))
    }
}
