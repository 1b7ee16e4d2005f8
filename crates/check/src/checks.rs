//! The complete list of the checks of pages and of rows; no other module knows all checks. Pages and rows are passed to
//! the checks in the order of the list. The sums are evaluated in this order too, except that all checks of pages come
//! before all checks of rows.

pub(crate) mod columns;
pub(crate) mod columnstore;
pub(crate) mod computed;
pub(crate) mod constraints;
pub(crate) mod counts;
pub(crate) mod extended;
pub(crate) mod heap;
pub(crate) mod identity;
pub(crate) mod index_match;
pub(crate) mod lob;
pub(crate) mod page_lsn;
pub(crate) mod partitions;
pub(crate) mod statistics;
pub(crate) mod tree;
pub(crate) mod unprotected;

use catalog::Database;
use findings::Options;
use source::PageSource;

use crate::sweep::check_list::{CheckList, check_list};
use crate::sweep::context::Context;
use crate::sweep::memory::MemoryBudget;

check_list! {
    /// The plans of all checks.
    Checks, Sums, Scratch, PageHandled {
        pages {
            /// Compares the free space on a page with its PFS byte.
            free_space: lob::FreeSpace,
            /// Counts pages that were changed after the last checkpoint.
            last_checkpoint: page_lsn::LastCheckpoint,
            /// Counts pages without a checksum or torn-page bits.
            unprotected: unprotected::Unprotected,
            /// Checks forwarded rows of heaps.
            heaps: heap::Heaps,
            /// Checks B-trees.
            trees: tree::Trees,
        }
        rows {
        /// Checks the columns of rows: NULL, length and data purity.
        columns: columns::Plans,
        /// Checks persisted computed columns.
        computed: computed::Plans,
        /// Checks off-row values.
        lob: lob::Plans,
        /// Compares nonclustered indexes with their table.
        indexes: index_match::Plans,
        /// Compares rows with the boundaries of their partitions.
        partitions: partitions::Plans,
        /// Checks CHECK and FOREIGN KEY constraints.
        constraints: constraints::Plans,
        /// Checks identity columns.
        identities: identity::Plans,
        }
    }
}

impl Checks {
    /// The memory that a run needs.
    pub(crate) fn needs(source: &dyn PageSource, database: &Database, options: &Options) -> MemoryBudget {
        MemoryBudget::of(source, database, options, Self::bytes_per_thread(database))
    }

    /// The plans of all checks that this run makes. With PHYSICAL_ONLY, the run makes no checks of rows.
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let (database, units, survey, options) = (context.database, &context.units, &context.survey, context.options);
        let last_checkpoint = page_lsn::LastCheckpoint::of(database, context.source);
        let unprotected = unprotected::Unprotected::of(database);
        if options.physical_only {
            return Self { last_checkpoint, unprotected, ..Self::default() }.ask(context);
        }
        let plans = Self {
            last_checkpoint,
            unprotected,
            columns: columns::Plans::new(database, units, survey),
            computed: computed::Plans::new(database, units, survey),
            lob: lob::Plans::new(database, units, survey),
            indexes: index_match::Plans::new(database, units, survey),
            partitions: partitions::Plans::new(database, units, options),
            constraints: if options.constraints {
                constraints::Plans::new(database, units, survey, options.all_constraints)
            } else {
                constraints::Plans::default()
            },
            identities: if options.identities {
                identity::Plans::new(database, units)
            } else {
                identity::Plans::default()
            },
            ..Self::default()
        };
        plans.ask(context)
    }
}
