//! Errors of the engine, of backup and restore, and of recovery, which a DBA sees before running any check.

use super::advice::CHECK_WHOLE;
use super::{ServerMessage, row};

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        601,
        "a NOLOCK scan was overtaken by data movement",
        "A scan under NOLOCK or READ UNCOMMITTED met a page that was moved or deallocated under it. Damage can look the same.",
        "Whether the query reads uncommitted data, and whether the error comes back under READ COMMITTED.",
        "Run the query again, without NOLOCK. If it fails then too, check the table with 'mdfsck check --table'.",
    ),
    row(
        605,
        "a page belongs to another allocation unit than the one that was read",
        "A page was reached through one object, and its header says it belongs to another. At level 12 the error came \
         from a NOLOCK scan and is usually harmless; at level 21 it is damage, often a stale or misdirected write.",
        "The level, the page ('mdfsck page FILE:PAGE' shows its owner), and 823, 824 or 825 in the error log.",
        CHECK_WHOLE,
    ),
    row(
        644,
        "an index entry was not found",
        "A row was changed or deleted, and the nonclustered index had no entry for it: index and table do not match.",
        "Table and index that the message names; messages 8951 and 8952 of a check give the rows.",
        "Run 'mdfsck check --table' for the table. If only the nonclustered index is damaged, disable it and rebuild \
         it; otherwise restore.",
    ),
    row(
        665,
        "operating system error 665: file system limitation",
        "NTFS could not keep track of any more fragments of a sparse file: the hidden snapshot of DBCC CHECKDB, or \
        another snapshot. The database is not damaged.",
        "How much is written while the check runs, fragmentation of the volume, and the size of its file records (format /L).",
        "Check when less is written, use a volume formatted with large file records or ReFS, or check a backup with 'mdfsck check', which \
         needs no snapshot.",
    ),
    row(
        823,
        "the operating system could not read or write",
        "A read or write of a database file failed in Windows or Linux itself. The storage reports the error, not the \
         engine.",
        "The operating system error in the message, the system log, the path to the disk: driver, controller, cable, SAN, virtual disk.",
        "Have the storage repaired before anything else. Then run 'mdfsck check' on the files; restore what is damaged.",
    ),
    row(
        824,
        "a page is not what was written",
        "A page was read without an error of the operating system, but its checksum, page id or torn bits are wrong, or it is an older \
         version of itself. Something below the engine changed or lost the page.",
        "Page and kind in the message (checksum, torn page, page id, stale), msdb.dbo.suspect_pages, the system log; 'mdfsck page \
         FILE:PAGE' shows what is there.",
        "Run 'mdfsck check' to see all damaged pages, and 'mdfsck audit' with the log for lost writes. Restore pages or database, and \
         have the storage examined.",
    ),
    row(
        825,
        "a read succeeded only after it was repeated",
        "The first try to read a page failed, and a later try succeeded. Nothing is lost yet, but such a disk usually \
         fails soon; the \
         message is only level 10, so few alerts see it.",
        "File and offset in the message, how often it comes, the system log.",
        "Treat it as a failing disk: take a backup with CHECKSUM now, check it with 'mdfsck check', move the files. Put an alert on 825.",
    ),
    row(
        829,
        "a page waits to be restored",
        "A page is marked as restore pending: a page restore was begun and not completed, or recovery deferred the page.",
        "msdb.dbo.suspect_pages, and restores that were not completed.",
        "Finish the page restore with all log backups up to now, or restore the database.",
    ),
    row(
        832,
        "a clean page changed in memory",
        "A page that should not have changed since it was read has another checksum in memory: memory, a driver, or another program in \
         the process of the server wrote to it.",
        "ECC errors in the system log, memory tests, extended procedures and linked-server providers that run inside the process.",
        "Test the memory, fail over to another machine. Then run 'mdfsck check' and 'mdfsck audit': the wrong page may have been written \
         with a valid checksum.",
    ),
    row(
        926,
        "the database is marked suspect",
        "Recovery of the database failed earlier, so it cannot be opened.",
        "The first error in the error log for this database since the server started: 823, 824, 3414, 9003, 9004, 5171 to 5173.",
        "Copy all files first. Do not detach the database: SQL Server may refuse to attach it again. Run 'mdfsck \
         check' on the copies to learn what is damaged, \
         then restore.",
    ),
    row(
        945,
        "files are missing, or memory or disk space ran out",
        "The database could not be opened, because a file is inaccessible or there was not enough memory or space.",
        "The error log before it: paths, permissions of the service account, volumes that are not mounted, free space.",
        "Make the file accessible or free space, then set the database ONLINE. Without the file, restore. 'mdfsck info' lists the files \
         that the database expects.",
    ),
    row(
        3013,
        "a backup or restore ended with an error",
        "This message says only that BACKUP or RESTORE stopped. The message before it gives the cause.",
        "The message before it (3201, 3203, 3241, 3271, 3154, 3132 ...), and the error log.",
        "Act on that message. 'mdfsck check' reads a backup from its first to its last page, and says what is wrong with it.",
    ),
    row(
        3132,
        "not all stripes of the media set were given",
        "The backup was written to several files, and the RESTORE names fewer.",
        "msdb.dbo.backupmediafamily on the server that took it, or 'mdfsck info' for each file: it shows the number of stripes.",
        "Name all files of the media set in FROM. If one is lost, the whole backup is lost: use another.",
    ),
    row(
        3154,
        "the backup is of another database",
        "A database of this name exists, and the backup was taken of another one.",
        "The name and the file list in the backup: 'mdfsck info' shows them.",
        "Restore under another name with MOVE. Use WITH REPLACE only if the existing database may be lost.",
    ),
    row(
        3201,
        "the backup file cannot be opened",
        "The service could not open or create the file. The operating system error is in the message.",
        "Path, permissions of the service account (not yours), the share, free space. Error 2 or 3: no such path; 5: no permission; 32: in use.",
        "Correct path or permissions and run it again.",
    ),
    row(
        3203,
        "the backup file could not be read",
        "A read of a backup failed in the operating system, or the file ends too early.",
        "The operating system error (23 is a bad sector, 38 the end of the file), the size of the file against its original.",
        "Copy the file again from its source. 'mdfsck check' reads what is left and says how much is missing.",
    ),
    row(
        3241,
        "the backup file is not valid",
        "The file is damaged, not a backup, encrypted or compressed by another program, or was written by a newer version.",
        "'mdfsck info' shows what the file is and which version wrote it.",
        "Copy it again in binary mode, unpack it, or restore on the version that wrote it or a newer one.",
    ),
    row(
        3271,
        "an I/O error that ended a backup or restore",
        "A read or write of a database file or backup file failed for good. The rest of the message has the cause.",
        "File and operating system error in the message; free space, share, URL, system log.",
        "If it is a backup file, remove the cause and write it again. If it is a data file, treat it like 823.",
    ),
    row(
        3414,
        "recovery failed, the database cannot start",
        "An error during redo or undo stopped recovery; the database is suspect now.",
        "The error just before it in the error log: that error is the cause.",
        "Copy all files. Run 'mdfsck check' on the copies with the log to see what is damaged, then restore. Rebuilding the log or emergency \
         repair is the last resort, and loses consistency between transactions.",
    ),
    row(
        5171,
        "not a primary database file",
        "The file that was named does not begin as the first data file of a database: it is a secondary file, a log, another file, or its \
         header is damaged.",
        "'mdfsck info' says what the file is. Is it compressed, encrypted, or full of zeros?",
        "Name the .mdf, or copy it again. If its header page is damaged, restore: page 0 cannot be restored alone.",
    ),
    row(
        5172,
        "the header of a database file is not valid",
        "A value in the file header, named in the message, is wrong: the file is damaged, cut off, or of a newer version.",
        "The name of the property; 'mdfsck info' and 'mdfsck page 1:0' show the header.",
        "Compare size and version with the original, copy the file again, or restore.",
    ),
    row(
        5173,
        "files are not of the same database",
        "The ids in a secondary file or log do not match those of the primary file: files of two databases, or of two points in time, were mixed.",
        "'mdfsck info' for all files together: it names the file that does not belong.",
        "Use the files of one copy. If only the log does not belong, find the right log; attaching with a new log \
         loses changes.",
    ),
    row(
        5242,
        "an inconsistency on a page that the engine was working on",
        "A row or page structure was invalid when the engine used it. An assertion in the row access code failed: \
         because of damage on disk or in memory, or a fault of the product.",
        "Database and page in the message ('mdfsck page FILE:PAGE'), 823, 824, 825 and 832 in the error log.",
        CHECK_WHOLE,
    ),
    row(
        5243,
        "an inconsistency, place unknown",
        "As 5242, but the engine does not know in which database. Damaged work tables in tempdb cause it too.",
        "The query that got the error, the databases that the query uses, memory errors, the build of the server.",
        "Check all databases that the query uses. If they are sound, restart to renew tempdb, test the memory, install the newest update.",
    ),
    row(
        7105,
        "a fragment of an off-row value does not exist",
        "A row points to LOB data that does not exist. Under NOLOCK the value may have been changed meanwhile; \
         otherwise it is damage.",
        "Whether the query reads uncommitted data; page and slot ('mdfsck page FILE:PAGE'); messages 8929, 8961 and 8965 of a check.",
        "Run the query without NOLOCK. If the error stays, run 'mdfsck check --table' and restore; setting the value of \
        that row again removes the pointer, and the value is lost.",
    ),
    row(
        9002,
        "the transaction log is full",
        "Nothing more fits into the log: its space cannot be reused yet, and it cannot grow.",
        "log_reuse_wait_desc in sys.databases, the limit of the log file, the free space of its volume; 'mdfsck log' shows why it cannot be reused.",
        "Remove that reason: LOG_BACKUP, take log backups; ACTIVE_TRANSACTION, end the oldest one; replication or availability groups, \
         let them catch up. Then shrink and size the log once. Never delete the log file.",
    ),
    row(
        9003,
        "an LSN is outside of the log",
        "A page or the boot page names an LSN that the log does not have. Data files and log are from two points in time, or the log is damaged; \
         in replication, the distributor is ahead of the publisher.",
        "How the files got there: copied one by one, snapshots of two volumes, a restored log; 'mdfsck log' shows \
         where the log ends.",
        "Use files from one point in time, or restore. 'mdfsck audit' names the pages that are newer than the log.",
    ),
    row(
        9004,
        "the log cannot be processed",
        "A block or record of the log is damaged, so recovery, backup or replication cannot continue.",
        "'mdfsck log' verifies every block and shows where the log ends; errors of the storage.",
        "If the database was shut down cleanly or still runs, take a full backup and check it; otherwise restore. Rebuilding the log is \
         the last resort: run 'mdfsck check' afterwards.",
    ),
];
