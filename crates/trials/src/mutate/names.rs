//! Decides whether a finding names the damaged place.

use std::collections::BTreeSet;

use findings::{Finding, Report};
use format::PageId;

/// Whether a finding of `report` names one of `pages`. The page ID may be in the text of the finding, or in one of the
/// columns in which TABLERESULTS and JSON show places. The address of a row also counts as the name of its page.
pub fn names_any(finding: &Finding, report: &Report, pages: &BTreeSet<PageId>) -> bool {
    let places = [finding.page, finding.ref_page].into_iter().flatten();
    let text = finding.text(&report.names());
    let in_text = text.split('(').filter_map(|rest| {
        let mut parts = rest.split([':', ')']).map(str::parse::<i64>);
        let (file, page) = (parts.next()?.ok()?, parts.next()?.ok()?);
        Some(PageId::new(u16::try_from(file).ok()?, (page as i32).cast_unsigned()))
    });
    places.chain(in_text).any(|page| pages.contains(&page))
}
