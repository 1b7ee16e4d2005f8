//! The prove-it kit (the folder `prove`) against a stand-in for sqlcmd and the server behind it. Each scenario runs with
//! the shell script, and with the PowerShell script if pwsh is installed.

mod literals;
pub(crate) mod stand_in;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use super::{Test, ensure, is_here, mdfsck, text};

/// A database that the kit did not make. It must still be on the server after each run.
const FOREIGN: &str = "sales";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Shell,
    PowerShell,
}

/// A server in some state, and a folder for the kit.
struct Kit {
    script: Script,
    /// The folder of the stand-in.
    server: PathBuf,
    /// The folder of the kit.
    results: PathBuf,
    /// The backup, one path for each stripe.
    backups: Vec<String>,
    programs: PathBuf,
}

impl Kit {
    /// A server that behaves as `scenario` says. `name` is the name of the kit's folder.
    fn new(folder: &Path, script: Script, scenario: &[&str], name: &str) -> Result<Self, Failed> {
        let folder = folder.join(if script == Script::Shell { "sh" } else { "pwsh" });
        let (server, programs) = (folder.join("server"), folder.join("programs"));
        fs::create_dir_all(server.join("databases"))?;
        fs::create_dir_all(&programs)?;
        let files = if scenario.contains(&"several files") { "3" } else { "1" };
        let made = mdfsck(&server, &["lab", "new", "source", "--size", "2MB", "--files", files]);
        ensure(made.status.success(), text(&made.stderr))?;
        let stripes = if scenario.contains(&"stripes") { 3 } else { 1 };
        let backups: Vec<String> = (1..=stripes).map(|stripe| format!("/back ups/it's [full] {stripe}.bak")).collect();
        fs::write(server.join("scenario"), scenario.join("\n"))?;
        fs::write(server.join("backups"), backups.join("\n"))?;
        fs::write(server.join("databases").join(FOREIGN), "ONLINE\n/data/sales.mdf\n")?;
        let kit = Self { script, results: folder.join(name), server, backups, programs };
        let tests = std::env::current_exe()?;
        kit.program("sqlcmd", &format!("exec '{}' \"$@\"", tests.display()))?;
        Ok(kit)
    }

    fn program(&self, name: &str, line: &str) -> Result<(), Failed> {
        let path = self.programs.join(name);
        fs::write(&path, format!("#!/bin/sh\n{line}\n"))?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    }

    /// The script, with options in the form of the shell script.
    fn command(&self, options: &[(&str, &str)]) -> Result<Command, Failed> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prove");
        let mut command = match self.script {
            Script::Shell => {
                let mut command = Command::new("sh");
                command.arg(folder.join("prove.sh"));
                for (option, value) in options {
                    command.arg(option).args((!value.is_empty()).then_some(value));
                }
                command
            }
            Script::PowerShell => {
                let mut command = Command::new("pwsh");
                let line =
                    format!("& {} {}", quoted(&folder.join("prove.ps1").display().to_string()), parameters(options));
                command.args(["-NoProfile", "-NonInteractive", "-Command", &format!("{line}; exit $LASTEXITCODE")]);
                command
            }
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path)))?;
        command.env("PATH", path).env("MDFSCK", env!("CARGO_BIN_EXE_mdfsck")).env(stand_in::FOLDER, &self.server);
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn options(&self, copies: &'static str) -> Vec<(&str, &str)> {
        let mut options =
            vec![("--folder", self.results.to_str().unwrap_or_default()), ("--copies", copies), ("--yes", "")];
        options.extend(self.backups.iter().map(|backup| ("--backup", backup.as_str())));
        options
    }

    fn run(&self, copies: &'static str) -> Result<Output, Failed> {
        Ok(self.command(&self.options(copies))?.output()?)
    }

    fn cases(&self) -> String {
        fs::read_to_string(self.results.join("cases.tsv")).unwrap_or_default()
    }

    /// What must hold after each run: the stand-in understood all statements, only the foreign database is on the server,
    /// and the kit has removed its copies of the database.
    fn is_tidy(&self, output: &Output) -> Result<(), Failed> {
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        for entry in fs::read_dir(self.results.join("sql")).into_iter().flatten() {
            let reply = fs::read_to_string(entry?.path())?;
            ensure(!reply.contains("stand-in:"), format!("{reply}\n{printed}"))?;
        }
        let left: Vec<_> = fs::read_dir(self.server.join("databases"))?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Result<_, Failed>>()?;
        ensure(left == [FOREIGN], format!("{left:?}\n{printed}"))?;
        ensure(!self.results.join("files").exists(), format!("the files are still there\n{printed}"))
    }
}

/// Options as PowerShell parameters: `--server-folder x` is `-ServerFolder 'x'`, and the values of an option that is given
/// several times are a list.
fn parameters(options: &[(&str, &str)]) -> String {
    let mut line = String::new();
    let mut names: Vec<&str> = options.iter().map(|(option, _)| *option).collect();
    names.dedup();
    for name in names {
        let words = name.trim_start_matches('-').split('-');
        let name_there: String = words.map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        let values: Vec<String> = options
            .iter()
            .filter(|(option, value)| *option == name && !value.is_empty())
            .map(|(_, value)| quoted(value))
            .collect();
        line += &format!("-{name_there} {} ", values.join(","));
    }
    line
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Runs a scenario with each script that can run on this machine.
fn with_each(folder: &Path, test: impl Fn(&Path, Script) -> Result<(), Failed>) -> Result<(), Failed> {
    test(folder, Script::Shell)?;
    match is_here("pwsh") {
        true => test(folder, Script::PowerShell),
        false => super::without(&["powershell"], "not on the PATH").map(|_| ()).map_err(Failed::from),
    }
}

/// A server on which the kit cannot begin: it must end with status 4 and a line with all of `words`, and leave nothing.
fn refused(folder: &Path, scenario: &[&str], words: &[&str]) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, scenario, "results")?;
        let output = kit.run("1")?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(4), format!("{:?}\n{stderr}{}", output.status, text(&output.stdout)))?;
        ensure(words.iter().all(|word| stderr.contains(word)), format!("{words:?} are not in {stderr}"))?;
        kit.is_tidy(&output)
    })
}

/// A server on which the kit runs: it must end with `status`, and cases.tsv must have all of `words`.
fn ends(folder: &Path, scenario: &[&str], name: &str, status: i32, words: &[&str]) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, scenario, name)?;
        let output = kit.run("2")?;
        let (stdout, cases) = (text(&output.stdout), kit.cases());
        ensure(output.status.code() == Some(status), format!("{:?}\n{}{stdout}", output.status, text(&output.stderr)))?;
        ensure(words.iter().all(|word| cases.contains(word)), format!("{words:?} are not in\n{cases}\n{stdout}"))?;
        ensure(cases.lines().count() == 3 && kit.results.join("index.html").is_file(), cases)?;
        kit.is_tidy(&output)
    })
}

pub(crate) fn kits() -> Vec<(&'static str, Test)> {
    vec![
        ("prove: server and mdfsck agree on the sound copy and on damaged copies", agrees),
        ("prove: what only the server finds is a difference, and all about it is kept", differs),
        ("prove: files that the server refuses to attach are exchanged while the database is offline", |folder| {
            ends(folder, &["refuses to attach"], "results", 0, &["attach refused (Msg 1813), files exchanged"])
        }),
        ("prove: CHECKDB that cannot make its snapshot runs WITH TABLOCK", |folder| {
            ends(folder, &["no snapshot"], "results", 0, &["no snapshot: WITH TABLOCK"])
        }),
        ("prove: a run that was cut off is no result, and its files are kept", cut_off),
        ("prove: a suspect database is checked in EMERGENCY", |folder| {
            ends(folder, &["suspect"], "results", 0, &["attached, EMERGENCY"])
        }),
        ("prove: errors of a localised server are understood by their numbers", |folder| {
            refused(folder, &["localised", "newer backup"], &["Msg 3169", "a newer version"])
        }),
        ("prove: a case-sensitive server takes all statements", case_sensitive),
        ("prove: names with blanks, brackets, dollars and quotes arrive as they are", |folder| {
            ends(folder, &["odd names"], "it's a [folder] $(x) of $HOME", 0, &["001\t", "002\t"])
        }),
        ("prove: a login that fails is named before anything is done", |folder| {
            refused(folder, &["login failure"], &["Login failed for user 'sa'"])
        }),
        ("prove: a login that is not sysadmin is refused", |folder| refused(folder, &["no sysadmin"], &["sysadmin"])),
        ("prove: an old server that refuses a newer backup is named", |folder| {
            refused(folder, &["newer backup"], &["Msg 3169", "use a server of that version or a later one"])
        }),
        ("prove: a server without space is named", |folder| {
            refused(folder, &["no space"], &["Msg 3257", "free some space"])
        }),
        ("prove: Ctrl+C in the middle removes only the kit's own databases", interrupted),
        ("prove: a killed run leaves a list, and --clean removes what it has", killed),
        ("prove: --clean removes nothing on another server", other_server),
        ("prove: a reader that closes its pipe ends the run, and nothing is left", closed_pipe),
        ("prove: a database whose path the server spells in its own way is the kit's own", |folder| {
            on_windows(folder, &["other spelling"], r"C:\prove it")
        }),
        ("prove: a database with files elsewhere is neither touched nor forgotten", elsewhere),
        ("prove: a database that cannot be dropped is kept in the list, and the status says so", |folder| {
            stuck(folder, &["other findings", "in use"], 1 + 4)
        }),
        ("prove: files are not exchanged under a database that cannot be dropped", |folder| {
            stuck(folder, &["refuses to attach", "in use"], 16 + 4)
        }),
        ("prove: a full disk loses no name of a database, and no part of a statement is sent", full_disk),
        ("prove: a reply that cannot be written does not end the script", lost_reply),
        ("prove: a list that cannot be written ends the script before anything is done", no_list),
        ("prove: what a server says does not steer the terminal", steering),
        ("prove: results without their last line are no agreement", |folder| {
            let words = ["000\tsound\t0\tagree", "001\tbit-rot\t1\trefused", "the results are not whole"];
            ends(folder, &["excerpt"], "results", 16, &words)
        }),
        ("prove: results of which not all messages were compared are no agreement", hidden),
        ("prove: CHECKALLOC that does not run is no difference", |folder| {
            ends(folder, &["no CHECKALLOC"], "results", 16, &["000\tsound\t0\tagree", "001\tbit-rot\t1\tagree"])
        }),
        ("prove: a name that is in use is not touched", |folder| {
            refused(folder, &["name in use"], &["is on the server already, and was not touched"])
        }),
        ("prove: a database of several files gets a MOVE for each", |folder| {
            ends(folder, &["several files"], "results", 0, &["001\t", "002\t"])
        }),
        ("prove: a database with FILESTREAM is refused before anything is done", |folder| {
            refused(folder, &["filestream"], &["FILESTREAM", "(documents)", "name another database"])
        }),
        ("prove: a server in a container gets the paths that it knows", container),
        ("prove: data files are copied, and the copy is attached", data_files),
        ("prove: a striped backup needs all stripes", stripes),
        ("prove: a missing certificate of TDE is named", |folder| {
            refused(folder, &["certificate"], &["Msg 33111", "restore the certificate"])
        }),
        ("prove: a folder that cannot be written to is refused", read_only),
        ("prove: a missing sqlcmd is named with the remedy", no_sqlcmd),
        ("prove: a sqlcmd that fails without a word is named with its status", |folder| {
            refused(folder, &["silent failure"], &["status 3", "it printed nothing"])
        }),
        ("prove: an exit status of sqlcmd beside a whole result changes nothing", |folder| {
            ends(folder, &["error status"], "results", 0, &["001\t", "002\t"])
        }),
        ("prove: without an answer nothing is done, and wrong options are refused", asks),
        ("prove: the shell script passes shellcheck", shellcheck),
        ("prove: variables of the statements are written in one way only", one_spelling),
    ]
}

fn agrees(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &[], "results")?;
        let output = kit.run("3")?;
        let (stdout, cases) = (text(&output.stdout), kit.cases());
        ensure(output.status.code() == Some(0), format!("{}{stdout}", text(&output.stderr)))?;
        ensure(cases.lines().filter(|line| line.contains("\tagree\t")).count() == 4, cases)?;
        // It says before it begins what it will do, and how much space that takes.
        let begin = stdout.find("000 sound").ok_or("the sound copy")?;
        for word in
            ["restore the backup as mdfsck_prove_", "other databases are not touched", "space: ", "damage 3 copies"]
        {
            ensure(stdout.find(word).is_some_and(|at| at < begin), format!("{word}: {stdout}"))?;
        }
        ensure(
            stdout.contains("found by both") && stdout.contains("0 of the server alone, 0 of mdfsck alone"),
            stdout,
        )?;
        let page = fs::read_to_string(kit.results.join("index.html"))?;
        ensure(page.contains("cases/001-bit-rot/") && page.contains("CHECKALLOC"), page)?;
        for name in ["checkdb.txt", "mdfsck.csv", "compare.json", "damage.txt"] {
            let path = kit.results.join("cases/001-bit-rot").join(name);
            ensure(fs::metadata(&path).is_ok_and(|file| file.len() > 0), path.display().to_string())?;
        }
        kit.is_tidy(&output)
    })
}

fn differs(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &["other findings"], "results")?;
        let output = kit.run("1")?;
        ensure(output.status.code() == Some(1), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        ensure(kit.cases().contains("001\tbit-rot\t1\tdiffer"), kit.cases())?;
        let case = kit.results.join("cases/001-bit-rot");
        let kept = if script == Script::Shell { "files.tar.gz" } else { "files.zip" };
        for name in [kept, "checkdb.txt", "mdfsck.csv", "compare.json", "compare.txt", "damage.txt"] {
            ensure(case.join(name).is_file(), format!("{name} is missing"))?;
        }
        kit.is_tidy(&output)
    })
}

fn cut_off(folder: &Path) -> Result<(), Failed> {
    ends(folder, &["cut off"], "results", 16, &["000\tsound\t0\tagree", "refused", "CHECKDB was cut off"])?;
    let case = folder.join("sh/results/cases/001-bit-rot");
    let rows = fs::read_to_string(case.join("checkdb.txt"))?;
    ensure(rows.contains("(1:15848)") && case.join("files.tar.gz").is_file(), rows)
}

fn case_sensitive(folder: &Path) -> Result<(), Failed> {
    ends(folder, &["case-sensitive"], "Results", 0, &["001\t", "002\t"])
}

fn interrupted(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &["hangs"], "results")?;
        let child = kit.command(&kit.options("2"))?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pid = rustix::process::Pid::from_child(&child);
        wait_for(&kit.server.join("hangs"))?;
        let databases = fs::read_dir(kit.server.join("databases"))?.count();
        ensure(databases == 2, format!("{databases} databases"))?;
        let before = Instant::now();
        rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
        let output = child.wait_with_output()?;
        ensure(before.elapsed() < Duration::from_secs(30), "the script waits for sqlcmd")?;
        ensure(output.status.code() == Some(130), format!("{:?}\n{}", output.status, text(&output.stderr)))?;
        ensure(text(&output.stdout).contains("removing the databases of this run"), text(&output.stdout))?;
        kit.is_tidy(&output)
    })
}

fn killed(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &["hangs"], "results")?;
        let made = left(&kit)?;
        ensure(made.lines().count() == 1 && made.starts_with("mdfsck_prove_"), &made)?;
        // A foreign name in the list is as safe as any other: it lacks the kit's prefix.
        fs::write(kit.results.join("made.txt"), format!("{made}{FOREIGN}\n"))?;
        let results = kit.results.to_str().unwrap_or_default();
        let output = kit.command(&[("--folder", results), ("--clean", "")])?.output()?;
        ensure(output.status.code() == Some(0), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        kit.is_tidy(&output)
    })
}

/// Leaves a run with a database on the server and a name in its list.
fn left(kit: &Kit) -> Result<String, Failed> {
    let mut child = kit.command(&kit.options("2"))?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    wait_for(&kit.server.join("hangs"))?;
    child.kill()?;
    child.wait()?;
    Ok(fs::read_to_string(kit.results.join("made.txt"))?)
}

fn other_server(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &["hangs"], "results")?;
        let made = left(&kit)?;
        let results = kit.results.to_str().unwrap_or_default();
        let clean = || kit.command(&[("--folder", results), ("--clean", "")])?.output().map_err(Failed::from);
        fs::write(kit.server.join("name"), "SQL2")?;
        let output = clean()?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(4), format!("{stderr}{}", text(&output.stdout)))?;
        ensure(stderr.contains("on the server SQL1, but this is SQL2"), stderr)?;
        let kept = fs::read_to_string(kit.results.join("made.txt"))?;
        ensure(kept == made && kit.results.join("files").exists(), format!("{kept} of {made}"))?;
        fs::remove_file(kit.server.join("name"))?;
        let output = clean()?;
        ensure(output.status.code() == Some(0), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        kit.is_tidy(&output)
    })
}

fn closed_pipe(folder: &Path) -> Result<(), Failed> {
    // PowerShell ends no script when its reader does.
    let kit = Kit::new(folder, Script::Shell, &[], "results")?;
    let mut child = kit.command(&kit.options("3"))?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("stdout")?).lines();
    while !lines.next().ok_or("the sound copy")??.starts_with("000 sound") {}
    drop(lines);
    let output = child.wait_with_output()?;
    ensure(output.status.code() == Some(141), format!("{:?}\n{}", output.status, text(&output.stderr)))?;
    kit.is_tidy(&output)
}

fn elsewhere(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let option = if script == Script::Shell { "--server-folder" } else { "-ServerFolder" };
        let kit = Kit::new(folder, script, &["elsewhere"], "results")?;
        let output = kit.run("1")?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(4), format!("{:?}\n{stderr}", output.status))?;
        ensure(stderr.contains("/elsewhere/files/base/") && stderr.contains(option), stderr)?;
        let made = fs::read_to_string(kit.results.join("made.txt"))?;
        let base = made.trim();
        ensure(base.ends_with("_base") && kit.server.join("databases").join(base).exists(), &made)?;
        ensure(kit.results.join("files/base").is_dir(), "the files were removed")
    })
}

/// A database that the server does not drop: it stays in the list with its files until a later run can drop it.
fn stuck(folder: &Path, scenario: &[&str], status: i32) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, scenario, "results")?;
        let output = kit.run("1")?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(status), format!("{:?}\n{stderr}{}", output.status, kit.cases()))?;
        ensure(stderr.contains("_001 is still on the server: Msg 3702"), stderr)?;
        let made = fs::read_to_string(kit.results.join("made.txt"))?;
        ensure(made.trim().ends_with("_001") && kit.results.join("files/server/data1.mdf").is_file(), made)?;
        ensure(kit.results.join("index.html").is_file(), "the report is missing")?;
        fs::write(kit.server.join("scenario"), "")?;
        let results = kit.results.to_str().unwrap_or_default();
        let output = kit.command(&[("--folder", results), ("--clean", "")])?.output()?;
        ensure(output.status.code() == Some(0), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        kit.is_tidy(&output)
    })
}

/// Runs functions of the shell script in a folder of the kit.
fn functions(folder: &Path, calls: &str) -> Result<Output, Failed> {
    let prove = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prove");
    let before = format!(
        "here={0}; tab='\t' connection='' mdfsck=false sqlcmd=send prefix=mdfsck_prove_; folder=.; . {0}/server.sh; \
         say() {{ printf '%s\\n' \"$*\"; }}; sql_text() {{ printf '%s' \"$1\"; }}; fail() {{ exit \"$1\"; }}; \
         send() {{ echo sent; }}",
        prove.display()
    );
    fs::create_dir_all(folder.join("sql"))?;
    Ok(Command::new("sh").args(["-c", &format!("{before}; {calls}")]).current_dir(folder).output()?)
}

/// The functions of the shell script that keep the list, where no file can grow.
fn full_disk(folder: &Path) -> Result<(), Failed> {
    let names = "mdfsck_prove_1_base\nmdfsck_prove_1_001\n";
    for (calls, stdout) in [
        ("forget mdfsck_prove_1_001", ""),
        ("note mdfsck_prove_1_002", ""),
        // The statement is not sent.
        (
            "step drop database mdfsck_prove_1_001 folder /x || echo $?; [ -z \"$(told state)\" ] && echo unknown",
            "4\nunknown\n",
        ),
        (
            "drop() { echo \"drop $1\"; }; tidy",
            "removing the databases of this run\ndrop mdfsck_prove_1_base\ndrop mdfsck_prove_1_001\n",
        ),
    ] {
        fs::write(folder.join("made.txt"), names)?;
        let output = functions(folder, &format!("trap '' XFSZ; ulimit -f 0; {calls}"))?;
        let made = fs::read_to_string(folder.join("made.txt"))?;
        ensure(made == names, format!("{calls}: {made:?} {}", text(&output.stderr)))?;
        ensure(text(&output.stdout) == stdout, format!("{calls}: {output:?}"))?;
        ensure(!calls.starts_with("note") || output.status.code() == Some(4), format!("{output:?}"))?;
    }
    // With room on the disk, the same step sends its statement.
    let output = functions(folder, "step drop database mdfsck_prove_1_001 folder /x")?;
    ensure(text(&output.stdout) == "sent\n", format!("{output:?}"))
}

fn lost_reply(folder: &Path) -> Result<(), Failed> {
    let calls = "send() { rm -r sql; }; step drop database mdfsck_prove_1_001 folder /x; echo went on";
    let output = functions(folder, calls)?;
    ensure(text(&output.stdout) == "went on\n", format!("{output:?}"))
}

fn steering(folder: &Path) -> Result<(), Failed> {
    let name = "é\u{1b}[2J\u{7f}ü\u{9b}2J\u{61c}ל\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}–\u{2065}\u{2010}中";
    fs::write(folder.join("reply.txt"), format!("prove:name={name}\r\nprove:state=NONE\n"))?;
    let output = functions(folder, "reply=reply.txt; told name")?;
    let told = text(&output.stdout).trim_end().to_owned();
    ensure(told == "é[2Jü2Jל–\u{2065}\u{2010}中" && !told.contains(report::steers), told)
}

fn no_list(folder: &Path) -> Result<(), Failed> {
    // PowerShell reports a folder and a list that cannot be written in the same way.
    let kit = Kit::new(folder, Script::Shell, &[], "results")?;
    kit.program(
        "mkdir",
        "for last; do :; done; /bin/mkdir \"$@\" && case $last in */sql) /bin/mkdir \"$last/../made.txt\" ;; esac",
    )?;
    let output = kit.run("1")?;
    let stderr = text(&output.stderr);
    ensure(output.status.code() == Some(4), format!("{:?}\n{stderr}", output.status))?;
    ensure(stderr.contains("made.txt cannot be written"), stderr)?;
    kit.is_tidy(&output)
}

fn wait_for(path: &Path) -> Result<(), Failed> {
    let start = Instant::now();
    while !path.exists() {
        ensure(start.elapsed() < Duration::from_secs(60), format!("{} does not appear", path.display()))?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn stripes(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let mut kit = Kit::new(folder, script, &["stripes"], "results")?;
        let output = kit.run("1")?;
        ensure(output.status.code() == Some(0), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        kit.is_tidy(&output)?;
        kit.backups.pop();
        kit.results = kit.results.with_file_name("again");
        let output = kit.run("1")?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(4) && stderr.contains("name each stripe"), stderr)?;
        kit.is_tidy(&output)
    })
}

fn container(folder: &Path) -> Result<(), Failed> {
    // The root of a drive loses its backslash, but the paths in it have backslashes.
    on_windows(folder, &[], "D:\\")
}

/// The folder of the kit has another name on the server, which runs on Windows.
fn on_windows(folder: &Path, scenario: &[&str], server_folder: &str) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, scenario, "results")?;
        let name = server_folder.trim_end_matches('\\');
        fs::write(kit.server.join("map"), format!("{name}\n{}", kit.results.display()))?;
        let mut options = kit.options("1");
        options.push(("--server-folder", server_folder));
        let output = kit.command(&options)?.output()?;
        ensure(output.status.code() == Some(0), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        let detached = fs::read_dir(kit.results.join("sql"))?.flatten().map(|entry| entry.path());
        let detached = detached.filter(|path| path.to_string_lossy().ends_with("-detach.sql"));
        let sent = detached.map(fs::read_to_string).collect::<Result<String, _>>()?;
        ensure(sent.contains(&format!("N'{name}\\files\\'")), sent)?;
        kit.is_tidy(&output)
    })
}

/// A comparison that is whole, but has more messages than are compared.
fn hidden(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &[], "results")?;
        let mdfsck = env!("CARGO_BIN_EXE_mdfsck");
        let line = format!(
            "[ \"$1\" = compare-dbcc ] || exec '{mdfsck}' \"$@\"; \
             '{mdfsck}' \"$@\" >\"$0.out\"; status=$?; sed '1s/\"hidden\":0,/\"hidden\":20,/' \"$0.out\"; exit $status"
        );
        kit.program("mdfsck", &line)?;
        let output = kit.command(&kit.options("1"))?.env("MDFSCK", kit.programs.join("mdfsck")).output()?;
        ensure(output.status.code() == Some(16), format!("{:?}\n{}", output.status, text(&output.stderr)))?;
        let cases = kit.cases();
        for case in ["000\tsound\t0\trefused", "001\tbit-rot\t1\trefused", "the results are not whole"] {
            ensure(cases.contains(case), format!("{case}: {cases}"))?;
        }
        kit.is_tidy(&output)
    })
}

fn data_files(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &[], "results")?;
        let file = kit.server.join("source/orders.mdf");
        let before = fs::read(&file)?;
        let mut options: Vec<_> = kit.options("1").into_iter().filter(|(option, _)| *option != "--backup").collect();
        options.push(("--data", file.to_str().unwrap_or_default()));
        let output = kit.command(&options)?.output()?;
        ensure(output.status.code() == Some(0), format!("{}{}", text(&output.stderr), text(&output.stdout)))?;
        ensure(fs::read(&file)? == before, "the file is as it was")?;
        kit.is_tidy(&output)
    })
}

fn read_only(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        // Root may write everywhere but below a file.
        let kit = Kit::new(folder, script, &[], "file/results")?;
        fs::write(kit.results.parent().ok_or("a folder")?, "")?;
        let output = kit.run("1")?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(4) && stderr.contains("cannot be written to"), stderr)?;
        kit.is_tidy(&output)
    })
}

fn no_sqlcmd(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &[], "results")?;
        let output = kit.command(&kit.options("1"))?.env("SQLCMD", "sqlcmd-that-is-missing").output()?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(4) && stderr.contains("install sqlcmd"), stderr)?;
        ensure(!kit.results.exists(), "a folder was made")
    })
}

fn asks(folder: &Path) -> Result<(), Failed> {
    with_each(folder, |folder, script| {
        let kit = Kit::new(folder, script, &[], "results")?;
        let options: Vec<_> = kit.options("1").into_iter().filter(|(option, _)| *option != "--yes").collect();
        let output = kit.command(&options)?.output()?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(8) && stderr.contains("nothing was done"), stderr)?;
        let sent: Vec<_> = fs::read_dir(kit.results.join("sql"))?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Result<_, Failed>>()?;
        ensure(sent.iter().all(|name| !name.to_string_lossy().contains("restore")), format!("{sent:?}"))?;
        kit.is_tidy(&output)?;
        // A folder that holds anything is not taken.
        let output = kit.run("1")?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(8) && stderr.contains("is not empty"), stderr)?;
        let output = kit.command(&[("--folder", "x"), ("--yes", "")])?.output()?;
        let stderr = text(&output.stderr);
        ensure(output.status.code() == Some(8) && stderr.contains("give a database"), stderr)?;
        for copies in ["0", "1000"] {
            let options = [("--folder", "x"), ("--backup", "x"), ("--copies", copies), ("--yes", "")];
            let output = kit.command(&options)?.output()?;
            let stderr = text(&output.stderr);
            ensure(output.status.code() == Some(8) && stderr.contains("from 1 to 999"), stderr)?;
        }
        ensure(!Path::new("x").exists(), "a folder was made")
    })
}

fn shellcheck(_: &Path) -> Result<(), Failed> {
    if !is_here("shellcheck") {
        super::without(&["shellcheck"], "not on the PATH")?;
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prove");
    let output = Command::new("shellcheck").args(["-x", "prove.sh", "server.sh"]).current_dir(folder).output()?;
    ensure(output.status.success(), text(&output.stdout))
}

/// On a case-sensitive server, a variable that is written in two ways is two variables, and names of system views have
/// small letters.
fn one_spelling(_: &Path) -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prove/sql");
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let statement = fs::read_to_string(&path)?;
        let names = statement.split(['@', '.']).skip(1);
        for name in names.filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()) {
            count += 1;
            ensure(!name.contains(|c: char| c.is_ascii_uppercase()), format!("{}: {name}", path.display()))?;
        }
    }
    ensure(count > 100, format!("{count} names"))
}
