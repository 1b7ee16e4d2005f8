//! A page with charts of checkpoints: durations over time, checkpoints per hour, and the totals before and after each
//! change.

use std::fmt::Write;

use events::checkpoints::{Checkpoint, Totals, by_hour, ms};
use events::{Clock, Moment};

use super::tables::{Table, heading, totals};
use super::{CheckpointReport, Group, duration_ms};
use crate::html::{axis, escape, head, short, with_contents};

/// Maximum number of databases with charts. Databases with the longest checkpoints come first; the table has all
/// databases.
const MAX_CHARTS: usize = 40;
/// Maximum number of days in a heat map. If there are more days, the heat map shows only the most recent days.
const MAX_DAYS: i64 = 92;
/// Maximum number of rows of the table of slow checkpoints.
const MAX_SLOW: usize = 200;
/// Width of the chart of durations, in columns of pixels.
const WIDTH: usize = 960;
const HEIGHT: f64 = 150.0;
/// Number of hours for which the heat map has one label.
const HOURS_OF_LABEL: i64 = 3;

const HOUR: i64 = 3_600_000 * Moment::MILLISECOND;
const DAY: i64 = 24 * HOUR;

impl CheckpointReport {
    /// The whole HTML page.
    pub fn html(&self) -> String {
        let mut html = String::new();
        for (heading, groups) in self.sources() {
            section(&heading, totals(groups), &mut html);
        }
        section("Before and after a change", self.change_table(), &mut html);
        for clock in [Clock::Utc, Clock::Local] {
            let (title, table, _) = self.slow_table(clock, MAX_SLOW);
            section(&title, table, &mut html);
        }
        section("Settings in the boot pages", self.target_table(), &mut html);
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
            let _ = write!(
                html,
                "<p>Only the {MAX_CHARTS} databases whose checkpoints took longest in total have charts.</p>"
            );
        }
        head("Checkpoints") + &with_contents(&html) + "\n"
    }
}

/// Appends a table under its heading, if the table has rows.
fn section(title: &str, table: Table, html: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let table = crate::html::table(table.heads.iter().copied(), table.rows);
    let _ = write!(html, "<h2>{}</h2>{table}", escape(title));
}

/// The chart of durations over time. Each column of pixels represents a period. It has a vertical line from the
/// shortest to the longest checkpoint that began in this period.
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
    let y = |ms: f64| HEIGHT * (1.0 - ms.max(0.0) / top);
    let (mut svg, mut labels) = (String::new(), String::new());
    for part in (0..=(top / step).round() as u32).rev() {
        let value = step * f64::from(part);
        let _ = write!(svg, "<path d='M-5 {:.1}H{}' class=axis />", y(value), WIDTH + 5);
        let _ = write!(labels, "<span>{} ms</span>", short(value));
    }
    for (x, found) in columns.iter().enumerate() {
        let Some((least, most)) = found else { continue };
        let (from, to) = (y(duration_ms(most)), y(duration_ms(least)));
        let _ = write!(
            svg,
            "<path d='M{x} {:.1}V{:.1}' class=blue stroke-width=3 stroke-linecap=round><title>{}: {:.1} ms</title></path>",
            from,
            to.max(from + 0.1),
            most.began.rounded(),
            ms(most.ticks().into())
        );
    }
    if group.clock == Clock::Utc {
        for change in group.changes.iter().filter(|change| (first.began..=last.began).contains(change)) {
            let x = column(*change);
            let _ = write!(
                svg,
                "<path d='M{x} 0v{HEIGHT}' class=change><title>change: {}</title></path>",
                change.rounded()
            );
        }
    }
    // Text is placed beside the drawing, so that it does not shrink on a phone.
    let caption = "Duration of checkpoints by start time";
    format!(
        "<figure class=plot><figcaption>{caption}</figcaption><div class=y>{labels}</div>\
         <svg viewBox='-5 -5 {} {}' preserveAspectRatio=none role=img aria-label='{caption}'>{svg}</svg>\
         <div class=x><span>{}</span><span>{}</span></div></figure>",
        WIDTH + 10,
        HEIGHT + 10.0,
        first.began.rounded(),
        last.began.rounded()
    )
}

/// The heat map of checkpoints per hour. Each day with checkpoints has a row. The columns are hours of the day. They
/// include every hour with checkpoints on any day, and begin and end at a multiple of [`HOURS_OF_LABEL`]. The more
/// checkpoints, the darker the cell.
fn heat_map(group: &Group) -> String {
    let hours = by_hour(&group.checkpoints);
    let (Some((first, _)), Some((last, _))) = (hours.first_key_value(), hours.last_key_value()) else {
        return String::new();
    };
    let day = |hour: &Moment| hour.0.div_euclid(DAY);
    let of_day = |hour: &Moment| hour.0.rem_euclid(DAY) / HOUR;
    let from = day(first).max(day(last).saturating_sub(MAX_DAYS - 1));
    let shown = || hours.iter().filter(|(hour, _)| day(hour) >= from);
    let most = shown().map(|(_, totals)| totals.count).max().unwrap_or(1).max(1);
    let begin = shown().map(|(hour, _)| of_day(hour)).min().unwrap_or(0) / HOURS_OF_LABEL * HOURS_OF_LABEL;
    let end =
        shown().map(|(hour, _)| of_day(hour) / HOURS_OF_LABEL * HOURS_OF_LABEL + HOURS_OF_LABEL).max().unwrap_or(24);
    let mut cells = String::from("<span></span>");
    for hour in (begin..end).step_by(HOURS_OF_LABEL as usize) {
        let _ = write!(cells, "<span style='grid-column:span {HOURS_OF_LABEL}'>{hour:02}:00</span>");
    }
    // Day and hour of the next cell to write.
    let mut at: Option<(i64, i64)> = None;
    for (hour, totals) in shown() {
        let text = hour.to_string();
        if at.is_none_or(|(of, _)| of != day(hour)) {
            if let Some((of, next)) = at {
                cells.push_str(&"<i></i>".repeat((end - next).max(0) as usize));
                if let without @ 1.. = day(hour) - of - 1 {
                    let days = if without == 1 { "day" } else { "days" };
                    let _ = write!(cells, "<span class=gap>{without} {days} without a checkpoint</span>");
                }
            }
            let _ = write!(cells, "<span class=day>{}</span>", text.get(..10).unwrap_or_default());
            at = Some((day(hour), begin));
        }
        let next = at.map_or(begin, |(_, next)| next);
        cells.push_str(&"<i></i>".repeat((of_day(hour) - next).max(0) as usize));
        let _ = write!(
            cells,
            "<i style='--n:{shade:.0}%' title='{}: {} checkpoints, {:.1} ms on average, {:.1} ms at most'></i>",
            text.get(..16).unwrap_or_default(),
            totals.count,
            totals.avg_ms(),
            totals.max_ms(),
            shade = 12.0 + 88.0 * totals.count as f64 / most as f64,
        );
        at = Some((day(hour), of_day(hour) + 1));
    }
    if let Some((_, next)) = at {
        cells.push_str(&"<i></i>".repeat((end - next).max(0) as usize));
    }
    let omitted = if from > day(first) { format!("; the last {MAX_DAYS} days") } else { String::new() };
    format!(
        "<figure class=heat><figcaption>Checkpoints per hour, {most} at most{omitted}</figcaption>\
         <div style='grid-template-columns:max-content repeat({},minmax(0,1.8em))'>{cells}</div></figure>",
        end - begin
    )
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
        // The chart has three columns, and a line that marks the change. The heat map has two hours with checkpoints.
        assert_eq!(html.matches("class=blue stroke-width=3").count(), 3);
        assert_eq!(html.matches("<i style='--n:").count(), 2);
        // The heat map has only hours 3 to 5 of one day.
        assert_eq!((html.matches("<i></i>").count(), html.matches("<span class=day>").count()), (1, 1));
        assert_eq!(html.matches("<title>change: 2016-07-09 03:00:05.000").count(), 1);
        for text in [
            "<td>Sales",
            "<td data-head='total ms'>260.0",
            "2016-07-09 03:00:09.000: 200.0 ms",
            "2 checkpoints, 105.0 ms on average, 200.0 ms at most",
            "60 s",
        ] {
            assert!(html.contains(text), "{text}");
        }
    }

    #[test]
    fn a_heat_map_has_the_days_and_hours_that_have_checkpoints() {
        const HOUR_MS: i64 = 3_600_000;
        let html = report("Sales", &[0, 5, 49, 24 * 40].map(|hour| (hour * HOUR_MS, hour * HOUR_MS + 10))).html();
        assert_eq!((html.matches("<span class=day>").count(), html.matches("<i style='--n:").count()), (3, 4));
        // The heat map reaches from 3:00 to 9:00, on three days.
        assert_eq!((html.matches("<i></i>").count(), html.matches("repeat(6,").count()), (3 * 6 - 4, 1));
        assert!(
            html.contains(">1 day without a checkpoint<") && html.contains(">37 days without a checkpoint<"),
            "{html}"
        );
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
