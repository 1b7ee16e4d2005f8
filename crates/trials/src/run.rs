//! Runs the trials of a campaign on several threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::campaigns::{Bench, Campaign};
use crate::outcome::{Outcome, Tally, Verdict};

/// A trial that takes longer than this is considered stuck.
const STUCK: Duration = Duration::from_secs(300);
const WATCH: Duration = Duration::from_millis(200);

/// The condition for the end of a campaign.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// After this number of trials.
    Count(u64),
    /// At this time.
    Time(Instant),
}

/// Runs a campaign, starting with the seed `first`. Prints failures as they occur.
pub(crate) fn run(campaign: Campaign, bench: &Bench, first: u64, until: Until, threads: usize, tell: bool) -> Tally {
    if campaign.runs_program() {
        bench.program();
    }
    let start = Instant::now();
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let is_done = AtomicBool::new(false);
    let workers = campaign.threads(threads).max(1);
    let running: Vec<Mutex<Option<(u64, Instant)>>> = (0..workers).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let work = |place: &Mutex<Option<(u64, Instant)>>| {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                let goes_on = match until {
                    Until::Count(count) => seed - first < count,
                    Until::Time(end) => Instant::now() < end,
                };
                if !goes_on {
                    return;
                }
                *lock(place) = Some((seed, Instant::now()));
                let outcome = catch_unwind(AssertUnwindSafe(|| campaign.trial(bench, seed)))
                    .unwrap_or_else(|_| Outcome::new("panic", "see above", Verdict::Panicked));
                *lock(place) = None;
                lock(&tally).add(&outcome);
                report(campaign, seed, &outcome, tell);
            }
        };
        let handles: Vec<_> = running.iter().map(|place| scope.spawn(move || work(place))).collect();
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                std::thread::sleep(WATCH);
                for place in &running {
                    if let Some((seed, started)) = *lock(place)
                        && started.elapsed() > STUCK
                    {
                        // This process cannot stop a stuck thread.
                        println!(
                            "FAILED {}: no end in {} s: {}",
                            campaign.name(),
                            STUCK.as_secs(),
                            repeat(campaign, seed)
                        );
                        std::process::exit(1);
                    }
                }
            }
        });
        handles.into_iter().for_each(|handle| drop(handle.join()));
        is_done.store(true, Ordering::Relaxed);
    });
    let mut tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    tally.seconds = start.elapsed().as_secs_f64();
    tally
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn report(campaign: Campaign, seed: u64, outcome: &Outcome, tell: bool) {
    if let Some(failure) = outcome.failure() {
        println!("FAILED {failure}; {}; {}: {}", outcome.kind, outcome.what, repeat(campaign, seed));
        return;
    }
    let found = match &outcome.verdict {
        Verdict::Elsewhere(text) => format!("elsewhere: {text}"),
        Verdict::NotVerified if outcome.harmless.is_none() => "only not verified".to_owned(),
        _ => return,
    };
    if tell {
        println!("{found}; {}; {}: {}", outcome.kind, outcome.what, repeat(campaign, seed));
    }
}

/// The command that repeats a trial.
fn repeat(campaign: Campaign, seed: u64) -> String {
    format!("cargo run --release -p trials -- --campaign {} --seed {seed}", campaign.name())
}
