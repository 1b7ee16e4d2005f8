//! Checks of the columns of a row, of partitions, and of constraints.

use super::{Check, Class, Phase, Policy, REBUILD, RESTORE_PAGE_OR_REBUILD, Repair, ReportOrder};

checks! {
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
        cause "The value, or a value it is computed from, was changed in the row; or a function in the definition returned another value when the row was written.",
        action "Update a column that the computed column depends on to its own value, so that SQL Server computes it again; if the other columns may be wrong, compare the row with a backup first. The first value in the message is the column's id.";
    ANTI_MATTER_ROW = "record.anti-matter", 5228 state 1, Column, Consistency, Rebuild, false,
        "Table error: {owner_lower}, page {page}, row {slot}. DBCC detected incomplete cleanup from an online index build operation. (The anti-matter column value is {value}.)",
        brief "page {page}: row {slot} was left by an index build",
        must "No row of a nonclustered index is marked as removed by an online build of the index (up to SQL Server 2016, where no build can be paused).",
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
        cause "A program wrote raw bytes past the server's checks, the server has a defect, or the row was damaged.",
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
        must "Each row of a partitioned table or index is in the partition to which the partition function assigns it.",
        cause "The value of the partitioning column was changed outside the engine, or the boundary values in the catalog were.",
        action "For a nonclustered index, disable it and rebuild it; else delete the row and insert it again, or restore the page (full or bulk-logged recovery model and an unbroken log chain). Queries that eliminate partitions do not find the row.";
    PARTITION_WRONG_DETAIL = "partition.wrong-detail", 8988 state 1, Column, Uncounted, None, false,
        "Row {record} identified by ({identity}).",
        brief "row {record} is in the wrong partition",
        must "See partition.wrong; this line names the row.",
        cause "See partition.wrong.",
        action "See partition.wrong.";

    CHECK_VIOLATED = "constraint.check-violated", 547 state 0, Constraint, Uncounted, None, false,
        "Constraint error: CHECK constraint '{constraint}' of table '{table}' is {standing}, but its condition is false for row {record}: {where}. Rows that violate it: {rows}.",
        brief "a row violates CHECK constraint {constraint}",
        must "No row makes the condition of an enabled and trusted CHECK constraint false (--constraints); with --constraints=all, of any CHECK constraint.",
        cause "A value was changed outside the engine, or by damage that a repair did not undo; a constraint that is not trusted may never have been true for the row. The engine refuses such a row with the same message number.",
        action "Find the rows by the condition given and correct them. DBCC CHECKCONSTRAINTS lists them too; ALTER TABLE ... WITH CHECK CHECK CONSTRAINT proves that no such row is left.";
    FOREIGN_KEY_VIOLATED = "constraint.foreign-key-violated", 547 state 0, Constraint, Uncounted, None, false,
        "Constraint error: FOREIGN KEY constraint '{constraint}' of table '{table}' is {standing}, but row {record} refers to no row of table '{referenced}': {where}. Rows that violate it: {rows}.",
        brief "a row violates FOREIGN KEY constraint {constraint}",
        must "Each non-NULL key of an enabled and trusted FOREIGN KEY constraint exists in the referenced table (--constraints); with --constraints=all, each key of any FOREIGN KEY constraint.",
        cause "A repair deleted the referenced row, or a value was changed outside the engine. The engine refuses such a row with the same message number.",
        action "Find the rows by the condition given; restore the referenced row, or correct or delete these rows. DBCC CHECKCONSTRAINTS lists them too.";
}
