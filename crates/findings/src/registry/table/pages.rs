//! Checks of a single page: header, slots, records.

use super::{
    Check, Class, Phase, Policy, RESTORE_DATABASE, RESTORE_PAGE, RESTORE_PAGE_OR_REBUILD, Repair, ReportOrder,
};

checks! {
    PAGE_UNPROCESSED = "page.unprocessed", 8928 state 1, Page, Page, Consistency, AllowDataLoss, true listed BehindCause [explained, follows],
        "{owner}: Page {page} could not be processed.  See other errors for details.",
        brief "page {page} could not be processed",
        must "Every allocated page passes its audit.",
        cause "Another message says what is wrong with the page.",
        action RESTORE_PAGE;
    PAGE_IO = "page.io", 8939 state 98, Page, Page, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {header_page}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page} is not what was written (checksum, torn bits or page ID)",
        must "The checksum or the torn bits of a page are correct. In the message, a second value of -4 means that they are wrong; -6 means that the page id is wrong too.",
        cause "The disk, or a component between the disk and the engine, changed the page after the engine wrote it.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. If it is a page of a nonclustered index, disabling and rebuilding the index is enough. Check the storage, and the error log for messages 823, 824 and 825.";
    PAGE_IO_NO_METADATA = "page.io-no-metadata", 5233 state 98, Page, Page, Consistency, None, true,
        "Table error: alloc unit ID {alloc_unit_id}, page {header_page}. The test ({test}) failed. The values are {value} and {against}.",
        brief "page {page} is not what was written (checksum, torn bits or page ID)",
        must "The checksum or the torn bits of a page are correct. The message does not name the table of the page, because the catalog cannot be read.",
        cause "The disk, or a component between the disk and the engine, changed the page after the engine wrote it.",
        action RESTORE_DATABASE;
    PAGE_ID = "page.id", 8909 state 1, Page, Page, Consistency, AllowDataLoss, true [rests_on_the_log],
        "Table error: {owner}, page ID {page} contains an incorrect page ID in its page header. The PageId in the page header = {header_page}.",
        brief "page {page} has a wrong page ID in its header: {header_page}",
        must "The header of a page contains the page's own id.",
        cause "The page was zeroed or overwritten, or another page was written to its place.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. If the header names another page, check the other page too: a write may have gone to the wrong page.";
    PAGE_ID_NO_METADATA = "page.id-no-metadata", 5256 state 1, Page, Page, Consistency, None, true [rests_on_the_log],
        "Table error: alloc unit ID {alloc_unit_id}, page {page} contains an incorrect page ID in its page header. The PageId in the page header = {header_page}.",
        brief "page {page} has a wrong page ID in its header: {header_page}",
        must "The header of a page contains the page's own id. The message does not name the table of the page, because the catalog cannot be read.",
        cause "The page was zeroed or overwritten, or another page was written to its place.",
        action RESTORE_DATABASE;
    PAGE_HEADER = "page.header", 8939 state 5, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page} has an impossible header",
        must "Header version, page type and free data offset have possible values.",
        cause "The page header was changed before the checksum was calculated: by bad memory, the engine, or a repair by hand.",
        action RESTORE_PAGE;
    PAGE_FREE_COUNT = "page.free-count", 8939 state 8, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page} has a wrong count of free bytes in its header",
        must "m_freeCnt is the number of bytes that records and slot array leave free: 8096 - records - 2 x slots.",
        cause "The page header or a record's length was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    PAGE_GHOST_COUNT = "page.ghost-count", 8927 state 1, Page, Structure(GhostCount), Consistency, Rebuild, true,
        "{owner}: The ghosted record count in the header ({value}) does not match the number of ghosted records ({against}) found on page {page}.",
        brief "page {page} has a wrong count of ghost records in its header",
        must "m_ghostRecCnt is the number of ghost records on the page.",
        cause "The page header or a record's status byte was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    PAGE_TYPE = "page.type", 8938 state 1, Page, Page, Consistency, AllowDataLoss, true [rests_on_the_log],
        "Table error: Page {page}, {owner}. Unexpected page type {page_type}.",
        brief "page {page} has a type that its allocation unit cannot contain",
        must "An in-row allocation unit holds only data pages and index pages; a LOB or row-overflow unit holds only text pages.",
        cause "The page header was changed, or a page of another kind was written in its place.",
        action RESTORE_PAGE;
    PAGE_ALIGNMENT = "page.alignment", 8940 state 9, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test ({test}) failed. Address 0x{value:x} is not aligned.",
        brief "page {page} has a record that is not aligned",
        must "On a page whose header has the flag PG_ALIGNED4, free data and records start at multiples of 4.",
        cause "The page header or slot array was changed before the checksum was calculated.",
        action RESTORE_PAGE;
    SLOT_BEFORE_RECORDS = "slot.before-records", 8941 state 1, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (sorted [i].offset >= PAGEHEADSIZE) failed. Slot {slot}, offset 0x{offset:x} is invalid.",
        brief "page {page}: slot {slot} points into the page header",
        must "Every slot points to a place after the page header.",
        cause "The slot array was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    SLOT_BEYOND_FREE_DATA = "slot.beyond-free-data", 8941 state 2, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (sorted [i].offset <= m_freeData) failed. Slot {slot}, offset 0x{offset:x} is invalid.",
        brief "page {page}: slot {slot} points beyond the records",
        must "Every slot points to a place before the free data offset.",
        cause "The slot array or m_freeData was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    SLOT_OVERLAP = "slot.overlap", 8942 state 1, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (sorted[i].offset >= max) failed. Slot {slot}, offset 0x{offset:x} overlaps with the prior row.",
        brief "page {page}: the record of slot {slot} overlaps another record",
        must "No record starts before the end of the previous one.",
        cause "The slot array or a record's length was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    SLOT_INTO_FREE_SPACE = "slot.into-free-space", 8943 state 1, Page, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (max <= m_freeData) failed. Slot {slot}, row extends into free space at 0x{offset:x}.",
        brief "page {page}: the record of slot {slot} extends into free space",
        must "No record ends beyond the free data offset.",
        cause "m_freeData or a record's length was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    RECORD_AUDIT = "record.audit", 8944 state 1, Record, Record, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}, row {slot}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page}: the record of slot {slot} is damaged",
        must "The status bytes, fixed part, null bitmap, variable offsets and version tag of a record have possible values and are inside the record.",
        cause "The record was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    COMPRESSION_INFO = "page.compression-info", 5274 state 1, Page, Page, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. {part} is invalid for compressed page; the following internal test failed: {test}. Values are {value} and {against}.",
        brief "page {page}: its compression information is damaged",
        must "The compression information of a page ends before the first record. The anchor record and the dictionary are consistent, and are inside the compression information.",
        cause "The page was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    COMPRESSED_RECORD = "record.compressed", 5274 state 1, Record, Record, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. {part} is invalid for compressed page; the following internal test failed: {test}. Values are {value} and {against}.",
        brief "page {page}: a compressed record is damaged",
        must "The column descriptors and the short and long values of a compressed record are consistent, and are inside the record. Its symbols are in the page's dictionary, and its prefixes are no longer than their anchors.",
        cause "The record was changed before the checksum was calculated.",
        action RESTORE_PAGE_OR_REBUILD;
    COMPRESSED_COLUMNS = "record.compressed-columns", 5274 state 1, Column, Record, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. {part} is invalid for compressed page; the following internal test failed: {test}. Values are {value} and {against}.",
        brief "page {page}: a compressed record does not fit the columns of its table",
        must "A compressed record has no more columns than its table or index, and only bit columns have the descriptor of a set bit.",
        cause "The record was changed before the checksum was calculated, or the catalog was changed.",
        action "For a nonclustered index, disable the index and then rebuild it. For a heap or clustered index, restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. If findings name many pages of a table, look at the catalog first.";
    PAGE_IN_SYSXACT = "page.in-sysxact", 5282 state 1, Page, Page, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. The header of the page is invalid: the IS_IN_SYSXACT flag bit is set.",
        brief "page {page} is marked as part of a system transaction",
        must "No page of a database that was shut down cleanly is still part of a system transaction.",
        cause "The page header was changed before the checksum was calculated, or recovery did not finish.",
        action RESTORE_PAGE_OR_REBUILD;
    PAGE_UNREADABLE = "page.unreadable", 8966 state 1, Page, Page, Consistency, AllowDataLoss, true,
        "Unable to read and latch page {page} with latch type SH. Read failed.",
        brief "page {page} is missing or cannot be read",
        must "Every allocated page is in its file.",
        cause "The file was cut off and ends before this page.",
        action "Compare the file's length with the size in its header, then restore the file.";
    PAGE_UNSEEN = "page.unseen", 2533 state 1, CrossPage, Misplaced, Consistency, AllowDataLoss, true listed AsConsequence,
        "Table error: page {page} allocated to {owner_lower} was not seen. The page may be invalid or may have an incorrect alloc unit ID in its header.",
        brief "page {page} is allocated to the object but was not found",
        must "If an IAM page assigns a page to an allocation unit, the page's header names that unit.",
        cause "A page of another allocation unit was written in its place, or the page header or the IAM page was changed.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. If message 2534 names another object for this page, check that object too.";
    PAGE_OF_OTHER_UNIT = "page.of-other-unit", 2534 state 1, CrossPage, Misplaced, Consistency, AllowDataLoss, true,
        "Table error: page {page}, whose header indicates that it is allocated to {owner_lower}, is allocated by another object.",
        brief "page {page} says that it belongs to another object",
        must "The IAM pages that claim a page belong to the allocation unit that the page's header names.",
        cause "A page of another allocation unit was written in its place, or the page header or the IAM page was changed.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. Message 2533 names the object that owns the page.";
}
