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
mod tests;
