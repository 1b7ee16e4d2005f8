//! Finds backups with sound copies of damaged pages. Searches for the newest chain of backups in which the copies of
//! these pages can be read and are sound.

use std::collections::{BTreeSet, HashSet};

use catalog::Database;
use check::SinglePages;
use format::{Lsn, PageId};
use source::PageSource;
use source::backup::{Chain, ChainSet, DatabaseChains, Restore, SetKind};

/// The maximum number of chains to try. For each chain, the backups are opened and the copies of the pages are read.
const MOST_TRIES: usize = 64;

/// The backups that may have copies of pages.
#[derive(Debug, Default)]
pub struct Backups {
    /// The backup sets found, by database.
    pub databases: Vec<DatabaseChains>,
    /// The maximum memory for the table of page positions in a backup, in bytes; `None` for the default.
    pub memory_bytes: Option<u64>,
}

/// The result of a search for copies.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The newest backups with sound copies of all pages.
    pub(crate) usable: Option<Usable>,
    /// Backup sets that were examined and cannot be used, newest first.
    pub(crate) rejected: Vec<Rejected>,
    /// Whether any backup set belongs to this database.
    pub(crate) has_any: bool,
}

/// A backup set that cannot be used.
#[derive(Debug)]
pub(crate) struct Rejected {
    /// The files of the set, as text.
    pub(crate) set: String,
    /// The reason why the set cannot be used.
    pub(crate) why: String,
}

/// Backups with sound copies.
#[derive(Debug)]
pub(crate) struct Usable {
    /// A full backup, the last differential backup based on it, and the later log backups.
    pub(crate) steps: Vec<ChainSet>,
    /// The number of page copies that were read, including the copies in the differential.
    pub(crate) copies: usize,
    /// A page that is in the differential, but not in the full backup; `None` if there is no such page.
    pub(crate) only_later: Option<PageId>,
    /// The range of log that is missing between the backups in `steps` and later log backups: its first LSN and its end
    /// LSN. `None` if no log is missing.
    pub(crate) gap: Option<(Lsn, Lsn)>,
}

impl Usable {
    /// Returns the first LSN after the log that the backups contain; `None` if the last backup set does not store this
    /// LSN.
    pub(crate) fn reaches(&self) -> Option<Lsn> {
        self.steps.last()?.set.config.last_lsn
    }

    /// The backup sets in [`Self::steps`] that are of this kind.
    pub(crate) fn of_kind(&self, kind: SetKind) -> impl Iterator<Item = &ChainSet> {
        self.steps.iter().filter(move |set| set.set.kind == kind)
    }

    /// The backup files, in the order in which a restore needs them.
    pub(crate) fn files(&self) -> Vec<String> {
        let paths = self.steps.iter().flat_map(|set| &set.paths);
        paths.map(|path| path.display().to_string()).collect()
    }

    /// The finish time of the last backup set, according to its label.
    pub(crate) fn finished(&self) -> Option<&str> {
        self.steps.last()?.set.config.finished.as_deref()
    }
}

/// Finds the newest backups of the database whose copies of `pages` are sound. Reads only these pages, and the
/// structures that locate extents in the backups.
pub(crate) fn search(
    backups: &Backups,
    source: &dyn PageSource,
    database: &Database,
    pages: &BTreeSet<PageId>,
    not_these: &[String],
) -> Search {
    let mut search = Search::default();
    let Some(chains) = of_database(backups, source, database) else { return search };
    search.has_any = true;
    let mut damaged = HashSet::new();
    for (number, set) in chains.sets.iter().enumerate() {
        if set.paths.iter().any(|path| not_these.contains(&path.display().to_string())) {
            damaged.insert(number);
        }
    }
    for (number, set) in chains
        .sets
        .iter()
        .enumerate()
        .rev()
        .filter(|(number, set)| set.set.kind == SetKind::Full && !damaged.contains(number))
    {
        if !set.is_whole() {
            let why = if set.missing_stripes > 0 {
                "some of its stripes are missing"
            } else {
                "it is damaged, so that no server restores it, or was made by an old release; 'mdfsck export FILE --damaged' saves the rows that it still has"
            };
            search.rejected.push(Rejected { set: name(set), why: format!("{why} (set {})", number + 1) });
        }
    }
    for _ in 0..MOST_TRIES.min(chains.sets.len() + 1) {
        let rest = chains.without(&damaged);
        let Some(chain) = rest.newest() else { break };
        match copies(backups, &rest, chain, database, pages) {
            Ok((copies, only_later)) => {
                let steps = chain.steps.iter().filter_map(|&step| rest.sets.get(step).cloned()).collect();
                search.usable = Some(Usable { steps, copies, only_later, gap: chain.gap });
                break;
            }
            Err((step, why)) => {
                search.rejected.extend(rest.sets.get(step).map(|set| Rejected { set: name(set), why }));
                // If the set was excluded before, another try would use the same backups, so the search ends.
                if !damaged.insert(step) {
                    break;
                }
            }
        }
    }
    search
}

/// Finds the backup sets of the database by the ID of the database in its files, or by the database name if the files
/// or the labels have no ID. `None` if there are no such sets.
fn of_database<'a>(backups: &'a Backups, source: &dyn PageSource, database: &Database) -> Option<&'a DatabaseChains> {
    let ids: BTreeSet<[u8; 16]> = source.files().iter().filter_map(|file| file.binding_guid).collect();
    let name = database.boot.as_ref().map(|boot| boot.name.as_str()).unwrap_or_default();
    let has_id = |chains: &&DatabaseChains| {
        let of_sets = chains.sets.iter().map(|set| set.set.config.binding_guid);
        of_sets.into_iter().any(|id| id != [0; 16] && ids.contains(&id))
    };
    let is_unknown = |chains: &&DatabaseChains| chains.sets.iter().all(|set| set.set.config.binding_guid == [0; 16]);
    let by_id = backups.databases.iter().rfind(has_id);
    by_id.or_else(|| {
        let named = |chains: &&DatabaseChains| chains.database == name && (ids.is_empty() || is_unknown(chains));
        backups.databases.iter().rfind(named)
    })
}

/// Reads the copies of `pages` in the full backup of a chain and in its differential. Returns the number of copies, and
/// a page that is only in the differential. If a set cannot be used, returns the index of the set and the reason.
fn copies(
    backups: &Backups,
    rest: &DatabaseChains,
    chain: &Chain,
    database: &Database,
    pages: &BTreeSet<PageId>,
) -> Result<(usize, Option<PageId>), (usize, String)> {
    let is_data = |step: &&usize| rest.sets.get(**step).is_some_and(|set| set.set.kind != SetKind::Log);
    let mut steps = chain.steps.iter().filter(is_data).peekable();
    let (mut opened, mut copies, mut only_later) = (Vec::new(), 0, None);
    while let Some(&step) = steps.next() {
        opened.extend(rest.sets.get(step));
        match sound_copies(backups, &opened, database, pages) {
            Ok(found) => copies += found,
            Err(Unusable::NoCopy(page)) if steps.peek().is_some() => only_later = Some(page),
            Err(Unusable::NoCopy(page)) => return Err((step, format!("it has no copy of page {page}"))),
            Err(Unusable::For(why)) => return Err((step, why)),
        }
    }
    Ok((copies, only_later))
}

/// The reason why the copies of the pages in the given backup sets cannot be used.
enum Unusable {
    /// The sets have no copy of this page.
    NoCopy(PageId),
    /// Another reason.
    For(String),
}

fn sound_copies(
    backups: &Backups,
    sets: &[&ChainSet],
    database: &Database,
    pages: &BTreeSet<PageId>,
) -> Result<usize, Unusable> {
    if sets.iter().any(|set| set.set.is_encrypted) {
        return Err(Unusable::For("it is encrypted: its pages cannot be read here".to_owned()));
    }
    let restore = Restore::of_sets(sets, backups.memory_bytes).map_err(|error| Unusable::For(error.to_string()))?;
    let mut single = SinglePages::new(database);
    for &page in pages {
        let Some(copy) = restore.pages.read_page(page) else {
            return Err(Unusable::NoCopy(page));
        };
        // A page in an extent that the backup does not contain reads as zeros.
        if copy.iter().all(|byte| *byte == 0) {
            return Err(Unusable::NoCopy(page));
        }
        if let Some(finding) = single.findings(&copy, page).first() {
            let why = format!("its copy of page {page} is damaged too (message {})", finding.check.msg);
            return Err(Unusable::For(why));
        }
    }
    Ok(pages.len())
}

/// The files of a set, as text.
pub(crate) fn name(set: &ChainSet) -> String {
    let paths: Vec<String> = set.paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
