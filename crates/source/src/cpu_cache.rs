//! The processor core's own cache, which decides how many pages of a cached file are copied at once.

use std::path::Path;
use std::sync::LazyLock;

/// Where Linux describes the second-level cache of the first core.
const SECOND_LEVEL: &str = "/sys/devices/system/cpu/cpu0/cache/index2";

/// From this size on, a core's cache counts as large: Intel servers since 2017, AMD servers since 2022.
const LARGE_CACHE_BYTES: u64 = 1 << 20;

/// 32 pages are 256 KB, half of a cache of 512 KB.
const FEW_PAGES: u32 = 32;

/// The most pages of a read-ahead file to copy before they are checked. With a small core cache, the copied pages
/// should fit into it; with a large one, copies of a megabyte are faster than smaller ones if the file is in memory
/// (docs/speed.md, "Reads from the page cache").
pub(crate) fn pages_per_copy(is_in_memory: bool) -> u32 {
    static IS_LARGE: LazyLock<bool> =
        LazyLock::new(|| second_level_bytes(Path::new(SECOND_LEVEL)).is_some_and(|bytes| bytes >= LARGE_CACHE_BYTES));
    if is_in_memory && *IS_LARGE { u32::MAX } else { FEW_PAGES }
}

/// The cache size that this folder describes, if it is a second-level cache.
fn second_level_bytes(folder: &Path) -> Option<u64> {
    let read = |name| std::fs::read_to_string(folder.join(name)).ok();
    let is_second = read("level")?.trim() == "2";
    let size = read("size")?;
    let kilobytes: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
    is_second.then(|| kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_only_where_the_system_describes_a_cache_of_the_second_level() {
        let folder = tempfile::tempdir().unwrap();
        let described = |level: &str, size: &str| {
            std::fs::write(folder.path().join("level"), level).unwrap();
            std::fs::write(folder.path().join("size"), size).unwrap();
            second_level_bytes(folder.path())
        };
        assert_eq!(described("2\n", "1024K\n"), Some(1 << 20));
        assert_eq!(described("2\n", "512K\n"), Some(512 << 10));
        assert_eq!(described("3\n", "32768K\n"), None);
        assert_eq!(described("2\n", "much\n"), None);
        assert_eq!(described("2\n", "18446744073709551615K\n"), Some(u64::MAX));
        assert_eq!(second_level_bytes(&folder.path().join("none")), None);
    }
}
