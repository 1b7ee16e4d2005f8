//! Programs that have a file open for writing, as far as the operating system tells.

use std::path::Path;

use crate::storage;

/// Finds a program that has one of the files open for writing or holds a write lock on it. Returns the path of the file
/// and the name of the program. `None` if there is no such program, or if the operating system does not tell: other
/// users' programs, programs in other containers and programs on other machines may remain hidden.
pub fn writer<'p>(paths: impl Iterator<Item = &'p Path>) -> Option<(&'p Path, String)> {
    let paths: Vec<&Path> = paths.filter(|path| storage::url(path).is_none()).collect();
    system::writer(&paths)
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::{BTreeMap, BTreeSet};
    use std::ffi::{OsStr, OsString};
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    /// The most descriptors that are looked at. A server has thousands of them.
    const MOST_DESCRIPTORS: usize = 1 << 17;

    /// Device and number of a file.
    type FileId = (u64, u64);

    pub(super) fn writer<'p>(paths: &[&'p Path]) -> Option<(&'p Path, String)> {
        let id_of = |path: &&'p Path| fs::metadata(path).ok().map(|metadata| ((metadata.dev(), metadata.ino()), *path));
        let files: BTreeMap<FileId, &Path> = paths.iter().filter_map(id_of).collect();
        if files.is_empty() {
            return None;
        }
        by_descriptor(&files).or_else(|| by_lock(&files))
    }

    /// Looks for a descriptor of another process that allows writing.
    fn by_descriptor<'p>(files: &BTreeMap<FileId, &'p Path>) -> Option<(&'p Path, String)> {
        let names_of = |path: &&Path| fs::canonicalize(path).ok()?.file_name().map(OsStr::to_owned);
        let names: BTreeSet<OsString> = files.values().filter_map(names_of).collect();
        let own = std::process::id();
        let mut left = MOST_DESCRIPTORS;
        for process in fs::read_dir("/proc").ok()?.flatten() {
            let id = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let Some(id) = id.filter(|id| *id != own) else { continue };
            // The descriptors of other users' processes cannot be listed.
            let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
            for descriptor in descriptors.flatten() {
                left = left.checked_sub(1)?;
                // Only files of the same name are looked at, because asking for the identity of a file may block: the
                // file may be on a share that does not answer. In a container, the folders may have other names.
                let link = fs::read_link(descriptor.path()).unwrap_or_default();
                if !link.file_name().is_some_and(|name| names.contains(name)) {
                    continue;
                }
                let opened = fs::metadata(descriptor.path()).ok();
                let Some(path) = opened.and_then(|to| files.get(&(to.dev(), to.ino()))) else { continue };
                let info = process.path().join("fdinfo").join(descriptor.file_name());
                if fs::read_to_string(info).is_ok_and(|info| allows_writing(&info)) {
                    return Some((path, name_of(id)));
                }
            }
        }
        None
    }

    /// Whether the flags of a descriptor allow writing. `info` is the content of its file in /proc/PID/fdinfo.
    pub(super) fn allows_writing(info: &str) -> bool {
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        // The last two bits are 1 for O_WRONLY and 2 for O_RDWR.
        flags.is_some_and(|flags| matches!(flags & 3, 1 | 2))
    }

    /// Looks for a write lock, which is listed even if the process belongs to another user.
    fn by_lock<'p>(files: &BTreeMap<FileId, &'p Path>) -> Option<(&'p Path, String)> {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let of_line = |line: &str| files.iter().find_map(|(file, path)| Some((*path, locking(line, *file)?)));
        let (path, id) = locks.lines().filter_map(of_line).find(|(_, id)| *id != std::process::id())?;
        Some((path, name_of(id)))
    }

    /// The process of a line of /proc/locks, if the line is a write lock on this file.
    pub(super) fn locking(line: &str, (device, number): FileId) -> Option<u32> {
        let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "WRITE").skip(1);
        let id = words.next()?.parse().ok()?;
        let mut parts = words.next()?.split(':');
        let part = |text: Option<&str>| text.and_then(|text| u64::from_str_radix(text, 16).ok());
        let (major, minor) = (part(parts.next())?, part(parts.next())?);
        let is_number = parts.next()?.parse() == Ok(number);
        let of_device = (u64::from(rustix::fs::major(device)), u64::from(rustix::fs::minor(device)));
        (is_number && of_device == (major, minor)).then_some(id)
    }

    fn name_of(id: u32) -> String {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        match name.trim() {
            "" => format!("process {id}"),
            name => format!("{name} (process {id})"),
        }
    }
}

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::os::windows::fs::OpenOptionsExt as _;
    use std::path::Path;

    /// Other programs may read and delete the file while it is open here, but not write to it.
    const SHARE_READ_AND_DELETE: u32 = 1 | 4;
    const ERROR_SHARING_VIOLATION: i32 = 32;

    /// The probe is closed at once, so that it keeps no program from opening the file.
    pub(super) fn writer<'p>(paths: &[&'p Path]) -> Option<(&'p Path, String)> {
        let probe = |path: &&Path| File::options().read(true).share_mode(SHARE_READ_AND_DELETE).open(path);
        let is_open =
            |path: &&&Path| probe(path).is_err_and(|error| error.raw_os_error() == Some(ERROR_SHARING_VIOLATION));
        paths.iter().find(is_open).map(|path| (*path, "another program".to_owned()))
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
mod system {
    pub(super) fn writer<'p>(_: &[&'p std::path::Path]) -> Option<(&'p std::path::Path, String)> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt as _;
    use std::process::{Command, Stdio};

    fn found(path: &Path) -> Option<String> {
        writer([path].into_iter()).map(|(_, name)| name)
    }

    #[test]
    fn a_program_with_the_file_open_for_writing_is_named_and_a_reader_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        std::fs::write(&path, "x").unwrap();
        let beside = |file: File, check: fn(Option<String>)| {
            let mut other = Command::new("sleep").arg("60").stdin(Stdio::from(file)).spawn().unwrap();
            // A process has the name of its program only after it was started.
            let named = (0..200).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                let comm = std::fs::read_to_string(format!("/proc/{}/comm", other.id())).unwrap_or_default();
                (comm.trim() == "sleep").then(|| found(&path))
            });
            other.kill().unwrap();
            other.wait().unwrap();
            check(named.unwrap());
        };
        beside(File::open(&path).unwrap(), |found| assert_eq!(found, None));
        beside(File::options().append(true).open(&path).unwrap(), |found| {
            assert!(found.is_some_and(|name| name.starts_with("sleep (process ")));
        });
        let own = File::options().write(true).open(&path).unwrap();
        assert_eq!(found(&path), None, "this process does not count");
        drop(own);
    }

    #[test]
    fn a_write_lock_names_its_process() {
        let metadata = std::fs::metadata("/proc/self/exe").unwrap();
        let (device, number) = (metadata.dev(), metadata.ino());
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let line = |kind: &str| format!("1: POSIX  ADVISORY  {kind} 4711 {major:02x}:{minor:02x}:{number} 0 EOF");
        assert_eq!(system::locking(&line("WRITE"), (device, number)), Some(4711));
        assert_eq!(system::locking(&line("READ "), (device, number)), None);
        assert_eq!(system::locking(&line("WRITE"), (device, number + 1)), None);
        assert_eq!(system::locking("", (device, number)), None);
    }

    #[test]
    fn flags_tell_writers_from_readers() {
        for (flags, expected) in [("0100000", false), ("0100001", true), ("0140002", true), ("x", false)] {
            assert_eq!(
                system::allows_writing(&format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\n")),
                expected,
                "{flags}"
            );
        }
    }
}
