//! The names of all objects are chosen by an attacker. No part of a name may become an SQL statement, a command of
//! sqlcmd, or a command of a shell.

use lab::backup::{BackupOptions, Set, backup};
use lab::damage::{Kind, damage};
use lab::{Version, orders};

use super::*;

/// Texts that the test puts into the names of all tables, columns, indexes and constraints.
const HARM: [&str; 8] = [
    "a]b'c\"d",
    "x] ; DROP DATABASE [y]; --",
    "'; DROP DATABASE y; --",
    "*/ DROP DATABASE y; /*",
    "a\nGO\nDROP DATABASE y\nGO\n",
    "a\r\n!!del *\r\n:r c:\\x.sql\r\n",
    "$(x)",
    "a\u{2028}GO\u{2028}DROP DATABASE y",
];

/// The only words that scripts of advice may contain outside of names, string constants and comments.
const WORDS: &str = "ALL ALL_CONSTRAINTS ALL_ERRORMSGS ALTER AND BACKUP CHECK CHECKALLOC CHECKCONSTRAINTS CHECKDB CHECKTABLE \
                     CONSTRAINT COUNT_BIG COUNT_ROWS DATABASE DBCC DB_ID DISABLE DISK ERROR FILE FILEGROUP FROM IF IMMEDIATE \
                     INDEX IS LOG MULTI_USER N NOEXEC NORECOVERY NOT NO_INFOMSGS NULL OFF ON PAGE PARTITION READ_ONLY \
                     READ_WRITE REBUILD RECOVERY REPAIR_ALLOW_DATA_LOSS REPLACE RESTORE ROLLBACK SELECT SET SINGLE_USER TABLE \
                     TO UPDATEUSAGE USE WHERE WITH physloc";

/// The words of a script as a server reads them. Leaves out names in brackets, string constants and comments.
///
/// # Errors
/// If a name, string constant or comment is not closed, or continues on another line.
fn words(script: &str) -> Result<Vec<String>, String> {
    let mut chars = script.chars().peekable();
    let mut words = vec![String::new()];
    while let Some(char) = chars.next() {
        let end = match (char, chars.peek()) {
            ('-', Some('-')) => {
                while chars.next_if(|char| *char != '\n').is_some() {}
                continue;
            }
            ('/', Some('*')) => {
                let mut last = ' ';
                loop {
                    match chars.next() {
                        Some('/') if last == '*' => break,
                        Some(char) => last = char,
                        None => return Err("an open comment".to_owned()),
                    }
                }
                continue;
            }
            ('[', _) => ']',
            ('\'', _) => '\'',
            ('"', _) => return Err("a double quote".to_owned()),
            _ => {
                match char.is_alphanumeric() || char == '_' {
                    true => words.last_mut().unwrap().push(char),
                    false => words.push(String::new()),
                }
                continue;
            }
        };
        words.push(String::new());
        loop {
            match chars.next() {
                Some(char) if char == end && chars.next_if_eq(&end).is_none() => break,
                Some(char) if char.is_control() => return Err(format!("{char:?} in a name or text")),
                Some(_) => {}
                None => return Err(format!("an open {char}")),
            }
        }
    }
    Ok(words
        .into_iter()
        .filter(|word| !word.is_empty() && !word.chars().all(|char| char.is_ascii_hexdigit()))
        .collect())
}

#[test]
fn the_reader_of_scripts_sees_what_is_outside_of_names() {
    let read = words("USE [a]]b]; -- DROP\nSELECT N'x''DROP' /* DROP */, 0x12").unwrap();
    assert_eq!(read, ["USE", "SELECT", "N", "0x12"]);
    assert!(words("USE [a]; DROP DATABASE [b]").unwrap().contains(&"DROP".to_owned()));
    assert!(words("USE [a").is_err() && words("USE [a\nGO\n]").is_err());
}

#[test]
#[ignore = "full tier: takes seconds"]
fn no_part_of_a_name_becomes_a_statement() {
    let known: BTreeSet<&str> = WORDS.split(' ').collect();
    let mut seen = BTreeSet::new();
    for (number, harm) in HARM.into_iter().enumerate() {
        let mut description = orders::orders(Version::V904, 5, 0);
        for table in &mut description.tables {
            table.name = format!("{}{harm}", table.name);
            table.columns.iter_mut().for_each(|column| column.name = format!("{}{harm}", column.name));
            let indexes = table.clustered.iter_mut().chain(&mut table.indexes);
            indexes.for_each(|index| index.name = format!("{}{harm}", index.name));
            table.foreign_keys.iter_mut().for_each(|key| {
                key.name = format!("{}{harm}", key.name);
                key.table = format!("{}{harm}", key.table);
            });
            table.checks.iter_mut().for_each(|(name, _)| *name = format!("{name}{harm}"));
        }
        let folder = tempfile::tempdir().unwrap();
        let files = write(&description, folder.path());
        let sound = fs::read(&files[0]).unwrap();
        let set = Set { files: &files, step: 1, options: BackupOptions::default() };
        let backups = backups(&backup(&[set], folder.path(), "full").unwrap().files);
        for kind in [Kind::BitRot, Kind::LostWrite, Kind::BrokenLink, Kind::LostExtent] {
            for backups in [None, Some(&backups)] {
                fs::write(&files[0], &sound).unwrap();
                damage(&files, kind, 3).unwrap();
                let (_, plan) = advice(&open(&files), backups);
                seen.extend(actions(&plan));
                let what = format!("{number} {}: {plan:#?}", kind.name());
                assert!(!plan.steps.is_empty(), "{what}");
                let mut script = Vec::new();
                report::advise::write_script(&plan, &mut script).unwrap();
                let script = String::from_utf8(script).unwrap();
                let read = words(&script).unwrap_or_else(|error| panic!("{error}\n{script}"));
                let strange = read.iter().find(|word| !known.contains(word.as_str()) && !word.starts_with("0x"));
                assert!(strange.is_none(), "{strange:?} in\n{script}");
                assert!(!script.contains("$(") && !script.contains('\r') && !script.contains('\u{2028}'), "{script}");
                let is_command = |line: &&str| {
                    let line = line.trim_start().to_lowercase();
                    line.starts_with('!') || line.starts_with(':') || line == "go" || line.starts_with("go ")
                };
                assert!(script.lines().all(|line| !is_command(&line)), "{script}");
                // A shell command contains the name of a table only if the name is safe for a shell. Otherwise it
                // contains the object ID.
                for command in plan.steps.iter().filter_map(|step| step.command.as_deref()) {
                    let harmless = |char: char| char.is_alphanumeric() || " ./_-".contains(char);
                    assert!(command.chars().all(harmless), "{command}");
                }
                let mut text = Vec::new();
                report::advise::write(&plan, &mut text).unwrap();
                let is_steering = |byte: &u8| byte.is_ascii_control() && *byte != b'\n';
                assert!(!text.iter().any(is_steering), "{}", String::from_utf8_lossy(&text));
            }
        }
    }
    let expected = ["export", "inspect", "rebuild_index", "rebuild_table", "repair_allow_data_loss", "restore_pages"];
    assert!(expected.iter().all(|action| seen.contains(action)), "{seen:?}");
}
