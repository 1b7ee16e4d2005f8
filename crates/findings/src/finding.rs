//! A finding as values. All outputs are made from these values.

mod codec;

use std::fmt::Write;

use catalog::{AllocUnit, Database, UnitKind};
use format::{AllocUnitId, PageId, RecordId};

use crate::content::Content;
use crate::registry::limits::Limit;
use crate::registry::{Check, Class, Repair, ReportOrder};

/// The object, index and unit that a finding belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// Object ID; 0 if the catalog does not know the unit.
    pub object_id: i32,
    /// Index ID; -1 if the catalog does not know the unit.
    pub index_id: i32,
    /// Rowset id.
    pub partition_id: u64,
    /// Allocation unit ID.
    pub alloc_unit: AllocUnitId,
    /// The kind of data in the unit; `None` if the catalog does not know the unit.
    pub kind: Option<UnitKind>,
}

impl Owner {
    /// The owner that CHECKDB prints when a header names a unit that the catalog does not know.
    pub fn unknown(alloc_unit: AllocUnitId) -> Self {
        Self { object_id: 0, index_id: -1, partition_id: 0, alloc_unit, kind: None }
    }

    /// The owner, according to the catalog, of pages whose headers name `alloc_unit`.
    pub fn of(database: &Database, alloc_unit: AllocUnitId) -> Self {
        let unit = database.unit_index(alloc_unit).and_then(|at| database.units.get(at));
        unit.map_or(Self::unknown(alloc_unit), |unit| Self::of_unit(database, unit))
    }

    /// The owner of the pages of a unit that is in the catalog.
    pub fn of_unit(database: &Database, unit: &AllocUnit) -> Self {
        let nobody = Self { kind: Some(unit.kind), ..Self::unknown(unit.id) };
        database.rowset_of(unit).map_or(nobody, |rowset| Self {
            object_id: rowset.object_id,
            index_id: rowset.index_id,
            partition_id: rowset.id,
            ..nobody
        })
    }

    /// "In-row data", "LOB data", "Row-overflow data" or "Unknown".
    pub fn type_name(&self) -> &'static str {
        self.kind.map_or("Unknown", UnitKind::message_name)
    }

    /// The owner as messages print it: `Object ID n, index ID n, partition ID n, alloc unit ID n (type t)`. `object` is
    /// the first word, so that the caller chooses its case.
    fn text(&self, object: &str) -> String {
        format!(
            "{object} ID {}, index ID {}, partition ID {}, alloc unit ID {} (type {})",
            self.object_id,
            self.index_id,
            self.partition_id.cast_signed(),
            self.alloc_unit,
            self.type_name()
        )
    }

    /// The owner in the wording of message 8982.
    fn text_au(&self) -> String {
        self.text("object").replacen("alloc unit ID", "AU ID", 1)
    }

    /// The owner in the wording of message 8926.
    fn text_short(&self) -> String {
        format!(
            "object {}, index {}, partition {}, AU {} ({})",
            self.object_id,
            self.index_id,
            self.partition_id.cast_signed(),
            self.alloc_unit,
            self.type_name()
        )
    }
}

/// A value that a message inserts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A page address.
    Page(PageId),
    /// An owner, in addition to the owner of the finding.
    Owner(Owner),
    /// Text.
    Text(String),
}

/// A proven violation of an invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The check that failed.
    pub check: &'static Check,
    /// Message state.
    pub state: u8,
    /// The owner of the damaged data; `None` if the message names no owner.
    pub owner: Option<Owner>,
    /// The page that is damaged or that the message is about.
    pub page: Option<PageId>,
    /// The slot on `page`.
    pub slot: Option<u16>,
    /// The page that refers to `page` or is compared with it.
    pub ref_page: Option<PageId>,
    /// The slot on `ref_page`.
    pub ref_slot: Option<u16>,
    /// The limit that may explain the finding. If this limit is set, the finding proves nothing.
    pub demoted_by: Option<&'static Limit>,
    /// What `page` contains, if the page as a whole is not the page that was written. This is no part of the message.
    pub content: Option<Content>,
    /// Further values that the message inserts, such as expected and actual values, by name.
    pub evidence: Vec<(&'static str, Value)>,
}

impl Finding {
    /// A finding of `check` without values. The methods below add values.
    pub fn new(check: &'static Check) -> Self {
        Self {
            check,
            state: check.state,
            owner: None,
            page: None,
            slot: None,
            ref_page: None,
            ref_slot: None,
            demoted_by: None,
            content: None,
            evidence: Vec::new(),
        }
    }

    /// Sets the content of the page.
    #[must_use]
    pub fn content(mut self, content: Option<Content>) -> Self {
        self.content = content;
        self
    }

    /// Sets the owner.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Sets the page.
    #[must_use]
    pub fn page(mut self, page: PageId) -> Self {
        self.page = Some(page);
        self
    }

    /// Sets page and slot.
    #[must_use]
    pub fn at(mut self, page: PageId, slot: u16) -> Self {
        (self.page, self.slot) = (Some(page), Some(slot));
        self
    }

    /// Sets page and slot from a record address.
    #[must_use]
    pub fn at_record(self, record: RecordId) -> Self {
        self.at(record.page, record.slot)
    }

    /// Sets the reference page.
    #[must_use]
    pub fn ref_page(mut self, page: PageId) -> Self {
        self.ref_page = Some(page);
        self
    }

    /// Sets reference page and slot.
    #[must_use]
    pub fn ref_at(mut self, page: PageId, slot: u16) -> Self {
        (self.ref_page, self.ref_slot) = (Some(page), Some(slot));
        self
    }

    /// Sets the message state.
    #[must_use]
    pub fn state(mut self, state: u8) -> Self {
        self.state = state;
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, name: &'static str, value: impl Into<i64>) -> Self {
        self.evidence.push((name, Value::Number(value.into())));
        self
    }

    /// Adds a page address.
    #[must_use]
    pub fn page_value(mut self, name: &'static str, page: PageId) -> Self {
        self.evidence.push((name, Value::Page(page)));
        self
    }

    /// Adds text.
    #[must_use]
    pub fn text_value(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.evidence.push((name, Value::Text(text.into())));
        self
    }

    /// Adds another owner, as `other_owner`.
    #[must_use]
    pub fn other_owner(mut self, owner: Owner) -> Self {
        self.evidence.push(("other_owner", Value::Owner(owner)));
        self
    }

    /// The object under which the finding is printed; `None` if it is "not associated with any single object".
    pub fn object_id(&self) -> Option<i32> {
        self.owner.map(|owner| owner.object_id).filter(|&id| id != 0)
    }

    /// The minimum repair. Structural damage of a nonclustered index is repaired by rebuilding the index, if the
    /// damaged page can be attributed to the index (docs/format/checkdb.md#repair-levels). For messages 8928 and 8939
    /// (state 98), however, transcripts of CHECKDB show repair_allow_data_loss.
    pub fn repair(&self) -> Repair {
        let nonclustered = self.owner.is_some_and(|owner| owner.index_id > 1);
        match self.check.repair {
            Repair::AllowDataLoss if nonclustered && self.check.policy.is_mended_by_rebuild => Repair::Rebuild,
            other => other,
        }
    }

    /// The order in which findings are listed: by object and index, then by the report order of the check
    /// ([`ReportOrder`]), then by unit, page and message.
    pub fn sort_key(&self) -> impl Ord + use<'_> {
        let owner = self.owner.filter(|owner| owner.object_id != 0);
        let (group, page) = match self.check.listed {
            ReportOrder::OfMap | ReportOrder::ByPage | ReportOrder::BehindCause | ReportOrder::OfMissing => {
                (0, self.page)
            }
            ReportOrder::ByReference => (0, self.ref_page),
            ReportOrder::AsConsequence => (1, self.page),
            ReportOrder::Last => (2, self.page),
        };
        (
            (owner.map(|owner| (owner.object_id, owner.index_id)), group, owner.map(|owner| owner.alloc_unit)),
            (page, self.check.listed, self.page, self.slot, self.check.msg, self.state),
            (self.ref_page, self.ref_slot),
            self.evidence.as_slice(),
        )
    }

    /// Whether both findings have the same check, place and values. A fault that several phases find is reported once.
    pub fn is_same(&self, other: &Self) -> bool {
        self.check == other.check
            && self.owner == other.owner
            && self.page == other.page
            && self.slot == other.slot
            && self.ref_page == other.ref_page
            && self.ref_slot == other.ref_slot
            && self.evidence == other.evidence
    }

    /// The category of this finding in the summary. Findings of the category `Uncounted` are not counted.
    pub fn class(&self) -> Class {
        self.check.class
    }

    /// The message text.
    pub fn text(&self, names: &Names<'_>) -> String {
        self.filled(self.check.template, names)
    }

    /// A few words that say what is wrong.
    pub fn brief(&self, names: &Names<'_>) -> String {
        self.filled(self.check.brief, names)
    }

    /// Replaces each `{name}` in the template by a value of this finding.
    fn filled(&self, template: &str, names: &Names<'_>) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((place, behind)) = after.split_once('}') else { break };
            text.push_str(before);
            self.insert(&mut text, place, names);
            rest = behind;
        }
        text.push_str(rest);
        text
    }

    fn insert(&self, text: &mut String, place: &str, names: &Names<'_>) {
        let (name, hex) = place.strip_suffix(":x").map_or((place, false), |name| (name, true));
        let owner = self.owner.unwrap_or(Owner::unknown(AllocUnitId(0)));
        let page = |page: Option<PageId>| page.unwrap_or(PageId::NONE).to_string();
        let slot = |slot: Option<u16>| slot.unwrap_or_default().to_string();
        let inserted = match name {
            "owner" => owner.text("Object"),
            "owner_lower" => owner.text("object"),
            "owner_au" => owner.text_au(),
            "purity_owner" => owner.text("object").replace("(type ", "(type \"").replace(')', "\")"),
            "owner_short" => owner.text_short(),
            "object_id" => owner.object_id.to_string(),
            "index_id" => owner.index_id.to_string(),
            "partition_id" => owner.partition_id.cast_signed().to_string(),
            "alloc_unit_id" => owner.alloc_unit.to_string(),
            "alloc_type" => owner.type_name().to_owned(),
            "page" => page(self.page),
            "ref_page" => page(self.ref_page),
            "slot" => slot(self.slot),
            "ref_slot" => slot(self.ref_slot),
            "database" => names.database.to_owned(),
            "database_id" => names.database_id.to_string(),
            "command" => names.command.to_owned(),
            "other_owner_au" => self.other().map_or_else(String::new, Owner::text_au),
            "other_owner_short" => self.other().map_or_else(String::new, Owner::text_short),
            name => match self.value(name) {
                Some(Value::Number(number)) if hex => format!("{number:x}"),
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Page(page)) => page.to_string(),
                Some(Value::Owner(owner)) => owner.text("object"),
                Some(Value::Text(text)) => text.clone(),
                None => "?".to_owned(),
            },
        };
        let _ = text.write_str(&inserted);
    }

    fn other(&self) -> Option<&Owner> {
        match self.value("other_owner") {
            Some(Value::Owner(owner)) => Some(owner),
            _ => None,
        }
    }

    /// The evidence called `name`.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.evidence.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// Names of the run that any message may insert.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Database name.
    pub database: &'a str,
    /// Database id.
    pub database_id: u16,
    /// The command that the run corresponds to: CHECKDB, CHECKTABLE ...
    pub command: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    const NAMES: Names<'_> = Names { database: "testDB", database_id: 5, command: "CHECKDB" };

    #[test]
    fn texts_equal_published_transcripts() {
        // The texts are from docs/format/cases.md#case-16 and docs/format/cases.md#case-18.
        let owner = Owner {
            object_id: 901_578_250,
            index_id: 1,
            partition_id: 72_057_594_045_726_720,
            alloc_unit: AllocUnitId(72_057_594_052_476_928),
            kind: Some(UnitKind::InRow),
        };
        let finding = Finding::new(&registry::PAGE_IO)
            .owner(owner)
            .page(PageId::new(1, 392))
            .page_value("header_page", PageId::new(1, 392))
            .text_value("test", "IS_OFF (BUF_IOERR, pBUF->bstat)")
            .number("value", 133_129)
            .number("against", -4);
        assert_eq!(
            finding.text(&NAMES),
            "Table error: Object ID 901578250, index ID 1, partition ID 72057594045726720, alloc unit ID \
             72057594052476928 (type In-row data), page (1:392). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are \
             133129 and -4."
        );
        let unit = AllocUnitId::from_header(0xC0C0, 0xC0C0_C0C0);
        let finding = Finding::new(&registry::PAGE_ID)
            .owner(Owner::unknown(unit))
            .page(PageId::new(1, 336))
            .page_value("header_page", PageId::new(0xC0C0, 0xC0C0_C0C0));
        assert_eq!(
            finding.text(&NAMES),
            "Table error: Object ID 0, index ID -1, partition ID 0, alloc unit ID -4557430888798879744 (type Unknown), page \
             ID (1:336) contains an incorrect page ID in its page header. The PageId in the page header = \
             (49344:-1061109568)."
        );
        assert_eq!(finding.object_id(), None);
    }

    /// An owner with object ID 1413580074 and, in each call, the same index ID.
    fn owner(alloc_unit: u64) -> Owner {
        let kind = Some(UnitKind::InRow);
        Owner { object_id: 1_413_580_074, index_id: 1, partition_id: 1, alloc_unit: AllocUnitId(alloc_unit), kind }
    }

    /// Message number and page of each finding, in listing order.
    fn listed(mut findings: Vec<Finding>) -> Vec<(u16, u32)> {
        findings.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        findings.iter().map(|finding| (finding.check.msg, finding.page.unwrap_or_default().page)).collect()
    }

    #[test]
    fn order_equals_published_transcripts() {
        let of = |check, page| Finding::new(check).owner(owner(2)).page(PageId::new(1, page));
        // docs/format/cases.md#case-17: two leaves are bad. Each of them causes three messages: two about the leaf
        // itself, one of which also names the parent page, and one about the page after the leaf.
        let leaf = |page, next| {
            let next: Finding = of(&registry::TREE_PREV_UNSEEN, next);
            let unseen = of(&registry::TREE_CHILD_UNSEEN, page).ref_page(PageId::new(1, 15_990));
            [next.ref_page(PageId::new(1, page)), unseen, of(&registry::PAGE_UNPROCESSED, page)]
        };
        let findings = leaf(15_848, 15_849).into_iter().chain(leaf(15_840, 15_841)).collect();
        let expected = [(8928, 15_840), (8976, 15_840), (8978, 15_841), (8928, 15_848), (8976, 15_848), (8978, 15_849)];
        assert_eq!(listed(findings), expected);
        // docs/format/cases.md#case-19 and docs/format/cases.md#case-20: the message about the fault of the page comes
        // first, then the message that the page was not processed, then the messages about the pages that refer to the
        // page.
        let before = of(&registry::TREE_PREV_UNSEEN, 1767).ref_page(PageId::new(1, 1766));
        let findings = [&registry::TREE_CHILD_UNSEEN, &registry::PAGE_UNPROCESSED, &registry::PAGE_IO];
        let findings = findings.into_iter().map(|check| of(check, 1766)).chain([before]).collect();
        assert_eq!(listed(findings), [(8939, 1766), (8928, 1766), (8976, 1766), (8978, 1767)]);
        // docs/format/cases.md#case-5: the message about the record comes before the message about its page.
        let record = Finding::new(&registry::RECORD_AUDIT).owner(owner(2)).at(PageId::new(1, 280), 3);
        let findings = vec![of(&registry::TREE_CHILD_UNSEEN, 280), of(&registry::PAGE_UNPROCESSED, 280), record];
        assert_eq!(listed(findings), [(8944, 280), (8928, 280), (8976, 280)]);
        // docs/format/cases.md#case-2: the message about the page comes before the messages about the fragments on it.
        let fragment = Finding::new(&registry::LOB_UNSEEN).owner(owner(2)).at(PageId::new(1, 78_859), 0);
        let findings = vec![fragment, of(&registry::PAGE_UNPROCESSED, 78_859)];
        assert_eq!(listed(findings), [(8928, 78_859), (8965, 78_859)]);
        // docs/format/cases.md#case-31: the messages about all fragments come before those about the owning rows,
        // independent of page numbers.
        let fragment = |page| Finding::new(&registry::LOB_UNSEEN).owner(owner(1)).page(PageId::new(1, page));
        let findings = vec![of(&registry::LOB_OWNER, 9222), fragment(18_447), of(&registry::LOB_OWNER, 8160)];
        assert_eq!(listed(findings), [(8965, 18_447), (8929, 8160), (8929, 9222)]);
    }

    #[test]
    fn what_is_wrong_with_an_allocation_page_stands_before_what_is_wrong_with_it_as_a_page() {
        let page = PageId::new(1, 8088);
        let of = |check| Finding::new(check).page(page);
        let findings = vec![
            of(&registry::INTERVAL_UNCHECKED),
            of(&registry::PAGE_ID).owner(Owner::unknown(AllocUnitId(0))),
            of(&registry::MAP_PAGE_INVALID),
        ];
        assert_eq!(listed(findings), [(8946, 8088), (8909, 8088), (8998, 8088)]);
    }

    #[test]
    fn what_follows_from_damage_elsewhere_is_listed_behind_it_whatever_its_page() {
        let of = |check, page| Finding::new(check).owner(owner(1)).page(PageId::new(1, page));
        let root = of(&registry::PAGE_HEADER, 300);
        let before = of(&registry::TREE_PREV_UNSEEN, 100).ref_page(PageId::new(1, 300));
        let child = of(&registry::TREE_PARENT_UNSEEN, 200);
        assert_eq!(listed(vec![child, before, root]), [(8939, 300), (8978, 100), (8977, 200)]);
    }
}
