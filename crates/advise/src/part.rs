//! The part of a database that a restore of files or filegroups covers. The part contains all damaged pages, but not
//! the whole database.

use std::collections::{BTreeMap, BTreeSet};

use format::PageId;
use format::allocation::FixedPage;
use script::quote_text;

use crate::damage::Damage;
use crate::request::Request;

/// The ID of the primary file, and of the primary filegroup.
const PRIMARY: u16 = 1;

/// Files and filegroups to restore.
pub(crate) struct Part {
    /// The names of the files and filegroups, for texts: `the file Data2`.
    pub(crate) name: String,
    /// The clauses for the files and filegroups in RESTORE: `FILE = N'Data2'`, `FILEGROUP = N'Archive'`.
    pub(crate) clauses: Vec<String>,
    /// Whether the part contains a file of the primary filegroup. If so, no edition of SQL Server restores it online.
    pub(crate) is_primary: bool,
}

/// A file of the database.
struct File {
    filegroup: u16,
    name: String,
}

/// The files that contain all damaged pages. `None` if only a restore of the whole database helps. This is the case if
/// all files are damaged, if the catalog is damaged, or if a page is damaged that the database needs to start.
pub(crate) fn part(request: &Request<'_>, damage: &Damage, pages: &BTreeSet<PageId>) -> Option<Part> {
    if !damage.catalog.ids.is_empty() || damage.other.is_logical {
        return None;
    }
    let damaged: BTreeSet<u16> = pages.iter().map(|page| page.file).chain(damage.cut_files.iter().copied()).collect();
    let starts = |page: &PageId| matches!(FixedPage::at(*page), Some(FixedPage::FileHeader | FixedPage::Boot));
    if damage.cut_files.contains(&PRIMARY) || pages.iter().any(|page| page.file == PRIMARY && starts(page)) {
        return None;
    }
    let files = files(request);
    if damaged.is_empty() || files.keys().all(|file| damaged.contains(file)) {
        return None;
    }
    let (mut names, mut clauses, mut is_primary) = (Vec::new(), Vec::new(), false);
    let mut whole = BTreeSet::new();
    for &id in &damaged {
        let file = files.get(&id)?;
        is_primary |= file.filegroup == PRIMARY;
        let group: Vec<u16> =
            files.iter().filter(|(_, other)| other.filegroup == file.filegroup).map(|(id, _)| *id).collect();
        let row = request.database.filegroups.iter().find(|row| row.id == file.filegroup);
        match row.filter(|row| group.len() > 1 && !row.name.is_empty() && group.iter().all(|id| damaged.contains(id))) {
            Some(row) => {
                if whole.insert(row.id) {
                    names.push(format!("the filegroup {}", row.name));
                    clauses.push(format!("FILEGROUP = {}", quote_text(&row.name)));
                }
            }
            None => {
                names.push(format!("the file {}", file.name));
                clauses.push(format!("FILE = {}", quote_text(&file.name)));
            }
        }
    }
    Some(Part { name: names.join(" and "), clauses, is_primary })
}

/// The data files by ID. Their names come from the catalog, or from the file headers if the catalog has none.
fn files(request: &Request<'_>) -> BTreeMap<u16, File> {
    const DATA: u8 = 0;
    let given = request.source.files().iter();
    let mut files: BTreeMap<u16, File> = given
        .map(|file| (file.file_id, File { filegroup: file.filegroup, name: file.logical_name.clone() }))
        .filter(|(_, file)| !file.name.is_empty())
        .collect();
    let rows = request.database.files.iter().filter(|row| row.file_type == DATA && !row.logical_name.is_empty());
    files.extend(rows.map(|row| (row.file_id, File { filegroup: row.filegroup, name: row.logical_name.clone() })));
    files
}
