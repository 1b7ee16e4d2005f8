//! Stores results of `mdfsck bench` under a name, so that later results can be compared with them.

use std::time::SystemTime;

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::file::History;
use crate::time;

/// A stored result of `mdfsck bench`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// The name under which the results were saved.
    pub name: String,
    /// When the results were saved.
    pub saved_at: String,
    /// The results, as JSON.
    pub results: String,
}

impl History {
    /// Saves results under a name and replaces earlier results of that name.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn save_baseline(&mut self, name: &str, results: &str) -> Result<()> {
        let now = time::text(SystemTime::now());
        self.transaction(|transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO baseline (name, saved_at, results) VALUES (?1, ?2, ?3)",
                params![name, now, results],
            )
        })
        .map(drop)
    }

    /// The results saved under a name, as JSON; `None` if there are none.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn baseline(&self, name: &str) -> Result<Option<String>> {
        let query = "SELECT results FROM baseline WHERE name = ?1";
        let found = self.connection().query_row(query, [name], |row| row.get(0)).optional();
        found.map_err(|error| self.failed(&error))
    }

    /// All baselines, ordered by name.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn baselines(&self) -> Result<Vec<Baseline>> {
        let all = || {
            let mut statement =
                self.connection().prepare("SELECT name, saved_at, results FROM baseline ORDER BY name")?;
            let rows = statement
                .query_map([], |row| Ok(Baseline { name: row.get(0)?, saved_at: row.get(1)?, results: row.get(2)? }))?;
            rows.collect::<rusqlite::Result<Vec<Baseline>>>()
        };
        all().map_err(|error| self.failed(&error))
    }
}
