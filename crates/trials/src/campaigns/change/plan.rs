//! What a trial does: the workload, the backups, the damage and the options of the checks.

use std::fmt;

use lab::workload::{ChainOptions, Event, SetKind, Spec};
use trials::in_use;
use trials::mutate::Random;

use super::damage::Blow;
use super::night::Settings;
use super::snapshots::Rot;

/// The most backups in a trial.
const MOST_SETS: usize = 20;
/// The most storage snapshots in a trial.
const MOST_SNAPSHOTS: usize = 6;
/// The most transactions between two backups.
const TRANSACTIONS: usize = 25;

/// A trial.
pub(super) struct Plan {
    pub(super) spec: Spec,
    pub(super) events: Vec<Event>,
    pub(super) options: ChainOptions,
    pub(super) blows: Vec<Blow>,
    pub(super) settings: Settings,
    pub(super) rot: Rot,
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xC4A6_0000);
        let kinds = kinds(&mut random);
        let spec = in_use::spec(&mut random, 1);
        let each = [0, 3, 3, 6, 12];
        let spec = Spec {
            rows: spec.rows * if random.below(4) == 0 { 6 } else { 1 },
            transactions: (kinds.len() * (1 + random.below(TRANSACTIONS))) as u64,
            ddl_each: random.pick(&each).copied().unwrap_or(3),
            ..spec
        };
        let options = ChainOptions {
            checksum: random.below(2) == 0,
            compressed: random.below(2) == 0,
            stripes: [0, 1, 2, 3][random.below(4)],
        };
        let blows = if random.below(3) == 0 { Blow::some(&kinds, &mut random) } else { Vec::new() };
        let mut events = events(&kinds, &mut random);
        let settings = Settings::of(&mut random);
        add_snapshots(&mut events, &mut random);
        let rot = Rot::of(&mut random);
        Self { spec, events, options, blows, settings, rot }
    }

    /// For each backup, the backups that a restore of the state at its end needs, in their order.
    pub(super) fn restores(&self) -> Vec<Vec<usize>> {
        let (mut sets, mut remembered, mut restores) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0;
        for event in &self.events {
            match event {
                Event::BackUp(kind) => {
                    sets.push((count, *kind));
                    count += 1;
                    restores.push(needed(&sets));
                }
                Event::Remember => remembered.clone_from(&sets),
                Event::Restore => sets.clone_from(&remembered),
                Event::Work | Event::Settle | Event::Snapshot => {}
            }
        }
        restores
    }
}

/// The last full backup, the last differential after it, and the log since.
fn needed(sets: &[(usize, SetKind)]) -> Vec<usize> {
    let last = |wanted: SetKind| sets.iter().rposition(|(_, kind)| *kind == wanted);
    let full = last(SetKind::Full).unwrap_or_default();
    let differential = last(SetKind::Differential).filter(|at| *at > full);
    let from = differential.unwrap_or(full);
    let log = sets.iter().skip(from + 1).filter(|(_, kind)| *kind == SetKind::Log);
    let pages = [Some(full), differential].into_iter().flatten().filter_map(|at| sets.get(at));
    pages.chain(log).map(|(set, _)| *set).collect()
}

fn kinds(random: &mut Random) -> Vec<SetKind> {
    let count = 3 + random.below(MOST_SETS - 2);
    let later = |random: &mut Random| match random.below(12) {
        0 => SetKind::Full,
        1..=5 => SetKind::Differential,
        _ => SetKind::Log,
    };
    std::iter::once(SetKind::Full).chain((1..count).map(|_| later(random))).collect()
}

/// The backups with work between them. In one of six trials, the database is once restored to an earlier state and goes
/// on from there.
fn events(kinds: &[SetKind], random: &mut Random) -> Vec<Event> {
    let mut events: Vec<Event> = kinds.iter().flat_map(|kind| [Event::Work, Event::BackUp(*kind)]).collect();
    if random.below(6) == 0 {
        let remembered = 2 * (1 + random.below(kinds.len() - 1));
        let restored = remembered + 2 * random.below(1 + kinds.len() - remembered / 2);
        events.insert(restored, Event::Restore);
        events.splice(remembered..remembered, [Event::Settle, Event::Remember]);
    }
    events
}

/// Adds some storage snapshots in half of the trials.
fn add_snapshots(events: &mut Vec<Event>, random: &mut Random) {
    if random.below(2) == 0 {
        return;
    }
    for _ in 0..=random.below(MOST_SNAPSHOTS) {
        let at = 2 + random.below(events.len() - 1);
        events.insert(at, Event::Snapshot);
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec, events, options, settings, .. } = self;
        let letter = |event: &Event| match event {
            Event::BackUp(SetKind::Full) => "F",
            Event::BackUp(SetKind::Differential) => "D",
            Event::BackUp(SetKind::Log) => "L",
            Event::Remember => "<",
            Event::Restore => ">",
            Event::Snapshot => "S",
            Event::Work | Event::Settle => "",
        };
        let letters: String = events.iter().map(letter).collect();
        write!(f, "{letters} {spec:?} {options:?} {settings:?}")
    }
}
