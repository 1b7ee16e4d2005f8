//! Names and texts that have a special meaning for a file system, a script runner or a terminal.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lab::description::{Column, Description, Filegroup, Filter, Index, Table, Values};
use lab::{SqlType, Version};
use libtest_mimic::Failed;

use super::{Test, ensure, files, lines, mdfsck, text};

pub(super) fn names() -> Vec<(&'static str, Test)> {
    vec![
        ("hostile names of tables stay inside the folder, each with a file of its own", inside),
        ("no name or value in a script is a batch, a command or a variable of sqlcmd", scripts),
        ("a script does nothing where there is an object of its table's name", guarded),
        ("names of columns arrive in every format", columns),
    ]
}

const TABLES: [&str; 22] = [
    "../../up",
    "..\\up",
    "/etc/up",
    "a/b",
    "a?b",
    "Case",
    "CASE",
    "CON",
    "nul",
    "a.unreadable",
    "-rf",
    " ",
    ".",
    "tab\there\u{7f}",
    "clear\u{1b}[2J\u{202e}",
    "line\nGO\nDROP TABLE [x];\nGO\n:r secret\n!!dir\nexit",
    "carriage\rquit\r\ngo 5",
    "$(SystemRoot)",
    "a]; DROP TABLE b; --",
    "*/ DROP TABLE c /* '",
    "\u{1F4BE} \u{65E5}\u{672C}",
    "foreign-keys",
];

/// The names of the columns after the identity column.
const COLUMNS: [&str; 6] =
    ["c\nGO\n:r secret", "_page", "quote\",comma", "$(x)]", "a'b*/ -- ", "\u{65E5}\u{672C}\u{1F4BE}\\"];

fn hostile(folder: &Path) -> Result<(), Failed> {
    let long = "x".repeat(127);
    let names = TABLES.iter().map(|name| (*name).to_owned()).chain(["1", "2"].map(|end| format!("{long}{end}")));
    let tables = names.map(|name| {
        let column = |name: &&str| Column::new(name, SqlType::nvarchar(40), Values::Text { least: 0, most: 30 });
        let mut columns: Vec<Column> = COLUMNS.iter().map(column).collect();
        columns.insert(0, Column::identity("id", SqlType::INT));
        Table {
            clustered: Some(Index::on(&format!("pk {name}"), &[0]).primary_key()),
            indexes: vec![Index::on(&format!("ix {name}"), &[2]).including(&[1])],
            checks: vec![(format!("ck {name}"), Filter::AtLeast(0, 1))],
            columns,
            rows: 3,
            name,
            ..Table::default()
        }
    });
    let description = Description {
        name: "hostile".to_owned(),
        tables: tables.collect(),
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        ..lab::orders::orders(Version::V852, 1, 0)
    };
    fs::create_dir(folder.join("s"))?;
    lab::write(&description, &folder.join("s"))?;
    Ok(())
}

fn inside(folder: &Path) -> Result<(), Failed> {
    hostile(folder)?;
    for format in ["csv", "jsonl", "sql", "parquet"] {
        let args = ["export", "s", "-o", "deep/out", "--format", format, "--json"];
        let output = mdfsck(folder, &args);
        ensure(output.status.code() == Some(0), text(&output.stderr))?;
        let tables: Vec<_> = lines(&output.stdout)?.into_iter().filter(|line| line["kind"] == "table").collect();
        ensure(tables.len() == TABLES.len() + 2, format!("{} tables", tables.len()))?;
        let said: BTreeSet<String> =
            tables.iter().filter_map(|table| table["file"].as_str()).map(str::to_lowercase).collect();
        ensure(said.len() == tables.len(), "two tables share a file")?;
        let made = files(&folder.join("deep/out"))?;
        ensure(made.len() == tables.len(), format!("{} files", made.len()))?;
        let is_safe = |name: &str| {
            !name.chars().any(|c| c.is_control() || "/\\:*?\"<>|\u{202e}".contains(c)) && !name.starts_with(['-', '.'])
        };
        ensure(made.iter().all(|(name, _)| is_safe(name) && said.contains(&name.to_lowercase())), format!("{made:?}"))?;
        ensure(fs::read_dir(folder.join("deep"))?.count() == 1 && fs::read_dir(folder)?.count() == 2, "outside")?;
        // The file name of a table does not depend on which other tables are exported.
        let id = tables[4]["object_id"].to_string();
        let one = mdfsck(folder, &["export", "s", "-o", "one", "--format", format, "--json", "--table", &id]);
        ensure(lines(&one.stdout)?[0] == tables[4], text(&one.stdout))?;
        fs::remove_dir_all(folder.join("deep"))?;
        fs::remove_dir_all(folder.join("one"))?;
    }
    let shown = mdfsck(folder, &["export", "s", "-o", "out"]);
    ensure(!text(&shown.stdout).chars().any(|c| c.is_control() && c != '\n'), text(&shown.stdout))
}

/// The batches that a script runner such as sqlcmd sends to the server. The script runner splits a script at lines with
/// GO, even if such a line is within a string constant.
fn batches(script: &str) -> Vec<String> {
    let mut batches = vec![String::new()];
    for line in script.split_inclusive(['\n', '\r']) {
        match line.trim().split([' ', '\t']).next().is_some_and(|word| word.eq_ignore_ascii_case("go")) {
            true => batches.push(String::new()),
            false => batches.last_mut().expect("one at least").push_str(line),
        }
    }
    batches.retain(|batch| !batch.trim().is_empty());
    batches
}

/// The statement that the server executes for a batch. If the batch is an EXEC of a string constant, the statement is
/// the content of the constant; otherwise it is the batch.
fn executed(batch: &str) -> String {
    let Some(constant) = batch.trim().strip_prefix("EXEC (N'").and_then(|rest| rest.strip_suffix("');")) else {
        return batch.to_owned();
    };
    // A single quote that is not doubled ends one piece of the concatenated constant.
    constant.replace("''", "\0").replace("'+N'", "").replace('\0', "'")
}

fn scripts(folder: &Path) -> Result<(), Failed> {
    hostile(folder)?;
    let output = mdfsck(folder, &["export", "s", "-o", "out", "--format", "sql"]);
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    let scripts: Vec<String> = files(&folder.join("out"))?.into_iter().map(|(_, bytes)| text(&bytes)).collect();
    for script in &scripts {
        ensure(!script.contains("$("), script.clone())?;
        let is_command = |line: &str| {
            let line = line.trim_start().to_lowercase();
            line.starts_with([':', '!']) || ["exit", "quit", "reset", "ed"].contains(&line.trim_end())
        };
        ensure(!script.split(['\n', '\r']).any(is_command), script.clone())?;
        let batches = batches(script);
        let begins = [
            "SET",
            "IF OBJECT_ID(N'[dbo].[",
            "CREATE TABLE [dbo].[",
            "INSERT INTO [dbo].[",
            "ALTER TABLE [dbo].[",
            "CREATE NONCLUSTERED INDEX [",
        ];
        let statements: Vec<String> = batches.iter().map(|batch| executed(batch)).collect();
        ensure(
            statements.iter().all(|statement| begins.iter().any(|begin| statement.starts_with(begin))),
            format!("{statements:?}"),
        )?;
        ensure(!statements.iter().any(|statement| statement.starts_with("EXEC")), script.clone())?;
        // The script must have eight batches: the settings, the guard, the table, its rows, its key, index and check,
        // and the end of the guard. This shows that no batch was split, and that IDENTITY_INSERT is in the batch with
        // the rows.
        let is_executed = batches.iter().any(|batch| batch.starts_with("EXEC (N'SET IDENTITY_INSERT"));
        ensure(is_executed && batches.len() == 8, format!("{batches:?}"))?;
    }
    for name in TABLES {
        let quoted = format!("CREATE TABLE [dbo].[{}] (", name.replace(']', "]]"));
        let has = |script: &&String| batches(script).iter().any(|batch| executed(batch).starts_with(&quoted));
        ensure(scripts.iter().filter(has).count() == 1, quoted)?;
    }
    Ok(())
}

/// If CREATE TABLE fails because a table of the same name exists, the guard prevents the script from inserting rows
/// into the existing table.
fn guarded(folder: &Path) -> Result<(), Failed> {
    hostile(folder)?;
    let output = mdfsck(folder, &["export", "s", "-o", "out", "--format", "sql"]);
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    let scripts: Vec<String> = files(&folder.join("out"))?.into_iter().map(|(_, bytes)| text(&bytes)).collect();
    for script in &scripts {
        let batches = batches(script);
        let created: Vec<usize> = (0..batches.len())
            .filter(|at| executed(&batches[*at]).starts_with("CREATE TABLE") || batches[*at].contains("INSERT INTO"))
            .collect();
        let statement = executed(&batches[created[0]]);
        // The name of the table ends before the parenthesis of the column list.
        let name = statement.strip_prefix("CREATE TABLE ").and_then(|rest| rest.split_once(" (\n    [id]"));
        let (name, _) = name.ok_or_else(|| statement.clone())?;
        let guard = &batches[created[0] - 1];
        let constant = guard.strip_prefix("IF OBJECT_ID(N'").and_then(|rest| rest.split_once("') IS NOT NULL\n"));
        let (constant, rest) = constant.ok_or_else(|| guard.clone())?;
        let unquoted = constant.replace("''", "\0").replace("'+N'", "").replace('\0', "'");
        ensure(unquoted == name, format!("{unquoted} for {name}"))?;
        ensure(rest.contains("RAISERROR (") && rest.trim_end().ends_with("SET NOEXEC ON;\nEND;"), rest)?;
        let ends: Vec<usize> = (0..batches.len()).filter(|at| batches[*at].trim() == "SET NOEXEC OFF;").collect();
        ensure(ends == [batches.len() - 1] && created.len() >= 2, format!("{batches:?}"))?;
    }
    Ok(())
}

fn columns(folder: &Path) -> Result<(), Failed> {
    hostile(folder)?;
    for format in ["csv", "jsonl"] {
        let output = mdfsck(folder, &["export", "s", "-o", format, "--format", format]);
        ensure(output.status.code() == Some(0), text(&output.stderr))?;
    }
    let expected: Vec<&str> = ["id"].into_iter().chain(COLUMNS).collect();
    let mut reader = csv::Reader::from_path(folder.join("csv/dbo.CON.csv"))?;
    let header = reader.headers()?.clone();
    ensure(header.iter().collect::<Vec<_>>() == expected, format!("{header:?}"))?;
    ensure(reader.into_records().collect::<Result<Vec<_>, _>>()?.len() == 3, "three rows")?;
    for line in lines(&fs::read(folder.join("jsonl/dbo.CON.jsonl"))?)? {
        let names: Vec<&str> = line.as_object().ok_or("no object")?.keys().map(String::as_str).collect();
        ensure(names == expected, format!("{names:?}"))?;
    }
    Ok(())
}
