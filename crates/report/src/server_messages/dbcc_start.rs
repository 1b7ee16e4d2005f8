//! Messages about the start of a DBCC command: its arguments and its snapshot; and the lines about identity values and
//! about the last check.

use super::advice::{NOTHING, RUN_AGAIN};
use super::{ServerMessage, row};

const SNAPSHOT_LOOK: &str =
    "The file in the message, the free space of its volume, and the amount of data that is written while DBCC runs.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        1823,
        "a snapshot could not be started",
        "The snapshot could not be created or recovered. While DBCC starts, its hidden snapshot is concerned: the database is not damaged, but not checked either, \
         unless DBCC gets a lock instead (7928, 5030, 7926).",
        "The messages before and after: 17053, 5128, 665, 1450. Free space, and whether the file system has sparse files.",
        RUN_AGAIN,
    ),
    row(
        2573,
        "DBCC found no table with this name or id",
        "The table or object id in the command does not exist in this database, or the login may not see it.",
        "The database of the session, and the schema of the table.",
        "Use the full name with schema. 'mdfsck tables' lists the tables of the files.",
    ),
    row(
        5030,
        "the database could not be locked",
        "The command needs the database for itself, and other sessions use it. After 1823 and 7928, DBCC tried this because it had no snapshot; then 7926 follows, and nothing was checked.",
        "Other sessions in the database, and the messages before.",
        "For DBCC, make the snapshot possible, or run 'mdfsck check' on a backup, which needs no lock. For ALTER DATABASE, end the other sessions.",
    ),
    row(
        5106,
        "a snapshot ran out of disk space",
        "A write to the sparse file of a snapshot failed, because the volume is full. If the file name contains MSSQL_DBCC, the check ended; the database is not damaged. Newer versions print 5128.",
        SNAPSHOT_LOOK,
        RUN_AGAIN,
    ),
    row(
        5128,
        "a snapshot ran out of disk space",
        "A write to the sparse file of a snapshot failed, because the volume is full. The snapshot is lost. If the file name contains MSSQL_DBCC, the check ended; the database is not damaged.",
        SNAPSHOT_LOOK,
        RUN_AGAIN,
    ),
    row(
        5239,
        "DBCC does not support this kind of object",
        "The object in the command, or an object that DBCC met, is of a kind that this DBCC command does not check. Nothing is damaged.",
        "The object in the message.",
        "Check the table to which the object belongs, or the whole database.",
    ),
    row(
        7989,
        "the identity value of a table",
        "DBCC CHECKIDENT shows the identity value of a table, and does not compare it with the values in the column.",
        "The value in the message. 'mdfsck check --identity' shows all identity values.",
        NOTHING,
    ),
    row(
        7998,
        "the identity value of a table and the highest value in its column",
        "DBCC CHECKIDENT, and 'mdfsck check --identity', show the current identity value and the value of the column. If the column has a higher value, an INSERT may get a number that exists.",
        "Both values in the message.",
        "If the current value is lower, run DBCC CHECKIDENT with RESEED for the table.",
    ),
    row(
        17573,
        "the last check that found no errors",
        "When a database starts, the server writes when DBCC CHECKDB last found no errors in it. This is not a new check, and says nothing about the time since then.",
        "The date in the message: is it older than your backups are kept?",
        "If the check is too old, run 'mdfsck check' on the newest backup.",
    ),
];
