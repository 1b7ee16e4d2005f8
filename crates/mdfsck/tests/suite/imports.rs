//! A test of the structure of all crates: the top modules of a crate must not import each other in a circle.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// For each module, the modules that it imports, each with one file that contains the import.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// The first name of each path that begins at the crate's root: `a`, `b` and `e` for `use crate::{a, b::{c, d}}` and
/// `crate::e::f()`. Ignores comments and everything after the first `#[cfg(test)]`.
fn imported_names(text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let mut names = BTreeSet::new();
    for (at, root) in code.match_indices("crate::") {
        let is_whole = !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let path = &code[at + root.len()..];
        if !is_whole {
            continue;
        }
        match path.strip_prefix('{') {
            None => _ = names.insert(first_name(path)),
            Some(group) => {
                let mut depth = 0;
                let mut starts = true;
                for (at, sign) in group.char_indices() {
                    match sign {
                        '}' if depth == 0 => break,
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => starts = true,
                        sign if starts && !sign.is_whitespace() => {
                            names.insert(first_name(&group[at..]));
                            starts = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

fn first_name(path: &str) -> String {
    path.chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect()
}

/// The modules of an import cycle, if one exists; the first module is repeated at the end.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    fn visit(
        imports: &Imports,
        module: &str,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(at) = path.iter().position(|earlier| earlier == module) {
            return Some(path[at..].iter().cloned().chain([module.to_owned()]).collect());
        }
        if !done.insert(module.to_owned()) {
            return None;
        }
        path.push(module.to_owned());
        let found = imports.get(module).into_iter().flatten().find_map(|(next, _)| visit(imports, next, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| visit(imports, module, &mut Vec::new(), &mut done))
}

/// Adds the imports of all files in a folder to `module`. If `module` is `None`, the folder is the crate's root, and
/// each of its files is a module of its own.
fn add_folder(folder: &Path, module: Option<&str>, roots: &BTreeMap<String, String>, imports: &mut Imports) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = module.map_or_else(|| stem.clone(), str::to_owned);
        if path.is_dir() {
            add_folder(&path, Some(&module), roots, imports);
        } else if !["lib", "main", "tests", "test_pages"].contains(&stem.as_str()) {
            let names = imported_names(&std::fs::read_to_string(&path).unwrap());
            let own = imports.entry(module.clone()).or_default();
            for name in names {
                let imported = roots.get(&name).cloned().unwrap_or(name);
                if imported != module {
                    own.entry(imported).or_insert_with(|| path.display().to_string());
                }
            }
        }
    }
}

/// Maps each name that the crate's root re-exports to the module that defines it.
fn names_of_root(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for item in lib.split("pub use ").skip(1).filter_map(|item| item.split(';').next()) {
        let Some((module, rest)) = item.split_once("::") else { continue };
        let rest = rest.split([',', '{', '}']).map(str::trim).filter(|name| !name.is_empty());
        names.extend(rest.map(|name| (name.to_owned(), module.to_owned())));
    }
    names
}

/// Circles that exist, by crate: the number of top modules that are in one. A number may only become smaller.
const CIRCLES: [(&str, usize); 0] = [];

/// The top modules that are in a circle of imports.
fn in_circles(imports: &Imports) -> BTreeSet<&str> {
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            let all = imports.get(module).into_iter().flatten().map(|(imported, _)| imported.as_str());
            let new: Vec<&str> = all.filter(|imported| seen.insert(*imported)).collect();
            next.extend(new);
        }
        seen.contains(to)
    };
    imports.keys().map(String::as_str).filter(|module| reaches(module, module)).collect()
}

#[test]
fn top_modules_of_a_crate_never_import_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut modules, mut wrong) = (0, Vec::new());
    for folder in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let source = folder.join("src");
        let roots = names_of_root(&std::fs::read_to_string(source.join("lib.rs")).unwrap_or_default());
        let mut imports = Imports::new();
        add_folder(&source, None, &roots, &mut imports);
        modules += imports.len();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let allowed = CIRCLES.iter().find(|(of, _)| *of == name).map_or(0, |(_, count)| *count);
        let found = in_circles(&imports);
        if found.len() != allowed {
            let cycle = cycle(&imports).unwrap_or_default();
            let files = cycle.windows(2).filter_map(|pair| imports.get(&pair[0])?.get(&pair[1]));
            let files: Vec<&String> = files.collect();
            let count = found.len();
            wrong.push(format!(
                "{name}: {count} modules, not {allowed}: {found:?}, such as {} (by {files:?})",
                cycle.join(" -> ")
            ));
        }
    }
    assert!(modules > 400, "the modules of the crates were found: {modules}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_found_whatever_way_the_paths_are_written() {
    let texts = [
        ("a", "use crate::{\n    b::{self, X},\n    c,\n};\nfn f() {}"),
        ("b", "//! See [`crate::a`].\nfn f() -> Option<()> { crate::d::find() }"),
        ("c", "use other_crate::a;\n#[cfg(test)]\nmod tests { use crate::a; }"),
        ("d", "fn f(x: &mut crate::Outcome) {}"),
    ];
    let roots = names_of_root("pub use a::{Outcome, Other};\npub use c::One;");
    let read = |texts: &[(&str, &str)]| -> Imports {
        let import = |name: String| (roots.get(&name).cloned().unwrap_or(name), String::new());
        let module = |(module, text): &(&str, &str)| {
            (module.to_string(), imported_names(text).into_iter().map(import).collect())
        };
        texts.iter().map(module).collect()
    };
    assert_eq!(cycle(&read(&texts)).unwrap(), ["a", "b", "d", "a"]);
    assert_eq!(cycle(&read(&texts[..3])), None);
}
