//! Messages about databases that do not open: files that cannot be opened, and recovery that fails.

use super::advice::CHECK_WHOLE;
use super::{ServerMessage, row};

const FILE_LOOK: &str = "The path and the operating system error. 2 or 3: the path does not exist; 5: the service account has no permission; 32: another program has the file open; 21: the volume is not ready.";
const FILE_ACTION: &str = "Make the file accessible, then ALTER DATABASE ... SET ONLINE. If the file is lost, restore it. 'mdfsck info' on the other files lists the files that the database expects.";
const RECOVERY_LOOK: &str = "The first error for this database since the server started: 823, 824, 9001, 9003, 9004, 17053, 17204. The log record, the page and the transaction in the message.";
const RECOVERY_ACTION: &str = "If a device was not reachable, make it reachable and set the database ONLINE. Otherwise copy all files first, and do not detach the database. Then run 'mdfsck check' on the copies, and 'mdfsck advise' with your backups; restore the database or the damaged page.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        1813,
        "a database could not be attached",
        "CREATE DATABASE ... FOR ATTACH could not open the files and stopped. The message before this message gives the cause: a file that is \
         missing or damaged, a version that is too new, or a log that is needed and was not given.",
        "The message before this message (5120, 5171 to 5173, 9003, 9004), and what 'mdfsck info' says about the files.",
        "Give all files. A database that was not shut down cleanly needs its log: look for the log file, or restore. 'mdfsck check' shows what the data files hold without it.",
    ),
    row(
        3313,
        "recovery failed while it redid a logged change",
        "The server could not apply a log record to its page, and marked the database as suspect. The cause is an earlier error: a page that cannot be read \
         or has a wrong checksum, or a log that does not fit the page. While DBCC runs, the message may be about its hidden snapshot.",
        RECOVERY_LOOK,
        RECOVERY_ACTION,
    ),
    row(
        3437,
        "recovery waits for the distributed transaction coordinator",
        "The database has a distributed transaction whose end only MS DTC knows, and MS DTC cannot be reached.",
        "The service MS DTC on the machine or in the cluster, and the transaction in the message.",
        "Start MS DTC, then set the database ONLINE, so that recovery runs again. The files need not be damaged.",
    ),
    row(
        3448,
        "recovery cannot undo a change: the page is older than the log says",
        "Rollback reached a page whose LSN is lower than that of the log record that it has to undo: a later write to the page was lost, or the page is \
         from another point in time. The storage reported a write as done that never reached the file.",
        "The page and both LSNs in the message. 'mdfsck audit' with the log names all pages that are older than the log says.",
        RECOVERY_ACTION,
    ),
    row(
        3452,
        "an identity value may be wrong after recovery",
        "Recovery found that the last identity value of a table may be lower than values in the table. An INSERT could then get a number that exists. No row is damaged.",
        "The table in the message. 'mdfsck check --identity' compares the identity value of each table with its rows.",
        "Run DBCC CHECKIDENT for the table that the message names.",
    ),
    row(
        5105,
        "a file could not be activated",
        "A file of the database could not be opened or created. The name may be wrong; the message before or after this message gives the cause.",
        FILE_LOOK,
        FILE_ACTION,
    ),
    row(
        5120,
        "a file of the database cannot be opened",
        "Windows or Linux did not let the server open the file. The content of the file need not be damaged.",
        FILE_LOOK,
        "Give the service account permission for the file and its folder, end the program that has the file open, or correct the path. If the file is lost, restore it.",
    ),
    row(
        5123,
        "a file cannot be created or opened",
        "Windows or Linux did not let the server create or open a file during CREATE DATABASE, an attach, a restore, or the start of tempdb.",
        FILE_LOOK,
        "Give the service account permission for the folder, create the folder, or name another path (WITH MOVE in a restore).",
    ),
    row(
        5180,
        "a page names a file that the database does not have",
        "The engine followed an address whose file id does not exist in this database. Usually a damaged page holds a wrong address; in rare cases the error is gone \
         after a restart, because only memory was wrong.",
        "The database and the file id in the message, and the query or task that failed.",
        CHECK_WHOLE,
    ),
    row(
        5901,
        "a checkpoint failed",
        "The server could not write the changed pages of the database, because of a lack of disk space or memory, or because of damage. Backups and a clean shutdown need a checkpoint.",
        "Earlier messages: 823, 824, 9001, 9002, 1105, 17053. Also memory-optimized tables and their container.",
        "Remove the cause that the earlier messages show. Take a log backup or copy the log file before you restart the server: recovery needs this log.",
    ),
    row(
        9001,
        "the log of the database is not available",
        "A read or write of the log file failed, so the server closed the log and takes the database offline or rolls everything back. The data files need not be damaged.",
        "The message before this message: 823, 17053 or an operating system error about the log file. Is the volume of the log there and not full?",
        "Have the volume repaired, then set the database OFFLINE and ONLINE, so that recovery runs. Copy data and log files first if you can; 'mdfsck log' verifies every block of the log, and 'mdfsck check' with data and log files shows what recovery would give.",
    ),
    row(
        17113,
        "the server cannot open a file of master at its start",
        "The server reads its configuration from master and could not open a file of it, so the server does not start. The startup options may name a wrong path, or the file is missing, not permitted or damaged.",
        "The file and the operating system error in the message; the startup options -d and -l. 87 (a wrong parameter) was seen with files that a copy had damaged, and with file systems that the server does not support.",
        "Correct the startup options or the permissions. 'mdfsck check' on the files of master says whether they are damaged. If they are, restore master, or rebuild the system databases and restore then.",
    ),
    row(
        17204,
        "a file of a database cannot be opened",
        "Windows or Linux did not let the server open a file when the database started. The database is then in the state RECOVERY_PENDING; if it is a system database, the server does not start.",
        FILE_LOOK,
        FILE_ACTION,
    ),
    row(
        17207,
        "a file of a database cannot be created or opened",
        "Windows or Linux did not let the server open a secondary data file or a log file, or create it, when the database started. The database is then in the state RECOVERY_PENDING.",
        FILE_LOOK,
        FILE_ACTION,
    ),
    row(
        33111,
        "the certificate of an encrypted database is missing",
        "The database or backup is encrypted (TDE or backup encryption), and this server does not have the certificate or key with the thumbprint in the message. The files need not be damaged.",
        "The thumbprint; sys.certificates in master on the server that encrypted the database. 'mdfsck info' says whether a file is encrypted.",
        "Restore the certificate with its private key in master (CREATE CERTIFICATE ... FROM FILE ... WITH PRIVATE KEY), then restore or attach again. Without the private key, the data cannot be read by anybody.",
    ),
    row(
        33126,
        "the encryption key of the database is damaged",
        "The key that encrypts the pages (TDE) is stored in the database, and cannot be read. Without it, no encrypted page can be read.",
        "Earlier messages about the database, and whether the certificate or key in master is the right one.",
        "Restore the database from a backup that was taken before the damage. Keep the files: a copy of the key may still be in another copy of the database.",
    ),
    row(
        41316,
        "memory-optimized data could not be restored",
        "The restore or recovery of the memory-optimized tables failed with the internal code in the message. Other tables need not be damaged.",
        "Earlier messages: missing or damaged files in the container of the filegroup, a lack of memory for the tables, or a build with a known fault.",
        "Give the server enough memory, and install the newest update. If checkpoint files are damaged, restore a backup: a backup reads and verifies these files. 'mdfsck check' checks the other tables.",
    ),
];
