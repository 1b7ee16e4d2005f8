//! The registered checks for partitions, for constraints, and for the columns of rows.

use super::{Check, Class, Phase, Policy, REBUILD, RESTORE_PAGE_OR_REBUILD, Repair, ReportOrder};

checks! {
    RECORD_COLUMNS = "record.columns", 2537 state 1, Column, Record, Consistency, AllowDataLoss, false [mended_by_rebuild],
        "Table error: {owner_lower}, page {page}, row {slot}. The record check ({test}) failed. The values are {value} and {against}.",
        brief "page {page}: row {slot} does not fit the columns of its table",
        must "A record has no more columns than its table or index, and no value is longer than its column allows.",
        cause "The record or the catalog was changed after it was written.",
        action "Restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. If findings name many rows of a table, look at the catalog first.";
    COMPUTED_VALUE = "column.computed-value", 2537 state 1, Column, Row(Column), Consistency, AllowDataLoss, false [mended_by_rebuild],
        "Table error: {owner_lower}, page {page}, row {slot}. The record check (valid computed column) failed. The values are {column} and 0.",
        brief "page {page}: row {slot} has a wrong computed value",
        must "A persisted computed column holds the value that its definition gives for the row.",
        cause "The computed value, or a value from which it is computed, was changed in the row. Or a function in the definition returned another value when the row was written.",
        action "Update a column on which the computed column depends, and set it to its current value: SQL Server then computes the computed column again. If the other columns may be wrong, compare the row with a backup first. The first value in the message is the id of the computed column.";
    ANTI_MATTER_ROW = "record.anti-matter", 5228 state 1, Column, Structure(BuildRemains), Consistency, Rebuild, false,
        "Table error: {owner_lower}, page {page}, row {slot}. DBCC detected incomplete cleanup from an online index build operation. (The anti-matter column value is {value}.)",
        brief "page {page}: row {slot} was left by an index build",
        must "No row of a nonclustered index is marked as removed by an online build of the index (tested up to SQL Server 2016, in which a build cannot be paused).",
        cause "An online build of the index was not cleaned up, or the row was changed.",
        action REBUILD;
    ROW_VERSION = "record.version-pointer", 5262 state 1, Record, Record, Consistency, AllowDataLoss, false [mended_by_rebuild],
        "{owner}, page {page}, row {slot}: Row contains a NULL versioning timestamp, but its version chain pointer is not NULL. Version chain points to page {version_page}, slot {version_slot}.",
        brief "page {page}: row {slot} has an impossible version pointer",
        must "If the version tag of a row names no transaction, the row points to no older version (tested up to SQL Server 2017).",
        cause "The last 14 bytes of the row were changed.",
        action RESTORE_PAGE_OR_REBUILD;
    COLUMN_PURITY = "column.purity", 2570 state 3, Column, Row(Purity), Consistency, None, false,
        "Page {page}, slot {slot} in {purity_owner}. Column \"{column}\" value is out of range for data type \"{type}\". Update column to a legal value.",
        brief "page {page}, slot {slot}: invalid value in column {column}",
        must "The bytes of a value are valid for its type.",
        cause "A program wrote raw bytes that the server did not validate, the server has a defect, or the row was damaged.",
        action "Find the row by its page and slot, and update the column to a valid value. No repair corrects the value.";
    COLUMN_NULL = "column.null", 8970 state 1, Column, Row(Column), Consistency, AllowDataLoss, false [mended_by_rebuild],
        "Row error: {owner}, page ID {page}, row ID {slot}. Column '{column}' was created NOT NULL, but is NULL in the row.",
        brief "page {page}: row {slot} has NULL in a NOT NULL column",
        must "A column that is declared NOT NULL is not NULL in any row.",
        cause "The null bitmap of the row was changed.",
        action RESTORE_PAGE_OR_REBUILD;

    PARTITION_WRONG = "partition.wrong", 8984 state 1, Column, Row(Partition), Consistency, AllowDataLoss, false,
        "Table error: object ID {object_id}, index ID {index_id}, partition ID {partition_id}. A row should be on partition number {expected} but was found in partition number {partition}. Possible extra or invalid keys for:",
        brief "a row is in the wrong partition",
        must "Each row of a partitioned table or index is in the partition to which the partition function assigns it.",
        cause "Something other than the engine changed the value of the partitioning column, or the boundary values in the catalog.",
        action "For a nonclustered index, disable the index and then rebuild it. For a table, delete the row and insert it again, or restore the page (possible in the full or bulk-logged recovery model with an unbroken log chain). Queries that skip partitions do not find the row.";
    PARTITION_WRONG_DETAIL = "partition.wrong-detail", 8988 state 1, Column, Row(Partition), Uncounted, None, false [follows, remedied_elsewhere],
        "Row {record} identified by ({identity}).",
        brief "row {record} is in the wrong partition",
        must "See partition.wrong; this message names the row.",
        cause "See partition.wrong.",
        action "See partition.wrong.";

    CHECK_VIOLATED = "constraint.check-violated", 547 state 0, Constraint, Row(Constraint), Uncounted, None, false,
        "Constraint error: CHECK constraint '{constraint}' of table '{table}' is {standing}, but its condition is false for row {record}: {where}. Rows that violate it: {rows}.",
        brief "a row violates CHECK constraint {constraint}",
        must "No row makes the condition of a CHECK constraint false. With --constraints, this is tested for enabled and trusted constraints; with --constraints=all, for all CHECK constraints.",
        cause "Something other than the engine changed a value, or damage changed it and a repair did not undo the change. If the constraint is not trusted, it may never have been true for the row. The engine uses the same message number when it rejects a row that violates a constraint.",
        action "Find the rows with the condition in the message, and correct them. DBCC CHECKCONSTRAINTS lists them too. ALTER TABLE ... WITH CHECK CHECK CONSTRAINT proves that no row violates the constraint any more.";
    FOREIGN_KEY_VIOLATED = "constraint.foreign-key-violated", 547 state 0, Constraint, Row(Constraint), Uncounted, None, false,
        "Constraint error: FOREIGN KEY constraint '{constraint}' of table '{table}' is {standing}, but row {record} refers to no row of table '{referenced}': {where}. Rows that violate it: {rows}.",
        brief "a row violates FOREIGN KEY constraint {constraint}",
        must "Each non-NULL key of a FOREIGN KEY constraint exists in the referenced table. With --constraints, this is tested for enabled and trusted constraints; with --constraints=all, for all FOREIGN KEY constraints.",
        cause "A repair deleted the referenced row, or something other than the engine changed a value. The engine uses the same message number when it rejects a row that violates a constraint.",
        action "Find the rows with the condition in the message. Restore the referenced row, or correct or delete the rows that refer to it. DBCC CHECKCONSTRAINTS lists them too.";
}
