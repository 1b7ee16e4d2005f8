//! Runs tasks of a plan.

use check::Progress;
use check::part::{Question, Sweeper, sweeper_without_maps};
use parts::{Folder, PartsError, Piece, Plan, Round, Task};

use crate::failure::{Failure, report_read_faults};
use crate::prepare::{open, prepare};
use crate::request::Request;
use crate::spread::rounds::question;
use crate::spread::sweeping::{failed, read_maps, sweep};
use crate::spread::{Opened, Planned, Spread, What};
use crate::throttle::throttled;

/// The tasks to run. They are either tasks of the plan or tasks of a further round.
pub struct Work<'o> {
    opened: &'o Opened,
    /// The folder with their parts.
    pub folder: &'o Folder,
    /// The plan with these tasks.
    pub plan: &'o Plan<Planned>,
    /// The further round that contains the questions for the tasks. `None` for tasks of the plan, which sweep ranges.
    round: Option<&'o Round>,
}

impl<'o> Work<'o> {
    /// The tasks that must be run now.
    ///
    /// # Errors
    /// If a file is not a part of this plan.
    pub fn of(opened: &'o Opened) -> Result<Self, PartsError> {
        Ok(match opened.folder.current(&opened.plan, &opened.rounds)? {
            None => Self { opened, folder: &opened.folder, plan: &opened.plan, round: None },
            Some(open) => Self { opened, folder: &open.folder, plan: &open.plan, round: Some(&open.round) },
        })
    }

    /// Runs some of the tasks.
    ///
    /// # Errors
    /// If the database is not the planned one, or a part cannot be written.
    pub fn run(&self, check: &Request, tasks: &[Task], listener: Box<dyn Progress>) -> Result<(), Failure> {
        let opened = self.opened;
        opened.plan.verify_files()?;
        let (choice, sets) = (opened.choice(), opened.sets()?);
        let what = What {
            named: &check.paths,
            choice: &choice,
            sets: sets.as_deref(),
            place: None,
            spread: Spread::Task(opened),
        };
        let input = open(check, &what, listener.as_ref())?;
        let prepared = prepare(check, &input, listener.as_ref(), &what)?;
        let source = prepared.recovered.pages_or(input.pages());
        let common = Piece::Common.bound_to(&opened.plan.plan);
        let mut from = opened.folder.maps(&opened.plan, Piece::Common)?;
        let swept = throttled(check, source, |source| {
            sweeper_without_maps(source, &prepared.database, &prepared.options, (&common, &mut from), |sweeper| {
                let sweeper = sweeper.ok_or_else(|| opened.changed("no page of a table has to be read"))?;
                tasks.iter().try_for_each(|task| self.carry_out(sweeper, task, listener.as_ref()))
            })
        });
        swept.map_err(|error| PartsError::of_maps(&opened.folder.maps_path(), error))??;
        drop(listener);
        // The parts list the pages that could not be read. The merge decides whether these pages make the result
        // incomplete.
        report_read_faults(&source.read_faults());
        Ok(())
    }

    /// For a task of a further round, returns the question to answer and the ID of the planned task that has the same
    /// range.
    fn asked(&self, task: &Task) -> Result<Option<(u32, Question)>, Failure> {
        let Some(round) = self.round else { return Ok(None) };
        let Some(of) = round.tasks.get(task.id as usize) else { return Ok(None) };
        question(self.opened, round.round, of.question).map(|question| Some((of.of, question)))
    }

    /// Runs a task.
    fn carry_out(&self, sweeper: &mut Sweeper<'_, '_>, task: &Task, listener: &dyn Progress) -> Result<(), Failure> {
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
