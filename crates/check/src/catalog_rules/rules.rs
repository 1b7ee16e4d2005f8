//! The parts of a rule about the catalog. The rules themselves are in [`super::table`].

use crate::registry::Check;

/// A base table. All have integer keys, read as signed numbers.
pub(super) struct Base {
    pub(super) id: i32,
    pub(super) name: &'static str,
    /// The first database version that has the table.
    pub(super) since: u16,
}

/// A column of a base table, and its name in the catalog view.
pub(super) type Column = (&'static str, &'static str);

/// A condition on a row of a base table.
pub(super) enum Only {
    Is(&'static str, i64),
    Not(&'static str, i64),
    Above(&'static str, i64),
    Below(&'static str, i64),
    Bit(&'static str, i64),
    /// The two-character code of sysschobjs.type or the letter of sysowners.type is one of these.
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

/// Rows that other rows refer to, by their key of one or two columns.
pub(super) struct Keys {
    pub(super) base: &'static Base,
    pub(super) only: &'static [Only],
    pub(super) view: &'static str,
    pub(super) key: &'static [Column],
}

/// How a dangling reference is reported.
pub(super) enum Violation {
    /// 3853: an attribute of a row names a row that does not exist.
    Dangling,
    /// 3855: the row is a value of another row, which does not exist. Its identity columns are the attribute.
    OfNothing,
    /// 3857: the row lacks a value that every such row must have.
    Lacks(&'static str),
    /// 3852: the row has no partner.
    Alone,
    /// 8997: a Service Broker object refers to one that does not exist.
    Broker(&'static Check),
    /// Not verified: too few such rows were seen to prove that a sound database never has one.
    Unproven,
}

/// A reference: every row of `rows` must have its row in `to`.
pub(super) struct Reference {
    pub(super) rows: Rows,
    /// The referring columns: as many as the key of `to` has, or only the first, which then matches any row with that
    /// value.
    pub(super) refers: &'static [Column],
    pub(super) to: &'static Keys,
    pub(super) says: Violation,
}

/// A table of values or references of many kinds, distinguished by a class.
pub(super) struct Classes {
    pub(super) base: &'static Base,
    pub(super) column: &'static str,
    /// The classes that rules cover, or that are known to refer to nothing.
    pub(super) known: &'static [i64],
    /// Classes that refer to nothing in the catalog of master, which also describes the server.
    pub(super) of_server: &'static [i64],
}

impl Classes {
    /// Whether it is known what rows of a class refer to.
    pub(super) fn has(&self, class: i64, is_of_the_server: bool) -> bool {
        self.known.contains(&class) || is_of_the_server && self.of_server.contains(&class)
    }
}
