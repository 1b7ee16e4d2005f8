//! Restore chains as JSON.

use std::io;

use source::backup::{Beside, Chain, ChainSet, DatabaseChains, Missing, Moment, Span};

use super::{Detour, Found, Verified, missing_text, until, unused_text};
use crate::backups::decimal;
use crate::json::chains as lines;

/// Writes the chains of a database as one JSON object.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(found: &Found<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    crate::json::line(&line_of(found), out)
}

fn line_of<'a>(found: &'a Found<'_>) -> lines::Chains<'a> {
    let database = found.database;
    let by_chain = |number: usize| found.verified.get(number).filter(|_| found.at.is_none());
    let chains = database.chains.iter().enumerate();
    let reasons = database.unused.iter().zip(&database.reasons);
    let reasons = reasons.filter_map(|(&index, &reason)| Some(unused_text(reason, database.sets.get(index)?)));
    lines::Chains {
        v: crate::json::VERSION,
        kind: lines::ChainsKind::Chains,
        database: &database.database,
        server: &database.server,
        sets: database.sets.iter().map(set_of).collect(),
        chains: chains.map(|(number, chain)| chain_of(database, chain, by_chain(number))).collect(),
        newest: database.newest,
        points: database.points.iter().map(span_of).collect(),
        left_points: database.left_points.iter().map(span_of).collect(),
        beside: database.beside.iter().map(beside_of).collect(),
        unused: &database.unused,
        reasons: reasons.collect(),
        at: found.at.as_ref().map(|(time, moment)| moment_of((time, moment), found)),
        detour: found.detour.as_ref().map(|detour| detour_of(database, detour)),
    }
}

fn set_of(set: &ChainSet) -> lines::ChainSet<'_> {
    let config = &set.set.config;
    lines::ChainSet {
        paths: set.paths.iter().map(|path| path.display().to_string()).collect(),
        position: set.set.position,
        type_description: set.set.kind.name(),
        copy_only: set.set.is_copy_only,
        encrypted: set.set.is_encrypted,
        started: config.started.as_deref(),
        finished: config.finished.as_deref(),
        first_lsn: config.first_lsn.map(decimal),
        last_lsn: config.last_lsn.map(decimal),
        stripes: set.stripes,
        missing_stripes: set.missing_stripes,
        missing: &set.missing,
        copies: set.copies.iter().map(|path| path.display().to_string()).collect(),
        damaged: set.is_damaged,
    }
}

fn chain_of<'a>(database: &'a DatabaseChains, chain: &'a Chain, verified: Option<&'a Verified>) -> lines::Chain<'a> {
    lines::Chain {
        full: chain.full,
        differentials: &chain.differentials,
        steps: &chain.steps,
        until: until(database, chain),
        gap: chain.gap.map(|(from, to)| [decimal(from), decimal(to)]),
        omitted: (chain.omitted > 0).then_some(chain.omitted),
        verified: verified.map(verified_of),
    }
}

fn verified_of(verified: &Verified) -> lines::VerifiedChain<'_> {
    lines::VerifiedChain {
        state: verified.state(),
        errors: verified.errors,
        first_error: verified.first_error.as_deref(),
        reason: verified.reason.as_deref(),
        pages: verified.pages,
        recovered_pages: verified.recovered_pages,
        log_blocks: verified.log_blocks,
        transactions_undone: verified.transactions_undone,
    }
}

fn span_of(span: &Span) -> lines::Span<'_> {
    lines::Span { from: &span.from, to: &span.to }
}

fn beside_of(beside: &Beside) -> lines::Beside<'_> {
    let span = beside.span.as_ref();
    lines::Beside {
        set: beside.set,
        from: span.map(|span| span.from.as_str()),
        to: span.map(|span| span.to.as_str()),
        left: beside.is_left,
    }
}

fn moment_of<'a>((time, moment): (&'a str, &'a Moment), found: &'a Found<'_>) -> lines::Moment<'a> {
    let lsns = match moment.missing {
        Some(Missing::Log(from, to)) => [Some(decimal(from)), Some(decimal(to))],
        Some(Missing::LaterLog(from)) => [Some(decimal(from)), None],
        _ => [None, None],
    };
    lines::Moment {
        time,
        possible: moment.chain.is_some(),
        steps: moment.chain.as_ref().map(|chain| chain.steps.as_slice()).unwrap_or_default(),
        stop_at: moment.stops,
        left: moment.is_left,
        missing: moment.missing.map(missing_text),
        missing_lsns: lsns.first().is_some_and(Option::is_some).then_some(lsns),
        before: moment.before.as_deref(),
        after: moment.after.as_deref(),
        verified: found.path().1.map(verified_of),
    }
}

fn detour_of<'a>(database: &'a DatabaseChains, detour: &'a Detour) -> lines::Detour<'a> {
    lines::Detour {
        avoided: &detour.avoided,
        steps: &detour.chain.steps,
        until: until(database, &detour.chain),
        verified: verified_of(&detour.verified),
    }
}
