//! Searches a redacted database for texts and numbers of its original. The values come from the crate `rows`, not from
//! the code that redacts.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::OnceLock;

use catalog::Database;
use format::types::xtype;
use format::{PAGE_BYTES, Page};
use redact::{Kept, Why};
use rows::{Reader, Scan, ScanOptions, Table, Value};
use source::MemoryFiles;

use lab::{Version, orders};

/// The least characters of a text that is searched for at its old place, and at any place. A shorter text is at some
/// other place by accident.
const LEAST_TEXT: usize = 4;
const LEAST_ANYWHERE: usize = 8;
/// A text with fewer different characters, such as 0000003a, may be the new value of another one.
const LEAST_DIFFERENT: usize = 5;
/// A number is searched for if at least this many of its eight bytes are neither 0 nor 0xFF, as those of bitmaps are.
const LEAST_BYTES: usize = 4;

/// With more damaged records and pages than this, the layout of a table is damaged, and not single records.
const FEW: u64 = 3;

/// The place of the names of tables and columns, in the form of a table.
pub(super) const NAMES: &str = "names";

/// Some bytes that must be gone.
pub(super) struct Needle {
    text: String,
    bytes: Vec<u8>,
    /// Whether the bytes must be gone everywhere, not only from their old places.
    anywhere: bool,
    /// A table that has the value.
    table: String,
}

/// A needle that is still there.
pub(super) struct Left {
    pub(super) text: String,
    pub(super) table: String,
    /// The number of the page and the offset on it, counted through all files.
    pub(super) place: (usize, usize),
}

/// How often something was kept for this reason at this place.
pub(super) fn count(kept: &Kept, why: Why, place: &str) -> u64 {
    kept.iter().filter(|(of, at, _)| (*of, *at) == (why, place)).map(|(.., count)| count).sum()
}

/// The texts and the numbers of 8 bytes in the tables of users, and the names of the tables and of their columns.
pub(super) fn needles(source: &MemoryFiles, database: &Database, kept: &Kept) -> Vec<Needle> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut numbers: BTreeMap<[u8; 8], String> = BTreeMap::new();
    let mut vocabulary = vocabulary().to_vec();
    // The values of an identity column change, although the last one stays in the catalog. Texts in sql_variant change.
    let is_kept = |place: &str, is_text: bool| {
        let stays = |why| !(why == Why::Counter || is_text && why == Why::VariantNumbers);
        kept.iter().any(|(why, kept, _)| kept == place && stays(why))
    };
    let marks = database.identities.iter().filter_map(|identity| identity.mark);
    vocabulary.extend(marks.flat_map(|mark| [mark.current, mark.seed, mark.increment]).flat_map(i64::to_le_bytes));
    let is_table_kept = |table: &str| count(kept, Why::Compressed, table) > 0 || count(kept, Why::Damaged, table) > FEW;
    let is_user = |id: &i32| database.objects.get(id).is_some_and(|object| object.type_code == "U");
    for id in Table::list(database).into_iter().filter(is_user) {
        let Ok(table) = Table::of(database, id) else { continue };
        let place = database.object_name(id);
        let has_off_row = count(kept, Why::OffRow, &place) > 0;
        let mut scan = Scan::new(source, database, &table, ScanOptions::default());
        let mut reader = Reader::new(source, database, &table, ScanOptions::default());
        while let Some(range) = scan.next_range() {
            let read = reader.read(&range, &mut |row| {
                for (value, column) in row.values.iter().zip(&table.columns) {
                    let is_text = matches!(value, Value::Text(_));
                    let stays = is_table_kept(&place)
                        || is_kept(&format!("{place}.{}", column.name), is_text)
                        || has_off_row && is_text;
                    match (value, column.info.xtype) {
                        // Another column may have the same value.
                        (Value::Text(text), _) if stays => {
                            vocabulary.extend(text.as_bytes());
                            vocabulary.extend(text.as_str().encode_utf16().flat_map(u16::to_le_bytes));
                        }
                        _ if stays => vocabulary.extend(eight_bytes(value, column.info.xtype).into_iter().flatten()),
                        (Value::Text(text), _) => {
                            texts.insert(text.as_str().trim_end().to_owned(), place.clone());
                        }
                        (value, xtype) => {
                            numbers.extend(eight_bytes(value, xtype).map(|bytes| (bytes, place.clone())));
                        }
                    }
                }
                Ok(())
            });
            drop(read);
        }
        let columns = database.columns.get(&id).into_iter().flatten().map(|column| &column.name);
        let names = columns.chain(database.objects.get(&id).map(|object| &object.name));
        texts.extend(names.map(|name| (name.clone(), NAMES.to_owned())));
    }
    let of_system = names_of_system(database);
    let texts = texts.into_iter().filter(|(text, _)| text.chars().count() >= LEAST_TEXT);
    let texts = texts.filter(|(text, _)| {
        // Other digits at its end may be those of another name of the same form.
        let path = path(text.trim_end_matches(|letter: char| letter.is_ascii_digit()));
        of_system.range(path.clone()..).next().is_none_or(|name| !name.starts_with(&path))
    });
    // Texts of digits are at other places by accident.
    let texts = texts.filter(|(text, _)| text.chars().any(char::is_alphabetic)).flat_map(|(text, table)| {
        let different: BTreeSet<char> = text.chars().collect();
        let anywhere = text.chars().count() >= LEAST_ANYWHERE && different.len() >= LEAST_DIFFERENT;
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let narrow = text.is_ascii().then(|| text.as_bytes().to_vec());
        let needle = move |bytes| Needle { text: text.clone(), bytes, anywhere, table: table.clone() };
        [Some(wide), narrow].into_iter().flatten().map(needle)
    });
    let is_number = |bytes: &[u8; 8]| bytes.iter().filter(|byte| !matches!(byte, 0 | 0xFF)).count() >= LEAST_BYTES;
    let numbers = numbers.into_iter().filter(|(bytes, _)| is_number(bytes));
    let numbers = numbers.map(|(bytes, table)| Needle {
        text: format!("{bytes:02x?}"),
        bytes: bytes.to_vec(),
        anywhere: true,
        table,
    });
    let mut all: Vec<Needle> = texts.chain(numbers).collect();
    let mut known = BTreeSet::new();
    find(&all, &vocabulary, |_, number| _ = known.insert(number));
    let mut number = 0..;
    all.retain(|_| number.next().is_none_or(|number| !known.contains(&number)));
    all
}

/// A number of eight bytes as it is stored in a column of this type, or in a sql_variant.
fn eight_bytes(value: &Value, of: u8) -> Option<[u8; 8]> {
    match (value, of) {
        (Value::Integer(value), xtype::BIGINT | xtype::SQL_VARIANT) => Some(value.to_le_bytes()),
        (Value::Float(value), _) => Some(value.to_bits().to_le_bytes()),
        (Value::Decimal { unscaled, .. }, xtype::MONEY | xtype::SQL_VARIANT) => Some((*unscaled as i64).to_le_bytes()),
        (Value::DateTime(value), xtype::DATETIME | xtype::SQL_VARIANT) => {
            let ticks = (value.time.ticks * 3 + 50_000) / 100_000;
            let days = (i64::from(value.day) - 693_595) as u64;
            Some((ticks | days << 32).to_le_bytes())
        }
        _ => None,
    }
}

/// The letters and digits of a text, in lower case.
fn path(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The letters and digits of the names of the system. An index of the catalog orders all names, so names of users that
/// these names begin with stay.
fn names_of_system(database: &Database) -> BTreeSet<String> {
    const LAST_OF_SYSTEM: i32 = 100;
    let objects = database.objects.values();
    let objects = objects.filter(|of| of.id <= LAST_OF_SYSTEM || matches!(of.type_code.as_str(), "S" | "IT"));
    let columns = |id: i32| database.columns.get(&id).into_iter().flatten().map(|column| path(&column.name));
    objects.flat_map(|object| columns(object.id).chain([path(&object.name)])).collect()
}

/// The bytes of a database without user tables, with all names of the system.
fn vocabulary() -> &'static [u8] {
    static ALL: OnceLock<Vec<u8>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for version in [Version::V611, Version::V904] {
            let folder = tempfile::tempdir().unwrap();
            let mut description = orders::orders(version, 1, 0);
            description.tables.clear();
            let written = lab::write(&description, folder.path()).unwrap();
            all.extend(std::fs::read(&written.files[0]).unwrap());
        }
        all
    })
}

/// Calls `found` with each place of a needle, and the number of the needle.
fn find(needles: &[Needle], all: &[u8], mut found: impl FnMut(usize, usize)) {
    let mut by_start: HashMap<[u8; 4], Vec<usize>> = HashMap::new();
    // Most places do not even begin like a needle.
    let mut may_start = vec![false; 1 << 16];
    for (number, needle) in needles.iter().enumerate() {
        let start: &[u8; 4] = needle.bytes.first_chunk().unwrap();
        by_start.entry(*start).or_default().push(number);
        may_start[usize::from(u16::from_le_bytes([start[0], start[1]]))] = true;
    }
    for (at, start) in all.windows(4).enumerate() {
        if !may_start[usize::from(u16::from_le_bytes([start[0], start[1]]))] {
            continue;
        }
        for number in by_start.get(start).into_iter().flatten() {
            if all[at..].starts_with(&needles[*number].bytes) {
                found(at, *number);
            }
        }
    }
}

/// Whether a page belongs to a base table.
pub(super) fn is_of_base_table(all: &[u8], page: usize) -> bool {
    const LAST_BASE_TABLE: u32 = 0xFF;
    let header = Page::new(all[page * PAGE_BYTES..].first_chunk().unwrap()).header();
    header.index_id.get() < 0x100 && header.object_id.get() <= LAST_BASE_TABLE
}

/// Whether a place is within a longer name in a base table that did not change, such as `test` in `sp_updatestats`.
fn is_in_name_of_system(at: Range<usize>, old: &[u8], new: &[u8]) -> bool {
    let is_letter = |at: usize| old.get(at).is_some_and(|byte| byte.is_ascii_graphic()) && old.get(at + 1) == Some(&0);
    let (mut from, mut to) = (at.start, at.end);
    while is_letter(from - 2) {
        from -= 2;
    }
    while is_letter(to) {
        to += 2;
    }
    is_of_base_table(old, at.start / PAGE_BYTES) && to - from > at.len() && old[from..to] == new[from..to]
}

/// The needles that are still there.
pub(super) fn left(needles: &[Needle], old: &[u8], new: &[u8]) -> Vec<Left> {
    let mut left = Vec::new();
    find(needles, new, |at, number| {
        let needle = &needles[number];
        let is_old = old[at..].starts_with(&needle.bytes);
        if (needle.anywhere || is_old) && !is_in_name_of_system(at..at + needle.bytes.len(), old, new) {
            let place = (at / PAGE_BYTES, at % PAGE_BYTES);
            left.push(Left { text: needle.text.clone(), table: needle.table.clone(), place });
        }
    });
    left
}
