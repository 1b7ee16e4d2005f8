//! LOB pages, and the in-row pointers to them.

use super::prelude::*;

/// The node types of LOB fragments.
const NODE_TYPES: Names = &[
    (0, "small root"),
    (1, "large root"),
    (2, "internal"),
    (3, "data"),
    (4, "root (2000)"),
    (5, "root"),
    (6, "super large root"),
    (8, "null"),
];

/// The first byte of an in-row pointer.
const POINTER_TYPES: Names = &[(2, "row overflow"), (4, "LOB root")];

/// The first word of a sparse vector.
const COMPLEX_IDS: Names = &[(5, "sparse vector")];

fields! { FRAGMENT: LobFragment, "docs/format/lob.md#fragments";
    "status A", "record status", At(0), B(1), RecordStatus, [8944], "8: blob fragment; 0x40 = version tag after it";
    "status B", "second status", At(1), B(1), Hex, [], "0";
    "length", "length", At(2), B(2), Unsigned, [8942, 8943, 8944, 8961], "of the fragment, without version tag";
    "blobId", "blob id", At(4), B(8), Hex, [8961, 8964, 8965], "the same in all fragments of a value and in its row";
    "type", "node type", At(12), B(2), Named(NODE_TYPES), [8961, 8962, 8963], "what the fragment is";
}

fields! { SMALL_ROOT: LobSmallRoot, "docs/format/lob.md#small-root";
    "size", "data length", At(14), B(2), Unsigned, [8961], "bytes of the value";
    "unused", "unused", At(16), B(4), Bytes, [], "garbage";
    "data", "data", P(Part::Rest), Varies, Bytes, [], "the whole value, padded";
}

fields! { INTERNAL: LobInternal, "docs/format/lob.md#internal-node";
    "maxLinks", "link places", At(14), B(2), Unsigned, [8961], "room for links";
    "curLinks", "links", At(16), B(2), Unsigned, [8961, 8964, 8965], "links in use";
    "level", "level", At(18), B(2), Unsigned, [8961], "0 above the data, rising";
    "linkEnd", "cumulative length", Each { first: 20, stride: 16, count: Given }, B(8), Unsigned, [8961],
        "bytes of the value up to the end of this child";
    "link", "child", Each { first: 28, stride: 16, count: Given }, B(8), RecordPointer, [8964, 8965, 8974, 8961],
        "the fragment one level down";
}

fields! { DATA: LobData, "docs/format/lob.md#data";
    "data", "data", At(14), Varies, Bytes, [], "a piece of the value";
}

fields! { ROOT: LobRoot, "docs/format/lob.md#root";
    "maxLinks", "link places", At(14), B(2), Unsigned, [8961], "room for links, 5";
    "curLinks", "links", At(16), B(2), Unsigned, [8961, 8964, 8965], "links in use";
    "level", "level", At(18), B(2), Unsigned, [8961], "0 above the data, rising";
    "unused", "unused", At(20), B(4), Bytes, [], "nothing is known to use it";
    "linkEnd", "cumulative length", Each { first: 24, stride: 12, count: Given }, B(4), Unsigned, [8961],
        "bytes of the value up to the end of this child";
    "link", "child", Each { first: 28, stride: 12, count: Given }, B(8), RecordPointer, [8964, 8965, 8974, 8961],
        "the fragment one level down";
}

fields! { IN_ROW_ROOT: InRowRoot, "docs/format/lob.md#in-row-root";
    "type", "pointer type", At(0), B(1), Named(POINTER_TYPES), [8960], "4: LOB root";
    "unused", "unused", At(1), B(1), Hex, [], "nothing is known to use it";
    "level", "level", At(2), B(1), Unsigned, [8961], "0 when the links lead to data";
    "filler", "filler", At(3), B(1), Hex, [], "nothing is known to use it";
    "updateSeq", "update sequence", At(4), B(2), Unsigned, [], "counts changes of the value";
    "blobId", "blob id", At(6), B(6), Hex, [8961, 8929], "the id of the value's fragments";
    "linkEnd", "cumulative length", Each { first: 12, stride: 12, count: Given }, B(4), Unsigned, [8961, 8929],
        "bytes of the value up to the end of this child";
    "link", "child", Each { first: 16, stride: 12, count: Given }, B(8), RecordPointer, [8964, 8965, 8974, 8929, 8925],
        "the fragment";
}

fields! { TEXT_POINTER: TextPointer, "docs/format/lob.md#text-pointer";
    "blobId", "blob id", At(0), B(8), Hex, [8961, 8929], "the id of the value's fragments";
    "root", "root", At(8), B(8), RecordPointer, [8964, 8965, 8974, 8929, 8925], "the value's root fragment";
}

fields! { OVERFLOW_POINTER: OverflowPointer, "docs/format/lob.md#row-overflow";
    "type", "pointer type", At(0), B(1), Named(POINTER_TYPES), [8960], "2: row overflow";
    "unused", "unused", At(1), B(1), Hex, [], "nothing is known to use it";
    "level", "level", At(2), B(1), Unsigned, [8961], "0 when the link leads to data";
    "filler", "filler", At(3), B(1), Hex, [], "nothing is known to use it";
    "updateSeq", "update sequence", At(4), B(2), Unsigned, [], "counts changes of the value";
    "blobId", "blob id", At(6), B(6), Hex, [8961, 8929], "the id of the value's fragment";
    "length", "length", At(12), B(4), Unsigned, [8961, 8929], "bytes of the value";
    "link", "value", At(16), B(8), RecordPointer, [8964, 8965, 8974, 8929, 8925], "the fragment";
}

fields! { SPARSE_VECTOR: SparseVector, "docs/format/sparse.md";
    "id", "complex column id", At(0), B(2), Named(COMPLEX_IDS), [8960], "5: sparse vector";
    "count", "columns", At(2), B(2), Unsigned, [2537], "sparse columns that are not NULL in this row";
    "columnId", "column id", Each { first: 4, stride: 2, count: Given }, B(2), Unsigned, [2537],
        "ascending ids of sparse columns";
    "endOffset", "end of column", P(Part::EndOffset), B(2), Unsigned, [2537], "from the start of the vector";
    "value", "value", P(Part::VariableColumn), Varies, Bytes, [2570, 2537, 8951, 8952], "value of the column";
}
