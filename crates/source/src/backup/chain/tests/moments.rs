//! Tests of restores to a point in time (compared with a search that tries all paths), of databases that were restored
//! or renamed, and of stripes and copies.

use std::path::Path;

use super::*;
use crate::ReadFaults;
use crate::backup::{Damage, DamageKind};

fn time(minute: u32) -> String {
    format!("2024-03-{:02} {:02}:{:02}:00", 1 + minute / 1440, minute / 60 % 24, minute % 60)
}

/// A set from block `first` to block `last`. It ended in the minute with the number `last`.
fn timed(kind: SetKind, first: u32, last: u32) -> ChainSet {
    let mut set = set(kind, first, last);
    let config = &mut set.set.config;
    (config.started, config.finished) = (Some(time(last)), Some(time(last)));
    config.checkpoint_lsn = (kind == SetKind::Full).then(|| lsn(first));
    set.set.guid = Some(format!("{}-{first}-{last}", kind.name()));
    set
}

fn full(first: u32, last: u32) -> ChainSet {
    timed(SetKind::Full, first, last)
}

fn log(first: u32, last: u32) -> ChainSet {
    timed(SetKind::Log, first, last)
}

fn differential(first: u32, last: u32, base: &ChainSet) -> ChainSet {
    let mut set = timed(SetKind::Differential, first, last);
    set.set.config.differential_base_guid = base.set.guid.clone();
    set.set.files.push(BackupFile {
        is_data: true,
        differential_base_lsn: base.set.config.checkpoint_lsn,
        ..BackupFile::default()
    });
    set
}

fn found(mut sets: Vec<ChainSet>) -> DatabaseChains {
    sets.sort_by_key(|set| (set.set.config.first_lsn, set.set.config.last_lsn));
    of_database(String::new(), sets)
}

/// The kind and last block of the sets with these indexes.
fn named(found: &DatabaseChains, indexes: &[usize]) -> Vec<(SetKind, u32)> {
    let set = |index: &usize| &found.sets[*index].set;
    indexes.iter().map(|index| (set(index).kind, set(index).config.last_lsn.unwrap().block)).collect()
}

fn spans(found: &DatabaseChains) -> Vec<(String, String)> {
    found.points.iter().map(|span| (span.from.clone(), span.to.clone())).collect()
}

#[test]
fn log_between_a_full_and_a_differential_leads_to_the_moments_before_the_differential() {
    use SetKind::{Differential, Full, Log};
    let base = full(10, 20);
    let sets = vec![differential(40, 45, &base), base, log(10, 25), log(25, 33), log(33, 40), log(40, 50), log(50, 60)];
    let found = found(sets);
    let newest = found.newest().unwrap();
    assert_eq!(named(&found, &newest.steps), [(Full, 20), (Differential, 45), (Log, 50), (Log, 60)]);
    assert_eq!(spans(&found), [(time(20), time(60))]);
    assert!(found.unused.is_empty());
    let beside: Vec<usize> = found.beside.iter().map(|beside| beside.set).collect();
    assert_eq!(named(&found, &beside), [(Log, 25), (Log, 33), (Log, 40)]);
    let leads = found.beside.iter().map(|beside| beside.span.clone().unwrap());
    let leads: Vec<_> = leads.map(|span| (span.from, span.to)).collect();
    // These three log backups end before the differential backup. Together with the log backup during which the
    // differential backup was taken, they restore all points in time before the differential backup ended.
    assert_eq!(leads, [(time(20), time(45)), (time(25), time(45)), (time(33), time(45))]);
    // Returns the steps of the restore to a minute, and whether the restore needs STOPAT. The minutes below are before,
    // at and after the end of the differential backup.
    let steps = |minute| {
        let moment = found.moment(&time(minute));
        (named(&found, &moment.chain.unwrap().steps), moment.stops)
    };
    assert_eq!(steps(30), (vec![(Full, 20), (Log, 25), (Log, 33)], true));
    assert_eq!(steps(45), (vec![(Full, 20), (Differential, 45)], false));
    assert_eq!(steps(46), (vec![(Full, 20), (Differential, 45), (Log, 50)], true));
    let missing = |minute| found.moment(&time(minute)).missing;
    assert_eq!(missing(19), Some(Missing::Full));
    assert_eq!(missing(61), Some(Missing::LaterLog(lsn(60))));
    // Without the differential, the log backups still reach the latest point.
    let index = found.sets.iter().position(|set| set.set.kind == Differential).unwrap();
    let without = found.without(&HashSet::from([index]));
    let steps = &without.newest().unwrap().steps;
    assert_eq!(named(&without, steps), [(Full, 20), (Log, 25), (Log, 33), (Log, 40), (Log, 50), (Log, 60)]);
    assert_eq!(spans(&without), [(time(20), time(60))]);
}

#[test]
fn log_that_is_missing_ends_a_span_and_is_named() {
    let found = found(vec![full(10, 20), log(10, 30), log(40, 50), log(50, 60), full(52, 55), log(60, 65)]);
    assert_eq!(spans(&found), [(time(20), time(30)), (time(55), time(65))]);
    // The log backup after the gap ends before the second full backup, so no full backup precedes it without a gap.
    assert_eq!(found.reasons, [Unused::AfterGap(lsn(30), lsn(40))]);
    let moment = found.moment(&time(45));
    assert_eq!((moment.chain, moment.missing), (None, Some(Missing::Log(lsn(30), lsn(40)))));
    assert_eq!((moment.before, moment.after), (Some(time(30)), Some(time(55))));
}

/// Whether any path reaches a point in time; tries all paths.
fn is_reached(sets: &[ChainSet], moment: &str) -> bool {
    let of = |kind| sets.iter().filter(move |set| set.set.kind == kind);
    let starts = of(SetKind::Full).chain(of(SetKind::Differential).filter(|differential| {
        of(SetKind::Full).any(|full| full.set.guid == differential.set.config.differential_base_guid)
    }));
    starts.into_iter().any(|start| {
        let finished = start.set.config.finished.as_deref().unwrap();
        let mut reached = vec![start.set.config.last_lsn];
        let mut is_there = finished == moment;
        loop {
            let follows = |log: &&ChainSet| {
                let config = &log.set.config;
                !reached.contains(&config.last_lsn)
                    && reached.iter().any(|at| config.first_lsn <= *at && *at <= config.last_lsn)
            };
            let Some(next) = of(SetKind::Log).find(follows) else { return is_there };
            is_there |= finished <= moment && moment <= next.set.config.started.as_deref().unwrap();
            reached.push(next.set.config.last_lsn);
        }
    })
}

#[test]
fn spans_and_paths_to_moments_are_those_found_by_trying_all_paths() {
    let mut state = 11u64;
    let mut dice = move |below: u32| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32 % below
    };
    let (mut yes, mut no) = (0, 0);
    for _ in 0..400 {
        let mut sets = Vec::new();
        for _ in 0..1 + dice(3) {
            let at = dice(60);
            sets.push(full(at, at + 1 + dice(5)));
        }
        for _ in 0..dice(3) {
            let (base, at) = (sets[dice(sets.len() as u32) as usize].clone(), dice(60));
            if base.set.kind == SetKind::Full && base.set.config.last_lsn < Some(lsn(at)) {
                sets.push(differential(at, at + 1 + dice(5), &base));
            }
        }
        for _ in 0..dice(12) {
            let at = dice(60);
            sets.push(log(at, at + 1 + dice(15)));
        }
        let found = found(sets);
        for minute in 0..80 {
            let moment = time(minute);
            let expected = is_reached(&found.sets, &moment);
            let path = found.moment(&moment);
            let lsns: Vec<_> = found
                .sets
                .iter()
                .map(|set| (set.set.kind, set.set.config.first_lsn, set.set.config.last_lsn))
                .collect();
            assert_eq!(path.chain.is_some(), expected, "{minute} of {lsns:?}");
            assert_eq!(found.points.iter().any(|span| span.has(&moment)), expected, "{minute} of {lsns:?}");
            assert_eq!(path.missing.is_none(), expected);
            (yes, no) = (yes + u32::from(expected), no + u32::from(!expected));
            // Each step must follow the sets before it, and the last log backup must reach the point in time.
            let Some(chain) = path.chain else { continue };
            let mut reached = None;
            for set in chain.steps.iter().map(|step| &found.sets[*step].set) {
                let config = &set.config;
                if set.kind == SetKind::Log {
                    assert!(config.first_lsn <= reached && reached <= config.last_lsn);
                }
                reached = config.last_lsn;
            }
            let last = &found.sets[*chain.steps.last().unwrap()].set;
            assert!(last.config.started.as_deref() >= Some(&moment));
            assert_eq!(path.stops, last.kind == SetKind::Log);
        }
    }
    assert!(yes > 4_000 && no > 4_000, "{yes} {no}");
}

/// A backup file with one set.
fn media(path: &str, set: ChainSet, (family, families): (u16, u16)) -> BackupMedia {
    BackupMedia {
        path: Path::new(path).to_owned(),
        is_compressed: false,
        media_set: None,
        family_id: 0,
        families,
        family,
        name: String::new(),
        description: String::new(),
        software: String::new(),
        block_bytes: 512,
        created: None,
        sets: vec![set.set],
        damage: Vec::new(),
        undescribed: Vec::new(),
        read_faults: ReadFaults::default(),
    }
}

#[test]
fn a_differential_belongs_to_the_full_backup_that_it_names_although_a_restore_changed_the_binding() {
    let with = |mut set: ChainSet, binding: &str, fork: &str| {
        let config = &mut set.set.config;
        (config.binding_id, config.recovery_fork_id) = (Some(binding.to_owned()), Some(fork.to_owned()));
        config.family_id = Some("family".to_owned());
        set
    };
    let base = with(full(10, 20), "one", "A");
    let mut over = with(differential(40, 45, &base), "two", "B");
    (over.set.config.earlier_fork_id, over.set.config.fork_point_lsn) = (Some("A".to_owned()), Some(lsn(20)));
    let found = chains(&[media("full.bak", base, (1, 1)), media("diff.bak", over, (1, 1))]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].newest().unwrap().steps, [0, 1]);
    assert_eq!(spans(&found[0]), [(time(20), time(20)), (time(45), time(45))]);
    assert!(found[0].unused.is_empty());
}

#[test]
fn stripes_that_are_missing_are_named_and_a_copy_is_no_other_stripe() {
    let stripe = |name: &str, number: u16| media(name, full(10, 20), (number, 3));
    let found = chains(&[stripe("1.bak", 1), stripe("1 copy.bak", 1), stripe("3.bak", 3)]);
    let set = &found[0].sets[0];
    assert_eq!((set.missing_stripes, set.missing.as_slice(), set.stripes), (1, &[2][..], 3));
    assert_eq!((set.paths.len(), set.copies.len()), (2, 1));
    assert_eq!(found[0].reasons, [Unused::StripesMissing]);
    let mut damaged = stripe("1.bak", 1);
    damaged.damage.push(Damage { path: "1.bak".into(), at: 5, kind: DamageKind::Lost });
    let media = [damaged, stripe("1 copy.bak", 1), stripe("2.bak", 2), stripe("3.bak", 3)];
    let found = chains(&media);
    let set = &found[0].sets[0];
    assert!(set.is_whole(), "the sound copy counts: {set:?}");
    assert_eq!(
        set.paths.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(),
        ["1 copy.bak", "2.bak", "3.bak"]
    );
    assert_eq!(chains(&media[..1])[0].sets[0].missing, [2, 3]);
    // An impossible stripe number is ignored.
    assert_eq!(chains(&[stripe("9.bak", 9), stripe("1.bak", 1)])[0].sets[0].missing_stripes, 2);
}

#[test]
fn damage_concerns_the_set_that_it_lies_in() {
    let mut file = media("all.bak", full(10, 20), (1, 1));
    for (position, mut next) in [(2, log(10, 30)), (3, log(30, 40))] {
        (next.set.at, next.set.position) = (1_000 * u64::from(position), position);
        file.sets.push(next.set);
    }
    let damaged = |damage: &[(u64, DamageKind)]| {
        let mut file = file.clone();
        let damage = damage.iter().map(|(at, kind)| Damage { path: "all.bak".into(), at: *at, kind: kind.clone() });
        file.damage = damage.collect();
        let found = chains(&[file]).remove(0);
        found.sets.iter().map(|set| set.is_damaged).collect::<Vec<_>>()
    };
    assert_eq!(damaged(&[]), [false, false, false]);
    assert_eq!(damaged(&[(1_999, DamageKind::Lost)]), [true, false, false]);
    assert_eq!(damaged(&[(2_500, DamageKind::Lost)]), [false, true, false]);
    assert_eq!(damaged(&[(9_000, DamageKind::Truncated)]), [false, false, true]);
    let end = DamageKind::SetIncomplete { position: 2 };
    assert_eq!(damaged(&[(9_000, DamageKind::Truncated), (2_000, end)]), [false, true, false]);
}

#[test]
fn as_many_differentials_as_full_backups_are_looked_up_and_not_compared_in_pairs() {
    let fulls: Vec<ChainSet> = (0..10_000).map(|number| full(10 * number, 10 * number + 2)).collect();
    let differentials = fulls.iter().enumerate().map(|(number, base)| {
        let at = 10 * number as u32 + 5;
        differential(at, at + 1, base)
    });
    let sets: Vec<ChainSet> = differentials.chain(fulls.iter().cloned()).collect();
    let found = found(sets);
    assert_eq!(found.chains.len(), 10_000);
    assert!(found.chains.iter().all(|chain| chain.steps.len() == 2 && chain.differentials.len() == 1));
    assert!(found.unused.is_empty());
    // Now the sets have no GUIDs, and all of them have the same checkpoint LSN.
    let same = found.sets.into_iter().map(|mut set| {
        let config = &mut set.set.config;
        (set.set.guid, config.differential_base_guid) = (None, None);
        config.checkpoint_lsn = config.checkpoint_lsn.map(|_| lsn(1));
        set.set.files.iter_mut().for_each(|file| file.differential_base_lsn = Some(lsn(1)));
        set
    });
    let found = of_database(String::new(), same.collect());
    assert_eq!((found.chains.len(), found.unused.len()), (10_000, 0));
}

#[test]
fn a_database_that_was_renamed_is_one_and_copies_that_went_on_side_by_side_are_not() {
    let with = |mut set: ChainSet, name: &str| {
        let config = &mut set.set.config;
        (config.family_id, config.recovery_fork_id) = (Some("family".to_owned()), Some("A".to_owned()));
        config.database = name.to_owned();
        set
    };
    let file = |name: &str, set: ChainSet| media(name, set, (1, 1));
    let renamed = [
        file("1", with(full(10, 20), "old")),
        file("2", with(log(10, 30), "old")),
        file("3", with(log(30, 40), "new")),
    ];
    let found = chains(&renamed);
    assert_eq!((found.len(), found[0].database.as_str()), (1, "new"));
    assert_eq!(spans(&found[0]), [(time(20), time(40))]);
    // Backups under the old name continue after the first backup under the new name, so there are two databases.
    let both = [&renamed[..], &[file("4", with(log(30, 45), "old"))]].concat();
    let found = chains(&both);
    assert_eq!(found.iter().map(|found| found.sets.len()).collect::<Vec<_>>(), [1, 3]);
}
