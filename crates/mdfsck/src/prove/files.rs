//! The files in a backup, from what RESTORE FILELISTONLY printed. Its first columns are the same in all versions:
//! logical name, physical name, type, filegroup, size, largest size, file id.

use crate::failure::Failure;
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
    let mut files = Vec::new();
    for line in reply.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[logical, _, kind, _, bytes, _, id, ..] = columns.as_slice() else { continue };
        // The line with the names of the columns, and the line of dashes below it.
        let (Ok(bytes), Ok(id)) = (bytes.trim().parse::<u64>(), id.trim().parse::<u32>()) else { continue };
        let name = match kind.trim() {
            "D" if id == 1 => "data1.mdf".to_owned(),
            "D" => format!("data{id}.ndf"),
            "L" => format!("log{id}.ldf"),
            _ => {
                return Err(Failure::unable(format!(
                    "the database has FILESTREAM, In-Memory or full-text files ({}), which the kit cannot copy; name \
                     another database",
                    logical.trim()
                )));
            }
        };
        files.push(File { logical, name, bytes });
    }
    if files.is_empty() {
        return Err(Failure::unable("the reply of the server has no list of files; see the reply"));
    }
    Ok(files)
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
}
