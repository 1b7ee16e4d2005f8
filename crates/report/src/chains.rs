//! Restore chains: `mdfsck chain`.

use std::io;

use source::backup::{Chain, ChainSet, DatabaseChains, Unused};

use crate::backups::decimal;
use crate::json::backup as lines;
use crate::text_table::{TextTable, printable};

/// Writes the chains as text.
///
/// # Errors
/// Those of `out`.
pub fn write(databases: &[DatabaseChains], out: &mut dyn io::Write) -> io::Result<()> {
    for (number, database) in databases.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "database {} on {}", printable(&database.database), printable(&database.server))?;
        for chain in &database.chains {
            write_chain(database, chain, out)?;
        }
        if database.chains.is_empty() {
            writeln!(out, "  nothing can be restored: no whole full backup")?;
        }
        if !database.unused.is_empty() {
            writeln!(out, "  in no chain")?;
            let mut table = TextTable::new(&[]);
            for (&index, &reason) in database.unused.iter().zip(&database.reasons) {
                let Some(set) = database.sets.get(index) else { continue };
                table.row(row(set).into_iter().chain([why_unused(reason).to_owned()]));
            }
            table.write(4, out)?;
        }
    }
    Ok(())
}

fn write_chain(database: &DatabaseChains, chain: &Chain, out: &mut dyn io::Write) -> io::Result<()> {
    let until = until(database, chain).unwrap_or("an unknown time");
    writeln!(out, "  can be restored until {}", printable(until))?;
    let mut table = TextTable::new(&[]);
    for (number, set) in chain.steps.iter().filter_map(|&index| database.sets.get(index)).enumerate() {
        if chain.omitted > 0 && number + 1 == chain.steps.len() {
            table.row(vec![format!("{} more log backups", chain.omitted), String::new(), String::new()]);
        }
        table.row(row(set));
    }
    table.write(4, out)?;
    if let Some((from, to)) = chain.gap {
        writeln!(out, "    gap: log from LSN {from} to {to} is missing; later log backups cannot be restored")?;
    }
    Ok(())
}

/// Writes the chains as JSON, one object per database.
///
/// # Errors
/// Those of `out`.
pub fn write_json(databases: &[DatabaseChains], out: &mut dyn io::Write) -> io::Result<()> {
    databases.iter().try_for_each(|database| crate::json::line(&line_of(database), out))
}

fn line_of(database: &DatabaseChains) -> lines::Chains<'_> {
    lines::Chains {
        v: crate::json::VERSION,
        kind: lines::ChainsKind::Chains,
        database: &database.database,
        server: &database.server,
        sets: database.sets.iter().map(set_of).collect(),
        chains: database.chains.iter().map(|chain| chain_of(database, chain)).collect(),
        unused: &database.unused,
    }
}

fn set_of(set: &ChainSet) -> lines::ChainSet<'_> {
    let config = &set.set.config;
    lines::ChainSet {
        paths: set.paths.iter().map(|path| path.display().to_string()).collect(),
        position: set.set.position,
        type_description: set.set.kind.name(),
        copy_only: set.set.is_copy_only,
        started: config.started.as_deref(),
        finished: config.finished.as_deref(),
        first_lsn: config.first_lsn.map(decimal),
        last_lsn: config.last_lsn.map(decimal),
        missing_stripes: set.missing_stripes,
        damaged: set.is_damaged,
    }
}

fn chain_of<'a>(database: &'a DatabaseChains, chain: &'a Chain) -> lines::Chain<'a> {
    lines::Chain {
        full: chain.full,
        differentials: &chain.differentials,
        steps: &chain.steps,
        until: until(database, chain),
        gap: chain.gap.map(|(from, to)| [decimal(from), decimal(to)]),
        omitted: (chain.omitted > 0).then_some(chain.omitted),
    }
}

/// When the last step of a chain was finished.
fn until<'a>(database: &'a DatabaseChains, chain: &Chain) -> Option<&'a str> {
    let set = database.sets.get(*chain.steps.last()?)?;
    set.set.config.finished.as_deref()
}

fn row(set: &ChainSet) -> Vec<String> {
    let config = &set.set.config;
    let copy_only = if set.set.is_copy_only { " (copy-only)" } else { "" };
    let paths: Vec<String> = set.paths.iter().map(|path| path.display().to_string()).collect();
    vec![
        format!("{}{copy_only}", set.set.kind.name()),
        config.finished.clone().unwrap_or_default(),
        format!("set {} of {}", set.set.position, paths.join(" + ")),
    ]
}

fn why_unused(reason: Unused) -> &'static str {
    match reason {
        Unused::Damaged => "damaged",
        Unused::StripesMissing => "stripes are missing",
        Unused::NoFull => "its full backup is not here",
        Unused::OtherFork => "from before or after the database was restored to another moment",
        Unused::BeforeFull => "not needed: it ends before the full backup does",
        Unused::Contained => "not needed: another log backup contains it",
        Unused::BeforeDifferential => "not needed, but to stop before the differential backup",
        Unused::AfterGap => "log before it is missing",
        Unused::NotUnderstood => "not understood",
    }
}
