//! A check must not use more memory than its grant allows. These trials check larger databases in which all pages of
//! one kind are damaged. The program runs as a process.

use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageType};
use lab::Version;
use trials::mutate::{Random, seal};

use super::resources::least_grant;
use crate::outcome::{Outcome, Verdict};
use crate::process::Program;
use crate::subject::folder;

/// The maximum memory of a check divided by its memory grant. A check may exceed its grant by 5 %.
pub(super) const MOST: f64 = 1.05;

/// The value of the field `key` as a number, from the last of the final two JSON lines that has it.
pub(super) fn number(text: &str, key: &str) -> Option<f64> {
    let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.take(2).find_map(|line| line[key].as_f64())
}

pub(super) fn trial(program: &Program, random: &mut Random, name: &str) -> Outcome {
    let bytes = *random.pick(&[9 << 20, 12 << 20, 24 << 20, 48 << 20]).unwrap_or(&(12 << 20));
    let version = *random.pick(&Version::ALL).unwrap_or(&Version::V957);
    let made = folder();
    let description = lab::orders::orders(version, random.number(), bytes);
    let written = lab::write(&description, made.path()).unwrap_or_else(|error| panic!("{error}"));
    let damage = match random.below(4) {
        0 => "sound".to_owned(),
        _ => damage_all(&written.files, random),
    };
    let what = format!("orders {version:?} of {} MB, {damage}", bytes >> 20);
    let paths: Vec<String> = written.files.iter().map(|path| path.display().to_string()).collect();
    let mut arguments = vec!["check", "--format", "json", "--max-findings", "100"];
    let threads = ["1", "2", "4"];
    arguments.extend(["--maxdop", threads[random.below(threads.len())]]);
    arguments.extend(paths.iter().map(String::as_str));
    kept(program, &arguments, name, what)
}

/// Runs the program once with the minimum grant and once with the default grant. Each run must keep to its grant, and
/// both runs must give the same answer.
pub(super) fn kept(program: &Program, arguments: &[&str], name: &str, what: String) -> Outcome {
    let Some(least) = least_grant(program, arguments) else {
        return Outcome::new(name, what, Verdict::Broke("no least grant is named".to_owned()));
    };
    let (mut worst, mut answers) = (0.0_f64, Vec::new());
    for grant in [&["--memory", &least][..], &[]] {
        let done = program.run(&[arguments, grant].concat()).end();
        if !done.is_orderly() {
            return Outcome::new(name, what, Verdict::Broke(format!("{grant:?}: {}", done.story())));
        }
        let numbers = (number(&done.stdout, "memory_peak"), number(&done.stdout, "memory_granted"));
        let (Some(peak), Some(granted)) = numbers else {
            return Outcome::new(
                name,
                what,
                Verdict::Broke(format!("{grant:?}: no peak is reported: {}", done.story())),
            );
        };
        worst = worst.max(peak / granted.max(1.0));
        if peak > granted * MOST {
            let story = format!("{grant:?}: {:.1} MB of {:.1}", peak / 1048576.0, granted / 1048576.0);
            return Outcome { peak_ratio: Some(worst), ..Outcome::new(name, what, Verdict::Exceeded(story)) };
        }
        // The last two lines contain times and memory.
        let lines: Vec<&str> = done.stdout.lines().collect();
        let answer = lines.split_last_chunk::<2>().map(|(answer, _)| answer.join("\n")).unwrap_or_default();
        answers.push((done.code, answer));
    }
    let verdict = match answers.as_slice() {
        [least, default] if least != default => {
            Verdict::Differs("with the least grant and with the default one".to_owned())
        }
        _ => Verdict::Kept,
    };
    Outcome { peak_ratio: Some(worst), ..Outcome::new(name, what, verdict) }
}

/// Changes the same byte on every page of one kind. Returns a description of the damage.
fn damage_all(files: &[std::path::PathBuf], random: &mut Random) -> String {
    let kinds = [PageType::Data, PageType::Index, PageType::TextMix, PageType::Iam];
    let kind = *random.pick(&kinds).unwrap_or(&PageType::Data);
    let at = match random.below(3) {
        0 => random.below(60),
        1 => 96 + random.below(200),
        _ => PAGE_BYTES - 1 - random.below(40),
    };
    let flips = 1 + random.below(255) as u8;
    let mut changed = 0;
    for path in files {
        let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for page in bytes.as_chunks_mut::<PAGE_BYTES>().0 {
            changed += u32::from(damage(page, kind, at, flips));
        }
        std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    format!("byte {at} ^ {flips:02X} on {changed} pages of type {kind:?}")
}

fn damage(page: &mut PageBytes, kind: PageType, at: usize, flips: u8) -> bool {
    let header = Page::new(page).header();
    let is_one = header.kind() == Some(kind) && header.alloc_unit().0 >> 48 > 1;
    if let (true, Some(byte)) = (is_one, page.get_mut(at)) {
        *byte ^= flips;
        undo_torn_bits(page);
        seal(page);
    }
    is_one
}
