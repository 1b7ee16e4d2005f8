//! What is left for windows over a database that changes, without a check.

use std::path::Path;

use check::Progress;
use check::change::left_for_windows;
use findings::Options;
use format::page::PAGE_BYTES;
use report::estimate::Left;
use report::windows::ByTable;
use source::PageSource;
use source::backup::SetKind;

use super::window::changing::left_then;
use crate::change::{former, label};
use crate::host::warn;
use crate::input::Input;
use crate::ledgers::path_in_scope;
use crate::prepare::Prepared;
use crate::request::Request;
use crate::spread::Before;
use crate::spread::ledger::Base;

/// What windows with `--keep-parts` have left, for an estimate. `None` if it was not asked for, or if there is no ledger yet;
/// a ledger that cannot be used is a warning.
pub fn left(
    request: &Request,
    (input, before): (&Input, Option<&Before>),
    (source, prepared): (&dyn PageSource, &Prepared<'_>),
    listener: &dyn Progress,
) -> Option<Left> {
    let (history, _) = (request.results.history.as_deref()?, request.keep_parts?);
    let found = found(request, (history, before?), input, (source, prepared), listener);
    found.unwrap_or_else(|why| {
        warn(why);
        None
    })
}

fn found(
    request: &Request,
    (history, before): (&Path, &Before),
    input: &Input,
    (source, prepared): (&dyn PageSource, &Prepared<'_>),
    listener: &dyn Progress,
) -> Result<Option<Left>, String> {
    let Input::Backups(backups) = input else { return Ok(None) };
    let (pages, scope) = (&backups.pages, &prepared.options.scope);
    let full = pages.sets().first().filter(|set| set.kind == SetKind::Full);
    let Some((full, guid)) = full.and_then(|set| Some((set, set.guid.clone()?))) else { return Ok(None) };
    let path = path_in_scope(history, &guid, scope);
    if !path.exists() {
        return Ok(None);
    }
    let base = Base::of(full, before, (&guid, pages), (request.keep_parts, scope))?;
    let ledger = former(&path, &base, request.keep_parts)?;
    let options = Options { hash_key: Some(ledger.key()), ..prepared.options.clone() };
    let done = left_for_windows(source, &prepared.database, &options, listener, &ledger);
    let done = done.map_err(|error| error.to_string())?;
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    let closed = done.reuse.tables.iter().filter(|table| table.open_pages == 0).count() as u64;
    // Only another state tells how much changes from one window to the next.
    let image = pages.sets().last().map(label).unwrap_or_default();
    let then = left_then(ledger.note()).filter(|(of, _)| *of != image);
    Ok(Some(Left {
        by_table: ByTable { tables: done.reuse.tables.len() as u64, closed },
        all_bytes: bytes(done.pages),
        left_bytes: bytes(done.open_pages),
        new_bytes: then.map(|(_, pages)| bytes(done.open_pages.saturating_sub(pages))),
    }))
}
