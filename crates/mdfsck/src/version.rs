//! The text of `--version`.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

use jobs::version::COMMIT;
pub(crate) use jobs::version::VERSION;

/// The text of `--version`: the version, the commit, the target and the features. Packaging sets the commit and the
/// name of the build.
pub(crate) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let optimised = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = option_env!("MDFSCK_BUILD").unwrap_or(optimised);
    let features =
        [("lab", cfg!(feature = "lab")), ("parquet", cfg!(feature = "parquet")), ("cloud", cfg!(feature = "cloud"))];
    let names: Vec<_> = features.into_iter().filter(|(_, is_built)| *is_built).map(|(name, _)| name).collect();
    let features = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let environment = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "msvc") => "-msvc",
        () => "",
    };
    format!("{VERSION}\ncommit: {COMMIT}\ntarget: {ARCH}-{OS}{environment}\nbuild: {build}\nfeatures: {features}")
});
