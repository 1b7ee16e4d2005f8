use std::collections::BTreeSet;

use findings::registry::limits;
use sums::spill::TempStore;

use super::*;
use crate::test_pages::UNIT;
use crate::test_tree::{FREE_PAGE, OTHER_OBJECT, TestTree, described, id};

/// A page address that is impossible in any file.
const FARTHEST: PageId = PageId { file: u16::MAX, page: u32::MAX };

/// The findings of a second look at the tree, without a sweep, and whether the second look met an unreadable page.
fn second_look(tree: &TestTree) -> (Vec<String>, bool) {
    let mut is_unread = false;
    let (findings, _) = tree.surveyed(|context, to| {
        *to.findings = FindingCollector::new(1 << 20, &TempStore::new(None, 1 << 20));
        // The state after a sweep that has found bad pages.
        context.bad_units = BTreeSet::from([0, 1]).into();
        is_unread = super::tree(context, 0, PageRange::ALL, to.findings).is_err();
    });
    let mut findings: Vec<String> = findings.iter().map(described).collect();
    findings.sort();
    (findings, is_unread)
}

/// Asserts that a second look has exactly the `expected` findings, and that a whole run has the same findings about
/// links. So in a whole run, the sums must differ whenever a second look would find something.
#[track_caller]
fn names<S: AsRef<str>>(tree: &TestTree, expected: &[S]) {
    let mut expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
    expected.sort_unstable();
    assert_eq!(second_look(tree), (expected.iter().map(|&text| text.to_owned()).collect(), false));
    let is_of_links = |text: &String| {
        let message = &text[..4];
        ["2531", "8925", "8926", "8931", "8935", "8936", "8937"].contains(&message)
            || ("8976"..="8982").contains(&message)
    };
    let mut of_run = tree.checked(|_| ()).findings;
    of_run.retain(is_of_links);
    of_run.sort();
    assert_eq!(of_run, expected, "a run");
}

#[test]
fn legal_a_tree_whose_links_agree_has_no_finding() {
    for tree in [TestTree::clustered(), TestTree::nonclustered()] {
        names::<&str>(&tree, &[]);
    }
}

#[test]
fn legal_the_lowest_index_level_of_a_clustered_tree_is_0_or_1() {
    let lower = |tree: TestTree| {
        let nodes = [16, 17, 18].into_iter();
        nodes.fold(tree, |tree, node| tree.with(node, |page| page.level -= 1))
    };
    names::<&str>(&lower(TestTree::clustered()), &[]);
    // The level above the data has number 2 instead of 1. This is reported for each page of the data level.
    let jump = [17, 18].into_iter().fold(TestTree::clustered(), |tree, node| tree.with(node, |page| page.level = 2));
    let jump = jump.with(16, |root| root.level = 3);
    let leaf = |page, node| format!("8931 {page} < {node}, level 0, ref_level 2");
    names(&jump, &[leaf(19, 17), leaf(20, 17), leaf(21, 18), leaf(22, 18)]);
}

#[test]
fn a_lost_leaf_is_8976_and_its_right_neighbor_8978() {
    let tree = TestTree::clustered().damaged(&[20]);
    names(&tree, &["8976 20 < 17.1, other_page 19", "8978 21 < 20"]);
}

#[test]
fn of_a_run_of_lost_leaves_the_first_is_8976_and_the_others_are_8980() {
    let tree = TestTree::clustered().damaged(&[20, 21]);
    names(&tree, &["8976 20 < 17.1, other_page 19", "8980 21 < 18.0, other_page 20", "8978 22 < 21"]);
    // No page precedes the leftmost leaf.
    let tree = TestTree::clustered().damaged(&[19]);
    names(&tree, &["8980 19 < 17.0, other_page (0:0)", "8978 20 < 19"]);
}

#[test]
fn children_of_a_lost_parent_are_8977_and_what_it_would_say_of_others_is_not_judged() {
    let tree = TestTree::clustered().damaged(&[18]);
    names(&tree, &["8976 18 < 16.1, other_page 17", "8977 21", "8977 22"]);
    // Page 17, the left neighbor of page 18, is lost. So it is unknown which child precedes page 21, the first child of
    // page 18, and page 21 may have any previous page.
    let tree = TestTree::clustered().damaged(&[17]);
    names(&tree, &["8980 17 < 16.0, other_page (0:0)", "8978 18 < 17", "8977 19", "8977 20"]);
}

#[test]
fn a_next_pointer_to_a_page_that_does_not_exist_is_8981_up_to_the_last_page_of_the_last_file() {
    for (next, name) in [
        (id(FREE_PAGE), "23"),
        (id(32), "32"),
        (id(u32::MAX), "4294967295"),
        (PageId::new(1, 19), "(1:19)"),
        (PageId::new(0, 1), "(0:1)"),
        (FARTHEST, "(65535:-1)"),
    ] {
        let tree = TestTree::clustered().with(22, |leaf| leaf.next = next);
        names(&tree, &[format!("8981 {name} < 22")]);
    }
}

#[test]
fn a_child_at_the_limits_of_page_numbers_is_8980() {
    for (child, name) in [(id(u32::MAX), "4294967295"), (FARTHEST, "(65535:-1)")] {
        let tree = TestTree::clustered().with(18, |node| node.entries[1].1 = child);
        // The last entry named page 22 before the change. Page 22 is still linked with its neighbor, so only its parent
        // is missing.
        names(&tree, &[format!("8980 {name} < 18.1, other_page 21"), "8977 22".to_owned()]);
    }
}

#[test]
fn a_page_that_is_its_own_neighbor_ends_and_is_8936() {
    let next = TestTree::clustered().with(20, |leaf| leaf.next = id(20));
    names(&next, &["8936 20 < 20, found_prev 19", "8978 21 < 20"]);
    let prev = TestTree::clustered().with(20, |leaf| leaf.prev = id(20));
    names(&prev, &["8936 20 < 19, found_prev 20", "8935 20 < 17.1, found_prev 20, expected_prev 19"]);
}

#[test]
fn a_chain_that_leads_back_to_its_start_ends_and_is_8936() {
    let open = TestTree::clustered().with(22, |leaf| leaf.next = id(19));
    names(&open, &["8936 19 < 22, found_prev (0:0)"]);
    // If the first and the last leaf point to each other, the chain is a ring, and its first page contradicts the
    // parent.
    let ring = open.with(19, |leaf| leaf.prev = id(22));
    names(&ring, &["8935 19 < 17.0, found_prev 22, expected_prev (0:0)"]);
}

#[test]
fn entries_that_lead_upwards_end_and_give_a_page_two_parents() {
    // The changed entry is the second parent of the root, because the pointer in the catalog counts as the first
    // parent.
    let up = TestTree::clustered().with(17, |node| node.entries[1].1 = id(16));
    let moved = "8935 21 < 18.0, found_prev 20, expected_prev 16";
    let two = "8937 16 < (0:0).0, other_page 17, other_slot 1";
    names(&up, &[two, "8977 20", moved]);
    let own = TestTree::clustered().with(17, |node| node.entries[0].1 = id(17));
    let two = "8937 17 < 16.0, other_page 17, other_slot 0";
    names(&own, &[two, "8977 19", "8935 20 < 17.1, found_prev 19, expected_prev 17"]);
}

#[test]
fn a_page_of_two_parents_is_8937_with_the_first_two_by_page_and_slot() {
    let two = TestTree::clustered().with(18, |node| node.entries[0].1 = id(20));
    let found = "8937 20 < 17.1, other_page 18, other_slot 0";
    names(&two, &[found, "8977 21", "8935 22 < 18.1, found_prev 21, expected_prev 20"]);
    let three = two.with(18, |node| node.entries[1].1 = id(20));
    names(&three, &[found, "8977 21", "8977 22"]);
}

#[test]
fn a_level_that_jumps_is_8931_against_parent_and_children_and_2531_against_the_left_neighbor() {
    let tree = TestTree::clustered().with(18, |node| node.level = 5);
    let leaf = |page| format!("8931 {page} < 18, level 0, ref_level 5");
    let of_parent = "8931 18 < 16, level 5, ref_level 2".to_owned();
    names(&tree, &[of_parent, "2531 18 < 17, level 5, ref_level 1".to_owned(), leaf(21), leaf(22)]);
}

#[test]
fn level_255_is_not_one_below_level_0() {
    let tree = TestTree::nonclustered().with(16, |root| root.level = 0);
    let tree = tree.with(17, |node| node.level = 255).with(18, |node| node.level = 255);
    let of = |page, parent, level, above| format!("8931 {page} < {parent}, level {level}, ref_level {above}");
    let nodes = [of(17, 16, 255, 0), of(18, 16, 255, 0)];
    let leaves = [of(19, 17, 0, 255), of(20, 17, 0, 255), of(21, 18, 0, 255), of(22, 18, 0, 255)];
    names(&tree, &[&nodes[..], &leaves].concat());
}

#[test]
fn a_root_pointer_that_leads_nowhere_is_8980_of_the_catalog_and_the_root_is_8979() {
    let unnamed = "8979 16 < (0:0)";
    names(&TestTree::clustered().root(PageId::NONE), &[unnamed]);
    // A page that does not exist, or that belongs to another table, is not a root of this tree.
    for (root, name) in [(id(FREE_PAGE), "23"), (id(25), "25"), (FARTHEST, "(65535:-1)")] {
        let tree = TestTree::clustered().root(root);
        names(&tree, &[format!("8980 {name} < (0:0).0, other_page (0:0)"), unnamed.to_owned()]);
    }
}

#[test]
fn a_root_pointer_into_the_middle_of_the_tree_gives_that_page_two_parents() {
    let tree = TestTree::clustered().root(id(18));
    names(&tree, &["8937 18 < (0:0).0, other_page 16, other_slot 1", "8979 16 < (0:0)"]);
}

#[test]
fn a_page_that_neither_parent_nor_left_neighbor_names_is_8979_with_its_previous_page() {
    let tree =
        TestTree::clustered().with(18, |node| node.entries.truncate(1)).with(21, |leaf| leaf.next = PageId::NONE);
    names(&tree, &["8979 22 < 21"]);
    // The leftmost leaf has no previous page that could name it, but its right neighbor shows that it is not a root.
    let tree = TestTree::clustered().with(17, |node| _ = node.entries.remove(0));
    names(&tree, &["8977 19", "8935 20 < 17.0, found_prev 19, expected_prev (0:0)"]);
}

#[test]
fn a_child_of_another_table_is_8925_or_8926_if_that_table_has_a_page_before_it() {
    let first = TestTree::clustered().with(18, |node| node.entries[1].1 = id(25));
    names(&first, &[format!("8925 25 < 18.1, other_owner {OTHER_OBJECT}"), "8977 22".to_owned()]);
    let second = TestTree::clustered().with(18, |node| node.entries[1].1 = id(26));
    names(&second, &[format!("8926 26 < 18.1, other_owner {OTHER_OBJECT}, other_page 25"), "8977 22".to_owned()]);
    // If page 25 is damaged, it cannot be identified as a page of the other table.
    names(&first.damaged(&[25]), &["8980 25 < 18.1, other_page 21", "8977 22"]);
}

#[test]
fn a_next_pointer_into_another_table_is_8982() {
    let tree = TestTree::clustered().with(22, |leaf| leaf.next = id(26));
    names(&tree, &[format!("8982 26 < 22, other_owner {OTHER_OBJECT}")]);
}

#[test]
fn a_wrong_previous_pointer_contradicts_the_parent_and_the_left_neighbor() {
    let tree = TestTree::clustered().with(21, |leaf| leaf.prev = FARTHEST);
    let chain = "8936 21 < 20, found_prev (65535:-1)";
    names(&tree, &[chain, "8935 21 < 18.0, found_prev (65535:-1), expected_prev 20"]);
    // No page points to the leftmost leaf. Its wrong previous page contradicts only the parent, but one contradiction
    // is enough for a finding.
    let tree = TestTree::clustered().with(19, |leaf| leaf.prev = id(FREE_PAGE));
    names(&tree, &["8935 19 < 17.0, found_prev 23, expected_prev (0:0)"]);
}

#[test]
fn entries_out_of_order_are_8935_of_each_page_whose_neighbor_they_change() {
    let tree = TestTree::clustered().with(17, |node| node.entries = vec![(0, id(20)), (20, id(19))]);
    let of = |page, by, found, expected| format!("8935 {page} < {by}, found_prev {found}, expected_prev {expected}");
    names(&tree, &[of(20, "17.0", "19", "(0:0)"), of(19, "17.1", "(0:0)", "20"), of(21, "18.0", "20", "19")]);
}

#[test]
fn a_chain_that_agrees_with_itself_but_not_with_the_parents_is_8935_alone() {
    let (p19, p20, p21, p22) = (id(19), id(20), id(21), id(22));
    let tree = TestTree::clustered().with(19, |leaf| leaf.next = p21).with(22, |leaf| leaf.prev = p20);
    let tree = tree.with(21, |leaf| (leaf.prev, leaf.next) = (p19, p20));
    let tree = tree.with(20, |leaf| (leaf.prev, leaf.next) = (p21, p22));
    let of = |page, by, found, expected| format!("8935 {page} < {by}, found_prev {found}, expected_prev {expected}");
    names(&tree, &[of(20, "17.1", 21, 19), of(21, "18.0", 19, 20), of(22, "18.1", 20, 21)]);
}

#[test]
fn a_node_without_entries_names_no_children() {
    let tree = TestTree::clustered().with(18, |node| node.entries.clear());
    names(&tree, &["8977 21", "8977 22"]);
    assert!(tree.checked(|_| ()).findings.contains(&"2574 18, level 1".to_owned()));
}

#[test]
fn legal_an_empty_leaf_as_in_databases_of_sql_server_2000() {
    let tree = TestTree::clustered().with(20, |leaf| leaf.entries.clear());
    names::<&str>(&tree, &[]);
    assert_eq!(tree.checked(|_| ()).findings, Vec::<String>::new());
}

#[test]
fn rows_on_a_page_with_the_level_of_a_node_name_no_children() {
    let as_node = |tree: TestTree| tree.with(21, |leaf| leaf.level = 1);
    let found = [
        "2531 21 < 20, level 1, ref_level 0",
        "8931 21 < 18, level 1, ref_level 1",
        "2531 22 < 21, level 0, ref_level 1",
    ];
    names(&as_node(TestTree::nonclustered()), &found);
    // Here the leaf rows are as long as the index entries of a node, and they contain bytes that could be child
    // addresses. The result is still the same, because the depth of a page below the root decides whether its rows are
    // read as index entries.
    let long = TestTree { locator_bytes: 6, ..TestTree::nonclustered() };
    let long = long.with(21, |leaf| leaf.entries = vec![(30, id(19)), (35, id(16))]);
    names::<&str>(&long, &[]);
    assert_eq!(second_look(&as_node(long)), (sorted(&found), false));
}

fn sorted(texts: &[&str]) -> Vec<String> {
    let mut texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
    texts.sort();
    texts
}

#[test]
fn entries_on_a_page_with_the_level_of_a_leaf_still_name_its_children() {
    let tree = TestTree::nonclustered().with(18, |node| node.level = 0);
    let leaf = |page| format!("8931 {page} < 18, level 0, ref_level 0");
    let of_parent = "8931 18 < 16, level 0, ref_level 2".to_owned();
    names(&tree, &[of_parent, "2531 18 < 17, level 0, ref_level 1".to_owned(), leaf(21), leaf(22)]);
}

#[test]
fn a_root_of_rows_with_the_level_of_a_node_is_8931_of_the_catalog() {
    let mut tree = TestTree::nonclustered().root(id(19));
    tree.pages.retain(|_, page| page.unit != UNIT || page.entries[0].0 == 10);
    (16..24).filter(|page| *page != 19).for_each(|page| tree.maps.pfs[page] = 0);
    let tree = tree.with(19, |leaf| leaf.next = PageId::NONE);
    names::<&str>(&tree, &[]);
    names(&tree.with(19, |leaf| leaf.level = 3), &["8931 19 < (0:0), level 3, ref_level 1"]);
}

#[test]
fn of_a_compressed_tree_only_the_chain_is_judged() {
    let compressed = || TestTree { is_compressed: true, ..TestTree::clustered() };
    names::<&str>(&compressed(), &[]);
    let upwards = compressed().with(17, |node| node.entries = vec![(0, id(16)), (20, id(16))]);
    names::<&str>(&upwards, &[]);
    names(&compressed().with(21, |leaf| leaf.prev = id(19)), &["8936 21 < 20, found_prev 19"]);
    names(&compressed().with(20, |leaf| leaf.next = PageId::NONE), &["8978 21 < 20"]);
}

#[test]
fn a_page_of_the_tree_that_cannot_be_read_leaves_nothing_proven() {
    let mut tree = TestTree::clustered().with(22, |leaf| leaf.prev = id(19));
    tree.unread.insert(20);
    assert_eq!(second_look(&tree), (vec![], true));
}

#[test]
fn a_page_elsewhere_that_cannot_be_read_leaves_only_itself_unproven() {
    let tree = TestTree::clustered().with(22, |leaf| leaf.next = id(25)).with(17, |node| node.entries[1].1 = id(26));
    let mut tree = tree.with(19, |leaf| leaf.prev = id(FREE_PAGE));
    tree.unread.extend([25, 26]);
    let found = [
        "8935 19 < 17.0, found_prev 23, expected_prev (0:0)",
        "8977 20",
        "8935 21 < 18.0, found_prev 20, expected_prev 26",
    ];
    assert_eq!(second_look(&tree), (sorted(&found), true));
}

#[test]
fn no_link_is_missing_because_of_a_page_that_was_sound_and_is_bad_at_the_second_look() {
    let tree = || TestTree::clustered().with(21, |page| page.prev = id(19));
    assert!(!tree().checked(|_| ()).findings.is_empty());
    let found = tree().rotting(20).checked(|_| ());
    assert_eq!((found.findings, found.limits), (vec![], vec![limits::PAGES_UNREADABLE.id]));
    // If the page is damaged from the start, it is reported, together with the missing links that result.
    let findings = tree().damaged(&[20]).checked(|_| ()).findings;
    assert!(findings.iter().any(|text| text.starts_with("8928 20")), "{findings:?}");
}
