//! The content of each unit of a rowset, and the columns that may have off-row values. Both are derived before the
//! sweep.

use std::hash::Hash;

use catalog::{Database, Rowset, RowsetColumn, UnitKind, column_status};
use findings::registry::limits::{self, Limit};
use format::types::{TypeInfo, xtype};
use sums::PerUnit;

use crate::basis::meaning::{Meaning, meaning};
use crate::basis::units::{Shape, UnitIndex, Units};
use crate::page::expanded::expansion;
use crate::survey::Survey;

/// The facts about each unit that are known before the sweep.
#[derive(Default)]
pub(crate) struct Plans {
    /// How to read the rows of each in-row unit, indexed by the ordinal of the unit.
    rows: PerUnit<Option<Box<RowPlan>>>,
    rowsets: Vec<RowsetPlan>,
    /// Whether some values of a LOB unit belong to ntext columns, indexed by the ordinal of the unit.
    has_ntext: Vec<bool>,
}

/// A rowset with units for off-row values.
pub(crate) struct RowsetPlan {
    /// The unit with the rows of the rowset.
    pub(crate) in_row: UnitIndex,
    /// The LOB and row-overflow units of the rowset.
    pub(crate) text_units: Vec<UnitIndex>,
    /// Why the rows cannot be read; `None` if they can.
    pub(super) why_not: Option<&'static Limit>,
    /// Whether the off-row values may also be referenced from outside the rows, as in a columnstore index.
    pub(super) is_unknown: bool,
}

/// How to read the complex columns in the rows of a rowset.
pub(crate) struct RowPlan {
    pub(super) lob: Option<UnitIndex>,
    pub(super) overflow: Option<UnitIndex>,
    /// The variable-length columns, indexed by their number in the record, from 0.
    pub(super) columns: Vec<Column>,
    /// IDs of sparse columns whose values may be off-row; `None` if the table has no sparse columns.
    pub(super) sparse: Option<Vec<u32>>,
    /// Whether some columns are of type ntext.
    pub(super) has_ntext: bool,
}

meaning!(RowPlan { columns, sparse, has_ntext; units lob, overflow });

/// A variable-length column.
#[derive(Clone, Copy, Default, Hash)]
pub(super) struct Column {
    pub(super) id: u32,
    pub(super) role: ColumnRole,
    pub(super) is_ntext: bool,
}

/// Where the values of a column may be stored.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(super) enum ColumnRole {
    /// The status and type of the column do not determine where its values may be stored.
    #[default]
    Unknown,
    /// A (max) or LOB type: values may be in the LOB unit.
    Large,
    /// A type of limited length: values may be moved to the row-overflow unit.
    Limited,
    /// Values are always stored in the row.
    Never,
}

impl Plans {
    /// Adds everything by which the sweep judges the rows or the off-row values of a unit.
    pub(super) fn add_meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>) {
        self.has_ntext(unit).hash(to);
        if let Some(plan) = self.rows(unit) {
            plan.add_to(to);
        }
    }

    /// Derives the plans for the units of a database. Only in-row units that have pages get a row plan.
    pub(crate) fn new(database: &Database, units: &Units, survey: &Survey) -> Self {
        let has_ntext = vec![false; units.list().len()];
        let mut plans = Self { rows: PerUnit::new(units.list().len()), rowsets: Vec::new(), has_ntext };
        for rowset in &database.rowsets {
            plans.add(database, (units, survey), rowset);
        }
        plans
    }

    fn add(&mut self, database: &Database, (units, survey): (&Units, &Survey), rowset: &Rowset) {
        let of_kind = |kind: UnitKind| {
            let mut found =
                rowset.units.iter().filter(|unit| database.units.get(**unit).is_some_and(|u| u.kind == kind));
            found.next().map(|unit| *unit as UnitIndex)
        };
        let Some(in_row) = of_kind(UnitKind::InRow) else { return };
        let Some(unit) = units.get(in_row) else { return };
        let (lob, overflow) = (of_kind(UnitKind::Lob), of_kind(UnitKind::Overflow));
        let is_unknown = unit.shape == Shape::Unknown;
        let why_not = if is_unknown {
            Some(&limits::LOB_COLUMNSTORE)
        } else if unit.compressed && expansion(rowset).is_none() {
            Some(&limits::ROWS_COMPRESSION)
        } else if !database.layouts_are_complete() || rowset.layout.columns.is_empty() {
            Some(&limits::ROWS_COLUMNS_UNKNOWN)
        } else {
            None
        };
        let text_units: Vec<UnitIndex> = lob.into_iter().chain(overflow).collect();
        if !text_units.is_empty() {
            self.rowsets.push(RowsetPlan { in_row, text_units, why_not, is_unknown });
        }
        if !survey.has_pages(in_row) || why_not.is_some() {
            return;
        }
        if let Some(place) = self.rows.get_mut(in_row as usize) {
            let layout = &rowset.layout.columns;
            let sparse = (rowset.index_id <= 1 && layout.iter().any(RowsetColumn::is_sparse)).then(|| sparse(layout));
            let columns = columns(layout);
            let has_ntext = columns.iter().any(|column| column.is_ntext);
            if let Some(units) = lob.filter(|_| has_ntext).and_then(|unit| self.has_ntext.get_mut(unit as usize)) {
                *units = true;
            }
            *place = Some(Box::new(RowPlan { lob, overflow, columns, sparse, has_ntext }));
        }
    }

    /// Returns how to read the rows of a unit; `None` if the unit has no pages or its rows cannot be read.
    pub(crate) fn rows(&self, unit: UnitIndex) -> Option<&RowPlan> {
        self.rows.get(unit as usize)?.as_deref()
    }

    /// Whether some values of a LOB unit belong to ntext columns.
    pub(super) fn has_ntext(&self, unit: UnitIndex) -> bool {
        self.has_ntext.get(unit as usize).copied().unwrap_or_default()
    }

    /// The rowsets with units for off-row values.
    pub(crate) fn rowsets(&self) -> &[RowsetPlan] {
        &self.rowsets
    }
}

fn sparse(layout: &[RowsetColumn]) -> Vec<u32> {
    let may_be_off_row = |column: &&RowsetColumn| column.is_sparse() && role_of(column.info) != ColumnRole::Unknown;
    layout.iter().filter(may_be_off_row).map(|column| column.id).collect()
}

fn columns(layout: &[RowsetColumn]) -> Vec<Column> {
    let number = |column: &RowsetColumn| usize::from(column.leaf_offset.unsigned_abs());
    let variable = || layout.iter().filter(|column| column.leaf_offset < 0);
    let mut columns = vec![Column::default(); variable().map(number).max().unwrap_or_default()];
    for column in variable() {
        if let Some(place) = columns.get_mut(number(column) - 1) {
            let is_ntext = column.info.xtype == xtype::NTEXT && !column.is_dropped();
            *place = Column { id: column.id, role: role(column), is_ntext };
        }
    }
    columns
}

/// Returns where the values of a column may be stored. A dropped column is treated like any other column, because its
/// type and its values remain.
fn role(column: &RowsetColumn) -> ColumnRole {
    if column.status & column_status::UNIQUIFIER != 0 {
        return ColumnRole::Never;
    }
    if column.status & (column_status::FILESTREAM | column_status::SPARSE) != 0 {
        return ColumnRole::Unknown;
    }
    role_of(column.info)
}

fn role_of(info: TypeInfo) -> ColumnRole {
    use xtype::{CLR, IMAGE, JSON, NTEXT, NVARCHAR, SQL_VARIANT, TEXT, VARBINARY, VARCHAR, XML};
    match info.xtype {
        TEXT | NTEXT | IMAGE | XML | JSON | CLR => ColumnRole::Large,
        VARCHAR | NVARCHAR | VARBINARY if matches!(info.length, 0 | u16::MAX) => ColumnRole::Large,
        VARCHAR | NVARCHAR | VARBINARY | SQL_VARIANT => ColumnRole::Limited,
        _ => ColumnRole::Unknown,
    }
}
