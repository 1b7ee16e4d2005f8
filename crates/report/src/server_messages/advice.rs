//! Advice that messages of several families share.

pub(super) const NOTHING: &str = "No action is needed; the message only informs.";
pub(super) const CHECK_WHOLE: &str =
    "Run 'mdfsck check' on the files or on a recent backup to see the whole extent of the damage, then restore.";
pub(super) const REPAIRED: &str =
    "The other messages of the repair about the same object, and rows that the repair removed from tables.";
pub(super) const AFTER_REPAIR: &str = "Check the database again with DBCC CHECKDB, or detach the database or set it offline and run 'mdfsck check' on its \
                            files. Repeat repair and check until no errors are found. Then run DBCC CHECKCONSTRAINTS, because repair \
                            ignores constraints. Take a full backup, and find out what damaged the database.";
pub(super) const RUN_AGAIN: &str = "Remove the cause and run the command again. 'mdfsck check' on a backup or a copy of the files needs no server, snapshot or lock.";
