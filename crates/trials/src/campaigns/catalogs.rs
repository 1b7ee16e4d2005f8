//! Catalogs of up to 100,000 tables: time and memory of a check, and of the commands that only read the catalog.

use lab::Version;
use lab::many_tables::many_tables;
use trials::mutate::Random;

use super::{Bench, grant};
use crate::outcome::{Outcome, Verdict};
use crate::subject::folder;

/// Numbers of tables to choose from. A number that is listed twice is chosen more often. Each large number is listed
/// once, because a large catalog takes long to write.
const TABLES: [u32; 10] = [1, 10, 100, 300, 1000, 1000, 3000, 3000, 10_000, 100_000];
/// A short run chooses only from the first entries of [`TABLES`]. This constant is the number of these entries.
const SHORT: usize = 5;
/// Commands that only read the catalog.
const LISTINGS: [&str; 3] = ["info", "tables", "lint"];
/// The smallest time limit, in seconds. For a small catalog, a limit computed from the number of tables would be too
/// short.
const LEAST_SECONDS: f64 = 2.0;
/// The limit of processor time and of elapsed time, in seconds per table. The limit includes the time for the indexes
/// of the table.
const MOST_SECONDS_PER_TABLE: f64 = 2e-3;

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let choices = if bench.is_short { &TABLES[..SHORT] } else { &TABLES[..] };
    let tables = *random.pick(choices).unwrap_or(&100);
    let indexes = random.below(6) as u16;
    let rows = *random.pick(&[0, 10, 1000]).unwrap_or(&0);
    let version = *random.pick(&Version::ALL).unwrap_or(&Version::V957);
    let what = format!("{tables} tables with {indexes} indexes, {rows} rows, {version:?}");
    let made = folder();
    let description = many_tables(version, seed, tables, indexes, rows);
    let written = lab::write(&description, made.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let paths: Vec<String> = written.files.iter().map(|path| path.display().to_string()).collect();
    let program = bench.program();
    let name = "catalog";
    let most = LEAST_SECONDS.max(f64::from(tables) * MOST_SECONDS_PER_TABLE);
    for command in LISTINGS {
        let mut arguments = vec![command];
        arguments.extend(paths.iter().map(String::as_str));
        let done = program.run(&arguments).end();
        if done.code != Some(0) {
            return Outcome::new(name, what, Verdict::Broke(format!("{command}: {}", done.story())));
        }
        if done.time.as_secs_f64() > most {
            return Outcome::new(format!("{name}, {command}"), what, Verdict::Hung(done.time.as_secs_f64()));
        }
    }
    let mut arguments = vec!["check", "--format", "json", "--maxdop", "2"];
    arguments.extend(paths.iter().map(String::as_str));
    let done = program.run(&arguments).end();
    if done.code.is_none_or(|code| code & !16 != 0) {
        return Outcome::new(name, what, Verdict::Broke(format!("sound, but: {}", done.story())));
    }
    if done.time.as_secs_f64() > most {
        return Outcome::new(format!("{name}, check"), what, Verdict::Hung(done.time.as_secs_f64()));
    }
    grant::kept(program, &arguments, name, what)
}
