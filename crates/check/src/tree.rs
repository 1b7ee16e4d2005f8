//! B-trees: order of keys, links between pages, key bounds. The links are terms of sums as the sweep passes each page; where
//! they differ a second look at the tree names the place.

mod bounds;
mod links;
mod page;
mod pinpoint;
mod pinpoint_facts;
mod sums;

pub(crate) use bounds::{check as check_bounds, note_lost as note_lost_bounds};
pub(crate) use links::{chains_agree, is_sound, join_neighbours};
pub(crate) use page::{child, level_of, page};
pub(crate) use pinpoint::tree as pinpoint;
pub(crate) use sums::{LevelSums, NodePage, PageBounds, TreeLevel, TreeSums};
