//! Checks that compare pages with the log, and checks of the container of a backup.

use super::{Check, Class, Phase, Policy, Repair, ReportOrder};

checks! {
    BACKUP_BLOCK_CHECKSUM = "backup.block-checksum", 3241 state 1, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The header of block {tag} at byte {position} has a wrong checksum.",
        brief "{device}: a block header is damaged at byte {position}",
        must "The header of every descriptor block of a backup has the checksum stored in it.",
        cause "The backup file was changed after it was written: by the disk, a copy or a transfer.",
        action "Copy the backup again or take a new one. mdfsck checks what it can still find.";
    LOG_LOST_WRITE = "log.lost-write", 824 state 6, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page} is older than the log: a write was lost. Its LSN is {page_lsn}, but before the start of redo at {redo_lsn} the log changed it last at {lsn} ({operation}, transaction {transaction}). {missing}",
        brief "page {page} is stale: a write was lost",
        must "A page has every change that was logged for it before the point from which recovery would redo.",
        cause "The disk, or something between it and the engine, reported a write as done and lost it, or put an older copy of the page in its place: a reverted snapshot, a stale cache, a file copied at another time.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database. Check the storage: a stale page with a valid checksum means that it lost a write.";
    LOG_IMAGE_DIFFERS = "log.image-differs", 832 state 1, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page}, slot {slot} is not what the log says: {lsn} ({operation}, transaction {transaction}), the last change of the page by its LSN, wrote other bytes there. {missing}",
        brief "page {page} was changed by something other than the engine",
        must "A page holds what its last logged change wrote.",
        cause "The page was changed in memory, or in its file, by something other than the engine, and got a valid checksum afterwards.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database. Check the memory of the server, and filter drivers and tools that write to the files.";
    LOG_CHAIN_BROKEN = "log.chain-broken", 3456 state 1, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page} does not fit the log: its LSN is {page_lsn}. {contradiction}",
        brief "page {page} does not fit the log",
        must "Each log record of a page names the LSN that the previous record gave to the page, and the page has the LSN of one of these records.",
        cause "An older copy of the page was read and changed again after a lost write, the LSN of the page was changed, or the page is from another point in time.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; then check the storage for lost writes.";
    BACKUP_BLOCK_TYPE = "backup.block-type", 3241 state 2, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The block {tag} at byte {position} is of no known type.",
        brief "{device}: an unknown block at byte {position}",
        must "Every descriptor block of a backup is of a type that SQL Server writes.",
        cause "The backup file was changed after it was written, or another program wrote to it.",
        action "Copy the backup again or take a new one.";
    BACKUP_STREAM_CHECKSUM = "backup.stream-checksum", 3241 state 3, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The header of stream {tag} at byte {position} has a wrong checksum.",
        brief "{device}: a stream header is damaged at byte {position}",
        must "The header of every stream of a backup has the checksum stored in it.",
        cause "The backup file was changed after it was written: by the disk, a copy or a transfer.",
        action "Copy the backup again or take a new one. The content of the stream may be lost.";
    BACKUP_LOST_BYTES = "backup.lost-bytes", 3241 state 4, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The bytes from {position} on belong to no block.",
        brief "{device}: bytes from {position} on belong to nothing",
        must "A backup file holds descriptor blocks from its start to its end.",
        cause "A part of the file was overwritten, or lost in a transfer.",
        action "Copy the backup again or take a new one.";
    BACKUP_RECORD_LOST = "backup.record-lost", 3241 state 5, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. No record of the compressed backup starts at byte {position}.",
        brief "{device}: compressed data is damaged at byte {position}",
        must "The records of a compressed backup follow each other without gaps.",
        cause "The header of a record was changed after it was written.",
        action "Copy the backup again or take a new one. The pages in the record are lost.";
    BACKUP_DATA_CHECKSUM = "backup.data-checksum", 3189 state 1, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the data that begins at byte {position} has the checksum {computed:x}, expected {stored:x}.",
        brief "{device}: data with a wrong checksum, from byte {position} on",
        must "The data of a backup taken WITH CHECKSUM has the checksum that was stored with it.",
        cause "The backup file was changed after it was written, anywhere in this data: one checksum covers all of it. If the pages have checksums too, messages about pages say where.",
        action "Copy the backup again or take a new one.";
    BACKUP_RECORD_CHECKSUM = "backup.record-checksum", 3189 state 2, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the record at byte {position} of the compressed backup has the checksum {computed:x}, expected {stored:x}.",
        brief "{device}: a compressed record with a wrong checksum at byte {position}",
        must "Every record of a compressed backup has the checksum stored in its header.",
        cause "The backup file was changed after it was written: by the disk, a copy or a transfer.",
        action "Copy the backup again or take a new one. The pages in the record are lost.";
    BACKUP_LOG_BLOCK = "backup.log-block", 3189 state 3, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the log block at byte {position} is not what was written.",
        brief "{device}: a damaged log block at byte {position}",
        must "The log in a backup consists of log blocks with correct checksums.",
        cause "The backup file was changed after it was written.",
        action "Copy the backup again or take a new one: without this log it cannot be restored.";
    BACKUP_PAGES_MISSING = "backup.pages-missing", 3189 state 4, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': {expected} pages of file {file} were copied, {found} are there.",
        brief "{device}: pages of file {file} are missing",
        must "A backup holds as many pages of each file as its configuration counts.",
        cause "A part of the file was overwritten or cut off.",
        action "Copy the backup again or take a new one.";
    BACKUP_CONFIGURATION = "backup.configuration", 3189 state 5, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the configurations of set {set}, which starts at byte {position}, name different things.",
        brief "{device}: start and end of set {set} disagree",
        must "The configurations at the start and at the end of a set name the same server, database, files and filegroups.",
        cause "The backup file was changed after it was written.",
        action "Copy the backup again or take a new one.";
    BACKUP_TRUNCATED = "backup.truncated", 3203 state 1, Container, Consistency, None, true,
        "Read on \"{device}\" failed: the backup goes on beyond byte {position}, where the file ends.",
        brief "{device}: the file ends too early",
        must "A backup file is as long as its blocks and streams require.",
        cause "The backup or its copy was interrupted, or the disk was full.",
        action "Copy the backup again or take a new one.";
    BACKUP_SET_INCOMPLETE = "backup.set-incomplete", 3256 state 1, Container, Consistency, None, true,
        "The backup set on device '{device}' was terminated while it was being created and is incomplete. Set {set} starts at byte {position}.",
        brief "{device}: set {set} was not finished",
        must "Every set of a backup ends with its configuration.",
        cause "The backup was interrupted, or the end of the set was overwritten.",
        action "Take a new backup: this set cannot be restored.";
}
