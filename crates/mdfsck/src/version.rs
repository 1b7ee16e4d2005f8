//! The version and the build of this program.

use std::env::consts::{ARCH, OS};
use std::fs::File;
use std::io::{self, Read};
use std::sync::LazyLock;

use check::part::{Digest, digest};
use sums::HashKey;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that this program was built from, if packaging sets it.
const COMMIT: &str = match option_env!("MDFSCK_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Identifies the build, because parts of different builds must not be mixed. Contains the commit if packaging sets it,
/// otherwise a digest of the program's file.
pub(crate) static BUILD: LazyLock<String> = LazyLock::new(|| {
    let build = match option_env!("MDFSCK_COMMIT") {
        Some(commit) => commit.to_owned(),
        None => own_digest().unwrap_or_else(|_| COMMIT.to_owned()),
    };
    format!("{VERSION}+{build}")
});

/// A digest of the program's file.
fn own_digest() -> io::Result<String> {
    const PIECE_BYTES: u64 = 1 << 20;
    let key = HashKey::new([0; HashKey::BYTES]);
    let mut file = File::open(std::env::current_exe()?)?;
    let mut sum = Digest::default();
    let mut piece = Vec::with_capacity(size_of::<Digest>() + PIECE_BYTES as usize);
    loop {
        piece.clear();
        piece.extend_from_slice(&sum);
        if file.by_ref().take(PIECE_BYTES).read_to_end(&mut piece)? == 0 {
            return Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        sum = digest(&key, &piece);
    }
}

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
