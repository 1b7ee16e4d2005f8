//! `--errorlog-line` and `--log`: write a line about the run, as DBCC would write it to SQL Server's error log.
//!
//! If the line cannot be written, the program only warns. The exit status of the run does not change.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use format::types::datetime_text;
use jobs::carve;
use jobs::failure::Failure;
use source::PageSource;

use crate::output;
use crate::speaker::{to_stderr, warn};

/// The target to which lines are appended.
pub(crate) enum ErrorLog {
    /// Standard error.
    Stderr,
    /// A file, with its path.
    File(PathBuf, File),
}

/// Refuses to append the line to the file of the results, since the results replace that file at the end of the run.
///
/// # Errors
/// If both options name the same file.
pub(crate) fn refuse_results(line: Option<&Path>, output: Option<&Path>) -> Result<(), Failure> {
    let (Some(line), Some(output)) = (line, output) else { return Ok(()) };
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        path.canonicalize().ok().or_else(|| Some(folder.canonicalize().ok()?.join(path.file_name()?)))
    };
    let is_file = |path: &Path| path.as_os_str() != "-" && !path.exists() || path.is_file();
    if is_file(line) && (line == output || place(line).is_some() && place(line) == place(output)) {
        return Err(Failure::usage(format!(
            "--errorlog-line {}: is the file of --output, which each run replaces; give another file",
            line.display()
        )));
    }
    Ok(())
}

impl ErrorLog {
    /// Opens the file at `path`, or stderr for `-`. Call this before the run, so that a path that cannot be written is
    /// reported immediately and not after hours.
    ///
    /// # Errors
    ///
    /// If the file is a SQL Server file, or cannot be written.
    pub(crate) fn open(path: &Path, inputs: &dyn PageSource) -> Result<Self, Failure> {
        Self::among(path, &carve::inputs(inputs))
    }

    /// Like [`Self::open`], but takes the paths of the input files.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(crate) fn among(path: &Path, inputs: &[&Path]) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stderr);
        }
        output::refuse_database_files("--errorlog-line", path, inputs)?;
        output::refuse_sql_server_file(path)?;
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.map(|file| Self::File(path.to_owned(), file)).map_err(|cause| output::unwritable(path, &cause))
    }

    fn append(self, lines: &[String]) {
        // The format of SQL Server's error log: time, process, text.
        let prefix = format!("{} {:<12}", now(), format!("spid{}", process::id()));
        let text: String = lines.iter().map(|line| format!("{prefix}{line}\n")).collect();
        match self {
            Self::Stderr => to_stderr(|out| out.write_all(text.as_bytes())),
            Self::File(path, mut file) => {
                if let Err(cause) = file.write_all(text.as_bytes()) {
                    warn(output::unwritable(&path, &cause).text);
                }
            }
        }
    }
}

/// Writes the lines of a run that ended with the exit status `status`.
pub(crate) fn write(error_log: Option<ErrorLog>, to_system: bool, lines: &[String], status: u8) {
    if let Some(error_log) = error_log {
        error_log.append(lines);
    }
    if to_system {
        for line in lines {
            if let Err(cause) = send(line, Severity::of(status)) {
                warn(format!("--log: {cause}"));
                break;
            }
        }
    }
}

/// The user who runs the program, as `DOMAIN\user` or `host\user`.
pub(crate) fn who() -> String {
    let variable =
        |names: [&str; 2]| names.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    let user = variable(["USERNAME", "USER"]).or_else(|| variable(["LOGNAME", "LOGNAME"])).unwrap_or_else(user_id);
    match variable(["USERDOMAIN", "USERDOMAIN"]).or_else(jobs::machine::name) {
        Some(domain) => format!("{domain}\\{user}"),
        None => user,
    }
}

/// A user without a name. It has no blank, because scripts read the name in DBCC's line up to the next blank.
#[cfg(unix)]
fn user_id() -> String {
    format!("uid-{}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn user_id() -> String {
    "unknown".to_owned()
}

/// The present time in UTC, in the format of SQL Server's error log, to hundredths of a second.
fn now() -> String {
    const DAYS_1900_TO_1970: i32 = 25_567;
    const DAY_SECONDS: u64 = 86_400;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let days = i32::try_from(since.as_secs() / DAY_SECONDS).unwrap_or_default();
    // A datetime counts ticks of 1/300 second.
    let ticks = (since.as_secs() % DAY_SECONDS) as u32 * 300 + since.subsec_millis() * 3 / 10;
    let mut text = datetime_text(ticks, days.saturating_add(DAYS_1900_TO_1970)).unwrap_or_default();
    text.pop();
    text
}

/// The severity of a line in the system's log, from the exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Severity {
    Error,
    Warning,
    Information,
}

impl Severity {
    fn of(status: u8) -> Self {
        match status {
            0 => Self::Information,
            status if status & Failure::CORRUPT != 0 => Self::Error,
            _ => Self::Warning,
        }
    }
}

#[cfg(unix)]
fn send(line: &str, severity: Severity) -> Result<(), String> {
    const SOCKETS: [&str; 2] = ["/dev/log", "/var/run/syslog"];
    let socket = SOCKETS.iter().map(Path::new).find(|path| path.exists());
    let socket = socket.ok_or_else(|| format!("this system has no syslog at {}", SOCKETS.join(" or ")))?;
    send_to(socket, line, severity).map_err(|cause| format!("{}: {cause}", socket.display()))
}

/// Sends a datagram in the format of RFC 3164, without a time, which the syslog daemon adds.
#[cfg(unix)]
fn send_to(socket: &Path, line: &str, severity: Severity) -> std::io::Result<()> {
    const USER: u8 = 1 << 3;
    let code = match severity {
        Severity::Error => 3,
        Severity::Warning => 4,
        Severity::Information => 6,
    };
    let text = format!("<{}>mdfsck[{}]: {line}", USER | code, process::id());
    let daemon = std::os::unix::net::UnixDatagram::unbound()?;
    daemon.send_to(text.as_bytes(), socket).map(drop)
}

/// Writes to the Application log with eventcreate.exe. The event ID is 957, because eventcreate.exe accepts no ID above
/// 1000.
#[cfg(windows)]
fn send(line: &str, severity: Severity) -> Result<(), String> {
    let kind = match severity {
        Severity::Error => "ERROR",
        Severity::Warning => "WARNING",
        Severity::Information => "INFORMATION",
    };
    let root = env::var("SystemRoot").unwrap_or_else(|_| r"C:\Windows".to_owned());
    let program = Path::new(&root).join(r"System32\eventcreate.exe");
    let arguments = ["/L", "APPLICATION", "/SO", "mdfsck", "/ID", "957", "/T", kind, "/D", line];
    let done = process::Command::new(&program).args(arguments).output();
    match done {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&done.stderr).trim())),
        Err(cause) => Err(format!("{}: {cause}", program.display())),
    }
}

#[cfg(not(any(unix, windows)))]
fn send(_line: &str, _severity: Severity) -> Result<(), String> {
    Err("not supported on this system".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_severity_follows_the_verdict() {
        let of = |status| Severity::of(status);
        assert_eq!(of(0), Severity::Information);
        assert_eq!(
            (of(Failure::CORRUPT), of(Failure::CORRUPT | Failure::INCOMPLETE)),
            (Severity::Error, Severity::Error)
        );
        assert_eq!((of(Failure::UNABLE), of(Failure::INCOMPLETE)), (Severity::Warning, Severity::Warning));
    }

    #[test]
    #[cfg(unix)]
    fn syslog_gets_a_datagram_with_facility_severity_and_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let daemon = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        send_to(&path, "DBCC CHECKDB (Shop) found 1 errors", Severity::Error).unwrap();
        let mut bytes = [0; 200];
        let length = daemon.recv(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let expected = format!("<11>mdfsck[{}]: DBCC CHECKDB (Shop) found 1 errors", process::id());
        assert_eq!(text, expected);
        assert!(send_to(&folder.path().join("none"), "x", Severity::Warning).is_err());
    }

    #[test]
    fn times_are_those_of_errorlog() {
        let text = now();
        assert_eq!(text.len(), "2014-03-02 11:20:10.12".len(), "{text}");
        assert!(text.starts_with("20"), "{text}");
    }
}
