//! Carries out the advice in the lab, plan after plan, until no step is left. Then the database must be sound and have
//! every row.
//!
//! No server is used, so the test applies the effect of each statement to pages. A restore takes pages from the sound
//! copy; a rebuild gives the object its sound pages. Before a rebuild, the rows that the rebuild reads must be
//! complete, and the pages that it frees must belong to no other object.

use std::collections::BTreeMap;
use std::fmt::Write;

use advise::{Action, Situation};
use catalog::{AllocUnit, Database, Fetched, fetch};
use format::allocation::{EXTENT_PAGES, IamHeader, bitmap, set_bits};
use lab::backup::{BackupOptions, Set, backup};
use lab::damage::{Kind, damage};
use lab::{Description, PageVerify, Version, orders, specimens};
use rows::{Reader, Scan, ScanOptions, Table};
use trials::mutate::{Pages, Random, Survey, Verb, damages};
use trials::plain::plain;

use super::*;

/// The maximum number of plans that are carried out until a database must be sound.
const MOST_ROUNDS: usize = 6;

/// Damage for which the advice is known to be wrong: the offset of a column in the catalog was changed, and the
/// checksum of the page was corrected. The check then reports only that rows do not fit their columns.
const KNOWN: [&str; 1] = ["sys.sysrscols, offset"];

type Row = Vec<Option<String>>;
type Changes = BTreeMap<PageId, PageBytes>;

/// A sound database with a backup of it.
struct Sound {
    files: MemoryFiles,
    paths: Vec<PathBuf>,
    database: Database,
    rows: BTreeMap<String, Vec<Row>>,
    backups: Backups,
    _folder: tempfile::TempDir,
}

impl Sound {
    fn new(description: &Description) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(description, folder.path());
        let set = Set { files: &paths, step: 1, options: BackupOptions::default() };
        let backups = backups(&backup(&[set], folder.path(), "full").unwrap().files);
        let files = open(&paths);
        let database = catalog::load(&files);
        assert!(advice(&files, None).0.findings.is_empty());
        let rows = rows_of(&files);
        Self { files, paths, database, rows, backups, _folder: folder }
    }

    fn page(&self, page: PageId) -> PageBytes {
        self.files.read_page(page).map_or([0; PAGE_BYTES], |bytes| *bytes)
    }

    fn pages(&self) -> impl Iterator<Item = PageId> {
        let of =
            |file: &source::DataFile| (0..file.pages).map(|page| PageId::new(file.file_id, page)).collect::<Vec<_>>();
        self.files.files().iter().flat_map(of)
    }

    /// The pages of those indexes of the object for which `is_meant` returns true, according to the page headers. IAM
    /// pages are included.
    fn pages_of(&self, object: &str, is_meant: impl Fn(i32) -> bool) -> Vec<PageId> {
        let is_of = |page: &PageId| {
            let found = owner(&self.files, &self.database, *page);
            found.is_some_and(|(id, index)| self.name(id) == object && is_meant(index))
        };
        self.pages().filter(is_of).collect()
    }

    fn name(&self, object_id: i32) -> String {
        let object = self.database.objects.get(&object_id);
        object.map_or_else(String::new, |object| format!("{}.{}", self.database.schema_name(object), object.name))
    }

    fn index(&self, object: &str, index: &str) -> Option<i32> {
        let mut indexes = self.database.indexes.iter();
        let found = indexes.find(|((id, _), found)| self.name(*id) == object && found.name == index);
        found.map(|((_, id), _)| *id)
    }
}

/// The rows of all tables, read by the normal scan.
fn rows_of(files: &MemoryFiles) -> BTreeMap<String, Vec<Row>> {
    let database = catalog::load(files);
    let mut all = BTreeMap::new();
    for table in Table::list(&database).into_iter().filter_map(|id| Table::of(&database, id).ok()) {
        let mut scan = Scan::new(files, &database, &table, ScanOptions::default());
        let mut reader = Reader::new(files, &database, &table, ScanOptions::default());
        let mut rows: Vec<Row> = Vec::new();
        while let Some(range) = scan.next_range() {
            let each = &mut |row: &rows::Row<'_>| {
                rows.push(row.values.iter().map(plain).collect());
                Ok(())
            };
            reader.read(&range, each).unwrap();
        }
        rows.sort();
        all.insert(table.full_name(), rows);
    }
    all
}

/// The pages that the IAM pages of an allocation unit assign to it.
fn claimed(source: &MemoryFiles, unit: &AllocUnit) -> BTreeSet<PageId> {
    let (mut pages, mut at) = (BTreeSet::new(), unit.first_iam);
    for _ in 0..64 {
        let Fetched::Sound(bytes) = fetch(source, at) else { break };
        let page = Page::new(&bytes);
        let (Some(header), Some(bits)) = (IamHeader::read(page), bitmap(page)) else { break };
        pages.extend(header.slots.into_iter().filter(|slot| !slot.is_none()));
        let first = |extent: u32| header.start.page + extent * EXTENT_PAGES;
        let extents = set_bits(bits).flat_map(|extent| first(extent)..first(extent) + EXTENT_PAGES);
        pages.extend(extents.map(|page| PageId::new(header.start.file, page)));
        at = page.header().next();
    }
    pages
}

/// Returns the database after a rebuild: the pages `pages` are sound, their PFS bytes are right, and the catalog
/// contains the rows that describe the new rowset.
fn rebuilt(sound: &Sound, hurt: &MemoryFiles, pages: Vec<PageId>) -> Result<Option<MemoryFiles>, String> {
    const ROWSETS: [i32; 3] = [3, 5, 7];
    let mut changes: Changes = pages.iter().map(|page| (*page, sound.page(*page))).collect();
    let of_rowsets =
        |page: &PageId| owner(&sound.files, &sound.database, *page).is_some_and(|(id, _)| ROWSETS.contains(&id));
    changes.extend(sound.pages().filter(of_rowsets).map(|page| (page, sound.page(page))));
    let now = Pages::new(hurt, &sound.database);
    for page in pages {
        let map = PageId::new(page.file, format::allocation::pfs_page_of(page.page));
        let at = 100 + (page.page % format::allocation::PFS_PAGES) as usize;
        let Some(mut marks) = changes.get(&map).copied().or_else(|| now.read(map).map(|bytes| *bytes)) else {
            continue;
        };
        marks[at] = sound.page(map)[at];
        seal(&mut marks);
        changes.insert(map, marks);
    }
    hurt.with_pages(changes).map(Some).map_err(|error| error.to_string())
}

/// Carries out a step and returns the changed database. Returns an error if the step does harm. Returns `None` if the
/// test cannot continue after this step.
fn carry_out(sound: &Sound, hurt: &MemoryFiles, step: &Step, is_loss: bool) -> Result<Option<MemoryFiles>, String> {
    let put = |pages: Vec<PageId>| {
        let changes = pages.into_iter().map(|page| (page, sound.page(page)));
        hurt.with_pages(changes).map(Some).map_err(|error| error.to_string())
    };
    let object = step.object.clone().unwrap_or_default();
    // Whether a rebuild keeps the rows of the table. Values of rows may change only if the step says that it is unknown
    // which of two values is right, so that a person must decide.
    let keeps_rows = |object: &str| {
        let (found, all) = (rows_of(hurt).remove(object), sound.rows.get(object));
        let is_told = ["the index or the table may be wrong", "it is unknown which"]
            .iter()
            .any(|words| step.risk.contains(words));
        match (found, all) {
            (found, all) if found.as_ref() == all => Ok(true),
            (Some(found), Some(all)) if is_told && found.len() == all.len() => Ok(false),
            (found, all) => {
                let (found, all) = (found.map_or(0, |rows| rows.len()), all.map_or(0, Vec::len));
                Err(format!("{} of {object}: {found} rows are found of {all}, told: {is_told}", step.action.name()))
            }
        }
    };
    let frees_only_its_own = |is_meant: &dyn Fn(i32) -> bool| {
        let database = catalog::load(hurt);
        let mut pages = database.units.iter().flat_map(|unit| {
            let rowset = database
                .rowset_of(unit)
                .filter(|rowset| sound.name(rowset.object_id) == object && is_meant(rowset.index_id));
            rowset
                .map(|rowset| claimed(hurt, unit).into_iter().map(|page| (rowset.object_id, page)).collect::<Vec<_>>())
        });
        let used = Pages::new(&sound.files, &sound.database);
        let is_in_use = |page: PageId| used.pfs(page).is_some_and(|byte| byte.is_allocated());
        let strange = pages.find_map(|pages| {
            pages.into_iter().find(|(id, page)| {
                is_in_use(*page) && owner(&sound.files, &sound.database, *page).is_some_and(|(of, _)| of != *id)
            })
        });
        strange.map_or(Ok(()), |(_, page)| Err(format!("{} frees page {page} of another object", step.action.name())))
    };
    match step.action {
        Action::RestorePages => put(step.pages.clone()),
        Action::RestoreFile => {
            let files: BTreeSet<u16> = step.pages.iter().map(|page| page.file).collect();
            put(sound.pages().filter(|page| files.contains(&page.file)).collect())
        }
        Action::RestoreDatabase => Ok(Some(open(&sound.paths))),
        Action::UpdateUsage => {
            let is_of_catalog = |page: &PageId| {
                owner(&sound.files, &sound.database, *page).is_some_and(|(id, _)| sound.database.is_system_table(id))
            };
            put(sound.pages().filter(is_of_catalog).collect())
        }
        Action::UpdateRows => put(step.pages.clone()),
        Action::RebuildIndex => {
            if !keeps_rows(&object)? {
                return Ok(None);
            }
            let index = step.index.as_deref().and_then(|index| sound.index(&object, index));
            let index = index.ok_or_else(|| format!("no index {:?} of {object}", step.index))?;
            frees_only_its_own(&|id| id == index)?;
            rebuilt(sound, hurt, sound.pages_of(&object, |id| id == index))
        }
        Action::RebuildTable => {
            if !keeps_rows(&object)? {
                return Ok(None);
            }
            frees_only_its_own(&|id| id <= 1)?;
            rebuilt(sound, hurt, sound.pages_of(&object, |id| id <= 1))
        }
        Action::Export => {
            let found = rows_of(hurt);
            for (table, rows) in &sound.rows {
                let found = found.get(table).map(Vec::as_slice).unwrap_or_default();
                if !is_loss && step.cannot_restore.is_none() && found != rows {
                    return Err(format!("{table}: {} rows are saved of {}", found.len(), rows.len()));
                }
            }
            Ok(None)
        }
        Action::RepairAllowDataLoss => Err("a repair that deletes is the first step".to_owned()),
        Action::Inspect => Err("nothing is to be done but to look".to_owned()),
    }
}

/// The results of following the advice. For each check, the number of damaged databases in which the check has
/// findings, and the number of those in which the advice was right.
#[derive(Default)]
struct Tally {
    by_check: BTreeMap<String, (u32, u32)>,
    steps: BTreeMap<&'static str, u32>,
    /// The number of steps that admit one of two limits: it is unknown which of two values is wrong, or no index has
    /// all columns of the lost rows.
    told: u32,
    wrong: Vec<String>,
}

impl Tally {
    /// Follows the advice on a damaged database, once without and once with a backup.
    fn follow(&mut self, sound: &Sound, hurt: &MemoryFiles, what: &str) {
        let (report, plan) = advice(hurt, None);
        if report.findings.is_empty() {
            return;
        }
        let ids: BTreeSet<&'static str> = report.findings.iter().map(|finding| finding.check.id).collect();
        let mut said = Vec::new();
        for backups in [None, Some(&sound.backups)] {
            // If rows are lost and no backup is given, the first step is to look for a backup. There is nothing to
            // carry out.
            if backups.is_none() && plan.situation == Situation::Loss {
                continue;
            }
            if let Err(why) = self.mend(sound, hurt, backups) {
                said.push(why);
            }
        }
        let found: Vec<&str> = ids.iter().copied().collect();
        for id in &found {
            let (tried, right) = self.by_check.entry((*id).to_owned()).or_default();
            *tried += 1;
            *right += u32::from(said.is_empty());
        }
        let is_known = KNOWN.iter().any(|known| what.starts_with(known));
        self.wrong.extend(
            (!said.is_empty() && !is_known).then(|| format!("{what}: {}: {}", found.join(" "), said.join("; "))),
        );
    }

    /// Carries out the steps of a plan in order, makes the next plan, and repeats this until the database is sound.
    fn mend(&mut self, sound: &Sound, hurt: &MemoryFiles, backups: Option<&Backups>) -> Result<(), String> {
        let heading = if backups.is_some() { "with a backup" } else { "without a backup" };
        let mut now = hurt.with_pages([]).map_err(|error| error.to_string())?;
        for _ in 0..MOST_ROUNDS {
            let (report, plan) = advice(&now, backups);
            if report.findings.is_empty() {
                return match rows_of(&now) == sound.rows {
                    true => Ok(()),
                    false => Err("rows are missing in what is sound".to_owned()),
                };
            }
            let is_loss = matches!(plan.situation, Situation::Loss | Situation::InBackup);
            let steps: Vec<&Step> = plan.steps.iter().filter(|step| step.action != Action::Inspect).collect();
            if steps.is_empty() {
                return Err(format!("{heading}: no step"));
            }
            for (number, step) in steps.iter().enumerate() {
                let is_restored = steps.iter().skip(number).any(|step| !step.from.is_empty());
                match step.action {
                    // Steps that free pages or delete rows come last in a plan. Before they are carried out, the
                    // database is checked again and a new plan is made.
                    Action::RepairAllowDataLoss if number > 0 => break,
                    // Exported rows are not needed if the plan also restores the table.
                    Action::Export if is_restored || number > 0 => continue,
                    _ => {}
                }
                *self.steps.entry(step.action.name()).or_default() += 1;
                match carry_out(sound, &now, step, is_loss).map_err(|why| format!("{heading}: {why}"))? {
                    Some(mended) => now = mended,
                    None => {
                        self.told += u32::from(step.action != Action::Export || step.cannot_restore.is_some());
                        return Ok(());
                    }
                }
            }
        }
        let (report, plan) = advice(&now, backups);
        let ids: BTreeSet<_> = report.findings.iter().map(|finding| finding.check.id).collect();
        Err(format!(
            "{heading}: not sound after all steps: {ids:?}, {:?}",
            plan.steps.iter().map(line).collect::<Vec<_>>()
        ))
    }

    fn table(&self) -> String {
        let mut text = String::new();
        self.by_check.iter().for_each(|(id, (tried, right))| writeln!(text, "{id} {right} of {tried}").unwrap());
        text
    }
}

/// Damages a few sites of every field of every structure, each by a random verb.
fn fields(sound: &Sound, per_field: usize, seed: u64, tally: &mut Tally) {
    let mut random = Random::new(seed);
    let pages = Pages::new(&sound.files, &sound.database);
    let only = std::env::var("MDFSCK_ONLY_FIELD").unwrap_or_default();
    for (structure, field, sites) in Survey::of(&sound.files, &sound.database, seed).fields() {
        if !format!("{structure}, {field}").contains(&only) {
            continue;
        }
        let drawn: Vec<_> = sites.drawn().collect();
        for _ in 0..per_field {
            let (Some(site), Some(verb)) = (random.pick(&drawn), random.pick(&Verb::ALL)) else { continue };
            let Some(mut bytes) = pages.read(site.page) else { continue };
            let other = random.pick(&drawn).and_then(|other| Some(other.value(&*pages.read(other.page)?).to_vec()));
            let other = other.filter(|value| value.len() == site.bytes.len());
            if !site.apply(&mut bytes, *verb, other.as_deref()) {
                continue;
            }
            seal(&mut bytes);
            let Ok(hurt) = sound.files.with_pages([(site.page, *bytes)]) else { continue };
            tally.follow(
                sound,
                &hurt,
                &format!("{structure}, {field}, {} {:?} {}", site.page, site.bytes, verb.name()),
            );
        }
    }
}

/// Returns changes that make the allocation maps wrong for pages with live rows. No row is lost yet, but a repair by
/// DBCC would delete rows.
fn maps(sound: &Sound) -> Vec<(&'static str, Changes)> {
    let pages = Pages::new(&sound.files, &sound.database);
    let is_of = |page: &PageId, index_id: i32| {
        owner(&sound.files, &sound.database, *page)
            .is_some_and(|(id, index)| index == index_id && !sound.database.is_system_table(id))
            && pages.pfs(*page).is_some_and(|byte| byte.type_bits() == format::allocation::PfsByte::DEDICATED)
    };
    let any_of = |index_id: i32| {
        let found: Vec<PageId> = sound.pages().filter(|page| is_of(page, index_id)).collect();
        found[found.len() / 2]
    };
    let (page, of_heap) = (any_of(1), any_of(0));
    let edited = |map: u32, edit: &dyn Fn(&mut PageBytes)| {
        let map = PageId::new(page.file, map);
        let mut bytes = *pages.read(map).unwrap();
        edit(&mut bytes);
        seal(&mut bytes);
        BTreeMap::from([(map, bytes)])
    };
    let flip = |bytes: &mut PageBytes, page: PageId| bytes[194 + page.page as usize / 64] ^= 1 << (page.page / 8 % 8);
    let bit = |bytes: &mut PageBytes| flip(bytes, page);
    vec![
        ("the GAM calls an extent of live rows free", edited(2, &bit)),
        ("the GAM calls an extent of a heap free", edited(2, &|bytes| flip(bytes, of_heap))),
        ("the SGAM calls an extent of live rows mixed", edited(3, &bit)),
        ("PFS calls a page of live rows free", edited(1, &|bytes| bytes[100 + page.page as usize] &= !0x40)),
        (
            "PFS calls pages of live rows mixed",
            edited(1, &|bytes| {
                bytes[100 + page.page as usize..][..7].iter_mut().for_each(|byte| *byte ^= 0x20);
            }),
        ),
    ]
}

/// Makes an IAM page of an allocation unit that does not exist; no page points to it.
fn orphan(sound: &Sound) -> (PageId, Changes) {
    let pages = Pages::new(&sound.files, &sound.database);
    let iam = sound.pages().find(|page| pages.pfs(*page).is_some_and(|byte| byte.is_iam())).unwrap();
    let gam = PageId::new(1, 3);
    let mixed = pages.read(gam).unwrap();
    let is_free = |page: &PageId| {
        !pages.pfs(*page).is_some_and(|byte| byte.is_allocated())
            && mixed[194 + page.page as usize / 64] >> (page.page / 8 % 8) & 1 == 1
    };
    let free = sound.pages().filter(|page| page.page > 8).find(is_free).unwrap();
    let mut bytes = *pages.read(iam).unwrap();
    bytes[32..36].copy_from_slice(&free.page.to_le_bytes());
    bytes[6..8].copy_from_slice(&256u16.to_le_bytes());
    bytes[24..28].copy_from_slice(&1523u32.to_le_bytes());
    bytes[96 + 46..96 + 46 + 48].fill(0);
    bytes[194..8180].fill(0);
    seal(&mut bytes);
    let pfs = PageId::new(1, 1);
    let mut marks = *pages.read(pfs).unwrap();
    marks[100 + free.page as usize] = 0x70;
    seal(&mut marks);
    (free, BTreeMap::from([(free, bytes), (pfs, marks)]))
}

#[test]
fn wrong_maps_of_live_rows_are_set_and_nothing_is_freed() {
    let sound = Sound::new(&orders::orders(Version::V904, 5, 0));
    let mut tally = Tally::default();
    for (what, changes) in maps(&sound) {
        let hurt = sound.files.with_pages(changes).unwrap();
        let (report, plan) = advice(&hurt, None);
        assert!(!report.findings.is_empty(), "{what}");
        let first = plan.steps.first().unwrap();
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.check.id).collect();
        assert_eq!(first.action, Action::Export, "{what}: {ids:?} {:?}", actions(&plan));
        assert!(first.sql.iter().any(|sql| sql.contains("SET READ_ONLY")), "{what}: {first:#?}");
        let said: String =
            plan.steps.iter().map(|step| format!("{} {} {}", step.title, step.reason, step.risk)).collect();
        assert!(!said.contains("without an owner") && !said.contains("new database"), "{what}: {said}");
        assert!(
            advice(&hurt, Some(&sound.backups)).1.steps[0].action == Action::RestoreFile
                || advice(&hurt, Some(&sound.backups)).1.steps[0].action == Action::RestoreDatabase,
            "{what}"
        );
        tally.follow(&sound, &hurt, what);
    }
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
}

#[test]
fn an_iam_page_that_nothing_names_is_looked_at_and_freed_and_no_place_is_0_0() {
    let sound = Sound::new(&orders::orders(Version::V904, 5, 0));
    let (page, changes) = orphan(&sound);
    let hurt = sound.files.with_pages(changes).unwrap();
    let (report, plan) = advice(&hurt, None);
    assert!(report.findings.iter().all(|finding| finding.check.id == "iam.prev-unseen"));
    assert_eq!(actions(&plan), ["export", "repair_allow_data_loss"], "{plan:#?}");
    assert!(plan.steps.iter().all(|step| step.pages == [page]), "{plan:#?}");
    assert_eq!(plan.situation, Situation::NoLoss);
    // After the repair, the page is free again and every row exists.
    let freed = hurt.with_pages([(PageId::new(1, 1), sound.page(PageId::new(1, 1)))]).unwrap();
    assert!(advice(&freed, None).0.findings.is_empty() && rows_of(&freed) == sound.rows);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_first_step_of_every_check_that_the_lab_triggers_leads_to_a_sound_database_with_every_row() {
    // With MDFSCK_ALL_ADVICE=1, the test tries all damage instead of a sample. It then takes ten minutes.
    let every = if std::env::var_os("MDFSCK_ALL_ADVICE").is_some() { 1 } else { 8 };
    let mut tally = Tally::default();
    let orders = Sound::new(&orders::orders(Version::V904, 5, 9 << 20));
    for (what, changes) in maps(&orders) {
        tally.follow(&orders, &orders.files.with_pages(changes).unwrap(), what);
    }
    let sound: Vec<Vec<u8>> = orders.paths.iter().map(|path| fs::read(path).unwrap()).collect();
    for kind in Kind::ALL {
        for seed in 0..4 {
            let done = damage(&orders.paths, kind, seed).unwrap();
            let hurt = open(&orders.paths);
            orders.paths.iter().zip(&sound).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
            tally.follow(&orders, &hurt, &done.what);
        }
    }
    let small = Sound::new(&specimens::specimen(Version::V904, PageVerify::Checksum, 5));
    let pieces = damages(&small.files, &small.database, None, 2).into_iter().filter(|damage| damage.cut.is_none());
    for damage in pieces.step_by(every) {
        let what = format!("{} {}", damage.kind, damage.page);
        let Ok(hurt) = small.files.with_pages(damage.changes) else { continue };
        tally.follow(&small, &hurt, &what);
    }
    fields(&small, if every == 1 { 4 } else { 1 }, 0, &mut tally);
    println!("{} checks, steps carried out: {:?}", tally.by_check.len(), tally.steps);
    println!("{}", tally.table());
    let (tried, right) = tally.by_check.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    println!("{right} of {tried} first steps are right; {} say what they cannot do", tally.told);
    let never: Vec<&str> =
        findings::registry::ALL.iter().map(|check| check.id).filter(|id| !tally.by_check.contains_key(*id)).collect();
    println!("not triggered: {}", never.join(" "));
    assert!(tally.wrong.is_empty(), "{} wrong: {:#?}", tally.wrong.len(), &tally.wrong[..tally.wrong.len().min(80)]);
}
