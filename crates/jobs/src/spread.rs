//! Divides one check between many processes or windows of time: plans, parts, and the evidence that files are unchanged.

pub mod evidence;
pub mod ledger;
pub mod make;
pub mod merging;
pub mod rounds;
pub mod sweeping;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::Database;
use check::part::Fingerprint;
use findings::LogAudit;
use parts::{Folder, OpenRound, PartsError, Plan, SourceFile};
use serde::{Deserialize, Serialize};
use source::PageSource;
use source::backup::{self, ChainSet, SetChoice};
use sums::HashKey;

use crate::failure::Failure;
use crate::host::warn;
use crate::input::{self, Input};
use crate::recover;
use crate::request::{RecoveryOptions, Request, RoomOptions, RunOptions, ScopeOptions, StopOptions};
use crate::version::BUILD;

pub use evidence::Before;
pub use merging::Merge;

use evidence::Evidence;
use ledger::PlannedLedger;

/// The hash key and the audit that all processes of a plan share.
pub struct Common {
    /// The key with which all processes of the plan hash the facts that the check compares.
    pub key: HashKey,
    /// The comparison of the pages with the log. `None` if the comparison was not made yet, and `Some(None)` if there
    /// is no log to compare with the pages.
    pub audit: Option<Option<Arc<LogAudit>>>,
}

/// The database that is checked, and its position among all databases of the command.
pub struct Place<'a> {
    /// The number of the database, from 1.
    pub number: usize,
    /// The number of databases.
    pub of: usize,
    /// The name of the database.
    pub name: &'a str,
    /// Its part of the time that is left for this and the later databases, from 0 to 1.
    pub share: f64,
    /// Whether other databases are checked at the same time.
    pub is_beside_others: bool,
}

/// The database to check.
pub struct What<'a> {
    /// The paths exactly as the user named them.
    pub named: &'a [PathBuf],
    /// The value of `--set`.
    pub choice: &'a SetChoice,
    /// The backup sets to restore, if the caller has selected them.
    pub sets: Option<&'a [ChainSet]>,
    /// The position of this database in the list, if several databases are checked.
    pub place: Option<Place<'a>>,
    /// The role of this process in a check that is divided between processes.
    pub spread: Spread<'a>,
}

impl<'a> What<'a> {
    /// The same database, checked by a process with another role.
    #[must_use]
    pub fn with<'w>(&self, spread: Spread<'w>) -> What<'w>
    where
        'a: 'w,
    {
        What { named: self.named, choice: self.choice, sets: self.sets, place: None, spread }
    }
}

/// The role of this process in a check that is divided between processes.
#[derive(Clone, Copy, Default)]
pub enum Spread<'a> {
    /// The process runs the whole check.
    #[default]
    None,
    /// The process makes the plan.
    Plan(&'a Common),
    /// The process runs tasks.
    Task(&'a Opened),
    /// The process merges the parts that the tasks have written.
    Merge(&'a Merge),
}

impl<'a> Spread<'a> {
    /// The hash key, and the comparison of the pages with the log, which all processes of the plan share; `None` if the
    /// check is not divided.
    pub fn common(self) -> Option<&'a Common> {
        match self {
            Self::Plan(common) => Some(common),
            _ => self.opened().map(|opened| &opened.common),
        }
    }

    /// The plan of which this process runs tasks or merges the parts; `None` otherwise.
    pub fn opened(self) -> Option<&'a Opened> {
        match self {
            Self::None | Self::Plan(_) => None,
            Self::Task(opened) => Some(opened),
            Self::Merge(merge) => Some(&merge.opened),
        }
    }

    /// Maximum number of pages whose allocation maps are in memory at the same time; `None` for no limit.
    pub fn mapped_pages(self) -> Option<u64> {
        match self {
            Self::Task(opened) => opened.plan.areas().map(|area| u64::from(area.pages)).max(),
            _ => None,
        }
    }

    /// Requires that this process reads the database for which the plan was made.
    ///
    /// # Errors
    ///
    /// An error that says what has changed.
    pub fn verify(
        self,
        request: &Request,
        what: &What<'_>,
        input: &Input,
        (database, catalog): (&Database, Fingerprint),
    ) -> Result<(), Failure> {
        let Some(opened) = self.opened() else { return Ok(()) };
        opened.verify(&files_of(request, what, input, database)?, catalog)
    }
}

/// The options of the check, as the plan stores them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// The files and folders to open.
    pub paths: Vec<PathBuf>,
    /// The positions of backup sets from `--set`.
    pub sets: Vec<u16>,
    /// The backup sets to restore, if the caller of the check has selected them; otherwise `None`.
    pub restore: Option<Vec<PlannedSet>>,
    /// What is checked, and how deeply.
    pub scope: ScopeOptions,
    /// Whether data files are read as they are, without the changes in their log.
    pub no_log: bool,
    /// Where the restore of backups stops.
    pub stop: StopOptions,
    /// Whether the folder of the plan has a stored comparison of the pages with the log.
    pub has_audit: bool,
    /// Evidence that shows a later window of the same check whether it reads the same bytes; `None` for `mdfsck plan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The ledger that the plan uses or makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PlannedLedger>,
}

impl Planned {
    /// Selects the options of a check that the plan stores.
    pub fn of(check: &Request, what: &What<'_>) -> Self {
        Self {
            paths: check.paths.clone(),
            sets: if let SetChoice::Positions(positions) = what.choice { positions.clone() } else { Vec::new() },
            restore: what.sets.map(|sets| sets.iter().map(PlannedSet::of).collect()),
            scope: check.scope.clone(),
            no_log: check.recovery.no_log,
            stop: check.stop.clone(),
            has_audit: false,
            evidence: None,
            ledger: None,
        }
    }
}

/// A backup set, identified by its files and its position in them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedSet {
    files: Vec<PathBuf>,
    set: u16,
}

impl PlannedSet {
    /// The files and the position of a set.
    pub fn of(set: &ChainSet) -> Self {
        Self { files: set.paths.clone(), set: set.set.position }
    }
}

/// A plan that was opened and read.
pub struct Opened {
    /// The folder of the plan.
    pub folder: Folder,
    /// The plan.
    pub plan: Plan<Planned>,
    /// The rounds of tasks after the first round, in order.
    pub rounds: Vec<OpenRound<Planned>>,
    /// What all processes of the plan share.
    pub common: Common,
}

impl Opened {
    /// Opens the folder of a plan.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let (folder, plan, warning) = Folder::open::<Planned>(path, &BUILD)?;
        warning.iter().for_each(warn);
        let audit = match plan.options.has_audit {
            true => Some(Arc::new(audit_of(&folder)?)),
            false => None,
        };
        let common = Common { key: folder.key().clone(), audit: Some(audit) };
        let rounds = folder.rounds(&plan)?;
        Ok(Self { folder, plan, rounds, common })
    }

    /// Returns the request of the planned check. Memory, temporary folder, threads and similar resources are those of
    /// this process, not those of the process that made the plan.
    pub fn request(&self, room: &RoomOptions, run: &RunOptions) -> Request {
        let Planned { paths, scope, no_log, stop, .. } = &self.plan.options;
        Request {
            paths: paths.clone(),
            scope: scope.clone(),
            recovery: RecoveryOptions { no_log: *no_log, room: room.clone() },
            stop: stop.clone(),
            run: run.clone(),
            ..Request::of_paths(Vec::new())
        }
    }

    /// The backup sets that `--set` selects.
    pub fn choice(&self) -> SetChoice {
        match self.plan.options.sets.as_slice() {
            [] => SetChoice::Newest,
            positions => SetChoice::Positions(positions.to_vec()),
        }
    }

    /// The backup sets to restore, if the plan stores them.
    pub fn sets(&self) -> Result<Option<Vec<ChainSet>>, Failure> {
        let Some(planned) = &self.plan.options.restore else { return Ok(None) };
        let files: BTreeSet<&PathBuf> = planned.iter().flat_map(|set| &set.files).collect();
        let media = files.into_iter().map(|path| backup::media(path)).collect::<Result<Vec<_>, _>>()?;
        let known: Vec<ChainSet> = backup::chains(&media).into_iter().flat_map(|database| database.sets).collect();
        let find = |planned: &PlannedSet| {
            let found = known.iter().find(|set| PlannedSet::of(set) == *planned).cloned();
            found.ok_or_else(|| {
                let path = planned.files.first().cloned().unwrap_or_default();
                PartsError::Changed { path, what: format!("no longer contains set {}", planned.set) }.into()
            })
        };
        planned.iter().map(find).collect::<Result<Vec<_>, Failure>>().map(Some)
    }

    /// Requires that the files and the catalog that this process has read are those of the plan.
    pub fn verify(&self, files: &[SourceFile], catalog: Fingerprint) -> Result<(), Failure> {
        if let Some((now, _)) = files.iter().zip(&self.plan.files).find(|(now, then)| now != then) {
            let what = "is not among the files of the plan, or has changed".to_owned();
            return Err(PartsError::Changed { path: now.path.clone(), what }.into());
        }
        match files.len() == self.plan.files.len() && self.plan.image.is_catalog(catalog) {
            true => Ok(()),
            false => Err(self.changed("its catalog has changed")),
        }
    }

    /// Describes a source file that has changed since the previous window; `None` if no file has changed.
    pub fn changed_file(&self) -> Option<String> {
        let by_time = || self.plan.verify_files().err().map(|error| error.to_string());
        self.plan.options.evidence.as_ref().and_then(Evidence::changed_file).or_else(by_time)
    }

    /// Requires that no source file has changed.
    pub fn verify_files(&self) -> Result<(), Failure> {
        self.plan.verify_files()?;
        self.plan.options.evidence.as_ref().map_or(Ok(()), |evidence| evidence.verify_files())
    }

    /// Requires that the allocation maps are the same as when the plan was made.
    pub fn verify_maps(&self, maps: Fingerprint) -> Result<(), Failure> {
        match self.plan.image.is_maps(maps) {
            true => Ok(()),
            false => Err(self.changed("its allocation maps have changed")),
        }
    }

    /// The failure for a database that differs from the planned one.
    pub fn changed(&self, what: &str) -> Failure {
        let path = self.plan.files.first().map(|file| file.path.clone()).unwrap_or_default();
        Failure::unable(format!(
            "{}: has changed since the plan was made, or can no longer be read in the same way: {what}; make a new plan",
            path.display()
        ))
    }
}

fn audit_of(folder: &Folder) -> Result<LogAudit, Failure> {
    check::part::read_audit(folder.key(), &folder.audit()?).map_err(|error| {
        let (path, what) = (folder.audit_path(), error.to_string());
        PartsError::Damaged { path, what }.into()
    })
}

/// The present state of all source files, sorted by path.
pub fn files_of(
    request: &Request,
    what: &What<'_>,
    input: &Input,
    database: &Database,
) -> Result<Vec<SourceFile>, Failure> {
    let mut paths = BTreeSet::new();
    match (input, what.sets) {
        (Input::Files(files), _) => {
            let source: &dyn PageSource = files.as_ref();
            paths.extend(source.files().iter().map(|file| file.path.clone()));
            paths.extend(source.snapshot().into_iter().flat_map(source::Snapshot::bases).map(Path::to_owned));
            if !request.recovery.no_log && source.snapshot().is_none() {
                paths.extend(recover::find(&request.paths, source, database).logs);
            }
        }
        (Input::Backups(_), Some(sets)) => paths.extend(sets.iter().flat_map(|set| set.paths.iter().cloned())),
        (Input::Backups(_), None) => paths.extend(input::expand(&request.paths)),
    }
    Ok(paths.iter().map(|path| SourceFile::of(path)).collect::<Result<Vec<_>, _>>()?)
}

impl From<PartsError> for Failure {
    fn from(error: PartsError) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::unable(error) }
    }
}
