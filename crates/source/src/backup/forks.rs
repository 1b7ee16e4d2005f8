//! Recovery forks. If a database is restored to an earlier point and used again, its changes after that point are
//! abandoned and a new recovery fork begins. Backup sets of both forks have the same database name, but each fork has
//! its own LSNs after the restored point.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use format::Lsn;

use super::chain_sets::ChainSet;
use super::config::SetConfig;

/// The maximum number of recovery forks of one database for which the parents of forks are followed. If a database has
/// more forks, no chain crosses from one fork to another.
const MOST_FORKS: usize = 64;

/// A recovery fork in the history of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fork {
    /// ID of the recovery fork.
    pub id: Option<String>,
    /// The LSN to which the database was restored, and at which the next fork begins. Sets of this fork beyond this LSN
    /// cannot be used. `None` for the last fork.
    pub until: Option<Lsn>,
}

/// The recovery forks that a database passed through, from the last to the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line(Vec<Fork>);

impl Line {
    /// The recovery forks, from the last to the first.
    pub fn forks(&self) -> &[Fork] {
        &self.0
    }

    /// The last recovery fork.
    pub(super) fn last(&self) -> Option<&Fork> {
        self.0.first()
    }

    /// The IDs of the recovery forks that the database left: all forks except the last.
    pub(super) fn left(&self) -> impl Iterator<Item = &Option<String>> {
        self.0.iter().skip(1).map(|fork| &fork.id)
    }

    /// Whether the database passed through the set's recovery fork and left the fork no earlier than the end of the
    /// set.
    pub(super) fn has(&self, config: &SetConfig) -> bool {
        let fork = self.0.iter().find(|fork| fork.id == config.recovery_fork_id);
        fork.is_some_and(|fork| fork.until.is_none_or(|until| config.last_lsn.is_some_and(|last| last <= until)))
    }

    /// The LSN at which the database left the set's recovery fork; `None` if that fork is the last one or is not on
    /// this line.
    pub(super) fn left_at(&self, config: &SetConfig) -> Option<Lsn> {
        self.0.iter().find(|fork| fork.id == config.recovery_fork_id)?.until
    }
}

/// For each recovery fork of some sets, the line of forks that ends with it.
pub(super) struct Lines {
    lines: Vec<Arc<Line>>,
    /// For each recovery fork, the numbers of the lines that contain it.
    through: HashMap<Option<String>, Vec<usize>>,
}

/// For each recovery fork, its parent fork, and the LSN at which the recovery fork branched off from the parent.
type Parents<'a> = BTreeMap<Option<&'a String>, (Option<&'a String>, Lsn)>;

impl Lines {
    /// Finds the lines of recovery forks that occur in `sets`; `bases` holds the full backup of each differential
    /// backup.
    pub(super) fn of(sets: &[ChainSet], bases: &[Option<usize>]) -> Self {
        let forks: BTreeSet<Option<&String>> =
            sets.iter().map(|set| set.set.config.recovery_fork_id.as_ref()).collect();
        let is_followed = forks.len() > 1 && forks.len() <= MOST_FORKS;
        let named = if is_followed { named(sets) } else { Parents::new() };
        let inferred = if is_followed { inferred(sets, bases) } else { Parents::new() };
        let lines: Vec<Arc<Line>> = forks.iter().map(|fork| Arc::new(line(*fork, &named, &inferred))).collect();
        let mut through: HashMap<Option<String>, Vec<usize>> = HashMap::new();
        for (number, line) in lines.iter().enumerate() {
            for fork in &line.0 {
                through.entry(fork.id.clone()).or_default().push(number);
            }
        }
        Self { lines, through }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Arc<Line>> {
        self.lines.get(number)
    }

    /// The numbers of the lines of recovery forks to which a set belongs.
    pub(super) fn with<'a>(&'a self, config: &'a SetConfig) -> impl Iterator<Item = usize> + 'a {
        let through = self.through.get(&config.recovery_fork_id).map(Vec::as_slice).unwrap_or_default();
        through.iter().copied().filter(|number| self.get(*number).is_some_and(|line| line.has(config)))
    }
}

fn line<'a>(fork: Option<&'a String>, named: &Parents<'a>, inferred: &Parents<'a>) -> Line {
    let mut seen = vec![fork];
    let mut forks = vec![Fork { id: fork.cloned(), until: None }];
    let (mut at, mut until) = (fork, None::<Lsn>);
    loop {
        // A fork that is its own ancestor would make the line endless, so the line stops before it. No server writes
        // such sets.
        let of = |parents: &Parents<'a>, fork| parents.get(fork).filter(|(parent, _)| !seen.contains(parent)).copied();
        let earlier = of(named, &at).or_else(|| seen.iter().rev().find_map(|fork| of(inferred, fork)));
        let Some((parent, point)) = earlier else { return Line(forks) };
        let point = until.map_or(point, |until| until.min(point));
        forks.push(Fork { id: parent.cloned(), until: Some(point) });
        seen.push(parent);
        (at, until) = (parent, Some(point));
    }
}

/// The parent forks that the sets name in their labels.
fn named(sets: &[ChainSet]) -> Parents<'_> {
    let mut parents = Parents::new();
    for config in sets.iter().map(|set| &set.set.config) {
        if let (Some(parent), Some(point)) = (&config.earlier_fork_id, config.fork_point_lsn) {
            earliest(&mut parents, config.recovery_fork_id.as_ref(), (Some(parent), point));
        }
    }
    parents
}

/// The parent forks inferred from differential backups: the fork of the full backup that a differential backup names is
/// an ancestor of the differential's fork.
fn inferred<'s>(sets: &'s [ChainSet], bases: &[Option<usize>]) -> Parents<'s> {
    let mut parents = Parents::new();
    for (differential, base) in sets.iter().zip(bases) {
        let Some(full) = base.and_then(|base| sets.get(base)).map(|full| &full.set.config) else { continue };
        let fork = differential.set.config.recovery_fork_id.as_ref();
        if let Some(last) = full.last_lsn.filter(|_| full.recovery_fork_id.as_ref() != fork) {
            earliest(&mut parents, fork, (full.recovery_fork_id.as_ref(), last));
        }
    }
    parents
}

/// Notes the parent of a fork, and the LSN at which the fork began. If two sets disagree, the parent with the earlier
/// LSN is kept: up to this LSN, both sets describe the same history.
fn earliest<'a>(parents: &mut Parents<'a>, fork: Option<&'a String>, parent: (Option<&'a String>, Lsn)) {
    let known = parents.entry(fork).or_insert(parent);
    if (parent.1, parent.0) < (known.1, known.0) {
        *known = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::SetKind;
    use crate::backup::chain::tests::set;
    use crate::backup::chain_sets::bases;

    fn lsn(block: u32) -> Lsn {
        Lsn { vlf: 1, block, slot: 1 }
    }

    /// A log backup of a recovery fork. `before` names the parent fork and the block at which the database left it.
    fn log((first, last): (u32, u32), fork: &str, before: Option<(&str, u32)>) -> ChainSet {
        let mut log = set(SetKind::Log, first, last);
        log.set.config.recovery_fork_id = Some(fork.to_owned());
        log.set.config.earlier_fork_id = before.map(|(fork, _)| fork.to_owned());
        log.set.config.fork_point_lsn = before.map(|(_, point)| lsn(point));
        log
    }

    /// The line that ends with a recovery fork: the ID of each fork, and the block up to which it is valid.
    fn line_to(sets: &[ChainSet], fork: &str) -> Vec<(String, Option<u32>)> {
        let lines = Lines::of(sets, &bases(sets));
        let found = (0..lines.len()).filter_map(|number| lines.get(number));
        let line = found.map(|line| line.forks()).find(|forks| forks[0].id.as_deref() == Some(fork)).unwrap();
        line.iter().map(|fork| (fork.id.clone().unwrap(), fork.until.map(|until| until.block))).collect()
    }

    #[test]
    fn a_fork_goes_back_over_those_that_sets_name() {
        // The database left fork A at block 50 for B, and left B at block 40 for C. On the line of C, A is therefore
        // valid only up to block 40.
        let sets = [log((10, 60), "A", None), log((50, 60), "B", Some(("A", 50))), log((40, 70), "C", Some(("B", 40)))];
        let to = |id: &str, until: Option<u32>| (id.to_owned(), until);
        assert_eq!(line_to(&sets, "A"), [to("A", None)]);
        assert_eq!(line_to(&sets, "B"), [to("B", None), to("A", Some(50))]);
        assert_eq!(line_to(&sets, "C"), [to("C", None), to("B", Some(40)), to("A", Some(40))]);
        // Without the sets of B, the parent of B is unknown.
        assert_eq!(line_to(&[sets[0].clone(), sets[2].clone()], "C"), [to("C", None), to("B", Some(40))]);
    }

    #[test]
    fn a_differential_of_another_fork_than_its_full_backup_joins_them_at_its_end() {
        let mut full = log((10, 20), "A", None);
        (full.set.kind, full.set.config.checkpoint_lsn) = (SetKind::Full, Some(lsn(10)));
        let mut differential = log((40, 50), "C", Some(("B", 35)));
        differential.set.kind = SetKind::Differential;
        differential.set.files.push(crate::backup::BackupFile {
            is_data: true,
            differential_base_lsn: Some(lsn(10)),
            ..Default::default()
        });
        let found = line_to(&[full, differential], "C");
        let found: Vec<_> = found.iter().map(|(id, until)| (id.as_str(), *until)).collect();
        assert_eq!(found, [("C", None), ("B", Some(35)), ("A", Some(20))]);
    }

    #[test]
    fn forks_that_are_their_own_ancestors_and_very_many_forks_end() {
        let cycle =
            [log((1, 2), "A", Some(("B", 5))), log((1, 2), "B", Some(("A", 5))), log((1, 2), "C", Some(("C", 5)))];
        assert_eq!([line_to(&cycle, "A").len(), line_to(&cycle, "B").len(), line_to(&cycle, "C").len()], [2, 2, 1]);
        let each = |number: usize| log((1, 2), &format!("{number:05}"), Some((&format!("{:05}", number + 1), 100)));
        let few: Vec<ChainSet> = (0..MOST_FORKS).map(each).collect();
        assert_eq!(line_to(&few, "00000").len(), MOST_FORKS + 1);
        let many: Vec<ChainSet> = (0..20_000).map(each).collect();
        assert_eq!(line_to(&many, "00000").len(), 1);
    }
}
