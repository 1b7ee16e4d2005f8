use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::accounting::Metered;
use crate::options::Options;
use crate::progress::Silent;
use crate::spill::Space;
use crate::survey::survey;
use crate::sweep::sweep;
use crate::units::{Shape, Units};
use lab::Version;
use source::MemoryFiles;

/// A check that does nothing but to count the rows that it is given.
#[derive(Default)]
pub(crate) struct CountsRows<const TOGETHER: bool>;

/// How often each row came.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<RecordId, u32>);

impl RowSums for Seen {
    fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(at, times)| *self.0.entry(at).or_default() += times);
    }

    fn facts(&self) -> impl Debug + '_ {
        &self.0
    }
}

impl<const TOGETHER: bool> RowCheck for CountsRows<TOGETHER> {
    type Sums = Seen;
    type Scratch = ();
    type Rest = ();

    fn sums(&self, _units: usize) -> Seen {
        Seen::default()
    }

    fn wants(&self, context: &Context<'_>, unit: UnitIndex) -> bool {
        let shape = context.units.get(unit).map(|unit| unit.shape);
        matches!(shape, Some(Shape::Heap | Shape::Clustered | Shape::Nonclustered))
    }

    fn page(&self, _: &Context<'_>, page: &RowPage<'_>, sums: &mut Seen, (): &mut ()) -> Handled<()> {
        if !TOGETHER {
            return Handled::None;
        }
        for slot in (0..page.rows.count() as u16).filter(|slot| !page.rows.exceptions().contains(slot)) {
            *sums.0.entry(RecordId { page: page.id, slot }).or_default() += 1;
        }
        Handled::All
    }

    fn row(&self, _: &Context<'_>, row: &Row<'_>, (): (), (sums, ()): (&mut Seen, &mut ()), _: &mut Vec<Finding>) {
        *sums.0.entry(row.at).or_default() += 1;
    }

    fn settle(&self, _: &Context<'_>, _: &mut Tallies, _: &mut Seen, _: &mut Results<'_>) {}
}

row_checks! {
    /// The same check twice: rows of a page together, and one by one.
    Two, TwoSums, TwoScratch, TwoHandled {
        together: CountsRows<true>,
        one_by_one: CountsRows<false>,
    }
}

fn written(description: &lab::Description) -> MemoryFiles {
    let folder = tempfile::tempdir().unwrap();
    let paths = lab::write(description, folder.path()).unwrap().files;
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    MemoryFiles::open(paths.into_iter().map(read).collect()).unwrap()
}

#[test]
fn a_check_gets_every_live_row_once_whether_rows_come_together_or_not() {
    let descriptions =
        [lab::shapes::random(4), lab::shapes::random(25), lab::orders::orders(Version::V852, 3, 2 << 20)];
    for (description, row_by_row) in descriptions.iter().flat_map(|of| [(of, false), (of, true)]) {
        let files = written(description);
        let database = catalog::load(&files);
        let options = Options { row_by_row, ..Options::default() };
        let (metered, space) = (Metered::new(&files), Space::new(None));
        let (mut units, mut coverage) = (Units::of(&database), Coverage::default());
        let mut findings = Ledger::new(usize::MAX, &space);
        let survey = survey(&files, &database, &mut units, &mut findings, &mut coverage);
        let context = Context::new(&files, &database, &options, units, survey, &space);
        let mut checks = Two::default().ask(&context);
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
        let mut outcome = Outcome::default();
        let mut to = Results { findings: &mut findings, coverage: &mut coverage, outcome: &mut outcome };
        checks.settle(Stage::Reckon, &context, &mut swept.tallies, &mut swept.sums, &mut to);
        let finding = Finding::new(&crate::registry::PAGE_UNSEEN);
        assert!(checks.proven(&context, &swept.sums, finding, &mut coverage).is_some());
    }
}
