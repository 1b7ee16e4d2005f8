//! Writes backups of a database as SQL Server does. A backup can be full or differential, and it can be striped or
//! compressed. A backup file can contain several backup sets. Pages can change while they are copied.
//!
//! This code is based on what is known of the format and on real backups, and shares no code with the reader. Fields of
//! real backups whose meaning is unknown are left out.

#[cfg(feature = "written-again")]
pub mod again;
mod config;
mod facts;
pub(crate) mod live;
mod origin;
mod set;
mod sink;
pub(crate) mod tape;
mod xpress;

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::bytes::put;
use crate::disk::LabError;
use crate::fixed::CREATED;
use crate::ids::{EXTENT, PAGE, PageId};
use crate::log::{self, Change, Log, LogForm};
use crate::page::{self, Lsn, PageVerify, page_type};
use crate::random::{Random, mix};
use crate::staged::Staged;
use facts::Facts;
use origin::{EXTENT_BYTES, MAP_BITS, Origin, change_bit};
use set::{Content, Extents};
pub use sink::Container;
use tape::{Device, LARGE, SMALL, Tape};
pub use xpress::compress;

/// The full backup on which a differential backup is based.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The data files at the time of the full backup.
    pub files: &'a [PathBuf],
    /// Time of the backup, in minutes after the last shutdown of the database.
    pub step: u8,
}

/// The options for writing a backup set.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackupOptions<'a> {
    /// The full backup on which a differential backup is based; `None` for a full backup.
    pub base: Option<Base<'a>>,
    /// WITH COPY_ONLY.
    pub copy_only: bool,
    /// WITH CHECKSUM.
    pub checksum: bool,
    /// The version of the compressed format; `None` for an uncompressed backup. All sets of a file must have the same
    /// value.
    pub container: Option<Container>,
    /// Number of stripes; it must be the same for all sets of a file.
    pub stripes: u16,
    /// The number of pages that change while they are copied. Each transaction that changes a page also reverts the
    /// change. So the database is sound both with and without redo of the log.
    pub in_flight: usize,
    /// WITH FILE: the IDs of the files to back up; `None` for all files.
    pub only: Option<&'a [u16]>,
    /// Whether the page counts of the set include the files that are not backed up.
    pub counts_all: bool,
}

/// A backup of some data files at a certain time.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// The data files.
    pub files: &'a [PathBuf],
    /// Time of the backup, in minutes after the last shutdown of the database.
    pub step: u8,
    /// The options of the backup.
    pub options: BackupOptions<'a>,
}

/// The result of a backup.
#[derive(Clone, Debug, Default)]
pub struct BackedUp {
    /// The backup files, in the order of the stripes.
    pub files: Vec<PathBuf>,
    /// The pages to which redo must apply changes after the last set is restored, in ascending order.
    pub in_flight: Vec<PageId>,
    /// For each backup file, the byte ranges that a checksum of the backup covers: block headers, stream headers and
    /// compressed records. If the backup was taken WITH CHECKSUM, the ranges also include the pages and the log.
    pub covered: Vec<Vec<Range<u64>>>,
}

/// The reason why no backup could be written.
enum Failure {
    /// The backup file cannot be written.
    Output(std::io::Error),
    /// The database cannot be read.
    Origin(LabError),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Origin(error)
    }
}

/// Writes backup sets one after another to the file `name`.bak. If there are several stripes, each stripe is written to
/// a file of its own, whose name also contains the number of the stripe. The files must not exist yet.
pub fn backup(sets: &[Set<'_>], folder: &Path, name: &str) -> Result<BackedUp, LabError> {
    let Some(first) = sets.first() else { return Ok(BackedUp::default()) };
    let stripes = first.options.stripes.max(1);
    if sets.iter().any(|set| (set.options.stripes.max(1), set.options.container) != (stripes, first.options.container))
    {
        return Err(LabError::Description("sets of one file have the same stripes and compression".to_owned()));
    }
    let file = |stripe: u16| match stripes {
        1 => folder.join(format!("{name}.bak")),
        _ => folder.join(format!("{name}_{}.bak", stripe + 1)),
    };
    let mut done = BackedUp { files: (0..stripes).map(file).collect(), ..BackedUp::default() };
    let device = if first.options.container.is_some() { LARGE } else { SMALL };
    let mut prepared = Vec::new();
    for set in sets {
        prepared.push(Prepared::new(set)?);
    }
    let mut written = Vec::new();
    for (stripe, path) in (0..stripes).zip(&done.files) {
        let failed = |failure| match failure {
            Failure::Output(source) => LabError::Io { path: path.clone(), source },
            Failure::Origin(error) => error,
        };
        let (file, covered) =
            write_stripe(&mut prepared, stripe, path, (first.options.container, device)).map_err(failed)?;
        written.push(file);
        done.covered.push(covered);
    }
    for file in written {
        let path = file.path.clone();
        file.publish().map_err(|source| LabError::Io { path, source })?;
    }
    done.in_flight = prepared.pop().map(|set| set.changes.in_flight).unwrap_or_default();
    Ok(done)
}

fn write_stripe(
    sets: &mut [Prepared],
    stripe: u16,
    path: &Path,
    (container, device): (Option<Container>, Device),
) -> Result<(Staged, Vec<Range<u64>>), Failure> {
    let mut staged = Staged::create(path)?;
    let file = staged.file().try_clone()?;
    let mut tape = match container {
        Some(container) => Tape::new(Box::new(sink::Compressed::new(file, container)?), device),
        None => Tape::new(Box::new(sink::Plain(BufWriter::with_capacity(1 << 20, file))), device),
    };
    let mut catalog = Vec::new();
    for (number, set) in sets.iter_mut().enumerate() {
        if number == 0 {
            set::label(&mut tape, &set.facts, stripe)?;
        }
        let (facts, content) = (&set.facts, &set.content);
        let mut fetch = |region, extent| set.changes.fetch(&mut set.origin, region, extent);
        set::write(&mut tape, (facts, content), stripe.into(), &mut fetch, &mut catalog)?;
    }
    let covered = tape.finish()?;
    Ok((staged, covered))
}

/// A set that is prepared for writing.
struct Prepared {
    origin: Origin,
    facts: Facts,
    content: Content,
    changes: Changes,
}

impl Prepared {
    fn new(set: &Set<'_>) -> Result<Self, LabError> {
        let mut origin = Origin::open(set.files)?;
        let mut facts = Facts::new(&origin, set.step, &set.options)?;
        let boot = origin.boot()?;
        let mut changes = Changes { verify: boot.verify, ..Changes::default() };
        let extents = match set.options.base {
            None => origin.in_use()?,
            Some(base) => {
                let mut earlier = Origin::open(base.files)?;
                let since_base = changed(&mut origin, &mut earlier)?;
                let extents = origin.with_first(&since_base);
                changes.since_base = Some(since_base);
                extents
            }
        };
        let is_copied = |(file, _): &(u16, u32)| set.options.only.is_none_or(|only| only.contains(file));
        let (extents, mut left_out): (Extents, Extents) = extents.into_iter().partition(is_copied);
        left_out.retain(|_| set.options.counts_all);
        let log_form = LogForm::of(facts.version, boot.verify == PageVerify::Checksum);
        let mut log = Log::new(log_form, facts.checkpoint_lsn, facts.version, CREATED);
        let mut regions = vec![extents];
        if set.options.in_flight > 0 {
            regions.push(changes.happen(&mut origin, &regions[0], set.options.in_flight, &mut log)?);
        }
        let (log, end) = log.finish();
        facts.last_lsn = end;
        let seed = mix(u64::from(set.step));
        let regions = regions.iter().map(|extents| deal(extents, facts.stripes, seed)).collect();
        let log_parts = log::parts(facts.first_lsn, log.len() as u64);
        let content = Content { regions, left_out, log, log_parts, log_form, with_checksum: set.options.checksum };
        Ok(Self { origin, facts, content, changes })
    }
}

/// Distributes extents to the stripes in turn, one to three extents at a time.
fn deal(extents: &[(u16, u32)], stripes: u16, seed: u64) -> Vec<Extents> {
    let mut dealt = vec![Extents::new(); usize::from(stripes)];
    let mut dice = Random::new(seed);
    let (mut stripe, mut left) = (0, 1 + dice.below(3));
    for &extent in extents {
        dealt[stripe].push(extent);
        left -= 1;
        if left == 0 {
            (stripe, left) = ((stripe + 1) % dealt.len(), 1 + dice.below(3));
        }
    }
    dealt
}

/// Returns the extents that do not exist in the earlier state of the database, or that differ from that state.
fn changed(origin: &mut Origin, earlier: &mut Origin) -> Result<Extents, LabError> {
    let before: BTreeMap<u16, u32> = earlier.extents().into_iter().collect();
    let mut found = Extents::new();
    for (file, extent) in origin.in_use()? {
        let is_new = before.get(&file).is_none_or(|&extents| extent >= extents);
        if is_new || earlier.read(file, extent)? != origin.read(file, extent)? {
            found.push((file, extent));
        }
    }
    Ok(found)
}

/// The changes of pages that happen during a backup.
#[derive(Default)]
struct Changes {
    verify: PageVerify,
    /// The extents that changed since the full backup; `None` if the set itself is a full backup.
    since_base: Option<Extents>,
    /// For each changed page: the first region that contains the page with the change, and the LSN of the change. A
    /// backup copies pages in regions: region 0 is the first copy, region 1 the second.
    lsns: BTreeMap<PageId, (usize, Lsn)>,
    in_flight: Vec<PageId>,
}

impl Changes {
    /// Simulates changes to pages while the backup copies them. `count` pages change after they were copied: one third
    /// of them in a transaction that stays open, the others in a transaction that commits. The same number of other
    /// pages change before their last copy is made. Returns the extents that are copied a second time.
    fn happen(
        &mut self,
        origin: &mut Origin,
        copied: &[(u16, u32)],
        count: usize,
        log: &mut Log,
    ) -> Result<Extents, LabError> {
        let mut rows = Vec::new();
        for &(file, extent) in copied {
            let bytes = origin.read(file, extent)?;
            let first = extent * EXTENT;
            rows.extend(
                (first..)
                    .zip(bytes.chunks_exact(PAGE))
                    .filter_map(|(page, bytes)| Change::of_first_row(PageId::new(file, page), bytes, 1))
                    .map(|change| Change { is_changed_back: true, ..change }),
            );
        }
        // Spread the changes over the whole database.
        let step = (rows.len() / (2 * count)).max(1);
        let mut chosen: Vec<Change> = rows.into_iter().step_by(step).take(2 * count).collect();
        let settled = chosen.split_off(chosen.len() / 2);
        let open = chosen.split_off(chosen.len() - chosen.len() / 3);
        let mut again: BTreeSet<(u16, u32)> = [(1, 0), (1, 1)].into();
        for (number, (change, lsn)) in settled.iter().zip(log.transaction(&settled, true, CREATED)).enumerate() {
            // One in four of these pages changes between its first and its second copy. The others change before their
            // first copy.
            let region = usize::from(number % 4 == 0);
            if region == 1 {
                again.insert((change.page.file, change.page.page / EXTENT));
            }
            self.lsns.insert(change.page, (region, lsn));
        }
        log.transaction(&chosen, true, CREATED);
        for (change, lsn) in open.iter().zip(log.transaction(&open, false, CREATED)) {
            self.lsns.insert(change.page, (0, lsn));
        }
        self.in_flight = chosen.iter().chain(&open).map(|change| change.page).collect();
        self.in_flight.sort_unstable();
        Ok(again.into_iter().collect())
    }

    /// Returns the bytes of an extent as the backup contains them in the given region.
    fn fetch(&self, origin: &mut Origin, region: usize, (file, extent): (u16, u32)) -> Result<Vec<u8>, LabError> {
        let mut bytes = origin.read(file, extent)?;
        debug_assert_eq!(bytes.len(), EXTENT_BYTES);
        let first = extent * EXTENT;
        for (number, page) in (first..).zip(bytes.chunks_exact_mut(PAGE)) {
            let Some(page) = page.first_chunk_mut::<PAGE>() else { continue };
            let id = PageId::new(file, number);
            if id == PageId::new(1, 9) && page[1] == page_type::BOOT {
                // The database runs during the backup, so the bit for a clean shutdown must be clear.
                self.edit(page, |page| page[96 + 0x27] &= !0x40);
            }
            if let (page_type::DIFFERENTIAL, Some(since_base)) = (page[1], &self.since_base) {
                // The full backup has cleared the differential map. So only the bits of the extents that changed after
                // the full backup are set.
                let bits = since_base.iter().filter(|(of, _)| *of == file).map(|&(_, extent)| change_bit(extent));
                self.edit(page, |page| {
                    page[MAP_BITS].fill(0);
                    bits.filter(|(map, ..)| *map == number).for_each(|(_, at, bit)| page[at] |= bit);
                });
            }
            if let Some((_, lsn)) = self.lsns.get(&id).filter(|(from, _)| region >= *from) {
                self.edit(page, |page| put(page, 40, &lsn.bytes()));
            }
        }
        Ok(bytes)
    }

    /// Changes a page and applies the page protection of the database.
    fn edit(&self, page: &mut [u8; PAGE], change: impl FnOnce(&mut [u8; PAGE])) {
        page::unprotect(page);
        change(page);
        page::protect(page, self.verify);
    }
}
