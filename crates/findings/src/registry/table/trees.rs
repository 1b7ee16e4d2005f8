//! Checks of B-trees: keys, levels, links.

use super::{Check, Class, Phase, Policy, REBUILD, RESTORE_PAGE_OR_REBUILD, Repair, ReportOrder};

checks! {
    KEY_ORDER = "key.order", 2511 state 1, Page, Structure(Keys), Consistency, Rebuild, false,
        "Table error: {owner}. Keys out of order on page {page}, slots {slot} and {ref_slot}.",
        brief "page {page}: keys of slots {slot} and {ref_slot} are out of order",
        must "Keys ascend from slot to slot of an index page (descend in DESC columns).",
        cause "A key was changed, the slot array was reordered, or the server's collation library sorts differently.",
        action REBUILD;
    KEY_DUPLICATE = "key.duplicate", 2512 state 1, Page, Structure(Keys), Consistency, Rebuild, false,
        "Table error: {owner}. Duplicate keys on page {page} slot {slot} and page {ref_page} slot {ref_slot}.",
        brief "page {page}, slot {slot}: a duplicate key",
        must "No two rows of an index have the same complete key.",
        cause "A key was changed, or a row was written twice.",
        action "In a unique index, first remove one of the rows. Then disable a nonclustered index and rebuild it, or rebuild a clustered index.";
    TREE_EMPTY_PAGE = "tree.empty-page", 2574 state 1, Page, Structure(EmptyPage), Consistency, Rebuild, false [rests_on_the_log],
        "Table error: Page {page} is empty in {owner_lower}. This is not permitted at level {level} of the B-tree.",
        brief "page {page} is empty",
        must "No page of a B-tree is empty, except the only page of an empty index.",
        cause "The page header was changed, or rows were lost from the page.",
        action "Compare row counts with a backup. Then disable a nonclustered index and rebuild it. Rebuild a clustered index only if no row is missing.";
    TREE_LEVEL_SIBLING = "tree.level-sibling", 2531 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: {owner_lower} B-tree level mismatch, page {page}. Level {level} does not match level {ref_level} from the previous {ref_page}.",
        brief "page {page} is not on the level of its neighbor",
        must "Neighbors in a page chain are on the same level.",
        cause "A level or a next pointer in a page header was changed.",
        action REBUILD;
    TREE_LEVEL_PARENT = "tree.level-parent", 8931 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: {owner} B-tree level mismatch, page {page}. Level {level} does not match level {ref_level} from parent {ref_page}.",
        brief "page {page} is not one level below its parent {ref_page}",
        must "A page is one level below its parent.",
        cause "A level in a page header or a child pointer was changed.",
        action REBUILD;
    TREE_CHILD_OF_OTHER = "tree.child-of-other", 8925 state 1, CrossPage, Reference(Child), Consistency, AllowDataLoss, false,
        "Table error: Cross object linkage: Page {ref_page}, slot {ref_slot}, in {owner_lower}, refers to page {page}, slot 0, in {other_owner}.",
        brief "page {ref_page} points to a child {page} of another index",
        must "A child pointer points to a page of the same index.",
        cause "A child pointer was changed, or a page of another index was written over the child.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_PARENT_AND_NEXT_OF_OTHER = "tree.parent-and-next-of-other", 8926 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: Cross object linkage: Parent page {ref_page}, slot {ref_slot} in {owner_short}, and page {other_page}->next in {other_owner_short}, refer to page {page} but are not in the same object.",
        brief "parent and neighbor of a page belong to different indexes",
        must "The parent entry and the left neighbor that name a page belong to the same index.",
        cause "A child pointer was changed, or a page of another index was written over the child.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_LOW_KEY = "tree.low-key", 8933 state 1, CrossPage, Structure(KeyRange), Consistency, Rebuild, false,
        "Table error: {owner}. The low key value on page {page} (level {level}) is not >= the key value in the parent {ref_page} slot {ref_slot}.",
        brief "page {page} has keys below its range in parent {ref_page}",
        must "The first key of a page is at least the key in the page's parent entry.",
        cause "A key in the page or in its parent was changed, or children were exchanged.",
        action REBUILD;
    TREE_HIGH_KEY = "tree.high-key", 8934 state 1, CrossPage, Structure(KeyRange), Consistency, Rebuild, false,
        "Table error: {owner}. The high key value on page {page} (level {level}) is not less than the low key value in the parent {ref_page}, slot {ref_slot} of the next page {other_page}.",
        brief "page {page} has keys above its range in parent {ref_page}",
        must "The last key of a page is below the key in the next page's parent entry.",
        cause "A key in the page or in its parent was changed, or children were exchanged.",
        action REBUILD;
    TREE_PREV_NOT_AS_PARENT = "tree.prev-not-as-parent", 8935 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: {owner}. The previous link {found_prev} on page {page} does not match the previous page {expected_prev} that the parent {ref_page}, slot {ref_slot} expects for this page.",
        brief "page {page} and its parent disagree about its previous page",
        must "A page's previous pointer names the page of the parent's preceding entry.",
        cause "A previous pointer or a child pointer was changed.",
        action REBUILD;
    TREE_CHAIN_LINKAGE = "tree.chain-linkage", 8936 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: {owner}. B-tree chain linkage mismatch. {ref_page}->next = {page}, but {page}->Prev = {found_prev}.",
        brief "pages {ref_page} and {page} do not point to each other",
        must "If a page points to a next page, the next page points back to it.",
        cause "A next or previous pointer was changed, or one page is stale (a lost write).",
        action REBUILD;
    TREE_TWO_PARENTS = "tree.two-parents", 8937 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: {owner}. B-tree page {page} has two parent nodes {ref_page}, slot {ref_slot} and {other_page}, slot {other_slot}.",
        brief "page {page} has two parents",
        must "A page has one parent entry. In the message, (0:0) stands for the root pointer in the catalog.",
        cause "A child pointer or the root pointer was changed.",
        action REBUILD;
    TREE_CHILD_UNSEEN = "tree.child-unseen", 8976 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false listed OfMissing,
        "Table error: {owner}. Page {page} was not seen in the scan although its parent {ref_page} and previous {other_page} refer to it. Check any previous errors.",
        brief "page {page} is missing from the index",
        must "If a parent and a left neighbor name a page, that page exists in the index.",
        cause "The page is damaged or unallocated, or belongs to another index; other messages say which of these is the case.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_PARENT_UNSEEN = "tree.parent-unseen", 8977 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false listed AsConsequence,
        "Table error: {owner}. Parent node for page {page} was not encountered.",
        brief "page {page} has no parent",
        must "A page that is not the root has a parent entry.",
        cause "The parent page is damaged, or its child pointer was changed.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_PREV_UNSEEN = "tree.prev-unseen", 8978 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false listed ByReference [remedied_elsewhere],
        "Table error: {owner}. Page {page} is missing a reference from previous page {ref_page}. Possible chain linkage problem.",
        brief "page {page}: its previous page {ref_page} does not point to it",
        must "If a page names a previous page, the previous page names it as its next page.",
        cause "The previous page is damaged, or its next pointer was changed.",
        action "See the messages about the previous page.";
    TREE_UNREFERENCED = "tree.unreferenced", 8979 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false listed AsConsequence,
        "Table error: {owner}. Page {page} is missing references from parent (unknown) and previous (page {ref_page}) nodes. Possible bad root entry in system catalog.",
        brief "page {page} is not referenced in the index",
        must "Every page of an index is named by its parent and by its left neighbor.",
        cause "The root pointer in sysallocunits was changed, or the parent page and the left neighbor are both damaged.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_CHILDREN_UNSEEN = "tree.children-unseen", 8980 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false listed OfMissing,
        "Table error: {owner}. Index node page {ref_page}, slot {ref_slot} refers to child page {page} and previous child {other_page}, but they were not encountered.",
        brief "page {page} is missing below {ref_page}",
        must "Every page that a parent entry names exists in the index. In the message, (0:0) stands for the root pointer in the catalog.",
        cause "The page and its left neighbor are damaged, or the damaged page is the root or the leftmost page of its level.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_NEXT_UNSEEN = "tree.next-unseen", 8981 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false listed OfMissing,
        "Table error: {owner}. The next pointer of {ref_page} refers to page {page}. Neither {page} nor its parent were encountered. Possible bad chain linkage.",
        brief "page {page}, the next of {ref_page}, is missing",
        must "Every page that a next pointer names exists in the index.",
        cause "A next pointer was changed, or the page and its parent are damaged.",
        action RESTORE_PAGE_OR_REBUILD;
    TREE_NEXT_OF_OTHER = "tree.next-of-other", 8982 state 1, CrossPage, Structure(Links), Consistency, Rebuild, false,
        "Table error: Cross object linkage. Page {ref_page}->next in {owner_au} refers to page {page} in {other_owner_au} but is not in the same index.",
        brief "page {ref_page} points to a next page of another object",
        must "A next pointer points to a page of the same index.",
        cause "A next pointer was changed, or a page of another index was written over the neighbor.",
        action RESTORE_PAGE_OR_REBUILD;
}
