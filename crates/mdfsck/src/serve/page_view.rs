//! Shows the database page of a finding, in the format of `mdfsck page`.
//!
//! A separate process reads the database files, so that damaged or huge files cannot use much memory or time in the
//! server process.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use history::estate::PageOfFinding;
use jobs::keep;

/// Maximum number of page-printing processes that run at the same time.
const MOST: usize = 2;
/// The time limit for one page-printing process.
const TIME: Duration = Duration::from_secs(20);
/// Maximum number of bytes of output to show.
const SHOWN_BYTES: u64 = 1 << 20;
/// The memory grant of the page-printing process. The process uses the memory for recovery.
const MEMORY: &str = "256MB";

/// The boot page, which identifies the database.
const BOOT_PAGE: &str = "1:9";

/// The number of page-printing processes that are running.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// The printed page, or the reason why it is not shown.
pub(super) enum Printed {
    Page(String),
    Nothing(String),
    Busy,
}

/// Prints a page. Reads the files that the history lists for the finding, if these files are on this machine.
pub(super) fn show(found: &PageOfFinding, (file, page): (u16, u32)) -> Printed {
    let address = format!("{file}:{page}");
    // Omits `--set 1` from the command, since `mdfsck page` reads the first backup set by default.
    let sets = found.sets.as_deref();
    let sets = sets.map(|sets| if sets.iter().any(|set| *set != 1) { sets } else { Default::default() });
    let by_hand = by_hand(&address, sets.unwrap_or_default(), &names(&found.paths));
    let host = keep::host();
    if found.host != host {
        return Printed::Nothing(format!(
            "The files are on {}, but this server runs on {host}. To show the page there: {by_hand}",
            found.host
        ));
    }
    let sets = match sets {
        Some(sets) if sets.len() <= 1 => sets,
        _ => {
            return Printed::Nothing(format!(
                "The run read several backup sets, or a set other than the first. To show the page, add --set: {by_hand}"
            ));
        }
    };
    let Some(paths) = paths(&found.paths) else {
        return Printed::Nothing(format!(
            "The history has no full path of the files on this machine. To show the page: {by_hand}"
        ));
    };
    let Some(_place) = Place::take() else { return Printed::Busy };
    let printed = match other_family(&found.family, sets, &paths) {
        Some(other) => Err(format!("These files now belong to another database: its family GUID is {other}.")),
        None => print(&address, sets, &paths),
    };
    match printed {
        Ok(text) => Printed::Page(text),
        Err(why) => Printed::Nothing(format!("{}. To show the page: {by_hand}", why.trim_end().trim_end_matches('.'))),
    }
}

/// Permission to run one page-printing process. At most [`MOST`] of these values exist at a time; dropping one allows
/// another process to run.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let place = Self;
        (AT_WORK.fetch_add(1, Ordering::AcqRel) < MOST).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The family GUID of the files, if it is not equal to `family`. `None` if both GUIDs are equal, or if one of them is
/// unknown.
fn other_family(family: &str, sets: &[u16], paths: &[PathBuf]) -> Option<String> {
    let known = family.split(' ').next().filter(|guid| is_guid(guid))?;
    let other = family_of(&print(BOOT_PAGE, sets, paths).ok()?)?;
    (!other.eq_ignore_ascii_case(known)).then_some(other)
}

/// Finds the family GUID in the printed boot page.
fn family_of(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once(" dbi_familyGUID ")?;
    rest.split_whitespace().next().filter(|guid| is_guid(guid)).map(str::to_owned)
}

fn is_guid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The shell command with which a user can print the page.
fn by_hand(address: &str, sets: &[u16], names: &[String]) -> String {
    let mut command = format!("mdfsck page {address}");
    for set in sets {
        command.push_str(&format!(" --set {set}"));
    }
    if names.iter().any(|name| name.starts_with('-')) {
        command.push_str(" --");
    }
    for name in names {
        command.push(' ');
        command.push_str(&quoted(name));
    }
    command
}

/// Quotes a name for a shell if necessary.
fn quoted(name: &str) -> String {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || "/._-:=@%+,".contains(letter) || cfg!(windows) && letter == '\\';
    if !name.is_empty() && name.chars().all(is_plain) {
        name.to_owned()
    } else if cfg!(windows) {
        format!("\"{name}\"")
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

fn print(address: &str, sets: &[u16], paths: &[PathBuf]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|cause| format!("mdfsck cannot be started: {cause}."))?;
    let started = Command::new(program)
        .args(["page", address, "--memory", MEMORY])
        .args(sets.iter().flat_map(|set| ["--set".to_owned(), set.to_string()]))
        .arg("--")
        .args(paths)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|cause| format!("mdfsck cannot be started: {cause}."))?;
    let (out, said) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let out = thread::Builder::new().spawn_scoped(scope, move || read(out));
        let said = thread::Builder::new().spawn_scoped(scope, move || read(said));
        let (Ok(out), Ok(said)) = (out, said) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err("The system cannot start a thread to read the output of 'mdfsck page'.".to_owned());
        };
        let ended = wait(&mut child);
        let text = |reader: thread::ScopedJoinHandle<'_, (String, bool)>| reader.join().unwrap_or_default();
        let ((mut text, is_cut), (said, _)) = (text(out), text(said));
        let Some(status) = ended else { return Err(format!("'mdfsck page' took longer than {} s.", TIME.as_secs())) };
        if text.is_empty() {
            return Err(said.trim().to_owned());
        }
        if !said.is_empty() {
            text = format!("{}\n{text}", said.trim_end());
        }
        // If the output is cut off at the limit, the process fails because its pipe is closed, so its exit status has
        // no meaning.
        if is_cut {
            text.push_str("\nThe output was cut off after 1 MB.\n");
        } else if !status.success() {
            let number = status.code().map_or_else(|| "unknown".to_owned(), |code| code.to_string());
            text.push_str(&format!("\nmdfsck page ended with status {number}\n"));
        }
        Ok(text)
    })
}

/// Reads the output up to the limit. Also returns whether the output exceeds the limit.
fn read(from: Option<impl Read>) -> (String, bool) {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // An error is ignored: the output read so far is shown.
        let _ = from.take(SHOWN_BYTES + 1).read_to_end(&mut bytes);
    }
    let is_cut = bytes.len() as u64 > SHOWN_BYTES;
    bytes.truncate(SHOWN_BYTES as usize);
    (String::from_utf8_lossy(&bytes).into_owned(), is_cut)
}

/// Waits for the process to end, and returns its status. After the time limit, kills the process and returns `None`.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + TIME;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Ok(Some(status)) => return Some(status),
            Err(_) => break,
        }
    }
    // An error is ignored: the process may have ended just now.
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Splits a comma-separated list of the files of a run.
fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in text.split(", ") {
        match names.last_mut() {
            // If a part is not an absolute path, the comma before it belongs to the name of the previous file, and the
            // part continues this name.
            Some(last) if Path::new(last.as_str()).is_absolute() && !Path::new(part).is_absolute() => {
                last.push_str(", ");
                last.push_str(part);
            }
            _ => names.push(part.to_owned()),
        }
    }
    names
}

/// The paths of the files of a run. Returns `None` if any of the paths is not absolute.
fn paths(text: &str) -> Option<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = names(text).into_iter().map(PathBuf::from).collect();
    paths.iter().all(|path| path.is_absolute()).then_some(paths)
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

    #[test]
    fn the_family_of_a_database_is_in_its_boot_page() {
        let line = "  0x01F8   +408  1E F2 5A D6 49 60 .. +10        dbi_familyGUID            D65AF21E-6049-49FD-A872-DEF2A25A2242  family guid";
        assert_eq!(family_of(line).as_deref(), Some("D65AF21E-6049-49FD-A872-DEF2A25A2242"));
        assert_eq!(family_of("  dbi_familyGUID  <img src=x>"), None);
        assert_eq!(family_of("nothing"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_command_by_hand_is_one_that_a_shell_takes() {
        let command = |text: &str, sets: &[u16]| by_hand("1:5", sets, &names(text));
        assert_eq!(command("/data/a.mdf, /log/b.ldf", &[]), "mdfsck page 1:5 /data/a.mdf /log/b.ldf");
        assert_eq!(command("/b/it's a.bak", &[2]), "mdfsck page 1:5 --set 2 '/b/it'\\''s a.bak'");
        assert_eq!(command("--help, $(x)", &[]), "mdfsck page 1:5 -- --help '$(x)'");
        assert_eq!(command("", &[]), "mdfsck page 1:5 ''");
    }
}
