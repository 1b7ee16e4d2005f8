//! Storage faults. Sectors and stripes are lost, moved, doubled or encrypted. A fault does not depend on the content of
//! the file.

use trials::mutate::Random;

use crate::subject::Content;

const SECTOR: usize = 512;
const PAGE: usize = 8192;

/// A fault of storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    ZeroedSectors,
    ShiftedSectors,
    DoubledSector,
    SwappedStripes,
    Cut,
    TailOfAnother,
    EncryptedBlocks,
    EncryptedStart,
    EncryptedFile,
    Intermittent,
    BitRot,
    NoisySectors,
    /// The content of one page is from an earlier time. This fault and the next two need an earlier version of the
    /// file.
    LostWrite,
    LostSectors,
    EarlierFile,
    MisdirectedWrite,
}

impl Fault {
    /// All faults. The first twelve can damage any file; the last four can damage only data files.
    pub(crate) const DATA_FILE: [Self; 16] = [
        Self::ZeroedSectors,
        Self::ShiftedSectors,
        Self::DoubledSector,
        Self::SwappedStripes,
        Self::Cut,
        Self::TailOfAnother,
        Self::EncryptedBlocks,
        Self::EncryptedStart,
        Self::EncryptedFile,
        Self::Intermittent,
        Self::BitRot,
        Self::NoisySectors,
        Self::LostWrite,
        Self::LostSectors,
        Self::EarlierFile,
        Self::MisdirectedWrite,
    ];
    /// Faults that need neither pages nor an earlier version of the same file.
    pub(crate) const ANY_FILE: &[Self] = Self::DATA_FILE.split_at(12).0;

    /// The name of the fault.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ZeroedSectors => "sectors zeroed",
            Self::ShiftedSectors => "sectors shifted",
            Self::DoubledSector => "a sector written twice",
            Self::SwappedStripes => "stripes swapped",
            Self::Cut => "file cut",
            Self::TailOfAnother => "tail of another file",
            Self::EncryptedBlocks => "every n-th block encrypted",
            Self::EncryptedStart => "start encrypted",
            Self::EncryptedFile => "file encrypted",
            Self::Intermittent => "encrypted intermittently",
            Self::BitRot => "bit rot",
            Self::NoisySectors => "sectors of noise",
            Self::LostWrite => "write lost",
            Self::LostSectors => "sectors of a write lost",
            Self::EarlierFile => "file of another time",
            Self::MisdirectedWrite => "write misdirected",
        }
    }
}

/// Files from which a fault takes wrong bytes.
pub(crate) struct Others<'a> {
    /// An unrelated file.
    pub(crate) foreign: &'a [u8],
    /// An earlier version of the same file.
    pub(crate) earlier: &'a [u8],
}

/// Applies `fault` to a file. Returns a text that describes the place and the kind of the damage; `None` if the fault
/// cannot be applied to the file.
pub(crate) fn inflict(fault: Fault, file: &mut Content, others: &Others<'_>, random: &mut Random) -> Option<String> {
    let (path, bytes) = file;
    let before = bytes.clone();
    let length = bytes.len();
    let sectors = length / SECTOR;
    if sectors < 2 {
        return None;
    }
    let place = match fault {
        Fault::ZeroedSectors | Fault::NoisySectors => {
            let count = *random.pick(&[1, 1, 2, 8, 16, 128])?;
            let at = random.below(sectors) * SECTOR;
            let place = at..(at + count * SECTOR).min(length);
            match fault {
                Fault::ZeroedSectors => bytes.get_mut(place.clone())?.fill(0),
                _ => encrypt(bytes.get_mut(place.clone())?, random.number()),
            }
            format!("{place:?}")
        }
        Fault::ShiftedSectors => {
            let by = *random.pick(&[SECTOR, 2 * SECTOR, 4096])?;
            let from = random.below(sectors) * SECTOR;
            let end = (from + random.pick(&[16 * SECTOR, PAGE * 8, length])?).min(length);
            if from + by >= end {
                return None;
            }
            bytes.copy_within(from..end - by, from + by);
            format!("{from}..{end} by {by}")
        }
        Fault::DoubledSector => {
            let size = *random.pick(&[SECTOR, 4096])?;
            let at = random.below(length / size - 1) * size;
            bytes.copy_within(at..at + size, at + size);
            format!("{at}, {size} bytes")
        }
        Fault::SwappedStripes => {
            let size = *random.pick(&[SECTOR, 4096, PAGE, 8 * PAGE])?;
            let (a, b) = (random.below(length / size) * size, random.below(length / size) * size);
            let (first, second) = (before.get(a..a + size)?, before.get(b..b + size)?);
            bytes.get_mut(a..a + size)?.copy_from_slice(second);
            bytes.get_mut(b..b + size)?.copy_from_slice(first);
            format!("{a} and {b}, {size} bytes")
        }
        Fault::Cut => {
            let at = match random.below(3) {
                0 => random.below(length / PAGE) * PAGE,
                1 => random.below(sectors) * SECTOR,
                _ => random.below(length),
            };
            bytes.truncate(at);
            format!("at {at}")
        }
        Fault::TailOfAnother => {
            let at = random.below(length / PAGE) * PAGE;
            let tail = others.foreign.get(at..)?;
            let place = bytes.get_mut(at..)?;
            let count = place.len().min(tail.len());
            place.get_mut(..count)?.copy_from_slice(tail.get(..count)?);
            format!("{at}..{}", at + count)
        }
        Fault::EncryptedBlocks | Fault::EncryptedStart | Fault::EncryptedFile | Fault::Intermittent => {
            encrypt_parts(fault, bytes, random)?
        }
        Fault::BitRot => {
            let places: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(length)).collect();
            for at in &places {
                *bytes.get_mut(*at)? ^= 1 << random.below(8);
            }
            format!("{places:?}")
        }
        Fault::LostWrite | Fault::LostSectors | Fault::EarlierFile => take_back(fault, bytes, others.earlier, random)?,
        Fault::MisdirectedWrite => {
            let (from, to) = (random.below(length / PAGE) * PAGE, random.below(length / PAGE) * PAGE);
            bytes.copy_within(from..from + PAGE, to);
            format!("{from} to {to}")
        }
    };
    (*bytes != before).then(|| format!("{} {place}", path.display()))
}

/// Encrypts a file as ransomware does: the whole file, only its start, or some of its blocks. Returns a text that says
/// which bytes are encrypted.
fn encrypt_parts(fault: Fault, bytes: &mut Vec<u8>, random: &mut Random) -> Option<String> {
    let place = match fault {
        Fault::EncryptedBlocks => {
            let size = *random.pick(&[4096, PAGE, 8 * PAGE])?;
            let every = 2 + random.below(15);
            let key = random.number();
            let blocks = bytes.chunks_mut(size).enumerate().filter(|(number, _)| number % every == every - 1);
            blocks.for_each(|(number, block)| encrypt(block, key ^ number as u64));
            format!("{size} bytes in every {every}")
        }
        Fault::EncryptedStart => {
            let end = (*random.pick(&[1 << 10, 4 << 10, 64 << 10, 1 << 20])?).min(bytes.len());
            encrypt(bytes.get_mut(..end)?, random.number());
            format!("{end} bytes")
        }
        Fault::EncryptedFile => {
            encrypt(bytes, random.number());
            // Some ransomware appends a note.
            if random.below(2) == 0 {
                bytes.extend([0x5A; 700]);
            }
            "whole".to_owned()
        }
        Fault::Intermittent => {
            let (size, every) = (*random.pick(&[16, 512, 4096])?, *random.pick(&[PAGE, 8 * PAGE, 1 << 18])?);
            let key = random.number();
            for (number, block) in bytes.chunks_mut(every).enumerate() {
                let end = size.min(block.len());
                encrypt(block.get_mut(..end)?, key ^ number as u64);
            }
            format!("{size} bytes of every {every}")
        }
        _ => return None,
    };
    Some(place)
}

/// Replaces one page, one sector or the whole file by its content at an earlier time. Returns a text that says which
/// part was replaced.
fn take_back(fault: Fault, bytes: &mut Vec<u8>, earlier: &[u8], random: &mut Random) -> Option<String> {
    if fault == Fault::EarlierFile {
        *bytes = earlier.to_vec();
        return Some("whole".to_owned());
    }
    let size = if fault == Fault::LostWrite { PAGE } else { SECTOR };
    let differs: Vec<usize> = (0..bytes.len().min(earlier.len()) / size)
        .map(|number| number * size)
        .filter(|&at| bytes.get(at..at + size) != earlier.get(at..at + size))
        .collect();
    let at = *random.pick(&differs)?;
    bytes.get_mut(at..at + size)?.copy_from_slice(earlier.get(at..at + size)?);
    Some(format!("{at}, {size} bytes"))
}

/// Replaces the bytes by pseudo-random noise.
fn encrypt(bytes: &mut [u8], key: u64) {
    let mut noise = Random::new(key);
    for chunk in bytes.chunks_mut(8) {
        let word = noise.number().to_le_bytes();
        chunk.iter_mut().zip(word).for_each(|(byte, noise)| *byte ^= noise);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_changes_a_file_and_a_seed_decides_how() {
        let sound: Vec<u8> = (0..40 * PAGE).map(|at| (at / 7) as u8).collect();
        let foreign: Vec<u8> = sound.iter().map(|byte| byte ^ 0x33).collect();
        let others = Others { foreign: &foreign, earlier: &foreign };
        for fault in Fault::DATA_FILE {
            let tried = |seed| {
                let mut file = ("a.mdf".into(), sound.clone());
                inflict(fault, &mut file, &others, &mut Random::new(seed)).map(|_| file.1)
            };
            let changed: Vec<Option<Vec<u8>>> = (0..20).map(tried).collect();
            assert!(changed.iter().flatten().count() > 5, "{fault:?}");
            assert!(changed.iter().flatten().all(|bytes| *bytes != sound), "{fault:?}");
            assert_eq!(tried(3), changed[3], "{fault:?}");
        }
    }
}
