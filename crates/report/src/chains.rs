//! Restore chains: `mdfsck chain`.

mod folder;
mod lines;
pub mod script;
mod verified;

use std::io;

use source::backup::{Beside, Chain, ChainSet, DatabaseChains, Missing, Moment, Span, Unused};

use crate::backups::decimal;
use crate::text_table::{TextTable, printable, wrap};
use folder::Folder;
pub use lines::write_json;
pub use verified::Verified;

/// Width of the text, in columns.
const COLUMNS: usize = 80;
/// Number of characters of the date and the space after it in `2020-05-12 13:30:00`.
const DATE_CHARS: usize = 11;

/// A database with its backups, and the results of verifying them.
pub struct Found<'a> {
    /// The backups.
    pub database: &'a DatabaseChains,
    /// The result of verifying each chain. If `at` is set, this list has only the result for the chain to the point in
    /// time `at`. Empty if nothing was verified.
    pub verified: Vec<Verified>,
    /// The point in time that the user requested, and the chain of backups that restores the database to that point.
    pub at: Option<(String, Moment)>,
    /// Another chain of backups, if the chain to the newest or to the requested point in time is damaged.
    pub detour: Option<Detour>,
}

impl Found<'_> {
    /// The chain of backups to the requested point in time, or to the latest one, and the result of verifying this
    /// chain.
    pub fn path(&self) -> (Option<&Chain>, Option<&Verified>) {
        match &self.at {
            Some((_, moment)) => (moment.chain.as_ref(), self.verified.first()),
            None => (self.database.newest(), self.database.newest.and_then(|newest| self.verified.get(newest))),
        }
    }

    /// The chain of backups to use, and the result of verifying it. The chain is the detour around damage if there is
    /// one, otherwise the chain that [`Self::path`] returns.
    pub fn usable_path(&self) -> (Option<&Chain>, Option<&Verified>) {
        match &self.detour {
            Some(detour) => (Some(&detour.chain), Some(&detour.verified)),
            None => self.path(),
        }
    }
}

/// A chain of backups that avoids damaged backups.
pub struct Detour {
    /// The indexes of the backup sets that the chain avoids.
    pub avoided: Vec<usize>,
    /// The chain of backups.
    pub chain: Chain,
    /// Whether the restore has to stop at the requested point in time.
    pub stops: bool,
    /// The result of verifying the chain.
    pub verified: Verified,
}

/// Writes the chains of a database as text.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(found: &Found<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let database = found.database;
    writeln!(out, "database {} on {}", printable(&database.database), printable(&database.server))?;
    let text = Text { database, folder: Folder::of(database) };
    if let Some(folder) = text.folder.name() {
        writeln!(out, "  in {}", printable(&folder))?;
    }
    text.points(out)?;
    match found.verified.is_empty() {
        _ if database.chains.is_empty() => {}
        // Without a chain of backups, nothing could be verified.
        _ if found.usable_path().0.is_none() => {
            writeln!(out, "  according to the backups' labels; pages were not read")?
        }
        true => writeln!(out, "  according to the backups' labels; pages were not read (--verify reads them)")?,
        false => writeln!(
            out,
            "  according to the labels of the backups; the backups of each path below were read and checked"
        )?,
    }
    if let Some((time, moment)) = &found.at {
        return text.moment(time, moment, found, out);
    }
    match database.newest() {
        Some(newest) => text.newest(newest, found, out)?,
        None => writeln!(out, "  nothing can be restored: no complete full backup")?,
    }
    for (number, chain) in database.chains.iter().enumerate().filter(|(number, _)| Some(*number) != database.newest) {
        if let Some(verified) = found.verified.get(number) {
            text.chain(chain, Some(verified), out)?;
            paragraph(4, &verified.text(), out)?;
        }
    }
    text.beside(out)?;
    text.unused(out)
}

/// Writes a text, wrapped at 80 columns.
fn paragraph(indent: usize, text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    for line in wrap(text, COLUMNS - indent) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// The backups of a database, as text.
struct Text<'a> {
    database: &'a DatabaseChains,
    folder: Folder,
}

impl Text<'_> {
    fn points(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.database.points.as_slice() {
            [] => {}
            [only] if only.from != only.to => {
                writeln!(out, "  points in time: {}, without gap", printable(&span_text(only)))?;
            }
            [only] => writeln!(out, "  points in time: {} only", printable(&span_text(only)))?,
            spans => {
                writeln!(out, "  points in time")?;
                for span in spans {
                    writeln!(out, "    {}", printable(&span_text(span)))?;
                }
            }
        }
        for span in &self.database.left_points {
            writeln!(out, "  abandoned by a restore: {}", printable(&span_text(span)))?;
        }
        Ok(())
    }

    /// Writes the chain of backups to the latest point in time.
    fn newest(&self, newest: &Chain, found: &Found<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        self.chain(newest, found.path().1, out)?;
        if let Some((from, to)) = newest.gap {
            let (from, to) = (decimal(from), decimal(to));
            let gap = format!("gap: log from LSN {from} to {to} is missing; later log backups cannot be restored");
            paragraph(4, &gap, out)?;
        }
        if let Some(verified) = found.path().1 {
            paragraph(4, &verified.text(), out)?;
        }
        self.detour(found.detour.as_ref(), out)
    }

    fn detour(&self, detour: Option<&Detour>, out: &mut dyn io::Write) -> io::Result<()> {
        let Some(detour) = detour else { return Ok(()) };
        let avoided = detour.avoided.iter().filter_map(|index| self.database.sets.get(*index));
        let avoided: Vec<String> = avoided.flat_map(|set| self.folder.files(set)).collect();
        let until = until(self.database, &detour.chain).unwrap_or("an unknown time");
        let avoided = avoided.join(" + ");
        let another = format!("can be restored until {until} by another path, without {avoided}");
        paragraph(2, &printable(&another), out)?;
        self.steps(&detour.chain, out)?;
        paragraph(4, &detour.verified.text(), out)
    }

    /// Writes a chain of backups as the backup labels describe it. The first line says whether the chain can be
    /// restored.
    fn chain(&self, chain: &Chain, verified: Option<&Verified>, out: &mut dyn io::Write) -> io::Result<()> {
        let until = printable(until(self.database, chain).unwrap_or("an unknown time"));
        match verified.is_none_or(Verified::is_usable) {
            true => writeln!(out, "  can be restored until {until}, by the shortest path")?,
            false => writeln!(out, "  cannot be restored until {until} by the shortest path")?,
        }
        self.steps(chain, out)
    }

    fn steps(&self, chain: &Chain, out: &mut dyn io::Write) -> io::Result<()> {
        let mut table = TextTable::new(&[]);
        for (number, set) in chain.steps.iter().filter_map(|&index| self.database.sets.get(index)).enumerate() {
            if chain.omitted > 0 && number + 1 == chain.steps.len() {
                table.row(vec![format!("{} more log backups", chain.omitted)]);
            }
            self.row(set, &mut table);
        }
        table.write_within(4, COLUMNS, out)
    }

    /// Writes whether the database can be restored to the point in time of `--at`. If so, also writes the backups to
    /// restore; if not, the reason.
    fn moment(&self, time: &str, moment: &Moment, found: &Found<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let time = printable(time);
        let Some(chain) = &moment.chain else {
            let missing = moment.missing.map(missing_text).unwrap_or_default();
            paragraph(2, &format!("restore to {time}: no; {missing}"), out)?;
            for (moment, side) in [(&moment.before, "before"), (&moment.after, "after")] {
                if let Some(moment) = moment {
                    writeln!(out, "    the nearest point in time {side}: {}", printable(moment))?;
                }
            }
            return Ok(());
        };
        let left = if moment.is_left { ", on a branch that a restore abandoned" } else { "" };
        match found.path().1 {
            Some(verified) if !verified.is_usable() => {
                writeln!(out, "  restore to {time}: not possible with these backups")?
            }
            _ => {
                let how = if moment.stops { "" } else { " without STOPAT: the last log backup ended in that second" };
                paragraph(2, &format!("restore to {time}: yes{left}, from these backups in this order{how}"), out)?;
            }
        }
        self.steps(chain, out)?;
        if let Some(verified) = found.path().1 {
            paragraph(4, &verified.text(), out)?;
        }
        self.detour(found.detour.as_ref(), out)
    }

    /// Writes the backup sets that the newest chain does not need, but that a restore to other points in time needs.
    /// Consecutive sets form a group if there is no gap between the ranges of these points in time. The heading of a
    /// group names its whole range.
    fn beside(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut rest = self.database.beside.as_slice();
        while let Some(first) = rest.first() {
            let mut span = first.span.clone();
            let count = rest.iter().take_while(|next| next.is_left == first.is_left && join(&mut span, next)).count();
            let (group, after) = rest.split_at(count.max(1).min(rest.len()));
            let what = match &span {
                None => "for a point in time that their labels do not give".to_owned(),
                Some(span) if span.from == span.to => format!("for the point in time {}", span.from),
                Some(span) => format!("for points in time between {} and {}", span.from, until_text(span)),
            };
            let left = if first.is_left { ", on a branch that a restore abandoned" } else { "" };
            let heading = format!("not needed for the shortest path; needed {what}{left}");
            paragraph(2, &printable(&heading), out)?;
            let mut table = TextTable::new(&[]);
            for set in group.iter().filter_map(|beside| self.database.sets.get(beside.set)) {
                self.row(set, &mut table);
            }
            table.write_within(4, COLUMNS, out)?;
            rest = after;
        }
        Ok(())
    }

    /// Writes the sets that no restore can use, grouped by reason.
    fn unused(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let database = self.database;
        let mut reasons: Vec<(String, Vec<&ChainSet>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (&index, &reason) in database.unused.iter().zip(&database.reasons) {
            let Some(set) = database.sets.get(index) else { continue };
            let text = unused_text(reason, set);
            let place = *places.entry(text.clone()).or_insert(reasons.len());
            match reasons.get_mut(place) {
                Some((_, sets)) => sets.push(set),
                None => reasons.push((text, vec![set])),
            }
        }
        for (reason, sets) in reasons {
            paragraph(2, &format!("in no chain: {reason}"), out)?;
            let mut table = TextTable::new(&[]);
            sets.into_iter().for_each(|set| self.row(set, &mut table));
            table.write_within(4, COLUMNS, out)?;
        }
        Ok(())
    }

    /// Adds the lines of a set to `table`: one line for each stripe, then one line for each copy.
    fn row(&self, set: &ChainSet, table: &mut TextTable) {
        let config = &set.set.config;
        let marks = [(set.set.is_copy_only, "copy-only"), (set.set.is_encrypted, "encrypted")];
        let marks: Vec<&str> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).collect();
        let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        let kind = format!("{}{marks}", set.set.kind.name());
        let finished = config.finished.clone().unwrap_or_default();
        for (number, file) in self.folder.files(set).into_iter().enumerate() {
            match number {
                0 => table.row([kind.clone(), finished.clone(), file]),
                _ => table.row([String::new(), String::new(), format!("+ {file}")]),
            }
        }
        for copy in &set.copies {
            table.row([String::new(), String::new(), format!("also as {}", self.folder.file(copy))]);
        }
    }
}

/// Extends `span` by the points in time for which a restore needs the set `next`. Returns false if there is a gap
/// between `span` and these points in time.
fn join(span: &mut Option<Span>, next: &Beside) -> bool {
    match (span, &next.span) {
        (Some(span), Some(next)) if next.from <= span.to && span.from <= next.to => {
            if next.from < span.from {
                span.from.clone_from(&next.from);
            }
            if next.to > span.to {
                span.to.clone_from(&next.to);
            }
            true
        }
        (span, next) => span.is_none() && next.is_none(),
    }
}

/// A span as text, such as `2020-05-12 13:30:00 to 14:00:00`.
fn span_text(span: &Span) -> String {
    if span.from == span.to { span.from.clone() } else { format!("{} to {}", span.from, until_text(span)) }
}

/// The end of a span, without the date if the span ends on the day it starts.
fn until_text(span: &Span) -> &str {
    let is_same_day = span.from.get(..DATE_CHARS).is_some() && span.from.get(..DATE_CHARS) == span.to.get(..DATE_CHARS);
    span.to.get(DATE_CHARS..).filter(|_| is_same_day).unwrap_or(&span.to)
}

/// The finish time of the last step of a chain.
fn until<'a>(database: &'a DatabaseChains, chain: &Chain) -> Option<&'a str> {
    let set = database.sets.get(*chain.steps.last()?)?;
    set.set.config.finished.as_deref()
}

fn missing_text(missing: Missing) -> String {
    match missing {
        Missing::Full => "no complete full backup ended before that time".to_owned(),
        Missing::Log(from, to) => format!("log from LSN {} to {} is missing", decimal(from), decimal(to)),
        Missing::LaterLog(from) => format!("log from LSN {} on is missing: no later log backup is here", decimal(from)),
        Missing::Unknown => "the labels of the backups do not say their LSNs or times".to_owned(),
    }
}

/// The reason why no restore can use a set.
fn unused_text(reason: Unused, set: &ChainSet) -> String {
    let kept = "the backup before it is missing";
    match reason {
        Unused::Damaged => "damaged".to_owned(),
        Unused::StripesMissing => stripes_text(set),
        Unused::NoFull if set.set.kind == source::backup::SetKind::Log => format!("{kept}; no complete full backup"),
        Unused::NoFull => format!("{kept}; its full backup is not here"),
        Unused::FullNotWhole => "its full backup is damaged or lacks a stripe".to_owned(),
        Unused::OtherFork => format!("{kept}; from before or after the database was restored to another point in time"),
        Unused::BeforeFull => format!("{kept}; it ends before the oldest full backup does"),
        Unused::AfterGap(from, to) => {
            format!("{kept}; log from LSN {} to {} is missing", decimal(from), decimal(to))
        }
        Unused::TooOld => "made by SQL Server 2000 or older, which mdfsck does not support".to_owned(),
        Unused::OfFiles => {
            "file or filegroup backup, which no chain uses; 'mdfsck check' reads the newest of them together".to_owned()
        }
        Unused::NotUnderstood => "not understood, so nothing is reported about it".to_owned(),
    }
}

/// The missing stripes as text, such as `stripe 2 of 3 is missing`.
fn stripes_text(set: &ChainSet) -> String {
    let numbers: Vec<String> = set.missing.iter().map(u16::to_string).collect();
    let more = if usize::from(set.missing_stripes) > set.missing.len() { " and more" } else { "" };
    match numbers.as_slice() {
        [] => format!("{} of {} stripes are missing", set.missing_stripes, set.stripes),
        [only] if more.is_empty() => format!("stripe {only} of {} is missing", set.stripes),
        several => format!("stripes {}{more} of {} are missing", several.join(", "), set.stripes),
    }
}
