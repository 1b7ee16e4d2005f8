//! The findings of a summary: by object and index, causes before consequences, one line per finding, and what to do
//! about them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use findings::registry::{Check, Class, Repair};
use findings::{Finding, Report, RowsetCounts};
use format::PageId;

use super::lines::Lines;
use crate::amounts::counted;
use crate::explain::IN_A_BACKUP;

/// Maximum number of damaged pages to remember when separating causes from consequences. A larger number would make no
/// visible difference.
const MOST_PAGES: usize = 100_000;

/// Object ID and index ID; `None` for findings that belong to no single object.
pub(crate) type Place = Option<(i32, i32)>;

/// Writes at most `most` findings, by object and index, and counts the others. Returns the finding for which the
/// summary suggests commands at its end, such as `mdfsck explain`.
pub(super) fn write(report: &Report, most: usize, lines: &mut Lines<'_>) -> io::Result<Option<Finding>> {
    if report.findings.is_empty() {
        return Ok(None);
    }
    let pages = damaged_pages(report);
    let places = by_place(report, &pages, most);
    let names = names_of(report);
    let example = example_of(&places);
    let mut said: BTreeSet<&'static str> = BTreeSet::new();
    let mut left = most;
    let (mut hidden, mut hidden_places) = (0, 0);
    for (at, (place, found)) in places.iter().enumerate() {
        let is_first = at == 0;
        if left == 0 && !is_first {
            hidden += found.count();
            hidden_places += 1;
            continue;
        }
        lines.blank()?;
        lines.paragraph("", &heading(*place, &names))?;
        let shown = found.causes.iter().take(left);
        let shown_here = shown.len();
        left -= shown_here;
        for finding in shown {
            let number = format!("  {}  ", finding.check.msg);
            lines.paragraph(&number, &finding.brief(&report.names()))?;
        }
        let more = found.cause_count.saturating_sub(shown_here as u64);
        if more > 0 {
            lines.paragraph("  ", &format!("... and {}", counted(more, "more finding", "more findings")))?;
        }
        if found.consequences > 0 {
            let follow = match (found.consequences, found.cause_count) {
                (1, 0) => "1 finding that follows from damage elsewhere in this list".to_owned(),
                (many, 0) => format!("{many} findings that follow from damage elsewhere in this list"),
                (1, _) => "and 1 finding that follows from this damage".to_owned(),
                (many, _) => format!("and {many} findings that follow from this damage"),
            };
            lines.paragraph("  ", &follow)?;
        }
        let remedies = remedies(report, found);
        for remedy in &remedies {
            if said.insert(remedy) {
                lines.paragraph("  What to do: ", remedy)?;
            } else if remedies.len() == 1 {
                lines.paragraph("  What to do: ", "as above")?;
            }
        }
    }
    if hidden > 0 {
        lines.blank()?;
        let places = counted(hidden_places, "more object or index", "more objects and indexes");
        let text = format!("... and {} in {places} (--max-findings)", counted(hidden, "finding", "findings"));
        lines.paragraph("", &text)?;
    }
    Ok(example)
}

/// The finding for which a report suggests commands at its end, such as `mdfsck explain`. This is the first cause in
/// the first object or index, or the first consequence there if there is no cause. `None` if there are no findings.
pub(crate) fn example(report: &Report) -> Option<Finding> {
    example_of(&by_place(report, &damaged_pages(report), 1))
}

fn example_of(places: &[(Place, Found)]) -> Option<Finding> {
    let (_, found) = places.first()?;
    found.causes.first().cloned().or_else(|| found.first.clone())
}

/// The findings in one object or index.
#[derive(Default)]
struct Found {
    /// The first findings that are causes.
    causes: Vec<Finding>,
    cause_count: u64,
    consequences: u64,
    /// The first finding that is a consequence.
    first: Option<Finding>,
    /// Whether rebuilding the index repairs all of these findings.
    is_rebuilt: bool,
}

impl Found {
    fn count(&self) -> u64 {
        self.cause_count + self.consequences
    }
}

/// Pages with damage of their own. A finding about relations between pages or rows is a consequence if it names one of
/// these pages.
pub(crate) fn damaged_pages(report: &Report) -> BTreeSet<PageId> {
    let of_pages = report.findings.iter().filter(|finding| finding.check.is_damage_on_its_page());
    let causes = of_pages.filter(|finding| !finding.check.policy.follows);
    causes.filter_map(|finding| finding.page).take(MOST_PAGES).collect()
}

pub(crate) fn is_consequence(finding: &Finding, damaged: &BTreeSet<PageId>) -> bool {
    let mut pages = [finding.page, finding.ref_page].into_iter().flatten();
    finding.check.policy.follows || finding.check.relates_pages() && pages.any(|page| damaged.contains(&page))
}

/// The findings by object and index, with at most `most` causes for each place.
fn by_place(report: &Report, damaged: &BTreeSet<PageId>, most: usize) -> Vec<(Place, Found)> {
    let mut places: BTreeMap<Place, Found> = BTreeMap::new();
    for finding in &report.findings {
        let owner = finding.owner.filter(|owner| owner.object_id != 0);
        let place = owner.map(|owner| (owner.object_id, owner.index_id));
        let found = places.entry(place).or_insert_with(|| Found { is_rebuilt: true, ..Found::default() });
        found.is_rebuilt &= finding.repair() == Repair::Rebuild || finding.check.class == Class::Uncounted;
        if is_consequence(&finding, damaged) {
            found.consequences += 1;
            found.first.get_or_insert_with(|| finding.into_owned());
        } else {
            found.cause_count += 1;
            if found.causes.len() < most.max(1) {
                found.causes.push(finding.into_owned());
            }
        }
    }
    let mut places: Vec<(Place, Found)> = places.into_iter().collect();
    // Places with findings that prevent reading the catalog come first. Places with only consequences come last.
    let is_primitive = |found: &Found| found.causes.iter().any(|finding| finding.check.is_primitive());
    places.sort_by_key(|(_, found)| (!is_primitive(found), found.cause_count == 0));
    places
}

/// The rowsets by object ID and index ID. If an index has several partitions, the map contains the rowset of the first
/// partition.
pub(crate) fn names_of(report: &Report) -> BTreeMap<(i32, i32), &RowsetCounts> {
    let mut names = BTreeMap::new();
    for rowset in &report.rowsets {
        names.entry((rowset.object_id, rowset.index_id)).or_insert(rowset);
    }
    names
}

pub(crate) fn heading(place: Place, names: &BTreeMap<(i32, i32), &RowsetCounts>) -> String {
    let Some((object, index)) = place else { return "No single object".to_owned() };
    let own = names.get(&(object, index)).copied();
    let of_object = || names.range((object, i32::MIN)..=(object, i32::MAX)).next().map(|(_, rowset)| *rowset);
    let table = match own.or_else(of_object).filter(|rowset| !rowset.name.is_empty()) {
        Some(rowset) => format!("{}.{}", rowset.schema, rowset.name),
        None => format!("object ID {object}"),
    };
    let named = own.map(|rowset| rowset.index_name.as_str()).filter(|name| !name.is_empty());
    match (index, named) {
        (0, _) => format!("{table}, heap"),
        (1, Some(name)) => format!("{table}, clustered index {name}"),
        (1, None) => format!("{table}, clustered index"),
        (2.., Some(name)) => format!("{table}, nonclustered index {name} (ID {index})"),
        (2.., None) => format!("{table}, index ID {index}"),
        _ => table,
    }
}

/// What to do about the findings in a place. If a rebuild repairs all findings in a nonclustered index, the rebuild is
/// the only remedy.
fn remedies(report: &Report, found: &Found) -> Vec<&'static str> {
    const REBUILD: &str = "No data is lost: disable the index, then rebuild it. If the index is not disabled, the rebuild may \
                           read it and copy the damage.";
    if report.database.backup.is_some() {
        return vec![IN_A_BACKUP];
    }
    let first = found.causes.first().or(found.first.as_ref());
    let is_nonclustered = first.and_then(|finding| finding.owner).is_some_and(|owner| owner.index_id > 1);
    if found.is_rebuilt && is_nonclustered {
        return vec![REBUILD];
    }
    let mut remedies: Vec<&'static Check> = Vec::new();
    for Finding { check, .. } in &found.causes {
        // An action such as "See the messages about the previous page" is useless next to another remedy.
        let says_more = remedies.is_empty() || !check.policy.is_remedied_elsewhere;
        let is_new = remedies.iter().all(|remedy| remedy.action != check.action);
        if says_more && is_new && remedies.len() < MOST_REMEDIES {
            remedies.push(check);
        }
    }
    if remedies.len() > 1 {
        remedies.retain(|check| !check.policy.is_remedied_elsewhere);
    }
    remedies.into_iter().map(|check| check.action).collect()
}

/// Maximum number of different remedies for one place. More would not help a reader.
const MOST_REMEDIES: usize = 2;
