//! The memory grant: the part with a fixed use, and the part that is left for facts that grow with the database.

use catalog::{AllocUnit, ConstraintKind, Database, ExpressionKind, IndexColumn, Rowset};
use format::page::PAGE_BYTES;
use source::{BackupPages, PROGRAM_BYTES, PageSource};

use crate::catalog_rules;
use crate::expanded;
use crate::options::{DEFAULT_MEMORY_BYTES, Options, Readers};
use crate::page_map;
use crate::registry::limits::Reason;
use crate::report::RowsetCounts;
use crate::units::Unit;
use crate::values::{Expressions, Formula};

/// The most pages per read: 1 MB, large enough for any disk.
pub(crate) const CHUNK_PAGES: u32 = 128;

const BYTES_PER_CHUNK: u64 = CHUNK_PAGES as u64 * PAGE_BYTES as u64;
/// PFS byte, extent owner, GAM and SGAM bits, and a reserve.
const BYTES_PER_PAGE: u64 = 2;
/// The facts about a unit before the sweep, and its entry in the sums of each thread.
const BYTES_PER_UNIT: u64 = size_of::<Unit>() as u64 + 64;
/// Sums of a unit with pages in one thread: its own, those of the levels of its tree, and those of an index.
const BYTES_PER_UNIT_AND_THREAD: u64 = 1000;
/// The report of a rowset: counts and four names.
const BYTES_PER_ROWSET: u64 = size_of::<RowsetCounts>() as u64 + 4 * 32;
/// Stack, buffers and findings of a thread, without its read buffer.
const BYTES_PER_THREAD: u64 = 1 << 20;
/// The cost of a column of a heap or clustered index with pages, besides its catalog rows: the programs compiled for it
/// and the memory used while they are compiled.
const BYTES_PER_TABLE_COLUMN: u64 = 500;
/// A column of a nonclustered index, whose rows are compared with those of the table.
const BYTES_PER_INDEX_COLUMN: u64 = 1000;
/// A plan for a constraint, its result, and their names.
const BYTES_PER_CONSTRAINT: u64 = 800;
/// The minimum for facts and findings: read windows of spilled runs.
const LEAST_FOR_FACTS: u64 = 8 << 20;
/// More would only avoid writing temporary files in the few databases with that many findings.
const MOST_FOR_FINDINGS: u64 = 16 << 20;

/// Chunks in memory at once when readers serve the threads: one per reader and thread, and one waiting for each thread.
pub(crate) fn queue_buffers(readers: usize, threads: usize) -> usize {
    readers + 2 * threads
}

/// The memory for expressions that are compiled before the sweep: filters, computed columns and, if requested,
/// conditions, of tables with pages. They are compiled here to measure them, as the size of a text does not predict it:
/// an IN takes some hundred times its bytes.
fn expression_bytes(database: &Database, options: &Options, occupied: impl Fn(&Rowset) -> bool) -> u64 {
    let compiled = |formula: Result<Formula, Reason>| match formula {
        Ok(formula) => formula.bytes(),
        // The reason contains the text of the expression.
        Err(reason) => 2 * reason.text.len() as u64,
    };
    let each = |object_id: i32, compile: &dyn Fn(Expressions<'_>) -> Result<Formula, Reason>| -> u64 {
        let rowsets = database.table_rowsets(object_id).filter(|rowset| occupied(rowset));
        rowsets.map(|rowset| compiled(compile(Expressions { database, rowset }))).sum()
    };
    let of_tables = database.expressions.iter().map(|expression| match expression.kind {
        ExpressionKind::Filter => each(expression.object_id, &|of| of.filter(expression.sub_id)),
        ExpressionKind::ComputedColumn => {
            // One for the rows of the table, and one for each index that contains the column; most expressions are in
            // no index.
            let id = expression.sub_id.cast_unsigned();
            let has_it = |columns: &Vec<IndexColumn>| columns.iter().any(|column| column.column_id == id);
            let indexes = database.index_columns.range((expression.object_id, 0)..=(expression.object_id, i32::MAX));
            let times = 1 + indexes.filter(|(_, columns)| has_it(columns)).count() as u64;
            times * each(expression.object_id, &|of| of.column_of_any_type(id))
        }
        ExpressionKind::Check => 0,
    });
    let constraints = database.constraints.iter().filter(|_| options.constraints).map(|constraint| {
        let columns = match &constraint.kind {
            ConstraintKind::Check => each(constraint.table_id, &|of| of.check(constraint.id)),
            ConstraintKind::ForeignKey { columns, .. } => columns.len() as u64 * 2 * BYTES_PER_TABLE_COLUMN,
        };
        BYTES_PER_CONSTRAINT + columns
    });
    of_tables.sum::<u64>() + constraints.sum::<u64>()
}

/// The memory that a run needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemoryBudget {
    /// Needed whatever the grant: maps, sums, buffers.
    fixed: u64,
    /// The minimum for facts and findings.
    least: u64,
    /// Pages whose maps are in memory: those of the data files, or of the largest range that is swept.
    mapped: u64,
}

impl MemoryBudget {
    /// The needs of a run over a database, estimated from the catalog and the files' sizes. `of_checks` is the number
    /// of bytes that checks keep in each thread.
    pub(crate) fn of(source: &dyn PageSource, database: &Database, options: &Options, of_checks: u64) -> Self {
        let pages: u64 = source.files().iter().map(|file| u64::from(file.pages)).sum();
        let threads = options.threads() as u64;
        let a_column =
            |rowset: &Rowset| if rowset.index_id <= 1 { BYTES_PER_TABLE_COLUMN } else { BYTES_PER_INDEX_COLUMN };
        let has_pages = |unit: &AllocUnit| !unit.first_iam.is_none();
        let occupied = |rowset: &&Rowset| rowset.units.iter().any(|at| database.units.get(*at).is_some_and(has_pages));
        let of_columns = |rowset: &Rowset| rowset.layout.columns.len() as u64 * a_column(rowset);
        let rows: u64 = database.rowsets.iter().filter(occupied).map(of_columns).sum();
        let reports = database.rowsets.len() as u64 * BYTES_PER_ROWSET;
        // Reports of rowsets are made when all rows are read and the programs for them are dropped.
        let in_turn = rows.max(reports);
        let with_pages = database.units.iter().filter(|unit| has_pages(unit)).count() as u64;
        let readers = match options.readers {
            Readers::Own => 0,
            Readers::Count(readers) => usize::from(readers),
            Readers::PerFile => source.files().len(),
        };
        let buffers = if readers == 0 { options.threads() } else { queue_buffers(readers, options.threads()) };
        let expansions = database.rowsets.iter().filter(occupied).filter_map(expanded::expansion);
        let of_expanded_page = expansions.map(expanded::bytes_per_page).max().unwrap_or_default();
        let a_thread = BYTES_PER_THREAD + with_pages * BYTES_PER_UNIT_AND_THREAD + of_checks + of_expanded_page;
        let mapped = options.mapped_pages.unwrap_or(pages);
        let page_map = if options.page_map { page_map::bytes(mapped, database.units.len() as u64) } else { 0 };
        let fixed = PROGRAM_BYTES
            + page_map
            + mapped * BYTES_PER_PAGE
            + database.bytes()
            + source.backup().map_or(0, BackupPages::held_bytes)
            + database.units.len() as u64 * BYTES_PER_UNIT
            + in_turn
            + expression_bytes(database, options, |rowset| occupied(&rowset))
            + threads * a_thread
            + buffers as u64 * BYTES_PER_CHUNK;
        // The keys of the catalog are compared between the two, when the facts are no longer needed. Freed memory may
        // be fragmented, so half of it counts. No page has more rows than bytes.
        let keys = catalog_rules::key_bytes(database).min(pages * PAGE_BYTES as u64);
        Self { fixed, least: LEAST_FOR_FACTS.max(keys.saturating_sub(in_turn / 2)), mapped }
    }

    /// The smallest grant with which a run works.
    pub(crate) fn minimum_bytes(&self) -> u64 {
        self.fixed + self.least
    }

    /// The memory granted to a run.
    pub(crate) fn granted_bytes(&self, options: &Options) -> u64 {
        let default = DEFAULT_MEMORY_BYTES + self.mapped * BYTES_PER_PAGE;
        options.memory_bytes.unwrap_or(default).max(self.minimum_bytes())
    }

    fn bytes_that_grow(&self, options: &Options) -> u64 {
        self.granted_bytes(options).saturating_sub(self.fixed).max(self.least)
    }

    /// The part of the grant that is left for facts.
    pub(crate) fn bytes_for_facts(&self, options: &Options) -> u64 {
        self.bytes_that_grow(options) - self.bytes_for_findings(options) as u64
    }

    /// The part of the grant that is left for findings.
    pub(crate) fn bytes_for_findings(&self, options: &Options) -> usize {
        (self.bytes_that_grow(options) / 8).min(MOST_FOR_FINDINGS) as usize
    }

    /// The memory that a run would need if its facts took `facts` bytes.
    pub(crate) fn bytes_with(&self, facts: u64) -> u64 {
        self.fixed + facts
    }
}
