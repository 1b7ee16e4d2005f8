//! Checkpoints as a page with charts: durations over time, checkpoints per hour, before and after a change.

use std::fmt::Write;

use events::checkpoints::{Checkpoint, Totals, by_hour, ms};
use events::{Clock, Moment};

use super::tables::{Table, heading, totals};
use super::{CheckpointReport, Group, duration_ms};
use crate::html::{axis, escape, figure, head, short};

/// Databases that have charts, those with the longest checkpoints first; the table has all.
const MAX_CHARTS: usize = 40;
/// Days of a heat map, the last ones.
const MAX_DAYS: i64 = 92;
/// Rows of the table of slow checkpoints.
const MAX_SLOW: usize = 200;
/// Size of the chart of durations, in pixels; a column is a pixel.
const WIDTH: usize = 960;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 64.0;
/// Pixels of a cell of the heat map.
const CELL: i64 = 22;

const HOUR: i64 = 3_600_000 * Moment::MILLISECOND;
const DAY: i64 = 24 * HOUR;

impl CheckpointReport {
    /// The page.
    pub fn html(&self) -> String {
        let mut html = head("Checkpoints");
        for (heading, groups) in self.sources() {
            section(&heading, totals(groups), &mut html);
        }
        section("Before and after a change", self.change_table(), &mut html);
        for clock in [Clock::Utc, Clock::Local] {
            let (title, table, _) = self.slow_table(clock, MAX_SLOW);
            section(&title, table, &mut html);
        }
        section("Settings by the boot pages", self.target_table(), &mut html);
        let mut charts: Vec<&Group> = self.groups.iter().collect();
        charts.sort_by_key(|group| std::cmp::Reverse(Totals::of(&group.checkpoints).map(|totals| totals.total_ticks)));
        for group in charts.iter().take(MAX_CHARTS) {
            let title = escape(&group.title());
            let _ = write!(
                html,
                "<h2>{title}</h2><p>{}</p>{}{}",
                escape(&heading(group)),
                durations(group),
                heat_map(group)
            );
        }
        if charts.len() > MAX_CHARTS {
            let _ =
                write!(html, "<p>Charts are of the {MAX_CHARTS} databases with the longest checkpoints together.</p>");
        }
        html.push('\n');
        html
    }
}

/// A table under its heading, if it has rows.
fn section(title: &str, table: Table, html: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let table = crate::html::table(table.heads.iter().copied(), table.rows);
    let _ = write!(html, "<h2>{}</h2>{table}", escape(title));
}

/// Durations over time: for each column of pixels a line from the shortest to the longest checkpoint that began there.
fn durations(group: &Group) -> String {
    let (Some(first), Some(last)) = (group.checkpoints.first(), group.checkpoints.last()) else { return String::new() };
    let span = (i128::from(last.began.0) - i128::from(first.began.0)).max(1);
    let column = |at: Moment| {
        let passed = (i128::from(at.0) - i128::from(first.began.0)).clamp(0, span);
        usize::try_from(passed * (WIDTH as i128 - 1) / span).unwrap_or_default()
    };
    let mut columns: Vec<Option<(&Checkpoint, &Checkpoint)>> = vec![None; WIDTH];
    for checkpoint in &group.checkpoints {
        if let Some(place) = columns.get_mut(column(checkpoint.began)) {
            let (least, most) = place.unwrap_or((checkpoint, checkpoint));
            let least = if checkpoint.ticks() < least.ticks() { checkpoint } else { least };
            let most = if checkpoint.ticks() > most.ticks() { checkpoint } else { most };
            *place = Some((least, most));
        }
    }
    let longest = group.checkpoints.iter().map(duration_ms).fold(1e-3, f64::max);
    let (step, top) = axis(longest, 4.0);
    let y = |ms: f64| 10.0 + HEIGHT * (1.0 - ms.max(0.0) / top);
    let mut svg = String::new();
    for part in 0..=(top / step).round() as u32 {
        let value = step * f64::from(part);
        let (line, text) = (y(value), y(value) + 4.0);
        let _ = write!(
            svg,
            "<path d='M{LEFT} {line:.1}h{WIDTH}' class=axis /><text x=0 y={text:.1}>{} ms</text>",
            short(value)
        );
    }
    for (x, found) in columns.iter().enumerate() {
        let Some((least, most)) = found else { continue };
        let (x, from, to) = (LEFT + x as f64, y(duration_ms(most)), y(duration_ms(least)));
        let _ = write!(
            svg,
            "<path d='M{x:.1} {:.1}V{:.1}' class=blue stroke-width=3 stroke-linecap=round><title>{}: {:.1} ms</title></path>",
            from,
            to.max(from + 0.1),
            most.began.rounded(),
            ms(most.ticks().into())
        );
    }
    if group.clock == Clock::Utc {
        for change in group.changes.iter().filter(|change| (first.began..=last.began).contains(change)) {
            let x = LEFT + column(*change) as f64;
            let _ = write!(
                svg,
                "<path d='M{x:.1} 10v{HEIGHT}' class=change><title>change: {}</title></path>",
                change.rounded()
            );
        }
    }
    let _ = write!(
        svg,
        "<text x={LEFT} y={low}>{}</text><text x={right} y={low} class=end>{}</text>",
        first.began.rounded(),
        last.began.rounded(),
        low = HEIGHT + 34.0,
        right = LEFT + WIDTH as f64,
    );
    figure("Duration of checkpoints by when they began", true, LEFT + WIDTH as f64 + 16.0, HEIGHT + 40.0, &svg)
}

/// Checkpoints per hour: a row for each day, a column for each hour, darker where there were more.
fn heat_map(group: &Group) -> String {
    let hours = by_hour(&group.checkpoints);
    let (Some((first, _)), Some((last, _))) = (hours.first_key_value(), hours.last_key_value()) else {
        return String::new();
    };
    let day = |hour: &Moment| hour.0.div_euclid(DAY);
    let from = day(first).max(day(last).saturating_sub(MAX_DAYS - 1));
    let most = hours.values().map(|totals| totals.count).max().unwrap_or(1).max(1);
    let (left, head) = (84, 18);
    let height = head + (day(last) - from + 1) * CELL;
    let mut svg = String::new();
    for hour in (0..24).step_by(3) {
        let _ = write!(svg, "<text x={} y=12>{hour:02}:00</text>", left + hour * CELL);
    }
    let mut labelled = None;
    for (hour, totals) in hours.iter().filter(|(hour, _)| day(hour) >= from) {
        let y = head + (day(hour) - from) * CELL;
        let text = hour.to_string();
        if labelled.replace(day(hour)) != Some(day(hour)) {
            let _ = write!(svg, "<text x=0 y={}>{}</text>", y + 15, text.get(..10).unwrap_or_default());
        }
        let _ = write!(
            svg,
            "<rect x={x} y={y} width={size} height={size} rx=3 class=blue stroke=none fill-opacity={shade:.2}><title>{}: {} checkpoints, \
             {:.1} ms on average, {:.1} ms at most</title></rect>",
            text.get(..16).unwrap_or_default(),
            totals.count,
            totals.avg_ms(),
            totals.max_ms(),
            x = left + hour.0.rem_euclid(DAY) / HOUR * CELL,
            size = CELL - 2,
            shade = 0.12 + 0.88 * totals.count as f64 / most as f64,
        );
    }
    let omitted = if from > day(first) { format!("; the last {MAX_DAYS} days") } else { String::new() };
    let caption = format!("Checkpoints per hour, {most} at most{omitted}");
    figure(&caption, false, (left + 24 * CELL) as f64, height as f64, &svg)
}

#[cfg(test)]
mod tests {
    use super::super::{DatabaseTarget, Source};
    use super::*;

    fn report(name: &str, spans: &[(i64, i64)]) -> CheckpointReport {
        let moment = |ms: i64| Moment(131_125_068_000_000_000 + ms * Moment::MILLISECOND);
        let checkpoints = spans
            .iter()
            .map(|(began, ended)| Checkpoint {
                database_id: Some(5),
                began: moment(*began),
                ended: moment(*ended),
                activity: None,
            })
            .collect();
        let group = Group {
            source: Source::Events,
            clock: Clock::Utc,
            database_id: Some(5),
            database: Some(name.to_owned()),
            checkpoints,
            changes: vec![moment(5000)],
        };
        let database = DatabaseTarget { database_id: 5, name: name.to_owned(), target_recovery_seconds: Some(60) };
        CheckpointReport { groups: vec![group], databases: vec![database], ..CheckpointReport::default() }
    }

    #[test]
    fn names_cannot_leave_their_place() {
        let html = report("</h2><script>alert('\"')</script>", &[(0, 10), (9000, 9200)]).html();
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;alert(&#39;&quot;&#39;)"));
        assert!(!html.contains("http"), "nothing comes from the network");
    }

    #[test]
    fn charts_have_what_they_show() {
        let html = report("Sales", &[(0, 10), (9000, 9200), (7_200_000, 7_200_050)]).html();
        // Three columns of the chart, two hours of the heat map, a line for the change.
        assert_eq!(html.matches("class=blue stroke-width=3").count(), 3);
        assert_eq!(html.matches("fill-opacity").count(), 2);
        assert_eq!(html.matches("<title>change: 2016-07-09 03:00:05.000").count(), 1);
        for text in [
            "<td>Sales",
            "<td>260.0",
            "2016-07-09 03:00:09.000: 200.0 ms",
            "2 checkpoints, 105.0 ms on average, 200.0 ms at most",
            "60 s",
        ] {
            assert!(html.contains(text), "{text}");
        }
    }

    #[test]
    fn the_page_does_not_grow_with_the_number_of_checkpoints() {
        let many: Vec<(i64, i64)> = (0..200_000).map(|at| (at * 60_000, at * 60_000 + at % 977)).collect();
        assert!(report("Sales", &many).html().len() < 800_000);
    }

    #[test]
    fn times_at_the_ends_of_what_can_be_told_do_no_harm() {
        let mut report = report("Sales", &[(0, 1), (2, 3)]);
        let group = &mut report.groups[0];
        (group.checkpoints[0].began, group.checkpoints[1].ended) = (Moment(i64::MIN), Moment(i64::MAX));
        assert!(report.html().contains("</svg>"));
        let mut out = Vec::new();
        report.write_text(&mut out).unwrap();
        report.write_json(&mut out).unwrap();
    }
}
