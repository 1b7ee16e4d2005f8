//! Finds the Python interpreter for the programs that read exported files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of this Python environment in `.ci/tools`.
pub(crate) const TOOL: &str = "read-back";
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// The path of a Python interpreter with all required packages, or the reason why none is available. `.ci/tools`
/// installs such an environment; MDFSCK_READ_BACK is then the path of its interpreter. If this variable is not set, the
/// function installs an environment below `target`.
pub(crate) fn python() -> Result<PathBuf, String> {
    if let Some(python) = std::env::var_os("MDFSCK_READ_BACK") {
        return Ok(python.into());
    }
    let folder = super::workspace().join("target/read-back");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // The installation writes this file last. If the file is missing, the environment is incomplete.
    let stamp = folder.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|made_of| made_of == REQUIREMENTS) {
        return Ok(python);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|cause| cause.to_string())?;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let list = folder.join("wanted.txt");
    fs::write(&list, REQUIREMENTS).map_err(|cause| cause.to_string())?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"];
    run(Command::new(&python).args(install).args(["--only-binary", ":all:", "--requirement"]).arg(&list))?;
    fs::rename(&list, &stamp).map_err(|cause| cause.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let output = command.output().map_err(|cause| format!("{name}: {cause}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no text");
    if output.status.success() { Ok(()) } else { Err(format!("{name}: {last}")) }
}
