//! Allocation pages: PFS, bitmaps, IAM.

use super::prelude::*;

fields! { PFS: Pfs, "docs/format/allocation.md#pfs";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "8092 (0x1F9C)";
    "pfs", "page free space", At(4), B(8088), PfsBytes, [8948, 8906, 2533, 8905],
        "one byte per page: fullness, ghosts, IAM page, mixed extent, allocated";
}

fields! { MAP_HEADER: MapHeader, "docs/format/allocation.md#gam";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "94 (0x005E)";
    "filler", "filler", At(4), B(90), Bytes, [],
        "no use is known; on maps written by SQL Server 2000, the bytes are stale";
}

fields! { GAM_BITMAP: GamBitmap, "docs/format/allocation.md#gam";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "7992 (0x1F38)";
    "gam", "free extents", At(4), Bits(63904), ExtentBits, [8903, 8904, 8905],
        "one bit per extent of the interval: 1 = free";
}

fields! { SGAM_BITMAP: SgamBitmap, "docs/format/allocation.md#sgam";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "7992 (0x1F38)";
    "sgam", "mixed extents", At(4), Bits(63904), ExtentBits, [8903, 8904, 8905],
        "one bit per extent of the interval: 1 = mixed, possibly with free pages";
}

fields! { DIFF_BITMAP: DiffBitmap, "docs/format/allocation.md#differential-map";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "7992 (0x1F38)";
    "diff", "changed extents", At(4), Bits(63904), ExtentBits, [2515],
        "one bit per extent of the interval: 1 = changed since the last full backup";
}

fields! { ML_BITMAP: MlBitmap, "docs/format/allocation.md#minimally-logged-map";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "7992 (0x1F38)";
    "ml", "minimally logged extents", At(4), Bits(63904), ExtentBits, [],
        "one bit per extent of the interval: 1 = changed by a minimally logged operation since the last log backup";
}

fields! { IAM_HEADER: IamHeader, "docs/format/allocation.md#iam";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "94 (0x005E)";
    "sequenceNumber", "sequence number", At(4), B(4), Unsigned, [2577], "position in the IAM chain, from 0";
    "filler", "filler", At(8), B(32), Bytes, [], "no use is known";
    "start_pg", "start of the interval", At(40), B(6), PagePointer, [8947, 8996, 2579, 8904, 8905],
        "first page of the GAM interval that the bitmap maps";
    "singlePage", "single page", Each { first: 46, stride: 6, count: Times(8) }, B(6), PagePointer,
        [8906, 8910, 2533, 2534, 2579, 8948], "a page of a mixed extent that the unit owns, or (0:0)";
}

fields! { IAM_BITMAP: IamBitmap, "docs/format/allocation.md#iam";
    "status A", "record status", At(0), B(1), RecordStatus, [], "0: a primary record without null bitmap";
    "status B", "record status", At(1), B(1), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "7992 (0x1F38)";
    "extents", "owned extents", At(4), Bits(63904), ExtentBits, [8904, 8905, 8910, 2533, 2534, 2579, 8948],
        "one bit per extent of the interval: 1 = the unit owns it";
}
