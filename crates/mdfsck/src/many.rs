//! Checks several databases and backups separately, and prints a table of all databases at the end.

mod block;
pub(crate) mod side_by_side;

use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use jobs::failure::Failure;
use jobs::inventory::{Item, Job, Plan};
use jobs::keep;
use jobs::request::Request;
use jobs::spread::{Place, Spread, What};
use report::Format;
use report::databases::{self, Row, TableView, Verdict};
use source::backup::{ChainSet, SetChoice, UsedSet};

use crate::error_log::ErrorLog;
use crate::one::{self, Checked, Out};
use crate::output::Target;
use crate::speaker::{About, speaking_of, to_stderr, warn};
use crate::{html, terminal};
use block::Blocks;
use side_by_side::side_by_side;

/// Checks all items of a plan. If the plan has a single item, prints only the results of this item.
///
/// # Errors
/// If the results cannot be written, or a single item cannot be checked.
pub(crate) fn run(arguments: &Request, choice: &SetChoice, plan: Plan) -> Result<u8, Failure> {
    let Plan { mut items, passed_over, notes } = plan;
    notes.iter().for_each(warn);
    arguments.windows.weights.refuse_unknown(items.iter().map(|item| item.name.as_str()))?;
    if items.len() == 1
        && let Some(item) = items.pop()
    {
        return alone(arguments, choice, item);
    }
    html::refuse_several(arguments, items.len())?;
    let inputs: Vec<&Path> = items.iter().flat_map(|item| &item.paths).map(|path| path.as_path()).collect();
    let target = Target::among(arguments.results.output.as_deref(), &inputs)?;
    if let Some(path) = &arguments.results.errorlog_line {
        drop(ErrorLog::among(path, &inputs)?);
    }
    let view = table_view(&target);
    let is_quiet = arguments.results.no_infomsgs && !arguments.results.wants_summary(terminal::is_stdout());
    let mut status = 0;
    let written = target.write(|out| {
        let run = Run { arguments, choice, items: &items };
        let mut blocks = Blocks::new(arguments.results.format(), out);
        let rows = run.rows(&mut blocks, &mut status)?;
        let out = blocks.end();
        match arguments.results.format() {
            _ if arguments.estimate_only => {}
            Format::Text if is_quiet && rows.iter().all(is_silent) => {}
            Format::Json => databases::write_json(&rows, &passed_over, status, out)?,
            // TABLERESULTS has no columns for the table of databases, so the table goes to stderr.
            Format::TableResults(_) => to_stderr(|out| databases::write(&rows, view, out)),
            _ => databases::write(&rows, view, out)?,
        }
        Ok(())
    });
    // If the results cannot be written, the exit status still includes the bits that the checks have set.
    Ok(status | written.map_or_else(Failure::report, |()| 0))
}

/// Checks the only item of a plan.
fn alone(arguments: &Request, choice: &SetChoice, item: Item) -> Result<u8, Failure> {
    let sets = match item.job {
        Job::Refused(failure) => return Err(failure),
        Job::Sets(sets) => {
            let used: Vec<UsedSet> = sets.iter().map(used).collect();
            warn(format!("checking the backup of '{}': {}", item.name, databases::files(&item.paths, &used)));
            Some(sets)
        }
        Job::Files { .. } => None,
    };
    let what = What { named: &arguments.paths, choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    one::one(&arguments.of(item.paths), &what)
}

fn table_view(target: &Target) -> TableView {
    match target {
        Target::Stdout => TableView { is_colored: terminal::style(None).has_color, has_times: terminal::is_stdout() },
        _ => TableView::default(),
    }
}

/// A run that checks several databases.
struct Run<'a> {
    arguments: &'a Request,
    choice: &'a SetChoice,
    items: &'a [Item],
}

/// The reason why one of several databases gets no row in the table.
enum Stopped {
    /// The results of the database cannot be written. The second field has the exit-status bits of its check.
    Output(io::Error, u8),
    /// The database needs more memory than its share of the grant.
    NeedsMemory,
}

impl Run<'_> {
    /// Checks all databases, and adds the bits of each exit status to `status`. Stops if the results of a database
    /// cannot be written.
    fn rows(&self, blocks: &mut Blocks<'_>, status: &mut u8) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        if self.arguments.databases > 1 {
            side_by_side(self, |number, results, row| {
                *status |= row.status;
                rows.push(row);
                blocks.block(self.heading(number), |out| io::copy(results, &mut { out }).map(drop))
            })?;
            return Ok(rows);
        }
        for number in 0..self.items.len() {
            let row =
                blocks.block(self.heading(number), |out| match self.check(number, self.arguments, true, out) {
                    Ok(row) => {
                        *status |= row.status;
                        Ok(row)
                    }
                    Err(Stopped::Output(cause, bits)) => {
                        *status |= bits;
                        Err(cause)
                    }
                    Err(Stopped::NeedsMemory) => Err(io::ErrorKind::OutOfMemory.into()),
                })?;
            rows.push(row);
        }
        Ok(rows)
    }

    fn heading(&self, number: usize) -> String {
        let Some(item) = self.items.get(number) else { return String::new() };
        let sets = match &item.job {
            Job::Sets(sets) => sets.iter().map(used).collect(),
            _ => Vec::new(),
        };
        databases::heading(&item.name, &item.paths, &sets)
    }

    /// Checks a database. Returns [`Stopped::NeedsMemory`] if the database needs more memory, unless `is_alone`.
    fn check(&self, number: usize, arguments: &Request, is_alone: bool, out: &mut dyn Write) -> Result<Row, Stopped> {
        let Some(item) = self.items.get(number) else { return Err(Stopped::Output(io::ErrorKind::NotFound.into(), 0)) };
        let refuse = |failure: &Failure, out: &mut dyn Write| {
            self.refused(number, failure, out).map_err(|cause| Stopped::Output(cause, failure.status))
        };
        let sets = match &item.job {
            Job::Refused(failure) => return refuse(failure, out),
            Job::Sets(sets) => Some(sets.as_slice()),
            Job::Files { .. } => None,
        };
        let is_beside_others = self.arguments.databases > 1;
        let share = self.share(number);
        let place = Place { number: number + 1, of: self.items.len(), name: &item.name, share, is_beside_others };
        let what =
            What { named: &self.arguments.paths, choice: self.choice, sets, place: Some(place), spread: Spread::None };
        let arguments = arguments.of(item.paths.clone());
        let mut failed = None;
        let checked = {
            let (out, failed) = (&mut *out, &mut failed);
            speaking_of(about(item), || one::check(&arguments, &what, |_| Ok(Out::Among(out, failed))))
        };
        if let Some(cause) = failed {
            let status = checked.as_ref().map_or_else(|failure| failure.status, |checked| checked.status);
            return Err(Stopped::Output(cause, status));
        }
        match checked {
            Ok(Checked { row: Some(row), .. }) => Ok(row),
            Ok(Checked { status, .. }) => Ok(Row { status, ..row_without_results(item, Verdict::Incomplete) }),
            Err(failure) if failure.needs_memory && !is_alone => Err(Stopped::NeedsMemory),
            Err(failure) => refuse(&failure, out),
        }
    }

    /// The part of the time of a window that a database gets of what is left for it and the later databases.
    fn share(&self, number: usize) -> f64 {
        let weight = |item: &Item| f64::from(self.arguments.windows.weights.of_database(&item.name));
        let left: f64 = self.items.iter().skip(number).map(weight).sum();
        self.items.get(number).map_or(1.0, |item| weight(item) / left)
    }

    /// Reports a database that cannot be checked, and returns its row.
    fn refused(&self, number: usize, failure: &Failure, out: &mut dyn Write) -> io::Result<Row> {
        let Some(item) = self.items.get(number) else { return Err(io::ErrorKind::NotFound.into()) };
        speaking_of(about(item), || warn(&failure.text));
        let mut status = failure.status;
        // If the database was checked, the check has already recorded its failure.
        if matches!(item.job, Job::Refused(_)) {
            status |= keep::failed(&self.arguments.of(item.paths.clone()), SystemTime::now(), failure);
        }
        if self.arguments.results.format() == Format::Json {
            databases::write_failure(&item.paths, &failure.text, out)?;
        }
        let error = Some(failure.text.clone());
        Ok(Row { status, error, ..row_without_results(item, Verdict::NotChecked) })
    }
}

/// Whether a database has nothing to print under NO_INFOMSGS: it is sound, and its exit status is 0.
fn is_silent(row: &Row) -> bool {
    row.verdict == Verdict::Sound && row.status == 0
}

fn about(item: &Item) -> About {
    About { name: item.name.clone(), path: item.paths.first().cloned().unwrap_or_default() }
}

fn used(set: &ChainSet) -> UsedSet {
    let ChainSet { set, paths, .. } = set;
    let (finished, guid) = (set.config.finished.clone(), set.guid.clone());
    UsedSet { paths: paths.clone(), position: set.position, kind: set.kind, finished, guid }
}

fn row_without_results(item: &Item, verdict: Verdict) -> Row {
    let is_known = !matches!(item.job, Job::Refused(_));
    Row {
        database: if is_known { item.name.clone() } else { String::new() },
        paths: item.paths.clone(),
        sets: match &item.job {
            Job::Sets(sets) => sets.iter().map(used).collect(),
            _ => Vec::new(),
        },
        verdict,
        errors: 0,
        not_verified: 0,
        bytes: None,
        seconds: None,
        last_good_check: None,
        status: 0,
        error: None,
    }
}
