//! One page that needs nothing else: elapsed time by degree of parallelism and configuration, and each cell over time.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::measure::{Measured, Run};

const STYLE: &str = "\
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:72em;color:#222;background:#fff}\
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}table{border-collapse:collapse}\
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
figure{display:inline-block;margin:1em 1em 0 0}figcaption{font-size:.85em;color:#555}text{font:11px sans-serif;fill:#555}";

/// Colours that people who do not tell red from green can tell apart (Okabe and Ito's palette).
const COLOURS: [&str; 8] = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000"];

/// The page.
pub(crate) fn page(title: &str, cells: &[Measured]) -> String {
    let mut html = String::new();
    let title = escape(title);
    let _ =
        write!(html, "<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>");
    html.push_str("<h2>Elapsed time by degree of parallelism</h2>");
    let groups: BTreeSet<(String, &str)> = cells.iter().map(group).collect();
    for (memory, cache) in &groups {
        let of_group: Vec<&Measured> = cells.iter().filter(|cell| group(cell) == (memory.clone(), *cache)).collect();
        let caption = format!("{cache} cache, memory {memory}; bars: median, lines: fastest to slowest run");
        let _ = write!(html, "<figure>{}<figcaption>{}</figcaption></figure>", bars(&of_group), escape(&caption));
    }
    html.push_str("<h2>All cells</h2>");
    html.push_str(&table(cells));
    html.push_str("<h2>Over time</h2><p>The typical run of each cell that took two seconds or more.</p>");
    for cell in cells {
        if let Some(run) = cell.typical().filter(|run| run.series.len() > 1) {
            let _ = write!(html, "<h3>{}</h3>{}", escape(&cell.cell.name()), lines(run));
        }
    }
    html.push('\n');
    html
}

fn group(cell: &Measured) -> (String, &'static str) {
    let memory = cell.cell.memory.map_or_else(|| "default".to_owned(), crate::size::text);
    (memory, cell.cell.cache.name())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

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
    let (width, height, left) = (30.0 + 24.0 * (dops.len() * (names.len() + 1)) as f64, 220.0, 48.0);
    let y = |seconds: f64| 10.0 + height * (1.0 - seconds / slowest);
    let mut svg = format!("<svg width={} height={}>", left + width, height + 50.0 + 16.0 * names.len() as f64);
    for part in 0..=4 {
        let seconds = slowest * f64::from(part) / 4.0;
        let _ = write!(
            svg,
            "<path d='M{left} {y:.1}h{width}' stroke=#ddd /><text x=0 y={text:.1}>{seconds:.2} s</text>",
            y = y(seconds),
            text = y(seconds) + 4.0
        );
    }
    for (at, dop) in dops.iter().enumerate() {
        let start = left + 10.0 + 24.0 * (at * (names.len() + 1)) as f64;
        let _ = write!(svg, "<text x={start:.1} y={:.1}>dop {dop}</text>", height + 26.0);
        for (bar, name) in names.iter().enumerate() {
            let of_bar = |cell: &&&Measured| cell.cell.maxdop == *dop && cell.cell.configuration.name == *name;
            let Some(cell) = cells.iter().find(of_bar) else { continue };
            let (x, median) = (start + 24.0 * bar as f64, cell.median(|run| run.seconds));
            let (fastest, slowest) = cell.spread();
            let _ = write!(
                svg,
                "<rect x={x:.1} y={top:.1} width=20 height={tall:.1} fill='{colour}'><title>{name} dop {dop}: {median:.3} s\
                 </title></rect><path d='M{middle:.1} {from:.1}V{to:.1}' stroke=#222 />",
                top = y(median),
                tall = height + 10.0 - y(median),
                colour = colour(bar),
                middle = x + 10.0,
                from = y(fastest),
                to = y(slowest),
            );
        }
    }
    for (at, name) in names.iter().enumerate() {
        let top = height + 38.0 + 16.0 * at as f64;
        let _ = write!(
            svg,
            "<rect x={left} y={top:.1} width=12 height=12 fill='{}' /><text x={} y={:.1}>{name}</text>",
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
    let rate = |column: usize, scale: f64| -> Vec<(f64, f64)> {
        let pairs = run.series.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
        pairs.map(|(a, b)| (b[0], (b[column] - a[column]) / (b[0] - a[0]).max(1e-9) / scale)).collect()
    };
    let level = |column: usize, scale: f64| -> Vec<(f64, f64)> {
        run.series.iter().map(|sample| (sample[0], sample[column] / scale)).collect()
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
    let (width, height, left) = (220.0, 80.0, 44.0);
    let top = points.iter().map(|(_, value)| *value).fold(1e-9, f64::max);
    let mut path = String::new();
    for (at, (second, value)) in points.iter().enumerate() {
        let (x, y) = (left + width * second / seconds.max(1e-9), 10.0 + height * (1.0 - value / top));
        let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
    }
    format!(
        "<svg width={} height={}><path d='M{left} 10v{height}h{width}' fill=none stroke=#ccc />\
         <path d='{path}' fill=none stroke='{colour}' stroke-width=1.5 /><text x=0 y=14>{top:.1}</text>\
         <text x=0 y=94>0</text><text x={} y=106>{seconds:.0} s</text></svg>",
        left + width + 10.0,
        height + 30.0,
        left + width - 24.0
    )
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
