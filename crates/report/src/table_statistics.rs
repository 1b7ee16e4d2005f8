//! Statistics of tables with their histograms: `mdfsck tables --statistics`.

use std::io;

use catalog::{Database, Statistics, StatisticsColumn, StoredStatistics, Unread, read_statistics};
use format::statistics::{Fault, StatisticsBlob, Step};
use format::types::{TypeInfo, datetime_text, xtype};
use format::value;
use source::PageSource;

use crate::json::catalog as lines;
use crate::json::lines::Line;
use crate::text_table::TextTable;

/// Writes one line for each set of statistics, ordered by table. System objects are included only if `all` is set.
/// Returns false if some statistics could not be read.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(source: &dyn PageSource, database: &Database, all: bool, out: &mut dyn io::Write) -> io::Result<bool> {
    let mut listed = Vec::new();
    let read = read_statistics(source, database, is_wanted(database, all), |statistics, stored| {
        let entry = Entry { database, statistics, content: Content::of(stored) };
        listed.push((entry.object_name(), statistics.id, entry.cells()));
    });
    listed.sort();
    let mut table = TextTable::new(&[4, 5, 6]);
    table.row(["object", "statistics", "columns", "updated", "rows", "NULL", "steps", "from", "to"]);
    for (object, _, [name, columns, updated, rows, nulls, steps, from, to]) in listed {
        table.row([object, name, columns, updated, rows, nulls, steps, from, to]);
    }
    table.write(0, out)?;
    writeln!(out)?;
    writeln!(
        out,
        "The counts of rows, and of rows with NULL in the first column, are from the last update; --json has \
         densities and all steps."
    )?;
    Ok(read.is_ok())
}

/// Writes one JSON object for each set of statistics, in the order of the system table that stores the statistics.
/// Returns false if some statistics could not be read.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(
    source: &dyn PageSource,
    database: &Database,
    all: bool,
    out: &mut dyn io::Write,
) -> io::Result<bool> {
    let mut written = Ok(());
    let read: Result<(), Unread> = read_statistics(source, database, is_wanted(database, all), |statistics, stored| {
        if written.is_ok() {
            let entry = Entry { database, statistics, content: Content::of(stored) };
            written = crate::json::line(&Line::TableStatistics(entry.line()), out);
        }
    });
    written.map(|()| read.is_ok())
}

/// Whether the statistics of an object are listed. Without `all`, only user tables and views are listed.
fn is_wanted(database: &Database, all: bool) -> impl Fn(i32) -> bool {
    let is_table =
        |id: i32| database.objects.get(&id).is_some_and(|object| matches!(object.type_code.as_str(), "U" | "V"));
    move |id| all || is_table(id)
}

/// The stored content of statistics, or the reason why it could not be read.
enum Content<'a> {
    Nothing,
    Blob(StatisticsBlob<'a>),
    Unread(&'static str),
}

impl<'a> Content<'a> {
    fn of(stored: StoredStatistics<'a>) -> Self {
        match stored {
            StoredStatistics::Nothing => Self::Nothing,
            StoredStatistics::Unreadable => Self::Unread("the statistics are stored off the row and cannot be read"),
            StoredStatistics::Blob(bytes) => match StatisticsBlob::read(bytes) {
                Ok(blob) => Self::Blob(blob),
                Err(Fault::Unknown) => Self::Unread("the statistics have an unknown version"),
                Err(Fault::Broken(how)) => Self::Unread(how),
            },
        }
    }
}

/// The catalog's entry for statistics, with their stored content.
struct Entry<'a> {
    database: &'a Database,
    statistics: &'a Statistics,
    content: Content<'a>,
}

impl<'a> Entry<'a> {
    fn object_name(&self) -> String {
        let id = self.statistics.object_id;
        match self.database.objects.get(&id) {
            Some(object) => format!("{}.{}", self.database.schema_name(object), object.name),
            None => format!("object ID {id}"),
        }
    }

    fn columns(&self) -> Vec<String> {
        let columns = self.database.columns.get(&self.statistics.object_id).map(Vec::as_slice).unwrap_or_default();
        let name = |column: &Option<StatisticsColumn>| {
            let known = column.and_then(|column| columns.iter().find(|known| known.id == column.column_id));
            known.map_or_else(|| "?".to_owned(), |known| known.name.clone())
        };
        self.statistics.columns.iter().map(name).collect()
    }

    /// The cells of a line: name, columns, time, rows, rows with NULL, steps, value of the lowest step, value of the
    /// highest step.
    fn cells(&self) -> [String; 8] {
        let (name, columns) = (self.statistics.name.clone(), self.columns().join(", "));
        let blob = match &self.content {
            Content::Blob(blob) => blob,
            Content::Nothing => return row([name, columns, "never".to_owned()]),
            Content::Unread(why) => return row([name, columns, format!("not known: {why}")]),
        };
        let value = |step: Option<&Step<'_>>| step.map_or_else(String::new, |step| self.value(step));
        [
            name,
            columns,
            updated(blob).unwrap_or_else(|| "not recorded".to_owned()),
            blob.rows.to_string(),
            blob.null_rows.to_string(),
            blob.steps.len().to_string(),
            value(blob.steps.first()),
            value(blob.steps.last()),
        ]
    }

    fn value(&self, step: &Step<'_>) -> String {
        let info = self.statistics.columns.first().copied().flatten().map_or(TypeInfo::default(), |column| column.info);
        // For the types text and ntext, a row of the table has only a pointer to the value. A step of the histogram
        // contains the value itself, which is decoded as varchar or nvarchar.
        let info = match info.xtype {
            xtype::TEXT => TypeInfo { xtype: xtype::VARCHAR, ..info },
            xtype::NTEXT => TypeInfo { xtype: xtype::NVARCHAR, ..info },
            _ => info,
        };
        step.value.map_or_else(|| "NULL".to_owned(), |bytes| value::text(info, bytes, 0))
    }

    fn line(&self) -> lines::TableStatistics<'a> {
        let object = self.database.objects.get(&self.statistics.object_id);
        let blob = match &self.content {
            Content::Blob(blob) => Some(blob),
            Content::Nothing | Content::Unread(_) => None,
        };
        let number = |number: f32| number.is_finite().then_some(number);
        let step = |step: &Step<'_>| lines::HistogramStep {
            value: step.value.map(|_| self.value(step)),
            equal_rows: number(step.equal_rows),
            range_rows: number(step.range_rows),
            average_range_rows: number(step.average_range_rows),
        };
        lines::TableStatistics {
            v: crate::json::VERSION,
            object_id: self.statistics.object_id,
            schema: object.map(|object| self.database.schema_name(object)),
            name: object.map(|object| object.name.as_str()),
            statistics_id: self.statistics.id,
            statistics: &self.statistics.name,
            automatic: self.statistics.is_automatic(),
            columns: self.columns(),
            updated: blob.and_then(updated),
            rows: blob.map(|blob| blob.rows),
            null_rows: blob.and_then(|blob| number(blob.null_rows)),
            densities: blob.map(|blob| blob.densities.iter().copied().map(number).collect()).unwrap_or_default(),
            steps: blob.map(|blob| blob.steps.iter().map(step).collect()).unwrap_or_default(),
            problem: match self.content {
                Content::Unread(why) => Some(why),
                Content::Nothing | Content::Blob(_) => None,
            },
        }
    }
}

/// A row in which only the first three cells are known.
fn row(known: [String; 3]) -> [String; 8] {
    let mut cells: [String; 8] = Default::default();
    cells.iter_mut().zip(known).for_each(|(cell, known)| *cell = known);
    cells
}

fn updated(blob: &StatisticsBlob<'_>) -> Option<String> {
    datetime_text(blob.updated.0, blob.updated.1)
}
