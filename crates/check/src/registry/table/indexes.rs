//! Checks that compare indexes with their table, and checks of columnstore indexes and counts.

use super::{Check, Class, Phase, Policy, Repair, ReportOrder};

checks! {
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
        brief "columnstore index {index}: its metadata is inconsistent",
        must "All segments of a row group have the row group's number of rows, a smallest value not above the largest, and a base that fits their encoding.",
        cause "A row of syscscolsegments or syscsrowgroups was changed, or a page of them is stale (a lost write).",
        action "Create a nonclustered columnstore index again; for a clustered columnstore index, restore the data from a backup.";
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
        action "Restore the data from a backup. If the data of a dictionary is missing, the message shows the dictionary's number in place of the row group's.";
    COLUMNSTORE_DICTIONARY_NONCLUSTERED = "columnstore.dictionary-nonclustered", 5285 state 1, Catalog, Consistency, None, false,
        "Nonclustered columnstore index '{index}' on table '{table}' has a missing dictionary on column id {column} and rowgroup id {group}. Drop and recreate the nonclustered columnstore index.",
        brief "columnstore index {index}: a dictionary is missing",
        must "Each dictionary that a segment refers to exists, and its data is where the catalog has it.",
        cause "A row of syscsdictionaries was lost or one of syscscolsegments changed, or a page is stale (a lost write).",
        action "Drop and create the index again. If the data of a dictionary is missing, the message shows the dictionary's number in place of the row group's.";
    COUNT_INCORRECT = "count.incorrect", 2508 state 1, Counts, Consistency, Rebuild, false,
        "The {count_name} count for object \"{object_name}\", index ID {index_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}) is incorrect. Run DBCC UPDATEUSAGE.",
        brief "a row or page count in the catalog is wrong",
        must "Row and page counts in the catalog are not negative; CHECKDB reports no other counts.",
        cause "The counts of an upgraded database, or a changed row of sysrowsets or sysallocunits.",
        action "Run DBCC UPDATEUSAGE.";
}
