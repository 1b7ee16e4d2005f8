//! Runs every command that the guides contain.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;

use super::{Test, ensure, is_here, mdfsck, text, without};

/// The bits that the exit status of a guide's command may have. The sample may be damaged or incomplete, but it can
/// always be read, and every command is valid.
const MAY_HAVE: i32 = 1 | 16;

/// Pairs of paths: a path in the guides, and the path in the sample that replaces it.
const PLACES: [(&str, &str); 5] = [
    (r"D:\Backups", "backups"),
    (r"D:\Data", "data"),
    (r"D:\mdfsck\", ""),
    (" /backups", " backups"),
    (" samples/", concat!(" ", env!("CARGO_MANIFEST_DIR"), "/../../samples/")),
];

const README: &str = include_str!("../../../../README.md");

const GUIDES: [&str; 15] = [
    include_str!("../../../../docs/guides/README.md"),
    include_str!("../../../../docs/guides/corrupt.md"),
    include_str!("../../../../docs/guides/export.md"),
    include_str!("../../../../docs/guides/schedule.md"),
    include_str!("../../../../docs/guides/machines.md"),
    include_str!("../../../../docs/guides/history.md"),
    include_str!("../../../../docs/guides/nights.md"),
    include_str!("../../../../docs/guides/changes.md"),
    include_str!("../../../../docs/guides/operate.md"),
    include_str!("../../../../docs/guides/watch.md"),
    include_str!("../../../../docs/guides/snapshots.md"),
    include_str!("../../../../docs/guides/not-verified.md"),
    include_str!("../../../../docs/guides/from-dbcc.md"),
    include_str!("../../../../docs/guides/prove.md"),
    include_str!("../../../../docs/guides/json.md"),
];

pub(crate) fn guides() -> Vec<(&'static str, Test)> {
    vec![
        ("every command of the guides runs", every_command_runs),
        ("the guides name only numbers, ids and files that exist", what_they_name_exists),
        ("what the guides show of the demo is what the commands print", what_they_show_is_printed),
    ]
}

/// Runs the commands of each guide in order, in an empty folder, as a reader would.
fn every_command_runs(folder: &Path) -> Result<(), Failed> {
    let (mut count, mut failed) = (0, String::new());
    for (number, content) in GUIDES.into_iter().chain([README]).enumerate() {
        let guide = content.lines().next().unwrap_or_default();
        let empty = folder.join(format!("guide{number}"));
        fs::create_dir(&empty)?;
        // The scripts among the samples need programs of Linux.
        let can_run = |command: &String| cfg!(target_os = "linux") || !command.contains("/../../samples/");
        for command in commands(content).into_iter().filter(can_run) {
            count += 1;
            let output = run(&empty, &command)?;
            let status = output.status.code().unwrap_or(-1);
            let is_empty = command.contains("jq") && output.stdout.is_empty() && expects(&command);
            if status & !MAY_HAVE != 0 || is_empty {
                failed += &format!("{guide}: mdfsck {command}: {status}\n{}", text(&output.stderr));
            }
        }
        fs::remove_dir_all(&empty)?;
    }
    ensure(failed.is_empty(), failed)?;
    ensure(count >= 100, format!("only {count} commands were found"))
}

/// If a code block begins with `$ mdfsck ...`, the command must print the other lines of the block in this order. The
/// line `...` represents omitted lines.
fn what_they_show_is_printed(folder: &Path) -> Result<(), Failed> {
    let made = mdfsck(folder, &["demo"]);
    ensure(made.status.success(), text(&made.stderr))?;
    let mut count = 0;
    for block in GUIDES.iter().flat_map(|guide| guide.split("```console\n$ mdfsck ").skip(1)) {
        let shown = block.split("```").next().unwrap_or_default();
        let (command, shown) = shown.split_once('\n').ok_or("no output")?;
        let output = mdfsck(folder, &command.split_whitespace().collect::<Vec<_>>());
        let printed = text(&output.stdout);
        let mut rest = printed.as_str();
        for (number, part) in shown.split("...\n").enumerate() {
            let at = rest.find(part).filter(|at| number > 0 || *at == 0);
            let at = at.ok_or_else(|| format!("{command}: not printed:\n{part}\nbut:\n{printed}"))?;
            rest = &rest[at + part.len()..];
        }
        count += 1;
    }
    ensure(count >= 3, format!("only {count} blocks were found"))
}

/// Whether the filter of a command selects any line of the output for the sample. The sample has no findings, and
/// everything in it is verified.
fn expects(command: &str) -> bool {
    !command.contains("finding") && !command.contains("not_verified")
}

/// Runs a command, given without `mdfsck `. If the command has a pipe, bash runs the whole pipe. If bash or jq is
/// missing, the command runs without the pipe, or the test fails if MDFSCK_REQUIRE names the missing program.
fn run(folder: &Path, command: &str) -> Result<std::process::Output, Failed> {
    let (own, pipe) = command.split_once(" | ").map_or((command, None), |(own, pipe)| (own, Some(pipe)));
    let missing: Vec<_> = ["bash", "jq"].into_iter().filter(|program| pipe.is_some() && !is_here(program)).collect();
    if !missing.is_empty() {
        without(&missing, "not on the PATH")?;
    } else if pipe.is_some() {
        let program = Path::new(env!("CARGO_BIN_EXE_mdfsck")).parent().ok_or("no folder")?;
        let path = std::env::join_paths(
            [program.to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )?;
        let line = format!("mdfsck {command}");
        return Ok(Command::new("bash")
            .args(["-o", "pipefail", "-c", &line])
            .env("PATH", path)
            .current_dir(folder)
            .output()?);
    }
    Ok(mdfsck(folder, &own.split_whitespace().collect::<Vec<_>>()))
}

/// The commands in code blocks and inline code. `mdfsck ` is removed, and the paths are those of the sample.
fn commands(guide: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut language = None;
    for line in guide.lines() {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            language = language.is_none().then_some(fence);
            continue;
        }
        match language {
            None => {
                let code = line.split('`').skip(1).step_by(2);
                found.extend(code.filter_map(|code| code.strip_prefix("mdfsck ")).map(str::to_owned));
            }
            Some("sh" | "bat") => found.extend(line.trim_start().strip_prefix("mdfsck ").map(str::to_owned)),
            Some("powershell") => {
                let own = line.split_once("-Argument '").or_else(|| line.split_once("mdfsck "));
                let end = |rest: &str| rest.split([':', '|', '\''].as_slice()).next().unwrap_or_default().to_owned();
                // A drive name also contains a colon, so it is replaced before the line is split at colons.
                let rest = own.map(|(_, rest)| placed(rest));
                found.extend(rest.map(|rest| end(&rest)).filter(|rest| rest.starts_with("check")));
            }
            Some("python") => {
                let list = line.split_once("[\"mdfsck\", ").and_then(|(_, rest)| rest.split_once(']'));
                found.extend(list.map(|(list, _)| list.replace(['"', ','], "")));
            }
            Some(_) => {}
        }
    }
    found.iter().map(|command| placed(command).trim().to_owned()).collect()
}

fn placed(command: &str) -> String {
    PLACES.iter().fold(command.to_owned(), |command, (from, to)| command.replace(from, to))
}

fn what_they_name_exists(folder: &Path) -> Result<(), Failed> {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    for content in GUIDES {
        let guide = content.lines().next().unwrap_or_default();
        for target in content.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            ensure(guides.join(file).is_file(), format!("{guide}: {target} does not exist"))?;
        }
        // Finds the IDs of limits and checks, and message numbers in parentheses or lists.
        let code = content.split('`').skip(1).step_by(2);
        let ids = code.filter(|code| {
            let word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let is_file = |name: &str| ["md", "sql", "txt", "csv", "json", "html", "zip"].contains(&name);
            code.split_once('.').is_some_and(|(family, name)| word(family) && word(name) && !is_file(name))
        });
        for id in ids.filter(|id| !["orders.bak", "finding.id", "finding.text", "dbo.orders"].contains(id)) {
            ensure(mdfsck(folder, &["explain", id]).status.success(), format!("{guide}: no id {id}"))?;
        }
    }
    Ok(())
}
