//! Values of rows: stored columns, and results of expressions in the catalog. Expressions are compiled once, and
//! evaluated without allocating memory for each row.

pub(crate) mod budget;
pub(crate) mod column_names;
pub(crate) mod integers;
pub(crate) mod purity;
pub(crate) mod vectors;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use catalog::{Database, ExpressionKind, Level, Rowset, RowsetColumn, Stored, column_status};
use expr::{Field, Undecided};
use findings::registry::limits::{self, Reason};
use format::collation::CollationId;
use format::record::Record;
use format::types::{TypeInfo, is_decimal, xtype};

/// A column, with the information that is needed to find its value in a row.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Column {
    /// The description of the column in its rowset.
    pub(crate) column: RowsetColumn,
    /// Whether the rows are rows of a nonclustered index.
    pub(crate) in_index: bool,
    /// Whether the column is the uniquifier of a clustered index that is not unique.
    pub(crate) is_uniquifier: bool,
    /// Whether the rows are index rows that store a value which the table computes but does not store.
    pub(crate) is_computed: bool,
    /// Length of the value, if the column is stored in the fixed part and is neither a bit nor, in a table, sparse.
    pub(crate) fixed_length: Option<u16>,
}

impl Column {
    /// A column of a heap or clustered index.
    pub(crate) fn of_table(column: &RowsetColumn) -> Self {
        Self::new(column, false)
    }

    /// A column of a nonclustered index.
    pub(crate) fn of_index(column: &RowsetColumn) -> Self {
        Self::new(column, true)
    }

    fn new(column: &RowsetColumn, in_index: bool) -> Self {
        let is_fixed = column.leaf_offset > 0 && column.info.xtype != xtype::BIT && (in_index || !column.is_sparse());
        let fixed_length = is_fixed.then_some(column.info.length);
        Self { column: column.clone(), in_index, is_uniquifier: false, is_computed: false, fixed_length }
    }

    /// Whether the rows are table rows that store the column in their sparse vector. If the vector does not contain a
    /// value for the column, the value is NULL.
    pub(crate) fn is_in_vector(&self) -> bool {
        self.column.is_sparse() && !self.in_index
    }

    /// For a bit column, the position of the bit in its byte.
    pub(crate) fn bit(&self) -> Option<u8> {
        // In a sparse vector, each bit column has its own byte.
        let bit = if self.is_in_vector() { 0 } else { self.column.leaf_bit };
        (self.column.info.xtype == xtype::BIT).then_some(bit)
    }

    /// The value of the column in a leaf record. If the record does not store a value, the result is the default of the
    /// column. The value of a bit column is 0 or 1.
    #[inline]
    pub(crate) fn value<'a>(&'a self, record: &Record<'a>) -> Stored<'a> {
        // Most values are in the fixed part of the row; for these values, the following tests are enough.
        if let Some(length) = self.fixed_length
            && record.has_column(self.column.leaf_null_bit)
            && record.null_bit(self.column.leaf_null_bit) != Some(true)
            && let Some(bytes) = record.fixed(self.column.leaf_offset.unsigned_abs(), length)
        {
            return Stored::Plain(bytes);
        }
        self.any_value(record)
    }

    fn any_value<'a>(&'a self, record: &Record<'a>) -> Stored<'a> {
        let stored = self.column.stored(Level::Leaf, record);
        match stored {
            // A uniquifier that is absent, empty or NULL is 0 (docs/format/index-records.md#uniquifier).
            Stored::Absent | Stored::Null | Stored::Plain(&[]) if self.is_uniquifier => Stored::Plain(&[0; 4]),
            Stored::Absent if self.in_index => Stored::Plain(&[]),
            Stored::Absent => match &self.column.default {
                Some(default) => Stored::Plain(default),
                None if self.column.status & column_status::HAS_DEFAULT != 0 => Stored::Absent,
                None => Stored::Null,
            },
            Stored::Plain(bytes) => match self.bit() {
                Some(bit) => {
                    Stored::Plain(if bytes.first().is_some_and(|byte| byte >> bit & 1 != 0) { &[1] } else { &[0] })
                }
                None => stored,
            },
            _ => stored,
        }
    }
}

/// An expression over the columns of a table, compiled for the rows of one of its rowsets.
#[derive(Clone)]
pub(crate) struct Formula {
    program: Arc<expr::Program>,
    /// The columns that the expression refers to, in the order of the column numbers in the compiled expression.
    columns: Vec<Column>,
    /// The type in which the result is stored; meaningless for a filter.
    pub(crate) target: TypeInfo,
}

impl Formula {
    /// Returns the approximate size in memory, in bytes. The size includes a second copy of the columns, because all
    /// code that uses a formula keeps its own copy.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of::<Self>() + self.program.bytes() + self.columns.len() * 2 * (size_of::<Column>() + 32)) as u64
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "formula of {} columns", self.columns.len())
    }
}

impl Hash for Formula {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { program, columns, target } = self;
        // The derived text of a program has all its nodes. Programs are few, so making the text costs little.
        format!("{program:?}").hash(state);
        columns.hash(state);
        target.hash(state);
    }
}

/// Buffers for evaluations, reused from row to row.
#[derive(Default)]
pub(crate) struct ValueScratch {
    scratch: expr::Scratch,
    bytes: Vec<u8>,
}

/// A row that provides the operands of an expression.
struct Row<'f, 'r> {
    columns: &'f [Column],
    record: Record<'r>,
}

impl expr::Row for Row<'_, '_> {
    #[inline]
    fn field(&self, index: usize) -> Field<'_> {
        match self.columns.get(index).map(|column| column.value(&self.record)) {
            Some(Stored::Null) => Field::Null,
            Some(Stored::Plain(bytes)) => Field::Bytes(bytes),
            Some(Stored::Complex(_)) => Field::OffRow,
            Some(Stored::Absent) | None => Field::Unknown,
        }
    }
}

impl ValueScratch {
    /// Sets the number of steps that evaluations may use from now on.
    pub(crate) fn allow(&mut self, steps: u64) {
        self.scratch.allow(steps);
    }

    /// The number of steps that may still be used.
    pub(crate) fn allowed(&mut self) -> u64 {
        self.scratch.allowed()
    }
}

impl Formula {
    /// Returns whether evaluating the expression uses steps, which are limited for each page.
    pub(crate) fn takes_steps(&self) -> bool {
        self.program.takes_steps()
    }

    /// Whether the expression refers to the column with this null bit.
    pub(crate) fn reads(&self, null_bit: u16) -> bool {
        self.columns.iter().any(|column| column.column.leaf_null_bit == null_bit)
    }

    /// Whether the row satisfies the filter; an error if that is uncertain.
    pub(crate) fn matches(&self, record: &Record<'_>, room: &mut ValueScratch) -> Result<bool, Undecided> {
        let row = Row { columns: &self.columns, record: *record };
        self.program.matches(&row, &mut room.scratch)
    }

    /// Whether the condition is true for the row; `None` for UNKNOWN, and an error if the result is uncertain.
    pub(crate) fn truth(&self, record: &Record<'_>, room: &mut ValueScratch) -> Result<Option<bool>, Undecided> {
        let row = Row { columns: &self.columns, record: *record };
        self.program.truth(&row, &mut room.scratch)
    }

    /// The expression as an integer expression, if it is one.
    pub(crate) fn integers(&self) -> Option<expr::Integers> {
        expr::Integers::of(&self.program)
    }

    /// Returns the condition as comparisons of integers and tests for NULL; `None` if it contains anything else.
    pub(crate) fn selection(&self) -> Option<expr::Selection> {
        expr::Selection::of(&self.program)
    }

    /// The columns that the expression refers to, with their names.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.program.columns().iter().map(String::as_str).zip(&self.columns)
    }

    /// The result of the expression, in the format in which rows store it; `None` for NULL, and an error if the result
    /// is uncertain.
    pub(crate) fn value<'a>(
        &self,
        record: &Record<'_>,
        room: &'a mut ValueScratch,
    ) -> Result<Option<&'a [u8]>, Undecided> {
        let row = Row { columns: &self.columns, record: *record };
        let ValueScratch { scratch, bytes } = room;
        let value = self.program.evaluate(&row, scratch)?;
        if value.is_null() {
            return Ok(None);
        }
        bytes.clear();
        expr::encode_into(value, self.target, bytes)
            .ok_or(Undecided { reason: "a value that its column's type cannot hold" })?;
        Ok(Some(bytes))
    }
}

/// Whether these bytes are a decimal zero. The sign of a computed zero is undocumented.
pub(crate) fn is_zero_decimal(info: TypeInfo, bytes: &[u8]) -> bool {
    is_decimal(info) && bytes.split_first().is_some_and(|(_, magnitude)| magnitude.iter().all(|byte| *byte == 0))
}

/// Compiles the expressions of a table for the rows of one of its rowsets.
pub(crate) struct Expressions<'a> {
    /// The database.
    pub(crate) database: &'a Database,
    /// A rowset of the table.
    pub(crate) rowset: &'a Rowset,
}

impl Expressions<'_> {
    /// The filter of an index.
    pub(crate) fn filter(&self, index_id: i32) -> Result<Formula, Reason> {
        self.formula((self.rowset.object_id, ExpressionKind::Filter, index_id.cast_unsigned()))
    }

    /// The condition of a CHECK constraint.
    pub(crate) fn check(&self, constraint_id: i32) -> Result<Formula, Reason> {
        let formula = self.formula((constraint_id, ExpressionKind::Check, 0))?;
        formula.program.is_condition().then_some(formula).ok_or_else(|| (&limits::EXPRESSION_NO_CONDITION).into())
    }

    /// The definition of a computed column, if the type of its result is exactly the type `info` of the stored column.
    pub(crate) fn computed_column(&self, id: u32, info: TypeInfo) -> Result<Formula, Reason> {
        let formula = self.column_of_any_type(id)?;
        let result = formula.program.result_type().ok_or(&limits::EXPRESSION_NO_VALUE)?;
        let key = |info: TypeInfo| (info.xtype, info.precision, info.scale, info.length);
        if key(result) != key(info) {
            return Err(limits::EXPRESSION_TYPE.with(&[&info.declaration(), &result.declaration()]));
        }
        Ok(Formula { target: info, ..formula })
    }

    /// The definition of a computed column, whatever the type of its result is.
    pub(crate) fn column_of_any_type(&self, id: u32) -> Result<Formula, Reason> {
        self.formula((self.rowset.object_id, ExpressionKind::ComputedColumn, id))
    }

    /// The expression that the catalog stores for this object, kind and sub-ID, compiled for the columns of the rowset.
    fn formula(&self, (object_id, kind, sub_id): (i32, ExpressionKind, u32)) -> Result<Formula, Reason> {
        let text = self
            .database
            .expression(object_id, kind, sub_id.cast_signed())
            .and_then(|expression| expression.text.as_deref())
            .ok_or(&limits::EXPRESSION_MISSING)?;
        if !text.is_ascii() {
            return Err(limits::EXPRESSION_CODE_PAGE.with(&[&text]));
        }
        let lookup = |name: &str| {
            self.stored(name).map(|column| expr::ColumnType {
                info: column.info,
                collation: column.collation,
                nullable: true,
            })
        };
        let collation = CollationId(self.database.boot.as_ref().map_or(0, |boot| boot.collation));
        let program = expr::compile_within(text, collation, &lookup)
            .map_err(|unsupported| limits::EXPRESSION_UNSUPPORTED.with(&[&text, &unsupported.what]))?;
        let columns = program.columns().iter().map(|name| self.stored(name).map(Column::of_table));
        let columns = columns.collect::<Option<_>>().ok_or(&limits::EXPRESSION_COLUMN)?;
        Ok(Formula { program: Arc::new(program), columns, target: TypeInfo::default() })
    }

    /// The column with this name, if the rows store it in a form that expressions can read.
    fn stored(&self, name: &str) -> Option<&RowsetColumn> {
        let columns = self.database.columns.get(&self.rowset.object_id)?;
        let column = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))?;
        self.rowset.layout.column(column.id).filter(|column| !is_sparse_and_padded(column) && !column.is_vardecimal())
    }
}

/// Whether the column is sparse and has a padded type. For these types it is unknown whether sparse values are stored
/// with their padding.
pub(crate) fn is_sparse_and_padded(column: &RowsetColumn) -> bool {
    column.is_sparse() && matches!(column.info.xtype, xtype::CHAR | xtype::NCHAR | xtype::BINARY)
}

#[cfg(test)]
mod tests {
    use catalog::RowsetColumn;
    use format::same_shape::SameShapeRows;
    use format::{Page, PageType};

    use super::*;
    use crate::test_pages::TestPage;
    use crate::values::integers::IntegerColumn;

    /// An int column at offset 4. In rows with only one column, the bytes at this offset belong to a dropped column.
    fn added(default: Option<Box<[u8]>>) -> Column {
        let info = TypeInfo { length: 4, ..TypeInfo::from_ti(xtype::INT.into()) };
        Column::of_table(&RowsetColumn {
            id: 2,
            physical: 2,
            info,
            collation: CollationId(0),
            status: 0,
            key_ordinal: 0,
            leaf_offset: 4,
            node_offset: 0,
            leaf_null_bit: 2,
            node_null_bit: 0,
            default,
            leaf_bit: 0,
            node_bit: 0,
        })
    }

    /// A row whose column count is `columns`.
    fn row(columns: u8) -> [u8; 11] {
        [0x10, 0, 8, 0, 7, 7, 7, 7, columns, 0, 0]
    }

    #[test]
    fn a_column_in_the_place_of_a_dropped_one_has_no_value_in_older_rows() {
        let (older, newer) = (row(1), row(2));
        let [older, newer] = [&older, &newer].map(|bytes| Record::data(bytes).unwrap());
        assert_eq!(added(None).value(&older), Stored::Null);
        assert_eq!(added(Some([9, 0, 0, 0].into())).value(&older), Stored::Plain(&[9, 0, 0, 0]));
        assert_eq!(added(None).value(&newer), Stored::Plain(&[7; 4]));
    }

    #[test]
    fn nor_has_it_one_in_all_rows_of_a_page_at_once() {
        for columns in [1, 2] {
            let bytes = TestPage::new(PageType::Data).record(&row(columns)).record(&row(columns)).finish();
            let (page, mut same_shape) = (Page::new(&bytes), SameShapeRows::default());
            assert!(same_shape.load(page, false));
            let mut values = [0; 2];
            let are_read = IntegerColumn::of(&added(None)).unwrap().read(same_shape.of(page), &mut values);
            assert_eq!(are_read, columns == 2, "{columns} columns");
        }
    }
}
