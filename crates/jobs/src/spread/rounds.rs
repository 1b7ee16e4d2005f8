//! Rounds of a plan after the first one: `merge` writes questions about pages, and the tasks of the next round answer
//! them.

use std::io;

use check::part::{Asked, Open, Question, SumsError, Wanted};
use parts::{Gathered, OpenRound, PartsError, Round, RoundTask, VERSION, question_bound_to};

use super::{Opened, Planned};
use crate::failure::Failure;

/// Reads a question of a round.
pub fn question(opened: &Opened, round: u32, number: u32) -> Result<Question, Failure> {
    let (path, bytes) = opened.folder.question(round, number)?;
    let head = question_bound_to(&opened.plan.plan, round, number);
    let taken = Question::take(opened.folder.key(), &head, &mut bytes.as_slice());
    taken.map_err(|error| PartsError::Damaged { path, what: error.to_string() }.into())
}

/// The questions of all rounds, each together with the answers to it.
pub fn asked<'o>(opened: &'o Opened, gathered: &'o [Gathered]) -> Result<Vec<Asked<'o>>, Failure> {
    let mut all = Vec::new();
    for (open, gathered) in opened.rounds.iter().zip(gathered) {
        for number in 0..open.round.questions {
            let question = question(opened, open.round.round, number)?.without_known();
            all.push(Asked { question, answers: answers(open, gathered, number) });
        }
    }
    Ok(all)
}

fn answers<'o>(open: &'o OpenRound<Planned>, gathered: &'o Gathered, question: u32) -> Vec<Open<'o>> {
    let is_of = |task: u32| open.round.tasks.get(task as usize).is_some_and(|task| task.question == question);
    let parts = gathered.parts.iter().filter(|part| is_of(part.task.id));
    let opened = parts.map(|part| -> Open<'o> {
        Box::new(move || {
            let read = open.folder.read(&open.plan, part);
            read.map_err(|error| SumsError::Io { at: 0, error: io::Error::other(error.to_string()) })
        })
    });
    opened.collect()
}

/// Reports a further round of tasks.
pub type OnRound = fn(&Round) -> Result<(), Failure>;

/// Writes the questions as the next round. Then calls `says`, if there is such a function.
///
/// # Errors
///
/// This function always returns a failure. If the questions were written, the failure ends this merge; the user merges
/// again after the tasks have answered. Otherwise, the failure is a write error.
pub fn ask(opened: &Opened, wanted: &[Wanted], says: Option<OnRound>) -> Failure {
    write(opened, wanted, says).map_or_else(|failure| failure, |()| Failure::more())
}

fn write(opened: &Opened, wanted: &[Wanted], says: Option<OnRound>) -> Result<(), Failure> {
    let (plan, number) = (&opened.plan, opened.rounds.len() as u32 + 1);
    let mut tasks = Vec::new();
    for (question, wanted) in (0..).zip(wanted) {
        let mut bytes = Vec::new();
        let head = question_bound_to(&plan.plan, number, question);
        wanted.question.put(opened.folder.key(), &head, &mut bytes).map_err(Failure::unable)?;
        opened.folder.add_question(number, question, &bytes)?;
        let of = plan.areas().filter(|task| wanted.ranges.binary_search(&task.range()).is_ok());
        tasks.extend(of.map(|task| RoundTask { question, of: task.id }));
    }
    let mut why: Vec<&str> = wanted.iter().map(|wanted| wanted.question.why()).collect();
    why.dedup();
    let round = Round {
        v: VERSION,
        plan: plan.plan.clone(),
        round: number,
        why: why.join(", "),
        bytes: wanted.iter().map(|wanted| wanted.bytes).sum(),
        questions: wanted.len() as u32,
        tasks,
    };
    opened.folder.add_round(&round)?;
    says.map_or(Ok(()), |says| says(&round))
}
