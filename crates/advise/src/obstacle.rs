//! The possible reasons why pages cannot be restored one by one.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Database;
use format::allocation::FixedPage;
use format::boot::status;
use format::{Lsn, PageId};

use crate::backups::Usable;
use crate::damage::Damage;

/// The maximum number of pages of a file that one RESTORE sequence accepts.
pub(crate) const MOST_PAGES: usize = 1000;

/// The recovery model, which decides how long the database keeps its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Model {
    /// Checkpoints truncate the log: the model is simple, or no full backup has started a log chain.
    Simple,
    /// The database keeps the log for log backups, under the full or bulk-logged model.
    Full {
        /// The LSN up to which the log was backed up.
        backed_up: Lsn,
        /// Whether the model is bulk-logged, under which the log may lack the changes of bulk operations.
        is_bulk_logged: bool,
    },
}

impl Model {
    /// The recovery model of a database; [`Self::Simple`] if its boot page cannot be read.
    pub(crate) fn of(database: &Database) -> Self {
        match &database.boot {
            Some(boot) if !boot.is_simple_recovery() && boot.log_backup_chain_origin != Lsn::default() => {
                Self::Full { backed_up: boot.log_backup_lsn, is_bulk_logged: boot.status & status::BULK_LOGGED != 0 }
            }
            _ => Self::Simple,
        }
    }

    /// Whether all log from the backups in `usable` to the present exists, according to the backup labels and the boot
    /// page.
    pub(crate) fn has_whole_log(self, usable: &Usable) -> bool {
        matches!(self, Self::Full { backed_up, .. } if missing_log(usable, backed_up).is_none())
    }

    /// The risk that the recovery model adds to a restore with log; empty if the model adds no risk.
    pub(crate) fn risk(self) -> &'static str {
        match self {
            Self::Full { is_bulk_logged: true, .. } => {
                " The recovery model is bulk-logged: after a bulk operation, a log backup fails if it meets a damaged page. Back \
                 up the tail first; if this backup fails, no backup has the work since the last log backup."
            }
            _ => "",
        }
    }
}

/// The reason why pages cannot be restored one by one; `None` if a page restore is possible.
pub(crate) fn obstacle(damage: &Damage, pages: &BTreeSet<PageId>, model: Model, usable: &Usable) -> Option<String> {
    let fixed = pages.iter().find_map(|page| Some((page, FixedPage::at(*page)?)));
    if let Some((page, fixed)) = fixed {
        return Some(format!("page {page} is a {} page, which RESTORE cannot restore one by one", kind_name(fixed)));
    }
    if damage.catalog.critical {
        return Some("pages of critical system tables cannot be restored one by one".to_owned());
    }
    if let Some(file) = damage.cut_files.first() {
        return Some(format!("file {file} was cut off: its end is missing"));
    }
    if damage.catalog.is_logical || damage.other.is_logical {
        return Some("the catalog or references between pages are damaged too".to_owned());
    }
    if let Some(page) = usable.only_later {
        return Some(format!("page {page} is not in the full backup, and a page restore starts with the full backup"));
    }
    let mut by_file: BTreeMap<u16, usize> = BTreeMap::new();
    pages.iter().for_each(|page| *by_file.entry(page.file).or_default() += 1);
    if let Some((file, count)) = by_file.iter().find(|(_, count)| **count > MOST_PAGES) {
        return Some(format!(
            "{count} pages of file {file} are damaged, and one restore accepts at most {MOST_PAGES} pages of a file"
        ));
    }
    match model {
        Model::Simple => {
            Some("the log chain is broken (simple recovery, or no full backup since the switch to full)".to_owned())
        }
        Model::Full { backed_up, .. } => missing_log(usable, backed_up),
    }
}

/// Describes the missing log: a gap between the backups in `usable`, or between their end and the log that the database
/// still has. `None` if no log is missing.
fn missing_log(usable: &Usable, backed_up: Lsn) -> Option<String> {
    if let Some((from, to)) = usable.gap {
        return Some(format!("log backups are missing: from LSN {} to {}", lsn(from), lsn(to)));
    }
    match usable.reaches() {
        Some(reaches) if reaches < backed_up => Some(format!(
            "log backups are missing: the database's log was backed up to LSN {}, but the given backups end at {}",
            lsn(backed_up),
            lsn(reaches)
        )),
        None => Some("the backups do not say how far their log reaches".to_owned()),
        Some(_) => None,
    }
}

/// Formats an LSN for texts: three hexadecimal numbers for the VLF, the block and the slot.
pub(crate) fn lsn(lsn: Lsn) -> String {
    format!("{:08x}:{:08x}:{:04x}", lsn.vlf, lsn.block, lsn.slot)
}

fn kind_name(fixed: FixedPage) -> &'static str {
    match fixed {
        FixedPage::FileHeader => "file header",
        FixedPage::Pfs => "PFS",
        FixedPage::Gam => "GAM",
        FixedPage::Sgam => "SGAM",
        FixedPage::DiffMap => "DIFF",
        FixedPage::MlMap => "ML",
        FixedPage::Boot => "boot",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: i32 = 1000;

    /// The reason why these pages of a table cannot be restored one by one.
    fn why(pages: impl IntoIterator<Item = PageId>, model: Model) -> String {
        let pages: BTreeSet<PageId> = pages.into_iter().collect();
        let mut damage = Damage::default();
        damage.tables.entry(ORDERS).or_default().pages.clone_from(&pages);
        obstacle(&damage, &pages, model, &Usable { steps: Vec::new(), copies: 1, only_later: None, gap: None })
            .unwrap_or_default()
    }

    fn full() -> Model {
        Model::Full { backed_up: Lsn::default(), is_bulk_logged: false }
    }

    #[test]
    fn no_fixed_page_is_restored_by_itself() {
        for page in [0, 1, 2, 3, 6, 7, 9, 8088] {
            let page = PageId::new(1, page);
            assert!(FixedPage::at(page).is_some(), "{page}");
            assert!(why([PageId::new(1, 100), page], full()).contains("cannot restore one by one"), "{page}");
        }
        assert!(!why([PageId::new(3, 9)], full()).contains("one by one"), "the boot page is in the first file only");
    }

    #[test]
    fn one_restore_takes_a_thousand_pages_of_each_file() {
        let pages = |file, count: u32| (100..100 + count).map(move |page| PageId::new(file, page));
        assert!(why(pages(1, 1001), full()).contains("at most 1000 pages of a file"));
        let both = pages(1, 1000).chain(pages(3, 1000));
        assert_eq!(why(both, full()), "the backups do not say how far their log reaches", "nothing else is in the way");
    }

    #[test]
    fn a_log_that_is_not_kept_is_in_the_way() {
        assert!(why([PageId::new(1, 100)], Model::Simple).contains("simple recovery"));
    }
}
