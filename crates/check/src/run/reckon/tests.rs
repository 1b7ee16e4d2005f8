use super::*;
use crate::test_tree::{Found, TestTree, id};

/// A tree with a fault: page 20 does not point back to its left neighbor. A run that checks the links of the tree must
/// find this.
fn broken() -> TestTree {
    TestTree::clustered().with(20, |leaf| leaf.prev = id(21))
}

/// Asserts that the links of the tree are not checked, and that `limit` is the only reason noted for this.
#[track_caller]
fn only_doubt(found: &Found, limit: &limits::Limit) {
    assert_eq!(*found, Found { findings: vec![], limits: vec![limit.id] });
}

#[test]
fn a_tree_of_which_all_pages_were_seen_is_judged_and_damaged_pages_count_as_seen() {
    let found = broken().checked(|_| ());
    let expected =
        ["8935 20 < 17.1, found_prev 21, expected_prev 19", "8936 20 < 19, found_prev 21"].map(str::to_owned);
    assert_eq!(found, Found { findings: expected.to_vec(), limits: vec![] });
    let found = broken().damaged(&[22]).checked(|_| ());
    assert!(expected.iter().all(|text| found.findings.contains(text)) && found.limits.is_empty(), "{found:?}");
}

#[test]
fn a_page_that_cannot_be_read_leaves_the_tree_unjudged() {
    let mut tree = broken();
    tree.unread.insert(22);
    only_doubt(&tree.checked(|_| ()), &limits::PAGES_UNREADABLE);
}

#[test]
fn a_page_in_transit_leaves_the_tree_unjudged() {
    let tree = broken().with(22, |leaf| leaf.kind = format::PageType::ReorgTemporary);
    only_doubt(&tree.checked(|_| ()), &limits::PAGES_IN_TRANSIT);
}

#[test]
fn a_broken_iam_chain_or_a_file_not_given_leaves_the_tree_unjudged() {
    let found = broken().checked(|context| _ = context.survey.broken_chains.insert(0));
    only_doubt(&found, &limits::TREE_IAM_CHAIN);
    let found = broken().checked(|context| _ = context.survey.partial_units.insert(0));
    only_doubt(&found, &limits::PAGES_FILE_NOT_GIVEN);
    // A broken IAM chain of another unit does not affect this unit.
    let found = broken().checked(|context| _ = context.survey.broken_chains.insert(1));
    assert_eq!((found.findings.len(), found.limits), (2, vec![limits::TREE_IAM_CHAIN.id]));
}

#[test]
fn each_reason_why_a_unit_is_not_judged_is_noted_with_its_pages() {
    type Change = fn(&mut UnitTally);
    let cases: [(Change, &limits::Limit); 4] = [
        (|tally| tally.pages_in_transit = 3, &limits::PAGES_IN_TRANSIT),
        (|tally| tally.taken_pages = 3, &limits::PAGES_SHARED),
        (|tally| tally.unread_pages = 3, &limits::PAGES_UNREADABLE),
        (|tally| tally.unknown_pages = 3, &limits::PAGES_PFS_DAMAGED),
    ];
    let judged = |tally: UnitTally| {
        let mut can = true;
        let (_, coverage) =
            TestTree::clustered().surveyed(|context, to| can = can_be_judged(context, 0, &tally, to.coverage));
        let (list, _) = coverage.into_lists();
        (can, list.iter().map(|entry| (entry.limit.id, entry.count)).collect::<Vec<_>>())
    };
    assert_eq!(judged(UnitTally { bad_pages: u64::MAX, ..UnitTally::default() }), (true, vec![]));
    for (change, limit) in cases {
        let mut tally = UnitTally::default();
        change(&mut tally);
        assert_eq!(judged(tally), (false, vec![(limit.id, 3)]));
    }
    let mut all = UnitTally::default();
    cases.iter().for_each(|(change, _)| change(&mut all));
    assert_eq!(judged(all).1.len(), cases.len());
}

#[test]
fn a_unit_out_of_scope_is_neither_judged_nor_doubted() {
    let mut tree = broken();
    tree.unread.insert(22);
    // The ID of an object determines its batch. Object 100 is in batch 0 of 2, so a run of batch 1 must neither check
    // the object nor note that it was not verified.
    let found = tree.checked(|context| context.batch = Some((1, 2)));
    assert_eq!(found, Found { findings: vec![], limits: vec![] });
}
