use findings::registry::limits;
use format::types::xtype;

use crate::test_tree::{TestTree, id};

/// Asserts that a run over the tree has exactly the `expected` findings.
#[track_caller]
fn finds(tree: &TestTree, expected: &[&str]) {
    let found = tree.checked(|_| ());
    assert_eq!(found.findings, expected);
}

/// Changes one key of a page.
fn key(tree: TestTree, page: u32, slot: usize, key: u32) -> TestTree {
    tree.with(page, |page| page.entries[slot].0 = key)
}

fn trees() -> [TestTree; 2] {
    [TestTree::clustered(), TestTree::nonclustered()]
}

/// Returns trees whose keys have another type of four bytes. The keys in the tests have the same order in this type as
/// they have as integers: positive reals are ordered like their bits, and texts made from numbers below 256 are ordered
/// by their first byte.
fn trees_of(key_type: u8) -> [TestTree; 2] {
    trees().map(|tree| TestTree { key_type, ..tree })
}

/// Reals have key images; texts with a binary collation have none.
const OTHER_TYPES: [u8; 2] = [xtype::REAL, xtype::CHAR];

#[test]
fn legal_a_first_key_equal_to_the_parents_key() {
    for tree in trees() {
        assert_eq!(tree.pages[&20].entries[0].0, tree.pages[&17].entries[1].0);
        finds(&tree, &[]);
    }
}

#[test]
fn a_first_key_below_the_parents_key_is_8933() {
    for tree in trees() {
        finds(&key(tree, 20, 0, 19), &["8933 20 < 17.1, level 0"]);
    }
}

#[test]
fn a_last_key_equal_to_the_parents_key_of_the_next_page_is_8934() {
    for tree in trees() {
        let tree = key(tree, 19, 1, 19);
        finds(&tree, &[]);
        finds(&key(tree, 19, 1, 20), &["8934 19 < 17.1, level 0, other_page 20"]);
    }
}

#[test]
fn a_last_key_beyond_the_parents_key_of_the_next_page_is_8934() {
    for tree in trees() {
        finds(&key(tree, 19, 1, i32::MAX as u32), &["8934 19 < 17.1, level 0, other_page 20"]);
    }
}

#[test]
fn keys_are_bound_whether_there_are_images_of_them_or_not() {
    let trees = || OTHER_TYPES.into_iter().flat_map(trees_of);
    trees().for_each(|tree| finds(&tree, &[]));
    trees().for_each(|tree| finds(&key(tree, 20, 0, 21), &[]));
    trees().for_each(|tree| finds(&key(tree, 20, 0, 19), &["8933 20 < 17.1, level 0"]));
    trees().for_each(|tree| finds(&key(tree, 19, 1, 20), &["8934 19 < 17.1, level 0, other_page 20"]));
    trees().for_each(|tree| finds(&key(tree, 19, 1, 21), &["8934 19 < 17.1, level 0, other_page 20"]));
}

#[test]
fn legal_a_first_entry_with_any_key_and_a_first_leaf_below_it() {
    // The first entry of a non-leaf level means "less than all keys", whatever key the entry contains.
    for tree in trees() {
        let tree = key(key(key(tree, 16, 0, i32::MAX as u32), 17, 0, 77), 18, 0, u32::MAX);
        finds(&key(tree, 19, 0, i32::MIN as u32), &[]);
    }
}

#[test]
fn keys_of_a_level_between_are_bound_by_the_root_and_bind_the_leaves() {
    for tree in trees() {
        let of_node = "8934 17 < 16.1, level 1, other_page 18";
        finds(&key(tree, 17, 1, 30), &[of_node, "8933 20 < 17.1, level 0"]);
    }
    for tree in trees() {
        let of_leaf = "8934 21 < 18.1, level 0, other_page 22";
        finds(&key(tree, 18, 1, 29), &["8933 18 < 16.1, level 1", of_leaf]);
    }
}

#[test]
fn keys_out_of_order_on_a_page_are_2511_and_equal_ones_2512() {
    for tree in trees() {
        finds(&key(tree, 22, 1, 40), &["2512 22.0 < 22.1"]);
    }
    // Read as an int, this key is -1.
    for tree in trees() {
        finds(&key(tree, 22, 1, u32::MAX), &["2511 22.0 < 22.1"]);
    }
}

#[test]
fn a_child_of_another_table_is_not_bound_by_the_parents_keys() {
    for tree in trees() {
        let tree = tree.with(17, |node| node.entries[1] = (1000, id(25)));
        let found = tree.checked(|_| ()).findings;
        assert!(found.iter().all(|text| !text.starts_with("8933 25") && !text.starts_with("8934 25")), "{found:?}");
        assert!(found.contains(&"8934 17 < 16.1, level 1, other_page 18".to_owned()), "{found:?}");
    }
}

#[test]
fn a_parent_that_is_its_own_child_is_bound_by_its_own_keys_and_ends() {
    let tree = TestTree::clustered().with(17, |node| node.entries[0].1 = id(17));
    let found = tree.checked(|_| ()).findings;
    assert!(found.contains(&"8934 17 < 17.1, level 1, other_page 20".to_owned()), "{found:?}");
}

#[test]
fn a_page_that_was_sound_and_is_bad_when_its_keys_are_read_again_is_not_verified() {
    let unverified = |tree: TestTree, page| {
        let found = tree.rotting(page).checked(|_| ());
        assert_eq!((found.findings, found.limits), (vec![], vec![limits::PAGES_UNREADABLE.id]), "page {page}");
    };
    for tree in trees() {
        unverified(tree, 17);
    }
    // Text keys have no images, so the leaf must be read again for its keys.
    for tree in trees_of(xtype::CHAR) {
        unverified(tree, 19);
    }
}
