//! Compares the free space of a page with its PFS byte (message 8914). PFS records free space only for heaps and
//! off-row data (docs/format/allocation.md#pfs).

use findings::{Finding, registry};
use format::allocation::{PfsByte, pfs_page_of};
use format::page::HEADER_BYTES;
use format::{PAGE_BYTES, Page, PageId, PageType};

use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Shape, Unit, UnitIndex};
use crate::survey::Allocation;
use crate::sweep::context::Context;
use crate::sweep::page_check::{PageCheck, SoundPage};

/// Number of bytes after the page header.
const CAPACITY: u32 = (PAGE_BYTES - HEADER_BYTES) as u32;

/// Two numbers of used bytes for each PFS class above "empty". The first is the most bytes used on any page that was
/// seen in the class. The second is one less than the fewest bytes used on any page that was seen in the next class.
/// The nominal limits are 50, 80 and 95 percent; the class of a page within a few bytes of a limit is unknown.
const CLASSES: [(u32, u32); 4] = [(4040, 4053), (6472, 6477), (7681, 7699), (CAPACITY, CAPACITY)];

/// The check that compares sound pages with their PFS bytes.
#[derive(Default)]
pub(crate) struct FreeSpace;

impl PageCheck for FreeSpace {
    type Sums = ();
    type Scratch = ();

    fn sums(&self, _units: usize) {}

    fn wants(&self, context: &Context<'_>, unit: &Unit) -> bool {
        !context.options.physical_only && (unit.shape == Shape::Heap && !unit.compressed || unit.shape == Shape::Text)
    }

    fn meaning(&self, _: &mut Meaning<'_>) {}

    fn page(&self, context: &Context<'_>, sound: &SoundPage<'_>, _: (&mut (), &mut ()), findings: &mut Vec<Finding>) {
        if sound.content.records_are_audited {
            page(context, sound.unit, sound.page, findings);
        }
    }

    fn settle(&self, _: &Context<'_>, _: &[UnitIndex], _: &mut Tallies, (): &mut (), _: &mut Results<'_>) {}
}

fn page(context: &Context<'_>, unit: &Unit, page: Page<'_>, findings: &mut Vec<Finding>) {
    let header = page.header();
    let (lowest, highest) = match (unit.shape, header.kind()) {
        (Shape::Heap, Some(PageType::Data)) | (Shape::Text, Some(PageType::TextMix)) => {
            let (free, slots) = (header.free_count.get(), header.slot_count.get());
            // Bytes that a transaction has reserved are free only for this transaction. The header counts them as
            // reserved even after the transaction has ended.
            let (lowest, highest) = classes(free, slots);
            (lowest, highest.max(classes(free.saturating_sub(header.reserved_count.get()), slots).1))
        }
        (Shape::Text, Some(PageType::TextTree)) => (4, 4),
        _ => return,
    };
    let Allocation::Used(byte) = context.survey.allocation(header.page_id()) else { return };
    let actual = byte.0 & 7;
    if actual > 4 || (lowest..=highest).contains(&actual) {
        return;
    }
    let page = header.page_id();
    let pfs_page = PageId::new(page.file, pfs_page_of(page.page));
    let finding = Finding::new(&registry::PFS_FREE_SPACE).owner(unit.owner).page(page).ref_page(pfs_page);
    findings.push(finding.text_value("expected", text(lowest)).text_value("actual", text(actual)));
}

/// The lowest and highest class that a page with this much free space may have. A page whose slots are all empty uses
/// only its slot array; pages like this were seen in the class "empty".
fn classes(free: u16, slots: u16) -> (u8, u8) {
    let used = CAPACITY.saturating_sub(free.into());
    if used == 0 {
        return (0, 0);
    }
    let class = |limit: fn(&(u32, u32)) -> u32| {
        CLASSES.iter().position(|limits| used <= limit(limits)).map_or(4, |position| position as u8 + 1)
    };
    let lowest = if used <= 2 * u32::from(slots) { 0 } else { class(|limits| limits.1) };
    (lowest, class(|limits| limits.0))
}

/// A class as message 8914 prints it: padded to twelve characters.
fn text(class: u8) -> String {
    format!("{:>12}", format!("{}_PCT_FULL", PfsByte(class).percent_full()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_pages_as_met() {
        // The smallest and largest number of bytes in use seen for each class in real files.
        for (class, low, high) in [(1, 17, 4040), (2, 4054, 6472), (3, 6478, 7681), (4, 7700, 8096)] {
            for used in [low, high] {
                assert_eq!(classes(8096 - used, 1), (class, class), "{used}");
            }
        }
        assert_eq!(classes(8096, 0), (0, 0));
        assert_eq!(classes(8004, 46), (0, 1), "empty slots only");
        assert_eq!(classes(8096 - 4050, 1), (1, 2), "unknown");
        assert_eq!(text(0), "  0_PCT_FULL");
        assert_eq!(text(4), "100_PCT_FULL");
    }
}
