//! Options from files: `mdfsck.toml`, `MDFSCK_CONFIG` and `mdfsck config`.

use serde_json::Value;

use super::*;

pub(super) fn with_defaults() -> Vec<(&'static str, Test)> {
    vec![
        ("options from files count less than the command line, and are named", order),
        ("no command line exceeds the limits of the system's file", limits),
        ("a file of defaults with a mistake is one line that names it", mistakes),
        ("defaults do not change the results", results),
    ]
}

/// The environment of a machine with files of its own.
#[derive(Clone, Copy)]
struct Machine<'f> {
    folder: &'f Path,
    config: Option<&'static str>,
}

impl Machine<'_> {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.args(arguments).current_dir(self.folder);
        command.env("MDFSCK_ETC", self.folder.join("etc")).env("XDG_CONFIG_HOME", self.folder.join("home"));
        command.env("APPDATA", self.folder.join("home"));
        match self.config {
            Some(path) => command.env("MDFSCK_CONFIG", path),
            None => command.env_remove("MDFSCK_CONFIG"),
        };
        command.output().expect("the program starts")
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Failed> {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().ok_or("no folder")?)?;
        Ok(fs::write(path, text)?)
    }
}

/// A machine that has no file of its own, on which the test can stand in for it.
fn machine(folder: &Path) -> Result<Machine<'_>, Failed> {
    let made = mdfsck(folder, &["lab", "new", "data", "--size", "2MB"]);
    ensure(made.status.success(), text(&made.stderr))?;
    Ok(Machine { folder, config: None })
}

fn order(folder: &Path) -> Result<(), Failed> {
    let machine = machine(folder)?;
    machine.write("etc/mdfsck.toml", "[check]\njson = true\nmaxdop = 1\n[tables]\njson = true\n")?;
    machine.write("home/mdfsck/mdfsck.toml", "[check]\nmaxdop = 2\nmemory = \"300MB\"\n")?;
    let output = machine.run(&["check", "data"]);
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    let first: Value = serde_json::from_str(text(&output.stdout).lines().next().ok_or("no line")?)?;
    let defaults: Vec<&str> = first["defaults"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let has = |typed: &str, file: &str| defaults.iter().any(|one| one.starts_with(typed) && one.contains(file));
    ensure(
        has("--maxdop=2 (", "home") && has("--memory=300MB (", "home") && has("--json (", "etc"),
        first.to_string(),
    )?;
    ensure(defaults.len() == 3, first.to_string())?;
    ensure(text(&output.stderr).contains("mdfsck: with --"), text(&output.stderr))?;
    // What the command line gives or contradicts is left out.
    let output = machine.run(&["check", "data", "--format", "text", "--maxdop", "1"]);
    ensure(text(&output.stdout).starts_with("DBCC results for"), text(&output.stdout))?;
    ensure(
        !text(&output.stderr).contains("maxdop") && text(&output.stderr).contains("--memory=300MB"),
        text(&output.stderr),
    )?;
    // A command without a section has no defaults.
    let output = machine.run(&["info", "data"]);
    ensure(!text(&output.stderr).contains("with --"), text(&output.stderr))?;
    let listed = text(&machine.run(&["config"]).stdout);
    ensure(listed.contains("in force") && listed.matches(" counts").count() == 1, listed)?;
    let listed = text(&machine.run(&["config", "--json"]).stdout);
    let rows: Vec<Value> = listed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let replaced: Vec<&Value> = rows.iter().filter(|row| !row["replaced_by"].is_null()).collect();
    ensure(rows.len() == 5 && replaced.len() == 1 && replaced[0]["option"] == "maxdop", listed)?;
    // A file that is named replaces both.
    machine.write("night.toml", "[check]\nno-infomsgs = true\n")?;
    let output = Machine { config: Some("night.toml"), ..machine }.run(&["check", "data"]);
    ensure(
        output.stdout.is_empty() && text(&output.stderr).contains("--no-infomsgs (night.toml)"),
        text(&output.stderr),
    )?;
    let output = Machine { config: Some(""), ..machine }.run(&["check", "data", "--format", "text"]);
    ensure(output.stderr.is_empty(), text(&output.stderr))
}

fn limits(folder: &Path) -> Result<(), Failed> {
    let machine = machine(folder)?;
    machine.write("etc/mdfsck.toml", "[limits]\nmemory = \"256MB\"\nio-limit = \"1GB\"\n")?;
    machine.write("own.toml", "[limits]\nmemory = \"8GB\"\n[check]\nmemory = \"1GB\"\n")?;
    for config in [None, Some(""), Some("own.toml")] {
        let machine = Machine { config, ..machine };
        let output = machine.run(&["check", "data", "--memory", "257MB"]);
        ensure(output.status.code() == Some(8) && output.stdout.is_empty(), text(&output.stdout))?;
        let said = text(&output.stderr);
        ensure(said.contains("--memory 257MB: ") && said.contains(" allows at most 256MB on this machine"), said)?;
    }
    // A default of a user is held, too.
    let output = Machine { config: Some("own.toml"), ..machine }.run(&["check", "data"]);
    ensure(output.status.code() == Some(8) && text(&output.stderr).contains("--memory 1GB: "), text(&output.stderr))?;
    let output = machine.run(&["check", "data", "--json"]);
    let last: Value = serde_json::from_str(text(&output.stdout).lines().last().ok_or("no line")?)?;
    ensure(last["memory_granted"] == 256 << 20, last.to_string())
}

fn mistakes(folder: &Path) -> Result<(), Failed> {
    let machine = machine(folder)?;
    for (content, words) in [
        ("[check]\nmaxdp = 2", ["[check] maxdp is not an option", "did you mean maxdop?"]),
        ("[check]\nwindow = \"3 parsecs\"", ["[check] window: ", "3 parsecs"]),
        ("[check\n", ["line 1", "mdfsck.toml"]),
    ] {
        machine.write("etc/mdfsck.toml", content)?;
        let output = machine.run(&["check", "data"]);
        ensure(output.status.code() == Some(8) && output.stdout.is_empty(), content)?;
        let said = text(&output.stderr);
        ensure(said.lines().count() == 1 && words.iter().all(|word| said.contains(word)), said)?;
    }
    fs::remove_file(folder.join("etc/mdfsck.toml"))?;
    let output = Machine { config: Some("none.toml"), ..machine }.run(&["check", "data"]);
    ensure(output.status.code() == Some(8) && text(&output.stderr).contains("none.toml"), text(&output.stderr))
}

fn results(folder: &Path) -> Result<(), Failed> {
    let machine = machine(folder)?;
    let without = machine.run(&["check", "data", "--format", "text"]);
    machine.write("etc/mdfsck.toml", "[check]\nformat = \"text\"\nmaxdop = 3\nreaders = 1\nmemory = \"200MB\"\n")?;
    let with = machine.run(&["check", "data"]);
    ensure(with.stdout == without.stdout && with.status == without.status, text(&with.stderr))
}
