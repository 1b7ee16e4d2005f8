//! Tests that no other crate decides by the id, the phase or a sentence of a check: other crates ask its row, so that a
//! new check needs no change outside of the registry.

use std::fs;
use std::path::{Path, PathBuf};

use super::ALL;

/// Examples in the help that show the id of a check: the file, and the id. Lines may only be removed, and a line that is
/// no longer needed must be.
const SHOWN: [(&str, &str); 2] =
    [("mdfsck/src/cli/examples.rs", "log.lost-write"), ("mdfsck/src/cli/examples.rs", "tree.child-unseen")];

/// The sentences of a check, which are for people.
const SENTENCES: [&str; 4] = ["brief", "invariant", "cause", "action"];

/// Functions that look for words in a text.
const LOOKS: [&str; 6] = ["starts_with", "ends_with", "contains", "find", "split", "strip_prefix"];

/// The code of a file without comments, test modules and literals, and the texts of its literals.
#[derive(Default)]
struct Code {
    code: String,
    /// Each literal, and its offset in the code.
    literals: Vec<(usize, String)>,
    /// Modules in files of their own that are compiled only for tests.
    test_modules: Vec<String>,
}

impl Code {
    fn of(text: &str) -> Self {
        let mut this = Self::default();
        let chars: Vec<char> = text.chars().collect();
        let is_name = |char: char| char.is_alphanumeric() || char == '_';
        let mut at = 0;
        while let Some(&char) = chars.get(at) {
            let next = chars.get(at + 1).copied();
            let hashes = chars.iter().skip(at + 1).take_while(|char| **char == '#').count();
            let is_raw = char == 'r' && chars.get(at + 1 + hashes) == Some(&'"') && !this.code.ends_with(is_name);
            at = match char {
                '/' if next == Some('/') => end(&chars, at, &['\n']),
                '/' if next == Some('*') => end(&chars, at, &['*', '/']) + 2,
                '"' => this.literal(&chars, at + 1, &['"'], true),
                _ if is_raw => {
                    let quote: Vec<char> = std::iter::once('"').chain(vec!['#'; hashes]).collect();
                    this.literal(&chars, at + 2 + hashes, &quote, false)
                }
                '\'' if next == Some('\\') => end(&chars, at + 3, &['\'']) + 1,
                '\'' if chars.get(at + 2) == Some(&'\'') => at + 3,
                _ => {
                    this.code.push(char);
                    at + 1
                }
            };
        }
        this.without_tests()
    }

    /// Adds the literal that begins at `from`. Returns the position after it.
    fn literal(&mut self, chars: &[char], from: usize, quote: &[char], has_escapes: bool) -> usize {
        let mut at = from;
        while at < chars.len() && !chars[at..].starts_with(quote) {
            at += if has_escapes && chars[at] == '\\' { 2 } else { 1 };
        }
        let to = at.min(chars.len());
        self.literals.push((self.code.len(), chars[from..to].iter().collect()));
        to + quote.len()
    }

    /// Removes each item with the attribute `#[cfg(test)]`.
    fn without_tests(mut self) -> Self {
        let mut from = 0;
        for mark in ["#[cfg(test)]", "#[cfg(all(test,"] {
            while let Some(found) = self.code[from..].find(mark) {
                let start = from + found;
                let item = &self.code[start..];
                let (mut depth, mut length) = (0_u32, item.len());
                for (at, char) in item.char_indices().skip(mark.len()) {
                    depth = depth + u32::from(char == '{') - u32::from(char == '}' && depth > 0);
                    if depth == 0 && (char == ';' || char == '}') {
                        length = at + 1;
                        break;
                    }
                }
                let module = item[..length].trim_end_matches(';').split_once("mod ");
                self.test_modules.extend(module.filter(|_| !item[..length].contains('{')).map(|(_, name)| name.into()));
                self.literals.retain(|(at, _)| !(start..start + length).contains(at));
                for (at, _) in &mut self.literals {
                    *at -= if *at >= start + length { length } else { 0 };
                }
                self.code.replace_range(start..start + length, "");
                from = start;
            }
            from = 0;
        }
        self
    }

    /// What this code must not contain: phases, ids of checks, and tests of sentences.
    fn decisions(&self) -> Vec<String> {
        let is_start = |at: usize| !self.code[..at].ends_with(|char: char| char.is_alphanumeric() || char == '_');
        let phases = self.code.match_indices("Phase::").filter(|(at, _)| is_start(*at));
        let mut found: Vec<String> = phases.map(|_| "Phase::".to_owned()).collect();
        for (_, literal) in &self.literals {
            found.extend(ALL.iter().map(|check| check.id).filter(|id| names(literal, id)).map(str::to_owned));
            let is_family = |id: &str| id.split_once('.').is_some_and(|(family, _)| *literal == format!("{family}."));
            found.extend(ALL.iter().any(|check| is_family(check.id)).then(|| literal.clone()));
        }
        for sentence in SENTENCES {
            let looks = LOOKS.map(|look| format!("{sentence}.{look}(")).into_iter();
            found.extend(looks.filter(|look| self.code.match_indices(look.as_str()).any(|(at, _)| is_start(at))));
        }
        found
    }
}

/// Whether a literal contains an id as a word.
fn names(literal: &str, id: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || "_-.".contains(char);
    literal.match_indices(id).any(|(at, _)| {
        !literal[..at].ends_with(is_part)
            && !literal[at + id.len()..].starts_with(|char: char| char.is_alphanumeric() || "_-".contains(char))
    })
}

/// The position of `mark` at or after `from`; the end of the text if there is none.
fn end(chars: &[char], from: usize, mark: &[char]) -> usize {
    (from..chars.len()).find(|&at| chars[at..].starts_with(mark)).unwrap_or(chars.len())
}

/// Adds the production code below a folder, by path.
fn add(folder: &Path, all: &mut Vec<(PathBuf, Code)>) {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.file_stem().is_none_or(|stem| stem != "tests")) {
        if path.is_dir() {
            add(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = Code::of(&fs::read_to_string(&path).unwrap());
            all.push((path, code));
        }
    }
}

/// The folder of the modules of a file.
fn modules_of(path: &Path) -> PathBuf {
    match path.file_stem().unwrap().to_str() {
        Some("lib" | "main" | "mod") => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    }
}

#[test]
fn no_other_crate_decides_by_the_id_the_phase_or_a_sentence_of_a_check() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Vec::new();
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.file_name().is_some_and(|name| name != "findings") {
            add(&folder.join("src"), &mut all);
        }
    }
    let of_tests: Vec<PathBuf> = all
        .iter()
        .flat_map(|(path, code)| code.test_modules.iter().map(|module| modules_of(path).join(module)))
        .collect();
    all.retain(|(path, _)| !of_tests.iter().any(|module| path.with_extension("").starts_with(module)));
    assert!(all.len() > 500, "the files were found: {}", all.len());

    let mut needed = Vec::new();
    let mut wrong = Vec::new();
    for (path, code) in &all {
        let name = path.strip_prefix(crates).unwrap().to_str().unwrap().replace('\\', "/");
        for found in code.decisions() {
            match SHOWN.iter().find(|(file, id)| *file == name && *id == found) {
                Some(shown) => needed.push(shown),
                None => wrong.push(format!("{name}: {found}")),
            }
        }
    }
    assert!(wrong.is_empty(), "ask the row of the check instead:\n{}", wrong.join("\n"));
    assert!(SHOWN.iter().all(|shown| needed.contains(&shown)), "not needed any more: {SHOWN:?}, only {needed:?}");
}

#[test]
fn decisions_are_found_wherever_they_are_written() {
    let decisions = |text: &str| Code::of(text).decisions();
    assert_eq!(decisions("if check.phase == Phase::Page {}"), ["Phase::"]);
    assert_eq!(decisions("fn f<'a>(x: &'a str) { let c = '\"'; matches!(id, \"page.io\") }"), ["page.io"]);
    assert_eq!(decisions("let x = r#\"see \"page.io\" there\"#;"), ["page.io"]);
    assert_eq!(decisions("id.starts_with(\"iam.\")"), ["iam."]);
    assert_eq!(decisions("check.action.starts_with(\"See \")"), ["action.starts_with("]);
    assert_eq!(decisions("let cause = check.cause; cause.contains(\"lost\")"), ["cause.contains("]);
    assert_eq!(
        decisions("#[cfg(test)]\nmod tests { fn f() { \"}\"; } }\nconst X: &str = \"key.order\";"),
        ["key.order"]
    );
    let sound = [
        "// Phase::Page and \"page.io\" in a comment\n/* \"page.io\" */ let phase = Phase { name };",
        "let x = \"page.io-no\"; let y = \"my.page.io\"; let z = OtherPhase::Page; let c = '\\'';",
        "#[cfg(test)]\nmod tests {\n    fn f() { let id = \"page.io\"; if a { Phase::Page } }\n}\n",
        "#[cfg(test)]\nmod schema;\n",
    ];
    for text in sound {
        assert_eq!(decisions(text), Vec::<String>::new(), "{text}");
    }
    assert_eq!(Code::of(sound[3]).test_modules, ["schema"]);
}
