//! Files of salvaged rows: doubtful rows, with their address and the reason for the doubt, and rows rebuilt from
//! indexes.

use std::io;

use format::RecordId;
use rows::Value;
use rows::salvage::{Doubtful, Request, Salvaged, Sink, salvage};
use script::{batch, comment, quote};

use crate::layout::{Field, Kind, Layout};
use crate::script_frame::{GUARDED, guard};
use crate::table::{Destination, Form, SqlFrame, write_rows};
use crate::task::EachRow;

/// The files for salvaged rows. A file without rows is not created.
#[derive(Clone, Debug)]
pub struct SalvageFiles {
    /// The file for doubtful rows, which are possibly not current.
    pub doubtful: Destination,
    /// The file for rebuilt rows: rows of lost pages, assembled from the values in nonclustered indexes.
    pub rebuilt: Destination,
}

/// The form of the files for salvaged rows. Unlike [`Form`], it does not contain the T-SQL statements before and after
/// the rows, because these statements depend on the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SalvageForm {
    /// CSV.
    Csv,
    /// JSON lines.
    JsonLines,
    /// T-SQL that creates a separate table next to the original one: `Orders.doubtful`.
    Sql,
    /// Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// The columns that the file of doubtful rows and the file of rebuilt rows have before the columns of the table.
const IN_FRONT: [(&str, Kind); 3] =
    [("_page", Kind::Text), ("_slot", Kind::Integer { bits: 32 }), ("_why", Kind::Text)];

/// The maximum length of an object name, in UTF-16 code units.
const MOST_NAME_UNITS: usize = 128;

/// Salvages the rows of a table into files.
///
/// # Errors
/// If a file cannot be written. In this case the file of doubtful rows does not exist, but the file of rebuilt rows
/// may.
pub fn write_salvaged(request: &Request<'_>, form: SalvageForm, files: &SalvageFiles) -> io::Result<Salvaged> {
    let layout = Layout::behind(request.table, &IN_FRONT);
    let form_of = |suffix: &str| match form {
        SalvageForm::Csv => Form::Csv,
        SalvageForm::JsonLines => Form::JsonLines,
        SalvageForm::Sql => Form::Sql(frame(request, &layout, suffix)),
        #[cfg(feature = "parquet")]
        SalvageForm::Parquet => Form::Parquet,
    };
    let mut salvaged = None;
    write_rows(&layout, form_of("doubtful"), &files.doubtful, &mut |doubtful| {
        write_rows(&layout, form_of("rebuilt"), &files.rebuilt, &mut |rebuilt| {
            let mut both = Both { doubtful: &mut *doubtful, rebuilt };
            salvaged = Some(salvage(request, &mut both)?);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(salvaged.unwrap_or_default())
}

/// The statements for a separate table. In this table, every column accepts NULL, and the server generates no values.
fn frame(request: &Request<'_>, layout: &Layout, suffix: &str) -> SqlFrame {
    let table = request.table;
    let start = shortened(&table.name, MOST_NAME_UNITS - suffix.len() - 1);
    let name = format!("{}.{}", quote(&table.schema), quote(&format!("{start}.{suffix}")));
    let source = format!("{}.{}", quote(&table.schema), quote(&table.name));
    let named: Vec<&Field> = layout.fields.iter().filter(|field| field.kind != Kind::RowVersion).collect();
    let columns: Vec<String> = named
        .iter()
        .map(|field| match (field.column_id, field.kind) {
            (0, Kind::Text) => format!("CAST(NULL AS nvarchar(400)) AS {}", quote(&field.name)),
            (0, _) => format!("CAST(NULL AS int) AS {}", quote(&field.name)),
            _ => format!("t.{}", quote(&field.name)),
        })
        .collect();
    let names: Vec<String> = named.iter().map(|field| quote(&field.name)).collect();
    // SELECT INTO from an outer join creates columns that accept NULL and do not have the IDENTITY property.
    let what =
        if suffix == "doubtful" { "not proven to be current rows" } else { "assembled from nonclustered indexes" };
    let review = comment(&format!("Rows of {source} that are {what}. Review these rows before you use them."));
    let create = batch(&format!(
        "SELECT TOP (0) {}\nINTO {name}\nFROM (SELECT 1 AS [_one]) AS n LEFT JOIN {source} AS t ON 1 = 0;",
        columns.join(", "),
    ));
    let mut ids: Vec<u32> = named.iter().map(|field| field.column_id).collect();
    ids.sort_unstable();
    ids.dedup();
    SqlFrame {
        before: format!("{review}\n{}{create}", guard(&name)),
        insert: format!("INSERT INTO {name} ({}) VALUES\n", names.join(", ")),
        columns: ids,
        after: GUARDED.to_owned(),
    }
}

/// The longest start of a name with at most `most` UTF-16 code units.
fn shortened(name: &str, most: usize) -> &str {
    let mut units = 0;
    let ends = name.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > most
    });
    ends.and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}

/// Passes doubtful rows and rebuilt rows to their files.
struct Both<'s, 'd, 'r> {
    doubtful: &'s mut EachRow<'d>,
    rebuilt: &'s mut EachRow<'r>,
}

impl Sink for Both<'_, '_, '_> {
    fn doubtful(&mut self, place: RecordId, why: Doubtful, values: &[Value<'_>]) -> io::Result<()> {
        let page = format!("{}:{}", place.page.file, place.page.page);
        let in_front =
            [Value::Text(page.as_str().into()), Value::Integer(place.slot.into()), Value::Text(why.text().into())];
        let values: Vec<Value<'_>> = in_front.iter().chain(values).copied().collect();
        (self.doubtful)(place, &values)
    }

    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()> {
        let why = format!("page lost, values from {indexes}");
        let in_front = [Value::Null, Value::Null, Value::Text(why.as_str().into())];
        let values: Vec<Value<'_>> = in_front.iter().chain(values).copied().collect();
        (self.rebuilt)(RecordId::default(), &values)
    }
}
