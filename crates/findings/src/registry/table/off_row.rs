//! Checks of off-row values, and of the free space of their pages.

use super::{Check, Class, Phase, Policy, RESTORE_VALUE, Repair, ReportOrder};

checks! {
    PFS_FREE_SPACE = "page.pfs-free-space", 8914 state 1, Allocation, Map(PfsFreeSpace), Consistency, AllowDataLoss, false,
        "Incorrect PFS free space information for page {page} in {owner_lower}. Expected value {expected}, actual value {actual}.",
        brief "the PFS page is wrong about the free space of page {page}",
        must "The PFS byte of a heap page, or of a page with off-row data, says how full the page is: 0, 50, 80, 95 or 100 percent.",
        cause "The PFS byte was changed, the page is stale (a lost write), or SQL Server 2005 SP2 set a wrong PFS byte in a bulk load of LOBs.",
        action "A wrong PFS byte alone is harmless. Together with other messages about the page, it indicates a lost write. A repair corrects the byte.";
    LOB_CROSS_UNIT = "lob.cross-unit", 8925 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false,
        "Table error: Cross object linkage: Page {ref_page}, slot {ref_slot}, in {owner_lower}, refers to page {page}, slot {slot}, in {other_owner}.",
        brief "page {ref_page} points to off-row data of another object",
        must "A pointer to off-row data points to a page with off-row data of the same table.",
        cause "The pointer was changed, or a wrong allocation page assigned the page to another table.",
        action RESTORE_VALUE;
    LOB_OWNER = "lob.owner", 8929 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false listed AsConsequence [follows],
        "{owner}: Errors found in off-row data with ID {text_id} owned by {record_kind} record identified by {record}",
        brief "a row has damaged off-row data",
        must "Every off-row value is complete.",
        cause "Another message names the fragment that is missing or wrong.",
        action RESTORE_VALUE;
    COMPLEX_COLUMN = "lob.complex-column", 8960 state 1, Column, Record, Consistency, AllowDataLoss, false,
        "Table error: {owner}. Page {page}, slot {slot}, column {column} is not a valid complex column.",
        brief "page {page}, slot {slot}: a pointer to off-row data is damaged",
        must "In place of an off-row value, a row holds a pointer of a known kind, and the pointer has the length of its kind.",
        cause "A variable offset of the row or the pointer itself was changed.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. A repair deletes the row.";
    LOB_MISMATCH = "lob.mismatch", 8961 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} does not match its reference from page {ref_page}, slot {ref_slot}.",
        brief "page {page}, slot {slot}: off-row data does not fit its reference",
        must "A fragment of off-row data has the id (state 1), the size (state 2) and the level or type (state 4) that its parent expects.",
        cause "The fragment or its parent was changed, or one of their pages is stale (a lost write).",
        action RESTORE_VALUE;
    LOB_NODE_TYPE = "lob.node-type", 8962 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} has incorrect node type {node_type}.",
        brief "page {page}, slot {slot}: off-row data of an unknown type",
        must "Every fragment of off-row data has a known type: 0 to 6, or 8.",
        cause "The fragment was changed after it was written.",
        action RESTORE_VALUE;
    LOB_PAGE_TYPE = "lob.page-type", 8963 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} has type {node_type}. It cannot be placed on a page of type {page_type}.",
        brief "page {page}, slot {slot}: off-row data on a page of the wrong type",
        must "Small off-row values and NULLs are on pages of type 3, which several values share; a page of type 4 belongs to the tree of one large value.",
        cause "The fragment, or the type in the page header, was changed after it was written.",
        action RESTORE_VALUE;
    LOB_UNREFERENCED = "lob.unreferenced", 8964 state 1, OffRow, Reference(Unreferenced), Consistency, AllowDataLoss, false listed AsConsequence [remedied_elsewhere],
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} is not referenced.",
        brief "page {page}, slot {slot}: off-row data that no row refers to",
        must "A row or a parent fragment refers to every fragment of off-row data.",
        cause "The row or the parent fragment was lost, or its pointer was changed. A lost write can cause both.",
        action "See the other messages about the table. If a row or a page of the table is lost, restore it. A repair deletes only the fragment.";
    LOB_UNSEEN = "lob.unseen", 8965 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false listed OfMissing,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} is referenced by page {ref_page}, slot {ref_slot}, but was not seen in the scan.",
        brief "page {page}, slot {slot}: off-row data is missing",
        must "Every pointer to off-row data points to a fragment.",
        cause "The fragment's page is damaged or stale (a lost write), or the pointer was changed.",
        action RESTORE_VALUE;
    LOB_TWO_PARENTS = "lob.two-parents", 8974 state 1, OffRow, Reference(OffRow), Consistency, AllowDataLoss, false,
        "Table error: {owner}. The off-row data node at page {page}, slot {slot}, text ID {text_id} is pointed to by page {ref_page}, slot {ref_slot} and by page {other_page}, slot {other_slot}.",
        brief "page {page}, slot {slot}: off-row data with two owners",
        must "A fragment of off-row data has one parent.",
        cause "One of the two pointers was changed, or its page is stale (a lost write).",
        action "Restore the page that has the wrong pointer (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. A repair deletes the rows that share the value.";
}
