//! Requested checks that could not be made, collected from all phases and threads.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::registry::limits::{Limit, Reason};

/// A requested check that could not be made. It is not a finding, but it is always reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotVerified {
    /// What was not verified: "key order", "columns" ...
    pub what: String,
    /// The place that was not verified: the name of an object, index or file, or "database".
    pub scope: String,
    /// Why it was not verified.
    pub reason: String,
    /// The number of comparisons, pages or rows that were not verified; 0 if they cannot be counted.
    pub count: u64,
    /// The limit that describes the reason.
    pub limit: &'static Limit,
    /// The IDs of the objects concerned; empty if they are known only by `scope`, which can be ambiguous: index `s` of
    /// table `Order` reads like a table `Order.s`.
    pub objects: Vec<i32>,
}

/// A place where something could not be verified.
pub struct Place {
    text: String,
    object: Option<i32>,
}

impl Place {
    /// An object or a part of an object.
    pub fn of(object_id: i32, text: impl Into<String>) -> Self {
        Self { text: text.into(), object: Some(object_id).filter(|id| *id != 0) }
    }
}

impl From<String> for Place {
    fn from(text: String) -> Self {
        Self { text, object: None }
    }
}

impl From<&String> for Place {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Cow<'_, str>> for Place {
    fn from(text: Cow<'_, str>) -> Self {
        text.into_owned().into()
    }
}

/// Collects what was not verified. Equal entries are merged and their counts added.
#[derive(Default)]
pub struct Coverage {
    /// The entries, by what was not verified, scope and reason.
    entries: BTreeMap<(String, String, Reason), Noted>,
}

#[derive(Default)]
struct Noted {
    count: u64,
    objects: BTreeSet<i32>,
    /// Whether this entry includes a note that names no object.
    has_others: bool,
}

impl Coverage {
    /// Notes that `count` items in `scope` were not verified; the limit says what kind of items. `count` is 0 if the
    /// items cannot be counted.
    pub fn note(&mut self, reason: impl Into<Reason>, scope: impl Into<Place>, count: u64) {
        let reason = reason.into();
        self.note_as(reason.limit.what, reason, scope, count);
    }

    /// Like `note`, but `what` says what was not verified, for limits that prevent several kinds of checks.
    pub fn note_as(&mut self, what: &str, reason: impl Into<Reason>, scope: impl Into<Place>, count: u64) {
        let Place { text, object } = scope.into();
        let noted = self.entries.entry((what.to_owned(), text, reason.into())).or_default();
        noted.count += count;
        noted.objects.extend(object);
        noted.has_others |= object.is_none();
    }

    /// Two sorted lists: first what was not verified, then notes that are only for information.
    pub fn into_lists(self) -> (Vec<NotVerified>, Vec<NotVerified>) {
        let entries = self.entries.into_iter().map(|((what, scope, reason), noted)| {
            let Reason { limit, text: reason } = reason;
            let Noted { count, objects, has_others } = noted;
            let objects = if has_others { Vec::new() } else { objects.into_iter().collect() };
            NotVerified { what, scope, reason, count, limit, objects }
        });
        entries.partition(|entry| !entry.limit.is_note())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::limits::INDEX_ROWS_FORM;

    #[test]
    fn places_that_read_alike_are_one_entry_that_knows_its_objects_unless_one_is_unknown() {
        let objects = |places: Vec<Place>| {
            let mut coverage = Coverage::default();
            places.into_iter().for_each(|place| coverage.note(&INDEX_ROWS_FORM, place, 1));
            let (list, _) = coverage.into_lists();
            list.into_iter().map(|entry| (entry.count, entry.objects)).collect::<Vec<_>>()
        };
        assert_eq!(objects(vec![Place::of(5, "dbo.Order.s"), Place::of(7, "dbo.Order.s")]), [(2, vec![5, 7])]);
        assert_eq!(objects(vec![Place::of(5, "dbo.Order.s"), "dbo.Order.s".into()]), [(2, vec![])]);
        assert_eq!(objects(vec![Place::of(0, "alloc unit ID 1")]), [(1, vec![])]);
    }
}
