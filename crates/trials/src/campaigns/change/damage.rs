//! Damage to backups: pages that are damaged before they are copied, and bytes of the files of backups.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use catalog::Database;
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId};
use lab::workload::{ChainSet, SetKind};
use source::{MemoryFiles, PageSource};
use trials::mutate::{PageRole, Pages, Random, damages, seal};

/// The most pieces of damage in a trial.
const MOST: usize = 3;

/// A piece of damage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blow {
    /// The number of the backup, from 0.
    set: usize,
    /// Whether later backups have the same damage.
    stays: bool,
    form: Form,
    seed: u64,
}

/// What is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A byte of a page. `is_sealed` tells whether the page protection is then made right.
    Byte { target: Target, is_sealed: bool },
    /// A structure, as [`damages`] makes it.
    Structure,
    /// Bytes of the file of a backup.
    Container,
}

/// A kind of page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    /// A page of a user table.
    User,
    /// Such a page that has changed since the last full backup.
    Changed,
    /// A page of a system table.
    Catalog,
    /// A map of allocation.
    Map,
}

impl Blow {
    /// Some pieces of damage to backups of these kinds.
    pub(super) fn some(kinds: &[SetKind], random: &mut Random) -> Vec<Self> {
        (0..=random.below(MOST)).map(|_| Self::one(kinds, random)).collect()
    }

    fn one(kinds: &[SetKind], random: &mut Random) -> Self {
        let of_kind = |wanted: SetKind| -> Vec<usize> {
            kinds.iter().enumerate().filter(|(_, kind)| **kind == wanted).map(|(set, _)| set).collect()
        };
        let set = match random.below(10) {
            0..4 => Some(0),
            4..8 => random.pick(&of_kind(SetKind::Differential)).copied(),
            _ => random.pick(&of_kind(SetKind::Log)).copied(),
        };
        let set = set.unwrap_or_default();
        let target = [Target::User, Target::User, Target::Changed, Target::Catalog, Target::Map][random.below(5)];
        let form = match random.below(8) {
            _ if kinds.get(set) == Some(&SetKind::Log) => Form::Container,
            0 => Form::Container,
            1 | 2 => Form::Structure,
            _ => Form::Byte { target, is_sealed: random.below(3) > 0 },
        };
        Self { set, stays: random.below(3) == 0, form, seed: random.number() }
    }
}

/// A byte of a page that is changed.
#[derive(Clone, Copy)]
struct Edit {
    page: PageId,
    at: usize,
    xor: u8,
    is_sealed: bool,
}

impl Edit {
    fn apply(self, source: &dyn PageSource) -> Option<(PageId, PageBytes)> {
        let mut bytes = *source.read_page(self.page)?;
        if self.is_sealed {
            undo_torn_bits(&mut bytes);
        }
        *bytes.get_mut(self.at)? ^= self.xor;
        if self.is_sealed {
            seal(&mut bytes);
        }
        Some((self.page, bytes))
    }
}

/// Carries out the damage of a trial.
pub(super) struct Spoiler<'p> {
    blows: &'p [Blow],
    /// Damage that later backups have too.
    lasting: Vec<Edit>,
    /// The data files of the last full backup.
    base: Option<MemoryFiles>,
    /// What was damaged: the kind of damage, and the place.
    pub(super) done: Vec<(String, String)>,
}

impl<'p> Spoiler<'p> {
    pub(super) fn new(blows: &'p [Blow]) -> Self {
        Self { blows, lasting: Vec::new(), base: None, done: Vec::new() }
    }

    /// Damages the data files of a backup before they are copied.
    pub(super) fn spoil(&mut self, set: usize, kind: SetKind, files: &[PathBuf]) -> io::Result<()> {
        if self.blows.is_empty() || kind == SetKind::Log {
            return Ok(());
        }
        let contents = files.iter().map(|path| Ok((path.clone(), std::fs::read(path)?)));
        let source = MemoryFiles::open(contents.collect::<io::Result<_>>()?).map_err(io::Error::other)?;
        if kind == SetKind::Full {
            self.base = Some(source.clone());
        }
        let database = catalog::load(&source);
        let mut changes: Vec<_> = self.lasting.iter().filter_map(|edit| edit.apply(&source)).collect();
        for blow in self.blows.iter().filter(|blow| blow.set == set) {
            let mut random = Random::new(blow.seed);
            let (what, place, more) = match blow.form {
                Form::Container => continue,
                Form::Structure => self.structure(&source, &database, &mut random),
                Form::Byte { target, is_sealed } => {
                    let Some(edit) = self.edit((&source, &database), (target, is_sealed), &mut random) else {
                        continue;
                    };
                    if blow.stays {
                        self.lasting.push(edit);
                    }
                    let protection = if is_sealed { "right" } else { "wrong" };
                    let what = format!("{target:?} page with {protection} protection").to_lowercase();
                    (what, format!("page {} byte {}", edit.page, edit.at), edit.apply(&source).into_iter().collect())
                }
            };
            if !more.is_empty() {
                self.done.push((format!("{kind:?}: {what}"), format!("set {} {place}", set + 1)));
                changes.extend(more);
            }
        }
        write(&source, &changes)
    }

    fn structure(
        &self,
        source: &MemoryFiles,
        database: &Database,
        random: &mut Random,
    ) -> (String, String, Vec<(PageId, PageBytes)>) {
        let older = self.base.as_ref().map(|base| base as &dyn PageSource);
        let mut all = damages(source, database, older, random.number());
        all.retain(|damage| damage.cut.is_none() && !damage.changes.iter().any(|(page, _)| is_fixed(*page)));
        match random.pick(&all) {
            Some(damage) => {
                ("a structure".to_owned(), format!("{}, page {}", damage.kind, damage.page), damage.changes.clone())
            }
            None => Default::default(),
        }
    }

    fn edit(
        &self,
        (source, database): (&MemoryFiles, &Database),
        (target, is_sealed): (Target, bool),
        random: &mut Random,
    ) -> Option<Edit> {
        let pages = Pages::new(source, database);
        let is_changed = |page: PageId| {
            let now = source.read_page(page);
            self.base.as_ref().is_some_and(|base| base.read_page(page) != now)
        };
        let is_wanted = |page: &PageId| {
            let Some(bytes) = pages.read(*page).filter(|_| !is_fixed(*page)) else { return false };
            let of_system = pages
                .rowset(Page::new(&bytes).header().alloc_unit())
                .map(|rowset| database.is_system_table(rowset.object_id));
            let is_in_use = pages.pfs(*page).is_some_and(|byte| byte.is_allocated());
            match (pages.role(*page, &bytes), of_system) {
                (PageRole::Pfs | PageRole::Gam | PageRole::Sgam | PageRole::DiffMap | PageRole::MlMap, _) => {
                    target == Target::Map
                }
                (PageRole::Iam, Some(false)) => target == Target::Map,
                (_, Some(true)) => is_in_use && target == Target::Catalog,
                (_, Some(false)) => match target {
                    Target::User => is_in_use,
                    Target::Changed => is_in_use && is_changed(*page),
                    _ => false,
                },
                _ => false,
            }
        };
        let wanted: BTreeSet<PageId> = pages.ids().filter(is_wanted).collect();
        let wanted: Vec<PageId> = wanted.into_iter().collect();
        let page = *random.pick(&wanted)?;
        let at = match (random.below(4), target) {
            (0, _) => random.below(96),
            (_, Target::Map) => 96 + random.below(400),
            _ => random.below(PAGE_BYTES),
        };
        Some(Edit { page, at, xor: 1 << random.below(8), is_sealed })
    }

    /// Damages bytes of the files of backups.
    pub(super) fn spoil_containers(&mut self, sets: &[ChainSet]) -> io::Result<()> {
        for blow in self.blows.iter().filter(|blow| blow.form == Form::Container) {
            let mut random = Random::new(blow.seed);
            let Some(set) = sets.get(blow.set) else { continue };
            let Some(path) = random.pick(&set.files) else { continue };
            let mut bytes = std::fs::read(path)?;
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            std::fs::write(path, bytes)?;
            self.done.push((format!("{:?}: bytes of the file", set.kind), format!("set {}", blow.set + 1)));
        }
        Ok(())
    }
}

/// Whether the lab needs the page to write a backup: file headers and the boot page.
fn is_fixed(page: PageId) -> bool {
    page.page == 0 || page == PageId::BOOT
}

/// Writes changed pages to the data files.
fn write(source: &MemoryFiles, changes: &[(PageId, PageBytes)]) -> io::Result<()> {
    use std::io::{Seek, Write};
    for (page, bytes) in changes {
        let Some(file) = source.file(page.file) else { continue };
        let mut file = std::fs::File::options().write(true).open(&file.path)?;
        file.seek(io::SeekFrom::Start(u64::from(page.page) * PAGE_BYTES as u64))?;
        file.write_all(bytes)?;
    }
    Ok(())
}
