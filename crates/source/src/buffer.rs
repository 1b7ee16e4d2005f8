//! Buffers into which the operating system can read without an intermediate copy.

use format::page::PAGE_BYTES;

/// The greatest alignment in bytes that a direct read needs.
const ALIGNMENT: usize = 4096;

/// A buffer for pages, aligned for direct reads.
#[derive(Debug, Default)]
pub struct PageBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl PageBuffer {
    /// A zeroed buffer for `pages` pages.
    pub fn new(pages: u32) -> Self {
        let length = pages as usize * PAGE_BYTES;
        let bytes = vec![0; length + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { bytes, start, length }
    }

    /// The bytes of the pages.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..self.start + self.length).unwrap_or_default()
    }
}

/// Whether `buffer` is aligned for a direct read.
pub(crate) fn is_aligned(buffer: &[u8]) -> bool {
    buffer.as_ptr().align_offset(ALIGNMENT) == 0 && buffer.len().is_multiple_of(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_holds_its_pages() {
        for pages in [1, 7, 128] {
            let mut buffer = PageBuffer::new(pages);
            assert_eq!(buffer.bytes().len(), pages as usize * PAGE_BYTES);
            assert!(is_aligned(buffer.bytes()));
        }
    }
}
