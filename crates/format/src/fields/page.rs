//! Page header and slot array.

use super::prelude::*;

/// The names of the bits of m_flagBits.
const PAGE_FLAGS: Names = &[(0x100, "torn bits"), (0x200, "checksum")];

/// The names of the bits of m_typeFlagBits.
const TYPE_FLAGS: Names = &[(0x01, "ghosts in the interval (PFS)"), (0x80, "compression information")];

fields! { PAGE_HEADER: PageHeader, "docs/format/page-header.md#header-fields";
    "m_headerVersion", "header version", At(0), B(1), Unsigned, [8939], "1 on every page that was ever written";
    "m_type", "page type", At(1), B(1), Kind::PageType, [8939, 8938, 8946, 5250, 7984], "what the page holds";
    "m_typeFlagBits", "type flags", At(2), B(1), Flags(TYPE_FLAGS), [], "flags whose meaning depends on the type";
    "m_level", "level", At(3), B(1), Unsigned, [8931, 2531],
        "level in the B-tree; the first level above the data pages of a clustered index is 0 or 1";
    "m_flagBits", "flags", At(4), B(2), Flags(PAGE_FLAGS), [8939],
        "protection of the page; other bits prove nothing: 0x08 is set on encrypted pages, but also on other pages";
    "m_indexId", "index id", At(6), B(2), Unsigned, [2533, 2534, 8946, 8959, 5250, 7986],
        "high part of the allocation unit id";
    "m_prevPage", "previous page", At(8), B(6), PagePointer, [8935, 8936, 8977, 8978, 8979, 8969, 2576, 7987],
        "left neighbor in the level or chain, (0:0) if none";
    "pminlen", "length of fixed part", At(14), B(2), Unsigned, [8939, 8944],
        "length of the fixed part of index records; on data pages, the length when the page was formatted";
    "m_nextPage", "next page", At(16), B(6), PagePointer, [8936, 8976, 8978, 8981, 8982, 8969, 2575, 7986, 7987, 7988],
        "right neighbor in the level or chain, (0:0) if none";
    "m_slotCnt", "slot count", At(22), B(2), Unsigned, [8939, 8941, 8942, 8943, 2574],
        "number of entries in the slot array";
    "m_objId", "object id", At(24), B(4), Unsigned, [2533, 2534, 8946, 8959, 5250, 7986],
        "low part of the allocation unit id: unit = m_indexId << 48 | m_objId << 16";
    "m_freeCnt", "free bytes", At(28), B(2), Unsigned, [8939],
        "8096 minus the lengths of all records and 2 bytes per slot";
    "m_freeData", "free data offset", At(30), B(2), Unsigned, [8939, 8941, 8943],
        "offset of the first byte after the last record";
    "m_pageId", "page id", At(32), B(6), PagePointer, [8909, 5256, 8946, 5250], "the page's own address";
    "m_reservedCnt", "reserved bytes", At(38), B(2), Unsigned, [], "free bytes that open transactions reserve";
    "m_lsn", "page LSN", At(40), B(10), Lsn, [2515, 5278], "LSN of the last change";
    "m_xactReserved", "reserved by transaction", At(50), B(2), Unsigned, [],
        "free bytes that the transaction in m_xdesId reserves";
    "m_xdesId", "transaction id", At(52), B(6), Hex, [], "last transaction that reserved free bytes: u32, u16";
    "m_ghostRecCnt", "ghost records", At(58), B(2), Unsigned, [8939],
        "exact number of deleted records that are not cleaned up yet";
    "m_tornBits", "checksum or torn bits", At(60), B(4), Hex, [8939],
        "depending on m_flagBits: checksum of the page, or torn-page pattern and displaced bits of the sectors";
    "reserved", "reserved", At(64), B(32), Zero, [], "always zero";
}

fields! { SLOT_ARRAY: SlotArray, "docs/format/page-header.md#slot-array";
    "slot", "slot", FromPageEnd, B(2), SlotOffset, [8941, 8942, 8943],
        "offset of the record, 0 for an empty slot; slot 0 is the last word of the page";
}
