//! Messages about columnstore indexes.

use super::{ServerMessage, row};

const COLUMNSTORE_LOOK: &str =
    "The index, column and row group that the message names, and 823, 824 or 825 in the error log.";
const COLUMNSTORE_CLUSTERED: &str =
    "Restore the data from a backup: a clustered columnstore index is the table itself.";
const COLUMNSTORE_NONCLUSTERED: &str = "Drop the index and create it again: the table has the data.";
const COLUMNSTORE_CHECK: &str = "Run DBCC CHECKDB to see which index is affected. Rebuild a nonclustered index; restore the data of a clustered index.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        5283,
        "a nonclustered columnstore index does not match its table",
        "The rows of the index differ from the rows of the table.",
        COLUMNSTORE_LOOK,
        "Rebuild the partition of the index.",
    ),
    row(
        5288,
        "a query met a columnstore value that is not in its dictionary",
        "The data of a column contains a value that is not in the dictionary of the column.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CHECK,
    ),
    row(
        5289,
        "values of a clustered columnstore index are not in their dictionary",
        "The data of a column contains a value that is not in the dictionary of the column.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CLUSTERED,
    ),
    row(
        5290,
        "a query met a columnstore value that contradicts its metadata",
        "A value is outside the range in its segment's metadata.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CHECK,
    ),
    row(
        5291,
        "values of a clustered columnstore index contradict its metadata",
        "Values are outside the range in their segment's metadata.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CLUSTERED,
    ),
    row(
        5292,
        "the delete bitmap of a columnstore index is damaged",
        "The bitmap marks a row as deleted in a row group that does not have the row.",
        COLUMNSTORE_LOOK,
        "Drop a nonclustered index and create it again; for a clustered index, restore the data.",
    ),
    row(
        5293,
        "values of a nonclustered columnstore index are not in their dictionary",
        "The data of a column contains a value that is not in the dictionary of the column.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_NONCLUSTERED,
    ),
    row(
        5294,
        "values of a nonclustered columnstore index contradict its metadata",
        "Values are outside the range in their segment's metadata.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_NONCLUSTERED,
    ),
    row(
        5297,
        "a nonclustered index does not match its clustered columnstore index",
        "Rows of the two indexes differ.",
        COLUMNSTORE_LOOK,
        "Rebuild the partition of the nonclustered index.",
    ),
    row(
        7937,
        "a columnstore index lacks column segments",
        "A query needed a segment that does not exist.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CHECK,
    ),
    row(
        7959,
        "a columnstore index lacks dictionaries",
        "A query needed a dictionary that does not exist.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CHECK,
    ),
    row(
        7973,
        "the mapping index of a clustered columnstore index is damaged",
        "The mapping index points to rows that do not exist.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CLUSTERED,
    ),
    row(
        7981,
        "values of a clustered columnstore index are out of range",
        "A value is not allowed for the data type of its column.",
        COLUMNSTORE_LOOK,
        COLUMNSTORE_CLUSTERED,
    ),
];
