//! The charts of the page: bars with one axis for all of them, and what one run did over time.

use std::fmt::Write;

use report::html::{axis, escape, figure, short};

use super::measure::{Measured, Run};
use super::results::Results;

/// Width of a chart, in the units of its text: what a phone shows at full size.
const WIDTH: f64 = 440.0;
/// Where bars begin and end; before them is the number of threads, after them the time.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 310.0;
/// Height of a line with a bar, and of one with a heading.
const LINE: f64 = 24.0;

/// Bars of the cells of one memory grant and cache state, in the order of the table.
pub(super) fn bars(
    caption: &str,
    cells: &[&Measured],
    results: &Results,
    baseline: Option<&Results>,
    most: f64,
) -> String {
    let (step, end) = axis(most, 4.0);
    let x = |seconds: f64| LEFT + (RIGHT - LEFT) * seconds / end.max(1e-9);
    let (mut lines, mut y, mut heading) = (String::new(), 26.0, "");
    for cell in cells {
        let configuration = cell.cell.configuration;
        if configuration.name != heading {
            heading = configuration.name;
            let _ = write!(lines, "<text class=ink x=0 y={:.0}>{heading}</text>", y + 14.0);
            y += LINE;
        }
        let _ = write!(lines, "<text x=0 y={:.0}>dop {}</text>", y + 10.0, cell.cell.maxdop);
        match &cell.error {
            Some(error) => {
                let _ = write!(
                    lines,
                    "<text class=bad x={LEFT} y={:.0}>could not run<title>{}</title></text>",
                    y + 10.0,
                    escape(error)
                );
            }
            None => bar(cell, results, baseline, y, &x, &mut lines),
        }
        y += LINE;
    }
    let mut svg = String::new();
    for part in 0..=(end / step).round() as u32 {
        let seconds = step * f64::from(part);
        let label = if part == 0 { "0 s".to_owned() } else { short(seconds) };
        let _ = write!(
            svg,
            "<path class=axis d='M{x:.1} 18V{y:.0}' /><text style='text-anchor:middle' x={x:.1} y=12>{label}</text>",
            x = x(seconds)
        );
    }
    figure(caption, false, WIDTH, y + 4.0, &(svg + &lines))
}

/// One bar with its spread, the baseline under it, the time of reading alone, and the time in words.
fn bar(
    cell: &Measured,
    results: &Results,
    baseline: Option<&Results>,
    y: f64,
    x: &impl Fn(f64) -> f64,
    svg: &mut String,
) {
    let (median, (fastest, slowest)) = (cell.median(|run| run.seconds), cell.spread());
    let color = if cell.cell.configuration.is_physical() { "green" } else { "blue" };
    let _ = write!(
        svg,
        "<rect class={color} x={LEFT} y={y:.1} width={width:.1} height=13 stroke=none><title>{name}: {median:.3} s, {fastest:.3} to \
         {slowest:.3} s</title></rect><path class=spread d='M{from:.1} {line:.1}H{to:.1}' />",
        width = (x(median) - LEFT).max(0.5),
        name = escape(&cell.cell.name()),
        from = x(fastest),
        line = y + 6.5,
        to = x(slowest),
    );
    let then = baseline.and_then(|baseline| baseline.like(&cell.cell));
    let mut last = slowest;
    if let Some(then) = then {
        let then = then.median(|run| run.seconds);
        last = last.max(then);
        let _ = write!(
            svg,
            "<rect class=then fill='var(--then)' x={LEFT} y={:.1} width={:.1} height=4><title>baseline: {then:.3} s</title></rect>",
            y + 14.0,
            (x(then) - LEFT).max(0.5)
        );
    }
    if let Some(raw) = results.raw(&cell.cell) {
        let _ = write!(
            svg,
            "<path class=change stroke-width=2 d='M{:.1} {:.1}v18'><title>reading alone: {:.3} s, {:.2} GB/s</title></path>",
            x(raw.median()),
            y - 1.0,
            raw.median(),
            raw.rate() / 1e9
        );
    }
    let change = baseline.and_then(|baseline| baseline.change(cell)).filter(|_| !cell.is_too_small());
    let (class, more) = match (change, results.speed_up(cell)) {
        (Some(change), _) if change.is_outside_noise => ("ink", format!(", {:+.1} %", change.percent())),
        (Some(_), _) => ("", ", within noise".to_owned()),
        (None, Some(times)) if baseline.is_none() => ("ink", format!(", {times:.1}x")),
        (None, _) => ("ink", String::new()),
    };
    let after = x(last) + 6.0;
    let _ = write!(svg, "<text class='{class}' x={after:.1} y={:.1}>{} s{more}</text>", y + 11.0, short(median));
}

/// Throughput, processors in use, memory and spilled bytes over time, each in a small chart.
pub(super) fn over_time(run: &Run) -> String {
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
    charts.iter().map(|(caption, points)| line(caption, points, run.seconds)).collect()
}

fn line(caption: &str, points: &[(f64, f64)], seconds: f64) -> String {
    let (width, height, left) = (180.0, 80.0, 42.0);
    let highest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let (step, top) = axis(highest.max(1e-3), 2.0);
    let place =
        |second: f64, value: f64| (left + width * second / seconds.max(1e-9), 8.0 + height * (1.0 - value / top));
    let mut path = String::new();
    for (second, value) in points {
        let (x, y) = place(*second, *value);
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    let mut svg = String::new();
    for part in 0..=(top / step).round() as u32 {
        let value = step * f64::from(part);
        let (_, y) = place(0.0, value);
        let label = if highest > 0.0 || part == 0 { short(value) } else { String::new() };
        let _ = write!(svg, "<path class=axis d='M{left} {y:.1}h{width}' /><text x=0 y={:.1}>{label}</text>", y + 4.0);
    }
    if let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) {
        let ((from, ground), (to, _)) = (place(*first, 0.0), place(*last, 0.0));
        let _ = write!(
            svg,
            "<path class=blue d='{path}L{to:.1} {ground:.1}L{from:.1} {ground:.1}Z' stroke=none opacity=.15 />"
        );
    }
    let _ = write!(
        svg,
        "<path class=blue d='{path}' style='fill:none' stroke-width=2 /><text class=end x={} y={}>{} s</text>",
        left + width,
        height + 24.0,
        short(seconds)
    );
    figure(caption, false, left + width + 10.0, height + 30.0, &svg)
}
