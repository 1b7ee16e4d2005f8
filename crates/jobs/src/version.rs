//! The version and the build of this program.

use std::fs::File;
use std::io::{self, Read};
use std::sync::LazyLock;

use check::part::{Digest, digest};
use sums::HashKey;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that this program was built from, if packaging sets it.
pub const COMMIT: &str = match option_env!("MDFSCK_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Identifies the build, because parts of different builds must not be mixed. Contains the commit if packaging sets it,
/// otherwise a digest of the program's file.
pub static BUILD: LazyLock<String> = LazyLock::new(|| {
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
