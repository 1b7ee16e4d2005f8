//! The page, parsed into its fields.

use std::ops::Range;

use format::fields::Structure;
use format::instances::{FieldInstance, RecordSpace, instances_of, record_spaces};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageType};

/// The page and its fields. The bits that torn-page protection replaced are restored.
pub(super) struct Parsed {
    pub(super) page: PageBytes,
    pub(super) fields: Vec<FieldInstance>,
    pub(super) spaces: Vec<RecordSpace>,
}

impl Parsed {
    /// Parses a page. `leaf` tells whether the page is a leaf of an index. If this is unknown, a page of level 0 counts
    /// as a leaf.
    pub(super) fn new(bytes: &PageBytes, leaf: Option<bool>) -> Self {
        let mut page = *bytes;
        undo_torn_bits(&mut page);
        let header = Page::new(&page).header();
        if header.is_encrypted() {
            // The bytes after the header are ciphertext, so slots and records are unknown.
            let mut fields = instances_of(&page, true);
            fields.retain(|found| found.field.structure == Structure::PageHeader);
            return Self { fields, spaces: Vec::new(), page };
        }
        let leaf = leaf.unwrap_or(header.level == 0);
        Self { fields: instances_of(&page, leaf), spaces: record_spaces(Page::new(&page)), page }
    }

    pub(super) fn view(&self) -> Page<'_> {
        Page::new(&self.page)
    }

    pub(super) fn kind(&self) -> Option<PageType> {
        self.view().header().kind()
    }

    pub(super) fn fields_of(&self, structure: Structure) -> impl Iterator<Item = &FieldInstance> {
        self.fields.iter().filter(move |found| found.field.structure == structure)
    }

    pub(super) fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.page.get(range.clone()).unwrap_or_default()
    }
}
