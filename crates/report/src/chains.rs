//! Restore chains: `mdfsck chain`.

use std::io;

use serde_json::{Value as Json, json};
use source::backup::{Chain, ChainSet, DatabaseChains};

use crate::backups::decimal;
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
            for set in database.unused.iter().filter_map(|&index| database.sets.get(index)) {
                table.row(row(set).into_iter().chain([why_unused(set).to_owned()]));
            }
            table.write(4, out)?;
        }
    }
    Ok(())
}

fn write_chain(database: &DatabaseChains, chain: &Chain, out: &mut dyn io::Write) -> io::Result<()> {
    let until = until(database, chain).unwrap_or_else(|| "an unknown time".to_owned());
    writeln!(out, "  can be restored until {}", printable(&until))?;
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

/// Writes the chains as JSON, an object a database.
///
/// # Errors
/// Those of `out`.
pub fn write_json(databases: &[DatabaseChains], out: &mut dyn io::Write) -> io::Result<()> {
    databases.iter().try_for_each(|database| crate::json::line(&json_of(database), out))
}

fn json_of(database: &DatabaseChains) -> Json {
    let set = |set: &ChainSet| {
        let config = &set.set.config;
        json!({
            "paths": set.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "position": set.set.position, "type_description": set.set.kind.name(), "copy_only": set.set.is_copy_only,
            "started": config.started, "finished": config.finished, "first_lsn": config.first_lsn.map(decimal),
            "last_lsn": config.last_lsn.map(decimal), "missing_stripes": set.missing_stripes, "damaged": set.is_damaged,
        })
    };
    let chain = |chain: &Chain| {
        let mut object = json!({
            "full": chain.full, "differentials": chain.differentials, "steps": chain.steps,
            "until": until(database, chain), "gap": chain.gap.map(|(from, to)| [decimal(from), decimal(to)]),
        });
        if let Some(fields) = object.as_object_mut().filter(|_| chain.omitted > 0) {
            fields.insert("omitted".to_owned(), chain.omitted.into());
        }
        object
    };
    json!({
        "v": crate::json::VERSION,
        "kind": "chains",
        "database": database.database,
        "server": database.server,
        "sets": database.sets.iter().map(set).collect::<Vec<_>>(),
        "chains": database.chains.iter().map(chain).collect::<Vec<_>>(),
        "unused": database.unused,
    })
}

/// When the last step of a chain was finished.
fn until(database: &DatabaseChains, chain: &Chain) -> Option<String> {
    let set = database.sets.get(*chain.steps.last()?)?;
    set.set.config.finished.clone()
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

fn why_unused(set: &ChainSet) -> &'static str {
    use source::backup::SetKind;
    match set.set.kind {
        _ if set.is_damaged => "damaged",
        _ if set.missing_stripes > 0 => "stripes are missing",
        SetKind::Differential => "its full backup is not here",
        SetKind::Log => "follows on nothing that is here, or is contained in another",
        _ => "not understood",
    }
}
