//! Runs the program as a process until the program ends. Limits can be set for the process. A small library, called the
//! shim, can intercept system calls of the process and make them fail.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::subject::folder;

/// The source of the shim. It is compiled when it is first used.
const SHIM: &str = include_str!("shim.c");
/// The maximum time of a run on a small database.
const LONGEST: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);

/// The program under test.
pub(crate) struct Program {
    binary: PathBuf,
    folder: TempDir,
    shim: PathBuf,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// The exit status; `None` if a signal ended the process.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Whether the process was killed because it ran too long.
    pub(crate) is_stuck: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) time: Duration,
}

impl Done {
    /// Describes how the process ended: the exit status or the signal, and the last line of stderr.
    pub(crate) fn story(&self) -> String {
        let end = match (self.code, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        format!("{end}: {}", self.stderr.lines().last().unwrap_or_default())
    }

    /// Whether the process ended by itself, with a documented status.
    pub(crate) fn is_orderly(&self) -> bool {
        !self.is_stuck && self.code.is_some_and(|code| code & !(1 | 4 | 8 | 16) == 0)
    }
}

/// A run that has not started yet.
pub(crate) struct Run<'a> {
    program: &'a Program,
    arguments: Vec<String>,
    /// Shell commands that run before the program starts, such as `ulimit`.
    pub(crate) limits: String,
    /// Shell text after the program's arguments, such as redirections.
    pub(crate) redirections: &'static str,
    /// The faults that the shim causes, as a value of the variable `TRIALS_FAULTS`; empty to run without the shim.
    pub(crate) faults: &'static str,
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Whether stdout is a pipe whose reading end is closed.
    pub(crate) is_unheard: bool,
}

impl Program {
    /// Finds the program under test: the file at `asked`, or the program next to this one if `asked` is `None`. If
    /// `asked` is `None` and the workspace exists, the program is first rebuilt. Also compiles the shim.
    pub(crate) fn find(asked: Option<&Path>) -> Result<Self, String> {
        let binary = match asked {
            Some(path) => path.to_owned(),
            None => built()?,
        };
        if !binary.is_file() {
            return Err(format!(
                "{}: no such program; cargo build -p mdfsck, or name it: --mdfsck PATH",
                binary.display()
            ));
        }
        let folder = folder();
        let (source, shim) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
        std::fs::write(&source, SHIM).map_err(|error| format!("{}: {error}", source.display()))?;
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(&source).arg("-ldl").status();
        match compiled {
            Ok(status) if status.success() => Ok(Self { binary, folder, shim }),
            Ok(status) => Err(format!("cc: {status}: the shim does not compile")),
            Err(error) => Err(format!("cc: {error}: a C compiler is needed for the shim")),
        }
    }

    /// Prepares a run with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run<'_> {
        Run {
            program: self,
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            limits: String::new(),
            redirections: "",
            faults: "",
            environment: Vec::new(),
            is_unheard: false,
        }
    }
}

impl Run<'_> {
    /// Starts the process with its output in files. If `stdout` is `None`, stdout is a pipe that nothing reads.
    pub(crate) fn start(&self, stdout: Option<&Path>, stderr: &Path) -> std::io::Result<Child> {
        let script = format!("{}exec \"$0\" \"$@\" {}", self.limits, self.redirections);
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(&self.program.binary).args(&self.arguments).stdin(Stdio::null());
        match stdout {
            Some(path) => command.stdout(File::create(path)?),
            None => command.stdout(Stdio::piped()),
        };
        command.stderr(File::create(stderr)?);
        if !self.faults.is_empty() {
            command.env("LD_PRELOAD", &self.program.shim).env("TRIALS_FAULTS", self.faults);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn()?;
        drop(child.stdout.take());
        Ok(child)
    }

    /// Runs the program until it ends.
    pub(crate) fn end(&self) -> Done {
        static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = |kind: &str| self.program.folder.path().join(format!("{number}.{kind}"));
        let (stdout, stderr) = (file("out"), file("err"));
        let start = Instant::now();
        let mut child = self
            .start((!self.is_unheard).then_some(&*stdout), &stderr)
            .unwrap_or_else(|error| panic!("{}: {error}", self.program.binary.display()));
        let (status, is_stuck) = loop {
            match child.try_wait() {
                Ok(Some(status)) => break (status, false),
                Ok(None) if start.elapsed() > LONGEST => {
                    let _ = child.kill();
                    break (child.wait().unwrap_or_default(), true);
                }
                Ok(None) => std::thread::sleep(POLL),
                Err(error) => panic!("cannot wait for the program: {error}"),
            }
        };
        let time = start.elapsed();
        let text = |path: &Path| {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
            let _ = std::fs::remove_file(path);
            text
        };
        Done {
            code: status.code(),
            signal: status.signal(),
            is_stuck,
            stdout: text(&stdout),
            stderr: text(&stderr),
            time,
        }
    }
}

/// The path of mdfsck in the folder of this program. If the workspace exists, mdfsck is first built with the profile of
/// this program.
fn built() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    let folder = own.parent().ok_or("where am I?")?;
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    // Outside of the workspace, mdfsck cannot be built.
    if let (true, Some(target)) = (workspace.is_file(), folder.parent()) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--quiet", "--package", "mdfsck", "--profile", profile, "--manifest-path"])
            .arg(&workspace);
        let status = command.arg("--target-dir").arg(target).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("cargo build -p mdfsck: {status}")),
            Err(error) => eprintln!("cargo: {error}: the program is taken as it is"),
        }
    }
    Ok(folder.join("mdfsck"))
}
