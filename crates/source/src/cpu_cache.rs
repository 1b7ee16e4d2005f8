//! Finds out the size of a processor core's second-level cache. This size determines how many pages are copied at a
//! time from a file in the system's cache.

use std::path::Path;
use std::sync::LazyLock;

/// The folder in which Linux describes the second-level cache of the first core.
const SECOND_LEVEL: &str = "/sys/devices/system/cpu/cpu0/cache/index2";

/// The smallest second-level cache that counts as large. Intel servers have had such caches since 2017, and AMD servers
/// since 2022.
const LARGE_CACHE_BYTES: u64 = 1 << 20;

/// The pages to copy at a time with a small cache: 32 pages are 256 KB, which is half of a cache of 512 KB.
const FEW_PAGES: u32 = 32;

/// Returns the maximum number of pages to copy from a file before these pages are checked, if the system reads the file
/// ahead. With a small core cache, the copied pages should fit into that cache. With a large core cache, and a file in
/// the system's cache, copies of a megabyte are faster than smaller copies (docs/speed.md, "Reads from the page
/// cache").
pub(crate) fn pages_per_copy(is_in_memory: bool) -> u32 {
    static IS_LARGE: LazyLock<bool> =
        LazyLock::new(|| second_level_bytes(Path::new(SECOND_LEVEL)).is_some_and(|bytes| bytes >= LARGE_CACHE_BYTES));
    if is_in_memory && *IS_LARGE { u32::MAX } else { FEW_PAGES }
}

/// The cache size in bytes that the files in `folder` describe; `None` if they do not describe a second-level cache.
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
