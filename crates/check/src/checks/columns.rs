//! Checks the columns of rows: the shape of the record against the catalog, NULL and length rules, data purity.
//!
//! The rules for the rows of a rowset are compiled once (`program`), and each row is checked without copying it.

mod anti_matter;
mod heads;
mod program;
mod sparse;
mod together;

use std::collections::BTreeMap;

use catalog::Database;
use findings::registry::limits::{self, Limit};
use findings::{Coverage, Finding, Place, registry};
use format::RecordId;
use format::bytes::u32_at;
use format::compressed::Doubt;
use format::domain::{Domain, may_be_encrypted};
use format::record::{Record, RecordKind, VERSION_TAG_BYTES, status};
use format::sparse::SparseVector;
use format::types::xtype;
use sums::spill::TempStore;
use sums::{ByPlan, CheckSums, PerUnit, sums};

use crate::basis::meaning::{Meaning, PlanNames};
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Shape, UnitIndex, Units};
use crate::page::rowsets::may_have_off_row;
use crate::survey;
use crate::sweep::context::Context;
use crate::sweep::row_check::{Handled, Row, RowCheck, RowPage};
use crate::values::purity::impure;

pub(crate) use anti_matter::metadata as anti_matter;
pub(crate) use program::Plans;
use program::{Column, Program, VariableCheck, bit_of};

/// Length of a text pointer: the ID and the address of the value's root (docs/format/lob.md#text-pointer).
const TEXT_POINTER_BYTES: usize = 16;

/// Length of the shortest value that is encrypted by the client (Always Encrypted), for any type: version, tag,
/// initialization vector and one block.
const MIN_ENCRYPTED_BYTES: u16 = 65;

sums! {
    /// The sums that one thread adds up, or the merged sums of all threads.
    pub(crate) struct Sums {
        /// Numbers of rows and values, by unit.
        units: PerUnit<UnitSums>,
        /// Numbers of values that were not verified, by the counter of their column (see `Column::counter`).
        unverified: ByPlan<u64>,
        /// Off-row values that must be read after the sweep.
        heads: heads::DeferredValues,
    }
}

sums! {
    #[derive(Clone, Copy, Default, Debug)]
    struct UnitSums {
        rows: u64,
        values: u64,
    }
}

impl Sums {
    /// Empty sums.
    pub(crate) fn new(units: usize) -> Self {
        Self { units: PerUnit::new(units), unverified: ByPlan::default(), heads: heads::DeferredValues::default() }
    }

    /// Three numbers: the rows whose columns were checked, the values in these rows that were verified, and the values
    /// in these rows that were not verified.
    pub(crate) fn totals(&self, plans: &Plans) -> (u64, u64, u64) {
        let mut unverified: u64 = self.unverified.iter().sum();
        let (mut rows, mut values) = (0, 0);
        for (at, unit) in self.units.touched() {
            let columns = plans.get(at).map_or(&[][..], |program| &program.columns);
            let unchecked = columns.iter().filter(|column| column.not_verified.is_some()).count() as u64;
            rows += unit.rows;
            values += unit.values;
            unverified += unit.rows * unchecked;
        }
        (rows, values.saturating_sub(unverified), unverified)
    }

    /// Adds one to the number of values in the rows of a unit.
    fn value(&mut self, unit: UnitIndex) {
        if let Some(unit) = self.units.get_mut(unit as usize) {
            unit.values += 1;
        }
    }

    fn not_verified(&mut self, column: &Column) {
        *self.unverified.get_mut(column.counter) += 1;
    }
}

impl CheckSums for Sums {
    fn put_in_order(&mut self, _: &TempStore) {
        self.heads.put_in_order();
    }

    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        (&self.units, &self.unverified, self.heads.seen())
    }
}

impl RowCheck for Plans {
    type Sums = Sums;
    type Scratch = ();
    type Rest = Part;

    fn bytes_per_thread(database: &Database) -> u64 {
        let types = [xtype::XML, xtype::SQL_VARIANT, xtype::CLR, xtype::NVARCHAR];
        let rowsets = database.rowsets.iter().filter(|rowset| may_have_off_row(rowset, &types));
        let values = rowsets.fold(0u64, |values, rowset| values.saturating_add(rowset.rows.unsigned_abs()));
        heads::bytes_at_most(values)
    }

    fn sums(&self, units: usize) -> Sums {
        Sums::new(units)
    }

    fn wants(&self, context: &Context<'_>, unit: UnitIndex) -> bool {
        self.get(unit as usize).is_some() && context.units.get(unit).is_some_and(|unit| !context.leaves_out(unit))
    }

    fn names(&self, units: &Units, to: &mut PlanNames<'_>) {
        let mut named = BTreeMap::new();
        for (at, program) in self.programs() {
            let unit = units.get(at as UnitIndex).map(|unit| unit.id);
            named.extend(program.columns.iter().zip(0..).map(|(column, place)| (column.counter, (unit, place))));
        }
        let counters = named.last_key_value().map_or(0, |(last, _)| last + 1);
        (0..counters).for_each(|counter| to.add(&named.get(&counter)));
    }

    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>) {
        self.add_meaning(unit as usize, to);
    }

    fn page(&self, context: &Context<'_>, page: &RowPage<'_>, sums: &mut Sums, (): &mut ()) -> Handled<Part> {
        together::page(self, context, page.unit, page.rows, sums)
    }

    fn row(
        &self,
        context: &Context<'_>,
        of_row: &Row<'_>,
        part: Part,
        (sums, ()): (&mut Sums, &mut ()),
        findings: &mut Vec<Finding>,
    ) {
        row(self, context, (of_row, part), sums, findings);
        doubts(self, context, of_row, sums, findings);
    }

    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        heads::settle(self, context, sums, to.findings);
        note(self, context, swept, sums, to.coverage);
        let outcome = &mut to.outcome;
        (outcome.rows_checked, outcome.column_values_checked, outcome.column_values_not_verified) = sums.totals(self);
    }
}

/// Which columns of a row are checked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Part {
    #[default]
    All,
    /// Only variable columns. The fixed columns were already checked together with those of other rows.
    Variables,
}

/// Checks the columns of a row.
fn row(
    plans: &Plans,
    context: &Context<'_>,
    (row, part): (&Row<'_>, Part),
    sums: &mut Sums,
    findings: &mut Vec<Finding>,
) {
    let Row { unit, at, ref record, .. } = *row;
    let (Some(program), Some(tally)) = (plans.get(unit as usize), sums.units.get_mut(unit as usize)) else {
        return;
    };
    let is_forwarded = record.kind() == RecordKind::Forwarded;
    if part == Part::All {
        tally.rows += 1;
        tally.values += present(program, |null_bit| record.has_column(null_bit));
    }
    let nulls = record.null_word(0);
    let mut check = RowLook { context, program, unit, at, record, nulls, sums, findings };
    // The last variable column of a forwarded row is the back pointer to its stub, so it is not checked as a column.
    let variable = record.variable_count() - u16::from(is_forwarded && record.variable_count() > 0);
    if part == Part::All {
        if record.is_versioned() {
            check.version_tag();
        }
        if let Some(column) = &program.anti_matter {
            check.anti_matter(column);
        }
        check.shape(variable);
        check.not_null();
        if context.options.checks_purity() {
            check.fixed();
        }
    }
    for (number, (bytes, complex)) in record.variables().take(variable.into()).enumerate() {
        // The sparse vector is stored after all variable columns that existed when the row was written, so its number
        // may be that of a column added later.
        let may_be_vector = program.has_sparse && complex && number + 1 == usize::from(variable);
        match SparseVector::read(bytes).filter(|_| may_be_vector) {
            Some(vector) => check.sparse(vector),
            // An empty value is valid in every column.
            None if bytes.is_empty() && !complex => {}
            None if may_be_vector && check.is_nothing_known(number, bytes) => check.unknown_sparse(),
            None => check.variable(number, bytes, complex),
        }
    }
}

/// Checks the values of a compressed row that could not be written to its expanded record.
fn doubts(plans: &Plans, context: &Context<'_>, row: &Row<'_>, sums: &mut Sums, findings: &mut Vec<Finding>) {
    let Row { unit, at, ref record, .. } = *row;
    let Some(program) = plans.get(unit as usize) else { return };
    for (null_bit, doubt) in row.doubts() {
        let Some(column) = program.columns.iter().find(|column| column.null_bit == null_bit) else { continue };
        let mut check = RowLook { context, program, unit, at, record, nulls: 0, sums, findings };
        match doubt {
            Doubt::OutOfDomain if !context.options.checks_purity() => {}
            Doubt::OutOfDomain if column.not_verified.is_none() => check.purity(Some(false), column),
            Doubt::TooLong { length, most } if length < MIN_ENCRYPTED_BYTES => {
                check.record_check(format!("Valid length of column '{}'", column.name), length, most);
            }
            _ => check.sums.not_verified(column),
        }
    }
}

/// The number of stored columns that a record has. `has_column` says whether the record has the column with a given
/// null bit.
fn present(program: &Program, has_column: impl Fn(u16) -> bool) -> u64 {
    if has_column(program.last_null_bit) {
        return program.stored_columns;
    }
    program.columns.iter().filter(|column| column.offset != 0 && has_column(column.null_bit)).count() as u64
}

/// Whether a version tag is possible: a tag without a transaction number cannot point to an older version.
fn is_possible(tag: &[u8; VERSION_TAG_BYTES]) -> bool {
    let (version, transaction) = tag.split_at(8);
    transaction.iter().any(|byte| *byte != 0) || version.iter().all(|byte| *byte == 0)
}

struct RowLook<'a, 'r> {
    context: &'a Context<'a>,
    program: &'a Program,
    unit: UnitIndex,
    at: RecordId,
    record: &'a Record<'r>,
    /// The first word of the null bitmap.
    nulls: u64,
    sums: &'a mut Sums,
    findings: &'a mut Vec<Finding>,
}

impl RowLook<'_, '_> {
    #[cold]
    fn finding(&self, check: &'static registry::Check) -> Finding {
        of_row(self.context, self.unit, self.at, Finding::new(check))
    }

    #[cold]
    fn report(&mut self, check: &'static registry::Check, column: &Column) {
        let finding = self.finding(check).text_value("column", &column.name);
        self.findings.push(finding.text_value("type", column.info.name()));
    }

    #[cold]
    fn record_check(&mut self, test: impl Into<String>, value: impl Into<i64>, against: impl Into<i64>) {
        let finding = self.finding(&registry::RECORD_COLUMNS).text_value("test", test);
        self.findings.push(finding.number("value", value).number("against", against));
    }

    fn version_tag(&mut self) {
        let Some(tag) = self.record.version_tag().filter(|_| self.program.version_tags_are_known) else { return };
        if is_possible(tag) {
            return;
        }
        if let Some(version) = RecordId::read(tag, 0) {
            let finding = self.finding(&registry::ROW_VERSION);
            self.findings.push(finding.page_value("version_page", version.page).number("version_slot", version.slot));
        }
    }

    /// Checks that the record has no more columns than the rowset, and that its fixed part contains all fixed columns
    /// that its column count includes.
    fn shape(&mut self, variable: u16) {
        let (program, record) = (self.program, self.record);
        let has_bitmap = record.status() & status::NULL_BITMAP != 0;
        let is_index_row = record.kind() == RecordKind::Index;
        // Each change of an index rewrites its rows, so an index row has all columns. A table row may have been written
        // before some columns were added.
        if is_index_row && has_bitmap && record.column_count() < program.null_bits {
            self.record_check("Valid column count", record.column_count(), program.null_bits);
        }
        // Table rows have a null bitmap even if no column is nullable. Only rows of tables whose columns are all sparse
        // have none.
        if !is_index_row && !has_bitmap && !program.has_sparse && program.null_bits > 0 {
            self.record_check("Valid NULL bitmap", record.column_count(), program.null_bits);
        }
        if record.column_count() > program.max_null_bit {
            self.record_check("Valid column count", record.column_count(), program.max_null_bit);
        }
        if variable > program.max_variable {
            self.record_check("Valid variable column count", variable, program.max_variable);
        }
        if record.fixed_end() > program.max_fixed_end {
            self.record_check("Valid fixed length", record.fixed_end(), program.max_fixed_end);
        }
        if program.fixed_reach > record.fixed_end() {
            self.missing();
        }
    }

    /// Checks each fixed column that would extend beyond the record's fixed part: the record must either lack the
    /// column or mark it as NULL.
    #[cold]
    fn missing(&mut self) {
        let (program, record) = (self.program, self.record);
        for column in program.columns.iter().filter(|column| column.offset > 0) {
            let end = column.offset.unsigned_abs().saturating_add(column.info.length);
            if end > record.fixed_end() && record.null_bit(column.null_bit) == Some(false) {
                self.record_check(format!("Valid end of column '{}'", column.name), end, record.fixed_end());
            }
        }
    }

    fn is_null(&self, null_bit: u16) -> bool {
        match bit_of(null_bit) {
            (0, bit) => self.nulls & bit != 0,
            _ => self.record.null_bit(null_bit) == Some(true),
        }
    }

    /// Checks that no NOT NULL column of the record is NULL.
    fn not_null(&mut self) {
        for &(word, mask) in &self.program.not_null {
            let nulls = if word == 0 { self.nulls } else { self.record.null_word(word) };
            if nulls & mask != 0 {
                self.nulls_in(word, nulls & mask);
            }
        }
    }

    #[cold]
    fn nulls_in(&mut self, word: u16, nulls: u64) {
        for column in self.program.columns.iter().filter(|column| column.is_not_null) {
            let (own_word, bit) = bit_of(column.null_bit);
            if own_word == word && nulls & bit != 0 {
                self.report(&registry::COLUMN_NULL, column);
            }
        }
    }

    /// Checks the data purity of the fixed columns.
    fn fixed(&mut self) {
        for check in &self.program.fixed {
            let Some(bytes) = self.record.fixed(check.offset, check.length) else { continue };
            let verdict = check.domain.contains(bytes);
            if verdict != Some(true) {
                self.fixed_value(usize::from(check.column), verdict);
            }
        }
    }

    /// Handles a fixed column whose bytes are invalid, or may be invalid, for its type. If the column is NULL, or the
    /// record does not have the column, its bytes have no meaning.
    #[cold]
    fn fixed_value(&mut self, column: usize, verdict: Option<bool>) {
        let Some(column) = self.program.columns.get(column) else { return };
        if self.is_null(column.null_bit) || !self.record.has_column(column.null_bit) {
            return;
        }
        self.purity(verdict, column);
    }

    /// Checks a variable column that is not empty.
    fn variable(&mut self, number: usize, bytes: &[u8], complex: bool) {
        let program = self.program;
        let Some(Some(check)) = program.variable.get(number) else { return };
        let Some(column) = program.columns.get(usize::from(check.column)) else { return };
        if self.is_null(check.null_bit) {
            // An UPDATE to NULL may leave the old bytes in the row; these bytes have no meaning. A NULL in a NOT NULL
            // column is reported as message 8970.
        } else if complex {
            self.off_row(check, column, bytes);
        } else if !self.record.has_column(check.null_bit) && !check.is_text_pointer {
            // The bytes belong to a dropped column.
        } else {
            self.plain(check, column, bytes);
        }
    }

    /// Checks a variable value that is stored in the row.
    fn plain(&mut self, check: &VariableCheck, column: &Column, bytes: &[u8]) {
        if bytes.len() > usize::from(check.max_length) {
            self.wrong_length(check.max_length, column, bytes);
        }
        if let Some(domain) = check.domain.filter(|_| self.context.options.checks_purity()) {
            self.purity(domain.contains(bytes), column);
        }
    }

    /// Reports a value that is outside its domain, and counts a value for which this is uncertain.
    fn purity(&mut self, verdict: Option<bool>, column: &Column) {
        match verdict {
            Some(true) => {}
            Some(false) => self.findings.push(purity_finding(self.context, self.unit, self.at, column)),
            None => self.sums.not_verified(column),
        }
    }

    #[cold]
    fn wrong_length(&mut self, expected: u16, column: &Column, bytes: &[u8]) {
        let excess = bytes.get(expected.into()..).unwrap_or(b"short");
        // Most parts of the engine ignore trailing blanks and zeros. So a value that is too long only because of
        // trailing blanks or zeros is not a finding.
        if may_be_encrypted(bytes) || excess.iter().all(|byte| matches!(byte, 0 | b' ')) {
            self.sums.not_verified(column);
        } else {
            let test = format!("Valid length of column '{}'", column.name);
            self.record_check(test, bytes.len() as i64, expected);
        }
    }

    /// Checks an off-row value by the length in its pointer, or defers the check until the value is read.
    fn off_row(&mut self, check: &VariableCheck, column: &Column, pointer: &[u8]) {
        match check.domain {
            None | Some(Domain::Any) => {}
            Some(_) if !self.context.options.checks_purity() => {}
            Some(Domain::Utf16) if value_length(pointer).is_some_and(|length| length.is_multiple_of(2)) => {}
            // Only the root of the value stores its length; the checks of off-row values (`lob`) verify it.
            Some(Domain::Utf16) if column.info.xtype == xtype::NTEXT && pointer.len() == TEXT_POINTER_BYTES => {}
            // With the table option "large value types out of row", only the root of the value stores its length.
            Some(Domain::Utf16) if pointer.len() == TEXT_POINTER_BYTES && self.begins(check, column, pointer) => {}
            Some(Domain::Xml | Domain::CompressibleXml | Domain::Variant | Domain::Spatial)
                if self.begins(check, column, pointer) => {}
            Some(_) => self.sums.not_verified(column),
        }
    }

    /// Defers the check of a value until after the sweep. Returns false if the pointer has no known form.
    fn begins(&mut self, check: &VariableCheck, column: &Column, pointer: &[u8]) -> bool {
        self.sums.heads.add(self.unit, (check.column, column.counter), self.at, pointer)
    }
}

/// The finding 2570 for a value in a row.
fn purity_finding(context: &Context<'_>, unit: UnitIndex, row: RecordId, column: &Column) -> Finding {
    of_row(context, unit, row, impure(&column.name, column.info))
}

/// Adds the address and the owner of the row to a finding.
fn of_row(context: &Context<'_>, unit: UnitIndex, row: RecordId, finding: Finding) -> Finding {
    let finding = finding.at_record(row);
    match context.units.get(unit) {
        Some(unit) => finding.owner(unit.owner),
        None => finding,
    }
}

/// Reads the length of an off-row value from the last link of the row-overflow pointer or in-row LOB root
/// (docs/format/lob.md#pointers-in-rows). `None` if the bytes are no such pointer.
fn value_length(pointer: &[u8]) -> Option<u32> {
    let is_pointer = matches!(pointer.first(), Some(2 | 4)) && pointer.len() >= 24 && pointer.len().is_multiple_of(12);
    u32_at(pointer, pointer.len().checked_sub(12)?).filter(|_| is_pointer)
}

/// The limit that explains why individual values of a column were not verified.
fn undecided_limit(column: &Column) -> &'static Limit {
    match column.info.xtype {
        _ if column.is_nobodys => &limits::COLUMN_SPARSE_UNKNOWN,
        _ if column.offset == 0 => &limits::COLUMN_SPARSE_FORM,
        xtype::NTEXT => &limits::COLUMN_NTEXT_FORM,
        xtype::XML => &limits::COLUMN_XML_OFF_ROW,
        xtype::SQL_VARIANT | xtype::CLR => &limits::COLUMN_VALUE_OFF_ROW,
        _ => &limits::COLUMN_LENGTH,
    }
}

/// Whether the limit means that off-row values could not be read.
fn is_off_row(limit: &Limit) -> bool {
    *limit == limits::COLUMN_XML_OFF_ROW || *limit == limits::COLUMN_VALUE_OFF_ROW
}

/// Notes, after the sweep, which values were not verified.
fn note(plans: &Plans, context: &Context<'_>, swept: &Tallies, of_rows: &Sums, coverage: &mut Coverage) {
    let lacks_file = survey::missing_files(context.source, context.database).next().is_some();
    for (at, tally) in swept.units.touched() {
        let Some(unit) = context.units.list().get(at) else { continue };
        let has_rows = matches!(unit.shape, Shape::Heap | Shape::Clustered | Shape::Nonclustered);
        let Some(sums) = of_rows.units.get(at) else { continue };
        if !has_rows || tally.rows == 0 || !context.in_scope(unit) {
            continue;
        }
        let name = context.index_name(unit);
        let Some(program) = plans.get(at) else {
            coverage.note(&limits::COLUMNS_UNKNOWN, Place::of(unit.owner.object_id, name), tally.rows);
            continue;
        };
        if sums.rows == 0 {
            continue;
        }
        for column in &program.columns {
            let scope = || {
                let text = format!("{name}.{} ({})", column.name, column.info.declaration());
                Place::of(unit.owner.object_id, text)
            };
            if let Some(limit) = column.not_verified {
                coverage.note(limit, scope(), sums.rows);
            }
            let undecided = of_rows.unverified.get(column.counter);
            if undecided > 0 {
                let limit = match undecided_limit(column) {
                    limit if is_off_row(limit) && lacks_file => &limits::COLUMN_FILE_NOT_GIVEN,
                    limit => limit,
                };
                coverage.note(limit, scope(), undecided);
            }
        }
    }
}
