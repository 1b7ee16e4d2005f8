//! Expands `*` and `?` in paths. Shells do this too, but not on Windows, not inside quotes, and not in the steps of a
//! scheduler.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use source::storage;

use crate::failure::{Failure, is_pattern};

/// The matches of a pattern.
#[derive(Default)]
pub struct Expanded {
    /// The files and folders that match, sorted by name.
    pub paths: Vec<PathBuf>,
    /// Folders that cannot be read. They may contain further matches.
    pub unreadable: Vec<(PathBuf, Failure)>,
}

/// The files and folders that match the pattern `path`; `None` if `path` is not a pattern, or is the name of an
/// existing file.
///
/// # Errors
/// If nothing matches.
pub fn expand(path: &Path) -> Result<Option<Expanded>, Failure> {
    if !is_pattern(path.as_os_str()) || fs::symlink_metadata(path).is_ok() {
        return Ok(None);
    }
    if let Some(url) = storage::url(path) {
        return expand_url(url).map(Some);
    }
    let (mut found, mut unreadable) = (vec![PathBuf::new()], Vec::new());
    for component in path.components() {
        match component {
            Component::Normal(name) if is_pattern(name) => {
                let mut matching = Vec::new();
                for folder in &found {
                    match names_in(folder) {
                        Ok(names) => {
                            let names = names.into_iter().filter(|file| matches(name, file));
                            matching.extend(names.map(|file| folder.join(file)));
                        }
                        Err(cause) if is_no_folder(&cause) => {}
                        Err(cause) => unreadable.push((folder.clone(), cannot_read(folder, &cause))),
                    }
                }
                found = matching;
            }
            component => found.iter_mut().for_each(|path| path.push(component)),
        }
    }
    found.retain(|path| !matches!(fs::symlink_metadata(path), Err(cause) if is_no_folder(&cause)));
    found.sort();
    match found.is_empty() && unreadable.is_empty() {
        true => Err(Failure::unmatched(path)),
        false => Ok(Some(Expanded { paths: found, unreadable })),
    }
}

/// Whether `path` matches a pattern, or is inside a folder that matches it.
pub fn is_below(pattern: &Path, path: &Path) -> bool {
    let mut path = path.components();
    pattern.components().all(|wanted| match (wanted, path.next()) {
        (Component::Normal(wanted), Some(Component::Normal(name))) if is_pattern(wanted) => matches(wanted, name),
        (wanted, name) => name == Some(wanted),
    })
}

/// The folder that contains all possible matches of a pattern. Its path consists of the components of the pattern
/// before the first `*` or `?`.
pub fn fixed_folder(pattern: &Path) -> PathBuf {
    if let Some(url) = storage::url(pattern) {
        let fixed = url.split('/').take_while(|name| !is_pattern(name.as_ref())).collect::<Vec<_>>();
        return PathBuf::from(fixed.join("/"));
    }
    let is_fixed = |component: &Component<'_>| !is_pattern(component.as_os_str());
    let fixed: PathBuf = pattern.components().take_while(is_fixed).collect();
    if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
}

/// The objects and folders that match a URL. `*` and `?` are allowed only after the name of the bucket.
fn expand_url(url: &str) -> Result<Expanded, Failure> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let mut names = rest.split('/');
    let mut found = vec![format!("{scheme}://{}", names.next().unwrap_or_default())];
    let mut unreadable = Vec::new();
    for name in names {
        if !is_pattern(name.as_ref()) {
            found.iter_mut().for_each(|url| *url = format!("{url}/{name}"));
            continue;
        }
        let mut matching = Vec::new();
        for folder in found {
            match storage::list(folder.as_ref()) {
                Ok(entries) => {
                    let urls = entries.iter().filter_map(|entry| storage::url(&entry.path));
                    let is_named =
                        |url: &&str| matches(name.as_ref(), url.rsplit('/').next().unwrap_or_default().as_ref());
                    matching.extend(urls.filter(is_named).map(str::to_owned));
                }
                Err(cause) => unreadable.push((PathBuf::from(&folder), cannot_read(folder.as_ref(), &cause))),
            }
        }
        found = matching;
    }
    let mut paths: Vec<PathBuf> = found.into_iter().map(PathBuf::from).collect();
    // An object and a folder may have the same name. The name is listed once.
    paths.dedup();
    paths.retain(|path| !matches!(storage::kind(path), Err(cause) if is_no_folder(&cause)));
    match paths.is_empty() && unreadable.is_empty() {
        true => Err(Failure::unmatched(url.as_ref())),
        false => Ok(Expanded { paths, unreadable }),
    }
}

fn is_no_folder(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn cannot_read(folder: &Path, cause: &io::Error) -> Failure {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Failure::unable(format!("{}: cannot be read: {cause}{}", folder.display(), source::remedy(cause)))
}

fn names_in(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Whether `name` matches `pattern`. `*` matches any text, and `?` matches one character. As in shells, `*` and `?` do
/// not match a dot at the start of a name.
fn matches(pattern: &OsStr, name: &OsStr) -> bool {
    let folded = |text: &OsStr| {
        let text = text.to_string_lossy();
        let text = if cfg!(windows) { text.to_lowercase() } else { text.into_owned() };
        text.chars().collect::<Vec<char>>()
    };
    let (pattern, name) = (folded(pattern), folded(name));
    if name.first() == Some(&'.') && pattern.first() != Some(&'.') {
        return false;
    }
    let (mut at, mut in_name) = (0, 0);
    // `star` is the position, in the pattern, of the star that was reached most recently, and the end of the text that
    // this star matches.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&c) = name.get(in_name) {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, in_name));
                at += 1;
            }
            (Some(&p), _) if p == '?' || p == c => (at, in_name) = (at + 1, in_name + 1),
            (_, Some((star_at, reached))) => {
                star = Some((star_at, reached + 1));
                (at, in_name) = (star_at + 1, reached + 1);
            }
            (_, None) => return false,
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let is = |pattern: &str, name: &str| matches(OsStr::new(pattern), OsStr::new(name));
        for (pattern, name) in [
            ("*.bak", "sales.bak"),
            ("*", "sales.bak"),
            ("s*s*.b?k", "sales_sys.bak"),
            ("**a*", "a"),
            ("?.bak", "ä.bak"),
            (".*", ".hidden"),
            ("a*b*c", "abbbcbc"),
        ] {
            assert!(is(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.bak", "sales.trn"), ("?", "ab"), ("*", ".hidden"), ("a*b", "abc"), ("", "a"), ("?", "")]
        {
            assert!(!is(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_are_expanded_in_every_part_of_a_path() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a/full/x.bak", "b/full/y.bak", "b/log/z.trn", "c/x.bak"] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let expand = |pattern: &str| {
            let found = expand(&folder.path().join(pattern)).map_err(|failure| failure.text)?;
            let name = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().display().to_string();
            Ok::<_, String>(found.map(|found| found.paths.into_iter().map(name).collect::<Vec<_>>()))
        };
        assert_eq!(expand("*/full/*.bak"), Ok(Some(vec!["a/full/x.bak".to_owned(), "b/full/y.bak".to_owned()])));
        assert_eq!(expand("?"), Ok(Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()])));
        assert_eq!(expand("a/full/x.bak"), Ok(None));
        assert!(expand("*.bak").unwrap_err().contains("*.bak: nothing matches this pattern"));
        if cfg!(unix) {
            fs::write(folder.path().join("*.bak"), "").unwrap();
            assert_eq!(expand("*.bak"), Ok(None), "it exists");
        }
    }
}
