//! Rounds: a second look that is too large for one process is divided into tasks, each with its own range. The results of the
//! tasks answer a question: the merge asks it, and once all tasks have answered, goes on as if it had looked by itself.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use format::page::PAGE_BYTES;

use crate::hash::{FactHash, HashKey};
use crate::ranges::FileRange;
use crate::spill::TempStore;
use crate::taken::Taken;
use crate::tallies::Tallies;
use crate::units::UnitIndex;
use crate::wire::{Input, Output, SumsError, Wire, wire};

/// Questions of a round at most.
const MOST_QUESTIONS: usize = 256;
/// A round with this number of tasks takes no further question.
const MOST_TASKS: usize = 100_000;

/// What tasks are to look for.
#[derive(Debug)]
pub struct Question {
    pub(crate) of: Of,
    /// The units of pages in shared extents, as the first round found them.
    taken: Arc<Taken>,
    /// The units of which it found bad pages.
    bad_units: Arc<BTreeSet<UnitIndex>>,
}

/// What a question is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// The sums of the rows of an index and of its table, by cells.
    Cells { plan: usize },
    /// The rows in the cells that differ, a bit for each cell.
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
    /// What it is about, in a word.
    pub fn why(&self) -> &'static str {
        match self.of {
            Of::Cells { .. } | Of::Rows { .. } => "index rows",
        }
    }

    /// Writes the round. Only a reader that knows `head` can read it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&self, key: &HashKey, head: &[u8], to: &mut dyn Write) -> Result<(), SumsError> {
        let (hash, space) = (FactHash::of_key(key), TempStore::default());
        let mut to = Output::new(&hash, head, &space, to);
        self.write(&mut to)?;
        to.finish()
    }

    /// Reads what [`Self::put`] wrote.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn take(key: &HashKey, head: &[u8], from: &mut dyn Read) -> Result<Self, SumsError> {
        let (hash, space) = (FactHash::of_key(key), TempStore::default());
        let mut from = Input::new(&hash, head, (&space, 0), from);
        let question = Self::read(&mut from)?;
        from.finish()?;
        Ok(question)
    }

    /// A question, with what the first round has found and its tasks need to know.
    pub(crate) fn new(of: Of, taken: &Arc<Taken>, bad_units: &Arc<BTreeSet<UnitIndex>>) -> Self {
        Self { of, taken: Arc::clone(taken), bad_units: Arc::clone(bad_units) }
    }

    /// The question without what is already known: the reader of its answers knows that.
    #[must_use]
    pub fn without_known(self) -> Self {
        Self { taken: Arc::default(), bad_units: Arc::default(), ..self }
    }

    /// What is known already: pages in shared extents with their units, and the units that have bad pages. Nothing of it
    /// remains here.
    pub(crate) fn take_known(&mut self) -> (Arc<Taken>, Arc<BTreeSet<UnitIndex>>) {
        let taken = Arc::unwrap_or_clone(std::mem::take(&mut self.taken)).sorted();
        (taken.into(), std::mem::take(&mut self.bad_units))
    }
}

/// Opens the answer of a task, again and again.
pub type Open<'p> = Box<dyn Fn() -> Result<Answer, SumsError> + Send + Sync + 'p>;

/// The answer of a task: what it was written with, and its bytes.
pub type Answer = (Vec<u8>, Box<dyn Read>);

/// A question that was asked, and the answers of all its tasks, in the order of their pages.
pub struct Asked<'p> {
    /// The question.
    pub question: Question,
    /// The answers.
    pub answers: Vec<Open<'p>>,
}

/// A question that tasks have to answer.
#[derive(Debug)]
pub struct Wanted {
    /// The question.
    pub question: Question,
    /// The ranges of the parts in which there is something to look at, ascending.
    pub ranges: Vec<FileRange>,
    /// Bytes that the tasks read.
    pub bytes: u64,
}

/// The second looks of a merge that tasks take.
pub struct Rounds<'p> {
    local_limit: u64,
    asked: Vec<Asked<'p>>,
    wanted: Mutex<Vec<Wanted>>,
    error: Mutex<Option<SumsError>>,
}

impl<'p> Rounds<'p> {
    /// With the answers that are there: looks that read more than `local_limit` bytes are for tasks.
    pub fn new(local_limit: u64, asked: Vec<Asked<'p>>) -> Self {
        Self { local_limit, asked, wanted: Mutex::default(), error: Mutex::default() }
    }

    /// The questions that have to be answered before the report is one. If there are any, it is none.
    ///
    /// # Errors
    /// An answer could not be read.
    pub fn end(self) -> Result<Vec<Wanted>, SumsError> {
        match self.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(self.wanted.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Whether a look that reads this many bytes is for tasks.
    pub(crate) fn are_for(&self, bytes: u64) -> bool {
        bytes > self.local_limit
    }

    /// The question that fits, if it was asked.
    pub(crate) fn asked(&self, fits: impl Fn(&Of) -> bool) -> Option<&Asked<'p>> {
        self.asked.iter().find(|asked| fits(&asked.question.of))
    }

    /// Whether the next round has room for a question. One for which it has none comes up again in the next merge.
    pub(crate) fn has_room(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks: usize = wanted.iter().map(|wanted| wanted.ranges.len()).sum();
        wanted.len() < MOST_QUESTIONS && tasks < MOST_TASKS
    }

    /// Asks a question.
    pub(crate) fn ask(&self, wanted: Wanted) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).push(wanted);
    }

    /// An answer could not be read: there will be no report.
    pub(crate) fn fail(&self, error: SumsError) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Bytes of the pages of units that hold rows.
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
