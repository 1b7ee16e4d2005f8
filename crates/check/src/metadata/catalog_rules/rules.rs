//! The types that describe a rule about the catalog. The rules themselves are in [`super::table`].

use findings::registry::Check;

/// A base table. The keys of all base tables are integers, read as signed numbers.
pub(super) struct Base {
    pub(super) id: i32,
    pub(super) name: &'static str,
    /// The first database version that has the table.
    pub(super) since: u16,
}

/// The name of a column in the base table, and its name in the catalog view.
pub(super) type Column = (&'static str, &'static str);

/// A condition on a row of a base table.
pub(super) enum Only {
    Is(&'static str, i64),
    Not(&'static str, i64),
    Above(&'static str, i64),
    Below(&'static str, i64),
    Bit(&'static str, i64),
    /// The type of the row is one of these codes: two characters in sysschobjs.type, one letter in sysowners.type.
    Type(&'static [&'static str]),
}

impl Only {
    /// The column that the condition tests.
    pub(super) fn column(&self) -> &'static str {
        match self {
            Self::Is(name, _) | Self::Not(name, _) | Self::Above(name, _) | Self::Below(name, _) => name,
            Self::Bit(name, _) => name,
            Self::Type(_) => "type",
        }
    }
}

/// Rows of a base table that make up a catalog view.
pub(super) struct Rows {
    pub(super) base: &'static Base,
    pub(super) only: &'static [Only],
    /// The view that messages name.
    pub(super) view: &'static str,
    /// The columns by which messages identify a row.
    pub(super) identity: &'static [Column],
}

/// Rows that other rows refer to. `key` lists the one or two columns that the references name.
pub(super) struct Keys {
    pub(super) base: &'static Base,
    pub(super) only: &'static [Only],
    pub(super) view: &'static str,
    pub(super) key: &'static [Column],
}

/// How a dangling reference is reported.
pub(super) enum Violation {
    /// 3853: a column of the row refers to a row that does not exist.
    Dangling,
    /// 3855: the row stores an attribute of another row, and that other row does not exist. As the name of the
    /// attribute, the message prints the identity columns of the row that stores it.
    OfNothing,
    /// 3857: the row lacks a value that every row of its kind must have.
    Lacks(&'static str),
    /// 3852: the row has no matching row in the referenced table.
    Alone,
    /// 8997: a Service Broker object refers to a Service Broker object that does not exist.
    Broker(&'static Check),
    /// Not verified: too few rows with this reference were seen to prove that it is intact in every sound database.
    Unproven,
}

/// A reference: for every row of `rows`, the row that it refers to must exist in `to`.
pub(super) struct Reference {
    pub(super) rows: Rows,
    /// The referring columns. They refer to all columns of the key of `to`, or only to its first column. If they refer
    /// only to the first column, any row of `to` with the same value in that column matches.
    pub(super) refers: &'static [Column],
    pub(super) to: &'static Keys,
    pub(super) says: Violation,
}

/// A base table with values or references of many kinds. A class column gives the kind of each row.
pub(super) struct Classes {
    pub(super) base: &'static Base,
    pub(super) column: &'static str,
    /// The classes that rules cover, and the classes that are known to refer to nothing.
    pub(super) known: &'static [i64],
    /// The classes of the rows in the catalog of master that describe the server. These rows refer to nothing in the
    /// catalog.
    pub(super) of_server: &'static [i64],
}

impl Classes {
    /// Whether the class is covered by a rule or known to refer to nothing.
    pub(super) fn has(&self, class: i64, is_of_the_server: bool) -> bool {
        self.known.contains(&class) || is_of_the_server && self.of_server.contains(&class)
    }
}
