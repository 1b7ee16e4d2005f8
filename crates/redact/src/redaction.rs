//! Redacts a database page by page: a first pass collects all names and values, then new ones are drawn, then each page
//! is rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use catalog::Database;
use format::allocation::{FixedPage, INTERVAL_PAGES, IamHeader, PFS_PAGES, PfsByte, bitmap, pfs_bytes, pfs_page_of};
use format::boot::Boot;
use format::bytes::{u8_at, u16_at};
use format::collation::CollationId;
use format::file_header::FileHeader;
use format::page::{HEADER_BYTES, PAGE_BYTES, page_flags};
use format::protection::{PROTECTION_WORD, checksum, undo_torn_bits};
use format::{Page, PageBytes, PageId, PageType};
use source::PageSource;

use crate::cells::{Cell, Cells, Objects, What, cells};
use crate::formula;
use crate::kept::{Kept, Why};
use crate::key::Key;
use crate::letters::Form;
use crate::numbers::{NumberKind, Numbers};
use crate::plan::{NameKind, RowsetPlan, plans};
use crate::texts::{Collected, Texts};
use crate::wipe::{wipe, wipe_texts};

/// The most bytes of names and values that are kept in memory.
const MOST_BYTES: usize = 2 << 30;
/// The memory for a number, with the tree that holds it.
const BYTES_PER_NUMBER: usize = 24;
/// Texts with fewer characters are not listed if they stay.
const LEAST_LISTED: usize = 4;
/// The place of what belongs to no table.
const DATABASE: &str = "database";
/// The offset of the name of the database on the boot page, and its length in bytes.
const BOOT_NAME: Range<usize> = HEADER_BYTES + 0x34..HEADER_BYTES + 0x34 + 256;

/// The reason why a database cannot be redacted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The pages contain ciphertext.
    #[error("the database is encrypted (TDE): its pages cannot be read")]
    Encrypted,
    /// Only the catalog tells which bytes are names and values.
    #[error("the catalog cannot be read completely: it does not tell which bytes are names and values")]
    NoCatalog,
    /// A page could not be read.
    #[error("page {0} cannot be read")]
    Unread(PageId),
    /// The names and values do not fit into memory.
    #[error("the database has too many different values: they need more than 2 GB of memory")]
    TooLarge,
}

/// The new names and values of a database.
pub struct Redaction<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
    key: Key,
    plans: Vec<RowsetPlan>,
    texts: BTreeMap<u64, Texts>,
    objects: Texts,
    others: Texts,
    numbers: BTreeMap<NumberKind, Numbers>,
    kept: Kept,
    /// The IDs of the files.
    files: BTreeSet<u16>,
}

/// The names and values of a database.
struct Values {
    texts: BTreeMap<u64, Collected>,
    objects: Collected,
    others: Collected,
    numbers: BTreeMap<NumberKind, BTreeSet<u128>>,
    count: usize,
}

impl Values {
    fn bytes(&self) -> usize {
        let texts: usize = self.texts.values().map(|texts| texts.bytes).sum();
        texts + self.objects.bytes + self.others.bytes + self.count * BYTES_PER_NUMBER
    }

    /// The memory that the trees of the new texts will use.
    fn tree_bytes(&self) -> usize {
        self.texts.values().chain([&self.objects, &self.others]).map(Collected::tree_bytes).sum()
    }
}

/// What the catalog says, and the files that there are.
struct OfDatabase<'a> {
    database: &'a Database,
    files: &'a BTreeSet<u16>,
}

impl Objects for OfDatabase<'_> {
    fn is_rule(&self, object_id: i32) -> bool {
        let object = self.database.objects.get(&object_id);
        object.is_some_and(|object| match object.type_code.as_str() {
            "C" => true,
            // An object of CREATE DEFAULT belongs to no column, and has its text as it was written.
            "D" => object.parent_id != 0,
            _ => false,
        })
    }

    fn is_partition_function(&self, id: i32) -> bool {
        self.database.partition_functions.contains_key(&id)
    }

    fn form(&self, is_unicode: bool) -> Form {
        let collation = collation(self.database);
        if is_unicode { Form::Unicode(collation) } else { Form::Ansi(collation) }
    }

    fn has_file(&self, file: u16) -> bool {
        self.files.contains(&file)
    }
}

/// The IDs of the files, according to the catalog and to their headers.
fn files(source: &dyn PageSource, database: &Database) -> BTreeSet<u16> {
    let of_catalog = database.files.iter().map(|file| file.file_id);
    of_catalog.chain(source.files().iter().map(|file| file.file_id)).collect()
}

fn collation(database: &Database) -> CollationId {
    CollationId(database.boot.as_ref().map_or(0, |boot| boot.collation))
}

impl<'a> Redaction<'a> {
    /// Reads all pages and draws the new names and values.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn of(source: &'a dyn PageSource, database: &'a Database, key: Key) -> Result<Self, Refused> {
        if database.is_encrypted {
            return Err(Refused::Encrypted);
        }
        let has_layouts = database.rowsets.iter().any(|rowset| !rowset.layout.columns.is_empty());
        if !has_layouts || !database.units_are_complete() || !database.layouts_are_complete() {
            return Err(Refused::NoCatalog);
        }
        let mut kept = Kept::default();
        let plans = plans(database, &mut kept);
        let files = files(source, database);
        let known = OfDatabase { database, files: &files };
        let names = Form::Unicode(collation(database));
        let mut values = Values {
            texts: BTreeMap::new(),
            objects: Collected::new(names),
            others: Collected::new(names),
            numbers: BTreeMap::new(),
            count: 0,
        };
        for page in ids(source) {
            let mut bytes = source.read_page(page).ok_or(Refused::Unread(page))?;
            undo_torn_bits(&mut bytes);
            let found = found(&known, &plans, &bytes, use_of(source, page, &bytes));
            for cell in &found.cells {
                collect(&mut values, &bytes, cell);
            }
            if values.bytes() > MOST_BYTES {
                return Err(Refused::TooLarge);
            }
        }
        if values.bytes() + values.tree_bytes() > MOST_BYTES {
            return Err(Refused::TooLarge);
        }
        let texts = values.texts.into_iter().map(|(form, texts)| (form, Texts::draw(texts, key))).collect();
        let numbers = values.numbers.into_iter().map(|(kind, old)| (kind, Numbers::draw(kind, &old, key))).collect();
        let (objects, others) = (Texts::draw(values.objects, key), Texts::draw(values.others, key));
        Ok(Self { source, database, key, plans, texts, objects, others, numbers, kept, files })
    }

    /// The pages of the database, file by file.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + use<'a> {
        ids(self.source)
    }

    /// A page with its new names and values.
    ///
    /// # Errors
    /// [`Refused::Unread`].
    pub fn page(&mut self, id: PageId) -> Result<Box<PageBytes>, Refused> {
        let stored = self.source.read_page(id).ok_or(Refused::Unread(id))?;
        let mut bytes = stored.clone();
        undo_torn_bits(&mut bytes);
        let use_of_page = use_of(self.source, id, &bytes);
        let known = OfDatabase { database: self.database, files: &self.files };
        let Cells { cells, used, damaged } = found(&known, &self.plans, &bytes, use_of_page);
        let plan = plan_of(self.database, &self.plans, &bytes);
        let name = plan.map(|(plan, _)| plan.name.clone());
        let place = name.as_deref().filter(|name| !name.is_empty()).unwrap_or(DATABASE);
        let keeps_rows = plan.is_some_and(|(plan, _)| plan.keeps_rows);
        let is_unknown = plan.is_none();
        let is_known = !is_unknown && Page::new(&bytes).header().kind().is_some();
        if !is_known && !has_fixed_use(id) && !pfs_byte(self.source, id).is_none_or(PfsByte::is_allocated) {
            // Anything may be there, even something that was never a page.
            bytes.fill(0);
            return Ok(bytes);
        }
        for cell in &cells {
            self.change(&mut bytes, cell, place);
        }
        if damaged > 0 && !keeps_rows {
            self.kept.add(Why::Damaged, place, damaged);
        }
        if use_of_page == Use::Content && !keeps_rows {
            if is_unknown && !cells.is_empty() {
                self.kept.add(Why::UnknownPages, DATABASE, 1);
            }
            clear(&mut bytes, &used);
        }
        clear_fillers(&mut bytes, use_of_page);
        seal_like(&stored, &mut bytes);
        Ok(bytes)
    }

    /// What could not be changed, on the pages that were made so far.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    fn change(&mut self, bytes: &mut PageBytes, cell: &Cell, place: &str) {
        let Some(bytes) = bytes.get_mut(cell.at.clone()) else { return };
        match &cell.what {
            What::Number((scale, length)) => match scale.position(*length, bytes) {
                Some(old) => {
                    let new = self.numbers.get(&(*scale, *length)).and_then(|numbers| numbers.get(old));
                    scale.put(*length, new.unwrap_or(old), bytes);
                }
                None => self.kept.add(Why::Invalid, place, 1),
            },
            What::Text(form) => {
                let Some(texts) = self.texts.get(&form.id()) else { return };
                if !replace(texts, bytes, *form) {
                    self.kept.add(Why::Unchanged, place, 1);
                }
            }
            What::Name { of, stays } => {
                let (names, why) = match of {
                    NameKind::Object => (&self.objects, Why::NameOfSystem),
                    NameKind::Other => (&self.others, Why::Unchanged),
                };
                if !replace(names, bytes, Form::Unicode(collation(self.database))) && *stays == Some(false) {
                    self.kept.add(why, place, 1);
                }
            }
            What::Value => wipe(bytes, self.key),
            What::Variant => _ = variant(bytes, self.key),
            What::Property => {
                if !variant(bytes, self.key) {
                    self.kept.add(Why::VariantNumbers, place, 1);
                }
            }
            What::Zero => bytes.fill(0),
            What::Formula { form, constants } => {
                if formula::replace(bytes, *form, &self.objects, *constants, self.key) {
                    self.kept.add(Why::Definition, DATABASE, 1);
                }
            }
            What::Texts => wipe_texts(bytes, self.key),
        }
    }
}

/// Replaces a text. Returns false if it is long enough to be listed, and there is no other text of the same order.
fn replace(texts: &Texts, bytes: &mut [u8], form: Form) -> bool {
    let old = bytes.to_vec();
    texts.replace(bytes);
    old != bytes || letters(&old, form) < LEAST_LISTED
}

/// The number of letters and digits of a text. All characters that are not ASCII count.
fn letters(text: &[u8], form: Form) -> usize {
    let is_letter =
        |unit: u16| u8::try_from(unit).map_or(true, |byte| !byte.is_ascii() || byte.is_ascii_alphanumeric());
    match form {
        Form::Bytes => text.iter().filter(|byte| **byte != 0).count(),
        Form::Ansi(_) => text.iter().filter(|byte| is_letter(u16::from(**byte))).count(),
        Form::Unicode(_) => text.as_chunks::<2>().0.iter().filter(|unit| is_letter(u16::from_le_bytes(**unit))).count(),
    }
}

fn ids<'a>(source: &'a dyn PageSource) -> impl Iterator<Item = PageId> + use<'a> {
    source.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)))
}

/// The plan of the rowset to which a page belongs, according to its header, and whether the page is a leaf.
fn plan_of<'p>(database: &Database, plans: &'p [RowsetPlan], bytes: &PageBytes) -> Option<(&'p RowsetPlan, bool)> {
    let header = Page::new(bytes).header();
    let unit = database.unit_index(header.alloc_unit()).and_then(|at| database.units.get(at))?;
    let rowset = database.rowsets.get(unit.rowset?)?;
    let is_leaf = if rowset.index_id > 1 { header.level == 0 } else { header.kind() == Some(PageType::Data) };
    // Without columns, the catalog has lost the layout of the rows.
    let plan = plans.get(unit.rowset?).filter(|plan| plan.keeps_rows || !plan.columns.is_empty());
    Some((plan?, is_leaf))
}

/// Whether the number of a page decides what it is for: the first pages of a file, and the maps.
fn has_fixed_use(id: PageId) -> bool {
    const FIRST_ORDINARY: u32 = 10;
    id.page < FIRST_ORDINARY || id.page.is_multiple_of(PFS_PAGES) || id.page % INTERVAL_PAGES < FIRST_ORDINARY
}

/// What a page is, according to its header and its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// A map, a boot page or a file header: it has no rows.
    Structure,
    /// An IAM page that breaks the rules of its form.
    DamagedMap,
    /// Every other page. A page that is a map by its type alone may have rows of users.
    Content,
}

fn use_of(source: &dyn PageSource, id: PageId, bytes: &PageBytes) -> Use {
    let page = Page::new(bytes);
    match page.header().kind() {
        Some(PageType::Iam) if is_iam(page) => Use::Structure,
        Some(PageType::Iam) if pfs_byte(source, id).is_some_and(PfsByte::is_iam) => Use::DamagedMap,
        Some(kind) if FixedPage::at(id).is_some_and(|fixed| fixed.page_type() == kind) => Use::Structure,
        _ => Use::Content,
    }
}

/// Whether a page has the two records of an IAM page. Rows of tables have a null bitmap.
fn is_iam(page: Page<'_>) -> bool {
    let is_map_record = |slot: u16| page.slot_bytes(slot).and_then(<[u8]>::first).is_some_and(|status| *status == 0);
    page.header().slot_count.get() == 2
        && is_map_record(0)
        && is_map_record(1)
        && IamHeader::read(page).is_some()
        && bitmap(page).is_some()
}

/// The PFS byte of a page.
fn pfs_byte(source: &dyn PageSource, id: PageId) -> Option<PfsByte> {
    let map = pfs_page_of(id.page);
    let mut bytes = source.read_page(PageId::new(id.file, map))?;
    undo_torn_bits(&mut bytes);
    let first = if map == 1 { 0 } else { map };
    u8_at(pfs_bytes(Page::new(&bytes))?, id.page.checked_sub(first)? as usize).map(PfsByte)
}

/// The names and values on a page.
fn found(known: &OfDatabase<'_>, plans: &[RowsetPlan], bytes: &PageBytes, use_of_page: Use) -> Cells {
    let page = Page::new(bytes);
    let name = |at: Range<usize>| Cell { at, what: What::Name { of: NameKind::Other, stays: Some(false) } };
    match (use_of_page, page.header().kind()) {
        (Use::Content, _) => cells(bytes, plan_of(known.database, plans, bytes), known),
        (Use::DamagedMap, _) => Cells { damaged: 1, ..Cells::default() },
        (Use::Structure, Some(PageType::Boot)) => {
            let system = ["master", "model", "msdb", "tempdb"];
            let is_known = Boot::read(page).is_some_and(|boot| !system.contains(&boot.name().as_str()));
            Cells { cells: is_known.then(|| name(BOOT_NAME)).into_iter().collect(), ..Cells::default() }
        }
        (Use::Structure, Some(PageType::FileHeader)) => {
            let logical = FileHeader::read(page).map(|header| header.logical_name()).unwrap_or_default();
            let wanted: Vec<u8> = logical.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let cells = if wanted.is_empty() { Vec::new() } else { places(bytes, &wanted).map(name).collect() };
            Cells { cells, ..Cells::default() }
        }
        (Use::Structure, _) => Cells::default(),
    }
}

/// The places of some bytes on a page.
fn places<'a>(bytes: &'a PageBytes, wanted: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let windows = bytes.windows(wanted.len()).enumerate();
    windows
        .filter(move |(at, window)| *at >= HEADER_BYTES && *window == wanted)
        .map(|(at, window)| at..at + window.len())
}

fn collect(values: &mut Values, bytes: &PageBytes, cell: &Cell) {
    let Some(bytes) = bytes.get(cell.at.clone()) else { return };
    match &cell.what {
        What::Number((scale, length)) => {
            if let Some(position) = scale.position(*length, bytes) {
                values.count += usize::from(values.numbers.entry((*scale, *length)).or_default().insert(position));
            }
        }
        What::Text(form) => {
            values.texts.entry(form.id()).or_insert_with(|| Collected::new(*form)).add(bytes, false);
        }
        What::Name { of: NameKind::Object, stays } => values.objects.add(bytes, *stays == Some(true)),
        What::Name { of: NameKind::Other, .. } => values.others.add(bytes, false),
        _ => {}
    }
}

/// Replaces the text or the bytes in a sql_variant: base type, version, two bytes of the maximum length, for texts four
/// of the collation, then the value (docs/format/types-and-keys.md#sql_variant). Returns false if a value of another type
/// stays.
fn variant(bytes: &mut [u8], key: Key) -> bool {
    use format::types::xtype::{BINARY, CHAR, NCHAR, NVARCHAR, VARBINARY, VARCHAR};
    let from = match bytes {
        [CHAR | NCHAR | VARCHAR | NVARCHAR, 1, ..] => 8,
        [BINARY | VARBINARY, 1, ..] => 4,
        _ => return false,
    };
    wipe(bytes.get_mut(from..).unwrap_or_default(), key);
    true
}

/// Fills everything with zeros except the page header, the slot array and the ranges in use.
fn clear(bytes: &mut PageBytes, used: &[Range<usize>]) {
    let slots = usize::from(u16_at(bytes, 22).unwrap_or_default());
    let array = PAGE_BYTES.saturating_sub(2 * slots).max(HEADER_BYTES);
    let mut is_used = vec![false; PAGE_BYTES];
    for range in used.iter().cloned().chain([0..HEADER_BYTES, array..PAGE_BYTES]) {
        if let Some(part) = is_used.get_mut(range.start.min(PAGE_BYTES)..range.end.min(PAGE_BYTES)) {
            part.fill(true);
        }
    }
    bytes.iter_mut().zip(is_used).filter(|(_, is_used)| !is_used).for_each(|(byte, _)| *byte = 0);
}

/// Fills the parts of structures that have no use with zeros: they may have bytes of earlier rows. These are the end of
/// the page header, and parts of the first record of allocation maps (docs/format/allocation.md#iam).
fn clear_fillers(bytes: &mut PageBytes, use_of_page: Use) {
    let record = match Page::new(bytes).header().kind() {
        _ if use_of_page == Use::Content => 0..0,
        Some(PageType::Iam) => HEADER_BYTES + 8..HEADER_BYTES + 40,
        Some(PageType::Gam | PageType::Sgam | PageType::DiffMap | PageType::MlMap) => {
            HEADER_BYTES + 4..HEADER_BYTES + 94
        }
        _ => 0..0,
    };
    for range in [PROTECTION_WORD + 4..HEADER_BYTES, record] {
        bytes.get_mut(range).unwrap_or_default().fill(0);
    }
}

/// Protects a changed page as well or as badly as the stored page was: a wrong checksum is wrong by the same bits, and
/// a torn sector stays torn.
fn seal_like(stored: &PageBytes, bytes: &mut PageBytes) {
    const SECTOR_BYTES: usize = 512;
    let flags = u16_at(stored, 4).unwrap_or_default();
    let word = format::bytes::u32_at(stored, PROTECTION_WORD).unwrap_or_default();
    let new = if flags & page_flags::CHECKSUM != 0 {
        checksum(bytes) ^ checksum(stored) ^ word
    } else if flags & page_flags::TORN_BITS != 0 {
        let mut new = word & 3;
        for (sector, (bytes, stored)) in
            bytes.chunks_exact_mut(SECTOR_BYTES).zip(stored.chunks_exact(SECTOR_BYTES)).enumerate().skip(1)
        {
            if let (Some(last), Some(stored)) = (bytes.last_mut(), stored.last()) {
                new |= u32::from(*last & 3) << (2 * sector);
                *last = *last & !3 | *stored & 3;
            }
        }
        new
    } else {
        return;
    };
    if let Some(place) = bytes.get_mut(PROTECTION_WORD..PROTECTION_WORD + 4) {
        place.copy_from_slice(&new.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_ascii_letters_are_listed_if_they_stay() {
        let latin = CollationId(0x3400_D008);
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        assert_eq!(letters(b"\xC0\xC1\xC2-\xC3", Form::Ansi(latin)), 4);
        assert_eq!(letters(b"ab-1, ", Form::Ansi(latin)), 3);
        assert_eq!(letters(&wide("\u{410}\u{41d}\u{41d}a!"), Form::Unicode(latin)), 4);
        assert_eq!(letters(&[0, 1, 2, 0, 3, 9], Form::Bytes), 4);
        // Every letter has its only place, so the text stays.
        let mut collected = Collected::new(Form::Ansi(latin));
        collected.add(b"\xC0\xC1\xC2\xC3", false);
        let texts = Texts::draw(collected, Key::from_seed(1));
        assert!(!replace(&texts, &mut b"\xC0\xC1\xC2\xC3".to_vec(), Form::Ansi(latin)));
        assert!(replace(&texts, &mut b"\xC0\xC1".to_vec(), Form::Ansi(latin)), "too short to be listed");
    }

    #[test]
    fn a_definition_as_it_was_written_is_no_rule() {
        let mut database = Database::default();
        for (id, type_code, parent_id) in [(1, "C", 9), (2, "D", 9), (3, "D", 0), (4, "R", 0), (5, "P", 0)] {
            let [name, type_code] = ["n", type_code].map(str::to_owned);
            database.objects.insert(id, catalog::Object { id, name, schema_id: 1, type_code, parent_id, number: 0 });
        }
        let known = OfDatabase { database: &database, files: &BTreeSet::from([1]) };
        // The texts of CREATE RULE and CREATE DEFAULT have comments, and names without brackets.
        assert_eq!([1, 2, 3, 4, 5, 6].map(|id| known.is_rule(id)), [true, true, false, false, false, false]);
        assert!(known.has_file(1) && !known.has_file(0x6161));
    }

    #[test]
    fn bytes_and_texts_in_a_variant_change() {
        let key = Key::from_seed(3);
        for kept in [8, 4] {
            let mut value = vec![0; kept];
            value[0] = if kept == 8 { format::types::xtype::VARCHAR } else { format::types::xtype::VARBINARY };
            value[1] = 1;
            value.extend_from_slice(b"Anna");
            let mut new = value.clone();
            assert!(variant(&mut new, key));
            assert_eq!(new[..kept], value[..kept]);
            assert!(new[kept..].iter().zip(b"Anna").all(|(new, old)| new != old));
        }
        let mut number = [format::types::xtype::INT, 1, b'a', b'b', b'c', b'd'];
        assert!(!variant(&mut number, key), "it stays");
        assert_eq!(number[2..], *b"abcd");
    }
}
