//! Finds the values on a page, and what is to be done with each.

use std::ops::Range;

use catalog::{Level, RowsetColumn, Stored, column_status};
use format::lob::{FRAGMENT_HEADER_BYTES, Fragment, NULL_ROOT, Node, Pointer, SMALL_ROOT, SMALL_ROOT_HEADER_BYTES};
use format::page::{PAGE_BYTES, PageHeader};
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::{Page, PageBytes, PageType};

use crate::letters::Form;
use crate::numbers::NumberKind;
use crate::plan::{Action, NameKind, PlannedColumn, RowsetPlan};

/// What is done with some bytes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Number(NumberKind),
    Text(Form),
    /// A name in UTF-16. `stays` tells whether it is a name of the system, if that is known.
    Name {
        of: NameKind,
        stays: Option<bool>,
    },
    /// A value that no index orders.
    Value,
    Variant,
    Zero,
    /// A definition whose names are replaced and, if `constants` is set, its constants in quotes.
    Formula {
        form: Form,
        constants: bool,
    },
    /// Texts within bytes of unknown meaning.
    Texts,
}

/// Some bytes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) at: Range<usize>,
    pub(crate) what: What,
}

/// The values on a page, and the ranges that records use.
#[derive(Default)]
pub(crate) struct Cells {
    pub(crate) cells: Vec<Cell>,
    pub(crate) used: Vec<Range<usize>>,
    /// The number of records that break the rules of their form, and of contradictions in the page header: values may
    /// be at other places there, so that they stay.
    pub(crate) damaged: u64,
}

/// What the catalog knows of the objects in sysobjvalues.
pub(crate) trait Objects {
    /// Whether the object is a CHECK constraint or a default.
    fn is_rule(&self, object_id: i32) -> bool;
    /// Whether the ID is that of a partition function. Its values decide the partitions of rows.
    fn is_partition_function(&self, id: i32) -> bool;
    /// The form of definitions that are stored as char.
    fn form(&self, is_unicode: bool) -> Form;
}

/// The most cells of a page. Only columns that share their places can have more.
const MOST_CELLS: usize = PAGE_BYTES;

/// Finds the values on a page of rows or off-row values. `plan` is the plan of the rowset that the page belongs to;
/// without a plan, only texts are found.
pub(crate) fn cells(bytes: &PageBytes, plan: Option<(&RowsetPlan, bool)>, objects: &dyn Objects) -> Cells {
    let page = Page::new(bytes);
    let header = page.header();
    let mut found = Cells::default();
    let mut order = SlotOrder::default();
    order.load(page);
    let kind = header.kind();
    let array = PAGE_BYTES.saturating_sub(2 * usize::from(header.slot_count.get()));
    let is_plausible = usize::from(header.free_data.get()) <= array && plan.is_none_or(|plan| fits(plan, header));
    found.damaged += u64::from(!is_plausible);
    // Rows on a page of a wrong type have other columns than the plan says.
    let plan = plan.filter(|plan| is_plausible || may_have_rows(plan, header));
    for position in 0..order.entries().len() {
        let space = order.space(page, position);
        let Some(start) = order.entries().get(position).map(|entry| usize::from(entry.offset)) else { continue };
        // Several slots may point to one record.
        if space.is_empty() {
            continue;
        }
        let is_full = found.cells.len() >= MOST_CELLS;
        let mut add = |at: Range<usize>, what: What| {
            found.cells.push(Cell { at: start + at.start..start + at.end, what });
        };
        let (length, is_whole) = match kind {
            _ if is_full => unread(space, &mut add),
            Some(PageType::TextMix | PageType::TextTree) => {
                of_fragment(space, plan.is_some_and(|(plan, _)| plan.keeps_off_row), &mut add)
            }
            Some(PageType::Data | PageType::Index) => of_row(header, space, plan, objects, &mut add),
            _ => unread(space, &mut add),
        };
        found.used.push(start..start + length);
        found.damaged += u64::from(!is_whole);
    }
    found
}

/// Whether the header of a page says nothing that contradicts the rowset that it names. Otherwise, the page may have
/// rows of another form.
fn fits((plan, is_leaf): (&RowsetPlan, bool), header: &PageHeader) -> bool {
    let [leaf, node] = plan.fixed_lengths;
    let length = header.pminlen.get();
    match (header.kind(), plan.index_id) {
        _ if plan.keeps_rows => true,
        (Some(PageType::Data), 0 | 1) => length <= leaf,
        // An upgrade leaves the root of an empty base table as it was.
        (Some(PageType::Index), 1) => length == node || plan.is_base_table && header.slot_count.get() < 2,
        (Some(PageType::Index), 2..) => length == if is_leaf { leaf } else { node },
        (Some(PageType::Data | PageType::Index), _) => false,
        _ => true,
    }
}

/// Whether a rowset can have pages of this type. The type of a page of rows may be wrong, but its level then is 0.
fn may_have_rows((plan, _): &(&RowsetPlan, bool), header: &PageHeader) -> bool {
    match (header.kind(), plan.index_id) {
        (Some(PageType::Data), 2..) | (Some(PageType::Index), ..=0) => false,
        (Some(PageType::Index), 1) => header.level > 0,
        _ => true,
    }
}

/// Finds the value in a fragment of an off-row value. Returns the length of the fragment, and whether it was read.
fn of_fragment(space: &[u8], keeps: bool, add: &mut impl FnMut(Range<usize>, What)) -> (usize, bool) {
    let Ok(fragment) = Fragment::read(space) else { return unread(space, add) };
    let length = fragment.bytes().len();
    if keeps || RecordKind::is_tag_alone(fragment.bytes().first().copied().unwrap_or_default()) {
        return (length, true);
    }
    let end = fragment.content().len();
    let is_read = match (fragment.node_type(), fragment.data()) {
        (kind @ (SMALL_ROOT | NULL_ROOT), Some(data)) => {
            let start = SMALL_ROOT_HEADER_BYTES.min(end);
            let value = if kind == NULL_ROOT { start..start } else { within(space, data) };
            // A small root has four bytes without a use before its value, and padding after it.
            let unused = SMALL_ROOT_HEADER_BYTES - 4..value.start.min(SMALL_ROOT_HEADER_BYTES);
            for filler in [unused, value.end..end].into_iter().filter(|filler| !filler.is_empty()) {
                add(filler, What::Zero);
            }
            add(value, What::Value);
            true
        }
        (_, Some(data)) => {
            add(within(space, data), What::Value);
            true
        }
        // A deleted fragment may have no content left.
        _ if !fragment.is_live() && end <= SMALL_ROOT_HEADER_BYTES => true,
        (2 | 4 | 5, None) => {
            !fragment.is_live() || matches!(fragment.node(), Node::Tree { .. } | Node::Internal { .. })
        }
        _ => false,
    };
    if !is_read {
        add(FRAGMENT_HEADER_BYTES..length, What::Texts);
    }
    (length, is_read)
}

/// Finds the values in a row. Returns the length of its record, and whether the record was read.
fn of_row(
    header: &PageHeader,
    space: &[u8],
    plan: Option<(&RowsetPlan, bool)>,
    objects: &dyn Objects,
    add: &mut impl FnMut(Range<usize>, What),
) -> (usize, bool) {
    if plan.is_some_and(|(plan, _)| plan.keeps_rows) {
        return (space.len(), true);
    }
    let pminlen = header.pminlen.get();
    let record = match header.kind() {
        Some(PageType::Index) => Record::index(space, pminlen),
        _ => Record::data(space),
    };
    let level = |is_leaf: bool| if is_leaf { Level::Leaf } else { Level::Node };
    match (record, plan) {
        (Ok(record), Some((plan, is_leaf))) => {
            let is_read = of_record(&record, space, plan, level(is_leaf), objects, add);
            (record.bytes().len(), is_read)
        }
        (Err(_), Some((plan, is_leaf))) => (of_damaged(space, plan, level(is_leaf), pminlen, add), false),
        (Ok(record), None) => {
            add(0..record.bytes().len(), What::Texts);
            (record.bytes().len(), true)
        }
        (Err(_), None) => unread(space, add),
    }
}

/// A record of unknown form: only its texts change, after the status bytes and the length.
fn unread(space: &[u8], add: &mut impl FnMut(Range<usize>, What)) -> (usize, bool) {
    add(4.min(space.len())..space.len(), What::Texts);
    (space.len(), false)
}

/// The range of `part`, which is a part of `whole`.
fn within(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len());
    start..(start + part.len()).min(whole.len())
}

/// Finds the values in a record. Returns false if some of its columns are not where the catalog says.
fn of_record(
    record: &Record<'_>,
    space: &[u8],
    plan: &RowsetPlan,
    level: Level,
    objects: &dyn Objects,
    add: &mut impl FnMut(Range<usize>, What),
) -> bool {
    if record.kind() == RecordKind::ForwardingStub || RecordKind::is_tag_alone(record.status()) {
        return true;
    }
    let is_row_of_table = !matches!(record.kind(), RecordKind::Index | RecordKind::GhostIndex);
    let mut is_read = true;
    for PlannedColumn { column, action } in &plan.columns {
        let (offset, null_bit, _) = column.place(level);
        if offset == 0 || column.is_sparse() && is_row_of_table || !record.has_column(null_bit) && null_bit != 0 {
            continue;
        }
        if matches!(action, Action::Keep) {
            continue;
        }
        let bytes = match u16::try_from(offset) {
            Ok(at) => {
                let bytes = record.fixed(at, column.info.length);
                is_read &= bytes.is_some();
                bytes
            }
            Err(_) => match record.variable(offset.unsigned_abs()) {
                Some((bytes, true)) => {
                    // A record omits empty columns at its end, but a forwarded row has its back pointer after them.
                    let is_back_pointer =
                        record.kind() == RecordKind::Forwarded && record.variable_count() == offset.unsigned_abs();
                    if !is_back_pointer && record.null_bit(null_bit) != Some(true) && !is_pointer(column, bytes) {
                        add(within(space, bytes), What::Texts);
                        is_read = false;
                    }
                    continue;
                }
                Some((bytes, false)) => Some(bytes),
                None => None,
            },
        };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { continue };
        let what = match action {
            Action::Keep => continue,
            // A fixed column that is NULL may have an old value.
            _ if record.null_bit(null_bit) == Some(true) => What::Zero,
            Action::Zero => What::Zero,
            Action::Number(kind) => What::Number(*kind),
            Action::Text(form) => What::Text(*form),
            Action::Value => What::Value,
            Action::Variant => What::Variant,
            Action::Name(of, names) => What::Name { of: *of, stays: names.stays(record, level) },
            Action::Definition => match definition(record, plan, objects) {
                Some(what) => what,
                None => continue,
            },
            Action::DefinitionValue if is_setting(record, plan, objects) => continue,
            Action::DefinitionValue => What::Variant,
        };
        add(within(space, bytes), what);
    }
    is_read & !has_unknown_columns(record, space, plan, level, add)
}

/// Whether a record has variable columns that the catalog does not name. Their texts change.
fn has_unknown_columns(
    record: &Record<'_>,
    space: &[u8],
    plan: &RowsetPlan,
    level: Level,
    add: &mut impl FnMut(Range<usize>, What),
) -> bool {
    let [leaf, node] = &plan.variables;
    let known = if level == Level::Leaf { leaf } else { node };
    let mut has_unknown = false;
    // In most plans, the columns are numbered without gaps.
    let from = if known.last().is_some_and(|last| usize::from(*last) == known.len()) { known.len() as u16 } else { 0 };
    for number in from + 1..=record.variable_count() {
        // Complex ones are sparse vectors and back pointers.
        if let (Err(_), Some((bytes, false))) = (known.binary_search(&number), record.variable(number))
            && !bytes.is_empty()
        {
            add(within(space, bytes), What::Texts);
            has_unknown = true;
        }
    }
    has_unknown
}

/// Whether the bytes of a complex column are a pointer to a value, which has nothing of the value itself.
fn is_pointer(column: &RowsetColumn, bytes: &[u8]) -> bool {
    column.status & column_status::FILESTREAM != 0
        || !matches!(Pointer::read(bytes), Pointer::Malformed | Pointer::Undescribed)
}

/// A number in a row of sysobjvalues.
fn number(column: &RowsetColumn, record: &Record<'_>) -> Option<u64> {
    match column.stored(Level::Leaf, record) {
        Stored::Plain(bytes) => Some(format::bytes::unsigned(bytes)),
        _ => None,
    }
}

/// What is done with a definition in sysobjvalues (docs/format/catalog.md#sysobjvalues).
fn definition(record: &Record<'_>, plan: &RowsetPlan, objects: &dyn Objects) -> Option<What> {
    let definitions = plan.definitions.as_ref()?;
    // `value` is a sql_variant int: type, version, then the encoding (docs/format/expressions.md#encoding).
    let is_unicode = match definitions.value.stored(Level::Leaf, record) {
        Stored::Plain(bytes) => bytes.get(2) == Some(&1),
        _ => false,
    };
    let form = objects.form(is_unicode);
    let object_id = (number(&definitions.object, record)? as u32).cast_signed();
    Some(match number(&definitions.class, record)? {
        1 if objects.is_rule(object_id) => What::Formula { form, constants: true },
        2 | 66 => What::Formula { form, constants: false },
        SETTINGS | SEQUENCE | EVENTS | PERIOD => return None,
        _ => What::Value,
    })
}

/// Classes of sysobjvalues with values of the system.
const SETTINGS: u64 = 7;
const SEQUENCE: u64 = 63;
const EVENTS: u64 = 70;
const PERIOD: u64 = 113;

/// Whether `value` in sysobjvalues is a setting of the database or a boundary of a partition.
fn is_setting(record: &Record<'_>, plan: &RowsetPlan, objects: &dyn Objects) -> bool {
    let Some(definitions) = &plan.definitions else { return true };
    let object_id = number(&definitions.object, record).map(|id| (id as u32).cast_signed());
    number(&definitions.class, record) == Some(SETTINGS) || object_id.is_none_or(|id| objects.is_partition_function(id))
}

/// A record that breaks a rule: its fixed columns change where they would be, and the texts after them.
fn of_damaged(
    space: &[u8],
    plan: &RowsetPlan,
    level: Level,
    pminlen: u16,
    add: &mut impl FnMut(Range<usize>, What),
) -> usize {
    let mut fixed_end = 4;
    for PlannedColumn { column, action } in &plan.columns {
        let (offset, ..) = column.place(level);
        let Ok(at) = usize::try_from(offset) else { continue };
        let range = at..at + usize::from(column.info.length);
        if at == 0 || range.end > space.len() || range.end > usize::from(pminlen) {
            continue;
        }
        fixed_end = fixed_end.max(range.end);
        match action {
            Action::Number(kind) => add(range, What::Number(*kind)),
            Action::Text(form) => add(range, What::Text(*form)),
            Action::Zero => add(range, What::Zero),
            _ => {}
        }
    }
    add(after_offsets(space, fixed_end.max(usize::from(pminlen)))..space.len(), What::Texts);
    space.len()
}

/// The end of the null bitmap and of the variable offset array, as far as their counts can be right.
fn after_offsets(space: &[u8], fixed_end: usize) -> usize {
    let count = |at: usize| format::bytes::u16_at(space, at).map(usize::from);
    let bitmap_end = count(fixed_end).map_or(fixed_end, |columns| fixed_end + 2 + columns.div_ceil(8));
    let end = count(bitmap_end).map_or(bitmap_end, |variables| bitmap_end + 2 + 2 * variables);
    if end <= space.len() { end } else { fixed_end.min(space.len()) }
}

#[cfg(test)]
mod tests {
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
        let found = cells(bytes, Some((plan, true)), &Nothing);
        (found.cells.into_iter().map(|cell| (cell.at.start - 96..cell.at.end - 96, cell.what)).collect(), found.damaged)
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
}
