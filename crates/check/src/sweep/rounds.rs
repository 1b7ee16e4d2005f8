//! Rounds of a check that is divided among several processes. If sums differ, the pages must be read a second time,
//! which may be too much for one process. So the merge asks a question, and several tasks answer it, each for its own
//! page range. Once all answers exist, another merge uses the answers and need not read the pages itself.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use findings::FileRange;
use format::page::PAGE_BYTES;
use sums::HashKey;
use sums::hash::FactHash;
use sums::spill::TempStore;
use sums::wire::{Input, Output, SumsError, Wire, wire};

use crate::basis::taken::Taken;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;

/// The maximum number of questions in a round.
const MOST_QUESTIONS: usize = 256;
/// The number of tasks at which a round stops accepting questions.
const MOST_TASKS: usize = 100_000;

/// A question for the tasks of a round. It says what the tasks must look for.
#[derive(Debug)]
pub struct Question {
    pub(crate) of: Of,
    /// Pages in extents that several units claim, with the unit of each page as the first round determined it.
    taken: Arc<Taken>,
    /// The units in which the first round found bad pages.
    bad_units: Arc<BTreeSet<UnitIndex>>,
}

/// The subject of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// Asks for sums over the rows of an index and of its table. Rows are assigned to cells by their hash, and each
    /// cell has one sum.
    Cells { plan: usize },
    /// Asks for the rows in the cells whose sums differ. `differing` has one bit per cell.
    Rows { plan: usize, differing: Box<[u8]> },
}

impl Wire for Of {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        match self {
            Self::Cells { plan } => (0u8, *plan as u32).write(to),
            Self::Rows { plan, differing } => ((1u8, *plan as u32), differing.clone()).write(to),
        }
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (kind, plan): (u8, u32) = Wire::read(from)?;
        let plan = plan as usize;
        match kind {
            0 => Ok(Self::Cells { plan }),
            1 => Ok(Self::Rows { plan, differing: Wire::read(from)? }),
            _ => Err(from.damaged("a question")),
        }
    }
}

wire!(Question { of, taken, bad_units });

impl Question {
    /// The subject of the question, in one or two words.
    pub fn why(&self) -> &'static str {
        match self.of {
            Of::Cells { .. } | Of::Rows { .. } => "index rows",
        }
    }

    /// Writes the question. The hashes in the output depend on `head`, so [`Self::take`] needs the same `head`.
    ///
    /// # Errors
    ///
    /// If the question cannot be written.
    pub fn put(&self, key: &HashKey, head: &[u8], to: &mut dyn Write) -> Result<(), SumsError> {
        let (hash, space) = (FactHash::of_key(key), TempStore::default());
        let mut to = Output::new(&hash, head, &space, to);
        self.write(&mut to)?;
        to.finish()
    }

    /// Reads the output of [`Self::put`].
    ///
    /// # Errors
    ///
    /// If the input is not the output of [`Self::put`] for the same `key` and `head`.
    pub fn take(key: &HashKey, head: &[u8], from: &mut dyn Read) -> Result<Self, SumsError> {
        let (hash, space) = (FactHash::of_key(key), TempStore::default());
        let mut from = Input::new(&hash, head, (&space, 0), from);
        let question = Self::read(&mut from)?;
        from.finish()?;
        Ok(question)
    }

    /// A question, together with the facts of the first round that its tasks need.
    pub(crate) fn new(of: Of, taken: &Arc<Taken>, bad_units: &Arc<BTreeSet<UnitIndex>>) -> Self {
        Self { of, taken: Arc::clone(taken), bad_units: Arc::clone(bad_units) }
    }

    /// Returns the question without the facts of the first round. The process that reads the answers already has these
    /// facts.
    #[must_use]
    pub fn without_known(self) -> Self {
        Self { taken: Arc::default(), bad_units: Arc::default(), ..self }
    }

    /// Moves the facts of the first round out of the question: pages in shared extents with their units, and the units
    /// that have bad pages.
    pub(crate) fn take_known(&mut self) -> (Arc<Taken>, Arc<BTreeSet<UnitIndex>>) {
        let taken = Arc::unwrap_or_clone(std::mem::take(&mut self.taken)).sorted();
        (taken.into(), std::mem::take(&mut self.bad_units))
    }
}

/// A function that opens the answer of a task; it can be called several times.
pub type Open<'p> = Box<dyn Fn() -> Result<Answer, SumsError> + Send + Sync + 'p>;

/// The answer of a task: the head, on which the hashes in the answer depend, and the bytes of the answer.
pub type Answer = (Vec<u8>, Box<dyn Read>);

/// A question with the answers of all its tasks, in page order.
pub struct Asked<'p> {
    /// The question.
    pub question: Question,
    /// The answers.
    pub answers: Vec<Open<'p>>,
}

/// A question that tasks must answer.
#[derive(Debug)]
pub struct Wanted {
    /// The question.
    pub question: Question,
    /// The page ranges for which the question must be answered, in ascending order. There is one task per range.
    pub ranges: Vec<FileRange>,
    /// Number of bytes that the tasks must read.
    pub bytes: u64,
}

/// The questions that a merge leaves to tasks, because the answers take a second read of many pages, and the answers
/// from earlier rounds.
pub struct Rounds<'p> {
    local_limit: u64,
    asked: Vec<Asked<'p>>,
    wanted: Mutex<Vec<Wanted>>,
    error: Mutex<Option<SumsError>>,
}

impl<'p> Rounds<'p> {
    /// Creates the rounds of a merge. `asked` contains the questions that tasks have already answered. A second look is
    /// left to tasks if it would read more than `local_limit` bytes.
    pub fn new(local_limit: u64, asked: Vec<Asked<'p>>) -> Self {
        Self { local_limit, asked, wanted: Mutex::default(), error: Mutex::default() }
    }

    /// The questions that tasks must still answer. If there are any, the report is incomplete and must not be used.
    ///
    /// # Errors
    ///
    /// If an answer could not be read.
    pub fn end(self) -> Result<Vec<Wanted>, SumsError> {
        match self.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(self.wanted.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Whether a second look that reads this many bytes is left to tasks.
    pub(crate) fn are_for(&self, bytes: u64) -> bool {
        bytes > self.local_limit
    }

    /// The question of an earlier round for which `fits` returns true, with its answers; `None` if no such question was
    /// asked.
    pub(crate) fn asked(&self, fits: impl Fn(&Of) -> bool) -> Option<&Asked<'p>> {
        self.asked.iter().find(|asked| fits(&asked.question.of))
    }

    /// Whether the next round can accept another question. If not, the next merge asks the question again.
    pub(crate) fn has_room(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks: usize = wanted.iter().map(|wanted| wanted.ranges.len()).sum();
        wanted.len() < MOST_QUESTIONS && tasks < MOST_TASKS
    }

    /// Adds a question for the tasks of the next round.
    pub(crate) fn ask(&self, wanted: Wanted) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).push(wanted);
    }

    /// Records that an answer could not be read: there will be no report.
    pub(crate) fn fail(&self, error: SumsError) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// The total size, in bytes, of the data and index pages of these units.
pub(crate) fn bytes_of<'u>(swept: &Tallies, units: impl Iterator<Item = &'u UnitIndex>) -> u64 {
    let tallies = units.filter_map(|unit| swept.units.get(*unit as usize));
    tallies.map(|tally| (tally.data_pages + tally.index_pages) * PAGE_BYTES as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_a_bounded_number_of_questions_and_tasks() {
        for (ranges, questions) in [(0, MOST_QUESTIONS), (1, MOST_QUESTIONS), (60_000, 2), (MOST_TASKS, 1)] {
            let rounds = Rounds::new(0, Vec::new());
            let range = FileRange { file_id: 1, first: 0, pages: 8 };
            let mut plan = 0;
            while rounds.has_room() {
                let of = Of::Cells { plan };
                let question = Question { of, taken: Arc::default(), bad_units: Arc::default() };
                rounds.ask(Wanted { question, ranges: vec![range; ranges], bytes: 1 });
                plan += 1;
            }
            assert_eq!(rounds.end().unwrap().len(), questions, "{ranges} ranges each");
        }
    }
}
