//! The transaction log: virtual log files, log blocks and log records.

use super::prelude::*;

/// The flags of a log block.
const BLOCK_FLAGS: Names = &[(1, "block"), (2, "checksum"), (4, "encrypted records")];
/// The flags of a log record.
const RECORD_FLAGS: Names = &[(1, "compensation"), (2, "in a transaction")];

fields! { VLF_HEADER: VlfHeader, "docs/format/log.md#files-and-vlfs";
    "signature", "signature", At(0), B(1), Hex, [], "0xAB";
    "parity", "parity", At(1), B(1), Hex, [], "0x40 or 0x80, the other one after each reuse; 0 = never used";
    "format", "format", At(2), B(2), Unsigned, [], "2 (2000, 2005), 4 (2008 and R2), 5 (2012 and later)";
    "FSeqNo", "sequence number", At(4), B(4), Unsigned, [], "rises with each reuse; 0 = never used";
    "uses", "times used", At(0x0C), B(4), Unsigned, [], "odd where the parity is 0x40, in all but rebuilt logs";
    "size", "size in bytes", At(0x10), B(8), Unsigned, [], "with this header";
    "offset", "own offset", At(0x18), B(8), Unsigned, [], "bytes from the start of the file";
    "createLSN", "created at", At(0x20), B(10), Lsn, [], "zero if it was created with the file";
}

fields! { LOG_BLOCK: LogBlock, "docs/format/log.md#log-blocks";
    "format", "block format", At(0), B(2), Unsigned, [],
        "2 (2000), 3 (2005), 4 (2008 and R2), 5 (2012 to 2017), 6 (2019 and later): 24, 28, 40, 48, 72 bytes of header";
    "records", "records", At(2), B(2), Unsigned, [], "0 in a filler";
    "used", "used bytes", At(4), B(2), Unsigned, [], "header, records, slot array";
    "size", "size in bytes", At(6), B(2), Unsigned, [], "on disk: 1 to 120 sectors";
    "flags", "flags", At(8), B(2), Flags(BLOCK_FLAGS), [], "the first is always set";
    "previousSize", "size of the previous block", At(0x0A), B(2), Unsigned, [], "across virtual log files too";
    "firstLSN", "first LSN", At(0x0C), B(10), Lsn, [], "of its first record";
    "checksum", "checksum", At(0x18), B(4), Hex, [], "where the flag says so";
    "closed", "time", At(0x30), B(8), DateTime, [], "when the block was closed, from format 6 on";
}

fields! { LOG_RECORD: LogRecord, "docs/format/log.md#records";
    "fixedLength", "length of the fixed part", At(2), B(2), Unsigned, [], "the elements follow it";
    "previousLSN", "previous LSN", At(4), B(10), Lsn, [],
        "of the same transaction; in a compensation record the next one to undo; in BEGIN_CKPT the one before it";
    "flags", "flags", At(0x0E), B(2), Flags(RECORD_FLAGS), [], "other bits are unknown";
    "transaction", "transaction id", At(0x10), B(6), Bytes, [], "u32, then u16 printed in front of it; zero outside of one";
    "operation", "operation", At(0x16), B(1), Unsigned, [], "see the operations below";
    "context", "context", At(0x17), B(1), Unsigned, [], "kind of page or purpose";
}

fields! { LOG_PAGE_RECORD: LogPageRecord, "docs/format/log.md#records";
    "page", "page", At(0x18), B(6), PagePointer, [], "the page that changes";
    "slot", "slot", At(0x1E), B(2), Unsigned, [], "65535 where it is not about a row";
    "m_objId", "object id of the page", At(0x20), B(4), Unsigned, [], "as in the page header";
    "pageLSN", "page LSN before", At(0x24), B(10), Lsn, [], "so each page's history is a linked list";
    "m_indexId", "index id of the page", At(0x2E), B(2), Unsigned, [], "as in the page header";
    "rowset", "rowset id", At(0x30), B(8), Unsigned, [], "0 in operations on whole pages";
    "offset", "offset", At(0x38), B(2), Unsigned, [], "of the change in the row or page header";
    "length", "length", At(0x3A), B(2), Unsigned, [], "of the change";
}

fields! { LOG_BEGIN_TRANSACTION: LogBeginTransaction, "docs/format/log.md#transactions-and-checkpoints";
    "spid", "session", At(0x18), B(2), Unsigned, [], "which began it";
    "began", "began", At(0x28), B(8), DateTime, [], "local time of the server; the elements are its name and the login's SID";
}

fields! { LOG_END_TRANSACTION: LogEndTransaction, "docs/format/log.md#transactions-and-checkpoints";
    "ended", "ended", At(0x18), B(8), DateTime, [], "local time of the server";
    "beginLSN", "began at", At(0x20), B(10), Lsn, [], "of its BEGIN_XACT";
}

fields! { LOG_BEGIN_CHECKPOINT: LogBeginCheckpoint, "docs/format/log.md#transactions-and-checkpoints";
    "began", "began", At(0x18), B(8), DateTime, [], "local time of the server";
    "oldestLSN", "oldest open transaction", At(0x20), B(10), Lsn, [],
        "zero if none was open; its BEGIN_XACT, or older: a lower bound";
    "version", "database version", At(0x2A), B(2), DatabaseVersion, [], "internal version";
    "nextTransaction", "next transaction id", At(0x2C), B(6), Bytes, [], "given out next";
}

fields! { LOG_END_CHECKPOINT: LogEndCheckpoint, "docs/format/log.md#transactions-and-checkpoints";
    "ended", "ended", At(0x18), B(8), DateTime, [], "local time of the server";
    "redoLSN", "redo from", At(0x20), B(10), Lsn, [], "its BEGIN_CKPT, or older: pages dirtied before were not written yet";
}

fields! { LOG_FORMAT_PAGE: LogFormatPage, "docs/format/log.md#changes";
    "type", "page type", At(0x30), B(1), Unsigned, [], "of the new page";
    "level", "level", At(0x32), B(1), Unsigned, [], "of the new page";
    "previous", "previous page", At(0x34), B(6), PagePointer, [], "of the new page";
    "pminlen", "pminlen", At(0x3A), B(2), Unsigned, [], "of the new page";
    "next", "next page", At(0x3C), B(6), PagePointer, [], "of the new page";
}

fields! { LOG_SET_BITS: LogSetBits, "docs/format/log.md#changes";
    "first", "first bit", At(0x30), B(2), Unsigned, [], "bit 0 is the first of the record, 32 the first after its header";
    "count", "number of bits", At(0x32), B(2), Unsigned, [], "that are set or cleared";
    "value", "value", At(0x34), B(1), Unsigned, [], "0 or 1";
}

fields! { LOG_SET_FREE_SPACE: LogSetFreeSpace, "docs/format/log.md#changes";
    "offset", "offset", At(0x30), B(2), Unsigned, [], "in the record of the PFS page: 4 for its first page";
    "new", "new byte", At(0x32), B(1), Unsigned, [], "of the page after it";
    "old", "old byte", At(0x33), B(1), Unsigned, [], "before it";
}

fields! { LOG_DELETE_SPLIT: LogDeleteSplit, "docs/format/log.md#changes";
    "receiver", "receiving page", At(0x30), B(6), PagePointer, [],
        "its INSERT_ROWS comes before, in the same transaction; (0:0) in a reorganization";
    "rows", "rows", At(0x36), B(2), Unsigned, [], "that are dropped from the slot on";
}

fields! { LOG_COUNT_DELTA: LogCountDelta, "docs/format/log.md#changes";
    "kind", "kind", At(0x30), B(4), Unsigned, [],
        "0: three values; 1: one, of a row of sysrowsets; 2: one, of a row of sysrscols, 8 bytes further; 3 and 4: two";
    "values", "values", At(0x50), B(128), Bytes, [],
        "as many as the kind says, others are leftovers: i64 value, absolute; u32 offset in the row; u32 length, 0 means 8";
}

fields! { LOG_ROOT_CHANGE: LogRootChange, "docs/format/log.md#changes";
    "new", "new page", At(0x48), B(6), PagePointer, [], "that the pointer names after it";
    "old", "old page", At(0x50), B(6), PagePointer, [], "before it";
    "offset", "offset", At(0x58), B(4), Unsigned, [], "in the row of sysallocunits: first page, root or first IAM page";
}
