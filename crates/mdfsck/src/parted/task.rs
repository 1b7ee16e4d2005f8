//! `mdfsck task`: runs tasks of a plan.

use check::part::{Question, Sweeper, sweeper_without_maps};
use jobs::failure::{Failure, report_read_faults};
use jobs::prepare::{open, prepare};
use jobs::spread::rounds::question;
use jobs::spread::sweeping::{failed, read_maps, sweep};
use jobs::spread::{Opened, Planned, Spread, What};
use jobs::throttle::throttled;
use parts::{Folder, Ids, PartsError, Piece, Plan, Round, Task};

use super::eof;
use crate::cli::TaskArguments;
use crate::one::set_up;
use crate::progress;

pub(crate) fn run(arguments: &TaskArguments) -> Result<u8, Failure> {
    if arguments.until_eof {
        eof::watch();
    }
    let opened = Opened::open(&arguments.folder)?;
    let ids = arguments.ids.iter().map(|text| Ids::parse(text, |name| std::env::var(name).ok()));
    let work = Work::of(&opened)?;
    let ids = Ids::among(&ids.collect::<Result<Vec<_>, _>>()?, work.plan.task_count())?;
    let check = opened.request(&(&arguments.room).into(), &(&arguments.run).into());
    set_up(&check, |check| {
        let mut left = Vec::new();
        for id in &ids {
            let task = work.plan.task(*id)?;
            if !work.folder.has(work.plan, task)? {
                left.push(task.clone());
            }
        }
        if left.is_empty() {
            return Ok(0);
        }
        opened.plan.verify_files()?;
        let (choice, sets) = (opened.choice(), opened.sets()?);
        let what = What {
            named: &check.paths,
            choice: &choice,
            sets: sets.as_deref(),
            place: None,
            spread: Spread::Task(&opened),
        };
        let listener = progress::listener(check.run.progress, None);
        let input = open(check, &what, listener.as_ref())?;
        let prepared = prepare(check, &input, listener.as_ref(), &what)?;
        let source = prepared.recovered.pages_or(input.pages());
        let common = Piece::Common.bound_to(&opened.plan.plan);
        let mut from = opened.folder.maps(&opened.plan, Piece::Common)?;
        let swept = throttled(check, source, |source| {
            sweeper_without_maps(source, &prepared.database, &prepared.options, (&common, &mut from), |sweeper| {
                let sweeper = sweeper.ok_or_else(|| opened.changed("no page of a table has to be read"))?;
                left.iter().try_for_each(|task| work.carry_out(sweeper, task, listener.as_ref()))
            })
        });
        swept.map_err(|error| PartsError::of_maps(&opened.folder.maps_path(), error))??;
        drop(listener);
        // The parts list the pages that could not be read. The merge decides whether these pages make the result
        // incomplete.
        report_read_faults(&source.read_faults());
        Ok(0)
    })
}

/// The tasks to run. They are either tasks of the plan or tasks of a further round.
struct Work<'o> {
    opened: &'o Opened,
    folder: &'o Folder,
    plan: &'o Plan<Planned>,
    /// The further round that contains the questions for the tasks. `None` for tasks of the plan, which sweep ranges.
    round: Option<&'o Round>,
}

impl<'o> Work<'o> {
    fn of(opened: &'o Opened) -> Result<Self, PartsError> {
        Ok(match opened.folder.current(&opened.plan, &opened.rounds)? {
            None => Self { opened, folder: &opened.folder, plan: &opened.plan, round: None },
            Some(open) => Self { opened, folder: &open.folder, plan: &open.plan, round: Some(&open.round) },
        })
    }

    /// For a task of a further round, returns the question to answer and the ID of the planned task that has the same
    /// range.
    fn asked(&self, task: &Task) -> Result<Option<(u32, Question)>, Failure> {
        let Some(round) = self.round else { return Ok(None) };
        let Some(of) = round.tasks.get(task.id as usize) else { return Ok(None) };
        question(self.opened, round.round, of.question).map(|question| Some((of.of, question)))
    }

    /// Runs a task.
    fn carry_out(
        &self,
        sweeper: &mut Sweeper<'_, '_>,
        task: &Task,
        listener: &dyn check::Progress,
    ) -> Result<(), Failure> {
        let opened = self.opened;
        let mut asked = self.asked(task)?;
        let Some((of, question)) = &mut asked else {
            read_maps(opened, sweeper, task)?;
            return sweep(opened, sweeper, task, listener).map(drop);
        };
        let area = opened.plan.area(*of).ok_or_else(|| opened.changed("a range of a round is not one of the plan"))?;
        read_maps(opened, sweeper, area)?;
        let path = self.folder.part_path(self.plan, task);
        self.folder.write(self.plan, task, |bound_to, to| {
            let answered = sweeper.answer(question, task.range(), bound_to, to);
            answered.map_err(|error| failed(path, error))?;
            opened.verify_files()
        })
    }
}
