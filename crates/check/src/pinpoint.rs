//! Pinpoint: a second look at one unit whose sums differ, to name page, slot and message.

mod forwarding;
mod tree;

use format::{Page, PageBytes, PageId};

use crate::context::Context;
use crate::sweep::{Target, Verdict};
use crate::units::UnitIndex;

pub(crate) use forwarding::forwarding;
pub(crate) use tree::tree;

/// Calls `visit` with each sound page of `unit`, in page order.
fn for_each_page(context: &Context<'_>, unit: UnitIndex, mut visit: impl FnMut(PageId, Page<'_>, &Target)) {
    let mut target = Target::default();
    for file in &context.survey.files {
        for page in 0..file.pages {
            if file.owner(page) != Some(unit) {
                continue;
            }
            let id = PageId::new(file.file_id, page);
            let Some(mut bytes): Option<Box<PageBytes>> = context.source.read_page(id) else { continue };
            if let Verdict::Sound(found, _) = target.look(context, id, &mut bytes)
                && found == unit
            {
                visit(id, Page::new(&bytes), &target);
            }
        }
    }
}
