//! Evaluates all rules: one pass over each referenced table, then one pass over each referring table.

use std::collections::BTreeSet;

use catalog::{Database, Unread, read_base_table_as};
use findings::registry::{self, limits};
use findings::{Coverage, Finding};
use format::RecordId;
use format::bytes::unsigned;
use source::PageSource;

use super::rules::{Base, Column, Keys, Only, Reference, Violation};
use super::table;
use super::table::REFERENCES;
use crate::basis::ledger::FindingCollector;
use crate::metadata::near::partition_point_near;

/// A key of one or two columns. If it has one column, the second value is 0.
type Key = [i64; 2];

/// Bytes per key in a list. The list doubles when it grows, so this is more than the size of a key.
const BYTES_PER_KEY: u64 = 48;

/// The maximum number of rows per page of a base table: a row with a key of two numbers has at least about 20 bytes.
const MOST_ROWS_PER_PAGE: u64 = 400;

/// The base tables of a database, and the source of their pages.
pub(super) struct Tables<'a> {
    pub(super) source: &'a dyn PageSource,
    pub(super) database: &'a Database,
}

impl Tables<'_> {
    /// Calls `visit` for each row of a base table, with the position of the row and the values of `columns` as signed
    /// numbers.
    pub(super) fn each(
        &self,
        table: i32,
        columns: &[&'static str],
        visit: impl FnMut(RecordId, &[Option<i64>]),
    ) -> Result<(), Unread> {
        read_base_table_as(self.source, self.database, table, columns, number, visit)
    }

    /// Notes why a table could not be read, unless the database version does not have the table.
    fn note(&self, base: &Base, unread: &Unread, coverage: &mut Coverage) {
        let version = self.database.boot.as_ref().map_or(0, |boot| boot.version);
        let reason = match unread {
            Unread::NoTable if version < base.since => return,
            Unread::NoTable => (&limits::REFERENCES_TABLE).into(),
            Unread::NoColumn(column) => limits::REFERENCES_COLUMN.with(&[column]),
            Unread::Incomplete => (&limits::REFERENCES_TABLE_INCOMPLETE).into(),
        };
        coverage.note(reason, format!("sys.{}", base.name), 0);
    }
}

/// The value of 1, 2, 4 or 8 bytes as a number. One byte is unsigned (tinyint); all other lengths are signed. The bytes
/// of a short text are read as a number too.
pub(super) fn number(bytes: &[u8]) -> i64 {
    let value = unsigned(bytes);
    match bytes.len() {
        2 => i64::from((value as u16).cast_signed()),
        4 => i64::from((value as u32).cast_signed()),
        _ => value.cast_signed(),
    }
}

/// The number that [`number`] returns for a code of letters, padded with blanks to `length` bytes.
pub(super) fn code_number(code: &str, length: usize) -> i64 {
    let mut padded = code.as_bytes().to_vec();
    padded.resize(length, b' ');
    number(&padded)
}

/// The numbers that [`number`] returns for type codes: padded with a blank as in a char(2) column, and unpadded as in a
/// char(1) column.
fn type_numbers(codes: &[&str]) -> Vec<i64> {
    codes.iter().flat_map(|code| [code_number(code, 2), code_number(code, code.len())]).collect()
}

/// A condition on one of the columns that a pass over a table reads.
struct Test<'r> {
    column: usize,
    only: &'r Only,
    /// The codes of a condition on type codes, as numbers; empty for other conditions.
    codes: Vec<i64>,
}

impl<'r> Test<'r> {
    fn new(column: usize, only: &'r Only) -> Self {
        let codes = if let Only::Type(codes) = only { type_numbers(codes) } else { Vec::new() };
        Self { column, only, codes }
    }

    fn holds(&self, row: &[Option<i64>]) -> bool {
        row.get(self.column).copied().flatten().is_some_and(|value| match self.only {
            Only::Type(_) => self.codes.contains(&value),
            only => condition_holds(only, value),
        })
    }
}

/// Whether `value`, the value of the condition's column, meets the condition.
pub(super) fn condition_holds(only: &Only, value: i64) -> bool {
    match *only {
        Only::Is(_, wanted) => value == wanted,
        Only::Not(_, other) => value != other,
        Only::Above(_, bound) => value > bound,
        Only::Below(_, bound) => value < bound,
        Only::Bit(_, bit) => value & bit != 0,
        Only::Type(codes) => type_numbers(codes).contains(&value),
    }
}

/// The columns that a pass over a table reads.
#[derive(Default)]
struct Columns(Vec<&'static str>);

impl Columns {
    fn place(&mut self, name: &'static str) -> usize {
        self.0.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        })
    }

    fn places(&mut self, columns: &[Column]) -> Vec<usize> {
        columns.iter().map(|(name, _)| self.place(name)).collect()
    }

    fn tests<'r>(&mut self, only: &'r [Only]) -> Vec<Test<'r>> {
        only.iter().map(|only| Test::new(self.place(only.column()), only)).collect()
    }
}

/// The key in the columns at `places` of a row; `None` if one of these columns is NULL.
fn key(row: &[Option<i64>], places: &[usize]) -> Option<Key> {
    let mut key = [0; 2];
    for (part, place) in key.iter_mut().zip(places) {
        *part = row.get(*place).copied().flatten()?;
    }
    Some(key)
}

/// All referenced keys, each once.
fn all_keys() -> Vec<&'static Keys> {
    let mut all: Vec<&'static Keys> = Vec::new();
    for reference in REFERENCES {
        if !all.iter().any(|keys| std::ptr::eq(*keys, reference.to)) {
            all.push(reference.to);
        }
    }
    all
}

/// An upper bound on the number of bytes that all keys need, computed from the row and page counts in the catalog. If
/// damage makes one count too large, the other count still limits the bound.
pub(crate) fn key_bytes(database: &Database) -> u64 {
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    let rows = |keys: &Keys| {
        let rowset = database.table_rowsets(keys.base.id).next()?;
        let units = rowset.units.iter().filter_map(|unit| database.units.get(*unit));
        let pages = units.map(|unit| count(unit.used_pages)).fold(0, u64::saturating_add);
        Some(count(rowset.rows).min(pages.saturating_mul(MOST_ROWS_PER_PAGE)))
    };
    let rows = all_keys().into_iter().filter_map(rows).fold(0, u64::saturating_add);
    rows.saturating_mul(BYTES_PER_KEY)
}

/// The distinct values of every referenced key, in ascending order. Keys are looked up in nearly ascending order too.
pub(super) struct KeySets(Vec<(&'static Keys, Option<Vec<Key>>)>);

impl KeySets {
    /// Reads the keys that the rules refer to. The keys of a table are `None` if the table could not be read, or if
    /// there are findings about the table itself.
    pub(super) fn read(tables: &Tables<'_>, flawed: &BTreeSet<i32>, coverage: &mut Coverage) -> Self {
        let mut sets: Vec<(&'static Keys, Option<Vec<Key>>)> =
            all_keys().into_iter().map(|keys| (keys, Some(Vec::new()))).collect();
        for base in bases(sets.iter().map(|(keys, _)| keys.base)) {
            let mut columns = Columns::default();
            let mut plans = Vec::new();
            for (at, (keys, _)) in sets.iter().enumerate().filter(|(_, (keys, _))| keys.base.id == base.id) {
                plans.push((at, columns.tests(keys.only), columns.places(keys.key)));
            }
            let read = tables.each(base.id, &columns.0, |_, row| {
                for (at, tests, places) in &plans {
                    if tests.iter().all(|test| test.holds(row))
                        && let Some(key) = key(row, places)
                        && let Some((_, Some(set))) = sets.get_mut(*at)
                        && set.last() != Some(&key)
                    {
                        set.push(key);
                    }
                }
            });
            for (at, ..) in &plans {
                if let Some((_, Some(set))) = sets.get_mut(*at) {
                    set.sort_unstable();
                    set.dedup();
                }
            }
            let has_errors = flawed.contains(&base.id);
            if has_errors {
                coverage.note(&limits::REFERENCES_TARGET, format!("to rows of sys.{}", base.name), 0);
            }
            if let Err(unread) = &read {
                tables.note(base, unread, coverage);
            }
            if has_errors || read.is_err() {
                for (at, ..) in plans {
                    if let Some((_, set)) = sets.get_mut(at) {
                        *set = None;
                    }
                }
            }
        }
        Self(sets)
    }

    fn of(&self, keys: &'static Keys) -> Option<&[Key]> {
        self.0.iter().find(|(known, _)| std::ptr::eq(*known, keys))?.1.as_deref()
    }

    /// Whether the keys of all indexes and objects were read.
    pub(super) fn has_indexes(&self) -> bool {
        self.of(&table::INDEXES).is_some() && self.of(&table::OBJECTS).is_some()
    }
}

/// Looks up keys in an ascending list.
struct Finder<'k> {
    keys: &'k [Key],
    /// Position of the last key found.
    near: usize,
    /// Whether only the first column of a key has to match.
    is_of_first: bool,
}

impl Finder<'_> {
    fn has(&mut self, key: Key) -> bool {
        if self.is_of_first {
            let [first, _] = key;
            self.near = partition_point_near(self.keys, self.near, |[known, _]| *known < first);
            return self.keys.get(self.near).is_some_and(|[known, _]| *known == first);
        }
        // Consecutive rows often belong to one object, so the key that was found for the previous row often matches
        // again.
        if self.keys.get(self.near) == Some(&key) {
            return true;
        }
        self.near = partition_point_near(self.keys, self.near, |known| *known < key);
        self.keys.get(self.near) == Some(&key)
    }
}

/// The distinct tables, by ID.
fn bases(all: impl Iterator<Item = &'static Base>) -> Vec<&'static Base> {
    let mut bases: Vec<&'static Base> = all.collect();
    bases.sort_by_key(|base| base.id);
    bases.dedup_by_key(|base| base.id);
    bases
}

/// Checks all references.
pub(super) fn references(
    tables: &Tables<'_>,
    keys: &KeySets,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) {
    let is_of_the_server = is_of_the_server(tables.database);
    for base in bases(REFERENCES.iter().map(|reference| reference.rows.base)) {
        let mut columns = Columns::default();
        let mut plans = Vec::new();
        for reference in REFERENCES.iter().filter(|reference| reference.rows.base.id == base.id) {
            let Some(set) = keys.of(reference.to) else { continue };
            let tests = columns.tests(reference.rows.only);
            let (refers, identity) = (columns.places(reference.refers), columns.places(reference.rows.identity));
            let is_of_first = reference.refers.len() < reference.to.key.len();
            plans.push((reference, Finder { keys: set, near: 0, is_of_first }, tests, refers, identity));
        }
        if plans.is_empty() {
            continue;
        }
        let read = tables.each(base.id, &columns.0, |at, row| {
            for (reference, known, tests, refers, identity) in &mut plans {
                if tests.iter().all(|test| test.holds(row))
                    && let Some(key) = key(row, refers)
                    && !known.has(key)
                {
                    let identity: Vec<_> = identity.iter().map(|place| row.get(*place).copied().flatten()).collect();
                    match dangling(reference, key, &identity) {
                        _ if is_of_the_server => coverage.note(&limits::REFERENCES_OF_SERVER, scope(reference), 1),
                        Some(finding) => findings.push(finding.at_record(at)),
                        None => coverage.note(&limits::REFERENCES_UNPROVEN, scope(reference), 1),
                    }
                }
            }
        });
        // Findings about rows that were read before the error remain valid: these rows exist and have the reference.
        if let Err(unread) = &read {
            tables.note(base, unread, coverage);
        }
    }
}

/// The columns with their values, as messages print them: `name=value,name=value`.
fn named(columns: &[Column], values: &[Option<i64>]) -> String {
    let named = columns.iter().zip(values).map(|((_, name), value)| match value {
        Some(value) => format!("{name}={value}"),
        None => format!("{name}=(null)"),
    });
    named.collect::<Vec<_>>().join(",")
}

/// Whether the database is master or the resource database. Rows in their catalogs may refer to logins and to built-in
/// objects of the server, so a dangling reference in these catalogs is only noted.
pub(super) fn is_of_the_server(database: &Database) -> bool {
    const RESOURCE: u16 = 32767;
    let has_rows = |id: i32| database.rowsets_of(id).any(|rowset| rowset.rows > 0);
    let has_logins = || database.objects.values().any(|object| object.name == "sysxlgns" && has_rows(object.id));
    database.boot.as_ref().is_some_and(|boot| boot.database_id == RESOURCE) || has_logins()
}

/// The text that names the rows of a reference: base table, class, referring columns.
fn scope(reference: &Reference) -> String {
    let base = reference.rows.base.name;
    let columns = reference.refers.iter().map(|(column, _)| *column).collect::<Vec<_>>().join(",");
    match class(reference) {
        Some(class) => format!("sys.{base}, class {class}, {columns}"),
        None => format!("sys.{base}, {columns}"),
    }
}

/// The class of the referring rows, if their table has rows of many classes.
pub(super) fn class(reference: &Reference) -> Option<i64> {
    reference.rows.only.iter().find_map(|only| match only {
        Only::Is("class" | "valclass", class) => Some(*class),
        _ => None,
    })
}

/// Returns the finding for a referring row whose target row is missing. `identity` has the values that identify the
/// referring row, and `key` is the key that no row of the target has. `None` if the missing row proves nothing.
fn dangling(reference: &Reference, key: Key, identity: &[Option<i64>]) -> Option<Finding> {
    let row = named(reference.rows.identity, identity);
    let values = key.map(Some);
    let values = values.get(..reference.refers.len()).unwrap_or(&values);
    let (attribute, wanted) = (named(reference.refers, values), named(reference.to.key, values));
    let (table, referenced) = (reference.rows.view, reference.to.view);
    let [first, _] = key;
    Some(match reference.says {
        Violation::Unproven => return None,
        Violation::Dangling => Finding::new(&registry::CATALOG_DANGLING)
            .text_value("attribute", attribute)
            .text_value("row", row)
            .text_value("table", table)
            .text_value("wanted", wanted)
            .text_value("referenced", referenced),
        Violation::OfNothing => Finding::new(&registry::CATALOG_VALUE_OF_NOTHING)
            .text_value("attribute", row)
            .text_value("wanted", wanted)
            .text_value("referenced", referenced),
        Violation::Lacks(attribute) => Finding::new(&registry::CATALOG_VALUE_MISSING)
            .text_value("attribute", attribute)
            .text_value("row", row)
            .text_value("table", table),
        Violation::Alone => Finding::new(&registry::CATALOG_PARTNER_MISSING)
            .text_value("row", row)
            .text_value("table", table)
            .text_value("wanted", wanted)
            .text_value("referenced", referenced),
        Violation::Broker(check) => {
            let from = identity.first().copied().flatten().unwrap_or_default();
            Finding::new(check).number("from", from).number("to", first)
        }
    })
}
