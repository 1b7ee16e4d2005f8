#![no_main]

use std::sync::LazyLock;

/// The backup that is changed: the file that MDFSCK_FUZZ_BASE names; without one, the input is the backup.
static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| match std::env::var_os("MDFSCK_FUZZ_BASE") {
    Some(path) => std::fs::read(path).expect("MDFSCK_FUZZ_BASE can be read"),
    None => Vec::new(),
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trials::hostile::backup(&BASE, bytes));
