//! The possible effects of damage. A finding or a "not verified" line is attributed to the damage only if it concerns
//! one of the affected pages, objects or files.

use std::collections::BTreeSet;

use findings::registry::{self, Check};
use findings::{Finding, NotVerified, Report, Value};
use format::allocation::{bitmap, pfs_bytes};
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageId};
use source::PageSource;
use trials::mutate::{PROTECTED_WORD, PageRole, Pages, names_any};

use crate::about::pages_about;
use crate::rules;
use crate::subject::Subject;

/// The maximum number of bytes of a catalog record that are searched for IDs.
const RECORD_BYTES: usize = 400;
/// The maximum distance in bytes from the changed byte to the position named in a finding about a backup. Neither a
/// block nor a record of a compressed backup is longer than this.
const CONTAINER_SLACK: u64 = 128 << 10;
/// Checks with findings about a whole stream or a whole backup set. The position in such a finding is the start of the
/// stream or set.
static ABOUT_A_WHOLE: [&Check; 5] = [
    &registry::BACKUP_DATA_CHECKSUM,
    &registry::BACKUP_CONFIGURATION,
    &registry::BACKUP_SET_INCOMPLETE,
    &registry::BACKUP_PAGES_MISSING,
    &registry::BACKUP_TRUNCATED,
];

/// The possible effects of the damage.
#[derive(Default)]
pub(crate) struct Reach {
    /// The pages that changed.
    pages: BTreeSet<PageId>,
    /// The pages that a changed allocation page now describes differently.
    about: BTreeSet<PageId>,
    /// Indexes that have pages with earlier content. If a row is missing from one of these pages, a finding names the
    /// index but not the page.
    older_indexes: BTreeSet<(i32, i32)>,
    /// The affected objects: the owners of the changed pages, and the objects that changed catalog rows describe.
    /// `None` if any object may be affected.
    objects: Option<BTreeSet<i32>>,
    /// Names of the affected objects, pages and files, as "not verified" lines print them.
    scopes: Vec<String>,
    /// Names of the changed files. Each has the byte range from the first to the last changed byte.
    files: Vec<(String, std::ops::Range<u64>)>,
}

impl Reach {
    /// Determines the possible effects of the differences between the pages of `sound` and the pages of `damaged`.
    /// `sound` is the subject or a backup of the subject.
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

    /// The possible effects of the damaged pages `pages`.
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

    /// Adds the changed files to the reach.
    pub(crate) fn in_files(mut self, files: Vec<(String, std::ops::Range<u64>)>) -> Self {
        self.files = files;
        self
    }

    /// Adds the indexes of the changed pages. Used if the damage replaces pages by earlier versions of them.
    pub(crate) fn older(mut self, subject: &Subject) -> Self {
        let index = |page: &PageId| {
            let unit = Page::new(&*read(&subject.files, *page)?).header().alloc_unit();
            Pages::new(&subject.files, &subject.database).rowset(unit).map(|rowset| (rowset.object_id, rowset.index_id))
        };
        self.older_indexes = self.pages.iter().filter_map(index).collect();
        self
    }

    /// Whether a finding names the damaged place.
    pub(crate) fn is_named_by(&self, finding: &Finding, report: &Report) -> bool {
        if finding.check.is_of_container() {
            return self.holds_the_place_of(finding);
        }
        let index = finding.owner.map(|owner| (owner.object_id, owner.index_id));
        names_any(finding, report, &self.pages)
            || names_any(finding, report, &self.about)
            || index.is_some_and(|index| self.older_indexes.contains(&index))
    }

    /// Whether a finding may be a consequence of the damage.
    pub(crate) fn explains(&self, finding: &Finding, report: &Report) -> bool {
        if finding.check.is_of_container() {
            // If pages are missing from a backup set, any of its stripes may be damaged, but the finding names only the
            // first stripe.
            let is_of_the_set = finding.check == &registry::BACKUP_PAGES_MISSING;
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

    /// Whether a "not verified" line may be a consequence of the damage.
    pub(crate) fn explains_doubt(&self, line: &NotVerified) -> bool {
        let is_named = |scope: &String| line.scope.contains(scope.as_str()) || line.reason.contains(scope.as_str());
        self.objects.is_none() || line.scope == "database" || self.scopes.iter().any(is_named)
    }

    /// Whether an error names a changed file or a changed page.
    pub(crate) fn is_named_in(&self, error: &str) -> bool {
        let pages = || self.pages.iter().any(|page| error.contains(&page.to_string()));
        self.files.iter().any(|(name, _)| error.contains(name.as_str())) || pages()
    }

    /// Whether the position that a finding about a backup names is near a change, or is the start of the stream or set
    /// that contains a change.
    fn holds_the_place_of(&self, finding: &Finding) -> bool {
        let position = finding.evidence.iter().find_map(|(name, value)| match value {
            Value::Number(at) if *name == "position" => u64::try_from(*at).ok(),
            _ => None,
        });
        let is_whole = ABOUT_A_WHOLE.contains(&finding.check);
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

/// Whether the key of a catalog row, such as `object_id=5,index_id=1`, contains the ID of one of the objects.
fn names_one(key: &str, objects: &BTreeSet<i32>) -> bool {
    let ids = key.split(',').filter_map(|part| part.split_once('=')?.1.parse().ok());
    ids.into_iter().any(|id: i32| objects.contains(&id))
}

/// The backup file that a finding names; empty if the finding names no file.
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

/// Returns the objects that a damaged page may affect; `None` if the page may affect any object. For an allocation
/// page, these are the owners of the pages that it now describes differently. For another page, these are its owners
/// before and after the damage. For a page of a system table, the objects that its changed rows name are added.
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

/// Returns the objects that own the pages that a changed allocation map describes differently. `None` if the map also
/// changed outside of its bits, because its bits may then describe the pages of any object. Also `None` if the page
/// protection reveals the damage, because a check then ignores the map.
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
        // The bits can be compared only if the slot offsets are the same before and after the damage.
        && (0..2).all(|slot| then.slot_offset(slot) == new.slot_offset(slot));
    let about = pages_about(&subject.files, damaged, page);
    let others = about.iter().filter_map(|page| owner(subject, &subject.files, *page));
    is_known.then(|| others.chain(owner(subject, &subject.files, page)).collect())
}

/// Returns the objects that are named in changed rows of a base table, before or after the change. A row names an
/// object by its object ID, or by the ID of a rowset, allocation unit or page of the object. `None` if the page also
/// changed outside of its rows.
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

/// Returns the objects that the bytes may name. The bytes are tried as an object ID, a rowset ID, an allocation unit ID
/// and a page ID.
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
