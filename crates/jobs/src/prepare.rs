//! Prepares the check of one database: opens and recovers the database, and decides how much memory the check may use.

use catalog::Database;
use check::part::Fingerprint;
use findings::{Options, Scope};
use source::PageSource;
use source::backup::Hints;
use source::backup::SetChoice;

use crate::failure::Failure;
use crate::host::warn;
use crate::input::{Input, Reading};
use crate::recover::GoingOn;
use crate::request::{Constraints, Request, RoomOptions};
use crate::spool::Spool;
use crate::spread::{Spread, What};
use crate::{audit, recover, scope, size};

/// A database that is ready to be checked.
pub struct Prepared<'i> {
    /// The result of recovery. It includes the recovered pages, if there are any.
    pub recovered: recover::Outcome<'i>,
    /// The catalog of the database.
    pub database: Database,
    /// The fingerprint of the catalog. If several processes share a check, all of them must read the same catalog.
    pub catalog: Fingerprint,
    /// The options of the check.
    pub options: Options,
}

/// Reads the catalog, recovers the database with its log, and decides how much memory the check may use.
///
/// # Errors
/// If the database cannot be checked with these options.
pub fn prepare<'i>(
    request: &Request,
    input: &'i Input,
    listener: &dyn check::Progress,
    what: &What<'_>,
) -> Result<Prepared<'i>, Failure> {
    prepare_with(request, input, listener, what, None)
}

/// Like [`prepare`], but with what an earlier proof of these backups has kept of redo.
///
/// # Errors
/// If the database cannot be checked with these options.
pub fn prepare_with<'i>(
    request: &Request,
    input: &'i Input,
    listener: &dyn check::Progress,
    what: &What<'_>,
    redo: Option<&mut dyn GoingOn>,
) -> Result<Prepared<'i>, Failure> {
    let memory = request.recovery.room.memory;
    // The cache for the content of files in object storage also counts toward the grant. Databases that are checked at
    // the same time share this cache.
    let held = source::storage::held_bytes() / u64::from(request.databases.max(1));
    let source = input.pages();
    let common = what.spread.common();
    listener.phase("load", 0);
    let load = |pages: &dyn PageSource| match common {
        Some(common) => check::part::load(pages, &common.key),
        None => (catalog::load(pages), Fingerprint::default()),
    };
    let (as_stored, of_stored) = load(source);
    listener.phase("recover", 0);
    let (log_audit, recovered) = audit::beside(
        request.run.maxdop,
        || match common.and_then(|common| common.audit.as_ref()) {
            Some(known) => known.clone(),
            None => audit::of_check(request, !matches!(what.spread, Spread::None), source, &as_stored),
        },
        |is_newer| recover::of_input(input, &request.paths, &request.recovery, &as_stored, is_newer, redo),
    );
    let mut recovered = recovered?;
    let pages = recovered.pages_or(source);
    let (database, catalog) = if recovered.pages.is_some() { load(pages) } else { (as_stored, of_stored) };
    // If a watcher runs this check, omits the warning about other backup sets in the file, since the watcher checks
    // each set separately.
    let is_watched = request.results.watched.is_some();
    let asked = options(request, &database);
    let scope = asked.as_ref().map_or(&Scope::Database, |options| &options.scope);
    let warnings = check::warnings(pages, &database, scope);
    let told = warnings.iter().filter(|warning| !(is_watched && warning.id == check::OTHER_SETS));
    told.for_each(|warning| warn(&warning.text));
    let mut options = Options {
        recovery: recovered.summary.clone(),
        log_audit,
        memory_bytes: memory,
        mapped_pages: what.spread.mapped_pages(),
        hash_key: common.map(|common| common.key.clone()),
        ..asked?
    };
    let least = check::minimum_memory_bytes(pages, &database, &options);
    if let Some(granted) = memory {
        // If the check needs the memory, recovered pages are moved to temporary files.
        let least = least.saturating_add(held);
        if granted < least.saturating_add(recovered.kept_bytes()) {
            recovered.keep_at_most(granted.saturating_sub(least))?;
        }
        refuse_small_grant(granted, least.saturating_add(recovered.kept_bytes()), &options)?;
        options.memory_bytes = Some(granted - recovered.kept_bytes() - held);
    }
    let prepared = Prepared { recovered, database, catalog, options };
    what.spread.verify(request, what, input, (&prepared.database, prepared.catalog))?;
    Ok(prepared)
}

/// Opens the database.
///
/// # Errors
/// If the database cannot be opened.
pub fn open(request: &Request, what: &What<'_>, progress: &dyn check::Progress) -> Result<Input, Failure> {
    open_hinted(request, what, progress, Hints::default())
}

/// Like [`open`], but uses what an earlier opening of the same files has found.
///
/// # Errors
/// If the database cannot be opened.
pub fn open_hinted(
    request: &Request,
    what: &What<'_>,
    progress: &dyn check::Progress,
    hints: Hints,
) -> Result<Input, Failure> {
    let RoomOptions { memory, temp_dir } = &request.recovery.room;
    if let Some(sets) = what.sets {
        return Input::of_sets(sets, (*memory, &hints), request.stop.stop());
    }
    let reading = Reading {
        named: what.named,
        sets: if let SetChoice::Positions(positions) = what.choice { positions } else { &[] },
        direct: request.run.direct,
        carve: request.carve,
        spool: Spool { directory: temp_dir.as_deref(), limit: request.spool_limit, progress },
        memory: *memory,
        stop: &request.stop,
        hints,
    };
    Input::open(&request.paths, &reading)
}

fn options(request: &Request, database: &Database) -> Result<Options, Failure> {
    Ok(Options {
        scope: scope_of(request, database)?,
        physical_only: request.scope.physical_only,
        no_index: request.scope.noindex,
        data_purity: request.scope.no_data_purity.then_some(false),
        constraints: request.scope.constraints.is_some(),
        all_constraints: request.scope.constraints == Some(Constraints::All),
        identities: request.scope.identity,
        max_threads: request.run.maxdop.into(),
        extended_logical_checks: request.scope.extended_logical_checks,
        readers: request.run.readers,
        batches: request.batches,
        temp_dir: request.recovery.room.temp_dir.clone(),
        hash_seed: None,
        allowed: request.results.allow.clone(),
        settle_page: request.settle_page,
        page_map: request.results.html.is_some(),
        row_by_row: false,
        ..Options::default()
    })
}

fn scope_of(request: &Request, database: &Database) -> Result<Scope, Failure> {
    if let Some(filegroup) = &request.scope.filegroup {
        return scope::filegroup(database, filegroup).map(Scope::Filegroup);
    }
    if request.scope.alloc {
        return Ok(Scope::Allocation);
    }
    if request.scope.catalog {
        return Ok(Scope::Catalog);
    }
    if request.scope.table.is_empty() {
        return Ok(Scope::Database);
    }
    let mut ids = request.scope.table.iter().map(|name| scope::table(database, name)).collect::<Result<Vec<_>, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    Ok(Scope::Tables(ids))
}

/// Refuses a grant that is too small. The error names the minimum.
fn refuse_small_grant(granted: u64, least: u64, options: &Options) -> Result<(), Failure> {
    if granted >= least {
        return Ok(());
    }
    let threads = match options.threads() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads; fewer threads need less memory, see --maxdop"),
    };
    let (granted, least) = (size::text(granted), size::text(least));
    Err(Failure::small_grant(format!("--memory {granted}: this check needs at least {least} ({threads})")))
}
