//! Describes what a table loses when pages are damaged: the number of lost rows, the keys or addresses of these rows,
//! and the columns whose values can still be found elsewhere.

use format::PageId;

mod find;

pub use find::losses;

/// The loss caused by adjacent unreadable pages of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Object ID of the table.
    pub object_id: i32,
    /// Partition number, from 1; `None` if it is unknown because no readable IAM page lists the pages.
    pub partition: Option<i32>,
    /// The pages, in the order of the rows on them.
    pub pages: Vec<PageId>,
    /// The number of lost rows.
    pub rows: LostRows,
    /// Which rows the pages held.
    pub which: WhichRows,
    /// The columns whose values in the lost rows can still be found elsewhere, ordered by column ID. Other columns are
    /// not listed.
    pub recoverable: Vec<RecoverableColumn>,
}

/// The number of lost rows, as a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRows {
    /// The smallest possible number of lost rows.
    pub least: u64,
    /// The largest possible number of lost rows; `None` if no limit is known.
    pub most: Option<u64>,
    /// The source of the two numbers.
    pub basis: CountBasis,
}

/// The source of a number of lost rows, from the most to the least reliable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CountBasis {
    /// The table's row count in the catalog, minus the number of rows that were read.
    StoredCount,
    /// The slot count in the header of the damaged page. No other source confirms this count.
    PageHeader,
    /// The number of the smallest possible rows that fit on a page.
    PageSize,
}

/// Which rows are lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichRows {
    /// The rows within a range of keys of the clustered index.
    Keys {
        /// Names of the key columns.
        columns: Vec<String>,
        /// The lower limit of the range; `None` if the range has no known lower limit.
        from: Option<KeyBound>,
        /// The upper limit of the range; `None` if the range has no known upper limit.
        to: Option<KeyBound>,
    },
    /// The rows in all slots of the unreadable heap pages.
    Slots,
    /// Unknown, because everything that points to the pages is damaged too. The pages may have held no rows.
    Unknown,
}

/// A limit of a range of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyBound {
    /// One value for each column that [`WhichRows::Keys`] names.
    pub values: Vec<KeyValue>,
    /// Whether a row with exactly this key may be lost.
    pub inclusive: bool,
    /// The page from which the key was read.
    pub from_page: PageId,
}

/// One value of a key, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyValue {
    /// The value as SQL Server prints it; `None` for NULL.
    pub text: Option<String>,
    /// The value as a T-SQL literal.
    pub literal: String,
}

/// A column of the lost rows that can still be found elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoverableColumn {
    /// Column ID.
    pub column_id: u32,
    /// Name of the column.
    pub name: String,
    /// The place where the column's values still exist.
    pub source: ColumnSource,
}

/// A place where values of lost rows still exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnSource {
    /// A nonclustered index that has the column as a key column, as an included column, or as part of its row locator.
    Index {
        /// Index ID.
        index_id: i32,
        /// Name of the index.
        name: String,
        /// Whether the index is filtered, so that it has only the rows that its filter accepts.
        is_filtered: bool,
    },
}

impl WhichRows {
    /// The lower limit as text, in the form `(a, b)` if the key has several columns; `None` if the range has no lower
    /// limit.
    pub fn first_key(&self) -> Option<String> {
        match self {
            Self::Keys { from, .. } => from.as_ref().map(KeyBound::text),
            Self::Slots | Self::Unknown => None,
        }
    }

    /// The upper limit as text, in the form `(a, b)` if the key has several columns; `None` if the range has no upper
    /// limit.
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
