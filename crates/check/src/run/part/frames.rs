//! The content of the frames of a part, for tests that change the content but keep the hashes valid.

use sums::HashKey;
use sums::hash::FactHash;
use sums::spill::TempStore;
use sums::wire::{HASH_BYTES, LENGTH_BYTES, Output};

/// The bytes in the frames of a part. Does not verify the hashes. `None` if the part ends too early.
pub fn unwrap(part: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), part);
    loop {
        let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (frame, behind) = behind.split_at_checked(length)?;
        rest = behind.get(HASH_BYTES..)?;
        if frame.is_empty() {
            return Some(bytes);
        }
        bytes.extend_from_slice(frame);
    }
}

/// A part with these bytes in its frames and with valid hashes.
pub fn wrap(key: &HashKey, head: &[u8], bytes: &[u8]) -> Vec<u8> {
    let (hash, space, mut part) = (FactHash::of_key(key), TempStore::default(), Vec::new());
    let mut to = Output::new(&hash, head, &space, &mut part);
    // Writing to memory does not fail.
    let _ = to.put(bytes).and_then(|()| to.finish());
    part
}
