//! What `mdfsck page` prints of the page of a finding.
//!
//! A process of its own reads the files, so that whatever they hold costs this one neither memory nor time.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use history::estate::PageOfFinding;

/// Such processes at a time.
const MOST: usize = 2;
/// Time for one of them.
const TIME: Duration = Duration::from_secs(20);
/// Bytes of what it prints that are shown.
const SHOWN_BYTES: u64 = 1 << 20;
/// Memory that it may use for recovery with the log.
const MEMORY: &str = "256MB";

/// How many are at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// What was printed, or why nothing was.
pub(super) enum Printed {
    Page(String),
    Nothing(String),
    Busy,
}

/// Shows a page of the files that the history names.
pub(super) fn show(found: &PageOfFinding, (file, page): (u16, u32)) -> Printed {
    let by_hand = format!("mdfsck page {file}:{page} {}", found.paths);
    let Some(paths) = paths(&found.paths) else {
        return Printed::Nothing(format!(
            "The history names no file of this machine by its whole path. By hand: {by_hand}"
        ));
    };
    if AT_WORK.fetch_add(1, Ordering::AcqRel) >= MOST {
        AT_WORK.fetch_sub(1, Ordering::AcqRel);
        return Printed::Busy;
    }
    let printed = print((file, page), &paths);
    AT_WORK.fetch_sub(1, Ordering::AcqRel);
    match printed {
        Ok(text) => Printed::Page(text),
        Err(why) => Printed::Nothing(format!("{why} By hand: {by_hand}")),
    }
}

fn print((file, page): (u16, u32), paths: &[PathBuf]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|cause| format!("mdfsck cannot be started: {cause}."))?;
    let started = Command::new(program)
        .args(["page", &format!("{file}:{page}"), "--memory", MEMORY, "--"])
        .args(paths)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|cause| format!("mdfsck cannot be started: {cause}."))?;
    let (out, said) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let out = scope.spawn(move || read(out));
        let said = scope.spawn(move || read(said));
        let has_ended = wait(&mut child);
        let text = |reader: thread::ScopedJoinHandle<'_, String>| reader.join().unwrap_or_default();
        match (has_ended, text(out), text(said)) {
            (false, ..) => Err(format!("It took longer than {} s.", TIME.as_secs())),
            (true, text, said) if text.is_empty() => Err(said.trim().to_owned()),
            (true, text, said) => Ok(if said.is_empty() { text } else { format!("{}\n{text}", said.trim_end()) }),
        }
    })
}

fn read(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What could be read is shown.
        let _ = from.take(SHOWN_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether it ended in time; if not, it is ended.
fn wait(child: &mut Child) -> bool {
    let deadline = Instant::now() + TIME;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Ok(Some(_)) => return true,
            Err(_) => break,
        }
    }
    // It may have ended just now.
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// The files of a run, if all of them are named by their whole path.
fn paths(text: &str) -> Option<Vec<PathBuf>> {
    let mut paths: Vec<String> = Vec::new();
    for part in text.split(", ") {
        match paths.last_mut() {
            // A comma in a name.
            Some(last) if !Path::new(part).is_absolute() => {
                last.push_str(", ");
                last.push_str(part);
            }
            _ => paths.push(part.to_owned()),
        }
    }
    let is_whole = |path: &String| Path::new(path).is_absolute();
    (!paths.is_empty() && paths.iter().all(is_whole)).then(|| paths.into_iter().map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_whole_paths_are_opened() {
        let whole = |text: &str| {
            paths(text).map(|paths| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(whole("/data/a.mdf, /log/b.ldf"), Some(vec!["/data/a.mdf".to_owned(), "/log/b.ldf".to_owned()]));
        assert_eq!(whole("/data/a, b.mdf, /c.ndf"), Some(vec!["/data/a, b.mdf".to_owned(), "/c.ndf".to_owned()]));
        for none in ["", "-", "a.mdf", "a.mdf, /b.ndf", "s3://bucket/a.bak", "--help, /a.mdf"] {
            assert_eq!(whole(none), None, "{none}");
        }
    }
}
