//! The page audit: the checks that need only the page's own bytes. The audit checks the identity of the page
//! (protection, page ID) first, then its header, slots and records.

mod compressed;
mod fixed;
mod header;
mod records;

use findings::{Finding, Owner, registry};
use format::protection::{ProtectionFault, verify};
use format::{AllocUnitId, PageBytes, PageHeader, PageId};

use crate::basis::units::Units;

pub(crate) use fixed::{FixedFault, fixed_fault, idle_field_fault};
pub(crate) use header::{Audit, AuditRules, PageContent};

/// The reasons why a page is certainly not the page that was written at its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdentityFault {
    /// Checksum or torn bits are wrong.
    Protection(ProtectionFault),
    /// The header contains the ID of another page.
    PageId,
}

/// Checks the protection and the page ID of a page as stored on disk. Returns the first fault; `None` if both are
/// right.
pub(crate) fn identity(bytes: &PageBytes, id: PageId) -> Option<IdentityFault> {
    if let Err(fault) = verify(bytes) {
        return Some(IdentityFault::Protection(fault));
    }
    (format::Page::new(bytes).header().page_id() != id).then_some(IdentityFault::PageId)
}

/// The buffer status word that CHECKDB of SQL Server 2012 to 2022 prints with a failed read
/// (docs/format/checkdb.md#tests-in-messages).
const BUFFER_STATUS: i64 = 133_129;

/// The owner that messages name for a page. `None` if the owner is unknown because the catalog cannot be read.
pub(crate) fn named_owner(header: &PageHeader, units: &Units, catalog_is_known: bool) -> Option<Owner> {
    Some(units.owner_named_by(header)).filter(|owner| catalog_is_known || owner.object_id != 0)
}

/// The finding for a page that fails its identity check. If the owner is known, the message is 8939 (state 98) or 8909;
/// otherwise it is 5233 or 5256.
pub(crate) fn identity_finding(
    fault: &IdentityFault,
    id: PageId,
    header: &PageHeader,
    owner: Option<Owner>,
) -> Finding {
    let (io, wrong_id) = match owner {
        Some(_) => (&registry::PAGE_IO, &registry::PAGE_ID),
        None => (&registry::PAGE_IO_NO_METADATA, &registry::PAGE_ID_NO_METADATA),
    };
    let owner = owner.unwrap_or(Owner::unknown(header.alloc_unit()));
    match fault {
        IdentityFault::Protection(fault) => {
            let finding = Finding::new(io)
                .owner(owner)
                .page(id)
                .page_value("header_page", header.page_id())
                .text_value("test", "IS_OFF (BUF_IOERR, pBUF->bstat)")
                .number("value", BUFFER_STATUS)
                .number("against", -4);
            with_fault(finding, fault)
        }
        IdentityFault::PageId => {
            Finding::new(wrong_id).owner(owner).page(id).page_value("header_page", header.page_id())
        }
    }
}

/// The finding 8928, state 6, for an IAM page that fails its identity check. No other message is reported for the page.
/// The message names no owner, because the owner is stored in the header, which cannot be trusted.
pub(crate) fn unreadable_iam(fault: &ProtectionFault, id: PageId) -> Finding {
    let finding = Finding::new(&registry::IAM_UNREADABLE).owner(Owner::unknown(AllocUnitId(0))).page(id);
    with_fault(finding, fault)
}

fn with_fault(finding: Finding, fault: &ProtectionFault) -> Finding {
    match *fault {
        ProtectionFault::Checksum { stored, computed } => {
            finding.number("stored_checksum", stored).number("computed_checksum", computed)
        }
        ProtectionFault::Torn { stored, actual } => {
            finding.number("stored_torn_bits", stored).number("found_torn_bits", actual)
        }
    }
}

/// The finding 8928 for a page that failed its audit. `owner` is the unit whose IAM pages list the page.
pub(crate) fn unprocessed(owner: Owner, id: PageId) -> Finding {
    Finding::new(&registry::PAGE_UNPROCESSED).owner(owner).page(id)
}

#[cfg(test)]
mod tests;
