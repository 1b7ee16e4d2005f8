//! Checks that compare indexes with their table, and checks of columnstore indexes and counts.

use super::{Check, Class, Phase, Policy, Repair, ReportOrder};

checks! {
    INDEX_ROW_MISSING = "index.row-missing", 8951 state 1, CrossRow, Index(RowMissing), Consistency, Rebuild, false listed AsConsequence,
        "Table error: table '{table}' (ID {object_id}). Data row does not have a matching index row in the index '{index}' (ID {index_id}). Possible missing or invalid keys for the index row matching:",
        brief "a row of the table is missing from index {index}",
        must "For each row of a table, each index of the table has exactly one row with the same values.",
        cause "A row of the index was lost or changed, or a row of the table was changed, but the index was not.",
        action "Disable the index and then rebuild it; if the index is not disabled, the rebuild may read it and copy the damage. If the row of the table may be wrong, compare the row with a backup first.";
    INDEX_ROW_MISSING_DETAIL = "index.row-missing-detail", 8955 state 1, CrossRow, Index(RowMissing), Uncounted, Rebuild, false listed AsConsequence [follows, remedied_elsewhere],
        "Data row {record} identified by ({identity}) with index values '{values}'.",
        brief "data row {record}",
        must "See message 8951, which precedes this message.",
        cause "See message 8951.",
        action "See message 8951.";
    INDEX_ROW_SURPLUS = "index.row-surplus", 8952 state 1, CrossRow, Index(RowSurplus), Consistency, Rebuild, false listed AsConsequence,
        "Table error: table '{table}' (ID {object_id}). Index row in index '{index}' (ID {index_id}) does not match any data row. Possible extra or invalid keys for:",
        brief "index {index} has a row that the table does not have",
        must "For each row of an index, the table has exactly one row with the same values.",
        cause "A row of the table was lost or changed, or a row of the index was changed, but the table was not.",
        action "If rows of the table may be lost, look in a backup for the values in the message. Then disable the index and rebuild it; if the index is not disabled, the rebuild may read it and copy the damage.";
    INDEX_ROW_SURPLUS_DETAIL = "index.row-surplus-detail", 8956 state 1, CrossRow, Index(RowSurplus), Uncounted, Rebuild, false listed AsConsequence [follows, remedied_elsewhere],
        "Index row {record} with values ({values}) pointing to the data row identified by ({identity}).",
        brief "index row {record}",
        must "See message 8952, which precedes this message.",
        cause "See message 8952.",
        action "See message 8952.";
    VIEW_SURPLUS = "view.rows-surplus", 8907 state 1, CrossRow, Index(Xml), Consistency, Rebuild, false,
        "The spatial index, XML index or indexed view '{name}' (object ID {object_id}) contains rows that were not produced by the view definition. This does not necessarily represent an integrity issue with the data in this database. For more information about troubleshooting DBCC errors on indexed views, see SQL Server Books Online.",
        brief "{name} has rows that do not belong to it",
        must "Every document with nodes in a primary XML index exists in the table (tested only with extended logical checks).",
        cause "A row of the table, or of the index's internal table, was lost or changed.",
        action "Drop the XML index and create it again. If rows of the table may be lost, look for them in a backup first.";
    VIEW_MISSING = "view.rows-missing", 8908 state 1, CrossRow, Index(Xml), Consistency, Rebuild, false,
        "The spatial index, XML index or indexed view '{name}' (object ID {object_id}) does not contain all rows that the view definition produces. This does not necessarily represent an integrity issue with the data in this database. For more information about troubleshooting DBCC errors on spatial indexes, XML indexes, and indexed views, see SQL Server Books Online.",
        brief "{name} lacks rows",
        must "Every document of a table has nodes in the primary XML index of its column (tested only with extended logical checks).",
        cause "A row of the table, or of the index's internal table, was lost or changed.",
        action "Drop the XML index and create it again.";
    COLUMNSTORE_MISMATCH = "columnstore.mismatch", 7902 state 1, Catalog, Columnstore, Consistency, None, false,
        "Columnstore index '{index}' on table '{table}' has metadata mismatch on column id {column} and rowgroup id {group}. If this is a nonclustered columnstore index, drop it and recreate it. Otherwise, contact CSS.",
        brief "columnstore index {index}: its metadata is inconsistent",
        must "Each segment of a row group has the same number of rows as the row group, a minimum that is not above the maximum, and a base value that fits its encoding.",
        cause "A row of syscscolsegments or syscsrowgroups was changed, or a page of them is stale (a lost write).",
        action "Drop a nonclustered columnstore index and create it again; for a clustered columnstore index, restore the data from a backup.";
    COLUMNSTORE_SEGMENT = "columnstore.segment", 7967 state 1, Catalog, Columnstore, Consistency, None, false,
        "Clustered columnstore index '{index}' on table '{table}' has a missing column segment on column id {column} and rowgroup id {group}. Restore the data from a backup.",
        brief "columnstore index {index}: a column segment is missing",
        must "Each column has a segment in each compressed row group that is not older than the column, and the data of each segment is at the place that the catalog names.",
        cause "A row of syscscolsegments was lost, or the page that holds the segment is stale (a lost write).",
        action "Restore the data from a backup.";
    COLUMNSTORE_SEGMENT_NONCLUSTERED = "columnstore.segment-nonclustered", 7976 state 1, Catalog, Columnstore, Consistency, None, false,
        "Nonclustered columnstore index '{index}' on table '{table}' has a missing column segment on column id {column} and rowgroup id {group}. Drop and recreate the nonclustered columnstore index.",
        brief "columnstore index {index}: a column segment is missing",
        must "Each column has a segment in each compressed row group, and the data of each segment is at the place that the catalog names.",
        cause "A row of syscscolsegments was lost, or the page that holds the segment is stale (a lost write).",
        action "Drop the index and create it again.";
    COLUMNSTORE_DICTIONARY = "columnstore.dictionary", 7991 state 1, Catalog, Columnstore, Consistency, None, false,
        "Clustered columnstore index '{index}' on table '{table}' has a missing dictionary on column id {column} and rowgroup id {group}. Restore the data from a backup.",
        brief "columnstore index {index}: a dictionary is missing",
        must "Each dictionary that a segment refers to exists, and the data of the dictionary is at the place that the catalog names.",
        cause "A row of syscsdictionaries was lost, a row of syscscolsegments was changed, or a page is stale (a lost write).",
        action "Restore the data from a backup. If the data of a dictionary is missing, the message shows the number of the dictionary in place of the number of the row group.";
    COLUMNSTORE_DICTIONARY_NONCLUSTERED = "columnstore.dictionary-nonclustered", 5285 state 1, Catalog, Columnstore, Consistency, None, false,
        "Nonclustered columnstore index '{index}' on table '{table}' has a missing dictionary on column id {column} and rowgroup id {group}. Drop and recreate the nonclustered columnstore index.",
        brief "columnstore index {index}: a dictionary is missing",
        must "Each dictionary that a segment refers to exists, and the data of the dictionary is at the place that the catalog names.",
        cause "A row of syscsdictionaries was lost, a row of syscscolsegments was changed, or a page is stale (a lost write).",
        action "Drop the index and create it again. If the data of a dictionary is missing, the message shows the number of the dictionary in place of the number of the row group.";
    COUNT_INCORRECT = "count.incorrect", 2508 state 1, Counts, Counts, Consistency, Rebuild, false,
        "The {count_name} count for object \"{object_name}\", index ID {index_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}) is incorrect. Run DBCC UPDATEUSAGE.",
        brief "a row or page count in the catalog is wrong",
        must "Row counts and page counts in the catalog are not negative. CHECKDB reports only negative counts.",
        cause "The database was upgraded from an older release, or a row of sysrowsets or sysallocunits was changed.",
        action "Run DBCC UPDATEUSAGE.";
}
