//! Simulates nightly time windows and compares the forecasts with a model that has a date for every range.

use super::*;
use crate::windows::pace::{Pace, Swept};

const DAY: i64 = 86_400;
const MB: u64 = 1 << 20;

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn range(id: u32, read_at: Option<i64>) -> Range {
    Range { id, bytes: 64 * MB, is_in_use: true, read_at, known_since: 0, is_doubted: false }
}

fn judge(now: i64, within_days: i64, bytes: f64) -> Judge {
    let rhythm = Rhythm { bytes: Some(bytes), every: Duration::from_secs(DAY.unsigned_abs()) };
    Judge { now, within: within_days * DAY, rhythm }
}

#[test]
fn ranges_with_findings_come_first_then_those_never_read_then_the_oldest() {
    let mut ranges = vec![range(0, Some(50)), range(1, None), range(2, Some(20)), range(3, Some(20)), range(4, None)];
    ranges[0].is_doubted = true;
    put_in_order(&mut ranges);
    assert_eq!(ranges.iter().map(|range| range.id).collect::<Vec<_>>(), [0, 1, 4, 2, 3]);
}

/// One night of the model: the speed of reading and the length of the time window.
struct Night {
    rate: f64,
    seconds: f64,
}

/// Simulates one night: reads the ranges that fit into the time window. Returns these ranges in the order of reading,
/// and the number of seconds that reading them took.
fn sweep(pace: &mut Pace, ranges: &[Range], night: &Night) -> (Vec<u32>, f64) {
    let (mut order, mut passed, mut read) = (ranges.to_vec(), 0.0, Vec::new());
    put_in_order(&mut order);
    for range in &order {
        if !pace.fits(range.bytes, Duration::from_secs_f64((night.seconds - passed).max(0.0))) {
            break;
        }
        let seconds = range.bytes as f64 / night.rate;
        passed += seconds;
        pace.add(Swept { bytes: range.bytes, seconds });
        read.push(range.id);
    }
    (read, passed)
}

/// Simulates 30 nights over a database of about 1 GB that is in use. In each night, the oldest ranges must be read
/// first, and the check must end in time, whatever its speed. The verdict must agree with a model that has a date for
/// every range.
#[test]
fn thirty_nights_read_the_oldest_first_end_in_time_and_the_promise_breaks_when_the_model_says() {
    let (mut broken, mut never, mut kept, mut cut) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut random = Random(seed);
        let count = 16 + random.below(5) as u32;
        let mut dates: Vec<Option<i64>> = vec![None; count as usize];
        let mut windows: Vec<Swept> = Vec::new();
        let within_days = 2 + random.below(12) as i64;
        let base = 1.0 + random.below(40) as f64;
        for night in 0..30i64 {
            let now = night * DAY;
            let rate = (base * (0.7 + random.below(60) as f64 / 100.0)) * MB as f64;
            let this = Night { rate, seconds: 60.0 };
            let mut ranges: Vec<Range> = dates.iter().zip(0..).map(|(date, id): (_, u32)| range(id, *date)).collect();
            let doubted = random.below(u64::from(count)) as usize;
            ranges[doubted].is_doubted = random.below(4) == 0;
            let mut pace = Pace::of(&windows);
            let (read, passed) = sweep(&mut pace, &ranges, &this);
            // The check must end in time. It may take longer only if a single range takes longer than the night, or if
            // the night is slower than expected from the nights before it.
            let alone = 64.0 * MB as f64 / rate;
            assert!(passed <= 60.0 + f64::max(1.2, 10.0).max(alone), "seed {seed} night {night}: {passed} s");
            assert!(!read.is_empty());
            cut += usize::from(read.len() < count as usize);
            // A range that was read must not be newer than an unread range. The exception is the range with the new
            // finding, which is read first.
            let oldest_left = (0..count).filter(|id| !read.contains(id)).map(|id| dates[id as usize]).min();
            for id in read.iter().filter(|id| !ranges[**id as usize].is_doubted) {
                assert!(oldest_left.is_none_or(|left| dates[*id as usize] <= left), "seed {seed} night {night}");
            }
            assert!(!ranges[doubted].is_doubted || read[0] as usize == doubted);
            read.iter().for_each(|id| dates[*id as usize] = Some(now));
            windows.insert(0, pace.now());
            let ranges: Vec<Range> = dates.iter().zip(0..).map(|(date, id): (_, u32)| range(id, *date)).collect();
            let judge = judge(now, within_days, pace.rate().unwrap() * 60.0);
            let verdict = judge.read(&ranges, |range| range.read_at != Some(now));
            let oldest = dates.iter().map(|date| date.unwrap_or(0)).min().unwrap();
            let model = now - oldest > within_days * DAY;
            assert_eq!(matches!(verdict, Kept::Broken(_)), model, "seed {seed} night {night}");
            match verdict {
                Kept::Broken(at) => {
                    assert_eq!(at, oldest);
                    broken += 1;
                }
                Kept::Never(_) => never += 1,
                Kept::Yes => kept += 1,
                Kept::Moves(_) => panic!("not of what is read"),
            }
        }
    }
    assert!(broken > 100 && never > 100 && kept > 100 && cut > 1000, "{broken} {never} {kept} {cut}");
}

/// Tests that forecasts come true at a steady speed: a promise that is expected to be kept is never broken later, and a
/// promise that is expected to be broken is broken later.
#[test]
#[ignore = "full tier: takes seconds"]
fn at_a_steady_speed_what_is_foreseen_comes_true() {
    let mut seen = [0; 2];
    for (count, each, within_days) in (1..=40u32)
        .flat_map(|count| (1..=6u64).flat_map(move |each| (1..=15i64).map(move |within| (count, each, within))))
    {
        let mut dates: Vec<Option<i64>> = vec![None; count as usize];
        let (mut foreseen, mut is_broken) = (None, false);
        for night in 0..60i64 {
            let now = night * DAY;
            let mut order: Vec<Range> = dates.iter().zip(0..).map(|(date, id): (_, u32)| range(id, *date)).collect();
            put_in_order(&mut order);
            // The age of each range is greatest just before a night begins, so the promise is judged at this point.
            let oldest = dates.iter().map(|date| date.unwrap_or(0)).min().unwrap();
            is_broken |= now - oldest > within_days * DAY;
            order.iter().take(each as usize).for_each(|range| dates[range.id as usize] = Some(now));
            let ranges: Vec<Range> = dates.iter().zip(0..).map(|(date, id): (_, u32)| range(id, *date)).collect();
            let judge = judge(now, within_days, (each * 64 * MB) as f64);
            let verdict = judge.read(&ranges, |range| range.read_at != Some(now));
            foreseen.get_or_insert(verdict);
        }
        let is_kept = foreseen == Some(Kept::Yes);
        assert_eq!(is_kept, !is_broken, "{count} ranges, {each} a night, within {within_days} days: {foreseen:?}");
        seen[usize::from(is_kept)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 500), "{seen:?}");
}

#[test]
fn a_window_that_is_shorter_than_the_database_breaks_nothing() {
    let ranges: Vec<Range> = (0..100).map(|id| range(id, (id < 20).then_some(0))).collect();
    let judge = judge(0, 14, 20.0 * 64.0 * MB as f64);
    assert_eq!(judge.read(&ranges, |range| range.read_at.is_none()), Kept::Yes);
    let all = 100 * 64 * MB;
    assert_eq!(judge.closed(0, (all - 20 * 64 * MB, all), true), Kept::Yes);
}

#[test]
fn what_takes_longer_than_promised_is_said_on_the_first_night() {
    let ranges: Vec<Range> = (0..100).map(|id| range(id, (id < 5).then_some(0))).collect();
    let judge = judge(0, 14, 5.0 * 64.0 * MB as f64);
    assert_eq!(judge.read(&ranges, |range| range.read_at.is_none()), Kept::Never(20));
    let all = 100 * 64 * MB;
    assert_eq!(judge.closed(0, (all - 5 * 64 * MB, all), true), Kept::Never(20));
}

#[test]
fn a_copy_that_changes_is_closed_in_one_window_or_never() {
    let judge = judge(10 * DAY, 14, 64.0 * MB as f64);
    assert_eq!(judge.closed(9 * DAY, (64 * MB, 128 * MB), false), Kept::Moves(2));
    assert_eq!(judge.closed(9 * DAY, (0, 64 * MB), false), Kept::Yes);
    assert_eq!(judge.closed(9 * DAY, (64 * MB, 128 * MB), true), Kept::Yes);
}

#[test]
fn an_age_that_is_the_span_to_the_second_is_within_it() {
    let judge = judge(14 * DAY, 14, f64::INFINITY);
    assert_eq!(judge.closed(0, (0, 1), true), Kept::Yes);
    assert_eq!(Judge { now: 14 * DAY + 1, ..judge }.closed(0, (0, 1), true), Kept::Broken(0));
    let one = [range(0, Some(-1))];
    assert_eq!(judge.read(&one, |_| false), Kept::Broken(-1));
    let unused = [Range { is_in_use: false, ..range(0, None) }];
    assert_eq!(judge.read(&[Range { known_since: -9 * DAY, ..unused[0] }], |_| true), Kept::Yes);
    assert_eq!(judge.read(&[Range { known_since: -9 * DAY, ..range(0, None) }], |_| true), Kept::Broken(-9 * DAY));
}

#[test]
fn nothing_is_foreseen_without_a_speed() {
    let mut judge = judge(0, 14, 0.0);
    assert_eq!(judge.rhythm.windows(10), None);
    judge.rhythm.bytes = None;
    assert_eq!(judge.read(&[range(0, None)], |_| true), Kept::Yes);
    assert_eq!(judge.closed(0, (1, 1), true), Kept::Yes);
    assert_eq!(Rhythm { bytes: Some(250e6 * 9000.0), every: Duration::ZERO }.windows(2_000_000_000_000), Some(1));
    assert_eq!(Rhythm { bytes: Some(1e9 * 14_400.0), every: Duration::ZERO }.windows(50_000_000_000_000), Some(4));
}
