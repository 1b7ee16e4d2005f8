//! The transaction log: virtual log files, log blocks and log records.

use super::prelude::*;

/// The flags of a log block.
const BLOCK_FLAGS: Names = &[(1, "block"), (2, "checksum"), (4, "encrypted records")];
/// The flags of a log record.
const RECORD_FLAGS: Names = &[(1, "compensation"), (2, "in a transaction")];

fields! { VLF_HEADER: VlfHeader, "docs/format/log.md#files-and-vlfs";
    "signature", "signature", At(0), B(1), Hex, [], "always 0xAB";
    "parity", "parity", At(1), B(1), Hex, [], "0x40 or 0x80; each reuse changes it to the other value; 0 = never used";
    "format", "format", At(2), B(2), Unsigned, [], "2 (2000, 2005), 4 (2008 and R2), 5 (2012 and later)";
    "FSeqNo", "sequence number", At(4), B(4), Unsigned, [], "sequence number; rises with each reuse; 0 = never used";
    "uses", "times used", At(0x0C), B(4), Unsigned, [],
        "number of uses; odd if the parity is 0x40, except in rebuilt logs";
    "size", "size in bytes", At(0x10), B(8), Unsigned, [], "size of the VLF in bytes, this header included";
    "offset", "own offset", At(0x18), B(8), Unsigned, [], "offset of the VLF from the start of the file, in bytes";
    "createLSN", "created at", At(0x20), B(10), Lsn, [],
        "LSN at which the VLF was created; zero if it was created with the file";
}

fields! { LOG_BLOCK: LogBlock, "docs/format/log.md#log-blocks";
    "format", "block format", At(0), B(2), Unsigned, [],
        "2 (2000), 3 (2005), 4 (2008 and R2), 5 (2012 to 2017), 6 (2019 and later); in this order, the headers have \
         24, 28, 40, 48 and 72 bytes";
    "records", "records", At(2), B(2), Unsigned, [], "number of records; 0 in a filler block";
    "used", "used bytes", At(4), B(2), Unsigned, [], "bytes of the header, the records and the slot array";
    "size", "size in bytes", At(6), B(2), Unsigned, [], "size on disk in bytes: 1 to 120 sectors";
    "flags", "flags", At(8), B(2), Flags(BLOCK_FLAGS), [], "bit 0x1 is always set";
    "previousSize", "size of the previous block", At(0x0A), B(2), Unsigned, [],
        "size of the previous block, even if that block is in another VLF";
    "firstLSN", "first LSN", At(0x0C), B(10), Lsn, [], "LSN of the first record in the block";
    "checksum", "checksum", At(0x18), B(4), Hex, [], "checksum of the block, if flag 0x2 is set";
    "closed", "time", At(0x30), B(8), DateTime, [], "time at which the block was closed, from format 6 on";
}

fields! { LOG_RECORD: LogRecord, "docs/format/log.md#records";
    "fixedLength", "length of the fixed part", At(2), B(2), Unsigned, [],
        "length of the fixed part; the elements follow the fixed part";
    "previousLSN", "previous LSN", At(4), B(10), Lsn, [],
        "previous record of the transaction; in a compensation record, the next record to undo; in a BEGIN_CKPT, \
         the previous BEGIN_CKPT";
    "flags", "flags", At(0x0E), B(2), Flags(RECORD_FLAGS), [], "the meaning of all other bits is unknown";
    "transaction", "transaction id", At(0x10), B(6), Bytes, [],
        "u32, then u16, which is printed before the u32; zero if the record belongs to no transaction";
    "operation", "operation", At(0x16), B(1), Unsigned, [],
        "number of the operation; the table of operations lists the numbers";
    "context", "context", At(0x17), B(1), Unsigned, [], "kind of page that changes, or purpose of the change";
}

fields! { LOG_PAGE_RECORD: LogPageRecord, "docs/format/log.md#records";
    "page", "page", At(0x18), B(6), PagePointer, [], "the page that changes";
    "slot", "slot", At(0x1E), B(2), Unsigned, [], "slot of the row; 65535 if the record is not about a row";
    "m_objId", "object id of the page", At(0x20), B(4), Unsigned, [], "as in the page header";
    "pageLSN", "page LSN before", At(0x24), B(10), Lsn, [],
        "LSN of the page before the change, that is, of the previous record that changed the page";
    "m_indexId", "index id of the page", At(0x2E), B(2), Unsigned, [], "as in the page header";
    "rowset", "rowset id", At(0x30), B(8), Unsigned, [], "id of the rowset; 0 in operations on whole pages";
    "offset", "offset", At(0x38), B(2), Unsigned, [], "offset of the change in the row or in the page header";
    "length", "length", At(0x3A), B(2), Unsigned, [], "length of the change in bytes";
}

fields! { LOG_BEGIN_TRANSACTION: LogBeginTransaction, "docs/format/log.md#transactions-and-checkpoints";
    "spid", "session", At(0x18), B(2), Unsigned, [], "session that began the transaction";
    "began", "began", At(0x28), B(8), DateTime, [], "when the transaction began, in local time of the server";
}

fields! { LOG_END_TRANSACTION: LogEndTransaction, "docs/format/log.md#transactions-and-checkpoints";
    "ended", "ended", At(0x18), B(8), DateTime, [], "when the transaction ended, in local time of the server";
    "beginLSN", "began at", At(0x20), B(10), Lsn, [], "LSN of the BEGIN_XACT of the transaction";
}

fields! { LOG_BEGIN_CHECKPOINT: LogBeginCheckpoint, "docs/format/log.md#transactions-and-checkpoints";
    "began", "began", At(0x18), B(8), DateTime, [], "when the checkpoint began, in local time of the server";
    "oldestLSN", "oldest open transaction", At(0x20), B(10), Lsn, [],
        "lower bound for the LSN of the oldest open transaction's BEGIN_XACT; zero if no transaction was open";
    "version", "database version", At(0x2A), B(2), DatabaseVersion, [], "internal version of the database";
    "nextTransaction", "next transaction id", At(0x2C), B(6), Bytes, [], "transaction id that is assigned next";
}

fields! { LOG_END_CHECKPOINT: LogEndCheckpoint, "docs/format/log.md#transactions-and-checkpoints";
    "ended", "ended", At(0x18), B(8), DateTime, [], "when the checkpoint ended, in local time of the server";
    "redoLSN", "redo from", At(0x20), B(10), Lsn, [],
        "LSN of the BEGIN_CKPT; a lower LSN if pages that changed before the checkpoint are not yet written";
}

fields! { LOG_FORMAT_PAGE: LogFormatPage, "docs/format/log.md#changes";
    "type", "page type", At(0x30), B(1), Unsigned, [], "page type of the new page";
    "level", "level", At(0x32), B(1), Unsigned, [], "level of the new page";
    "previous", "previous page", At(0x34), B(6), PagePointer, [], "m_prevPage of the new page";
    "pminlen", "pminlen", At(0x3A), B(2), Unsigned, [], "pminlen of the new page";
    "next", "next page", At(0x3C), B(6), PagePointer, [], "m_nextPage of the new page";
}

fields! { LOG_SET_BITS: LogSetBits, "docs/format/log.md#changes";
    "first", "first bit", At(0x30), B(2), Unsigned, [],
        "first bit to change; bit 0 is the first bit of the record, bit 32 the first bit after its header";
    "count", "number of bits", At(0x32), B(2), Unsigned, [], "number of bits to set or clear";
    "value", "value", At(0x34), B(1), Unsigned, [], "new value of the bits: 0 or 1";
}

fields! { LOG_SET_FREE_SPACE: LogSetFreeSpace, "docs/format/log.md#changes";
    "offset", "offset", At(0x30), B(2), Unsigned, [],
        "offset of the PFS byte in the record of the PFS page; 4 for the first page of the interval";
    "new", "new byte", At(0x32), B(1), Unsigned, [], "PFS byte after the change";
    "old", "old byte", At(0x33), B(1), Unsigned, [], "PFS byte before the change";
}

fields! { LOG_DELETE_SPLIT: LogDeleteSplit, "docs/format/log.md#changes";
    "receiver", "receiving page", At(0x30), B(6), PagePointer, [],
        "page that received the rows by an earlier INSERT_ROWS of the same transaction; (0:0) in a reorganization";
    "rows", "rows", At(0x36), B(2), Unsigned, [], "number of rows to remove, from the slot on";
}

fields! { LOG_COUNT_DELTA: LogCountDelta, "docs/format/log.md#changes";
    "kind", "kind", At(0x30), B(4), Unsigned, [],
        "0: three values; 1: one value, of a row of sysrowsets; 2: one value, of a row of sysrscols, after 8 bytes \
         with the column id; 3 and 4: two values";
    "values", "values", At(0x50), B(128), Bytes, [],
        "per value: the new value (i64), its offset in the row (u32) and its length (u32, 0 means 8); bytes after \
         the last value have no meaning";
}

fields! { LOG_ROOT_CHANGE: LogRootChange, "docs/format/log.md#changes";
    "new", "new page", At(0x48), B(6), PagePointer, [], "page that the pointer names after the change";
    "old", "old page", At(0x50), B(6), PagePointer, [], "page that the pointer names before the change";
    "offset", "offset", At(0x58), B(4), Unsigned, [],
        "offset of the pointer in the row of sysallocunits; the pointer is pgfirst, pgroot or pgfirstiam";
}
