//! Results of WITH TABLERESULTS: CSV of sqlcmd, SSMS or PowerShell, with or without a line of names, or columns of fixed
//! width.
//!
//! sqlcmd and SSMS do not quote a text that contains the separator. Such a row has more fields than there are columns,
//! and the surplus fields belong to the column MessageText.

use std::ops::Range;

use format::PageId;

use super::message::{Message, Place};
use super::template::signed;
use crate::heading::LEVELS;

/// The separators of fields. A blank separates only columns of fixed width.
const SEPARATORS: [u8; 4] = *b",\t;|";
/// The number of lines at the start of a file among which the line with the names of the columns is looked for.
const BEFORE_NAMES: usize = 200;
/// The largest number of columns. TABLERESULTS has 23.
const MOST_COLUMNS: usize = 64;
/// The largest number of fields of a row. A text that is not quoted may have any number of separators.
const MOST_FIELDS: usize = 4096;

/// The first columns of a table without names.
const FIRST: [&str; 4] = ["error", "level", "state", "messagetext"];
/// The columns behind MessageText in the results of SQL Server 2012 and later, and of 2005 to 2008 R2.
const BEHIND_TEXT: [&[&str]; 2] = [
    &[
        "repairlevel",
        "status",
        "dbid",
        "dbfragid",
        "objectid",
        "indexid",
        "partitionid",
        "allocunitid",
        "riddbid",
        "ridpruid",
        "file",
        "page",
        "slot",
        "refdbid",
        "refpruid",
        "reffile",
        "refpage",
        "refslot",
        "allocation",
    ],
    &[
        "repairlevel",
        "status",
        "dbid",
        "id",
        "indid",
        "partitionid",
        "allocunitid",
        "file",
        "page",
        "slot",
        "reffile",
        "refpage",
        "refslot",
        "allocation",
    ],
];

/// How the rows of a file are divided into columns.
pub(super) struct Layout {
    /// The separator; `None` for columns of fixed width.
    separator: Option<u8>,
    /// Whether fields may be in quotation marks.
    is_quoted: bool,
    /// The names of the columns in small letters; empty if the file has no names.
    names: Vec<String>,
    /// The columns of fixed width, in characters.
    spans: Vec<Range<usize>>,
    /// The number of bytes before the first row.
    start: usize,
}

impl Layout {
    /// The layout of a text; `None` if the text is no table.
    pub(super) fn of(text: &str) -> Option<Self> {
        Self::named(text).or_else(|| Self::unnamed(text))
    }

    /// A table with a line of names.
    fn named(text: &str) -> Option<Self> {
        let mut lines = text.split_inclusive('\n').take(BEFORE_NAMES).peekable();
        let mut start = 0;
        while let Some(line) = lines.next() {
            start += line.len();
            if !is_line_of_names(line) {
                continue;
            }
            let by = |separator: &u8| line.bytes().filter(|byte| byte == separator).count();
            let separator = SEPARATORS.into_iter().find(|separator| by(separator) >= 3);
            let dashes = lines.peek().filter(|next| is_dashes(next));
            let spans = match (separator, dashes) {
                (None, Some(dashes)) => spans(dashes),
                (None, None) => return None,
                (Some(_), _) => Vec::new(),
            };
            let named = Self { separator, is_quoted: is_quoted(text, separator), names: Vec::new(), spans, start };
            let names: Vec<String> =
                named.split(line).iter().map(|name| name.trim_matches('"').to_ascii_lowercase()).collect();
            return (names.len() <= MOST_COLUMNS).then_some(Self { names, ..named });
        }
        None
    }

    /// A table without names, whose first row begins with a number, a level and a state.
    fn unnamed(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        let separator = SEPARATORS.into_iter().find(|&separator| {
            let layout = Self {
                separator: Some(separator),
                is_quoted: is_quoted(line, Some(separator)),
                names: Vec::new(),
                spans: Vec::new(),
                start: 0,
            };
            layout.message(&layout.split(line)).is_some()
        })?;
        let separator = Some(separator);
        Some(Self { separator, is_quoted: is_quoted(text, separator), names: Vec::new(), spans: Vec::new(), start: 0 })
    }

    /// The fields of a line.
    fn split(&self, line: &str) -> Vec<String> {
        let line = line.trim_end_matches(['\r', '\n']);
        let Some(separator) = self.separator else {
            let (mut rest, mut passed) = (line, 0);
            let field = |span: &Range<usize>| {
                let (_, from) = split_after(rest, span.start.saturating_sub(passed));
                let (field, behind) = split_after(from, span.len());
                (rest, passed) = (behind, span.end);
                field.trim().to_owned()
            };
            return self.spans.iter().map(field).collect();
        };
        let mut fields = Vec::new();
        let mut records = self.reader(separator, line.as_bytes());
        if let Some(Ok(record)) = records.records().next() {
            fields.extend(record.iter().take(MOST_FIELDS).map(|field| field.trim().to_owned()));
        }
        fields
    }

    fn reader<'a>(&self, separator: u8, bytes: &'a [u8]) -> csv::Reader<&'a [u8]> {
        csv::ReaderBuilder::new()
            .delimiter(separator)
            .quoting(self.is_quoted)
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes)
    }

    /// Passes each row of the text to `row`: its message, or the row as text if it is no message.
    pub(super) fn rows(&self, text: &str, mut row: impl FnMut(Result<Message, String>)) {
        let text = text.get(self.start..).unwrap_or_default();
        let mut fields = |fields: &[String]| match self.message(fields) {
            Some(message) => row(Ok(message)),
            None => row(Err(fields.join(" ").trim().to_owned())),
        };
        let Some(separator) = self.separator else {
            text.lines().for_each(|line| match self.message(&self.split(line)) {
                Some(message) => row(Ok(message)),
                None => row(Err(line.trim().to_owned())),
            });
            return;
        };
        let mut reader = self.reader(separator, text.as_bytes());
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).unwrap_or(false) {
            let split: Vec<String> = record.iter().take(MOST_FIELDS).map(|field| field.trim().to_owned()).collect();
            fields(&split);
        }
    }

    /// The message in the fields of a row.
    fn message(&self, fields: &[String]) -> Option<Message> {
        let behind = if self.names.is_empty() { Some(behind(fields)?) } else { None };
        let count = behind.map_or(self.names.len(), |behind| FIRST.len() + behind.len());
        let surplus = fields.len().checked_sub(count)?;
        let names: Vec<&str> = match behind {
            Some(behind) => FIRST.iter().chain(behind).copied().collect(),
            None => self.names.iter().map(String::as_str).collect(),
        };
        let text_at = names.iter().position(|&name| name == "messagetext")?;
        let column = |wanted: &[&str]| {
            let at = names.iter().position(|name| wanted.contains(name))?;
            let field = fields.get(if at > text_at { at + surplus } else { at })?;
            Some(field.as_str()).filter(|field| !field.is_empty() && !field.eq_ignore_ascii_case("null"))
        };
        let (number, level) = (column(&["error"])?.parse().ok()?, column(&["level"])?.parse::<u8>().ok()?);
        let level = Some(level).filter(|&level| LEVELS.contains(&level.into()))?;
        let state = column(&["state"])?.parse().ok()?;
        let separator = self.separator.map_or(' ', char::from).to_string();
        let text = fields.get(text_at..=text_at + surplus)?.join(&separator);
        let id = |name: &[&str]| column(name).and_then(|id| id.parse::<i32>().ok());
        let file = column(&["file"]).and_then(|file| file.parse().ok());
        let page = file.zip(column(&["page"]).and_then(signed)).map(|(file, page)| PageId { file, page });
        let page = page.filter(|&page| page != PageId::NONE);
        let object = id(&["objectid", "id"]).filter(|&id| id != 0);
        let place = Place {
            object,
            index: object.and(id(&["indexid", "indid"])),
            page,
            slot: page.and(column(&["slot"])).and_then(|slot| slot.parse().ok()),
        };
        let has_columns = names.iter().any(|name| ["page", "objectid", "id"].contains(name));
        Some(Message::new(number, level, state, &text, has_columns.then_some(place)))
    }
}

/// A text divided behind its first characters.
fn split_after(text: &str, characters: usize) -> (&str, &str) {
    let at = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// The names of the columns behind the text of a row without names. `None` if the row is no row of TABLERESULTS.
fn behind(fields: &[String]) -> Option<&'static [&'static str]> {
    let is_number =
        |field: &String| field.parse::<i64>().is_ok() || field.is_empty() || field.eq_ignore_ascii_case("null");
    let is_start = fields.first()?.parse::<u32>().is_ok() && fields.get(1)?.parse::<u8>().is_ok();
    let fits = |names: &&&[&str]| {
        let Some(at) = fields.len().checked_sub(names.len()).filter(|&at| at >= 4) else { return false };
        let mut behind = fields.get(at..).unwrap_or_default().iter();
        let repair = behind.next().map(|field| field.to_ascii_lowercase()).unwrap_or_default();
        (repair.is_empty() || repair == "null" || repair.starts_with("repair_")) && behind.all(is_number)
    };
    BEHIND_TEXT.iter().find(fits).copied().filter(|_| is_start)
}

fn is_line_of_names(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut has = |name: &str| words.any(|word| word.eq_ignore_ascii_case(name));
    has("error") && has("level") && has("state") && has("messagetext")
}

/// Whether this is the line with which sqlcmd separates the names from the rows.
pub(super) fn is_dashes(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("--")
        && line.chars().all(|c| c == '-' || c == ' ' || SEPARATORS.iter().any(|&s| char::from(s) == c))
}

fn spans(dashes: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = 0;
    for column in dashes.trim_end_matches(['\r', '\n']).split(' ') {
        let end = start + column.len();
        // One column too many is enough to refuse the table.
        if !column.is_empty() && spans.len() <= MOST_COLUMNS {
            spans.push(start..end);
        }
        start = end + 1;
    }
    spans
}

/// Whether a field begins with a quotation mark. In messages, a quotation mark never follows a separator directly.
fn is_quoted(text: &str, separator: Option<u8>) -> bool {
    let Some(separator) = separator.map(char::from) else { return false };
    text.starts_with('"') || text.contains(&format!("{separator}\"")) || text.contains("\n\"")
}
