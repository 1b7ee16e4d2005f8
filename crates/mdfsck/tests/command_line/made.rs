//! What `mdfsck lab` writes from the same options is the same: it is written once, and copied for each further test that asks for it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

/// A folder and what the program has said.
type Made = Arc<OnceLock<Option<(TempDir, Output)>>>;

static ALL: Mutex<BTreeMap<Vec<String>, Made>> = Mutex::new(BTreeMap::new());

/// The same as `run` with these arguments in `folder`: from a copy, if they are those of a command of the lab that reads no file and has a
/// new folder for what it writes.
pub(crate) fn or_copied(folder: &Path, arguments: &[&str], run: impl Fn(&Path) -> Output) -> Output {
    let ["lab", "new" | "chain" | "crash", name, ..] = arguments else { return run(folder) };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    if name.starts_with('.') || !name.chars().all(is_plain) || folder.join(name).exists() {
        return run(folder);
    }
    let key: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let made = ALL.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
    let once = || {
        let place = TempDir::new().ok()?;
        let output = run(place.path());
        output.status.success().then_some((place, output))
    };
    let copied = made.get_or_init(once).as_ref().and_then(|(place, output)| {
        copy(&place.path().join(name), &folder.join(name)).ok()?;
        Some(output.clone())
    });
    copied.unwrap_or_else(|| run(folder))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() { copy(&path, &to)? } else { fs::copy(&path, &to).map(drop)? }
    }
    Ok(())
}

/// Removes what was written.
pub(crate) fn forget() {
    ALL.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
