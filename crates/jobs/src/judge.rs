//! The check of one database that was opened and prepared: its report, and the bits of the exit status.

use catalog::Database;
use check::Progress;
use findings::Report;
use findings::registry::limits::INPUT_CHANGED;
use source::PageSource;

use crate::failure::Failure;
use crate::host::warn;
use crate::prepare::{Prepared, open, prepare};
use crate::request::Request;
use crate::spread::{Spread, What};
use crate::throttle::throttled;

/// Checks one database, and passes the report, the pages and their catalog to `act`. Returns the exit-status bits of
/// the check, and the value that `act` returned. The listener is dropped before messages are shown.
///
/// # Errors
/// If the database cannot be checked.
pub fn judge<R>(
    request: &Request,
    what: &What<'_>,
    listener: Box<dyn Progress>,
    act: impl FnOnce(&Report, &dyn PageSource, &Database) -> R,
) -> Result<(u8, R), Failure> {
    let input = open(request, what, listener.as_ref())?;
    let prepared = prepare(request, &input, listener.as_ref(), what)?;
    let source = prepared.recovered.pages_or(input.pages());
    let report = check_pages(request, what, source, &prepared, listener.as_ref())?;
    drop(listener);
    report_changes(&report);
    for notice in &report.notices {
        warn(notice);
    }
    let done = act(&report, source, &prepared.database);
    Ok((status(&report, request.results.exit_zero_on_incomplete), done))
}

/// Checks the pages, within the limit on the read rate.
///
/// # Errors
/// If this process merges parts, and they cannot be merged.
pub fn check_pages(
    request: &Request,
    what: &What<'_>,
    source: &dyn PageSource,
    prepared: &Prepared<'_>,
    listener: &dyn Progress,
) -> Result<Report, Failure> {
    let Prepared { database, options, .. } = prepared;
    throttled(request, source, |source| match what.spread {
        Spread::Merge(merge) => merge.run(source, database, options, listener),
        _ => Ok(check::run(source, database, options, listener)),
    })
}

/// Tells the user that files changed during the check. All other warnings were written before the check began.
pub fn report_changes(report: &Report) {
    let changes = report.warnings.iter().filter(|warning| warning.id == INPUT_CHANGED.id);
    changes.for_each(|warning| warn(&warning.text));
}

/// The bits of the exit status of a check with this report. `zero_on_incomplete` leaves out bit 16.
pub fn status(report: &Report, zero_on_incomplete: bool) -> u8 {
    let mut status = 0;
    if !report.findings.is_empty() {
        status |= Failure::CORRUPT;
    }
    if !report.read_errors.is_empty() || report.findings.error().is_some() || report.demoted.error().is_some() {
        status |= Failure::UNABLE;
    }
    if !report.complete_as_allowed() && !zero_on_incomplete {
        status |= Failure::INCOMPLETE;
    }
    status
}

#[cfg(test)]
mod tests {
    use findings::{NotVerified, registry};

    use super::*;

    #[test]
    fn bits_of_the_status_add() {
        let mut report = Report::default();
        assert_eq!(status(&report, false), 0);
        report.findings = vec![findings::Finding::new(&registry::CATALOG_UNUSABLE)].into();
        report.read_errors.push("a.mdf: cannot read".to_owned());
        let entry = NotVerified {
            what: "columns".into(),
            scope: "database".into(),
            reason: "no catalog".into(),
            count: 0,
            limit: &registry::limits::COLUMNS_UNKNOWN,
            objects: Vec::new(),
        };
        report.not_verified.push(entry);
        assert_eq!((status(&report, false), status(&report, true)), (1 + 4 + 16, 1 + 4));
        report.options.allowed.push(&registry::limits::COLUMN_UNKNOWN);
        assert_eq!(status(&report, false), 1 + 4 + 16, "another limit is allowed");
        report.options.allowed.push(&registry::limits::COLUMNS_UNKNOWN);
        assert_eq!(status(&report, false), 1 + 4);
    }
}
