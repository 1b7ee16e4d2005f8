#![no_main]

use std::sync::LazyLock;

use source::MemoryFiles;

/// The database that is changed: the file that MDFSCK_FUZZ_BASE names, or one of almost nothing.
static BASE: LazyLock<Option<MemoryFiles>> = LazyLock::new(|| {
    let path = std::env::var_os("MDFSCK_FUZZ_BASE")?;
    let bytes = std::fs::read(&path).expect("MDFSCK_FUZZ_BASE can be read");
    Some(MemoryFiles::open(vec![(path.into(), bytes)]).expect("MDFSCK_FUZZ_BASE is a data file"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trials::hostile::database(BASE.as_ref(), bytes));
