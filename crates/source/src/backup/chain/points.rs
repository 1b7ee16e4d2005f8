//! The points in time to which a database can be restored by any of its chains. Also, for each backup set, the points
//! in time that can be restored only with this set.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use format::Lsn;

use super::{Model, Start};

/// An unbroken range of points in time, in the server's local time as stored in backup sets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span {
    /// The first point in time.
    pub from: String,
    /// The last point in time.
    pub to: String,
}

impl Span {
    /// Whether a point in time is within the range.
    pub fn has(&self, time: &str) -> bool {
        self.from.as_str() <= time && time <= self.to.as_str()
    }
}

/// A set that the newest chain does not need, but that a restore to another point in time needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beside {
    /// Index of the set among all sets of the database.
    pub set: usize,
    /// The points in time for which a restore needs this set, including points that also need log backups after the
    /// set. The range ends no later than the end of the next full or differential backup, unless the set itself ends
    /// later. `None` if the set's label has no time.
    pub span: Option<Span>,
    /// Whether the set is used only to restore an abandoned recovery fork.
    pub is_left: bool,
}

/// The points in time that can be restored by any chain of a database.
#[derive(Default)]
pub(super) struct Points {
    pub(super) current: Vec<Span>,
    pub(super) left: Vec<Span>,
    pub(super) beside: Vec<Beside>,
    /// The sets that are part of a chain.
    pub(super) used: HashSet<usize>,
    /// For each log backup that continues no other backup, the missing log before it (first LSN, end LSN).
    pub(super) gaps: HashMap<usize, (Lsn, Lsn)>,
}

/// For one set: the points in time that a restore can reach if the set is its last step, and the points in time for
/// which a restore needs the set.
#[derive(Clone, Copy)]
struct Cover<'s> {
    from: Option<&'s str>,
    to: Option<&'s str>,
    /// The last point in time for which a restore needs this set and log backups after it.
    needed: Option<&'s str>,
}

impl Cover<'_> {
    fn span(self) -> Option<Span> {
        Some(span(self.from, self.to?))
    }

    fn needed_span(self) -> Option<Span> {
        let to = self.to?;
        Some(span(self.from, self.needed.map_or(to, |needed| needed.max(to))))
    }
}

fn span(from: Option<&str>, to: &str) -> Span {
    // The end may be before the start because the server's clock may have been set back.
    let from = from.unwrap_or(to);
    Span { from: from.to_owned(), to: to.max(from).to_owned() }
}

/// Finds the points in time that can be restored on all lines of recovery forks. `current` is the line that the
/// database followed last; `steps` are the steps of the newest chain.
pub(super) fn of(model: &Model<'_>, current: Option<usize>, steps: &[usize]) -> Points {
    let mut points = Points::default();
    let mut covers: BTreeMap<usize, (Cover<'_>, bool)> = BTreeMap::new();
    let others = (0..model.lines.len()).filter(|line| Some(*line) != current);
    for line in current.into_iter().chain(others) {
        let is_left = Some(line) != current;
        for (set, cover) in follow(model, line, &mut points.gaps) {
            // A set on two lines restores the same points in time on both lines. If one of the lines is `current`, the
            // set does not count as abandoned.
            covers.entry(set).or_insert((cover, is_left));
        }
    }
    points.gaps.retain(|set, _| !covers.contains_key(set));
    let spans = |is_left: bool| {
        let of_it = covers.values().filter(move |(_, left)| *left == is_left);
        of_it.filter_map(|(cover, _)| cover.span()).collect::<Vec<_>>()
    };
    (points.current, points.left) = (union(spans(false)), union(spans(true)));
    let steps: HashSet<usize> = steps.iter().copied().collect();
    let beside = covers.iter().filter(|(set, _)| !steps.contains(set));
    points.beside =
        beside.map(|(&set, (cover, is_left))| Beside { set, span: cover.needed_span(), is_left: *is_left }).collect();
    points.used = covers.into_keys().collect();
    points
}

/// Finds the points in time that each set of a line can restore. Sets that are part of no chain are left out. If such a
/// set is a log backup, `gaps` receives the missing log before it.
///
/// `points` holds the LSNs at which a restore can end. A log backup can be restored if one of these LSNs is within its
/// log; it then restores all points in time from the first such LSN to its own end. Log backups are visited in the
/// order of their first LSNs, so all earlier points are already known.
fn follow<'s>(model: &Model<'s>, line: usize, gaps: &mut HashMap<usize, (Lsn, Lsn)>) -> Vec<(usize, Cover<'s>)> {
    let mut covers = Vec::new();
    let mut points: BTreeMap<Lsn, Option<&str>> = BTreeMap::new();
    let starts: Vec<usize> = model.starts(line).iter().copied().map(Start::set).collect();
    for &start in &starts {
        if let Some(last) = model.last_lsn(start) {
            earlier(points.entry(last).or_default(), model.finished(start));
        }
    }
    let begun = points.clone();
    // Returns the last point in time that a restore reaches only by applying the log after the LSN `last`. This is the
    // end of that log, or the end of the first full or differential backup in the LSN range `next`, whichever is
    // earlier.
    let needed = |last: Option<Lsn>, next: (Bound<Lsn>, Bound<Lsn>)| {
        let logs = model.logs.get(line)?;
        let end = logs.reach(last).1.and_then(|first| logs.sets.get(logs.way(first).end));
        let reached = end.and_then(|end| model.log_until(*end))?;
        let next = begun.range(next).next().and_then(|(_, time)| *time);
        Some(next.map_or(reached, |next| next.min(reached)))
    };
    for start in starts {
        let (finished, last) = (model.finished(start), model.last_lsn(start));
        let needed = last.and_then(|lsn| needed(last, (Bound::Excluded(lsn), Bound::Unbounded)));
        covers.push((start, Cover { from: finished, to: finished, needed }));
    }
    let Some(logs) = model.logs.get(line) else { return covers };
    let (mut island_end, mut island_gap) = (None, None);
    for (&set, &lsns) in logs.sets.iter().zip(&logs.lsns) {
        let (Some(first), Some(last)) = lsns else { continue };
        if first > last {
            continue;
        }
        let point = points.range(first..=last).next().map(|(_, time)| *time);
        let Some(from) = point else {
            if island_end.is_none_or(|end| first > end) {
                island_gap = points.range(..first).next_back().map(|(reached, _)| (*reached, first));
            }
            island_end = island_end.max(Some(last));
            gaps.extend(island_gap.map(|gap| (set, gap)));
            continue;
        };
        let until = model.log_until(set);
        let needed = needed(Some(last), (Bound::Included(last), Bound::Unbounded));
        covers.push((set, Cover { from, to: until, needed }));
        earlier(points.entry(last).or_default(), until);
    }
    covers
}

/// Keeps the earlier of two times known for the same LSN.
fn earlier<'s>(known: &mut Option<&'s str>, time: Option<&'s str>) {
    *known = match (*known, time) {
        (Some(known), Some(time)) => Some(known.min(time)),
        (known, time) => known.or(time),
    };
}

/// Joins ranges that touch or overlap.
pub(super) fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut united: Vec<Span> = Vec::new();
    for span in spans {
        match united.last_mut().filter(|last| span.from <= last.to) {
            Some(last) if span.to > last.to => last.to = span.to,
            Some(_) => {}
            None => united.push(span),
        }
    }
    united
}
