//! One self-contained page: elapsed time by degree of parallelism and configuration, and each cell over time.

use std::collections::BTreeSet;
use std::fmt::Write;

use report::html::{STYLE, escape, short, tick};

use super::measure::{Measured, Run};

/// Colors that color-blind people can distinguish (Okabe and Ito's palette).
const COLOURS: [&str; 8] = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000"];

/// The page.
pub(crate) fn page(title: &str, cells: &[Measured]) -> String {
    let mut html = String::new();
    let title = escape(title);
    let _ =
        write!(html, "<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>");
    html.push_str(&cards(cells));
    html.push_str("<h2>Elapsed time</h2><p>By degree of parallelism (dop) and configuration. Bars: median; lines: fastest to slowest run.</p>");
    let groups: BTreeSet<(String, &str)> = cells.iter().map(group).collect();
    for (memory, cache) in &groups {
        let of_group: Vec<&Measured> = cells.iter().filter(|cell| group(cell) == (memory.clone(), *cache)).collect();
        let caption = format!("{cache} cache, memory {memory}");
        let _ = write!(html, "<figure>{}<figcaption>{}</figcaption></figure>", bars(&of_group), escape(&caption));
    }
    html.push_str("<h2>Over time</h2><p>The typical run of each cell.</p>");
    for cell in cells {
        if let Some(run) = cell.typical().filter(|run| run.series.len() > 2) {
            let _ = write!(html, "<h3>{}</h3><div class=row>{}</div>", escape(&cell.cell.name()), lines(run));
        }
    }
    html.push_str("<h2>All figures</h2>");
    html.push_str(&table(cells));
    html.push('\n');
    html
}

/// The best of each depth, at a glance.
fn cards(cells: &[Measured]) -> String {
    let mut html = String::from("<div class=cards>");
    for depth in ["full", "physical"] {
        let seconds = |cell: &Measured| cell.median(|run| run.seconds);
        let of_depth = || cells.iter().filter(|cell| cell.cell.configuration.name.starts_with(depth));
        let Some(best) = of_depth().min_by(|a, b| seconds(a).total_cmp(&seconds(b))) else { continue };
        // Several batches read the database several times.
        let bytes = of_depth().map(|cell| cell.median(|run| run.bytes)).fold(f64::MAX, f64::min);
        let seconds = seconds(best);
        let rate = bytes / seconds.max(1e-9) / 1e9;
        let _ = write!(
            html,
            "<div class=card><b>{rate:.2} GB/s</b><span>{}<br>in {seconds:.2} s</span></div>",
            escape(&best.cell.name())
        );
    }
    let peak = cells.iter().flat_map(|cell| &cell.runs).map(|run| run.memory_peak).fold(0.0, f64::max);
    let _ = write!(
        html,
        "<div class=card><b>{:.0} MB</b><span>of memory at most<br>in any run</span></div></div>",
        peak / f64::from(1 << 20)
    );
    html
}

fn group(cell: &Measured) -> (String, &'static str) {
    let memory = cell.cell.memory.map_or_else(|| "default".to_owned(), crate::size::text);
    (memory, cell.cell.cache.name())
}

/// Pixels from bar to bar.
const STEP: f64 = 44.0;

/// Grouped bars: a group for each degree of parallelism, a bar for each configuration.
fn bars(cells: &[&Measured]) -> String {
    let mut dops: Vec<u16> = cells.iter().map(|cell| cell.cell.maxdop).collect();
    dops.sort_unstable();
    dops.dedup();
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.cell.configuration.name) {
            names.push(cell.cell.configuration.name);
        }
    }
    let slowest = cells.iter().map(|cell| cell.spread().1).fold(1e-9, f64::max);
    let tick = tick(slowest / 4.0);
    let top = (slowest / tick).ceil() * tick;
    let (width, height, left) = (20.0 + STEP * (dops.len() * (names.len() + 1)) as f64, 240.0, 56.0);
    let y = |seconds: f64| 20.0 + height * (1.0 - seconds / top);
    let mut svg = format!("<svg width={} height={}>", left + width, height + 60.0 + 18.0 * names.len() as f64);
    for part in 0..=(top / tick).round() as u32 {
        let seconds = tick * f64::from(part);
        let _ = write!(
            svg,
            "<path d='M{left} {y:.1}h{width}' stroke=#e3e8ee /><text x=0 y={text:.1}>{} s</text>",
            short(seconds),
            y = y(seconds),
            text = y(seconds) + 4.0
        );
    }
    for (at, dop) in dops.iter().enumerate() {
        let start = left + 16.0 + STEP * (at * (names.len() + 1)) as f64;
        let middle = start + (STEP * names.len() as f64 - 8.0) / 2.0;
        let _ = write!(svg, "<text class=value x={middle:.1} y={:.1}>dop {dop}</text>", height + 40.0);
        for (bar, name) in names.iter().enumerate() {
            let of_bar = |cell: &&&Measured| cell.cell.maxdop == *dop && cell.cell.configuration.name == *name;
            let Some(cell) = cells.iter().find(of_bar) else { continue };
            let (x, median) = (start + STEP * bar as f64, cell.median(|run| run.seconds));
            let (fastest, slowest) = cell.spread();
            let _ = write!(
                svg,
                "<rect x={x:.1} y={top:.1} width=36 height={tall:.1} rx=3 fill='{colour}'><title>{name} dop {dop}: \
                 {median:.3} s</title></rect><path d='M{middle:.1} {from:.1}V{to:.1}' stroke=#1d2733 />\
                 <text class=value x={middle:.1} y={value:.1}>{}</text>",
                short(median),
                top = y(median),
                tall = height + 20.0 - y(median),
                colour = colour(bar),
                middle = x + 18.0,
                from = y(fastest),
                to = y(slowest),
                value = y(slowest) - 5.0,
            );
        }
    }
    for (at, name) in names.iter().enumerate() {
        let top = height + 54.0 + 18.0 * at as f64;
        let _ = write!(
            svg,
            "<rect x={left} y={top:.1} width=12 height=12 rx=2 fill='{}' /><text x={} y={:.1}>{name}</text>",
            colour(at),
            left + 18.0,
            top + 10.0
        );
    }
    svg.push_str("</svg>");
    svg
}

fn colour(at: usize) -> &'static str {
    COLOURS.get(at % COLOURS.len()).copied().unwrap_or("#000000")
}

/// Throughput, processors in use, memory and spilled bytes over time, each in a small chart.
fn lines(run: &Run) -> String {
    // Nothing was read, used or spilled before the start.
    let start = run.series.first().map(|first| [0.0, 0.0, 0.0, first[3], 0.0]);
    let series: Vec<[f64; 5]> = start.into_iter().chain(run.series.iter().copied()).collect();
    let rate = |column: usize, scale: f64| -> Vec<(f64, f64)> {
        let pairs = series.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
        pairs.map(|(a, b)| (b[0], (b[column] - a[column]) / (b[0] - a[0]).max(1e-9) / scale)).collect()
    };
    let level = |column: usize, scale: f64| -> Vec<(f64, f64)> {
        series.iter().map(|sample| (sample[0], sample[column] / scale)).collect()
    };
    let charts = [
        ("MB/s read", rate(1, 1e6)),
        ("processors in use", rate(2, 1.0)),
        ("MB of memory", level(3, f64::from(1 << 20))),
        ("MB spilled", level(4, 1e6)),
    ];
    let mut html = String::new();
    for (at, (name, points)) in charts.iter().enumerate() {
        let _ =
            write!(html, "<figure>{}<figcaption>{name}</figcaption></figure>", line(points, run.seconds, colour(at)));
    }
    html
}

fn line(points: &[(f64, f64)], seconds: f64, colour: &str) -> String {
    let (width, height, left) = (200.0, 90.0, 42.0);
    let highest = points.iter().map(|(_, value)| *value).fold(1e-9, f64::max);
    let step = tick(highest / 2.0);
    let top = (highest / step).ceil() * step;
    let place =
        |second: f64, value: f64| (left + width * second / seconds.max(1e-9), 10.0 + height * (1.0 - value / top));
    let mut path = String::new();
    for (second, value) in points {
        let (x, y) = place(*second, *value);
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    let mut svg = format!("<svg width={} height={}>", left + width + 16.0, height + 34.0);
    for part in 0..=(top / step).round() as u32 {
        let value = step * f64::from(part);
        let (_, y) = place(0.0, value);
        let _ = write!(
            svg,
            "<path d='M{left} {y:.1}h{width}' stroke=#e3e8ee /><text x=0 y={:.1}>{}</text>",
            y + 4.0,
            if highest > 1e-6 || part == 0 { short(value) } else { String::new() }
        );
    }
    if let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) {
        let ((from, ground), (to, _)) = (place(*first, 0.0), place(*last, 0.0));
        let _ =
            write!(svg, "<path d='{path}L{to:.1} {ground:.1}L{from:.1} {ground:.1}Z' fill='{colour}' opacity=.12 />");
    }
    let _ = write!(
        svg,
        "<path d='{path}' fill=none stroke='{colour}' stroke-width=2 /><text x={} y={}>{} s</text></svg>",
        left + width - 24.0,
        height + 28.0,
        short(seconds)
    );
    svg
}

fn table(cells: &[Measured]) -> String {
    let mut html = String::from("<table><tr>");
    for head in super::HEADS {
        let _ = write!(html, "<th>{head}");
    }
    for cell in cells {
        html.push_str("<tr>");
        for value in super::figures(cell) {
            let _ = write!(html, "<td>{}", escape(&value));
        }
    }
    html.push_str("</table>");
    html
}
