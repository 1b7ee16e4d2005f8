//! Messages about FILESTREAM and FileTables: files and folders that do not match the database.

use super::advice::{AFTER_REPAIR, REPAIRED, RUN_AGAIN};
use super::{ServerMessage, row};

const FILESTREAM_LOOK: &str = "The folder of the FILESTREAM container: was a file or folder added, removed, renamed or restored by anything but \
                               SQL Server (virus scanner, file backup, an administrator)?";
const FILESTREAM_REPAIR: &str = "Bring the container back from the same backup as the database. REPAIR_ALLOW_DATA_LOSS deletes what does not match.";
const FILESTREAM_RESTORE: &str = "Put the container back as it was, or restore database and container from one backup.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        7903,
        "an orphaned FILESTREAM file",
        "A file is in the container, and no row points to it.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7904,
        "a FILESTREAM file is missing",
        "A row points to a file that is not in the container: the value is lost.",
        FILESTREAM_LOOK,
        "Bring the container back from the same backup as the database. REPAIR_ALLOW_DATA_LOSS deletes the row.",
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
        "The folder of a column is expected there, and this is another folder.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7908,
        "a foreign file under a FILESTREAM table",
        "The file of a value is expected there, and this is another file.",
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
        "The folder is there, but the partition is not in the database.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7935,
        "a FILESTREAM folder without a column",
        "The folder is there, but the partition has no such column.",
        FILESTREAM_LOOK,
        FILESTREAM_REPAIR,
    ),
    row(
        7936,
        "a FILESTREAM folder for another kind of column",
        "The folder is there, but the column is not a FILESTREAM column.",
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
        "The operating system did not allow the containers to be read. FILESTREAM errors are not shown in this run.",
        "The operating system error before it; permissions, virus scanners.",
        RUN_AGAIN,
    ),
    row(
        7956,
        "a FILESTREAM file is in the wrong container",
        "A row names another container than the one in which the file was found.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7963,
        "a foreign file in a FILESTREAM log",
        "A file in the log folder of a container has a name that SQL Server does not give.",
        FILESTREAM_LOOK,
        FILESTREAM_RESTORE,
    ),
    row(
        7964,
        "repair deleted a FILESTREAM file",
        "A file without a row was removed from the container.",
        REPAIRED,
        AFTER_REPAIR,
    ),
];
