//! A database on disk, the program that is run on it, and the answers that are allowed when something fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::outcome::Verdict;
use crate::process::{Done, Program};

/// The previous content of the output file.
pub(super) const BEFORE: &str = "what an earlier check said\n";
/// Bits of the exit status.
const CORRUPT: i32 = 1;
pub(super) const BLIND: i32 = 4;
/// The database, and whether it is sound.
pub(super) struct Case<'a> {
    pub(super) program: &'a Program,
    pub(super) folder: PathBuf,
    pub(super) paths: Vec<String>,
    pub(super) is_sound: bool,
}

impl Case<'_> {
    pub(super) fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["check"];
        arguments.extend(more);
        if !more.contains(&"--maxdop") {
            arguments.extend(["--maxdop", "2"]);
        }
        arguments.extend(self.paths.iter().map(String::as_str));
        arguments
    }

    pub(super) fn undisturbed(&self) -> Done {
        self.program.run(&self.arguments(&[])).end()
    }

    /// The answer must be that of an undisturbed run.
    pub(super) fn same(&self, done: &Done) -> Verdict {
        self.same_as(&self.undisturbed(), done)
    }

    pub(super) fn same_as(&self, clean: &Done, done: &Done) -> Verdict {
        match done.code == clean.code && done.stdout == clean.stdout {
            true => Verdict::Kept,
            false => Verdict::Broke(format!("another answer: {} for {}", done.story(), clean.story())),
        }
    }

    pub(super) fn same_or_blind(&self, done: &Done) -> Verdict {
        self.same_or_told(&self.undisturbed(), done)
    }

    /// The answer must be that of an undisturbed run, or report that something could not be read, without findings that
    /// do not exist.
    pub(super) fn same_or_told(&self, clean: &Done, done: &Done) -> Verdict {
        if !done.is_orderly() {
            return Verdict::Broke(done.story());
        }
        let code = done.code.unwrap_or_default();
        if code & BLIND == 0 {
            return self.same_as(clean, done);
        }
        let known = findings(&clean.stdout);
        let new = findings(&done.stdout).into_iter().find(|finding| !known.contains(finding));
        match new {
            _ if done.stderr.trim().is_empty() => Verdict::Broke("could not look, and does not say why".to_owned()),
            _ if self.is_sound && code & CORRUPT != 0 => Verdict::Broke(format!("called corrupt: {}", done.story())),
            Some(finding) => Verdict::Broke(format!("a finding that is not there: {finding}; {}", done.story())),
            None => Verdict::Kept,
        }
    }

    /// The findings must be those of an undisturbed run; the rest may be missing if that is reported. Or the program
    /// refuses before it has read anything.
    pub(super) fn same_findings_or_refused(&self, clean: &Done, done: &Done) -> Verdict {
        let is_told = done.code.is_some_and(|code| code & (BLIND | 16) != 0) && !done.stderr.trim().is_empty();
        // An unusable folder for temporary files is an error before the check.
        let is_refused_folder = done.stdout.is_empty() && done.stderr.contains("--temp-dir ");
        if is_told && (is_refused_folder || done.code.is_some_and(|code| code & 8 != 0)) {
            return Verdict::Kept;
        }
        match done.code == clean.code || is_told {
            true if !done.is_orderly() => Verdict::Broke(done.story()),
            true if findings(&done.stdout) == findings(&clean.stdout) => Verdict::Kept,
            true => Verdict::Broke(format!("findings are lost or others are there: {}", done.story())),
            false => Verdict::Broke(format!("another answer: {} for {}", done.story(), clean.story())),
        }
    }

    /// The output file must have its previous content, or a complete answer.
    pub(super) fn whole(&self, output: &Path) -> Result<(), String> {
        let clean = self.undisturbed().stdout;
        match std::fs::read_to_string(output) {
            Ok(text) if text == BEFORE || text == clean => Ok(()),
            Ok(text) => Err(format!("--output has {} bytes of {}", text.len(), clean.len())),
            Err(error) => Err(format!("--output is gone: {error}")),
        }
    }

    /// The answer must be that of an undisturbed run, or the program refuses with a reason.
    pub(super) fn same_or_refused(&self, done: &Done) -> Verdict {
        let is_refused = done.is_orderly() && done.code.is_some_and(|code| code & (BLIND | 8) != 0);
        match is_refused && !done.stderr.trim().is_empty() {
            true if self.is_sound && done.code.is_some_and(|code| code & CORRUPT != 0) => {
                Verdict::Broke(format!("called corrupt: {}", done.story()))
            }
            true => Verdict::Kept,
            false => self.same(done),
        }
    }
}

/// A status without bit 4 promises that the output exists.
pub(super) fn agrees(done: &Done, output: &Path) -> Verdict {
    let is_written = std::fs::read_to_string(output).is_ok_and(|text| text != BEFORE);
    match (done.code.unwrap_or(BLIND) & BLIND != 0, is_written) {
        (false, false) => Verdict::Broke(format!("nothing was written, and that is not said: {}", done.story())),
        _ => Verdict::Kept,
    }
}

/// The messages of the findings in the text format.
fn findings(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().zip(text.lines().skip(1));
    lines.filter(|(heading, _)| heading.starts_with("Msg ")).map(|(_, text)| text).collect()
}
