//! Checks of heaps: forwarding stubs and forwarded rows.

use super::{Check, Class, Phase, Policy, RESTORE_IAM, RESTORE_PAGE, Repair, ReportOrder};

checks! {
    HEAP_FORWARD_MISMATCH = "heap.forward-mismatch", 8971 state 1, CrossPage, Reference(Forward), Consistency, AllowDataLoss, false,
        "Forwarded row mismatch: Object ID {object_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}) page {page}, slot {slot} points to forwarded row page {ref_page}, slot {ref_slot}; the forwarded row points back to page {back_page}, slot {back_slot}",
        brief "a forwarded row does not point back to its stub",
        must "A forwarding stub points to a forwarded row that points back to the stub.",
        cause "A stub or the back pointer of a forwarded row was changed, or one of the pages is stale (a lost write).",
        action RESTORE_PAGE;
    HEAP_FORWARD_SHARED = "heap.forward-shared", 8972 state 1, CrossPage, Reference(Forward), Consistency, AllowDataLoss, false,
        "Forwarded row referenced by more than one row. Object ID {object_id}, partition ID {partition_id}, alloc unit ID {alloc_unit_id} (type {alloc_type}), page {page}, slot {slot} incorrectly points to the forwarded row page {ref_page}, slot {ref_slot}, which correctly refers back to page {back_page}, slot {back_slot}.",
        brief "a forwarded row has more than one stub",
        must "A forwarded row has one stub.",
        cause "A stub was changed to the address of another row.",
        action RESTORE_PAGE;
    PAGE_TWICE = "page.twice", 8973 state 1, CrossPage, Iam(ListedTwice), Consistency, AllowDataLoss, true,
        "CHECKTABLE {owner_lower} processing encountered page {page}, slot {slot} twice.",
        brief "page {page} is listed twice",
        must "An allocation unit lists a page once.",
        cause "A single-page slot of an IAM page was changed.",
        action RESTORE_IAM;
    HEAP_STUB_WITHOUT_ROW = "heap.stub-without-row", 8993 state 1, CrossPage, Reference(Forward), Consistency, AllowDataLoss, false,
        "Object ID {object_id}, forwarding row page {page}, slot {slot} points to page {ref_page}, slot {ref_slot}. Did not encounter forwarded row. Possible allocation error.",
        brief "page {page}, slot {slot}: the forwarded row is missing",
        must "Every forwarding stub has its forwarded row.",
        cause "The page of the row is damaged or lost, or the stub was changed.",
        action RESTORE_PAGE;
    HEAP_ROW_WITHOUT_STUB = "heap.row-without-stub", 8994 state 1, CrossPage, Reference(Forward), Consistency, AllowDataLoss, false,
        "Object ID {object_id}, forwarded row page {page}, slot {slot} should be pointed to by forwarding row page {ref_page}, slot {ref_slot}. Did not encounter forwarding row. Possible allocation error.",
        brief "page {page}, slot {slot}: the stub of a forwarded row is missing",
        must "Every forwarded row has its stub.",
        cause "The page of the stub is damaged or lost, or the back pointer was changed.",
        action "Restore the page of the stub (possible in the full or bulk-logged recovery model with an unbroken log chain), otherwise the whole database. A repair turns the forwarded row into an ordinary row.";
}
