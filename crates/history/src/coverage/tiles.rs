//! The page ranges of a database, with the date of the last read of each range. There are two dates, one for each depth
//! of a check: full and physical.
//!
//! Checks divide a database into ranges in different ways: into ranges of 1 GB, by `--range`, or by tasks. When a check
//! divides the database in a new way, the dates of earlier reads are kept. If these dates differ within a new range,
//! the range is stored in several pieces. Both depths are stored with the same pieces, so that the later of the two
//! dates is known for each page.

use std::collections::BTreeMap;

use findings::RangeRead;
use rusqlite::{Connection, Transaction, params};

use crate::stored::stored;

/// The name under which the history stores the depth of a check.
pub(crate) fn depth_of(is_full: bool) -> &'static str {
    if is_full { FULL } else { PHYSICAL }
}

const FULL: &str = "full";
const PHYSICAL: &str = "physical";
const DEPTHS: [&str; 2] = [FULL, PHYSICAL];

/// A piece of a range, with its dates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) file: u16,
    pub(crate) first: u32,
    pub(crate) pages: u32,
    pub(crate) in_use: u32,
    pub(crate) read_at: Option<String>,
    pub(crate) known_since: Option<String>,
    image: Option<i64>,
    evidence: String,
}

impl Row {
    fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.pages)
    }

    /// Whether two neighboring pieces have the same dates, so that they can be stored as one piece.
    fn is_like(&self, other: &Self) -> bool {
        (&self.read_at, self.image, &self.evidence) == (&other.read_at, other.image, &other.evidence)
            && (self.read_at.is_some() || self.known_since == other.known_since)
    }
}

/// The rows of one depth, in page order.
pub(crate) fn rows(connection: &Connection, (database, depth): (i64, &str)) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare(
        "SELECT file, first, pages, pages_in_use, read_at, known_since, image, evidence FROM coverage
         WHERE database = ?1 AND depth = ?2 ORDER BY file, first",
    )?;
    let rows = statement.query_map(params![database, depth], |row| {
        Ok(Row {
            file: row.get(0)?,
            first: row.get(1)?,
            pages: row.get(2)?,
            in_use: row.get(3)?,
            read_at: row.get(4)?,
            known_since: row.get(5)?,
            image: row.get(6)?,
            evidence: row.get(7)?,
        })
    })?;
    rows.collect()
}

/// Returns the dates of the last reads in one depth. These dates decide whether a promise to read every page within a
/// time span is kept. The result has one row for each range in `tiles`, or one row for each stored piece if `tiles` is
/// empty. A page that was read in full depth was also read in physical depth.
pub(crate) fn promised(
    connection: &Connection,
    (database, depth): (i64, &str),
    tiles: &[RangeRead],
    now: &str,
) -> rusqlite::Result<Vec<Row>> {
    let mut known = rows(connection, (database, depth))?;
    if depth == PHYSICAL {
        let full = rows(connection, (database, FULL))?;
        if known.is_empty() {
            known = full;
        } else if !full.is_empty() {
            for row in &mut known {
                let other = cut(&full, row.clone(), now);
                // `known_since` is `None` for pages that have been known for as long as the database. If this is so in
                // one of the two rows, the result is `None` too.
                let known_since =
                    row.known_since.clone().zip(other.known_since.clone()).map(|(own, other)| own.min(other));
                if other.read_at > row.read_at {
                    *row = other;
                }
                row.known_since = known_since;
            }
        }
    }
    Ok(match tiles {
        [] => known,
        tiles => tiles.iter().map(|tile| cut(&known, unknown(tile), now)).collect(),
    })
}

/// Divides the stored rows at the bounds of `tiles`, which cover all pages of an image taken at `taken_at`. A stored
/// row of pages beyond the end of a file in this image stays only if the row is newer than the image.
pub(crate) fn retile(
    transaction: &Transaction<'_>,
    (database, depth): (i64, &str),
    tiles: &[RangeRead],
    (taken_at, now): (&str, &str),
) -> rusqlite::Result<()> {
    let [full, physical] = DEPTHS.map(|depth| rows(transaction, (database, depth)));
    let known = [full?, physical?];
    let mut tiles: Vec<Row> = tiles.iter().map(unknown).collect();
    tiles.extend(beyond(&tiles, &known, (taken_at, now)));
    let pieces: Vec<Row> = tiles.iter().flat_map(|tile| pieces(tile, &known)).collect();
    for (of, known) in DEPTHS.into_iter().zip(&known) {
        // If no check has ever run in this depth, no rows are stored for it.
        if known.is_empty() && of != depth {
            continue;
        }
        let cut: Vec<Row> = pieces.iter().map(|piece| cut(known, piece.clone(), now)).collect();
        if cut != *known {
            replace(transaction, (database, of), cut)?;
        }
    }
    Ok(())
}

fn replace(transaction: &Transaction<'_>, (database, depth): (i64, &str), rows: Vec<Row>) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM coverage WHERE database = ?1 AND depth = ?2", params![database, depth])?;
    let mut put = transaction.prepare(
        "INSERT INTO coverage (database, file, first, depth, pages, pages_in_use, read_at, image, evidence, known_since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for Row { file, first, pages, in_use, read_at, known_since, image, evidence } in rows {
        put.execute(params![database, file, first, depth, pages, in_use, read_at, image, evidence, known_since])?;
    }
    Ok(())
}

/// Sets the date of a range that was passed to [`retile`], unless the stored date is later. A stored date after `now`
/// comes from a wrong clock and is replaced.
pub(crate) fn mark(
    transaction: &Transaction<'_>,
    (database, depth): (i64, &str),
    range: &RangeRead,
    (read_at, image): (&str, i64),
    now: &str,
) -> rusqlite::Result<()> {
    let mut set = transaction.prepare_cached(
        "UPDATE coverage SET read_at = ?6, image = ?7, evidence = 'read'
         WHERE database = ?1 AND file = ?2 AND first >= ?3 AND first < ?4 AND depth = ?5
         AND (read_at IS NULL OR read_at <= ?6 OR read_at > ?8)",
    )?;
    let end = u64::from(range.first) + u64::from(range.pages);
    set.execute(params![database, range.file_id, range.first, stored(end), depth, read_at, image, now]).map(drop)
}

/// The row of a range without any dates.
fn unknown(tile: &RangeRead) -> Row {
    let RangeRead { file_id: file, first, pages, in_use, .. } = *tile;
    let evidence = "read".to_owned();
    Row { file, first, pages, in_use, read_at: None, known_since: None, image: None, evidence }
}

/// Returns the rows of pages that are beyond the ends of the files in the present image, but exist in a newer image.
/// There are such rows only if a newer image was checked before the present one.
fn beyond(tiles: &[Row], known: &[Vec<Row>; 2], (taken_at, now): (&str, &str)) -> Vec<Row> {
    let mut ends: BTreeMap<u16, u64> = BTreeMap::new();
    for tile in tiles {
        let end = ends.entry(tile.file).or_default();
        *end = tile.end().max(*end);
    }
    // A row of pages that were never read has only a `known_since`. The row is newer than the image if this time is
    // later than the time of the image.
    let is_newer = |row: &&Row| {
        [&row.read_at, &row.known_since].into_iter().flatten().any(|at| at.as_str() > taken_at && at.as_str() <= now)
    };
    let mut newer: Vec<&Row> = known.iter().flatten().filter(is_newer).collect();
    newer.sort_by_key(|row| (row.file, row.first));
    let mut beyond = Vec::new();
    for row in newer {
        let end = ends.entry(row.file).or_default();
        let first = u32::try_from((*end).max(row.first.into())).unwrap_or(u32::MAX);
        let pages = u32::try_from(row.end().saturating_sub(first.into())).unwrap_or(u32::MAX);
        if pages > 0 {
            *end = row.end();
            beyond.push(Row { first, pages, in_use: row.in_use.min(pages), ..row.clone() });
        }
    }
    beyond
}

/// The rows that overlap a range. `rows` must be in page order.
fn over<'r>(rows: &'r [Row], range: &Row) -> impl Iterator<Item = &'r Row> + use<'r> {
    let (file, first, end) = (range.file, u64::from(range.first), range.end());
    let from = rows.partition_point(|row| (row.file, row.end()) <= (file, first));
    rows.iter().skip(from).take_while(move |row| row.file == file && u64::from(row.first) < end)
}

/// Divides a range into pieces at each page where the known dates of either depth change. It is unknown which pages of
/// the range are in use. So the number of pages in use is divided among the pieces in proportion to their size, and
/// each piece gets at least one. If a range has fewer pages in use than pieces, it is not divided.
fn pieces(tile: &Row, known: &[Vec<Row>; 2]) -> Vec<Row> {
    let mut bounds = vec![tile.first];
    for rows in known {
        let mut before: Option<&Row> = None;
        for row in over(rows, tile) {
            if before.is_some_and(|before| !before.is_like(row)) && row.first > tile.first {
                bounds.push(row.first);
            }
            before = Some(row);
        }
    }
    bounds.sort_unstable();
    bounds.dedup();
    let count = u32::try_from(bounds.len()).unwrap_or(u32::MAX);
    if tile.in_use < count {
        return vec![tile.clone()];
    }
    let ends = bounds.iter().skip(1).map(|bound| u64::from(*bound)).chain([tile.end()]);
    let (shared, most) = (u64::from(tile.in_use - count), u64::from(tile.pages.saturating_sub(count)).max(1));
    let (mut passed, mut given) = (0, 0);
    let piece = |(first, end): (&u32, u64)| {
        let pages = end.saturating_sub(u64::from(*first));
        passed += pages.saturating_sub(1);
        let share = shared.saturating_mul(passed) / most;
        let in_use = 1 + share - given;
        given = share;
        let [pages, in_use] = [pages, in_use].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Row { first: *first, pages, in_use, ..tile.clone() }
    };
    bounds.iter().zip(ends).map(piece).collect()
}

/// Gives a range the dates of a known row: among the rows that overlap the range, the one that was read longest ago.
/// Pages at the end of the range that no known row covers get these dates too. If no known row overlaps the range, or
/// if known pages follow unknown ones, the range gets no read date.
fn cut(known: &[Row], range: Row, now: &str) -> Row {
    // `None`, the date of a row that was never read, is the lowest date.
    let oldest = over(known, &range).min_by(|one, other| one.read_at.cmp(&other.read_at));
    let known_since = over(known, &range).filter_map(|row| row.known_since.clone()).min();
    let Some(oldest) = oldest.filter(|_| !has_gap(known, &range)) else {
        let known_since = Some(known_since.unwrap_or_else(|| now.to_owned()));
        return Row { read_at: None, known_since, image: None, evidence: "read".to_owned(), ..range };
    };
    let Row { read_at, image, evidence, .. } = oldest.clone();
    Row { read_at, known_since, image, evidence, ..range }
}

/// Whether the range has a page that no known row covers, followed by a page that a known row covers.
fn has_gap(known: &[Row], range: &Row) -> bool {
    let mut end = u64::from(range.first);
    over(known, range).any(|row| {
        let is_gap = u64::from(row.first) > end;
        end = end.max(row.end());
        is_gap
    })
}

#[cfg(test)]
mod tests;
