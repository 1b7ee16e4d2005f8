//! Checks the sparse values of a row: first the vector that contains them, then each value against its column
//! (docs/format/sparse.md).

use format::domain::Domain;
use format::lob::Pointer;
use format::same_shape::Rows;
use format::sparse::{SparseValue, SparseVector};
use format::types::{TypeInfo, fixed_length, xtype};

use super::RowLook;
use super::program::{Program, max_length};

/// The rules for the values of a sparse column.
#[derive(Clone, Copy, Hash)]
pub(super) struct SparseCheck {
    /// Column id.
    pub(super) id: u16,
    /// Index of the column in the program.
    pub(super) column: u16,
    domain: Option<Domain>,
    /// The exact length of every value, if the type is of fixed length.
    length: Option<u16>,
    max_length: u16,
    /// Whether the type allows off-row values. It is undocumented how the vector marks these values.
    may_be_off_row: bool,
}

impl SparseCheck {
    pub(super) fn new(id: u16, column: u16, info: TypeInfo, user_type: i32) -> Self {
        use xtype::{CLR, DECIMAL, JSON, NUMERIC, NVARCHAR, SQL_VARIANT, VARBINARY, VARCHAR, XML};
        Self {
            id,
            column,
            domain: Domain::of_column(info, user_type).map(|domain| match domain {
                Domain::Xml => Domain::CompressibleXml,
                domain => domain,
            }),
            // Decimals may be stored in fewer bytes (vardecimal), so their values have no exact length.
            length: fixed_length(info).filter(|_| !matches!(info.xtype, DECIMAL | NUMERIC)),
            max_length: fixed_length(info).unwrap_or(max_length(info)),
            may_be_off_row: matches!(info.xtype, VARCHAR | NVARCHAR | VARBINARY | SQL_VARIANT | XML | JSON | CLR),
        }
    }

    /// Whether a value is certainly valid.
    fn holds(&self, value: SparseValue<'_>, checks_purity: bool) -> bool {
        let length = value.bytes.len();
        length <= usize::from(self.max_length)
            && self.length.is_none_or(|exact| length == usize::from(exact))
            && (!checks_purity || self.domain.and_then(|domain| domain.contains(value.bytes)) == Some(true))
            && !self.is_off_row(value)
    }

    /// Whether a value that is not complex and has the right length is certainly valid.
    fn is_decided_by_length(&self, checks_purity: bool) -> bool {
        !self.may_be_off_row && (!checks_purity || matches!(self.domain, Some(Domain::Any)))
    }

    /// Whether a value is off row, or may be a pointer to an off-row value.
    fn is_off_row(&self, value: SparseValue<'_>) -> bool {
        value.is_complex || self.may_be_off_row && Pointer::read(value.bytes) != Pointer::Undescribed
    }
}

impl Program {
    /// The number of values in the sparse vectors of the rows. `None` if a value may be invalid, or if a live row may
    /// have a complex column that is not the vector.
    pub(super) fn values_in_vectors(&self, rows: Rows<'_>, checks_purity: bool) -> Option<u64> {
        if !rows.has_complex() {
            return Some(0);
        }
        let is_vector_alone = |(check, number): (&Option<_>, u16)| check.is_none() || !rows.may_be_complex(number);
        if !self.has_sparse || !self.variable.iter().zip(1..=rows.most_variables()).all(is_vector_alone) {
            return None;
        }
        let vectors = rows.vectors()?;
        let mut values = 0;
        if let Some(common) = vectors.common_form() {
            let count = (rows.live_count() - rows.plain_count()) as u64;
            for value in common.values() {
                let check = self.check_of(value.column)?;
                let mut of_rows = vectors.values(value.column)?;
                let holds = |bytes| check.holds(SparseValue { bytes, ..value }, checks_purity);
                let is_right = match check.is_decided_by_length(checks_purity) {
                    true => holds(value.bytes),
                    false => of_rows.all(holds),
                };
                values += is_right.then_some(count)?;
            }
            return Some(values);
        }
        for value in vectors.each().flat_map(SparseVector::values) {
            self.check_of(value.column).filter(|check| check.holds(value, checks_purity))?;
            values += 1;
        }
        Some(values)
    }

    fn check_of(&self, column: u16) -> Option<&SparseCheck> {
        self.sparse.get(self.sparse.binary_search_by_key(&column, |check| check.id).ok()?)
    }
}

impl RowLook<'_, '_> {
    /// Checks the vector, then each value in it.
    pub(super) fn sparse(&mut self, vector: SparseVector<'_>) {
        if let Some(fault) = vector.fault() {
            return self.record_check(fault.test, fault.value, fault.against);
        }
        for value in vector.values() {
            self.sums.value(self.unit);
            let checks = &self.program.sparse;
            let at = checks.binary_search_by_key(&value.column, |check| check.id);
            match at.ok().and_then(|at| checks.get(at)) {
                Some(check) => self.sparse_value(check, value),
                None => self.not_sparse(value.column),
            }
        }
    }

    fn sparse_value(&mut self, check: &SparseCheck, value: SparseValue<'_>) {
        let Some(column) = self.program.columns.get(usize::from(check.column)) else { return };
        let length = value.bytes.len();
        if check.is_off_row(value) {
            return self.sums.not_verified(column);
        }
        if length > usize::from(check.max_length) || check.length.is_some_and(|exact| length != usize::from(exact)) {
            return self.wrong_length(check.max_length, column, value.bytes);
        }
        if self.context.options.checks_purity() {
            self.purity(check.domain.and_then(|domain| domain.contains(value.bytes)), column);
        }
    }

    /// Handles a value whose column ID is not that of a sparse column. A column that is not sparse must not be in the
    /// vector; a column that is not in the catalog may have been dropped.
    #[cold]
    fn not_sparse(&mut self, id: u16) {
        if self.program.ordinary.binary_search(&id).is_ok() {
            self.record_check("sparse vector: column is sparse", id, 0);
        } else {
            self.nobodys();
        }
    }

    /// Whether the last variable column, which is complex but not a valid vector, belongs to no known column: neither
    /// to a column of the row nor to a dropped one.
    #[cold]
    pub(super) fn is_nothing_known(&self, number: usize, bytes: &[u8]) -> bool {
        match self.program.variable.get(number) {
            None => true,
            Some(Some(check)) if !self.is_null(check.null_bit) => false,
            Some(_) => matches!(Pointer::read(bytes), Pointer::Malformed | Pointer::Undescribed),
        }
    }

    /// Counts bytes of an unknown form, at the place where the vector is expected, as a value that was not verified.
    #[cold]
    pub(super) fn unknown_sparse(&mut self) {
        self.sums.value(self.unit);
        self.nobodys();
    }

    fn nobodys(&mut self) {
        if let Some(column) = self.program.columns.last() {
            self.sums.not_verified(column);
        }
    }
}
