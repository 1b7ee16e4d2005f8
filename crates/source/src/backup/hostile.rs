//! Entry points that must accept any bytes, for fuzz targets: code that checksums shield from most damage in whole
//! backups.

use format::log::Block;

use super::log_portion::LogPortion;
use super::xpress;

/// Number of bytes to expect (u16), then a compressed block.
pub fn xpress(bytes: &[u8]) {
    let Some((&size, block)) = bytes.split_first_chunk() else { return };
    let _ = decompressed(block, u16::from_le_bytes(size).into());
}

/// The `size` bytes that a compressed block holds.
pub fn decompressed(block: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; size];
    xpress::decompress(block, &mut out).ok().map(|()| out)
}

/// A block of a log.
pub fn log_block(bytes: &[u8]) {
    let mut portion = LogPortion::default();
    if let Ok(block) = Block::restore(&mut bytes.to_vec()) {
        portion.block(&block);
    }
    portion.finish();
}
