//! Makes patterns from the runs of damaged pages.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use findings::Content;

use super::place::period;
use super::{Pattern, PatternKind, Run, Runs};

/// If a content has more runs in a file than this, they are one pattern.
const MOST_RUNS_ALONE: usize = 8;
/// The maximum number of distances between the pages of one file and the places that their headers name. If there are
/// more, the distances with the fewest pages are one pattern.
const MOST_DISTANCES: usize = 8;
/// The maximum number of patterns.
const MOST_PATTERNS: usize = 100;
/// A pattern is listed if the findings of at least one in this number of its pages are proofs.
const PROVEN_SHARE: u64 = 4;

/// The patterns in these runs, by file and first page. `files` has the IDs of the files of the database.
pub(super) fn evaluate(runs: &Runs, files: &[u16]) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    let mut distances: BTreeMap<(u16, u16), Vec<Pattern>> = BTreeMap::new();
    let overwritten = overwritten(runs);
    let is_done = |file_id: u16, content: Content| {
        matches!(content, Content::Noise | Content::NoHeader) && overwritten.iter().any(|of| of.file_id == file_id)
    };
    for (&(file_id, content), runs) in runs.runs.iter().filter(|((file_id, content), _)| !is_done(*file_id, *content)) {
        let kind = kind_of(content, runs, files);
        let found = of_runs((file_id, kind), runs);
        match kind {
            PatternKind::OtherPlace { file, .. } => distances.entry((file_id, file)).or_default().extend(found),
            _ => patterns.extend(found),
        }
    }
    for of_files in distances.into_values() {
        patterns.extend(few_distances(of_files));
    }
    patterns.extend(overwritten);
    patterns.sort_by_key(|pattern| (pattern.file_id, pattern.first, *pattern));
    let mut rest = runs.rest.clone();
    for dropped in patterns.drain(MOST_PATTERNS.min(patterns.len())..) {
        let (first, last, pages) = rest.entry(dropped.file_id).or_insert((dropped.first, dropped.last, 0));
        *first = dropped.first.min(*first);
        *last = dropped.last.max(*last);
        *pages += dropped.pages;
    }
    let rest = rest.into_iter().filter(|(_, (.., pages))| *pages > 0);
    patterns.extend(rest.take(MOST_PATTERNS).map(|(file_id, (first, last, pages))| {
        let kind = PatternKind::More;
        Pattern { file_id, first, last, pages, runs: pages, every: None, kind }
    }));
    patterns
}

/// In files in which blocks at a fixed distance are overwritten: all these blocks. The rest of a page may be as random as
/// the overwritten bytes, so pages of noise and pages without a header belong together.
fn overwritten(runs: &Runs) -> Vec<Pattern> {
    let files = runs.runs.keys().filter(|(_, content)| *content == Content::NoHeader).map(|(file_id, _)| *file_id);
    let of_file = |file_id| {
        let of = |content| runs.runs.get(&(file_id, content)).into_iter().flatten().copied();
        let mut all: Vec<Run> = of(Content::NoHeader).chain(of(Content::Noise)).collect();
        all.sort_unstable_by_key(|run| run.first);
        let every = period(&places(&all))?;
        pattern_of((file_id, PatternKind::Headers), &all, Some(every))
    };
    files.filter_map(of_file).collect()
}

fn kind_of(content: Content, runs: &[Run], files: &[u16]) -> PatternKind {
    match content {
        Content::Same(byte) => PatternKind::Same(byte),
        Content::Text => PatternKind::Text,
        Content::Noise => PatternKind::Noise,
        Content::OtherPlace { file, distance, .. } => PatternKind::OtherPlace {
            file,
            distance: Some(distance),
            has_file: files.contains(&file),
            is_unknown: 2 * sum(runs, |run| run.unknown) > sum(runs, |run| run.pages),
        },
        Content::Shifted(bytes) => PatternKind::Shifted(bytes),
        Content::NoHeader => PatternKind::Headers,
        Content::Changed => PatternKind::Changed,
        Content::Foreign => PatternKind::Foreign,
    }
}

fn sum(runs: &[Run], of: impl Fn(&Run) -> u32) -> u64 {
    runs.iter().map(|run| u64::from(of(run))).sum()
}

fn is_proven(runs: &[Run]) -> bool {
    sum(runs, |run| run.proven) * PROVEN_SHARE >= sum(runs, |run| run.pages)
}

/// The patterns of the pages of one file with the same content.
fn of_runs((file_id, kind): (u16, PatternKind), runs: &[Run]) -> Vec<Pattern> {
    if let Some(every) = period(&places(runs)) {
        return pattern_of((file_id, kind), runs, Some(every)).into_iter().collect();
    }
    // One page says enough only if its content is exact. Changed bytes say nothing unless they repeat at a distance.
    let least = match kind {
        PatternKind::Headers | PatternKind::Changed => return Vec::new(),
        PatternKind::Noise | PatternKind::Shifted(_) | PatternKind::Foreign => 2,
        _ => 1,
    };
    let long: Vec<Run> = runs.iter().filter(|run| run.pages >= least).copied().collect();
    let at_once = if long.len() > MOST_RUNS_ALONE { long.len() } else { 1 };
    long.chunks(at_once).filter_map(|runs| pattern_of((file_id, kind), runs, None)).collect()
}

/// The first and the last page of each run.
fn places(runs: &[Run]) -> Vec<(u32, u32)> {
    runs.iter().map(|run| (run.first, run.last)).collect()
}

/// The pattern of all these runs, which are in page order; `None` if too few of their findings are proofs.
fn pattern_of((file_id, kind): (u16, PatternKind), runs: &[Run], every: Option<(u32, u32)>) -> Option<Pattern> {
    let (first, last) = (runs.first()?, runs.last().filter(|_| is_proven(runs))?);
    let (pages, count) = (sum(runs, |run| run.pages), runs.len() as u64);
    Some(Pattern { file_id, first: first.first, last: last.last, pages, runs: count, every, kind })
}

/// Keeps the distances with the most pages, and makes one pattern of all others.
fn few_distances(patterns: Vec<Pattern>) -> Vec<Pattern> {
    let mut pages: BTreeMap<PatternKind, u64> = BTreeMap::new();
    for pattern in &patterns {
        *pages.entry(pattern.kind).or_default() += pattern.pages;
    }
    if pages.len() <= MOST_DISTANCES {
        return patterns;
    }
    let mut kinds: Vec<(PatternKind, u64)> = pages.into_iter().collect();
    kinds.sort_by_key(|&(kind, pages)| (Reverse(pages), kind));
    kinds.truncate(MOST_DISTANCES);
    // A distance that only one page has says nothing among many.
    kinds.retain(|(_, pages)| *pages > 1);
    let is_kept = |pattern: &Pattern| kinds.iter().any(|(kind, _)| *kind == pattern.kind);
    let (kept, others): (Vec<Pattern>, Vec<Pattern>) = patterns.into_iter().partition(is_kept);
    let together = together(&others);
    kept.into_iter().chain(together).collect()
}

/// One pattern of pages with different distances.
fn together(patterns: &[Pattern]) -> Option<Pattern> {
    let some = *patterns.first()?;
    let PatternKind::OtherPlace { file, has_file, .. } = some.kind else { return None };
    let pages: u64 = patterns.iter().map(|pattern| pattern.pages).sum();
    let is_unknown = |pattern: &&Pattern| matches!(pattern.kind, PatternKind::OtherPlace { is_unknown: true, .. });
    let unknown: u64 = patterns.iter().filter(is_unknown).map(|pattern| pattern.pages).sum();
    let kind = PatternKind::OtherPlace { file, distance: None, has_file, is_unknown: 2 * unknown > pages };
    Some(Pattern {
        first: patterns.iter().map(|pattern| pattern.first).min()?,
        last: patterns.iter().map(|pattern| pattern.last).max()?,
        pages,
        runs: patterns.iter().map(|pattern| pattern.runs).sum(),
        every: None,
        kind,
        ..some
    })
}
