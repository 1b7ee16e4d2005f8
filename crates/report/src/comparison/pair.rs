//! Finds pairs of messages: each message of the server with the message of this program about the same damage.

use std::collections::{BTreeMap, BTreeSet};

use format::PageId;

use super::kinds;
use super::message::{Key, Message, Place};

/// The number of candidates that are compared with one message. This bounds the work for results that name one page
/// many times.
const MOST_CANDIDATES: usize = if cfg!(test) { 100 } else { 1000 };

/// The messages of one side that have no partner yet.
pub(super) type Left = BTreeMap<Key, Message>;

/// A pair of messages about the same damage.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) server: Message,
    pub(super) own: Message,
}

/// Where a message is looked for: its page, or its object if it names no page.
type Anchor = (Option<PageId>, Option<i32>);

fn anchors(message: &Message) -> Vec<Anchor> {
    let anchor = |place: Place| match place.page {
        Some(page) => (Some(page), None),
        None => (None, place.object),
    };
    let mut anchors: Vec<Anchor> = message.places().map(anchor).filter(|anchor| *anchor != (None, None)).collect();
    anchors.sort_unstable();
    anchors.dedup();
    anchors
}

/// Takes the pairs out of both sides: first messages that are equal in all parts, then messages with the same number
/// and places that agree.
pub(super) fn same(server: &mut Left, own: &mut Left) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let equal: Vec<Key> = server.keys().filter(|key| own.contains_key(key)).cloned().collect();
    for key in equal {
        pairs.extend(server.remove(&key).zip(own.remove(&key)).map(|(server, own)| Pair { server, own }));
    }
    pairs.extend(matching(server, own, |server, own| server.number == own.number && agree(server, own)));
    // The wording of catalog messages depends on the release, so one message about one table is enough.
    pairs.extend(of_catalog(server, own));
    pairs
}

/// Takes out the pairs with different numbers: related messages about the same place.
pub(super) fn related(server: &mut Left, own: &mut Left) -> Vec<Pair> {
    matching(server, own, |server, own| {
        let is_related = server.number != own.number && kinds::are_related(server.number, own.number);
        is_related
            && server.places().any(|one| own.places().any(|other| one.without_slot().agrees(&other.without_slot())))
    })
}

/// Whether any places of the two messages agree. Two messages whose places are completely known agree only if the
/// slots are equal too.
fn agree(server: &Message, own: &Message) -> bool {
    let is_told = |one: &Message, other: &Message| one.detail.is_none() || one.detail == other.detail;
    let both = |one: Place, other: Place| {
        one.agrees(&other) && (server.is_partial || one.page.is_some() || is_told(server, own))
    };
    server.places().any(|one| own.places().any(|other| both(one, other)))
}

fn matching(server: &mut Left, own: &mut Left, fits: impl Fn(&Message, &Message) -> bool) -> Vec<Pair> {
    let mut by_anchor: BTreeMap<Anchor, BTreeSet<Key>> = BTreeMap::new();
    for (key, message) in own.iter() {
        for anchor in anchors(message) {
            by_anchor.entry(anchor).or_default().insert(key.clone());
        }
    }
    let mut pairs = Vec::new();
    let keys: Vec<Key> = server.keys().cloned().collect();
    for key in keys {
        let Some(message) = server.get(&key) else { continue };
        let candidates = anchors(message).into_iter().filter_map(|anchor| by_anchor.get(&anchor)).flatten();
        let is_partner = |candidate: &&Key| own.get(candidate).is_some_and(|one| fits(message, one));
        let Some(partner) = candidates.take(MOST_CANDIDATES).find(is_partner).cloned() else { continue };
        let Some((server, own)) = server.remove(&key).zip(own.remove(&partner)) else { continue };
        // A partner that is taken is no candidate any more, so that it does not count as one.
        for anchor in anchors(&own) {
            by_anchor.get_mut(&anchor).map(|keys| keys.remove(&partner));
        }
        pairs.push(Pair { server, own });
    }
    pairs
}

/// Pairs of catalog messages that name the same system table, and of messages about the whole database, in order.
fn of_catalog(server: &mut Left, own: &mut Left) -> Vec<Pair> {
    let subject = |message: &Message| {
        if message.number == 7995 || message.number == 8930 {
            return Some((message.number, String::new()));
        }
        let (inner, rest) = message.wrapped().filter(|_| message.number == 8992)?;
        let (_, table) = rest.split_once("sys.")?;
        let end = table.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(table.len());
        Some((inner, table.get(..end).unwrap_or_default().to_owned()))
    };
    let mut by_subject: BTreeMap<(u32, String), Vec<Key>> = BTreeMap::new();
    for (key, message) in own.iter().rev() {
        if let Some(subject) = subject(message) {
            by_subject.entry(subject).or_default().push(key.clone());
        }
    }
    let mut pairs = Vec::new();
    let named: Vec<_> = server.iter().filter_map(|(key, message)| Some((key.clone(), subject(message)?))).collect();
    for (key, subject) in named {
        let Some(partner) = by_subject.get_mut(&subject).and_then(Vec::pop) else { continue };
        pairs.extend(server.remove(&key).zip(own.remove(&partner)).map(|(server, own)| Pair { server, own }));
    }
    pairs
}
