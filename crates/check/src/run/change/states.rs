//! What a run knows about each range of the files: whether its sums come from an earlier run.

use findings::FileRange;
use format::PageId;

use sums::spill::Paged;

use super::Reason;
use crate::survey::FileMap;
use crate::sweep::context::Context;
use crate::sweep::keeping::range_of;

/// Whether the sums of a range are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The ledger has no part for the range.
    Unknown,
    /// The ledger has parts, but none with the present inputs. The reason is that of the latest run.
    Other(Reason),
    /// The sums come from this run, counted backwards.
    Kept(u16),
    /// The sums come from this run, and have been added up.
    Merged(u16),
    /// This run has swept the range.
    Swept,
}

impl State {
    /// Whether the sums are not known.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Unknown | Self::Other(_))
    }

    /// Whether sums of an earlier run may be used, if their inputs are the same.
    pub(super) fn may_be_kept(self) -> bool {
        self.is_open() && !matches!(self, Self::Other(Reason::Findings | Reason::Again))
    }

    /// Why a range in this state is swept.
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::Unknown => Reason::NotKept,
            Self::Other(reason) => reason,
            Self::Kept(_) | Self::Merged(_) | Self::Swept => Reason::Again,
        }
    }

    /// Notes why a part was not used. The reason is that of the latest run, unless a reason is found that forbids the parts of
    /// earlier runs too.
    pub(super) fn is_other(&mut self, reason: Reason) {
        let is_final = matches!(reason, Reason::Findings | Reason::Again);
        if *self == Self::Unknown || self.may_be_kept() && is_final {
            *self = Self::Other(reason);
        }
    }
}

impl State {
    /// The number as which a state is stored.
    fn number(self) -> u16 {
        match self {
            Self::Unknown => 0,
            Self::Swept => 1,
            Self::Other(reason) => 2 + reason as u16,
            Self::Kept(run) => FIRST_KEPT + 2 * run.min(MOST_RUNS),
            Self::Merged(run) => FIRST_KEPT + 2 * run.min(MOST_RUNS) + 1,
        }
    }

    fn of_number(number: u16) -> Self {
        match number.checked_sub(FIRST_KEPT) {
            Some(kept) if kept % 2 == 0 => Self::Kept(kept / 2),
            Some(merged) => Self::Merged(merged / 2),
            None if number == 1 => Self::Swept,
            None => {
                let reason = number.checked_sub(2).and_then(|reason| Reason::ALL.get(usize::from(reason)));
                reason.map_or(Self::Unknown, |reason| Self::Other(*reason))
            }
        }
    }
}

/// The number of the state `Kept(0)`: above those of all other states.
const FIRST_KEPT: u16 = 16;
/// The most runs from which sums are used. A ledger is written anew long before it has as many.
pub(super) const MOST_RUNS: u16 = (u16::MAX - FIRST_KEPT) / 2 - 1;

/// The state of each range of the files. The states need two bytes per range, in memory or, like the maps of the files,
/// in a temporary file.
pub(super) struct States {
    files: Vec<(u16, u32, Paged<u16>)>,
    range_pages: u32,
}

impl States {
    pub(super) fn of(context: &Context<'_>, range_pages: u32) -> Self {
        let of_file = |file: &FileMap| {
            (file.file_id, file.pages, Paged::new(file.pages.div_ceil(range_pages) as usize, file.shelf()))
        };
        Self { files: context.survey.files.iter().map(of_file).collect(), range_pages }
    }

    /// The position of a range; `None` if the files are not divided into such ranges.
    fn place(&self, range: FileRange) -> Option<(usize, usize)> {
        let at = self.files.iter().position(|(file, ..)| *file == range.file_id)?;
        let (_, pages, _) = self.files.get(at)?;
        let is_range = range == range_of(PageId::new(range.file_id, range.first), self.range_pages, *pages);
        (is_range && range.pages > 0).then_some((at, (range.first / self.range_pages) as usize))
    }

    /// The state of a range; `None` if the files are not divided into such ranges.
    pub(super) fn get(&self, range: FileRange) -> Option<State> {
        let (file, at) = self.place(range)?;
        let (.., states) = self.files.get(file)?;
        states.get(at).map(State::of_number)
    }

    /// Sets the state of a range, if the files are divided into such ranges.
    pub(super) fn set(&mut self, range: FileRange, state: State) {
        let Some((file, at)) = self.place(range) else { return };
        if let Some((.., states)) = self.files.get_mut(file) {
            states.edit([at], |_, _| state.number());
        }
    }

    pub(super) fn each_mut(&mut self, act: impl Fn(&mut State)) {
        for (.., states) in &mut self.files {
            states.edit(0..states.len(), |_, number| {
                let mut state = State::of_number(number);
                act(&mut state);
                state.number()
            });
        }
    }

    /// All ranges, in the order of the files.
    pub(super) fn each(&self) -> impl Iterator<Item = (FileRange, State)> + '_ {
        self.files.iter().flat_map(|(file, pages, states)| {
            let with_first = states.values(0..states.len()).zip((0..).step_by(self.range_pages as usize));
            let range = |first| range_of(PageId::new(*file, first), self.range_pages, *pages);
            with_first.map(move |(state, first)| (range(first), State::of_number(state)))
        })
    }

    /// The ranges whose sums were taken from earlier runs, in the order of the files.
    pub(super) fn kept(&self) -> impl Iterator<Item = FileRange> + '_ {
        self.each().filter(|(_, state)| matches!(state, State::Kept(_))).map(|(range, _)| range)
    }

    /// The ranges of some pages of a file. The first page is that of a range.
    pub(super) fn within(&self, file: u16, first: u32, end: u32) -> impl Iterator<Item = (FileRange, State)> + '_ {
        let of_file = self.files.iter().filter(move |(file_id, ..)| *file_id == file);
        of_file.flat_map(move |(file, pages, states)| {
            let (from, to) = (first / self.range_pages, end.min(*pages).div_ceil(self.range_pages));
            let with_first =
                states.values(from as usize..to as usize).zip((first..).step_by(self.range_pages as usize));
            let range = |first| range_of(PageId::new(*file, first), self.range_pages, *pages);
            with_first.map(move |(state, first)| (range(first), State::of_number(state)))
        })
    }

    /// The ranges of a group that this run sweeps.
    pub(super) fn missing_in(&self, file: u16, first: u32, end: u32) -> impl Iterator<Item = FileRange> + '_ {
        let of_group = self.within(file, first, end);
        of_group.filter(|(_, state)| !matches!(state, State::Kept(_))).map(|(range, _)| range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_comes_back_from_its_number() {
        let others = Reason::ALL.map(State::Other);
        let runs = [0, 1, 255, MOST_RUNS];
        let all = [State::Unknown, State::Swept].into_iter().chain(others);
        let mut numbers = std::collections::BTreeSet::new();
        for state in all.chain(runs.map(State::Kept)).chain(runs.map(State::Merged)) {
            assert_eq!(State::of_number(state.number()), state);
            assert!(numbers.insert(state.number()), "{state:?}");
        }
    }
}
