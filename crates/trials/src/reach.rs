//! The possible effects of damage: the pages, objects and files that a finding or a doubt must be about to count for
//! the damage.

use std::collections::BTreeSet;

use check::{Finding, NotVerified, Report, Value};
use format::allocation::{bitmap, pfs_bytes};
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageId};
use source::PageSource;
use trials::mutate::{PROTECTED_WORD, PageRole, Pages, names_any};

use crate::about::pages_about;
use crate::rules;
use crate::subject::Subject;

/// The most bytes of a catalog record in which IDs are looked for.
const RECORD_BYTES: usize = 400;
/// The greatest distance of a finding's position in a backup from the changed byte: a record of a compressed backup, or
/// a block.
const CONTAINER_SLACK: u64 = 128 << 10;
/// Findings about a whole stream or set, which name its start.
const ABOUT_A_WHOLE: [&str; 5] = [
    "backup.data-checksum",
    "backup.configuration",
    "backup.set-incomplete",
    "backup.pages-missing",
    "backup.truncated",
];

/// The possible effects of the damage.
#[derive(Default)]
pub(crate) struct Reach {
    /// The pages that changed.
    pages: BTreeSet<PageId>,
    /// The pages that changed allocation pages describe differently.
    about: BTreeSet<PageId>,
    /// The indexes whose pages are intact but out of date: a missing row has no page that a finding could name.
    older_indexes: BTreeSet<(i32, i32)>,
    /// The objects of these pages, or those that changed catalog rows name; `None` if any object may be concerned.
    objects: Option<BTreeSet<i32>>,
    /// Names that a doubt may use for the place: names of objects, pages and files.
    scopes: Vec<String>,
    /// Names of the changed files, with the first and last byte that changed.
    files: Vec<(String, std::ops::Range<u64>)>,
}

impl Reach {
    /// For the pages that differ between `sound`, a form of the subject, and `damaged`. Reads both.
    pub(crate) fn of(subject: &Subject, sound: &dyn PageSource, damaged: &dyn PageSource) -> Self {
        let mut pages = BTreeSet::new();
        for file in sound.files() {
            for page in (0..file.pages).map(|page| PageId::new(file.file_id, page)) {
                if sound.read_page(page) != damaged.read_page(page) {
                    pages.insert(page);
                }
            }
        }
        Self::of_pages(subject, damaged, pages)
    }

    /// For these damaged pages.
    pub(crate) fn of_pages(subject: &Subject, damaged: &dyn PageSource, pages: BTreeSet<PageId>) -> Self {
        let about: BTreeSet<PageId> =
            pages.iter().flat_map(|page| pages_about(&subject.files, damaged, *page)).collect();
        let objects = pages.iter().try_fold(BTreeSet::new(), |mut objects, page| {
            objects.extend(reached(subject, damaged, *page)?);
            Some(objects)
        });
        let names = objects.iter().flatten().map(|object| subject.database.object_name(*object));
        let places = pages.iter().chain(&about).flat_map(|page| [page.to_string(), format!("file {}", page.file)]);
        let scopes = names.chain(places).collect();
        Self { pages, about, objects, scopes, ..Self::default() }
    }

    /// The same reach, for damage in these files.
    pub(crate) fn in_files(mut self, files: Vec<(String, std::ops::Range<u64>)>) -> Self {
        self.files = files;
        self
    }

    /// The same reach, if each changed page is intact but out of date.
    pub(crate) fn older(mut self, subject: &Subject) -> Self {
        let index = |page: &PageId| {
            let unit = Page::new(&*read(&subject.files, *page)?).header().alloc_unit();
            Pages::new(&subject.files, &subject.database).rowset(unit).map(|rowset| (rowset.object_id, rowset.index_id))
        };
        self.older_indexes = self.pages.iter().filter_map(index).collect();
        self
    }

    /// Whether a finding names the damage.
    pub(crate) fn is_named_by(&self, finding: &Finding, report: &Report) -> bool {
        if is_of_the_container(finding) {
            return self.holds_the_place_of(finding);
        }
        let index = finding.owner.map(|owner| (owner.object_id, owner.index_id));
        names_any(finding, report, &self.pages)
            || names_any(finding, report, &self.about)
            || index.is_some_and(|index| self.older_indexes.contains(&index))
    }

    /// Whether a finding may follow from the damage.
    pub(crate) fn explains(&self, finding: &Finding, report: &Report) -> bool {
        if is_of_the_container(finding) {
            // Pages that a set lacks may be in any of its stripes: the finding names the first.
            let is_of_the_set = finding.check.id == "backup.pages-missing";
            return is_of_the_set || self.files.iter().any(|(name, _)| device(finding).ends_with(name.as_str()));
        }
        let Some(objects) = &self.objects else { return true };
        let owner = finding.owner.map(|owner| owner.object_id);
        let other = finding.evidence.iter().filter_map(|(_, value)| match value {
            Value::Owner(owner) => Some(owner.object_id),
            _ => None,
        });
        owner.into_iter().chain(other).any(|object| objects.contains(&object))
            || finding.evidence.iter().any(|(_, value)| matches!(value, Value::Text(key) if names_one(key, objects)))
            || names_any(finding, report, &self.pages)
            || names_any(finding, report, &self.about)
    }

    /// Whether a line about what could not be verified may follow from the damage.
    pub(crate) fn explains_doubt(&self, line: &NotVerified) -> bool {
        let is_named = |scope: &String| line.scope.contains(scope.as_str()) || line.reason.contains(scope.as_str());
        self.objects.is_none() || line.scope == "database" || self.scopes.iter().any(is_named)
    }

    /// Whether an error names a file that changed, or a page that did.
    pub(crate) fn is_named_in(&self, error: &str) -> bool {
        let pages = || self.pages.iter().any(|page| error.contains(&page.to_string()));
        self.files.iter().any(|(name, _)| error.contains(name.as_str())) || pages()
    }

    /// Whether the place in a backup that a finding names is a changed place, or the start of the part with the change.
    fn holds_the_place_of(&self, finding: &Finding) -> bool {
        let position = finding.evidence.iter().find_map(|(name, value)| match value {
            Value::Number(at) if *name == "position" => u64::try_from(*at).ok(),
            _ => None,
        });
        let is_whole = ABOUT_A_WHOLE.contains(&finding.check.id);
        let holds = |changed: &std::ops::Range<u64>| {
            position.is_none_or(|at| {
                at <= changed.end.saturating_add(CONTAINER_SLACK)
                    && (is_whole || at.saturating_add(CONTAINER_SLACK) >= changed.start)
            })
        };
        self.files
            .iter()
            .any(|(name, changed)| device(finding).ends_with(name.as_str()) && (is_whole || holds(changed)))
    }
}

/// Whether the key of a catalog row, such as `object_id=5,index_id=1`, has the ID of one of the objects.
fn names_one(key: &str, objects: &BTreeSet<i32>) -> bool {
    let ids = key.split(',').filter_map(|part| part.split_once('=')?.1.parse().ok());
    ids.into_iter().any(|id: i32| objects.contains(&id))
}

/// Findings about a backup name a place in its file, not a page.
fn is_of_the_container(finding: &Finding) -> bool {
    finding.check.id.starts_with("backup.")
}

/// The file that a finding about a backup names.
fn device(finding: &Finding) -> &str {
    let text = finding.evidence.iter().find_map(|(name, value)| match value {
        Value::Text(text) if *name == "device" => Some(text.as_str()),
        _ => None,
    });
    text.unwrap_or_default()
}

fn read(source: &dyn PageSource, page: PageId) -> Option<Box<PageBytes>> {
    let mut bytes = source.read_page(page)?;
    undo_torn_bits(&mut bytes);
    Some(bytes)
}

/// The object to which a page belongs according to its header.
fn owner(subject: &Subject, source: &dyn PageSource, page: PageId) -> Option<i32> {
    subject.object(Page::new(&*read(source, page)?).header().alloc_unit())
}

/// The objects that a damaged page belonged to, that it claims to belong to now, and that it describes differently now;
/// `None` if they may be any.
fn reached(subject: &Subject, damaged: &dyn PageSource, page: PageId) -> Option<BTreeSet<i32>> {
    match subject.role(page) {
        PageRole::Free => Some(BTreeSet::new()),
        PageRole::Pfs | PageRole::Gam | PageRole::Sgam | PageRole::Iam => reached_by_a_map(subject, damaged, page),
        PageRole::Heap | PageRole::Clustered | PageRole::Node | PageRole::Leaf | PageRole::Text => {
            let before = owner(subject, &subject.files, page)?;
            let objects: BTreeSet<i32> = [Some(before), owner(subject, damaged, page)].into_iter().flatten().collect();
            if !objects.iter().any(|object| subject.database.is_system_table(*object)) {
                return Some(objects);
            }
            // The rows of system tables describe other objects.
            let named = named_by_changed_rows(subject, &*read(&subject.files, page)?, &*read(damaged, page)?)?;
            Some(objects.into_iter().chain(named).collect())
        }
        _ => None,
    }
}

/// The objects of the pages that a map describes differently. `None` if more changed than its bits, since the page may
/// then belong to any object or be no map; and if its protection shows the damage, since it then describes none of its
/// pages.
fn reached_by_a_map(subject: &Subject, damaged: &dyn PageSource, page: PageId) -> Option<BTreeSet<i32>> {
    if rules::is_broken(&*damaged.read_page(page)?) {
        return None;
    }
    let (before, now) = (read(&subject.files, page)?, read(damaged, page)?);
    let count = |before: &[u8], now: &[u8]| before.iter().zip(now).filter(|(before, now)| before != now).count();
    let (then, new) = (Page::new(&before), Page::new(&now));
    let within = match (pfs_bytes(then), pfs_bytes(new)) {
        (Some(before), Some(now)) if subject.role(page) == PageRole::Pfs => count(before, now),
        _ => count(bitmap(then)?, bitmap(new)?),
    };
    let protection = count(before.get(PROTECTED_WORD)?, now.get(PROTECTED_WORD)?);
    let is_known = within > 0
        && within + protection == count(&*before, &*now)
        // If the slot offsets differ, the compared bits have different places.
        && (0..2).all(|slot| then.slot_offset(slot) == new.slot_offset(slot));
    let about = pages_about(&subject.files, damaged, page);
    let others = about.iter().filter_map(|page| owner(subject, &subject.files, *page));
    is_known.then(|| others.chain(owner(subject, &subject.files, page)).collect())
}

/// The objects whose IDs, or the IDs of whose rowsets, units and pages, are in the changed rows of a base table, before
/// or after the change. `None` if another part of the page changed.
fn named_by_changed_rows(subject: &Subject, before: &PageBytes, now: &PageBytes) -> Option<BTreeSet<i32>> {
    let slots = Page::new(before).header().slot_count.get();
    let starts: BTreeSet<usize> =
        (0..slots).filter_map(|slot| Page::new(before).slot_offset(slot)).map(usize::from).collect();
    let end_of_rows = PAGE_BYTES - 2 * usize::from(slots);
    let mut changed = BTreeSet::new();
    for at in (0..PAGE_BYTES).filter(|at| before.get(*at) != now.get(*at) && !PROTECTED_WORD.contains(at)) {
        if at >= end_of_rows {
            return None;
        }
        changed.insert(*starts.range(..=at).next_back()?);
    }
    let mut objects = BTreeSet::new();
    for start in changed {
        let next = starts.range(start + 1..).next().copied().unwrap_or(end_of_rows);
        let place = start..next.min(start + RECORD_BYTES);
        for row in [before, now].into_iter().filter_map(|page| page.get(place.clone())) {
            objects.extend((0..row.len()).flat_map(|at| named_at(subject, row.get(at..).unwrap_or_default())));
        }
    }
    Some(objects)
}

/// The objects that the bytes name, read as the ID of an object, a rowset, a unit or a page.
fn named_at(subject: &Subject, bytes: &[u8]) -> Vec<i32> {
    let database = &subject.database;
    let mut found = Vec::new();
    if let Some(id) = bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes)) {
        found.extend(database.object_ids.contains(&id).then_some(id));
    }
    if let Some(id) = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) {
        let rowset = database.rowsets.iter().find(|rowset| rowset.id == id).map(|rowset| rowset.object_id);
        found.extend(rowset.or_else(|| subject.object(AllocUnitId(id))));
    }
    if let Some([a, b, c, d, e, f]) = bytes.first_chunk::<6>() {
        let page = PageId::new(u16::from_le_bytes([*e, *f]), u32::from_le_bytes([*a, *b, *c, *d]));
        found.extend((page.file > 0).then(|| owner(subject, &subject.files, page)).flatten());
    }
    found
}
