//! Errors of the engine, of backup and restore, and of recovery, which a DBA sees before running any check.

use super::advice::CHECK_WHOLE;
use super::{ServerMessage, row};

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        601,
        "a NOLOCK scan was overtaken by data movement",
        "A scan under NOLOCK or READ UNCOMMITTED met a page that was moved or deallocated during the scan. Damage can cause the same message.",
        "Whether the query reads uncommitted data, and whether the error comes back under READ COMMITTED.",
        "Run the query again, without NOLOCK. If the query still fails, check the table with 'mdfsck check --table'.",
    ),
    row(
        605,
        "a page belongs to another allocation unit than the one that was read",
        "A page was reached through one object, but its header says that it belongs to another object. At level 12, the \
         error came from a NOLOCK scan and is usually harmless. At level 21, the page is damaged, often by a stale or \
         misdirected write.",
        "The level, the page ('mdfsck page FILE:PAGE' shows its owner), and 823, 824 or 825 in the error log.",
        CHECK_WHOLE,
    ),
    row(
        644,
        "an index entry was not found",
        "A row was changed or deleted, and the nonclustered index had no entry for this row: the index and the table do not match.",
        "The table and the index that the message names. Messages 8951 and 8952 of a check name the rows.",
        "Run 'mdfsck check --table' for the table. If only the nonclustered index is damaged, disable it and rebuild \
         it; otherwise restore.",
    ),
    row(
        665,
        "operating system error 665: file system limitation",
        "NTFS could not keep track of any more fragments of a sparse file: the hidden snapshot of DBCC CHECKDB, or \
        another snapshot. The database is not damaged.",
        "The amount of data that is written during the check, the fragmentation of the volume, and the size of its file records (format /L).",
        "Run the check at a time with fewer writes, or use a volume that is formatted with large file records or ReFS. Or check a backup \
         with 'mdfsck check', which needs no snapshot.",
    ),
    row(
        823,
        "the operating system could not read or write",
        "A read or write of a database file failed in Windows or Linux itself. The storage reports the error, not the \
         engine.",
        "The operating system error in the message, the system log, and all components up to the disk: driver, controller, cable, SAN, virtual disk.",
        "First have the storage repaired. Then run 'mdfsck check' on the files, and restore the damaged pages or files.",
    ),
    row(
        824,
        "a page is not what was written",
        "A page was read without an error of the operating system, but its checksum, page id or torn bits are wrong, or the page is \
         stale. Something below the engine changed or lost the page.",
        "The page and the kind of error in the message (checksum, torn page, page id, stale), the table msdb.dbo.suspect_pages, and the \
         system log; 'mdfsck page FILE:PAGE' shows the page.",
        "Run 'mdfsck check' to see all damaged pages, and 'mdfsck audit' with the log to find lost writes. Restore the pages or the \
         database, and have the storage examined.",
    ),
    row(
        825,
        "a read succeeded only after it was repeated",
        "The first try to read a page failed, and a later try succeeded. Nothing is lost yet, but a disk with such errors \
         usually fails soon. The message has only level 10, so few alerts catch it.",
        "The file and the offset in the message, the number of these messages, and the system log.",
        "Treat the disk as failing: take a backup WITH CHECKSUM now, check the backup with 'mdfsck check', and move the files. Set an alert on message 825.",
    ),
    row(
        829,
        "a page waits to be restored",
        "A page is marked as restore pending: a page restore was begun and not completed, or recovery deferred the page.",
        "The table msdb.dbo.suspect_pages, and restores that were not completed.",
        "Finish the page restore with all log backups up to now, or restore the database.",
    ),
    row(
        832,
        "a clean page changed in memory",
        "A page that should not have changed since it was read has another checksum in memory: faulty memory, a driver, or other code in \
         the server process changed it.",
        "ECC errors in the system log, memory tests, extended procedures and linked-server providers that run inside the process.",
        "Test the memory, and fail over to another machine. Then run 'mdfsck check' and 'mdfsck audit': the wrong page may have been written \
         with a valid checksum.",
    ),
    row(
        926,
        "the database is marked suspect",
        "Recovery of the database failed earlier, so it cannot be opened. There is a harmless case: while a DBCC command runs, the \
         message is about the hidden snapshot of DBCC, which has the name of the database. The database itself is then ONLINE and not \
         damaged; only the check was cut off.",
        "Does sys.databases show the database as SUSPECT or as ONLINE? If ONLINE, look for 17053, 5128, 1823, 665 or 1450 with a file name that contains \
         MSSQL_DBCC. If SUSPECT, look for the first error for this database since the server started: 823, 824, 3313, 3414, 9003, 9004, 5171 to 5173.",
        "If the database is ONLINE: run the check again with more free space or fewer writes, or run 'mdfsck check' on a backup, which needs no \
         snapshot. If it is SUSPECT: copy all files first. Do not detach the database: SQL Server may refuse to attach it again. Run 'mdfsck \
         check' on the copies to see what is damaged, then restore.",
    ),
    row(
        945,
        "files are missing, or memory or disk space ran out",
        "The database could not be opened, because a file is inaccessible or there was not enough memory or space.",
        "Earlier messages in the error log; paths, permissions of the service account, volumes that are not mounted, free space.",
        "Make the file accessible or free space, then set the database ONLINE. If the file is lost, restore. 'mdfsck info' lists the \
         files that the database expects.",
    ),
    row(
        3013,
        "a backup or restore ended with an error",
        "This message says only that BACKUP or RESTORE stopped. The message before this message gives the cause.",
        "The message before this message (3201, 3203, 3241, 3271, 3154, 3132 ...), and the error log.",
        "Act on the message before this message. 'mdfsck check' reads a backup from its first to its last page, and reports all errors in it.",
    ),
    row(
        3132,
        "not all stripes of the media set were given",
        "The backup was written to several files, and the RESTORE names fewer.",
        "The table msdb.dbo.backupmediafamily on the server that took the backup, or 'mdfsck info' for each file, which shows the number of stripes.",
        "Name all files of the media set in FROM. If one of the files is lost, the whole backup is lost: use another backup.",
    ),
    row(
        3154,
        "the backup is of another database",
        "A database with this name exists, but the backup was taken of another database.",
        "The name and the file list in the backup: 'mdfsck info' shows them.",
        "Restore under another name with MOVE. Use WITH REPLACE only if the existing database may be lost.",
    ),
    row(
        3201,
        "the backup file cannot be opened",
        "The service could not open or create the file. The operating system error is in the message.",
        "The path, the permissions of the service account (not yours), the share, free space. Error 2 or 3: the path does not exist; 5: no permission; 32: the file is in use.",
        "Correct the path or the permissions, and run the command again.",
    ),
    row(
        3203,
        "the backup file could not be read",
        "A read of a backup failed in the operating system, or the file ends too early.",
        "The operating system error (23 means a bad sector; 38 means the end of the file), and the size of the file compared with the original.",
        "Copy the file again from its source. 'mdfsck check' reads the remaining part of the backup, and says how much is missing.",
    ),
    row(
        3241,
        "the backup file is not valid",
        "The file is damaged, not a backup, encrypted or compressed by another program, or was written by a newer version. Early builds of SQL Server \
         2016 to 2019 also wrote compressed backups of databases with TDE that cannot be restored.",
        "'mdfsck info' shows what the file is and which version wrote it.",
        "Copy the file again in binary mode, or unpack it, or restore it on the server version that wrote it or on a newer version.",
    ),
    row(
        3271,
        "an I/O error that ended a backup or restore",
        "A read or write of a database file or backup file failed permanently. The rest of the message gives the cause.",
        "The file and the operating system error in the message; free space, the share, the URL, and the system log.",
        "For a backup file, remove the cause and take the backup again. For a data file, act as for message 823.",
    ),
    row(
        3414,
        "recovery failed, the database cannot start",
        "An error during redo or undo stopped recovery; the database is suspect now.",
        "The last error before this message in the error log, which is the cause.",
        "Copy all files. Run 'mdfsck check' on the copies with the log to see what is damaged, then restore. The last resort is to rebuild \
         the log, or to repair in emergency mode: both lose transactional consistency.",
    ),
    row(
        5171,
        "not a primary database file",
        "The specified file does not begin like the first data file of a database. It is a secondary data file, a log file or another \
         file, or its header is damaged.",
        "'mdfsck info' says what the file is. Is it compressed, encrypted, or full of zeros?",
        "Specify the .mdf file, or copy it again. If its header page is damaged, restore the file or the database: page 0 cannot be restored alone.",
    ),
    row(
        5172,
        "the header of a database file is not valid",
        "A value in the file header, named in the message, is wrong: the file is damaged, cut off, or of a newer version.",
        "The name of the property in the message; 'mdfsck info' and 'mdfsck page 1:0' show the header.",
        "Compare the size and version of the file with the original. Copy the file again, or restore.",
    ),
    row(
        5173,
        "files are not of the same database",
        "The ids in a secondary file or log do not match the ids in the primary file: the files are from different databases or points in time.",
        "The output of 'mdfsck info' for all files together, which names the file that does not belong to the others.",
        "Use files that were copied together. If only the log does not match, find the right log: attaching the database \
         with a new log loses changes.",
    ),
    row(
        5242,
        "an inconsistency on a page that the engine was working on",
        "A row or page structure was invalid when the engine used it. An assertion in the row access code failed. The \
         cause is damage on disk or in memory, or a fault of SQL Server.",
        "Database and page in the message ('mdfsck page FILE:PAGE'), 823, 824, 825 and 832 in the error log.",
        CHECK_WHOLE,
    ),
    row(
        5243,
        "an inconsistency at an unknown place",
        "As message 5242, but the engine does not know which database is affected. Damaged work tables in tempdb can also cause this message.",
        "The query that failed, the databases that the query uses, memory errors, and the build of the server.",
        "Check all databases that the query uses. If they are sound, restart the server so that tempdb is created again, test the memory, and install the newest update.",
    ),
    row(
        7105,
        "a fragment of an off-row value does not exist",
        "A row points to LOB data that does not exist. If the query uses NOLOCK, the value may have been changed during the \
         query. Otherwise the database is damaged.",
        "Does the query read uncommitted data? Also look at the page and the slot ('mdfsck page FILE:PAGE'), and at messages 8929, 8961 and 8965 of a check.",
        "Run the query without NOLOCK. If the error persists, run 'mdfsck check --table' and restore. Setting the value of \
        the row again removes the pointer, but the old value is lost.",
    ),
    row(
        9002,
        "the transaction log is full",
        "The log has no free space: its used space cannot be reused yet, and the log file cannot grow.",
        "The column log_reuse_wait_desc of sys.databases, the size limit of the log file, and the free space of its volume; 'mdfsck log' shows why the log cannot be reused.",
        "Remove the reason in log_reuse_wait_desc. For LOG_BACKUP, take log backups. For ACTIVE_TRANSACTION, end the oldest transaction. \
         For replication or availability groups, let them catch up. Then shrink the log once, and set its size. Never delete the log file.",
    ),
    row(
        9003,
        "an LSN is outside of the log",
        "A page or the boot page names an LSN that the log does not have. The data files and the log are from different points in time, or \
         the log is damaged, or, in replication, the distributor is ahead of the publisher.",
        "How were the files copied: one by one, from snapshots of two volumes, or together with a restored log? 'mdfsck log' \
         shows where the log ends.",
        "Use files from one point in time, or restore. 'mdfsck audit' names the pages that are newer than the log.",
    ),
    row(
        9004,
        "the log cannot be processed",
        "A block or record of the log is damaged, so recovery, backup or replication cannot continue.",
        "Errors of the storage. 'mdfsck log' verifies every block of the log, and shows where the log ends.",
        "If the database was shut down cleanly or still runs, take a full backup and check it; otherwise restore. The last \
         resort is to rebuild the log: then run 'mdfsck check'.",
    ),
];
