//! Finds out whether a database can be restored to a point in time, and from which sets.

use std::cmp::Reverse;
use std::sync::Arc;

use format::Lsn;

use super::{Chain, DatabaseChains, Model, Start};

/// A requested point in time, and how a database can be restored to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The restore chain to the point in time; `None` if the sets do not allow this restore.
    pub chain: Option<Chain>,
    /// Whether the log of the chain continues beyond the point in time, so that the restore needs STOPAT. If false, a
    /// full or differential backup ended exactly at that time.
    pub stops: bool,
    /// Whether the point in time exists only on a recovery fork that was abandoned by a restore.
    pub is_left: bool,
    /// The missing backup or log, if there is no chain.
    pub missing: Option<Missing>,
    /// The latest restorable point in time that is not after the requested one.
    pub before: Option<String>,
    /// The first restorable point in time after the requested one.
    pub after: Option<String>,
}

/// The reason why a database cannot be restored to a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// No full backup ended before that time.
    Full,
    /// The log between two LSNs is missing.
    Log(Lsn, Lsn),
    /// All log from an LSN on is missing.
    LaterLog(Lsn),
    /// The answer is unknown, because the labels of the sets contain no LSNs or times.
    Unknown,
}

/// Length in characters of a time in whole seconds, such as `2020-05-12 13:30:00`.
const SECOND_CHARS: usize = 19;

/// The start of a restore, and the LSN that the restore reaches with the log backups after the start.
struct Way {
    start: Start,
    reached: Option<Lsn>,
    first: Option<usize>,
}

impl DatabaseChains {
    /// Finds the shortest chain to a point in time. `time` has the format of times in backup sets, `2020-05-12
    /// 13:30:00`. A fraction of a second may follow.
    pub fn moment(&self, time: &str) -> Moment {
        let model = Model::of(&self.sets);
        let current = self.newest().map(|chain| chain.line.as_ref());
        let is_current = |line: usize| model.lines.get(line).is_some_and(|line| Some(line.as_ref()) == current);
        let (first, others): (Vec<usize>, Vec<usize>) = (0..model.lines.len()).partition(|line| is_current(*line));
        let spans = || self.points.iter().chain(&self.left_points);
        let ended = spans().map(|span| span.to.as_str().min(time)).zip(spans());
        let before = ended.filter(|(_, span)| span.from.as_str() <= time).map(|(end, _)| end.to_owned()).max();
        let mut moment = Moment {
            chain: None,
            stops: false,
            is_left: false,
            missing: None,
            before,
            after: spans().map(|span| &span.from).filter(|from| from.as_str() > time).min().cloned(),
        };
        for line in first.iter().chain(&others) {
            let ways = ways(&model, *line, time);
            if let Some((chain, stops)) = ways.iter().find_map(|way| path(&model, *line, way, time)) {
                let is_left = !is_current(*line);
                return Moment { chain: Some(chain), stops, is_left, ..moment };
            }
            // A gap on the line that the database followed last takes precedence over gaps on other lines.
            moment.missing = moment.missing.or_else(|| missing(&model, *line, ways.first()));
        }
        moment.missing = moment.missing.or(Some(Missing::Full));
        moment
    }
}

/// Returns the full and differential backups on a line at which a restore to `time` can start, because they ended no
/// later than `time`. The latest backup comes first.
fn ways(model: &Model<'_>, line: usize, time: &str) -> Vec<Way> {
    // Backup sets store whole seconds. If `time` has a fraction, a set that ended in the same second may have ended
    // after `time`.
    let second = time.get(..SECOND_CHARS).unwrap_or(time);
    let ended =
        |start: &Start| model.finished(start.set()).is_some_and(|finished| finished == time || finished < second);
    let mut starts: Vec<Start> = model.starts(line).iter().copied().filter(ended).collect();
    starts.sort_by_key(|start| Reverse((model.last_lsn(start.set()), Reverse(start.differential))));
    let way = |start: Start| {
        let (reached, first) = model.logs.get(line).map(|logs| logs.reach(model.last_lsn(start.set())))?;
        Some(Way { start, reached, first })
    };
    starts.into_iter().filter_map(way).collect()
}

/// The chain from a start to a point in time, and whether the restore needs STOPAT.
fn path(model: &Model<'_>, line: usize, way: &Way, time: &str) -> Option<(Chain, bool)> {
    let chain = |steps: Vec<usize>| {
        let line = Arc::clone(model.lines.get(line)?);
        Some(Chain { full: way.start.full, line, differentials: Vec::new(), steps, omitted: 0, gap: None })
    };
    if model.finished(way.start.set()) == Some(time) {
        return chain(model.steps(line, way.start, None).collect()).map(|chain| (chain, false));
    }
    let logs = model.logs.get(line)?;
    let has_it = |number: &usize| {
        let until = logs.sets.get(*number).and_then(|set| model.log_until(*set));
        until.is_some_and(|until| time <= until)
    };
    // Most starts are ruled out here, because the last log backup after them ends before `time`. Only for the remaining
    // starts are the log backups visited one by one.
    let end = logs.way(way.first?).end;
    if !has_it(&end) {
        return None;
    }
    let count = logs.from(way.first).position(|number| has_it(&number))? + 1;
    let base = model.steps(line, way.start, None).count();
    chain(model.steps(line, way.start, way.first).take(base + count).collect()).map(|chain| (chain, true))
}

fn missing(model: &Model<'_>, line: usize, latest: Option<&Way>) -> Option<Missing> {
    let latest = latest?;
    Some(match (model.gap_after(line, latest.reached), latest.reached) {
        (Some((from, to)), _) => Missing::Log(from, to),
        (None, Some(reached)) => Missing::LaterLog(reached),
        (None, None) => Missing::Unknown,
    })
}
