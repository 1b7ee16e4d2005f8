//! Counters that Linux keeps for this process, read from /proc. Other systems have no such counters.

use std::fs::File;
use std::io::Read;

const STATUS: &str = "/proc/self/status";

/// Processor time of this process.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
}

impl Cpu {
    /// The current values, in seconds, with a resolution of a hundredth of a second.
    pub(crate) fn now() -> Option<Self> {
        let [_, _, user, system] = stat()?;
        Some(Self { user_seconds: user as f64 / 100.0, system_seconds: system as f64 / 100.0 })
    }
}

/// Minor and major page faults, and user and system time in hundredths of a second: fields 10, 12, 14 and 15 of
/// /proc/self/stat.
fn stat() -> Option<[u64; 4]> {
    let text = read("/proc/self/stat")?;
    // The program name, in parentheses, may contain blanks. So the fields are counted from the closing parenthesis.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some([field(10)?, field(12)?, field(14)?, field(15)?])
}

/// Largest resident memory so far, in bytes.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    Some(number(&read(STATUS)?, "VmHWM:")? * 1024)
}

/// Resident memory in bytes.
pub(crate) fn resident_memory_bytes() -> Option<u64> {
    Some(number(&read(STATUS)?, "VmRSS:")? * 1024)
}

/// Returns the processor time of this process in seconds, and its resident memory in bytes. Each value is `None` if the
/// operating system does not report it.
pub fn process_usage() -> (Option<f64>, Option<u64>) {
    (Cpu::now().map(|cpu| cpu.user_seconds + cpu.system_seconds), resident_memory_bytes())
}

/// The size of the read buffer. It is larger than nearly all files in /proc that are read here, so a single read is
/// usually enough.
const FILE_BYTES: usize = 8192;

/// Reads a file in /proc, which exists only on Linux.
fn read(file: &str) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    File::open(file).ok()?.read_to_end(&mut bytes).ok()?;
    // The operating system may truncate a process name in the middle of a character.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number that follows a name, in a text with one name and number per line.
fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Counters that never decrease, with their names.
pub(crate) fn counters() -> Vec<(&'static str, u64)> {
    let faults = stat().map(|[minor, major, ..]| [("minor_faults", minor), ("major_faults", major)]);
    let [status, io] = [STATUS, "/proc/self/io"].map(|file| read(file).unwrap_or_default());
    let named = [
        ("voluntary_switches", &status, "voluntary_ctxt_switches:"),
        ("involuntary_switches", &status, "nonvoluntary_ctxt_switches:"),
        ("bytes_from_disk", &io, "read_bytes:"),
        ("bytes_to_disk", &io, "write_bytes:"),
        ("read_calls", &io, "syscr:"),
    ];
    let named = named.into_iter().filter_map(|(name, text, line)| Some((name, number(text, line)?)));
    faults.into_iter().flatten().chain(named).collect()
}
