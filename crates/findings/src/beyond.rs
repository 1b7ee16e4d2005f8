//! Results of the checks that go beyond CHECKDB and run only on request: constraints and identity columns.

use catalog::IdentityMark;

use crate::coverage::Coverage;
use crate::registry::limits::Reason;

/// Results of the checks that go beyond CHECKDB.
#[derive(Clone, Debug, Default)]
pub struct Beyond {
    /// CHECK and FOREIGN KEY constraints in scope, by table and name; empty if this check was not requested.
    pub constraints: Vec<ConstraintResult>,
    /// Identity columns in scope, by table; empty if this check was not requested.
    pub identities: Vec<IdentityResult>,
}

/// The result for one constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstraintResult {
    /// The table that the constraint belongs to.
    pub table: String,
    /// The name of the constraint.
    pub name: String,
    /// CHECK or FOREIGN KEY.
    pub type_name: &'static str,
    /// Whether the engine trusts the constraint, that is, assumes that all rows obey it. Untrusted constraints are
    /// checked only with --constraints=all.
    pub is_trusted: bool,
    /// Whether the engine enforces the constraint on new rows.
    pub is_enabled: bool,
    /// Whether all rows were checked and the result of each is certain.
    pub is_verified: bool,
    /// Number of rows checked.
    pub rows: u64,
    /// Number of rows that violate the constraint.
    pub violations: u64,
}

impl ConstraintResult {
    /// Whether the engine trusts and enforces the constraint, in the words that messages use.
    pub fn standing(&self) -> &'static str {
        match (self.is_trusted, self.is_enabled) {
            (true, _) => "trusted",
            (false, true) => "not trusted",
            (false, false) => "disabled",
        }
    }

    /// Notes that the constraint was not verified for `count` rows.
    pub fn not_verified(&self, reason: impl Into<Reason>, coverage: &mut Coverage, count: u64) -> Self {
        let (what, scope) = (format!("{} constraint", self.type_name), format!("{}.{}", self.table, self.name));
        coverage.note_as(&what, reason, scope, count);
        Self { is_verified: false, ..self.clone() }
    }
}

/// An identity column, with its identity values in the catalog and the highest (or lowest) value in its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityResult {
    /// The object ID of the table.
    pub table_id: i32,
    /// The name of the table.
    pub table: String,
    /// The name of the column.
    pub column: String,
    /// The identity values that the catalog stores.
    pub mark: Option<IdentityMark>,
    /// The highest value in the rows, or the lowest value if the increment is negative; `None` if there are no rows.
    pub farthest: Option<i64>,
}

impl IdentityResult {
    /// The result for rows whose lowest and highest values are `range`.
    pub fn with(mut self, range: Option<(i64, i64)>) -> Self {
        let grows = self.mark.is_none_or(|mark| mark.increment > 0);
        self.farthest = range.map(|(low, high)| if grows { high } else { low });
        self
    }

    /// The identity value that was assigned last; `None` if none was assigned.
    pub fn current(&self) -> Option<i64> {
        self.mark.filter(|mark| mark.is_used).map(|mark| mark.current)
    }

    /// Whether values that rows already have, or once had, may be assigned again, because the current identity value is
    /// behind the values in the rows. This state is legal, but the next insert may fail.
    pub fn is_behind(&self) -> bool {
        let (Some(mark), Some(farthest)) = (self.mark, self.farthest) else { return false };
        let (current, farthest) = if mark.increment > 0 { (mark.current, farthest) } else { (farthest, mark.current) };
        current < farthest || current == farthest && !mark.is_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_behind_if_a_value_ahead_of_it_is_taken() {
        let behind = |current, increment, is_used, range| {
            let mark = Some(IdentityMark { current, increment, seed: 1, is_used });
            IdentityResult { mark, ..IdentityResult::default() }.with(range).is_behind()
        };
        assert!(!behind(9, 1, true, Some((1, 9))));
        assert!(!behind(12, 1, true, Some((1, 9))), "rows were deleted");
        assert!(behind(8, 1, true, Some((1, 9))));
        assert!(!behind(1, 1, false, None));
        assert!(behind(1, 1, false, Some((1, 1))), "the first value was inserted by hand");
        assert!(!behind(-9, -1, true, Some((-9, -1))));
        assert!(behind(-8, -1, true, Some((-9, -1))));
        assert!(!behind(-9, -1, true, Some((-9, 100))));
    }
}
