//! A hand-built B-tree of seven pages in its own file, next to a tree of another table. Its keys are ints.
//!
//! ```text
//! level 2               16                24
//! level 1        17          18          /  \
//! level 0     19    20    21    22     25    26
//! first key   10    20    30    40     10    20
//! ```

use std::collections::{BTreeMap, BTreeSet};

use catalog::{AllocUnit, Database, RowLayout, Rowset, RowsetColumn, UnitKind};
use findings::registry::limits;
use findings::{Coverage, Finding, Options, Value};
use format::collation::CollationId;
use format::types::{TypeInfo, xtype};
use format::{AllocUnitId, PageBytes, PageId, PageType};
use sums::spill::TempStore;

use crate::basis::accounting::Metered;
use crate::basis::ledger::FindingCollector;
use crate::basis::outcome::{Outcome, Results};
use crate::basis::progress::Silent;
use crate::basis::units::{Shape, Units};
use crate::checks::Checks;
use crate::run::reckon::reckon;
use crate::survey::survey;
use crate::sweep::context::Context;
use crate::sweep::sweep;
use crate::test_file::{CLAIMED, FILE, FREE, IAM, Maps, TestFile};
use crate::test_pages::{TestPage, UNIT, row};

/// The allocation unit of the other tree.
pub(crate) const OTHER: AllocUnitId = AllocUnitId(UNIT.0 + (1 << 16));
/// The object ID of the tree.
const OBJECT: i32 = 100;
/// The object ID of the other tree.
pub(crate) const OTHER_OBJECT: i32 = 200;
/// The collation of the columns, which sorts texts by their bytes.
const BIN2: u32 = 0x800;
/// The only page that is not in use in the extent of the tree.
pub(crate) const FREE_PAGE: u32 = 23;

/// The address of a page of the file.
pub(crate) fn id(page: u32) -> PageId {
    PageId::new(FILE, page)
}

/// A page of a tree.
#[derive(Clone)]
pub(crate) struct TreePage {
    pub(crate) unit: AllocUnitId,
    pub(crate) kind: PageType,
    pub(crate) level: u8,
    pub(crate) prev: PageId,
    pub(crate) next: PageId,
    /// Whether the records are entries with children rather than rows.
    pub(crate) is_node: bool,
    /// The key of each record, and a page address that follows the key. In a non-leaf page, this is the address of the
    /// child. In a row of a nonclustered index, the address only fills the bytes after the key.
    pub(crate) entries: Vec<(u32, PageId)>,
    /// Whether the page is changed after its checksum is computed.
    pub(crate) is_damaged: bool,
}

/// The pages of both trees, and the catalog's description of the first tree. Tests can change all of this.
pub(crate) struct TestTree {
    pub(crate) shape: Shape,
    /// Number of bytes after the key in rows of a nonclustered index.
    pub(crate) locator_bytes: u16,
    /// The type of the keys, which must have four bytes.
    pub(crate) key_type: u8,
    pub(crate) is_compressed: bool,
    pub(crate) root: PageId,
    pub(crate) pages: BTreeMap<u32, TreePage>,
    pub(crate) maps: Maps,
    /// Pages that cannot be read.
    pub(crate) unread: BTreeSet<u32>,
    /// Pages that become damaged after the sweep has read them.
    pub(crate) rotting: BTreeSet<u32>,
}

/// The findings of a run about the tree, in the format of [`described`], and the IDs of all limits. Limits about
/// columns are omitted, because these tests do not check columns.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) findings: Vec<String>,
    pub(crate) limits: Vec<&'static str>,
}

impl TestTree {
    /// A sound clustered index.
    pub(crate) fn clustered() -> Self {
        Self::of(Shape::Clustered)
    }

    /// A sound nonclustered index whose keys are unique.
    pub(crate) fn nonclustered() -> Self {
        Self::of(Shape::Nonclustered)
    }

    fn of(shape: Shape) -> Self {
        let mut pages = BTreeMap::new();
        let mut add = |unit, page, level, [prev, next]: [u32; 2], entries: &[(u32, u32)]| {
            let leaf = if shape == Shape::Clustered || unit == OTHER { PageType::Data } else { PageType::Index };
            let page_or_none = |page| if page == 0 { PageId::NONE } else { id(page) };
            let entries = entries.iter().map(|(key, child)| (*key, page_or_none(*child))).collect();
            let (prev, next) = (page_or_none(prev), page_or_none(next));
            let kind = if level == 0 { leaf } else { PageType::Index };
            let (is_node, is_damaged) = (level > 0, false);
            pages.insert(page, TreePage { unit, kind, level, prev, next, is_node, entries, is_damaged });
        };
        add(UNIT, 16, 2, [0, 0], &[(0, 17), (30, 18)]);
        add(UNIT, 17, 1, [0, 18], &[(0, 19), (20, 20)]);
        add(UNIT, 18, 1, [17, 0], &[(30, 21), (40, 22)]);
        add(UNIT, 19, 0, [0, 20], &[(10, 0), (15, 0)]);
        add(UNIT, 20, 0, [19, 21], &[(20, 0), (25, 0)]);
        add(UNIT, 21, 0, [20, 22], &[(30, 0), (35, 0)]);
        add(UNIT, 22, 0, [21, 0], &[(40, 0), (45, 0)]);
        add(OTHER, 24, 1, [0, 0], &[(0, 25), (20, 26)]);
        add(OTHER, 25, 0, [0, 26], &[(10, 0), (15, 0)]);
        add(OTHER, 26, 0, [25, 0], &[(20, 0), (25, 0)]);
        let mut maps = Maps { gam_free: vec![], ..Maps::sound() };
        maps.iam.insert(IAM + 1, (OTHER, vec![FREE], None));
        maps.pfs[IAM as usize + 1] = 0x70;
        (24..27).for_each(|page| maps.pfs[page] = 0x40);
        maps.pfs[FREE_PAGE as usize] = 0;
        assert_eq!(maps.iam[&IAM].1, [CLAIMED]);
        let (root, unread, rotting) = (id(16), BTreeSet::new(), BTreeSet::new());
        Self { shape, locator_bytes: 4, key_type: xtype::INT, is_compressed: false, root, pages, maps, unread, rotting }
    }

    /// Applies a change to one page of the tree.
    pub(crate) fn with(mut self, page: u32, change: impl FnOnce(&mut TreePage)) -> Self {
        change(self.pages.get_mut(&page).unwrap());
        self
    }

    /// Damages these pages of the tree.
    pub(crate) fn damaged(self, pages: &[u32]) -> Self {
        pages.iter().fold(self, |tree, page| tree.with(*page, |page| page.is_damaged = true))
    }

    /// Makes a page of the tree become damaged after the sweep has read it.
    pub(crate) fn rotting(mut self, page: u32) -> Self {
        self.rotting.insert(page);
        self
    }

    /// Sets the root page of the tree in the catalog.
    pub(crate) fn root(self, root: PageId) -> Self {
        Self { root, ..self }
    }

    fn bytes(&self, number: u32, page: &TreePage) -> Box<PageBytes> {
        let is_index_row = self.shape == Shape::Nonclustered && page.unit == UNIT;
        let pminlen = match page.is_node {
            true => 11,
            false if is_index_row => 5 + self.locator_bytes,
            false => 8,
        };
        let empty = TestPage::new(page.kind).of(page.unit).at(id(number)).level(page.level).set16(14, pminlen);
        let built = page.entries.iter().fold(empty.between(page.prev, page.next), |built, (key, child)| {
            // An index record without null bitmap consists of status bits, key and child.
            let child = [&child.page.to_le_bytes()[..], &child.file.to_le_bytes()].concat();
            let mut record = [&[6][..], &key.to_le_bytes(), &child].concat();
            record.truncate(pminlen.into());
            built.record(&if page.is_node || is_index_row { record } else { row(*key, b"text") })
        });
        let mut bytes = built.finish();
        bytes[5000] ^= u8::from(page.is_damaged);
        bytes
    }

    fn file(&self) -> TestFile {
        let mut file = self.maps.file();
        file.pages.extend(self.pages.iter().map(|(number, page)| (*number, self.bytes(*number, page))));
        file.unread.extend(&self.unread);
        file.rotting.extend(&self.rotting);
        file
    }

    fn database(&self) -> Database {
        let mut database = Database::default();
        for (at, (id, shape, root, first_iam)) in
            [(UNIT, self.shape, self.root, IAM), (OTHER, Shape::Clustered, PageId::new(FILE, 24), IAM + 1)]
                .into_iter()
                .enumerate()
        {
            let is_clustered = shape == Shape::Clustered;
            let column = |id, info: TypeInfo, leaf_offset, node_offset| RowsetColumn {
                id,
                physical: id,
                info,
                collation: CollationId(BIN2),
                status: 0,
                key_ordinal: u16::from(id == 1),
                leaf_offset,
                node_offset,
                leaf_null_bit: if is_clustered { id as u16 } else { 0 },
                node_null_bit: 0,
                default: None,
                leaf_bit: 0,
                node_bit: 0,
            };
            let number = TypeInfo { length: 4, ..TypeInfo::from_ti(self.key_type.into()) };
            let key = column(1, number, if is_clustered { 4 } else { 1 }, 1);
            let binary = TypeInfo { length: self.locator_bytes, ..TypeInfo::from_ti(xtype::BINARY.into()) };
            let locator = (!is_clustered).then(|| column(2, binary, 5, 0));
            database.rowsets.push(Rowset {
                id: id.0,
                object_id: if id == UNIT { OBJECT } else { OTHER_OBJECT },
                index_id: if is_clustered { 1 } else { 2 },
                partition: 1,
                owner_type: 1,
                compression: u8::from(self.is_compressed && id == UNIT),
                units: vec![at],
                layout: RowLayout { columns: [key].into_iter().chain(locator).collect() },
                ..Rowset::default()
            });
            database.units.push(AllocUnit {
                id,
                kind: UnitKind::InRow,
                owner_id: id.0,
                rowset: Some(at),
                filegroup: 1,
                first_page: PageId::NONE,
                root,
                first_iam: PageId::new(FILE, first_iam),
                used_pages: 0,
                data_pages: 0,
                reserved_pages: 0,
            });
        }
        database
    }

    /// Calls `look` with the context of a run after its survey, and with the collections for its results. The tree is
    /// unit 0.
    pub(crate) fn surveyed(&self, look: impl FnOnce(&mut Context<'_>, &mut Results<'_>)) -> (Vec<Finding>, Coverage) {
        let (file, database, space) = (self.file(), self.database(), TempStore::new(None, 8 << 20));
        let options = Options { max_threads: 1, ..Options::default() };
        let (mut units, mut coverage) = (Units::of(&database), Coverage::default());
        let (mut findings, mut outcome) = (FindingCollector::new(1 << 20, &space), Outcome::default());
        let survey = survey((&file, None), &database, &mut units, &mut findings, &mut coverage);
        let mut context = Context::new(&file, &database, &options, units, survey, &space);
        let mut to = Results { findings: &mut findings, coverage: &mut coverage, outcome: &mut outcome };
        look(&mut context, &mut to);
        (findings.into_sorted().collect(), coverage)
    }

    /// Runs the survey, the sweep and the comparison, with only the checks of pages. After the survey, `between` may
    /// change the context.
    pub(crate) fn checked(&self, between: impl FnOnce(&mut Context<'_>)) -> Found {
        let (findings, coverage) = self.surveyed(|context, to| {
            between(context);
            let mut checks = Checks::default().ask(context);
            let metered = Metered::new(context.source);
            let mut swept = sweep(context, &checks, to.findings, &metered.meter, &Silent);
            checks.end_batch(context, &mut swept, to.findings);
            context.learn(&mut swept.tallies);
            reckon(context, &mut checks, &mut swept, to, &Silent);
        });
        let (not_verified, _) = coverage.into_lists();
        let columns_unknown = limits::COLUMNS_UNKNOWN.id;
        Found {
            findings: findings.iter().filter(|finding| finding.object_id() == Some(OBJECT)).map(described).collect(),
            limits: not_verified.iter().map(|entry| entry.limit.id).filter(|id| *id != columns_unknown).collect(),
        }
    }
}

fn place(page: PageId, slot: Option<u16>) -> String {
    let page = if page.file == FILE { page.page.to_string() } else { page.to_string() };
    slot.map_or(page.clone(), |slot| format!("{page}.{slot}"))
}

/// Formats a finding as `message page.slot < reference page.slot, name value`. Pages of the test file appear only with
/// their number.
pub(crate) fn described(finding: &Finding) -> String {
    let mut text = format!("{} {}", finding.check.msg, place(finding.page.unwrap_or_default(), finding.slot));
    if let Some(page) = finding.ref_page {
        text += &format!(" < {}", place(page, finding.ref_slot));
    }
    for (name, value) in &finding.evidence {
        let value = match value {
            Value::Number(number) => number.to_string(),
            Value::Page(page) => place(*page, None),
            Value::Owner(owner) => owner.object_id.to_string(),
            Value::Text(text) => text.clone(),
        };
        text += &format!(", {name} {value}");
    }
    text
}
