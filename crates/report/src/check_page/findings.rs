//! The findings, grouped by object and by message. The page shows the first findings of each group and counts all of
//! them.

use std::collections::{BTreeMap, BTreeSet};

use findings::registry::Check;
use findings::{Finding, Report};
use serde::Serialize;

use super::bytes::{Bytes, PageBytesReader};
use crate::explain::Explained;
use crate::html::Budget;
use crate::summary::findings::{Place, damaged_pages, heading, is_consequence, names_of};

/// Maximum number of findings that are shown.
const MOST_FINDINGS: usize = 2000;
/// Maximum number of findings shown for one message of one object.
const MOST_OF_ONE: usize = 200;
/// Maximum number of objects and indexes that are shown with their messages.
const MOST_PLACES: usize = 500;
/// Maximum number of characters of a message.
const MOST_CHARS: usize = 1200;
/// Maximum number of characters of an object's name, and of a finding's short description.
const NAME_CHARS: usize = 160;
/// Maximum number of messages in all objects together.
const MOST_MESSAGES: usize = 4000;

/// All findings of a report.
#[derive(Serialize)]
pub(super) struct Findings {
    /// The number of findings, shown or not.
    count: usize,
    places: Vec<Found>,
    /// The number of objects and indexes that are not shown.
    more_places: usize,
    checks: Vec<Explained>,
}

/// The findings in an object or index.
#[derive(Default, Serialize)]
struct Found {
    heading: String,
    count: u64,
    messages: Vec<Message>,
    #[serde(skip)]
    is_primitive: bool,
}

/// The findings with one message in one object or index.
#[derive(Serialize)]
struct Message {
    /// Index into [`Findings::checks`].
    check: usize,
    /// Whether these findings are consequences of damage elsewhere.
    follows: bool,
    /// A short description of the first finding; empty if the text budget is used up.
    brief: String,
    count: u64,
    shown: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    text: String,
    page: Option<String>,
    bytes: Option<Bytes>,
}

/// The findings of a report, with as much text as the text budget allows.
pub(super) fn findings(report: &Report, reader: &mut PageBytesReader<'_>, room: &mut Budget) -> Findings {
    let damaged = damaged_pages(report);
    let names = names_of(report);
    let mut checks: Vec<&'static Check> = Vec::new();
    let mut places: BTreeMap<Place, Found> = BTreeMap::new();
    let mut more = BTreeSet::new();
    let (mut left, mut messages_left) = (MOST_FINDINGS, MOST_MESSAGES);
    for finding in &report.findings {
        let owner = finding.owner.filter(|owner| owner.object_id != 0);
        let place = owner.map(|owner| (owner.object_id, owner.index_id));
        if places.len() == MOST_PLACES && !places.contains_key(&place) {
            more.insert(place);
            continue;
        }
        let found = places.entry(place).or_insert_with(|| Found {
            heading: room.take_or_cut(&heading(place, &names), NAME_CHARS),
            ..Found::default()
        });
        found.count += 1;
        found.is_primitive |= finding.check.is_primitive();
        let check = position(&mut checks, finding.check);
        let follows = is_consequence(&finding, &damaged);
        let is_same = |message: &Message| (message.check, message.follows) == (check, follows);
        let known = found.messages.iter().position(is_same);
        if known.is_none() {
            if messages_left == 0 {
                continue;
            }
            messages_left -= 1;
            // If there is no short description, the page instead shows the general description of the fault, which
            // comes from the check.
            let brief = room.take(&finding.brief(&report.names()), NAME_CHARS).unwrap_or_default();
            found.messages.push(Message { check, follows, brief, count: 0, shown: Vec::new() });
        }
        let message = known.unwrap_or(found.messages.len() - 1);
        let Some(message) = found.messages.get_mut(message) else { continue };
        message.count += 1;
        if left == 0 || room.is_spent() || message.shown.len() == MOST_OF_ONE {
            continue;
        }
        let Some(text) = room.take(&finding.text(&report.names()), MOST_CHARS) else { continue };
        left -= 1;
        message.shown.push(show(text, &finding, reader));
    }
    let mut places: Vec<Found> = places.into_values().collect();
    for place in &mut places {
        place.messages.sort_by_key(|message| message.follows);
    }
    // Objects with findings that prevent reading the catalog come first. Objects that have only consequences of damage
    // elsewhere come last.
    places.sort_by_key(|place| (!place.is_primitive, place.messages.iter().all(|message| message.follows)));
    let checks = checks.into_iter().map(Explained::of).collect();
    Findings { count: report.findings.len(), places, more_places: more.len(), checks }
}

fn position(checks: &mut Vec<&'static Check>, check: &'static Check) -> usize {
    checks.iter().position(|known| known.id == check.id).unwrap_or_else(|| {
        checks.push(check);
        checks.len() - 1
    })
}

fn show(text: String, finding: &Finding, reader: &mut PageBytesReader<'_>) -> Shown {
    Shown {
        text,
        page: finding.page.filter(|page| !page.is_none()).map(|page| page.to_string()),
        bytes: reader.around(finding),
    }
}
