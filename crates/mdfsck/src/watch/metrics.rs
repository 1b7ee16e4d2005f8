//! Writes the state of all databases to a metrics file for Prometheus, which node_exporter or windows_exporter reads.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use history::History;
use history::vitals::{Vital, Vitals};

use crate::version::VERSION;

/// Writes the metrics to a temporary file, and then renames this file. Readers see either the previous or the new
/// content, never a part of it.
///
/// # Errors
/// If the file cannot be written, or the history cannot be read.
pub(super) fn write(path: &Path, history: &History, status: u8) -> io::Result<()> {
    let text = text(&history.vitals().map_err(io::Error::other)?, status);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Exporters ignore the temporary file, since they read only files whose names end in .prom.
    builder.prefix(".mdfsck-metrics.").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|failed| failed.error)
}

struct Series(String);

impl Series {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP mdfsck_{name} {help}\n# TYPE mdfsck_{name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "mdfsck_{name}{labels} {value}");
    }

    /// Writes the values of one metric, for all databases that have a value.
    fn of_each<V: std::fmt::Display>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        all: &[Vital],
        values: impl Fn(&Vital) -> Vec<(Option<(&'static str, &'static str)>, V)>,
    ) {
        let mut has_head = false;
        for one in all {
            for (label, value) in values(one) {
                if !std::mem::replace(&mut has_head, true) {
                    self.head(name, kind, help);
                }
                let mut labels = vec![("database", one.name.as_str()), ("family", one.family.as_str())];
                if !one.server.is_empty() {
                    labels.push(("server", &one.server));
                }
                labels.extend(label);
                self.value(name, &labels, value);
            }
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The text of all metrics. It has at most twelve time series per database.
fn text(vitals: &Vitals, status: u8) -> String {
    let mut out = Series(String::new());
    out.head("build_info", "gauge", "The release of mdfsck that wrote this file.");
    out.value("build_info", &[("version", VERSION)], 1);
    let all = &vitals.databases;
    let state = ("database_state", "gauge", "State of the database after the last check: sound, corrupt or unknown.");
    out.of_each(state, all, |one| {
        let of = |state: &'static str| (Some(("state", state)), u8::from(one.state == state));
        ["sound", "corrupt", "unknown"].map(of).to_vec()
    });
    let findings = ("findings", "gauge", "Open findings; acknowledged findings do not count as new or confirmed.");
    out.of_each(findings, all, |one| {
        let of = |state: &'static str, count: u64| (Some(("state", state)), count);
        vec![of("new", one.new), of("confirmed", one.confirmed), of("acknowledged", one.acknowledged)]
    });
    let verified = (
        "last_verified_timestamp_seconds",
        "gauge",
        "End of the last check that had no findings and verified everything.",
    );
    out.of_each(verified, all, |one| {
        let depths = [("physical", one.verified_physical), ("full", one.verified_full)];
        depths.into_iter().filter_map(|(depth, at)| Some((Some(("depth", depth)), at?))).collect()
    });
    let coverage = ("coverage_ratio", "gauge", "Share of the pages in use that were read and checked at least once.");
    out.of_each(coverage, all, |one| one.coverage.map(|ratio| (None, ratio)).into_iter().collect());
    let pages = ("pages_read_total", "counter", "Pages that the recorded runs read.");
    out.of_each(pages, all, |one| vec![(None, one.pages_read)]);
    let backups = ("backup_verified_timestamp_seconds", "gauge", "Time at which the newest sound backup was taken.");
    out.of_each(backups, all, |one| {
        let types = [("full", one.backup_full), ("differential", one.backup_differential)];
        types.into_iter().filter_map(|(kind, at)| Some((Some(("type", kind)), at?))).collect()
    });
    for (name, help, value) in [
        ("backups_waiting", "Backups that are not complete yet.", vitals.waiting),
        ("backups_ready", "Backups that wait to be checked or are being checked.", vitals.ready),
        ("events_undelivered", "Events that could not be passed on yet.", vitals.events),
    ] {
        out.head(name, "gauge", help);
        out.value(name, &[], value);
    }
    if let Some((at, run_status)) = vitals.last_run {
        out.head("last_run_timestamp_seconds", "gauge", "End of the last recorded run.");
        out.value("last_run_timestamp_seconds", &[], at);
        out.head("last_run_exit_status", "gauge", "Exit status of the last recorded run.");
        out.value("last_run_exit_status", &[], run_status);
    }
    out.head("watch_status", "gauge", "Bits of the exit status of this watcher so far.");
    out.value("watch_status", &[], status);
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_labels_and_there_are_twelve_series_of_a_database() {
        let one = Vital {
            name: "a\"b\\c\nd}{ 1".to_owned(),
            family: "F".to_owned(),
            server: String::new(),
            state: "corrupt".to_owned(),
            new: 1,
            confirmed: 2,
            acknowledged: 3,
            verified_physical: Some(4),
            verified_full: Some(5),
            coverage: Some(0.5),
            pages_read: 6,
            backup_full: Some(7),
            backup_differential: Some(8),
        };
        let text = text(&Vitals { databases: vec![one], ..Vitals::default() }, 0);
        let of_it: Vec<&str> = text.lines().filter(|line| line.contains("family=\"F\"")).collect();
        assert_eq!(of_it.len(), 12, "{text}");
        assert!(of_it.iter().all(|line| line.contains(r#"{database="a\"b\\c\nd}{ 1",family="F""#)), "{text}");
        assert!(text.ends_with('\n') && text.contains("state=\"corrupt\"} 1\n"));
    }
}
