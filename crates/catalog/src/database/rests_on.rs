//! What the description of a table rests on.

use std::fmt;

/// What the description of a table rests on, if the catalog could not be read along its own pointers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RestsOn {
    /// On the database's own catalog, whose pages were found by their headers.
    OwnPages,
    /// On the database's own catalog, except for the names of the table or of its columns, which are lost.
    OwnPagesWithoutNames,
    /// On the catalog of a copy of the database.
    Copy,
    /// On nothing but the form of the records. Their fields are delivered as raw bytes.
    Records,
    /// On nothing but the form of the records, because they contradict the only description of the table.
    RecordsAgainst(Difference),
    /// On a catalog that has lost the pages of the table. Its rows may be among those of a unit whose table is unknown.
    NoPages,
}

/// How the records of a table contradict its description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What differs.
    pub what: Compared,
    /// The largest number in the records.
    pub in_records: u16,
    /// The largest number that the description allows.
    pub described: u16,
}

/// A number in which records and a description differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// The number of columns.
    Columns,
    /// The number of variable-length columns.
    VariableColumns,
    /// The length of the fixed part in bytes.
    FixedBytes,
    /// The number of columns in the records, and of those that are described: rows of the catalog are lost.
    DescribedColumns,
}

impl fmt::Display for RestsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnPages => f.write_str("catalog pages found by their headers"),
            Self::OwnPagesWithoutNames => f.write_str("catalog pages found by their headers; names are lost"),
            Self::Copy => f.write_str("the catalog of the copy"),
            Self::Records => f.write_str("the form of its records: raw fields"),
            Self::RecordsAgainst(difference) => {
                write!(f, "the form of its records: raw fields, because {difference}")
            }
            Self::NoPages => f.write_str(
                "a catalog that has lost which pages the table has: its rows may be in a table named unit_ and a number",
            ),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_records, described, .. } = self;
        match self.what {
            Compared::Columns => write!(f, "its records have {in_records} columns, and the catalog {described}"),
            Compared::VariableColumns => {
                write!(f, "its records have {in_records} variable-length columns, and the catalog {described}")
            }
            Compared::DescribedColumns => {
                write!(
                    f,
                    "the catalog has lost the description of some of its {in_records} columns and has {described}"
                )
            }
            Compared::FixedBytes => {
                write!(f, "the fixed part of its records has {in_records} bytes, and in the catalog {described}")
            }
        }
    }
}
