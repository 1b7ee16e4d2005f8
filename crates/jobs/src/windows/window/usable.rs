//! Decides which parts of earlier windows a window can use.

use std::collections::BTreeMap;
use std::path::Path;

use check::part::{Part as Sums, fingerprint_of, pages_with_findings};
use format::PageId;
use history::History;
use history::windows::PartRow;
use parts::{SourceFile, Task};
use source::PageSource;

use crate::failure::Failure;
use crate::prepare::Prepared;
use crate::spread::Opened;
use crate::spread::evidence::Evidence;

/// For one part, the maximum number of pages with findings that are read again.
const MOST_PAGES: usize = 1 << 20;

/// The reason why no part of an earlier window can be used. `None` if some parts may be usable.
pub(super) fn differs(
    opened: &Opened,
    evidence: Option<&Evidence>,
    (files, prepared): (&[SourceFile], &Prepared<'_>),
) -> Option<String> {
    let Some(now) = evidence else {
        return Some("the database was not shut down cleanly, so its files may change (use --image for a storage snapshot, to which nothing writes)".to_owned());
    };
    match &opened.plan.options.evidence {
        None => Some("earlier windows stored nothing that proves that its files are unchanged".to_owned()),
        Some(then) => then.difference(now),
    }
    .or_else(|| opened.verify(files, prepared.catalog).err().map(|failure| failure.text))
}

/// The parts of a plan that the history has recorded, by task ID. The range of any other part is read again.
pub(super) fn recorded(history: Option<&Path>, opened: &Opened) -> BTreeMap<u32, PartRow> {
    let parts = |path| History::open_or_create(path)?.parts(opened.plan.plan.as_str());
    history.and_then(|path| parts(path).ok()).unwrap_or_default()
}

/// The usable parts of earlier windows. A part without findings is usable. A part with findings is usable if it can be
/// read, and if its pages with findings have not changed.
///
/// # Errors
///
/// If pages with findings have changed. The error text names these pages. No part of the earlier windows is usable in
/// this case.
pub(super) fn usable(
    opened: &Opened,
    source: &dyn PageSource,
    parts: BTreeMap<u32, PartRow>,
) -> Result<BTreeMap<u32, PartRow>, String> {
    let mut usable = BTreeMap::new();
    for (id, row) in parts {
        let Some(task) = opened.plan.tasks.get(id as usize) else { continue };
        let is_same = match &row.held {
            None => true,
            Some(then) => match held(opened, source, task) {
                Ok(Some(now)) if now.fingerprint != *then => return Err(now.differs(opened, source)),
                Ok(now) => now.is_some(),
                // The part is left out, so that its range is swept again.
                Err(_) => false,
            },
        };
        if is_same {
            usable.insert(id, row);
        }
    }
    Ok(usable)
}

/// The pages of a part that have findings, and a fingerprint of the present content of these pages.
pub(super) struct Held {
    first: PageId,
    last: PageId,
    pub(super) fingerprint: String,
}

impl Held {
    /// Returns the error text that says that the content of these pages has changed.
    fn differs(&self, opened: &Opened, source: &dyn PageSource) -> String {
        // For a backup, shows the path of the backup file. The data files inside the backup have the names that they
        // had on the server.
        let path = match source.backup() {
            Some(_) => opened.plan.files.first().map(|file| &file.path),
            None => source.files().iter().find(|file| file.file_id == self.first.file).map(|file| &file.path),
        };
        let name = path.map_or_else(|| opened.plan.database.clone(), |path| path.display().to_string());
        let pages = match self.first == self.last {
            true => format!("page {} with findings does", self.first),
            false => format!("pages with findings from {} to {} do", self.first, self.last),
        };
        format!(
            "{name}: {pages} not have the content that an earlier window read, although the file shows no write: either the \
            storage returns different data at each read, as with a bad disk, controller or cable, or the modification time \
            of the file was set back; look for disk errors in the system log, and check a copy on other storage"
        )
    }
}

/// The pages of a part that have findings, and a fingerprint of the present content of these pages. `None` if the part
/// has no findings.
///
/// # Errors
/// If the part is missing, damaged or cannot be read.
pub(super) fn held(opened: &Opened, source: &dyn PageSource, task: &Task) -> Result<Option<Held>, Failure> {
    let part = parts::Part { task: task.clone(), path: opened.folder.part_path(&opened.plan, task) };
    let (head, from) = opened.folder.read(&opened.plan, &part)?;
    let pages = pages_with_findings(opened.folder.key(), &mut Sums { head, from }, MOST_PAGES);
    let pages = pages.map_err(Failure::unable)?;
    let Some((first, last)) = pages.first().copied().zip(pages.last().copied()) else { return Ok(None) };
    let fingerprint = fingerprint_of(source, opened.folder.key(), pages).to_string();
    Ok(Some(Held { first, last, fingerprint }))
}
