//! The rows. Texts are those of sys.messages (SQL Server 2022); states where transcripts show them.

use super::{Check, Class, Phase, Policy, Repair, ReportOrder};

macro_rules! checks {
    ($($name:ident = $id:literal, $msg:literal state $state:literal, $phase:ident, $class:ident, $repair:ident, $physical:literal $(listed $listed:ident)?
       $([$($policy:ident),+])?,
       $template:literal, brief $brief:literal, must $invariant:literal, cause $cause:literal, action $action:expr;)*) => {
        $(
            #[doc = $invariant]
            pub static $name: Check = Check {
                id: $id,
                msg: $msg,
                state: $state,
                phase: Phase::$phase,
                class: Class::$class,
                repair: Repair::$repair,
                physical_only: $physical,
                listed: checks!(@listed $($listed)?),
                policy: Policy::of(Phase::$phase)$($(.$policy())+)?,
                template: $template,
                brief: $brief,
                invariant: $invariant,
                cause: $cause,
                action: $action,
            };
        )*
        /// All checks, in the order of the table.
        pub static ALL: &[&Check] = &[$(&$name),*];
    };
    (@listed) => { ReportOrder::ByPage };
    (@listed $listed:ident) => { ReportOrder::$listed };
}

const RESTORE_PAGE: &str = "Restore the page (RESTORE DATABASE ... PAGE). That needs the full or bulk-logged recovery model and an \
                            unbroken chain of log backups; without them, restore the database.";
const RESTORE_PAGE_OR_REBUILD: &str = "A nonclustered index: disable it and rebuild it; without disabling, the rebuild may read the \
                                       index and copy the damage. A heap or clustered index: restore the page, which needs the full \
                                       or bulk-logged recovery model and an unbroken chain of log backups, else the database.";
const REBUILD: &str = "A nonclustered index: disable it and rebuild it; without disabling, the rebuild may read the index and copy \
                       the damage. A clustered index: compare its rows with a backup first, as a rebuild keeps only what it finds.";
const RESTORE_DATABASE: &str = "Restore the database, or the file, from a backup. Page restore is not possible for file headers, the \
                                boot page, PFS, GAM, SGAM, DIFF and ML pages and system tables, and no repair exists for them.";
const RESTORE_OR_CREATE: &str = "Restore the database from a backup, or drop and create the object again; no repair exists for the \
                                 catalog.";
const RESTORE_IAM: &str = "Restore the database, or the file, from a backup: page restore is of no use for IAM pages. Until then \
                           scans may miss pages of the table.";
const RESTORE_VALUE: &str = "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; a \
                             repair deletes the row that owns the value.";

checks! {
    PRIMITIVE_PAGE_TYPE = "primitive.page-type", 7984 state 1, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id}. Page {page} has unexpected page type {page_type}. Check statement terminated due to unrepairable error.",
        brief "page {page} of a critical system table has the wrong type",
        must "Every page in the leaf chain of sysallocunits, sysrowsets and sysrscols is a data page.",
        cause "A page of a critical system table was overwritten, or the pointer to it was.",
        action RESTORE_DATABASE;
    PRIMITIVE_UNREADABLE = "primitive.unreadable", 7985 state 2, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id}. Could not read and latch page {page} with latch type SH. Check statement terminated due to unrepairable error.",
        brief "page {page} of a critical system table cannot be read",
        must "The root and every page in the leaf chain of sysallocunits, sysrowsets and sysrscols can be read, has a correct checksum and its own page id.",
        cause "The disk, or something between it and the engine, changed or lost the page.",
        action RESTORE_DATABASE;
    PRIMITIVE_OTHER_UNIT = "primitive.other-unit", 7986 state 1, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id} has cross-object chain linkage. Page {page} points to {ref_page} in alloc unit ID {found_unit} (should be {expected_unit}). Check statement terminated due to unrepairable error.",
        brief "page {page} of a critical system table points to a page of another table",
        must "The pages in the leaf chain of a critical system table all belong to one allocation unit.",
        cause "A next pointer or an allocation unit id in a page header was changed.",
        action RESTORE_DATABASE;
    PRIMITIVE_LINKAGE = "primitive.linkage", 7987 state 1, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id} has chain linkage mismatch. {page}->next = {ref_page}, but {ref_page}->prev = {found_prev}. Check statement terminated due to unrepairable error.",
        brief "pages {page} and {ref_page} of a system table do not point to each other",
        must "Where a page of a critical system table points to a next page, that page points back.",
        cause "A next or previous pointer was changed, or a page is stale (a lost write).",
        action RESTORE_DATABASE;
    PRIMITIVE_LOOP = "primitive.loop", 7988 state 1, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id}. Loop in data chain detected at {page}. Check statement terminated due to unrepairable error.",
        brief "the pages of a critical system table point in a circle at {page}",
        must "The leaf chain of a critical system table visits no page twice.",
        cause "A next pointer was changed to a page earlier in the chain.",
        action RESTORE_DATABASE;
    CATALOG_UNUSABLE = "catalog.unusable", 7995 state 1, Metadata, Uncounted, None, true listed Last,
        "Database '{database}': consistency errors in system catalogs prevent further DBCC {command} processing.",
        brief "the catalog cannot be read: the database was not checked",
        must "The system catalog can be read to its end.",
        cause "Pages of system tables are damaged; the other messages name them.",
        action "Restore from a backup. mdfsck checks what does not need the missing part and lists the rest as not verified.";
    CATALOG_INCONSISTENT = "catalog.inconsistent", 8930 state 1, Metadata, Uncounted, None, true,
        "Database error: Database {database_id} has inconsistent metadata. This error cannot be repaired and prevents further DBCC processing. Please restore from a backup.",
        brief "the catalog contradicts itself",
        must "Every allocation unit belongs to a rowset of the catalog, and every rowset with pages has columns.",
        cause "Rows of sysallocunits, sysrowsets or sysrscols were lost or changed.",
        action RESTORE_DATABASE;
    SYSTEM_TABLE_FILEGROUP = "catalog.system-table-filegroup", 8995 state 1, Metadata, Consistency, None, true,
        "System table '{object_name}' (object ID {object_id}, index ID {index_id}) is in filegroup {found_filegroup}. All system tables must be in filegroup 1.",
        brief "a system table is in the wrong filegroup",
        must "The system base tables are in the primary filegroup.",
        cause "A row of sysallocunits was changed.",
        action RESTORE_DATABASE;

    ANTI_MATTER_COLUMN = "catalog.anti-matter-column", 5229 state 1, Metadata, Consistency, Rebuild, false,
        "Table error: {owner} contains an anti-matter column, but is not a nonclustered index.",
        brief "it has a column that only an index build may have",
        must "No table, and no clustered index, has the column that an online build of a nonclustered index needs.",
        cause "An online build of an index was not cleaned up, or a row of sysrscols was changed.",
        action "Rebuild the table; if that fails, restore from a backup.";

    CATALOG_DANGLING = "catalog.dangling", 8992 state 1, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3853, State 1: Attribute ({attribute}) of row ({row}) in sys.{table} does not have a matching row ({wanted}) in sys.{referenced}.",
        brief "a row in sys.{table} refers to something that does not exist",
        must "What a row of the catalog refers to exists: the schema of an object, the table of a column, the column of an index.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_OR_CREATE;
    CATALOG_PARTNER_MISSING = "catalog.partner-missing", 8992 state 1, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3852, State 1: Row ({row}) in sys.{table} does not have a matching row ({wanted}) in sys.{referenced}.",
        brief "a row in sys.{table} lacks its counterpart",
        must "A foreign key has its columns, and an index with columns has rows for them.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_OR_CREATE;
    CATALOG_VALUE_OF_NOTHING = "catalog.value-of-nothing", 8992 state 1, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3855, State 1: Attribute ({attribute}) exists without a row ({wanted}) in sys.{referenced}.",
        brief "an attribute is stored for something that does not exist",
        must "Every stored attribute (owner, text, statistics) belongs to an existing object.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_DATABASE;
    CATALOG_VALUE_MISSING = "catalog.value-missing", 8992 state 1, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3857, State 1: The attribute ({attribute}) is required but is missing for row ({row}) in sys.{table}.",
        brief "a row in sys.{table} lacks a required attribute",
        must "Every object has the rows its kind requires: the text of a module, computed column or filter, the owner of a schema or role, the queue of a service.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_OR_CREATE;
    CATALOG_INVALID_VALUE = "catalog.invalid-value", 8992 state 1, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3858, State 1: The attribute ({attribute}) of row ({row}) in sys.{table} has an invalid value.",
        brief "a row in sys.{table} has an invalid attribute",
        must "A column, parameter or type has the length, precision, scale and collation that its type allows.",
        cause "The catalog was changed by hand, or a page of it was damaged.",
        action RESTORE_OR_CREATE;
    BROKER_MESSAGE_TYPE_MISSING = "broker.message-type-missing", 8997 state 1, Catalog, Consistency, AllowDataLoss, false,
        "Service Broker Msg 9677, State 1: The service contract with ID {from} is referencing the missing message type with ID {to}.",
        brief "a Service Broker contract names a missing message type",
        must "The message types that a contract names exist.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action "Restore from a backup, or drop the contract and the services that use it and create them again.";
    BROKER_CONTRACT_MISSING = "broker.contract-missing", 8997 state 1, Catalog, Consistency, AllowDataLoss, false,
        "Service Broker Msg 9678, State 1: The service with ID {from} is referencing the missing service contract with ID {to}.",
        brief "a Service Broker service names a missing contract",
        must "The contracts that a service names exist.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action "Restore from a backup, or drop the service and create it again.";
    BROKER_QUEUE_MISSING = "broker.queue-missing", 8997 state 1, Catalog, Consistency, AllowDataLoss, false,
        "Service Broker Msg 9679, State 1: The service with ID {from} is referencing the missing service queue with ID {to}.",
        brief "a Service Broker service names a missing queue",
        must "The queue of a service exists.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action "Restore from a backup, or drop the service and create it again.";

    FIXED_PAGE_INVALID = "allocation.fixed-page-invalid", 5250 state 1, Allocation, Allocation, None, true [rests_on_nothing],
        "Database error: {page_name} page {page} for database '{database}' (database ID {database_id}) is invalid. This error cannot be repaired. You must restore from backup.",
        brief "{page_name} page {page} is damaged",
        must "Page 0 of each file is its file header and (1:9) is the boot page, as they were written.",
        cause "The first pages of the file were overwritten or damaged; the server cannot open the database.",
        action RESTORE_DATABASE;
    MAP_PAGE_INVALID = "allocation.map-page-invalid", 8946 state 12, Allocation, Allocation, None, true listed OfMap [rests_on_the_log],
        "Table error: Allocation page {page} has invalid {page_name} page header values. Type is {page_type}. Check type, alloc unit ID and page ID on the page.",
        brief "{page_name} page {page}, an allocation map, is damaged",
        must "At every GAM, SGAM, PFS, DIFF and ML position is such a page, with its own page id and the system allocation unit.",
        cause "An allocation page was overwritten, zeroed or changed.",
        action RESTORE_DATABASE;
    INTERVAL_UNCHECKED = "allocation.interval-unchecked", 8998 state 2, Allocation, Allocation, None, true listed Last [rests_on_the_log],
        "Page errors on the GAM, SGAM, or PFS pages prevent allocation integrity checks in database ID {database_id} pages from {page} to {ref_page}. See other errors for cause.",
        brief "allocation could not be checked because of damaged maps",
        must "The GAM, SGAM and PFS pages of an interval can be read.",
        cause "Another message names the allocation page that is damaged.",
        action "See the message of that page.";
    EXTENT_GAM_AND_SGAM = "allocation.extent-gam-and-sgam", 8903 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Extent {page} in database ID {database_id} is allocated in both GAM {gam_page} and SGAM {sgam_page}.",
        brief "extent {page} is both free and in use by the maps",
        must "No extent is free in the GAM and mixed with free pages in the SGAM at once.",
        cause "A bit of the GAM or SGAM page was changed.",
        action "Restore the database, or the file, from a backup, as page restore is not possible for allocation pages; or let REPAIR_ALLOW_DATA_LOSS rebuild the map.";
    EXTENT_SEVERAL_OWNERS = "allocation.extent-several-owners", 8904 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Extent {page} in database ID {database_id} is allocated by more than one allocation object.",
        brief "extent {page} has more than one owner",
        must "At most one of GAM (free), SGAM (mixed) and the IAM pages claims an extent.",
        cause "A bit of a GAM, SGAM or IAM page was changed, or an allocation page is stale (a lost write).",
        action "Restore the database, or the file, from a backup, as page restore is not possible for allocation pages. Until then treat the rows of both owners in this extent as suspect: one overwrites the other.";
    EXTENT_OWNER = "allocation.extent-owner", 8913 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Extent {page} is allocated to '{owner_name}' and at least one other object.",
        brief "extent {page} belongs to {owner_name} and at least one other",
        must "At most one of GAM (free), SGAM (mixed) and the IAM pages claims an extent; this line names one claimant.",
        cause "See message 8904, which precedes these lines.",
        action "See message 8904.";
    EXTENT_UNOWNED = "allocation.extent-unowned", 8905 state 1, Allocation, Allocation, AllowDataLoss, true listed AsConsequence,
        "Extent {page} in database ID {database_id} is marked allocated in the GAM, but no SGAM or IAM has allocated it.",
        brief "extent {page} is allocated but belongs to nothing",
        must "An extent that the GAM calls allocated belongs to an IAM chain, or is a mixed extent whose pages are accounted for.",
        cause "A bit of a GAM, SGAM or IAM page was changed, or an IAM page was lost.",
        action "Only space is lost, unless an IAM page is damaged too: then the pages of its table are no longer found.";
    PAGE_UNOWNED = "allocation.page-unowned", 8906 state 1, Allocation, Allocation, AllowDataLoss, true listed AsConsequence,
        "Page {page} in database ID {database_id} is allocated in the SGAM {sgam_page} and PFS {pfs_page}, but was not allocated in any IAM. PFS flags '{pfs_flags}'.",
        brief "page {page} is allocated but belongs to nothing",
        must "An allocated page of a mixed extent is an IAM page or in a single-page slot of one.",
        cause "A PFS byte or an IAM page was changed or lost.",
        action "Only space is lost, unless an IAM page is damaged too.";
    PAGE_TWO_OWNERS = "allocation.page-two-owners", 8910 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Page {page} in database ID {database_id} is allocated to both {owner_lower}, and {other_owner}.",
        brief "page {page} belongs to two allocation units",
        must "A page belongs to one allocation unit only.",
        cause "A single-page slot or a bitmap of an IAM page was changed.",
        action "Restore the database, or the file, from a backup, as page restore is not possible for allocation pages. Until then treat the rows on this page as suspect.";
    PFS_WRONG_TYPE = "allocation.pfs-wrong-type", 8948 state 6, Allocation, Allocation, AllowDataLoss, true,
        "Database error: Page {page} is marked with the wrong type in PFS page {pfs_page}. PFS status 0x{status:x} expected 0x{expected:x}.",
        brief "page {page} is marked wrongly in PFS page {pfs_page}",
        must "The PFS byte of a page says what the IAM pages say: allocated, of a mixed extent, IAM page.",
        cause "A byte of the PFS page was changed, or the PFS page is stale (a lost write).",
        action "Restore the database or the file, as page restore is not possible for PFS pages; or let REPAIR_ALLOW_DATA_LOSS set the bits.";
    IAM_UNREADABLE = "iam.unreadable", 8928 state 6, Allocation, Allocation, AllowDataLoss, true listed BehindCause [rests_on_the_log, explained],
        "{owner}: Page {page} could not be processed.  See other errors for details.",
        brief "IAM page {page} cannot be read",
        must "Every IAM page can be read and has a correct checksum.",
        cause "The disk, or something between it and the engine, changed or lost the page.",
        action RESTORE_IAM;
    IAM_NEXT_UNSEEN = "iam.next-unseen", 2575 state 1, Allocation, Allocation, AllowDataLoss, true,
        "The Index Allocation Map (IAM) page {page} is pointed to by the next pointer of IAM page {ref_page} in {owner_lower}, but it was not detected in the scan.",
        brief "IAM page {page}, the next in the chain, was not found",
        must "The page that an IAM page or the catalog names as the next IAM page is an IAM page.",
        cause "The IAM page was overwritten, or the pointer to it was changed; (0:0) means the catalog.",
        action RESTORE_IAM;
    IAM_PREV_UNSEEN = "iam.prev-unseen", 2576 state 1, Allocation, Allocation, AllowDataLoss, true,
        "The Index Allocation Map (IAM) page {page} is pointed to by the previous pointer of IAM page {ref_page} in {owner_lower}, but it was not detected in the scan.",
        brief "IAM page {page}, the previous in the chain, was not found",
        must "The page that an IAM page names as previous is an IAM page; an IAM page without a predecessor is named in the catalog.",
        cause "The catalog row was lost or changed ((0:0)), or the previous IAM page was overwritten.",
        action "Restore the database, or the file, from a backup, as page restore is not possible for allocation pages. If the table was dropped, only space is lost.";
    IAM_SEQUENCE = "iam.sequence", 2577 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Chain sequence numbers are out of order in the Index Allocation Map (IAM) chain for {owner_lower}. Page {page} with sequence number {sequence} points to page {ref_page} with sequence number {next_sequence}.",
        brief "the IAM chain is numbered wrongly",
        must "Sequence numbers of an IAM chain start at 0 and ascend by 1.",
        cause "An IAM page was changed, is stale (a lost write), or is missing from the middle of the chain.",
        action RESTORE_IAM;
    IAM_EXTENT_OUT_OF_RANGE = "iam.extent-out-of-range", 2579 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Table error: Extent {page} in {owner_lower} is beyond the range of this database.",
        brief "extent {page} is beyond the end of the database",
        must "Every extent and single page that an IAM page claims is inside a file of the database.",
        cause "The IAM page was changed, or the file was cut.",
        action "Compare the file's length with the size in its header; restore the file.";
    IAM_POINTER_OUT_OF_RANGE = "iam.pointer-out-of-range", 8968 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Table error: {pointer} page {page} ({owner_lower}) is out of the range of this database.",
        brief "page {page} is beyond the end of the database",
        must "The first, root and IAM pages that the catalog or an IAM page names are inside a file of the database.",
        cause "A row of sysallocunits or an IAM page was changed, or the file was cut.",
        action "Restore from a backup.";
    IAM_LINKAGE = "iam.linkage", 8969 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Table error: IAM chain linkage error: {owner}. The next page for IAM page {page} is {ref_page}, but the previous link for page {other_page} is {found_prev}.",
        brief "IAM pages do not point to each other",
        must "Where an IAM page points to a next one, that one points back.",
        cause "A pointer of an IAM page was changed, or one of the two is stale (a lost write).",
        action RESTORE_IAM;
    IAM_SAME_INTERVAL = "iam.same-interval", 8947 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Table error: Multiple IAM pages for {owner_lower} contain allocations for the same interval. IAM pages {page} and {ref_page}.",
        brief "two IAM pages map the same extents",
        must "An allocation unit has at most one IAM page per interval of a file.",
        cause "The interval pointer of an IAM page was changed, or a foreign IAM page was linked into the chain.",
        action RESTORE_IAM;
    IAM_OTHER_UNIT = "iam.other-unit", 8959 state 1, Allocation, Allocation, AllowDataLoss, true,
        "Table error: IAM page {page} for {owner_lower} is linked in the IAM chain for {other_owner} by page {ref_page}.",
        brief "IAM page {page} is in the chain of another object",
        must "All IAM pages of a chain have one allocation unit id.",
        cause "A pointer or the allocation unit id of an IAM page was changed, or a row of sysallocunits.",
        action RESTORE_IAM;
    IAM_FILEGROUP = "iam.filegroup", 8996 state 1, Allocation, Allocation, AllowDataLoss, true,
        "IAM page {page} for {owner_lower} controls pages in filegroup {found_filegroup}, that should be in filegroup {expected_filegroup}.",
        brief "IAM page {page} maps a file of another filegroup",
        must "The file that an IAM page maps belongs to the filegroup of its allocation unit.",
        cause "The interval pointer of an IAM page, a file header or a row of sysallocunits was changed.",
        action "Restore from a backup.";
    IAM_INVALID = "iam.invalid", 7965 state 2, CrossPage, Consistency, AllowDataLoss, true listed AsConsequence [checkalloc],
        "Table error: Could not check {owner_lower} due to invalid allocation (IAM) page(s).",
        brief "it could not be checked because of damaged IAM pages",
        must "The IAM chain of an allocation unit can be read from end to end.",
        cause "Another message names the IAM page that is damaged.",
        action RESTORE_IAM;

    PAGE_UNPROCESSED = "page.unprocessed", 8928 state 1, Page, Consistency, AllowDataLoss, true listed BehindCause [explained],
        "{owner}: Page {page} could not be processed.  See other errors for details.",
        brief "page {page} could not be processed",
        must "Every allocated page passes its audit.",
        cause "Another message says what is wrong with the page.",
        action RESTORE_PAGE;
    PAGE_IO = "page.io", 8939 state 98, Page, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {header_page}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page} is not as it was written (checksum, torn bits or page ID)",
        must "The page is as it was written: its checksum or torn bits are right (second value -4: checksum or torn bits; -6: page id too).",
        cause "The disk, or something between it and the engine, changed the page after it was written.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database. If it is a page of a nonclustered index, disabling and rebuilding the index is enough. Check the storage, and the error log for messages 823, 824 and 825.";
    PAGE_IO_NO_METADATA = "page.io-no-metadata", 5233 state 98, Page, Consistency, None, true,
        "Table error: alloc unit ID {alloc_unit_id}, page {header_page}. The test ({test}) failed. The values are {value} and {against}.",
        brief "page {page} is not as it was written (checksum, torn bits or page ID)",
        must "The page is as it was written; the catalog that would name its table cannot be read.",
        cause "The disk, or something between it and the engine, changed the page after it was written.",
        action RESTORE_DATABASE;
    PAGE_ID = "page.id", 8909 state 1, Page, Consistency, AllowDataLoss, true [rests_on_the_log],
        "Table error: {owner}, page ID {page} contains an incorrect page ID in its page header. The PageId in the page header = {header_page}.",
        brief "page {page} has a wrong page ID in its header: {header_page}",
        must "A page's header names the page's own place.",
        cause "The page was zeroed or overwritten, or another page was written to its place.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database. If the header names another page, check that one too: the write may have gone to the wrong page.";
    PAGE_ID_NO_METADATA = "page.id-no-metadata", 5256 state 1, Page, Consistency, None, true [rests_on_the_log],
        "Table error: alloc unit ID {alloc_unit_id}, page {page} contains an incorrect page ID in its page header. The PageId in the page header = {header_page}.",
        brief "page {page} has a wrong page ID in its header: {header_page}",
        must "A page's header names the page's own place; the catalog that would name its table cannot be read.",
        cause "The page was zeroed or overwritten, or another page was written to its place.",
        action RESTORE_DATABASE;
    PAGE_HEADER = "page.header", 8939 state 5, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page} has an impossible header",
        must "Header version, page type and free data offset have possible values.",
        cause "The page header was changed before the checksum was made: memory, engine, or a repair by hand.",
        action RESTORE_PAGE;
    PAGE_FREE_COUNT = "page.free-count", 8939 state 8, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page} counts its free bytes wrongly",
        must "m_freeCnt is what records and slot array leave free: 8096 - records - 2 x slots.",
        cause "The page header or a record's length was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    PAGE_GHOST_COUNT = "page.ghost-count", 8927 state 1, Page, Consistency, Rebuild, true,
        "{owner}: The ghosted record count in the header ({value}) does not match the number of ghosted records ({against}) found on page {page}.",
        brief "page {page} counts its ghost records wrongly",
        must "m_ghostRecCnt is the number of ghost records on the page.",
        cause "The page header or a record's status byte was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    PAGE_TYPE = "page.type", 8938 state 1, Page, Consistency, AllowDataLoss, true [rests_on_the_log],
        "Table error: Page {page}, {owner}. Unexpected page type {page_type}.",
        brief "page {page} has a type that does not belong here",
        must "A unit holds only pages of the types it may hold: data and index pages in rows, text pages in LOB and row-overflow units.",
        cause "The page header was changed, or a page of another kind was written here.",
        action RESTORE_PAGE;
    PAGE_ALIGNMENT = "page.alignment", 8940 state 9, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test ({test}) failed. Address 0x{value:x} is not aligned.",
        brief "page {page} has a record that is not aligned",
        must "On a page whose header has the flag PG_ALIGNED4, free data and records start at multiples of 4.",
        cause "The page header or slot array was changed before the checksum was made.",
        action RESTORE_PAGE;
    SLOT_BEFORE_RECORDS = "slot.before-records", 8941 state 1, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (sorted [i].offset >= PAGEHEADSIZE) failed. Slot {slot}, offset 0x{offset:x} is invalid.",
        brief "page {page}: slot {slot} points into the page header",
        must "A slot points beyond the page header.",
        cause "The slot array was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    SLOT_BEYOND_FREE_DATA = "slot.beyond-free-data", 8941 state 2, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (sorted [i].offset <= m_freeData) failed. Slot {slot}, offset 0x{offset:x} is invalid.",
        brief "page {page}: slot {slot} points behind the records",
        must "A slot points in front of the free data offset.",
        cause "The slot array or m_freeData was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    SLOT_OVERLAP = "slot.overlap", 8942 state 1, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (sorted[i].offset >= max) failed. Slot {slot}, offset 0x{offset:x} overlaps with the prior row.",
        brief "page {page}: the record of slot {slot} overlaps another",
        must "No record starts before the end of the previous one.",
        cause "The slot array or a record's length was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    SLOT_INTO_FREE_SPACE = "slot.into-free-space", 8943 state 1, Page, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}. Test (max <= m_freeData) failed. Slot {slot}, row extends into free space at 0x{offset:x}.",
        brief "page {page}: the record of slot {slot} extends into free space",
        must "No record ends beyond the free data offset.",
        cause "m_freeData or a record's length was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    RECORD_AUDIT = "record.audit", 8944 state 1, Record, Consistency, AllowDataLoss, true [mended_by_rebuild],
        "Table error: {owner}, page {page}, row {slot}. Test ({test}) failed. Values are {value} and {against}.",
        brief "page {page}: the record of slot {slot} is damaged",
        must "Status bytes, fixed part, null bitmap, variable offsets and version tag of a record are possible and inside the record.",
        cause "The record was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    COMPRESSION_INFO = "page.compression-info", 5274 state 1, Page, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. {part} is invalid for compressed page; the following internal test failed: {test}. Values are {value} and {against}.",
        brief "page {page}: its compression information is damaged",
        must "The compression information of a page ends before its first record; its anchor record and its dictionary are inside it and add up.",
        cause "The page was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    COMPRESSED_RECORD = "record.compressed", 5274 state 1, Record, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. {part} is invalid for compressed page; the following internal test failed: {test}. Values are {value} and {against}.",
        brief "page {page}: a compressed record is damaged",
        must "Column descriptors, short and long values of a compressed record are inside it and add up; its symbols are in the page's dictionary, its prefixes no longer than their anchors.",
        cause "The record was changed before the checksum was made.",
        action RESTORE_PAGE_OR_REBUILD;
    COMPRESSED_COLUMNS = "record.compressed-columns", 5274 state 1, Column, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. {part} is invalid for compressed page; the following internal test failed: {test}. Values are {value} and {against}.",
        brief "page {page}: a compressed record does not fit its table",
        must "A compressed record has no more columns than its table or index, and only bit columns have the descriptor of a set bit.",
        cause "The record was changed before the checksum was made, or the catalog was.",
        action "A nonclustered index: disable it and rebuild it. A heap or clustered index: restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; if many pages of a table are named, look at the catalog first.";
    PAGE_IN_SYSXACT = "page.in-sysxact", 5282 state 1, Page, Consistency, AllowDataLoss, true,
        "Table error: {owner}, page {page}. The header of the page is invalid: the IS_IN_SYSXACT flag bit is set.",
        brief "page {page} is marked as in a system transaction",
        must "No page of a database that was shut down cleanly is still part of a system transaction.",
        cause "The page header was changed before the checksum was made, or recovery did not finish.",
        action RESTORE_PAGE_OR_REBUILD;
    PAGE_UNREADABLE = "page.unreadable", 8966 state 1, Page, Consistency, AllowDataLoss, true,
        "Unable to read and latch page {page} with latch type SH. Read failed.",
        brief "page {page} is missing or cannot be read",
        must "Every allocated page is in its file.",
        cause "The file ends before this page: it was cut.",
        action "Compare the file's length with the size in its header; restore the file.";
    PAGE_UNSEEN = "page.unseen", 2533 state 1, CrossPage, Consistency, AllowDataLoss, true listed AsConsequence,
        "Table error: page {page} allocated to {owner_lower} was not seen. The page may be invalid or may have an incorrect alloc unit ID in its header.",
        brief "page {page} is allocated to it but was not found",
        must "A page that an IAM page gives to an allocation unit names that unit in its header.",
        cause "A page of another unit was written here, the header was changed, or the IAM page was.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; if 2534 names another object, check that one too.";
    PAGE_OF_OTHER_UNIT = "page.of-other-unit", 2534 state 1, CrossPage, Consistency, AllowDataLoss, true,
        "Table error: page {page}, whose header indicates that it is allocated to {owner_lower}, is allocated by another object.",
        brief "page {page} says that it belongs to another object",
        must "The unit that a page's header names is the one whose IAM pages claim the page.",
        cause "A page of another unit was written here, the header was changed, or the IAM page was.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; see 2533 for the object that owns it.";

    KEY_ORDER = "key.order", 2511 state 1, Page, Consistency, Rebuild, false,
        "Table error: {owner}. Keys out of order on page {page}, slots {slot} and {ref_slot}.",
        brief "page {page}: keys of slots {slot} and {ref_slot} are out of order",
        must "Keys ascend from slot to slot of an index page (descend in DESC columns).",
        cause "A key was changed, the slot array was shuffled, or the collation of the server's library differs.",
        action REBUILD;
    KEY_DUPLICATE = "key.duplicate", 2512 state 1, Page, Consistency, Rebuild, false,
        "Table error: {owner}. Duplicate keys on page {page} slot {slot} and page {ref_page} slot {ref_slot}.",
        brief "page {page}, slot {slot}: a duplicate key",
        must "No two rows of an index have the same complete key.",
        cause "A key was changed, or a row was written twice.",
        action "In a unique index remove one of the rows first; then disable a nonclustered index and rebuild it, or rebuild a clustered one.";
    TREE_EMPTY_PAGE = "tree.empty-page", 2574 state 1, Page, Consistency, Rebuild, false,
        "Table error: Page {page} is empty in {owner_lower}. This is not permitted at level {level} of the B-tree.",
        brief "page {page} is empty",
        must "No page of a B-tree is empty, except the only page of an empty index.",
        cause "The page header was changed, or rows were lost from the page.",
        action "Compare row counts with a backup, then disable the index and rebuild it; rebuild a clustered index only if no row is missing.";
    TREE_LEVEL_SIBLING = "tree.level-sibling", 2531 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner_lower} B-tree level mismatch, page {page}. Level {level} does not match level {ref_level} from the previous {ref_page}.",
        brief "page {page} is not on the level of its neighbor",
        must "Neighbors in a page chain are on one level.",
        cause "A level or a next pointer in a page header was changed.",
        action REBUILD;
    TREE_LEVEL_PARENT = "tree.level-parent", 8931 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner} B-tree level mismatch, page {page}. Level {level} does not match level {ref_level} from parent {ref_page}.",
        brief "page {page} is not one level below its parent {ref_page}",
        must "A page is one level below its parent.",
        cause "A level in a page header or a child pointer was changed.",
        action REBUILD;
    TREE_CHILD_OF_OTHER = "tree.child-of-other", 8925 state 1, CrossPage, Consistency, AllowDataLoss, false,
        "Table error: Cross object linkage: Page {ref_page}, slot {ref_slot}, in {owner_lower}, refers to page {page}, slot 0, in {other_owner}.",
        brief "page {ref_page} points to a child {page} of another index",
        must "A child pointer leads to a page of the same index.",
        cause "A child pointer was changed, or a page of another index was written over the child.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_PARENT_AND_NEXT_OF_OTHER = "tree.parent-and-next-of-other", 8926 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: Cross object linkage: Parent page {ref_page}, slot {ref_slot} in {owner_short}, and page {other_page}->next in {other_owner_short}, refer to page {page} but are not in the same object.",
        brief "parent and neighbor of a page belong to different indexes",
        must "The parent entry and the left neighbor that name a page belong to one index.",
        cause "A child pointer was changed, or a page of another index was written over the child.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_LOW_KEY = "tree.low-key", 8933 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner}. The low key value on page {page} (level {level}) is not >= the key value in the parent {ref_page} slot {ref_slot}.",
        brief "page {page} has keys below its range in parent {ref_page}",
        must "The first key of a page is not below the key that its parent has for it.",
        cause "A key in the page or in its parent was changed, or children were exchanged.",
        action REBUILD;
    TREE_HIGH_KEY = "tree.high-key", 8934 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner}. The high key value on page {page} (level {level}) is not less than the low key value in the parent {ref_page}, slot {ref_slot} of the next page {other_page}.",
        brief "page {page} has keys above its range in parent {ref_page}",
        must "The last key of a page is below the key that the parent has for the next page.",
        cause "A key in the page or in its parent was changed, or children were exchanged.",
        action REBUILD;
    TREE_PREV_NOT_AS_PARENT = "tree.prev-not-as-parent", 8935 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner}. The previous link {found_prev} on page {page} does not match the previous page {expected_prev} that the parent {ref_page}, slot {ref_slot} expects for this page.",
        brief "page {page} has another previous page than its parent says",
        must "A page's previous pointer names the page of the parent's preceding entry.",
        cause "A previous pointer or a child pointer was changed.",
        action REBUILD;
    TREE_CHAIN_LINKAGE = "tree.chain-linkage", 8936 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner}. B-tree chain linkage mismatch. {ref_page}->next = {page}, but {page}->Prev = {found_prev}.",
        brief "pages {ref_page} and {page} do not point to each other",
        must "Where a page points to a next page, that page points back.",
        cause "A next or previous pointer was changed, or one page is stale (a lost write).",
        action REBUILD;
    TREE_TWO_PARENTS = "tree.two-parents", 8937 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: {owner}. B-tree page {page} has two parent nodes {ref_page}, slot {ref_slot} and {other_page}, slot {other_slot}.",
        brief "page {page} has two parents",
        must "A page has one parent entry; (0:0) means the root pointer in the catalog.",
        cause "A child pointer or the root pointer was changed.",
        action REBUILD;
    TREE_CHILD_UNSEEN = "tree.child-unseen", 8976 state 1, CrossPage, Consistency, Rebuild, false listed OfMissing,
        "Table error: {owner}. Page {page} was not seen in the scan although its parent {ref_page} and previous {other_page} refer to it. Check any previous errors.",
        brief "page {page} is missing from the index",
        must "A page that its parent and its left neighbor name exists in the index.",
        cause "The page is damaged, unallocated or belongs to another index; other messages say which.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_PARENT_UNSEEN = "tree.parent-unseen", 8977 state 1, CrossPage, Consistency, Rebuild, false listed AsConsequence,
        "Table error: {owner}. Parent node for page {page} was not encountered.",
        brief "page {page} has no parent",
        must "A page that is not the root has a parent entry.",
        cause "The parent page is damaged, or its child pointer was changed.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_PREV_UNSEEN = "tree.prev-unseen", 8978 state 1, CrossPage, Consistency, Rebuild, false listed ByReference,
        "Table error: {owner}. Page {page} is missing a reference from previous page {ref_page}. Possible chain linkage problem.",
        brief "page {page}: its previous page {ref_page} does not point to it",
        must "The page that a page names as previous points to it as next.",
        cause "The previous page is damaged, or its next pointer was changed.",
        action "See the messages of the previous page.";
    TREE_UNREFERENCED = "tree.unreferenced", 8979 state 1, CrossPage, Consistency, Rebuild, false listed AsConsequence,
        "Table error: {owner}. Page {page} is missing references from parent (unknown) and previous (page {ref_page}) nodes. Possible bad root entry in system catalog.",
        brief "page {page} is not referenced in the index",
        must "Every page of an index is named by its parent and by its left neighbor.",
        cause "The root pointer in sysallocunits was changed, or parent and neighbor are both damaged.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_CHILDREN_UNSEEN = "tree.children-unseen", 8980 state 1, CrossPage, Consistency, Rebuild, false listed OfMissing,
        "Table error: {owner}. Index node page {ref_page}, slot {ref_slot} refers to child page {page} and previous child {other_page}, but they were not encountered.",
        brief "page {page} is missing below {ref_page}",
        must "The page that a parent entry names exists in the index; (0:0) means the root pointer in the catalog.",
        cause "The page and its left neighbor are damaged, or it is the root or the leftmost page.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_NEXT_UNSEEN = "tree.next-unseen", 8981 state 1, CrossPage, Consistency, Rebuild, false listed OfMissing,
        "Table error: {owner}. The next pointer of {ref_page} refers to page {page}. Neither {page} nor its parent were encountered. Possible bad chain linkage.",
        brief "page {page}, the next of {ref_page}, is missing",
        must "The page that a next pointer names exists in the index.",
        cause "A next pointer was changed, or the page and its parent are damaged.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_NEXT_OF_OTHER = "tree.next-of-other", 8982 state 1, CrossPage, Consistency, Rebuild, false,
        "Table error: Cross object linkage. Page {ref_page}->next in {owner_au} refers to page {page} in {other_owner_au} but is not in the same index.",
        brief "page {ref_page} points to a next page of another object",
        must "A next pointer leads to a page of the same index.",
        cause "A next pointer was changed, or a page of another index was written over the neighbor.",
        action RESTORE_PAGE_OR_REBUILD;

    HEAP_FORWARD_MISMATCH = "heap.forward-mismatch", 8971 state 1, CrossPage, Consistency, AllowDataLoss, false,
        "Forwarded row mismatch: Object ID {object_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}) page {page}, slot {slot} points to forwarded row page {ref_page}, slot {ref_slot}; the forwarded row points back to page {back_page}, slot {back_slot}",
        brief "a forwarded row does not point back to its stub",
        must "A forwarding stub leads to a forwarded row that points back to it.",
        cause "A stub or the back pointer of a forwarded row was changed, or one of the pages is stale (a lost write).",
        action RESTORE_PAGE;
    HEAP_FORWARD_SHARED = "heap.forward-shared", 8972 state 1, CrossPage, Consistency, AllowDataLoss, false,
        "Forwarded row referenced by more than one row. Object ID {object_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}), page {page}, slot {slot} incorrectly points to the forwarded row page {ref_page}, slot {ref_slot}, which correctly refers back to page {back_page}, slot {back_slot}.",
        brief "a forwarded row has more than one stub",
        must "A forwarded row has one stub.",
        cause "A stub was changed to the address of another row.",
        action RESTORE_PAGE;
    PAGE_TWICE = "page.twice", 8973 state 1, CrossPage, Consistency, AllowDataLoss, true,
        "CHECKTABLE {owner_lower} processing encountered page {page}, slot {slot} twice.",
        brief "page {page} is listed twice",
        must "An allocation unit lists a page once.",
        cause "A single-page slot of an IAM page was changed.",
        action RESTORE_IAM;
    HEAP_STUB_WITHOUT_ROW = "heap.stub-without-row", 8993 state 1, CrossPage, Consistency, AllowDataLoss, false,
        "Object ID {object_id}, forwarding row page {page}, slot {slot} points to page {ref_page}, slot {ref_slot}. Did not encounter forwarded row. Possible allocation error.",
        brief "page {page}, slot {slot}: the forwarded row is missing",
        must "Every forwarding stub has its forwarded row.",
        cause "The page of the row is damaged or lost, or the stub was changed.",
        action RESTORE_PAGE;
    HEAP_ROW_WITHOUT_STUB = "heap.row-without-stub", 8994 state 1, CrossPage, Consistency, AllowDataLoss, false,
        "Object ID {object_id}, forwarded row page {page}, slot {slot} should be pointed to by forwarding row page {ref_page}, slot {ref_slot}. Did not encounter forwarding row. Possible allocation error.",
        brief "page {page}, slot {slot}: a forwarded row without stub",
        must "Every forwarded row has its stub.",
        cause "The page of the stub is damaged or lost, or the back pointer was changed.",
        action "Restore the page of the stub (full or bulk-logged recovery model and an unbroken log chain), else the database; a repair turns the row into an ordinary one.";

    INDEX_ROW_MISSING = "index.row-missing", 8951 state 1, CrossRow, Consistency, Rebuild, false listed AsConsequence,
        "Table error: table '{table}' (ID {object_id}). Data row does not have a matching index row in the index '{index}' (ID {index_id}). Possible missing or invalid keys for the index row matching:",
        brief "a row of the table is missing from index {index}",
        must "Each row of a table has exactly one row with the same values in each of its indexes.",
        cause "A row of the index was lost or changed, or a row of the table was changed without it.",
        action "Disable the index and rebuild it: without disabling, the rebuild may read the index and copy what is wrong. If the row of the table may be the wrong one, compare it with a backup first.";
    INDEX_ROW_MISSING_DETAIL = "index.row-missing-detail", 8955 state 1, CrossRow, Uncounted, Rebuild, false listed AsConsequence,
        "Data row {record} identified by ({identity}) with index values '{values}'.",
        brief "data row {record}",
        must "See 8951, which precedes this line.",
        cause "See 8951.",
        action "See 8951.";
    INDEX_ROW_SURPLUS = "index.row-surplus", 8952 state 1, CrossRow, Consistency, Rebuild, false listed AsConsequence,
        "Table error: table '{table}' (ID {object_id}). Index row in index '{index}' (ID {index_id}) does not match any data row. Possible extra or invalid keys for:",
        brief "index {index} has a row that the table does not have",
        must "Each row of an index has exactly one row with the same values in the table.",
        cause "A row of the table was lost or changed, or a row of the index was changed without it.",
        action "If rows of the table may be lost, look for them in a backup by the values given. Then disable the index and rebuild it: without disabling, the rebuild may read the index and copy what is wrong.";
    INDEX_ROW_SURPLUS_DETAIL = "index.row-surplus-detail", 8956 state 1, CrossRow, Uncounted, Rebuild, false listed AsConsequence,
        "Index row {record} with values ({values}) pointing to the data row identified by ({identity}).",
        brief "index row {record}",
        must "See 8952, which precedes this line.",
        cause "See 8952.",
        action "See 8952.";
    VIEW_SURPLUS = "view.rows-surplus", 8907 state 1, CrossRow, Consistency, Rebuild, false,
        "The spatial index, XML index or indexed view '{name}' (object ID {object_id}) contains rows that were not produced by the view definition. This does not necessarily represent an integrity issue with the data in this database. For more information about troubleshooting DBCC errors on indexed views, see SQL Server Books Online.",
        brief "{name} has rows that do not belong to it",
        must "Every document with nodes in a primary XML index exists in the table (with extended logical checks only).",
        cause "A row of the table, or of the index's internal table, was lost or changed.",
        action "Drop and create the XML index again; if rows of the table may be lost, look for them in a backup first.";
    VIEW_MISSING = "view.rows-missing", 8908 state 1, CrossRow, Consistency, Rebuild, false,
        "The spatial index, XML index or indexed view '{name}' (object ID {object_id}) does not contain all rows that the view definition produces. This does not necessarily represent an integrity issue with the data in this database. For more information about troubleshooting DBCC errors on spatial indexes, XML indexes, and indexed views, see SQL Server Books Online.",
        brief "{name} lacks rows",
        must "Every document of a table has nodes in the primary XML index of its column (with extended logical checks only).",
        cause "A row of the table, or of the index's internal table, was lost or changed.",
        action "Drop and create the XML index again.";
    COLUMNSTORE_MISMATCH = "columnstore.mismatch", 7902 state 1, Catalog, Consistency, None, false,
        "Columnstore index '{index}' on table '{table}' has metadata mismatch on column id {column} and rowgroup id {group}. If this is a nonclustered columnstore index, drop it and recreate it. Otherwise, contact CSS.",
        brief "columnstore index {index}: its metadata do not agree",
        must "All segments of a row group have the row group's number of rows, a smallest value not above the largest, and a base that fits their encoding.",
        cause "A row of syscscolsegments or syscsrowgroups was changed, or a page of them is stale (a lost write).",
        action "Create a nonclustered columnstore index again; restore the data of a clustered one from a backup.";
    COLUMNSTORE_SEGMENT = "columnstore.segment", 7967 state 1, Catalog, Consistency, None, false,
        "Clustered columnstore index '{index}' on table '{table}' has a missing column segment on column id {column} and rowgroup id {group}. Restore the data from a backup.",
        brief "columnstore index {index}: a column segment is missing",
        must "Each column has a segment in each compressed row group that is not older than the column, and the segment's data is where the catalog has it.",
        cause "A row of syscscolsegments was lost, or the page that holds the segment is stale (a lost write).",
        action "Restore the data from a backup.";
    COLUMNSTORE_SEGMENT_NONCLUSTERED = "columnstore.segment-nonclustered", 7976 state 1, Catalog, Consistency, None, false,
        "Nonclustered columnstore index '{index}' on table '{table}' has a missing column segment on column id {column} and rowgroup id {group}. Drop and recreate the nonclustered columnstore index.",
        brief "columnstore index {index}: a column segment is missing",
        must "Each column has a segment in each compressed row group, and the segment's data is where the catalog has it.",
        cause "A row of syscscolsegments was lost, or the page that holds the segment is stale (a lost write).",
        action "Drop and create the index again.";
    COLUMNSTORE_DICTIONARY = "columnstore.dictionary", 7991 state 1, Catalog, Consistency, None, false,
        "Clustered columnstore index '{index}' on table '{table}' has a missing dictionary on column id {column} and rowgroup id {group}. Restore the data from a backup.",
        brief "columnstore index {index}: a dictionary is missing",
        must "Each dictionary that a segment refers to exists, and its data is where the catalog has it.",
        cause "A row of syscsdictionaries was lost or one of syscscolsegments changed, or a page is stale (a lost write).",
        action "Restore the data from a backup. If the data of a dictionary is missing, the message has its number in place of the row group's.";
    COLUMNSTORE_DICTIONARY_NONCLUSTERED = "columnstore.dictionary-nonclustered", 5285 state 1, Catalog, Consistency, None, false,
        "Nonclustered columnstore index '{index}' on table '{table}' has a missing dictionary on column id {column} and rowgroup id {group}. Drop and recreate the nonclustered columnstore index.",
        brief "columnstore index {index}: a dictionary is missing",
        must "Each dictionary that a segment refers to exists, and its data is where the catalog has it.",
        cause "A row of syscsdictionaries was lost or one of syscscolsegments changed, or a page is stale (a lost write).",
        action "Drop and create the index again. If the data of a dictionary is missing, the message has its number in place of the row group's.";
    COUNT_INCORRECT = "count.incorrect", 2508 state 1, Counts, Consistency, Rebuild, false,
        "The {count_name} count for object \"{object_name}\", index ID {index_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}) is incorrect. Run DBCC UPDATEUSAGE.",
        brief "a row or page count in the catalog is wrong",
        must "Counts that the catalog keeps are not negative (CHECKDB reports only negative ones).",
        cause "The counts of an upgraded database, or a changed row of sysrowsets or sysallocunits.",
        action "Run DBCC UPDATEUSAGE.";

    PFS_FREE_SPACE = "page.pfs-free-space", 8914 state 1, Allocation, Consistency, AllowDataLoss, false,
        "Incorrect PFS free space information for page {page} in {owner_lower}. Expected value {expected}, actual value {actual}.",
        brief "the PFS page is wrong about the free space of page {page}",
        must "The PFS byte of a page of a heap, or of off-row data, says how full the page is: 0, 50, 80, 95 or 100 percent.",
        cause "The PFS byte was changed, the page is stale (a lost write), or SQL Server 2005 SP2 left it so after a bulk load of LOBs.",
        action "Harmless by itself. With other messages for the page it indicates a lost write; a repair corrects the byte.";
    LOB_CROSS_UNIT = "lob.cross-unit", 8925 state 1, OffRow, Consistency, AllowDataLoss, false,
        "Table error: Cross object linkage: Page {ref_page}, slot {ref_slot}, in {owner_lower}, refers to page {page}, slot {slot}, in {other_owner}.",
        brief "page {ref_page} points to off-row data of another object",
        must "A pointer to off-row data leads to a page of its own table's off-row data.",
        cause "The pointer was changed, or the page was given to another table by a wrong allocation page.",
        action RESTORE_VALUE;
    LOB_OWNER = "lob.owner", 8929 state 1, OffRow, Consistency, AllowDataLoss, false listed AsConsequence,
        "{owner}: Errors found in off-row data with ID {text_id} owned by {record_kind} record identified by {record}",
        brief "a row has damaged off-row data",
        must "The off-row value of every row is whole.",
        cause "Another message names the fragment that is missing or wrong.",
        action RESTORE_VALUE;
    COMPLEX_COLUMN = "lob.complex-column", 8960 state 1, Column, Consistency, AllowDataLoss, false,
        "Table error: {owner}. Page {page}, slot {slot}, column {column} is not a valid complex column.",
        brief "page {page}, slot {slot}: a pointer to off-row data is damaged",
        must "What a row holds in place of an off-row value is a pointer of a known kind and of a length that fits it.",
        cause "A variable offset of the row or the pointer itself was changed.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; a repair deletes the row.";
    LOB_MISMATCH = "lob.mismatch", 8961 state 1, OffRow, Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} does not match its reference from page {ref_page}, slot {ref_slot}.",
        brief "page {page}, slot {slot}: off-row data does not fit its reference",
        must "A fragment of off-row data has the id (state 1), the size (state 2) and the level or type (state 4) that its parent expects.",
        cause "The fragment or its parent was changed, or one of their pages is stale (a lost write).",
        action RESTORE_VALUE;
    LOB_NODE_TYPE = "lob.node-type", 8962 state 1, OffRow, Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} has incorrect node type {node_type}.",
        brief "page {page}, slot {slot}: off-row data of an unknown type",
        must "A fragment of off-row data is of a known type: 0 to 6, or 8.",
        cause "The fragment was changed after it was written.",
        action RESTORE_VALUE;
    LOB_PAGE_TYPE = "lob.page-type", 8963 state 1, OffRow, Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} has type {node_type}. It cannot be placed on a page of type {page_type}.",
        brief "page {page}, slot {slot}: off-row data on a page of the wrong type",
        must "Small values and NULLs of off-row data are on pages of type 3, which values share; a page of type 4 belongs to the tree of one large value.",
        cause "The fragment, or the type in the page header, was changed after it was written.",
        action RESTORE_VALUE;
    LOB_UNREFERENCED = "lob.unreferenced", 8964 state 1, OffRow, Consistency, AllowDataLoss, false listed AsConsequence,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} is not referenced.",
        brief "page {page}, slot {slot}: off-row data that no row refers to",
        must "Every fragment of off-row data is the value of a row, or has a parent.",
        cause "The row, or the parent, was lost or leads elsewhere: a lost write or a changed pointer.",
        action "See the other messages about the table: if a row or a page of it is lost, restore that; a repair deletes only the fragment.";
    LOB_UNSEEN = "lob.unseen", 8965 state 1, OffRow, Consistency, AllowDataLoss, false listed OfMissing,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} is referenced by page {ref_page}, slot {ref_slot}, but was not seen in the scan.",
        brief "page {page}, slot {slot}: off-row data is missing",
        must "Every pointer to off-row data leads to a fragment.",
        cause "The fragment's page is damaged or stale (a lost write), or the pointer was changed.",
        action RESTORE_VALUE;
    LOB_TWO_PARENTS = "lob.two-parents", 8974 state 1, OffRow, Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} is pointed to by page {ref_page}, slot {ref_slot} and by page {other_page}, slot {other_slot}.",
        brief "page {page}, slot {slot}: off-row data with two owners",
        must "A fragment of off-row data has one parent.",
        cause "A pointer was changed, or a page holding one is stale (a lost write).",
        action "Restore the page of the pointer that is wrong (full or bulk-logged recovery model and an unbroken log chain), else the database; a repair deletes the rows whose values are shared.";

    RECORD_COLUMNS = "record.columns", 2537 state 1, Column, Consistency, AllowDataLoss, false [mended_by_rebuild],
        "Table error: {owner_lower}, page {page}, row {slot}. The record check ({test}) failed. The values are {value} and {against}.",
        brief "page {page}: row {slot} does not fit the columns of its table",
        must "A record has no more columns than its table or index, and no value is longer than its column allows.",
        cause "The record was changed after it was written, or the catalog was.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database; if many rows of a table are named, look at the catalog first.";
    COMPUTED_VALUE = "column.computed-value", 2537 state 1, Column, Consistency, AllowDataLoss, false [mended_by_rebuild],
        "Table error: {owner_lower}, page {page}, row {slot}. The record check (valid computed column) failed. The values are {column} and 0.",
        brief "page {page}: row {slot} has a wrong computed value",
        must "A persisted computed column holds the value that its definition gives for the row.",
        cause "The value, or one that it is computed from, was changed in the row, or a function it uses gave another value then.",
        action "Update a column that the computed one depends on to its own value, so that it is computed again; if the other columns may be wrong, compare the row with a backup first. The first value is the column's id.";
    ANTI_MATTER_ROW = "record.anti-matter", 5228 state 1, Column, Consistency, Rebuild, false,
        "Table error: {owner_lower}, page {page}, row {slot}. DBCC detected incomplete cleanup from an online index build operation. (The anti-matter column value is {value}.)",
        brief "page {page}: row {slot} was left by an index build",
        must "No row of a nonclustered index is marked as taken out by an online build of the index (up to SQL Server 2016, where no build can be paused).",
        cause "An online build of the index was not cleaned up, or the row was changed.",
        action REBUILD;
    ROW_VERSION = "record.version-pointer", 5262 state 1, Record, Consistency, AllowDataLoss, false [mended_by_rebuild],
        "{owner}, page {page}, row {slot}: Row contains a NULL versioning timestamp, but its version chain pointer is not NULL. Version chain points to page {version_page}, slot {version_slot}.",
        brief "page {page}: row {slot} has an impossible version pointer",
        must "A row whose version tag names no transaction points to no older version (up to SQL Server 2017).",
        cause "The last 14 bytes of the row were changed.",
        action RESTORE_PAGE_OR_REBUILD;
    COLUMN_PURITY = "column.purity", 2570 state 3, Column, Consistency, None, false,
        "Page {page}, slot {slot} in {purity_owner}. Column \"{column}\" value is out of range for data type \"{type}\". Update column to a legal value.",
        brief "page {page}, slot {slot}: invalid value in column {column}",
        must "The bytes of a value are valid for its type.",
        cause "A program wrote raw bytes that bypassed the server's checks, a defect of the server, or damage to the row.",
        action "Find the row by page and slot and update the column to a legal value; no repair does that.";
    COLUMN_NULL = "column.null", 8970 state 1, Column, Consistency, AllowDataLoss, false [mended_by_rebuild],
        "Row error: {owner}, page ID {page}, row ID {slot}. Column '{column}' was created NOT NULL, but is NULL in the row.",
        brief "page {page}: row {slot} has NULL in a NOT NULL column",
        must "A column that is declared NOT NULL is not NULL in any row.",
        cause "The null bitmap of the row was changed.",
        action RESTORE_PAGE_OR_REBUILD;

    PARTITION_WRONG = "partition.wrong", 8984 state 1, Column, Consistency, AllowDataLoss, false,
        "Table error: object ID {object_id}, index ID {index_id}, partition ID {partition_id}. A row should be on partition number {expected} but was found in partition number {partition}. Possible extra or invalid keys for:",
        brief "a row is in the wrong partition",
        must "Each row of a partitioned table or index is in the partition that its partition function says.",
        cause "The value of the partitioning column was changed outside the engine, or the boundary values in the catalog were.",
        action "For a nonclustered index, disable it and rebuild it; else delete the row and insert it again, or restore the page (full or bulk-logged recovery model and an unbroken log chain). Queries that eliminate partitions do not find the row.";
    PARTITION_WRONG_DETAIL = "partition.wrong-detail", 8988 state 1, Column, Uncounted, None, false,
        "Row {record} identified by ({identity}).",
        brief "row {record}: the one in the wrong partition",
        must "See partition.wrong, which this line continues with the row.",
        cause "See partition.wrong.",
        action "See partition.wrong.";

    CHECK_VIOLATED = "constraint.check-violated", 547 state 0, Constraint, Uncounted, None, false,
        "Constraint error: CHECK constraint '{constraint}' of table '{table}' is {standing}, but its condition is false for row {record}: {where}. Rows that violate it: {rows}.",
        brief "a row violates CHECK constraint {constraint}",
        must "The condition of an enabled and trusted CHECK constraint is false for no row (--constraints); with --constraints=all, of any.",
        cause "A value was changed outside the engine, or by damage that a repair did not undo; a constraint that is not trusted may never have been true for it. The message number is the one with which the engine refuses such a row.",
        action "Find the rows by the condition given and correct them. DBCC CHECKCONSTRAINTS lists them too; ALTER TABLE ... WITH CHECK CHECK CONSTRAINT proves that none is left.";
    FOREIGN_KEY_VIOLATED = "constraint.foreign-key-violated", 547 state 0, Constraint, Uncounted, None, false,
        "Constraint error: FOREIGN KEY constraint '{constraint}' of table '{table}' is {standing}, but row {record} refers to no row of table '{referenced}': {where}. Rows that violate it: {rows}.",
        brief "a row violates FOREIGN KEY constraint {constraint}",
        must "Each non-NULL key of an enabled and trusted FOREIGN KEY constraint exists in the referenced table (--constraints); with --constraints=all, of any.",
        cause "A repair deleted the row referred to, or a value was changed outside the engine; the message number is the one with which the engine refuses such a row.",
        action "Find the rows by the condition given; restore the row referred to, or correct or delete these. DBCC CHECKCONSTRAINTS lists them too.";
    BACKUP_BLOCK_CHECKSUM = "backup.block-checksum", 3241 state 1, Container, Consistency, None, true,
        "The media family on device '{device}' is incorrectly formed. The header of block {tag} at byte {position} has a wrong checksum.",
        brief "{device}: a block header is damaged at byte {position}",
        must "The header of every descriptor block of a backup has the checksum stored in it.",
        cause "The backup file was changed after it was written: by the disk, a copy or a transfer.",
        action "Copy the backup again or take a new one. mdfsck checks what it can still find.";
    LOG_LOST_WRITE = "log.lost-write", 824 state 6, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page} is older than the log: a write was lost. Its LSN is {page_lsn}, but before the start of redo at {redo_lsn} the log changed it last at {lsn} ({operation}, transaction {transaction}). {missing}",
        brief "page {page} is stale: a write was lost",
        must "A page has every change that the log made to it before the point from which recovery would redo.",
        cause "The disk, or something between it and the engine, reported a write as done and lost it, or put an older copy of the page in its place: a reverted snapshot, a stale cache, a file copied at another time.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database. Check the storage: a page with a good checksum that is too old is a write that it lost.";
    LOG_PAGE_NEWER = "log.page-newer", 9003 state 6, Log, Consistency, None, true,
        "{owner}: Page {page} is newer than the log: its LSN is {page_lsn}, the log ends at {lsn}. Data files and log are not of one moment.",
        brief "page {page} is newer than the log",
        must "No allocated page has an LSN after the end of the log.",
        cause "Data files and log were copied at different times, the end of the log was lost, or the page was copied from another database.",
        action "Copy data files and log again, all at once; if these are the originals, restore the database.";
    LOG_IMAGE_DIFFERS = "log.image-differs", 832 state 1, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page}, slot {slot} is not what the log says: {lsn} ({operation}, transaction {transaction}), the last change of the page by its LSN, wrote other bytes there. {missing}",
        brief "page {page} was changed by something other than the engine",
        must "What the last change of a page wrote is on the page.",
        cause "The page was changed in memory, or in its file, by something other than the engine, and got a valid checksum afterwards.",
        action "Restore the page (full or bulk-logged recovery model and an unbroken log chain), else the database. Check the memory of the server, and filter drivers and tools that write to the files.";
    LOG_CHAIN_BROKEN = "log.chain-broken", 3456 state 1, Log, Consistency, AllowDataLoss, true,
        "{owner}: Page {page} does not fit the log: its LSN is {page_lsn}. {contradiction}",
        brief "page {page} does not fit the log",
        must "Each record of a page names the LSN that the record before it gave to the page, and the page has the LSN of one of them.",
        cause "An older copy of the page was read and changed again after a lost write, the LSN of the page was changed, or the page is of another moment.",
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
        "Damage to the backup set was detected. Device '{device}': the data at byte {position} has the checksum {computed:x}, expected {stored:x}.",
        brief "{device}: data with a wrong checksum at byte {position}",
        must "The data of a backup taken WITH CHECKSUM has the checksum that was stored with it.",
        cause "The backup file was changed after it was written; messages about pages say where, if they have checksums too.",
        action "Copy the backup again or take a new one.";
    BACKUP_RECORD_CHECKSUM = "backup.record-checksum", 3189 state 2, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the record at byte {position} of the compressed backup has the checksum {computed:x}, expected {stored:x}.",
        brief "{device}: a compressed record with a wrong checksum at byte {position}",
        must "Every record of a compressed backup has the checksum stored in its header.",
        cause "The backup file was changed after it was written: by the disk, a copy or a transfer.",
        action "Copy the backup again or take a new one. The pages in the record are lost.";
    BACKUP_LOG_BLOCK = "backup.log-block", 3189 state 3, Container, Consistency, None, true,
        "Damage to the backup set was detected. Device '{device}': the log block at byte {position} is not as it was written.",
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
        "Read on \"{device}\" failed: the backup goes on behind byte {position}, where the file ends.",
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
