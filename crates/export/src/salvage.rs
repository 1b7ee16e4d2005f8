//! Files of salvaged rows: the doubtful ones with where they are and why, and those that were put together from indexes.

use std::io;
use std::path::Path;

use format::RecordId;
use rows::Value;
use rows::salvage::{Doubtful, Request, Salvaged, Sink, salvage};

use crate::layout::{Field, Kind, Layout};
use crate::table::{Destination, EachRow, Form, SqlFrame, write_rows};

/// Where salvaged rows go. A file that would have no row is not made.
#[derive(Clone, Debug)]
pub struct SalvageFiles {
    /// Rows that are not proven to be rows of today.
    pub doubtful: Destination,
    /// Rows of lost pages, as far as nonclustered indexes have them.
    pub rebuilt: Destination,
}

/// A form of file, without what belongs to one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SalvageForm {
    /// CSV.
    Csv,
    /// JSON lines.
    JsonLines,
    /// T-SQL that makes a table of its own beside the table: `Orders.doubtful`.
    Sql,
    /// Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Columns in front of those of the table, in both files.
const IN_FRONT: [(&str, Kind); 3] =
    [("_page", Kind::Text), ("_slot", Kind::Integer { bits: 32 }), ("_why", Kind::Text)];

/// Salvages a table into files.
///
/// # Errors
/// What cannot be written. Then no file has its final name.
pub fn write_salvaged(request: &Request<'_>, form: SalvageForm, files: &SalvageFiles) -> io::Result<Salvaged> {
    let own = Layout::of(request.table);
    let layout = with_place(&own);
    let form_of = |suffix: &str| match form {
        SalvageForm::Csv => Form::Csv,
        SalvageForm::JsonLines => Form::JsonLines,
        SalvageForm::Sql => Form::Sql(frame(request, &layout, suffix)),
        #[cfg(feature = "parquet")]
        SalvageForm::Parquet => Form::Parquet,
    };
    let mut salvaged = None;
    let mut rebuilt_rows = 0;
    let (doubtful_rows, _) = write_rows(&layout, form_of("doubtful"), &files.doubtful, &mut |doubtful| {
        let (rows, _) = write_rows(&layout, form_of("rebuilt"), &files.rebuilt, &mut |rebuilt| {
            let mut both = Both { doubtful: &mut *doubtful, rebuilt };
            salvaged = Some(salvage(request, &mut both)?);
            Ok(())
        })?;
        rebuilt_rows = rows;
        Ok(())
    })?;
    for (rows, file) in [(doubtful_rows, &files.doubtful.rows), (rebuilt_rows, &files.rebuilt.rows)] {
        if rows == 0 {
            remove(file)?;
        }
    }
    Ok(salvaged.unwrap_or_default())
}

fn remove(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The table's columns behind those that say where a row is from.
fn with_place(own: &Layout) -> Layout {
    let in_front = IN_FRONT.iter().enumerate().map(|(source, (name, kind))| Field {
        name: (*name).to_owned(),
        kind: *kind,
        source,
        column_id: 0,
    });
    let own_fields = own.fields.iter().map(|field| Field { source: field.source + IN_FRONT.len(), ..field.clone() });
    Layout { fields: in_front.chain(own_fields).collect(), computed: own.computed.clone() }
}

/// A table of its own, whose columns may all be NULL, and none of which the server makes.
fn frame(request: &Request<'_>, layout: &Layout, suffix: &str) -> SqlFrame {
    let quoted = |name: &str| format!("[{}]", name.replace(']', "]]"));
    let table = request.table;
    let name = format!("{}.{}", quoted(&table.schema), quoted(&format!("{}.{suffix}", table.name)));
    let source = format!("{}.{}", quoted(&table.schema), quoted(&table.name));
    let named: Vec<&Field> = layout.fields.iter().filter(|field| field.kind != Kind::RowVersion).collect();
    let columns: Vec<String> = named
        .iter()
        .map(|field| match (field.column_id, field.kind) {
            (0, Kind::Text) => format!("CAST(NULL AS nvarchar(400)) AS {}", quoted(&field.name)),
            (0, _) => format!("CAST(NULL AS int) AS {}", quoted(&field.name)),
            _ => format!("t.{}", quoted(&field.name)),
        })
        .collect();
    let names: Vec<String> = named.iter().map(|field| quoted(&field.name)).collect();
    // An outer join leaves out IDENTITY and lets every column be NULL.
    let before = format!(
        "-- Rows of {source} that are {}. Review them before they go anywhere else.\nSELECT TOP (0) {}\nINTO {name}\nFROM (SELECT 1 AS [_one]) AS n LEFT JOIN {source} AS t ON 1 = 0;\nGO\n",
        if suffix == "doubtful" { "not proven to be rows of today" } else { "put together from nonclustered indexes" },
        columns.join(", "),
    );
    let mut ids: Vec<u32> = named.iter().map(|field| field.column_id).collect();
    ids.sort_unstable();
    ids.dedup();
    SqlFrame {
        before,
        insert: format!("INSERT INTO {name} ({}) VALUES\n", names.join(", ")),
        columns: ids,
        after: String::new(),
    }
}

/// Both files at once.
struct Both<'s, 'd, 'r> {
    doubtful: &'s mut EachRow<'d>,
    rebuilt: &'s mut EachRow<'r>,
}

impl Sink for Both<'_, '_, '_> {
    fn doubtful(&mut self, place: RecordId, why: Doubtful, values: &[Value<'_>]) -> io::Result<()> {
        let page = format!("{}:{}", place.page.file, place.page.page);
        let in_front = [Value::Text(&page), Value::Integer(place.slot.into()), Value::Text(why.text())];
        let values: Vec<Value<'_>> = in_front.iter().chain(values).copied().collect();
        (self.doubtful)(place, &values)
    }

    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()> {
        let why = format!("page lost, values from {indexes}");
        let in_front = [Value::Null, Value::Null, Value::Text(&why)];
        let values: Vec<Value<'_>> = in_front.iter().chain(values).copied().collect();
        (self.rebuilt)(RecordId::default(), &values)
    }
}
