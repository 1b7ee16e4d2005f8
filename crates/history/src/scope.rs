//! What a run was asked to check, and whether it repeated the check that led to a finding of an earlier run.

use findings::registry::Check;
use findings::{Options, Scope};
use serde::{Deserialize, Serialize};

/// What a run was asked to check, as the history stores it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// The DBCC command.
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tables: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filegroup: Option<u16>,
    pub(crate) physical_only: bool,
    pub(crate) no_index: bool,
    pub(crate) data_purity: bool,
    pub(crate) extended_logical_checks: bool,
    pub(crate) constraints: bool,
    pub(crate) all_constraints: bool,
    /// Whether the run was asked to compare pages with the log.
    pub(crate) log: bool,
}

impl Asked {
    pub(crate) fn of(options: &Options) -> Self {
        let (tables, filegroup) = match &options.scope {
            Scope::Tables(ids) => (ids.clone(), None),
            Scope::Filegroup(id) => (Vec::new(), Some(*id)),
            _ => (Vec::new(), None),
        };
        Self {
            command: options.scope.command().to_owned(),
            tables,
            filegroup,
            physical_only: options.physical_only,
            no_index: options.no_index,
            data_purity: options.checks_purity(),
            extended_logical_checks: options.extended_logical_checks,
            constraints: options.constraints,
            all_constraints: options.all_constraints,
            log: options.log_audit.is_some(),
        }
    }

    /// Converts the request to JSON. If a later version of the program cannot parse the JSON, findings of a run with
    /// this request keep their state.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Whether the run was asked to check the whole database.
    pub(crate) fn is_whole(&self) -> bool {
        self.command == Scope::Database.command()
    }

    /// Whether the run was a check in full depth, which compares links, keys and rows.
    pub(crate) fn is_full(&self) -> bool {
        !self.physical_only
    }

    /// Whether this run was asked to repeat the check that produced a finding in an earlier run. `then` is what the
    /// earlier run was asked to check.
    pub(crate) fn asks_again(&self, then: &Self, check: &Check, object_id: Option<i32>, index_id: Option<i32>) -> bool {
        let is_in_scope = match self.command.as_str() {
            "CHECKDB" => true,
            "CHECKTABLE" => check.is_of_rows_and_pages() && object_id.is_some_and(|id| self.tables.contains(&id)),
            "CHECKFILEGROUP" => then.command == self.command && then.filegroup == self.filegroup,
            command => then.command == command,
        };
        let is_of_index = index_id.is_some_and(|id| id > 1) || check.compares_index_rows();
        is_in_scope
            && (check.physical_only || !self.physical_only || then.physical_only)
            && (!is_of_index || !self.no_index || then.no_index)
            && (!check.is_of_columns() || self.data_purity || !then.data_purity)
            && (!check.compares_index_rows() || self.extended_logical_checks || !then.extended_logical_checks)
            && (!check.is_of_constraints() || self.constraints && (self.all_constraints || !then.all_constraints))
            && (!check.is_of_log() || self.log)
    }
}

#[cfg(test)]
mod tests {
    use findings::registry;

    use super::*;

    fn whole() -> Asked {
        Asked { command: "CHECKDB".to_owned(), data_purity: true, ..Asked::default() }
    }

    #[test]
    fn a_run_asks_again_only_what_its_options_cover() {
        let tree = &registry::TREE_CHILD_UNSEEN;
        let page = &registry::PAGE_HEADER;
        let all = whole();
        let physical = Asked { physical_only: true, data_purity: false, ..whole() };
        assert!(all.asks_again(&all, tree, Some(5), Some(1)));
        assert!(!physical.asks_again(&all, tree, Some(5), Some(1)), "links are not looked at");
        assert!(physical.asks_again(&all, page, Some(5), Some(1)), "page headers are");
        let table = Asked { command: "CHECKTABLE".to_owned(), tables: vec![5], ..whole() };
        assert!(table.asks_again(&all, tree, Some(5), Some(1)) && !table.asks_again(&all, tree, Some(6), Some(1)));
        assert!(!table.asks_again(&all, &registry::CATALOG_UNUSABLE, None, None));
        let no_index = Asked { no_index: true, ..whole() };
        assert!(
            !no_index.asks_again(&all, tree, Some(5), Some(2)) && no_index.asks_again(&all, tree, Some(5), Some(1))
        );
    }

    #[test]
    fn what_was_asked_is_read_back() {
        let asked = Asked { tables: vec![1, 2], command: "CHECKTABLE".to_owned(), ..Asked::default() };
        assert_eq!(Asked::read(&asked.json()), Some(asked));
        assert_eq!(Asked::read("nonsense"), None);
        assert!(Asked::read("{\"command\":\"CHECKDB\",\"later\":true}").is_some_and(|asked| asked.is_whole()));
    }
}
