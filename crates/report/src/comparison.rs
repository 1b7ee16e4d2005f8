//! Compares CHECKDB's results with a check of the same files: `mdfsck compare-dbcc`.
//!
//! Both sides are sets of messages. Two messages are the same if number, object, index, page and slot are equal, as
//! their texts name them; if a text is localized, the columns of TABLERESULTS are used. Messages that only one side
//! prints for a known reason are explained. A file of results has any content, so its size, the number of messages and
//! the work for each of them are bounded.

mod bytes;
mod kinds;
mod lines;
mod message;
mod pair;
mod results;
mod table;
pub(crate) mod template;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use findings::registry::Check;
use findings::registry::limits::Limit;
use findings::{Finding, Findings, Report};

use crate::listing::Listing;
use crate::parity;
pub use kinds::Reason;
pub use message::{Message, Place};
use pair::{Left, Pair};
use results::{Counts, MOST_MESSAGES};
pub use results::{Form, MOST_BYTES, Refused, Results};
pub use write::{write_json, write_text};

/// How a message of one side relates to the other side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Only the server printed the message.
    ServerOnly,
    /// Only this program printed the message.
    MdfsckOnly,
    /// Both found the damage, with different numbers.
    OtherNumber,
    /// Only one side printed the message, or the numbers differ, for a known reason.
    Explained,
    /// Both printed the message.
    Both,
}

impl State {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerOnly => "server-only",
            Self::MdfsckOnly => "mdfsck-only",
            Self::OtherNumber => "other-number",
            Self::Explained => "explained",
            Self::Both => "both",
        }
    }

    /// Whether the two sides differ.
    pub fn differs(self) -> bool {
        matches!(self, Self::ServerOnly | Self::MdfsckOnly | Self::OtherNumber)
    }
}

/// An error that at least one side found.
#[derive(Debug)]
pub struct Entry {
    /// How the two sides relate.
    pub state: State,
    /// The message of the server.
    pub server: Option<Message>,
    /// The message of this program.
    pub own: Option<Message>,
    /// The reason why this is no difference.
    pub reason: Option<&'static Reason>,
    /// The limit that makes this program list the message as not verified.
    pub limit: Option<&'static Limit>,
}

/// What was counted, by the server and by this program.
#[derive(Debug, PartialEq, Eq)]
pub enum Subject {
    /// The rows and pages of an object, with its name.
    Object(String),
    /// Service Broker objects, with the number of their message.
    Broker(u32),
}

/// The counts of both sides.
#[derive(Debug)]
pub struct Counted {
    /// What was counted.
    pub subject: Subject,
    /// The server's counts: rows and pages, or objects and 0.
    pub server: Counts,
    /// The counts of this program; `None` if it does not list the object.
    pub own: Option<Counts>,
    /// `Both` if the counts are equal; `Explained` or `ServerOnly` if they differ.
    pub state: State,
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Comparison {
    /// The errors: differences first, then by place.
    pub entries: Vec<Entry>,
    /// The counts that the server printed.
    pub counted: Vec<Counted>,
    /// How often each reason explains a message, by message number.
    pub reasons: BTreeMap<&'static Reason, BTreeMap<u32, u64>>,
    /// The number of errors and counts of both sides that were not compared, because there are too many of them.
    pub hidden: u64,
}

impl Comparison {
    /// The number of entries with this state.
    pub fn count(&self, state: State) -> usize {
        self.entries.iter().filter(|entry| entry.state == state).count()
    }

    /// Whether anything differs without a known reason.
    pub fn differs(&self) -> bool {
        self.entries
            .iter()
            .map(|entry| entry.state)
            .chain(self.counted.iter().map(|counted| counted.state))
            .any(State::differs)
    }
}

/// Compares the results of the server with a report.
pub fn compare(results: &Results, report: &Report) -> Comparison {
    let mut server: Left = results.findings.clone();
    let Own { messages: mut own, origins, hidden } = Own::of(report, &report.findings);
    let doubted = Own::of(report, &report.demoted);
    let hidden = hidden + doubted.hidden;
    let mut entries = Vec::new();
    for pair in pair::same(&mut server, &mut own) {
        entries.push(entry(State::Both, pair, None));
    }
    for (pair, limit) in not_proven(&mut server, doubted) {
        let Pair { server, own } = pair;
        let reason = Some(&kinds::NOT_PROVEN);
        entries.push(Entry { state: State::Explained, server: Some(server), own: Some(own), reason, limit });
    }
    let (is_own_cut, is_cut) = (hidden > 0, hidden + results.hidden > 0);
    for pair in pair::related(&mut server, &mut own) {
        // A message with the same number may be among those that are not compared.
        let reason = kinds::reason_of_numbers(pair.server.number, pair.own.number);
        let reason = reason.or_else(|| is_cut.then_some(&kinds::TOO_MANY));
        let state = if reason.is_some() { State::Explained } else { State::OtherNumber };
        entries.push(entry(state, pair, reason));
    }
    let excuses = Excuses::of(results);
    for (key, message) in own {
        let reason = excuses.reason(&message, origins.get(&key).map(|origin| origin.check));
        let state = if reason.is_some() { State::Explained } else { State::MdfsckOnly };
        entries.push(Entry { state, server: None, own: Some(message), reason, limit: None });
    }
    entries.extend(of_server(server, results, report, is_own_cut));
    entries.sort_by_cached_key(|entry| (entry.state, entry.server.as_ref().or(entry.own.as_ref()).map(Message::key)));
    let mut reasons = results.explained.clone();
    for entry in &entries {
        let Some((reason, message)) = entry.reason.zip(entry.own.as_ref().or(entry.server.as_ref())) else { continue };
        let number = message.number;
        *reasons.entry(reason).or_default().entry(number).or_default() += 1;
    }
    let counted = counted(results, report, &entries);
    let explained = counted.iter().filter(|counted| counted.state == State::Explained).count() as u64;
    if explained > 0 {
        reasons.entry(&kinds::DAMAGED_COUNTS).or_default().insert(2593, explained);
    }
    let hidden = hidden + results.hidden + results.hidden_counts;
    Comparison { entries, counted, reasons, hidden }
}

/// The messages that only the server printed. `is_own_cut` says that this program found more than is compared.
fn of_server(messages: Left, results: &Results, report: &Report, is_own_cut: bool) -> Vec<Entry> {
    let zero_pages = zero_pages(results);
    let limits: BTreeSet<&str> = report.not_verified.iter().map(|entry| entry.limit.id).collect();
    let entry = |message: Message| {
        let is_of_snapshot = message.place.page.is_some_and(|page| zero_pages.contains(&page))
            && (kinds::is_of_zero_page(&message) || kinds::names_no_error(message.number));
        let reason = match () {
            () if is_of_snapshot => Some(&kinds::SNAPSHOT_PAGE),
            () if is_own_cut => Some(&kinds::TOO_MANY),
            () => None,
        };
        let state = if reason.is_some() { State::Explained } else { State::ServerOnly };
        let limit = limit_of(&message, &limits);
        Entry { state, server: Some(message), own: None, reason, limit }
    };
    messages.into_values().map(entry).collect()
}

/// The pages that read as zeros, if the messages of the server say that its internal snapshot lost pages.
fn zero_pages(results: &Results) -> BTreeSet<format::PageId> {
    let mut numbers = results.explained.values().flat_map(BTreeMap::keys);
    if !numbers.any(|&number| kinds::lost_snapshot_pages(number)) {
        return BTreeSet::new();
    }
    let findings = results.findings.values();
    findings.filter(|message| kinds::is_of_zero_page(message)).filter_map(|message| message.place.page).collect()
}

/// The limit that says that this program does not look for the damage of a message. If there are several, one of
/// `in_report`, the ids of the limits in the report.
fn limit_of(message: &Message, in_report: &BTreeSet<&str>) -> Option<&'static Limit> {
    let number = message.wrapped().map_or(message.number, |(inner, _)| inner);
    parity::limits(number).find(|limit| in_report.contains(limit.id)).or_else(|| parity::limits(number).next())
}

fn entry(state: State, Pair { server, own }: Pair, reason: Option<&'static Reason>) -> Entry {
    Entry { state, server: Some(server), own: Some(own), reason, limit: None }
}

/// Findings of a report as messages, with the origin of each.
struct Own {
    messages: Left,
    origins: BTreeMap<message::Key, Origin>,
    /// The number of findings that were not compared, because there are too many of them.
    hidden: u64,
}

/// Where a message of this program comes from.
struct Origin {
    check: &'static Check,
    /// The limit that makes the finding one that is not verified.
    demoted_by: Option<&'static Limit>,
}

impl Own {
    fn of(report: &Report, findings: &Findings) -> Self {
        let mut own = Self { messages: Left::new(), origins: BTreeMap::new(), hidden: 0 };
        for finding in findings {
            let Some(message) = message_of(report, &finding) else { continue };
            let key = message.key();
            match own.messages.contains_key(&key) {
                true => {}
                false if own.messages.len() >= MOST_MESSAGES => own.hidden += 1,
                false => {
                    let origin = Origin { check: finding.check, demoted_by: finding.demoted_by };
                    own.origins.insert(key.clone(), origin);
                    own.messages.insert(key, message);
                }
            }
        }
        own
    }
}

/// A finding as a message; `None` if it only continues another finding.
fn message_of(report: &Report, finding: &Finding) -> Option<Message> {
    let number = u32::from(finding.check.msg);
    if kinds::role(number, findings::registry::LEVEL, "") == kinds::Role::Detail {
        return None;
    }
    let object = finding.object_id();
    let place = Place {
        object,
        index: object.and(finding.owner.map(|owner| owner.index_id)),
        page: finding.page.filter(|&page| page != format::PageId::NONE),
        slot: finding.slot,
    };
    let text = finding.text(&report.names());
    let mut message = Message::new(number, findings::registry::LEVEL, finding.state.into(), &text, Some(place));
    // The text of these messages has no address: the message after it names the row.
    if message.place.page.is_none() && matches!(number, 8951 | 8952 | 8984) {
        message.set_row(place);
    }
    message.check = Some(finding.check.id);
    Some(message)
}

/// Takes out the messages of the server that this program found too, but lists as not verified.
fn not_proven(server: &mut Left, mut doubted: Own) -> Vec<(Pair, Option<&'static Limit>)> {
    let pairs = pair::same(server, &mut doubted.messages);
    let limit = |pair: &Pair| doubted.origins.get(&pair.own.key())?.demoted_by;
    pairs.into_iter().map(|pair| (limit(&pair), pair)).map(|(limit, pair)| (pair, limit)).collect()
}

/// What the server did not look for.
struct Excuses<'a> {
    results: &'a Results,
    /// Objects with errors other than missing index rows.
    damaged: BTreeSet<i32>,
    /// Ranges of pages whose allocation was not compared: file, first and last page. Ascending, and no two overlap.
    intervals: Vec<(u16, u32, u32)>,
}

impl<'a> Excuses<'a> {
    fn of(results: &'a Results) -> Self {
        let findings = results.findings.values();
        let damaged = findings.clone().filter(|message| !matches!(message.number, 8951 | 8952));
        let interval = |message: &Message| {
            let captured = message.captured()?;
            let (first, last) = (captured.page("page")?, captured.page("ref_page")?);
            (first.page <= last.page).then_some((first.file, first.page, last.page))
        };
        Self {
            results,
            damaged: damaged.filter_map(|message| message.place.object).collect(),
            intervals: merged(findings.filter(|message| message.number == 8998).filter_map(interval).collect()),
        }
    }

    fn is_in_interval(&self, page: format::PageId) -> bool {
        let after = self.intervals.partition_point(|&(file, first, _)| (file, first) <= (page.file, page.page));
        let before = after.checked_sub(1).and_then(|at| self.intervals.get(at));
        before.is_some_and(|&(file, _, last)| file == page.file && page.page <= last)
    }

    /// The reason why the server does not print a message of this program; `None` if there is no reason.
    fn reason(&self, message: &Message, check: Option<&Check>) -> Option<&'static Reason> {
        let object = message.place.object.or_else(|| message.columns.and_then(|place| place.object));
        let is_of = |objects: &BTreeSet<i32>| object.is_some_and(|object| objects.contains(&object));
        let is_allocation = check.is_some_and(Check::is_of_allocation);
        // If damage of system tables ends the run, the allocation was already checked.
        let is_before_end = is_allocation && self.results.gave_up.iter().all(|number| [7995, 8930].contains(number));
        Some(match check {
            Some(check) if check.is_beyond_checkdb() => &kinds::BEYOND_CHECKDB,
            _ if !self.results.gave_up.is_empty() && !is_before_end => &kinds::GAVE_UP,
            _ if is_of(&self.results.skipped) => &kinds::OBJECT_SKIPPED,
            _ if is_of(&self.results.cut) => &kinds::LIST_CUT,
            _ if is_allocation && message.place.page.is_some_and(|page| self.is_in_interval(page)) => {
                &kinds::INTERVAL_UNCHECKED
            }
            _ if matches!(message.number, 8951 | 8952) && is_of(&self.damaged) => &kinds::INDEX_MATCH_SKIPPED,
            _ if matches!(message.number, 8992 | 8997) && self.results.is_catalog_skipped() => &kinds::SKIPPED,
            _ if self.results.hidden > 0 => &kinds::TOO_MANY,
            _ => return None,
        })
    }
}

/// Sorts ranges of pages, and joins those that overlap or touch.
fn merged(mut ranges: Vec<(u16, u32, u32)>) -> Vec<(u16, u32, u32)> {
    ranges.sort_unstable();
    ranges.dedup_by(|(file, first, last), (file_before, _, last_before)| {
        let is_joined = file == file_before && *first <= last_before.saturating_add(1);
        if is_joined {
            *last_before = (*last_before).max(*last);
        }
        is_joined
    });
    ranges
}

/// Compares the counts that the server printed with those of the report.
fn counted(results: &Results, report: &Report, entries: &[Entry]) -> Vec<Counted> {
    let listing = Listing::of(report);
    let own: BTreeMap<String, (i32, Option<Counts>)> =
        listing.objects.iter().map(|object| (object.name(), (object.id, object.rows_and_pages()))).collect();
    let places = entries.iter().flat_map(|entry| entry.server.iter().chain(&entry.own)).flat_map(Message::places);
    let damaged: BTreeSet<i32> = places.filter_map(|place| place.object).collect();
    // Without its catalog, a damaged database may have objects that cannot be counted.
    let is_doubtful = !results.gave_up.is_empty() || damaged.iter().any(|&id| (1..100).contains(&id));
    let mut all: Vec<Counted> = Vec::new();
    for (name, &server) in &results.counted {
        let found = own.get(name);
        let counts = found.and_then(|(_, counts)| *counts);
        let is_explained = is_doubtful || found.is_some_and(|(id, _)| damaged.contains(id));
        let state = match counts {
            Some(counts) if counts == server => State::Both,
            None if server == (0, 0) => State::Both,
            _ if is_explained => State::Explained,
            _ => State::ServerOnly,
        };
        all.push(Counted { subject: Subject::Object(name.clone()), server, own: counts, state });
    }
    for kind in &report.service_broker {
        let Some(&server) = results.broker.get(&kind.number.into()) else { continue };
        let state = if server == kind.count { State::Both } else { State::ServerOnly };
        let subject = Subject::Broker(kind.number.into());
        all.push(Counted { subject, server: (server, 0), own: Some((kind.count, 0)), state });
    }
    all
}
