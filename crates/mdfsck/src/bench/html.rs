//! One self-contained HTML page. It shows the facts about the database and the machine, the elapsed time of each cell,
//! and charts of one run of each cell over time.

use std::fmt::Write;

use report::html::{escape, head, table, with_contents};

use super::measure::Measured;
use super::raw::RawRead;
use super::results::Results;
use super::{charts, figures};
use crate::matrix::Cache;

/// The smallest number of samples that a run must have for charts over time.
const MIN_SAMPLES: usize = 6;

/// Writes the HTML page. `compared` is the name and the results of the baseline.
pub(crate) fn page(title: &str, results: &Results, compared: Option<(&str, &Results)>) -> String {
    let mut html = cards(results);
    html.push_str("<h2>What was measured</h2><dl>");
    for (name, value) in results.facts() {
        let _ = write!(html, "<dt>{name}<dd>{}", escape(&value));
    }
    html.push_str("</dl><h2>Elapsed time</h2>");
    let _ = write!(html, "<p>{}</p>", escape(&legend(compared)));
    html.push_str(&bars(results, compared.map(|(_, baseline)| baseline)));
    html.push_str(&reasons(results));
    let mut heading = "<h2>Over time</h2><p>The typical run of each cell.</p>";
    for cell in &results.cells {
        if let Some(run) = cell.typical().filter(|run| run.series.len() >= MIN_SAMPLES) {
            let name = escape(&cell.cell.name());
            let _ = write!(html, "{heading}<h3>{name}</h3><div class=row>{}</div>", charts::over_time(run));
            heading = "";
        }
    }
    html.push_str("<h2>All figures</h2>");
    html.push_str(&table(figures::heads(), figures::rows(results, compared.map(|(_, baseline)| baseline))));
    head(title) + &with_contents(&html) + "\n"
}

fn legend(compared: Option<(&str, &Results)>) -> String {
    let mut text =
        "By configuration and degree of parallelism (dop). Bars: median; thin lines: fastest to slowest run; dashed lines: reading the files with the same number of threads, without a check."
            .to_owned();
    match compared {
        Some((name, baseline)) => {
            let date = baseline.date.as_ref().map_or_else(String::new, |date| format!(" of {date}"));
            let _ = write!(text, " Gray bars below: the baseline {name}{date}; the change compares the medians.");
        }
        None => text.push_str(" 1.8x means 1.8 times as fast as with the fewest threads."),
    }
    text
}

/// Summary cards: the fastest full check, the fastest physical-only check, the fastest reading without a check, and the
/// peak memory use.
fn cards(results: &Results) -> String {
    let mut html = String::from("<div class=cards>");
    let mut card = |value: &str, what: &str, detail: &str| {
        let _ = write!(html, "<div class=card><span>{what}</span><b>{value}</b><span>{}</span></div>", escape(detail));
    };
    for (is_physical, what) in [(false, "Fastest full check"), (true, "Fastest physical check")] {
        let seconds = |cell: &Measured| cell.median(|run| run.seconds);
        let is_of_depth =
            |cell: &&Measured| cell.cell.configuration.is_physical() == is_physical && !cell.runs.is_empty();
        let of_depth = || results.cells.iter().filter(is_of_depth);
        let Some(best) = of_depth().min_by(|a, b| seconds(a).total_cmp(&seconds(b))) else { continue };
        if best.is_too_small() {
            card("too small to measure", what, "try --size 2GB");
            continue;
        }
        // A check in several batches reads the database several times. The smallest number of bytes that any
        // configuration reads is therefore taken as the size of the database.
        let bytes = of_depth().map(|cell| cell.median(|run| run.bytes)).fold(f64::MAX, f64::min);
        let rate = format!("{:.2} GB/s", bytes / seconds(best) / 1e9);
        card(&rate, what, &format!("{:.2} s: {}", seconds(best), best.cell.name()));
    }
    for (cache, what) in [(Cache::Warm, "Reading alone, cached"), (Cache::Cold, "Reading alone, not cached")] {
        let of_cache = results.raw.iter().filter(|raw| raw.cache == cache && !raw.seconds.is_empty());
        if let Some(best) = of_cache.max_by(|a, b| a.rate().total_cmp(&b.rate())) {
            card(&format!("{:.2} GB/s", best.rate() / 1e9), what, &format!("dop {}", best.threads));
        }
    }
    let peak = results.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.memory_peak).fold(0.0, f64::max);
    card(&format!("{:.0} MB", peak / f64::from(1 << 20)), "Memory", "largest peak of any run");
    html + "</div>"
}

/// A chart for each memory grant and cache state, in the order of the table. All charts share one axis.
fn bars(results: &Results, baseline: Option<&Results>) -> String {
    let then = |cell: &Measured| {
        baseline.and_then(|baseline| baseline.like(&cell.cell)).map_or(0.0, |then| then.median(|run| run.seconds))
    };
    let slowest = results.cells.iter().map(|cell| cell.spread().1.max(then(cell)));
    let most = slowest.chain(results.raw.iter().map(RawRead::median)).fold(1e-3, f64::max);
    let group = |cell: &&Measured| (cell.cell.memory, cell.cell.cache);
    let mut groups = Vec::new();
    for cell in &results.cells {
        if !groups.contains(&group(&cell)) {
            groups.push(group(&cell));
        }
    }
    let mut html = String::from("<div class=grid>");
    for of_group in groups {
        let cells: Vec<&Measured> = results.cells.iter().filter(|cell| group(cell) == of_group).collect();
        let Some(first) = cells.first() else { continue };
        let caption = format!("{} cache, memory {}", first.cell.cache.name(), first.cell.memory_text());
        html.push_str(&charts::bars(&caption, &cells, results, baseline, most));
    }
    html + "</div>"
}

/// The reasons why cells could not run.
fn reasons(results: &Results) -> String {
    let of_cell = |cell: &Measured| Some(format!("{}: {}", cell.cell.name(), cell.error.as_ref()?));
    let reasons: Vec<String> = results.cells.iter().filter_map(of_cell).map(|reason| escape(&reason)).collect();
    match reasons.as_slice() {
        [] => String::new(),
        reasons => format!("<h2>Could not run</h2><p>{}</p>", reasons.join("<br>")),
    }
}
