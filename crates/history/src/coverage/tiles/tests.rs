//! Simulates nightly runs, and compares the history with a model that stores a date for every single page.

use super::*;
use crate::coverage::{Coverage, each_range};
use crate::schema;
use crate::time::text_of_seconds;

const DAY: i64 = 86_400;

fn row(file: u16, first: u32, pages: u32, read_at: Option<&str>) -> Row {
    let (read_at, evidence) = (read_at.map(str::to_owned), "read".to_owned());
    Row { file, first, pages, in_use: pages, read_at, known_since: Some("0".to_owned()), image: None, evidence }
}

fn range(file_id: u16, first: u32, pages: u32) -> RangeRead {
    RangeRead { file_id, first, pages, in_use: pages, is_read: true }
}

#[test]
fn a_range_is_as_old_as_the_oldest_that_it_was_part_of() {
    let known =
        [row(1, 0, 100, Some("5")), row(1, 100, 100, Some("3")), row(1, 200, 50, None), row(3, 0, 10, Some("4"))];
    let of = |file, first, pages| cut(&known, unknown(&range(file, first, pages)), "9");
    let date = |file, first, pages| of(file, first, pages).read_at;
    assert_eq!(date(1, 0, 50).as_deref(), Some("5"));
    assert_eq!(date(1, 99, 1).as_deref(), Some("5"));
    assert_eq!(date(1, 50, 51).as_deref(), Some("3"));
    assert_eq!(date(1, 100, 100).as_deref(), Some("3"));
    assert_eq!(date(1, 0, 1000), None, "some of it was never read");
    assert_eq!(date(3, 5, 500).as_deref(), Some("4"), "a file that has grown");
    assert_eq!(date(2, 0, 10), None);
    assert_eq!(of(2, 0, 10).known_since.as_deref(), Some("9"));
    assert_eq!(of(1, 200, 10).known_since.as_deref(), Some("0"));
}

#[test]
fn pages_of_which_nothing_is_known_do_not_get_the_date_of_those_after_them() {
    let known = [row(1, 0, 100, Some("5")), row(1, 200, 100, Some("9"))];
    let date = |first, pages| cut(&known, unknown(&range(1, first, pages)), "9").read_at;
    assert_eq!(date(100, 200), None);
    assert_eq!(date(50, 200), None);
    assert_eq!(date(200, 200).as_deref(), Some("9"));
}

#[test]
fn pieces_share_the_pages_in_use_and_each_has_one() {
    let known = [vec![row(1, 0, 10, Some("5")), row(1, 10, 80, Some("6")), row(1, 90, 10, Some("5"))], Vec::new()];
    let shares = |in_use| {
        let tile = Row { in_use, ..row(1, 0, 100, None) };
        pieces(&tile, &known).iter().map(|piece| (piece.first, piece.pages, piece.in_use)).collect::<Vec<_>>()
    };
    assert_eq!(shares(100), [(0, 10, 10), (10, 80, 80), (90, 10, 10)]);
    assert_eq!(shares(3), [(0, 10, 1), (10, 80, 1), (90, 10, 1)]);
    assert_eq!(shares(2), [(0, 100, 2)]);
    assert_eq!(shares(0), [(0, 100, 0)]);
    for in_use in 3..=100 {
        let shares = shares(in_use);
        assert_eq!(shares.iter().map(|(_, _, in_use)| in_use).sum::<u32>(), in_use);
        assert!(shares.iter().all(|(_, pages, in_use)| (1..=*pages).contains(in_use)), "{shares:?}");
    }
}

/// Makes a history with one database, of which no page has been read yet.
fn made() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    schema::migrate(&connection, 0, schema::MIGRATIONS).unwrap();
    connection
        .execute_batch(
            "INSERT INTO database VALUES (1, 'F', 'D', '1970-01-01T00:00:00Z', 'F', '');
             INSERT INTO source VALUES (1, 1, 'files', 'H', '/d');
             INSERT INTO image VALUES (1, 1, 'I', NULL, '1970-01-01T00:00:00Z', NULL)",
        )
        .unwrap();
    connection
}

/// Records a run at `now` over an image taken at `taken_at`. The run reads the ranges that have `is_read` set.
fn run(connection: &mut Connection, depth: &str, ranges: &[RangeRead], (taken_at, now): (i64, i64)) {
    let (taken_at, now) = (text_of_seconds(taken_at), text_of_seconds(now));
    let transaction = connection.transaction().unwrap();
    retile(&transaction, (1, depth), ranges, (&taken_at, &now)).unwrap();
    for range in ranges.iter().filter(|range| range.is_read) {
        mark(&transaction, (1, depth), range, (&taken_at, 1), &now).unwrap();
    }
    transaction.commit().unwrap();
}

fn coverage(connection: &Connection, from: i64) -> Coverage {
    let (mut coverage, from) = (Coverage::default(), text_of_seconds(from));
    each_range(connection, 1, |range| coverage.add(range, &from)).unwrap();
    coverage
}

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The time at which each page was read, by depth and file. The entry of a depth is `None` before the first run in this
/// depth.
#[derive(Default)]
struct Model([Option<[Vec<Option<i64>>; 2]>; 2]);

impl Model {
    fn resize(&mut self, ranges: &[RangeRead]) {
        for (file, of) in self.0.iter_mut().flatten().flat_map(|files| (0..).zip(files.iter_mut())) {
            let old_end = of.len();
            let last = of.last().copied().flatten();
            for range in ranges.iter().filter(|range| range.file_id == file) {
                let (first, end) = (range.first as usize, (range.first + range.pages) as usize);
                // If a range begins before the old end of the file, its pages after the old end get the date of the
                // last page before it.
                of.resize(end.max(of.len()), if first < old_end { last } else { None });
            }
            let end = ranges.iter().filter(|range| range.file_id == file).map(|range| range.first + range.pages).max();
            of.truncate(end.unwrap_or_default() as usize);
        }
    }

    /// When a page was last read. If `is_full` is set, only reads in full depth count; otherwise, reads in either depth
    /// count.
    fn date(&self, is_full: bool, file: usize, page: usize) -> Option<i64> {
        let of = |depth: usize| self.0[depth].as_ref().and_then(|files| files[file][page]);
        if is_full { of(0) } else { of(0).max(of(1)) }
    }
}

fn tiles(sizes: [u32; 2], pages: u32, random: &mut Random) -> Vec<RangeRead> {
    // The first range of a file may be shorter than the others.
    let short = random.below(pages.into()) as u32;
    let mut tiles = Vec::new();
    for (file, size) in (0..).zip(sizes) {
        let bounds = [0].into_iter().chain((0..).map(|at| short + 1 + at * pages));
        let bounds: Vec<u32> = bounds.take_while(|bound| *bound < size).chain([size]).collect();
        tiles.extend(bounds.windows(2).map(|of| range(file, of[0], of[1] - of[0])));
    }
    tiles
}

/// Simulates 40 nights. Each night has one of the two depths and divides the database into ranges in its own way. The
/// history must count every page exactly once, with the date that a model with one date per page has for this page.
#[test]
#[ignore = "full tier: takes seconds"]
fn both_depths_in_any_cut_are_as_old_as_a_model_of_every_page_says() {
    let (mut partly, mut pieces) = (0, 0);
    for seed in 0..20 {
        let mut random = Random(seed);
        let (mut connection, mut model) = (made(), Model::default());
        let mut sizes = [100 + random.below(100) as u32, 20 + random.below(60) as u32];
        for night in 1..=40 {
            let now = night * DAY;
            if random.below(4) == 0 {
                let size = &mut sizes[random.below(2) as usize];
                *size = (*size + random.below(30) as u32 - 10).max(10);
            }
            let depth = random.below(2) as usize;
            let pages = [5, 16, 33, 64, 1000][random.below(5) as usize];
            let mut ranges = tiles(sizes, pages, &mut random);
            let one_in = 1 + random.below(4);
            ranges.iter_mut().for_each(|range| range.is_read = random.below(one_in) == 0);
            run(&mut connection, DEPTHS[depth], &ranges, (now, now));
            model.0[depth].get_or_insert_with(|| sizes.map(|size| vec![None; size as usize]));
            model.resize(&ranges);
            for range in ranges.iter().filter(|range| range.is_read) {
                let of = &mut model.0[depth].as_mut().unwrap()[usize::from(range.file_id)];
                of[range.first as usize..(range.first + range.pages) as usize].fill(Some(now));
            }

            let all =
                sizes.iter().enumerate().flat_map(|(file, size)| (0..*size).map(move |page| (file, page as usize)));
            let dates: Vec<Option<i64>> = all.map(|(file, page)| model.date(false, file, page)).collect();
            for days in [0, 3, 10, 100] {
                let from = now - days * DAY;
                let (said, at) = (coverage(&connection, from), format!("seed {seed} night {night} days {days}"));
                let within = dates.iter().filter(|date| date.is_some_and(|date| date >= from)).count() as u64;
                let never = dates.iter().filter(|date| date.is_none()).count() as u64;
                assert_eq!(
                    (said.pages_in_use, said.pages_within, said.never),
                    (dates.len() as u64, within, never),
                    "{at}"
                );
                let oldest = dates.iter().flatten().min().map(|date| text_of_seconds(*date));
                assert_eq!(said.oldest.map(|(.., at)| at), oldest, "{at}");
                partly += usize::from(within > 0 && within < said.pages_in_use);
            }
            let other = tiles(sizes, 1 + random.below(50) as u32, &mut random);
            for (is_full, depth) in [(true, FULL), (false, PHYSICAL)] {
                for (tile, said) in other.iter().zip(promised(&connection, (1, depth), &other, "9").unwrap()) {
                    let pages = tile.first as usize..(tile.first + tile.pages) as usize;
                    let oldest = pages.map(|page| model.date(is_full, tile.file_id.into(), page)).min().flatten();
                    assert_eq!(said.read_at, oldest.map(text_of_seconds), "seed {seed} night {night} {depth} {tile:?}");
                }
            }
            let [full, physical] = DEPTHS.map(|depth| rows(&connection, (1, depth)).unwrap());
            let places = |rows: &[Row]| rows.iter().map(|row| (row.file, row.first, row.pages)).collect::<Vec<_>>();
            assert!(full.is_empty() || physical.is_empty() || places(&full) == places(&physical));
            pieces += usize::from(full.len().max(physical.len()) > ranges.len());
        }
    }
    assert!(partly > 400 && pieces > 150, "{partly} {pieces}");
}

#[test]
fn a_range_of_which_no_page_is_in_use_is_of_no_age() {
    let mut connection = made();
    let unused = RangeRead { in_use: 0, is_read: false, ..range(1, 50, 50) };
    run(&mut connection, FULL, &[range(1, 0, 50), unused], (DAY, DAY));
    run(&mut connection, PHYSICAL, &[RangeRead { in_use: 50, ..range(1, 0, 100) }], (2 * DAY, 2 * DAY));
    let said = coverage(&connection, 2 * DAY);
    assert_eq!((said.pages_in_use, said.pages_within, said.never), (50, 50, 0));
    run(&mut connection, FULL, &[RangeRead { is_read: false, ..range(1, 0, 50) }, unused], (3 * DAY, 3 * DAY));
    let said = coverage(&connection, 2 * DAY);
    assert_eq!((said.pages_in_use, said.pages_within, said.never), (50, 50, 0));
}

#[test]
fn an_older_image_takes_away_nothing_that_is_known_of_a_newer_one() {
    let mut connection = made();
    run(&mut connection, PHYSICAL, &[range(1, 0, 40), range(1, 40, 20)], (2 * DAY, 2 * DAY));
    run(&mut connection, FULL, &[range(1, 0, 30), range(1, 30, 70), range(3, 0, 10)], (9 * DAY, 9 * DAY));
    // The run checks a backup that was taken on day 8, when the database had fewer pages. The pages beyond its end must
    // stay.
    run(&mut connection, FULL, &[range(1, 0, 20), range(1, 20, 50)], (8 * DAY, 10 * DAY));
    let said = coverage(&connection, 9 * DAY);
    assert_eq!((said.pages_in_use, said.pages_within), (110, 110));
    // This run checks the database after it has shrunk to 50 pages.
    run(&mut connection, FULL, &[range(1, 0, 50)], (11 * DAY, 11 * DAY));
    let said = coverage(&connection, 11 * DAY);
    assert_eq!((said.pages_in_use, said.pages_within), (50, 50));
}

#[test]
fn pages_of_a_newer_image_that_were_never_read_stay_so_after_a_check_of_an_older_one() {
    let mut connection = made();
    let never = RangeRead { is_read: false, ..range(1, 50, 50) };
    run(&mut connection, FULL, &[range(1, 0, 50), never], (9 * DAY, 9 * DAY));
    run(&mut connection, FULL, &[range(1, 0, 50)], (8 * DAY, 10 * DAY));
    let said = coverage(&connection, 0);
    assert_eq!((said.pages_in_use, said.never), (100, 50));
}

#[test]
fn a_depth_in_which_nothing_was_read_promises_nothing_before_its_first_run() {
    let mut connection = made();
    let unread = |ranges: [RangeRead; 1]| ranges.map(|range| RangeRead { is_read: false, ..range });
    run(&mut connection, PHYSICAL, &[range(1, 0, 50)], (DAY, DAY));
    assert_eq!(rows(&connection, (1, FULL)).unwrap(), []);
    run(&mut connection, FULL, &unread([range(1, 0, 50)]), (30 * DAY, 30 * DAY));
    let full = promised(&connection, (1, FULL), &[], "9").unwrap();
    assert_eq!((full[0].read_at.as_deref(), full[0].known_since.clone()), (None, Some(text_of_seconds(30 * DAY))));
    let physical = promised(&connection, (1, PHYSICAL), &[], "9").unwrap();
    assert_eq!(
        (physical[0].read_at.clone(), physical[0].known_since.clone()),
        (Some(text_of_seconds(DAY)), Some(text_of_seconds(DAY)))
    );
}
