//! The results of `mdfsck export`.

use std::io;

use format::PageId;

use crate::json::export as lines;
use crate::json::{VERSION, line};
use crate::text_table::{TextTable, printable};

/// Maximum number of pages that are listed for each table.
pub const MOST_PAGES: usize = 1000;
/// Maximum number of pages that the text for people names for each table.
const SHOWN_PAGES: usize = 3;
const MEGABYTE: u64 = 1 << 20;

/// A table, and the file with its rows.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The table's name with its schema.
    pub object: String,
    /// The table's object ID.
    pub object_id: i32,
    /// The name of the file, or the reason why there is no file.
    pub file: Result<String, String>,
    /// Rows in the file.
    pub rows: u64,
    /// Number of rows in the second file, which contains the doubtful rows.
    pub doubtful: u64,
    /// Number of rows in the third file, which contains the rows rebuilt from nonclustered indexes.
    pub rebuilt: u64,
    /// Rows known to be lost.
    pub known_lost: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The order of the rows.
    pub order: String,
    /// Columns that no file contains, because they are computed.
    pub computed_columns: Vec<String>,
    /// Number of values that could not be read and are therefore written as NULL.
    pub unreadable_values: u64,
    /// The file that lists the unreadable values.
    pub unreadable_file: String,
    /// Number of texts in which U+FFFD replaces bytes that do not encode a character.
    pub altered_texts: u64,
    /// Number of values that are written as the bytes stored on the page.
    pub values_as_stored: u64,
    /// Number of pages whose rows are not in the file.
    pub pages_left_out: u64,
    /// Number of the pages counted in `pages_left_out` whose data file was not given.
    pub pages_not_given: u64,
    /// The first [`MOST_PAGES`] pages that were left out, each with the reason.
    pub left_out: Vec<(PageId, String)>,
    /// Number of records that are on sound pages but not in the file.
    pub records_left_out: u64,
    /// What the description of the table rests on, if the catalog cannot be read along its own pointers.
    pub rests_on: Option<String>,
}

impl Exported {
    /// Whether the file contains everything in the table.
    pub fn is_complete(&self) -> bool {
        self.file.is_ok() && self.pages_left_out == 0 && self.records_left_out == 0 && self.unreadable_values == 0
    }
}

/// A procedure, function, view or trigger.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name with its schema.
    pub object: String,
    /// `PROCEDURE`, `FUNCTION`, `VIEW` or `TRIGGER`.
    pub type_name: &'static str,
    /// The name of the file, or the reason why there is no file.
    pub file: Result<String, &'static str>,
}

/// Writes the results for a table as a line of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(table: &Exported, out: &mut dyn io::Write) -> io::Result<()> {
    let left_out = table.left_out.iter().take(MOST_PAGES);
    let left_out = left_out.map(|(page, why)| lines::PageLeftOut { page: address(*page), why: why.clone() });
    let exported = lines::ExportedTable {
        v: VERSION,
        object: &table.object,
        object_id: table.object_id,
        file: table.file.as_deref().ok(),
        reason: table.file.as_ref().err().map(String::as_str),
        rows: table.rows,
        doubtful: table.doubtful,
        rebuilt: table.rebuilt,
        known_lost: table.known_lost,
        bytes: table.bytes,
        order: &table.order,
        computed_columns: &table.computed_columns,
        unreadable_values: table.unreadable_values,
        altered_texts: table.altered_texts,
        values_as_stored: table.values_as_stored,
        pages_left_out: table.pages_left_out,
        left_out: left_out.collect(),
        records_left_out: table.records_left_out,
        rests_on: table.rests_on.as_deref(),
    };
    line(&lines::ExportLine::Table(exported), out)
}

fn address(page: PageId) -> String {
    format!("{}:{}", page.file, page.page)
}

/// Writes a line of JSON for each definition.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_definitions_json(definitions: &[Definition], out: &mut dyn io::Write) -> io::Result<()> {
    definitions.iter().try_for_each(|definition| {
        let exported = lines::ExportedDefinition {
            v: VERSION,
            object: &definition.object,
            type_name: definition.type_name,
            file: definition.file.as_deref().ok(),
            reason: definition.file.as_ref().err().copied(),
        };
        line(&lines::ExportLine::Definition(exported), out)
    })
}

/// Writes the last line of JSON, which has the totals.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_summary_json(tables: &[Exported], is_complete: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let written = || tables.iter().filter(|table| table.file.is_ok());
    let summary = lines::ExportSummary {
        tables: written().count() as u64,
        not_readable: tables.iter().filter(|table| table.file.is_err()).count() as u64,
        rows: written().map(|table| table.rows).sum(),
        bytes: written().map(|table| table.bytes).sum(),
        complete: is_complete,
    };
    line(&lines::ExportLine::Summary(summary), out)
}

/// Writes the results for people: a line per table, the missing data, and the totals.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_text(
    tables: &[Exported],
    definitions: &[Definition],
    folder: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut list = TextTable::new(&[1, 2]);
    list.row(["table", "rows", "MB", "file"]);
    for table in tables {
        match &table.file {
            Ok(file) => list.row([&table.object, &table.rows.to_string(), &megabytes(table.bytes), file]),
            Err(why) => list.row([&table.object, "-", "-", &format!("none: {why}")]),
        }
    }
    list.write(0, out)?;
    for definition in definitions.iter().filter(|definition| definition.file.is_err()) {
        let why = definition.file.as_ref().err().copied().unwrap_or_default();
        writeln!(out, "{}: no file: {why}", printable(&definition.object))?;
    }
    for table in tables.iter().filter(|table| table.file.is_ok()) {
        let object = printable(&table.object);
        remarks(table).iter().try_for_each(|remark| writeln!(out, "{object}: {remark}"))?;
    }
    let written: Vec<&Exported> = tables.iter().filter(|table| table.file.is_ok()).collect();
    let rows: u64 = written.iter().map(|table| table.rows).sum();
    let bytes: u64 = written.iter().map(|table| table.bytes).sum();
    let texts = definitions.iter().filter(|definition| definition.file.is_ok()).count();
    let texts = if definitions.is_empty() { String::new() } else { format!(", {}", count(texts as u64, "definition")) };
    let tables = count(written.len() as u64, "table");
    writeln!(out, "{tables}, {}, {} MB{texts} in {}", count(rows, "row"), megabytes(bytes), printable(folder))
}

/// Remarks that a user of the file must know.
fn remarks(table: &Exported) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(rests_on) = &table.rests_on {
        remarks.push(format!("its columns rest on {rests_on}"));
    }
    if table.pages_left_out > 0 {
        let shown: Vec<String> =
            table.left_out.iter().take(SHOWN_PAGES).map(|(page, why)| format!("{page}: {why}")).collect();
        let more = match table.pages_left_out.saturating_sub(SHOWN_PAGES as u64) {
            0 => String::new(),
            more if table.pages_left_out > MOST_PAGES as u64 => {
                format!("; and {more} more; --json lists the first {MOST_PAGES}")
            }
            more => format!("; and {more} more, which --json lists"),
        };
        let pages = count(table.pages_left_out, "page");
        remarks.push(format!("the rows of {pages} are not in the file ({}{more})", shown.join("; ")));
    }
    let beside = |suffix: &str| match table.file.as_deref().unwrap_or_default().rsplit_once('.') {
        Some((name, end)) => format!("{name}.{suffix}.{end}"),
        None => suffix.to_owned(),
    };
    if table.doubtful > 0 {
        remarks.push(format!(
            "{} in {}: not proven sound, each with the reason",
            count(table.doubtful, "row"),
            beside("doubtful")
        ));
    }
    if table.rebuilt > 0 {
        let rows = count(table.rebuilt, "row");
        remarks
            .push(format!("{rows} of lost pages in {}: the columns that nonclustered indexes have", beside("rebuilt")));
    }
    if table.known_lost > 0 {
        remarks.push(format!("{} known to be lost", count(table.known_lost, "row")));
    }
    if table.records_left_out > 0 {
        let records = count(table.records_left_out, "record");
        remarks.push(format!("{records} on sound pages cannot be read and {} left out", are(table.records_left_out)));
    }
    if table.unreadable_values > 0 {
        let values = count(table.unreadable_values, "value");
        let stand = if table.unreadable_values == 1 { "appears" } else { "appear" };
        remarks.push(format!("{values} cannot be read and {stand} as NULL; {} lists them", table.unreadable_file));
    }
    if table.altered_texts > 0 {
        remarks.push(format!("{} with U+FFFD in place of invalid characters", count(table.altered_texts, "text")));
    }
    if table.values_as_stored > 0 {
        let values = count(table.values_as_stored, "value");
        remarks.push(format!(
            "{values} as stored bytes: the client encrypted them, or no published form can express them"
        ));
    }
    if !table.computed_columns.is_empty() {
        let columns = table.computed_columns.join(", ");
        remarks.push(format!("computed when read and therefore not in the file: {}", printable(&columns)));
    }
    remarks
}

fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / MEGABYTE as f64)
}

/// Writes rows as an aligned table. If `columns` is given, long values are cut so that the table is at most this many
/// terminal columns wide. A NULL value is written as `NULL`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_rows(
    names: &[String],
    rows: &[Vec<Option<String>>],
    columns: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    use crate::text_table::{padded, width};
    const LEAST: usize = 8;
    const MOST: usize = 40;
    let cell = |value: &Option<String>| {
        let text = value.as_deref().unwrap_or("NULL");
        let one_line: String = text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).collect();
        printable(&one_line).into_owned()
    };
    let head: Vec<String> = names.iter().map(|name| printable(name).into_owned()).collect();
    let body: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let most = |nth: usize| {
        let cells = body.iter().filter_map(|row| row.get(nth)).chain(head.get(nth));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(most).collect();
    if let Some(columns) = columns {
        // The widest columns are narrowed first.
        let mut limit = MOST;
        let total = |widths: &[usize], limit: usize| widths.iter().map(|width| (*width).min(limit) + 2).sum::<usize>();
        while limit > LEAST && total(&widths, limit) > columns {
            limit -= 1;
        }
        widths.iter_mut().for_each(|width| *width = (*width).min(limit));
    }
    for row in std::iter::once(&head).chain(&body) {
        let mut text = String::new();
        for (cell, columns) in row.iter().zip(&widths) {
            text.push_str(&padded(&cut(cell, *columns), *columns + 2));
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// `text` if it fits into `columns`, otherwise its start followed by an ellipsis.
fn cut(text: &str, columns: usize) -> String {
    use crate::text_table::width;
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width(&kept) + width(c.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        kept.push(c);
    }
    kept.push('\u{2026}');
    kept
}
