//! What the damage of pages costs a table: how many rows, which ones, and what of them lives on elsewhere.

use format::PageId;

mod find;

pub use find::losses;

/// What is lost with pages of a table that lie side by side, and cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Object id of the table.
    pub object_id: i32,
    /// Partition number, from 1; `None` if nothing says which: no IAM page that can be read lists the pages.
    pub partition: Option<i32>,
    /// The pages, in the order of the rows on them.
    pub pages: Vec<PageId>,
    /// How many rows were on them.
    pub rows: LostRows,
    /// Which rows.
    pub which: WhichRows,
    /// The columns of those rows that other places still have, by column id; a column that is in no place is missing.
    pub recoverable: Vec<RecoverableColumn>,
}

/// How many rows are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRows {
    /// At least so many.
    pub least: u64,
    /// At most so many; `None` if nothing limits it.
    pub most: Option<u64>,
    /// What the numbers rest on.
    pub basis: CountBasis,
}

/// What a number of lost rows rests on, the strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CountBasis {
    /// The table's own count in the catalog, less the rows that were read.
    StoredCount,
    /// The slot count in the header of the damaged page, which nothing confirms.
    PageHeader,
    /// What fits on a page.
    PageSize,
}

/// Which rows are lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichRows {
    /// Those between two keys of the clustered index.
    Keys {
        /// Names of the key columns.
        columns: Vec<String>,
        /// The rows begin at or after this key; `None`: at the first key there may be.
        from: Option<KeyBound>,
        /// The rows end before this key; `None`: at the last key there may be.
        to: Option<KeyBound>,
    },
    /// Those of a heap with these addresses: all slots of the pages.
    Slots,
    /// Nothing says which, as what leads to the pages is damaged too. They may have held no rows at all.
    Unknown,
}

/// A limit of a range of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyBound {
    /// The key's values, as many as [`WhichRows::Keys`] has columns.
    pub values: Vec<KeyValue>,
    /// Whether a row with this very key can be among the lost.
    pub inclusive: bool,
    /// The page that has the key.
    pub from_page: PageId,
}

/// A value of a key as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyValue {
    /// The value as SQL Server prints it; `None`: NULL.
    pub text: Option<String>,
    /// The value as a literal of T-SQL.
    pub literal: String,
}

/// A column of lost rows that another place has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverableColumn {
    /// Column id.
    pub column_id: u32,
    /// Its name.
    pub name: String,
    /// Where its values are.
    pub source: ColumnSource,
}

/// Where values of lost rows live on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnSource {
    /// In a nonclustered index, as key, included column or part of the row's locator.
    Index {
        /// Index id.
        index_id: i32,
        /// Its name.
        name: String,
        /// Only rows that its filter lets in are there.
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
