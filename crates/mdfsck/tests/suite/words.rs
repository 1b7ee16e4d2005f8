//! Comments of all crates and all documents must be plain English. They must not contain phrases that force a reader to
//! read a sentence twice (CONTRIBUTING.md#words).
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Forbidden phrases, in lower case. Such a phrase hides who does what, or can be understood only with another
/// sentence.
const BANNED: [&str; 19] = [
    " is said",
    " are said",
    " and said",
    " is told",
    " told apart",
    " at hand",
    " be had",
    " none but ",
    " nobody",
    " whoever",
    " as it lies",
    " as they lie",
    " all the same",
    " came to",
    " comes to ",
    " that one.",
    " that one,",
    " desk ",
    " purse ",
];

/// Forbidden beginnings of a sentence, which delay its main noun to the end. The test distinguishes upper and lower
/// case.
const BEGINNINGS: [&str; 6] = ["Of the ", "Of these ", "Of those ", "Of each ", "Of one ", "None but "];

/// Documents that contain texts by others: messages of DBCC, messages of servers, and the requirements for this
/// project.
const OF_OTHERS: [&str; 3] = ["docs/messages.md", "docs/format/cases.md", "docs/errata.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder whose names end with `ending`, ordered by path.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The comment on a line of code, without the slashes. `None` if the line does not begin with a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

/// The first forbidden phrase in a text, or else the first forbidden beginning of a sentence.
fn banned(text: &str) -> Option<&'static str> {
    let small = format!(" {}", text.to_lowercase());
    let begins = |start: &&&str| text.starts_with(**start) || text.contains(&format!(". {start}"));
    BANNED.iter().find(|phrase| small.contains(**phrase)).or_else(|| BEGINNINGS.iter().find(begins)).copied()
}

#[test]
fn comments_and_documents_are_free_of_phrases_that_must_be_read_twice() {
    let root = root();
    let mut found = Vec::new();
    let mut lines = 0;
    for path in files(&root.join("crates"), ".rs") {
        // This file contains the forbidden phrases.
        if path.ends_with("tests/suite/words.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = comment(line) else { continue };
            lines += 1;
            found.extend(banned(comment).map(|phrase| (path.clone(), number + 1, phrase, line.to_owned())));
        }
    }
    let documents = files(&root.join("docs"), ".md").into_iter().chain(files(&root.join("samples"), ".md"));
    let of_root =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "CHALLENGE.md"].map(|name| root.join(name));
    for path in documents.chain(of_root) {
        if OF_OTHERS.iter().any(|own| path.ends_with(own)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            lines += 1;
            found.extend(banned(line).map(|phrase| (path.clone(), number + 1, phrase, line.to_owned())));
        }
    }
    assert!(lines > 20_000, "only {lines} lines were read");
    let shown: Vec<String> = found
        .iter()
        .map(|(path, line, phrase, text)| {
            let path = path.strip_prefix(&root).unwrap_or(path).display();
            format!("{path}:{line}: '{}': {}", phrase.trim(), text.trim())
        })
        .collect();
    assert!(shown.is_empty(), "{} lines:\n{}", shown.len(), shown.join("\n"));
}

#[test]
fn a_banned_phrase_is_found_in_a_comment_and_at_the_start_of_a_sentence() {
    assert_eq!(comment("    /// What it is."), Some("What it is."));
    assert_eq!(comment("let a = \"// none\";"), None);
    assert_eq!(banned("The stripe is said to be missing"), Some(" is said"));
    assert_eq!(banned("Of these the first counts."), Some("Of these "));
    assert_eq!(banned("Sorted. Of each page the last"), Some("Of each "));
    assert_eq!(banned("The number of these pages"), None);
}
