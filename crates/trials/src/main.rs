//! Campaigns of damage with known truth. Sound lab databases are damaged from a seed, and the report of a check is
//! compared with the damage. docs/trust.md has the results.
//!
//! The seed of a trial determines everything that the trial does. Each failure is printed with the command that repeats
//! the trial.

#![expect(clippy::panic, reason = "an instrument: where it cannot work, no result means anything")]

mod about;
mod baseline;
mod campaigns;
mod faults;
mod judge;
mod log_faults;
mod mutant;
mod outcome;
mod process;
mod reach;
mod real_pairs;
mod rules;
mod run;
mod shared;
mod sound;
mod subject;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};

use campaigns::{Bench, Campaign};
use run::Until;

/// Tests mdfsck with known damage, with other ways to run it, and with failing resources
///
/// Without --short, --count or --hours, one trial of each campaign runs, with the seed of --seed.
#[derive(Parser)]
#[command(name = "trials")]
struct Arguments {
    /// Run only this campaign; can be given several times
    #[arg(long, value_enum)]
    campaign: Vec<Campaign>,

    /// Seed of the first trial; each next trial adds one
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of trials of each campaign
    #[arg(long, conflicts_with_all = ["hours", "short"])]
    count: Option<u64>,

    /// Run for this many hours, divided among the campaigns
    #[arg(long, conflicts_with = "short")]
    hours: Option<f64>,

    /// Run up to a few hundred trials of each campaign, which takes half a minute
    #[arg(long)]
    short: bool,

    /// Also write the report to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Number of trials to run at the same time; 0 for one per processor
    #[arg(long, default_value_t = 0)]
    threads: usize,

    /// Path of the mdfsck program that trials run as a process; by default it is built together with this program
    #[arg(long, value_name = "PATH")]
    mdfsck: Option<PathBuf>,

    /// Keep the damaged files of each trial in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["hours", "short", "count"])]
    keep: Option<PathBuf>,

    /// Also print trials in which no finding names the damage, or in which the damage is only listed as not verified
    #[arg(long)]
    elsewhere: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let chosen =
        if arguments.campaign.is_empty() { Campaign::value_variants().to_vec() } else { arguments.campaign.clone() };
    let threads = match arguments.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let bench = Bench {
        keep: arguments.keep.clone(),
        mdfsck: arguments.mdfsck.clone(),
        is_short: arguments.short,
        ..Bench::default()
    };
    let weights: f64 = chosen.iter().map(|campaign| campaign.weight()).sum();
    let is_one = !arguments.short && arguments.count.is_none() && arguments.hours.is_none();
    let mut tallies = Vec::new();
    for campaign in chosen {
        let until = match arguments.hours {
            Some(hours) => {
                let share = Duration::from_secs_f64((hours * 3600.0 * campaign.weight() / weights).max(0.0));
                Until::Time(Instant::now() + share)
            }
            None if arguments.short => Until::Count(campaign.short()),
            None => Until::Count(arguments.count.unwrap_or(1)),
        };
        let tally = run::run(campaign, &bench, arguments.seed, until, threads, arguments.elsewhere || is_one);
        tallies.push((campaign, tally));
    }
    let text = table::markdown(&tallies);
    println!("{text}");
    if let Some(path) = &arguments.report
        && let Err(error) = std::fs::write(path, &text)
    {
        eprintln!("{}: {error}", path.display());
        return ExitCode::from(4);
    }
    let shortfalls: Vec<_> =
        tallies.iter().filter_map(|(campaign, tally)| Some((campaign.name(), campaign.shortfall(tally)?))).collect();
    for (campaign, shortfall) in &shortfalls {
        println!("FAILED {campaign}: {shortfall}");
    }
    let has_failed = !shortfalls.is_empty() || tallies.iter().any(|(_, tally)| tally.failed() > 0);
    if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
