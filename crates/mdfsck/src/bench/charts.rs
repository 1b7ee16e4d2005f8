//! The charts of the HTML page: bar charts that share one axis, and line charts that show one run over time.

use std::fmt::Write;

use findings::Sample;
use report::html::{Curves, axis, escape, figure, short};

use super::measure::{Measured, Run};
use super::results::Results;

/// Width of a chart in SVG units, small enough for a phone to show the chart at full size.
const WIDTH: f64 = 440.0;
/// The left end of the bars, in SVG units; `RIGHT` is their right end. The number of threads is shown to the left of a
/// bar, and the time to its right.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 310.0;
/// Height of a line, in SVG units. A line shows a cell or a heading.
const LINE: f64 = 24.0;

/// One chart: the bars of all cells with the same memory grant and cache state, in the order of the table.
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
    figure(caption, WIDTH, y + 4.0, &(svg + &lines))
}

/// Draws the bar of a cell, with its fastest and slowest run and the time as text. Also draws the bar of the baseline
/// below, and a mark at the time that reading the files without a check takes.
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

/// Four small charts of one run over time: throughput, number of processors in use, memory use and spilled bytes.
pub(super) fn over_time(run: &Run) -> String {
    let sample = |&[seconds, bytes, cpu_seconds, memory, spilled]: &[f64; 5]| Sample {
        seconds,
        bytes: bytes as u64,
        cpu_seconds: Some(cpu_seconds),
        memory_bytes: Some(memory as u64),
        spilled_bytes: spilled as u64,
    };
    let samples: Vec<Sample> = run.series.iter().map(sample).collect();
    Curves { samples: &samples, seconds: run.seconds, phases: &[], granted: None, width: 180.0 }.html()
}
