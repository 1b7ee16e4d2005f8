//! What redo has made of the log in backups is kept beside the ledger of the full backup. The proof of the next log backup
//! then goes on from there, and reads only the new log.
//!
//! The pages are kept as they were before the changes of open transactions were undone, together with the point in the
//! log. They count only if each file of the restore is the same as then, and if the next backups follow in the same
//! restore; otherwise the log is applied from the differential backup on. The report is the same in both cases.

use std::io;
use std::path::PathBuf;

use format::PageId;
use log::Log;
use parts::{BYTES_PER_PAGE, Ledger, Ready, RedoneFile, Room};
use recovery::{Analysis, Reached, Recovery, RedonePages, Refusal, Settings};
use serde::{Deserialize, Serialize};
use source::backup::SetKind;
use sums::HashKey;

use crate::host::warn;
use crate::input::{Backups, Input};
use crate::ledgers::{path_of, redo_beside};
use crate::recover::{GoingOn, granted};
use crate::request::Request;
use crate::spread::Before;
use crate::spread::evidence::FileIdentity;
use crate::spread::ledger::Base;
use crate::version::BUILD;

/// The most pages that are kept, whatever the memory grant: 8 GB.
const MOST_PAGES: u64 = 1 << 20;
/// The list of kept pages needs at most this part of the memory grant.
const GRANT_PER_LIST: u64 = 16;
/// The file is written anew without replaced pages when these need more than the pages in use, and more than this.
const MOST_REPLACED_BYTES: u64 = 16 << 20;

/// A backup set of the restore.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptSet {
    guid: Option<String>,
    position: u16,
    files: Vec<FileIdentity>,
}

/// What the kept pages belong to.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    build: String,
    /// The sets of the restore: the full backup, the differential backup if there is one, and the log backups.
    sets: Vec<KeptSet>,
    /// The memory grant with which the log could be applied, in bytes.
    grant_bytes: u64,
    has_version_store: bool,
    reached: Reached,
}

/// What earlier proofs have kept of redo, and what this one keeps.
pub struct Redo {
    path: PathBuf,
    key: HashKey,
    room: Room,
    sets: Vec<KeptSet>,
    /// The pages in the file, and the point in the log that belongs to them.
    former: Option<(Pages, About)>,
    /// Whether the file is at a later point of this restore, and stays there.
    is_ahead: bool,
    ready: Option<Ready>,
}

/// The pages in a file.
struct Pages(RedoneFile);

impl RedonePages for Pages {
    fn pages(&self) -> Vec<PageId> {
        self.0.pages().map(|(file, page)| PageId::new(file, page)).collect()
    }

    fn has(&self, page: PageId) -> bool {
        self.0.has((page.file, page.page))
    }

    fn read(&self, page: PageId) -> io::Result<Vec<u8>> {
        self.0.read((page.file, page.page))
    }

    fn keep(&mut self, page: PageId, bytes: &[u8]) {
        self.0.put((page.file, page.page), bytes);
    }
}

impl Redo {
    /// Looks for what was kept for these backups. `None` if there is no ledger of their full backup, or no log backup.
    pub fn of(request: &Request, before: Option<&Before>, input: &Input) -> Option<Self> {
        let (history, before, Input::Backups(backups)) = (request.results.history.as_deref()?, before?, input) else {
            return None;
        };
        let used = backups.pages.sets();
        let full = used.first().filter(|set| set.kind == SetKind::Full)?;
        let has_log = used.last().is_some_and(|set| set.kind == SetKind::Log);
        if !has_log || backups.stop.is_some() || request.windows.window.is_some() || request.recovery.no_log {
            return None;
        }
        let ledger = path_of(history, full.guid.as_deref()?);
        let (key, base) = Ledger::<Base>::key_of(&ledger, &BUILD)?;
        let sets: Option<Vec<KeptSet>> = used
            .iter()
            .map(|set| {
                let files: Option<Vec<_>> = set.paths.iter().map(|path| before.of_path(path)).collect();
                let mut files = files?;
                // The stripes may be given in any order.
                files.sort_by(|one, other| one.path().cmp(other.path()));
                Some(KeptSet { guid: set.guid.clone(), position: set.position, files })
            })
            .collect();
        let of_ledger = ledger.metadata().map_or(0, |metadata| metadata.len());
        let most_bytes = request.keep_parts.unwrap_or(base.most_bytes);
        let granted = granted(&request.recovery);
        let room = Room {
            bytes: most_bytes.saturating_sub(of_ledger),
            pages: (granted / GRANT_PER_LIST / BYTES_PER_PAGE).min(MOST_PAGES),
        };
        let path = redo_beside(&ledger);
        let mut this = Self { path, key, room, sets: sets?, former: None, is_ahead: false, ready: None };
        if let Some((file, about)) = this.open() {
            this.is_ahead = about.sets.len() > this.sets.len() && about.sets.starts_with(&this.sets);
            // With less memory, the log might be refused.
            let is_of_it = about.sets.len() > 1 && this.sets.starts_with(&about.sets) && about.grant_bytes <= granted;
            this.former = is_of_it.then(|| this.compact(file)).flatten().map(|file| (Pages(file), about));
        }
        Some(this)
    }

    /// Opens the file, if this build has made it for this ledger.
    fn open(&self) -> Option<(RedoneFile, About)> {
        let (file, about) = RedoneFile::open(&self.path, self.key.clone(), self.room)?;
        let about: About = serde_json::from_slice(&about).ok()?;
        (about.build == *BUILD).then_some((file, about))
    }

    /// The file, or a new one with the pages in use if too many of its bytes are of no use.
    fn compact(&self, file: RedoneFile) -> Option<RedoneFile> {
        let (used, all) = file.sizes();
        let is_bloated = all.saturating_sub(used) > used.max(MOST_REPLACED_BYTES);
        if is_bloated { self.copied(&file) } else { Some(file) }
    }

    /// A new file with the pages in use.
    fn copied(&self, from: &RedoneFile) -> Option<RedoneFile> {
        let mut to = RedoneFile::create(&self.path, self.key.clone(), self.room).ok()?;
        for page in from.pages() {
            to.put(page, &from.read(page).ok()?);
        }
        (!to.has_failed()).then_some(to)
    }

    /// Writes what the next proof needs, under a name that does not count yet.
    fn finish(&mut self, pages: Option<Pages>, recovery: &Recovery, settings: &Settings) {
        let (Some(Pages(file)), Some(reached)) = (pages, recovery.reached.clone()) else { return };
        let about = About {
            build: BUILD.clone(),
            sets: self.sets.clone(),
            grant_bytes: settings.grant_bytes,
            has_version_store: settings.has_version_store,
            reached,
        };
        // Without room, the next proof goes on from an earlier point, or from the differential backup.
        self.ready = serde_json::to_vec(&about).ok().and_then(|about| file.finish(&about).ok());
    }

    /// For recovery.
    pub fn going_on(&mut self) -> &mut dyn GoingOn {
        self
    }

    /// Keeps what redo has made. Called when the state was proven by change.
    pub fn commit(self) {
        let Self { path, ready: Some(ready), .. } = self else { return };
        if let Err(error) = ready.commit() {
            warn(format!("{}: cannot be written: {error}; the next proof applies all of the log", path.display()));
        }
    }
}

impl GoingOn for Redo {
    fn recover(&mut self, backups: &Backups, log: &Log, settings: &Settings) -> Result<(Recovery, bool), Refusal> {
        if let Some((mut pages, about)) = self.former.take()
            && about.has_version_store == settings.has_version_store
            && let Ok(recovery) = go_on((backups, log), &about.reached, settings, &mut pages)
        {
            let is_same = about.sets == self.sets && recovery.reached.as_ref() == Some(&about.reached);
            if !is_same {
                self.finish(Some(pages), &recovery, settings);
            }
            return Ok((recovery, true));
        }
        let file = || RedoneFile::create(&self.path, self.key.clone(), self.room).ok();
        let mut pages = if self.is_ahead { None } else { file().map(Pages) };
        let analysis = Analysis::of_restore(backups.start, log, None, settings)?;
        let kept = pages.as_mut().map(|pages| -> &mut dyn RedonePages { pages });
        let recovery = Recovery::keeping(&backups.pages, log, analysis, settings, kept)?;
        self.finish(pages, &recovery, settings);
        Ok((recovery, false))
    }
}

fn go_on(
    (backups, log): (&Backups, &Log),
    reached: &Reached,
    settings: &Settings,
    pages: &mut Pages,
) -> Result<Recovery, Refusal> {
    let analysis = Analysis::after(backups.start, log, reached, settings)?;
    Recovery::keeping(&backups.pages, log, analysis, settings, Some(pages))
}
