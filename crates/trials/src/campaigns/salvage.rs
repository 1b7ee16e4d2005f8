//! Damaged tables are read and salvaged. All rows of undamaged pages must be found, and no row may be invented. Rows
//! rebuilt from indexes must equal the lost rows, and rows reported as lost must really be lost.

mod beginning;
mod damage;
mod judge;
mod lost;
mod real;

use format::PageId;
use format::page::PAGE_BYTES;
use source::{MemoryFiles, PageSource};
use trials::mutate::Random;

use super::Bench;
use crate::outcome::{Outcome, Verdict};
use crate::sound::Sound;
pub(crate) use beginning::trial as beginning;
pub(crate) use real::Reals;

/// Runs the trial with this seed. Odd seeds use a real database, if the corpus is available.
pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    with_sound(bench, seed, of)
}

/// Runs a trial with the sound database of this seed.
fn with_sound(bench: &Bench, seed: u64, of: impl FnOnce(&Bench, Sound<'_>, u64) -> Outcome) -> Outcome {
    let real = (seed % 2 == 1).then(|| bench.reals.of(seed));
    if let Some(real) = real.as_deref().and_then(Option::as_ref) {
        return of(bench, real.sound(), seed);
    }
    let subject = bench.subjects.of(seed);
    match subject.sound() {
        Ok(sound) => of(bench, sound, seed),
        Err(text) => Outcome::new("sound tables", &subject.name, Verdict::Broke(text.to_owned())),
    }
}

fn of(bench: &Bench, sound: Sound<'_>, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let damage = damage::damage(&sound, &mut random);
    let pages: Vec<String> = damage.changes.keys().map(ToString::to_string).collect();
    let what = format!("{} pages {pages:?}", sound.name);
    let files = match sound.files.with_pages(damage.changes.clone()) {
        Ok(files) => files,
        Err(error) => return Outcome::new(damage.kind, what, Verdict::Broke(error.to_string())),
    };
    bench.keep(|| files_of(&files));
    let database = catalog::load(&files);
    let judge = judge::Judge::new(sound, &files, &database, &damage);
    let mut outcome = Outcome::new(damage.kind.clone(), what, Verdict::Kept);
    outcome.executions = 0;
    for whole in sound.tables.iter().filter(|whole| judge.is_reached(whole)) {
        outcome.executions += 1;
        match judge.table(whole) {
            Ok(excused) => outcome.harmless = outcome.harmless.or(excused),
            Err(text) => {
                outcome.verdict = Verdict::Broke(format!("{}: {text}", whole.table.name));
                break;
            }
        }
    }
    outcome
}

fn files_of(files: &MemoryFiles) -> Vec<crate::subject::Content> {
    let content = |file: &source::DataFile| {
        let mut bytes = Vec::new();
        for page in 0..file.pages {
            let read = files.read_page(PageId::new(file.file_id, page));
            bytes.extend_from_slice(read.map_or([0; PAGE_BYTES], |bytes| *bytes).as_slice());
        }
        (file.path.clone(), bytes)
    };
    files.files().iter().map(content).collect()
}
