//! Makes the references available as values, for the documentation and for tests that damage each reference.

use super::evaluate::{class, condition_holds};
use super::rules::{Reference, Violation};
use super::table::REFERENCES;

/// A reference between base tables. In a sound database it is intact for every row to which it applies.
#[derive(Clone, Copy)]
pub struct CatalogReference(&'static Reference);

/// All references between base tables that are checked.
pub fn catalog_references() -> impl Iterator<Item = CatalogReference> {
    REFERENCES.iter().map(CatalogReference)
}

impl CatalogReference {
    /// The base table of the referring rows: object id and name.
    pub fn table(&self) -> (i32, &'static str) {
        (self.0.rows.base.id, self.0.rows.base.name)
    }

    /// The catalog view that messages name instead of the base table.
    pub fn view(&self) -> &'static str {
        self.0.rows.view
    }

    /// The class of the referring rows, if their table has rows of many classes; `None` if the reference applies to all
    /// rows.
    pub fn class(&self) -> Option<i64> {
        class(self.0)
    }

    /// The referring columns, with their names in the base table and in messages.
    pub fn columns(&self) -> &'static [(&'static str, &'static str)] {
        self.0.refers
    }

    /// The view that the columns refer to.
    pub fn referenced(&self) -> &'static str {
        self.0.to.view
    }

    /// The number of the message for a row whose referenced row is missing: 3852, 3853, 3855, 3857 or a message of
    /// Service Broker. `None` if the row is only reported as not verified.
    pub fn message(&self) -> Option<u16> {
        match &self.0.says {
            Violation::Alone => Some(3852),
            Violation::Dangling => Some(3853),
            Violation::OfNothing => Some(3855),
            Violation::Lacks(_) => Some(3857),
            Violation::Broker(check) => Some(inner_number(check.template).unwrap_or(check.msg)),
            Violation::Unproven => None,
        }
    }

    /// Whether the reference applies to a row. `value` gives the row's value for a column name.
    pub fn applies(&self, value: impl Fn(&str) -> Option<i64>) -> bool {
        self.0.rows.only.iter().all(|only| value(only.column()).is_some_and(|value| condition_holds(only, value)))
    }
}

/// The number of the inner message in a template: 9677 in `Service Broker Msg 9677, State 1: text`.
fn inner_number(template: &str) -> Option<u16> {
    template.split_once("Msg ")?.1.split_once(',')?.0.parse().ok()
}
