//! Describes the machine, since results can be compared only with a baseline from the same machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jobs::size;
use serde::{Deserialize, Serialize};

/// The machine and its storage. A value is `None` if the operating system does not report it.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Machine {
    /// Model of the processor.
    pub(crate) processor: Option<String>,
    /// Number of cores in all sockets.
    pub(crate) cores: Option<usize>,
    /// Number of processors that the program may use.
    pub(crate) processors: Option<usize>,
    pub(crate) memory_bytes: Option<u64>,
    /// Operating system, with its version and architecture.
    pub(crate) system: Option<String>,
    pub(crate) is_virtual: Option<bool>,
    /// Type of the filesystem that holds the first file.
    pub(crate) filesystem: Option<String>,
    /// Name and type of the disk that holds this filesystem.
    pub(crate) disk: Option<String>,
}

/// Number of processors that the program may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Machine {
    /// Describes this machine, and the storage that holds `file`.
    pub(crate) fn this(file: Option<&Path>) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (cpuinfo, mountinfo) = (read("/proc/cpuinfo"), read("/proc/self/mountinfo"));
        let mount = file.and_then(|file| Mount::of(&fs::canonicalize(file).ok()?, &mountinfo));
        let is_linux = !cpuinfo.is_empty();
        Self {
            processor: field(&cpuinfo, "model name").map(str::to_owned),
            cores: cores(&cpuinfo),
            processors: Some(processors()),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            system: Some(system(&read("/etc/os-release"), read("/proc/sys/kernel/osrelease").trim())),
            is_virtual: is_linux.then(|| cpuinfo.contains(" hypervisor")),
            filesystem: mount.as_ref().map(|mount| mount.filesystem.clone()),
            disk: mount.and_then(|mount| disk(&mount.device)),
        }
    }

    /// The facts about the machine that are known, as pairs of a name and a value.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
        let cores = [self.cores.map(|cores| count(cores, "core")), self.processors.map(|n| count(n, "processor"))];
        let cores = cores.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let system = self.system.clone().map(|system| match self.is_virtual {
            Some(true) => format!("{system}, virtual machine"),
            _ => system,
        });
        let facts = [
            ("processor", self.processor.clone()),
            ("cores", Some(cores).filter(|cores| !cores.is_empty())),
            ("memory", self.memory_bytes.map(size::text)),
            ("system", system),
            ("filesystem", self.filesystem.clone()),
            ("disk", self.disk.clone()),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Describes each value that differs between this machine and `then`. Skips values that are unknown for one of the
    /// two machines.
    pub(crate) fn differences(&self, then: &Self) -> Vec<String> {
        let (now, then) = (self.facts(), then.facts());
        let value = |name: &str| Some(&then.iter().find(|fact| fact.0 == name)?.1);
        let differs = |(name, now): &(&str, String)| {
            let then = value(name).filter(|then| *then != now)?;
            Some(format!("{name} {then}, now {now}"))
        };
        now.iter().filter_map(differs).collect()
    }
}

/// Finds the first line of the form `name: value`, and returns its value.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    fields(text, name).next()
}

fn fields<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let value = move |line: &'t str| line.split_once(':').filter(|(key, _)| key.trim() == name);
    text.lines().filter_map(value).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Number of cores in all sockets. Hyperthreads of one core have the same core ID, so they count as one core.
fn cores(cpuinfo: &str) -> Option<usize> {
    let of_processor =
        |block: &str| Some((field(block, "physical id")?.to_owned(), field(block, "core id")?.to_owned()));
    let cores: BTreeSet<_> = cpuinfo.split("\n\n").filter_map(of_processor).collect();
    (!cores.is_empty()).then_some(cores.len())
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn system(os_release: &str, kernel: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let kernel = if kernel.is_empty() { os.to_owned() } else { format!("{os} {kernel}") };
    let parts = [name.map(|name| name.trim_matches('"').to_owned()), Some(format!("{kernel} {architecture}"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A mounted filesystem, from a line of `/proc/self/mountinfo`.
struct Mount {
    /// Major and minor number of the device.
    device: String,
    filesystem: String,
}

impl Mount {
    /// The mounted filesystem that holds `path`. Of all mount points that contain `path`, the longest is used. If
    /// several filesystems have this mount point, the one listed last is used.
    fn of(path: &Path, mountinfo: &str) -> Option<Self> {
        let read = |line: &str| {
            let (before, after) = line.split_once(" - ")?;
            let mut fields = before.split(' ');
            let (device, place) = (fields.nth(2)?, fields.nth(1)?);
            // Linux writes a blank in a path as `\040`.
            let place = PathBuf::from(place.replace("\\040", " "));
            let mount = Self { device: device.to_owned(), filesystem: after.split(' ').next()?.to_owned() };
            path.starts_with(&place).then(|| (place.components().count(), mount))
        };
        mountinfo.lines().filter_map(read).max_by_key(|(depth, _)| *depth).map(|(_, mount)| mount)
    }
}

/// Name and type of a block device. `None` if the filesystem has no block device, for example because it is in memory
/// or on a network.
fn disk(device: &str) -> Option<String> {
    let folder = fs::canonicalize(Path::new("/sys/dev/block").join(device)).ok()?;
    // The folder of a partition is inside the folder of its disk.
    let disk =
        [Some(folder.as_path()), folder.parent()].into_iter().flatten().find(|path| path.join("queue").is_dir())?;
    let read = |name: &str| Some(fs::read_to_string(disk.join(name)).ok()?.trim().to_owned());
    let kind = match read("queue/rotational").as_deref() {
        Some("1") => Some("reported as rotating".to_owned()),
        Some("0") => Some("not rotating".to_owned()),
        _ => None,
    };
    let parts = [disk.file_name().map(|name| name.to_string_lossy().into_owned()), read("device/model"), kind];
    Some(parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: Example 9 @ 2.0GHz\nphysical id\t: 0\ncore id\t\t: 0\n\n\
                           processor\t: 1\nmodel name\t: Example 9 @ 2.0GHz\nphysical id\t: 0\ncore id\t\t: 0\n\n\
                           processor\t: 2\nmodel name\t: Example 9 @ 2.0GHz\nphysical id\t: 1\ncore id\t\t: 0\n";

    #[test]
    fn hyperthreads_share_a_core() {
        assert_eq!((field(CPUINFO, "model name"), cores(CPUINFO)), (Some("Example 9 @ 2.0GHz"), Some(2)));
        assert_eq!((cores("processor : 0\n"), cores("")), (None, None));
        assert_eq!(memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(memory_bytes("MemTotal: 99999999999999999999 kB\n"), None);
    }

    #[test]
    fn a_file_is_on_the_innermost_mount() {
        let mounts =
            "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 0:5 / /my\\040data rw shared:1 - tmpfs x rw\nnonsense\n";
        let of = |path: &str| Mount::of(Path::new(path), mounts).map(|mount| (mount.device, mount.filesystem));
        assert_eq!(of("/var/a.mdf"), Some(("254:0".to_owned(), "ext4".to_owned())));
        assert_eq!(of("/my data/a.mdf"), Some(("0:5".to_owned(), "tmpfs".to_owned())));
        assert!(Mount::of(Path::new("/a"), "").is_none());
    }

    #[test]
    fn only_what_both_know_is_compared() {
        let machine = |processor: Option<&str>, cores| Machine {
            processor: processor.map(str::to_owned),
            cores: Some(cores),
            ..Machine::default()
        };
        assert!(machine(Some("A"), 2).differences(&machine(None, 2)).is_empty());
        let told = machine(Some("A"), 1).differences(&machine(Some("B"), 2));
        assert_eq!(told, ["processor B, now A", "cores 2 cores, now 1 core"]);
    }
}
