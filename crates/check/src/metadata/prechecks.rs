//! The primitive checks (messages 7984 to 7988) of the leaf chains of the base tables that are needed to find all other
//! tables. If one of these checks fails, CHECKDB on a server ends.

use std::collections::BTreeSet;

use catalog::{ChainFault, Database, Fetched, Gap, UnitKind, fetch};
use findings::registry::{self, Damage};
use findings::{Finding, Owner, Value};
use format::{AllocUnitId, PageId};
use source::PageSource;

/// Base tables whose leaf chains CHECKDB walks first: sysrscols, sysrowsets, sysallocunits, and the tables of SQL
/// Server 2005 that sysrscols replaced.
const CRITICAL: [i32; 5] = [3, 4, 5, 7, 13];
const SYSALLOCUNITS: i32 = 7;
/// The faults in the leaf chains, as far as the chains could be read.
pub(crate) fn findings(source: &dyn PageSource, database: &Database) -> Vec<Finding> {
    let mut findings = Vec::new();
    if database.boot.is_none() {
        return findings;
    }
    for gap in database.gaps.iter().filter(|gap| CRITICAL.contains(&gap.object_id)) {
        let finding = gap.fault.and_then(|fault| primitive(gap, fault));
        findings.extend(finding.map(|finding| match is_led_astray(database, gap) {
            true => from_boot_page(finding),
            false => finding,
        }));
    }
    roots(source, database, &mut findings);
    findings
}

/// Base tables whose primitive checks failed. In this case, CHECKDB on a server ends, so the only other findings that
/// it reports for these tables are damaged pages (5233).
#[derive(Debug, Default)]
pub(crate) struct Ended(BTreeSet<i32>);

impl Ended {
    /// The tables whose primitive checks failed.
    pub(crate) fn by(source: &dyn PageSource, database: &Database) -> Self {
        Self(findings(source, database).iter().filter_map(Finding::object_id).collect())
    }

    /// Whether `owner` is one of the tables whose primitive checks failed. If the catalog row for the rowset of `owner`
    /// is missing, the unit ID of `owner` is compared with the unit IDs of the tables.
    pub(crate) fn contains(&self, owner: &Owner) -> bool {
        self.0.iter().any(|object_id| Self::is_of(*object_id, owner))
    }

    fn is_of(object_id: i32, owner: &Owner) -> bool {
        let unit = AllocUnitId::from_header(0, object_id.cast_unsigned());
        owner.object_id == object_id || owner.object_id == 0 && owner.alloc_unit == unit
    }

    /// The name of the system table that a finding is about.
    pub(crate) fn name(&self, finding: &Finding) -> String {
        let named = finding.owner.and_then(|owner| self.0.iter().find(|id| Self::is_of(**id, &owner)));
        named.map_or_else(|| "system tables".to_owned(), |id| format!("object ID {id}"))
    }

    /// Whether a server would omit this finding because a primitive check failed. A server does not omit findings in
    /// other tables.
    pub(crate) fn leaves_out(&self, finding: &Finding) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let is_of_system = finding.owner.is_some_and(|owner| self.contains(&owner));
        let check = finding.check;
        if check == &registry::CATALOG_UNUSABLE {
            return true;
        }
        let needs_no_metadata = [&registry::PAGE_IO_NO_METADATA, &registry::PAGE_ID_NO_METADATA].contains(&check);
        let is_of_tables = check.is_of_rows_and_pages() || check.damage == Damage::Counts;
        let is_nameless = check.policy.is_explained && finding.object_id().is_none();
        is_of_tables && !needs_no_metadata && (is_of_system || is_nameless)
    }
}

/// Whether the chain of sysallocunits fails at its first page, to which the boot page points.
pub(crate) fn is_led_astray(database: &Database, gap: &Gap) -> bool {
    gap.object_id == SYSALLOCUNITS && gap.fault.is_some_and(|fault| is_at_start(database, fault))
}

/// Returns whether the server's walk along the chain of sysallocunits failed at its first page, to which the boot page
/// points.
fn is_at_start(database: &Database, fault: ChainFault) -> bool {
    let first = database.boot.as_ref().map(|boot| boot.first_sysallocunits);
    match fault {
        ChainFault::Unreadable { page } | ChainFault::PageType { page, .. } => Some(page) == first,
        ChainFault::OtherUnit { page, .. } | ChainFault::Linkage { page, .. } => page.is_none(),
        ChainFault::Unread { .. } | ChainFault::Loop { .. } => false,
    }
}

/// Puts the boot page in the place of the previous page in a finding, because the boot page points to the first page of
/// the chain.
fn from_boot_page(finding: Finding) -> Finding {
    match finding.ref_page {
        None => finding.ref_page(PageId::BOOT),
        Some(_) => finding.page(PageId::BOOT),
    }
}

/// Checks the root pages of the critical tables. Reports a damaged root page as 7985, even if all rows could be read
/// from the leaf pages.
fn roots(source: &dyn PageSource, database: &Database, findings: &mut Vec<Finding>) {
    for rowset in database.rowsets.iter().filter(|row| CRITICAL.contains(&row.object_id) && row.index_id == 1) {
        let units = rowset.units.iter().filter_map(|unit| database.units.get(*unit));
        for unit in units.filter(|unit| unit.kind == UnitKind::InRow && !unit.root.is_none()) {
            let is_damaged = matches!(fetch(source, unit.root), Fetched::Damaged(_) | Fetched::WrongId(_));
            if is_damaged && database.gap(rowset.object_id).is_none_or(|gap| gap.fault.is_none()) {
                let owner =
                    Owner { object_id: rowset.object_id, index_id: 1, ..Owner::unknown(format::AllocUnitId(0)) };
                findings.push(Finding::new(&registry::PRIMITIVE_UNREADABLE).owner(owner).page(unit.root));
            }
        }
    }
}

fn primitive(gap: &Gap, fault: ChainFault) -> Option<Finding> {
    let about = |check, page: PageId| {
        let owner = Owner { object_id: gap.object_id, index_id: 1, ..Owner::unknown(format::AllocUnitId(0)) };
        Finding::new(check).owner(owner).page(page)
    };
    Some(match fault {
        ChainFault::Unread { .. } => return None,
        ChainFault::Unreadable { page } => about(&registry::PRIMITIVE_UNREADABLE, page),
        ChainFault::PageType { page, page_type } => {
            about(&registry::PRIMITIVE_PAGE_TYPE, page).number("page_type", page_type)
        }
        ChainFault::OtherUnit { page, next, found, expected } => {
            let mut finding = about(&registry::PRIMITIVE_OTHER_UNIT, page).ref_page(next);
            finding.evidence.push(("found_unit", Value::Text(found.to_string())));
            finding.evidence.push(("expected_unit", Value::Text(expected.to_string())));
            finding
        }
        ChainFault::Linkage { page, next, prev } => {
            about(&registry::PRIMITIVE_LINKAGE, page).ref_page(next).page_value("found_prev", prev)
        }
        ChainFault::Loop { page } => about(&registry::PRIMITIVE_LOOP, page),
    })
}
