//! Computes a fingerprint of a file from a few places in the file. The fingerprint shows that a file was overwritten
//! even if its size and its times are unchanged.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use source::storage;
use twox_hash::XxHash64;

/// Number of bytes to read at the start and at the end of a file, where headers and labels are stored.
const END: u64 = 64 << 10;
/// Number of blocks to read between the start and the end of a file. `BLOCK` is the size of a block in bytes.
const BLOCKS: u64 = 16;
const BLOCK: u64 = 16 << 10;
/// A file of at most this size is read completely.
const WHOLE: u64 = 2 * END + BLOCKS * BLOCK;
/// An odd multiplier. When a size is multiplied by it, all bits of the product depend on the size.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The fingerprint of a file; `None` for anything that is not a regular file. An object in object storage also needs no
/// fingerprint, because it has an entity tag.
///
/// # Errors
///
/// If the file cannot be read.
pub fn of(path: &Path) -> io::Result<Option<String>> {
    if storage::url(path).is_some() || !path.metadata()?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    // Two hashes of 64 bits. They do not protect against somebody who constructs a collision.
    let mut sums = [XxHash64::with_seed(0), XxHash64::with_seed(SPREAD)];
    let mut bytes = Vec::new();
    for (at, length) in places(size) {
        bytes.clear();
        file.seek(SeekFrom::Start(at))?;
        (&mut file).take(length).read_to_end(&mut bytes)?;
        for sum in &mut sums {
            sum.write_u64(at);
            sum.write(&bytes);
        }
    }
    let [one, other] = sums.map(|sum| sum.finish());
    Ok(Some(format!("{one:016x}{other:016x}")))
}

/// The offset and length of each place to read in a file of this size. Files of the same size have the same places.
fn places(size: u64) -> Vec<(u64, u64)> {
    if size <= WHOLE {
        return vec![(0, size)];
    }
    let span = (size - 2 * END) / BLOCKS;
    let block = |number: u64| {
        let within = size.wrapping_add(number).wrapping_mul(SPREAD).rotate_left(32) % (span - BLOCK + 1);
        (END + number * span + within, BLOCK)
    };
    std::iter::once((0, END)).chain((0..BLOCKS).map(block)).chain([(size - END, END)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn places_lie_in_the_file_in_order_and_apart() {
        for size in [0, 1, WHOLE, WHOLE + 1, WHOLE + 15, 1 << 20, (1 << 30) + 12_345, 1 << 45, u64::MAX] {
            let places = places(size);
            let ends = places.iter().map(|(at, length)| at + length);
            assert!(places.iter().skip(1).zip(ends).all(|((at, _), end)| *at >= end), "{size}: {places:?}");
            assert!(places.last().is_some_and(|(at, length)| at + length == size), "{size}: {places:?}");
            assert_eq!(places, super::places(size));
            assert!(places.iter().map(|(_, length)| length).sum::<u64>() <= WHOLE);
        }
    }

    #[test]
    fn bytes_at_either_end_and_many_in_between_show_and_the_rest_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bak");
        let sound = vec![7_u8; 4 << 20];
        let of = |changed: &[usize]| {
            let mut bytes = sound.clone();
            changed.iter().for_each(|at| bytes[*at] ^= 1);
            fs::write(&path, bytes).unwrap();
            super::of(&path).unwrap().unwrap()
        };
        let known = of(&[]);
        assert_eq!(of(&[]), known);
        let middle: Vec<usize> = places(4 << 20).iter().map(|(at, _)| *at as usize).collect();
        for at in middle.into_iter().chain([0, (4 << 20) - 1, 5000]) {
            assert_ne!(of(&[at]), known, "{at}");
        }
        assert_eq!(super::of(folder.path()).unwrap(), None, "a folder has none");
        fs::write(&path, [1]).unwrap();
        let one = super::of(&path).unwrap();
        fs::write(&path, []).unwrap();
        assert_ne!(super::of(&path).unwrap(), one);
    }
}
