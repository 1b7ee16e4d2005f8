//! The figures of each cell. The table, the HTML page and the CSV file show the same list of figures as columns.

use std::io;

use jobs::failure::Failure;

use super::measure::Measured;
use super::results::Results;

/// A column of the results.
pub(crate) struct Figure {
    /// The heading in the table and the HTML page.
    pub(crate) head: &'static str,
    /// The heading in CSV.
    key: &'static str,
    decimals: usize,
    value: fn(&Results, &Measured) -> Option<f64>,
}

/// Throughput in gigabytes per second; `None` if the check was too short to measure.
fn rate(cell: &Measured) -> Option<f64> {
    (!cell.is_too_small()).then(|| cell.throughput() / 1e9)
}

fn deviation(cell: &Measured) -> f64 {
    let (mean, deviation) = cell.mean(|run| run.seconds);
    100.0 * deviation / mean.max(1e-9)
}

/// All columns of figures, in order.
pub(crate) const FIGURES: [Figure; 13] = [
    figure("median s", "median_s", 3, |_, cell| Some(cell.median(|run| run.seconds))),
    figure("mean s", "mean_s", 3, |_, cell| Some(cell.mean(|run| run.seconds).0)),
    figure("deviation %", "deviation_percent", 1, |_, cell| Some(deviation(cell))),
    figure("fastest s", "fastest_s", 3, |_, cell| Some(cell.spread().0)),
    figure("slowest s", "slowest_s", 3, |_, cell| Some(cell.spread().1)),
    figure("speed-up", "speed_up", 2, |results, cell| results.speed_up(cell)),
    figure("GB/s", "gb_per_s", 3, |_, cell| rate(cell)),
    figure("raw GB/s", "raw_gb_per_s", 3, |results, cell| Some(results.raw(&cell.cell)?.rate() / 1e9)),
    figure("processor s", "processor_s", 2, |_, cell| Some(cell.median(|run| run.cpu_seconds))),
    figure("read wait s", "read_wait_s", 3, |_, cell| Some(cell.median(|run| run.read_wait_seconds))),
    figure("queue wait s", "queue_wait_s", 3, |_, cell| Some(cell.median(|run| run.idle_seconds))),
    figure("peak MB", "peak_mb", 0, |_, cell| Some(cell.median(|run| run.memory_peak) / f64::from(1 << 20))),
    figure("spilled MB", "spilled_mb", 1, |_, cell| Some(cell.median(|run| run.spilled_bytes) / 1e6)),
];

const fn figure(
    head: &'static str,
    key: &'static str,
    decimals: usize,
    value: fn(&Results, &Measured) -> Option<f64>,
) -> Figure {
    Figure { head, key, decimals, value }
}

impl Figure {
    /// The figure of a cell as a number without a unit; empty if the cell has no such figure.
    fn text(&self, results: &Results, cell: &Measured) -> String {
        let value = (!cell.runs.is_empty()).then(|| (self.value)(results, cell)).flatten();
        value.map_or_else(String::new, |value| format!("{value:.*}", self.decimals))
    }
}

/// Headings of the columns that identify a cell.
const CELL: [&str; 4] = ["configuration", "dop", "memory", "cache"];

/// Headings of the table and the HTML page.
pub(crate) fn heads() -> Vec<&'static str> {
    CELL.into_iter().chain(FIGURES.iter().map(|figure| figure.head)).chain(["remark"]).collect()
}

/// The rows of the table, one per cell, with the columns of [`heads`]. A missing figure is shown as `-`.
pub(crate) fn rows<'r>(
    results: &'r Results,
    baseline: Option<&'r Results>,
) -> impl Iterator<Item = Vec<String>> + use<'r> {
    results.cells.iter().map(move |cell| {
        let identity = [cell.cell.configuration.name.to_owned(), cell.cell.maxdop.to_string(), cell.cell.memory_text()];
        let figures = FIGURES.iter().map(|figure| figure.text(results, cell));
        let figures = figures.map(|text| if text.is_empty() { "-".to_owned() } else { text });
        let cache = cell.cell.cache.name().to_owned();
        identity.into_iter().chain([cache]).chain(figures).chain([remark(cell, baseline)]).collect()
    })
}

/// The remark for a cell. It says why the cell has no figures, or how its time compares with the baseline.
fn remark(cell: &Measured, baseline: Option<&Results>) -> String {
    match (&cell.error, baseline) {
        (Some(error), _) => format!("could not run: {error}"),
        _ if cell.is_too_small() => "too small to measure; try --size 2GB".to_owned(),
        (None, None) => String::new(),
        (None, Some(baseline)) => {
            baseline.change(cell).map_or_else(|| "not in the baseline".to_owned(), |change| change.text())
        }
    }
}

/// Formats the figures as CSV. Each line describes one cell: first its figures as numbers without units, then the facts
/// about the database and the machine.
pub(crate) fn csv(results: &Results, baseline: Option<&Results>) -> Result<String, Failure> {
    let text = || -> io::Result<String> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let heads = ["configuration", "dop", "memory_bytes", "cache", "runs"].into_iter();
        let ends = ["baseline_median_s", "change_percent", "outside_noise", "too_small", "error"];
        let keys = heads.chain(FIGURES.iter().map(|figure| figure.key)).chain(ends);
        out.write_record(keys.chain(facts(results).map(|(name, _)| name)))?;
        for cell in &results.cells {
            let of_cell = &cell.cell;
            let mut record = vec![
                of_cell.configuration.name.to_owned(),
                of_cell.maxdop.to_string(),
                known(of_cell.memory),
                of_cell.cache.name().to_owned(),
                cell.runs.len().to_string(),
            ];
            record.extend(FIGURES.iter().map(|figure| figure.text(results, cell)));
            let then = baseline.and_then(|baseline| baseline.like(of_cell));
            let change = baseline.and_then(|baseline| baseline.change(cell));
            record.extend([
                known(then.map(|then| format!("{:.3}", then.median(|run| run.seconds)))),
                known(change.as_ref().map(|change| format!("{:.1}", change.percent()))),
                known(change.map(|change| change.is_outside_noise)),
                cell.is_too_small().to_string(),
                cell.error.clone().unwrap_or_default(),
            ]);
            out.write_record(record.into_iter().chain(facts(results).map(|(_, value)| value)))?;
        }
        let bytes = out.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    text().map_err(|error| Failure::unable(format!("the figures cannot be written as CSV: {error}")))
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The facts about the database and the machine, as pairs of a column name and a value.
fn facts(results: &Results) -> impl Iterator<Item = (&'static str, String)> {
    let (machine, database) = (&results.machine, &results.database);
    let facts = [
        ("database", known(database.name.as_ref())),
        ("database_version", known(database.db_version)),
        ("database_bytes", known(database.bytes)),
        ("database_rows", known(database.rows)),
        ("processor", known(machine.processor.as_ref())),
        ("cores", known(machine.cores)),
        ("processors", known(machine.processors)),
        ("machine_memory_bytes", known(machine.memory_bytes)),
        ("system", known(machine.system.as_ref())),
        ("virtual", known(machine.is_virtual)),
        ("filesystem", known(machine.filesystem.as_ref())),
        ("disk", known(machine.disk.as_ref())),
        ("date", known(results.date.as_ref())),
        ("mdfsck_version", results.version.clone()),
    ];
    facts.into_iter()
}
