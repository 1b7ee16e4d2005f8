//! The places of the files in a snapshot, as the program prints them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The lines that the program has printed, as arguments for its removal of the snapshot. Empty lines are left out, and
/// so is a last line without a line end: if the program was stopped, the line may be the beginning of another path.
pub(super) fn lines(printed: &[u8]) -> Vec<OsString> {
    let end = printed.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let whole = printed.get(..end).unwrap_or_default();
    let lines = whole.split(|byte| *byte == b'\n').map(without_return);
    // No argument can contain a NUL.
    lines.filter(|line| !line.is_empty() && !line.contains(&0)).filter_map(argument).collect()
}

#[cfg(unix)]
fn argument(line: &[u8]) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(line.to_owned()))
}

/// On other systems, arguments are Unicode.
#[cfg(not(unix))]
fn argument(line: &[u8]) -> Option<OsString> {
    std::str::from_utf8(line).ok().map(OsString::from)
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The place of each path in the snapshot. The program prints one folder that has all files under their names, or one
/// line for each path.
///
/// # Errors
/// The reason why the lines are not the places of these paths.
pub(super) fn of(paths: &[PathBuf], printed: &[u8]) -> Result<Vec<PathBuf>, String> {
    let Some(printed) = printed.strip_suffix(b"\n").or(Some(printed).filter(|printed| printed.is_empty())) else {
        return Err("the last line that it printed has no line end".to_owned());
    };
    if printed.is_empty() {
        return Err("it printed no line; it must print the folder of the snapshot, or a line for each path".to_owned());
    }
    let lines: Vec<&[u8]> = printed.split(|byte| *byte == b'\n').map(without_return).collect();
    let places = (1..).zip(&lines).map(|(number, line)| place(number, line)).collect::<Result<Vec<_>, _>>()?;
    match places.as_slice() {
        [folder] if paths.len() > 1 => {
            let names: BTreeSet<_> = paths.iter().filter_map(|path| path.file_name()).collect();
            if names.len() < paths.len() || paths.iter().any(|path| path.is_dir()) {
                let why = "as a path is a folder, or two paths have the same name";
                return Err(format!(
                    "it printed one line for {}; {why}, it must print a line for each path",
                    count(paths)
                ));
            }
            paths.iter().map(|path| within(folder, path)).collect()
        }
        places if places.len() == paths.len() => {
            places.iter().zip(paths).map(|(place, path)| within(place, path)).collect()
        }
        places => Err(format!("it printed {} lines for {}", places.len(), count(paths))),
    }
    .and_then(|copies: Vec<PathBuf>| is_copied(&places, &copies, paths).map(|()| copies))
}

/// # Errors
/// If a place that the program printed, or a file there, is one of the paths itself.
fn is_copied(places: &[PathBuf], copies: &[PathBuf], paths: &[PathBuf]) -> Result<(), String> {
    let own = Own::of(paths.iter().map(PathBuf::as_path));
    match places.iter().chain(copies).find_map(|place| Some((place, own.at(place)?))) {
        Some((place, path)) => {
            let (place, path) = (place.display(), path.display());
            let same = format!("it is {path} itself, or a folder that contains it");
            Err(format!("it printed the place of {path}, but {place} is no copy of it: {same}"))
        }
        None => Ok(()),
    }
}

/// The paths of the database itself, by their names without links.
pub(super) struct Own<'a>(BTreeMap<PathBuf, &'a Path>);

impl<'a> Own<'a> {
    pub(super) fn of(paths: impl Iterator<Item = &'a Path>) -> Self {
        Self(paths.map(|path| (without_links(path), path)).collect())
    }

    /// The path that is `place` or is in the folder `place`, whatever links lead there. A snapshot may be in the folder
    /// of a path, but not the other way round.
    pub(super) fn at(&self, place: &Path) -> Option<&'a Path> {
        let place = without_links(place);
        // The order is that of the parts of paths: what is in a folder comes right after the folder.
        let (first, path) = self.0.range(place.clone()..).next()?;
        first.starts_with(&place).then_some(*path)
    }
}

fn without_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn count(paths: &[PathBuf]) -> String {
    if paths.len() == 1 { "1 path".to_owned() } else { format!("{} paths", paths.len()) }
}

/// The path that a line names.
fn place(number: usize, line: &[u8]) -> Result<PathBuf, String> {
    let text = std::str::from_utf8(line).map_err(|_| format!("line {number} that it printed is not UTF-8"))?;
    if text.is_empty() {
        return Err(format!("line {number} that it printed is empty"));
    }
    let place = Path::new(text);
    if text.contains('\0') || !place.is_absolute() {
        return Err(format!("it printed '{text}', which is not an absolute path"));
    }
    Ok(place.to_owned())
}

/// The place of `path` if the program printed `place`: this file or folder, or the folder that has the file.
fn within(place: &Path, path: &Path) -> Result<PathBuf, String> {
    let missing = |place: &Path, cause: &dyn std::fmt::Display| {
        Err(format!("it printed the place of {}, but {} cannot be opened: {cause}", path.display(), place.display()))
    };
    let found = match std::fs::metadata(place) {
        Ok(found) => found,
        Err(cause) => return missing(place, &cause),
    };
    match (found.is_dir(), path.is_dir(), path.file_name()) {
        (true, false, Some(name)) => {
            let file = place.join(name);
            match std::fs::metadata(&file) {
                Ok(found) if found.is_dir() => missing(&file, &"it is a folder"),
                Ok(_) => Ok(file),
                Err(cause) => missing(&file, &cause),
            }
        }
        (false, true, _) => missing(place, &"it is not a folder"),
        _ => Ok(place.to_owned()),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;

    use super::*;

    /// Makes the folders `data` and `snap` with the same two files, and returns the paths of the folders.
    fn folders(place: &Path) -> [PathBuf; 2] {
        ["data", "snap"].map(|name| {
            let folder = place.join(name);
            fs::create_dir(&folder).unwrap();
            ["a.mdf", "b.ldf"].iter().for_each(|file| fs::write(folder.join(file), name).unwrap());
            folder
        })
    }

    fn printed(paths: &[&Path]) -> Vec<u8> {
        paths.iter().map(|path| format!("{}\n", path.display())).collect::<String>().into_bytes()
    }

    #[test]
    fn a_folder_or_a_line_for_each_path_is_understood() {
        let place = tempfile::tempdir().unwrap();
        let [data, snap] = folders(place.path());
        let (a, b) = (data.join("a.mdf"), data.join("b.ldf"));
        let (a_copy, b_copy) = (snap.join("a.mdf"), snap.join("b.ldf"));
        for (paths, lines, copies) in [
            (vec![&data], vec![&snap], vec![&snap]),
            (vec![&a], vec![&snap], vec![&a_copy]),
            (vec![&a], vec![&a_copy], vec![&a_copy]),
            (vec![&a, &b], vec![&snap], vec![&a_copy, &b_copy]),
            (vec![&a, &b], vec![&a_copy, &snap], vec![&a_copy, &b_copy]),
            (vec![&data, &a], vec![&snap, &snap], vec![&snap, &a_copy]),
        ] {
            let paths: Vec<PathBuf> = paths.into_iter().cloned().collect();
            let copies: Vec<PathBuf> = copies.into_iter().cloned().collect();
            let lines: Vec<&Path> = lines.into_iter().map(PathBuf::as_path).collect();
            assert_eq!(of(&paths, &printed(&lines)), Ok(copies.clone()), "{lines:?}");
            let windows = String::from_utf8(printed(&lines)).unwrap().replace('\n', "\r\n");
            assert_eq!(of(&paths, windows.as_bytes()), Ok(copies), "{lines:?}");
        }
    }

    #[test]
    fn lines_that_are_no_places_of_the_paths_are_refused_with_the_cause() {
        let place = tempfile::tempdir().unwrap();
        let [data, snap] = folders(place.path());
        let (a, b, nowhere) = (data.join("a.mdf"), data.join("b.ldf"), data.join("nowhere"));
        let one = [a.clone()];
        let links = place.path().join("links");
        fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink(&a, links.join("a.mdf")).unwrap();
        for (paths, printed, cause) in [
            (&one[..], vec![], "no line"),
            (&one, b"\n".to_vec(), "no line"),
            (&one, b"/snap".to_vec(), "no line end"),
            (&one, b"snap\n".to_vec(), "'snap', which is not an absolute path"),
            (&one, b"/a\0b\n".to_vec(), "not an absolute path"),
            (&one, b"/\xff\n".to_vec(), "line 1 that it printed is not UTF-8"),
            (&one, printed(&[&snap, &snap]), "2 lines for 1 path"),
            (&one, [printed(&[&snap]), b"\n".to_vec()].concat(), "line 2 that it printed is empty"),
            (&one, printed(&[&nowhere]), "nowhere cannot be opened"),
            (&one, printed(&[place.path()]), "a.mdf cannot be opened"),
            (std::slice::from_ref(&data), printed(&[&a]), "it is not a folder"),
            (&[data.clone(), a.clone()], printed(&[&snap]), "one line for 2 paths"),
            (&[a.clone(), snap.join("a.mdf")], printed(&[&snap]), "two paths have the same name"),
            (&[a.clone(), b.clone(), data.clone()], printed(&[&snap, &snap]), "2 lines for 3 paths"),
            (std::slice::from_ref(&data), printed(&[&data]), "is no copy of it"),
            (std::slice::from_ref(&data), printed(&[place.path()]), "is no copy of it"),
            (&one, printed(&[&a]), "is no copy of it"),
            (&one, printed(&[&data]), "is no copy of it"),
            (&one, printed(&[&links.join("a.mdf")]), "is no copy of it"),
            (&one, printed(&[&links]), "is no copy of it"),
            (&[b.clone(), a.clone()], printed(&[&snap, &data]), "a.mdf itself, or a folder that contains it"),
        ] {
            let refused = of(paths, &printed).unwrap_err();
            assert!(refused.contains(cause), "{cause}: {refused}");
        }
    }

    #[test]
    fn a_path_is_found_in_each_folder_that_contains_it_and_in_no_other() {
        let paths = ["/x/a-b/d", "/x/a/c/d", "/x/b", "/x/c.mdf"].map(Path::new);
        let own = Own::of(paths.into_iter());
        let at = |place: &str| own.at(Path::new(place));
        assert_eq!(["/x/a", "/x/a/c", "/x/a/c/d"].map(at), [Some(paths[1]); 3]);
        assert_eq!(["/x/a-b", "/x/b", "/x/c.mdf"].map(at), [paths[0], paths[2], paths[3]].map(Some));
        assert_eq!(["/x/a/b", "/x/a/c/d/e", "/x/a-", "/x/bb", "/x/c", "/y"].map(at), [None; 6]);
        assert!(at("/").is_some() && at("/x").is_some());
    }

    #[test]
    fn a_snapshot_in_the_folder_of_the_database_is_a_copy() {
        let place = tempfile::tempdir().unwrap();
        let [data, _] = folders(place.path());
        let inside = data.join("inside");
        fs::create_dir(&inside).unwrap();
        assert_eq!(of(std::slice::from_ref(&data), &printed(&[&inside])), Ok(vec![inside]));
    }

    #[test]
    fn a_snapshot_is_removed_by_the_lines_as_they_were_printed() {
        let lines_of = |printed| lines(printed).into_iter().map(OsString::into_encoded_bytes).collect::<Vec<_>>();
        assert_eq!(lines_of(b"/a b\r\n\n/\xff\n/a\0\n/cut of"), [&b"/a b"[..], b"/\xff"]);
        assert!(lines_of(b"/cut of").is_empty() && lines_of(b"").is_empty());
    }
}
