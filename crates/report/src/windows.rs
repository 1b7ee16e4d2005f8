//! The results of a check that is spread over several windows of time. Two promises are reported: that every page was
//! read, and that all relations (links, keys and rows) were verified.

use std::io;
use std::time::Duration;

use history::time;
use history::windows::promise::{Kept, Range, Rhythm};
use history::windows::{Known, Relations};

use crate::amounts::{counted, grouped};
use crate::databases::size;
use crate::history::{minute, span_text};
use crate::json::{self, VERSION, line};

/// The work done in a window.
#[derive(Clone, Copy, Debug)]
pub struct Done<'a> {
    /// Time used by the window.
    pub used: Duration,
    /// Time allowed for the window.
    pub allowed: Duration,
    /// Number of page ranges that were read.
    pub ranges: u64,
    /// Number of bytes in these page ranges.
    pub bytes: u64,
    /// The time of the image. An image is the state of the database at one point in time, and may be read in several
    /// windows.
    pub taken_at: &'a str,
    /// Number of bytes of the image that all windows together have read so far.
    pub done_bytes: u64,
    /// Size of the image in bytes.
    pub all_bytes: u64,
    /// Whether the next window can continue reading this image, because the files do not change.
    pub is_fixed: bool,
    /// Whether a signal ended the window early.
    pub is_interrupted: bool,
    /// How many tables are closed. `None` if the windows read an image that does not change.
    pub by_table: Option<ByTable>,
}

/// How many tables of a database that changes between windows are closed: no page of them is left, and their relations were
/// compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByTable {
    /// The number of tables with pages.
    pub tables: u64,
    /// The number of closed tables.
    pub closed: u64,
}

impl WindowView<'_> {
    fn in_use(&self) -> impl Iterator<Item = &Range> {
        self.known.ranges.iter().filter(|range| range.is_in_use)
    }

    /// Number of bytes in page ranges that are in use and were never read.
    fn never_read_bytes(&self) -> u64 {
        self.in_use().filter(|range| range.read_at.is_none()).map(|range| range.bytes).sum()
    }
}

impl Done<'_> {
    fn left_bytes(&self) -> u64 {
        self.all_bytes.saturating_sub(self.done_bytes)
    }
}

/// Changes between the findings of a run and the findings known before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    /// Findings that were not known before.
    pub new: u64,
    /// Known findings that were found again.
    pub confirmed: u64,
    /// Known findings that were not found again.
    pub gone: u64,
}

/// The report after a window. If there was no window, the report is only about the promises.
pub struct WindowView<'a> {
    /// Name of the database.
    pub database: &'a str,
    /// The work done in the window; `None` if there was no window.
    pub done: Option<Done<'a>>,
    /// The bytes that a window reads, and the time from one window to the next.
    pub rhythm: Rhythm,
    /// The facts that the history has about the database: its page ranges, its windows, and the verified
    /// cross-references.
    pub known: &'a Known,
    /// The time span in which, as promised, every page is read and all cross-references are verified; `None` if no span
    /// was promised.
    pub within: Option<Duration>,
    /// Whether every page was read within the promised time span.
    pub read: Kept,
    /// Whether all relations (links, keys and rows) were verified within the promised time span; `None` if
    /// cross-references are not compared.
    pub closed: Option<Kept>,
    /// The changes in the findings.
    pub changed: Changed,
    /// Whether only some tables or filegroups are checked. The report then says nothing about reading all pages.
    pub is_confined: bool,
    /// The current time, in seconds since 1970.
    pub now: i64,
}

/// Writes the report for people.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(view: &WindowView<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    lines(view).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The lines of the report for people.
pub fn lines(view: &WindowView<'_>) -> Vec<String> {
    let mut lines: Vec<String> = view.done.iter().map(|done| window(done, view)).collect();
    lines.extend((!view.is_confined).then(|| read(view)));
    lines.extend(view.closed.map(|kept| closed(view, kept)));
    let Changed { new, confirmed, gone } = view.changed;
    lines.push(format!("Findings: {new} new, {confirmed} confirmed, {gone} gone."));
    lines
}

/// The lines about promises that are broken or cannot be kept.
pub fn broken(view: &WindowView<'_>) -> Vec<String> {
    let read = (!view.read.is_kept()).then(|| read(view));
    let closed = view.closed.filter(|kept| !kept.is_kept()).map(|kept| closed(view, kept));
    // In the lines for people, several spaces follow the colon to align the text. This function replaces them by one
    // space.
    read.into_iter().chain(closed).map(|line| line.replacen(":   ", ": ", 1)).collect()
}

fn window(done: &Done<'_>, view: &WindowView<'_>) -> String {
    let (used, allowed) = (short(done.used), short(done.allowed));
    let ended = if done.is_interrupted { ", ended early" } else { "" };
    let ranges = counted(done.ranges, "range", "ranges");
    let image = minute(done.taken_at);
    if done.by_table.is_some() {
        let rest = match done.left_bytes() {
            0 => "closed".to_owned(),
            left => format!("{} of {} known, {} left", size(done.done_bytes), size(done.all_bytes), size(left)),
        };
        return format!(
            "Window: {used} of {allowed}{ended}, {} in {ranges} (state of {image}, {rest}).",
            size(done.bytes)
        );
    }
    let rest = match (done.left_bytes(), done.is_fixed) {
        // An image counts as closed when all its pages were read and all its cross-references were compared. If
        // cross-references are not compared, the image is only fully read.
        (0, _) if view.closed.is_none() => "fully read".to_owned(),
        (0, _) => "closed".to_owned(),
        (left, true) => {
            let windows = view.rhythm.windows(left);
            let closes = windows
                .map(|windows| format!("; complete after {}", counted(windows.max(1), "more window", "more windows")));
            format!("{} of {} done{}", size(done.done_bytes), size(done.all_bytes), closes.unwrap_or_default())
        }
        (_, false) => format!(
            "{} of {} done; the files may change, so the next window begins a new image",
            size(done.done_bytes),
            size(done.all_bytes)
        ),
    };
    format!("Window: {used} of {allowed}{ended}, {} in {ranges} (image of {image}, {rest}).", size(done.bytes))
}

fn read(view: &WindowView<'_>) -> String {
    let promised = view.within.map(|within| format!(" (promised {})", span_text(within.as_secs())));
    let promised = promised.unwrap_or_default();
    let said = match (view.never_read_bytes(), oldest(view)) {
        (0, Some((_, at))) => format!("every page in use was read within {}{promised}", aged(age(view.now, at))),
        (0, None) => format!("no page is in use{promised}"),
        (never, _) => format!("{} were never read{promised}", size(never)),
    };
    let oldest = oldest(view).map(|(range, at)| {
        let place = view.known.places.get(range.id as usize).map(|(file, first, pages)| {
            format!("{file}:{first} to {file}:{}", u64::from(*first) + u64::from(*pages).saturating_sub(1))
        });
        format!(" Oldest: {}, {}.", place.unwrap_or_default(), date(at))
    });
    format!("Read:   {said}.{}{}", oldest.unwrap_or_default(), verdict(view, view.read, "read"))
}

fn closed(view: &WindowView<'_>, kept: Kept) -> String {
    let Relations { units, units_sound, pairs, pairs_sound } = view.known.relations;
    let by_table = view.done.as_ref().and_then(|done| done.by_table);
    let said = match view.known.closed {
        _ if let Some(ByTable { tables, closed }) = by_table => {
            let never = view.known.tables.iter().filter(|table| table.proven_at.is_none()).count() as u64;
            let oldest = match view.known.tables.first() {
                _ if never == 1 => "; 1 table was never proven".to_owned(),
                _ if never > 0 => format!("; {} tables were never proven", grouped(never)),
                Some(table) => {
                    let at = table.proven_at.as_deref().unwrap_or_default();
                    format!("; the oldest proof is that of {}, {}", table.table, at.get(..10).unwrap_or(at))
                }
                None => String::new(),
            };
            format!("{} of {} of this state{oldest}", grouped(closed), counted(tables, "table", "tables"))
        }
        Some(at) => format!(
            "image of {}; {units_sound} of {units} tables and indexes are sound, {pairs_sound} of {pairs} indexes agree with their tables",
            date(at)
        ),
        None => "no complete image yet".to_owned(),
    };
    format!("Closed: {said}.{}", verdict(view, kept, "proof"))
}

/// A sentence that says that a promise is broken or cannot be kept; empty if the promise is kept. `what` is the word
/// for the promised action: `read`, or `proof` for the verification of cross-references.
fn verdict(view: &WindowView<'_>, kept: Kept, what: &str) -> String {
    let Some(within) = view.within else { return String::new() };
    let promised = span_text(within.as_secs());
    let cycle = |windows: u64| span_text(windows.saturating_mul(view.rhythm.every.as_secs()));
    match kept {
        Kept::Yes => String::new(),
        Kept::Broken(at) => {
            let age = aged(age(view.now, at));
            format!(" PROMISE BROKEN: the oldest {what} is {age} old, promised {promised}.")
        }
        Kept::Never(windows) => {
            format!(
                " PROMISE CANNOT BE KEPT: a cycle takes {} ({}), promised {promised}.",
                counted(windows, "window", "windows"),
                cycle(windows)
            )
        }
        Kept::Moves(windows) => format!(
            " PROMISE CANNOT BE KEPT: the files may change between windows, and reading all of them takes {}; check a backup.",
            counted(windows, "window", "windows")
        ),
    }
}

/// The least recently read range in use, and the time of that read in seconds since 1970. `None` if no range in use was
/// read.
fn oldest<'v>(view: &'v WindowView<'_>) -> Option<(&'v Range, i64)> {
    view.in_use().filter_map(|range| Some((range, range.read_at?))).min_by_key(|(range, at)| (*at, range.id))
}

fn age(now: i64, at: i64) -> u64 {
    now.saturating_sub(at).max(0).unsigned_abs()
}

/// Writes the report as a line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(view: &WindowView<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let name = |kept| match kept {
        Kept::Yes => "kept",
        Kept::Broken(_) => "broken",
        Kept::Never(_) | Kept::Moves(_) => "cannot-be-kept",
    };
    let promise = |kept: Option<Kept>, oldest_at: Option<i64>| json::windows::WindowPromise {
        state: view.within.and(kept).map(name),
        oldest_at: oldest_at.map(time::text_of_seconds),
    };
    let Relations { units, units_sound, pairs, pairs_sound } = view.known.relations;
    let all: u64 = view.known.ranges.iter().map(|range| range.bytes).sum();
    let done = view.done.as_ref().map(|done| json::windows::WindowDone {
        used_seconds: done.used.as_secs_f64(),
        allowed_seconds: done.allowed.as_secs_f64(),
        ranges: done.ranges,
        bytes: done.bytes,
        image_taken_at: done.taken_at.to_owned(),
        image_bytes: done.all_bytes,
        image_bytes_done: done.done_bytes,
        is_fixed: done.is_fixed,
        is_closed: done.left_bytes() == 0,
        is_interrupted: done.is_interrupted,
        windows_left: view.rhythm.windows(done.left_bytes()).filter(|_| done.is_fixed),
        tables: done.by_table.map(|by_table| by_table.tables),
        tables_closed: done.by_table.map(|by_table| by_table.closed),
    });
    let window = json::windows::Window {
        v: VERSION,
        database: view.database,
        done,
        within_seconds: view.within.map(|span| span.as_secs()),
        cycle_windows: view.rhythm.windows(all),
        read: promise(Some(view.read), oldest(view).map(|(_, at)| at)),
        never_read_bytes: view.never_read_bytes(),
        closed: promise(view.closed, view.known.closed),
        units,
        units_sound,
        pairs,
        pairs_sound,
        findings_new: view.changed.new,
        findings_confirmed: view.changed.confirmed,
        findings_gone: view.changed.gone,
    };
    line(&json::lines::Line::Window(window), out)
}

/// A line with the number of windows that are needed to read everything once (a cycle).
pub fn cycle(bytes: u64, rate: Option<f64>, window: Duration) -> String {
    let every = short(window);
    match rate {
        Some(rate) => {
            let rhythm = Rhythm { bytes: Some(rate * window.as_secs_f64()), every: Duration::ZERO };
            let windows = rhythm.windows(bytes).map_or_else(
                || "more windows than can be counted".to_owned(),
                |windows| counted(windows.max(1), "window", "windows"),
            );
            format!("A cycle takes {windows} of {every}: {} at {} per second.", size(bytes), size(rate as u64))
        }
        None => format!(
            "The number of windows of {every} in a cycle is unknown: the history has no window of this database yet, \
             so the speed of reading its {} is unknown.",
            size(bytes)
        ),
    }
}

/// A duration as text: `2 h 58 min`, `12 min`, `40 s`, `3 ms`.
fn short(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds) {
        (0, 0, 0) => format!("{} ms", span.as_millis()),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, _) => format!("{minutes} min"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn date(seconds: i64) -> String {
    time::text_of_seconds(seconds).chars().take(10).collect()
}

/// Formats an age, rounded up. The real age is therefore never greater than the printed age, and a user can safely
/// promise the printed age.
fn aged(seconds: u64) -> String {
    let (unit, one, many) = match seconds {
        0..=7200 => (60, "minute", "minutes"),
        7201..=172_800 => (3600, "hour", "hours"),
        _ => (86_400, "day", "days"),
    };
    counted(seconds.div_ceil(unit).max(1), one, many)
}

#[cfg(test)]
mod tests {
    use history::coverage::TableProof;

    use super::*;

    const DAY: i64 = 86_400;
    const GB: u64 = 1 << 30;

    fn known(dates: &[Option<i64>]) -> Known {
        let range = |(id, read_at): (u32, &Option<i64>)| Range {
            id,
            bytes: GB,
            is_in_use: true,
            read_at: *read_at,
            known_since: 0,
            is_doubted: false,
        };
        Known {
            ranges: (0..).zip(dates).map(range).collect(),
            places: (0..).zip(dates).map(|(id, _)| (1, id * 131_072, 131_072)).collect(),
            windows: Vec::new(),
            every: Duration::from_secs(86_400),
            known_since: 0,
            closed: Some(10 * DAY),
            relations: Relations { units: 412, units_sound: 412, pairs: 1180, pairs_sound: 1179 },
            tables: Vec::new(),
        }
    }

    fn view(known: &Known) -> WindowView<'_> {
        let done = Done {
            used: Duration::from_secs(10_700),
            allowed: Duration::from_secs(10_800),
            ranges: 1540,
            bytes: 1540 * GB,
            taken_at: "2026-11-21T22:00:05Z",
            done_bytes: 7903 * GB,
            all_bytes: 8400 * GB,
            is_fixed: true,
            is_interrupted: false,
            by_table: None,
        };
        WindowView {
            database: "Sales",
            done: Some(done),
            rhythm: Rhythm { bytes: Some((1540 * GB) as f64), every: Duration::from_secs(86_400) },
            known,
            within: Some(Duration::from_secs(14 * 86_400)),
            read: Kept::Yes,
            closed: Some(Kept::Yes),
            changed: Changed { new: 1, confirmed: 2, gone: 1 },
            is_confined: false,
            now: 20 * DAY,
        }
    }

    #[test]
    fn a_window_is_four_lines() {
        let known = known(&[Some(19 * DAY), Some(11 * DAY)]);
        assert_eq!(
            lines(&view(&known)),
            [
                "Window: 2 h 58 min of 3 h, 1540 GB in 1,540 ranges (image of 2026-11-21 22:00, 7903 GB of 8400 GB \
                 done; complete after 1 more window).",
                "Read:   every page in use was read within 9 days (promised 14 days). Oldest: 1:131072 to 1:262143, 1970-01-12.",
                "Closed: image of 1970-01-11; 412 of 412 tables and indexes are sound, 1179 of 1180 indexes agree with their tables.",
                "Findings: 1 new, 2 confirmed, 1 gone.",
            ]
        );
    }

    #[test]
    fn tables_of_a_database_that_changes_are_closed_one_by_one() {
        let proof = |table: &str, proven_at: Option<&str>| TableProof {
            database: String::new(),
            table: table.to_owned(),
            object_id: 1,
            proven_at: proven_at.map(str::to_owned),
            read_at: None,
            is_sound: true,
        };
        let known = known(&[Some(19 * DAY)]);
        let view = view(&known);
        let done = view.done.map(|done| Done { by_table: Some(ByTable { tables: 412, closed: 380 }), ..done });
        let of = |tables: Vec<TableProof>| {
            let known = Known { tables, ..known.clone() };
            lines(&WindowView { done, known: &known, ..view })
        };
        let lines =
            of(vec![proof("dbo.Orders", Some("2026-11-14T22:00:00Z")), proof("dbo.T", Some("2026-11-20T22:00:00Z"))]);
        assert_eq!(
            lines[0],
            "Window: 2 h 58 min of 3 h, 1540 GB in 1,540 ranges (state of 2026-11-21 22:00, 7903 GB of 8400 GB known, 497 GB left)."
        );
        assert_eq!(
            lines[2],
            "Closed: 380 of 412 tables of this state; the oldest proof is that of dbo.Orders, 2026-11-14."
        );
        let lines = of(vec![proof("dbo.New", None), proof("dbo.T", Some("2026-11-20T22:00:00Z"))]);
        assert_eq!(lines[2], "Closed: 380 of 412 tables of this state; 1 table was never proven.");
    }

    #[test]
    fn what_is_not_kept_is_said_with_what_was_promised() {
        let known = known(&[Some(19 * DAY), None]);
        let broken = WindowView { read: Kept::Broken(0), closed: Some(Kept::Never(19)), ..view(&known) };
        let lines = lines(&broken);
        assert!(lines[1].starts_with("Read:   1024 MB were never read (promised"), "{}", lines[1]);
        assert!(lines[1].contains("PROMISE BROKEN: the oldest read is 20 days old, promised"), "{}", lines[1]);
        assert!(
            lines[2].ends_with("PROMISE CANNOT BE KEPT: a cycle takes 19 windows (19 days), promised 14 days."),
            "{}",
            lines[2]
        );
        let unasked = WindowView { within: None, ..broken };
        assert!(!super::lines(&unasked).concat().contains("PROMISE"));
        let moves = WindowView { closed: Some(Kept::Moves(3)), ..view(&known) };
        assert!(super::lines(&moves)[2].contains("takes 3 windows; check a backup"));
        let physical = WindowView { closed: None, ..view(&known) };
        assert!(super::lines(&physical).iter().all(|line| !line.starts_with("Closed:")));
        let done = view(&known).done.map(|done| Done { done_bytes: done.all_bytes, ..done });
        let read = WindowView { done, closed: None, ..view(&known) };
        assert!(super::lines(&read)[0].ends_with("fully read)."), "{}", super::lines(&read)[0]);
    }

    #[test]
    fn a_cycle_is_counted_in_windows() {
        let tera = 2_000_000_000_000;
        assert_eq!(
            cycle(tera, Some(250e6), Duration::from_secs(9000)),
            "A cycle takes 1 window of 2 h 30 min: 1863 GB at 239 MB per second."
        );
        assert!(cycle(25 * tera, Some(1e9), Duration::from_secs(14_400)).starts_with("A cycle takes 4 windows of 4 h"));
        assert!(
            cycle(tera, None, Duration::from_secs(60))
                .starts_with("The number of windows of 1 min in a cycle is unknown")
        );
    }
}
