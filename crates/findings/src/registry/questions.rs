//! The questions that other crates ask about a check. The phase and the damage in the row of the check answer them.

use super::damage::{Damage, Row};
use super::{Check, Phase, ReportOrder};

/// What a check compares. It determines which facts a finding needs as a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// One page, or one record.
    OnePage,
    /// The rows of the catalog.
    Catalog,
    /// The rows of a table, and a constraint of the table.
    Constraint,
    /// Several pages or rows, a page and its description in the catalog, or a page and the log.
    Several,
}

impl Check {
    /// What the check compares.
    pub fn basis(&self) -> Basis {
        match self.phase {
            Phase::Page | Phase::Record => Basis::OnePage,
            Phase::Metadata | Phase::Catalog => Basis::Catalog,
            Phase::Constraint => Basis::Constraint,
            Phase::Primitive
            | Phase::Allocation
            | Phase::Column
            | Phase::CrossPage
            | Phase::CrossRow
            | Phase::OffRow
            | Phase::Counts
            | Phase::Log
            | Phase::Container => Basis::Several,
        }
    }

    /// Whether a finding says that the page that it names is wrong. All other findings say that something is missing,
    /// or that a reference to the page is wrong.
    pub fn is_about_its_page(&self) -> bool {
        matches!(self.phase, Phase::Page | Phase::Record | Phase::Allocation)
    }

    /// Whether the damage is on the page that a finding names, so that findings about relations to this page are
    /// consequences.
    pub fn is_damage_on_its_page(&self) -> bool {
        matches!(self.phase, Phase::Page | Phase::Record | Phase::Log)
    }

    /// Whether the check relates pages or rows to each other. Damage on one of them may cause the finding.
    pub fn relates_pages(&self) -> bool {
        matches!(self.phase, Phase::CrossPage | Phase::CrossRow | Phase::OffRow)
    }

    /// Whether a finding is proven by a range of pages, without all other ranges.
    pub fn is_of_one_range(&self) -> bool {
        matches!(self.phase, Phase::Page | Phase::Record | Phase::Column) && self.damage != Damage::Row(Row::Partition)
    }

    /// Whether a finding says that rows of its allocation unit may be missing or wrong, so that a comparison of its
    /// rows proves nothing.
    pub fn hides_rows(&self) -> bool {
        matches!(self.phase, Phase::Page | Phase::Record | Phase::CrossPage)
    }

    /// Whether the check compares the fragments of off-row values with the pointers to them.
    pub fn is_of_off_row_values(&self) -> bool {
        self.phase == Phase::OffRow
    }

    /// Whether a finding is only about descriptions of a table in the catalog, so that the rows of the table may still
    /// be compared.
    pub fn is_of_description(&self) -> bool {
        matches!(self.phase, Phase::Counts | Phase::Catalog)
    }

    /// Whether the check examines the pages and rows of a table or index.
    pub fn is_of_rows_and_pages(&self) -> bool {
        matches!(
            self.phase,
            Phase::Page
                | Phase::Record
                | Phase::Column
                | Phase::CrossPage
                | Phase::CrossRow
                | Phase::OffRow
                | Phase::Constraint
        )
    }

    /// Whether the check compares the columns of a record with the catalog.
    pub fn is_of_columns(&self) -> bool {
        self.phase == Phase::Column
    }

    /// Whether the check compares the rows of an index with the rows of its table.
    pub fn compares_index_rows(&self) -> bool {
        self.phase == Phase::CrossRow
    }

    /// Whether the check is about allocation maps and IAM chains.
    pub fn is_of_allocation(&self) -> bool {
        self.phase == Phase::Allocation
    }

    /// Whether the check compares pages with the log.
    pub fn is_of_log(&self) -> bool {
        self.phase == Phase::Log
    }

    /// Whether the check compares the rows of a table with its constraints.
    pub fn is_of_constraints(&self) -> bool {
        self.basis() == Basis::Constraint
    }

    /// Whether the check is about the file of a backup, and not about the pages in it.
    pub fn is_of_container(&self) -> bool {
        self.damage == Damage::Container
    }

    /// Whether a server ends its check after a finding, because it cannot find the tables.
    pub fn is_primitive(&self) -> bool {
        self.damage == Damage::Primitive
    }

    /// Whether a run reports findings of this check for every scope, because without the catalog nothing is checked.
    pub fn is_of_every_scope(&self) -> bool {
        matches!(self.phase, Phase::Primitive | Phase::Metadata)
    }

    /// Whether recovery cannot remove a finding: the comparison with the log knows which records recovery applies, and
    /// the container of a backup does not depend on its pages.
    pub fn is_apart_from_recovery(&self) -> bool {
        matches!(self.phase, Phase::Log | Phase::Container)
    }

    /// Whether the rule of the check is one that CHECKDB does not test.
    pub fn is_beyond_checkdb(&self) -> bool {
        matches!(self.phase, Phase::Log | Phase::Container | Phase::Constraint)
    }
}

/// The place of a message in an order in which causes come before consequences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CauseRank {
    order: ReportOrder,
    phase: Phase,
}

impl CauseRank {
    /// The place of the messages of a check. A message that no check prints has the place of a message about a page.
    pub fn of(check: Option<&Check>) -> Self {
        let (order, phase) = check.map_or((ReportOrder::ByPage, Phase::Page), |check| (check.listed, check.phase));
        // That maps are checked first matters only in a report.
        let order = if order == ReportOrder::OfMap { ReportOrder::ByPage } else { order };
        Self { order, phase }
    }

    /// Whether the message only follows from other messages.
    pub fn follows(self) -> bool {
        self.order > ReportOrder::ByPage
    }
}
