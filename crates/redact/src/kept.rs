//! What a redaction could not change without changing a finding.

use std::collections::BTreeMap;

/// Why something was kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// Compressed rows and columnstores.
    Compressed,
    /// Columns of computed columns and filters.
    Expression,
    /// Partitioning columns.
    Partition,
    /// Columns with a default for older rows.
    Default,
    /// Sparse columns.
    Sparse,
    /// Decimals of variable length.
    Vardecimal,
    /// Types of unknown form.
    Type,
    /// Numbers in sql_variant.
    VariantNumbers,
    /// Off-row values that may belong to a column that stays.
    OffRow,
    /// Values outside the domain of their type.
    Invalid,
    /// Texts that have no other text with the same order.
    Unchanged,
    /// Names that names of the system equal or begin with.
    NameOfSystem,
    /// Constants in definitions.
    Definition,
    /// The last values of identity columns, and the values of sequences.
    Counter,
    /// Pages of unknown units.
    UnknownPages,
    /// Records and pages of damaged or unknown form.
    Damaged,
}

impl Why {
    /// The reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Compressed => "compressed rows and columnstores stay: other values have other lengths",
            Self::Expression => "the check computes a column or a filter from these values",
            Self::Partition => "these values decide the partition of a row",
            Self::Default => "the catalog has a default that older rows share",
            Self::Sparse => "sparse columns stay",
            Self::Vardecimal => "decimals of variable length stay",
            Self::Type => "the type has a form of its own (spatial, hierarchyid, vector, CLR types)",
            Self::VariantNumbers => "numbers and dates in sql_variant stay; texts and bytes in it change",
            Self::OffRow => "off-row values may belong to a column that stays",
            Self::Invalid => "values outside the domain of their type stay as invalid as they were",
            Self::Unchanged => "no other text of this length has the same order",
            Self::NameOfSystem => "an index of the catalog orders these names between names of the system",
            Self::Definition => {
                "constants in definitions stay: all those of computed columns and filters, and numbers of four or more \
                 digits and binary constants in those of defaults and CHECK constraints"
            }
            Self::Counter => "the last value of an identity column or of a sequence stays in the catalog",
            Self::UnknownPages => {
                "pages in use of a unit that the catalog does not name: their texts change, their numbers stay"
            }
            Self::Damaged => {
                "records and pages of damaged or unknown form: texts that can be recognized change, the rest stays"
            }
        }
    }
}

/// What was kept: why, where, and how many columns, stored values, definitions, records or pages.
#[derive(Clone, Debug, Default)]
pub struct Kept(BTreeMap<(Why, String), u64>);

impl Kept {
    pub(crate) fn add(&mut self, why: Why, place: &str, count: u64) {
        *self.0.entry((why, place.to_owned())).or_default() += count;
    }

    /// Notes a column, a table or a counter that stays. It counts once, even if several rowsets have it.
    pub(crate) fn note(&mut self, why: Why, place: &str) {
        self.0.insert((why, place.to_owned()), 1);
    }

    /// Whether values were kept, not only names like those that every database has.
    pub fn has_values(&self) -> bool {
        self.0.keys().any(|(why, _)| *why != Why::NameOfSystem)
    }

    /// Each reason with its place and count.
    pub fn iter(&self) -> impl Iterator<Item = (Why, &str, u64)> {
        self.0.iter().map(|((why, place), count)| (*why, place.as_str(), *count))
    }
}
