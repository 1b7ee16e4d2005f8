//! Records of data and index pages.

use super::prelude::*;

/// The values of a data record's second status byte.
const STATUS_B: Names = &[(0, "none"), (1, "ghost forwarded")];

/// The bits of the first byte of the compression information.
const CI_FLAGS: Names = &[(0x2, "anchor"), (0x4, "dictionary")];

fields! { DATA_RECORD: DataRecord, "docs/format/records.md";
    "status A", "record status", At(0), B(1), RecordStatus, [8944, 8939],
        "record type; flags for null bitmap, variable part and version tag";
    "status B", "second status", At(1), B(1), Named(STATUS_B), [8944], "0, or 1 for a ghost of a forwarded row";
    "fixedEnd", "end of fixed part", At(2), B(2), Unsigned, [8944],
        "end of the fixed part, from the start of the record";
    "fixed", "fixed columns", P(Part::FixedColumns), Varies, Bytes, [2570, 2511, 2512, 8933, 8934, 8951, 8952],
        "values of fixed length, at the offsets that the catalog gives";
    "columnCount", "column count", P(Part::ColumnCount), B(2), Unsigned, [8944], "number of bits in the null bitmap";
    "nullBitmap", "null bitmap", P(Part::NullBitmap), Varies, NullBits, [8970, 8951, 8952],
        "one bit per column: 1 = NULL";
    "variableCount", "variable columns", P(Part::VariableCount), B(2), Unsigned, [8944],
        "number of end offsets that follow";
    "endOffset", "end of variable column", P(Part::EndOffset), B(2), Kind::EndOffset, [8944, 2537, 8960],
        "end of the column, from the start of the record; bit 0x8000 = complex column";
    "variable", "variable column", P(Part::VariableColumn), Varies, Bytes, [2570, 2511, 2512, 8933, 8934, 8951, 8952],
        "a value of variable length";
}

fields! { INDEX_RECORD: IndexRecord, "docs/format/index-records.md";
    "status A", "record status", At(0), B(1), RecordStatus, [8944, 8939],
        "record type; flags for null bitmap, variable part and version tag";
    "fixed", "fixed columns", P(Part::FixedColumns), Varies, Bytes, [2511, 2512, 8933, 8934, 8951, 8952],
        "values of fixed length; the fixed part ends at pminlen";
    "child", "child page", P(Part::ChildPointer), B(6), PagePointer, [8926, 8937, 8976, 8977, 8979, 8980],
        "the page one level down; its keys are at or above the key of this entry";
    "columnCount", "column count", P(Part::ColumnCount), B(2), Unsigned, [8944], "number of bits in the null bitmap";
    "nullBitmap", "null bitmap", P(Part::NullBitmap), Varies, NullBits, [8970, 2511, 8951, 8952],
        "one bit per column: 1 = NULL";
    "variableCount", "variable columns", P(Part::VariableCount), B(2), Unsigned, [8944],
        "number of end offsets that follow";
    "endOffset", "end of variable column", P(Part::EndOffset), B(2), Kind::EndOffset, [8944, 2537, 8960],
        "end of the column, from the start of the record; bit 0x8000 = complex column";
    "variable", "variable column", P(Part::VariableColumn), Varies, Bytes, [2511, 2512, 8933, 8934, 8951, 8952],
        "a value of variable length";
}

fields! { FORWARDING_STUB: ForwardingStub, "docs/format/forwarding.md#stub";
    "status A", "record status", At(0), B(1), RecordStatus, [8944, 8994], "4: the row has moved";
    "forward", "forwarded row", At(1), B(8), RecordPointer, [8971, 8972, 8993, 8994], "where the row is now";
}

fields! { BACK_POINTER: BackPointer, "docs/format/forwarding.md#back-pointer";
    "id", "complex column id", At(0), B(2), Hex, [8960, 8944], "0x0400: back pointer";
    "back", "forwarding stub", At(2), B(8), RecordPointer, [8971, 8994, 8993], "the stub that points to this row";
}

fields! { VERSION_TAG: VersionTag, "docs/format/versions.md#version-tag";
    "versionPointer", "version pointer", At(0), B(8), RecordPointer, [5262],
        "older version of the row in tempdb; has no meaning offline";
    "xsn", "transaction sequence number", At(8), B(6), Unsigned, [5262], "transaction that wrote this version";
}

fields! { CD_RECORD: CdRecord, "docs/format/compression.md#records";
    "status", "record status", At(0), B(1), CdStatus, [8944], "record type; flags for version tag and long region";
    "columnCount", "column count", P(Part::ColumnCount), Varies, Hex, [8944],
        "one byte, or two bytes if bit 0x80 of the first byte is set";
    "codes", "column codes", P(Part::ColumnCodes), Varies, Kind::ColumnCodes, [8944],
        "half a byte per column: NULL (0), empty (1), 1 to 8 bytes (2 to 9), long (A), true (B), dictionary symbol (C)";
    "regions", "short and long region", P(Part::Rest), Varies, Bytes, [8944, 2570, 8951, 8952],
        "values up to 8 bytes, then longer ones, then back pointer and version tag";
}

fields! { COMPRESSION_INFO: CompressionInfo, "docs/format/compression.md#compression-information";
    "flags", "flags", At(0), B(1), Flags(CI_FLAGS), [5274], "parts that follow";
    "pageModCount", "page modification count", At(1), B(2), Unsigned, [],
        "number of changes since the page was compressed";
    "dictionaryOffset", "dictionary offset", P(Part::DictionaryOffset), B(2), Unsigned, [5274],
        "offset of the dictionary from the start of this structure";
    "size", "total size", P(Part::TotalBytes), B(2), Unsigned, [5274], "length of this structure";
    "anchor", "anchor", P(Part::Anchor), Varies, Bytes, [5274], "a compressed record that holds the columns' prefixes";
    "dictionary", "dictionary", P(Part::Dictionary), Varies, Bytes, [5274],
        "u16 count, u16 end offsets, then values that occur often";
}
