//! `mdfsck explain -`: an error log or the output of DBCC on standard input.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, mdfsck, refused, text};

const LOG: &str = "\
2024-03-01 02:11:00.00 spid20s     Error: 3414, Severity: 21, State: 1.
2024-03-01 02:11:00.00 spid20s     An error occurred during recovery, preventing the database 'Shop' (database ID 5) from restarting.
2024-03-01 02:10:00.00 spid20s     Error: 824, Severity: 24, State: 2.
2024-03-01 02:10:00.00 spid20s     It occurred during a read of page (1:57) in database ID 5 at offset 0x72000 in file 'D:\\Shop.mdf'.
";

pub(crate) fn pasted_texts() -> Vec<(&'static str, Test)> {
    vec![
        ("explain - says what happened, causes first, each number once, and what to do next", |folder| {
            let output = explain(folder, &["-"], LOG.as_bytes())?;
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            let shown = text(&output.stdout);
            let order = [
                "causes first",
                "Shop",
                "  824  ",
                "page (1:57)",
                " 3414  ",
                "Msg 824: ",
                "Msg 3414: ",
                "What to do next",
            ];
            let mut rest = shown.as_str();
            for part in order {
                rest = rest.split_once(part).ok_or(format!("{part} is not in its place: {shown}"))?.1;
            }
            let commands: Vec<&str> = rest.lines().filter_map(|line| line.trim().strip_prefix("mdfsck ")).collect();
            ensure(commands.first() == Some(&"info FILES") && commands.len() > 2, shown.clone())?;
            for command in commands {
                let mut words = command.split(' ');
                let help = text(&mdfsck(folder, &[words.next().unwrap_or_default(), "--help"]).stdout);
                let options = words.filter(|word| word.starts_with("--"));
                ensure(!help.is_empty() && options.into_iter().all(|option| help.contains(option)), command)?;
            }
            Ok(())
        }),
        ("explain - prints JSON lines", |folder| {
            let output = explain(folder, &["-", "--json"], LOG.as_bytes())?;
            let lines: Vec<Value> = text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            let first = lines.first().ok_or("no line")?;
            ensure(
                first["kind"] == "pasted_event" && first["number"] == 824 && first["pages"][0] == "1:57",
                first.to_string(),
            )?;
            let last = lines.last().ok_or("no line")?;
            ensure(
                last["kind"] == "pasted_summary" && last["messages"] == 2 && last["complete"] == true,
                last.to_string(),
            )
        }),
        ("explain - refuses a text in which it recognizes nothing", |folder| {
            for (input, part) in [
                (&b""[..], "no message of SQL Server was recognized"),
                (b"\x00\xFF\x1B[31mhello\n", "no message"),
                (b"Msg 14420, Level 16, State 1, Line 1\n", "no explanation for message 14420"),
            ] {
                refused(&explain(folder, &["-"], input)?, 8, &["standard input: ", part])?;
            }
            refused(&explain(folder, &["-", "824"], b"")?, 8, &["give no other number"])
        }),
    ]
}

pub(crate) fn explain(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Output, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.arg("explain").args(arguments).current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no input")?.write_all(input)?;
    Ok(child.wait_with_output()?)
}
