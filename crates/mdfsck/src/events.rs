//! `mdfsck events`: shows Extended Events as JSON or CSV.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use events::{Event, Kind};
use jobs::failure::Failure;
use jobs::folders;
use report::events::{self as listing, EventColumns, EventTotals};

use crate::cli::{EventsArguments, EventsFormat};
use crate::event_files::{Content, EventReader, content};
use crate::output;
use crate::speaker::warn;

pub(crate) fn run(arguments: &EventsArguments) -> Result<u8, Failure> {
    let is_wanted = |path: &Path| kind(path).is_ok();
    let paths = folders::files(&arguments.paths, "event file (.xel) or export of events (XML)", is_wanted)?;
    let (mut files, mut totals, mut status) = (Vec::new(), EventTotals::default(), 0);
    for path in paths {
        match kind(&path) {
            Ok(kind) => files.push((path, kind)),
            Err(failure) => {
                status |= failure.report();
                totals.unreadable += 1;
            }
        }
    }
    let mut run = Run { arguments, totals, status };
    output::print(|out| match arguments.format() {
        EventsFormat::Json => run.json(&files, out),
        EventsFormat::Csv => run.csv(&files, out),
    })?;
    if run.totals.undecoded > 0 {
        warn(format!(
            "{} values have an unknown type or are damaged; they are shown in hexadecimal",
            run.totals.undecoded
        ));
    }
    if run.totals.faults > 0 || run.totals.undecoded > 0 {
        run.status |= Failure::INCOMPLETE;
    }
    Ok(run.status)
}

/// The format of the events in the file at `path`.
fn kind(path: &Path) -> Result<Kind, Failure> {
    match content(path)? {
        Content::Events(kind @ (Kind::Xel | Kind::Xml)) => Ok(kind),
        Content::Events(Kind::ErrorLog) => Err(Failure::unable(format!(
            "{}: is an error log, which has no events; 'mdfsck checkpoints' reads it",
            path.display()
        ))),
        _ => Err(Failure::unable(format!(
            "{}: has no events; give event files (.xel), or the output of sys.fn_xe_file_target_read_file or of a ring buffer, saved as XML",
            path.display()
        ))),
    }
}

struct Run<'a> {
    arguments: &'a EventsArguments,
    totals: EventTotals,
    status: u8,
}

impl Run<'_> {
    fn json(&mut self, files: &[(PathBuf, Kind)], out: &mut dyn Write) -> io::Result<()> {
        for (path, kind) in files {
            let file = path.display().to_string();
            let mut texts = Vec::new();
            self.each(path, *kind, |event| listing::write_json(&file, event, out), |text| texts.push(text.to_owned()))?;
            texts.iter().try_for_each(|text| listing::write_json_error(text, out))?;
        }
        listing::write_json_summary(self.totals, out)
    }

    /// Reads the files twice, since the first line of a CSV file names the columns of all events.
    fn csv(&mut self, files: &[(PathBuf, Kind)], out: &mut dyn Write) -> io::Result<()> {
        let mut columns = EventColumns::default();
        for (path, kind) in files {
            let Ok(mut reader) = EventReader::open(path, *kind, &self.arguments.name) else { continue };
            reader.each_quietly(|event| match !self.arguments.wants(&event) || columns.add(&event) {
                true => Ok(()),
                false => Err(io::Error::other(
                    "the events have more different fields than the table can have columns; use --name",
                )),
            })?;
        }
        columns.write_head(out)?;
        for (path, kind) in files {
            self.each(path, *kind, |event| columns.write(event, out), |_| {})?;
        }
        Ok(())
    }

    /// Passes the requested events of a file to `write`, and counts them.
    fn each(
        &mut self,
        path: &Path,
        kind: Kind,
        mut write: impl FnMut(&Event) -> io::Result<()>,
        fault: impl FnMut(&str),
    ) -> io::Result<()> {
        let mut reader = match EventReader::open(path, kind, &self.arguments.name) {
            Ok(reader) => reader,
            Err(failure) => {
                self.status |= failure.report();
                self.totals.unreadable += 1;
                return Ok(());
            }
        };
        let (arguments, totals) = (self.arguments, &mut self.totals);
        totals.files += 1;
        let each = |event: Event| {
            if !arguments.wants(&event) {
                return Ok(());
            }
            totals.events += 1;
            totals.undecoded += event.undecoded();
            write(&event)
        };
        reader.each(each, fault)?;
        self.totals.faults += reader.faults();
        Ok(())
    }
}

impl EventsArguments {
    fn format(&self) -> EventsFormat {
        if self.json { EventsFormat::Json } else { self.format }
    }

    fn wants(&self, event: &Event) -> bool {
        self.name.is_empty() || self.name.iter().any(|name| **name == *event.name)
    }
}
