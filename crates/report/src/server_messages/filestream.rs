//! Messages about FILESTREAM and FileTables: files and folders that do not match the database.

use super::advice::{AFTER_REPAIR, REPAIRED, RUN_AGAIN};
use super::{ServerMessage, row};

const FILESTREAM_LOOK: &str = "The folder of the FILESTREAM container: did anything but SQL Server (a virus scanner, a file backup, an administrator) \
                               add, remove, rename or restore a file or folder?";
const FILESTREAM_REPAIR: &str = "Restore the container from the same backup as the database. REPAIR_ALLOW_DATA_LOSS deletes files and folders that do not match the database.";
const FILESTREAM_RESTORE: &str =
    "Undo the change to the container, or restore the database and the container from the same backup.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        5571,
        "the list of deleted FILESTREAM files cannot be read",
        "FILESTREAM keeps a system table of files that it may delete (garbage collection), and could not read this table. Damage of the database is possible.",
        "Earlier messages about the database: 823, 824, 5572.",
        "Run 'mdfsck check' on the files or a backup: it checks this table like every other table. Restore if it finds damage.",
    ),
    row(
        5572,
        "a FILESTREAM operation failed because of possible damage",
        "An operation on a file of the container failed, because the database and the container do not match, or because one of them is damaged.",
        FILESTREAM_LOOK,
        "Run 'mdfsck check' on the database files, and DBCC CHECKDB for the container, which mdfsck does not read. Restore the database and the container from the same backup if something is missing.",
    ),
    row(
        7903,
        "an orphaned FILESTREAM file",
        "The container has a file to which no row points.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7904,
        "a FILESTREAM file is missing",
        "A row points to a file that is not in the container: the value is lost.",
        FILESTREAM_LOOK,
        "Restore the container from the same backup as the database. REPAIR_ALLOW_DATA_LOSS deletes the row.",
    ),
    row(
        7905,
        "a foreign folder in a FILESTREAM container",
        "The container has a folder that SQL Server did not create.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7906,
        "a foreign file in a FILESTREAM container",
        "The container has a file that SQL Server did not create.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7907,
        "a foreign folder under a FILESTREAM table",
        "The folder of the table contains a folder that does not belong to a column.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7908,
        "a foreign file under a FILESTREAM table",
        "The folder of the table contains a file that does not belong to a value.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7931,
        "a FILESTREAM folder was seen twice",
        "Two partitions claim one folder.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7932,
        "a FILESTREAM folder is in the wrong filegroup",
        "The folder of a partition is in another container than the catalog says.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7933,
        "a FILESTREAM folder without a partition",
        "The folder exists, but the database does not have the partition.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7935,
        "a FILESTREAM folder without a column",
        "The folder exists, but the partition does not have the column.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7936,
        "a FILESTREAM folder for another kind of column",
        "The folder exists, but its column is not a FILESTREAM column.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7938,
        "a FILESTREAM file was seen twice in a folder",
        "Two values claim one file name.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7941,
        "a FILESTREAM file was seen twice for a column",
        "Two values claim one file name.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7951,
        "FILESTREAM checks could not be completed",
        "The operating system did not let DBCC read the containers. FILESTREAM errors are not shown in this run.",
        "The operating system error before this message, permissions, and virus scanners.",
        RUN_AGAIN,
    ),
    row(
        7956,
        "a FILESTREAM file is in the wrong container",
        "A row names one container, but the file was found in another container.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7963,
        "a foreign file in a FILESTREAM log",
        "A file in the log folder of a container has a name that SQL Server does not use.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7964,
        "repair deleted a FILESTREAM file",
        "Repair removed a file from the container, because no row points to the file.",
        REPAIRED,
        AFTER_REPAIR,
    ),
];
