//! The places that a message names: database, object, index, page, file.

use format::PageId;

/// Maximum number of files to keep for each event.
pub(super) const MOST_FILES: usize = 3;
/// Maximum number of places of a word to look at in one message.
const MOST_PLACES: usize = 8;
/// Maximum number of characters of a name to keep.
const LONGEST_NAME: usize = 128;

/// How a message names a database.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Database {
    Named(String),
    Id(u32),
}

/// The places in a text.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) database: Option<Database>,
    /// A database ID and the name beside it.
    pub(super) names_database: Option<(u32, String)>,
    pub(super) object_id: Option<u32>,
    pub(super) object: Option<String>,
    pub(super) index: Option<u32>,
    pub(super) page: Option<PageId>,
    /// The name of a data or log file, without its folder.
    pub(super) file: Option<String>,
    pub(super) is_of_snapshot: bool,
}

impl Places {
    pub(super) fn of(text: &str) -> Self {
        let named = database_name(text);
        let id = number_behind(text, "database id");
        // In `database 'Shop' (11)` and `database [Shop] (5)`, the ID has no words.
        let bare = named.as_ref().and_then(|(_, rest)| {
            let digits = rest.trim_start().strip_prefix('(')?;
            number(digits.trim_start())
        });
        let name = named.map(|(name, _)| name).or_else(|| argument_of_dbcc(text));
        let names_database = id.or(bare).zip(name.clone()).filter(|(id, _)| *id > 0);
        let database = name.map(Database::Named).or(id.filter(|id| *id > 0).map(Database::Id));
        Self {
            database,
            names_database,
            object_id: number_behind(text, "object id").filter(|id| *id > 0),
            object: name_behind(text, "table '").or_else(|| name_behind(text, "object '")),
            index: number_behind(text, "index id"),
            page: page(text),
            file: file(text),
            is_of_snapshot: text.contains("MSSQL_DBCC"),
        }
    }
}

/// The name of a database and the text behind it: a name in quotes or brackets behind the word `database`.
fn database_name(text: &str) -> Option<(String, &str)> {
    behind_word(text, "database").find_map(|rest| {
        let rest = rest.trim_start();
        let open = rest.chars().next()?;
        let close = match open {
            '\'' | '"' => open,
            '[' => ']',
            '“' => '”',
            '‘' => '’',
            _ => return None,
        };
        let (name, behind) = rest.get(open.len_utf8()..)?.split_once(close)?;
        Some((short(name)?, behind))
    })
}

/// The database in `DBCC CHECKDB (Shop, repair_rebuild) WITH ...`.
fn argument_of_dbcc(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("DBCC CHECK")?;
    let (_, rest) = rest.split_once('(').filter(|(before, _)| before.len() < 16)?;
    let end = rest.find([',', ')'])?;
    short(rest.get(..end)?.trim_matches([' ', '\'', '[', ']']))
}

/// The name up to the next single quote, behind `mark`.
fn name_behind(text: &str, mark: &str) -> Option<String> {
    let rest = behind_word(text, mark).next()?;
    short(rest.split_once('\'')?.0)
}

/// The first number behind a word, with blanks or a colon between them.
fn number_behind(text: &str, word: &str) -> Option<u32> {
    behind_word(text, word).find_map(|rest| number(rest.trim_start_matches([' ', ':', '='])))
}

fn number(text: &str) -> Option<u32> {
    digits(text)?.0.parse().ok()
}

/// The texts behind the first places of a word in ASCII. Upper and lower case are equal. The limit bounds the work for
/// a line that repeats the word.
fn behind_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let (bytes, word) = (text.as_bytes(), word.as_bytes());
    let windows = bytes.windows(word.len()).enumerate();
    let found = windows.filter(move |(_, window)| window.eq_ignore_ascii_case(word)).take(MOST_PLACES);
    found.filter_map(move |(at, _)| text.get(at + word.len()..))
}

/// The first page in a text: `(1:57)`, or `page 1:57`. LSNs have three parts, and (0:0) is no page.
fn page(text: &str) -> Option<PageId> {
    let in_parentheses = text.match_indices('(').filter_map(|(at, _)| {
        let (page, rest) = page_at(text.get(at + 1..)?)?;
        rest.starts_with(')').then_some(page)
    });
    let named = behind_word(text, "page ").filter_map(|rest| {
        let (page, rest) = page_at(rest)?;
        (!rest.starts_with(':')).then_some(page)
    });
    in_parentheses.chain(named).find(|page: &PageId| page.file > 0)
}

fn page_at(text: &str) -> Option<(PageId, &str)> {
    let (file, rest) = digits(text)?;
    let (page, rest) = digits(rest.strip_prefix(':')?)?;
    Some((PageId::new(file.parse().ok()?, page.parse().ok()?), rest))
}

fn digits(text: &str) -> Option<(&str, &str)> {
    text.split_at_checked(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The name of a data or log file in a text, without its folder and without the name of a snapshot.
fn file(text: &str) -> Option<String> {
    [".mdf", ".ndf", ".ldf", ".bak", ".trn"].iter().find_map(|ending| {
        let rest = behind_word(text, ending).next()?;
        let before = text.get(..text.len() - rest.len())?;
        let start = before.rfind(['\\', '/', '\'', '"', '[', '(']).map_or(0, |at| at + 1);
        short(before.get(start..)?.trim())
    })
}

/// A name of bounded length; `None` for an empty name.
pub(super) fn short(name: &str) -> Option<String> {
    let name: String = name.chars().take(LONGEST_NAME).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Option<String> {
        match Places::of(text).database {
            Some(Database::Named(name)) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn a_database_is_found_by_name_and_by_id() {
        for text in [
            "cannot open database 'Shop' (database ID 11)",
            "in Database \"Shop\".",
            "I/O on file [D:\\Shop.mdf] in database [Shop] (11).",
            "DBCC CHECKDB (Shop, noindex) WITH no_infomsgs executed by X found 0 errors",
            "DBCC CHECKDB(N'Shop')",
        ] {
            assert_eq!(named(&text.replace("N'", "'")).as_deref(), Some("Shop"), "{text}");
        }
        let by_id = Places::of("a read of page (1:57) in database ID 13 at offset 0x1 in file 'D:\\a b\\Shop.mdf'.");
        assert_eq!(by_id.database, Some(Database::Id(13)));
        assert_eq!((by_id.page, by_id.file.as_deref()), (Some(PageId::new(1, 57)), Some("Shop.mdf")));
        assert_eq!(Places::of("database 'Shop' (11)").names_database, Some((11, "Shop".to_owned())));
    }

    #[test]
    fn the_first_page_is_that_of_the_message() {
        let page = |text: &str| Places::of(text).page;
        assert_eq!(page("Page (1:69) was not seen although its parent (1:153) refers to it"), Some(PageId::new(1, 69)));
        assert_eq!(page("Attempt to fetch logical page 1:69965 in database 13"), Some(PageId::new(1, 69965)));
        assert_eq!(page("page (0:0), object (3:12)"), Some(PageId::new(3, 12)));
        for text in ["LSN (37:1234:1)", "02:10:11", "(a:b)", "(99999:1)", "page (1:", "é(1:é)"] {
            assert_eq!(page(text), None, "{text}");
        }
    }

    #[test]
    fn a_file_of_the_snapshot_is_one_of_dbcc() {
        let places = Places::of("E:\\Data\\Shop.mdf:MSSQL_DBCC11: Operating system error 112(full)");
        assert!(places.is_of_snapshot && places.file.as_deref() == Some("Shop.mdf"));
    }
}
