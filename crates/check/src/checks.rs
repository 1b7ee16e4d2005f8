//! The list of the checks of rows: the only place that knows all of them. Their order is that in which rows are handed to them
//! and in which their sums are settled.

use crate::context::Context;
use crate::row_check::row_checks;
use crate::{columns, computed, constraints, identity, index_match, lob, partitions};

row_checks! {
    /// The plans of all checks of rows.
    Checks, Sums, Scratch, PageHandled {
        /// Columns against the catalog, NULL, length, data purity.
        columns: columns::Plans,
        /// Persisted computed columns.
        computed: computed::Plans,
        /// Values off the row.
        lob: lob::Plans,
        /// Nonclustered indexes against their table.
        indexes: index_match::Plans,
        /// Rows in their partitions.
        partitions: partitions::Plans,
        /// CHECK and FOREIGN KEY constraints.
        constraints: constraints::Plans,
        /// Identity columns.
        identities: identity::Plans,
    }
}

impl Checks {
    /// The plans of the checks that a run makes: none with PHYSICAL_ONLY.
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let (database, units, survey, options) = (context.database, &context.units, &context.survey, context.options);
        if options.physical_only {
            return Self::default();
        }
        let plans = Self {
            columns: columns::Plans::new(database, units, survey),
            computed: computed::Plans::new(database, units, survey),
            lob: lob::Plans::new(database, units, survey),
            indexes: index_match::Plans::new(database, units, survey),
            partitions: partitions::Plans::new(database, units, options.no_index),
            constraints: if options.constraints {
                constraints::Plans::new(database, units, survey)
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
