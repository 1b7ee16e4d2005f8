//! The output of the program on a terminal. Also tests the messages about missing input, which must come before other
//! output.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{Failed, Test, ensure, mdfsck, refused, text};

pub(crate) fn with_terminal() -> Vec<(&'static str, Test)> {
    let mut all: Vec<(&'static str, Test)> = vec![
        ("a missing data file is said first, and nothing else is blamed", missing_file),
        ("a missing stripe is one cause", missing_stripe),
        ("a file that was cut is said first and once, in JSON too", cut_file),
        ("each cause at standard input has its own message", standard_input),
        ("a folder for temporary files is tried first", temp_dir),
        ("progress as lines: no line twice, plain words, percent", progress_lines),
        ("the runs that the README and docs/running.md show print what is shown", shown_runs),
        ("a summary can be asked for where there is no terminal", summary_without_terminal),
    ];
    #[cfg(unix)]
    all.extend(pty::with_pty());
    all
}

/// The output of runs over the databases of the demo must equal the output in the documentation: the README shows the
/// output on a terminal, and docs/running.md shows the output in a pipe. The time of a run is not compared.
fn shown_runs(folder: &Path) -> Result<(), Failed> {
    let without_time = |text: &str| -> String {
        let line = |line: &str| match line.split_once(" pages in ") {
            Some((start, _)) => format!("{start} pages\n"),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    };
    let block = |page: &'static str| page.split("```").skip(1).step_by(2).find(|block| block.contains("echo $?"));
    let terminal = block(include_str!("../../../../README.md")).ok_or("README.md shows no run")?;
    let piped = block(include_str!("../../../../docs/running.md")).ok_or("docs/running.md shows no run")?;
    made(folder, &["demo"])?;
    let terminal = terminal.replacen("$ mdfsck demo\n", "", 1);
    for (shown, more) in [(terminal.as_str(), &["--format", "summary"][..]), (piped, &[])] {
        let (command, rest) = shown.trim_start().split_once('\n').ok_or("a command and its output")?;
        let arguments: Vec<&str> = command.trim_start_matches("$ mdfsck ").split(' ').collect();
        let output = mdfsck(folder, &[&arguments, more].concat());
        let printed = format!("{}$ echo $?\n{}\n", text(&output.stdout), output.status.code().unwrap_or_default());
        ensure(
            without_time(&printed) == without_time(rest),
            format!("{command}\n--- printed\n{printed}--- shown\n{rest}"),
        )?;
    }
    Ok(())
}

fn made(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    let output = mdfsck(folder, arguments);
    ensure(output.status.success(), text(&output.stderr))
}

/// The JSON lines of a check, and its exit status.
fn lines_of(folder: &Path, path: &str) -> Result<(Vec<Value>, Option<i32>), Failed> {
    let output = mdfsck(folder, &["check", "--json", path]);
    let lines = text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok((lines, output.status.code()))
}

fn missing_file(folder: &Path) -> Result<(), Failed> {
    let expected = "orders.mdf is 1 of 3 data files; give orders_2.ndf and orders_3.ndf too";
    made(folder, &["lab", "new", "three", "--files", "3"])?;
    // On standard output, a script gets only findings. Lines about what was not verified go to stderr, unless the text
    // format is requested.
    let findings = mdfsck(folder, &["check", "--no-infomsgs", "three/orders.mdf"]);
    ensure(findings.stdout.is_empty() && findings.status.code() == Some(16), text(&findings.stdout))?;
    ensure(text(&findings.stderr).contains("(file.not-given)"), text(&findings.stderr))?;
    let output = mdfsck(folder, &["check", "--no-infomsgs", "--format", "text", "three/orders.mdf"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    ensure(stderr == format!("mdfsck: {expected}\n") && output.status.code() == Some(16), stderr)?;
    let first = stdout.lines().find(|line| line.starts_with("    ")).unwrap_or_default();
    ensure(first.ends_with("(file.not-given)"), stdout.clone())?;
    ensure(!stdout.contains("damaged") && !stdout.contains("Msg "), stdout.clone())?;
    ensure(["(index.file-not-given)", "(lob.file-not-given)"].iter().all(|id| stdout.contains(id)), stdout)?;
    let (lines, _) = lines_of(folder, "three/orders.mdf")?;
    let warning = lines.get(1).ok_or("no second line")?;
    ensure(warning["kind"] == "warning" && warning["id"] == "file.not-given", warning.to_string())?;
    ensure(warning["text"] == expected, warning.to_string())?;
    let whole = mdfsck(folder, &["check", "--no-infomsgs", "three"]);
    ensure(whole.status.success() && whole.stderr.is_empty(), text(&whole.stderr))
}

fn missing_stripe(folder: &Path) -> Result<(), Failed> {
    made(folder, &["lab", "new", "one"])?;
    made(folder, &["lab", "backup", "one", "-o", "b", "--stripes", "2"])?;
    for (given, missing) in [("b/full_1.bak", "stripe 2 of 2 is missing"), ("b/full_2.bak", "stripe 1 of 2 is missing")]
    {
        let output = mdfsck(folder, &["check", "--no-infomsgs", "--format", "text", given]);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        ensure(stderr.starts_with(&format!("mdfsck: {missing}: ")), stderr)?;
        ensure(stdout.lines().count() < 8 && stdout.contains(missing), stdout.clone())?;
        ensure(stdout.contains("other entries that depend on these pages: "), stdout)?;
        // The JSON output contains all lines, and the version number in the backup's label.
        let (lines, status) = lines_of(folder, given)?;
        let not_verified = lines.iter().filter(|line| line["kind"] == "not_verified").count();
        ensure(not_verified > 10 && status.is_some_and(|status| status & 16 != 0), format!("{not_verified}"))?;
        ensure(lines[0]["db_version"].as_u64().is_some_and(|version| version > 600), lines[0].to_string())?;
        ensure(lines[1]["id"] == "backup.stripes", lines[1].to_string())?;
    }
    Ok(())
}

fn cut_file(folder: &Path) -> Result<(), Failed> {
    made(folder, &["lab", "new", "one"])?;
    let path = folder.join("one/orders.mdf");
    let bytes = std::fs::read(&path)?;
    std::fs::write(&path, &bytes[..bytes.len() / 2])?;
    let output = mdfsck(folder, &["check", "one"]);
    let stderr = text(&output.stderr);
    ensure(stderr.lines().next().is_some_and(|line| line.contains("the file was cut")), stderr.clone())?;
    ensure(stderr.matches("the file was cut").count() == 1, stderr)?;
    let (lines, status) = lines_of(folder, "one")?;
    ensure(lines[1]["id"] == "pages.beyond-end", lines[1].to_string())?;
    ensure(status.is_some_and(|status| status & 20 == 20), format!("{status:?}"))
}

fn summary_without_terminal(folder: &Path) -> Result<(), Failed> {
    made(folder, &["demo", "here"])?;
    let output = mdfsck(folder, &["check", "--format", "summary", "here/1-bit-rot"]);
    let stdout = text(&output.stdout);
    let words =
        ["NOT SOUND   4 consistency errors in 1 object", "dbo.order_lines, clustered index", "8939  page (1:789)"];
    ensure(words.iter().all(|word| stdout.contains(word)), stdout.clone())?;
    ensure(stdout.contains("and 3 findings that follow from this damage"), stdout.clone())?;
    for command in ["explain 8939", "page 1:789 here/1-bit-rot", "check --format text here/1-bit-rot"] {
        ensure(stdout.contains(&format!("  mdfsck {command}")), stdout.clone())?;
        let arguments: Vec<&str> = command.split(' ').collect();
        let status = mdfsck(folder, &arguments).status.code();
        ensure(matches!(status, Some(0 | 1 | 17)), format!("{command}: {status:?}"))?;
    }
    ensure(!stdout.contains('\u{1b}') && stdout.lines().all(|line| line.len() <= 80), stdout)?;
    let sound = text(&mdfsck(folder, &["check", "--format=summary", "here/0-sound"]).stdout);
    ensure(sound.contains("SOUND   no errors") && !sound.contains("Exit status"), sound)?;
    refused(&mdfsck(folder, &["check", "--format", "nothing", "here/0-sound"]), 8, &["--format", "nothing"])
}

fn piped(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Output, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Writing to the program may fail, because a program that refuses its input does not read it.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    Ok(child.wait_with_output()?)
}

fn standard_input(folder: &Path) -> Result<(), Failed> {
    made(folder, &["lab", "new", "one"])?;
    made(folder, &["lab", "backup", "one", "-o", "b"])?;
    let backup = std::fs::read(folder.join("b/full.bak"))?;
    let data = std::fs::read(folder.join("one/orders.mdf"))?;
    for command in ["check", "info"] {
        for (input, words) in [
            (&b""[..], "standard input is empty: the command before the pipe wrote nothing"),
            (b"what is this?", "standard input is not a SQL Server backup"),
            (&data, "standard input is a data file, but mdfsck reads only backups from standard input"),
        ] {
            refused(&piped(folder, &[command, "-"], input)?, 8, &["mdfsck: -: ", words])?;
        }
        refused(&piped(folder, &[command, "-", "-"], &backup)?, 8, &["-: ", "can be named only once"])?;
        // Truncated input is reported as a damaged backup, like a truncated file.
        let cut = piped(folder, &[command, "-"], &backup[..backup.len() / 3])?;
        ensure(!matches!(cut.status.code(), Some(0 | 8)), format!("{command}: {cut:?}"))?;
    }
    for arguments in [&["tables", "-"][..], &["lint", "-"], &["page", "1:9", "-"], &["extract", "-", "-o", "x"]] {
        let output = piped(folder, arguments, &backup)?;
        refused(&output, 8, &["-: this command does not read standard input; save the backup to a file"])?;
    }
    ensure(!folder.join("x").exists(), "a folder is left")?;
    #[cfg(unix)]
    {
        let pipe = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
        refused(&mdfsck(folder, &["check", "pipe"]), 8, &["pipe: is a pipe", "| mdfsck check -"])?;
    }
    // The program copies its input to a folder. It announces the copy only after it has tested that it can write to the
    // folder.
    let nowhere = piped(folder, &["check", "-", "--temp-dir", "nowhere"], &backup)?;
    refused(&nowhere, 4, &["--temp-dir nowhere", "no temporary file can be created there"])?;
    let lines = piped(folder, &["check", "-", "--progress", "lines", "--no-infomsgs"], &backup)?;
    ensure(text(&lines.stderr).contains("\ncopying-standard-input - "), text(&lines.stderr))
}

fn temp_dir(folder: &Path) -> Result<(), Failed> {
    made(folder, &["lab", "new", "one"])?;
    let words = ["--temp-dir nowhere", "no temporary file can be created there", "No such file or directory"];
    refused(&mdfsck(folder, &["check", "one", "--temp-dir", "nowhere"]), 4, &words[..2])?;
    std::fs::write(folder.join("file"), b"")?;
    refused(&mdfsck(folder, &["check", "one", "--temp-dir", "file"]), 4, &["--temp-dir file"])?;
    let tried = mdfsck(folder, &["check", "one", "--no-infomsgs", "--temp-dir", "."]);
    ensure(tried.status.success() && std::fs::read_dir(folder)?.count() == 2, text(&tried.stderr))
}

fn progress_lines(folder: &Path) -> Result<(), Failed> {
    made(folder, &["lab", "new", "one"])?;
    let output = mdfsck(folder, &["check", "one", "--progress", "lines", "--no-infomsgs"]);
    let stderr = text(&output.stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    ensure(lines.windows(2).all(|pair| pair[0] != pair[1]), stderr.clone())?;
    ensure(lines.iter().all(|line| line.split(' ').count() == 5), stderr.clone())?;
    for words in ["reading-allocation-maps - 0 0 -", "reading-pages 0 0 ", "comparing-indexes-with-tables - 0 0 -"] {
        ensure(lines.iter().filter(|line| line.starts_with(words)).count() == 1, format!("{words}: {stderr}"))?;
    }
    ensure(lines.iter().any(|line| line.starts_with("reading-pages 100 ") && line.ends_with(" 0")), stderr)?;
    let json = text(&mdfsck(folder, &["check", "one", "--progress", "json", "--no-infomsgs"]).stderr);
    let lines = json.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let swept = lines.iter().rev().find(|line| line["phase"] == "sweep").ok_or("no sweep")?;
    ensure(swept["current"] == swept["maximum"] && swept["percent"] == 100, swept.to_string())?;
    ensure(swept["text"] == "reading pages" && swept["eta_seconds"] == 0, swept.to_string())
}

#[cfg(unix)]
mod pty {
    use std::fs::{File, OpenOptions};
    use std::io::Read;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    use super::{Failed, Test, ensure, made, mdfsck, text};

    pub(super) fn with_pty() -> Vec<(&'static str, Test)> {
        vec![
            ("a terminal gets a summary, a pipe and --format text get DBCC's lines", summary_on_terminal),
            ("colors are for terminals that want them", colors),
            ("a summary fits a narrow terminal", narrow),
            ("a bar begins empty, fits the terminal and leaves nothing behind", bar),
            ("Ctrl+C leaves no half bar and ends the program as ever", interrupted),
            ("a dumb terminal gets no bar", dumb),
        ]
    }

    /// Opens a pseudo-terminal with this number of columns. Returns two files: one from which the test reads the
    /// output, and one for the program. Returns `None` if the system has no pseudo-terminals.
    fn terminal(columns: u16) -> Result<Option<(File, File)>, Failed> {
        let Ok(master) = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY) else {
            eprintln!("skipped: this system has no pseudo-terminals");
            return Ok(None);
        };
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        let name = ptsname(&master, Vec::new())?;
        let terminal = OpenOptions::new().read(true).write(true).open(name.to_str()?)?;
        Ok(Some((File::from(master), terminal)))
    }

    fn command(folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.args(arguments).current_dir(folder).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The results that the program writes to a terminal with this number of columns.
    fn on_terminal(
        folder: &Path,
        columns: u16,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Option<String>, Failed> {
        let Some((mut reader, terminal)) = terminal(columns)? else { return Ok(None) };
        let mut command = command(folder, arguments);
        command.envs(environment.iter().copied()).stdout(terminal);
        let mut child = command.spawn()?;
        // The pseudo-terminal ends when the last process closes it. On Linux, a read from it then fails.
        drop(command);
        let mut written = Vec::new();
        let _ = reader.read_to_end(&mut written);
        child.wait()?;
        Ok(Some(text(&written).replace("\r\n", "\n")))
    }

    /// Reads until the text contains `words`, or until the output ends.
    fn read_until(reader: &mut File, words: &str) -> String {
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&seen).contains(words) {
            match reader.read(&mut buffer) {
                Ok(read @ 1..) => seen.extend_from_slice(&buffer[..read]),
                Ok(0) | Err(_) => break,
            }
        }
        text(&seen)
    }

    /// The text on the last line. The control sequences that clear the line are removed.
    fn last_line(written: &str) -> String {
        written.rsplit(['\r', '\n']).next().unwrap_or_default().replace("\u{1b}[2K", "").trim().to_owned()
    }

    fn bar(folder: &Path) -> Result<(), Failed> {
        made(folder, &["lab", "new", "one"])?;
        for columns in [100, 50] {
            let Some((mut reader, stderr)) = terminal(columns)? else { return Ok(()) };
            let mut command = command(folder, &["check", "one", "--io-limit", "10MB"]);
            let mut child = command.stderr(stderr).spawn()?;
            drop(command);
            let mut written = read_until(&mut reader, "reading pages");
            let mut rest = Vec::new();
            let _ = reader.read_to_end(&mut rest);
            child.wait()?;
            written.push_str(&text(&rest));
            let drawn: Vec<&str> = written.split(['\r', '\n']).filter(|line| line.contains("reading pages")).collect();
            ensure(drawn.iter().any(|line| line.contains("% [")), written.clone())?;
            // The progress bar is drawn only after the total amount of work is known. It must not be full at the start.
            ensure(
                !written.contains("/0 pages")
                    && !written.contains("0/0")
                    && drawn.first().is_some_and(|line| !line.contains("====]")),
                written.clone(),
            )?;
            let is_narrow = |line: &&str| line.replace("\u{1b}[2K", "").chars().count() <= usize::from(columns);
            ensure(drawn.iter().all(is_narrow), written.clone())?;
            ensure(last_line(&written).is_empty(), written)?;
        }
        Ok(())
    }

    fn interrupted(folder: &Path) -> Result<(), Failed> {
        made(folder, &["lab", "new", "one"])?;
        let Some((mut reader, stderr)) = terminal(80)? else { return Ok(()) };
        let mut command = command(folder, &["check", "one", "--io-limit", "1MB"]);
        let mut child = command.stderr(stderr).spawn()?;
        drop(command);
        let mut written = read_until(&mut reader, "reading pages");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)?;
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        written.push_str(&text(&rest));
        let status = child.wait()?;
        ensure(std::os::unix::process::ExitStatusExt::signal(&status) == Some(2), format!("{status:?}"))?;
        ensure(written.contains("reading pages") && last_line(&written).is_empty(), written)
    }

    fn dumb(folder: &Path) -> Result<(), Failed> {
        made(folder, &["lab", "new", "one"])?;
        let Some((mut reader, stderr)) = terminal(80)? else { return Ok(()) };
        let mut command = command(folder, &["check", "one"]);
        let mut child = command.env("TERM", "dumb").stderr(stderr).spawn()?;
        drop(command);
        let mut written = Vec::new();
        let _ = reader.read_to_end(&mut written);
        child.wait()?;
        ensure(written.is_empty(), text(&written))
    }

    fn summary_on_terminal(folder: &Path) -> Result<(), Failed> {
        made(folder, &["demo", "here"])?;
        let on = |arguments: &[&str]| on_terminal(folder, 80, &[], arguments);
        let Some(summary) = on(&["check", "here/1-bit-rot"])? else { return Ok(()) };
        ensure(summary.contains("NOT SOUND") && !summary.contains("Msg 8939, Level 16"), summary)?;
        let piped = text(&mdfsck(folder, &["check", "here/1-bit-rot"]).stdout);
        ensure(piped.contains("Msg 8939, Level 16, State 98, Line 1"), piped.clone())?;
        // If the text format is requested, the program prints DBCC's text even on a terminal.
        let asked = on(&["check", "--format", "text", "here/1-bit-rot"])?;
        ensure(asked.as_deref() == Some(&piped), asked.unwrap_or_default())?;
        for (option, word) in
            [("--no-infomsgs", "Msg 8939, Level 16"), ("--tableresults", "Error,Level"), ("--json", "{\"kind\"")]
        {
            let asked = on(&["check", option, "here/1-bit-rot"])?.unwrap_or_default();
            ensure(asked.contains(word) && !asked.contains("NOT SOUND"), format!("{option}: {asked}"))?;
        }
        let estimate = on(&["check", "--estimate-only", "here/0-sound"])?.unwrap_or_default();
        ensure(estimate.contains("Estimated"), estimate)
    }

    fn colors(folder: &Path) -> Result<(), Failed> {
        made(folder, &["demo", "here"])?;
        let on = |environment: &[(&str, &str)]| on_terminal(folder, 80, environment, &["check", "here/0-sound"]);
        let Some(colored) = on(&[])? else { return Ok(()) };
        ensure(colored.contains("\u{1b}[32mSOUND\u{1b}[0m"), colored.clone())?;
        for environment in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            let plain = on(&[environment])?.unwrap_or_default();
            ensure(
                plain.contains("\nSOUND   no errors") && !plain.contains('\u{1b}'),
                format!("{environment:?}: {plain}"),
            )?;
        }
        // A file gets no colors, even if the program runs on a terminal.
        on_terminal(folder, 80, &[], &["check", "--format", "summary", "--output", "result.txt", "here/0-sound"])?;
        let written = std::fs::read_to_string(folder.join("result.txt"))?;
        ensure(written.contains("\nSOUND   no errors") && !written.contains('\u{1b}'), written)?;
        // No environment variable makes the program write colors to a pipe.
        let piped = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
            .args(["check", "--format", "summary", "here/0-sound"])
            .current_dir(folder)
            .env("CLICOLOR_FORCE", "1")
            .output()?;
        ensure(!text(&piped.stdout).contains('\u{1b}'), text(&piped.stdout))
    }

    fn narrow(folder: &Path) -> Result<(), Failed> {
        made(folder, &["demo", "here"])?;
        for columns in [50, 300] {
            let Some(summary) = on_terminal(folder, columns, &[("NO_COLOR", "1")], &["check", "here/5-lost-extent"])?
            else {
                return Ok(());
            };
            let most = usize::from(columns).min(100);
            let too_long = summary.lines().find(|line| line.len() > most && !line.starts_with("  mdfsck "));
            ensure(too_long.is_none(), format!("{columns}: {too_long:?}"))?;
        }
        Ok(())
    }
}
