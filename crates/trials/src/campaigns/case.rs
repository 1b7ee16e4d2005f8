//! A database on disk, the program that checks it, and the answers that are allowed when something fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::outcome::Verdict;
use crate::process::{Done, Program};

/// The text that the output file contains before the program runs.
pub(super) const BEFORE: &str = "what an earlier check said\n";
/// Bits of the exit status: `CORRUPT` means findings, and `BLIND` means that something could not be read.
const CORRUPT: i32 = 1;
pub(super) const BLIND: i32 = 4;
/// A database on disk, and whether it is sound.
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

    /// Checks that the answer equals the answer of an undisturbed run.
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

    /// Checks that the answer equals the answer of an undisturbed run, or reports that something could not be read. In
    /// either case, all findings of the answer must also be findings of an undisturbed run.
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

    /// Checks that the findings equal those of an undisturbed run. If other parts of the answer are missing, the
    /// program must report this. The program may also refuse the run before it reads anything.
    pub(super) fn same_findings_or_refused(&self, clean: &Done, done: &Done) -> Verdict {
        let is_told = done.code.is_some_and(|code| code & (BLIND | 16) != 0) && !done.stderr.trim().is_empty();
        // If the folder for temporary files cannot be used, the program reports that before the check.
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

    /// Checks that the output file either still contains [`BEFORE`] or contains a complete answer.
    pub(super) fn whole(&self, output: &Path) -> Result<(), String> {
        let clean = self.undisturbed().stdout;
        match std::fs::read_to_string(output) {
            Ok(text) if text == BEFORE || text == clean => Ok(()),
            Ok(text) => Err(format!("--output has {} bytes of {}", text.len(), clean.len())),
            Err(error) => Err(format!("--output is gone: {error}")),
        }
    }

    /// Checks that the answer equals the answer of an undisturbed run, or that the program refused the run and gave a
    /// reason.
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

/// Checks that the output file was written, unless the exit status contains the bit `BLIND`.
pub(super) fn agrees(done: &Done, output: &Path) -> Verdict {
    let is_written = std::fs::read_to_string(output).is_ok_and(|text| text != BEFORE);
    match (done.code.unwrap_or(BLIND) & BLIND != 0, is_written) {
        (false, false) => Verdict::Broke(format!("nothing was written, and that is not said: {}", done.story())),
        _ => Verdict::Kept,
    }
}

/// The texts of the findings in a report in text format.
fn findings(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().zip(text.lines().skip(1));
    lines.filter(|(heading, _)| heading.starts_with("Msg ")).map(|(_, text)| text).collect()
}
