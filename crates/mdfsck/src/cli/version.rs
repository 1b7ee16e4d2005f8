//! What was built.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

/// The version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What it was built from, if packaging says so.
const COMMIT: &str = match option_env!("MDFSCK_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// What tells programs apart whose parts do not go together.
pub(crate) static BUILD: LazyLock<String> = LazyLock::new(|| format!("{VERSION}+{COMMIT}"));

/// What `--version` shows: the version, and what it was built from and for. Packaging knows the commit and names its build.
pub(super) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let optimised = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = option_env!("MDFSCK_BUILD").unwrap_or(optimised);
    let features = if cfg!(feature = "lab") { "lab" } else { "none" };
    let environment = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "msvc") => "-msvc",
        () => "",
    };
    format!("{VERSION}\ncommit: {COMMIT}\ntarget: {ARCH}-{OS}{environment}\nbuild: {build}\nfeatures: {features}")
});
