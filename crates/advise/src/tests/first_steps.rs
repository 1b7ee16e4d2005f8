//! The first step that a DBA must take for the findings of each check, alone: written by hand, with the place where the
//! check usually finds damage, for a database with all its backups and for one without backups.

use std::collections::{BTreeMap, BTreeSet};

use Action::{Export, Inspect, RebuildIndex, RebuildTable, RestoreDatabase, RestorePages, UpdateRows, UpdateUsage};
use Place::{
    Backup, Clustered, Description, ForeignMap, FreeExtent, Header, Heap, Index, IndexMap, Map, Nameless, Nowhere,
    OffRow, OwnMap, System, Unnamed,
};
use catalog::UnitKind;
use format::boot::status;
use format::page::PageType;
use format::{Lsn, Page};
use lab::backup::{BackupOptions, Set, backup};
use source::PageSource;

use super::*;
use crate::backups::Backups;
use crate::plan;

/// The place of a finding: its owner, and the pages that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Two pages of a clustered index.
    Clustered,
    /// Two pages of a heap.
    Heap,
    /// Two pages with off-row values of a clustered index.
    OffRow,
    /// Two pages of a nonclustered index.
    Index,
    /// An IAM page of a heap.
    OwnMap,
    /// An IAM page of a nonclustered index.
    IndexMap,
    /// A page of a clustered index, and an IAM page of a heap that claims the page.
    ForeignMap,
    /// A page of a table, without an owner.
    Nameless,
    /// Two pages of a system table that is needed to find other tables.
    System,
    /// A table, without a page.
    Description,
    /// The header of the first file.
    Header,
    /// The first GAM page.
    Map,
    /// An extent that no map names.
    FreeExtent,
    /// No page, and an IAM page that no page names.
    Unnamed,
    /// The file of a backup.
    Backup,
    /// No page and no owner.
    Nowhere,
}

/// A check, a place, and the first step with all backups and without any backup.
type Row = (&'static str, Place, Action, Action);

/// Without a backup, the first step for lost data is always to look for one: a restore brings back what a repair deletes.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Pages at fixed addresses cannot be restored alone, and no repair exists for them.
    ("allocation.fixed-page-invalid", Header, RestoreDatabase, Inspect),
    ("allocation.map-page-invalid", Map, RestoreDatabase, Inspect),
    ("allocation.interval-unchecked", Map, RestoreDatabase, Inspect),
    // Maps claim pages that others use: all writes must stop. A restore of the wrong IAM page loses nothing; without a
    // backup, the rows must be saved before a repair.
    ("allocation.extent-gam-and-sgam", Map, RestoreDatabase, Export),
    ("allocation.extent-several-owners", ForeignMap, RestorePages, Export),
    ("allocation.extent-owner", ForeignMap, RestorePages, Export),
    ("allocation.page-two-owners", ForeignMap, RestorePages, Export),
    ("allocation.pfs-wrong-type", Clustered, RestoreDatabase, Export),
    ("iam.other-unit", ForeignMap, RestorePages, Export),
    // No table lacks these pages, but they may hold rows: save them, then free the pages.
    ("allocation.extent-unowned", FreeExtent, Export, Export),
    ("allocation.page-unowned", FreeExtent, Export, Export),
    // A rebuild writes new pages with the right PFS bytes.
    ("page.pfs-free-space", Heap, RebuildTable, RebuildTable),
    // Without its IAM pages, the rows of a heap are not found.
    ("iam.unreadable", OwnMap, RestorePages, Inspect),
    ("iam.next-unseen", OwnMap, RestorePages, Inspect),
    ("iam.prev-unseen", OwnMap, RestorePages, Inspect),
    ("iam.prev-unseen", Unnamed, Export, Export),
    ("iam.sequence", OwnMap, RestorePages, Inspect),
    ("iam.linkage", OwnMap, RestorePages, Inspect),
    ("iam.same-interval", OwnMap, RestorePages, Inspect),
    ("iam.filegroup", OwnMap, RestorePages, Inspect),
    ("iam.extent-out-of-range", OwnMap, RestorePages, Inspect),
    ("iam.pointer-out-of-range", OwnMap, RestorePages, Inspect),
    ("iam.invalid", Description, RebuildTable, RebuildTable),
    ("page.twice", Heap, RestorePages, Inspect),
    ("iam.unreadable", IndexMap, RebuildIndex, RebuildIndex),
    // The content of a page is damaged: only another copy of the page has it.
    ("page.unprocessed", Clustered, RestorePages, Inspect),
    ("page.io", Clustered, RestorePages, Inspect),
    ("page.io", Index, RebuildIndex, RebuildIndex),
    ("page.io", System, RestoreDatabase, Inspect),
    ("page.io-no-metadata", Nameless, RestorePages, Inspect),
    ("page.id", Clustered, RestorePages, Inspect),
    ("page.id-no-metadata", Nameless, RestorePages, Inspect),
    ("page.header", Clustered, RestorePages, Inspect),
    ("page.header", Index, RebuildIndex, RebuildIndex),
    ("page.free-count", Clustered, RestorePages, Inspect),
    ("page.type", Clustered, RestorePages, Inspect),
    ("page.alignment", Clustered, RestorePages, Inspect),
    ("page.compression-info", Heap, RestorePages, Inspect),
    ("page.in-sysxact", Clustered, RestorePages, Inspect),
    ("page.unreadable", Clustered, RestorePages, Inspect),
    ("page.unseen", Clustered, RestorePages, Inspect),
    ("page.unseen", Index, RebuildIndex, RebuildIndex),
    ("page.of-other-unit", Clustered, RestorePages, Inspect),
    ("slot.before-records", Clustered, RestorePages, Inspect),
    ("slot.beyond-free-data", Clustered, RestorePages, Inspect),
    ("slot.overlap", Clustered, RestorePages, Inspect),
    ("slot.into-free-space", Clustered, RestorePages, Inspect),
    ("record.audit", Clustered, RestorePages, Inspect),
    ("record.audit", Index, RebuildIndex, RebuildIndex),
    ("record.compressed", Heap, RestorePages, Inspect),
    ("record.compressed-columns", Heap, RestorePages, Inspect),
    ("record.columns", Clustered, RestorePages, Inspect),
    ("record.version-pointer", Clustered, RestorePages, Inspect),
    ("log.lost-write", Clustered, RestorePages, Inspect),
    ("log.lost-write", Index, RebuildIndex, RebuildIndex),
    ("log.image-differs", Clustered, RestorePages, Inspect),
    ("log.chain-broken", Clustered, RestorePages, Inspect),
    // All rows of the page are sound; only a count in its header is wrong.
    ("page.ghost-count", Clustered, RebuildTable, RebuildTable),
    ("page.ghost-count", Index, RebuildIndex, RebuildIndex),
    ("record.anti-matter", Index, RebuildIndex, RebuildIndex),
    // A key may be wrong, and a rebuild would keep it: a backup has the right key.
    ("key.order", Clustered, RestorePages, RebuildTable),
    ("key.order", Index, RebuildIndex, RebuildIndex),
    ("key.duplicate", Clustered, RestorePages, RebuildTable),
    ("tree.low-key", Clustered, RestorePages, RebuildTable),
    ("tree.high-key", Clustered, RestorePages, RebuildTable),
    // The pages are sound, and only their links are wrong: a rebuild loses nothing that is found.
    ("tree.empty-page", Clustered, RebuildTable, RebuildTable),
    ("tree.level-sibling", Clustered, RebuildTable, RebuildTable),
    ("tree.level-parent", Clustered, RebuildTable, RebuildTable),
    ("tree.parent-and-next-of-other", Clustered, RebuildTable, RebuildTable),
    ("tree.prev-not-as-parent", Clustered, RebuildTable, RebuildTable),
    ("tree.chain-linkage", Clustered, RebuildTable, RebuildTable),
    ("tree.chain-linkage", Index, RebuildIndex, RebuildIndex),
    ("tree.two-parents", Clustered, RebuildTable, RebuildTable),
    ("tree.child-unseen", Clustered, RebuildTable, RebuildTable),
    ("tree.parent-unseen", Clustered, RebuildTable, RebuildTable),
    ("tree.prev-unseen", Clustered, RebuildTable, RebuildTable),
    ("tree.unreferenced", Clustered, RebuildTable, RebuildTable),
    ("tree.children-unseen", Clustered, RebuildTable, RebuildTable),
    ("tree.next-unseen", Clustered, RebuildTable, RebuildTable),
    ("tree.next-of-other", Clustered, RebuildTable, RebuildTable),
    // Either of the two pages is wrong. Rows or values may be lost with it.
    ("tree.child-of-other", Clustered, RestorePages, Inspect),
    ("tree.child-of-other", Index, RebuildIndex, RebuildIndex),
    ("heap.forward-mismatch", Heap, RestorePages, Inspect),
    ("heap.forward-shared", Heap, RestorePages, Inspect),
    ("heap.stub-without-row", Heap, RestorePages, Inspect),
    ("heap.row-without-stub", Heap, RestorePages, Inspect),
    ("lob.cross-unit", OffRow, RestorePages, Inspect),
    ("lob.owner", OffRow, RestorePages, Inspect),
    ("lob.complex-column", Clustered, RestorePages, Inspect),
    ("lob.mismatch", OffRow, RestorePages, Inspect),
    ("lob.node-type", OffRow, RestorePages, Inspect),
    ("lob.page-type", OffRow, RestorePages, Inspect),
    ("lob.unreferenced", OffRow, RestorePages, Inspect),
    ("lob.unseen", OffRow, RestorePages, Inspect),
    ("lob.two-parents", OffRow, RestorePages, Inspect),
    // A row has a wrong value: no repair knows the right one. A rebuild corrects the copy of a row in an index.
    ("column.purity", Clustered, UpdateRows, UpdateRows),
    ("column.purity", Index, RebuildIndex, RebuildIndex),
    ("column.null", Clustered, UpdateRows, UpdateRows),
    ("column.null", Index, RebuildIndex, RebuildIndex),
    ("column.computed-value", Clustered, UpdateRows, UpdateRows),
    ("partition.wrong", Clustered, UpdateRows, UpdateRows),
    ("partition.wrong", Index, RebuildIndex, RebuildIndex),
    ("partition.wrong-detail", Clustered, UpdateRows, UpdateRows),
    ("constraint.check-violated", Clustered, UpdateRows, UpdateRows),
    ("constraint.foreign-key-violated", Clustered, UpdateRows, UpdateRows),
    // The table has all rows of the index; an index with more rows than its table may have their last copy.
    ("index.row-missing", Index, RebuildIndex, RebuildIndex),
    ("index.row-missing-detail", Index, RebuildIndex, RebuildIndex),
    ("index.row-surplus", Index, Export, Export),
    ("index.row-surplus-detail", Index, RebuildIndex, RebuildIndex),
    ("view.rows-surplus", Description, RebuildTable, RebuildTable),
    ("view.rows-missing", Description, RebuildTable, RebuildTable),
    ("columnstore.mismatch", Description, RestoreDatabase, Inspect),
    ("columnstore.mismatch", Index, RebuildIndex, RebuildIndex),
    ("columnstore.segment", Description, RestoreDatabase, Inspect),
    ("columnstore.segment-nonclustered", Index, RebuildIndex, RebuildIndex),
    ("columnstore.dictionary", Description, RestoreDatabase, Inspect),
    ("columnstore.dictionary-nonclustered", Index, RebuildIndex, RebuildIndex),
    ("count.incorrect", Description, UpdateUsage, UpdateUsage),
    // No repair exists for the catalog.
    ("primitive.page-type", System, RestoreDatabase, Inspect),
    ("primitive.unreadable", System, RestoreDatabase, Inspect),
    ("primitive.other-unit", System, RestoreDatabase, Inspect),
    ("primitive.linkage", System, RestoreDatabase, Inspect),
    ("primitive.loop", System, RestoreDatabase, Inspect),
    ("catalog.unusable", Nowhere, RestoreDatabase, Inspect),
    ("catalog.inconsistent", Nowhere, RestoreDatabase, Inspect),
    ("catalog.system-table-filegroup", Nowhere, RestoreDatabase, Inspect),
    ("catalog.anti-matter-column", Description, RestoreDatabase, Inspect),
    ("catalog.dangling", Description, RestoreDatabase, Inspect),
    ("catalog.partner-missing", Description, RestoreDatabase, Inspect),
    ("catalog.value-of-nothing", Nowhere, RestoreDatabase, Inspect),
    ("catalog.value-missing", Description, RestoreDatabase, Inspect),
    ("catalog.invalid-value", Description, RestoreDatabase, Inspect),
    ("broker.message-type-missing", Nowhere, RestoreDatabase, Inspect),
    ("broker.contract-missing", Nowhere, RestoreDatabase, Inspect),
    ("broker.queue-missing", Nowhere, RestoreDatabase, Inspect),
    // A backup cannot be repaired: whether its database is sound decides everything else.
    ("backup.block-checksum", Backup, Inspect, Inspect),
    ("backup.block-type", Backup, Inspect, Inspect),
    ("backup.stream-checksum", Backup, Inspect, Inspect),
    ("backup.lost-bytes", Backup, Inspect, Inspect),
    ("backup.record-lost", Backup, Inspect, Inspect),
    ("backup.data-checksum", Backup, Inspect, Inspect),
    ("backup.record-checksum", Backup, Inspect, Inspect),
    ("backup.log-block", Backup, Inspect, Inspect),
    ("backup.pages-missing", Backup, Inspect, Inspect),
    ("backup.configuration", Backup, Inspect, Inspect),
    ("backup.truncated", Backup, Inspect, Inspect),
    ("backup.set-incomplete", Backup, Inspect, Inspect),
];

/// The pages of each allocation unit, without its IAM pages.
fn pages(source: &DataFiles) -> BTreeMap<AllocUnitId, Vec<PageId>> {
    let mut by_unit: BTreeMap<AllocUnitId, Vec<PageId>> = BTreeMap::new();
    for page in (10..source.files()[0].pages).map(|page| PageId::new(1, page)) {
        let bytes = source.read_page(page).unwrap();
        let header = Page::new(&bytes).header();
        if header.kind() != Some(PageType::Iam) {
            by_unit.entry(header.alloc_unit()).or_default().push(page);
        }
    }
    by_unit
}

/// Two pages of a unit, with their owner.
type Pages = (Owner, [PageId; 2]);

/// A database in the full recovery model, with a full backup, and the pages that findings name.
struct Backed {
    bench: Bench,
    backups: Backups,
    clustered: Pages,
    heap: Pages,
    off_row: Pages,
    index: Pages,
    system: Pages,
}

impl Backed {
    fn new() -> Self {
        let mut bench = Bench::new();
        let boot = bench.database.boot.as_mut().unwrap();
        boot.status &= !status::SIMPLE;
        boot.log_backup_chain_origin = Lsn { vlf: 1, ..Lsn::default() };
        let options = BackupOptions::default();
        let sets = [Set { files: &bench.files, step: 1, options }];
        let made = backup(&sets, bench.folder.path(), "full").unwrap();
        let media: Vec<_> = made.files.iter().map(|path| source::backup::media(path).unwrap()).collect();
        let backups = Backups { databases: source::backup::chains(&media), memory_bytes: None };
        let by_unit = pages(&bench.source);
        let find = |is_asked: &dyn Fn(i32, i32) -> bool, kind: UnitKind| -> Pages {
            let units = bench.database.units.iter().filter(|unit| unit.kind == kind);
            let mut owners = units.map(|unit| Owner::of(&bench.database, unit.id));
            let pages = |owner: &Owner| Some(by_unit.get(&owner.alloc_unit)?.get(..2)?.try_into().unwrap());
            owners
                .find_map(|owner| Some((owner, pages(&owner).filter(|_| is_asked(owner.object_id, owner.index_id))?)))
                .unwrap()
        };
        Self {
            clustered: find(&|object, index| object > 100 && index == 1, UnitKind::InRow),
            heap: find(&|object, index| object > 100 && index == 0, UnitKind::InRow),
            off_row: find(&|object, index| object > 100 && index == 1, UnitKind::Lob),
            index: find(&|object, index| object > 100 && index > 1, UnitKind::InRow),
            system: find(&|object, index| object == SYSTEM[0] && index == 1, UnitKind::InRow),
            bench,
            backups,
        }
    }

    fn first_map(&self, owner: &Owner) -> PageId {
        self.bench.database.units.iter().find(|unit| unit.id == owner.alloc_unit).unwrap().first_iam
    }

    fn finding(&self, check: &'static Check, place: Place) -> Finding {
        let finding = Finding::new(check);
        let at = |(owner, [page, other]): Pages| finding.clone().owner(owner).at(page, 0).ref_page(other);
        let (heap, index) = (self.heap.0, self.index.0);
        let (gam, sgam) = (PageId::new(1, 2), PageId::new(1, 3));
        match place {
            Clustered => at(self.clustered),
            Heap => at(self.heap),
            Index => at(self.index),
            OffRow => at(self.off_row),
            System => at(self.system),
            OwnMap => finding.owner(heap).page(self.first_map(&heap)),
            IndexMap => finding.owner(index).page(self.first_map(&index)),
            ForeignMap => {
                let (owner, [page, _]) = self.clustered;
                finding.owner(owner).page(page).ref_page(self.first_map(&heap)).other_owner(heap)
            }
            Nameless => finding.page(self.clustered.1[0]),
            Description => finding.owner(self.clustered.0),
            Header => finding.page(PageId::new(1, 0)),
            Map => finding.page(gam).page_value("gam_page", gam).page_value("sgam_page", sgam),
            FreeExtent => finding.page(self.free_extent()),
            Unnamed => finding.page(PageId::NONE).ref_page(self.free_extent()),
            Backup | Nowhere => finding,
        }
    }

    /// The last extent of the file, which is free.
    fn free_extent(&self) -> PageId {
        let pages = self.bench.source.files()[0].pages;
        PageId::new(1, pages / 8 * 8 - 8)
    }

    /// The first step for a finding.
    fn first_step(&mut self, finding: Finding, has_backups: bool) -> Action {
        let is_of_container = finding.check.is_of_container();
        self.bench.report.findings = vec![finding.clone()].into();
        if is_of_container {
            return self.bench.steps(&finding).first().unwrap().action;
        }
        let request = Request { backups: has_backups.then_some(&self.backups), ..self.bench.request() };
        plan::plan(&request).steps.first().unwrap().action
    }
}

#[test]
fn the_first_step_for_each_check_is_the_right_one() {
    let mut backed = Backed::new();
    let mut wrong = Vec::new();
    for &(id, place, with, without) in ROWS {
        let check = registry::ALL.iter().copied().find(|check| check.id == id).unwrap_or_else(|| panic!("no {id}"));
        for (has_backups, expected) in [(true, with), (false, without)] {
            let found = backed.first_step(backed.finding(check, place), has_backups);
            if found != expected {
                wrong.push(format!("{id}, {place:?}, backups {has_backups}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_check_has_a_row() {
    let listed: BTreeSet<&str> = ROWS.iter().map(|(id, ..)| *id).collect();
    let lacking: Vec<&str> = registry::ALL.iter().map(|check| check.id).filter(|id| !listed.contains(id)).collect();
    assert!(lacking.is_empty(), "add rows to this table: {lacking:?}");
}
