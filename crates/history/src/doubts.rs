//! The places that a run could not verify, by object. If an object has such a place, the run cannot prove that a
//! finding in this object is gone, or that its heap or index is sound.

use std::collections::{BTreeSet, HashMap};

use findings::registry::Basis;
use findings::registry::limits::{Limit, LimitKind, WINDOW_CONTAINER_OPEN, WINDOW_OPEN};
use findings::{NotVerified, Report};

/// The unverified places of a run.
pub(crate) struct Doubts {
    /// For each object ID, the limits that prevented the verification of places in this object.
    of_objects: HashMap<i32, Vec<&'static Limit>>,
    /// The limits that prevented the verification of a place that could not be assigned to an object of the run.
    of_all: Vec<&'static Limit>,
}

impl Doubts {
    pub(crate) fn of(report: &Report) -> Self {
        let mut names: HashMap<String, BTreeSet<i32>> = HashMap::new();
        for rowset in &report.rowsets {
            names.entry(rowset.display_name()).or_default().insert(rowset.object_id);
        }
        let mut doubts = Self { of_objects: HashMap::new(), of_all: Vec::new() };
        // What the container of a backup says is about no table.
        let of_pages = report.not_verified.iter().filter(|entry| entry.limit != &WINDOW_CONTAINER_OPEN);
        for NotVerified { scope, limit, objects, .. } in of_pages {
            let objects = match objects.is_empty() {
                true => objects_in(&names, scope),
                false => objects.iter().copied().collect(),
            };
            if objects.is_empty() {
                doubts.of_all.push(limit);
            }
            for object_id in objects {
                doubts.of_objects.entry(object_id).or_default().push(limit);
            }
        }
        doubts
    }

    /// Whether an unverified place may affect the checks that compare `basis` in the object `object_id`, or in any object
    /// if `object_id` is `None`.
    pub(crate) fn concern(&self, basis: Basis, object_id: Option<i32>) -> bool {
        let of_object = object_id.and_then(|id| self.of_objects.get(&id)).into_iter().flatten();
        let of_any = self.of_objects.values().flatten().filter(|_| object_id.is_none());
        of_object.chain(of_any).any(|limit| limit.may_prevent(basis))
            || self.of_all.iter().any(|limit| {
                // A check of a single page or record needs no other page. An unverified place elsewhere does not affect
                // it.
                let is_by_itself = basis == Basis::OnePage && object_id.is_some();
                // The limit for an open time window does not affect the pages that were already read.
                let is_of_place = limit.id != WINDOW_OPEN.id
                    && matches!(limit.kind, LimitKind::Damaged | LimitKind::Unreadable | LimitKind::NotGiven);
                limit.may_prevent(basis) && (is_of_place || !is_by_itself)
            })
    }
}

/// Returns the objects that the text `place` may name. For example, `Order.s` may mean index `s` of the table `Order`,
/// or the table `Order.s`. In such a case, the result contains both tables.
fn objects_in(names: &HashMap<String, BTreeSet<i32>>, place: &str) -> BTreeSet<i32> {
    let ends = place.char_indices().filter(|(_, c)| matches!(c, '.' | ' ' | ',')).map(|(at, _)| at);
    let named = ends.chain(std::iter::once(place.len())).filter_map(|end| names.get(place.get(..end)?));
    named.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use findings::RowsetCounts;
    use findings::registry::limits;

    use super::*;

    fn entry(scope: &str, limit: &'static Limit) -> NotVerified {
        NotVerified { what: "x".into(), scope: scope.into(), reason: "y".into(), count: 1, limit, objects: Vec::new() }
    }

    fn report(entries: Vec<NotVerified>) -> Report {
        let named = |object_id, schema: &str, name: &str| RowsetCounts {
            object_id,
            schema: schema.into(),
            name: name.into(),
            ..RowsetCounts::default()
        };
        let rowsets = vec![named(1, "dbo", "Orders"), named(2, "sales", "Orders"), named(3, "dbo", "Order.s")];
        Report { rowsets, not_verified: entries, ..Report::default() }
    }

    #[test]
    fn a_doubt_is_about_the_object_that_it_names() {
        let report = report(vec![entry("sales.Orders.IX_1", &limits::INDEX_ROWS_FORM)]);
        let doubts = Doubts::of(&report);
        assert!(doubts.concern(Basis::Several, Some(2)) && !doubts.concern(Basis::Several, Some(1)));
        assert!(doubts.concern(Basis::Several, None), "of an unknown object it may be");
    }

    #[test]
    fn a_doubt_is_about_every_object_that_its_text_may_name() {
        let mut report = report(vec![entry("Order.s", &limits::INDEX_ROWS_FORM)]);
        let order =
            RowsetCounts { object_id: 4, schema: "dbo".into(), name: "Order".into(), ..RowsetCounts::default() };
        report.rowsets.push(order);
        let doubts = Doubts::of(&report);
        assert!(doubts.concern(Basis::Several, Some(4)), "its index s");
        assert!(doubts.concern(Basis::Several, Some(3)), "the table [Order.s]");
        assert!(!doubts.concern(Basis::Several, Some(1)));
    }

    #[test]
    fn a_doubt_that_knows_its_objects_is_about_no_other_whose_name_reads_alike() {
        let of = |objects| NotVerified { objects, ..entry("dbo.Order.s", &limits::INDEX_ROWS_FORM) };
        let doubts = |objects| Doubts::of(&report(vec![of(objects)]));
        let index = doubts(vec![4]);
        assert!(index.concern(Basis::Several, Some(4)), "index s of dbo.Order, which the run does not list");
        assert!(!index.concern(Basis::Several, Some(3)), "the table [Order.s]");
        let both = doubts(vec![3, 4]);
        assert!(both.concern(Basis::Several, Some(3)) && both.concern(Basis::Several, Some(4)));
        assert!(!both.concern(Basis::Several, Some(1)), "another table");
        assert!(doubts(Vec::new()).concern(Basis::Several, Some(3)), "without ids the text decides");
    }

    #[test]
    fn a_doubt_without_an_object_is_about_all() {
        let report = report(vec![entry("database", &limits::CATALOG_BOOT_PAGE)]);
        let doubts = Doubts::of(&report);
        assert!(doubts.concern(Basis::Several, Some(2)) && doubts.concern(Basis::OnePage, Some(1)));
    }

    #[test]
    fn while_a_window_is_open_only_what_a_page_says_against_itself_is_beyond_doubt() {
        let report = report(vec![entry("database", &limits::WINDOW_OPEN)]);
        let doubts = Doubts::of(&report);
        assert!(!doubts.concern(Basis::OnePage, Some(1)) && !doubts.concern(Basis::OnePage, Some(2)));
        assert!(doubts.concern(Basis::Several, Some(1)) && doubts.concern(Basis::Several, Some(1)));
        assert!(doubts.concern(Basis::Several, Some(1)) && doubts.concern(Basis::OnePage, None));
    }

    #[test]
    fn nothing_is_in_doubt_after_a_complete_run() {
        let doubts = Doubts::of(&report(Vec::new()));
        assert!(!doubts.concern(Basis::Several, None) && !doubts.concern(Basis::OnePage, Some(1)));
    }
}
