//! The report of one check as an HTML page: the verdict, the findings with their bytes, a map of the files, the things
//! that were not verified, advice, and charts of the resources that the check used.
//!
//! The page is one file that loads nothing and sends nothing. Text from the database goes into the page as JSON. The
//! script shows this text only as text, so no name can become markup.

mod bytes;
mod findings;
mod head;
mod map;
mod not_verified;

use std::io;

use ::findings::Report;
use catalog::Database;
use serde::Serialize;
use source::PageSource;

use crate::html::{Budget, Curves, ELEMENTS, Escaped, MAP, head_of_script};
use crate::patterns;
use crate::summary::Commands;

use bytes::PageBytesReader;

/// A report, and the other contents of its page.
pub struct CheckPage<'a> {
    /// The result of the check. It includes the page map if [`::findings::Options::page_map`] was set.
    pub report: &'a Report,
    /// The catalog, which has the names of page owners.
    pub database: &'a Database,
    /// The source of the pages, to show bytes of some pages.
    pub source: &'a dyn PageSource,
    /// The whole command, without secrets.
    pub command_line: &'a str,
    /// The parts from which the page composes the commands that it suggests.
    pub commands: Commands<'a>,
    /// The version of the program.
    pub version: &'a str,
    /// The time at which the check began, in UTC: `2026-11-21 22:00:00`.
    pub started: &'a str,
}

/// All data that the script shows.
#[derive(Serialize)]
struct Model<'a> {
    head: head::Head<'a>,
    patterns: Vec<String>,
    findings: findings::Findings,
    map: map::Map,
    not_verified: not_verified::NotVerified,
    commands: Vec<head::Command>,
    phases: Vec<head::Phase>,
}

/// Maximum number of bytes of database text in three places: the findings, the list of what was not verified, and the
/// map. These limits keep the whole page below 8 MB, including the encoded extents of the map, which take the most
/// space.
const TEXT_BYTES: [usize; 3] = [5 << 17, 1 << 18, 1 << 19];
/// Width of the plot of a curve, in SVG units.
const CURVE_WIDTH: f64 = 330.0;
/// Minimum number of samples for a curve.
const MIN_SAMPLES: usize = 4;

impl CheckPage<'_> {
    /// Writes the page. A page has a few megabytes at most, however large the database is.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let report = self.report;
        let mut reader = PageBytesReader::new(self.source);
        let [mut of_findings, mut of_not_verified, mut of_map] = TEXT_BYTES.map(Budget::new);
        let model = Model {
            head: head::head(self),
            patterns: report.patterns.iter().map(patterns::line).collect(),
            findings: findings::findings(report, &mut reader, &mut of_findings),
            map: map::map(report, self.database, &mut of_map),
            not_verified: not_verified::not_verified(report, &mut of_not_verified),
            commands: head::commands(self),
            phases: head::phases(report),
        };
        out.write_all(head_of_script("").as_bytes())?;
        out.write_all(include_bytes!("check_page/page.html"))?;
        out.write_all(self.curves().as_bytes())?;
        out.write_all(b"<script type=application/json id=data>")?;
        serde_json::to_writer(Escaped(out), &model)?;
        out.write_all(b"</script>\n<script type=application/octet-stream id=runs>")?;
        map::write_runs(report, out)?;
        out.write_all(b"</script>\n<script>")?;
        for script in [ELEMENTS, include_str!("check_page/page.js"), MAP, include_str!("check_page/map.js")] {
            out.write_all(script.as_bytes())?;
        }
        out.write_all(b"</script>\n")
    }

    /// The charts, in an element that the script moves to its place on the page.
    fn curves(&self) -> String {
        let statistics = &self.report.statistics;
        let phases: Vec<(&'static str, f64)> =
            statistics.phases.iter().map(|phase| (phase.name, phase.seconds)).collect();
        let curves = Curves {
            samples: &statistics.series,
            seconds: statistics.seconds,
            phases: &phases,
            granted: Some(statistics.memory_granted).filter(|granted| *granted > 0),
            width: CURVE_WIDTH,
        };
        let html = if statistics.series.len() < MIN_SAMPLES { String::new() } else { curves.html() };
        format!("<div class=grid id=curves>{html}</div></section></main>\n")
    }
}

#[cfg(test)]
mod tests;
