//! Data files in windows of time: which of their extents may have changed since the last full backup, and which full backup
//! this is.
//!
//! A change that is on disk may be missing in the differential maps on disk, because the server writes the maps at a
//! checkpoint. The log has all of these changes. So an extent may have changed if the maps mark it, as stored or as
//! recovered, if the log names one of its pages, or if recovery has made one of them.

use std::fs;
use std::path::Path;

use check::part::digest;
use findings::{RecoveryDoubtKind, RecoveryState, Scope};
use format::boot::Boot;
use format::file_header::FileHeader;
use format::protection::undo_torn_bits;
use format::{Lsn, Page, PageBytes, PageId, PageType};
use parts::Ledger;
use source::{ExtentSet, PageSource, read_settled};
use sums::HashKey;

use super::{Base, Opened, former, fresh, ledgers, or_fresh, path_in_scope, scope_name};
use crate::host::warn;
use crate::prepare::Prepared;
use crate::recover::is_tempdb;
use crate::request::Request;

/// What the differential maps and the log of data files say.
pub(crate) struct Snapshot {
    /// Identifies the database among others with the same history.
    pub(crate) set: String,
    pub(crate) database: String,
    /// The full backup since which the maps mark changes, as the header of each file and the boot page name it.
    pub(crate) bases: Vec<String>,
    /// The full backup, for people.
    pub(crate) label: String,
    /// The state of the files, for people.
    pub(crate) image: String,
    /// The extents that the maps mark.
    pub(crate) marked: ExtentSet,
    /// The extents that may have changed.
    pub(crate) changed: ExtentSet,
}

impl Snapshot {
    /// `stored` has the pages as they are in the files. An error says why it is unknown what has changed.
    pub(crate) fn of(stored: &dyn PageSource, prepared: &Prepared<'_>) -> Result<Self, String> {
        let database = &prepared.database;
        if stored.snapshot().is_some() || stored.carved().is_some() {
            return Err("only the differential maps of data files are used".to_owned());
        }
        if database.is_encrypted || is_tempdb(database) {
            return Err("the differential maps of tempdb and of encrypted databases are not used".to_owned());
        }
        let boot = database.boot.as_ref().ok_or("the boot page cannot be read")?;
        let source = prepared.recovered.pages_or(stored);
        let maps = |source| {
            ExtentSet::marked(source).map_err(|page| format!("page {page}, a differential map, cannot be read"))
        };
        let mut marked = maps(stored)?;
        let mut changed = of_log(stored, prepared)?;
        if prepared.recovered.pages.is_some() {
            marked.add(&maps(source)?);
        }
        changed.add(&marked);
        let (bases, lsn) = bases(stored)?;
        let family: String = boot.family_guid.iter().map(|byte| format!("{byte:02x}")).collect();
        // Two databases with the same hash would only let each other's windows begin again.
        let name = digest(&HashKey::new([0; HashKey::BYTES]), boot.name.as_bytes());
        let name: String = name.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            set: format!("{family}-{name}"),
            database: boot.name.clone(),
            bases,
            label: if lsn == Lsn::default() { "no full backup".to_owned() } else { format!("full backup at {lsn}") },
            image: format!("data files, checkpoint {}", boot.checkpoint_lsn),
            marked,
            changed,
        })
    }
}

/// Why a window cannot use a ledger.
pub(crate) struct NoLedger {
    pub(crate) why: String,
    /// The extents of which the differential maps have missed a change.
    pub(crate) missed: Vec<String>,
}

impl From<String> for NoLedger {
    fn from(why: String) -> Self {
        Self { why, missed: Vec::new() }
    }
}

impl<'a> Opened<'a> {
    /// Opens the ledger of data files for a window of time, or makes one. What earlier windows have kept is used only if
    /// the differential maps are based on the same full backup, and still have all marks that they had then.
    pub(super) fn of_files(
        request: &Request,
        history: &'a Path,
        (snapshot, scope): (&Snapshot, &Scope),
    ) -> Result<Self, NoLedger> {
        let path = path_in_scope(history, &snapshot.set, scope);
        let base = Base::of_files(snapshot, (request.keep_parts, scope));
        // What another build of mdfsck has found counts too, and what windows over other tables have found.
        let is_same = |known: &Base| known.set == base.set && known.bases == base.bases;
        let known = ledgers(history).into_iter().filter_map(|(_, path, _)| Ledger::<Base>::look(&path).ok());
        let known = known.map(|known| known.base).filter(is_same);
        let missed: Vec<String> = known.flat_map(|known| known.missed).collect();
        if !missed.is_empty() {
            let why =
                "the differential maps have missed a change, so no window relies on them until the next full backup";
            return Err(NoLedger { why: why.to_owned(), missed });
        }
        let kept = path.exists().then(|| former(&path, &base, request.keep_parts)).map(|kept| {
            let ledger = kept?;
            let marked = ledger.opened_bytes().ok_or_else(|| format!("{}: the ledger is damaged", path.display()))?;
            match snapshot.marked.first_missing(&marked) {
                None => Ok(ledger),
                Some(page) => Err(format!(
                    "the differential maps were cleared although there is no new full backup: the extent of page {page} is \
                     not marked any more"
                )),
            }
        });
        let (mut ledger, is_new) = or_fresh(request, &path, base, kept)?;
        ledger.keep_opened(Some(snapshot.marked.to_bytes()));
        Ok(Self { ledger, is_new, later: Vec::new(), image: snapshot.image.clone(), pages: None, history, path })
    }

    /// Notes that the differential maps have missed changes in the extents of these pages, and forgets all parts.
    pub(crate) fn distrust(self, request: &Request, pages: &[PageId]) -> NoLedger {
        let path = self.path.clone();
        let missed: Vec<String> = pages.iter().map(ToString::to_string).collect();
        let base = Base { missed: missed.clone(), ..self.ledger.base().clone() };
        // On Windows, a file that is open cannot be replaced.
        drop(self);
        let noted =
            fresh(request, &path, base).and_then(|ledger| ledger.keep_empty().map_err(|error| error.to_string()));
        if let Err(error) = noted {
            warn(format!("{error}; the next window may rely on the differential maps"));
            // What is left must not be used.
            let _ = fs::remove_file(&path);
        }
        let why = format!(
            "the pages from {} on have other bytes than an earlier window has read, although the differential maps say that \
             they have not changed; no window relies on these maps until the next full backup",
            missed.join(", ")
        );
        NoLedger { why, missed }
    }
}

impl Base {
    fn of_files(snapshot: &Snapshot, (most_bytes, scope): (Option<u64>, &Scope)) -> Self {
        Self {
            set: snapshot.set.clone(),
            database: snapshot.database.clone(),
            label: snapshot.label.clone(),
            scope: scope_name(scope),
            files: Vec::new(),
            most_bytes: most_bytes.unwrap_or(u64::MAX),
            bases: snapshot.bases.clone(),
            missed: Vec::new(),
        }
    }
}

/// The extents that the log says have changed since the last checkpoint. An error says why the log does not tell.
fn of_log(stored: &dyn PageSource, prepared: &Prepared<'_>) -> Result<ExtentSet, String> {
    let recovered = &prepared.recovered;
    let state = recovered.summary.as_ref().map(|summary| summary.state);
    let Some(pages) = &recovered.pages else {
        let is_clean = prepared.database.boot.as_ref().is_some_and(catalog::Boot::clean_shutdown);
        return match state {
            None | Some(RecoveryState::NotNeeded | RecoveryState::Off) if is_clean => Ok(ExtentSet::of(stored.files())),
            _ => {
                Err("the database was in use, and its log was not applied, so the latest changes are unknown"
                    .to_owned())
            }
        };
    };
    let is_of_log = |kind: &RecoveryDoubtKind| {
        matches!(kind, RecoveryDoubtKind::Log(_) | RecoveryDoubtKind::LogEnd | RecoveryDoubtKind::Contradicted(_))
    };
    let mut doubts = recovered.summary.iter().flat_map(|summary| &summary.doubts);
    if doubts.any(|doubt| is_of_log(&doubt.kind)) {
        return Err("the log could not be read completely, so the latest changes are unknown".to_owned());
    }
    let recovery = pages.recovery();
    if recovery.analysis.has_bulk {
        return Err("a bulk operation in the log has written pages that the log does not name".to_owned());
    }
    let mut changed = recovery.analysis.named.clone();
    recovery.pages().for_each(|page| changed.insert(page));
    Ok(changed)
}

/// The differential base as each file names it, and its latest LSN.
fn bases(stored: &dyn PageSource) -> Result<(Vec<String>, Lsn), String> {
    let (mut bases, mut latest) = (Vec::new(), Lsn::default());
    let hex = |guid: [u8; 16]| guid.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for file in stored.files() {
        let bytes = sound(stored, PageId::new(file.file_id, 0), PageType::FileHeader)?;
        let header = FileHeader::read(Page::new(&bytes)).ok_or_else(|| unread(PageId::new(file.file_id, 0)))?;
        let (guid, lsn) = (header.differential_base_guid(), header.differential_base_lsn());
        latest = latest.max(lsn);
        bases.push(format!("{} {} {} {lsn}", file.file_id, hex(header.file_guid()), hex(guid)));
    }
    let bytes = sound(stored, PageId::BOOT, PageType::Boot)?;
    let boot = Boot::read(Page::new(&bytes)).ok_or_else(|| unread(PageId::BOOT))?;
    bases.push(hex(boot.differential_base_guid()));
    Ok((bases, latest))
}

fn sound(source: &dyn PageSource, page: PageId, kind: PageType) -> Result<Box<PageBytes>, String> {
    let (mut bytes, verified) = read_settled(source, page).ok_or_else(|| unread(page))?;
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    let is_sound = verified.is_ok() && header.kind() == Some(kind) && header.page_id() == page;
    if is_sound { Ok(bytes) } else { Err(unread(page)) }
}

fn unread(page: PageId) -> String {
    format!("page {page}, which names the last full backup, cannot be read")
}
