//! Backups of every type, compression and striping, damaged by storage faults or by changed bytes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lab::backup::{BackupOptions, Base, Container, Set, backup};
use source::PageSource;
use tempfile::TempDir;
use trials::mutate::Random;

use super::Bench;
use crate::baseline::{Baseline, clocked, told};
use crate::faults::{Fault, Others, inflict};
use crate::judge::{changed_files, judge};
use crate::outcome::Outcome;
use crate::reach::Reach;
use crate::subject::{Content, Subject, check_pages, folder, store};

/// The reason why changed bytes outside of all checksums may go unnoticed.
const NOT_COVERED: &str = "Padding, texts and numbers of a backup that no checksum covers.";
/// The number of backups in memory at the same time.
const KEPT: usize = 6;

/// A sound backup.
struct Sound {
    subject: Arc<Subject>,
    name: &'static str,
    contents: Vec<Content>,
    /// For each file, the byte ranges that a checksum covers. The list is empty for a file that no trial damages.
    covered: Vec<Vec<std::ops::Range<u64>>>,
    /// The index of the first file that trials may damage. Files before this index belong to the full backup on which a
    /// differential backup is based.
    first: usize,
    baseline: Baseline,
    _folder: TempDir,
    paths: Vec<PathBuf>,
}

/// A form of backup: its type, compression, checksums and number of stripes.
#[derive(Clone, Copy)]
struct Choice {
    name: &'static str,
    container: Option<Container>,
    checksum: bool,
    stripes: u16,
    is_differential: bool,
}

const fn choice(name: &'static str, container: Option<Container>, checksum: bool, stripes: u16) -> Choice {
    Choice { name, container, checksum, stripes, is_differential: false }
}

const CHOICES: [Choice; 8] = [
    choice("full", None, false, 1),
    choice("full, checksum", None, true, 1),
    choice("compressed", Some(Container::Version2), false, 1),
    choice("compressed, checksum", Some(Container::Version2), true, 1),
    choice("compressed, old container", Some(Container::Version1), true, 1),
    choice("striped, checksum", None, true, 3),
    Choice { name: "differential, checksum", container: None, checksum: true, stripes: 1, is_differential: true },
    Choice {
        name: "differential, compressed, striped",
        container: Some(Container::Version2),
        checksum: true,
        stripes: 2,
        is_differential: true,
    },
];

impl Sound {
    fn new(subject: Arc<Subject>, choice: Choice) -> Self {
        let made = folder();
        let files = subject.store(made.path()).unwrap_or_else(|error| panic!("{}: {error}", subject.name));
        let options = BackupOptions {
            checksum: choice.checksum,
            container: choice.container,
            stripes: choice.stripes,
            ..BackupOptions::default()
        };
        let write = |files: &[PathBuf], step, options, name: &str| {
            backup(&[Set { files, step, options }], made.path(), name)
                .unwrap_or_else(|error| panic!("{}, {}: {error}", subject.name, choice.name))
        };
        let (paths, covered, first) = match choice.is_differential {
            false => {
                let done = write(&files, 1, options, "full");
                (done.files, done.covered, 0)
            }
            true => {
                let before = made.path().join("before");
                let earlier = std::fs::create_dir(&before).and_then(|()| store(subject.earlier(), &before));
                let earlier = earlier.unwrap_or_else(|error| panic!("{}: {error}", before.display()));
                let full = write(&earlier, 1, BackupOptions::default(), "full");
                let base = Some(Base { files: &earlier, step: 1 });
                let done = write(&files, 2, BackupOptions { base, ..options }, "differential");
                ([full.files, done.files].concat(), [full.covered, done.covered].concat(), 1)
            }
        };
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (PathBuf::from(path.file_name().unwrap_or_default()), bytes)
        };
        let contents = paths.iter().map(read).collect();
        let (report, time) = clocked(|| check_pages(open(&paths).as_ref(), 0));
        assert!(report.findings.is_empty(), "{}, {}: a sound backup has findings", subject.name, choice.name);
        let baseline = Baseline { not_verified: told(&report), time };
        Self { subject, name: choice.name, contents, covered, first, baseline, _folder: made, paths }
    }
}

fn open(paths: &[PathBuf]) -> Box<dyn PageSource> {
    source::open(paths, &[], false).unwrap_or_else(|error| panic!("a sound backup: {error}"))
}

/// The backups that trials share.
#[derive(Default)]
pub(crate) struct Backups(Mutex<Vec<(u64, Arc<Sound>)>>);

impl Backups {
    /// The backup for this seed. Neighboring seeds use the same database, but not always the same form of backup.
    fn of(&self, bench: &Bench, seed: u64) -> Arc<Sound> {
        let key = seed / FORM_TRIALS;
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, sound)) = kept.iter().find(|(own, _)| *own == key) {
            return Arc::clone(sound);
        }
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        let options = CHOICES[Random::new(key).below(CHOICES.len())];
        let sound = Arc::new(Sound::new(bench.subjects.of(seed), options));
        kept.push((key, Arc::clone(&sound)));
        sound
    }
}

/// The number of consecutive trials that damage the same backup.
const FORM_TRIALS: u64 = 10;

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let sound = bench.backups.of(bench, seed);
    let foreign = bench.subjects.of(seed + super::ANOTHER);
    let mut random = Random::new(seed);
    let others = Others { foreign: foreign.contents.first().map_or(&[], |(_, bytes)| bytes), earlier: &[] };
    let (kind, what, number, contents) = loop {
        let number = sound.first + random.below(sound.contents.len() - sound.first);
        let mut contents = sound.contents.clone();
        let Some(file) = contents.get_mut(number) else { continue };
        // Half of the trials change a byte that a checksum covers.
        let done = match random.below(2) {
            0 => flip(file, &sound.covered[number], &mut random).map(|what| ("covered byte changed", what)),
            _ => {
                let fault = Fault::ANY_FILE[random.below(Fault::ANY_FILE.len())];
                inflict(fault, file, &others, &mut random).map(|what| (fault.name(), what))
            }
        };
        if let Some((kind, what)) = done {
            break (kind, what, number, contents);
        }
    };
    let (before, after) = (&sound.contents[number].1, &contents[number].1);
    let changes = |place: &std::ops::Range<u64>| {
        let place = place.start as usize..place.end as usize;
        let (then, now) = (before.get(place.clone()), after.get(place));
        then != now && (sum(then).is_none() || sum(then) != sum(now))
    };
    let is_covered = sound.covered[number].iter().any(changes);
    bench.keep(|| contents.clone());
    let made = folder();
    let paths = store(&contents, made.path()).unwrap_or_else(|error| panic!("{error}"));
    let reopen = || source::open(&paths, &[], false).map_err(|error| error.to_string());
    let check = || reopen().map(|pages| check_pages(pages.as_ref(), seed));
    let reach = || {
        let reach = match reopen() {
            Ok(damaged) => Reach::of(&sound.subject, open(&sound.paths).as_ref(), damaged.as_ref()),
            Err(_) => Reach::default(),
        };
        reach.in_files(changed_files(&sound.contents, &contents))
    };
    let judged = judge(&sound.baseline, check, reach);
    Outcome {
        harmless: (!is_covered).then(|| NOT_COVERED.to_owned()),
        time_ratio: judged.time_ratio,
        ..Outcome::new(format!("{}: {kind}", sound.name), format!("{} {what}", sound.subject.name), judged.verdict)
    }
}

/// Computes the checksum of a region; `None` if the region does not consist of whole sectors. Like a page checksum,
/// this checksum does not reveal two changes that cancel each other out, for example in the filler after the last
/// extent.
fn sum(bytes: Option<&[u8]>) -> Option<u32> {
    let sectors = bytes?.as_chunks::<512>();
    let words = |sector: &[u8; 512]| sector.as_chunks().0.iter().fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
    let is_region = !sectors.0.is_empty() && sectors.1.is_empty();
    is_region.then(|| sectors.0.iter().fold(0u32, |sum, sector| sum.rotate_left(1) ^ words(sector)))
}

fn flip(file: &mut Content, covered: &[std::ops::Range<u64>], random: &mut Random) -> Option<String> {
    let place = random.pick(covered)?;
    let at = place.start as usize + random.below((place.end - place.start) as usize);
    let length = file.1.len();
    let byte = file.1.get_mut(at)?;
    let old = *byte;
    *byte ^= 1 + random.below(255) as u8;
    Some(format!("{} byte {at} of {length}, in {place:?}: {old:02X} -> {:02X}", file.0.display(), *byte))
}
