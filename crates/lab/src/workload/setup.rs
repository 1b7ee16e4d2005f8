//! Creates the database on which a workload runs. The lab writes this database to files, and the files are then read
//! into memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Spec;
use super::catalog::SystemTables;
use super::engine::Engine;
use super::frame::Frame;
use super::journal::Journal;
use super::key::KeyLayout;
use super::pool::{FilePages, Pool, bytes_of};
use super::schema::schema;
use super::table::{Counts, Live, Rowset, TableState};
use crate::build::{BuiltRowset, Ids, table_seed, unit_kind};
use crate::catalogue::{TableIds, base};
use crate::database::{WrittenTables, write_tables};
use crate::description::Description;
use crate::disk::LabError;
use crate::facts;
use crate::fixed::{CHECKPOINT_LSN, log_file_id, log_header, log_suffix};
use crate::ids::{EXTENT, GAM_INTERVAL, PAGE, PageId, RowId, UnitId};
use crate::keys::KeyOrder;
use crate::log::{HEADER_PAGE, LogForm, MOST_BYTES, SECTOR};
use crate::page::{PageVerify, page_type};
use crate::random::{Random, mix};
use crate::row::Row;
use crate::values::Rows;
use crate::version::Version;

/// The smallest size of a virtual log file in bytes: its header and the largest block must fit.
const LEAST_VLF_BYTES: u64 = HEADER_PAGE + MOST_BYTES as u64;

/// The maximum number of log files. There is a limit because sysfiles1 has space for the names of only nine files.
const MOST_LOG_FILES: u16 = 4;

/// `SYSROWSETS` and `SYSALLOCUNITS` are the allocation units of the base tables sysrowsets and sysallocunits, which
/// contain the counters of rows and pages.
const SYSROWSETS: UnitId = UnitId(5 << 16);
const SYSALLOCUNITS: UnitId = UnitId(7 << 16);
/// The base tables in which DDL changes rows.
const CHANGED_BY_DDL: [i32; 9] = [
    base::SYSRSCOLS,
    base::SYSROWSETS,
    base::SYSALLOCUNITS,
    base::SYSPRUFILES,
    base::SYSSCHOBJS,
    base::SYSCOLPARS,
    base::SYSIDXSTATS,
    base::SYSISCOLS,
    base::SYSSINGLEOBJREFS,
];
/// The offset of the checkpoint LSN on the boot page.
const CHECKPOINT: usize = 96 + CHECKPOINT_LSN;
const BOOT_PAGE: usize = 9;
/// The least number of pages of the data file if the workload has DDL. The file grows when it is full.
const LEAST_PAGES: u32 = 640;
/// The number of the first transaction of a workload.
const FIRST_TRANSACTION: u32 = 0x400;

/// The rowsets of a table, and the places of its rows.
#[derive(Default)]
struct Places {
    base: usize,
    indexes: Vec<usize>,
    /// The rowset of the LOB unit, and the column whose long values are stored in this unit.
    lob: Option<(usize, usize)>,
    /// The addresses of the rows, if the table is a heap.
    addresses: Vec<RowId>,
    /// The pointers in rows to values that do not fit in the rows.
    pointers: Vec<Option<Vec<u8>>>,
}

/// The number of the first long value of a workload. The long values that the lab writes have lower numbers.
const FIRST_BLOB: u64 = 1 << 20;

/// The database before the workload.
pub(super) struct Base {
    description: Description,
    names: Vec<String>,
    pages: Vec<FilePages>,
    rowsets: Vec<Rowset>,
    tables: Vec<Places>,
    objects: Vec<TableIds>,
    /// The base tables; `None` if the workload has no DDL.
    system: Option<SystemTables>,
    first_sequence: u32,
}

impl Base {
    pub(super) fn new(spec: &Spec) -> Result<Self, LabError> {
        if spec.version < Version::V706 {
            return Err(LabError::Description("workloads run on SQL Server 2012 or later".to_owned()));
        }
        if spec.vlf_bytes < LEAST_VLF_BYTES || !spec.vlf_bytes.is_multiple_of(SECTOR as u64) {
            let words = format!(
                "a virtual log file of {} bytes: it must be a multiple of {SECTOR} and at least {LEAST_VLF_BYTES}, its header and \
                 the largest block",
                spec.vlf_bytes
            );
            return Err(LabError::Description(words));
        }
        if !(1..=MOST_LOG_FILES).contains(&spec.log_files) {
            return Err(LabError::Description(format!(
                "{} log files: one to {MOST_LOG_FILES} are possible",
                spec.log_files
            )));
        }
        let mut description = schema(spec.version, spec.seed, spec.verify, spec.rows, spec.transactions);
        if spec.ddl_each > 0 {
            description.least_pages = LEAST_PAGES;
        }
        let io = |source| LabError::Io { path: std::env::temp_dir(), source };
        let folder = tempfile::tempdir().map_err(io)?;
        let WrittenTables { written, built, objects, system, ids } =
            write_tables(&description, folder.path(), "/lab", spec.log_files)?;
        let (mut pages, mut names) = (Vec::new(), Vec::new());
        for path in &written.files {
            let bytes = std::fs::read(path).map_err(|source| LabError::Io { path: path.clone(), source })?;
            let of_file = bytes.chunks_exact(PAGE).filter_map(|page| Some(Arc::new(*page.first_chunk::<PAGE>()?)));
            pages.push(of_file.collect::<FilePages>());
            names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        // Clears the differential map, as a full backup does, so that the workload starts without changed extents.
        for page in pages.iter_mut().flatten().filter(|page| page[1] == page_type::DIFFERENTIAL) {
            let mut frame = Frame::read(page);
            frame.records[1][4..].fill(0);
            *page = Arc::from(frame.bytes());
        }
        let boot = pages.first().and_then(|pages| pages.get(BOOT_PAGE));
        let sequence = boot.and_then(|page| page[CHECKPOINT..].first_chunk::<4>().copied()).unwrap_or_default();
        let first_sequence = u32::from_le_bytes(sequence);
        let (rowsets, tables) = (Vec::new(), Vec::new());
        let mut this = Self { description, names, pages, rowsets, tables, objects, system: None, first_sequence };
        this.find_rowsets(built);
        this.find_pointers(spec);
        if spec.ddl_each > 0 {
            this.find_system(&system, ids);
        }
        Ok(this)
    }

    /// Adds the rowsets of the base tables in which DDL changes rows.
    fn find_system(&mut self, built: &[BuiltRowset], ids: Ids) {
        let objects = facts::objects(self.description.version);
        let mut pool = Pool::new(self.pages.clone());
        let mut rowsets: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for built in built.iter().filter(|built| CHANGED_BY_DDL.contains(&built.object)) {
            let columns = objects.iter().find(|object| object.id == built.object).map_or(0, |fact| fact.columns.len());
            let Some((_, unit)) = built.units.first() else { continue };
            let iam = unit.first_iam();
            rowsets.entry(built.object).or_default().push(self.rowsets.len());
            self.rowsets.push(Rowset {
                id: built.id,
                unit: unit.id,
                object: built.object,
                root: unit.root,
                iam,
                keys: KeyLayout::new(built.layout.clone(), columns),
                is_base: built.index < 2,
                is_heap: false,
                is_lob: false,
                is_gone: false,
                pages: Vec::new(),
                extents: if iam == PageId::NONE { Vec::new() } else { extents(pool.frame(iam)) },
                counts: Counts {
                    rows: built.rows as i64,
                    data: unit.data as i64,
                    used: unit.used as i64,
                    reserved: unit.reserved as i64,
                },
                unit_row: Default::default(),
                rowset_row: Default::default(),
            });
        }
        let description = Description { tables: Vec::new(), ..self.description.clone() };
        self.system = Some(SystemTables { description, objects, rowsets, ids });
    }

    fn find_rowsets(&mut self, built: Vec<Vec<BuiltRowset>>) {
        let mut pool = Pool::new(self.pages.clone());
        let mut by_unit: BTreeMap<u64, Vec<PageId>> = BTreeMap::new();
        let mut rows: BTreeMap<(u64, u64), (PageId, u16)> = BTreeMap::new();
        for id in pool.ids() {
            let frame = pool.frame(id);
            if !matches!(frame.kind(), page_type::DATA | page_type::INDEX | page_type::TEXT_MIX | page_type::TEXT_TREE)
                || frame.level() > 0
            {
                continue;
            }
            let unit = frame.unit();
            by_unit.entry(unit.0).or_default().push(id);
            if unit == SYSROWSETS || unit == SYSALLOCUNITS {
                for (slot, record) in frame.records.iter().enumerate() {
                    let named = record[4..12].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
                    rows.insert((unit.0, named), (id, slot as u16));
                }
            }
        }
        for (table, rowsets) in self.description.tables.iter().zip(built) {
            let mut places = Places { base: self.rowsets.len(), ..Places::default() };
            let mut long = None;
            for built in rowsets {
                for (kind, unit) in &built.units {
                    let is_lob = *kind == unit_kind::LOB;
                    let is_heap = is_lob || built.index == 0;
                    let number = self.rowsets.len();
                    match (is_lob, built.index) {
                        (true, _) => long = Some(number),
                        (false, 2..) => places.indexes.push(number),
                        _ => {}
                    }
                    let iam = unit.first_iam();
                    self.rowsets.push(Rowset {
                        id: built.id,
                        unit: unit.id,
                        object: built.object,
                        root: unit.root,
                        iam,
                        keys: KeyLayout::new(built.layout.clone(), table.columns.len()),
                        is_base: built.index < 2,
                        is_heap,
                        is_lob,
                        is_gone: false,
                        pages: by_unit.get(&unit.id.0).filter(|_| is_heap).cloned().unwrap_or_default(),
                        extents: if iam == PageId::NONE { Vec::new() } else { extents(pool.frame(iam)) },
                        counts: Counts {
                            rows: if is_lob { 0 } else { built.rows as i64 },
                            data: unit.data as i64,
                            used: unit.used as i64,
                            reserved: unit.reserved as i64,
                        },
                        unit_row: rows.get(&(SYSALLOCUNITS.0, unit.id.0)).copied().unwrap_or_default(),
                        rowset_row: rows.get(&(SYSROWSETS.0, built.id)).copied().unwrap_or_default(),
                    });
                }
            }
            let column = table.columns.iter().position(|column| column.ty.is_lob());
            places.lob = long.zip(column);
            for &page in &self.rowsets[places.base].pages {
                let slots = pool.frame(page).records.len() as u16;
                places.addresses.extend((0..slots).map(|slot| RowId { page, slot }));
            }
            self.tables.push(places);
        }
    }

    /// Reads the pointers to long values from the rows.
    fn find_pointers(&mut self, spec: &Spec) {
        let mut found = Vec::new();
        let mut engine = self.engine(spec);
        for (number, places) in self.tables.iter().enumerate() {
            let Some((_, column)) = places.lob else { continue };
            let rows: Vec<Live> = engine.tables[number].rows.values().cloned().collect();
            let pointer = |live: Live| {
                let (page, slot) = engine.find(places.base, &engine.record(places.base, &live)).leaf();
                let record = engine.pool.frame(page).records.get(slot).cloned().unwrap_or_default();
                self.rowsets[places.base].keys.pointer(&record, column)
            };
            found.push((number, rows.into_iter().map(pointer).collect()));
        }
        for (number, pointers) in found {
            self.tables[number].pointers = pointers;
        }
    }

    /// The engine that runs the workload on this database.
    pub(super) fn engine(&self, spec: &Spec) -> Engine<'_> {
        let facts = spec.version.facts();
        let form = LogForm::of(facts.number, spec.verify == PageVerify::Checksum);
        let tables = self.tables.iter().enumerate().map(|(number, places)| self.table(number, places));
        let mut engine = Engine {
            pool: Pool::new(self.pages.clone()),
            journal: Journal::new(form, self.first_sequence, (spec.vlfs, spec.vlf_bytes), self.log_file_ids(spec)),
            rowsets: self.rowsets.clone(),
            system: self.system.clone(),
            changing: BTreeMap::new(),
            ddl_each: spec.ddl_each,
            made: 0,
            is_copied: false,
            tables: tables.collect(),
            open: BTreeMap::new(),
            next_transaction: FIRST_TRANSACTION,
            dice: Random::new(mix(spec.seed ^ 0x10A4)),
            verify: spec.verify,
            version: facts.number,
            has_checkpoints: spec.has_checkpoints,
            marked_each: spec.marked_each,
            begun: 0,
            checkpoint: Default::default(),
            log_backed_up: None,
            commits: Vec::new(),
            next_blob: FIRST_BLOB,
            counted: self.rowsets.iter().map(|rowset| rowset.counts).collect(),
        };
        if engine.system.is_some() {
            engine.find_catalog_rows();
        }
        engine
    }

    fn table(&self, number: usize, places: &Places) -> TableState<'_> {
        let table = &self.description.tables[number];
        let source = Rows::new(table, table_seed(&self.description, number));
        let order = KeyOrder::clustered(table, self.description.collation, &source);
        let mut state = TableState {
            table: Cow::Borrowed(table),
            source,
            ids: self.objects[number].clone(),
            is_dropped: false,
            base: places.base,
            indexes: places.indexes.clone(),
            lob: places.lob,
            rows: BTreeMap::new(),
            settled: BTreeMap::new(),
            next: 0,
            gone: BTreeMap::new(),
            uniquifiers: BTreeMap::new(),
        };
        for row in 0..table.rows {
            let mut values = Row::default();
            state.source.fill(row, &mut values);
            state.uniquifier(row);
            let uniquifier = order.as_ref().map_or(0, |order| order.uniquifier(row));
            let at = places.addresses.get(row as usize).copied().unwrap_or_default();
            let pointer = places.pointers.get(row as usize).cloned().flatten();
            state.rows.insert(row, Live { values, uniquifier, at, pointer });
        }
        (state.settled, state.next) = (state.rows.clone(), table.rows);
        state
    }

    /// Writes data files into a folder.
    pub(super) fn write_files(&self, files: &[FilePages], folder: &Path) -> Result<Vec<PathBuf>, LabError> {
        let mut written = Vec::new();
        for (name, pages) in self.names.iter().zip(files) {
            let path = folder.join(name);
            std::fs::write(&path, bytes_of(pages)).map_err(|source| LabError::Io { path: path.clone(), source })?;
            written.push(path);
        }
        Ok(written)
    }

    /// Combines the bytes of files with the file names.
    pub(super) fn named(&self, files: Vec<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
        self.names.iter().cloned().zip(files).collect()
    }

    fn log_file_ids(&self, spec: &Spec) -> Vec<u16> {
        (0..spec.log_files).map(|number| log_file_id(number, self.names.len())).collect()
    }

    /// The bytes of the log files with the file names.
    pub(super) fn logs(&self, journal: &mut Journal) -> Vec<(String, Vec<u8>)> {
        journal.close();
        let file = |number: u16| {
            let name = format!("{}{}.ldf", self.description.name, log_suffix(number));
            let header = |bytes| log_header(&self.description, (number, self.names.len()), bytes);
            (name, journal.file(number, header))
        };
        (0..journal.files()).map(file).collect()
    }
}

/// The extents whose bits are set on an IAM page.
fn extents(iam: &Frame) -> Vec<u32> {
    let bits = iam.records.get(1).map(|record| &record[4..]).unwrap_or_default();
    (0..GAM_INTERVAL / EXTENT)
        .filter(|bit| bits.get(*bit as usize / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1))
        .collect()
}
