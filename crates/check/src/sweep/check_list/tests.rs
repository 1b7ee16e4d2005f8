use std::collections::BTreeMap;
use std::path::PathBuf;

use findings::{Coverage, Options};
use format::{PageId, RecordId};
use lab::Version;
use source::MemoryFiles;
use sums::spill::TempStore;

use super::*;
use crate::basis::accounting::Metered;
use crate::basis::ledger::FindingCollector;
use crate::basis::meaning::Meaning;
use crate::basis::outcome::{Outcome, Results};
use crate::basis::progress::Silent;
use crate::basis::units::{Shape, Unit, Units};
use crate::survey::survey;
use crate::sweep::page_check::PageCheck;
use crate::sweep::row_check::{Handled, RowCheck, Stage};
use crate::sweep::sweep;

/// A check that only counts the rows that it receives.
#[derive(Default)]
pub(crate) struct CountsRows<const TOGETHER: bool>;

/// A check that only counts the pages that it receives, batch by batch.
#[derive(Default)]
pub(crate) struct CountsPages;

/// How often each row or page was received.
pub(crate) struct Seen<T>(BTreeMap<T, u32>);

impl<T: Wire + Ord> Wire for Seen<T> {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.0.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Ok(Self(Wire::read(from)?))
    }
}

impl<T: Ord> Merge for Seen<T> {
    fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(at, times)| *self.0.entry(at).or_default() += times);
    }
}

impl<T: Wire + Ord + Send + std::fmt::Debug> CheckSums for Seen<T> {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.0
    }
}

impl<const TOGETHER: bool> RowCheck for CountsRows<TOGETHER> {
    type Sums = Seen<RecordId>;
    type Scratch = ();
    type Rest = ();

    fn sums(&self, _units: usize) -> Seen<RecordId> {
        Seen(BTreeMap::new())
    }

    fn meaning(&self, _: UnitIndex, _: &mut Meaning<'_>) {}

    fn wants(&self, context: &Context<'_>, unit: UnitIndex) -> bool {
        let shape = context.units.get(unit).map(|unit| unit.shape);
        matches!(shape, Some(Shape::Heap | Shape::Clustered | Shape::Nonclustered))
    }

    fn page(&self, _: &Context<'_>, page: &RowPage<'_>, sums: &mut Seen<RecordId>, (): &mut ()) -> Handled<()> {
        if !TOGETHER {
            return Handled::NOTHING;
        }
        let slots = |row: usize| page.rows.slots().map_or(row as u16, |slots| slots[row]);
        let is_plain = |row: &usize| page.rows.are_plain().is_none_or(|are_plain| are_plain[*row]);
        for slot in (0..page.rows.count()).filter(is_plain).map(slots) {
            *sums.0.entry(RecordId { page: page.id, slot }).or_default() += 1;
        }
        Handled::PLAIN
    }

    fn row(
        &self,
        _: &Context<'_>,
        row: &Row<'_>,
        (): (),
        (sums, ()): (&mut Seen<RecordId>, &mut ()),
        _: &mut Vec<Finding>,
    ) {
        *sums.0.entry(row.at).or_default() += 1;
    }

    fn settle(&self, _: &Context<'_>, _: &mut Tallies, _: &mut Seen<RecordId>, _: &mut Results<'_>) {}
}

impl PageCheck for CountsPages {
    type Sums = Seen<PageId>;
    type Scratch = ();

    fn sums(&self, _units: usize) -> Seen<PageId> {
        Seen(BTreeMap::new())
    }

    fn meaning(&self, _: &mut Meaning<'_>) {}

    fn wants(&self, _context: &Context<'_>, unit: &Unit) -> bool {
        unit.shape != Shape::Text
    }

    fn page(
        &self,
        _: &Context<'_>,
        sound: &SoundPage<'_>,
        (sums, ()): (&mut Seen<PageId>, &mut ()),
        _: &mut Vec<Finding>,
    ) {
        assert_eq!(sound.page.header().page_id(), sound.id);
        *sums.0.entry(sound.id).or_default() += 1;
    }

    fn settle(
        &self,
        _: &Context<'_>,
        judged: &[UnitIndex],
        tallies: &mut Tallies,
        sums: &mut Seen<PageId>,
        _: &mut Results<'_>,
    ) {
        let pages: u64 =
            judged.iter().filter_map(|unit| tallies.units.get(*unit as usize)).map(|tally| tally.pages()).sum();
        assert_eq!(sums.0.len() as u64, pages);
    }
}

check_list! {
    /// One check of pages and two instances of a check of rows. The first instance accepts all rows of a page together;
    /// the second accepts only one row at a time.
    Three, ThreeSums, ThreeScratch, ThreeHandled {
        pages {
            pages: CountsPages,
        }
        rows {
            together: CountsRows<true>,
            one_by_one: CountsRows<false>,
        }
    }
}

fn written(description: &lab::Description) -> MemoryFiles {
    let folder = tempfile::tempdir().unwrap();
    let paths = lab::write(description, folder.path()).unwrap().files;
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    MemoryFiles::open(paths.into_iter().map(read).collect()).unwrap()
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_check_gets_every_sound_page_and_every_live_row_once_whether_rows_come_together_or_not() {
    let descriptions =
        [lab::shapes::random(4), lab::shapes::random(25), lab::orders::orders(Version::V852, 3, 2 << 20)];
    for (description, row_by_row) in descriptions.iter().flat_map(|of| [(of, false), (of, true)]) {
        let files = written(description);
        let database = catalog::load(&files);
        let options = Options { row_by_row, ..Options::default() };
        let (metered, space) = (Metered::new(&files), TempStore::new(None, 8 << 20));
        let (mut units, mut coverage) = (Units::of(&database), Coverage::default());
        let mut findings = FindingCollector::new(usize::MAX, &space);
        let survey = survey((&files, None), &database, &mut units, &mut findings, &mut coverage);
        let context = Context::new(&files, &database, &options, units, survey, &space);
        let mut checks = Three::default().ask(&context);
        let mut swept = sweep(&context, &checks, &mut findings, &metered.meter, &Silent);
        let shapes = context.units.list().iter().map(|unit| unit.shape);
        let has_rows = |shape| matches!(shape, Shape::Heap | Shape::Clustered | Shape::Nonclustered);
        let rows = swept.tallies.units.iter().zip(shapes).filter(|(_, shape)| has_rows(*shape));
        let rows: u64 = rows.map(|(tally, _)| tally.rows).sum();
        assert!(rows > 500, "{rows} rows in {}", description.name);
        for seen in [&swept.sums.together.0, &swept.sums.one_by_one.0] {
            assert_eq!(seen.len() as u64, rows, "{}, row by row: {row_by_row}", description.name);
            assert!(seen.values().all(|times| *times == 1));
        }
        assert!(swept.sums.pages.0.values().all(|times| *times == 1));
        let mut outcome = Outcome::default();
        let mut to = Results { findings: &mut findings, coverage: &mut coverage, outcome: &mut outcome };
        let of_rows = (0..).zip(context.units.list()).filter(|(_, unit)| unit.shape != Shape::Text);
        let judged: Vec<UnitIndex> = of_rows.map(|(index, _)| index).collect();
        checks.end_batch(&context, &mut swept, to.findings);
        checks.settle_pages(&context, &judged, &mut swept, &mut to);
        checks.settle(Stage::Reckon, &context, &mut swept, &mut to);
        let finding = Finding::new(&findings::registry::PAGE_UNSEEN);
        assert!(checks.proven(&context, &swept.sums, finding, &mut coverage).is_some());
    }
}
