use super::*;
use crate::test_tree::{TestTree, id};

/// The sums of a tree whose root is its only leaf.
fn one_leaf(context: &Context<'_>) -> TreeSums {
    let mut tree = TreeSums::default();
    let leaf = tree.level(TreeLevel::Data(0));
    leaf.pages = 1;
    leaf.selves.add(context.hash.page(id(16)));
    tree
}

/// Whether `make` returns the sums of a sound clustered tree that has this root according to the catalog.
fn sound(root: PageId, bad_pages: u64, make: impl Fn(&Context<'_>) -> TreeSums) -> bool {
    let mut sound = None;
    let tree = TestTree::clustered().root(root);
    tree.surveyed(|context, _| sound = Some(is_sound(context, 0, &make(context), bad_pages)));
    sound.unwrap()
}

#[test]
fn an_index_without_pages_has_no_root_and_has_lost_none() {
    let nothing = |_: &Context<'_>| TreeSums::default();
    assert!(sound(PageId::NONE, 0, nothing));
    assert!(!sound(PageId::NONE, 1, nothing), "its pages are all damaged");
    assert!(!sound(id(16), 0, nothing), "its root is not there");
}

#[test]
fn the_root_is_one_page_at_the_place_that_the_catalog_names_and_has_no_neighbors() {
    assert!(sound(id(16), 0, one_leaf));
    assert!(!sound(id(17), 0, one_leaf));
    assert!(!sound(PageId::NONE, 0, one_leaf));
    for neighbor in [id(16), PageId { file: u16::MAX, page: u32::MAX }] {
        let linked = |is_next: bool| {
            move |context: &Context<'_>| {
                let mut tree = one_leaf(context);
                let leaf = tree.level(TreeLevel::Data(0));
                let side = if is_next { &mut leaf.next } else { &mut leaf.prev };
                side.add(context.hash.link(id(16), neighbor));
                tree
            }
        };
        assert!(!sound(id(16), 0, linked(true)) && !sound(id(16), 0, linked(false)));
    }
}

#[test]
fn two_pages_of_which_one_cancels_the_root_are_not_one() {
    let two = |context: &Context<'_>| {
        let mut tree = one_leaf(context);
        tree.level(TreeLevel::Data(0)).pages += 1;
        tree
    };
    assert!(!sound(id(16), 0, two));
}

#[test]
fn data_pages_are_of_level_0_and_a_level_above_data_has_data_below_it() {
    let moved = |level| {
        move |context: &Context<'_>| {
            let mut tree = TreeSums::default();
            *tree.level(level) = one_leaf(context).get(TreeLevel::Data(0));
            tree
        }
    };
    assert!(sound(id(16), 0, moved(TreeLevel::Data(0))));
    for level in [TreeLevel::Data(1), TreeLevel::Data(255), TreeLevel::Index(0), TreeLevel::Index(255)] {
        assert!(!sound(id(16), 0, moved(level)), "{level:?}");
    }
}

#[test]
fn levels_up_to_255_are_compared_without_gaps() {
    // A tree with one page per level. Each page is the only child of the page on the level above. `gap` is the number
    // of a level that is left out.
    let tower = |gap: Option<u8>| {
        move |context: &Context<'_>| {
            let mut tree = one_leaf(context);
            let hash = context.hash;
            tree.level(TreeLevel::Data(0)).selves = hash.page(id(1000));
            for number in (1..=u8::MAX).filter(|number| Some(*number) != gap) {
                let page = |number: u8| if number == u8::MAX { id(16) } else { id(1000 + u32::from(number)) };
                let level = tree.level(TreeLevel::Index(number));
                level.pages = 1;
                level.selves = hash.page(page(number));
                let below = if Some(number - 1) == gap { number - 2 } else { number - 1 };
                level.children = hash.page(page(below));
            }
            tree
        }
    };
    assert!(sound(id(16), 0, tower(None)));
    assert!(!sound(id(16), 0, tower(Some(100))), "a level is left out");
}

#[test]
fn an_only_child_is_the_page_of_the_level_below() {
    // If a level has only one page, this page has no neighbors, so its links cannot show a fault. The check must
    // therefore verify that the entries of the parent point to this page, and that they do so exactly once.
    let over_leaf = |children: &'static [u32]| {
        move |context: &Context<'_>| {
            let mut tree = TreeSums::default();
            *tree.level(TreeLevel::Index(1)) = one_leaf(context).get(TreeLevel::Data(0));
            let node = tree.level(TreeLevel::Index(1));
            children.iter().for_each(|child| node.children.add(context.hash.page(id(*child))));
            let leaf = tree.level(TreeLevel::Data(0));
            leaf.pages = 1;
            leaf.selves = context.hash.page(id(19));
            tree
        }
    };
    assert!(sound(id(16), 0, over_leaf(&[19])));
    for children in [&[][..], &[20], &[16], &[u32::MAX], &[19, 19]] {
        assert!(!sound(id(16), 0, over_leaf(children)), "{children:?}");
    }
}
