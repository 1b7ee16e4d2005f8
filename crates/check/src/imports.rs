//! A test of the structure of this crate and of crate `rows`: their modules must not import each other in a cycle.

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
        } else if !["lib", "tests", "imports", "test_pages"].contains(&stem.as_str()) {
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

#[test]
fn modules_of_different_subjects_never_import_each_other_in_a_circle() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let roots = names_of_root(&std::fs::read_to_string(source.join("lib.rs")).unwrap());
    let mut imports = Imports::new();
    add_folder(&source, None, &roots, &mut imports);
    let (least, (above, below)) = match env!("CARGO_PKG_NAME") {
        "mdfsck-check" => (50, ("tree", "page_check")),
        _ => (10, ("salvage", "leaf")),
    };
    assert!(imports.len() > least && imports[above].contains_key(below), "the modules of the crate were found");
    if let Some(cycle) = cycle(&imports) {
        let files: Vec<&String> = cycle.windows(2).filter_map(|pair| imports.get(&pair[0])?.get(&pair[1])).collect();
        panic!("{} (by {files:?})", cycle.join(" -> "));
    }
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
