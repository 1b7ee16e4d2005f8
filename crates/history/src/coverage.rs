//! The age of reads and proofs: when each page was last read, and when each relation was last proven to be sound. A
//! relation is a heap or index that is checked by itself, or an index that is compared with its table. The age of a
//! proof is counted from the time at which the database had the checked state, not from the time of the check.

mod tiles;

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use findings::Report;
use findings::registry::Basis;
use rusqlite::{Connection, Transaction, params};

use crate::doubts::Doubts;
use crate::error::Result;
use crate::file::History;
use crate::identity::Ids;
use crate::lease::Lease;
use crate::objects;
use crate::query::{Filter, Named};
use crate::scope::Asked;
use crate::time;
pub(crate) use tiles::{Row, depth_of, mark, promised, retile};

/// The ranges that a run in a time window reports, and the time at which each range was read. Some of these ranges may
/// have been read in earlier time windows.
#[derive(Clone, Copy, Debug)]
pub struct InWindow<'a> {
    /// The time at which each range of the image was read, in this time window or an earlier one. The key is the file
    /// ID and the first page.
    pub read: &'a BTreeMap<(u16, u32), String>,
    /// For each table, by object ID: the oldest read of a page on which the proof of the table rests. `None` if all pages
    /// were read for the proof.
    pub tables: Option<&'a BTreeMap<i32, String>>,
    /// The lease on the database, which is held until the run is recorded; `None` if the lease could not be taken.
    pub lease: Option<&'a Lease>,
}

/// Writes which ranges a run read, and when it read them.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    (report, window): (&Report, Option<&InWindow<'_>>),
    asked: &Asked,
    ids: Ids,
    (taken_at, now): (&str, &str),
) -> rusqlite::Result<()> {
    // A backup may be read long after it was taken. Therefore, if a range was read after the time of the image, the
    // date of the range is the time of the image.
    let date = |range: &findings::RangeRead| match window {
        _ if !range.is_read => None,
        None => Some(taken_at),
        Some(window) => window.read.get(&(range.file_id, range.first)).map(|at| at.as_str().min(taken_at)),
    };
    if report.ranges.is_empty() {
        return Ok(());
    }
    let of = (ids.database, depth_of(asked.is_full()));
    retile(transaction, of, &report.ranges, (taken_at, now))?;
    for range in &report.ranges {
        if let Some(read_at) = date(range) {
            mark(transaction, of, range, (read_at, ids.image), now)?;
        }
    }
    Ok(())
}

/// The number of relations per INSERT statement. Many relations are written with one statement, because preparing a
/// statement takes longer than writing a row: SQLite then compiles the CHECK constraints of the table.
const RELATIONS_AT_A_TIME: usize = 1000;

/// The verdict on a relation that was proven to be sound.
const SOUND: &str = "sound";
/// The verdict on a relation that could not be verified, or that no run has checked yet.
const NOT_VERIFIED: &str = "not verified";

/// The kind of a relation (`unit` or `pair`) and its verdict.
type Judged = (&'static str, &'static str);

/// Writes the relations that the catalog lists. If the run checked in full depth, also writes the verdict of the run on
/// each of these relations.
pub(crate) fn write_relations(
    transaction: &Transaction<'_>,
    (report, of_tables): (&Report, Option<&BTreeMap<i32, String>>),
    asked: &Asked,
    (ids, objects): (Ids, &objects::Rows),
    taken_at: &str,
) -> rusqlite::Result<()> {
    write_listed(transaction, objects, (ids, taken_at))?;
    if !report.options.scope.reads_pages() || !asked.is_full() {
        return Ok(());
    }
    let doubts = Doubts::of(report);
    let has_ended_early = report.findings.groups().iter().any(|group| group.is_primitive);
    let mut found = HashSet::new();
    let mut damaged = HashSet::new();
    for finding in report.findings.iter().chain(report.demoted.iter()) {
        let Some(owner) = finding.owner.filter(|owner| owner.object_id != 0) else { continue };
        found.insert((owner.object_id, owner.index_id));
        if !finding.check.is_of_description() && owner.index_id <= 1 {
            damaged.insert(owner.object_id);
        }
    }
    let is_open = objects::is_open(report);
    let mut judged: BTreeMap<(Judged, bool, Option<&str>), Vec<i64>> = BTreeMap::new();
    // Pages of a table that are left for later windows keep all of its relations from being judged.
    let open: HashSet<i32> =
        report.rowsets.iter().filter(|rowset| rowset.is_open).map(|rowset| rowset.object_id).collect();
    for (rowset, object) in report.rowsets.iter().zip(&objects.of_report) {
        let id = rowset.object_id;
        let is_in_doubt = has_ended_early || doubts.concern(Basis::Several, Some(id));
        let mut judge = |kind, is_found: bool| {
            let verdict = match (is_found, is_in_doubt) {
                (true, _) => "findings",
                (false, true) => NOT_VERIFIED,
                (false, false) => SOUND,
            };
            let is_open = is_open || verdict == NOT_VERIFIED && open.contains(&id);
            let read_at = of_tables.and_then(|tables| tables.get(&id)).map(String::as_str);
            judged.entry(((kind, verdict), is_open, read_at)).or_default().push(*object);
        };
        let is_found = found.contains(&(id, rowset.index_id));
        judge("unit", is_found);
        let is_user_index = rowset.index_id > 1 && !asked.no_index;
        if is_user_index {
            judge("pair", is_found || damaged.contains(&id));
        }
    }
    for ((judged, is_open, read_at), objects) in judged {
        put(transaction, judged, &objects, (ids.image, taken_at, is_open), read_at)?;
    }
    if asked.is_whole()
        && !has_ended_early
        && !is_open
        && report.not_verified.iter().all(|entry| !entry.limit.is_of_catalog())
    {
        // Objects that the catalog no longer lists were dropped from the database.
        let listed: HashSet<i64> = objects.listed.iter().map(|(object, _)| *object).collect();
        let mut known = transaction.prepare(
            "SELECT DISTINCT e.object FROM relation e JOIN object o ON o.id = e.object WHERE o.database = ?1 AND e.looked_at < ?2",
        )?;
        let known: Vec<i64> =
            known.query_map(params![ids.database, taken_at], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for object in known.iter().filter(|object| !listed.contains(object)) {
            transaction.execute("DELETE FROM relation WHERE object = ?1", [object])?;
        }
    }
    Ok(())
}

/// Writes the relations that the catalog lists and that no run has checked yet. Writes nothing if a newer image was
/// already checked, because the catalog of the older image may list objects that no longer exist.
fn write_listed(
    transaction: &Transaction<'_>,
    objects: &objects::Rows,
    (ids, taken_at): (Ids, &str),
) -> rusqlite::Result<()> {
    let newest: Option<String> = transaction.query_row(
        "SELECT max(e.looked_at) FROM relation e JOIN object o ON o.id = e.object WHERE o.database = ?1",
        [ids.database],
        |row| row.get(0),
    )?;
    if newest.is_some_and(|newest| newest.as_str() > taken_at) {
        return Ok(());
    }
    let all: Vec<i64> = objects.listed.iter().map(|(object, _)| *object).collect();
    let indexes = objects.listed.iter().filter(|(_, index_id)| *index_id > 1).map(|(object, _)| *object);
    put(transaction, ("unit", NOT_VERIFIED), &all, (ids.image, "", true), None)?;
    put(transaction, ("pair", NOT_VERIFIED), &indexes.collect::<Vec<_>>(), (ids.image, "", true), None)
}

/// Writes the same verdict for the relations of one kind (`unit` or `pair`) of all given objects.
fn put(
    connection: &Connection,
    (kind, verdict): Judged,
    objects: &[i64],
    (image, taken_at, is_open): (i64, &str, bool),
    read_at: Option<&str>,
) -> rusqlite::Result<()> {
    // A check that is spread over several time windows proves nothing about a relation until it has read all pages. So
    // the verdicts of earlier checks stay.
    let known = match is_open {
        true => "NOTHING",
        false => {
            "UPDATE SET looked_at = excluded.looked_at, verdict = excluded.verdict, image = excluded.image,
             closed_at = coalesce(excluded.closed_at, closed_at), oldest_part_at = coalesce(excluded.oldest_part_at, oldest_part_at)
             WHERE looked_at <= excluded.looked_at"
        }
    };
    let closed = (verdict == SOUND).then_some(taken_at);
    // The pages of a backup may be read long after it was taken.
    let oldest_part = closed.map(|taken_at| read_at.map_or(taken_at, |read_at| read_at.min(taken_at)));
    for objects in objects.chunks(RELATIONS_AT_A_TIME) {
        let objects: Vec<String> = objects.iter().map(|object| format!("({object})")).collect();
        let put = format!(
            "INSERT INTO relation (object, kind, looked_at, closed_at, oldest_part_at, image, verdict)
             SELECT column1, ?1, ?2, ?3, ?6, ?4, ?5 FROM (VALUES {}) WHERE true ON CONFLICT (object, kind) DO {known}",
            objects.join(",")
        );
        connection.execute(&put, params![kind, taken_at, closed, image, verdict, oldest_part])?;
    }
    Ok(())
}

/// The age of the reads and proofs of a database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// The name of the database.
    pub database: String,
    /// The family: the database and all databases restored from its backups.
    pub family: String,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub server: String,
    /// The time span to which `pages_within` and `relations_within` are limited. If it is `None`, these counts include
    /// every read and proof, however old.
    pub within: Option<Duration>,
    /// The number of pages in use, as of the last read of each range.
    pub pages_in_use: u64,
    /// The number of pages in use that were read within the span `within`.
    pub pages_within: u64,
    /// The number of pages in use that were never read.
    pub never: u64,
    /// The range that has not been read for the longest time: file ID, first page, number of pages, and the time of its
    /// last read.
    pub oldest: Option<(u16, u32, u32, String)>,
    /// The number of relations. A relation is a heap or index that is checked by itself, or an index that is compared
    /// with its table.
    pub relations: u64,
    /// The number of relations that were proven to be sound within the span `within`.
    pub relations_within: u64,
    /// The time of the oldest proof; `None` if any relation was never proven to be sound, or if there are no relations.
    pub oldest_closed: Option<String>,
    /// The number of pages for each kind of evidence that a page was read. The kinds are `read`, `object`, `chain` and
    /// `vouched`.
    pub evidence: Vec<(String, u64)>,
}

impl Coverage {
    /// Whether, within the span `within`, every page in use was read and every relation was proven to be sound.
    pub fn is_kept(&self) -> bool {
        let are_all_read = self.pages_in_use > 0 && self.pages_within == self.pages_in_use;
        are_all_read && self.relations > 0 && self.relations_within == self.relations
    }

    fn add(&mut self, range: Range, from: &str) {
        let Range { file, first, pages, in_use, read_at, evidence } = range;
        self.pages_in_use += u64::from(in_use);
        let Some(read_at) = read_at else {
            self.never += u64::from(in_use);
            return;
        };
        match self.evidence.iter_mut().find(|(name, _)| *name == evidence) {
            Some((_, count)) => *count += u64::from(in_use),
            None => self.evidence.push((evidence, in_use.into())),
        }
        if read_at.as_str() >= from {
            self.pages_within += u64::from(in_use);
        }
        if in_use > 0 && self.oldest.as_ref().is_none_or(|(.., oldest)| read_at < *oldest) {
            self.oldest = Some((file, first, pages, read_at));
        }
    }
}

/// A range of pages, and when it was last read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The file ID.
    pub file: u16,
    /// The first page of the range.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
    /// The number of pages that are in use.
    pub in_use: u32,
    /// When the range was last read; `None` if never.
    pub read_at: Option<String>,
    /// The kind of evidence that the pages of the range were read; see [`Coverage::evidence`].
    pub(crate) evidence: String,
}

/// When a table was last proven to be sound, and when the pages were read on which this proof rests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableProof {
    /// The name of the database.
    pub database: String,
    /// The name of the table, with its schema.
    pub table: String,
    /// The object ID.
    pub object_id: i32,
    /// The time of the oldest proof of its heap and indexes, and of their comparison; `None` if one was never proven.
    pub proven_at: Option<String>,
    /// The oldest read of a page on which these proofs rest.
    pub read_at: Option<String>,
    /// Whether the last check found all of it sound.
    pub is_sound: bool,
}

impl History {
    /// The proofs of all tables of the databases that `filter` selects, the oldest first.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn tables(&self, filter: &Filter) -> Result<Vec<TableProof>> {
        let read = || {
            let mut found = Vec::new();
            for database in filter.databases(self.connection())? {
                found.extend(tables_of(self.connection(), database.id, &database.name)?);
            }
            Ok(found)
        };
        read().map_err(|error| self.failed(&error))
    }

    /// The age of the reads and proofs of each database that `filter` selects. If `within` is `None`, the counts
    /// include every read and proof, however old.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn coverage(&self, filter: &Filter, within: Option<Duration>) -> Result<Vec<Coverage>> {
        let from = within.and_then(|span| SystemTime::now().checked_sub(span)).map(time::text).unwrap_or_default();
        let read = || {
            let mut found = Vec::new();
            for database in filter.databases(self.connection())? {
                found.push(Coverage { within, ..self.coverage_of(database, &from)? });
            }
            Ok(found)
        };
        read().map_err(|error| self.failed(&error))
    }

    /// The age of the reads and proofs of one database.
    pub(crate) fn coverage_of(&self, database: Named, from: &str) -> rusqlite::Result<Coverage> {
        let Named { id, family, server, name } = database;
        let mut one = Coverage { database: name, family, server, ..Coverage::default() };
        each_range(self.connection(), id, |range| one.add(range, from))?;
        self.relations(id, from, &mut one)?;
        Ok(one)
    }

    fn relations(&self, database: i64, from: &str, into: &mut Coverage) -> rusqlite::Result<()> {
        let (all, never, within, oldest): (u64, u64, u64, Option<String>) = self.connection().query_row(
            "SELECT count(*), count(*) - count(e.closed_at), coalesce(sum(e.closed_at >= ?2), 0), min(e.closed_at)
             FROM relation e JOIN object o ON o.id = e.object WHERE o.database = ?1",
            params![database, from],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        (into.relations, into.relations_within) = (all, within);
        into.oldest_closed = oldest.filter(|_| never == 0);
        Ok(())
    }
}

/// The proofs of all tables of a database, the oldest first.
pub(crate) fn tables_of(connection: &Connection, database: i64, name: &str) -> rusqlite::Result<Vec<TableProof>> {
    let mut statement = connection.prepare_cached(
        "SELECT o.object_id, o.schema_name || '.' || o.object_name, min(coalesce(e.closed_at, '')),
             min(coalesce(e.oldest_part_at, '')), min(e.verdict = 'sound')
         FROM relation e JOIN object o ON o.id = e.object WHERE o.database = ?1
         GROUP BY o.object_id ORDER BY 3, o.object_id",
    )?;
    let rows = statement.query_map([database], |row| {
        let known = |at: String| Some(at).filter(|at| !at.is_empty());
        Ok(TableProof {
            database: name.to_owned(),
            object_id: row.get(0)?,
            table: row.get(1)?,
            proven_at: known(row.get(2)?),
            read_at: known(row.get(3)?),
            is_sound: row.get(4)?,
        })
    })?;
    rows.collect()
}

/// Passes each range of a database to `take`, ordered by file and first page. A range may have two dates, one of a
/// check in full depth and one of a check in physical depth. `take` gets the later date, because a check in either
/// depth reads and checks every page.
pub(crate) fn each_range(connection: &Connection, database: i64, mut take: impl FnMut(Range)) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT min(max(file, 0), 65535), min(max(first, 0), 4294967295), min(max(pages, 0), 4294967295),
             min(max(pages_in_use, 0), 4294967295), substr(read_at, 1, 40), evidence FROM coverage WHERE database = ?1
         ORDER BY file, first, read_at DESC",
    )?;
    let mut rows = statement.query([database])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let place: (u16, u32) = (row.get(0)?, row.get(1)?);
        if last == Some(place) {
            continue;
        }
        last = Some(place);
        take(Range {
            file: place.0,
            first: place.1,
            pages: row.get(2)?,
            in_use: row.get(3)?,
            read_at: row.get(4)?,
            evidence: row.get(5)?,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn any_number_of_relations_is_written_and_written_again() {
        for count in [0, 1, 999, 1000, 1001, 2000] {
            let connection = Connection::open_in_memory().unwrap();
            schema::migrate(&connection, 0, schema::MIGRATIONS).unwrap();
            // Without this setting, the test could not insert rows that refer to objects which do not exist.
            connection.pragma_update(None, "foreign_keys", false).unwrap();
            let objects: Vec<i64> = (1..=count).collect();
            let number_of = |verdict: &str, closed: &str| -> i64 {
                let query = "SELECT count(*) FROM relation WHERE verdict = ?1 AND closed_at = ?2 AND kind = 'unit'";
                connection.query_row(query, params![verdict, closed], |row| row.get(0)).unwrap()
            };
            put(&connection, ("unit", SOUND), &objects, (1, "2026-11-20", false), None).unwrap();
            assert_eq!(number_of(SOUND, "2026-11-20"), count);
            put(&connection, ("unit", "findings"), &objects, (2, "2026-11-19", false), None).unwrap();
            put(&connection, ("unit", "findings"), &objects, (2, "2026-11-21", true), None).unwrap();
            assert_eq!(number_of(SOUND, "2026-11-20"), count, "what is older, or of an open window, changes nothing");
            put(&connection, ("unit", "findings"), &objects, (2, "2026-11-21", false), None).unwrap();
            assert_eq!(number_of("findings", "2026-11-20"), count, "the last proof stays");
        }
    }
}
