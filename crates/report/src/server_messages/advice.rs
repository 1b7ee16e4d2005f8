//! Advice that messages of several families share.

pub(super) const NOTHING: &str = "Nothing; the message only informs.";
pub(super) const CHECK_WHOLE: &str =
    "Run 'mdfsck check' on the files or on a recent backup to see the whole extent of the damage, then restore.";
pub(super) const REPAIRED: &str =
    "The other lines of the repair for the same object, and rows that are missing from its tables now.";
pub(super) const AFTER_REPAIR: &str = "Run DBCC CHECKDB, or 'mdfsck check' on the files once the database is detached or offline, until nothing is found; \
                            run DBCC CHECKCONSTRAINTS, as repair does not respect constraints; take a full backup; find out what damaged \
                            the database.";
pub(super) const RUN_AGAIN: &str = "Remove the cause and run it again. 'mdfsck check' on a backup or a copy of the files needs no server, snapshot or lock.";
