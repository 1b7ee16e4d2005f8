//! Charts of a run over time: throughput, processors in use, memory, and bytes in temporary files.

use std::fmt::Write;

use findings::{Sample, phase_words};

use super::{axis, escape, figure, short};

/// The data for the charts of a run.
pub struct Curves<'a> {
    /// Totals at points in time during the run.
    pub samples: &'a [Sample],
    /// Duration of the run in seconds.
    pub seconds: f64,
    /// The phases in order, with the duration of each in seconds.
    pub phases: &'a [(&'static str, f64)],
    /// Bytes of memory that the run may use; `None` if unknown.
    pub granted: Option<u64>,
    /// Width of the plot, in SVG units.
    pub width: f64,
}

/// Height of the plot, in SVG units.
const HEIGHT: f64 = 80.0;
/// Space for numbers at the left edge, in SVG units.
const LEFT: f64 = 42.0;
const MEGABYTE: f64 = (1 << 20) as f64;

/// One curve.
struct Curve<'c> {
    caption: &'c str,
    points: Vec<(f64, f64)>,
    /// A level that the curve must not exceed; `None` if there is no such limit.
    limit: Option<f64>,
}

impl Curves<'_> {
    /// A small chart for each curve. If the system does not report processor time or memory, that curve is left out.
    pub fn html(&self) -> String {
        let rate = |value: &dyn Fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
            let mut last = (0.0, 0.0);
            let mut points = Vec::new();
            for sample in self.samples {
                let Some(value) = value(sample) else { return Vec::new() };
                // All totals are zero at the start.
                let slope = (value - last.1) / (sample.seconds - last.0).max(1e-9);
                if points.is_empty() {
                    points.push((0.0, slope));
                }
                points.push((sample.seconds, slope));
                last = (sample.seconds, value);
            }
            points
        };
        let level = |value: &dyn Fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
            self.samples.iter().map_while(|sample| Some((sample.seconds, value(sample)?))).collect()
        };
        let granted = self.granted.map(|bytes| bytes as f64 / MEGABYTE);
        let memory = if granted.is_some() { "MB of memory; dashed: granted" } else { "MB of memory" };
        let curves = [
            Curve { caption: "MB/s read", points: rate(&|sample| Some(sample.bytes as f64 / 1e6)), limit: None },
            Curve { caption: "processors in use", points: rate(&|sample| sample.cpu_seconds), limit: None },
            Curve {
                caption: memory,
                points: level(&|sample| Some(sample.memory_bytes? as f64 / MEGABYTE)),
                limit: granted,
            },
            Curve {
                caption: "MB spilled",
                points: level(&|sample| Some(sample.spilled_bytes as f64 / 1e6)),
                limit: None,
            },
        ];
        curves.iter().filter(|curve| !curve.points.is_empty()).map(|curve| self.chart(curve)).collect()
    }

    fn x(&self, second: f64) -> f64 {
        LEFT + self.width * (second / self.seconds.max(1e-9)).min(1.0)
    }

    fn chart(&self, curve: &Curve<'_>) -> String {
        let highest = curve.points.iter().map(|(_, value)| *value).chain(curve.limit).fold(0.0, f64::max);
        let (step, top) = axis(highest.max(1e-3), 2.0);
        let y = |value: f64| 8.0 + HEIGHT * (1.0 - value / top);
        let mut svg = self.bands();
        for part in 0..=(top / step).round() as u32 {
            let (value, y) = (step * f64::from(part), y(step * f64::from(part)));
            let label = if highest > 0.0 || part == 0 { short(value) } else { String::new() };
            let _ = write!(
                svg,
                "<path class=axis d='M{LEFT} {y:.1}h{}' /><text x=0 y={:.1}>{label}</text>",
                self.width,
                y + 4.0
            );
        }
        if let Some(limit) = curve.limit {
            let _ = write!(svg, "<path class='change line' d='M{LEFT} {:.1}h{}' />", y(limit), self.width);
        }
        let mut path = String::new();
        for (second, value) in &curve.points {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", self.x(*second), y(*value));
        }
        if let (Some((first, _)), Some((last, _))) = (curve.points.first(), curve.points.last()) {
            let (from, to, ground) = (self.x(*first), self.x(*last), y(0.0));
            let _ = write!(
                svg,
                "<path class=blue d='{path}L{to:.1} {ground:.1}L{from:.1} {ground:.1}Z' stroke=none opacity=.15 />"
            );
        }
        let _ = write!(
            svg,
            "<path class='blue line' d='{path}' stroke-width=2 /><text class=end x={} y={}>{} s</text>",
            LEFT + self.width,
            HEIGHT + 24.0,
            short(self.seconds)
        );
        figure(curve.caption, LEFT + self.width + 10.0, HEIGHT + 30.0, &svg)
    }

    /// A background band for each phase, with the phase's name as a tooltip. Every second band is colored.
    fn bands(&self) -> String {
        let (mut svg, mut start) = (String::new(), 0.0);
        for (at, (name, seconds)) in self.phases.iter().enumerate() {
            let (from, to) = (self.x(start), self.x(start + seconds));
            let _ = write!(
                svg,
                "<rect class='band{}' x={from:.1} y=8 width={:.1} height={HEIGHT}><title>{}: {} s</title></rect>",
                if at % 2 == 0 { "" } else { " other" },
                (to - from).max(0.0),
                escape(phase_words(name)),
                short(*seconds)
            );
            start += seconds;
        }
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64, bytes: u64, memory_bytes: Option<u64>) -> Sample {
        Sample { seconds, bytes, cpu_seconds: None, memory_bytes, spilled_bytes: 0 }
    }

    #[test]
    fn what_the_system_does_not_report_has_no_chart() {
        let curves = |samples: &[Sample]| {
            let phases = [("survey", 0.5), ("sweep", 1.5)];
            Curves { samples, seconds: 2.0, phases: &phases, granted: Some(3 << 20), width: 180.0 }.html()
        };
        assert_eq!(curves(&[]), "");
        let html = curves(&[sample(1.0, 4_000_000, Some(1 << 20)), sample(2.0, 8_000_000, Some(2 << 20))]);
        assert_eq!(html.matches("<figure>").count(), 3, "{html}");
        assert!(html.contains("MB/s read") && !html.contains("processors") && html.contains("granted"));
        assert!(html.contains("reading pages: 1.50 s") && html.contains("class='change line'"));
    }
}
