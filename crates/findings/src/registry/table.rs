//! The table of checks, grouped by subject. Message texts are taken from sys.messages of SQL Server 2022. Message
//! states are taken from transcripts of real output, if a transcript shows the message.

use super::{Check, Class, Phase, Policy, Repair, ReportOrder};

macro_rules! checks {
    ($($name:ident = $id:literal, $msg:literal state $state:literal, $phase:ident, $damage:ident $(($part:ident))?, $class:ident, $repair:ident,
       $physical:literal $(listed $listed:ident)? $([$($policy:ident),+])?,
       $template:literal, brief $brief:literal, must $invariant:literal, cause $cause:literal, action $action:expr;)*) => {
        $(
            #[doc = $invariant]
            pub static $name: Check = Check {
                id: $id,
                msg: $msg,
                state: $state,
                phase: Phase::$phase,
                damage: $crate::registry::Damage::$damage $(($crate::registry::damage::$damage::$part))?,
                class: Class::$class,
                repair: Repair::$repair,
                physical_only: $physical,
                listed: checks!(@listed $($listed)?),
                policy: Policy::of(Phase::$phase)$($(.$policy())+)?,
                template: $template,
                brief: $brief,
                invariant: $invariant,
                cause: $cause,
                action: $action,
            };
        )*
        /// The checks of one subject, in order.
        pub(super) const CHECKS: &[&Check] = &[$(&$name),*];
    };
    (@listed) => { ReportOrder::ByPage };
    (@listed $listed:ident) => { ReportOrder::$listed };
}

const RESTORE_PAGE: &str = "Restore the page (RESTORE DATABASE ... PAGE). A page restore needs the full or bulk-logged recovery \
                            model and an unbroken chain of log backups; without these, restore the database.";
const RESTORE_PAGE_OR_REBUILD: &str = "For a nonclustered index, disable the index and then rebuild it; if it is not disabled, the rebuild \
                                       may read it and copy the damage. For a heap or clustered index, restore the page. A page \
                                       restore needs the full or bulk-logged recovery model and an unbroken chain of log backups; \
                                       without these, restore the database.";
const REBUILD: &str = "For a nonclustered index, disable the index and then rebuild it; if it is not disabled, the rebuild may read it \
                       and copy the damage. For a clustered index, compare its rows with a backup before you rebuild it, because a \
                       rebuild keeps only the rows that it finds.";
const RESTORE_DATABASE: &str = "Restore the database, or the file, from a backup. File headers, the boot page, PFS, GAM, SGAM, DIFF and \
                                ML pages and pages of system tables cannot be restored by page, and no repair exists for them.";
const RESTORE_OR_CREATE: &str = "Restore the database from a backup, or drop the object and create it again; no repair exists for the \
                                 catalog.";
const RESTORE_IAM: &str = "Restore the page (RESTORE DATABASE ... PAGE accepts IAM pages). A page restore needs the full or bulk-logged \
                           recovery model and an unbroken chain of log backups; without these, restore the file or the database. \
                           Before the restore, scans may miss pages of the table.";
const SET_MAPS: &str = "Stop all writes, and save the rows. Then restore the wrong allocation page and apply the log: an IAM page can \
be restored alone, but a GAM, SGAM or PFS page only with its whole file or database. Or let REPAIR_ALLOW_DATA_LOSS correct the \
bits; this repair deletes nothing.";
const SHARED_PAGES: &str = "Stop all writes, and save the rows of both owners: a write to one owner can overwrite rows of the other, and \
a rebuild or drop of one owner frees pages of the other. Then restore the wrong allocation page and apply the log: an IAM page can be \
restored alone, but a GAM or SGAM page only with its whole file or database. REPAIR_ALLOW_DATA_LOSS sets the bit if one of the owners \
is the GAM or the SGAM. If both owners are objects, the repair takes the pages from one of them.";
const RESTORE_VALUE: &str = "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise \
                             the whole database. A repair deletes the row that owns the value.";

mod allocation;
mod columns;
mod heaps;
mod indexes;
mod log_and_backup;
mod off_row;
mod pages;
mod system;
mod trees;

pub use allocation::*;
pub use columns::*;
pub use heaps::*;
pub use indexes::*;
pub use log_and_backup::*;
pub use off_row::*;
pub use pages::*;
pub use system::*;
pub use trees::*;

const SUBJECTS: [&[&Check]; 9] = [
    system::CHECKS,
    allocation::CHECKS,
    pages::CHECKS,
    trees::CHECKS,
    heaps::CHECKS,
    indexes::CHECKS,
    off_row::CHECKS,
    columns::CHECKS,
    log_and_backup::CHECKS,
];

/// All checks, in the order of the table.
pub static ALL: &[&Check] = &{
    let mut all: [&Check; count(&SUBJECTS)] = [&PRIMITIVE_PAGE_TYPE; count(&SUBJECTS)];
    join(&SUBJECTS, &mut all);
    all
};

#[expect(clippy::indexing_slicing, reason = "in bounds by the test before it; it runs when the program is built")]
const fn count(subjects: &[&[&Check]]) -> usize {
    let (mut number, mut subject) = (0, 0);
    while subject < subjects.len() {
        number += subjects[subject].len();
        subject += 1;
    }
    number
}

#[expect(clippy::indexing_slicing, reason = "in bounds by the test before it; it runs when the program is built")]
const fn join(subjects: &[&[&'static Check]], all: &mut [&'static Check]) {
    let (mut number, mut subject) = (0, 0);
    while subject < subjects.len() {
        let mut at = 0;
        while at < subjects[subject].len() {
            all[number] = subjects[subject][at];
            (number, at) = (number + 1, at + 1);
        }
        subject += 1;
    }
}
