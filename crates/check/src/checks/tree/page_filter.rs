//! A filter for sets of pages: 64 bits which show that a set has no page in some range of pages. The bits of a set depend
//! on its pages alone, not on the sizes of the files, so they stay right when a file grows.
//!
//! The number of a page, without its lowest bits, is divided into digits of four bits. For each digit, the filter has one
//! bit for each value. A page can be in a range only if each of its digits is a digit of some page of the range. So a set
//! of neighboring pages, such as the children of a page usually are, has few bits, and has a digit in common with few
//! ranges, whether these are short or long.

use format::PageId;

/// The pages of a stretch, 32 MB, have the same digits: 2 to the power of this.
const STRETCH_BITS: u32 = 12;
/// Bits of a digit.
const DIGIT_BITS: u32 = 4;
/// Number of values of a digit, and of bits that the filter has for a digit.
const VALUES: u32 = 1 << DIGIT_BITS;
/// Number of digits.
const DIGITS: u32 = u64::BITS / VALUES;

/// A filter for a set of pages.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PageFilter(pub(super) u64);

impl PageFilter {
    /// The filter for all pages.
    pub(super) const ALL: Self = Self(u64::MAX);

    /// The filter for the pages from `first` to `last` of a file.
    pub(super) fn of_range(file: u16, first: u32, last: u32) -> Self {
        let bits = (0..DIGITS).map(|digit| {
            let shift = STRETCH_BITS + digit * DIGIT_BITS;
            // The highest digit includes the number of the file. Without it, pages of different files that have the same
            // number would have the same digits.
            let file = if digit + 1 == DIGITS { u32::from(file) } else { 0 };
            let values = (first >> shift..=last >> shift).take(VALUES as usize);
            values.fold(0, |bits, value| bits | 1 << (digit * VALUES + (value ^ file) % VALUES))
        });
        Self(bits.fold(0, |all, bits: u64| all | bits))
    }

    /// Adds a page to the set.
    pub(super) fn add(&mut self, page: PageId) {
        self.merge(Self::of_range(page.file, page.page, page.page));
    }

    /// Adds the pages of another set.
    pub(super) fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the sets may have a page in common.
    pub(super) fn meets(self, other: Self) -> bool {
        let common = self.0 & other.0;
        let of_digit = |digit| common >> (digit * VALUES) & u64::from(u16::MAX);
        (0..DIGITS).all(|digit| of_digit(digit) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn numbers() -> impl FnMut(u32) -> u32 {
        let mut state = 7u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % u64::from(below)) as u32
        }
    }

    #[test]
    fn a_set_meets_each_range_that_has_one_of_its_pages() {
        let mut random = numbers();
        for _ in 0..20_000 {
            let (file, page) = (random(40) as u16, random(u32::MAX));
            let [before, after] = [(); 2].map(|()| {
                let bits = random(31);
                random(1 << bits)
            });
            let range = PageFilter::of_range(file, page.saturating_sub(before), page.saturating_add(after));
            let mut set = PageFilter::default();
            (0..random(4)).for_each(|_| set.add(PageId::new(random(3) as u16, random(1 << 20))));
            set.add(PageId::new(file, page));
            assert!(set.meets(range), "{file}:{page} -{before} +{after}");
        }
        assert!(!PageFilter::default().meets(PageFilter::ALL), "no page");
    }

    #[test]
    fn neighboring_pages_meet_few_ranges_of_any_length_in_a_file_of_any_size() {
        let mut random = numbers();
        for pages in [1 << 18, 1 << 22, 1 << 28u32] {
            for ranges in [8, 64, 512] {
                let length = pages / ranges;
                let filter = |range: u32| PageFilter::of_range(1, range * length, (range + 1) * length - 1);
                let filters: Vec<PageFilter> = (0..ranges).map(filter).collect();
                let met: usize = (0..200)
                    .map(|_| {
                        let (first, mut set) = (random(pages - 400), PageFilter::default());
                        (first..first + 400).for_each(|page| set.add(PageId::new(1, page)));
                        filters.iter().filter(|filter| set.meets(**filter)).count()
                    })
                    .sum();
                // A stretch of 4,096 pages may extend to several short ranges.
                let of_stretch = (2 << STRETCH_BITS) / length + 1;
                assert!(met as u32 <= 200 * (of_stretch + 2), "{pages} pages in {ranges} ranges: {met} of 200");
            }
        }
    }

    #[test]
    fn pages_with_the_same_number_in_different_files_do_not_meet() {
        let of = |file| PageFilter::of_range(file, 1000, 90_000);
        assert!(!of(1).meets(of(3)));
        assert!(of(3).meets(of(3)));
    }
}
