//! Restore chains: `mdfsck chain`.

use std::io;

use source::backup::{Chain, ChainSet, DatabaseChains, Unused};

use crate::backups::decimal;
use crate::json::backup as lines;
use crate::text_table::{TextTable, printable};

/// What came of a restore of a chain in memory, and of a check of the result.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verified {
    /// Findings in the restored database, its backups and their log.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// What could not be verified, first of all; why the chain could not be restored.
    pub reason: Option<String>,
    /// Whether there is a restored database.
    pub is_restored: bool,
    /// Its allocated pages.
    pub pages: u64,
    /// Blocks of log in all backups of the chain, each verified.
    pub log_blocks: u64,
    /// Pages that were made from the log.
    pub recovered_pages: u64,
    /// Transactions that were open at the end, and taken back.
    pub transactions_undone: u64,
}

impl Verified {
    /// The outcome in a word: `sound`, `errors`, `incomplete`, `failed`.
    pub fn state(&self) -> &'static str {
        match (self.errors, &self.reason) {
            (1.., _) => "errors",
            _ if !self.is_restored => "failed",
            (0, Some(_)) => "incomplete",
            (0, None) => "sound",
        }
    }

    fn text(&self) -> String {
        let reason = printable(self.reason.as_deref().unwrap_or_default()).to_string();
        match self.state() {
            "errors" => {
                let first = printable(self.first_error.as_deref().unwrap_or_default()).to_string();
                format!("{} errors when restored; the first: {first}", self.errors)
            }
            "failed" => format!("cannot be restored: {reason}"),
            "incomplete" => format!("restored and checked, but not all is verified: {reason}"),
            _ => format!(
                "restored and checked: {} pages, of which {} from the log; {} blocks of log; {} transactions taken back",
                self.pages, self.recovered_pages, self.log_blocks, self.transactions_undone
            ),
        }
    }
}

/// Writes the chains of a database as text; with what came of verifying each of them, if that was done.
///
/// # Errors
/// Those of `out`.
pub fn write(database: &DatabaseChains, verified: &[Verified], out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "database {} on {}", printable(&database.database), printable(&database.server))?;
    for (number, chain) in database.chains.iter().enumerate() {
        write_chain(database, chain, out)?;
        if let Some(verified) = verified.get(number) {
            writeln!(out, "    {}", verified.text())?;
        }
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

/// The same as JSON: one object.
///
/// # Errors
/// Those of `out`.
pub fn write_json(database: &DatabaseChains, verified: &[Verified], out: &mut dyn io::Write) -> io::Result<()> {
    crate::json::line(&line_of(database, verified), out)
}

fn line_of<'a>(database: &'a DatabaseChains, verified: &'a [Verified]) -> lines::Chains<'a> {
    let chains = database.chains.iter().enumerate();
    lines::Chains {
        v: crate::json::VERSION,
        kind: lines::ChainsKind::Chains,
        database: &database.database,
        server: &database.server,
        sets: database.sets.iter().map(set_of).collect(),
        chains: chains.map(|(number, chain)| chain_of(database, chain, verified.get(number))).collect(),
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

fn chain_of<'a>(database: &'a DatabaseChains, chain: &'a Chain, verified: Option<&'a Verified>) -> lines::Chain<'a> {
    lines::Chain {
        full: chain.full,
        differentials: &chain.differentials,
        steps: &chain.steps,
        until: until(database, chain),
        gap: chain.gap.map(|(from, to)| [decimal(from), decimal(to)]),
        omitted: (chain.omitted > 0).then_some(chain.omitted),
        verified: verified.map(|verified| lines::VerifiedChain {
            state: verified.state(),
            errors: verified.errors,
            first_error: verified.first_error.as_deref(),
            reason: verified.reason.as_deref(),
            pages: verified.pages,
            recovered_pages: verified.recovered_pages,
            log_blocks: verified.log_blocks,
            transactions_undone: verified.transactions_undone,
        }),
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
