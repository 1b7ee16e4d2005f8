//! What a plan is made from.

use catalog::Database;
use findings::Report;
use script::Script;
use source::PageSource;

use crate::backups::Backups;

/// The input of a plan.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The report of the check.
    pub report: &'a Report,
    /// The pages that were checked.
    pub source: &'a dyn PageSource,
    /// The catalog of the database.
    pub database: &'a Database,
    /// Scripts the definitions of the database's objects.
    pub script: Script<'a>,
    /// The backups that the user gave; `None` if the user gave none.
    pub backups: Option<&'a Backups>,
    /// The paths of the database's files, quoted for a command line.
    pub paths: &'a str,
}
