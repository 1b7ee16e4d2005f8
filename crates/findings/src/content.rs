//! The content of a page that is damaged as a whole: zeros, text, noise, a page of another place. A single such page says
//! little, but many of them show what has happened to the file ([`crate::Pattern`]).
//!
//! A page is classified where it fails its protection or its page ID, so that sound pages cost nothing. The answer depends
//! on the bytes of the page and on its address only.

use format::page::HEADER_BYTES;
use format::protection::verify;
use format::{PAGE_BYTES, Page, PageBytes, PageHeader, PageId};

/// What a damaged page contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Content {
    /// Each byte has this value.
    Same(u8),
    /// Text.
    Text,
    /// Bytes without structure: all values are about equally frequent, as in encrypted or compressed data.
    Noise,
    /// A whole page of another place.
    OtherPlace {
        /// The file in the header of the page.
        file: u16,
        /// The page number in the header of the page minus the page number of this place.
        distance: i64,
        /// Whether the catalog has the allocation unit in the header of the page, or may have it.
        is_known: bool,
    },
    /// A page of this file that begins this number of bytes after the place of that page; before the place if the number
    /// is negative.
    Shifted(i64),
    /// The first bytes are no page header, and the page has none of the contents above.
    NoHeader,
    /// The header belongs to a page of this file, but other bytes have changed.
    Changed,
    /// A whole page with the right page ID, of an allocation unit that the catalog does not have.
    Foreign,
}

/// The highest file ID.
const MOST_FILES: u16 = i16::MAX.cast_unsigned();
/// Number of bytes of each value in a page in which all values are equally frequent.
const EVEN: i64 = (PAGE_BYTES / 256) as i64;
/// The maximum of chi-square of the 256 byte values, for noise. It is 255 on average in random bytes, and deviates by 23;
/// at 1,024, the entropy of the page is 7.91 bits per byte. The space for LOB values on a page of the database may have such
/// an entropy too, but such a page has a header, which is not random.
const MOST_CHI_SQUARE: i64 = 1024;

impl Content {
    /// Classifies the bytes of a page as they are on disk. `None` if the page is the page of this place as it was written.
    /// `is_known` tells whether the catalog has, or may have, the allocation unit in a header.
    pub fn of(bytes: &PageBytes, id: PageId, is_known: impl FnOnce(&PageHeader) -> bool) -> Option<Self> {
        let first = bytes.first().copied().unwrap_or_default();
        if bytes.iter().all(|byte| *byte == first) {
            return Some(Self::Same(first));
        }
        let header = Page::new(bytes).header();
        if is_header(header) {
            let of = header.page_id();
            let is_whole = verify(bytes).is_ok();
            return match of == id {
                true if !is_whole => Some(Self::Changed),
                true => (!is_known(header)).then_some(Self::Foreign),
                false if is_whole => Some(Self::OtherPlace {
                    file: of.file,
                    distance: i64::from(of.page) - i64::from(id.page),
                    is_known: is_known(header),
                }),
                false => Some(Self::Changed),
            };
        }
        let counts = counts(bytes);
        if is_text(bytes, &counts) {
            return Some(Self::Text);
        }
        // A moved page may have values that are as random as noise, so its header is looked for first.
        Some(match shift(bytes, id) {
            Some(shift) => Self::Shifted(shift),
            None if is_even(&counts) => Self::Noise,
            None => Self::NoHeader,
        })
    }

    /// The values of this content as numbers, for [`Self::from_numbers`].
    pub fn numbers(self) -> (u8, u16, i64) {
        match self {
            Self::Same(byte) => (0, byte.into(), 0),
            Self::Text => (1, 0, 0),
            Self::Noise => (2, 0, 0),
            Self::OtherPlace { file, distance, is_known: false } => (3, file, distance),
            Self::OtherPlace { file, distance, is_known: true } => (4, file, distance),
            Self::Shifted(bytes) => (5, 0, bytes),
            Self::NoHeader => (6, 0, 0),
            Self::Changed => (7, 0, 0),
            Self::Foreign => (8, 0, 0),
        }
    }

    /// The inverse of [`Self::numbers`]; `None` for numbers that it does not return.
    pub fn from_numbers((kind, small, large): (u8, u16, i64)) -> Option<Self> {
        Some(match kind {
            0 => Self::Same(u8::try_from(small).ok()?),
            1 => Self::Text,
            2 => Self::Noise,
            3 => Self::OtherPlace { file: small, distance: large, is_known: false },
            4 => Self::OtherPlace { file: small, distance: large, is_known: true },
            5 => Self::Shifted(large),
            6 => Self::NoHeader,
            7 => Self::Changed,
            8 => Self::Foreign,
            _ => return None,
        })
    }
}

/// Whether these bytes can be the header of a page. Of random bytes, one in 4,000 passes the first two tests.
fn is_header(header: &PageHeader) -> bool {
    let room = PAGE_BYTES.checked_sub(2 * usize::from(header.slot_count.get()));
    header.header_version == 1
        && header.kind().is_some()
        && (1..=MOST_FILES).contains(&header.page_id().file)
        && room.is_some_and(|room| (HEADER_BYTES..=room).contains(&header.free_data.get().into()))
}

/// The number of bytes of each value.
fn counts(bytes: &PageBytes) -> [u16; 256] {
    let mut counts = [0; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    counts
}

/// Whether all byte values are about equally frequent.
fn is_even(counts: &[u16; 256]) -> bool {
    let squares: i64 = counts.iter().map(|&count| (i64::from(count) - EVEN).pow(2)).sum();
    squares <= MOST_CHI_SQUARE * EVEN
}

/// Whether the bytes are text in ASCII, UTF-8 or another encoding that contains ASCII, or in UTF-16. Text has no control
/// character, and most of its characters are those of ASCII. A page with long texts in its rows is not text, because the
/// records between the texts have zeros and other control characters, also if the header of the page is overwritten.
fn is_text(bytes: &PageBytes, counts: &[u16; 256]) -> bool {
    let is_space = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C);
    let is_ascii = |byte: u8| is_space(byte) || matches!(byte, b' '..=b'~');
    let of = |is: &dyn Fn(u8) -> bool| -> usize {
        (0..=u8::MAX).zip(counts).filter(|(byte, _)| is(*byte)).map(|(_, count)| usize::from(*count)).sum()
    };
    if of(&|byte| byte < b' ' && !is_space(byte) || byte == 0x7F) == 0 {
        return of(&is_ascii) >= PAGE_BYTES / 4 * 3;
    }
    let mut of_ascii = 0;
    bytes.chunks_exact(2).all(|pair| match *pair {
        [low, 0] => {
            of_ascii += 1;
            is_ascii(low) || low >= 0xA0
        }
        _ => true,
    }) && of_ascii >= PAGE_BYTES / 16 * 7
}

/// The number of bytes by which the page of this file whose header is inside these bytes has moved; `None` if there is no
/// header inside the bytes.
fn shift(bytes: &PageBytes, id: PageId) -> Option<i64> {
    let is_of_file =
        |header: &PageHeader| is_header(header) && header.page_id().file == id.file && header.reserved == [0; 32];
    let windows = bytes.windows(HEADER_BYTES).enumerate().skip(1);
    let headers = windows.filter_map(|(at, window)| Some((at, PageHeader::of(window.first_chunk()?))));
    let (at, header) = headers.into_iter().find(|(_, header)| is_of_file(header))?;
    let pages = i64::from(id.page) - i64::from(header.page_id().page);
    Some(pages * PAGE_BYTES as i64 + at as i64)
}

#[cfg(test)]
mod tests {
    use format::protection::{PROTECTION_WORD, checksum};

    use super::*;

    const ID: PageId = PageId { file: 1, page: 40 };

    /// A page of a table with a checksum, at this address.
    fn page(id: PageId) -> PageBytes {
        let mut bytes = [0; PAGE_BYTES];
        bytes[..2].copy_from_slice(&[1, 1]);
        bytes[5] = 2;
        bytes[22..24].copy_from_slice(&1u16.to_le_bytes());
        bytes[30..32].copy_from_slice(&200u16.to_le_bytes());
        bytes[32..36].copy_from_slice(&id.page.to_le_bytes());
        bytes[36..38].copy_from_slice(&id.file.to_le_bytes());
        for (number, byte) in (0u8..).zip(&mut bytes[HEADER_BYTES..200]) {
            *byte = number;
        }
        bytes[PAGE_BYTES - 2] = 96;
        let sum = checksum(&bytes);
        bytes[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn noise(seed: u64) -> PageBytes {
        let mut state = seed;
        std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
    }

    fn content(bytes: &PageBytes) -> Option<Content> {
        Content::of(bytes, ID, |_| true)
    }

    #[test]
    fn a_page_that_is_as_it_was_written_has_no_content_of_its_own() {
        assert_eq!(content(&page(ID)), None);
        assert_eq!(Content::of(&page(ID), ID, |_| false), Some(Content::Foreign));
    }

    #[test]
    fn pages_of_one_byte_and_of_text_are_told_from_pages_that_begin_so() {
        for byte in [0, 0xFF, b'x', 1] {
            assert_eq!(content(&[byte; PAGE_BYTES]), Some(Content::Same(byte)));
        }
        let mut nearly = [0; PAGE_BYTES];
        nearly[PAGE_BYTES - 1] = 1;
        assert_eq!(content(&nearly), Some(Content::NoHeader));
        let fill = |text: &[u8]| -> PageBytes { std::array::from_fn(|at| text[at % text.len()]) };
        for text in ["2026-11-30 12:00:00 INFO started\r\n", "<a href=\"größe\">ok</a>\n\t"] {
            assert_eq!(content(&fill(text.as_bytes())), Some(Content::Text), "{text}");
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(content(&fill(&wide)), Some(Content::Text), "{text}");
        }
        let mut binary = fill(b"a text with one byte that no text has");
        binary[5000] = 3;
        assert_eq!(content(&binary), Some(Content::NoHeader));
    }

    #[test]
    fn long_texts_in_the_rows_of_a_page_without_its_header_are_not_text() {
        let text: Vec<u8> = "the text of a document ".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut bytes: PageBytes = std::array::from_fn(|at| text[at % text.len()]);
        assert_eq!(content(&bytes), Some(Content::Text));
        // The header of the page and the first record, then the slot array.
        bytes[..HEADER_BYTES].copy_from_slice(&noise(1)[..HEADER_BYTES]);
        bytes[HEADER_BYTES..HEADER_BYTES + 14].copy_from_slice(&[8, 0, 0x90, 0x1F, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0]);
        bytes[PAGE_BYTES - 2..].copy_from_slice(&[0x60, 0]);
        assert_eq!(content(&bytes), Some(Content::NoHeader));
    }

    #[test]
    fn noise_is_random_from_its_first_byte() {
        for seed in 0..200 {
            assert_eq!(content(&noise(seed)), Some(Content::Noise), "{seed}");
        }
        // A page with a header that has compressed or encrypted values is a page.
        let mut of_values = noise(1);
        of_values[..HEADER_BYTES].copy_from_slice(&page(ID)[..HEADER_BYTES]);
        assert_eq!(content(&of_values), Some(Content::Changed));
        // A quarter of the page is not random, or only its first bytes are.
        let mut partly = noise(2);
        partly[2000..4000].fill(0);
        assert_eq!(content(&partly), Some(Content::NoHeader));
        let mut beginning = page(ID);
        beginning[..128].copy_from_slice(&noise(3)[..128]);
        assert_eq!(content(&beginning), Some(Content::NoHeader));
    }

    #[test]
    fn a_page_of_another_place_has_its_distance_if_it_is_whole() {
        let of = |file, page| PageId { file, page };
        let other = |file, distance| Some(Content::OtherPlace { file, distance, is_known: true });
        assert_eq!(content(&page(of(1, 30))), other(1, -10));
        assert_eq!(content(&page(of(3, 40 + (1 << 19)))), other(3, 1 << 19));
        assert_eq!(content(&page(of(1, u32::MAX))), other(1, i64::from(u32::MAX) - 40));
        let unknown = Content::of(&page(of(1, 30)), ID, |_| false);
        assert_eq!(unknown, Some(Content::OtherPlace { file: 1, distance: -10, is_known: false }));
        let mut torn = page(of(1, 30));
        torn[4096..].fill(7);
        assert_eq!(content(&torn), Some(Content::Changed));
    }

    #[test]
    fn a_moved_page_is_found_at_each_byte_where_its_header_is_whole() {
        for shift in [1, 2, 100, 512, 4095, PAGE_BYTES - HEADER_BYTES] {
            let behind = [&page(PageId { file: 1, page: 39 })[PAGE_BYTES - shift..], &page(ID)[..PAGE_BYTES - shift]];
            let bytes: PageBytes = behind.concat().try_into().unwrap();
            assert_eq!(content(&bytes), Some(Content::Shifted(shift as i64)), "{shift}");
            let next = page(PageId { file: 1, page: 41 });
            let before = [&page(ID)[PAGE_BYTES - shift..], &next[..PAGE_BYTES - shift]];
            let bytes: PageBytes = before.concat().try_into().unwrap();
            assert_eq!(content(&bytes), Some(Content::Shifted(shift as i64 - PAGE_BYTES as i64)), "{shift}");
        }
        let mut random = noise(7);
        random[100..100 + HEADER_BYTES].copy_from_slice(&page(ID)[..HEADER_BYTES]);
        assert_eq!(content(&random), Some(Content::Shifted(100)), "a page with random values");
    }

    #[test]
    fn no_bytes_are_too_odd_to_classify() {
        for seed in 0..64 {
            let mut bytes = noise(seed);
            bytes.iter_mut().step_by(1 + seed as usize % 7).for_each(|byte| *byte = 1);
            let _ = content(&bytes);
            let _ = Content::of(&bytes, PageId { file: u16::MAX, page: u32::MAX }, |_| false);
        }
    }

    #[test]
    fn the_numbers_of_a_content_give_it_back() {
        let all = [
            Content::Same(0),
            Content::Same(255),
            Content::Text,
            Content::Noise,
            Content::OtherPlace { file: 9, distance: -7, is_known: false },
            Content::OtherPlace { file: 1, distance: 1 << 33, is_known: true },
            Content::Shifted(-5),
            Content::NoHeader,
            Content::Changed,
            Content::Foreign,
        ];
        for content in all {
            assert_eq!(Content::from_numbers(content.numbers()), Some(content));
        }
        assert_eq!(Content::from_numbers((9, 0, 0)), None);
        assert_eq!(Content::from_numbers((0, 256, 0)), None);
    }
}
