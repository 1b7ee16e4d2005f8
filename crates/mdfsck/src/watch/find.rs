//! Finds files by listing folders. Events of the file system are not used, since they do not report files that other
//! machines write.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use history::queue::Seen;
use jobs::failure::Failure;
use jobs::{inventory, patterns};
use source::storage::{self, Entry, Kind};

use super::roots::Roots;

/// Maximum depth of the search in folders.
const MAX_DEPTH: usize = 32;
/// Maximum size, in bytes, of a file that lists data files.
const MOST_LIST_BYTES: u64 = 16 << 20;

/// The data files of one database, from one line of a file that lists data files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DataFiles {
    pub(super) name: String,
    pub(super) files: Vec<String>,
}

/// The files that were found.
#[derive(Default)]
pub(super) struct Listed {
    /// Files found in folders or named by the user, by path.
    pub(super) files: BTreeMap<String, Seen>,
    /// Databases named by lists, with their data files.
    pub(super) data: Vec<DataFiles>,
    /// The data files in `data` that exist.
    pub(super) data_files: Vec<Seen>,
    /// Descriptions of paths that cannot be read. It is unknown which files these paths contain.
    pub(super) problems: Vec<String>,
    /// Descriptions of skipped files, with the reasons.
    pub(super) warnings: Vec<String>,
    /// Whether one of the skipped files has the name of a backup.
    pub(super) is_unable: bool,
    /// The paths that were searched.
    pub(super) roots: Roots,
    /// Names and folders of the files that the watcher itself writes. The watcher must not open these files as backups:
    /// when a process closes one of several handles of a SQLite file, the process loses its locks on the file.
    own: Vec<(OsString, PathBuf)>,
}

/// Lists the files in `paths`, without the files in `own`, which the watcher itself writes.
pub(super) fn list(paths: &[PathBuf], own: &[PathBuf]) -> Listed {
    storage::forget();
    let own = own.iter().filter_map(|path| Some((path.file_name()?.to_owned(), folder_of(path)?)));
    let mut listed = Listed { own: own.collect(), ..Listed::default() };
    for path in paths {
        let add_pattern = |listed: &mut Listed| {
            let fixed = patterns::fixed_folder(path);
            let folder = absolute(&fixed);
            listed.roots.add_pattern(&folder, path.strip_prefix(&fixed).unwrap_or(path));
            folder
        };
        match patterns::expand(path) {
            Ok(Some(expanded)) => {
                add_pattern(&mut listed);
                listed.problems.extend(expanded.unreadable.into_iter().map(|(_, failure)| failure.text));
                for path in expanded.paths.iter().map(|path| absolute(path)) {
                    // If a pattern contains `..` after a wildcard, a matching path may be outside the matching folders.
                    // The path is then added as another root.
                    if path.to_str().is_some_and(|path| !listed.roots.has(path)) {
                        listed.roots.add(&path);
                    }
                    listed.any(&path, false);
                }
            }
            Ok(None) => listed.any(&absolute(path), true),
            // A pattern that matches nothing is allowed if its folder can be listed.
            Err(_) => {
                let folder = add_pattern(&mut listed);
                if let Err(cause) = storage::list(&folder) {
                    listed.unread(&folder, &cause);
                }
            }
        }
    }
    listed
}

impl Listed {
    fn any(&mut self, path: &Path, is_named: bool) {
        if self.is_own(path) {
            return;
        }
        if is_named {
            self.roots.add(path);
        }
        match storage::kind(path) {
            Ok(Kind::Folder) => self.folder(path, MAX_DEPTH),
            Ok(Kind::File { .. }) if is_named && is_list(path) => {
                if let Err(failure) = self.lines(path) {
                    self.problems.push(failure.text);
                }
            }
            Ok(Kind::File { .. }) => self.file(path),
            Ok(Kind::Pipe | Kind::Other) => {
                self.problems.push(format!("{}: is neither a file nor a folder", path.display()))
            }
            Err(cause) => self.unread(path, &cause),
        }
    }

    /// Searches a folder and its subfolders. Follows a symbolic link only if it points to a file, so that the search
    /// cannot go in circles.
    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match storage::list(folder) {
            Ok(entries) => entries,
            Err(cause) => return self.unread(folder, &cause),
        };
        let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let entries: Vec<Entry> = entries.into_iter().filter(|entry| !is_hidden(&entry.path)).collect();
        storage::announce(entries.iter().filter(|entry| !entry.is_folder).map(|entry| entry.path.as_path()));
        for Entry { path, is_folder } in entries {
            match (is_folder, depth.checked_sub(1)) {
                (true, Some(depth)) => self.folder(&path, depth),
                (true, None) => {
                    let text = format!(
                        "{}: is more than {MAX_DEPTH} folders deep and was not searched; give this folder too",
                        path.display()
                    );
                    self.problems.push(text);
                }
                (false, _) => self.file(&path),
            }
        }
    }

    fn file(&mut self, path: &Path) {
        if self.is_own(path) {
            return;
        }
        if path.to_str().is_none() {
            self.warnings.push(format!("{}: its name is not UTF-8, so it is skipped; rename it", path.display()));
            self.is_unable |= inventory::has_backup_name(path);
            return;
        }
        match seen(path) {
            Ok(Some(seen)) => {
                self.files.insert(seen.path.clone(), seen);
            }
            Ok(None) => {}
            Err(cause) => self.unread(path, &cause),
        }
    }

    /// Whether the watcher itself writes this file.
    fn is_own(&self, path: &Path) -> bool {
        let is_it = |(name, folder): &(OsString, PathBuf)| {
            path.file_name().is_some_and(|file| file.eq_ignore_ascii_case(name))
                && folder_of(path).is_some_and(|found| found == *folder)
        };
        let is_link = || fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        storage::url(path).is_none() && (self.own.iter().any(is_it) || is_link() && history::is_open(path))
    }

    /// The data files in a folder. If `path` is not a folder, returns `path`, whether it exists or not.
    fn data_files_at(&mut self, path: &Path) -> Vec<PathBuf> {
        let listed = match storage::kind(path) {
            Ok(Kind::Folder) => storage::list(path),
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(Vec::new()),
        };
        let files = listed.map(storage::files_among).unwrap_or_else(|cause| {
            self.unread(path, &cause);
            Vec::new()
        });
        // Returns the path of an empty or missing folder itself, so that its data files are reported as missing.
        if files.is_empty() { vec![path.to_owned()] } else { files }
    }

    fn unread(&mut self, path: &Path, cause: &io::Error) {
        self.problems.push(format!("{}: cannot be read: {cause}{}", path.display(), source::remedy(cause)));
    }

    /// Reads a file that lists data files. Each line has the name of a database and the paths of its data files.
    fn lines(&mut self, path: &Path) -> Result<(), Failure> {
        let unread =
            |cause: &dyn std::fmt::Display| Failure::unable(format!("{}: cannot be read: {cause}", path.display()));
        if fs::metadata(path).is_ok_and(|metadata| metadata.len() > MOST_LIST_BYTES) {
            return Err(unread(&"it is too large for a list"));
        }
        let text = fs::read_to_string(path).map_err(|cause| unread(&cause))?;
        for (number, text) in text.lines().enumerate() {
            let words = words(text);
            let Some((name, paths)) = words.split_first() else { continue };
            if paths.is_empty() {
                let text =
                    format!("{}, line {}: expected a name and the paths of its data files", path.display(), number + 1);
                self.problems.push(text);
                continue;
            }
            let mut files = Vec::new();
            for path in paths.iter().map(|path| absolute(Path::new(path))) {
                self.roots.add_data(&path);
                let found = self.data_files_at(&path);
                files.extend(found.into_iter().filter_map(|path| path.into_os_string().into_string().ok()));
            }
            for file in &files {
                match seen(Path::new(file)) {
                    // A missing data file is not an error, since the check of the database waits until all its data
                    // files exist.
                    Ok(seen) => self.data_files.extend(seen),
                    Err(cause) => self.unread(Path::new(file), &cause),
                }
            }
            self.data.push(DataFiles { name: name.clone(), files });
        }
        Ok(())
    }
}

/// Makes a path absolute, so that all watchers use the same path for a file. Symbolic links are not resolved, except
/// before a `..`, where the operating system resolves them too.
fn absolute(path: &Path) -> PathBuf {
    if storage::url(path).is_some() {
        return path.to_owned();
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parts: Vec<Component<'_>> = absolute.components().collect();
    let Some(last) = parts.iter().rposition(|part| *part == Component::ParentDir) else { return absolute };
    let (head, rest) = parts.split_at(last + 1);
    match fs::canonicalize(head.iter().collect::<PathBuf>()) {
        Ok(head) => head.join(rest.iter().collect::<PathBuf>()),
        Err(_) => absolute,
    }
}

/// The folder of a file, with symbolic links resolved.
fn folder_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(folder).ok()
}

/// Splits a line into words. Words with blanks are in double quotes. A line that begins with `#` is a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted, mut has_word) = (Vec::new(), String::new(), false, false);
    for letter in line.trim().chars() {
        match letter {
            '#' if words.is_empty() && !has_word => break,
            '"' => (is_quoted, has_word) = (!is_quoted, true),
            blank if blank.is_whitespace() && !is_quoted => {
                if std::mem::take(&mut has_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => {
                word.push(other);
                has_word = true;
            }
        }
    }
    if has_word {
        words.push(word);
    }
    words
}

/// Whether a file that the user named is a list of data files. The content of a list is text, and its name is not the
/// name of a database file.
fn is_list(path: &Path) -> bool {
    storage::url(path).is_none() && !inventory::has_database_name(path) && inventory::is_text(path)
}

/// The present state of a file; `None` if the file does not exist or is not a regular file.
///
/// # Errors
/// If the operating system cannot report on the file.
pub(super) fn seen(path: &Path) -> io::Result<Option<Seen>> {
    let Some(text) = path.to_str().map(str::to_owned) else {
        return Err(io::Error::other("its name is not UTF-8; rename it"));
    };
    let is_gone = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
    if let Some(version) = storage::version(path) {
        return match version {
            Ok(found) => Ok(Some(Seen { path: text, size: found.bytes, version: found.name })),
            Err(cause) if is_gone(&cause) => Ok(None),
            Err(cause) => Err(cause),
        };
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) if is_gone(&cause) => return Ok(None),
        Err(cause) => return Err(cause),
    };
    // A time before 1970 must also differ from every other time.
    let modified = metadata.modified()?;
    let nanoseconds = match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos().to_string(),
        Err(before) => format!("-{}", before.duration().as_nanos()),
    };
    #[cfg(unix)]
    let nanoseconds = {
        use std::os::unix::fs::MetadataExt as _;
        // Includes the time of the last change of content or metadata. Programs cannot set this time, so a write is
        // noticed even if a program resets the time of the last write.
        format!("{nanoseconds} {}.{:09}", metadata.ctime(), metadata.ctime_nsec())
    };
    Ok(metadata.is_file().then_some(Seen { path: text, size: metadata.len(), version: nanoseconds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_list_names_a_database_and_its_files() {
        assert_eq!(
            words(r#"Sales  /data/s.mdf "/data/my files/s 2.ndf""#),
            ["Sales", "/data/s.mdf", "/data/my files/s 2.ndf"]
        );
        assert_eq!(words(r#""My Sales" C:\Data\s.mdf"#), ["My Sales", r"C:\Data\s.mdf"]);
        assert!(words("# Sales /data/s.mdf").is_empty() && words("  ").is_empty());
        assert_eq!(words(r##""#1" a#b"##), ["#1", "a#b"]);
    }

    #[test]
    fn subfolders_are_searched_and_hidden_names_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        for name in ["a/b/1.bak", "2.bak", ".3.bak"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let listed = list(&[folder.path().to_owned(), folder.path().join("*.trn")], &[]);
        let names: Vec<&str> = listed.files.keys().map(|path| path.rsplit('/').next().unwrap()).collect();
        assert_eq!((names, listed.problems.len()), (vec!["2.bak", "1.bak"], 0));
        assert_eq!(list(&[folder.path().join("missing")], &[]).problems.len(), 1);
        // The folder does not exist, so it is unknown which files the pattern would match.
        assert_eq!(list(&[folder.path().join("missing/*.bak")], &[]).problems.len(), 1);
        assert_eq!(list(&[folder.path().join("a/*/*.trn")], &[]).problems.len(), 0);
    }

    #[test]
    fn what_the_watcher_itself_writes_is_no_candidate() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["h.bak", "h.bak-wal", "a.bak"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let own = ["./h.bak", "h.bak-wal"].map(|name| folder.path().join(name));
        let listed = list(&[folder.path().to_owned(), folder.path().join("h.bak")], &own);
        assert_eq!(listed.files.into_keys().collect::<Vec<_>>(), [folder.path().join("a.bak").display().to_string()]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_has_the_same_name_in_every_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(folder.join("real/sub")).unwrap();
        std::os::unix::fs::symlink("real/sub", folder.join("link")).unwrap();
        let named = |path: &str| absolute(&folder.join(path)).strip_prefix(&folder).unwrap().to_owned();
        assert_eq!(named("./real/./a.bak"), Path::new("real/a.bak"));
        assert_eq!(named("real/sub/../a.bak"), Path::new("real/a.bak"));
        assert_eq!(named("link/a.bak"), Path::new("link/a.bak"), "a link keeps its name");
        assert_eq!(named("link/../a.bak"), Path::new("real/a.bak"), "as the system opens it");
        assert_eq!(absolute(Path::new("x.bak")), std::env::current_dir().unwrap().join("x.bak"));
        for url in ["s3://bucket/../a.bak", "https://host/a/./b.bak?sig=x/../y"] {
            assert_eq!(absolute(Path::new(url)).as_os_str(), url, "objects may have such names");
        }
    }

    #[test]
    fn what_is_listed_is_within_the_places_to_look() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/1.bak"), "1").unwrap();
        for path in ["a", "a/*/*.bak", "./a/b/1.bak", "a/b/../b/*.bak", "a/*", "a/../a"] {
            let listed = list(&[folder.path().join(path)], &[]);
            assert_eq!(listed.files.len(), 1, "{path}");
            assert!(listed.files.keys().all(|file| listed.roots.has(file)), "{path}: {:?}", listed.files);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_no_text_is_in_the_way_of_itself_only() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.bak"), "a").unwrap();
        let name = |bytes: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(bytes));
        fs::write(name(b"\xff.txt"), "b").unwrap();
        let look = || {
            let listed = list(&[folder.path().to_owned()], &[]);
            (listed.files.len(), listed.problems.len(), listed.warnings.len(), listed.is_unable)
        };
        assert_eq!(look(), (1, 0, 1, false));
        fs::write(name(b"\xff.bak"), "c").unwrap();
        assert_eq!(look(), (1, 0, 2, true));
    }
}
