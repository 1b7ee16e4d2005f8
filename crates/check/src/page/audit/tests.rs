use format::Page;
use format::page::page_flags;
use format::{PageBytes, PageId, PageType};

use super::*;
use crate::basis::units::{Shape, Unit};
use crate::page::expanded::ExpandedRows;
use crate::test_pages::{PAGE, TestPage, ids, row, row_of_kind, unit};

type Change = fn(&mut PageBytes);

const FORWARDED: u8 = 1;
const STUB: u8 = 2;
const GHOST: u8 = 6;

const KNOWN: AuditRules<'_> =
    AuditRules { rows_hold_versions: false, rows_may_hold_versions: false, expansion: None, row_by_row: false };

/// Audits a page. Asserts that the result is the same whether all rows are checked together or one by one.
fn audit(bytes: &PageBytes, unit: &Unit, known: AuditRules<'_>) -> (Option<PageContent>, Vec<Finding>) {
    let [together, one_by_one] = [false, true].map(|row_by_row| {
        let mut findings = Vec::new();
        let known = AuditRules { row_by_row, ..known };
        (
            Audit::default().page(Page::new(bytes), PAGE, unit, known, &mut ExpandedRows::default(), &mut findings),
            findings,
        )
    });
    assert_eq!(together.0, one_by_one.0);
    assert_eq!(ids(&together.1), ids(&one_by_one.1));
    together
}

/// Asserts that the page fails its audit with exactly this check.
fn refused(bytes: &PageBytes, shape: Shape, check: &registry::Check) {
    let (content, findings) = audit(bytes, &unit(shape), KNOWN);
    assert_eq!((content, ids(&findings)), (None, vec![check.id]));
    assert_eq!(findings[0].page, Some(PAGE));
}

fn three_rows() -> TestPage {
    TestPage::new(PageType::Data).record(&row(1, b"one")).record(&row(2, b"two")).record(&row(3, b"three"))
}

#[test]
fn records_of_a_heap_are_counted_by_kind() {
    let stub = [STUB << 1, 201, 0, 0, 0, 1, 0, 5, 0];
    let page = three_rows()
        .record(&row_of_kind(FORWARDED, 4, b"moved here"))
        .record(&stub)
        .record(&row_of_kind(GHOST, 5, b"deleted"))
        .slot(0)
        .finish();
    let (content, findings) = audit(&page, &unit(Shape::Heap), KNOWN);
    assert_eq!(ids(&findings), [""; 0]);
    let content = content.unwrap();
    assert_eq!((content.rows, content.forwarded, content.stubs, content.ghosts), (4, 1, 1, 1));
    assert!(content.records_are_audited && content.lengths_are_known && content.ghosts_are_known);
}

#[test]
fn spans_name_the_place_of_each_record_by_slot() {
    let (first, second) = (row(1, b"first"), row(2, b"second, longer"));
    let page = TestPage::new(PageType::Data).record(&first).slot(0).record(&second).finish();
    let mut audit = Audit::default();
    audit
        .page(Page::new(&page), PAGE, &unit(Shape::Heap), KNOWN, &mut ExpandedRows::default(), &mut Vec::new())
        .unwrap();
    let bytes: Vec<&[u8]> = audit.spans().iter().map(|span| span.of(Page::new(&page))).collect();
    assert_eq!(bytes, [&first[..], &[], &second]);
}

#[test]
fn a_header_of_another_version_or_type_is_refused() {
    refused(&three_rows().finish_with(|page| page[0] = 2), Shape::Heap, &registry::PAGE_HEADER);
    refused(&three_rows().finish_with(|page| page[1] = 0x67), Shape::Heap, &registry::PAGE_HEADER);
    // The number 0x66 is a page type of the engine, but no allocation unit contains pages of this type.
    refused(&three_rows().finish_with(|page| page[1] = 0x66), Shape::Heap, &registry::PAGE_TYPE);
}

#[test]
fn a_page_type_that_the_unit_cannot_have_is_refused() {
    refused(&three_rows().finish(), Shape::Nonclustered, &registry::PAGE_TYPE);
    refused(&three_rows().finish(), Shape::Text, &registry::PAGE_TYPE);
    assert!(audit(&three_rows().finish(), &unit(Shape::Clustered), KNOWN).0.is_some());
}

#[test]
fn a_data_page_above_the_leaves_is_refused() {
    refused(&three_rows().level(1).finish(), Shape::Clustered, &registry::PAGE_HEADER);
}

#[test]
fn free_data_lies_between_header_and_slot_array() {
    for wrong in [95, 8192 - 5] {
        let page = three_rows().finish_with(|page| page[30..32].copy_from_slice(&u16::to_le_bytes(wrong)));
        refused(&page, Shape::Heap, &registry::PAGE_HEADER);
    }
}

#[test]
fn an_empty_slot_is_legal_in_a_heap_and_nowhere_else() {
    let page = three_rows().slot(0).finish();
    assert!(audit(&page, &unit(Shape::Heap), KNOWN).0.is_some());
    refused(&page, Shape::Clustered, &registry::SLOT_BEFORE_RECORDS);
}

#[test]
fn a_slot_points_to_a_record_of_its_own() {
    refused(&three_rows().slot(95).finish(), Shape::Heap, &registry::SLOT_BEFORE_RECORDS);
    refused(&three_rows().slot(96).finish(), Shape::Heap, &registry::SLOT_OVERLAP);
    refused(&three_rows().slot(7000).finish(), Shape::Heap, &registry::SLOT_BEYOND_FREE_DATA);
}

#[test]
fn a_record_that_ends_too_late_runs_into_the_next_one_or_into_free_space() {
    let end_of = |slot: usize| 96 + slot * row(1, b"abc").len() + 13;
    let page = || (1..=3).fold(TestPage::new(PageType::Data), |page, key| page.record(&row(key, b"abc")));
    let into_next = page().finish_with(|page| page[end_of(1)] += 2);
    refused(&into_next, Shape::Heap, &registry::SLOT_OVERLAP);
    let (_, findings) = audit(&into_next, &unit(Shape::Heap), KNOWN);
    assert_eq!(findings[0].slot, Some(2), "the finding is about the record that is run into");
    refused(&page().finish_with(|page| page[end_of(2)] += 2), Shape::Heap, &registry::SLOT_INTO_FREE_SPACE);
}

#[test]
fn a_forwarded_row_is_legal_in_a_heap_and_not_in_an_index() {
    let page = three_rows().record(&row_of_kind(FORWARDED, 4, b"moved")).finish();
    assert!(audit(&page, &unit(Shape::Heap), KNOWN).0.is_some());
    refused(&page, Shape::Clustered, &registry::RECORD_AUDIT);
}

#[test]
fn a_wrong_ghost_count_is_an_error_and_leaves_the_page_usable() {
    let (content, findings) = audit(&three_rows().finish_with(|page| page[58] = 1), &unit(Shape::Heap), KNOWN);
    assert_eq!(ids(&findings), [registry::PAGE_GHOST_COUNT.id]);
    assert_eq!(content.unwrap().rows, 3);
}

#[test]
fn the_free_count_is_what_records_and_slots_leave() {
    for change in [-1i16, 1] {
        let page = three_rows().finish_with(|page| {
            let free = i16::from_le_bytes([page[28], page[29]]) + change;
            page[28..30].copy_from_slice(&free.to_le_bytes());
        });
        refused(&page, Shape::Heap, &registry::PAGE_FREE_COUNT);
    }
}

#[test]
fn records_are_not_judged_where_rows_may_hold_versions_of_themselves() {
    let versioned = |page: &mut PageBytes| {
        page[4..6].copy_from_slice(&(page_flags::CHECKSUM | page_flags::VERSION_INFO).to_le_bytes());
        page[96 + 13] += 2;
    };
    let page = three_rows().finish_with(versioned);
    assert!(audit(&page, &unit(Shape::Heap), KNOWN).0.is_none());
    let (content, findings) = audit(&page, &unit(Shape::Heap), AuditRules { rows_hold_versions: true, ..KNOWN });
    assert_eq!(ids(&findings), [""; 0]);
    assert!(!content.unwrap().records_are_audited);
}

#[test]
fn a_row_is_longer_than_its_columns_only_where_there_is_room_for_a_version() {
    let page = |room: usize, free: i16| {
        let mut versioned = row(2, b"two");
        versioned[0] |= 0x40;
        versioned.extend(vec![0; 14 + room]);
        three_rows().record(&versioned).record(&row(4, b"four")).finish_with(|page| {
            page[4..6].copy_from_slice(&(page_flags::CHECKSUM | page_flags::VERSION_INFO).to_le_bytes());
            let free = i16::from_le_bytes([page[28], page[29]]) + free;
            page[28..30].copy_from_slice(&free.to_le_bytes());
        })
    };
    let audited = |page: &PageBytes| {
        let (content, findings) = audit(page, &unit(Shape::Heap), AuditRules { rows_may_hold_versions: true, ..KNOWN });
        (ids(&findings), content.map(|content| content.records_are_audited))
    };
    let wrong = (vec![registry::PAGE_FREE_COUNT.id], None);
    assert_eq!(audited(&page(0, 0)), (vec![], Some(true)));
    assert_eq!(audited(&page(20, 0)), (vec![], Some(false)));
    for (room, free) in [(0, -1), (0, 1), (20, -1)] {
        assert_eq!(audited(&page(room, free)), wrong, "{room} {free}");
    }
}

#[test]
fn an_open_system_transaction_is_recorded_and_the_page_stays_sound() {
    let page = three_rows().finish_with(|page| {
        page[4..6].copy_from_slice(&(page_flags::CHECKSUM | page_flags::IN_SYSXACT).to_le_bytes());
    });
    let (content, findings) = audit(&page, &unit(Shape::Heap), KNOWN);
    assert!(content.is_some());
    assert_eq!(ids(&findings), [registry::PAGE_IN_SYSXACT.id]);
}

#[test]
fn identity_is_the_checksum_first_and_then_the_page_id() {
    let page = three_rows().finish();
    assert_eq!(identity(&page, PAGE), None);
    assert_eq!(identity(&page, PageId::new(1, 201)), Some(IdentityFault::PageId));
    let mut rotten = page.clone();
    rotten[5000] ^= 1;
    for at in [PAGE, PageId::new(1, 201)] {
        assert!(matches!(identity(&rotten, at), Some(IdentityFault::Protection(_))));
    }
}

/// A GAM page with its two records, filler and bitmap.
fn map_page() -> TestPage {
    let [filler, bitmap] = [94u16, 7992].map(|length| {
        let mut record = vec![0; length.into()];
        record[2..4].copy_from_slice(&length.to_le_bytes());
        record
    });
    let page = TestPage::new(PageType::Gam).at(PageId::new(1, 2)).record(&filler).record(&bitmap).set16(14, 90);
    page.set16(6, 0).set16(24, 99).set16(26, 0)
}

#[test]
fn allocation_pages_are_laid_out_to_the_byte() {
    let sound = map_page().finish();
    assert_eq!((fixed_fault(Page::new(&sound)), idle_field_fault(Page::new(&sound))), (None, None));
    let changes: [(&str, Change); 6] = [
        ("header version", |page| page[0] = 0),
        ("slot count", |page| page[22] = 1),
        ("place of the bitmap", |page| page[8192 - 4] += 4),
        ("length of the bitmap", |page| page[96 + 94 + 2] ^= 1),
        ("status of the bitmap", |page| page[96 + 94] = 0x10),
        ("free count", |page| page[28] ^= 1),
    ];
    for (what, change) in changes {
        let page = map_page().finish_with(change);
        assert!(fixed_fault(Page::new(&page)).is_some(), "{what}");
    }
}

#[test]
fn fields_that_an_allocation_page_has_no_use_for_do_not_make_its_map_doubtful() {
    let changes: [Change; 4] = [|page| page[3] = 1, |page| page[58] = 1, |page| page[24] = 98, |page| page[16] = 7];
    for change in changes {
        let page = map_page().finish_with(change);
        assert_eq!(fixed_fault(Page::new(&page)), None);
        assert!(idle_field_fault(Page::new(&page)).is_some());
    }
}
