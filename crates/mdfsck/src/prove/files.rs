//! The files in a backup, from what RESTORE FILELISTONLY printed. Its first columns are the same in all versions:
//! logical name, physical name, type, filegroup, size, largest size, file id.

use std::collections::BTreeSet;

use jobs::failure::Failure;
use report::printable;

use crate::output;

/// A data or log file of the database.
struct File<'a> {
    logical: &'a str,
    /// The name in the new folder.
    name: String,
    bytes: u64,
}

pub(super) fn run(reply: &str, folder: &str) -> Result<u8, Failure> {
    let files = files(reply)?;
    output::print(|out| {
        let bytes = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
        writeln!(out, "size\t{bytes}")?;
        for file in &files {
            writeln!(out, "file\t{}", file.name)?;
        }
        writeln!(out, "moves\t{}", moves(&files, folder))
    })?;
    Ok(0)
}

fn files(reply: &str) -> Result<Vec<File<'_>>, Failure> {
    let mut files: Vec<File<'_>> = Vec::new();
    let (mut logical, mut names) = (BTreeSet::new(), BTreeSet::new());
    for line in rows(reply) {
        let file = file(line)?;
        // A server may take names that differ in capitals only for one.
        if !logical.insert(file.logical.to_lowercase()) {
            return Err(Failure::unable(format!(
                "two files in the backup have the logical name {}, so that MOVE cannot tell them apart; name another \
                 database",
                printable(file.logical)
            )));
        }
        if !names.insert(file.name.clone()) {
            return Err(not_understood(line));
        }
        files.push(file);
    }
    if files.is_empty() {
        return Err(Failure::unable("the reply of the server has no list of files; see the reply"));
    }
    Ok(files)
}

/// The rows of the list: all lines below the line of dashes.
fn rows(reply: &str) -> impl Iterator<Item = &str> {
    let is_rule = |line: &&str| line.contains('\t') && line.chars().all(|c| matches!(c, '-' | '\t'));
    reply.lines().skip_while(move |line| !is_rule(line)).skip(1).filter(|line| !line.trim().is_empty())
}

/// The file in a row. No row is left out, since RESTORE would write a file without a MOVE to its old place.
fn file(row: &str) -> Result<File<'_>, Failure> {
    let columns: Vec<&str> = row.split('\t').collect();
    let &[logical, _, kind, _, bytes, _, id, ..] = columns.as_slice() else { return Err(not_understood(row)) };
    let (Ok(bytes), Ok(id)) = (bytes.trim().parse(), id.trim().parse::<u32>()) else { return Err(not_understood(row)) };
    let name = match kind.trim() {
        "D" if id == 1 => "data1.mdf".to_owned(),
        "D" => format!("data{id}.ndf"),
        "L" => format!("log{id}.ldf"),
        _ => {
            return Err(Failure::unable(format!(
                "the database has FILESTREAM, In-Memory or full-text files ({}), which the kit cannot copy; name \
                 another database",
                printable(logical.trim())
            )));
        }
    };
    Ok(File { logical, name, bytes })
}

fn not_understood(row: &str) -> Failure {
    Failure::unable(format!("a row in the list of files is not understood; see the reply: {}", printable(row)))
}

/// The MOVE clauses of a RESTORE, without the key word WITH.
fn moves(files: &[File<'_>], folder: &str) -> String {
    let quoted = |text: &str| text.replace('\'', "''");
    let one =
        |file: &File<'_>| format!("MOVE N'{}' TO N'{}{}'", quoted(file.logical), quoted(folder), quoted(&file.name));
    files.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: &str = "LogicalName\tPhysicalName\tType\tFileGroupName\tSize\tMaxSize\tFileId\tCreateLSN\n\
                         -----------\t------------\t----\t-------------\t----\t-------\t------\t---------\n";

    fn reply(rows: &[(&str, &str, u64, u32)]) -> String {
        let row = |&(logical, kind, bytes, id): &(&str, &str, u64, u32)| {
            format!("{logical}\tD:\\x\\{logical}\t{kind}\tPRIMARY\t{bytes}\t35184372080640\t{id}\t0\n")
        };
        format!("Changed language setting to us_english.\n{HEADS}{}", rows.iter().map(row).collect::<String>())
    }

    #[test]
    fn each_file_is_moved_under_a_name_of_its_own_and_quotes_are_doubled() {
        let reply = reply(&[("Bob's [data]", "D", 8192, 1), ("log", "L", 4096, 2), ("more", "D", 100, 3)]);
        let files = files(&reply).unwrap();
        assert_eq!(files.iter().map(|file| file.bytes).sum::<u64>(), 12388);
        assert_eq!(
            moves(&files, "/it's/"),
            "MOVE N'Bob''s [data]' TO N'/it''s/data1.mdf', MOVE N'log' TO N'/it''s/log2.ldf', \
             MOVE N'more' TO N'/it''s/data3.ndf'"
        );
    }

    #[test]
    fn a_database_with_filestream_is_refused_and_so_is_a_reply_without_a_list() {
        let refused = |reply: &str| files(reply).err().unwrap().text;
        assert!(refused(&reply(&[("a", "D", 1, 1), ("docs", "S", 0, 3)])).contains("(docs)"));
        assert!(refused(HEADS).contains("no list of files"));
        assert!(refused("").contains("no list of files"));
    }

    #[test]
    fn a_row_that_would_get_no_move_and_a_name_that_two_files_have_are_refused() {
        let refused = |reply: &str| files(reply).err().unwrap().text;
        let sound = reply(&[("a", "D", 1, 1), ("log", "L", 1, 2)]);
        assert_eq!(files(&sound).unwrap().len(), 2);
        for row in ["b\tD:\\x\\b\tD\tPRIMARY\tNULL\t0\t3\t0\n", "half of a name\n"] {
            let text = refused(&format!("{sound}{row}"));
            assert!(text.contains("not understood"), "{text}");
        }
        assert!(refused(&reply(&[("a", "D", 1, 1), ("A", "D", 1, 3)])).contains("the logical name A"));
        assert!(refused(&reply(&[("\u{202e}", "D", 1, 1), ("\u{202e}", "D", 1, 3)])).contains(r"name \u{202e}, so"));
        assert!(refused(&reply(&[("\u{9b}", "S", 1, 1)])).contains(r"(\u{9b})"));
        assert!(refused(&format!("{sound}\u{1b}\n")).ends_with(r"\u{1b}"));
        assert!(refused(&reply(&[("a", "D", 1, 1), ("b", "D", 1, 1)])).contains("not understood"));
    }
}
