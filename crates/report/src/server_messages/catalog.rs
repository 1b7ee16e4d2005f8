//! Messages about the catalog from CHECKCATALOG and CHECKDB.

use super::{ServerMessage, row};

const CATALOG_ROWS: &str = "The object whose id the message names, and whether somebody has ever changed system tables by hand, above all \
                            in a database that comes from SQL Server 2000.";
const CATALOG_MEND: &str = "No repair exists for the catalog: restore, or create a new database and copy objects and data into it. \
                            'mdfsck check --catalog' shows the same lines inside message 8992.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        3851,
        "an invalid row in a system table",
        "A row of the catalog is not valid by itself.",
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
        "Something in the catalog belongs to an object that does not exist.",
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
        "If there are no other errors, nothing can or need be done; Microsoft does not support such a database.",
    ),
    row(
        8901,
        "metadata of an object is inconsistent",
        "DBCC could not find out how the object is stored, and skipped it.",
        "'mdfsck check --catalog', and messages for system tables.",
        CATALOG_MEND,
    ),
    row(
        8932,
        "a filegroup is missing in the catalog",
        "Something is stored in a filegroup that sys.filegroups does not have.",
        "sys.filegroups and sys.database_files; 'mdfsck check --catalog'.",
        CATALOG_MEND,
    ),
];
