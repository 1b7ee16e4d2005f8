//! Chains over made-up sets that have only LSNs and times.

use super::*;
use crate::backup::{BackupFile, BackupSet, SetConfig};

mod moments;

/// An LSN in the log block with this number.
fn lsn(block: u32) -> Lsn {
    Lsn { vlf: 1, block, slot: 1 }
}

/// A set with only LSNs, for tests.
pub(in crate::backup) fn set(kind: SetKind, first: u32, last: u32) -> ChainSet {
    ChainSet {
        set: BackupSet {
            position: 1,
            kind,
            name: String::new(),
            description: String::new(),
            user: String::new(),
            machine: String::new(),
            software: (0, 0),
            guid: None,
            labelled: None,
            files: Vec::new(),
            filegroups: Vec::new(),
            has_checksums: false,
            is_copy_only: false,
            is_encrypted: false,
            at: 0,
            copied: Vec::new(),
            pages: Vec::new(),
            log: Vec::new(),
            config: SetConfig {
                first_lsn: Some(Lsn { vlf: 1, block: first, slot: 1 }),
                last_lsn: Some(Lsn { vlf: 1, block: last, slot: 1 }),
                ..SetConfig::default()
            },
        },
        paths: Vec::new(),
        copies: Vec::new(),
        stripes: 1,
        missing_stripes: 0,
        missing: Vec::new(),
        is_damaged: false,
    }
}

/// Reference implementation of the steps. Each step is the log backup with the greatest last LSN among the candidates.
/// Candidates come after the previous step, start no later than the LSN that the previous step reached, and end no
/// earlier than this LSN.
fn steps_one_by_one(lsns: &[(Option<Lsn>, Option<Lsn>)], mut reached: Option<Lsn>) -> (Option<Lsn>, Vec<usize>) {
    let (mut steps, mut next) = (Vec::new(), 0);
    while let Some(at) = reached {
        let follows = |number: &usize| lsns[*number].0 <= Some(at) && lsns[*number].1 >= Some(at);
        let Some(best) = (next..lsns.len()).filter(follows).max_by_key(|&number| lsns[number].1) else { break };
        steps.push(best);
        (reached, next) = (lsns[best].1, best + 1);
    }
    (reached, steps)
}

#[test]
fn steps_over_log_backups_are_those_found_one_by_one() {
    let mut state = 3u64;
    let mut dice = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let lsn = |block: u64| Lsn { vlf: 1, block: block as u32, slot: 1 };
    let mut longest = 0;
    for _ in 0..500 {
        let mut lsns: Vec<_> = (0..dice(30))
            .map(|_| {
                let first = dice(40);
                let last = first + dice(4);
                ((dice(20) > 0).then(|| lsn(first)), (dice(20) > 0).then(|| lsn(last)))
            })
            .collect();
        lsns.sort();
        let mut logs = Logs::default();
        lsns.iter().enumerate().for_each(|(number, lsns)| logs.push(number, *lsns));
        logs.join();
        for start in 0..40 {
            let (reached, first) = logs.reach(Some(lsn(start)));
            let steps = (reached, logs.from(first).collect());
            assert_eq!(steps, steps_one_by_one(&lsns, Some(lsn(start))), "from {start} over {lsns:?}");
            longest = longest.max(steps.1.len());
        }
    }
    assert!(longest > 5);
}

#[test]
fn each_log_backup_without_use_has_its_reason() {
    let log = |first, last| set(SetKind::Log, first, last);
    let mut other_fork = log(20, 30);
    other_fork.set.config.recovery_fork_id = Some("other".to_owned());
    let mut striped = log(31, 32);
    striped.missing_stripes = 1;
    // The sets: a full backup, log backups up to the differential backup, one log backup after it, a gap in the log,
    // and a last log backup.
    let mut sets = vec![set(SetKind::Full, 10, 20), set(SetKind::Differential, 40, 50)];
    sets[1].set.files.push(BackupFile {
        is_data: true,
        differential_base_lsn: Some(Lsn { vlf: 1, block: 10, slot: 1 }),
        ..BackupFile::default()
    });
    sets[0].set.config.checkpoint_lsn = Some(Lsn { vlf: 1, block: 10, slot: 1 });
    sets.extend([log(5, 12), log(12, 30), log(14, 18), log(15, 28), log(30, 45), log(45, 60), log(70, 80)]);
    sets.extend([other_fork, striped]);
    sets.sort_by_key(|set| set.set.config.first_lsn);
    let found = of_database(String::new(), sets);
    let blocks = |index: usize| found.sets[index].set.config.first_lsn.unwrap().block;
    let reasons: Vec<_> = found.unused.iter().map(|&index| blocks(index)).zip(found.reasons.clone()).collect();
    let expected = [
        (5, Unused::BeforeFull),
        (14, Unused::BeforeFull),
        (20, Unused::OtherFork),
        (31, Unused::StripesMissing),
        (70, Unused::AfterGap(lsn(60), lsn(70))),
    ];
    assert_eq!(reasons, expected);
    // Log backups that are not on the shortest path are needed only for points in time before the end of the
    // differential backup.
    let beside: Vec<_> = found.beside.iter().map(|beside| blocks(beside.set)).collect();
    assert_eq!(beside, [12, 15, 30]);
    let without_full = of_database(String::new(), vec![log(1, 2)]);
    assert_eq!(without_full.reasons, [Unused::NoFull]);
}

/// Backups of one recovery fork: full backups at blocks 0, 1, 2 ..., and log backups from each block to the next.
fn line(fulls: u32, logs: u32) -> Vec<ChainSet> {
    let fulls = (0..fulls).map(|number| set(SetKind::Full, number, number + 1));
    fulls.chain((0..logs).map(|number| set(SetKind::Log, number, number + 1))).collect()
}

#[test]
fn many_full_backups_share_their_log_backups_and_do_not_list_them_all() {
    let start = std::time::Instant::now();
    let found = of_database(String::new(), line(1_000, 10_000));
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert_eq!(found.chains.len(), 1_000);
    let listed: usize = found.chains.iter().map(|chain| chain.steps.len()).sum();
    assert!(listed < MOST_STEPS + 10_000 + 2 * 1_000, "{listed} steps are kept");
    // The newest chain is listed in full; the oldest chain lists only its first and last step.
    let (oldest, newest) = (found.chains.first().unwrap(), found.chains.last().unwrap());
    assert_eq!((newest.steps.len(), newest.omitted), (1 + 9_000, 0));
    assert_eq!((oldest.steps.len(), oldest.omitted), (2, 9_998));
    assert_eq!(oldest.steps.last(), newest.steps.last());
    // The log backup that ends where the first full backup ends counts as part of a chain: it could be a later log
    // backup of an idle database.
    assert!(found.unused.is_empty());
    let few = of_database(String::new(), line(3, 100));
    assert!(few.chains.iter().all(|chain| chain.omitted == 0 && chain.steps.len() > 97));
}

#[test]
fn a_hundred_thousand_log_backups_are_visited_once() {
    let found = of_database(String::new(), line(1, 100_000));
    assert_eq!(found.chains.first().unwrap().steps.len(), 100_000);
}
