//! Messages about the machine: its memory and processors, its storage, and what the operating system answered.

use super::advice::RUN_AGAIN;
use super::{ServerMessage, row};

const MEMORY: &str = "The memory report that the server writes to the error log, 'max server memory', other programs on the machine, and queries with large memory grants.";
const LATCH: &str = "Messages 823, 824 and 833 of the same minutes, the system log, the waits of the server (sys.dm_os_wait_stats), and the database and page in the message.";
const LATCH_ACTION: &str = "Have the storage examined if I/O is slow; otherwise reduce the load on the page. If 823 or 824 came too, run 'mdfsck check' on the files.";
const HARDWARE: &str =
    "The system log and the log of the machine's management controller, which name the memory module.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        112,
        "operating system error 112: the disk is full",
        "A volume has no free space. The number stands inside another message, such as 17053. If the file name contains MSSQL_DBCC, the \
         hidden snapshot of a DBCC command is full: the database is not damaged, and only the check ended. Msg 112 of a query is \
         another message: a variable where no variable is allowed.",
        "The file in the message, the free space of its volume, and the amount of data that is written while DBCC runs.",
        RUN_AGAIN,
    ),
    row(
        701,
        "not enough memory for a query",
        "The server, or the resource pool of the query, has no memory left, so the query or DBCC command ended. No data is damaged.",
        MEMORY,
        "Free memory or raise the limit, and run the command again. 'mdfsck check' uses no memory of the server.",
    ),
    row(
        802,
        "not enough memory in the buffer pool",
        "The buffer pool, which holds pages in memory, cannot get a further page. No data is damaged.",
        MEMORY,
        "Free memory or raise the limit. 'mdfsck check' uses no memory of the server.",
    ),
    row(
        833,
        "I/O requests took longer than 15 seconds",
        "Windows or Linux needed more than 15 seconds to read or write a file. The delay damages nothing, but shows that the \
         storage is overloaded or faulty.",
        "The file and the number of requests in the message; the system log; the load of the disks, the path to the SAN, virus scanners, backups of virtual machines at this time.",
        "Have the storage examined. If 823, 824 or 825 came too, take a backup WITH CHECKSUM and check it with 'mdfsck check'.",
    ),
    row(
        844,
        "a long wait for a page in memory continues",
        "A task waits for a page that another task uses or that is being read or written. The task keeps waiting. The usual cause is \
         slow I/O; if the stat value in the message does not have bit 0x04, the cause is many tasks that want the same page.",
        LATCH,
        LATCH_ACTION,
    ),
    row(
        845,
        "a task waited too long for a page in memory, and ended",
        "A task did not get a page in time, so its command ended. The usual cause is slow or failed I/O, or the server had too little memory.",
        LATCH,
        LATCH_ACTION,
    ),
    row(
        846,
        "a wait for a page in memory was given up",
        "A task waited for a page that another task uses or that is being read or written, and does not wait any longer.",
        LATCH,
        LATCH_ACTION,
    ),
    row(
        847,
        "a long wait for a structure in memory continues",
        "A task waits for a latch that does not protect a page. The message names the kind of the latch; DBCC and ACCESS_METHODS \
         latches were seen while the snapshot of DBCC could not grow (operating system errors 665 and 1450).",
        "The class of the latch in the message, messages 665, 1450 and 833 of the same minutes, and the load of the server.",
        "Remove the cause that the other messages show. If DBCC waits, run it at a time with fewer writes, or check a backup with 'mdfsck check'.",
    ),
    row(
        854,
        "the machine can recover from memory errors",
        "The server tells at its start that the processor reports damaged memory, and that SQL Server can repair clean pages in it. \
         This is not an error.",
        "Messages 855 and 856, which report such errors.",
        "No action is needed. Set an alert on messages 855 and 856.",
    ),
    row(
        855,
        "the memory of the machine is damaged",
        "The machine found a memory error that it cannot correct. Pages that were in this memory may have been changed before they were written.",
        HARDWARE,
        "Fail over to another machine, and replace the memory. Then run 'mdfsck check' and 'mdfsck audit' for all databases: a changed page may have been written with a valid checksum.",
    ),
    row(
        856,
        "a page in damaged memory was recovered",
        "The machine found a memory error in a clean page. SQL Server dropped the page from memory and reads it again from the file, so this page is not damaged.",
        HARDWARE,
        "Replace the memory soon. Run 'mdfsck check' for the database, because other pages may have been changed in this memory.",
    ),
    row(
        1105,
        "a filegroup is full",
        "A table or index could not get more space: the files of the filegroup are full and cannot grow. In tempdb, the message ends queries \
         and DBCC commands (8921). No data is damaged.",
        "The database and filegroup in the message, the size limits of the files, and the free space of their volumes.",
        "Free space, let the files grow, or add a file. For tempdb: 'mdfsck check' does not use tempdb.",
    ),
    row(
        1117,
        "operating system error 1117: the device failed",
        "The disk or the path to the disk reported that it cannot carry out a read or write (I/O device error). The number stands inside another message, such as 823 or 17053.",
        "The file in the message, the system log, and all components up to the disk.",
        "First have the storage repaired, or copy the files to other storage. Then run 'mdfsck check' on the files.",
    ),
    row(
        1130,
        "operating system error 1130, or a lost extent of tempdb",
        "Inside another message, 1130 is the answer of Windows that a server has not enough memory or storage for a request, often a file \
         share. As a message of its own (level 10), it says that an extent of tempdb may have been lost: only space in tempdb.",
        "The file or share in the message, and the memory of the machine that holds it.",
        "Remove the shortage and run the command again. An extent of tempdb comes back when the service restarts.",
    ),
    row(
        1450,
        "operating system error 1450: not enough system resources",
        "Windows could not write to a file because of a lack of resources. Usually a sparse file is concerned: the hidden snapshot of DBCC, \
         or another snapshot, with too many fragments. SQL Server keeps trying. The database is not damaged.",
        "The file in the message (MSSQL_DBCC stands for the snapshot of DBCC), the writes during the check, and the fragmentation of the volume.",
        "Run the check at a time with fewer writes, use ReFS, or copy the files so that they have fewer fragments. Or check a backup with 'mdfsck check', which needs no snapshot.",
    ),
    row(
        3633,
        "the operating system refused an operation on a file",
        "The message names the error, the operation and the file, and the place in the server's code.",
        "The error in the message. 2 or 3: the path does not exist; 5: no permission; 32: the file is in use; 112: the disk is full.",
        "Remove the cause, and run the command again. If the file is a data or log file, act on the message after this message.",
    ),
    row(
        3634,
        "the operating system refused an operation on a file",
        "The message names the error, the operation and the file.",
        "The error in the message. 2 or 3: the path does not exist; 5: no permission; 32: the file is in use; 112: the disk is full.",
        "Remove the cause, and run the command again. With message 18272, only the default backup folder is wrong.",
    ),
    row(
        17053,
        "an error of the operating system",
        "The message gives the file and the error of Windows or Linux that is the reason for another message. If the file name contains \
         MSSQL_DBCC, the hidden snapshot of a DBCC command failed: the database is not damaged, 926 in the same minutes is about \
         this snapshot, and the check must be repeated, even if it reports 0 errors (8957).",
        "The file and the error number (112: the disk is full; 665 and 1450: a sparse file cannot grow; 1117: the device failed), and the messages before and after.",
        "Remove the cause. For a snapshot of DBCC, run the check again, or run 'mdfsck check' on a backup. For a data or log file, run 'mdfsck check' on the files.",
    ),
    row(
        17883,
        "a task does not give its processor free",
        "A task has run for a minute without giving way to others. The server writes a dump. Causes are slow I/O, memory that was paged \
         out, a fault of SQL Server, or code of others inside the process.",
        "The dump and the messages before it, 833 and 17890 in the error log, and the load of the machine's processors.",
        "Install the newest update, and have the machine and the storage examined. Data is not damaged by this; run 'mdfsck check' if 823, 824 or 832 came too.",
    ),
];
