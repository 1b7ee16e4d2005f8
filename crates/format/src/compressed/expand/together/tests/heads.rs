//! Tests with heads of all kinds: with many columns, in many forms, and at the end of a page.

use super::*;

/// Pseudo-random numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Draws a value that is mostly valid for this column type.
    fn value(&mut self, kind: u8) -> Stored {
        let most = match kind {
            xtype::BIT => return (self.below(2) as u8 * 11, Vec::new()),
            xtype::TINYINT => 1,
            xtype::SMALLINT => 2,
            xtype::INT => 4,
            _ => 12,
        };
        match self.below(4) {
            0 => (0, Vec::new()),
            1 => (1, Vec::new()),
            _ => {
                let bytes: Vec<u8> = (0..1 + self.below(most)).map(|_| self.below(256) as u8).collect();
                (half_byte_of(&bytes), bytes)
            }
        }
    }
}

/// The expansion of a rowset with columns of these types.
fn rowset(kinds: &[u8]) -> Expansion {
    Expansion::new(&kinds.iter().map(|kind| column(*kind, false)).collect::<Vec<_>>()).unwrap()
}

/// A page with these records, one after another from `start` on, and the place of each record.
fn page_of(records: &[Vec<u8>], start: usize) -> (Box<PageBytes>, Vec<Range<usize>>) {
    let mut page = Box::new([0x5A; PAGE_BYTES]);
    let mut at = start;
    let spaces = records.iter().map(|record| {
        let space = at..at + record.len();
        page[space.clone()].copy_from_slice(record);
        at = space.end;
        space
    });
    let spaces = spaces.collect();
    (page, spaces)
}

/// Asserts that these records give the same rows if they are expanded together as if they are expanded one by one. If
/// one of the records cannot be expanded alone, they must not be expanded together either.
fn assert_the_same(
    together: &mut ExpandedPage,
    page: &PageBytes,
    spaces: &[Range<usize>],
    expansion: &Expansion,
) -> bool {
    let mut scratch = Scratch::default();
    let of_row = |space| {
        let (image, kind, length, _) = one_by_one(page, space, expansion, None, &mut scratch)?;
        Some((image, kind, length))
    };
    let expected: Option<Vec<_>> = spaces.iter().map(of_row).collect();
    let found = images(together, page, spaces, &expansion.of_page(None));
    assert!(found == expected, "{spaces:?}: {found:02X?}, {expected:02X?}");
    found.is_some()
}

#[test]
fn rows_whose_number_of_columns_takes_two_bytes_are_those_expanded_one_by_one() {
    let kinds = [xtype::INT, xtype::BIT, xtype::VARCHAR, xtype::TINYINT, xtype::SMALLINT, xtype::INT, xtype::INT];
    let mut draw = Draw(1);
    let mut together = ExpandedPage::default();
    for columns in [127, 128, 129, 130, 256, 300] {
        let kinds: Vec<u8> = kinds.iter().copied().cycle().take(columns).collect();
        let expansion = rowset(&kinds);
        let records: Vec<Vec<u8>> = (0..12)
            .map(|row| {
                let values: Vec<Stored> = kinds.iter().map(|kind| draw.value(*kind)).collect();
                record(if row % 5 == 4 { 0x03 } else { 0x01 }, &values)
            })
            .collect();
        let (mut page, spaces) = page_of(&records, HEADER_BYTES);
        assert!(assert_the_same(&mut together, &page, &spaces, &expansion), "{columns} columns");
        // Change each byte of the first record, one at a time.
        let space = spaces[0].clone();
        for at in space.clone() {
            let byte = page[at];
            for changed in [byte ^ 1, byte ^ 0x10, byte ^ 0x80, 0, 0xFF] {
                page[at] = changed;
                assert_the_same(&mut together, &page, std::slice::from_ref(&space), &expansion);
            }
            page[at] = byte;
        }
        // The first record now has a column count that differs from the rowset's, so the records must not be expanded
        // together.
        page[space.start + 1] ^= 1;
        assert!(!assert_the_same(&mut together, &page, &spaces, &expansion), "{columns} columns, another count");
    }
}

#[test]
fn rows_of_hundreds_of_heads_are_those_expanded_one_by_one() {
    let kinds: Vec<u8> =
        [xtype::TINYINT, xtype::BIT, xtype::SMALLINT, xtype::BIT].into_iter().cycle().take(100).collect();
    let expansion = rowset(&kinds);
    let mut draw = Draw(2);
    let mut together = ExpandedPage::default();
    let mut heads = std::collections::BTreeSet::new();
    let mut pages = Vec::new();
    for _ in 0..8 {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < 7_900 {
            let values: Vec<Stored> = kinds.iter().map(|kind| draw.value(*kind)).collect();
            records.push(record(0x01, &values));
            bytes += records.last().map_or(0, Vec::len);
        }
        records.pop();
        heads.extend(records.iter().map(|record| record[..55].to_vec()));
        pages.push(page_of(&records, HEADER_BYTES));
    }
    assert!(heads.len() * kinds.len() > 10 * layouts::MOST_PLACES, "{} heads", heads.len());
    // Repeat on pages seen before, with the records in reverse order, and with a damaged record.
    for round in 0..3 {
        for (page, spaces) in &mut pages {
            assert!(assert_the_same(&mut together, page, spaces, &expansion), "round {round}");
            let last = spaces.last().unwrap().start;
            let byte = page[last + 2];
            page[last + 2] = byte & 0xF0 | 0x0D;
            assert!(!assert_the_same(&mut together, page, spaces, &expansion), "round {round}");
            page[last + 2] = byte;
            spaces.reverse();
        }
    }
}

#[test]
fn a_record_at_the_very_end_of_a_page_is_that_expanded_by_itself() {
    let expansion = rowset(&[xtype::INT, xtype::VARCHAR, xtype::DECIMAL, xtype::SMALLINT]);
    let mut together = ExpandedPage::default();
    let of = |bytes: &[u8]| (half_byte_of(bytes), bytes.to_vec());
    let empty = || (1, Vec::new());
    let null = || (0, Vec::new());
    let rows = [
        vec![empty()],
        vec![of(&[0x85])],
        vec![null(), of(b"a")],
        vec![empty(), empty(), null()],
        vec![of(&[0x85]), of(b"x"), empty()],
        vec![of(&[0x80, 0x85]), of(b"seven b"), of(&[0xC0, 0x19]), of(&[0x7F])],
        vec![null(), of(b"more than eight"), null(), empty()],
        vec![null(), of(&[b'y'; 40]), of(&[0xC0, 0x19]), null()],
    ];
    let mut last_bytes = 0;
    for values in &rows {
        for status in [0x01, 0x03, 0x0D] {
            let record = record(status, values);
            last_bytes += usize::from(record.len() < 8);
            let (mut page, spaces) = page_of(std::slice::from_ref(&record), PAGE_BYTES - record.len());
            assert!(assert_the_same(&mut together, &page, &spaces, &expansion), "{record:02X?}");
            // A record with this head was already seen at another place.
            page[HEADER_BYTES..HEADER_BYTES + record.len()].copy_from_slice(&record);
            let both = [HEADER_BYTES..HEADER_BYTES + record.len(), spaces[0].clone()];
            assert!(assert_the_same(&mut together, &page, &both, &expansion), "{record:02X?}");
            // The page ends before the record is complete.
            for cut in 1..record.len() {
                let start = PAGE_BYTES - record.len() + cut;
                let (page, spaces) = page_of(&[record[..record.len() - cut].to_vec()], start);
                assert_the_same(&mut together, &page, &spaces, &expansion);
            }
        }
    }
    assert!(last_bytes > 5, "{last_bytes} records in the last seven bytes");
}
