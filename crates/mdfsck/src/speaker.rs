//! Lines on stderr: which database they are about, and where they go while several databases are checked.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;

use jobs::host::Host;
use tempfile::SpooledTempFile;

use crate::progress;

/// This program, for the library that carries out checks.
pub(crate) struct Program;

impl Host for Program {
    fn warn(&self, text: &str) {
        warn(text);
    }

    fn command(&self) -> String {
        std::env::args().nth(1).unwrap_or_default()
    }

    #[cfg(unix)]
    fn leave_signals(&self) {
        progress::leave_signals();
    }

    #[cfg(unix)]
    fn clear_display(&self) {
        progress::clear_bar();
    }
}

thread_local! {
    /// The state of this thread's stderr lines: the database that they are about, and the file that receives them
    /// instead of stderr, if there is such a file.
    static SPEAKER: RefCell<Speaker> = const { RefCell::new(Speaker { about: None, kept: None }) };
}

#[derive(Default)]
struct Speaker {
    about: Option<About>,
    kept: Option<SpooledTempFile>,
}

/// The database that stderr lines are about, if a command has several databases.
#[derive(Clone)]
pub(crate) struct About {
    /// The name of the database.
    pub(crate) name: String,
    /// The first file of the database. A line that begins with this path is not prefixed with the database's name.
    pub(crate) path: PathBuf,
}

/// Runs `work`, and prefixes its stderr lines with the name of the database.
pub(crate) fn speaking_of<T>(about: About, work: impl FnOnce() -> T) -> T {
    SPEAKER.with_borrow_mut(|speaker| speaker.about = Some(about));
    let result = work();
    SPEAKER.with_borrow_mut(|speaker| speaker.about = None);
    result
}

/// Runs `work`, and collects its stderr lines in `kept`.
pub(crate) fn keeping<T>(kept: SpooledTempFile, work: impl FnOnce() -> T) -> (T, Option<SpooledTempFile>) {
    SPEAKER.with_borrow_mut(|speaker| speaker.kept = Some(kept));
    let result = work();
    (result, SPEAKER.with_borrow_mut(|speaker| speaker.kept.take()))
}

/// Writes one line to stderr. A write error is ignored, since it could be reported only on stderr.
pub(crate) fn warn(text: impl Display) {
    let text = text.to_string();
    let line: String = text.chars().map(|c| if report::steers(c) { ' ' } else { c }).collect();
    let about = SPEAKER.with_borrow(|speaker| speaker.about.clone());
    let about = about.filter(|about| !text.starts_with(&about.path.display().to_string()));
    let about = about.map_or_else(String::new, |about| format!("{}: ", about.name));
    to_stderr(|out| writeln!(out, "mdfsck: {about}{line}"));
}

/// Writes to stderr, or to the file that collects this thread's stderr lines.
pub(crate) fn to_stderr(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let _ = SPEAKER.with_borrow_mut(|speaker| match &mut speaker.kept {
        Some(kept) => write(kept),
        None => {
            let mut written = Ok(());
            progress::without_bar(|| written = write(&mut io::stderr().lock()));
            written
        }
    });
}
