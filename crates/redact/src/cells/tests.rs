use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

use super::*;
use crate::numbers::Scale;

struct Nothing;

impl Objects for Nothing {
    fn is_rule(&self, _: i32) -> bool {
        false
    }
    fn is_partition_function(&self, _: i32) -> bool {
        false
    }
    fn form(&self, _: bool) -> Form {
        Form::Bytes
    }
    fn has_file(&self, file: u16) -> bool {
        file == 1
    }
}

fn page(kind: PageType, pminlen: u16, rows: &[&[u8]]) -> Box<PageBytes> {
    let mut bytes = Box::new([0; PAGE_BYTES]);
    bytes[1] = kind as u8;
    bytes[14..16].copy_from_slice(&pminlen.to_le_bytes());
    bytes[22..24].copy_from_slice(&(rows.len() as u16).to_le_bytes());
    let mut at = 96;
    for (row, slot) in rows.iter().zip(1..) {
        bytes[at..at + row.len()].copy_from_slice(row);
        bytes[PAGE_BYTES - 2 * slot..][..2].copy_from_slice(&(at as u16).to_le_bytes());
        at += row.len();
    }
    bytes[30..32].copy_from_slice(&(at as u16).to_le_bytes());
    bytes
}

fn column(kind: u8, offset: i16, null_bit: u16, action: Action) -> PlannedColumn {
    let column = RowsetColumn {
        id: null_bit.into(),
        physical: null_bit.into(),
        info: TypeInfo::from_ti(kind.into()),
        collation: CollationId(0),
        status: 0,
        key_ordinal: 0,
        leaf_offset: offset,
        node_offset: 0,
        leaf_null_bit: null_bit,
        node_null_bit: 0,
        default: None,
        leaf_bit: 0,
        node_bit: 0,
    };
    PlannedColumn { column, action }
}

/// A heap with an int at offset 4 and a varbinary.
fn heap() -> RowsetPlan {
    let int = Action::Number((Scale::Signed, 4));
    let columns = vec![column(xtype::INT, 4, 1, int), column(xtype::VARBINARY, -1, 2, Action::Text(Form::Bytes))];
    RowsetPlan { fixed_lengths: [8, 4], columns, variables: [vec![1], Vec::new()], ..RowsetPlan::default() }
}

fn found(bytes: &PageBytes, plan: &RowsetPlan) -> (Vec<(Range<usize>, What)>, u64) {
    // A slot array that is too long reaches into the header of the page.
    let of_records = |at: usize| at.saturating_sub(96);
    let found = cells(bytes, Some((plan, true)), &Nothing);
    (
        found.cells.into_iter().map(|cell| (of_records(cell.at.start)..of_records(cell.at.end), cell.what)).collect(),
        found.damaged,
    )
}

const ROW: [u8; 19] = [0x30, 0, 8, 0, 1, 2, 3, 4, 2, 0, 0, 1, 0, 19, 0, b'A', b'n', b'n', b'a'];

#[test]
fn a_record_is_damaged_if_its_columns_are_not_where_the_catalog_says() {
    let sound = vec![(4..8, What::Number((Scale::Signed, 4))), (15..19, What::Text(Form::Bytes))];
    assert_eq!(found(&page(PageType::Data, 8, &[&ROW]), &heap()), (sound.clone(), 0));
    // The fixed part ends before the int: so the int is one of the bytes that belong to no column.
    let mut short = ROW;
    short[2] = 4;
    (short[4], short[5], short[6]) = (1, 0, 0);
    assert_eq!(found(&page(PageType::Data, 8, &[&short]), &heap()).1, 1);
    // The varbinary says that it is a pointer, but is none.
    let mut complex = ROW;
    complex[14] |= 0x80;
    assert_eq!(
        found(&page(PageType::Data, 8, &[&complex]), &heap()),
        (vec![sound[0].clone(), (15..19, What::Texts)], 1)
    );
    // A second variable column, which the catalog does not name.
    let unknown = [0x30, 0, 8, 0, 1, 2, 3, 4, 2, 0, 0, 2, 0, 19, 0, 23, 0, b'A', b'n', b'B', b'o', b'b', b'y'];
    let (cells, damaged) = found(&page(PageType::Data, 8, &[&unknown]), &heap());
    assert_eq!((cells.last(), damaged), (Some(&(19..23, What::Texts)), 1));
    // No record at all.
    assert_eq!(found(&page(PageType::Data, 8, &[&[0xFF; 30]]), &heap()).1, 1);
    assert_eq!(found(&page(PageType::Gam, 8, &[&ROW]), &heap()), (vec![(4..19, What::Texts)], 1));
}

/// A row with these values, of which the first is an int. The record has the columns up to `columns`.
fn row(status: u8, fixed: &[u8], columns: u8, variables: &[(&[u8], bool)]) -> Vec<u8> {
    let mut row = vec![status, 0, 4 + fixed.len() as u8, 0];
    row.extend(fixed);
    row.extend([columns, 0, 0, variables.len() as u8, 0]);
    let mut end = row.len() + 2 * variables.len();
    for (value, is_complex) in variables {
        end += value.len();
        row.extend([end as u8, if *is_complex { 0x80 } else { 0 }]);
    }
    variables.iter().for_each(|(value, _)| row.extend(*value));
    row
}

#[test]
fn a_column_added_in_the_place_of_a_dropped_one_becomes_zero_in_older_rows() {
    let int = Action::Number((Scale::Signed, 4));
    let mut plan = heap();
    plan.columns.extend([column(xtype::INT, 8, 3, int), column(xtype::INT, 12, 4, Action::Keep)]);
    plan.fixed_lengths = [18, 4];
    plan.unused[0].push(16..u16::MAX);
    let of = |plan: &RowsetPlan, columns: u8| {
        let row = row(0x30, b"\x01\x02\x03\x04old secret", columns, &[(b"Anna", false)]);
        let found = found(&page(PageType::Data, 18, &[&row]), plan);
        assert_eq!(found.1, 0);
        found.0.into_iter().filter(|(at, _)| at.end <= 18).collect::<Vec<_>>()
    };
    let (first, rest) = ((4..8, What::Number((Scale::Signed, 4))), (16..18, What::Zero));
    assert_eq!(
        of(&plan, 4),
        [rest.clone(), first.clone(), (8..12, What::Number((Scale::Signed, 4)))],
        "the row is new"
    );
    assert_eq!(of(&plan, 2), [rest, first, (8..16, What::Zero)], "no column of the old row has these bytes");
    // Columns of type bit share a byte, which an old row may have for another one.
    let bits = [column(xtype::BIT, 8, 2, Action::Keep), column(xtype::BIT, 8, 3, Action::Keep)];
    plan.columns.splice(1.., bits);
    assert!(!of(&plan, 2).contains(&(8..9, What::Zero)) && of(&plan, 1).contains(&(8..9, What::Zero)));
}

#[test]
fn no_value_stays_in_a_record_whose_column_count_is_too_low() {
    let with = |kind: u8, action: Action| {
        let mut plan = heap();
        plan.columns[1] = column(kind, -1, 2, action);
        plan
    };
    let of = |plan: &RowsetPlan, status: u8, variables: &[(&[u8], bool)]| {
        let row = row(status, &[1, 2, 3, 4], 1, variables);
        let (mut cells, damaged) = found(&page(PageType::Data, 8, &[&row]), plan);
        let number = (4..8, What::Number((Scale::Signed, 4)));
        assert_eq!(cells.remove(0), number);
        (cells.into_iter().map(|(at, what)| (row[at].to_vec(), what)).collect::<Vec<_>>(), damaged)
    };
    let plain = [(&b"secret"[..], false)];
    let zero = vec![(b"secret".to_vec(), What::Zero)];
    let texts = vec![(b"secret".to_vec(), What::Texts)];
    assert_eq!(of(&heap(), 0x30, &plain), (zero.clone(), 0));
    assert_eq!(of(&with(xtype::VARBINARY, Action::Keep), 0x30, &plain), (zero, 0), "also of a column that stays");
    assert_eq!(of(&heap(), 0x30, &[(b"secret", true)]), (texts.clone(), 1), "no pointer");
    // A check reads the bytes of such a column even if the record is too short for it.
    assert_eq!(of(&with(xtype::TEXT, Action::Value), 0x30, &plain), (texts.clone(), 1));
    assert_eq!(of(&RowsetPlan { is_base_table: true, ..heap() }, 0x30, &plain), (texts.clone(), 1));
    // The back pointer of a forwarded row has the number of a column that the row lacks.
    assert_eq!(of(&heap(), 0x32, &[(&[0, 4, 9, 0, 0, 0, 1, 0, 2, 0], true)]), (vec![], 0));
    assert_eq!(of(&heap(), 0x32, &plain), (texts, 1));
    assert_eq!(of(&with(xtype::INT, Action::Hidden), 0x30, &[(&[1, 0, 0, 0], false)]), (vec![], 0), "a uniquifier");
    assert_eq!(of(&with(xtype::INT, Action::Hidden), 0x30, &plain).1, 1);
}

#[test]
fn only_a_pointer_that_the_type_can_have_stays() {
    let text = [7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 2, 0];
    let root = |kind: u8| [kind, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 1, 0, 2, 0];
    let elsewhere = *b"\x04 Anna Karenina, Moscow.";
    let of = |kind: u8, length: u16, bytes: &[u8]| {
        let mut plan = heap();
        plan.columns[1] = column(kind, -1, 2, Action::Value);
        plan.columns[1].column.info.length = length;
        let row = row(0x30, &[1, 2, 3, 4], 2, &[(bytes, true)]);
        let (cells, damaged) = found(&page(PageType::Data, 8, &[&row]), &plan);
        assert_eq!(cells.len() as u64, 1 + damaged);
        damaged == 0
    };
    for (kind, length, expected) in [
        (xtype::NTEXT, 16, [true, true, true]),
        (xtype::VARCHAR, 0xFFFF, [true, true, true]),
        (xtype::VARCHAR, 16, [false, false, true]),
        (xtype::SQL_VARIANT, 8016, [false, false, true]),
        (xtype::CHAR, 24, [false, false, false]),
    ] {
        let found = [of(kind, length, &text), of(kind, length, &root(4)), of(kind, length, &root(2))];
        assert_eq!(found, expected, "{kind} {length}");
        assert!(!of(kind, length, &elsewhere) && !of(kind, length, b"Anna Karenina 16"), "no file has this ID");
    }
}

#[test]
fn complex_columns_that_the_catalog_does_not_name_change() {
    let vector = [5, 0, 1, 0, 3, 0, 12, 0, b'A', b'n', b'n', b'a'];
    let of = |plan: &RowsetPlan, nulls: u8, variables: &[(&[u8], bool)]| {
        let mut row = row(0x30, &[1, 2, 3, 4], 2, variables);
        row[10] = nulls;
        found(&page(PageType::Data, 8, &[&row]), plan)
    };
    let sparse = RowsetPlan { has_sparse: true, ..heap() };
    assert_eq!(of(&sparse, 0, &[(b"Anna", false), (&vector, true)]).1, 0);
    assert_eq!(of(&sparse, 0b10, &[(&vector, true)]).1, 0, "the number of a column that is NULL");
    let (cells, damaged) = of(&heap(), 0, &[(b"Anna", false), (&vector, true)]);
    assert_eq!((cells.last().map(|(_, what)| what), damaged), (Some(&What::Texts), 1), "no table with sparse columns");
    assert_eq!(of(&sparse, 0b10, &[(b"Anna", true)]).1, 1, "NULL");
    assert_eq!(of(&sparse, 0, &[(b"Anna", false), (b"Bob!", true)]).1, 1);
}

#[test]
fn a_definition_without_a_class_or_an_object_does_not_stay() {
    let definitions = crate::plan::Definitions {
        class: column(xtype::TINYINT, 4, 1, Action::Keep).column,
        object: column(xtype::INT, 5, 2, Action::Keep).column,
        value: column(xtype::SQL_VARIANT, -1, 3, Action::DefinitionValue).column,
    };
    let columns = vec![
        column(xtype::TINYINT, 4, 1, Action::Keep),
        column(xtype::INT, 5, 2, Action::Keep),
        column(xtype::SQL_VARIANT, -1, 3, Action::DefinitionValue),
        column(xtype::VARBINARY, -2, 4, Action::Definition),
    ];
    let plan = RowsetPlan {
        fixed_lengths: [9, 4],
        columns,
        variables: [vec![1, 2], Vec::new()],
        is_base_table: true,
        definitions: Some(definitions),
        ..RowsetPlan::default()
    };
    let of = |class: u8, nulls: u8| {
        let mut row = row(0x30, &[class, 9, 0, 0, 0], 4, &[(&[56, 1, 2, 0, 0, 0], false), (b"create view", false)]);
        row[11] = nulls;
        let (cells, damaged) = found(&page(PageType::Data, 9, &[&row]), &plan);
        (cells.into_iter().map(|(_, what)| what).collect::<Vec<_>>(), damaged)
    };
    assert_eq!(of(1, 0), (vec![What::Variant, What::Value], 0));
    assert_eq!(of(7, 0), (vec![], 0), "a setting of the database");
    for nulls in [0b01, 0b10, 0b11] {
        assert_eq!(of(1, nulls), (vec![What::Variant, What::Texts], 1), "{nulls}");
    }
}

#[test]
fn bytes_after_the_links_of_a_fragment_become_zero() {
    let node = |status: u8, kind: u8, used: u8| {
        let mut node = [b'x'; 60];
        node[..20].copy_from_slice(&[status, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, kind, 0, 3, 0, used, 0, 0, 0]);
        found(&page(PageType::TextMix, 0, &[&node]), &heap())
    };
    for status in [8, 0xC] {
        assert_eq!(node(status, 5, 2), (vec![(20..24, What::Zero), (48..60, What::Zero)], 0), "also of a ghost");
        assert_eq!(node(status, 2, 1), (vec![(36..60, What::Zero)], 0));
        assert_eq!(node(status, 2, 3), (vec![(14..60, What::Texts)], 1), "more links than the node has room for");
    }
}

#[test]
fn a_page_whose_header_contradicts_its_rowset_is_damaged() {
    assert_eq!(found(&page(PageType::Data, 9, &[&ROW]), &heap()).1, 1, "longer rows than those of the table");
    assert!(found(&page(PageType::Index, 8, &[&ROW]), &heap()).1 > 0, "a heap has no index pages");
    let mut full = page(PageType::Data, 8, &[&ROW]);
    full[22..24].copy_from_slice(&4048u16.to_le_bytes());
    assert!(found(&full, &heap()).1 > 0, "the slot array contains rows");
}

#[test]
fn a_fragment_without_a_known_form_is_damaged_and_padding_becomes_zero() {
    let root = |kind: u8, size: u8| {
        let mut root = [b'x'; 30];
        root[..16].copy_from_slice(&[8, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, kind, 0, size, 0]);
        root
    };
    let found = |root: &[u8]| found(&page(PageType::TextMix, 0, &[root]), &heap());
    let sound = vec![(16..20, What::Zero), (24..30, What::Zero), (20..24, What::Value)];
    assert_eq!(found(&root(0, 4)), (sound, 0));
    assert_eq!(found(&root(0, 99)), (vec![(14..30, What::Texts)], 1), "a value longer than its fragment");
    assert_eq!(found(&root(8, 0)).1, 0);
    assert!(found(&root(8, 0)).0.contains(&(20..30, What::Zero)), "NULL has no value");
    for kind in [1, 2, 5, 6, 9] {
        assert_eq!(found(&root(kind, 99)), (vec![(14..30, What::Texts)], 1), "type {kind}");
    }
}

#[test]
fn slots_and_columns_at_one_place_are_bounded() {
    let mut bytes = page(PageType::Data, 8, &[&ROW]);
    bytes[22..24].copy_from_slice(&1000u16.to_le_bytes());
    bytes[PAGE_BYTES - 2000..].as_chunks_mut::<2>().0.fill(96u16.to_le_bytes());
    assert_eq!(found(&bytes, &heap()).0.len(), 2, "one record");
    let columns = vec![column(xtype::INT, 4, 1, Action::Number((Scale::Signed, 4))); 5000];
    let rows = vec![&ROW[..]; 300];
    let (cells, damaged) = found(&page(PageType::Data, 8, &rows), &RowsetPlan { columns, ..heap() });
    assert!(cells.len() < MOST_CELLS + 5000 + 300 && damaged > 200, "{} {damaged}", cells.len());
}
