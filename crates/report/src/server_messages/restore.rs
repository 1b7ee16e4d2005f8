//! Messages of BACKUP and RESTORE about media, pages in backups, and the order of backups.

use super::{ServerMessage, row};

const DAMAGED_BACKUP: &str = "Run 'mdfsck check' on the backup: it reads every page and names all that are damaged. 'mdfsck chain --verify' finds the backups from which a restore succeeds.";
const CHAIN: &str = "'mdfsck chain' on the folder of the backups, which shows the chains, the missing range of LSNs, and the points in time that can be reached.";
const FORMAT_LOOK: &str = "'mdfsck info' shows what the file is, and which backup sets it has.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        3027,
        "the filegroup is not part of the database",
        "The command names a filegroup that this database, or this backup, does not have.",
        "sys.filegroups, or the list of files of the backup; 'mdfsck info' shows both.",
        "Use a name that 'mdfsck info' shows.",
    ),
    row(
        3043,
        "BACKUP found a damaged page",
        "The backup read a page whose checksum or torn bits are wrong. BACKUP stopped there, unless CONTINUE_AFTER_ERROR was given. The damage is in the database, not in the backup file.",
        "The page and the file in the message, the table msdb.dbo.suspect_pages, and 823 or 824 in the error log.",
        "Keep all older backups. Run 'mdfsck check' on the files to see the whole extent, then 'mdfsck advise' with the backups. BACKUP ... WITH CONTINUE_AFTER_ERROR saves the present state for the evidence.",
    ),
    row(
        3136,
        "the differential backup does not fit the restored full backup",
        "A differential backup can be restored only over the full backup on which it is based. Another full backup was taken between them, or the database was restored from another one.",
        CHAIN,
        "Restore the full backup that 'mdfsck chain' shows before this differential backup, WITH NORECOVERY, then the differential backup.",
    ),
    row(
        3159,
        "the tail of the log has not been backed up",
        "The database that RESTORE would replace has changes that are in no backup. The message protects them.",
        "Is the work since the last log backup needed?",
        "Run BACKUP LOG ... WITH NORECOVERY first. WITH REPLACE throws these changes away for ever.",
    ),
    row(
        3183,
        "RESTORE found a damaged page in the backup",
        "A page in the backup has a wrong checksum or wrong torn bits. The page was damaged in the database before the backup, or the backup file was damaged later.",
        "The page in the message; whether the same page is damaged in the database and in older backups.",
        DAMAGED_BACKUP,
    ),
    row(
        3219,
        "the file or filegroup cannot be selected",
        "A file or filegroup that the command names is not in this backup set, is offline, or cannot be restored in this way.",
        "The logical names of the files and filegroups in the backup; 'mdfsck info' shows them.",
        "Name a file or filegroup of this backup set, or restore the whole database.",
    ),
    row(
        3242,
        "the file is not a backup",
        "The file does not begin as a backup of Microsoft Tape Format does: it is something else, was overwritten at its beginning, was encrypted or compressed by another program, or was copied as text.",
        FORMAT_LOOK,
        "Copy the file again from its source, in binary mode. Use another copy or an older backup if the source is the same.",
    ),
    row(
        3243,
        "the backup has another version of the tape format",
        "The file names a version of Microsoft Tape Format that the server does not read. Damage of the first block looks the same.",
        FORMAT_LOOK,
        "Copy the file again from its source. If other software wrote it, restore it with that software.",
    ),
    row(
        3257,
        "not enough disk space for the restore",
        "A restore creates files as large as those of the database, however small the backup is. The volume has less free space.",
        "The volume and both sizes in the message; 'mdfsck info' on the backup lists the files and their sizes.",
        "Free space, or place files on other volumes WITH MOVE. 'mdfsck check' reads a backup without restoring it.",
    ),
    row(
        3266,
        "the end of the backup file has a wrong format",
        "The marks behind the backup sets of the file cannot be read. Usually a backup to this file was interrupted; or the file was cut or damaged. Backups before the end may be usable.",
        FORMAT_LOOK,
        "Run 'mdfsck check' on the file to see which backup sets are whole. Write new backups to new files. Do not use WITH FORMAT on this file: it destroys all backups in it.",
    ),
    row(
        3270,
        "an internal error of BACKUP or RESTORE",
        "The server met a state that its code does not expect, like an assertion. The cause is a fault of SQL Server, or a damaged backup.",
        "Earlier messages, dumps in the log folder, and the build of the server.",
        "Run 'mdfsck check' on the backup. If the backup is sound, install the newest update and restore again.",
    ),
    row(
        4305,
        "a log backup is too recent: an earlier one is missing",
        "The log backup begins after the point that the database has reached. A log backup between them was left out.",
        CHAIN,
        "Restore the log backups in the order that 'mdfsck chain --script' writes. If one is lost, a newer full or differential backup may bridge the gap.",
    ),
    row(
        4312,
        "a gap in the chain of log backups",
        "Changes between the restored data and this log backup are in no log: the recovery model was changed, or log was lost. This log backup cannot be applied.",
        CHAIN,
        "Restore a full or differential backup that was taken after the gap, then the log backups after it.",
    ),
    row(
        4326,
        "a log backup is too early",
        "The log backup ends before the point that the database has reached already. Nothing in it is needed.",
        CHAIN,
        "Leave this log backup out, and continue with the next one that 'mdfsck chain' shows.",
    ),
    row(
        18210,
        "a backup device failed",
        "An operation on the backup file, share or virtual device failed. The message names the operation, the device and the operating system error.",
        "The operating system error; free space and the share; for virtual devices (VDI), the log of the backup software.",
        "Remove the cause, and take the backup again. 'mdfsck check' says how much of an unfinished backup can be read.",
    ),
    row(
        18272,
        "a restore cannot be continued after an interruption",
        "RESTORE keeps a small file in the default backup folder, with which an interrupted restore could continue. The file could not be written. The restore itself goes on and is not affected.",
        "The default backup folder of the instance (the setting BackupDirectory): does it exist, and may the service account write there?",
        "Correct the folder. The restored database is not concerned.",
    ),
];
