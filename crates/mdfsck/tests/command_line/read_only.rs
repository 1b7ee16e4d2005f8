//! Input files are only read. The tests run commands under strace, which lists their system calls. No call may open an
//! input for writing, lock it, change it or its times, or open a socket. The files are also compared before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use super::{Test, ensure, is_here, mdfsck, needs, text};

/// The folder of the input files. Its name is in each line of strace that is about one of them.
const INPUTS: &str = "only-read";

/// The calls that strace lists. The question mark admits calls that the processor's system does not have.
const CALLS: &str = "?open,openat,?openat2,?creat,?truncate,ftruncate,fallocate,flock,fcntl,?utime,?utimes,?futimesat,\
    utimensat,?rename,?renameat,renameat2,?unlink,unlinkat,?chmod,fchmod,fchmodat,?chown,fchown,?lchown,fchownat,?link,\
    linkat,setxattr,fsetxattr,removexattr,fremovexattr,socket,connect,bind,listen";

/// The calls that read a file or its properties: `fcntl` may also lock a file, and `open` may also write to it.
const READING: [&str; 4] = ["open", "openat", "openat2", "fcntl"];
const NETWORK: [&str; 4] = ["socket", "connect", "bind", "listen"];

/// The parts of a line that show a write, a new file, or a lock.
const WRITING: [&str; 8] =
    ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "F_SETLK", "F_OFD_SETLK", "F_SETLEASE"];

/// The commands, each with its exit status. The damage of one table leaves its index unverified: 17, and 16 for rows
/// that are not exported.
const COMMANDS: [(&str, i32); 10] = [
    ("check only-read/data", 0),
    ("check only-read/snap --output report.txt", 0),
    ("check only-read/backups --history checks.db", 0),
    ("check only-read/damaged --maxdop 1 --memory 40MB --temp-dir .", 17),
    ("advise only-read/damaged --backups only-read/backups", 17),
    ("export only-read/data -o rows", 0),
    ("export only-read/damaged -o saved --damaged", 16),
    ("audit only-read/snap", 0),
    ("chain only-read/backups --verify", 0),
    ("watch only-read/backups --history watched.db --once", 0),
];

pub(crate) fn judged() -> (&'static str, Test) {
    ("a trace shows each write, lock, changed time and socket, and no read as one of them", |_| judge())
}

pub(crate) fn traced() -> Trial {
    let name = "no command opens an input for writing, locks it, changes its times, or opens a socket";
    needs(&[("strace", is_here("strace"))], name, trace)
}

/// Returns what a line of strace shows that is not allowed; `None` if the line only shows a read.
fn offence(line: &str) -> Option<&'static str> {
    // The end of a call that another thread interrupted. Its arguments are in an earlier line.
    if line.contains("<... ") && line.contains(" resumed>") {
        return None;
    }
    let call = line.split('(').next()?.split_whitespace().last()?;
    if NETWORK.contains(&call) {
        return Some("opens a socket");
    }
    if !line.contains(&format!("{INPUTS}/")) {
        return None;
    }
    let is_reading = READING.contains(&call) && !WRITING.iter().any(|word| line.contains(word));
    (!is_reading).then_some("does more than read")
}

fn judge() -> Result<(), Failed> {
    let bad = [
        r#"7 openat(AT_FDCWD</w>, "only-read/a.mdf", O_RDWR|O_CLOEXEC) = 3</w/only-read/a.mdf>"#,
        r#"7 openat(AT_FDCWD</w>, "only-read/a.mdf", O_RDONLY|O_CREAT, 0666) = 3</w/only-read/a.mdf>"#,
        "7 flock(3</w/only-read/a.mdf>, LOCK_SH) = 0",
        "7 fcntl(3</w/only-read/a.mdf>, F_OFD_SETLK, {l_type=F_RDLCK}) = 0",
        "7 fcntl(3</w/only-read/a.mdf>, F_SETLKW, {l_type=F_RDLCK} <unfinished ...>",
        "7 utimensat(0</w/only-read/a.mdf>, NULL, NULL, 0) = 0",
        "7 ftruncate(3</w/only-read/a.mdf>, 0) = 0",
        r#"7 unlink("only-read/a.mdf") = 0"#,
        "7 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3<UNIX:[5]>",
    ];
    for line in bad {
        ensure(offence(line).is_some(), format!("not seen: {line}"))?;
    }
    let good = [
        r#"7 openat(AT_FDCWD</w>, "only-read/a.mdf", O_RDONLY|O_CLOEXEC) = 3</w/only-read/a.mdf>"#,
        "7 fcntl(3</w/only-read/a.mdf>, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE)",
        r#"7 openat(AT_FDCWD</w>, "report.txt", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3</w/report.txt>"#,
        "7 fcntl(4</w/checks.db>, F_SETLK, {l_type=F_WRLCK}) = 0",
        "7  <... openat resumed>)             = 4</w/only-read/a.mdf>",
    ];
    for line in good {
        ensure(offence(line).is_none(), format!("only reads: {line}"))?;
    }
    Ok(())
}

/// The content and the properties of each file, by path.
type State = BTreeMap<PathBuf, (Vec<u8>, Vec<i64>)>;

/// The content and the properties of each file below a folder, without the time of the last read. The time of the last
/// change of any kind is among them, which no program can set.
fn state(folder: &Path) -> Result<State, Failed> {
    let (mut folders, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let of = path.metadata()?;
            let properties = vec![of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec(), i64::from(of.mode())];
            let content = if path.is_dir() { Vec::new() } else { fs::read(&path)? };
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (content, properties));
        }
    }
    Ok(found)
}

/// Runs a program under strace. Returns its exit status, its errors, and the lines of strace.
fn under_strace(folder: &Path, program: &str, arguments: &[&str]) -> Result<(Option<i32>, String, String), Failed> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-o", "calls", "-e", &format!("trace={CALLS}"), program]);
    let output = command.args(arguments).current_dir(folder).output()?;
    Ok((output.status.code(), text(&output.stderr), fs::read_to_string(folder.join("calls"))?))
}

fn trace(folder: &Path) -> Result<(), Failed> {
    let inputs = folder.join(INPUTS);
    fs::create_dir(&inputs)?;
    for command in [
        "lab new data --size 9MB",
        "lab crash snap --transactions 40",
        "lab backup data -o backups",
        "lab damage data -o damaged --kind bit-rot",
    ] {
        let made = mdfsck(&inputs, &command.split(' ').collect::<Vec<_>>());
        ensure(made.status.success(), text(&made.stderr))?;
    }
    // The truth about the crash is a data file too, and of another moment.
    fs::remove_dir_all(inputs.join("snap/truth"))?;
    // strace sees a program that does more than read.
    let sample = folder.join("touched").join(INPUTS);
    fs::create_dir_all(&sample)?;
    fs::write(sample.join("a.mdf"), b"a")?;
    let (_, errors, calls) = under_strace(folder, "touch", &["touched/only-read/a.mdf"])?;
    ensure(calls.lines().any(|line| offence(line).is_some()), format!("strace sees nothing: {errors}{calls}"))?;
    let before = state(&inputs)?;
    for (command, status) in COMMANDS {
        let arguments: Vec<&str> = command.split(' ').collect();
        let (code, errors, calls) = under_strace(folder, env!("CARGO_BIN_EXE_mdfsck"), &arguments)?;
        ensure(code == Some(status), format!("{command}: status {code:?}: {errors}"))?;
        ensure(calls.contains(&format!("{INPUTS}/")), format!("{command}: no input was read:\n{calls}"))?;
        let found: Vec<&str> = calls.lines().filter(|line| offence(line).is_some()).collect();
        ensure(found.is_empty(), format!("{command}:\n{}", found.join("\n")))?;
    }
    ensure(state(&inputs)? == before, "an input was changed, or a file was made beside one")
}
