//! Finds the values on a page, and what is to be done with each.

use std::ops::Range;

use catalog::{Level, RowsetColumn, Stored, column_status};
use format::bytes::u16_at;
use format::fields::{Structure, offset};
use format::lob::{FRAGMENT_HEADER_BYTES, Fragment, NULL_ROOT, Pointer, SMALL_ROOT, SMALL_ROOT_HEADER_BYTES};
use format::page::{PAGE_BYTES, PageHeader};
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::sparse::SparseVector;
use format::types::xtype;
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
    /// A sql_variant of the catalog. It is listed if its value stays.
    Property,
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
    /// How many records break the rules of their form, plus one if the page header contradicts its rowset. Values may be
    /// at unexpected places there, and then stay.
    pub(crate) damaged: u64,
}

/// What the database knows of the objects in sysobjvalues, and of its files.
pub(crate) trait Objects {
    /// Whether the object is a CHECK constraint or the default of a column. The definition of any other object is a
    /// text that a user wrote, with comments and with names that have no brackets.
    fn is_rule(&self, object_id: i32) -> bool;
    /// Whether the ID is that of a partition function. Its values decide the partitions of rows.
    fn is_partition_function(&self, id: i32) -> bool;
    /// The form of definitions that are stored as char.
    fn form(&self, is_unicode: bool) -> Form;
    /// Whether the database has a file with this ID.
    fn has_file(&self, file: u16) -> bool;
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
        (2 | 4 | 5, None) => match after_links(fragment) {
            // The places of links that are not in use may have bytes of an earlier record.
            Some(unused) => {
                unused.into_iter().filter(|unused| !unused.is_empty()).for_each(|unused| add(unused, What::Zero));
                true
            }
            None => false,
        },
        _ => false,
    };
    if !is_read {
        add(FRAGMENT_HEADER_BYTES..length, What::Texts);
    }
    (length, is_read)
}

/// The bytes without a use of a node with links: four before the first link of a root, and those after its last link.
/// `None` if its links do not fit into the node.
fn after_links(fragment: Fragment<'_>) -> Option<[Range<usize>; 2]> {
    const PLACES_AT: usize = offset(Structure::LobRoot, "maxLinks", 2);
    const USED_AT: usize = offset(Structure::LobRoot, "curLinks", 2);
    const LEVEL_END: usize = offset(Structure::LobRoot, "level", 2) + 2;
    const UNUSED_END: usize = offset(Structure::LobRoot, "unused", 4) + 4;
    const INTERNAL_LINK_BYTES: usize = 8 + 8;
    const ROOT_LINK_BYTES: usize = 4 + 8;
    let content = fragment.content();
    let (first, stride) = match fragment.node_type() {
        2 => (LEVEL_END, INTERNAL_LINK_BYTES),
        _ => (UNUSED_END, ROOT_LINK_BYTES),
    };
    let (places, used) = (u16_at(content, PLACES_AT)?, u16_at(content, USED_AT)?);
    let end = first + usize::from(used) * stride;
    (used <= places && end <= content.len()).then_some([LEVEL_END..first, end..content.len()])
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
    for unused in plan.unused_at(level) {
        let unused = usize::from(unused.start)..usize::from(unused.end.min(record.fixed_end()));
        if !unused.is_empty() {
            add(unused, What::Zero);
        }
    }
    let (mut is_read, mut lacks_fixed) = (true, false);
    for PlannedColumn { column, action } in &plan.columns {
        let (offset, null_bit, _) = column.place(level);
        if offset == 0 || column.is_sparse() && is_row_of_table {
            continue;
        }
        let is_absent = null_bit != 0 && !record.has_column(null_bit);
        let bytes = match u16::try_from(offset) {
            Ok(_) if is_absent => {
                lacks_fixed = true;
                continue;
            }
            Ok(_) if action.stays() => continue,
            Ok(at) => {
                let bytes = record.fixed(at, column.info.length);
                is_read &= bytes.is_some();
                bytes
            }
            Err(_) => match variable(record, (column, action), offset.unsigned_abs(), is_absent, plan, objects) {
                Variable::Value(bytes) if !action.stays() => Some(bytes),
                Variable::Value(_) | Variable::Nothing => None,
                Variable::Dropped(bytes) => {
                    add(within(space, bytes), What::Zero);
                    None
                }
                Variable::Unknown(bytes) => {
                    add(within(space, bytes), What::Texts);
                    is_read = false;
                    None
                }
            },
        };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { continue };
        let what = match action {
            Action::Keep | Action::Hidden => continue,
            // A fixed column that is NULL may have an old value.
            _ if record.null_bit(null_bit) == Some(true) => What::Zero,
            Action::Zero => What::Zero,
            Action::Number(kind) => What::Number(*kind),
            Action::Text(form) => What::Text(*form),
            Action::Value => What::Value,
            Action::Variant => What::Variant,
            Action::Property => What::Property,
            Action::Name(of, names) => What::Name { of: *of, stays: names.stays(record, level) },
            Action::Definition => match definition(record, plan, objects) {
                Some(what) => what,
                None => continue,
            },
            Action::DefinitionValue if is_setting(record, plan, objects) => continue,
            Action::DefinitionValue => What::Variant,
        };
        is_read &= what != What::Texts;
        add(within(space, bytes), what);
    }
    if lacks_fixed && !plan.is_base_table {
        for range in of_absent(record, plan, level) {
            add(range, What::Zero);
        }
    }
    is_read & !has_unknown_columns(record, space, plan, level, add)
}

/// The bytes of fixed columns that the record lacks, except those that its other columns have. A record that is older
/// than a column may have the value of a dropped column in its place.
fn of_absent(record: &Record<'_>, plan: &RowsetPlan, level: Level) -> Vec<Range<usize>> {
    let mut is_absent = vec![false; record.fixed_end().into()];
    for absent in [true, false] {
        for PlannedColumn { column, action } in &plan.columns {
            let (offset, null_bit, _) = column.place(level);
            let Some(start) = usize::try_from(offset).ok().filter(|start| *start > 0) else { continue };
            let has_it = null_bit == 0 || record.has_column(null_bit) || matches!(action, Action::Hidden);
            if has_it != absent {
                let end = is_absent.len().min(start + usize::from(column.info.length));
                is_absent.get_mut(start..end).unwrap_or_default().fill(absent);
            }
        }
    }
    let mut at = 0;
    let runs = is_absent.chunk_by(|one, next| one == next).filter_map(|run| {
        at += run.len();
        (run.first() == Some(&true)).then(|| at - run.len()..at)
    });
    runs.collect()
}

/// What is at the place of a variable column.
enum Variable<'a> {
    /// Nothing, or what has nothing of a value: a pointer.
    Nothing,
    Value(&'a [u8]),
    /// The value of a dropped column, which no check reads.
    Dropped(&'a [u8]),
    /// Bytes that must not be there.
    Unknown(&'a [u8]),
}

/// Finds out what is at the place of the variable column `number`.
fn variable<'a>(
    record: &Record<'a>,
    (column, action): (&RowsetColumn, &Action),
    number: u16,
    is_absent: bool,
    plan: &RowsetPlan,
    objects: &dyn Objects,
) -> Variable<'a> {
    const UNIQUIFIER_BYTES: usize = 4;
    let is_text = matches!(column.info.xtype, xtype::TEXT | xtype::NTEXT | xtype::IMAGE);
    let is_uniquifier = matches!(action, Action::Hidden) || column.info.xtype == xtype::INT;
    // A record omits empty columns at its end, but a forwarded row has its back pointer after them.
    let may_be_back_pointer = record.kind() == RecordKind::Forwarded && record.variable_count() == number;
    match record.variable(number) {
        None => Variable::Nothing,
        Some((bytes, true)) => {
            let is_known = is_hidden(record, number, bytes, plan) || is_pointer(column, bytes, objects);
            let is_listed = matches!(action, Action::Keep) && !is_absent;
            if is_known || is_listed { Variable::Nothing } else { Variable::Unknown(bytes) }
        }
        Some((bytes, false)) if matches!(action, Action::Hidden) && bytes.len() > UNIQUIFIER_BYTES => {
            Variable::Unknown(bytes)
        }
        Some((bytes, false)) if !is_absent => Variable::Value(bytes),
        // An index orders its rows by the uniquifier even if the record is too short for its null bit.
        Some((bytes, false)) if bytes.is_empty() || is_uniquifier => Variable::Nothing,
        // A check reads these bytes.
        Some((bytes, false)) if plan.is_base_table || is_text || may_be_back_pointer => Variable::Unknown(bytes),
        Some((bytes, false)) => Variable::Dropped(bytes),
    }
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
        if let (Err(_), Some((bytes, is_complex))) = (known.binary_search(&number), record.variable(number))
            && !bytes.is_empty()
            && !(is_complex && is_hidden(record, number, bytes, plan))
        {
            add(within(space, bytes), What::Texts);
            has_unknown = true;
        }
    }
    has_unknown
}

/// Whether a complex column is one that the catalog does not name: the back pointer of a forwarded row, or the sparse
/// vector of a table with sparse columns. Both may have the number of a column that the record omits.
fn is_hidden(record: &Record<'_>, number: u16, bytes: &[u8], plan: &RowsetPlan) -> bool {
    const BACK_POINTER: [u8; 2] = [0, 4];
    const BACK_POINTER_BYTES: usize = offset(Structure::BackPointer, "back", 8) + 8;
    let is_back_pointer = record.kind() == RecordKind::Forwarded
        && record.variable_count() == number
        && bytes.len() == BACK_POINTER_BYTES
        && bytes.starts_with(&BACK_POINTER);
    is_back_pointer
        || plan.has_sparse && SparseVector::of(record).is_some_and(|vector| std::ptr::eq(vector.bytes(), bytes))
}

/// Whether the bytes of a complex column are a pointer to a value, which has nothing of the value itself: a pointer of a
/// form that the type can have (docs/format/lob.md#pointers-in-rows), to a file of the database.
fn is_pointer(column: &RowsetColumn, bytes: &[u8], objects: &dyn Objects) -> bool {
    const FILESTREAM_POINTER_BYTES: usize = 48;
    if column.status & column_status::FILESTREAM != 0 && bytes.len() == FILESTREAM_POINTER_BYTES {
        return true;
    }
    let is_long = matches!(column.info.length, 0 | u16::MAX);
    let (is_large, is_limited) = match column.info.xtype {
        xtype::TEXT | xtype::NTEXT | xtype::IMAGE | xtype::XML | xtype::JSON | xtype::CLR => (true, true),
        xtype::VARCHAR | xtype::NVARCHAR | xtype::VARBINARY => (is_long, true),
        xtype::SQL_VARIANT => (false, true),
        _ => (false, false),
    };
    match Pointer::read(bytes) {
        Pointer::Text { root, .. } => is_large && objects.has_file(root.page.file),
        Pointer::InlineRoot { links, .. } => {
            is_large && links.iter().all(|link| objects.has_file(link.target.page.file))
        }
        // A column that became a max type may still have such pointers.
        Pointer::Overflow { links, .. } => {
            is_limited && links.iter().all(|link| objects.has_file(link.target.page.file))
        }
        Pointer::Malformed | Pointer::Undescribed => false,
    }
}

/// A number in a row of sysobjvalues.
fn number(column: &RowsetColumn, record: &Record<'_>) -> Option<u64> {
    match column.stored(Level::Leaf, record) {
        Stored::Plain(bytes) => Some(format::bytes::unsigned(bytes)),
        _ => None,
    }
}

/// What is done with a definition in sysobjvalues (docs/format/catalog.md#sysobjvalues). `None` if it stays. A definition
/// without its class or its object may be of any kind.
fn definition(record: &Record<'_>, plan: &RowsetPlan, objects: &dyn Objects) -> Option<What> {
    let Some(definitions) = &plan.definitions else { return Some(What::Texts) };
    // `value` is a sql_variant int: type, version, then the encoding (docs/format/expressions.md#encoding).
    let is_unicode = match definitions.value.stored(Level::Leaf, record) {
        Stored::Plain(bytes) => bytes.get(2) == Some(&1),
        _ => false,
    };
    let form = objects.form(is_unicode);
    let (Some(class), Some(object_id)) = (number(&definitions.class, record), number(&definitions.object, record))
    else {
        return Some(What::Texts);
    };
    match class {
        1 if objects.is_rule((object_id as u32).cast_signed()) => Some(What::Formula { form, constants: true }),
        2 | 66 => Some(What::Formula { form, constants: false }),
        SETTINGS | SEQUENCE | EVENTS | PERIOD => None,
        _ => Some(What::Value),
    }
}

/// Classes of sysobjvalues with values of the system.
const SETTINGS: u64 = 7;
const SEQUENCE: u64 = 63;
const EVENTS: u64 = 70;
const PERIOD: u64 = 113;

/// Classes of sysobjvalues in which no row is a boundary of a partition, although an assembly, for example, may have the
/// ID of a partition function.
const WITHOUT_BOUNDARIES: [u64; 16] = [1, 2, 4, 10, 60, 63, 66, 70, 92, 93, 94, 113, 119, 123, 145, 153];

/// Whether `value` in sysobjvalues is a setting of the database or a boundary of a partition. For a check, a row without
/// a class or an object is neither.
fn is_setting(record: &Record<'_>, plan: &RowsetPlan, objects: &dyn Objects) -> bool {
    let Some(definitions) = &plan.definitions else { return false };
    let class = number(&definitions.class, record);
    let object_id = number(&definitions.object, record).map(|id| (id as u32).cast_signed());
    class == Some(SETTINGS)
        || class.is_none_or(|class| !WITHOUT_BOUNDARIES.contains(&class))
            && object_id.is_some_and(|id| objects.is_partition_function(id))
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
    for unused in plan.unused_at(level) {
        let end = usize::from(unused.end.min(pminlen)).min(space.len());
        if usize::from(unused.start) < end {
            add(unused.start.into()..end, What::Zero);
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
            found
                .cells
                .into_iter()
                .map(|cell| (of_records(cell.at.start)..of_records(cell.at.end), cell.what))
                .collect(),
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
        assert_eq!(
            (cells.last().map(|(_, what)| what), damaged),
            (Some(&What::Texts), 1),
            "no table with sparse columns"
        );
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
}
