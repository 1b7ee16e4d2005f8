//! The table of limits.

use super::{Limit, LimitKind, Mark};

macro_rules! limits {
    ($($name:ident = $id:literal, $kind:ident $($mark:ident)?, $what:literal, $reason:literal, action $action:expr;)*) => {
        $(
            #[doc = $reason]
            pub static $name: Limit = Limit {
                id: $id,
                kind: LimitKind::$kind,
                mark: limits!(@mark $($mark)?),
                what: $what,
                reason: $reason,
                action: $action,
            };
        )*
        /// All limits, in the order of the table.
        pub static ALL: &[&Limit] = &[$(&$name),*];
    };
    (@mark) => { Mark::None };
    (@mark note) => { Mark::Note };
    (@mark root) => { Mark::Root };
    (@mark apart) => { Mark::Apart };
}

const SEE_FINDINGS: &str = "Repair the damage that the findings report, then check again.";
const READ_AGAIN: &str = "The messages on stderr give the cause, such as the disk, a path or permissions. Remove the cause and check again, or check another copy.";
const NEEDS_LOG: &str =
    "Let SQL Server recover the database and shut it down cleanly, then check its files. Or check a full backup.";
const NEEDS_KEY: &str = "Run DBCC CHECKDB on a server that has the TDE certificate of the database, or decrypt the database and check again.";
const CHECK_IDLE: &str = "Check again after SQL Server has finished its work on these pages.";
const ON_SERVER: &str = "To check this part, run DBCC CHECKDB on a server.";
const NOTHING: &str =
    "No action is needed: no error is known. SQL Server does not document how it maintains these values.";
const COMPARE_CATALOG: &str = "Run DBCC CHECKCATALOG on a restored copy of the database. If checks of older backups do not report the same, the catalog was damaged or changed by hand after those backups.";
const CHECK_CONSTRAINTS: &str = "Run DBCC CHECKCONSTRAINTS for the table on a server.";
const UPDATE_STATISTICS: &str =
    "Run UPDATE STATISTICS for the table. Wrong statistics can make queries slow, but never change their results.";
const EXTENDED_ON_SERVER: &str = "Run DBCC CHECKDB WITH EXTENDED_LOGICAL_CHECKS on a server.";

limits! {
    // Page ranges that were not read in this maintenance window and must be read in another window.
    WINDOW_OPEN = "window.open", NotGiven, "ranges",
        "the maintenance window ended before these ranges were read; links, keys and rows are compared after all ranges of the database have been read",
        action "No action is needed: the next window continues the check. To read all pages in one run, check without --window.";
    // Units of which a window over a changing database has not read all pages yet.
    WINDOW_TABLE_OPEN = "window.table-open", NotGiven, "pages",
        "no window has read these pages yet, or they have changed since; links, keys and rows of the table are compared after all its pages have been read",
        action "No action is needed: the next windows continue the check. To read all pages in one run, check without --window.";
    // Bytes that changed although the differential maps of the data files say that they did not.
    CHANGE_UNTRUSTED = "change.untrusted", Damaged note, "differential maps",
        "pages have other bytes than an earlier window has read, although the differential maps say that they have not changed since the last full backup: a map update was lost, a program has written past the server, or bits went bad. Differential backups may lack these pages. No window relies on these maps until the next full backup",
        action "Take a full backup, which clears the differential maps, and look for disk errors in the system log. Do not rely on differential backups that were taken before it.";
    // What is read after all ranges were read.
    WINDOW_CONTAINER_OPEN = "window.container-open", NotGiven, "backup files",
        "the checksums of a backup file are compared after all of its ranges have been read",
        action "No action is needed: the next windows continue the check. To read all pages in one run, check without --window.";

    // Limits that demote findings: something unknown may explain the finding, so it is not a proof.
    DEMOTED_LOG = "demoted.log", NotGiven, "messages",
        "the database was not shut down cleanly, and its log was not applied: changes in the log may explain the reported errors",
        action NEEDS_LOG;
    DEMOTED_MOMENTS = "demoted.moments", NotGiven, "messages",
        "the files are from backups of different points in time: changes between these points may explain the reported errors",
        action "Check a full backup, or restore these backups and check the restored database.";
    DEMOTED_CARVED = "demoted.carved", NotGiven, "messages",
        "the pages come from several places of an image: they may be from different points in time or from different databases, which may explain the reported errors",
        action "Look at the reported pages. If you can tell where the newest copy of each file is in the image, name only that part of the image. Or check a backup.";
    DEMOTED_IN_FLIGHT = "demoted.in-flight", InFlight, "messages",
        "in flight: the reported errors may depend on pages that the log in the backup still changes",
        action "Restore the backup and check the restored database, or check a later backup.";
    INPUT_CHANGED = "input.changed", InFlight, "database",
        "files were written to while they were read: pages that were read at different times may contradict each other",
        action "Check files that no program writes to: a storage snapshot, a restored backup, or the files of a database that is offline. docs/guides/in-use.md describes the ways.";
    SNAPSHOT_NEWER = "snapshot.newer", InFlight, "pages",
        "the source database has changed pages since the snapshot, and the snapshot has no copies of the older versions of these pages",
        action "Make sure that these files belong to the source database of the snapshot, and that the snapshot was copied after the last write to that database. Or create a new snapshot.";
    DEMOTED_MAPS = "demoted.maps", Unreadable, "messages",
        "allocation pages could not be read: it is unknown which pages are in use, and which objects own these pages",
        action READ_AGAIN;
    DEMOTED_MAPS_LOST = "demoted.maps-lost", NotGiven, "messages",
        "allocation maps could not be read back from a temporary file: it is unknown which pages are in use, and which objects own these pages",
        action "Use another folder for temporary files (--temp-dir), or allow more memory (--memory).";
    DEMOTED_CATALOG = "demoted.catalog", Unreadable, "messages",
        "part of the catalog could not be read: it is unknown which objects own the pages",
        action READ_AGAIN;
    DEMOTED_RELEASE = "demoted.release", Unsupported, "messages",
        "the database is from a SQL Server release that is newer than this version of mdfsck",
        action "Use a version of mdfsck that supports this SQL Server release, or run DBCC CHECKDB.";

    // Recovery from the log.
    RECOVERY_NONE = "recovery.none", NotGiven, "recovery",
        "the database was not shut down cleanly, and {}; its files are checked as they are, without the changes in the log",
        action "Pass the log that was copied together with the data files on the command line, or put the log into the folder of the data files. Or check a restored backup, which needs no log.";
    RECOVERY_NEWER_PAGES = "recovery.newer-pages", InFlight note, "transactions",
        "pages were written after the last checkpoint of a database that was not shut down cleanly: without the log, it is unknown which of their changes were committed",
        action "Nothing is damaged by this. Use the log if you can: recovery completes or rolls back these changes. Without the log, compare the rows of these objects with another source.";
    RECOVERY_LOG = "recovery.log", InFlight, "recovery",
        "{}; the database files are checked as they are, without the changes in the log",
        action "Copy the log and the data files again, together. Or check a restored backup, which needs no log.";
    RECOVERY_PAGES = "recovery.pages", InFlight, "recovery",
        "{}; the pages are checked as they are in the files, without the changes in the log",
        action "If the pages are damaged, restore them: 'mdfsck advise --backups DIR' looks for sound copies. If the files were copied from a server that was running, copy data files and log again, together. Otherwise let SQL Server recover the database and shut it down cleanly, then check its files. Or check a full backup.";
    RECOVERY_IN_DOUBT = "recovery.in-doubt", InFlight, "recovery",
        "a transaction that spans several databases is prepared: another server decides whether to commit the transaction or roll it back",
        action "Let the coordinating server commit the transaction or roll it back, or restore all databases that take part in the transaction.";
    RECOVERY_TRANSACTIONS = "recovery.transactions", InFlight, "recovery",
        "an open transaction could not be rolled back completely",
        action NEEDS_LOG;
    RECOVERY_CONTRADICTED = "recovery.contradicted", InFlight, "recovery",
        "{}: the data files are from an earlier point in time, or part of the log is from another database",
        action "Copy the data files and the log again, together.";
    RECOVERY_LOG_END = "recovery.log-end", InFlight, "recovery",
        "complete log blocks follow the end of the log: either the server stopped while it wrote these blocks, or the log is damaged before them",
        action NEEDS_LOG;

    // Comparing pages with the log.
    AUDIT_LOG_DAMAGED = "audit.log-damaged", Damaged, "pages against the log",
        "the log is damaged: all log records after the damage are unknown",
        action "Copy the log again. If the checked log was the original and not a copy, take a full backup now, because log backups will fail.";
    AUDIT_LOG_END = "audit.log-end", Damaged, "pages against the log",
        "pages are newer than the end of the log: either the end of the log was lost, or the log was copied before the data files",
        action "Copy the log and the data files again, together. If the checked files were the originals and not copies, restore the database.";
    AUDIT_LOG_ENCRYPTED = "audit.log-encrypted", NotGiven, "pages against the log",
        "the records of the log are encrypted (TDE)",
        action NEEDS_KEY;
    AUDIT_LOG_UNPROTECTED = "audit.log-unprotected", Damaged, "pages against the log",
        "the page and the log contradict each other, and the log block has no checksum: the page or the log may be damaged",
        action "Check the page against a backup.";
    AUDIT_LOG_RECORD = "audit.log-record", Damaged, "pages against the log",
        "one log record contradicts the page, and no other log record about the page confirms the contradiction: the page or the log may be damaged",
        action "Check the page against a backup.";
    AUDIT_PAGES = "audit.pages", Damaged, "pages against the log",
        "pages that the log changes are damaged or could not be read",
        action SEE_FINDINGS;
    AUDIT_FILE_NOT_GIVEN = "audit.file-not-given", NotGiven, "pages against the log",
        "the log changes pages of a data file that was not given",
        action "Pass all data files of the database on the command line.";
    AUDIT_UNCHANGED = "audit.unchanged", NotGiven note, "pages against the log",
        "the differential maps say that these pages have not changed since the last full backup, and the log does not name them, so the window did not compare them with the log",
        action "No action is needed. mdfsck audit, or a check without --keep-parts, compares all pages with the log.";
    AUDIT_MORE = "audit.more", Damaged, "pages against the log",
        "more pages than those listed contradict the log",
        action "The data files and the log are probably from different points in time. Copy all of them again, together.";

    // Files and pages.
    FILE_NOT_GIVEN = "file.not-given", NotGiven root, "file",
        "the file was not given; its path on the server is {}",
        action "Pass this file on the command line too.";
    VERSION_UNKNOWN = "version.unknown", Unsupported, "version",
        "mdfsck does not know database version {}",
        action "Use a version of mdfsck that supports this SQL Server release, or run DBCC CHECKDB.";
    PAGES_UNREADABLE = "pages.unreadable", Unreadable, "pages",
        "pages could not be read",
        action READ_AGAIN;
    PAGES_BEYOND_END = "pages.beyond-end", NotGiven root, "pages",
        "the file was cut off: its end, with these pages, is missing",
        action "Copy or restore the file again, then check it.";
    PAGES_NOT_FOUND = "pages.not-found", NotGiven root, "pages",
        "pages that are or may be in use were not found in the image: {}",
        action "Name the other parts of the image too, if there are any. A page is found only if its header, and its checksum or its torn bits, are intact.";
    PAGES_FILE_NOT_GIVEN = "pages.file-not-given", NotGiven, "pages",
        "some pages are in a data file that was not given",
        action "Pass all data files of the database on the command line.";
    PAGES_IN_TRANSIT = "pages.in-transit", InFlight, "pages",
        "a repair, an index reorganization, a bulk load, a sort or an encryption of these pages was in progress",
        action CHECK_IDLE;
    PAGES_AFTER_CHECKPOINT = "pages.after-checkpoint", InFlight note, "point in time of the files",
        "the boot page says that the database was shut down cleanly, but pages are newer than the last checkpoint of the database: the files were in use when they were copied, or were copied at different times",
        action "Shut the database down or set it offline, then copy all files again. Or check the files together with the log.";
    PAGES_UNPROTECTED = "pages.unprotected", NotGiven note, "page protection",
        "{} of {} pages have neither a checksum nor torn bits, although PAGE_VERIFY is on: changed values on these pages cannot be detected",
        action "Nothing is wrong. A page gets its checksum when SQL Server next writes it. To make SQL Server write all pages of a table or index, rebuild the table or index.";
    PAGES_SHARED = "pages.shared", Damaged, "pages",
        "several allocation units claim the extents of these pages; too many extents are claimed more than once to examine each page",
        action SEE_FINDINGS;
    PAGES_PFS_DAMAGED = "pages.pfs-damaged", Damaged, "pages",
        "the PFS page that covers these pages is damaged: it is unknown whether these pages are allocated",
        action SEE_FINDINGS;
    PAGES_UNCLAIMED = "pages.unclaimed", Damaged, "pages",
        "pages are allocated, but no IAM chain lists them",
        action SEE_FINDINGS;

    // Allocation.
    ALLOCATION_UNREADABLE = "allocation.unreadable", Unreadable, "allocation",
        "the allocation page could not be read",
        action READ_AGAIN;
    ALLOCATION_ENCRYPTED = "allocation.encrypted", NotGiven, "allocation",
        "the allocation pages are encrypted (TDE)",
        action NEEDS_KEY;
    ALLOCATION_FLAGGED_ENCRYPTED = "allocation.flagged-encrypted", Damaged, "allocation",
        "the page header marks the page as encrypted (TDE), but the page is not encrypted",
        action ON_SERVER;
    ALLOCATION_INTERVAL_DAMAGED = "allocation.interval-damaged", Damaged, "allocation",
        "an allocation page that covers this interval of pages is damaged",
        action SEE_FINDINGS;
    ALLOCATION_INTERVALS_DAMAGED = "allocation.intervals-damaged", Damaged, "allocation",
        "in each of these intervals of pages, an allocation page is damaged",
        action SEE_FINDINGS;
    ALLOCATION_MAP_EXTENT_CLAIMED = "allocation.map-extent-claimed", Undocumented, "allocation",
        "an IAM page claims the extent that holds the allocation pages of a later interval; no known database has such a claim",
        action ON_SERVER;
    ALLOCATION_OWNER_UNKNOWN = "allocation.owner-unknown", Damaged, "owners of pages in use",
        "the pages may belong to a damaged IAM chain",
        action SEE_FINDINGS;
    ALLOCATION_IAM_SURPLUS = "allocation.iam-surplus", Damaged, "allocation",
        "there are more IAM pages than a sound database can have: they belong to allocation units that are not in the catalog, or cover an interval that another IAM page of the allocation unit already covers",
        action SEE_FINDINGS;
    ALLOCATION_IAM_BEYOND_END = "allocation.iam-beyond-end", Damaged, "allocation",
        "IAM pages claim more extents beyond the end of a file than those listed",
        action SEE_FINDINGS;
    ALLOCATION_UNIT_TYPE = "allocation.unit-type", Undocumented, "allocation units",
        "the allocation units have an unknown type",
        action ON_SERVER;

    // Reading the catalog.
    CATALOG_BOOT_PAGE = "catalog.boot-page", Damaged, "catalog",
        "the boot page is damaged or cannot be read, and no other page points to the catalog",
        action "Restore from a backup; no repair exists for the boot page.";
    CATALOG_UNREADABLE = "catalog.unreadable", Unreadable, "catalog",
        "pages of this table could not be read, or are encrypted",
        action READ_AGAIN;
    CATALOG_ENCRYPTED = "catalog.encrypted", NotGiven apart, "catalog",
        "encrypted (TDE): only page headers can be read without the key",
        action NEEDS_KEY;
    CATALOG_AFTER_PRE_CHECK = "catalog.after-pre-check", Damaged, "catalog",
        "the pre-check of this system table failed; SQL Server stops after a failed pre-check, so further messages about the table are not listed",
        action "Restore from a backup; no repair exists for a critical system table.";
    CATALOG_FIRST_PAGE = "catalog.first-page", Damaged, "catalog",
        "dbi_firstSysIndexes in boot page (1:9) points to a page that is not the first page of this table",
        action "Restore from a backup; no repair exists for the boot page.";
    CATALOG_ROWS_FEWER = "catalog.rows-fewer", Damaged, "catalog",
        "fewer rows of the table were found than the catalog counts",
        action SEE_FINDINGS;
    CATALOG_ROWS_FEWER_LOG = "catalog.rows-fewer-log", NotGiven, "catalog",
        "the database was not shut down cleanly, and its log was not applied: fewer rows of the table were found than the catalog counts",
        action NEEDS_LOG;
    CATALOG_CHAIN = "catalog.chain", Damaged, "catalog",
        "the table is damaged: only the pages before its first damaged page were read",
        action SEE_FINDINGS;
    CATALOG_CHAIN_LOG = "catalog.chain-log", NotGiven, "catalog",
        "the database was not shut down cleanly, and its log was not applied: only the pages before the first inconsistent page of the table were read",
        action NEEDS_LOG;
    CATALOG_ROWS = "catalog.rows", Damaged, "catalog",
        "some records of the table cannot be read as rows",
        action SEE_FINDINGS;
    CATALOG_ROWS_LOG = "catalog.rows-log", NotGiven, "catalog",
        "the database was not shut down cleanly, and its log was not applied: some rows of the table cannot be read",
        action NEEDS_LOG;
    CATALOG_TABLE_UNKNOWN = "catalog.table-unknown", Damaged, "catalog",
        "the catalog does not describe this table",
        action SEE_FINDINGS;
    CATALOG_VERSION = "catalog.version", Damaged, "catalog",
        "the catalog does not have the layout of this database version",
        action SEE_FINDINGS;
    CATALOG_VALUES_DISAGREE = "catalog.values-disagree", Damaged, "catalog values",
        "{}",
        action COMPARE_CATALOG;
    CATALOG_VALUE_UNKNOWN = "catalog.value-unknown", Undocumented, "catalog values",
        "{}; this value is unknown",
        action COMPARE_CATALOG;
    CATALOG_VALUES_MORE = "catalog.values-more", Damaged, "catalog values",
        "more catalog values than those listed are unknown or contradict each other",
        action COMPARE_CATALOG;
    CATALOG_VALUE_OF_SERVER = "catalog.value-of-server", Unsupported, "catalog values",
        "the value is unknown; it may be valid, because the catalog of master also describes the server",
        action ON_SERVER;

    // References between base tables.
    REFERENCES_CATALOG = "references.catalog", Damaged, "catalog references",
        "the system tables that describe all other tables could not be read",
        action SEE_FINDINGS;
    REFERENCES_TARGET = "references.target", Damaged, "catalog references",
        "the table to which the rows refer has errors itself",
        action SEE_FINDINGS;
    REFERENCES_TABLE = "references.table", Damaged, "catalog references",
        "the catalog does not have this table",
        action SEE_FINDINGS;
    REFERENCES_COLUMN = "references.column", Damaged, "catalog references",
        "the table has no column {}",
        action SEE_FINDINGS;
    REFERENCES_TABLE_INCOMPLETE = "references.table-incomplete", Damaged, "catalog references",
        "the table could not be read to its end",
        action SEE_FINDINGS;
    REFERENCES_OF_SERVER = "references.of-server", Unsupported, "catalog references",
        "catalog rows refer to entries that this catalog does not have; the references may be valid, because the catalog of master also describes the server",
        action ON_SERVER;
    REFERENCES_UNPROVEN = "references.unproven", Undocumented, "catalog references",
        "catalog rows refer to entries that do not exist; this may be damage, but too few sound databases with references of this kind were examined to be sure",
        action COMPARE_CATALOG;
    REFERENCES_UNKNOWN = "references.unknown", Undocumented, "catalog references",
        "it is unknown what these rows refer to",
        action ON_SERVER;

    // Service Broker.
    BROKER_SIDES = "broker.sides", Damaged, "Service Broker",
        "the number of sending sides of conversations differs from the number of receiving sides",
        action ON_SERVER;
    BROKER_TABLE = "broker.table", Damaged, "Service Broker",
        "the system base table could not be read",
        action SEE_FINDINGS;
    BROKER_NOT_FOLLOWED = "broker.not-followed", Unsupported, "Service Broker",
        "mdfsck does not check the references in these rows",
        action ON_SERVER;
    BROKER_ACTIVATION = "broker.activation", Unsupported, "Service Broker",
        "mdfsck does not check the activation procedures and users of queues",
        action ON_SERVER;

    // Objects that are stored outside the data files, or are only described in them.
    TABLE_MEMORY_OPTIMIZED = "table.memory-optimized", NotGiven apart, "table",
        "the table is memory-optimized: its rows are not in the data files (5296)",
        action "Back up the memory-optimized filegroup: SQL Server verifies the checksums during the backup.";
    FILESTREAM_FILES = "filestream.files", NotGiven apart, "FILESTREAM files",
        "FILESTREAM values are not in the data files",
        action ON_SERVER;
    COLUMNSTORE_CATALOG = "columnstore.catalog", Damaged, "columnstore",
        "the catalog does not describe how to read the compressed rows of this table",
        action SEE_FINDINGS;
    COLUMNSTORE_SEGMENTS = "columnstore.segments", Undocumented, "columnstore",
        "segments are not decoded; delta stores and delete bitmaps are not read",
        action ON_SERVER;

    // Rows and their descriptions.
    RECORDS_COMPRESSED_FORM = "records.compressed-form", Undocumented, "records",
        "the compressed rows have an undocumented form",
        action ON_SERVER;
    RECORDS_UNIT_UNKNOWN = "records.unit-unknown", Damaged, "records",
        "the allocation unit is not in the catalog",
        action SEE_FINDINGS;
    RECORDS_DROPPED = "records.dropped", InFlight, "records",
        "the object was dropped, but SQL Server has not yet deallocated its pages",
        action CHECK_IDLE;
    RECORDS_FORM_UNKNOWN = "records.form-unknown", Unsupported, "records",
        "the row format is unknown: the rows belong to a columnstore, or contain older row versions",
        action ON_SERVER;
    ROWS_COLUMNSTORE = "rows.columnstore", Undocumented, "rows",
        "rows in columnstore segments are not compared",
        action ON_SERVER;
    ROWS_COMPRESSION = "rows.compression", Damaged, "rows",
        "the catalog does not describe how to read the compressed rows",
        action SEE_FINDINGS;
    ROWS_COLUMNS_UNKNOWN = "rows.columns-unknown", Damaged, "rows",
        "the columns are not in the catalog",
        action SEE_FINDINGS;
    ROWS_COLUMNS_DIFFER = "rows.columns-differ", Unsupported, "rows",
        "the partitions have different columns",
        action ON_SERVER;
    ROWS_NOT_IN_FILES = "rows.not-in-files", NotGiven apart, "rows",
        "the rows are not in the data files",
        action ON_SERVER;

    // Page headers and counts.
    HEADERS_COUNTS_COMPRESSED = "headers.counts-compressed", Undocumented note, "free-space and ghost counts in page headers",
        "SQL Server does not document how it counts free bytes and ghost records on compressed pages",
        action NOTHING;
    HEADERS_COUNTS_GHOSTS = "headers.counts-ghosts", Undocumented, "free-space and ghost counts in page headers",
        "SQL Server does not document how it counts free bytes on pages that have remains of ghost records, or rows with only sparse columns",
        action "After SQL Server has cleaned up the ghost records, rebuild the index or table, then check again.";
    PFS_FREE_SPACE_COMPRESSED = "pfs.free-space-compressed", Undocumented note, "PFS free space",
        "it is unknown whether SQL Server maintains PFS free space for compressed heaps",
        action NOTHING;
    COUNTS_ROWS_FEWER = "counts.rows-fewer", Damaged, "row count",
        "{} rows were found, but the catalog counts {}: the count in the catalog is stale, or pages with rows could not be found",
        action "Run SELECT COUNT(*) on the server and compare the numbers. If rows are missing, restore the database. Otherwise run DBCC UPDATEUSAGE WITH COUNT_ROWS.";
    COUNTS_ROWS_MORE = "counts.rows-more", Damaged note, "row count",
        "{} rows were found, but the catalog counts {}: the count in the catalog is stale",
        action "Run DBCC UPDATEUSAGE WITH COUNT_ROWS.";

    // B-trees and heaps.
    TREE_KEY_ORDER_COLLATION = "tree.key-order-collation", Unsupported, "key order",
        "the order of these neighboring keys depends on sort weights of the collation that mdfsck does not have",
        action ON_SERVER;
    TREE_COLUMNS_UNKNOWN = "tree.columns-unknown", Damaged, "key order",
        "the columns are not in the catalog",
        action SEE_FINDINGS;
    TREE_COMPRESSED_ENTRIES = "tree.compressed-entries", Undocumented, "links and key bounds",
        "the form of child pointers in compressed non-leaf rows is undocumented; only sibling links were checked",
        action ON_SERVER;
    TREE_IAM_CHAIN = "tree.iam-chain", Damaged, "links between pages",
        "the IAM chain is damaged (7965)",
        action SEE_FINDINGS;
    TREE_KEY_BOUNDS_LOST = "tree.key-bounds-lost", NotGiven apart, "key bounds",
        "there was no space for temporary files",
        action "Use a folder with more free space (--temp-dir), or allow more memory (--memory).";
    HEAP_FORWARDING = "heap.forwarding", Undocumented, "forwarded rows",
        "the back pointers of forwarded rows have an unknown form",
        action ON_SERVER;

    // Values.
    COLUMNS_UNKNOWN = "columns.unknown", Damaged, "columns",
        "the catalog does not describe the columns",
        action SEE_FINDINGS;
    COLUMN_TYPE = "column.type", Unsupported, "column values",
        "values of this type are not decoded",
        action ON_SERVER;
    COLUMN_UNKNOWN = "column.unknown", Damaged, "column values",
        "the catalog has no column with this number",
        action SEE_FINDINGS;
    COLUMN_FIXED_AS_VARIABLE = "column.fixed-as-variable", Undocumented, "column values",
        "values of a fixed-length type are stored with variable length",
        action ON_SERVER;
    COLUMN_SPARSE_UNKNOWN = "column.sparse-unknown", Undocumented, "column values",
        "sparse values have an unknown form, or belong to columns that the catalog does not have",
        action ON_SERVER;
    COLUMN_SPARSE_FORM = "column.sparse-form", Undocumented, "column values",
        "sparse values are stored off the row, or their form is not certain",
        action ON_SERVER;
    COLUMN_NTEXT_FORM = "column.ntext-form", Undocumented, "column values",
        "ntext values that are stored off the row have an undocumented form",
        action ON_SERVER;
    COLUMN_FILE_NOT_GIVEN = "column.file-not-given", NotGiven, "column values",
        "off-row values were not found; they may be in a data file that was not given",
        action "Pass all data files of the database on the command line.";
    COLUMN_XML_OFF_ROW = "column.xml-off-row", Unsupported, "column values",
        "xml values that are stored off the row were not found, or are too many to read",
        action ON_SERVER;
    COLUMN_VALUE_OFF_ROW = "column.value-off-row", Unsupported, "column values",
        "too many values are stored off the row to read them all, or their form is not certain",
        action ON_SERVER;
    COLUMN_LENGTH = "column.length", Undocumented, "column values",
        "values are longer than declared (the client may have encrypted them), or too many values are stored off the row to read their lengths",
        action ON_SERVER;
    COLUMN_NTEXT_TOO_MANY = "column.ntext-too-many", Unsupported, "column values",
        "too many values are stored off the row to check whether each length is even",
        action ON_SERVER;
    COLUMN_NTEXT_DAMAGED = "column.ntext-damaged", Damaged, "column values",
        "some values that are stored off the row are damaged, so the lengths of the values were not checked",
        action SEE_FINDINGS;

    // Off-row data.
    LOB_UNIT_UNKNOWN = "lob.unit-unknown", Damaged, "LOB trees",
        "the allocation unit belongs to no rowset",
        action SEE_FINDINGS;
    LOB_GHOSTS = "lob.ghosts", Undocumented, "LOB trees",
        "only ghost rows refer to these LOB fragments",
        action "Check again after SQL Server has cleaned up the ghost rows.";
    LOB_ROWS_UNKNOWN = "lob.rows-unknown", Undocumented, "LOB trees",
        "the rows have an unknown form",
        action ON_SERVER;
    LOB_COLUMNSTORE = "lob.columnstore", Undocumented, "LOB trees",
        "the LOB data belong to a columnstore, or to an index of an unknown kind",
        action ON_SERVER;
    LOB_OUT_OF_SCOPE = "lob.out-of-scope", NotGiven apart, "LOB trees",
        "some pages of the LOB data, or of the rows that refer to it, are outside the requested scope",
        action "Check the whole database.";
    LOB_FILE_NOT_GIVEN = "lob.file-not-given", NotGiven, "LOB trees",
        "some pages of the LOB data, or of the rows that refer to it, are in a data file that was not given",
        action "Pass all data files of the database on the command line.";
    LOB_PAGES_UNKNOWN = "lob.pages-unknown", Damaged, "LOB trees",
        "some pages of the LOB data, or of the rows that refer to it, could not be found",
        action SEE_FINDINGS;
    LOB_VALUES_FORM = "lob.values-form", Undocumented, "LOB trees",
        "rows hold values in an undocumented form: FILESTREAM values, or sparse values that are stored off the row",
        action ON_SERVER;
    LOB_FRAGMENTS_FORM = "lob.fragments-form", Undocumented, "LOB trees",
        "the LOB fragments have an undocumented form",
        action ON_SERVER;

    // Expressions in the catalog: filters, computed columns, constraints.
    EXPRESSION_MISSING = "expression.missing", Damaged, "expressions",
        "the expression is not in the catalog",
        action SEE_FINDINGS;
    EXPRESSION_CODE_PAGE = "expression.code-page", Unsupported, "expressions",
        "the characters of expression {} depend on the code page",
        action ON_SERVER;
    EXPRESSION_UNSUPPORTED = "expression.unsupported", Unsupported, "expressions",
        "expression {} is not evaluated: {}",
        action ON_SERVER;
    EXPRESSION_COLUMN = "expression.column", Unsupported, "expressions",
        "an expression names a column that is not stored",
        action ON_SERVER;
    EXPRESSION_NO_CONDITION = "expression.no-condition", Unsupported, "expressions",
        "the expression is not a condition",
        action ON_SERVER;
    EXPRESSION_NO_VALUE = "expression.no-value", Unsupported, "expressions",
        "the expression is a condition and has no value",
        action ON_SERVER;
    EXPRESSION_TYPE = "expression.type", Unsupported, "expressions",
        "the computed column has type {}, but its definition has the type {}",
        action ON_SERVER;
    EXPRESSION_TOO_EXPENSIVE = "expression.too-expensive", Unsupported, "expressions",
        "the expression is too expensive to evaluate for these rows",
        action ON_SERVER;
    COMPUTED_UNCERTAIN = "computed.uncertain", Unsupported, "persisted computed columns",
        "mdfsck cannot compute the values of these rows with certainty",
        action EXTENDED_ON_SERVER;

    // Comparing indexes with their tables.
    INDEX_DAMAGED = "index.damaged", Damaged, "index rows against table rows",
        "the table or the index itself is damaged",
        action SEE_FINDINGS;
    INDEX_FILE_NOT_GIVEN = "index.file-not-given", NotGiven, "index rows against table rows",
        "pages of the index or its table are in a data file that was not given",
        action "Pass all data files of the database on the command line.";
    INDEX_ROWS_FORM = "index.rows-form", Undocumented, "index rows against table rows",
        "the rows have an undocumented form",
        action ON_SERVER;
    INDEX_OFF_ROW_ENDLESS = "index.off-row-endless", Damaged, "index rows against table rows",
        "values that are stored off the row claim more bytes than the database has",
        action SEE_FINDINGS;
    INDEX_ROWS_UNCERTAIN = "index.rows-uncertain", Unsupported, "index rows against table rows",
        "rows have off-row values that cannot be read, or expressions with an uncertain value",
        action ON_SERVER;
    INDEX_DESCRIPTION_DAMAGED = "index.description-damaged", Damaged, "index rows against table rows",
        "system tables that describe indexes are damaged",
        action SEE_FINDINGS;
    INDEX_DESCRIPTION_UNREADABLE = "index.description-unreadable", Damaged, "index rows against table rows",
        "the system tables that describe indexes could not be read",
        action SEE_FINDINGS;
    INDEX_MORE_UNMATCHED = "index.more-unmatched", Damaged, "index rows against table rows",
        "more rows than those listed have no matching row in the index or table",
        action SEE_FINDINGS;
    INDEX_NO_TABLE = "index.no-table", Damaged, "index rows against table rows",
        "the table of the index has no rowset",
        action SEE_FINDINGS;
    INDEX_NO_ROWSET = "index.no-rowset", Damaged, "index rows against table rows",
        "the index has no rowset",
        action SEE_FINDINGS;
    INDEX_BUILD_PAUSED = "index.build-paused", InFlight, "index rows against table rows",
        "an online build of an index of the table may be paused",
        action "Resume or abort the index operation (sys.index_resumable_operations), then check again.";
    INDEX_COLUMN_TYPE = "index.column-type", Damaged, "index rows against table rows",
        "column {} has a type that no index can contain",
        action COMPARE_CATALOG;
    INDEX_UNKNOWN = "index.unknown", Damaged, "index rows against table rows",
        "the catalog does not have this index",
        action SEE_FINDINGS;
    INDEX_KIND = "index.kind", Unsupported, "index rows against table rows",
        "{} indexes are not compared",
        action ON_SERVER;
    INDEX_DISABLED = "index.disabled", Unsupported, "index rows against table rows",
        "the index is disabled: SQL Server does not maintain its rows",
        action "Rebuild or drop the index.";
    INDEX_COLUMNS_UNEXPLAINED = "index.columns-unexplained", Damaged, "index rows against table rows",
        "the index has columns that the catalog does not describe",
        action COMPARE_CATALOG;
    INDEX_KEY_COLUMNS = "index.key-columns", Damaged, "index rows against table rows",
        "the index lacks columns of its table's clustering key",
        action COMPARE_CATALOG;
    INDEX_SPARSE_PADDING = "index.sparse-padding", Undocumented, "index rows against table rows",
        "column {} is sparse, and values of its type may be stored without padding",
        action ON_SERVER;
    INDEX_TYPES_DIFFER = "index.types-differ", Damaged, "index rows against table rows",
        "column {} has different types in the index and in the table",
        action COMPARE_CATALOG;
    INDEX_COLUMN_MISSING = "index.column-missing", Damaged, "index rows against table rows",
        "column {} is not in the table",
        action COMPARE_CATALOG;

    // Extended logical checks.
    EXTENDED_XML_CONTENT = "extended.xml-content", Unsupported, "extended logical checks",
        "each document has nodes in the index; the content of the nodes was not checked",
        action EXTENDED_ON_SERVER;
    EXTENDED_XML_FORM = "extended.xml-form", Unsupported, "extended logical checks",
        "the index is a secondary XML index, or an XML index of an unknown form",
        action EXTENDED_ON_SERVER;
    EXTENDED_SPATIAL = "extended.spatial", Unsupported, "extended logical checks",
        "mdfsck does not compute the cells of a spatial index",
        action EXTENDED_ON_SERVER;
    EXTENDED_VIEW = "extended.view", Unsupported, "extended logical checks",
        "mdfsck does not evaluate the definition of the view",
        action EXTENDED_ON_SERVER;
    EXTENDED_KEYS = "extended.keys", Unsupported, "extended logical checks",
        "some rows have unknown keys or node IDs",
        action EXTENDED_ON_SERVER;

    // Statistics.
    STATISTICS_WHOLE = "statistics.whole", Damaged note, "statistics",
        "the stored statistics contradict themselves: {}",
        action UPDATE_STATISTICS;
    STATISTICS_ORDER = "statistics.order", Damaged note, "statistics",
        "the value of a histogram step is not above the value of the step before it",
        action UPDATE_STATISTICS;
    STATISTICS_COUNTS = "statistics.counts", Damaged note, "statistics",
        "a count of the histogram is negative or not a number, or the counts do not add up to the number of rows",
        action UPDATE_STATISTICS;
    STATISTICS_DENSITIES = "statistics.densities", Damaged note, "statistics",
        "a density is not a number, or stands for no value, or for more distinct values than the table has rows",
        action UPDATE_STATISTICS;
    STATISTICS_ORDER_COLLATION = "statistics.order-collation", Unsupported, "statistics",
        "the order of these steps depends on sort weights of the collation that mdfsck does not have",
        action EXTENDED_ON_SERVER;
    STATISTICS_ORDER_UNKNOWN = "statistics.order-unknown", Undocumented, "statistics",
        "the sort order of histogram steps of this type is unknown",
        action EXTENDED_ON_SERVER;
    STATISTICS_FORM = "statistics.form", Undocumented, "statistics",
        "the statistics have an unknown version, or an unknown part",
        action EXTENDED_ON_SERVER;
    STATISTICS_COLUMN = "statistics.column", Damaged, "statistics",
        "the first column of the statistics is not in the catalog, or its type differs from the type of the histogram steps",
        action COMPARE_CATALOG;
    STATISTICS_UNREAD = "statistics.unread", Damaged, "statistics",
        "the statistics could not be read to their end",
        action SEE_FINDINGS;

    // Partitions.
    PARTITION_FUNCTION = "partition.function", Damaged, "partition of each row",
        "the partition function is not in the catalog",
        action SEE_FINDINGS;
    PARTITION_NO_ROWSET = "partition.no-rowset", Damaged, "partition of each row",
        "the catalog has no partition of this table or index",
        action SEE_FINDINGS;
    PARTITION_BOUNDARIES = "partition.boundaries", Undocumented, "partition of each row",
        "the boundary values of the partition function are not in the catalog in the expected form",
        action ON_SERVER;
    PARTITION_BOUNDARIES_SEVERAL = "partition.boundaries-several", Undocumented, "partition of each row",
        "several lists of values in the catalog may be the boundary values",
        action ON_SERVER;
    PARTITION_BOUNDARIES_COUNT = "partition.boundaries-count", Undocumented, "partition of each row",
        "the number of partitions is not one more than the number of boundary values",
        action ON_SERVER;
    PARTITION_BOUNDARIES_TYPE = "partition.boundaries-type", Undocumented, "partition of each row",
        "the boundary values do not have the type of the column, {}",
        action ON_SERVER;
    PARTITION_BOUNDARIES_ORDER = "partition.boundaries-order", Unsupported, "partition of each row",
        "the order of the boundary values is not certain",
        action ON_SERVER;
    PARTITION_COLUMN = "partition.column", Unsupported, "partition of each row",
        "the partitioning column is not stored",
        action ON_SERVER;
    PARTITION_COLUMN_TYPE = "partition.column-type", Unsupported, "partition of each row",
        "partitioning columns of type {} are not compared",
        action ON_SERVER;
    PARTITION_ORDER = "partition.order", Unsupported, "partition of each row",
        "the values are stored off the row, or their order depends on sort weights of the collation that mdfsck does not have",
        action ON_SERVER;
    PARTITION_SIDE = "partition.side", Undocumented, "partition of each row",
        "the value equals a boundary, and the data does not show whether the range is LEFT or RIGHT",
        action ON_SERVER;
    PARTITION_CONTRADICTED = "partition.contradicted", Undocumented, "partition of each row",
        "most rows contradict the boundary values that were read from the catalog",
        action ON_SERVER;
    PARTITION_WRONG_OR_SIDE = "partition.wrong-or-side", Undocumented, "partition of each row",
        "the row is in a wrong partition; its value equals a boundary, and the data does not show whether the range is LEFT or RIGHT",
        action ON_SERVER;

    // Constraints and identity columns.
    CONSTRAINT_STATUS = "constraint.status", Undocumented, "constraints",
        "the status 0x{} of the constraint has bits of unknown meaning",
        action CHECK_CONSTRAINTS;
    CONSTRAINT_COLUMNS = "constraint.columns", Damaged, "constraints",
        "the columns of the constraint are not in the catalog",
        action SEE_FINDINGS;
    CONSTRAINT_COLUMN_NOT_STORED = "constraint.column-not-stored", Unsupported, "constraints",
        "column {} is not stored in its table",
        action CHECK_CONSTRAINTS;
    CONSTRAINT_COLUMN_TYPE = "constraint.column-type", Unsupported, "constraints",
        "mdfsck does not compare column {}, which has type {}",
        action CHECK_CONSTRAINTS;
    CONSTRAINT_TYPES_DIFFER = "constraint.types-differ", Damaged, "constraints",
        "column {} and the column it refers to have different types",
        action COMPARE_CATALOG;
    CONSTRAINT_CATALOG = "constraint.catalog", Damaged, "constraints",
        "the catalog is damaged: it may lack allocation units or columns",
        action SEE_FINDINGS;
    CONSTRAINT_TABLE = "constraint.table", Damaged, "constraints",
        "a table of the constraint is damaged, or not all of its rows are known",
        action SEE_FINDINGS;
    CONSTRAINT_OUT_OF_SCOPE = "constraint.out-of-scope", NotGiven apart, "constraints",
        "the table to which the foreign key refers was not checked",
        action "Check both tables of the foreign key in one run, or check the whole database.";
    CONSTRAINT_UNCERTAIN = "constraint.uncertain", Unsupported, "constraints",
        "it is not certain whether these rows meet the condition: {}",
        action CHECK_CONSTRAINTS;
    CONSTRAINT_KEYS_OFF_ROW = "constraint.keys-off-row", Unsupported, "constraints",
        "some keys have values that are stored off the row",
        action CHECK_CONSTRAINTS;
    CONSTRAINT_KEYS_COLLATION = "constraint.keys-collation", Unsupported, "constraints",
        "whether these keys are equal depends on sort weights of the collation that mdfsck does not have",
        action CHECK_CONSTRAINTS;
    IDENTITY_MARK = "identity.mark", Undocumented, "identity value",
        "the current identity value is stored in an unknown form",
        action "Run DBCC CHECKIDENT with NORESEED on a server.";
    IDENTITY_COLUMN = "identity.column", Damaged, "identity value",
        "the identity column is not in the catalog",
        action SEE_FINDINGS;
    IDENTITY_COLUMN_FORM = "identity.column-form", Unsupported, "identity value",
        "the identity column is sparse, or stored with variable length",
        action "Run DBCC CHECKIDENT with NORESEED on a server.";
    IDENTITY_TABLE = "identity.table", Damaged, "identity value",
        "the table is damaged, or not all of its rows are known",
        action SEE_FINDINGS;
    IDENTITY_LOG = "identity.log", NotGiven, "identity value",
        "the database was not shut down cleanly: the current identity value may be in the log",
        action NEEDS_LOG;
    IDENTITY_VALUES = "identity.values", Unsupported, "identity value",
        "some rows have no identity value, or a value that does not fit into 64 bits",
        action "Run DBCC CHECKIDENT with NORESEED on a server.";

    // Encrypted databases.
    ENCRYPTED_PAGES = "encrypted.pages", NotGiven apart, "pages",
        "encrypted (TDE): only page headers can be read without the key",
        action NEEDS_KEY;
    ENCRYPTED_PLAIN_PAGES = "encrypted.plain-pages", NotGiven, "pages",
        "these pages of an encrypted database are not encrypted; only their headers were checked, because the allocation \
        pages and the catalog cannot be read",
        action NEEDS_KEY;
    ENCRYPTED_ZEROS = "encrypted.zeros", NotGiven, "pages of zeros",
        "the allocation pages that show whether these pages are in use are encrypted (TDE)",
        action NEEDS_KEY;
    ENCRYPTED_LINKS = "encrypted.links", NotGiven, "links between pages",
        "the links of two pages do not match; this is valid if one of the two pages is no longer in use, but the \
        allocation pages that show whether the page is in use are encrypted (TDE)",
        action NEEDS_KEY;
    ENCRYPTED_OTHER_PAGE = "encrypted.other-page", NotGiven, "page",
        "the header names another page; this is valid on an unused page, but the allocation pages that show whether the page is in use are encrypted (TDE)",
        action NEEDS_KEY;
    ENCRYPTED_NOT_AS_WRITTEN = "encrypted.not-as-written", NotGiven, "page",
        "the checksum or torn bits are wrong; this is valid on a page that was never in use, but the allocation pages that show whether the page is in use are encrypted (TDE)",
        action NEEDS_KEY;
    ENCRYPTED_PAGE_TYPE = "encrypted.page-type", NotGiven, "page",
        "the page type is unknown; this is valid on an unused page, but the allocation pages that show whether the page is in use are encrypted (TDE)",
        action NEEDS_KEY;
    ENCRYPTED_MORE_PAGES = "encrypted.more-pages", NotGiven, "pages",
        "more pages than those listed have a wrong header, checksum or type; this is valid on unused pages, but the allocation pages that show which pages are in use are encrypted (TDE)",
        action NEEDS_KEY;

    // Backups.
    BACKUP_STRIPES = "backup.stripes", NotGiven root, "stripes",
        "{}: pages cannot be read",
        action "Pass all stripes of the media set on the command line.";
    BACKUP_BLOCK_TYPE_UNKNOWN = "backup.block-type-unknown", Undocumented, "blocks of the backup",
        "the content of backup blocks of this type is undocumented",
        action "Run RESTORE VERIFYONLY on a server.";
    BACKUP_RECORD_FORM = "backup.record-form", Undocumented, "compressed records of the backup",
        "records do not decompress to the size that their headers give: the records are damaged, or mdfsck does not know their compression",
        action "Run RESTORE VERIFYONLY on a server.";
}
