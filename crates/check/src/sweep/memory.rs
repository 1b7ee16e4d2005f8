//! Divides the memory grant into a part with a fixed use and the remainder, which is for facts that grow with the
//! database.

use catalog::{AllocUnit, ConstraintKind, Database, ExpressionKind, IndexColumn, Rowset};
use findings::registry::limits::Reason;
use findings::{DEFAULT_MEMORY_BYTES, Options, Readers, RowsetCounts, page_map};
use format::allocation::INTERVAL_PAGES;
use format::page::PAGE_BYTES;
use source::{BackupPages, Carved, PROGRAM_BYTES, PageSource};
use sums::spill::{Shelf, TempStore};

use crate::basis::units::Unit;
use crate::metadata::catalog_rules;
use crate::page::expanded;
use crate::values::{Expressions, Formula};

/// The maximum number of pages per read: 1 MB, which is large enough for any disk.
pub(crate) const CHUNK_PAGES: u32 = 128;

const BYTES_PER_CHUNK: u64 = CHUNK_PAGES as u64 * PAGE_BYTES as u64;
/// Memory per page for the PFS byte, the extent's owner, and the GAM and SGAM bits, with a reserve.
const BYTES_PER_PAGE: u64 = 2;
/// The most memory for maps if the grant is not limited: the maps of 4 TB. Larger maps are in a temporary file.
const MOST_FOR_MAPS: u64 = 1 << 30;
/// Memory for the blocks of maps that are in a temporary file. The maps are read from beginning to end, so more memory would
/// not make a run faster.
const SHELF_BYTES: u64 = 16 << 20;
/// Memory per thread for the blocks that the thread has used last.
const SHELF_BYTES_PER_THREAD: u64 = 256 << 10;
/// Memory per GAM interval if maps are in a temporary file: 2 KB for the places of the blocks, and 8 KB for 16 IAM pages,
/// which are not counted separately otherwise.
const SHELF_BYTES_PER_INTERVAL: u64 = 10 << 10;
/// Memory for one unit: for the facts that are known before the sweep, and for the unit's entry in the sums.
const BYTES_PER_UNIT: u64 = size_of::<Unit>() as u64 + 64;
/// Memory that one thread needs for the sums of a unit with pages: the unit's own sums, those of each level of its
/// tree, and those of an index.
const BYTES_PER_UNIT_AND_THREAD: u64 = 1000;
/// Memory for the report of a rowset: its counts and four names.
const BYTES_PER_ROWSET: u64 = size_of::<RowsetCounts>() as u64 + 4 * 32;
/// Memory for the stack, buffers and findings of a thread, without its read buffer.
const BYTES_PER_THREAD: u64 = 1 << 20;
/// Memory for one column of a heap or clustered index that has pages: the programs compiled for the column, and the
/// memory used while compiling. The memory for the column's catalog rows is counted separately.
const BYTES_PER_TABLE_COLUMN: u64 = 500;
/// Memory for one column of a nonclustered index that has pages. The rows of the index are compared with the rows of
/// the table.
const BYTES_PER_INDEX_COLUMN: u64 = 1000;
/// Memory for the plan of a constraint, its result, and the names in both.
const BYTES_PER_CONSTRAINT: u64 = 800;
/// The minimum memory for facts and findings, needed for the buffers with which sorted runs are read back from
/// temporary files.
const LEAST_FOR_FACTS: u64 = 8 << 20;
/// The maximum memory for findings. More memory would avoid temporary files only in the few databases with very many
/// findings.
const MOST_FOR_FINDINGS: u64 = 16 << 20;

/// The number of chunks in memory when dedicated readers supply the threads: one per reader, one per thread, and one
/// waiting for each thread.
pub(crate) fn queue_buffers(readers: usize, threads: usize) -> usize {
    readers + 2 * threads
}

/// Returns the memory, in bytes, for expressions that are compiled before the sweep: filters, computed columns and, if
/// requested, conditions of CHECK constraints. Only expressions of tables with pages count. To measure the expressions,
/// this function compiles them: the length of the text does not predict the size, because an IN list needs up to about
/// a hundred times as many bytes as its text.
fn expression_bytes(database: &Database, options: &Options, occupied: impl Fn(&Rowset) -> bool) -> u64 {
    let compiled = |formula: Result<Formula, Reason>| match formula {
        Ok(formula) => formula.bytes(),
        // An expression that cannot be compiled leaves a reason, and the text of the reason contains the expression.
        Err(reason) => 2 * reason.text.len() as u64,
    };
    let each = |object_id: i32, compile: &dyn Fn(Expressions<'_>) -> Result<Formula, Reason>| -> u64 {
        let rowsets = database.table_rowsets(object_id).filter(|rowset| occupied(rowset));
        rowsets.map(|rowset| compiled(compile(Expressions { database, rowset }))).sum()
    };
    let of_tables = database.expressions.iter().map(|expression| match expression.kind {
        ExpressionKind::Filter => each(expression.object_id, &|of| of.filter(expression.sub_id)),
        ExpressionKind::ComputedColumn => {
            // A run keeps one compiled copy of the expression for the rows of the table, and one for each index that
            // contains the computed column. Most computed columns are in no index.
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
    /// Bytes for sums and buffers, which do not depend on the grant.
    fixed: u64,
    /// Bytes for maps: for all of them, or for those in memory if the others are in a temporary file.
    maps: u64,
    /// The minimum number of bytes for maps.
    least_maps: u64,
    /// Whether all maps are in memory.
    has_all_maps: bool,
    /// The minimum number of bytes for facts and findings.
    least: u64,
    /// The number of pages whose maps are in memory: all pages of the data files, or the pages of the largest range
    /// that is swept.
    mapped: u64,
}

impl MemoryBudget {
    /// Estimates the memory for a run over a database from its catalog and the sizes of the files. `of_checks` is the
    /// number of bytes that checks keep in each thread.
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
        // A run first reads all rows, then drops the programs for the rows, then builds the reports of the rowsets. So
        // the programs and the reports are never in memory together, and only the larger amount counts.
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
            + database.bytes()
            + source.backup().map_or(0, BackupPages::held_bytes)
            + source.carved().map_or(0, Carved::held_bytes)
            + database.units.len() as u64 * BYTES_PER_UNIT
            + in_turn
            + expression_bytes(database, options, |rowset| occupied(&rowset))
            + threads * a_thread
            + buffers as u64 * BYTES_PER_CHUNK;
        // The run compares the keys of the catalog when it no longer needs the facts. At that time, it has already
        // dropped the programs for the rows but has not built the reports yet. So the keys may use the memory of the
        // facts and half of the memory of the programs; the other half may be fragmented. The file size limits the
        // estimate for the keys, because the row and page counts in the catalog may be damaged.
        let keys = catalog_rules::key_bytes(database).min(pages * PAGE_BYTES as u64);
        let least = LEAST_FOR_FACTS.max(keys.saturating_sub(in_turn / 2));
        let all_maps = mapped * BYTES_PER_PAGE;
        let shelf = SHELF_BYTES
            + threads * SHELF_BYTES_PER_THREAD
            + mapped.div_ceil(INTERVAL_PAGES.into()) * SHELF_BYTES_PER_INTERVAL;
        // The maps of a range are read from the plan, and are always in memory.
        let least_maps = if options.mapped_pages.is_some() { all_maps } else { all_maps.min(shelf) };
        let has_all_maps = match (options.most_map_bytes, options.memory_bytes) {
            (Some(most), _) => all_maps <= most,
            (None, Some(granted)) => all_maps <= least_maps || fixed + all_maps + least <= granted,
            (None, None) => all_maps <= least_maps.max(MOST_FOR_MAPS),
        };
        let maps = if has_all_maps { all_maps } else { shelf };
        Self { fixed, maps, least_maps, has_all_maps, least, mapped }
    }

    /// The temporary file for maps; `None` if all maps are in memory.
    pub(crate) fn shelf(&self, options: &Options, space: &TempStore) -> Option<Shelf> {
        let bytes = options.most_map_bytes.unwrap_or(SHELF_BYTES);
        (!self.has_all_maps).then(|| Shelf::new(space.clone(), bytes as usize))
    }

    /// The most bytes that maps may need in a temporary file.
    pub(crate) fn most_bytes_on_shelf(&self) -> u64 {
        if self.has_all_maps { 0 } else { self.mapped * BYTES_PER_PAGE }
    }

    /// The smallest grant that is sufficient for a run.
    pub(crate) fn minimum_bytes(&self) -> u64 {
        self.fixed + self.least_maps + self.least
    }

    /// The memory granted to a run.
    pub(crate) fn granted_bytes(&self, options: &Options) -> u64 {
        let of_maps = (self.mapped * BYTES_PER_PAGE).min(MOST_FOR_MAPS.max(self.least_maps));
        let default = DEFAULT_MEMORY_BYTES + of_maps;
        options.memory_bytes.unwrap_or(default).max(self.minimum_bytes())
    }

    fn bytes_that_grow(&self, options: &Options) -> u64 {
        self.granted_bytes(options).saturating_sub(self.fixed + self.maps).max(self.least)
    }

    /// The part of the grant that is left for facts.
    pub(crate) fn bytes_for_facts(&self, options: &Options) -> u64 {
        self.bytes_that_grow(options) - self.bytes_for_findings(options) as u64
    }

    /// The part of the grant that is left for findings.
    pub(crate) fn bytes_for_findings(&self, options: &Options) -> usize {
        (self.bytes_that_grow(options) / 8).min(MOST_FOR_FINDINGS) as usize
    }

    /// The memory that a run would need if its facts used `facts` bytes.
    pub(crate) fn bytes_with(&self, facts: u64) -> u64 {
        self.fixed + self.maps + facts
    }
}
