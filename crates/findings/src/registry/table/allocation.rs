//! Checks of allocation maps, IAM chains, and the owners of pages.

use super::{Check, Class, Phase, Policy, RESTORE_DATABASE, RESTORE_IAM, Repair, ReportOrder, SET_MAPS, SHARED_PAGES};

checks! {
    FIXED_PAGE_INVALID = "allocation.fixed-page-invalid", 5250 state 1, Allocation, Map(FixedPage), Allocation, None, true [rests_on_nothing],
        "Database error: {page_name} page {page} for database '{database}' (database ID {database_id}) is invalid. This error cannot be repaired. You must restore from backup.",
        brief "{page_name} page {page} is damaged",
        must "Page 0 of each file is an intact file header, and (1:9) an intact boot page.",
        cause "The first pages of the file were overwritten or damaged; the server cannot open the database.",
        action RESTORE_DATABASE;
    MAP_PAGE_INVALID = "allocation.map-page-invalid", 8946 state 12, Allocation, Map(FixedPage), Allocation, None, true listed OfMap [rests_on_the_log],
        "Table error: Allocation page {page} has invalid {page_name} page header values. Type is {page_type}. Check type, alloc unit ID and page ID on the page.",
        brief "{page_name} page {page}, an allocation map, is damaged",
        must "At each position of a GAM, SGAM, PFS, DIFF or ML page, there is a page of this kind with its own page id and the system allocation unit.",
        cause "An allocation page was overwritten, zeroed or changed.",
        action RESTORE_DATABASE;
    INTERVAL_UNCHECKED = "allocation.interval-unchecked", 8998 state 2, Allocation, Map(Interval), Allocation, None, true listed Last [rests_on_the_log, follows, remedied_elsewhere],
        "Page errors on the GAM, SGAM, or PFS pages prevent allocation integrity checks in database ID {database_id} pages from {page} to {ref_page}. See other errors for cause.",
        brief "allocation could not be checked because of damaged maps",
        must "The GAM, SGAM and PFS pages of an interval can be read.",
        cause "Another message names the allocation page that is damaged.",
        action "See the message about the damaged allocation page.";
    EXTENT_GAM_AND_SGAM = "allocation.extent-gam-and-sgam", 8903 state 1, Allocation, Map(GamAndSgam), Allocation, AllowDataLoss, true,
        "Extent {page} in database ID {database_id} is allocated in both GAM {gam_page} and SGAM {sgam_page}.",
        brief "extent {page} is free according to the GAM, but in use according to the SGAM",
        must "No extent is marked both as free in the GAM and as a mixed extent with free pages in the SGAM.",
        cause "A bit of the GAM or SGAM page was changed.",
        action SET_MAPS;
    EXTENT_SEVERAL_OWNERS = "allocation.extent-several-owners", 8904 state 1, Allocation, Map(SharedExtent), Allocation, AllowDataLoss, true,
        "Extent {page} in database ID {database_id} is allocated by more than one allocation object.",
        brief "extent {page} has more than one owner",
        must "At most one of GAM (free), SGAM (mixed) and the IAM pages claims an extent.",
        cause "A bit of a GAM, SGAM or IAM page was changed, or an allocation page is stale (a lost write).",
        action SHARED_PAGES;
    EXTENT_OWNER = "allocation.extent-owner", 8913 state 1, Allocation, Map(SharedExtent), Allocation, AllowDataLoss, true [follows, remedied_elsewhere],
        "Extent {page} is allocated to '{owner_name}' and at least one other object.",
        brief "extent {page} belongs to {owner_name} and at least one other owner",
        must "At most one of GAM (free), SGAM (mixed) and the IAM pages claims an extent. Each of these messages names one owner of the extent.",
        cause "See message 8904, which precedes these messages.",
        action "See message 8904.";
    EXTENT_UNOWNED = "allocation.extent-unowned", 8905 state 1, Allocation, Map(UnownedExtent), Allocation, AllowDataLoss, true listed AsConsequence,
        "Extent {page} in database ID {database_id} is marked allocated in the GAM, but no SGAM or IAM has allocated it.",
        brief "extent {page} is allocated but has no owner",
        must "An extent that the GAM marks as allocated belongs to an IAM chain, or is a mixed extent whose allocated pages have owners.",
        cause "A bit of a GAM, SGAM or IAM page was changed, or an IAM page was lost.",
        action "If all IAM pages are sound, only space is lost. If an IAM page is damaged too, pages of its table can no longer be found.";
    PAGE_UNOWNED = "allocation.page-unowned", 8906 state 1, Allocation, Map(UnownedPage), Allocation, AllowDataLoss, true listed AsConsequence,
        "Page {page} in database ID {database_id} is allocated in the SGAM {sgam_page} and PFS {pfs_page}, but was not allocated in any IAM. PFS flags '{pfs_flags}'.",
        brief "page {page} is allocated but has no owner",
        must "An allocated page of a mixed extent is an IAM page, or a single-page slot of an IAM page lists it.",
        cause "A PFS byte or an IAM page was changed or lost.",
        action "If all IAM pages are sound, only space is lost. If an IAM page is damaged too, pages of its table can no longer be found.";
    PAGE_TWO_OWNERS = "allocation.page-two-owners", 8910 state 1, Allocation, Map(SharedPage), Allocation, AllowDataLoss, true,
        "Page {page} in database ID {database_id} is allocated to both {owner_lower}, and {other_owner}.",
        brief "page {page} belongs to two allocation units",
        must "A page belongs to one allocation unit only.",
        cause "A single-page slot or a bitmap of an IAM page was changed.",
        action SHARED_PAGES;
    PFS_WRONG_TYPE = "allocation.pfs-wrong-type", 8948 state 6, Allocation, Map(PfsType), Allocation, AllowDataLoss, true,
        "Database error: Page {page} is marked with the wrong type in PFS page {pfs_page}. PFS status 0x{status:x} expected 0x{expected:x}.",
        brief "page {page} is marked wrongly in PFS page {pfs_page}",
        must "The PFS byte of a page says what the IAM pages say: whether the page is allocated, in a mixed extent, or an IAM page.",
        cause "A byte of the PFS page was changed, or the PFS page is stale (a lost write).",
        action SET_MAPS;
    IAM_UNREADABLE = "iam.unreadable", 8928 state 6, Allocation, Iam(Page), Allocation, AllowDataLoss, true [rests_on_nothing],
        "{owner}: Page {page} could not be processed.  See other errors for details.",
        brief "IAM page {page} cannot be read",
        must "Every IAM page can be read and has a correct checksum.",
        cause "The disk, or a component between the disk and the engine, changed or lost the page.",
        action RESTORE_IAM;
    IAM_NEXT_UNSEEN = "iam.next-unseen", 2575 state 1, Allocation, Iam(Chain), Allocation, AllowDataLoss, true,
        "The Index Allocation Map (IAM) page {page} is pointed to by the next pointer of IAM page {ref_page} in {owner_lower}, but it was not detected in the scan.",
        brief "IAM page {page}, the next in the chain, was not found",
        must "Every page that an IAM page or the catalog names as the next IAM page is an IAM page.",
        cause "The IAM page was overwritten, or the pointer to it was changed. In the message, (0:0) stands for the catalog.",
        action RESTORE_IAM;
    IAM_PREV_UNSEEN = "iam.prev-unseen", 2576 state 1, Allocation, Iam(Previous), Allocation, AllowDataLoss, true,
        "The Index Allocation Map (IAM) page {page} is pointed to by the previous pointer of IAM page {ref_page} in {owner_lower}, but it was not detected in the scan.",
        brief "IAM page {page}, the previous in the chain, was not found",
        must "Every page that an IAM page names as previous is an IAM page; the catalog names every IAM page without a predecessor.",
        cause "The catalog row was lost or changed (if the message names (0:0)), or the previous IAM page was overwritten.",
        action "If the message names a page other than (0:0), restore the named page as described for message 2575. If the message names (0:0), neither the catalog nor another IAM page refers to this IAM page, and no table needs the pages that it lists. Save the rows on these pages (mdfsck export --damaged); then let REPAIR_ALLOW_DATA_LOSS remove the IAM page.";
    IAM_SEQUENCE = "iam.sequence", 2577 state 1, Allocation, Iam(Chain), Allocation, AllowDataLoss, true,
        "Chain sequence numbers are out of order in the Index Allocation Map (IAM) chain for {owner_lower}. Page {page} with sequence number {sequence} points to page {ref_page} with sequence number {next_sequence}.",
        brief "the IAM chain is numbered wrongly",
        must "Sequence numbers of an IAM chain start at 0 and ascend by 1.",
        cause "An IAM page was changed, is stale (a lost write), or is missing from the middle of the chain.",
        action RESTORE_IAM;
    IAM_EXTENT_OUT_OF_RANGE = "iam.extent-out-of-range", 2579 state 1, Allocation, Iam(Range), Allocation, AllowDataLoss, true,
        "Table error: Extent {page} in {owner_lower} is beyond the range of this database.",
        brief "extent {page} is beyond the end of the database",
        must "Every extent and single page that an IAM page claims is inside a file of the database.",
        cause "The IAM page was changed, or the file was cut off.",
        action "Compare the file's length with the size in its header, then restore the file.";
    IAM_POINTER_OUT_OF_RANGE = "iam.pointer-out-of-range", 8968 state 1, Allocation, Iam(Range), Allocation, AllowDataLoss, true,
        "Table error: {pointer} page {page} ({owner_lower}) is out of the range of this database.",
        brief "page {page} is beyond the end of the database",
        must "The first, root and IAM pages that the catalog or an IAM page names are inside a file of the database.",
        cause "A row of sysallocunits or an IAM page was changed, or the file was cut off.",
        action "Restore from a backup.";
    IAM_LINKAGE = "iam.linkage", 8969 state 1, Allocation, Iam(Chain), Allocation, AllowDataLoss, true,
        "Table error: IAM chain linkage error: {owner}. The next page for IAM page {page} is {ref_page}, but the previous link for page {other_page} is {found_prev}.",
        brief "IAM pages do not point to each other",
        must "If an IAM page points to a next page, the next page points back to it.",
        cause "A pointer of an IAM page was changed, or one of the two pages is stale (a lost write).",
        action RESTORE_IAM;
    IAM_SAME_INTERVAL = "iam.same-interval", 8947 state 1, Allocation, Iam(Chain), Allocation, AllowDataLoss, true,
        "Table error: Multiple IAM pages for {owner_lower} contain allocations for the same interval. IAM pages {page} and {ref_page}.",
        brief "two IAM pages map the same extents",
        must "An allocation unit has at most one IAM page per interval of a file.",
        cause "The interval pointer of an IAM page was changed, or a foreign IAM page was linked into the chain.",
        action RESTORE_IAM;
    IAM_OTHER_UNIT = "iam.other-unit", 8959 state 1, Allocation, Iam(OfOther), Allocation, AllowDataLoss, true,
        "Table error: IAM page {page} for {owner_lower} is linked in the IAM chain for {other_owner} by page {ref_page}.",
        brief "IAM page {page} is in the chain of another object",
        must "All IAM pages of a chain have the same allocation unit id.",
        cause "A pointer or the allocation unit id of an IAM page was changed, or a row of sysallocunits was changed.",
        action RESTORE_IAM;
    IAM_FILEGROUP = "iam.filegroup", 8996 state 1, Allocation, Iam(Chain), Allocation, AllowDataLoss, true,
        "IAM page {page} for {owner_lower} controls pages in filegroup {found_filegroup}, that should be in filegroup {expected_filegroup}.",
        brief "IAM page {page} maps a file of another filegroup",
        must "The file that an IAM page maps belongs to the filegroup of its allocation unit.",
        cause "The interval pointer of an IAM page, a file header or a row of sysallocunits was changed.",
        action "Restore from a backup.";
    IAM_INVALID = "iam.invalid", 7965 state 2, CrossPage, Iam(Unchecked), Consistency, AllowDataLoss, true listed AsConsequence [checkalloc, follows],
        "Table error: Could not check {owner_lower} due to invalid allocation (IAM) page(s).",
        brief "the object could not be checked because of damaged IAM pages",
        must "The IAM chain of an allocation unit can be read from end to end.",
        cause "Another message names the IAM page that is damaged.",
        action RESTORE_IAM;
}
