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
    "length", "length", At(2), B(2), Unsigned, [8942, 8943, 8944, 8961],
        "length of the fragment without its version tag";
    "blobId", "blob id", At(4), B(8), Hex, [8961, 8964, 8965], "the same in all fragments of a value and in its row";
    "type", "node type", At(12), B(2), Named(NODE_TYPES), [8961, 8962, 8963], "kind of the fragment";
}

fields! { SMALL_ROOT: LobSmallRoot, "docs/format/lob.md#small-root";
    "size", "data length", At(14), B(2), Unsigned, [8961], "length of the value in bytes";
    "unused", "unused", At(16), B(4), Bytes, [], "garbage";
    "data", "data", P(Part::Rest), Varies, Bytes, [], "the whole value, then padding";
}

fields! { INTERNAL: LobInternal, "docs/format/lob.md#internal-node";
    "maxLinks", "link places", At(14), B(2), Unsigned, [8961], "most links that the node can hold";
    "curLinks", "links", At(16), B(2), Unsigned, [8961, 8964, 8965], "number of links in use";
    "level", "level", At(18), B(2), Unsigned, [8961],
        "0 if the children are data fragments, otherwise the level of the children plus 1";
    "linkEnd", "cumulative length", Each { first: 20, stride: 16, count: Given }, B(8), Unsigned, [8961],
        "bytes of the value up to the end of this child";
    "link", "child", Each { first: 28, stride: 16, count: Given }, B(8), RecordPointer, [8964, 8965, 8974, 8961],
        "the fragment one level down";
}

fields! { DATA: LobData, "docs/format/lob.md#data";
    "data", "data", At(14), Varies, Bytes, [], "a piece of the value";
}

fields! { ROOT: LobRoot, "docs/format/lob.md#root";
    "maxLinks", "link places", At(14), B(2), Unsigned, [8961], "most links that the root can hold: 5";
    "curLinks", "links", At(16), B(2), Unsigned, [8961, 8964, 8965], "number of links in use";
    "level", "level", At(18), B(2), Unsigned, [8961],
        "0 if the children are data fragments, otherwise the level of the children plus 1";
    "unused", "unused", At(20), B(4), Bytes, [], "no use is known";
    "linkEnd", "cumulative length", Each { first: 24, stride: 12, count: Given }, B(4), Unsigned, [8961],
        "bytes of the value up to the end of this child";
    "link", "child", Each { first: 28, stride: 12, count: Given }, B(8), RecordPointer, [8964, 8965, 8974, 8961],
        "the fragment one level down";
}

fields! { IN_ROW_ROOT: InRowRoot, "docs/format/lob.md#in-row-root";
    "type", "pointer type", At(0), B(1), Named(POINTER_TYPES), [8960], "kind of the pointer: 4";
    "unused", "unused", At(1), B(1), Hex, [], "no use is known";
    "level", "level", At(2), B(1), Unsigned, [8961], "0 if the links point to data fragments";
    "filler", "filler", At(3), B(1), Hex, [], "no use is known";
    "updateSeq", "update sequence", At(4), B(2), Unsigned, [], "counts changes of the value";
    "blobId", "blob id", At(6), B(6), Hex, [8961, 8929], "the id of the value's fragments";
    "linkEnd", "cumulative length", Each { first: 12, stride: 12, count: Given }, B(4), Unsigned, [8961, 8929],
        "bytes of the value up to the end of this child";
    "link", "child", Each { first: 16, stride: 12, count: Given }, B(8), RecordPointer, [8964, 8965, 8974, 8929, 8925],
        "RID of the child fragment";
}

fields! { TEXT_POINTER: TextPointer, "docs/format/lob.md#text-pointer";
    "blobId", "blob id", At(0), B(8), Hex, [8961, 8929], "the id of the value's fragments";
    "root", "root", At(8), B(8), RecordPointer, [8964, 8965, 8974, 8929, 8925], "the value's root fragment";
}

fields! { OVERFLOW_POINTER: OverflowPointer, "docs/format/lob.md#row-overflow";
    "type", "pointer type", At(0), B(1), Named(POINTER_TYPES), [8960], "kind of the pointer: 2";
    "unused", "unused", At(1), B(1), Hex, [], "no use is known";
    "level", "level", At(2), B(1), Unsigned, [8961], "0 if the link points to a data fragment";
    "filler", "filler", At(3), B(1), Hex, [], "no use is known";
    "updateSeq", "update sequence", At(4), B(2), Unsigned, [], "counts changes of the value";
    "blobId", "blob id", At(6), B(6), Hex, [8961, 8929], "the id of the value's fragment";
    "length", "length", At(12), B(4), Unsigned, [8961, 8929], "length of the value in bytes";
    "link", "value", At(16), B(8), RecordPointer, [8964, 8965, 8974, 8929, 8925], "RID of the fragment";
}

fields! { SPARSE_VECTOR: SparseVector, "docs/format/sparse.md";
    "id", "complex column id", At(0), B(2), Named(COMPLEX_IDS), [8960], "kind of the complex column: 5";
    "count", "columns", At(2), B(2), Unsigned, [2537], "number of sparse columns that are not NULL in this row";
    "columnId", "column id", Each { first: 4, stride: 2, count: Given }, B(2), Unsigned, [2537],
        "ascending ids of sparse columns";
    "endOffset", "end of column", P(Part::EndOffset), B(2), Unsigned, [2537],
        "end of the value, from the start of the vector";
    "value", "value", P(Part::VariableColumn), Varies, Bytes, [2570, 2537, 8951, 8952], "value of the column";
}
