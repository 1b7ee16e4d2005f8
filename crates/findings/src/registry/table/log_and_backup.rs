//! Checks that compare pages with the log, and checks of the container of a backup.

use super::{Check, Class, Phase, Policy, Repair, ReportOrder};

checks! {
    BACKUP_BLOCK_CHECKSUM = "backup.block-checksum", 3241 state 1, Container, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The header of block {tag} at byte {position} has a wrong checksum.",
        brief "{device}: a block header is damaged at byte {position}",
        must "The header of every descriptor block of a backup matches the checksum that is stored in the header.",
        cause "The disk, a copy or a transfer changed the backup file after it was written.",
        action "Copy the backup again or take a new one. mdfsck checks the parts of the backup that it can still find.";
    LOG_LOST_WRITE = "log.lost-write", 824 state 6, Log, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page} is older than the log: a write was lost. Its LSN is {page_lsn}, but its last change in the log before the start of redo ({redo_lsn}) is at {lsn} ({operation}, transaction {transaction}). {missing}",
        brief "page {page} is stale: a write was lost",
        must "A page contains every change that was logged for it before the LSN at which recovery would start redo.",
        cause "The disk, or a component between the disk and the engine, confirmed a write and then lost it, or replaced the page with an older copy: for example, a reverted snapshot, a stale cache, or a file copied at another time.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. Check the storage: a stale page with a valid checksum means that the storage lost a write.";
    LOG_IMAGE_DIFFERS = "log.image-differs", 832 state 1, Log, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page}, slot {slot} contradicts the log: the last change of the page according to its LSN, at {lsn} ({operation}, transaction {transaction}), wrote other bytes there. {missing}",
        brief "page {page} was changed by something other than the engine",
        must "A page contains the bytes that its last logged change wrote.",
        cause "Something other than the engine changed the page in memory or in its file, and the page got a valid checksum afterwards.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. Check the memory of the server, and filter drivers and tools that write to the files.";
    LOG_CHAIN_BROKEN = "log.chain-broken", 3456 state 1, Log, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page} does not fit the log: its LSN is {page_lsn}. {contradiction}",
        brief "page {page} does not fit the log",
        must "Each log record about a page names the LSN that the previous log record gave to the page, and the page has the LSN of one of these records.",
        cause "An older copy of the page was read and changed again after a lost write, the LSN of the page was changed, or the page is from another point in time.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database; then check the storage for lost writes.";
    BACKUP_BLOCK_TYPE = "backup.block-type", 3241 state 2, Container, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The block {tag} at byte {position} is of no known type.",
        brief "{device}: an unknown block at byte {position}",
        must "Every descriptor block of a backup is of a type that SQL Server writes.",
        cause "The backup file was changed after it was written, or another program wrote to it.",
        action "Copy the backup again or take a new one.";
    BACKUP_STREAM_CHECKSUM = "backup.stream-checksum", 3241 state 3, Container, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The header of stream {tag} at byte {position} has a wrong checksum.",
        brief "{device}: a stream header is damaged at byte {position}",
        must "The header of every stream of a backup matches the checksum that is stored in the header.",
        cause "The disk, a copy or a transfer changed the backup file after it was written.",
        action "Copy the backup again or take a new one. The content of the stream may be lost.";
    BACKUP_LOST_BYTES = "backup.lost-bytes", 3241 state 4, Container, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The bytes from {position} on belong to no block.",
        brief "{device}: bytes from {position} on belong to no block",
        must "A backup file holds descriptor blocks from its start to its end.",
        cause "A part of the file was overwritten, or lost in a transfer.",
        action "Copy the backup again or take a new one.";
    BACKUP_RECORD_LOST = "backup.record-lost", 3241 state 5, Container, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. No record of the compressed backup starts at byte {position}.",
        brief "{device}: compressed data is damaged at byte {position}",
        must "The records of a compressed backup follow each other without gaps.",
        cause "The header of a record was changed after it was written.",
        action "Copy the backup again or take a new one. The pages in the record are lost.";
    BACKUP_DATA_CHECKSUM = "backup.data-checksum", 3189 state 1, Container, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the data that begins at byte {position} has the checksum {computed:x}, expected {stored:x}.",
        brief "{device}: data with a wrong checksum, from byte {position} on",
        must "The data of a backup taken WITH CHECKSUM matches the checksum that is stored with the data.",
        cause "The backup file was changed after it was written. One checksum covers all of this data, so it does not show the damaged place. If the pages have checksums too, messages about pages show the place.",
        action "Copy the backup again or take a new one.";
    BACKUP_RECORD_CHECKSUM = "backup.record-checksum", 3189 state 2, Container, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the record at byte {position} of the compressed backup has the checksum {computed:x}, expected {stored:x}.",
        brief "{device}: a compressed record with a wrong checksum at byte {position}",
        must "Every record of a compressed backup matches the checksum that is stored in its header.",
        cause "The disk, a copy or a transfer changed the backup file after it was written.",
        action "Copy the backup again or take a new one. The pages in the record are lost.";
    BACKUP_LOG_BLOCK = "backup.log-block", 3189 state 3, Container, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the log block at byte {position} is not what was written.",
        brief "{device}: a damaged log block at byte {position}",
        must "The log in a backup consists of log blocks with correct checksums.",
        cause "The backup file was changed after it was written.",
        action "Copy the backup again or take a new one: the backup cannot be restored without this log.";
    BACKUP_PAGES_MISSING = "backup.pages-missing", 3189 state 4, Container, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': {expected} pages of file {file} were backed up, but only {found} are in the backup.",
        brief "{device}: pages of file {file} are missing",
        must "A backup holds the number of pages of each file that its configuration records.",
        cause "A part of the file was overwritten or cut off.",
        action "Copy the backup again or take a new one.";
    BACKUP_CONFIGURATION = "backup.configuration", 3189 state 5, Container, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the configurations of set {set}, which starts at byte {position}, contradict each other.",
        brief "{device}: start and end of set {set} disagree",
        must "The configurations at the start and at the end of a set name the same server, database, files and filegroups.",
        cause "The backup file was changed after it was written.",
        action "Copy the backup again or take a new one.";
    BACKUP_TRUNCATED = "backup.truncated", 3203 state 1, Container, Container, Consistency, None, true,
        "Read on \"{device}\" failed: the file ends at byte {position}, before the end of the backup.",
        brief "{device}: the file ends too early",
        must "A backup file is as long as its blocks and streams require.",
        cause "The backup or its copy was interrupted, or the disk was full.",
        action "Copy the backup again or take a new one.";
    BACKUP_SET_INCOMPLETE = "backup.set-incomplete", 3256 state 1, Container, Container, Consistency, None, true,
        "The backup set on device '{device}' was terminated while it was being created and is incomplete. Set {set} starts at byte {position}.",
        brief "{device}: set {set} was not finished",
        must "Every set of a backup ends with its configuration.",
        cause "The backup was interrupted, or the end of the set was overwritten.",
        action "Take a new backup: this set cannot be restored.";
}
