//! Parts of statements that several steps use. A name from a file is not put into a statement if a script runner could
//! misread the name.

use std::path::Path;

use catalog::{Constraint, ConstraintKind};
use format::PageId;
use script::{quote, quote_text};
use source::backup::{ChainSet, SetKind};
use source::storage;

use crate::request::Request;

/// The comment that replaces statements that cannot be written.
pub(crate) const BY_HAND: &str = "-- A name or path is not plain text: write the statements by hand.";

/// The statement behind each backup and restore of a sequence: after an error, the server executes nothing more, so
/// that it does not recover the database at an earlier point in time.
const STOP_ON_ERROR: &str = "IF @@ERROR <> 0 SET NOEXEC ON;";

/// The maximum number of file names to try for the tail of the log.
const MOST_TAILS: u32 = 100;

/// The quoted name of a database; `None` if a script runner would change it.
pub(crate) fn database(name: &str) -> Option<String> {
    is_plain(name).then(|| quote(name))
}

/// Whether every script runner passes the text on unchanged. sqlcmd replaces `$(` variables, and script runners
/// interpret some lines as commands, such as GO.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.contains("$(") && !text.chars().any(ends_line)
}

/// Whether a program may begin a new line at this character, or may react to the character in a way other than printing
/// it.
fn ends_line(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

/// Whether script runners pass on all names in statements about an object unchanged: the names of the database, the
/// object, its schema, columns, indexes and constraints, and of the objects that refer to the object.
pub(crate) fn are_plain(request: &Request<'_>, object_id: i32) -> bool {
    let database = request.database;
    let is_plain_object = |object_id: i32| {
        let object = database.objects.get(&object_id);
        object.is_none_or(|object| is_plain(&object.name) && is_plain(database.schema_name(object)))
    };
    let refers = |constraint: &&Constraint| {
        let is_of_it = constraint.table_id == object_id;
        is_of_it
            || matches!(constraint.kind, ConstraintKind::ForeignKey { referenced_id, .. } if referenced_id == object_id)
    };
    let mut columns = database.columns.get(&object_id).into_iter().flatten();
    let mut indexes = database.indexes.range((object_id, 0)..=(object_id, i32::MAX));
    let mut constraints = database.constraints.iter().filter(refers);
    is_plain(&request.report.database.name)
        && is_plain_object(object_id)
        && columns.all(|column| is_plain(&column.name))
        && indexes.all(|(_, index)| is_plain(&index.name))
        && constraints.all(|constraint| is_plain(&constraint.name) && is_plain_object(constraint.table_id))
}

/// The text as comment lines, even if it contains line breaks.
pub(crate) fn commented(text: &str) -> String {
    // sqlcmd replaces variables in comments too.
    let lines = text.split(ends_line).map(|line| format!("-- {}", line.replace("$(", "$ (")));
    lines.collect::<Vec<_>>().join("\n")
}

/// A sequence of statements that stops at the first backup or restore that fails.
pub(crate) fn stopping_on_errors(sql: Vec<String>) -> Vec<String> {
    let may_fail = |sql: &str| sql.starts_with("RESTORE ") || sql.starts_with("BACKUP ");
    sql.into_iter()
        .flat_map(|sql| {
            let check = may_fail(&sql).then(|| STOP_ON_ERROR.to_owned());
            [Some(sql), check].into_iter().flatten()
        })
        .collect()
}

/// A list of pages in the form that RESTORE expects: `1:57, 1:202`.
pub(crate) fn page_list(pages: &[PageId]) -> String {
    let texts: Vec<String> = pages.iter().map(|page| format!("{}:{}", page.file, page.page)).collect();
    texts.join(", ")
}

/// The clauses ` FROM DISK = N'...', DISK = N'...' WITH FILE = 1, NORECOVERY` for a backup set; `None` if a script
/// runner could misread a path.
pub(crate) fn from(set: &ChainSet) -> Option<String> {
    let devices: Option<Vec<String>> = set.paths.iter().map(|path| device(path)).collect();
    Some(format!("\n    FROM {}\n    WITH FILE = {}, NORECOVERY;", devices?.join(",\n         "), set.set.position))
}

/// Returns `DISK = N'...'`, or `URL = N'...'` for object storage; `None` if a script runner could misread the path.
fn device(path: &Path) -> Option<String> {
    let (device, place) = storage::device(path)?;
    is_plain(&place).then(|| format!("{device} = {}", quote_text(&place)))
}

/// The full path of a file as a text literal; `None` if a script runner could misread the path.
fn disk(path: &Path) -> Option<String> {
    let (_, place) = storage::device(path)?;
    is_plain(&place).then(|| quote_text(&place))
}

/// Returns the statement `RESTORE DATABASE` or `RESTORE LOG` for a whole backup set; `None` if a script runner could
/// misread a path.
pub(crate) fn restore(database: &str, set: &ChainSet) -> Option<String> {
    let what = if set.set.kind == SetKind::Log { "LOG" } else { "DATABASE" };
    Some(format!("RESTORE {what} {database}{}", from(set)?))
}

/// The path of a new file for the tail of the log, in the folder of the last backup. No file of this name exists yet.
pub(crate) fn tail_file(steps: &[ChainSet], name: &str) -> String {
    let folder = steps.last().and_then(|set| set.paths.first()).and_then(|path| path.parent());
    // The tail is written to disk, so a folder in object storage is not used.
    let folder = folder.filter(|folder| storage::url(folder).is_none());
    let plain: String = name.chars().map(|char| if char.is_alphanumeric() { char } else { '_' }).collect();
    let file = |number: u32| {
        let number = if number == 1 { String::new() } else { number.to_string() };
        folder.unwrap_or(Path::new("")).join(format!("{plain}_tail{number}.trn"))
    };
    let free = (1..=MOST_TAILS).map(file).find(|path| !path.exists());
    free.and_then(|path| disk(&path)).unwrap_or_else(|| quote_text("tail.trn"))
}

/// The statement that checks the whole database. The steps that change the database end with this statement.
pub(crate) fn check_again(name: &str) -> String {
    format!("DBCC CHECKDB ({}) WITH NO_INFOMSGS, ALL_ERRORMSGS;", quote_text(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_sqlcmd_would_change_is_not_written() {
        assert_eq!(database("a]b").as_deref(), Some("[a]]b]"));
        for name in ["$(x)", "a\nb", "a\nGO\nDROP TABLE b", "a\r!!dir", "a\u{2028}GO", "a\u{85}b"] {
            assert_eq!(database(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_sequence_stops_at_the_first_restore_that_fails() {
        let sql = ["USE [master];", "-- RESTORE LOG [a]", "RESTORE LOG [a] FROM DISK = N'b'"].map(str::to_owned);
        let stopping = stopping_on_errors(sql.to_vec());
        assert_eq!(stopping.last().map(String::as_str), Some(STOP_ON_ERROR));
        assert_eq!(stopping.len(), 4);
    }

    #[test]
    fn a_comment_has_no_line_that_is_none() {
        let text = "WHERE ([a]='x\rGO\n!!dir\u{2028}$(b)')";
        assert_eq!(commented(text), "-- WHERE ([a]='x\n-- GO\n-- !!dir\n-- $ (b)')");
    }

    #[test]
    fn pages_are_listed_as_restore_takes_them() {
        assert_eq!(page_list(&[PageId::new(1, 57), PageId::new(3, 202)]), "1:57, 3:202");
    }
}
