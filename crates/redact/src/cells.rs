//! Finds the values on a page, and what is to be done with each.

use std::ops::Range;

use catalog::{Level, Stored};
use format::lob::Fragment;
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
}

/// What a definition of a class in sysobjvalues is, according to its object.
pub(crate) trait Objects {
    /// Whether the object is a CHECK constraint or a default.
    fn is_rule(&self, object_id: i32) -> bool;
    /// The form of definitions that are stored as char.
    fn form(&self, is_unicode: bool) -> Form;
}

/// Finds the values on a page of rows or off-row values. `plan` is the plan of the rowset that the page belongs to;
/// without a plan, only texts are found.
pub(crate) fn cells(bytes: &PageBytes, plan: Option<(&RowsetPlan, bool)>, objects: &dyn Objects) -> Cells {
    let page = Page::new(bytes);
    let header = page.header();
    let mut found = Cells::default();
    let mut order = SlotOrder::default();
    order.load(page);
    let kind = header.kind();
    for position in 0..order.entries().len() {
        let space = order.space(page, position);
        let Some(start) = order.entries().get(position).map(|entry| usize::from(entry.offset)) else { continue };
        let mut add = |at: Range<usize>, what: What| {
            found.cells.push(Cell { at: start + at.start..start + at.end, what });
        };
        let length = match kind {
            Some(PageType::TextMix | PageType::TextTree) => match Fragment::read(space) {
                Ok(fragment) => {
                    let keeps = plan.is_some_and(|(plan, _)| plan.keeps_off_row);
                    if let Some(data) = fragment.data().filter(|_| !keeps) {
                        add(within(space, data), What::Value);
                    }
                    fragment.bytes().len()
                }
                Err(_) => unread(space, &mut add),
            },
            Some(PageType::Data | PageType::Index) => {
                let is_index = kind == Some(PageType::Index);
                let record = if is_index { Record::index(space, header.pminlen.get()) } else { Record::data(space) };
                match (record, plan) {
                    (_, Some((plan, _))) if plan.keeps_rows => space.len(),
                    (Ok(record), Some((plan, is_leaf))) => {
                        let level = if is_leaf { Level::Leaf } else { Level::Node };
                        of_record(&record, space, plan, level, objects, &mut add);
                        record.bytes().len()
                    }
                    (Err(_), Some((plan, is_leaf))) => {
                        let level = if is_leaf { Level::Leaf } else { Level::Node };
                        of_damaged(space, plan, level, header.pminlen.get(), &mut add)
                    }
                    (Ok(record), None) => {
                        add(0..record.bytes().len(), What::Texts);
                        record.bytes().len()
                    }
                    (Err(_), None) => unread(space, &mut add),
                }
            }
            _ => unread(space, &mut add),
        };
        found.used.push(start..start + length);
    }
    found
}

/// A record of unknown form: only its texts change, after the status bytes and the length.
fn unread(space: &[u8], add: &mut impl FnMut(Range<usize>, What)) -> usize {
    add(4.min(space.len())..space.len(), What::Texts);
    space.len()
}

/// The range of `part`, which is a part of `whole`.
fn within(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len());
    start..(start + part.len()).min(whole.len())
}

fn of_record(
    record: &Record<'_>,
    space: &[u8],
    plan: &RowsetPlan,
    level: Level,
    objects: &dyn Objects,
    add: &mut impl FnMut(Range<usize>, What),
) {
    if record.kind() == RecordKind::ForwardingStub || RecordKind::is_tag_alone(record.status()) {
        return;
    }
    let is_row_of_table = !matches!(record.kind(), RecordKind::Index | RecordKind::GhostIndex);
    for PlannedColumn { column, action } in &plan.columns {
        let (offset, null_bit, _) = column.place(level);
        if offset == 0 || column.is_sparse() && is_row_of_table || !record.has_column(null_bit) && null_bit != 0 {
            continue;
        }
        let bytes = match u16::try_from(offset) {
            Ok(at) => record.fixed(at, column.info.length),
            Err(_) => match record.variable(offset.unsigned_abs()) {
                Some((bytes, false)) => Some(bytes),
                _ => None,
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
        };
        add(within(space, bytes), what);
    }
}

/// What is done with a definition in sysobjvalues (docs/format/catalog.md#sysobjvalues).
fn definition(record: &Record<'_>, plan: &RowsetPlan, objects: &dyn Objects) -> Option<What> {
    let definitions = plan.definitions.as_ref()?;
    let number = |column: &catalog::RowsetColumn| match column.stored(Level::Leaf, record) {
        Stored::Plain(bytes) => Some(format::bytes::unsigned(bytes)),
        _ => None,
    };
    // `value` is a sql_variant int: type, version, then the encoding (docs/format/expressions.md#encoding).
    let is_unicode = match definitions.value.stored(Level::Leaf, record) {
        Stored::Plain(bytes) => bytes.get(2) == Some(&1),
        _ => false,
    };
    let form = objects.form(is_unicode);
    let object_id = (number(&definitions.object)? as u32).cast_signed();
    Some(match number(&definitions.class)? {
        1 if objects.is_rule(object_id) => What::Formula { form, constants: true },
        1 | 4 | 10 | 60 => What::Value,
        2 | 66 => What::Formula { form, constants: false },
        _ => return None,
    })
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
