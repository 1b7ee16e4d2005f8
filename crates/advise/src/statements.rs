//! Pieces of statements that several steps use.

use std::path::Path;

use format::PageId;
use script::{quote, quote_text};
use source::backup::{ChainSet, SetKind};

/// The name of a database in a statement; `None` if the programs that run scripts would change it.
pub(crate) fn database(name: &str) -> Option<String> {
    is_plain(name).then(|| quote(name))
}

/// Whether no program that runs scripts takes a part of the text for something else: `$(` is a variable of sqlcmd.
fn is_plain(text: &str) -> bool {
    !text.contains("$(") && !text.chars().any(char::is_control)
}

/// `1:57, 1:202`, as RESTORE takes them.
pub(crate) fn page_list(pages: &[PageId]) -> String {
    let texts: Vec<String> = pages.iter().map(|page| format!("{}:{}", page.file, page.page)).collect();
    texts.join(", ")
}

/// ` FROM DISK = N'...', DISK = N'...' WITH FILE = 1, NORECOVERY` of a set; `None` if a path cannot be written.
pub(crate) fn from(set: &ChainSet) -> Option<String> {
    let disks: Option<Vec<String>> = set.paths.iter().map(|path| Some(format!("DISK = {}", disk(path)?))).collect();
    Some(format!("\n    FROM {}\n    WITH FILE = {}, NORECOVERY;", disks?.join(",\n         "), set.set.position))
}

/// The full path of a file as a text.
fn disk(path: &Path) -> Option<String> {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    full.to_str().filter(|path| is_plain(path)).map(quote_text)
}

/// `RESTORE DATABASE` or `RESTORE LOG` of a whole set.
pub(crate) fn restore(database: &str, set: &ChainSet) -> Option<String> {
    let what = if set.set.kind == SetKind::Log { "LOG" } else { "DATABASE" };
    Some(format!("RESTORE {what} {database}{}", from(set)?))
}

/// A place for the tail of the log, beside the last backup.
pub(crate) fn tail_file(steps: &[ChainSet], name: &str) -> String {
    let folder = steps.last().and_then(|set| set.paths.first()).and_then(|path| path.parent());
    let plain: String = name.chars().map(|char| if char.is_alphanumeric() { char } else { '_' }).collect();
    let file = folder.unwrap_or(Path::new("")).join(format!("{plain}_tail.trn"));
    disk(&file).unwrap_or_else(|| quote_text("tail.trn"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_sqlcmd_would_change_is_not_written() {
        assert_eq!(database("a]b").as_deref(), Some("[a]]b]"));
        assert_eq!(database("$(x)"), None);
        assert_eq!(database("a\nb"), None);
    }

    #[test]
    fn pages_are_listed_as_restore_takes_them() {
        assert_eq!(page_list(&[PageId::new(1, 57), PageId::new(3, 202)]), "1:57, 3:202");
    }
}
