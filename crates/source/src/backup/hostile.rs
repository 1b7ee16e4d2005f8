//! Entry points for fuzz targets and benches. The code that they call must accept any bytes. When a whole backup is
//! read, checksums keep most damaged bytes away from this code.

use format::log::Block;

use super::blocks::{SECTOR_BYTES, is_filemark};
use super::compressed::MAGIC;
use super::log_portion::LogPortion;
use super::version::Version;
use super::xpress;

/// Decompresses a block with the fast decoder and with the decoder that works symbol by symbol, and compares the
/// results. `bytes` start with the decompressed length (u16, in bytes); the compressed block follows.
///
/// # Panics
/// If the results differ.
pub fn xpress(bytes: &[u8]) {
    let Some((&size, block)) = bytes.split_first_chunk() else { return };
    let mut one_by_one = vec![0; u16::from_le_bytes(size).into()];
    let is_whole = xpress::decompress_by_symbols(block, &mut one_by_one).is_ok();
    assert_eq!(decompressed(block, one_by_one.len()), is_whole.then_some(one_by_one));
}

/// Decompresses a block into `out`, whose length must be the size of the content. Returns whether the decompression
/// succeeded.
pub fn decompress(block: &[u8], out: &mut [u8]) -> bool {
    xpress::decompress(block, out).is_ok()
}

/// The `size` bytes to which a block decompresses; `None` if it cannot be decompressed.
pub fn decompressed(block: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; size];
    xpress::decompress(block, &mut out).ok().map(|()| out)
}

/// The compressed blocks of a compressed backup up to the first damage, each with its decompressed length in bytes.
pub fn compressed_blocks(backup: &[u8]) -> Vec<(&[u8], usize)> {
    let mut blocks = Vec::new();
    let words = backup.strip_prefix(MAGIC).and_then(|rest| rest.get(..8));
    let Some(version) = words.and_then(Version::of) else { return blocks };
    let mut at = version.first as usize;
    while let Some(rest) = backup.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some((sectors, payload)) = version.record(rest) {
            let bytes = usize::from(sectors) * SECTOR_BYTES;
            // A payload with the length of its content is stored uncompressed.
            if payload.len() < bytes {
                blocks.push((payload, bytes));
            }
            at += version.header + payload.len();
        } else if let Some(length) = is_filemark(rest) {
            at += length;
        } else if let Some(length) = version.filler(rest) {
            at = at.saturating_add(length as usize);
        } else {
            break;
        }
    }
    blocks
}

/// Reads the records of one log block.
pub fn log_block(bytes: &[u8]) {
    let mut portion = LogPortion::default();
    if let Ok(block) = Block::restore(&mut bytes.to_vec()) {
        portion.block(&block);
    }
    portion.finish();
}
