//! The rules for the columns of a rowset's rows, compiled once so that checking a row needs no lookup in the catalog.

use catalog::{Database, Rowset, RowsetColumn, TableColumn, column_status};
use findings::registry::limits::{self, Limit};
use format::domain::Domain;
use format::types::{TypeInfo, fixed_length, xtype};
use sums::PerUnit;

use super::anti_matter;
use super::sparse::SparseCheck;
use crate::basis::meaning::{Meaning, meaning};
use crate::basis::units::{Shape, Unit, Units};
use crate::page::expanded::expansion;
use crate::survey::Survey;
use crate::values::column_names::{is_variable_int, table_columns};

/// Internal version of SQL Server 2005.
const VERSION_2005: u16 = 611;
/// Internal version of SQL Server 2017.
const VERSION_2017: u16 = 869;
/// Internal version of SQL Server 2022.
const VERSION_2022: u16 = 957;

/// Length of the longest sql_variant, header included.
const MAX_VARIANT_BYTES: u16 = 8016;

/// The rules for the rows of all units, compiled before the sweep.
#[derive(Default)]
pub(crate) struct Plans {
    /// Programs exist only for units that have pages.
    programs: PerUnit<Option<Box<Program>>>,
}

impl Plans {
    /// Makes the programs for the units that have pages.
    pub(crate) fn new(database: &Database, units: &Units, survey: &Survey) -> Self {
        // Number of counters so far. Each column of each program has a counter for its values that were not verified.
        let mut counters = 0;
        let mut programs = PerUnit::new(units.list().len());
        for (at, unit) in survey.units_with_pages(units) {
            if let Some(place) = programs.get_mut(at as usize) {
                *place = program(database, unit, &mut counters).map(Box::new);
            }
        }
        Self { programs }
    }

    /// The programs, each with the ordinal of its unit.
    pub(super) fn programs(&self) -> impl Iterator<Item = (usize, &Program)> {
        self.programs.touched().filter_map(|(at, program)| Some((at, program.as_deref()?)))
    }

    /// Adds everything by which the sweep judges the rows of a unit.
    pub(super) fn add_meaning(&self, unit: usize, to: &mut Meaning<'_>) {
        if let Some(program) = self.get(unit) {
            program.columns.iter().for_each(|column| column.add_to(to));
            program.add_to(to);
        }
    }

    /// The program for a unit's rows.
    pub(super) fn get(&self, unit: usize) -> Option<&Program> {
        self.programs.get(unit)?.as_deref()
    }
}

meaning!(Column {
    info, offset, null_bit, domain, is_not_null, not_verified, is_nobodys;
    plans counter;
    without name
});

meaning!(Program {
    fixed, variable, not_null, fixed_reach, max_fixed_end, null_bits, max_null_bit, max_variable, last_null_bit,
    stored_columns, has_sparse, sparse, ordinary, version_tags_are_known, may_compress_xml, anti_matter;
    without columns
});

/// The rules for the leaf rows of one rowset.
pub(super) struct Program {
    /// The columns that are checked, in physical order.
    pub(super) columns: Vec<Column>,
    /// Fixed columns for which some byte patterns are invalid.
    pub(super) fixed: Vec<FixedCheck>,
    /// The rules for variable columns, by number from 0; `None` if no column has that number or nothing is known about
    /// it.
    pub(super) variable: Vec<Option<VariableCheck>>,
    /// For each word of the null bitmap that has bits of NOT NULL columns: the index of the word, and a mask of these
    /// bits.
    pub(super) not_null: Vec<(u16, u64)>,
    /// Offset after the last fixed column that is in use.
    pub(super) fixed_reach: u16,
    /// The greatest possible end of the fixed part. Like the other `max_` fields, it is `u16::MAX` if the limit is
    /// uncertain.
    pub(super) max_fixed_end: u16,
    /// The highest null bit of the columns in the catalog.
    pub(super) null_bits: u16,
    /// The greatest possible number of null bits.
    pub(super) max_null_bit: u16,
    /// The greatest possible number of variable columns.
    pub(super) max_variable: u16,
    /// The highest null bit of a checked column. A row that has this column has all columns.
    pub(super) last_null_bit: u16,
    /// Number of columns that a row stores if it was written after all columns had been added.
    pub(super) stored_columns: u64,
    /// Whether the table may have sparse columns.
    pub(super) has_sparse: bool,
    /// Sparse columns, by id.
    pub(super) sparse: Vec<SparseCheck>,
    /// IDs of the columns that are not sparse, if the table has sparse columns.
    pub(super) ordinary: Vec<u16>,
    /// Whether older row versions are stored only in tempdb. This is true before SQL Server 2019, which introduced
    /// accelerated database recovery.
    pub(super) version_tags_are_known: bool,
    /// Whether XML documents may be compressed, which is possible since SQL Server 2022.
    pub(super) may_compress_xml: bool,
    /// The anti-matter column, which is 0 in every row unless the index is being built.
    pub(super) anti_matter: Option<RowsetColumn>,
}

/// A column that is checked.
pub(super) struct Column {
    /// The name in the table, or a description.
    pub(super) name: String,
    pub(super) info: TypeInfo,
    /// The offset in the catalog; 0 for sparse columns.
    pub(super) offset: i16,
    pub(super) null_bit: u16,
    /// The byte patterns that are valid values, if they are known.
    pub(super) domain: Option<Domain>,
    pub(super) is_not_null: bool,
    /// Index of the counter for the column's values that were not verified.
    pub(super) counter: usize,
    /// The limit that says why no value of the column is checked against its type; `None` if the values are checked.
    pub(super) not_verified: Option<&'static Limit>,
    /// Whether this entry represents sparse values whose columns are not in the catalog.
    pub(super) is_nobodys: bool,
}

/// The rule for a fixed column: the domain of its values.
#[derive(Clone, Copy, Hash)]
pub(super) struct FixedCheck {
    pub(super) offset: u16,
    pub(super) length: u16,
    pub(super) domain: Domain,
    pub(super) column: u16,
}

/// The rules for a variable column.
#[derive(Clone, Copy, Hash)]
pub(super) struct VariableCheck {
    pub(super) null_bit: u16,
    /// Length of the longest value.
    pub(super) max_length: u16,
    pub(super) domain: Option<Domain>,
    /// Whether the type is text, ntext or image. A NULL of these types may keep its pointer.
    pub(super) is_text_pointer: bool,
    pub(super) column: u16,
}

fn program(database: &Database, unit: &Unit, counters: &mut usize) -> Option<Program> {
    let rowset = database.rowsets.get(unit.rowset?)?;
    let has_rows = matches!(unit.shape, Shape::Heap | Shape::Clustered | Shape::Nonclustered);
    let is_readable = !unit.compressed || expansion(rowset).is_some();
    if !has_rows || !is_readable || !database.layouts_are_complete() || rowset.layout.columns.is_empty() {
        return None;
    }
    let columns = &rowset.layout.columns;
    let has_sparse = rowset.index_id <= 1 && columns.iter().any(RowsetColumn::is_sparse);
    let null_bits = columns.iter().map(|column| column.leaf_null_bit).max().unwrap_or_default();
    let variable =
        columns.iter().filter(|column| column.leaf_offset < 0).map(|column| column.leaf_offset.unsigned_abs());
    let variable = variable.max().unwrap_or_default();
    let is_base = rowset.index_id <= 1;
    // Columns that were dropped in SQL Server 2000 are still in the rows, but may be missing in the catalog. Since SQL
    // Server 2008, the catalog stores how many columns were dropped; any of these columns may be of variable length.
    let made_by_2000 = is_base && database.boot.as_ref().is_none_or(|boot| boot.create_version < VERSION_2005);
    let unknown = if made_by_2000 { rowset.max_null_bit.saturating_sub(null_bits) } else { 0 };
    let is_counted = !made_by_2000 || rowset.max_null_bit > 0;
    let fixed = columns.iter().filter(|column| column.leaf_offset > 0);
    let fixed_end = fixed.map(|column| column.leaf_offset.unsigned_abs().saturating_add(column.info.length)).max();
    let mut program = Program {
        columns: Vec::new(),
        fixed: Vec::new(),
        variable: vec![None; usize::from(variable)],
        not_null: Vec::new(),
        fixed_reach: 0,
        // Rows of tables with sparse columns may be padded, so the end of their fixed part is uncertain.
        max_fixed_end: limit(fixed_end.unwrap_or(4).max(rowset.min_leaf), is_base && is_counted && !has_sparse),
        null_bits,
        // The catalog does not mention the null bitmaps of indexes that were created by SQL Server 2000, so the number
        // of their null bits is uncertain.
        max_null_bit: limit(
            null_bits.max(rowset.max_null_bit),
            (is_base || null_bits > 0) && is_counted && !has_sparse,
        ),
        max_variable: limit(variable.saturating_add(unknown), is_counted && !has_sparse),
        last_null_bit: 0,
        stored_columns: 0,
        has_sparse,
        sparse: Vec::new(),
        ordinary: Vec::new(),
        version_tags_are_known: database.boot.as_ref().is_some_and(|boot| boot.version <= VERSION_2017),
        may_compress_xml: database.boot.as_ref().is_none_or(|boot| boot.version >= VERSION_2022),
        anti_matter: anti_matter::of_index(database, rowset),
    };
    // A column may have been lengthened after the index was created. It is unknown whether the catalog then stores the
    // new length for the index too. So the maximum length is the greater of the column's lengths in the table and in
    // the index.
    let of_table = database.table_rowsets(rowset.object_id).find(|_| !is_base);
    for (column, table) in columns.iter().zip(table_columns(database, rowset)) {
        let in_use = !column.is_dropped() && column.status & column_status::FILESTREAM == 0;
        if in_use && has_sparse && column.is_sparse() {
            program.add_sparse(column, table, *counters);
        } else if in_use && column.leaf_offset != 0 {
            let in_table = of_table.zip(table).and_then(|(rowset, table)| rowset.layout.column(table.id));
            let longest = in_table.map_or(0, |column| max_length(column.info)).max(max_length(column.info));
            program.add(rowset, column, table, longest, *counters);
        } else {
            continue;
        }
        *counters += 1;
    }
    if has_sparse {
        program.close_sparse(database.columns.get(&rowset.object_id).map_or(&[], Vec::as_slice), *counters);
        *counters += 1;
    }
    Some(program)
}

fn limit(most: u16, is_certain: bool) -> u16 {
    if is_certain { most } else { u16::MAX }
}

impl Program {
    fn add(
        &mut self,
        rowset: &Rowset,
        column: &RowsetColumn,
        table: Option<&TableColumn>,
        max_length: u16,
        counter: usize,
    ) {
        let is_uniquifier = column.status & column_status::UNIQUIFIER != 0
            || rowset.index_id > 1 && table.is_none() && is_variable_int(column);
        // A column of the rowset that the table does not have is internal to the engine.
        let is_known = table.is_some() || is_uniquifier || rowset.index_id > 1;
        let user_type = table.map_or(0, |table| table.user_type);
        let domain = match Domain::of_column(column.info, user_type).filter(|_| is_known) {
            Some(Domain::Xml) if self.may_compress_xml => Some(Domain::CompressibleXml),
            domain => domain,
        };
        let at = self.columns.len() as u16;
        let mut not_verified = match domain {
            Some(_) => None,
            None if is_known => Some(&limits::COLUMN_TYPE),
            None => Some(&limits::COLUMN_UNKNOWN),
        };
        if is_known && column.leaf_offset > 0 {
            let offset = column.leaf_offset.unsigned_abs();
            let length = column.info.length;
            self.fixed_reach = self.fixed_reach.max(offset.saturating_add(length));
            if let Some(domain) = domain.filter(|domain| !matches!(domain, Domain::Any | Domain::Utf16)) {
                self.fixed.push(FixedCheck { offset, length, domain, column: at });
            }
        } else if is_known {
            let is_text_pointer = matches!(column.info.xtype, xtype::TEXT | xtype::NTEXT | xtype::IMAGE);
            let is_plain = is_text_pointer || fixed_length(column.info).is_none();
            if !is_plain && !is_uniquifier {
                not_verified = Some(&limits::COLUMN_FIXED_AS_VARIABLE);
            }
            let check = VariableCheck {
                null_bit: column.leaf_null_bit,
                max_length,
                domain: domain.filter(|_| is_plain),
                is_text_pointer,
                column: at,
            };
            let number = usize::from(column.leaf_offset.unsigned_abs()) - 1;
            if let Some(place) = self.variable.get_mut(number) {
                *place = Some(check);
            }
        }
        let is_not_null = table.is_some_and(TableColumn::is_not_null) && column.leaf_null_bit > 0;
        if is_not_null {
            self.forbid_null(column.leaf_null_bit);
        }
        self.last_null_bit = self.last_null_bit.max(column.leaf_null_bit);
        let name = match table {
            Some(table) => table.name.clone(),
            None if is_uniquifier => "(uniquifier)".to_owned(),
            None => format!("(column {})", column.id),
        };
        self.columns.push(Column {
            name,
            info: column.info,
            offset: column.leaf_offset,
            null_bit: column.leaf_null_bit,
            domain,
            is_not_null,
            counter,
            not_verified,
            is_nobodys: false,
        });
        self.stored_columns += 1;
    }

    fn add_sparse(&mut self, column: &RowsetColumn, table: Option<&TableColumn>, counter: usize) {
        let (Ok(id), Some(table)) = (u16::try_from(column.id), table) else { return };
        self.sparse.push(SparseCheck::new(id, self.columns.len() as u16, column.info, table.user_type));
        self.columns.push(Column { name: table.name.clone(), ..Column::sparse(column.info, counter) });
    }

    /// Completes a program with sparse columns after all columns were added. Lists the columns that a sparse vector
    /// must not contain, and adds an entry that counts values of unknown columns.
    fn close_sparse(&mut self, table: &[TableColumn], counter: usize) {
        self.sparse.sort_by_key(|check| check.id);
        let ids = table.iter().filter(|column| !column.is_sparse()).filter_map(|column| u16::try_from(column.id).ok());
        self.ordinary = ids.filter(|id| self.sparse.binary_search_by_key(id, |check| check.id).is_err()).collect();
        self.ordinary.sort_unstable();
        let name = "(no column)".to_owned();
        self.columns.push(Column { name, is_nobodys: true, ..Column::sparse(TypeInfo::default(), counter) });
    }

    fn forbid_null(&mut self, null_bit: u16) {
        let (word, mask) = bit_of(null_bit);
        match self.not_null.iter_mut().find(|(other, _)| *other == word) {
            Some((_, bits)) => *bits |= mask,
            None => self.not_null.push((word, mask)),
        }
    }
}

impl Column {
    fn sparse(info: TypeInfo, counter: usize) -> Self {
        Self {
            name: String::new(),
            info,
            offset: 0,
            null_bit: 0,
            domain: None,
            is_not_null: false,
            counter,
            not_verified: None,
            is_nobodys: false,
        }
    }
}

/// The index of the null bitmap's word that contains a null bit, and a mask of the bit. The mask is 0 for a column
/// without a null bit.
pub(super) fn bit_of(null_bit: u16) -> (u16, u64) {
    match null_bit.checked_sub(1) {
        Some(bit) => (bit / 64, 1 << (bit % 64)),
        None => (0, 0),
    }
}

/// Length of the longest value that may be in the row; `u16::MAX` if the type declares no limit.
pub(super) fn max_length(info: TypeInfo) -> u16 {
    use xtype::{BINARY, CHAR, NCHAR, NVARCHAR, SQL_VARIANT, VARBINARY, VARCHAR};
    match info.xtype {
        VARCHAR | NVARCHAR | VARBINARY | CHAR | NCHAR | BINARY if info.length > 0 => info.length,
        SQL_VARIANT => MAX_VARIANT_BYTES,
        _ => u16::MAX,
    }
}
