//! Tests that the finding of every check in the registry causes at least one step, for all kinds of pages and objects
//! that the finding can name.

mod first_steps;

use std::path::PathBuf;

use check::Silent;
use findings::registry::{self, Check};
use findings::{Finding, Options, Owner, Report};
use format::{AllocUnitId, PageId};
use lab::{Version, orders};
use script::{Definitions, Script};
use source::DataFiles;

use crate::damage::Damage;
use crate::of_backup;
use crate::plan::of_damage;
use crate::request::Request;
use crate::step::{Action, Step};

/// IDs of two system tables. The first is needed to find other tables, the second is not.
const SYSTEM: [i32; 2] = [5, 60];
/// The numbers of a data page, and of one page of each kind that has a fixed address.
const PAGES: [u32; 8] = [100, 0, 1, 2, 3, 6, 7, 9];

/// A lab database, with everything that a request for advice needs.
struct Bench {
    source: DataFiles,
    database: catalog::Database,
    definitions: Definitions,
    report: Report,
    files: Vec<PathBuf>,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let written = lab::write(&orders::orders(Version::V904, 5, 0), folder.path()).unwrap();
        let source = DataFiles::open(&written.files).unwrap();
        let database = catalog::load(&source);
        let report = check::run(&source, &database, &Options { max_threads: 1, ..Options::default() }, &Silent);
        assert!(report.findings.is_empty());
        let definitions = Definitions::load(&source, &database);
        Self { source, database, definitions, report, files: written.files, folder }
    }

    fn request(&self) -> Request<'_> {
        Request {
            report: &self.report,
            source: &self.source,
            database: &self.database,
            script: Script::new(&self.database, &self.definitions),
            backups: None,
            paths: "a.mdf",
        }
    }

    fn steps(&self, finding: &Finding) -> Vec<Step> {
        let mut damage = Damage::default();
        damage.add(finding, &self.database);
        damage.settle();
        let request = self.request();
        match finding.check.is_of_container() {
            // Only a backup has a container, so a finding about a container is tested with the plan for a damaged
            // backup.
            true => of_backup::plan(&request, &damage, Vec::new()).steps,
            false => of_damage(&request, &damage).steps,
        }
    }

    /// The owner of the pages of an index, in the form that findings have.
    fn owner(&self, object_id: i32, index_id: i32) -> Owner {
        let rowset = self.database.rowsets_of(object_id).find(|rowset| rowset.index_id == index_id);
        let partition_id = rowset.map_or(1, |rowset| rowset.id);
        Owner { object_id, index_id, partition_id, ..Owner::unknown(AllocUnitId(1)) }
    }

    /// Owners of all kinds: no owner, an owner that the catalog does not know, system tables, a user table, and its
    /// indexes.
    fn owners(&self) -> Vec<Option<Owner>> {
        let indexes = self.database.indexes.keys().filter(|(object_id, _)| *object_id > 100).take(6);
        let of_user = indexes.map(|&(object_id, index_id)| Some(self.owner(object_id, index_id)));
        let of_system = SYSTEM.map(|object_id| Some(self.owner(object_id, 1)));
        let mut owners = vec![None, Some(Owner::unknown(AllocUnitId(77)))];
        owners.extend(of_system);
        owners.extend(of_user);
        owners
    }
}

fn finding(check: &'static Check, owner: Option<Owner>, page: Option<PageId>) -> Finding {
    let mut finding = Finding::new(check);
    (finding.owner, finding.page) = (owner, page);
    finding
}

#[test]
fn every_check_of_the_registry_leads_to_a_step_that_names_it() {
    let bench = Bench::new();
    let owners = bench.owners();
    assert!(owners.iter().flatten().any(|owner| owner.index_id > 1), "nonclustered indexes are among them");
    let pages = PAGES.map(|page| Some(PageId::new(1, page)));
    for check in registry::ALL {
        for owner in &owners {
            for page in [None].into_iter().chain(pages) {
                let steps = bench.steps(&finding(check, *owner, page));
                let is_based_on_it = steps.iter().any(|step| step.rests_on.contains(check.id));
                assert!(is_based_on_it, "{} of {owner:?} at {page:?}: {steps:#?}", check.id);
                let is_whole = |step: &Step| {
                    !step.title.is_empty()
                        && !step.reason.is_empty()
                        && !step.risk.is_empty()
                        && (step.action == Action::Inspect || step.command.is_some() || !step.sql.is_empty())
                };
                assert!(steps.iter().all(is_whole), "{}: {steps:#?}", check.id);
            }
        }
    }
}

#[test]
fn a_wrong_count_of_ghosts_is_called_that() {
    let bench = Bench::new();
    let (&(object_id, index_id), _) =
        bench.database.indexes.iter().find(|((id, index), _)| *id > 100 && *index == 1).unwrap();
    let owner = Some(bench.owner(object_id, index_id));
    let steps = bench.steps(&finding(&registry::PAGE_GHOST_COUNT, owner, Some(PageId::new(1, 100))));
    let step = steps.iter().find(|step| step.action == Action::RebuildTable).unwrap();
    assert!(step.reason.contains("has a wrong number of ghost records") && !step.reason.contains("Links"), "{step:#?}");
}
