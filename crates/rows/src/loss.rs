//! The cost of damaged pages for a table: how many rows are lost, which ones, and which of their columns other places
//! still have.

use format::PageId;

mod find;

pub use find::losses;

/// The loss from adjacent pages of a table that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Object id of the table.
    pub object_id: i32,
    /// Partition number, from 1; `None` if unknown: no readable IAM page lists the pages.
    pub partition: Option<i32>,
    /// The pages, in the order of the rows on them.
    pub pages: Vec<PageId>,
    /// How many rows the pages held.
    pub rows: LostRows,
    /// Which rows these are.
    pub which: WhichRows,
    /// The columns of those rows that other places still have, by column ID; a column that no place has is not listed.
    pub recoverable: Vec<RecoverableColumn>,
}

/// How many rows are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRows {
    /// The least possible number.
    pub least: u64,
    /// The greatest possible number; `None` if it has no limit.
    pub most: Option<u64>,
    /// The basis of the numbers.
    pub basis: CountBasis,
}

/// The basis of a number of lost rows, the strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CountBasis {
    /// The table's row count in the catalog, less the rows that were read.
    StoredCount,
    /// The slot count in the header of the damaged page, which no other source confirms.
    PageHeader,
    /// The number of rows that fit on a page.
    PageSize,
}

/// Which rows are lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichRows {
    /// The rows between two keys of the clustered index.
    Keys {
        /// Names of the key columns.
        columns: Vec<String>,
        /// The first possible key; `None` if the range has no lower limit.
        from: Option<KeyBound>,
        /// The key at which the range ends; `None` if it has no upper limit.
        to: Option<KeyBound>,
    },
    /// The rows of a heap with these addresses: all slots of the pages.
    Slots,
    /// Unknown, because all links to the pages are damaged too. The pages may have held no rows at all.
    Unknown,
}

/// A limit of a range of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyBound {
    /// The key's values, as many as [`WhichRows::Keys`] has columns.
    pub values: Vec<KeyValue>,
    /// Whether a row with exactly this key may be lost too.
    pub inclusive: bool,
    /// The page from which the key was read.
    pub from_page: PageId,
}

/// A value of a key as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyValue {
    /// The value as SQL Server prints it; `None` for NULL.
    pub text: Option<String>,
    /// The value as a T-SQL literal.
    pub literal: String,
}

/// A column of lost rows that another place still has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverableColumn {
    /// Column id.
    pub column_id: u32,
    /// Its name.
    pub name: String,
    /// Where its values are.
    pub source: ColumnSource,
}

/// Where values of lost rows still exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnSource {
    /// In a nonclustered index, as key, included column or part of the row's locator.
    Index {
        /// Index id.
        index_id: i32,
        /// Its name.
        name: String,
        /// Whether only rows that its filter accepts are there.
        is_filtered: bool,
    },
}

impl WhichRows {
    /// The lower limit as text, `(a, b)` for more than one column; `None` if there is none.
    pub fn first_key(&self) -> Option<String> {
        match self {
            Self::Keys { from, .. } => from.as_ref().map(KeyBound::text),
            Self::Slots | Self::Unknown => None,
        }
    }

    /// The upper limit as text.
    pub fn last_key(&self) -> Option<String> {
        match self {
            Self::Keys { to, .. } => to.as_ref().map(KeyBound::text),
            Self::Slots | Self::Unknown => None,
        }
    }
}

impl KeyBound {
    /// The values as text: `17`, or `(17, abc)`.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.values.iter().map(|value| value.text.as_deref().unwrap_or("NULL")).collect();
        match texts.as_slice() {
            [text] => (*text).to_owned(),
            _ => format!("({})", texts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_columns_is_in_brackets() {
        let value = |text: Option<&str>| KeyValue { text: text.map(str::to_owned), literal: String::new() };
        let bound = |values| KeyBound { values, inclusive: true, from_page: PageId::NONE };
        assert_eq!(bound(vec![value(Some("17"))]).text(), "17");
        assert_eq!(bound(vec![value(Some("17")), value(None)]).text(), "(17, NULL)");
    }
}
