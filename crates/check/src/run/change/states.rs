//! What a run knows about each range of the files: whether its sums come from an earlier run.

use findings::FileRange;
use format::PageId;

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

/// The state of each range of the files.
pub(super) struct States {
    files: Vec<(u16, u32, Vec<State>)>,
    range_pages: u32,
}

impl States {
    pub(super) fn of(context: &Context<'_>, range_pages: u32) -> Self {
        let of_file = |file: &FileMap| {
            (file.file_id, file.pages, vec![State::Unknown; file.pages.div_ceil(range_pages) as usize])
        };
        Self { files: context.survey.files.iter().map(of_file).collect(), range_pages }
    }

    /// The state of a range; `None` if the files are not divided into such ranges.
    pub(super) fn get_mut(&mut self, range: FileRange) -> Option<&mut State> {
        let (_, pages, states) = self.files.iter_mut().find(|(file, ..)| *file == range.file_id)?;
        let is_range = range == range_of(PageId::new(range.file_id, range.first), self.range_pages, *pages);
        states.get_mut((range.first / self.range_pages) as usize).filter(|_| is_range && range.pages > 0)
    }

    pub(super) fn each_mut(&mut self, act: impl Fn(&mut State)) {
        self.files.iter_mut().flat_map(|(.., states)| states).for_each(act);
    }

    /// All ranges, in the order of the files.
    pub(super) fn each(&self) -> impl Iterator<Item = (FileRange, State)> + '_ {
        self.files.iter().flat_map(|(file, pages, states)| {
            let with_first = states.iter().zip((0..).step_by(self.range_pages as usize));
            let range = |first| range_of(PageId::new(*file, first), self.range_pages, *pages);
            with_first.map(move |(state, first)| (range(first), *state))
        })
    }

    /// The ranges whose sums were taken from earlier runs, in the order of the files.
    pub(super) fn kept(&self) -> impl Iterator<Item = FileRange> + '_ {
        self.each().filter(|(_, state)| matches!(state, State::Kept(_))).map(|(range, _)| range)
    }

    /// The ranges of a group that this run sweeps, if the range is one of this group.
    pub(super) fn missing_in(&self, file: u16, first: u32, end: u32) -> impl Iterator<Item = FileRange> + '_ {
        let of_file = self.files.iter().filter(move |(file_id, ..)| *file_id == file);
        of_file.flat_map(move |(file, pages, states)| {
            let (from, to) = (first / self.range_pages, end.min(*pages).div_ceil(self.range_pages));
            let of_group = states.get(from as usize..to as usize).unwrap_or_default();
            let with_first = of_group.iter().zip((first..).step_by(self.range_pages as usize));
            let missing = with_first.filter(|(state, _)| !matches!(state, State::Kept(_)));
            missing.map(move |(_, first)| range_of(PageId::new(*file, first), self.range_pages, *pages))
        })
    }
}
