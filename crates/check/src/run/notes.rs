//! Notes of a run about its input: truncated or missing files, unreadable pages, and checks that are not made.

use std::ops::RangeInclusive;

use catalog::{Database, UnitKind, column_status};
use findings::registry::limits;
use findings::{Coverage, Options, Place, RecoveryDoubtKind, Scope};
use format::PageId;
use format::page::PAGE_BYTES;
use source::PageSource;

use crate::basis::tallies::{Tallies, UnreadPages};
use crate::basis::units::Shape;
use crate::survey;
use crate::sweep;
use crate::sweep::context::Context;
use crate::sweep::rereads::Moved;
use crate::sweep::warnings;

/// Notes files that are shorter than their header says: their missing pages cannot be verified. Returns one line per
/// file for stderr.
pub(super) fn truncated_files(source: &dyn PageSource, coverage: &mut Coverage) -> Vec<String> {
    let mut errors = Vec::new();
    for file in source.files() {
        if let Some(error) = warnings::cut(file) {
            errors.push(error);
            let lost = u64::from(file.header_pages.unwrap_or_default().saturating_sub(file.pages)).max(1);
            coverage.note(&limits::PAGES_BEYOND_END, format!("file {}", file.file_id), lost);
        }
    }
    errors
}

/// Removes the errors about files that are shorter than their header says, if the files have changed since they were
/// opened: such a file was growing.
pub(super) fn leave_out_growing(source: &dyn PageSource, moved: &Moved, errors: &mut Vec<String>) {
    let growing = source.files().iter().filter(|file| moved.has(&file.path));
    let explained: Vec<String> = growing.filter_map(warnings::cut).collect();
    errors.retain(|error| !explained.contains(error));
}

/// Notes the changes that could not be recovered from the log.
pub(super) fn note_recovery(options: &Options, coverage: &mut Coverage) {
    for doubt in options.recovery.iter().flat_map(|recovery| &recovery.doubts) {
        let reason = match &doubt.kind {
            RecoveryDoubtKind::NotGiven(what) => limits::RECOVERY_NONE.with(&[what]),
            RecoveryDoubtKind::Log(why) | RecoveryDoubtKind::Unsupported(why) => limits::RECOVERY_LOG.with(&[why]),
            RecoveryDoubtKind::Pages(why) => limits::RECOVERY_PAGES.with(&[why]),
            RecoveryDoubtKind::Contradicted(why) => limits::RECOVERY_CONTRADICTED.with(&[why]),
            kind => kind.limit().into(),
        };
        coverage.note(reason, doubt.scope.clone(), doubt.count);
    }
}

/// Returns one line for each file with pages that the operating system could not read.
pub(super) fn unread_pages(context: &Context<'_>, mut unread: UnreadPages) -> Vec<String> {
    for &page in &context.survey.unread {
        let mut bytes = [0; PAGE_BYTES];
        if let Err(error) = context.source.read(page, &mut bytes) {
            unread.add(page, || error.to_string());
        }
    }
    lines(context.source, unread)
}

/// Returns one line for each file with failed reads: the first unreadable page, the cause, and the number of pages.
/// Every failed read is an error of the run, whichever page it affects and in whichever phase it occurs. A page that was
/// not found in an image is none: no read of it was made.
pub(super) fn lines(source: &dyn PageSource, unread: UnreadPages) -> Vec<String> {
    let (mut lines, mut files) = (Vec::new(), Vec::new());
    for (page, error, pages) in unread.into_files().filter(|_| source.carved().is_none()) {
        lines.push(match pages {
            1 => format!("{error} (page {page})"),
            pages => format!("{error} ({pages} pages, the first is {page})"),
        });
        files.extend(source.file(page.file).map(|file| file.path.clone()));
    }
    let others = source.read_faults().failed.into_iter().filter(|failed| !files.contains(&failed.path));
    lines.extend(others.map(|failed| failed.text()));
    lines
}

/// Notes the pages that are or may be in use and that were not found in an image. These are the pages that the sweep
/// would check, and the pages at fixed addresses.
pub(super) fn note_not_found(context: &Context<'_>, coverage: &mut Coverage) {
    let Some(carved) = context.source.carved().filter(|_| context.options.scope.reads_pages()) else { return };
    for file in &context.survey.files {
        let mut missing = PageRanges::default();
        let is_wanted =
            |page: &u32| file.is_fixed(*page) || sweep::may_be_in_scope(context, PageId::new(file.file_id, *page));
        let holes = carved.not_found(file.file_id).flatten().take_while(|page| *page < file.pages);
        holes.filter(is_wanted).for_each(|page| missing.add(page));
        if missing.count > 0 {
            let reason = limits::PAGES_NOT_FOUND.with(&[&missing.text()]);
            coverage.note(reason, format!("file {}", file.file_id), missing.count);
        }
    }
}

/// The most ranges of pages that are listed.
const MOST_RANGES: usize = 8;

/// Pages in ascending order, as ranges. All pages are counted, but only the first ranges are kept.
#[derive(Default)]
struct PageRanges {
    count: u64,
    ranges: u64,
    listed: Vec<RangeInclusive<u32>>,
    last: Option<u32>,
}

impl PageRanges {
    fn add(&mut self, page: u32) {
        let is_next = self.last.is_some_and(|last| last + 1 == page);
        self.last = Some(page);
        self.count += 1;
        if !is_next {
            self.ranges += 1;
            if self.listed.len() < MOST_RANGES {
                self.listed.push(page..=page);
            }
        } else if self.ranges == self.listed.len() as u64
            && let Some(range) = self.listed.last_mut()
        {
            *range = *range.start()..=page;
        }
    }

    fn text(&self) -> String {
        let range = |range: &RangeInclusive<u32>| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{} to {}", range.start(), range.end()),
        };
        let mut text = self.listed.iter().map(range).collect::<Vec<_>>().join(", ");
        match self.ranges - self.listed.len() as u64 {
            0 => {}
            1 => text.push_str(" and 1 more range"),
            more => text.push_str(&format!(" and {more} more ranges")),
        }
        text
    }
}

/// Notes data files that the catalog lists and that the scope needs, but that were not given.
pub(super) fn note_missing(source: &dyn PageSource, database: &Database, scope: &Scope, coverage: &mut Coverage) {
    for row in survey::missing_files(source, database).filter(|row| scope.needs(row.filegroup)) {
        let scope = format!("file {} ({})", row.file_id, row.logical_name);
        coverage.note(limits::FILE_NOT_GIVEN.with(&[&row.physical_name]), scope, 0);
    }
    if let Some(boot) = &database.boot
        && format::version::product(boot.version).is_none()
    {
        coverage.note(limits::VERSION_UNKNOWN.with(&[&boot.version]), "database", 0);
    }
}

/// Notes requested checks that this program does not make or could not make.
pub(super) fn note_unchecked(context: &Context<'_>, swept: &Tallies, coverage: &mut Coverage) {
    if !context.options.scope.reads_pages() {
        return;
    }
    if swept.unclaimed_pages > 0 {
        coverage.note(&limits::PAGES_UNCLAIMED, "database", swept.unclaimed_pages);
    }
    for (at, tally) in swept.units.touched().filter(|(_, tally)| tally.pages() > 0) {
        let Some(unit) = context.units.list().get(at).filter(|unit| context.in_scope(unit)) else { continue };
        let place = || context.place_of(unit);
        if tally.unaudited_rows > 0 {
            let is_dropped =
                unit.row.and_then(|row| context.database.units.get(row)).is_some_and(|row| row.is_dropped());
            let limit = if unit.compressed && unit.shape != Shape::Unknown {
                &limits::RECORDS_COMPRESSED_FORM
            } else if unit.row.is_none() {
                &limits::RECORDS_UNIT_UNKNOWN
            } else if is_dropped {
                &limits::RECORDS_DROPPED
            } else {
                &limits::RECORDS_FORM_UNKNOWN
            };
            coverage.note(limit, place(), tally.unaudited_rows);
        }
        if unit.compressed && unit.shape.is_rows() && unit.shape != Shape::Unknown {
            coverage.note(&limits::HEADERS_COUNTS_COMPRESSED, place(), tally.pages());
        } else if tally.uncounted_pages > 0 {
            coverage.note(&limits::HEADERS_COUNTS_GHOSTS, place(), tally.uncounted_pages);
        }
    }
    if context.options.physical_only {
        return;
    }
    note_features(context, coverage);
}

/// Notes kinds of checks that this program does not implement yet.
fn note_features(context: &Context<'_>, coverage: &mut Coverage) {
    let database = context.database;
    let in_scope = |rowset: &&catalog::Rowset| {
        rowset.units.iter().any(|unit| context.units.list().get(*unit).is_some_and(|unit| context.in_scope(unit)))
    };
    let rowsets = || database.rowsets.iter().filter(in_scope);
    for object in database.memory_optimized_tables() {
        coverage.note(&limits::TABLE_MEMORY_OPTIMIZED, Place::of(object, database.object_name(object)), 0);
    }
    let unknown_units = database.units.iter().filter(|unit| matches!(unit.kind, UnitKind::Other(_))).count();
    if unknown_units > 0 {
        coverage.note(&limits::ALLOCATION_UNIT_TYPE, "database", unknown_units as u64);
    }
    let is_filestream = |column: &catalog::RowsetColumn| column.status & column_status::FILESTREAM != 0;
    for rowset in rowsets().filter(|rowset| rowset.layout.columns.iter().any(is_filestream)) {
        let name = database.object_name(rowset.object_id);
        coverage.note(&limits::FILESTREAM_FILES, Place::of(rowset.object_id, name), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_listed_as_few_ranges_and_all_are_counted() {
        let of = |pages: &[u32]| {
            let mut ranges = PageRanges::default();
            pages.iter().for_each(|page| ranges.add(*page));
            (ranges.count, ranges.text())
        };
        assert_eq!(of(&[7]), (1, "7".to_owned()));
        assert_eq!(of(&[7, 8, 9, 11]), (4, "7 to 9, 11".to_owned()));
        let many: Vec<u32> = (0..20).flat_map(|range| [range * 10, range * 10 + 1]).collect();
        let (count, text) = of(&many);
        assert_eq!(count, 40);
        assert!(text.ends_with("60 to 61, 70 to 71 and 12 more ranges"), "{text}");
        assert!(of(&many[..18]).1.ends_with("and 1 more range"));
    }
}
