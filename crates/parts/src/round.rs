//! Further rounds of a plan. If the sums in the parts show a difference, but not which rows or pages differ, the tasks
//! of a further round read pages again. A question says what these tasks must look for. A round consists of one file
//! with its tasks, and one file for each question. The tasks of a round write parts in the same way as the tasks of the
//! plan.

use std::path::{Path, PathBuf};

use check::part::digest;
use serde::{Deserialize, Serialize};

use crate::error::PartsError;
use crate::folder::{Folder, MOST_PLAN_BYTES, is_missing, read_bounded};
use crate::plan::{Plan, PlanId, Task, VERSION};
use crate::whole_file::write_whole;

/// The most rounds that a plan may have.
pub const MOST_ROUNDS: u32 = 100;
/// The maximum size of a question, in bytes.
const MOST_QUESTION_BYTES: u64 = 1 << 24;

/// One task of a round.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundTask {
    /// The number of the question that the task answers.
    pub question: u32,
    /// The number of the plan's range whose pages are read: that of its task, or of a range without a task.
    pub of: u32,
}

/// The content of the file that describes a further round.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The format version, [`VERSION`].
    pub v: u32,
    /// The ID of the plan to which the round belongs.
    pub plan: PlanId,
    /// The number of the round, counted from 1.
    pub round: u32,
    /// The reason for the round, as text.
    pub why: String,
    /// The number of bytes that the tasks of the round read.
    pub bytes: u64,
    /// The number of questions.
    pub questions: u32,
    /// The tasks of the round, numbered from 0.
    pub tasks: Vec<RoundTask>,
}

/// A further round that was opened, with the folder and the plan for its tasks and parts.
pub struct OpenRound<O> {
    /// The folder of the plan. Its digest identifies the round, so that parts of other rounds are not accepted.
    pub folder: Folder,
    /// The plan with the tasks of the round.
    pub plan: Plan<O>,
    /// The content of the round's file.
    pub round: Round,
}

fn name(round: u32) -> String {
    format!("round-{round}.json")
}

fn question_name(round: u32, question: u32) -> String {
    format!("round-{round}-{question:05}.question")
}

/// Returns bytes that identify a question, its round and its plan. The hashes in the file of the question also cover
/// these bytes.
pub fn question_bound_to(plan: &PlanId, round: u32, question: u32) -> Vec<u8> {
    [b"question", plan.as_str().as_bytes(), &round.to_le_bytes(), &question.to_le_bytes()].concat()
}

impl Folder {
    /// Opens the further rounds of a plan, in order.
    ///
    /// # Errors
    /// If a round is damaged or cannot be read.
    pub fn rounds<O: Clone>(&self, plan: &Plan<O>) -> Result<Vec<OpenRound<O>>, PartsError> {
        let mut rounds = Vec::new();
        for number in 1..=MOST_ROUNDS {
            let path = self.path().join(name(number));
            let json = match read_bounded(&path, MOST_PLAN_BYTES) {
                Err(PartsError::Unreadable { cause, .. }) if is_missing(&cause) => break,
                read => read?,
            };
            let damaged = |what: &str| PartsError::Damaged { path: path.clone(), what: what.to_owned() };
            let round: Round = serde_json::from_slice(&json).map_err(|error| damaged(&error.to_string()))?;
            if (round.v, &round.plan, round.round) != (VERSION, &plan.plan, number) {
                return Err(damaged("it is a round of another plan"));
            }
            let tasks = (0..).zip(&round.tasks).map(|(id, task)| {
                let of = plan.area(task.of).filter(|_| task.question < round.questions)?;
                Some(Task { id, ..of.clone() })
            });
            let tasks = tasks.collect::<Option<Vec<_>>>().ok_or_else(|| damaged("a task is not one of the plan"))?;
            let digest = digest(self.key(), &[&self.digest()[..], &json].concat());
            rounds.push(OpenRound {
                folder: self.with_digest(digest),
                plan: Plan { tasks, rest: Vec::new(), round: number, ..plan.clone() },
                round,
            });
        }
        Ok(rounds)
    }

    /// The round with the tasks that must be run now: the first round with missing parts or, if no parts are missing,
    /// the newest round. `None` if the tasks of the plan itself must be run.
    ///
    /// # Errors
    ///
    /// If a file is not a part of this plan.
    pub fn current<'r, O>(
        &self,
        plan: &Plan<O>,
        rounds: &'r [OpenRound<O>],
    ) -> Result<Option<&'r OpenRound<O>>, PartsError> {
        let Some((newest, earlier)) = rounds.split_last() else { return Ok(None) };
        if !self.status(plan)?.missing.is_empty() {
            return Ok(None);
        }
        for open in earlier {
            if !open.folder.status(&open.plan)?.missing.is_empty() {
                return Ok(Some(open));
            }
        }
        Ok(Some(newest))
    }

    /// Writes a question of a round.
    ///
    /// # Errors
    /// If the question cannot be written.
    pub fn add_question(&self, round: u32, question: u32, bytes: &[u8]) -> Result<(), PartsError> {
        let path = self.path().join(question_name(round, question));
        write_whole(&path, 0o666, |to| to.write_all(bytes)).map_err(PartsError::unwritable(&path))
    }

    /// Writes the next round of a plan. Its questions must already be written.
    ///
    /// # Errors
    /// If the round cannot be written.
    pub fn add_round(&self, round: &Round) -> Result<(), PartsError> {
        let path = self.path().join(name(round.round));
        let mut json = serde_json::to_vec_pretty(round)
            .map_err(|error| PartsError::Unwritable { path: path.clone(), cause: error.into() })?;
        json.push(b'\n');
        // This file is written last, so that an existing round is complete.
        write_whole(&path, 0o666, |to| to.write_all(&json)).map_err(PartsError::unwritable(&path))
    }

    /// Reads a question of a round. Returns its path and its bytes.
    ///
    /// # Errors
    /// If the question cannot be read.
    pub fn question(&self, round: u32, question: u32) -> Result<(PathBuf, Vec<u8>), PartsError> {
        let path = Path::join(self.path(), question_name(round, question));
        read_bounded(&path, MOST_QUESTION_BYTES).map(|bytes| (path, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::gather::tests::{made, write};

    fn round(plan: &Plan<()>) -> Round {
        let task = |of| RoundTask { question: 0, of };
        Round {
            v: VERSION,
            plan: plan.plan.clone(),
            round: 1,
            why: "index rows".to_owned(),
            bytes: 5,
            questions: 1,
            tasks: vec![task(0), task(2)],
        }
    }

    #[test]
    fn the_parts_of_a_round_are_its_own_and_those_of_the_plan_stay_what_they_are() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        assert!(folder.rounds(&plan).unwrap().is_empty());
        folder.add_question(1, 0, b"what?").unwrap();
        folder.add_round(&round(&plan)).unwrap();
        assert_eq!(folder.question(1, 0).unwrap().1, b"what?");
        let rounds = folder.rounds(&plan).unwrap();
        let [open] = &rounds[..] else { panic!("{} rounds", rounds.len()) };
        assert_eq!(open.plan.tasks.iter().map(|task| (task.id, task.first)).collect::<Vec<_>>(), [(0, 0), (1, 256)]);
        assert_eq!(open.folder.status(&open.plan).unwrap().missing, [0, 1]);
        for task in &open.plan.tasks {
            write(&open.folder, &open.plan, task, "an answer");
        }
        assert_eq!(open.folder.gather(&open.plan).unwrap().parts.len(), 2);
        assert_eq!(folder.gather(&plan).unwrap().parts.len(), 3);
        // A different round with this number does not accept the parts of the earlier round.
        folder.add_round(&Round { bytes: 6, ..round(&plan) }).unwrap();
        let rounds = folder.rounds(&plan).unwrap();
        let open = rounds.first().unwrap();
        assert!(open.folder.gather(&open.plan).unwrap_err().to_string().contains("is damaged"));
    }

    #[test]
    fn the_first_round_with_missing_parts_is_current_or_else_the_newest() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        let current = || {
            let rounds = folder.rounds(&plan).unwrap();
            folder.current(&plan, &rounds).unwrap().map(|open| open.round.round)
        };
        assert_eq!(current(), None);
        for number in [1, 2] {
            folder.add_round(&Round { round: number, ..round(&plan) }).unwrap();
            assert_eq!(current(), Some(number));
            let rounds = folder.rounds(&plan).unwrap();
            let newest = rounds.last().unwrap();
            for task in &newest.plan.tasks {
                write(&newest.folder, &newest.plan, task, "an answer");
            }
            assert_eq!(current(), Some(number));
        }
        fs::remove_file(temporary.path().join("parts/1-00001.part")).unwrap();
        assert_eq!(current(), Some(1));
        fs::remove_file(temporary.path().join("parts/0-00002.part")).unwrap();
        assert_eq!(current(), None);
        write(&folder, &plan, &plan.tasks[2], "sums");
        assert_eq!(current(), Some(1));
    }

    #[test]
    fn a_round_of_another_plan_or_with_tasks_that_are_none_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        let good = round(&plan);
        for wrong in [
            Round { plan: PlanId::new().unwrap(), ..good.clone() },
            Round { tasks: vec![RoundTask { question: 0, of: 3 }], ..good.clone() },
            Round { tasks: vec![RoundTask { question: 1, of: 0 }], ..good.clone() },
        ] {
            folder.add_round(&wrong).unwrap();
            let text = folder.rounds(&plan).err().unwrap().to_string();
            assert!(text.contains("round-1.json: is damaged"), "{text}");
        }
        folder.add_round(&good).unwrap();
        let path = temporary.path().join("round-1.json");
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() - 1 {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(folder.rounds(&plan).is_err(), "{length} bytes");
        }
    }
}
