//! The registry of checks, with one row per check. The messages, `mdfsck explain`, docs/checks.md and the tests are all
//! based on it.

pub mod damage;
pub mod limits;
#[cfg(test)]
mod outside;
mod questions;
mod table;

use std::fmt;

pub use damage::Damage;
pub use questions::{Basis, CauseRank};
pub use table::*;

/// A phase of a run. The phase determines what its checks examine, and when these checks are made. Other crates do not
/// name phases: they ask [`Check`], whose methods say what is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// The leaf chains of the base tables that are needed to find all other tables.
    Primitive,
    /// Allocation maps and IAM chains.
    Allocation,
    /// The catalog as a whole.
    Metadata,
    /// Header and slot array of one page.
    Page,
    /// One record.
    Record,
    /// The columns of one record, compared with their description in the catalog.
    Column,
    /// Pages, compared with other pages.
    CrossPage,
    /// Rows, compared with other rows, such as the rows of an index with the rows of its table.
    CrossRow,
    /// Off-row values: fragments compared with the pointers to them.
    OffRow,
    /// Tables of the catalog, compared with each other.
    Catalog,
    /// Counts in the catalog, compared with the counts of the run.
    Counts,
    /// Rows compared with the constraints of their table.
    Constraint,
    /// Pages compared with the log.
    Log,
    /// The structures of a backup file that contain the pages.
    Container,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 14] = [
        Self::Primitive,
        Self::Allocation,
        Self::Metadata,
        Self::Page,
        Self::Record,
        Self::Column,
        Self::CrossPage,
        Self::CrossRow,
        Self::OffRow,
        Self::Catalog,
        Self::Counts,
        Self::Constraint,
        Self::Log,
        Self::Container,
    ];

    /// The name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primitive => "primitive system table checks",
            Self::Allocation => "allocation",
            Self::Metadata => "metadata",
            Self::Page => "page audit",
            Self::Record => "record audit",
            Self::Column => "columns",
            Self::CrossPage => "cross-page links",
            Self::CrossRow => "indexes against tables",
            Self::OffRow => "off-row data",
            Self::Catalog => "catalog",
            Self::Counts => "counts",
            Self::Constraint => "constraints",
            Self::Log => "pages against the log",
            Self::Container => "backup",
        }
    }
}

/// Whether CHECKDB's summary counts a message as an error, and as which kind of error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Counted as an allocation error.
    Allocation,
    /// Counted as a consistency error.
    Consistency,
    /// Not counted: the message ends the run, or continues another message.
    Uncounted,
}

/// The minimum repair level that CHECKDB would recommend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Repair {
    /// No repair exists; the database must be restored.
    #[default]
    None,
    /// REPAIR_REBUILD.
    Rebuild,
    /// REPAIR_ALLOW_DATA_LOSS.
    AllowDataLoss,
}

impl Repair {
    /// The repair level as message 8958 prints it; `None` if no repair exists.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Rebuild => Some("repair_rebuild"),
            Self::AllowDataLoss => Some("repair_allow_data_loss"),
        }
    }
}

/// The position of a message within the messages about its index. CHECKDB groups messages by index and page
/// (docs/format/checkdb.md#order-of-lines). There is an exception: if damage on one page causes a message about another
/// page with a lower address, the message about the other page is not listed in page order, but after the message about
/// the damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReportOrder {
    /// Listed with the messages about its page, before all other messages about the page, because allocation pages are
    /// checked first (8946 comes before 8909).
    OfMap,
    /// Listed with the messages about its page, because this page is damaged.
    ByPage,
    /// Listed with the messages about its page, after those messages that say what is wrong with the page (8939 and
    /// 8944 come before 8928: docs/format/cases.md#case-19).
    BehindCause,
    /// Listed with the messages about the missing page, after those messages that say why the page is missing (8928
    /// comes before 8976).
    OfMissing,
    /// Listed with the messages about the missing page to which this message refers (8978 is listed with 8928 and 8976
    /// of the previous page).
    ByReference,
    /// Listed after all messages about damage. The message names pages or rows that have no counterpart, and any of the
    /// damage may be the reason.
    AsConsequence,
    /// Listed at the end. The message names objects that could not be checked because of other findings.
    Last,
}

/// Properties that are the same for all findings of a check. The phase of the check determines them, unless the entry
/// of the check in the table of checks overrides them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Whether a finding is a proof only if the pages contain all changes in the log.
    pub rests_on_log: bool,
    /// Whether a finding is a proof only if the allocation maps and the catalog could be read, because the check
    /// compares a page with them.
    pub rests_on_maps: bool,
    /// Whether the check depends on facts that newer releases may extend, such as types, row formats, and tables of the
    /// catalog. The formats of pages, allocation maps and B-trees have not changed since SQL Server 2005.
    pub rests_on_release: bool,
    /// Whether CHECKALLOC makes this check too.
    pub is_of_checkalloc: bool,
    /// Whether CHECKCATALOG makes this check too.
    pub is_of_checkcatalog: bool,
    /// Whether rebuilding a nonclustered index from its table removes the damage.
    pub is_mended_by_rebuild: bool,
    /// Whether the finding only refers to another message that says what is wrong with the page. Without that message,
    /// the finding is no proof.
    pub is_explained: bool,
    /// Whether the finding only supplements another finding, and this other finding says what is wrong.
    pub follows: bool,
    /// Whether the action of the check only refers to other findings, whose actions say what to do.
    pub is_remedied_elsewhere: bool,
}

impl Policy {
    /// The policy for the checks of a phase.
    pub const fn of(phase: Phase) -> Self {
        // A contradiction within a page, between a page and the log, or within the container of a backup is a proof by
        // itself.
        let is_by_itself = matches!(phase, Phase::Page | Phase::Record | Phase::Log | Phase::Container);
        let is_allocation = matches!(phase, Phase::Allocation);
        Self {
            // The log may contain an ALTER TABLE that explains the shape, lengths and precisions of a row.
            rests_on_log: !is_by_itself,
            // Without the allocation maps, the page may be a free page with rows from before the last ALTER TABLE.
            rests_on_maps: !is_by_itself && !matches!(phase, Phase::Primitive),
            rests_on_release: !is_by_itself
                && !matches!(phase, Phase::Primitive | Phase::Allocation | Phase::CrossPage),
            is_of_checkalloc: is_allocation,
            is_of_checkcatalog: false,
            is_mended_by_rebuild: false,
            is_explained: false,
            follows: false,
            is_remedied_elsewhere: false,
        }
    }

    /// Changes the policy for a check whose findings are proven by a single page or file.
    pub const fn rests_on_nothing(self) -> Self {
        Self { rests_on_log: false, rests_on_maps: false, rests_on_release: false, ..self }
    }

    /// Changes the policy for a check whose findings are proofs only if the log was applied. Until then, a page may
    /// look wrong only because changes in the log were never written to the page on disk.
    pub const fn rests_on_the_log(self) -> Self {
        Self { rests_on_log: true, rests_on_maps: false, rests_on_release: false, ..self }
    }

    /// CHECKALLOC has the check too.
    pub const fn checkalloc(self) -> Self {
        Self { is_of_checkalloc: true, ..self }
    }

    /// CHECKCATALOG has the check too.
    pub const fn checkcatalog(self) -> Self {
        Self { is_of_checkcatalog: true, ..self }
    }

    /// A rebuild removes the cause of the finding.
    pub const fn mended_by_rebuild(self) -> Self {
        Self { is_mended_by_rebuild: true, ..self }
    }

    /// Another finding may explain the finding.
    pub const fn explained(self) -> Self {
        Self { is_explained: true, ..self }
    }

    /// The finding supplements another finding.
    pub const fn follows(self) -> Self {
        Self { follows: true, ..self }
    }

    /// The actions of other checks say what to do.
    pub const fn remedied_elsewhere(self) -> Self {
        Self { is_remedied_elsewhere: true, ..self }
    }
}

/// IDs of removed checks; new checks must not reuse them.
pub const RETIRED: &[&str] = &[
    // The check of message 7961 was removed, because an UPDATE to NULL may leave the bytes of the old value in the row.
    "column.null-length",
    // The check of message 5260 was removed, because page headers do not reliably show which pages contain row
    // versions.
    "page.version-flag",
];

/// One check: an invariant, and the message that reports its violation.
pub struct Check {
    /// Stable id, never reused.
    pub id: &'static str,
    /// SQL Server's message number.
    pub msg: u16,
    /// Message state, for findings that do not set their own state.
    pub state: u8,
    /// The phase in which the check is made.
    pub phase: Phase,
    /// What is damaged. The steps of a repair depend on it.
    pub damage: Damage,
    /// How CHECKDB's summary counts the message.
    pub class: Class,
    /// Minimum repair.
    pub repair: Repair,
    /// Whether PHYSICAL_ONLY includes the check.
    pub physical_only: bool,
    /// The position of the message in the report.
    pub listed: ReportOrder,
    /// What a finding depends on, which commands make the check, and what repairs the damage.
    pub policy: Policy,
    /// Message text with named placeholders, see [`crate::finding`].
    pub template: &'static str,
    /// A few words for a summary that say what is wrong. They may contain the same placeholders as the message, and
    /// placeholders for page and slot.
    pub brief: &'static str,
    /// The invariant: a sentence that is true for a sound database.
    pub invariant: &'static str,
    /// Possible causes of a violation.
    pub cause: &'static str,
    /// The recommended action.
    pub action: &'static str,
}

impl Check {
    /// The checks with the ID `key` or the message number `key`.
    pub fn find(key: &str) -> Vec<&'static Check> {
        let number = key.trim_start_matches("Msg").trim().parse::<u16>().ok();
        ALL.iter().copied().filter(|check| check.id == key || number == Some(check.msg)).collect()
    }
}

/// Severity of every finding: CHECKDB raises all its errors at level 16.
pub const LEVEL: u8 = 16;

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Check {}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.msg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_every_row_is_whole() {
        let mut ids = HashSet::new();
        for check in ALL {
            assert!(ids.insert(check.id), "{} twice", check.id);
            for text in [check.template, check.invariant, check.cause, check.action] {
                assert!(!text.is_empty() && text.trim() == text, "{}: {text:?}", check.id);
            }
            for text in [check.invariant, check.cause, check.action] {
                assert!(text.ends_with('.'), "{}: {text:?}", check.id);
            }
        }
    }

    #[test]
    fn briefs_fit_on_a_line_and_name_only_what_findings_have() {
        for check in ALL {
            assert!(check.brief.len() <= 80 && !check.brief.ends_with('.'), "{}: {}", check.id, check.brief);
            for place in check.brief.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                let is_of_any = ["page", "ref_page", "slot", "ref_slot"].contains(&place);
                assert!(is_of_any || check.template.contains(&format!("{{{place}")), "{}: {place}", check.id);
            }
        }
    }

    #[test]
    fn ids_that_are_gone_are_never_used_again() {
        for id in RETIRED {
            assert!(Check::find(id).is_empty() && limits::Limit::find(id).is_none(), "{id} is retired");
        }
    }

    #[test]
    fn findings_that_only_add_to_another_say_so() {
        let following: Vec<&str> = ALL.iter().filter(|check| check.policy.follows).map(|check| check.id).collect();
        let expected = [
            "allocation.interval-unchecked",
            "allocation.extent-owner",
            "iam.invalid",
            "page.unprocessed",
            "index.row-missing-detail",
            "index.row-surplus-detail",
            "lob.owner",
            "partition.wrong-detail",
        ];
        assert_eq!(following, expected);
    }

    #[test]
    fn the_flags_of_a_row_agree_with_its_sentences() {
        for check in ALL {
            let names_another = ["Another message", "See "].iter().any(|start| check.cause.starts_with(start));
            assert_eq!(check.policy.follows, names_another, "{}: {}", check.id, check.cause);
            let refers = check.action.starts_with("See ");
            assert_eq!(check.policy.is_remedied_elsewhere, refers, "{}: {}", check.id, check.action);
        }
    }

    #[test]
    fn a_check_is_found_by_id_and_by_number() {
        assert_eq!(Check::find("8976").len(), 1);
        assert_eq!(Check::find("Msg 8976"), Check::find("tree.child-unseen"));
        assert!(Check::find("8939").len() > 2);
        assert!(Check::find("nonsense").is_empty());
    }
}
