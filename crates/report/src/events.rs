//! Extended Events as JSON and CSV: `mdfsck events`.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use events::{Clock, Event, Value, unique_names};

use crate::json::lines::{ErrorText, Named};
use crate::json::{events as lines, line};

/// Maximum number of columns of a CSV file. This is more than a spreadsheet can have.
const MAX_COLUMNS: usize = 20_000;

/// Values with their names.
type Values = [(Arc<str>, Value)];

/// Totals over all files.
#[derive(Clone, Copy, Default, Debug)]
pub struct EventTotals {
    /// Files that were read.
    pub files: u64,
    /// Events that were written.
    pub events: u64,
    /// Values that could not be decoded.
    pub undecoded: u64,
    /// Faults in the files.
    pub faults: u64,
    /// Files that could not be read at all.
    pub unreadable: u64,
}

/// Writes an event as a line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(file: &str, event: &Event, out: &mut dyn io::Write) -> io::Result<()> {
    let (fields, actions) = (names(&event.fields), names(&event.actions));
    let value = lines::EventRecord {
        file,
        name: &event.name,
        package: &event.package,
        at: event.at.map(|at| at.iso(Clock::Utc)),
        fields: named(&fields, &event.fields),
        actions: named(&actions, &event.actions),
    };
    line(&lines::EventLine::Event(value), out)
}

/// Writes a fault as a line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json_error(text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    line(&lines::EventLine::Error(ErrorText::of(text)), out)
}

/// Writes the last line of JSON, which has the totals.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json_summary(totals: EventTotals, out: &mut dyn io::Write) -> io::Result<()> {
    let summary = lines::EventsSummary {
        files: totals.files,
        events: totals.events,
        undecoded_values: totals.undecoded,
        faults: totals.faults,
        complete: totals.faults == 0 && totals.undecoded == 0 && totals.unreadable == 0,
    };
    line(&lines::EventLine::Summary(summary), out)
}

fn names(values: &Values) -> Vec<String> {
    unique_names(values.iter().map(|(name, _)| &**name))
}

fn named<'a>(names: &'a [String], values: &Values) -> Named<'a, lines::EventValue> {
    names.iter().zip(values).map(|(name, (_, value))| (name.as_str(), json(value))).collect()
}

fn json(value: &Value) -> lines::EventValue {
    match value {
        Value::Int(value) => lines::EventValue::Int(*value),
        Value::Float(value) if value.is_finite() => lines::EventValue::Float(*value),
        Value::Boolean(value) => lines::EventValue::Boolean(*value),
        other => lines::EventValue::Text(other.to_string()),
    }
}

/// The columns for events of several kinds: fields and actions in the order in which they first appear.
#[derive(Debug, Default)]
pub struct EventColumns {
    fields: NameList,
    actions: NameList,
}

impl EventColumns {
    /// Adds the names of an event's values. Returns `false` if the table then has too many columns.
    #[must_use]
    pub fn add(&mut self, event: &Event) -> bool {
        self.fields.add(&event.fields);
        self.actions.add(&event.actions);
        self.fields.names.len() + self.actions.names.len() <= MAX_COLUMNS
    }

    /// Writes the names of the columns as CSV.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_head(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let action = |name: &String| match self.fields.places.contains_key(name) {
            true => format!("{name} (action)"),
            false => name.clone(),
        };
        let fields = self.fields.names.iter().cloned();
        let names: Vec<String> = FIRST_COLUMNS
            .map(str::to_owned)
            .into_iter()
            .chain(fields)
            .chain(self.actions.names.iter().map(action))
            .collect();
        write_record(&unique_names(names.iter().map(String::as_str)), out)
    }

    /// Writes an event as a line of CSV.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write(&self, event: &Event, out: &mut dyn io::Write) -> io::Result<()> {
        let at = event.at.map(|at| at.iso(Clock::Utc)).unwrap_or_default();
        let mut cells = vec![at, event.name.to_string()];
        self.fields.cells(&event.fields, &mut cells);
        self.actions.cells(&event.actions, &mut cells);
        write_record(&cells, out)
    }
}

/// The first columns of every CSV line.
const FIRST_COLUMNS: [&str; 2] = ["at", "event"];

fn write_record(cells: &[String], out: &mut dyn io::Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(cells).map_err(io::Error::from)?;
    writer.flush()
}

/// Names in order of their first appearance, each with its position.
#[derive(Debug, Default)]
struct NameList {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl NameList {
    fn add(&mut self, values: &Values) {
        for name in names(values) {
            if !self.places.contains_key(&name) {
                self.places.insert(name.clone(), self.names.len());
                self.names.push(name);
            }
        }
    }

    /// Appends one cell for each name. The cell is empty if the event has no value with this name.
    fn cells(&self, values: &Values, cells: &mut Vec<String>) {
        let mut found = vec![String::new(); self.names.len()];
        for (name, (_, value)) in names(values).iter().zip(values) {
            if let Some(cell) = self.places.get(name).and_then(|place| found.get_mut(*place)) {
                *cell = value.to_string();
            }
        }
        cells.append(&mut found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, fields: &[(&str, Value)], actions: &[(&str, Value)]) -> Event {
        let values = |of: &[(&str, Value)]| of.iter().map(|(name, value)| (Arc::from(*name), value.clone())).collect();
        Event {
            name: Arc::from(name),
            package: Arc::from("sqlserver"),
            at: events::Moment::parse("2016-07-09T03:30:14.023Z").map(|(at, _)| at),
            fields: values(fields),
            actions: values(actions),
        }
    }

    fn text(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_keep_their_types_in_json() {
        let event = event(
            "a",
            &[("id", Value::Int(5)), ("id", Value::BigUint(u64::MAX)), ("f", Value::Float(f64::NAN))],
            &[("id", Value::Text("\u{1b}\"".to_owned())), ("b", Value::Undecoded(vec![1, 255]))],
        );
        let expected = "{\"kind\":\"event\",\"file\":\"f\",\"name\":\"a\",\"package\":\"sqlserver\",\
            \"at\":\"2016-07-09T03:30:14.023Z\",\"fields\":{\"id\":5,\"id (2)\":\"18446744073709551615\",\"f\":\"NaN\"},\
            \"actions\":{\"id\":\"\\u001b\\\"\",\"b\":\"0x01FF\"}}\n";
        assert_eq!(text(|out| write_json("f", &event, out)), expected);
    }

    #[test]
    fn events_of_several_kinds_share_their_columns() {
        let one = event("a", &[("id", Value::Int(5)), ("x", Value::Text("1,\"2\"".to_owned()))], &[]);
        let two = event("b", &[("id", Value::Int(6)), ("at", Value::Int(7))], &[("id", Value::Int(8))]);
        let mut columns = EventColumns::default();
        assert!(columns.add(&one) && columns.add(&two));
        assert_eq!(text(|out| columns.write_head(out)), "at,event,id,x,at (2),id (action)\n");
        assert_eq!(text(|out| columns.write(&one, out)), "2016-07-09T03:30:14.023Z,a,5,\"1,\"\"2\"\"\",,\n");
        assert_eq!(text(|out| columns.write(&two, out)), "2016-07-09T03:30:14.023Z,b,6,,7,8\n");
    }
}
