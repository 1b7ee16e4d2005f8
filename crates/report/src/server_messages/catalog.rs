//! Messages about the catalog from CHECKCATALOG and CHECKDB.

use super::{ServerMessage, row};

const CATALOG_ROWS: &str = "The object whose id the message names. Has somebody ever changed system tables by hand, above all while the \
                            database was on SQL Server 2000?";
const CATALOG_MEND: &str = "No repair exists for the catalog: restore, or create a new database and copy objects and data into it. \
                            'mdfsck check --catalog' shows the same messages inside message 8992.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        3851,
        "an invalid row in a system table",
        "A row of a system table has invalid values.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3852,
        "a catalog row without its counterpart",
        "A row of one system table lacks the row that it needs in another system table.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3853,
        "a catalog row refers to one that is missing",
        "A value in a catalog row, such as the id of an owner or a table, points to no row.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3854,
        "a catalog row refers to one that is invalid",
        "A value in a catalog row points to a row of the wrong kind.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3855,
        "a catalog attribute without its row",
        "An attribute in the catalog belongs to an object that does not exist.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3856,
        "a catalog attribute that should not exist",
        "A catalog row has an attribute that its kind of object cannot have.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3857,
        "a required catalog attribute is missing",
        "A catalog row lacks an attribute that its kind of object must have.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3858,
        "a catalog attribute has an invalid value",
        "A value in a catalog row is not allowed there.",
        CATALOG_ROWS,
        CATALOG_MEND,
    ),
    row(
        3859,
        "system tables were updated by hand",
        "Somebody changed system tables of this database directly. This need not have caused damage.",
        "The date in the message, and other errors of CHECKCATALOG.",
        "If there are no other errors, no action is needed or possible. Microsoft does not support databases whose system tables were changed directly.",
    ),
    row(
        8901,
        "metadata of an object is inconsistent",
        "DBCC could not find out how the object is stored, and skipped the object.",
        "The output of 'mdfsck check --catalog', and messages about system tables.",
        CATALOG_MEND,
    ),
    row(
        8932,
        "a filegroup is missing in the catalog",
        "An object is stored in a filegroup that is not in sys.filegroups.",
        "sys.filegroups and sys.database_files; 'mdfsck check --catalog'.",
        CATALOG_MEND,
    ),
];
