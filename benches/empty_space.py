"""Makes a data file of the lab larger with empty space: a sparse file, whose maps say that nothing of it is in use."""

import os
import struct

PAGE = 8192
# Pages that a GAM and a PFS page describe, and where their bits and bytes begin (docs/format/allocation.md).
GAM_PAGES, PFS_PAGES = 511_232, 8088
BITS, BYTES = 194, 100
EXTENTS = GAM_PAGES // 8


def checksum(page):
    """The checksum of a page: the words of each sector, then the sectors, each turned by one bit less."""
    words = struct.unpack("<2048I", page[:60] + bytes(4) + page[64:])
    total = 0
    for sector in range(16):
        value = 0
        for word in words[sector * 128 : sector * 128 + 128]:
            value ^= word
        turn = 15 - sector
        total ^= (value << turn | value >> (32 - turn)) & 0xFFFFFFFF
    return total


def enlarge(path, size):
    """Makes the file so large, in bytes. It must end in the second GAM interval or later, so that it has all kinds of maps."""
    before, pages = os.path.getsize(path) // PAGE, size // PAGE
    assert GAM_PAGES < before < pages, "a file of 4 GB at least, and a larger size"
    starts = range(0, pages, GAM_PAGES)
    with_pfs = set(range(PFS_PAGES, pages, PFS_PAGES))
    fixed = with_pfs | {start + place for start in starts for place in ((0, 1, 6, 7) if start else (2, 3, 6, 7))}
    with open(path, "r+b") as file:

        def read(number):
            file.seek(number * PAGE)
            return bytearray(file.read(PAGE))

        def write(number, page):
            page[32:36] = struct.pack("<I", number)
            page[60:64] = struct.pack("<I", checksum(bytes(page)))
            file.seek(number * PAGE)
            file.write(page)

        like = {place: read(GAM_PAGES + place) for place in (0, 1, 6, 7)}
        pfs_like = read(PFS_PAGES)
        file.truncate(pages * PAGE)
        header = read(0)
        old, new = struct.pack("<I", before), struct.pack("<I", pages)
        write(0, header[:96] + header[96:].replace(old, new))
        for start in starts:
            gam, sgam = (start, start + 1) if start else (2, 3)
            is_new = start >= before
            maps = [bytearray(like[0]), bytearray(like[1])] if is_new else [read(gam), read(sgam)]
            for extent in range(EXTENTS):
                first = start + extent * 8
                if first < before:
                    continue
                # Free, or a mixed extent with a PFS page in it; that of the other maps is theirs alone.
                has_fixed = any(first + page in fixed for page in range(8))
                bits = [first < pages and not has_fixed, first in with_pfs and first != start]
                for page, bit in zip(maps, bits):
                    byte, mask = BITS + extent // 8, 1 << extent % 8
                    page[byte] = page[byte] | mask if bit else page[byte] & ~mask
            write(gam, maps[0])
            write(sgam, maps[1])
            for place in (6, 7) if is_new else ():
                write(start + place, like[place][:BITS] + bytes(EXTENTS // 8) + like[place][BITS + EXTENTS // 8 :])
        for first in [0, *sorted(with_pfs)]:
            if first + PFS_PAGES > before:
                number = first or 1
                page = read(number) if first < before else bytearray(pfs_like)
                for at in range(max(before - first, 0), PFS_PAGES):
                    page[BYTES + at] = 0x44 if first + at in fixed else 0
                write(number, page)
