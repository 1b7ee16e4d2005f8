//! Builds a database for measurements, from options of `mdfsck bench`.

use std::path::PathBuf;

use clap::Args;
use jobs::failure::Failure;
use jobs::size;
use lab::Version;
use tempfile::TempDir;

use super::{Schema, write};
use crate::speaker::warn;

/// The data files, and the temporary folder that holds them, if any.
type Built = (Vec<PathBuf>, Option<TempDir>);

const BUILD: &str = "Database to build";

#[derive(Args)]
pub(crate) struct Build {
    /// Build a database of about this size, in a temporary folder unless PATH names one
    #[arg(long, value_name = "SIZE", value_parser = size::bytes, help_heading = BUILD)]
    size: Option<u64>,

    /// Contents of the database
    #[arg(long, value_enum, value_name = "SCHEMA", default_value = "orders", requires = "size", help_heading = BUILD)]
    schema: Schema,

    /// Number of data files
    #[arg(long, value_name = "N", default_value_t = 1, requires = "size", help_heading = BUILD)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=8))]
    files: u16,
}

impl Build {
    /// A description of the database to build; `None` if the options request no database.
    pub(crate) fn title(&self) -> Option<String> {
        self.size.map(|bytes| format!("{}, {}", self.schema.name(), size::text(bytes)))
    }

    /// Builds the database, if requested. Without a path, the database is in a temporary folder, which is deleted when
    /// the returned `TempDir` is dropped.
    pub(crate) fn database(&self, paths: &[PathBuf]) -> Result<Option<Built>, Failure> {
        let Some(size) = self.size else { return Ok(None) };
        let (folder, temporary) = match paths {
            [] => {
                let made = TempDir::new();
                let made =
                    made.map_err(|error| Failure::unable(format!("no temporary folder can be created: {error}")))?;
                (made.path().to_owned(), Some(made))
            }
            [folder] => (folder.clone(), None),
            _ => {
                return Err(Failure::usage(
                    "--size: give at most one PATH, which is the folder in which the database is built",
                ));
            }
        };
        warn(format!("building a database of {} in {}", size::text(size), folder.display()));
        let description = self.schema.describe(Version::V852, 1, size, self.files);
        Ok(Some((write(&description, &folder)?.files, temporary)))
    }
}
