//! What was built.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

/// The version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `--version` shows: the version, and what it was built from and for. Packaging knows the commit and names its build.
pub(super) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("MDFSCK_COMMIT").unwrap_or("unknown");
    let optimised = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = option_env!("MDFSCK_BUILD").unwrap_or(optimised);
    let features = if cfg!(feature = "lab") { "lab" } else { "none" };
    let environment = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "msvc") => "-msvc",
        () => "",
    };
    format!("{VERSION}\ncommit: {commit}\ntarget: {ARCH}-{OS}{environment}\nbuild: {build}\nfeatures: {features}")
});
