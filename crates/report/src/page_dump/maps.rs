//! Allocation pages as runs of pages or extents: PFS, GAM, SGAM, DIFF, ML, IAM.

use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, IamHeader, PFS_PAGES, bit, bitmap, pfs_bytes};
use format::{PageId, PageType};

use super::allocation::pfs_text;
use super::lines::line;
use super::parsed::Parsed;

/// A run of pages or extents that share a state.
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) count: u64,
    pub(super) state: String,
}

/// Writes the map as lines; writes nothing if the page is not an allocation page.
pub(super) fn write(out: &mut String, parsed: &Parsed, at: PageId) {
    let (title, runs) = runs_of(parsed, at);
    if runs.is_empty() {
        return;
    }
    line(out, format_args!("\n{title}"));
    let unit = if parsed.kind() == Some(PageType::Pfs) { "page" } else { "extent" };
    for run in runs {
        let first = format!("({}:{})", file_of(parsed, at), run.first);
        let last = match run.count {
            1 => String::new(),
            _ => format!("({}:{})", file_of(parsed, at), run.last),
        };
        let plural = if run.count == 1 { " " } else { "s" };
        let text = format!("  {first:<14} - {last:<14} = {:<44} {:>6} {unit}{plural}", run.state, run.count);
        line(out, format_args!("{}", text.trim_end()));
    }
}

/// The ID of the file with the pages that the map describes.
pub(super) fn file_of(parsed: &Parsed, at: PageId) -> u16 {
    match (parsed.kind(), IamHeader::read(parsed.view())) {
        (Some(PageType::Iam), Some(header)) => header.start.file,
        _ => at.file,
    }
}

/// The contents of an allocation page, as runs. For a run of extents, `last` is the first page of the last extent, as
/// in DBCC PAGE.
pub(super) fn runs_of(parsed: &Parsed, at: PageId) -> (&'static str, Vec<Run>) {
    let page = parsed.view();
    let (title, clear, set) = match parsed.kind() {
        Some(PageType::Pfs) => {
            let base = u64::from(at.page / PFS_PAGES * PFS_PAGES);
            let states = pfs_bytes(page).into_iter().flatten().copied();
            return ("PFS: page allocation status", runs(base, 1, states, |byte| pfs_text(*byte)));
        }
        Some(PageType::Gam) => ("GAM: extent allocation status", "ALLOCATED", "NOT ALLOCATED"),
        Some(PageType::Sgam) => ("SGAM: extent allocation status", "NOT ALLOCATED", "ALLOCATED"),
        Some(PageType::DiffMap) => ("DIFF_MAP: extent change status", "NOT CHANGED", "CHANGED"),
        Some(PageType::MlMap) => ("ML_MAP: extent logging status", "NOT MIN_LOGGED", "MIN_LOGGED"),
        Some(PageType::Iam) => ("IAM: extent allocation status", "NOT ALLOCATED", "ALLOCATED"),
        _ => return ("", Vec::new()),
    };
    let base = match (parsed.kind(), IamHeader::read(page)) {
        (Some(PageType::Iam), Some(header)) => header.start.page,
        _ => at.page / INTERVAL_PAGES * INTERVAL_PAGES,
    };
    let bits = bitmap(page).into_iter().flat_map(|map| (0..INTERVAL_PAGES / EXTENT_PAGES).map(|at| bit(map, at)));
    let text = |is_set: &bool| if *is_set { set } else { clear }.to_owned();
    (title, runs(u64::from(base), u64::from(EXTENT_PAGES), bits, text))
}

/// Combines adjacent pages or extents with the same state into runs. `base` is the first page number; `step` is 1 for
/// pages and 8 for extents. `last` of a run of extents is the first page of its last extent.
fn runs<T: PartialEq>(base: u64, step: u64, states: impl Iterator<Item = T>, text: impl Fn(&T) -> String) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut current: Option<T> = None;
    for (at, state) in (base..).step_by(step as usize).zip(states) {
        match runs.last_mut() {
            Some(run) if current.as_ref() == Some(&state) => {
                run.last = at;
                run.count += 1;
            }
            _ => {
                runs.push(Run { first: at, last: at, count: 1, state: text(&state) });
                current = Some(state);
            }
        }
    }
    runs
}
