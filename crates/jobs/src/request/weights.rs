//! How windows divide their time: the weights of databases and tables.

use std::collections::BTreeMap;

use catalog::Database;

use crate::failure::Failure;
use crate::scope;

/// The largest weight.
const MOST: u32 = 1000;

/// The weight of a database or of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weight {
    /// The name of a database, or of a table with its schema.
    name: String,
    /// How often its age counts: from 1 to 1,000.
    weight: u32,
}

/// The weights of databases and tables. Others have the weight 1.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Weights(pub Vec<Weight>);

impl Weight {
    /// Parses `NAME=N`. The name may contain an equals sign.
    ///
    /// # Errors
    /// The reason for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted = || format!("expected NAME=N, with N from 1 to {MOST}, such as dbo.Orders=3");
        let (name, weight) = text.rsplit_once('=').ok_or_else(wanted)?;
        let weight = weight.trim().parse().ok().filter(|weight| (1..=MOST).contains(weight)).ok_or_else(wanted)?;
        match scope::parts(name.trim()) {
            Some(parts) if matches!(parts.len(), 1 | 2) && parts.iter().all(|part| !part.is_empty()) => {
                Ok(Self { name: name.trim().to_owned(), weight })
            }
            _ => Err(wanted()),
        }
    }

    /// The name, if it is that of a database: without a schema.
    fn database(&self) -> Option<String> {
        let [name] = <[String; 1]>::try_from(scope::parts(&self.name)?).ok()?;
        Some(name)
    }
}

impl Weights {
    /// Refuses the name of a database that is not among those that are checked.
    ///
    /// # Errors
    /// If a name without a schema is none of `databases`.
    pub fn refuse_unknown<'n>(&self, databases: impl Iterator<Item = &'n str> + Clone) -> Result<(), Failure> {
        let is_unknown = |weight: &&Weight| {
            weight.database().is_some_and(|name| databases.clone().all(|one| one.to_lowercase() != name.to_lowercase()))
        };
        self.0.iter().find(is_unknown).map_or(Ok(()), |Weight { name, weight }| {
            Err(Failure::usage(format!(
                "--weight {name}={weight}: no database with this name is checked; a table needs its schema, such as dbo.{name}={weight}"
            )))
        })
    }

    /// The weight of a database.
    pub fn of_database(&self, name: &str) -> u32 {
        let is_same = |weight: &&Weight| weight.database().is_some_and(|one| one.to_lowercase() == name.to_lowercase());
        self.0.iter().rev().find(is_same).map_or(1, |weight| weight.weight)
    }

    /// The weights of the tables of a database, by object ID. A name that the database does not have counts for another
    /// one.
    pub(crate) fn of_tables(&self, database: &Database) -> BTreeMap<i32, u32> {
        let of_tables = self.0.iter().filter(|weight| weight.database().is_none());
        of_tables.filter_map(|weight| Some((scope::table(database, &weight.name).ok()?, weight.weight))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(texts: &[&str]) -> Weights {
        Weights(texts.iter().map(|text| Weight::parse(text).unwrap()).collect())
    }

    #[test]
    fn a_name_without_a_schema_is_that_of_a_database() {
        let weights = weights(&["Sales=3", "[My.Db]=2", "dbo.Orders=9", "sales=4", "a=b=5"]);
        assert_eq!(weights.of_database("SALES"), 4, "the last one counts");
        assert_eq!(
            [weights.of_database("My.Db"), weights.of_database("Orders"), weights.of_database("a=b")],
            [2, 1, 5]
        );
    }

    #[test]
    fn a_weight_needs_a_name_and_a_number() {
        for text in ["Sales", "Sales=", "=3", "Sales=0", "Sales=1001", "Sales=-1", "a.b.c=2", "dbo.=2", "[x=2"] {
            assert!(Weight::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_database_that_is_not_checked_is_refused() {
        let weights = weights(&["dbo.Nothing=2", "Orders=2"]);
        assert!(weights.refuse_unknown(["orders", "b"].into_iter()).is_ok());
        let failure = weights.refuse_unknown(["a", "b"].into_iter()).unwrap_err();
        assert_eq!(
            failure.text,
            "--weight Orders=2: no database with this name is checked; a table needs its schema, such as dbo.Orders=2"
        );
    }
}
